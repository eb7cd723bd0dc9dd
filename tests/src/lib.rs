//! What rx's tests over whole texts share.
//!
//! - [`check`]: a text's diagnostics and types, by line.
//! - [`console`]: pages with commands and what they print.
//! - [`mdtest`]: tests as documents: Markdown with code and the diagnostics expected of it.
//! - [`cases`]: given cases beside the project, where they are.
//! - [`types`]: types compared as types, not as text.

pub mod cases;
pub mod check;
pub mod console;
pub mod mdtest;
pub mod types;
