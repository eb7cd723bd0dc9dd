//! Errors of a run.

use rx_base::{DType, Name};
use rx_tensor::TensorError;
use rx_tir::{BindError, BufferId, PrimFunc, Site};

/// The reason why a run failed or could not start.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The number or the shapes of the arguments do not match the function's parameters.
    #[error("the call does not fit {func}: {}", misfit(*.buffer, .error))]
    Call {
        /// The function.
        func: Name,
        /// The parameter that does not match, if the error is about one.
        buffer: Option<Name>,
        /// The mismatch.
        error: BindError,
    },
    /// The dtype of a tensor argument differs from that of its parameter.
    #[error("{buffer} is {wanted}, the argument {passed}")]
    ArgumentDType {
        /// The parameter.
        buffer: Name,
        /// The parameter's dtype.
        wanted: DType,
        /// The argument's dtype.
        passed: DType,
    },
    /// A scalar argument is not representable in the parameter's dtype.
    #[error("the argument for {param} is not a value of {dtype}")]
    ArgumentScalar {
        /// The parameter.
        param: Name,
        /// The parameter's dtype.
        dtype: DType,
    },
    /// The extent of a buffer does not follow from the arguments.
    #[error("dim {axis} of buffer {buffer} is not known")]
    UnknownExtent {
        /// The buffer.
        buffer: Name,
        /// The dim, 0-based.
        axis: usize,
    },
    /// Memory for a local buffer could not be allocated.
    #[error("buffer {buffer}: {error}")]
    Allocation {
        /// The buffer.
        buffer: Name,
        /// The reason.
        error: TensorError,
    },
    /// An index is out of range.
    #[error("index {index} is out of range for dim {axis} of {buffer}, whose extent is {extent}{}", place(.site))]
    OutOfBounds {
        /// The statement that was executed.
        site: Site,
        /// The buffer.
        buffer: Name,
        /// The dim, 0-based.
        axis: usize,
        /// The index.
        index: i64,
        /// The dim's extent.
        extent: i64,
    },
    /// An integer was divided by 0.
    #[error("integer division by zero{}", place(.site))]
    DivisionByZero {
        /// The statement that was executed.
        site: Site,
    },
    /// The condition of an assertion is false.
    #[error("assertion failed{}: {message}", place(.site))]
    Assertion {
        /// The assertion.
        site: Site,
        /// The assertion's message.
        message: Name,
    },
    /// A limit that the caller set was reached.
    #[error("{0}")]
    Stopped(Limit),
    /// A dtype that the interpreter does not support.
    #[error("values of dtype {0} cannot be computed")]
    UnsupportedDType(DType),
    /// The nesting of expressions or statements exceeds the maximum.
    #[error("expressions or statements are nested too deep")]
    TooDeep,
    /// The function violates an invariant of [`PrimFunc`].
    #[error("{func} is malformed: {reason}")]
    Malformed {
        /// The function.
        func: Name,
        /// The violated invariant.
        reason: &'static str,
    },
}

/// A limit that the caller set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// The number of loop iterations.
    #[error("stopped: it needs more iterations of loops than is allowed")]
    Iterations,
    /// The size in bytes of the local buffers.
    #[error("stopped: its buffers need more memory than is allowed")]
    Bytes,
    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,
}

impl RunError {
    /// Creates the error of a call of `func` with arguments that do not match.
    pub(crate) fn call(func: &PrimFunc, error: BindError) -> RunError {
        let buffer = match &error {
            BindError::Rank { buffer, .. } | BindError::Extent { buffer, .. } | BindError::Unknown { buffer, .. } => {
                name_of(func, *buffer)
            }
            _ => None,
        };
        RunError::Call { func: func.name, buffer, error }
    }

    /// Returns the statement that caused the error, if a statement did.
    pub fn site(&self) -> Option<Site> {
        match self {
            RunError::OutOfBounds { site, .. }
            | RunError::DivisionByZero { site }
            | RunError::Assertion { site, .. } => Some(*site),
            _ => None,
        }
    }
}

fn name_of(func: &PrimFunc, buffer: BufferId) -> Option<Name> {
    func.buffers.get(buffer.0 as usize).map(|buffer| buffer.name)
}

/// Returns ` in <operator>`, or the empty string if the operator is not known.
fn place(site: &Site) -> String {
    match site.operator.as_str() {
        "" => String::new(),
        operator => format!(" in {operator}"),
    }
}

/// Describes a mismatch between an argument and its parameter.
fn misfit(buffer: Option<Name>, error: &BindError) -> String {
    match (buffer, error) {
        (Some(buffer), BindError::Rank { wanted, passed, .. }) => {
            format!("{buffer} has {wanted} dims, the argument {passed}")
        }
        (Some(buffer), BindError::Extent { axis, wanted, passed, .. }) => {
            format!("dim {axis} of {buffer} is {wanted}, the argument's {passed}")
        }
        (Some(buffer), BindError::Unknown { axis, .. }) => format!("dim {axis} of {buffer} is not known"),
        (_, error) => error.to_string(),
    }
}
