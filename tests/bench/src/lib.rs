//! Helpers shared by rx's benchmarks.
//!
//! - [`generate`]: generates well-typed Relax texts with a given number of bindings.
//! - [`measure`]: measures CPU time and peak memory, computes medians.
//! - [`lsp`]: a client for any language server.

pub mod generate;
pub mod lsp;
pub mod measure;
