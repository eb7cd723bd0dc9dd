//! What goes wrong in a run.

use rx_base::{DType, Name};
use rx_tensor::TensorError;
use rx_tir::{BindError, BufferId, PrimFunc, Site};
use std::fmt;

/// Why a run ended early, or did not begin.
#[derive(Clone, Debug, PartialEq)]
pub enum RunError {
    /// The arguments' number or shapes are not the function's.
    Call {
        /// The function.
        func: Name,
        /// The parameter that is at fault, where it is one.
        buffer: Option<Name>,
        /// How it is at fault.
        error: BindError,
    },
    /// An argument of another dtype than the parameter's.
    ArgumentDType {
        /// The parameter.
        buffer: Name,
        /// Its dtype.
        wanted: DType,
        /// The argument's.
        passed: DType,
    },
    /// A scalar argument that is no value of the parameter's dtype.
    ArgumentScalar {
        /// The parameter.
        param: Name,
        /// Its dtype.
        dtype: DType,
    },
    /// A buffer's extent that no argument tells.
    UnknownExtent {
        /// The buffer.
        buffer: Name,
        /// Which dim.
        axis: usize,
    },
    /// A buffer of the function that cannot be made.
    Allocation {
        /// The buffer.
        buffer: Name,
        /// Why not.
        error: TensorError,
    },
    /// An index that its buffer does not have.
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
    DivisionByZero {
        /// Where.
        site: Site,
    },
    /// An assertion that did not hold.
    Assertion {
        /// Where.
        site: Site,
        /// What it says.
        message: Name,
    },
    /// The caller's limit was reached.
    Stopped(Limit),
    /// A dtype without values here.
    UnsupportedDType(DType),
    /// Deeper nesting than is run.
    TooDeep,
    /// The function breaks the invariants of [`PrimFunc`].
    Malformed {
        /// The function.
        func: Name,
        /// How.
        reason: &'static str,
    },
}

/// Which limit of the caller ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The number of rounds.
    Rounds,
    /// The bytes of buffers.
    Bytes,
    /// The run was cancelled.
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

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Call { func, buffer, error } => {
                write!(f, "the call does not fit {func}: ")?;
                match (buffer, error) {
                    (Some(buffer), BindError::Rank { wanted, passed, .. }) => {
                        write!(f, "{buffer} has {wanted} dims, the argument {passed}")
                    }
                    (Some(buffer), BindError::Extent { axis, wanted, passed, .. }) => {
                        write!(f, "dim {axis} of {buffer} is {wanted}, the argument's {passed}")
                    }
                    (Some(buffer), BindError::Unknown { axis, .. }) => write!(f, "dim {axis} of {buffer} is not known"),
                    (_, error) => write!(f, "{error}"),
                }
            }
            RunError::ArgumentDType { buffer, wanted, passed } => {
                write!(f, "{buffer} is {wanted}, the argument {passed}")
            }
            RunError::ArgumentScalar { param, dtype } => {
                write!(f, "the argument for {param} is not a value of {dtype}")
            }
            RunError::UnknownExtent { buffer, axis } => write!(f, "dim {axis} of buffer {buffer} is not known"),
            RunError::Allocation { buffer, error } => write!(f, "buffer {buffer}: {error}"),
            RunError::OutOfBounds { site, buffer, axis, index, extent } => {
                let place = place(site);
                write!(f, "index {index} is out of range for dim {axis} of {buffer}, whose extent is {extent}{place}")
            }
            RunError::DivisionByZero { site } => write!(f, "integer division by zero{}", place(site)),
            RunError::Assertion { site, message } => write!(f, "assertion failed{}: {message}", place(site)),
            RunError::Stopped(Limit::Rounds) => write!(f, "stopped after the rounds allowed"),
            RunError::Stopped(Limit::Bytes) => write!(f, "stopped: its buffers need more memory than is allowed"),
            RunError::Stopped(Limit::Cancelled) => write!(f, "cancelled"),
            RunError::UnsupportedDType(dtype) => write!(f, "values of dtype {dtype} cannot be computed"),
            RunError::TooDeep => write!(f, "expressions or statements are nested too deep"),
            RunError::Malformed { func, reason } => write!(f, "{func} is malformed: {reason}"),
        }
    }
}

impl std::error::Error for RunError {}
