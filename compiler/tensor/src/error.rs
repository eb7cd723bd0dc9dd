//! Why a tensor cannot be made.

use rx_base::DType;

/// Why a tensor cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// A dtype of vectors, of elements that rx does not read, or of no numbers.
    #[error("tensors of dtype {0} cannot be held in memory")]
    Unsupported(DType),
    /// An extent below 0.
    #[error("dim {axis} has the negative extent {extent}")]
    NegativeExtent {
        /// Which dim.
        axis: usize,
        /// The extent.
        extent: i64,
    },
    /// More bytes than a machine can address.
    #[error("a {dtype} tensor of shape {shape:?} is too large")]
    TooLarge {
        /// The shape.
        shape: Vec<i64>,
        /// The dtype.
        dtype: DType,
    },
    /// The memory is not there.
    #[error("no memory for a tensor of {bytes} bytes")]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
    /// A number of elements or bytes that is not the shape's.
    #[error("the shape has {wanted} of them, {given} were given")]
    Length {
        /// How many the shape has.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
    /// An element that another dtype does not have.
    #[error("its element {at} is {value}, which is no value of {dtype}")]
    Unequal {
        /// Its place in the row-major order.
        at: usize,
        /// The element, as text.
        value: String,
        /// The dtype.
        dtype: DType,
    },
    /// Tensors of two shapes where one is needed.
    #[error("the shape is {actual:?}, expected is {expected:?}")]
    ShapesDiffer {
        /// The shape that is there.
        actual: Vec<i64>,
        /// The one expected.
        expected: Vec<i64>,
    },
}
