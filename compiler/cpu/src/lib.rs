//! Functions of the loop-level IR on the host's processor.
//!
//! A function is scheduled ([`fn@rx_schedule::schedule`]) and becomes one piece of machine code ([`CpuKernel`]), made by
//! Cranelift: its loop nests as code of their own, with loops in vectors of 128 bits where their rounds are independent
//! or update one element, its matrix products as calls of a library, and its windowed sums as calls of a routine. Narrow
//! floats are loaded to and stored from `float32` and computed in it.
//!
//! Calls are safe: shapes and lengths are compared before code runs, and the code checks every index that scheduling did
//! not prove in range. Code without checks exists to be compared with ([`CheckCost`]).

mod check_cost;
mod emit;
mod error;
mod kernel;
mod poly;
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
