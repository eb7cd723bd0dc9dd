//! Integration tests of `rxcheck`: one module per subject, linked into one program.

mod cli;
mod configuration;
mod examples;
mod fix;
mod formats;
mod harness;
mod lsp;
mod notebook;
mod pages;
mod tracing;
mod watch;
