//! The integration tests of `rx-grammar-tests`: one module a subject, one program to link.

mod corpus;
mod edits;
mod files;
mod textmate;
mod texts;
