//! TVMScript text.
pub mod ast;
