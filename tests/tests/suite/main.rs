//! Integration tests of `rx-tests`: one module per subject, linked into one program.

mod conformance;
mod formatting;
mod mdtest;
mod targets;
