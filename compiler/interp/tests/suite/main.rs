//! The integration tests of `rx-interp`: one module a subject, one program to link.

mod expressions;
mod programs;
