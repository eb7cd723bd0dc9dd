//! Executes lowered programs on a device.
//!
//! [`Executor`] runs the instructions of an [`rx_lower::Program`]; a [`Backend`] (interpreter, CPU, CUDA, simulated
//! CUDA) runs the kernels and owns their memory. This crate parses and prints no Relax text. The module `host` computes
//! the operators that `rx-ops` marks with `Compute::Host`; their functions are in this crate because `rx-ops` is a
//! dependency of the checker and must not depend on tensors.
//!
//! The interpreter is always compiled in; the features `cpu` and `cuda` add the other devices.
//!
//! - An [`Observer`] receives an event for each kernel (except in calls that are lowered at run time) and, in a watched
//!   program, for each binding. If it measures time, the device finishes each kernel before it starts the next. A run
//!   without an observer has no overhead from this.
//! - Calls between procedures use a stack on the heap (`executor::calls`), not the native stack: tail calls become
//!   loops, and the memory of suspended calls is bounded (`executor::suspended`).
//! - The last result of a memoized procedure is cached, and returned by a call with identical arguments. Memoized are
//!   pure functions with the attribute `rx.once`, which the pass `KeepRawEntry` sets on the function that prepares
//!   weights, and the conversions of weights that the lowering adds.
//!
//! # Invariants
//!
//! - The executor runs a program's instructions in the same way on all devices; they differ in kernels and memory only.
//! - Declared types are checked where values enter a function, and where an annotation is stronger than the type that
//!   the checker proved.
//! - A run with a limit on its iterations ([`Limits`]) terminates. Each instruction counts, and usually each iteration
//!   of a loop. The interpreter counts while it runs. Compiled code is counted before it runs if its arguments
//!   determine the count (`rx_loops::iterations`); on the CPU, iterations of `while` and of loops with computed extents
//!   are counted by the compiled code itself. A `while` of a CUDA thread ends after 2³² iterations.

mod backend;
mod constant;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
mod executor;
mod fuel;
mod host;
pub mod interp;
mod kernel_runs;
mod memory;
mod observer;
mod types;
mod value;

pub use backend::{Argument, Backend, KernelCall, Stage};
pub use error::{BuildError, Fault, RunError};
pub use executor::Executor;
pub use fuel::{Fuel, Limits, PER_INSTRUCTION};
pub use host::functions as host_functions;
pub use kernel_runs::kernel_runs;
pub use memory::Memory;
pub use observer::{KernelRun, Observer};
pub use value::{Nested, Output, Value};
