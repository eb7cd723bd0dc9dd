//! What rx's tests over whole texts share.
//!
//! - [`check`]: a text's diagnostics and types, by line.
//! - [`mdtest`]: tests as documents: Markdown with code and the diagnostics expected of it.
//! - [`cases`]: given cases beside the project, where they are.
//! - [`types`]: types compared as types, not as text.

pub mod cases;
pub mod check;
pub mod mdtest;
pub mod types;
