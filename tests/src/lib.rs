//! Helpers shared by rx's tests over whole texts.
//!
//! - [`check`]: the diagnostics and types of a text, by line.
//! - [`console`]: runs the commands shown in pages and compares their output.
//! - [`mdtest`]: tests as documents: Markdown with code and the diagnostics expected in it.
//! - [`cases`]: conformance cases, in the project or in a folder beside it.
//! - [`types`]: compares types semantically, not as text.

pub mod cases;
pub mod check;
pub mod console;
pub mod mdtest;
pub mod types;
