//! The integration tests of `rx-interp`: one module for each subject, linked as one program.

mod expressions;
mod programs;
