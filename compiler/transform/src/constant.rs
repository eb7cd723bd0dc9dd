//! Constants as tensors, and tensors as constants.

use rx_base::DType;
use rx_ir::{ConstantData, Constants, Expr, ExprKind, Literal};
use rx_tensor::{Scalar, Tensor, TensorError};

/// Whether an expression is a constant whose elements are known: a scalar, a list of elements, an entry of `constants`.
pub fn is_known(expr: &Expr, constants: &Constants) -> bool {
    match &expr.kind {
        ExprKind::Constant(_) | ExprKind::Elements(_) => {
            expr.ty.as_tensor().is_some_and(|tensor| tensor.dtype.is_some())
        }
        ExprKind::Metadata { key, index } => constants.get(*key, *index).is_some(),
        _ => false,
    }
}

/// The tensor that a constant is; `None` of what is no constant, whose elements are not known, or that no memory holds.
pub fn tensor(expr: &Expr, constants: &Constants) -> Option<Tensor> {
    let ty = expr.ty.as_tensor();
    match &expr.kind {
        ExprKind::Constant(literal) => {
            let dtype = ty?.dtype?;
            // A literal stands for every element of a type that has some.
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

/// A scalar constant's tensor, of rank 0.
///
/// # Errors
/// [`TensorError::Unsupported`].
pub fn of_literal(literal: &Literal, dtype: DType) -> Result<Tensor, TensorError> {
    Tensor::from_scalar(dtype, number(literal))
}

/// The tensor of row-major elements.
///
/// # Errors
/// As [`Tensor::zeros`].
pub fn of_elements(elements: &[Literal], shape: &[i64], dtype: DType) -> Result<Tensor, TensorError> {
    let mut tensor = Tensor::zeros(dtype, shape)?;
    for (at, element) in elements.iter().enumerate() {
        tensor.set(at, number(element));
    }
    Ok(tensor)
}

/// The tensor's dtype makes an integer a float, and a float an integer.
fn number(literal: &Literal) -> Scalar {
    literal.as_integer().map_or_else(|| Scalar::Float(literal.as_float()), Scalar::Int)
}

/// The expression that is a tensor: a scalar as a literal, another as a new entry of `constants`.
pub fn expression(tensor: &Tensor, constants: &mut Constants) -> Expr {
    let data = ConstantData { shape: tensor.shape().to_vec(), dtype: tensor.dtype(), bytes: tensor.bytes().into() };
    let ty = data.ty();
    match scalar(tensor) {
        Some(literal) => Expr::new(ExprKind::Constant(literal), ty),
        None => constants.add(data),
    }
}

/// A tensor of rank 0 as a literal that reads back as the same bits.
fn scalar(tensor: &Tensor) -> Option<Literal> {
    if !tensor.shape().is_empty() {
        return None;
    }
    let literal = literals(tensor)?.pop()?;
    let again = of_literal(&literal, tensor.dtype()).ok()?;
    (again.bytes() == tensor.bytes()).then_some(literal)
}

/// The elements, row-major; `None` where one is no literal.
pub fn literals(tensor: &Tensor) -> Option<Vec<Literal>> {
    let one = |at| match (tensor.get(at)?, tensor.dtype()) {
        (Scalar::Int(value), DType::BOOL) => Some(Literal::Bool(value != 0)),
        // Beyond `i64` the same bits mean another number.
        (Scalar::Int(value), DType::UINT64) if value < 0 => None,
        (Scalar::Int(value), _) => Some(Literal::Int(value)),
        (Scalar::Float(value), _) => Some(Literal::Float(value)),
    };
    (0..tensor.len()).map(one).collect()
}
