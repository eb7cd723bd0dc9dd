//! The integration tests of `rx-syntax`, as modules of a single binary to save linking time.

mod ahead;
mod corpus;
mod dialects;
mod directives;
mod documents;
mod incremental;
mod printer;
mod printer_corpus;
mod render;
mod segments;
mod statements;
