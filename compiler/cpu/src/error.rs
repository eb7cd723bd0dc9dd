//! What can go wrong while compiling and while running.

use rx_base::{DType, Name};
use rx_tir::{BindError, Site};
use std::fmt;

/// Why a function has no machine code. Whoever runs it interprets it instead, and says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// A dtype that generated code does not compute with.
    Dtype(DType),
    /// What the emitter has no instructions for, or does not expect of a prepared function; in words.
    Unsupported(String),
    /// The code generator refused: a host without support, or an error of its own.
    Generator(String),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Dtype(dtype) => write!(f, "no code for {dtype}"),
            CompileError::Unsupported(what) => f.write_str(what),
            CompileError::Generator(what) => write!(f, "code generator: {what}"),
        }
    }
}

impl std::error::Error for CompileError {}

/// Why a run ended early, or was not begun.
#[derive(Clone, Debug, PartialEq)]
pub enum RunError {
    /// Shapes or scalars that do not fit the function.
    Bind(BindError),
    /// Another number of buffers than parameters.
    BufferCount {
        /// How many were wanted.
        wanted: usize,
        /// How many were passed.
        passed: usize,
    },
    /// A buffer of too few bytes.
    BufferSize {
        /// The parameter's name.
        buffer: Name,
        /// How many bytes its shape needs.
        wanted: usize,
        /// How many were passed.
        passed: usize,
    },
    /// A buffer that the function writes was passed for reading only.
    ReadOnly {
        /// The parameter's name.
        buffer: Name,
    },
    /// Two buffers share bytes that the function writes.
    Overlap {
        /// The parameter that is written.
        buffer: Name,
    },
    /// More memory than there is, or than can be counted.
    TooLarge {
        /// The buffer.
        buffer: Name,
    },
    /// More rounds than the caller allows.
    Rounds,
    /// An index outside its axis.
    OutOfBounds {
        /// Where.
        site: Site,
        /// The buffer's name.
        buffer: Name,
        /// Which of its axes.
        axis: u32,
        /// The index.
        index: i64,
        /// The axis's extent.
        extent: i64,
    },
    /// An integer divided by zero.
    DivisionByZero {
        /// Where.
        site: Site,
    },
    /// An assertion that does not hold.
    Assert {
        /// Where.
        site: Site,
        /// What it says.
        message: Name,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Bind(error) => error.fmt(f),
            RunError::BufferCount { wanted, passed } => write!(f, "{passed} buffers passed, {wanted} needed"),
            RunError::BufferSize { buffer, wanted, passed } => {
                write!(f, "buffer {buffer} has {passed} bytes, its shape needs {wanted}")
            }
            RunError::ReadOnly { buffer } => write!(f, "buffer {buffer} is written but was passed for reading"),
            RunError::Overlap { buffer } => write!(f, "buffer {buffer} is written and overlaps another"),
            RunError::TooLarge { buffer } => write!(f, "buffer {buffer} does not fit in memory"),
            RunError::Rounds => f.write_str("stopped after the rounds allowed"),
            RunError::OutOfBounds { site, buffer, axis, index, extent } => write!(
                f,
                "{}: index {index} is out of range for axis {axis} of {buffer}, which has extent {extent}",
                site.operator
            ),
            RunError::DivisionByZero { site } => write!(f, "{}: division by zero", site.operator),
            RunError::Assert { site, message } => write!(f, "{}: assertion failed: {message}", site.operator),
        }
    }
}

impl std::error::Error for RunError {}

impl From<BindError> for RunError {
    fn from(error: BindError) -> RunError {
        RunError::Bind(error)
    }
}
