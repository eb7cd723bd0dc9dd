//! Compiles functions of the loop-level IR to machine code for the host.
//!
//! A function is scheduled ([`fn@rx_loops::schedule`]) and compiled by Cranelift to one machine-code function
//! ([`CpuKernel`]). Loop nests become generated code. A loop is usually vectorized to 128 bits if its iterations are
//! independent or only update loop-invariant elements, if vectors support its operations and strides, and if loads that
//! are gathered pay off. Matrix products of `float32` usually become calls of the library `gemm`; those of `float64`,
//! calls of a plain loop nest. Products of `float32` with few rows or columns and suitable strides, and windowed sums
//! of `float32`, are computed by routines that use the host's widest vectors (`simd`). Narrow floats are converted to
//! `float32` when loaded and computed in `float32`. See `docs/decisions/0006-cranelift-and-gemm.md`. Like `rx-cuda`,
//! this crate contains unsafe code.
//!
//! # Invariants
//!
//! - Calls are safe: shapes and lengths are compared before the code runs, and the code checks every index that
//!   scheduling did not prove to be in range.
//! - Code without checks exists only to measure the cost of checks ([`CheckCost`]). It runs only after the code with
//!   checks has run on bit-identical arguments and none of its checks failed.

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
