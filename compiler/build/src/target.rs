//! The device that a program is made for.

use rx_cuda::rules::Target as CudaTarget;
use rx_lower::{NoPreferences, Preferences};

/// The device that a program is made for, as an argument of queries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The interpreter, which is the reference for the others: each operator stays a kernel.
    Interpreter,
    /// The CPU.
    Cpu,
    /// CUDA.
    Cuda(CudaTarget),
}

impl Target {
    /// The device's preferences for programs; none of the interpreter.
    pub fn preferences(&self) -> Option<&dyn Preferences> {
        match self {
            Target::Interpreter => None,
            Target::Cpu => Some(&NoPreferences),
            Target::Cuda(target) => Some(target),
        }
    }
}
