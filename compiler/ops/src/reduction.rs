//! What compute definitions that sum, scan or search share: which axes are reduced, in which dtype, from which value.

use rx_base::{DType, Dim};
use rx_tir::func::BufferId;
use rx_tir::{BinaryOp, Expr, KernelBuilder};

/// The dtype in which values of `dtype` are summed: narrow floats in `float32`, the rest in themselves.
pub(crate) fn accumulator(dtype: DType) -> DType {
    if dtype.is_float() && dtype.bits < 32 { DType::FLOAT32 } else { dtype }
}

/// As [`accumulator`], for what is divided after: integers in `int64`, so that the sum before the division does not wrap.
pub(crate) fn wide_accumulator(dtype: DType) -> DType {
    if dtype.is_int() || dtype.is_bool() { DType::INT64 } else { accumulator(dtype) }
}

/// The value that changes nothing: 0 of a sum, 1 of a product, the lowest value of a maximum, and so on.
pub(crate) fn identity(op: BinaryOp, dtype: DType) -> Expr {
    match op {
        BinaryOp::Mul => Expr::number(1.0, dtype),
        BinaryOp::And => Expr::bool(true),
        BinaryOp::Max => lowest(dtype),
        BinaryOp::Min => highest(dtype),
        _ => Expr::number(0.0, dtype),
    }
}

/// The value below all others: −∞ of floats.
fn lowest(dtype: DType) -> Expr {
    if dtype.is_float() {
        return Expr::Float { value: f64::NEG_INFINITY, dtype };
    }
    let signed = dtype.code == rx_base::dtype::TypeCode::Int;
    Expr::Int { value: if signed { i64::MIN >> (64 - bits(dtype)) } else { 0 }, dtype }
}

/// The value above all others: +∞ of floats.
fn highest(dtype: DType) -> Expr {
    if dtype.is_float() {
        return Expr::Float { value: f64::INFINITY, dtype };
    }
    let signed = dtype.code == rx_base::dtype::TypeCode::Int;
    let value = match (signed, bits(dtype)) {
        (true, bits) => i64::MAX >> (64 - bits),
        // All bits set, which is how `uint64` values above `i64::MAX` are kept.
        (false, 64) => -1,
        (false, bits) => (1 << bits) - 1,
    };
    Expr::Int { value, dtype }
}

/// Bits of an integer dtype, from 1 to 64.
fn bits(dtype: DType) -> u32 {
    u32::from(dtype.bits).clamp(1, 64)
}

/// The operator that reduces booleans where `op` reduces numbers; TVM sums them with `any`.
pub(crate) fn of_dtype(op: BinaryOp, dtype: DType) -> BinaryOp {
    match op {
        BinaryOp::Add | BinaryOp::Max if dtype.is_bool() => BinaryOp::Or,
        BinaryOp::Mul | BinaryOp::Min if dtype.is_bool() => BinaryOp::And,
        op => op,
    }
}

/// The axes of a tensor, as an operator parts them: some are reduced, the others kept.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    is_reduced: Vec<bool>,
}

impl Axes {
    /// Of a tensor of `ndim` axes those of `reduced`, counted from the front.
    pub(crate) fn new(ndim: usize, reduced: &[usize]) -> Axes {
        Axes { is_reduced: (0..ndim).map(|axis| reduced.contains(&axis)).collect() }
    }

    /// The parts that stand at kept axes.
    pub(crate) fn kept<T: Clone>(&self, parts: &[T]) -> Vec<T> {
        self.select(parts, false)
    }

    /// The parts that stand at reduced axes, in the order of the axes.
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

    /// Parts for all axes: the inverse of [`Axes::kept`] and [`Axes::reduced`].
    pub(crate) fn join<T: Clone>(&self, kept: &[T], reduced: &[T]) -> Vec<T> {
        let (mut kept, mut reduced) = (kept.iter(), reduced.iter());
        let next = |is_reduced: &bool| if *is_reduced { reduced.next() } else { kept.next() };
        self.is_reduced.iter().filter_map(next).cloned().collect()
    }

    /// The index in a result of which reduced axes are left out, or stay with extent 1.
    pub(crate) fn result_index(&self, kept: &[Expr], keepdims: bool) -> Vec<Expr> {
        let zeros = vec![Expr::int(0); self.is_reduced.len()];
        if keepdims { self.join(kept, &zeros) } else { kept.to_vec() }
    }

    /// How many elements of `shape` go into one element of the result, in `dtype`.
    pub(crate) fn count(&self, builder: &mut KernelBuilder, shape: &[Dim], dtype: DType) -> Expr {
        let count = self.reduced(shape).iter().fold(Dim::constant(1), |product, dim| &product * dim);
        builder.dim(&count).cast(dtype)
    }
}

/// [`KernelBuilder::reduce`] from the operator's identity. Where a reduced extent is 0, no iteration would set the
/// result: it is filled instead.
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

/// A temporary of the kept dims of `shape` with `op` over `value(index)` in each element; `value` also gets the index of
/// the element.
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
    fn axes_part_and_join() {
        let axes = Axes::new(4, &[3, 1]);
        assert_eq!((axes.kept(&[1, 2, 3, 4]), axes.reduced(&[1, 2, 3, 4])), (vec![1, 3], vec![2, 4]));
        assert_eq!(axes.join(&[1, 3], &[2, 4]), [1, 2, 3, 4]);
        let kept = [Expr::int(7), Expr::int(8)];
        assert_eq!(axes.result_index(&kept, true), [7, 0, 8, 0].map(Expr::int));
        assert_eq!(axes.result_index(&kept, false), kept);
    }
}
