//! Integration tests of `rx-grammar-tests`: one module per subject, linked into one program.

mod corpus;
mod edits;
mod files;
mod textmate;
mod texts;
