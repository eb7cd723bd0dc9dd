//! The integration tests of `rx-loops`, one module for each subject, linked as one program.

mod conv;
mod inline;
mod matmul;
mod ranges;
mod support;
