//! Conversions between constant expressions and tensors.

use rx_base::DType;
use rx_ir::{ConstantData, Constants, Expr, ExprKind, Literal};
use rx_tensor::{Scalar, Tensor, TensorError};

/// Whether an expression is a constant whose elements are known: a literal or a list of elements, of known dtype, or an
/// entry of `constants` with data.
pub fn is_known(expr: &Expr, constants: &Constants) -> bool {
    match &expr.kind {
        ExprKind::Constant(_) | ExprKind::Elements(_) => {
            expr.ty.as_tensor().is_some_and(|tensor| tensor.dtype.is_some())
        }
        ExprKind::Metadata { key, index } => constants.get(*key, *index).is_some(),
        _ => false,
    }
}

/// Returns the value of a constant expression as a tensor. Returns `None` if the expression is not a constant, if its
/// dtype, extents or data are unknown, if it is a single literal of a type of rank 1 or more, or if the tensor cannot
/// be created, for example because its dtype is not supported.
pub fn tensor(expr: &Expr, constants: &Constants) -> Option<Tensor> {
    let ty = expr.ty.as_tensor();
    match &expr.kind {
        ExprKind::Constant(literal) => {
            let dtype = ty?.dtype?;
            // A single literal can also have a type of higher rank, for example in `R.dist.const`. It is not converted
            // here.
            ty?.shape.dims()?.is_empty().then_some(())?;
            of_literal(literal, dtype).ok()
        }
        ExprKind::Elements(elements) => {
            let extents: Option<Vec<i64>> = ty?.shape.dims()?.iter().map(|dim| dim.as_constant()).collect();
            of_elements(elements, &extents?, ty?.dtype?).ok()
        }
        ExprKind::Metadata { key, index } => {
            let data = constants.get(*key, *index)?;
            Tensor::from_bytes(data.dtype, &data.shape, &data.bytes).ok()
        }
        _ => None,
    }
}

/// Converts a scalar literal to a tensor of rank 0.
///
/// # Errors
/// [`TensorError::Unsupported`].
pub fn of_literal(literal: &Literal, dtype: DType) -> Result<Tensor, TensorError> {
    Tensor::from_scalar(dtype, number(literal))
}

/// Builds a tensor from its elements in row-major order.
///
/// # Errors
/// Those of [`Tensor::zeros`].
pub fn of_elements(elements: &[Literal], shape: &[i64], dtype: DType) -> Result<Tensor, TensorError> {
    let mut tensor = Tensor::zeros(dtype, shape)?;
    for (at, element) in elements.iter().enumerate() {
        tensor.set(at, number(element));
    }
    Ok(tensor)
}

/// Returns a literal as a number. The tensor that stores it converts an integer to a float, or a float to an integer,
/// as its dtype requires.
fn number(literal: &Literal) -> Scalar {
    literal.as_integer().map_or_else(|| Scalar::Float(literal.as_float()), Scalar::Int)
}

/// Returns a constant expression for a tensor: a literal if it is a scalar that a literal represents exactly, otherwise
/// a new entry of `constants`.
pub fn expression(tensor: &Tensor, constants: &mut Constants) -> Expr {
    let data = ConstantData { shape: tensor.shape().to_vec(), dtype: tensor.dtype(), bytes: tensor.bytes().into() };
    let ty = data.ty();
    match scalar(tensor) {
        Some(literal) => Expr::new(ExprKind::Constant(literal), ty),
        None => constants.add(data),
    }
}

/// Converts a tensor of rank 0 to a literal that reads back as the same bits; `None` for another rank, or if no literal
/// does. A NaN with other bits than `float("nan")` has no literal.
fn scalar(tensor: &Tensor) -> Option<Literal> {
    if !tensor.shape().is_empty() {
        return None;
    }
    let literal = literals(tensor)?.pop()?;
    if matches!(literal, Literal::Float(value) if value.is_nan() && value.to_bits() != f64::NAN.to_bits()) {
        return None;
    }
    let again = of_literal(&literal, tensor.dtype()).ok()?;
    (again.bytes() == tensor.bytes()).then_some(literal)
}

/// Returns the elements as literals, in row-major order; `None` if one is a `uint64` above `i64::MAX`, which has no
/// literal.
pub fn literals(tensor: &Tensor) -> Option<Vec<Literal>> {
    let one = |at| match (tensor.get(at)?, tensor.dtype()) {
        (Scalar::Int(value), DType::BOOL) => Some(Literal::Bool(value != 0)),
        // In a `Scalar`, a `uint64` above `i64::MAX` is a negative `i64`, and would be printed as that.
        (Scalar::Int(value), DType::UINT64) if value < 0 => None,
        (Scalar::Int(value), _) => Some(Literal::Int(value)),
        (Scalar::Float(value), _) => Some(Literal::Float(value)),
    };
    (0..tensor.len()).map(one).collect()
}
