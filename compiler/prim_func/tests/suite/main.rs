//! The integration tests of `rx-prim-func`, one module for each subject, linked as one program.

mod attributes;
mod checks;
mod names;
mod reader;
mod signature;
