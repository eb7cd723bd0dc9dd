//! *Constant, range and triangle tensors*: `full`, `zeros`, `ones`, `eye`, `tril`, `triu`, `arange`, `hamming_window`,
//! and tensors of dims.
//!
//! ```text
//! arange(start, end, step)  →  for i in range(count): out[i] = start + step * i
//! tril(x, k)                →  for i, j in grid(n, m): out[i, j] = x[i, j] if j <= i + k else 0
//! ```
//!
//! Reference: TVM include/tvm/topi/elemwise.h (`full`) and transform.h (`arange`, `trilu`).

use super::{dims_of, needed_number, number, number_as, truth};
use crate::arguments;
use crate::compute::{Lowering, Unsupported};
use rx_base::DType;
use rx_tir::{Expr, Intrinsic};
use std::f64::consts::PI;

/// Emits `full` and `full_like`.
pub(crate) fn full(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let value = lowering.tensor("fill_value")?;
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, _| {
        let dtype = builder.dtype(out);
        let value = value.at(builder, &[]);
        if dtype.is_bool() { truth(value) } else { number_as(value, dtype) }
    });
    Ok(())
}

/// Emits `zeros` and `zeros_like`.
pub(crate) fn zeros(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    fill(lowering, 0.0)
}

/// Emits `ones` and `ones_like`.
pub(crate) fn ones(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    fill(lowering, 1.0)
}

fn fill(lowering: &mut Lowering<'_>, value: f64) -> Result<(), Unsupported> {
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, _| Expr::number(value, builder.dtype(out)));
    Ok(())
}

/// Emits `eye` and `eye_like`.
pub(crate) fn eye(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let diagonal = needed_number(lowering, "k")?.cast(DType::INT64);
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, axes| {
        let dtype = builder.dtype(out);
        let on = match axes {
            [row, column] => (column.clone() - row.clone()).eq(diagonal),
            // INVARIANT: the result is a matrix, by the struct-info rule.
            _ => Expr::bool(false),
        };
        Expr::select(on, Expr::number(1.0, dtype), Expr::number(0.0, dtype))
    });
    Ok(())
}

/// Emits `tril` or `triu`: keeps elements for which `keep(row + k, column)` holds, and sets the others to 0.
pub(crate) fn triangle(lowering: &mut Lowering<'_>, keep: fn(Expr, Expr) -> Expr) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let diagonal = needed_number(lowering, "k")?.cast(DType::INT64);
    lowering.compute(|builder, axes| {
        let value = x.at(builder, axes);
        let kept = match axes {
            [.., row, column] => keep(row.clone() + diagonal, column.clone()),
            // INVARIANT: the result has at least two axes, by the struct-info rule.
            _ => Expr::bool(true),
        };
        Expr::select(kept, value, Expr::number(0.0, x.dtype))
    });
    Ok(())
}

/// Emits `start + step * i`: exact for integers, otherwise in `float64` with a final rounding.
pub(crate) fn arange(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let from_zero = matches!(arguments::scalar(lowering.call, "end"), Ok(None));
    let start = if from_zero { Expr::int(0) } else { needed_number(lowering, "start")? };
    let step = number(lowering, "step")?.unwrap_or(Expr::int(1));
    let dtype = match start.dtype().is_float() || step.dtype().is_float() {
        true => DType::FLOAT64,
        false => DType::INT64,
    };
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, axes| {
        let place = axes.first().cloned().unwrap_or(Expr::int(0));
        let value = start.cast(dtype) + step.cast(dtype) * place.cast(dtype);
        let wanted = builder.dtype(out);
        if wanted.is_bool() { truth(value) } else { value.cast(wanted) }
    });
    Ok(())
}

/// Emits `α - β·cos(2πn / M)`, where `M` is `N` for a periodic window and `N - 1` for a symmetric one. A window of one
/// value is 1.
pub(crate) fn hamming_window(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let size = needed_number(lowering, "window_size")?.cast(DType::INT64);
    let periodic = truth(needed_number(lowering, "periodic")?);
    let [alpha, beta] = [needed_number(lowering, "alpha")?, needed_number(lowering, "beta")?];
    let [alpha, beta] = [alpha, beta].map(|value| number_as(value, DType::FLOAT64));
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, axes| {
        let place = axes.first().cloned().unwrap_or(Expr::int(0)).cast(DType::FLOAT64);
        let intervals = Expr::select(periodic, size.clone(), size.clone() - Expr::int(1)).cast(DType::FLOAT64);
        let angle = Expr::number(2.0 * PI, DType::FLOAT64) * place / intervals;
        let value = alpha - beta * Expr::call(Intrinsic::Cos, vec![angle]);
        let single = size.eq(Expr::int(1));
        Expr::select(single, Expr::number(1.0, DType::FLOAT64), value).cast(builder.dtype(out))
    });
    Ok(())
}

/// Emits `size`: the number of elements.
pub(crate) fn size(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let dims = dims_of(lowering, "expr")?;
    let count = lowering.builder.dim(&crate::tensor::operands::element_count(&dims));
    lowering.compute(|_, _| count);
    Ok(())
}

/// Emits `shape_to_tensor`: element `i` is dim `i`.
pub(crate) fn shape_to_tensor(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let dims = lowering.dims("expr")?;
    let values = super::extents(&mut lowering.builder, &dims);
    lowering.compute(|_, axes| {
        let place = axes.first().cloned().unwrap_or(Expr::int(0));
        let choose =
            |rest: Expr, (at, value): (usize, Expr)| Expr::select(place.clone().eq(Expr::int(at as i64)), value, rest);
        values.into_iter().enumerate().rev().fold(Expr::int(0), choose)
    });
    Ok(())
}
