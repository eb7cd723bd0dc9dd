//! The integration tests of `rx-syntax`, as modules of a single binary to save linking time.

mod corpus;
mod incremental;
mod printer_corpus;
