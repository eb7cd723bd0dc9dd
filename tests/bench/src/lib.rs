//! What rx's benchmarks share: programs of any size, and tools that measure.
//!
//! - [`generate`]: well-typed Relax texts of a wanted number of bindings.
//! - [`measure`]: CPU time, peak memory, medians.
//! - [`lsp`]: a client of any language server.

pub mod generate;
pub mod lsp;
pub mod measure;
