//! Errors of building and of running a program.

use rx_base::Name;
use rx_ir::Origin;
use std::fmt;

/// The error of a program that could not be built, usually because of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}`: {message}")]
pub struct BuildError {
    /// The kernel, or a name such as `cuda` or `constants` if the error belongs to no kernel.
    pub kernel: Name,
    /// The Relax statements that the kernel computes.
    pub origins: Vec<Origin>,
    /// The reason.
    pub message: String,
}

/// An error that ended a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunError {
    /// The statement that was executed, if known.
    pub origin: Option<Origin>,
    /// The kind of error.
    pub fault: Fault,
}

/// The kind of an error that ends a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An index that is out of range.
    OutOfBounds {
        /// The name of the Relax operator; in a prim_func, of the innermost named block, or of the function.
        operator: Name,
        /// The name of the buffer.
        buffer: Name,
        /// The axis of the program's tensor, 0-based.
        axis: u32,
        /// The value of the index.
        index: i64,
        /// The extent of the axis.
        extent: i64,
    },
    /// A value that does not have its declared type.
    Mismatch {
        /// The role of the value, for example ``parameter `x` ``.
        subject: String,
        /// The declared type.
        declared: String,
        /// A description of the value.
        actual: String,
        /// The difference between the two.
        detail: String,
    },
    /// Any other error: its message.
    Other(String),
}

impl From<Fault> for RunError {
    fn from(fault: Fault) -> RunError {
        RunError { origin: None, fault }
    }
}

impl RunError {
    /// Creates an error that has no separate variant.
    pub fn other(message: impl Into<String>) -> RunError {
        Fault::Other(message.into()).into()
    }

    /// Sets the error's origin if it has none.
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
            Fault::Mismatch { subject, declared, actual, detail } => {
                write!(f, "{subject} is {actual}, declared {declared}: {detail}")
            }
            Fault::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for RunError {}
