//! Integration tests of `rx-db`: one module per subject, linked into one program.

mod hostile;
mod incremental;
mod modules;
mod operators;
mod project;
