//! The integration tests of `rxfmt`: one module a subject, one program to link.

mod cli;
mod pages;
