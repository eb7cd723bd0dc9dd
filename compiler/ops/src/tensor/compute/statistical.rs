//! *Reductions and scans.*
//!
//! ```text
//! mean(x, axis=[1]), x: [n, k]: sum[i] = Σ_k x[i, k];  out[i] = sum[i] / k
//! cumsum(x): out[0] = x[0];  out[i] = out[i - 1] + x[i]
//! ```
//!
//! Guarantees: floats narrower than 32 bits are summed in `float32`, and sums that are divided afterwards have the
//! dtype of [`wide_accumulator`]; results are rounded once.
//! Reference: TVM include/tvm/topi/reduction.h.

use super::{ravel, unravel};
use crate::axes::{normalize_axes, normalize_axis};
use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, accumulator, identity, of_dtype, reduce, reduce_rows, wide_accumulator};
use rx_base::{DType, Dim};
use rx_tir::func::BufferId;
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic, IterKind, KernelBuilder, Stmt};

/// The operand of a reduction, and its reduced axes.
struct Reduction {
    x: Operand,
    axes: Axes,
    keepdims: bool,
}

impl Reduction {
    fn of(lowering: &mut Lowering<'_>) -> Result<Reduction, Unsupported> {
        let x = lowering.tensor("x")?;
        let axes = match lowering.call.ints("axis") {
            Some(axes) => normalize_axes(lowering.call, "axis", x.ndim(), &axes)?,
            None => (0..x.ndim()).collect(),
        };
        let keepdims = lowering.call.bool("keepdims") == Some(true);
        Ok(Reduction { axes: Axes::new(x.ndim(), &axes), x, keepdims })
    }

    fn rows(&self) -> (&[Dim], &Axes) {
        (&self.x.shape, &self.axes)
    }

    /// Returns the extents of the rows, one row per element of the result.
    fn extents(&self, builder: &mut KernelBuilder) -> Vec<Expr> {
        self.axes.kept(&self.x.extents(builder))
    }

    /// Stores `out[row] = value(row)`, where `value` has the dtype of the result.
    fn store(
        &self,
        builder: &mut KernelBuilder,
        out: BufferId,
        value: impl FnOnce(&mut KernelBuilder, &[Expr]) -> Expr,
    ) {
        let extents = self.extents(builder);
        let dtype = builder.dtype(out);
        builder.map(out, &extents, |builder, row| {
            (self.axes.result_index(row, self.keepdims), value(builder, row).cast(dtype))
        });
    }
}

/// Emits `sum`, `prod`, `max` and `min`. For booleans, the sum and maximum are `any`, the product and minimum `all`.
pub(crate) fn fold(lowering: &mut Lowering<'_>, op: BinaryOp) -> Result<(), Unsupported> {
    let reduction = Reduction::of(lowering)?;
    let Reduction { x, axes, keepdims } = &reduction;
    let op = of_dtype(op, x.dtype);
    // The maximum or minimum of rounded values is exact, so it needs no wider dtype.
    let dtype = if matches!(op, BinaryOp::Max | BinaryOp::Min) { x.dtype } else { accumulator(x.dtype) };
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    if dtype != x.dtype {
        let rows = reduce_rows(builder, "rows", reduction.rows(), (op, dtype), |builder, index, _| {
            x.at(builder, index).cast(dtype)
        });
        reduction.store(builder, out, |builder, row| builder.load(rows, row));
        return Ok(());
    }
    let extents = x.extents(builder);
    reduce(builder, out, &axes.kept(&extents), &axes.reduced(&extents), op, |builder, kept, reduced| {
        (axes.result_index(kept, *keepdims), x.at(builder, &axes.join(kept, reduced)))
    });
    Ok(())
}

/// Emits `mean`. For integers, the division truncates towards zero.
pub(crate) fn mean(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let reduction = Reduction::of(lowering)?;
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let dtype = wide_accumulator(reduction.x.dtype);
    let count = reduction.axes.count(builder, &reduction.x.shape, dtype);
    let sum = reduce_rows(builder, "sum", reduction.rows(), (BinaryOp::Add, dtype), |builder, index, _| {
        reduction.x.at(builder, index).cast(dtype)
    });
    reduction.store(builder, out, |builder, row| builder.load(sum, row) / count);
    Ok(())
}

/// Emits `std`: the square root of the variance.
pub(crate) fn std(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    deviation(lowering, |variance| {
        let dtype = if variance.dtype().is_float() { variance.dtype() } else { DType::FLOAT64 };
        Expr::call(Intrinsic::Sqrt, vec![variance.cast(dtype)])
    })
}

/// Emits `variance` in two passes, the mean first. The function `finish` computes the result from the variance.
pub(crate) fn deviation(lowering: &mut Lowering<'_>, finish: impl FnOnce(Expr) -> Expr) -> Result<(), Unsupported> {
    let reduction = Reduction::of(lowering)?;
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let dtype = wide_accumulator(reduction.x.dtype);
    let count = reduction.axes.count(builder, &reduction.x.shape, dtype);
    let value = |builder: &KernelBuilder, index: &[Expr]| reduction.x.at(builder, index).cast(dtype);
    let sum = reduce_rows(builder, "sum", reduction.rows(), (BinaryOp::Add, dtype), |builder, index, _| {
        value(builder, index)
    });
    let squares =
        reduce_rows(builder, "square_sum", reduction.rows(), (BinaryOp::Add, dtype), |builder, index, row| {
            let deviation = value(builder, index) - builder.load(sum, row) / count.clone();
            deviation.clone() * deviation
        });
    reduction.store(builder, out, |builder, row| finish(builder.load(squares, row) / count));
    Ok(())
}

/// Emits `median`: of an even number of elements, the lower of the two in the middle; and its position, if the result
/// has one. The rank of an element is the number of elements before it in a stable order.
pub(crate) fn median(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let reduction = Reduction::of(lowering)?;
    let outputs: Vec<BufferId> = (0..lowering.output_count()).map(|at| lowering.output(at)).collect();
    let builder = &mut lowering.builder;
    let Reduction { x, axes, .. } = &reduction;
    let extents = x.extents(builder);
    let (kept, reduced) = (axes.kept(&extents), axes.reduced(&extents));
    let rank = builder.temporary("rank", &x.shape, DType::INT64);
    let own: Vec<Expr> = extents.clone();
    reduce(builder, rank, &own, &reduced, BinaryOp::Add, |builder, index, other| {
        let row = axes.kept(index);
        let (value, rival) = (x.at(builder, index), x.at(builder, &axes.join(&row, other)));
        let place = |index: &[Expr]| ravel(index, &reduced);
        let tied = Expr::compare(CompareOp::Eq, rival.clone(), value.clone());
        let tied_before = tied.and(place(other).lt(place(&axes.reduced(index))));
        let before = Expr::select(rival.lt(value), Expr::int(1), tied_before.cast(DType::INT64));
        (index.to_vec(), before)
    });
    let middle = (axes.count(builder, &x.shape, DType::INT64) - Expr::int(1)).floor_div(Expr::int(2));
    let place = reduce_rows(builder, "place", reduction.rows(), (BinaryOp::Max, DType::INT64), |builder, index, _| {
        let is_middle = builder.load(rank, index).eq(middle);
        Expr::select(is_middle, ravel(&axes.reduced(index), &reduced), Expr::int(0))
    });
    debug_assert_eq!(kept.len() + reduced.len(), x.ndim());
    for (at, out) in outputs.into_iter().enumerate() {
        reduction.store(builder, out, |builder, row| {
            let place = builder.load(place, row);
            match at {
                0 => x.at(builder, &axes.join(row, &unravel(place, &reduced))),
                _ => place,
            }
        });
    }
    Ok(())
}

/// Emits `cumsum` and `cumprod`: `out[k] = out[k - 1] op data[k]` along an axis, or over all elements in row-major
/// order.
pub(crate) fn scan(lowering: &mut Lowering<'_>, op: BinaryOp) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let along = match lowering.call.int("axis") {
        Some(axis) => Some(normalize_axis(lowering.call, "axis", data.ndim(), axis)?),
        None => None,
    };
    let exclusive = lowering.call.bool("exclusive") == Some(true);
    let (out, shape) = (lowering.output(0), lowering.output_shape(0).to_vec());
    let builder = &mut lowering.builder;
    let dtype = builder.dtype(out);
    let sum_dtype = accumulator(dtype);
    let op = of_dtype(op, dtype);
    let target = if sum_dtype == dtype { out } else { builder.temporary("scan", &shape, sum_dtype) };
    let (data_extents, extents) = (data.extents(builder), builder.shape(out));
    let axes = Axes::new(extents.len(), &[along.unwrap_or(0)]);
    let mut domain: Vec<(Expr, IterKind)> =
        axes.kept(&extents).into_iter().map(|extent| (extent, IterKind::Spatial)).collect();
    domain.extend(axes.reduced(&extents).into_iter().map(|extent| (extent, IterKind::Ordered)));
    let site_name = if op == BinaryOp::Mul { "cumprod" } else { "cumsum" };
    builder.block(site_name, &domain, |builder, parts| {
        // INVARIANT: the scanned axis is the last of the domain, which has at least one axis because the result has.
        let (kept, place) = (&parts[..parts.len() - 1], parts[parts.len() - 1].clone());
        let at = |place: Expr| axes.join(kept, &[place]);
        let element = |builder: &KernelBuilder, index: Vec<Expr>| {
            let index = if along.is_some() { index } else { unravel(index[0].clone(), &data_extents) };
            data.at(builder, &index).cast(sum_dtype)
        };
        let previous = at(place.clone() - Expr::int(1));
        let source = if exclusive { previous.clone() } else { at(place.clone()) };
        let running = Expr::Binary {
            op,
            left: Box::new(builder.load(target, &previous)),
            right: Box::new(element(builder, source)),
        };
        let first = match exclusive {
            true => identity(op, sum_dtype),
            false => element(builder, at(place.clone())),
        };
        let value = Expr::select(place.clone().eq(Expr::int(0)), first, running);
        let store: Stmt = builder.store(target, at(place), value);
        (None, store)
    });
    if target != out {
        builder.compute(out, |builder, index| builder.load(target, index).cast(dtype));
    }
    Ok(())
}
