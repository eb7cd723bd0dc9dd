//! The integration tests of `rxopt`: one module a subject, one program to link.

mod cli;
mod pages;
