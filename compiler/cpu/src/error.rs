//! Errors of compilation and of running compiled code.

use rx_base::{DType, Name};
use rx_tir::{BindError, Site};

/// The reason why a function cannot be compiled. `rx-runtime` interprets the function instead and reports the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A dtype that generated code does not compute with.
    #[error("no code for {0}")]
    Dtype(DType),
    /// A construct that the emitter does not support, or that must not occur in a prepared function; in words. Also the
    /// error of [`CpuModule::kernel`](crate::CpuModule::kernel) for a position without a function.
    #[error("{0}")]
    Unsupported(String),
    /// A failure of the code generator, for example on an unsupported host.
    #[error("code generator: {0}")]
    Generator(String),
}

/// The reason why a run failed or could not start.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// Shapes or scalars that cannot be bound to the parameters, for example of another rank.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// The number of buffers or of shapes differs from the number of buffer parameters.
    #[error("{passed} buffers passed, {wanted} needed")]
    BufferCount {
        /// The expected number.
        wanted: usize,
        /// The given number of buffers or of shapes, whichever is smaller.
        passed: usize,
    },
    /// A buffer with too few bytes.
    #[error("buffer {buffer} has {passed} bytes, its shape needs {wanted}")]
    BufferSize {
        /// The parameter's name.
        buffer: Name,
        /// The size of its shape in bytes.
        wanted: usize,
        /// The given size in bytes.
        passed: usize,
    },
    /// A buffer that the function may write was passed for reading only.
    #[error("buffer {buffer} is written but was passed for reading")]
    ReadOnly {
        /// The parameter's name.
        buffer: Name,
    },
    /// Buffers that do not fit in memory: the size of one cannot be computed (it overflows, for example), or the
    /// temporaries together exceed the available memory or the caller's limit.
    #[error("buffer {buffer} does not fit in memory")]
    TooLarge {
        /// The name of the buffer or, if the temporaries together are too large, of the function.
        buffer: Name,
    },
    /// The loops exceed the caller's limit on iterations.
    #[error("stopped: it needs more iterations of loops than is allowed")]
    Iterations,
    /// An index outside its axis.
    #[error("{}: index {index} is out of range for axis {axis} of {buffer}, which has extent {extent}", .site.operator)]
    OutOfBounds {
        /// The position and operator that the error names.
        site: Site,
        /// The buffer's name.
        buffer: Name,
        /// The axis, 0-based.
        axis: u32,
        /// The index.
        index: i64,
        /// The axis's extent.
        extent: i64,
    },
    /// An integer divided by zero, or an integer zero to a negative power.
    #[error("{}: division by zero", .site.operator)]
    DivisionByZero {
        /// The position and operator that the error names.
        site: Site,
    },
    /// An assertion that does not hold.
    #[error("{}: assertion failed: {message}", .site.operator)]
    Assert {
        /// The statement that was executed.
        site: Site,
        /// The assertion's message.
        message: Name,
    },
}
