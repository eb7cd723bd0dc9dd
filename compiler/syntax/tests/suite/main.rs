//! The integration tests of `rx-syntax`: one module a subject, one program to link.

mod corpus;
mod incremental;
mod printer_corpus;
