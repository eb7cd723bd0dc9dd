//! The integration tests of `rx-execute`: one module a subject, one program to link.

mod layouts;
mod operators;
mod passes;
mod pipeline;
mod steps;
