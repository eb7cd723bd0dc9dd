//! What rx's benchmarks share: programs of any size, and tools that measure.
//!
//! - [`generate`]: well-typed Relax texts of a wanted number of bindings.
//! - [`measure`]: thread CPU time, peak memory, medians.

pub mod generate;
pub mod measure;
