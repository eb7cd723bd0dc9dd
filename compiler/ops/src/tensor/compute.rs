//! Compute definitions of the tensor operators, one file per family, and the helpers that they share. The tables of the
//! families refer to the definitions.

pub(crate) mod binary;
pub(crate) mod create;
pub(crate) mod elementwise;
pub(crate) mod join;
pub(crate) mod layout;
pub(crate) mod manipulate;
pub(crate) mod pick;
pub(crate) mod products;
pub(crate) mod quantize;
pub(crate) mod sample;
pub(crate) mod scatter;
pub(crate) mod slice;
pub(crate) mod sort;
pub(crate) mod statistical;

use crate::arguments::{self, Scalar};
use crate::axes::normalize_axis;
use crate::compute::{Lowering, Operand, Unsupported};
use rx_base::dtype::TypeCode;
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, CompareOp, Expr, KernelBuilder};

/// Returns the axis that an attribute names, as a non-negative number.
///
/// # Errors
/// Fails if the axis is out of range, which the struct-info rule has excluded.
pub(crate) fn axis(lowering: &Lowering<'_>, name: &'static str, ndim: usize, axis: i64) -> Result<usize, Unsupported> {
    normalize_axis(lowering.call, name, ndim, axis)
        .map_err(|_| Unsupported::because(format!("`{name}` {axis} is out of range")))
}

/// Returns `a or b`, folded if one is constant.
pub(crate) fn either(a: Expr, b: Expr) -> Expr {
    match (a.as_int(), b.as_int()) {
        (Some(0), _) => b,
        (_, Some(0)) => a,
        (Some(_), _) | (_, Some(_)) => Expr::bool(true),
        _ => Expr::Binary { op: BinaryOp::Or, left: Box::new(a), right: Box::new(b) },
    }
}

/// Returns `a > b`.
pub(crate) fn greater(a: Expr, b: Expr) -> Expr {
    Expr::compare(CompareOp::Gt, a, b)
}

/// Returns `a <= b`.
pub(crate) fn at_most(a: Expr, b: Expr) -> Expr {
    Expr::compare(CompareOp::Le, a, b)
}

/// Returns whether a value is NaN; false for dtypes that are not floats.
pub(crate) fn is_nan(value: Expr) -> Expr {
    match value.dtype().is_float() {
        true => Expr::compare(CompareOp::Ne, value.clone(), value),
        false => Expr::bool(false),
    }
}

/// Converts an element of an index tensor to `int64`, the dtype of indices.
pub(crate) fn index(value: Expr) -> Expr {
    value.cast(DType::INT64)
}

/// Returns an index that counts from the front: a negative index counts from the end of the axis, so `extent` is added.
pub(crate) fn from_front(index: Expr, dtype: DType, extent: Expr) -> Expr {
    match dtype.code {
        TypeCode::UInt => index,
        _ => Expr::select(index.clone().lt(Expr::int(0)), index.clone() + extent, index),
    }
}

/// Returns the dtype in which operands of two dtypes are compared or combined: the wider kind (`bool` < integers <
/// floats) with the larger number of bits. Integers of different signedness use a signed type that holds both, or
/// `float64` if there is none. For example, `uint8` and `int8` give `int16`.
pub(crate) fn common_dtype(a: DType, b: DType) -> DType {
    let signed = |bits: u8| DType { code: TypeCode::Int, bits, lanes: 1 };
    match (a, b) {
        _ if a == b || b.is_bool() => a,
        _ if a.is_bool() => b,
        _ if a.is_float() && b.is_float() => match a.bits.cmp(&b.bits) {
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Equal => DType::FLOAT32,
        },
        _ if a.is_float() => a,
        _ if b.is_float() => b,
        _ if a.code == b.code => {
            if a.bits >= b.bits {
                a
            } else {
                b
            }
        }
        _ => {
            let (unsigned, other) = if a.code == TypeCode::UInt { (a, b) } else { (b, a) };
            match unsigned.bits {
                bits if bits < other.bits => other,
                bits @ ..=32 => signed(bits * 2),
                _ => DType::FLOAT64,
            }
        }
    }
}

/// Returns the scalar passed for `name`, an operand or a default: integers as `int64`, floats as `float64`, not
/// rounded. Returns `None` if nothing is passed.
///
/// # Errors
/// Fails if the value is computed at run time.
pub(crate) fn number(lowering: &mut Lowering<'_>, name: &'static str) -> Result<Option<Expr>, Unsupported> {
    let unknown = || Unsupported::because(format!("the value of `{name}` is not known"));
    match arguments::scalar(lowering.call, name).map_err(|_| unknown())? {
        None => Ok(None),
        Some(Scalar::Int(dim)) if dim.is_error() => Err(unknown()),
        Some(Scalar::Int(dim)) => Ok(Some(lowering.builder.dim(&dim))),
        Some(Scalar::Float(value)) => Ok(Some(Expr::Float { value, dtype: DType::FLOAT64 })),
        Some(Scalar::Unknown(_)) => Err(unknown()),
    }
}

/// Returns the scalar passed for `name`, which is required.
///
/// # Errors
/// Fails like [`number`], and if nothing is passed.
pub(crate) fn needed_number(lowering: &mut Lowering<'_>, name: &'static str) -> Result<Expr, Unsupported> {
    number(lowering, name)?.ok_or_else(|| Unsupported::because(format!("nothing is passed for `{name}`")))
}

/// Returns the truth of a value: a `bool` itself, or whether a number is not 0.
pub(crate) fn truth(value: Expr) -> Expr {
    match value.as_int() {
        Some(value) => Expr::bool(value != 0),
        None => value.cast(DType::BOOL),
    }
}

/// Converts a number to another dtype, folding constants.
pub(crate) fn number_as(value: Expr, dtype: DType) -> Expr {
    match value {
        Expr::Float { value, dtype: DType::FLOAT64 } => Expr::number(value, dtype),
        Expr::Float { value, dtype: DType::FLOAT32 } => Expr::number(f64::from(value as f32), dtype),
        Expr::Int { value, dtype: from } if dtype.is_bool() && from.is_int() => Expr::bool(value != 0),
        value => value.cast(dtype),
    }
}

/// Returns the dims of the tensor passed for `name`, without making the tensor an input of the function.
///
/// # Errors
/// Fails if they are unknown.
pub(crate) fn dims_of(lowering: &Lowering<'_>, name: &'static str) -> Result<Vec<Dim>, Unsupported> {
    let dims = lowering.call.ty(name).as_tensor().and_then(|tensor| tensor.shape.dims());
    dims.filter(|dims| dims.iter().all(|dim| !dim.is_error()))
        .map(<[Dim]>::to_vec)
        .ok_or_else(|| Unsupported::because(format!("the shape of `{name}` is not known")))
}

/// Returns the indices of the element at row-major position `linear` of a tensor with these extents (delinearizes).
pub(crate) fn unravel(linear: Expr, extents: &[Expr]) -> Vec<Expr> {
    let mut rest = linear;
    let mut indices = Vec::with_capacity(extents.len());
    for (axis, extent) in extents.iter().enumerate().rev() {
        // The first index needs no modulo, since the position is in range.
        let index = if axis == 0 { rest.clone() } else { rest.clone().floor_mod(extent.clone()) };
        rest = rest.floor_div(extent.clone());
        indices.push(index);
    }
    indices.reverse();
    indices
}

/// Returns the row-major position of the element at `indices` of a tensor with these extents (linearizes).
pub(crate) fn ravel(indices: &[Expr], extents: &[Expr]) -> Expr {
    let inner = |sum: Expr, (index, extent): (&Expr, &Expr)| sum * extent.clone() + index.clone();
    indices.iter().zip(extents).fold(Expr::int(0), inner)
}

/// Returns `indices` with the one at `axis` replaced.
pub(crate) fn with_axis(indices: &[Expr], axis: usize, value: Expr) -> Vec<Expr> {
    let mut indices = indices.to_vec();
    if let Some(index) = indices.get_mut(axis) {
        *index = value;
    }
    indices
}

/// Copies `data` to output 0, before a scatter overwrites parts of it.
pub(crate) fn copy_to_output(lowering: &mut Lowering<'_>, data: &Operand) {
    lowering.compute(|builder, axes| data.at(builder, axes));
}

/// Returns the extents of dims as expressions of `builder`.
pub(crate) fn extents(builder: &mut KernelBuilder, dims: &[Dim]) -> Vec<Expr> {
    dims.iter().map(|dim| builder.dim(dim)).collect()
}
