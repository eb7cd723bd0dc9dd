//! What goes wrong in a run.

use rx_base::{DType, Name};
use rx_tensor::TensorError;
use rx_tir::{BindError, BufferId, PrimFunc, Site};

/// Why a run ended early, or did not begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The arguments' number or shapes are not the function's.
    #[error("the call does not fit {func}: {}", misfit(*.buffer, .error))]
    Call {
        /// The function.
        func: Name,
        /// The parameter that is at fault, where it is one.
        buffer: Option<Name>,
        /// How it is at fault.
        error: BindError,
    },
    /// An argument of another dtype than the parameter's.
    #[error("{buffer} is {wanted}, the argument {passed}")]
    ArgumentDType {
        /// The parameter.
        buffer: Name,
        /// Its dtype.
        wanted: DType,
        /// The argument's.
        passed: DType,
    },
    /// A scalar argument that is no value of the parameter's dtype.
    #[error("the argument for {param} is not a value of {dtype}")]
    ArgumentScalar {
        /// The parameter.
        param: Name,
        /// Its dtype.
        dtype: DType,
    },
    /// A buffer's extent that no argument tells.
    #[error("dim {axis} of buffer {buffer} is not known")]
    UnknownExtent {
        /// The buffer.
        buffer: Name,
        /// Which dim.
        axis: usize,
    },
    /// A buffer of the function that cannot be made.
    #[error("buffer {buffer}: {error}")]
    Allocation {
        /// The buffer.
        buffer: Name,
        /// Why not.
        error: TensorError,
    },
    /// An index that its buffer does not have.
    #[error("index {index} is out of range for dim {axis} of {buffer}, whose extent is {extent}{}", place(.site))]
    OutOfBounds {
        /// Where.
        site: Site,
        /// The buffer.
        buffer: Name,
        /// Which dim.
        axis: usize,
        /// The index.
        index: i64,
        /// The dim's extent.
        extent: i64,
    },
    /// An integer divided by 0.
    #[error("integer division by zero{}", place(.site))]
    DivisionByZero {
        /// Where.
        site: Site,
    },
    /// An assertion that did not hold.
    #[error("assertion failed{}: {message}", place(.site))]
    Assertion {
        /// Where.
        site: Site,
        /// What it says.
        message: Name,
    },
    /// The caller's limit was reached.
    #[error("{0}")]
    Stopped(Limit),
    /// A dtype without values here.
    #[error("values of dtype {0} cannot be computed")]
    UnsupportedDType(DType),
    /// Deeper nesting than is run.
    #[error("expressions or statements are nested too deep")]
    TooDeep,
    /// The function breaks the invariants of [`PrimFunc`].
    #[error("{func} is malformed: {reason}")]
    Malformed {
        /// The function.
        func: Name,
        /// How.
        reason: &'static str,
    },
}

/// Which limit of the caller ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// The number of rounds.
    #[error("stopped after the rounds allowed")]
    Rounds,
    /// The bytes of buffers.
    #[error("stopped: its buffers need more memory than is allowed")]
    Bytes,
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl RunError {
    /// The error of a call of `func`.
    pub(crate) fn call(func: &PrimFunc, error: BindError) -> RunError {
        let buffer = match &error {
            BindError::Rank { buffer, .. } | BindError::Extent { buffer, .. } | BindError::Unknown { buffer, .. } => {
                name_of(func, *buffer)
            }
            _ => None,
        };
        RunError::Call { func: func.name, buffer, error }
    }

    /// Where in the program it went wrong, of an error that a statement made.
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

/// ` in <operator>`, where it is known.
fn place(site: &Site) -> String {
    match site.operator.as_str() {
        "" => String::new(),
        operator => format!(" in {operator}"),
    }
}

/// How an argument does not fit, with the parameter's name where it is one.
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
