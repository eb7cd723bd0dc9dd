//! Machine code for the host, from functions of the loop-level IR.
//!
//! A function is scheduled ([`fn@rx_schedule::schedule`]) and becomes one piece of machine code ([`CpuKernel`]), made by
//! Cranelift: loop nests as generated code, in vectors of 128 bits where their iterations are independent or update one element;
//! matrix products as calls of the library `gemm`; products of few rows and windowed sums as calls of routines that use the
//! host's widest vectors (`simd`). Narrow floats are loaded to and stored from `float32` and computed in it. See
//! `docs/decisions/0006-cranelift-and-gemm.md`. One of the two crates with unsafe code.
//!
//! # Invariants
//!
//! - Calls are safe: shapes and lengths are compared before code runs, and the code checks every index that scheduling did not
//!   prove in range.
//! - Code without checks exists to measure the cost of checks ([`CheckCost`]). It runs only after code with checks ran on the
//!   same bits and failed none.

mod check_cost;
mod emit;
mod error;
mod kernel;
mod prepare;
mod product;
mod rows;
mod runtime;
mod simd;
mod vector;
mod window;

pub use check_cost::{Arguments, CheckCost};
pub use error::{CompileError, RunError};
pub use kernel::{Argument, CpuKernel, CpuModule, Limits, Scratch};
