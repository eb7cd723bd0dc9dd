//! The integration tests of `rx-db`: one module a subject, one program to link.

mod hostile;
mod incremental;
mod operators;
