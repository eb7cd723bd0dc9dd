//! *Matrix products, outer products and einsum.*
//!
//! ```text
//! matmul(x1: [m, k], x2: [k, n])  →  out[i, j] = Σ_k x1[i, k] * x2[k, j]
//! ```
//!
//! Guarantees: products and sums have the dtype of the result, or `float32` for narrower floats.
//! Reference: TVM python/tvm/relax/transform/legalize_ops/linear_algebra.py and include/tvm/topi/einsum.h.

use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{accumulator, reduce};
use crate::tensor::einsum::{Axis, Equation, Label};
use rx_base::{DType, Dim};
use rx_tir::func::BufferId;
use rx_tir::{BinaryOp, Expr, KernelBuilder};

/// Emits `out[axes] = Σ element(axes, reduced)`. `element` gets the accumulator's dtype.
fn sum(
    lowering: &mut Lowering<'_>,
    reduced: &[Expr],
    element: impl FnOnce(&mut KernelBuilder, &[Expr], &[Expr], DType) -> Expr,
) {
    let (out, shape) = (lowering.output(0), lowering.output_shape(0).to_vec());
    let builder = &mut lowering.builder;
    let dtype = builder.dtype(out);
    let sum_dtype = accumulator(dtype);
    let target: BufferId = if sum_dtype == dtype { out } else { builder.temporary("sum", &shape, sum_dtype) };
    let extents = builder.shape(out);
    reduce(builder, target, &extents, reduced, BinaryOp::Add, |builder, axes, reduced| {
        (axes.to_vec(), element(builder, axes, reduced, sum_dtype))
    });
    if target != out {
        builder.compute(out, |builder, axes| builder.load(target, axes).cast(dtype));
    }
}

/// Emits `out[…, m, n] = Σ x1[…, m, k] * x2[…, k, n]`. The batch axes are broadcast; a vector has no `m` or `n`.
pub(crate) fn matmul(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (left, right) = (lowering.tensor("x1")?, lowering.tensor("x2")?);
    let (rows, columns) = (usize::from(left.ndim() > 1), usize::from(right.ndim() > 1));
    let Some(inner) = left.shape.last() else { return Err(Unsupported::because("`x1` has no axis")) };
    let inner = lowering.builder.dim(inner);
    sum(lowering, &[inner], |builder, axes, inner, dtype| {
        // INVARIANT: the result has a row axis if `x1` has one and a column axis if `x2` has one.
        let (batch, matrix) = axes.split_at(axes.len() - rows - columns);
        let (row, column) = matrix.split_at(rows);
        let left = matrix_at(builder, &left, batch, [row, inner].concat());
        let right = matrix_at(builder, &right, batch, [inner, column].concat());
        left.cast(dtype) * right.cast(dtype)
    });
    Ok(())
}

/// Loads the element at `own` of the matrix or vector for batch index `batch`, which is broadcast.
fn matrix_at(builder: &KernelBuilder, operand: &Operand, batch: &[Expr], own: Vec<Expr>) -> Expr {
    let leading = operand.ndim().saturating_sub(own.len());
    let skipped = batch.len().saturating_sub(leading);
    let mut index = Vec::with_capacity(operand.ndim());
    for (axis, extent) in batch.iter().skip(skipped).zip(&operand.shape) {
        index.push(repeated(axis, extent));
    }
    index.extend(own);
    operand.at(builder, &index)
}

/// Returns the axis itself, or 0 for an extent of 1, which is broadcast.
fn repeated(axis: &Expr, extent: &Dim) -> Expr {
    if extent.as_constant() == Some(1) { Expr::int(0) } else { axis.clone() }
}

/// Emits `out[i, j] = x1[i] * x2[j]`.
pub(crate) fn outer(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (left, right) = (lowering.tensor("x1")?, lowering.tensor("x2")?);
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, axes| {
        let dtype = builder.dtype(out);
        // INVARIANT: the result has two axes.
        let [left, right] = [(&left, &axes[..1]), (&right, &axes[1..])];
        left.0.at(builder, left.1).cast(dtype) * right.0.at(builder, right.1).cast(dtype)
    });
    Ok(())
}

/// Emits `einsum`: the sum of the products of all operands over the axes that the result does not have.
pub(crate) fn einsum(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let operands = lowering.tensors("operands")?;
    let text = lowering.call.str("subscripts").ok_or_else(|| Unsupported::because("the equation is not known"))?;
    let equation = Equation::parse(text).map_err(Unsupported)?;
    let shapes: Vec<&[Dim]> = operands.iter().map(|operand| &operand.shape[..]).collect();
    let extents = equation.extents(lowering.call, &shapes)?;
    let result = extents.axes_of(&equation.output);
    if (1..result.len()).any(|at| result[..at].contains(&result[at])) {
        return Err(Unsupported::because("the result names an axis twice"));
    }
    let mut summed: Vec<Axis> = Vec::new();
    for axis in equation.inputs.iter().flat_map(|labels| extents.axes_of(labels)) {
        if !result.contains(&axis) && !summed.contains(&axis) {
            summed.push(axis);
        }
    }
    let reduced: Vec<Expr> = summed.iter().map(|axis| lowering.builder.dim(extents.dim(*axis))).collect();
    sum(lowering, &reduced, |builder, axes, reduced, dtype| {
        let place = |wanted: Axis| {
            let named = result.iter().zip(axes).chain(summed.iter().zip(reduced));
            named.into_iter().find(|(axis, _)| **axis == wanted).map_or(Expr::int(0), |(_, place)| place.clone())
        };
        let factor = |(operand, labels): (&Operand, &Vec<Label>)| {
            let axes = extents.axes_of_operand(labels, operand.ndim());
            let index: Vec<Expr> =
                axes.into_iter().zip(&operand.shape).map(|(axis, extent)| repeated(&place(axis), extent)).collect();
            operand.at(builder, &index).cast(dtype)
        };
        let factors = operands.iter().zip(&equation.inputs).map(factor);
        factors.reduce(|product, factor| product * factor).unwrap_or(Expr::number(1.0, dtype))
    });
    Ok(())
}
