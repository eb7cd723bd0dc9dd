//! The integration tests of `rx-schedule`: one module a subject, one program to link.

mod conv;
mod inline;
mod matmul;
mod ranges;
mod support;
