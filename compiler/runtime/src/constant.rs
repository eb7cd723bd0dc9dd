//! Constants that stand in a program's text, as tensors.

use crate::error::RunError;
use crate::interp::memory;
use rx_base::DType;
use rx_ir::Literal;
use rx_lower::Constant;
use rx_tensor::{Scalar, Tensor};

/// The tensor of a constant whose elements the text has.
///
/// # Errors
/// Of a constant of the metadata section, which whoever reads the text decodes; or where memory is lacking.
pub(crate) fn written(constant: &Constant) -> Result<Tensor, RunError> {
    match constant {
        Constant::Scalar(literal, dtype) => Tensor::from_scalar(*dtype, number(literal, *dtype)).map_err(memory),
        Constant::Elements { elements, shape, dtype } => {
            let mut tensor = Tensor::zeros(*dtype, shape).map_err(memory)?;
            for (at, element) in elements.iter().enumerate() {
                tensor.set(at, number(element, *dtype));
            }
            Ok(tensor)
        }
        Constant::Metadata { key, index } => {
            Err(RunError::other(format!("the constant metadata[\"{key}\"][{index}] was not given")))
        }
    }
}

fn number(literal: &Literal, dtype: DType) -> Scalar {
    match literal {
        Literal::Int(value) if dtype.is_float() => Scalar::Float(*value as f64),
        Literal::Int(value) => Scalar::Int(*value),
        Literal::Float(value) => Scalar::Float(*value),
        Literal::Bool(value) if dtype.is_float() => Scalar::Float(f64::from(u8::from(*value))),
        Literal::Bool(value) => Scalar::Int(i64::from(*value)),
    }
}
