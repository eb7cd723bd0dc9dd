//! Integration tests of `rxopt`: one module per subject, linked into one program.

mod cli;
mod pages;
