//! The integration tests of `rx-tests`: one module a subject, one program to link.

mod conformance;
mod formatting;
mod mdtest;
mod targets;
