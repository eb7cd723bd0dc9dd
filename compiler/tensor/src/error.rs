//! Errors in creating tensors.

use rx_base::DType;

/// An error in creating, converting or comparing a tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// A dtype that tensors cannot have: vectors, elements of an unsupported width, or non-numbers.
    #[error("tensors of dtype {0} cannot be held in memory")]
    Unsupported(DType),
    /// A negative extent.
    #[error("dim {axis} has the negative extent {extent}")]
    NegativeExtent {
        /// The axis.
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
    /// Memory is not available.
    #[error("no memory for a tensor of {bytes} bytes")]
    OutOfMemory {
        /// The requested size in bytes.
        bytes: usize,
    },
    /// A number of elements or bytes that does not fit the shape.
    #[error("the shape has {wanted} of them, {given} were given")]
    Length {
        /// The number that the shape requires.
        wanted: usize,
        /// The number that was given.
        given: usize,
    },
    /// An element that the wanted dtype cannot represent.
    #[error("its element {at} is {value}, which is no value of {dtype}")]
    Unequal {
        /// The position in row-major order.
        at: usize,
        /// The element, as text.
        value: String,
        /// The wanted dtype.
        dtype: DType,
    },
    /// Tensors of different shapes that must be equal.
    #[error("the shape is {actual:?}, expected is {expected:?}")]
    ShapesDiffer {
        /// The actual shape.
        actual: Vec<i64>,
        /// The expected shape.
        expected: Vec<i64>,
    },
}
