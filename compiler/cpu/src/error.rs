//! What can go wrong while compiling and while running.

use rx_base::{DType, Name};
use rx_tir::{BindError, Site};

/// Why a function has no machine code. Whoever runs it interprets it instead, and says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A dtype that generated code does not compute with.
    #[error("no code for {0}")]
    Dtype(DType),
    /// What the emitter has no instructions for, or does not expect of a prepared function; in words.
    #[error("{0}")]
    Unsupported(String),
    /// The code generator refused: a host without support, or an error of its own.
    #[error("code generator: {0}")]
    Generator(String),
}

/// Why a run ended early, or was not begun.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// Shapes or scalars that do not fit the function.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// Another number of buffers than parameters.
    #[error("{passed} buffers passed, {wanted} needed")]
    BufferCount {
        /// How many were wanted.
        wanted: usize,
        /// How many were passed.
        passed: usize,
    },
    /// A buffer of too few bytes.
    #[error("buffer {buffer} has {passed} bytes, its shape needs {wanted}")]
    BufferSize {
        /// The parameter's name.
        buffer: Name,
        /// How many bytes its shape needs.
        wanted: usize,
        /// How many were passed.
        passed: usize,
    },
    /// A buffer that the function writes was passed for reading only.
    #[error("buffer {buffer} is written but was passed for reading")]
    ReadOnly {
        /// The parameter's name.
        buffer: Name,
    },
    /// Two buffers share bytes that the function writes.
    #[error("buffer {buffer} is written and overlaps another")]
    Overlap {
        /// The parameter that is written.
        buffer: Name,
    },
    /// More memory than there is, or than can be counted.
    #[error("buffer {buffer} does not fit in memory")]
    TooLarge {
        /// The buffer.
        buffer: Name,
    },
    /// More rounds than the caller allows.
    #[error("stopped after the rounds allowed")]
    Rounds,
    /// An index outside its axis.
    #[error("{}: index {index} is out of range for axis {axis} of {buffer}, which has extent {extent}", .site.operator)]
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
    #[error("{}: division by zero", .site.operator)]
    DivisionByZero {
        /// Where.
        site: Site,
    },
    /// An assertion that does not hold.
    #[error("{}: assertion failed: {message}", .site.operator)]
    Assert {
        /// Where.
        site: Site,
        /// What it says.
        message: Name,
    },
}
