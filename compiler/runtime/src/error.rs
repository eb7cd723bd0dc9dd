//! What can go wrong while a program is built or run.

use rx_base::Name;
use rx_ir::Origin;
use std::fmt;

/// Why a kernel was not built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}`: {message}")]
pub struct BuildError {
    /// The kernel.
    pub kernel: Name,
    /// The Relax statements it computes.
    pub origins: Vec<Origin>,
    /// Why.
    pub message: String,
}

/// Why a run ended, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct RunError {
    /// The statement that was running, where known.
    pub origin: Option<Origin>,
    /// What happened.
    pub fault: Fault,
}

/// What ends a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An index that is out of range.
    OutOfBounds {
        /// The operator, or the block of a prim_func.
        operator: Name,
        /// The buffer.
        buffer: Name,
        /// Which axis.
        axis: u32,
        /// The index.
        index: i64,
        /// The axis's extent.
        extent: i64,
    },
    /// A value that is not of the type it is declared to have.
    Mismatch {
        /// What the value is: ``parameter `x` ``.
        what: String,
        /// How it is declared.
        declared: String,
        /// What it is.
        actual: String,
        /// What differs.
        detail: String,
    },
    /// Anything else, in a sentence without a full stop.
    Other(String),
}

impl From<Fault> for RunError {
    fn from(fault: Fault) -> RunError {
        RunError { origin: None, fault }
    }
}

impl RunError {
    /// A fault that has no form of its own.
    pub fn other(message: impl Into<String>) -> RunError {
        Fault::Other(message.into()).into()
    }

    /// The error, said of `origin` where it names none itself.
    pub fn at(mut self, origin: Option<Origin>) -> RunError {
        self.origin = self.origin.or(origin);
        self
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Fault::OutOfBounds { operator, buffer, axis, index, extent } => write!(
                f,
                "{operator}: index {index} is out of range for axis {axis} of `{buffer}`, which has {extent} elements"
            ),
            Fault::Mismatch { what, declared, actual, detail } => {
                write!(f, "{what} is {actual}, declared {declared}: {detail}")
            }
            Fault::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for RunError {}
