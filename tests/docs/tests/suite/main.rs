//! Integration tests of `rx-docs`: one module per subject, linked into one program.

mod configuration;
mod pages;
