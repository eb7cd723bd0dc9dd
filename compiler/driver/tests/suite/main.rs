//! The integration tests of `rx-driver`, linked into one binary: one module for each subject.

mod layouts;
mod operators;
mod passes;
mod pipeline;
mod steps;
