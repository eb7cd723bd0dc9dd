//! Integration tests of `rxfmt`: one module per subject, linked into one program.

mod cli;
mod pages;
