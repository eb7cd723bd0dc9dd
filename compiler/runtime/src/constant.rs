//! Constants that stand in a program's text, as tensors.

use crate::error::RunError;
use crate::memory::tensor_error;
use rx_ir::Literal;
use rx_lower::Constant;
use rx_tensor::{Scalar, Tensor};

/// The tensor of a constant whose elements the text has.
///
/// # Errors
/// Of a constant of the metadata section, which whoever reads the text decodes; or where memory is lacking.
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

/// The tensor's dtype makes an integer a float, and a float an integer.
fn number(literal: &Literal) -> Scalar {
    literal.as_integer().map_or_else(|| Scalar::Float(literal.as_float()), Scalar::Int)
}
