//! Conversion of constants that are written in a program's text to tensors.

use crate::error::RunError;
use crate::memory::tensor_error;
use rx_ir::Literal;
use rx_lower::Constant;
use rx_tensor::{Scalar, Tensor};

/// Creates the tensor of a constant whose elements are in the program's text.
///
/// # Errors
/// For example, if the constant is in the metadata section, which the reader of the text must decode and pass to the
/// executor, or if memory is exhausted.
pub(crate) fn written(constant: &Constant) -> Result<Tensor, RunError> {
    match constant {
        Constant::Scalar(literal, dtype) => Tensor::from_scalar(*dtype, number(literal)).map_err(tensor_error),
        Constant::Elements { elements, shape, dtype } => {
            let mut tensor = Tensor::zeros(*dtype, shape).map_err(tensor_error)?;
            for (at, element) in elements.iter().enumerate() {
                tensor.set(at, number(element));
            }
            Ok(tensor)
        }
        Constant::Metadata { key, index } => {
            Err(RunError::other(format!("the constant metadata[\"{key}\"][{index}] was not given")))
        }
    }
}

/// Converts a literal to a scalar. [`Tensor::set`] and [`Tensor::from_scalar`] convert it to the tensor's dtype.
fn number(literal: &Literal) -> Scalar {
    literal.as_integer().map_or_else(|| Scalar::Float(literal.as_float()), Scalar::Int)
}
