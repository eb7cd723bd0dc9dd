//! The integration tests of `rx-docs`: one module a subject, one program to link.

mod configuration;
mod pages;
