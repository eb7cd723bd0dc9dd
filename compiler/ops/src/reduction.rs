//! Helpers of compute definitions that reduce, scan or search: reduced axes, accumulator dtypes, identity elements.

use rx_base::{DType, Dim};
use rx_tir::func::BufferId;
use rx_tir::{BinaryOp, Expr, KernelBuilder};

/// Returns the dtype for sums of `dtype`: `float32` for narrower floats, otherwise `dtype`.
pub(crate) fn accumulator(dtype: DType) -> DType {
    if dtype.is_float() && dtype.bits < 32 { DType::FLOAT32 } else { dtype }
}

/// Returns the dtype for sums that are divided afterwards: `int64` for integers, so that the sum does not wrap around;
/// otherwise like [`accumulator`].
pub(crate) fn wide_accumulator(dtype: DType) -> DType {
    if dtype.is_int() || dtype.is_bool() { DType::INT64 } else { accumulator(dtype) }
}

/// Returns the identity element of an operation: 0 for a sum, 1 for a product, the minimum of the dtype for a maximum,
/// and so on.
pub(crate) fn identity(op: BinaryOp, dtype: DType) -> Expr {
    match op {
        BinaryOp::Mul => Expr::number(1.0, dtype),
        BinaryOp::And => Expr::bool(true),
        BinaryOp::Max => lowest(dtype),
        BinaryOp::Min => highest(dtype),
        _ => Expr::number(0.0, dtype),
    }
}

/// Returns the minimum of a dtype: −∞ for floats.
fn lowest(dtype: DType) -> Expr {
    if dtype.is_float() {
        return Expr::Float { value: f64::NEG_INFINITY, dtype };
    }
    let signed = dtype.code == rx_base::dtype::TypeCode::Int;
    Expr::Int { value: if signed { i64::MIN >> (64 - bits(dtype)) } else { 0 }, dtype }
}

/// Returns the maximum of a dtype: +∞ for floats.
fn highest(dtype: DType) -> Expr {
    if dtype.is_float() {
        return Expr::Float { value: f64::INFINITY, dtype };
    }
    let signed = dtype.code == rx_base::dtype::TypeCode::Int;
    let value = match (signed, bits(dtype)) {
        (true, bits) => i64::MAX >> (64 - bits),
        // The constant has all bits set, which is the representation of `uint64` values above `i64::MAX`.
        (false, 64) => -1,
        (false, bits) => (1 << bits) - 1,
    };
    Expr::Int { value, dtype }
}

/// Returns the number of bits of an integer dtype, from 1 to 64.
fn bits(dtype: DType) -> u32 {
    u32::from(dtype.bits).clamp(1, 64)
}

/// Returns the operation for booleans that corresponds to `op`: TVM sums booleans with `any`.
pub(crate) fn of_dtype(op: BinaryOp, dtype: DType) -> BinaryOp {
    match op {
        BinaryOp::Add | BinaryOp::Max if dtype.is_bool() => BinaryOp::Or,
        BinaryOp::Mul | BinaryOp::Min if dtype.is_bool() => BinaryOp::And,
        op => op,
    }
}

/// The axes of a tensor, divided into reduced and kept axes.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    is_reduced: Vec<bool>,
}

impl Axes {
    /// Creates the division of `ndim` axes in which those in `reduced` (non-negative) are reduced.
    pub(crate) fn new(ndim: usize, reduced: &[usize]) -> Axes {
        Axes { is_reduced: (0..ndim).map(|axis| reduced.contains(&axis)).collect() }
    }

    /// Returns the entries of `parts` at kept axes.
    pub(crate) fn kept<T: Clone>(&self, parts: &[T]) -> Vec<T> {
        self.select(parts, false)
    }

    /// Returns the entries of `parts` at reduced axes, in the order of the axes.
    pub(crate) fn reduced<T: Clone>(&self, parts: &[T]) -> Vec<T> {
        self.select(parts, true)
    }

    fn select<T: Clone>(&self, parts: &[T], wanted: bool) -> Vec<T> {
        parts
            .iter()
            .zip(&self.is_reduced)
            .filter(|(_, reduced)| **reduced == wanted)
            .map(|(part, _)| part.clone())
            .collect()
    }

    /// Merges entries for kept and for reduced axes: the inverse of [`Axes::kept`] and [`Axes::reduced`].
    pub(crate) fn join<T: Clone>(&self, kept: &[T], reduced: &[T]) -> Vec<T> {
        let (mut kept, mut reduced) = (kept.iter(), reduced.iter());
        let next = |is_reduced: &bool| if *is_reduced { reduced.next() } else { kept.next() };
        self.is_reduced.iter().filter_map(next).cloned().collect()
    }

    /// Returns the index in the result, in which reduced axes are removed, or have extent 1 for `keepdims`.
    pub(crate) fn result_index(&self, kept: &[Expr], keepdims: bool) -> Vec<Expr> {
        let zeros = vec![Expr::int(0); self.is_reduced.len()];
        if keepdims { self.join(kept, &zeros) } else { kept.to_vec() }
    }

    /// Returns the number of elements of `shape` that are reduced to one element, in `dtype`.
    pub(crate) fn count(&self, builder: &mut KernelBuilder, shape: &[Dim], dtype: DType) -> Expr {
        let count = self.reduced(shape).iter().fold(Dim::constant(1), |product, dim| &product * dim);
        builder.dim(&count).cast(dtype)
    }
}

/// Emits [`KernelBuilder::reduce`] with the operation's identity element. If a reduced extent may be 0, no iteration
/// would initialize the result, so it is filled instead.
pub(crate) fn reduce(
    builder: &mut KernelBuilder,
    buffer: BufferId,
    extents: &[Expr],
    reduced: &[Expr],
    op: BinaryOp,
    element: impl FnOnce(&mut KernelBuilder, &[Expr], &[Expr]) -> (Vec<Expr>, Expr),
) {
    let initial = identity(op, builder.dtype(buffer));
    if reduced.iter().any(|extent| extent.as_int() == Some(0)) {
        let zeros = vec![Expr::int(0); reduced.len()];
        builder.map(buffer, extents, |builder, axes| (element(builder, axes, &zeros).0, initial));
    } else {
        builder.reduce(buffer, extents, reduced, initial, op, element);
    }
}

/// Emits a temporary with the kept dims of `shape`, reduced by `op` over `value(index)`. The function `value` also gets
/// the index of the temporary's element.
pub(crate) fn reduce_rows(
    builder: &mut KernelBuilder,
    name: &str,
    (shape, axes): (&[Dim], &Axes),
    (op, dtype): (BinaryOp, DType),
    value: impl FnOnce(&mut KernelBuilder, &[Expr], &[Expr]) -> Expr,
) -> BufferId {
    let rows = builder.temporary(name, &axes.kept(shape), dtype);
    let extents: Vec<Expr> = shape.iter().map(|dim| builder.dim(dim)).collect();
    reduce(builder, rows, &axes.kept(&extents), &axes.reduced(&extents), op, |builder, kept, reduced| {
        (kept.to_vec(), value(builder, &axes.join(kept, reduced), kept))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_the_ends_of_their_dtypes() {
        let ends = |dtype| (identity(BinaryOp::Max, dtype).as_int(), identity(BinaryOp::Min, dtype).as_int());
        assert_eq!(ends(DType::INT8), (Some(-128), Some(127)));
        assert_eq!(ends(DType::UINT16), (Some(0), Some(65535)));
        assert_eq!(ends(DType::INT64), (Some(i64::MIN), Some(i64::MAX)));
        assert_eq!(ends(DType::UINT64), (Some(0), Some(-1)));
    }

    #[test]
    fn axes_are_separated_and_joined() {
        let axes = Axes::new(4, &[3, 1]);
        assert_eq!((axes.kept(&[1, 2, 3, 4]), axes.reduced(&[1, 2, 3, 4])), (vec![1, 3], vec![2, 4]));
        assert_eq!(axes.join(&[1, 3], &[2, 4]), [1, 2, 3, 4]);
        let kept = [Expr::int(7), Expr::int(8)];
        assert_eq!(axes.result_index(&kept, true), [7, 0, 8, 0].map(Expr::int));
        assert_eq!(axes.result_index(&kept, false), kept);
    }
}
