//! Runs programs: values, instructions, devices.
//!
//! [`Executor`] runs the instructions of a [`rx_lower::Program`]; a [`Backend`] (interpreter, CPU, CUDA, simulated CUDA) runs its
//! kernels and owns their memory. Nothing here knows text. `host` computes the operators that `rx-ops` marks with
//! `Compute::Host`; their functions are here because `rx-ops`, which the checker depends on, knows no tensors.
//!
//! The interpreter is always compiled; the features `cpu` and `cuda` add the other devices.
//!
//! - An [`Observer`] is notified of kernels and bindings. If it asks for times, the device finishes each kernel before it starts
//!   the next. A run without an observer pays nothing.
//! - Calls of procedures are on a stack of the executor (`executor::calls`), not the host's: tail calls are loops, and the memory
//!   of waiting calls is bounded (`executor::room`).
//! - A pure function with the attribute `rx.once` runs again only for other arguments than the last ones; the pass `KeepRawEntry`
//!   marks the function that prepares weights.
//!
//! # Invariants
//!
//! - All devices run the same program; they differ in kernels and memory only.
//! - Declared types are checked where values enter a function, and where an annotation states more than was proved.
//! - A run with [`Limits`] (iterations, bytes) ends. Each instruction and each iteration of a loop counts. The interpreter counts
//!   while it runs; compiled code is counted before it runs if its arguments determine the count (`rx_schedule::rounds`), and
//!   counts the iterations of `while` and of loops with computed extents itself. A `while` of a CUDA thread ends after 2³²
//!   iterations.

mod backend;
mod budget;
mod constant;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
mod executor;
mod host;
pub mod interp;
mod kernel_runs;
mod memory;
mod observer;
mod types;
mod value;

pub use backend::{Argument, Backend, KernelCall, Stage};
pub use budget::{Budget, Limits};
pub use error::{BuildError, Fault, RunError};
pub use executor::Executor;
pub use host::functions as host_functions;
pub use kernel_runs::kernel_runs;
pub use memory::Memory;
pub use observer::{KernelRun, Observer};
pub use value::{Nested, Output, Value};
