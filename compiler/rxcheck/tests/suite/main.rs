//! The integration tests of `rxcheck`: one module a subject, one program to link.

mod cli;
mod configuration;
mod examples;
mod fix;
mod formats;
mod harness;
mod lsp;
mod pages;
mod tracing;
mod watch;
