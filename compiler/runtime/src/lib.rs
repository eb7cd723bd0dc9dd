//! Programs executed: values, instructions, devices.
//!
//! [`Executor`] runs the instructions of a [`rx_lower::Program`]; a [`Backend`] runs its kernels and owns the memory they
//! work on. The crate knows no text.
//!
//! The interpreter is always compiled; the features `cpu` and `cuda` add the other devices.

mod backend;
mod budget;
mod constant;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod distinct;
mod error;
mod executor;
mod host;
pub mod interp;
mod kernel_runs;
mod observer;
mod types;
mod value;

pub use backend::{Argument, Backend, Stage};
pub use budget::{Budget, Limits};
pub use distinct::distinct;
pub use error::{BuildError, Fault, RunError};
pub use executor::Executor;
pub use host::functions as host_functions;
pub use kernel_runs::kernel_runs;
pub use observer::{KernelRun, Observer};
pub use value::{Nested, Output, Value};
