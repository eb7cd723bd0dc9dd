//! Why a tensor cannot be made.

use rx_base::DType;
use std::fmt;

/// Why a tensor cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// A dtype of vectors, of elements that rx does not read, or of no numbers.
    Unsupported(DType),
    /// An extent below 0.
    NegativeExtent {
        /// Which dim.
        axis: usize,
        /// The extent.
        extent: i64,
    },
    /// More bytes than a machine can address.
    TooLarge {
        /// The shape.
        shape: Vec<i64>,
        /// The dtype.
        dtype: DType,
    },
    /// The memory is not there.
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
    /// A number of elements or bytes that is not the shape's.
    Length {
        /// How many the shape has.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
    /// An element that another dtype does not have.
    Unequal {
        /// Its place in the row-major order.
        at: usize,
        /// The element, as text.
        value: String,
        /// The dtype.
        dtype: DType,
    },
    /// Tensors of two shapes where one is needed.
    ShapesDiffer {
        /// The shape that is there.
        actual: Vec<i64>,
        /// The one expected.
        expected: Vec<i64>,
    },
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorError::Unsupported(dtype) => write!(f, "tensors of dtype {dtype} cannot be held in memory"),
            TensorError::NegativeExtent { axis, extent } => write!(f, "dim {axis} has the negative extent {extent}"),
            TensorError::TooLarge { shape, dtype } => write!(f, "a {dtype} tensor of shape {shape:?} is too large"),
            TensorError::OutOfMemory { bytes } => write!(f, "no memory for a tensor of {bytes} bytes"),
            TensorError::Length { wanted, given } => write!(f, "the shape has {wanted} of them, {given} were given"),
            TensorError::Unequal { at, value, dtype } => {
                write!(f, "its element {at} is {value}, which is no value of {dtype}")
            }
            TensorError::ShapesDiffer { actual, expected } => {
                write!(f, "the shape is {actual:?}, expected is {expected:?}")
            }
        }
    }
}

impl std::error::Error for TensorError {}
