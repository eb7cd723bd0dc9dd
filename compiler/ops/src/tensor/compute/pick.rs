//! *Gather and search*: `take`, `gather_nd`, `index_tensor`, `one_hot`, `argmax`, `argmin`, `bucketize`.
//!
//! ```text
//! take(x, indices, axis=0), x: [n, m], indices: [k]  →  out[i, j] = x[indices[i], j]
//! ```
//!
//! Requires: if an operator accepts `[0, extent)` only, indices are in range. They are loaded without a check; a later
//! pass adds bounds checks.
//! Reference: TVM include/tvm/topi/transform.h (`take`, `gather_nd`, `one_hot`) and reduction.h.

use super::ravel;
use super::{axis, extents, from_front, index};
use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, identity};
use rx_ir::StructInfo;
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, CompareOp, Expr, IterKind, KernelBuilder, Stmt};

/// Emits `take` in its four modes.
pub(crate) fn take(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let along = axis(lowering, "axis", x.ndim(), lowering.call.int("axis").unwrap_or(0))?;
    let (indices, picked) = match lowering.call.ty("indices") {
        StructInfo::Prim(_) => (Err(lowering.scalar("indices")?), 0),
        _ => {
            let indices = lowering.tensor("indices")?;
            let rank = indices.ndim();
            (Ok(indices), rank)
        }
    };
    let mode = lowering.call.str("mode").unwrap_or("fast");
    let extent = lowering.builder.dim(&x.shape[along]);
    lowering.compute(|builder, axes| {
        // INVARIANT: the axes of the indices replace the indexed axis.
        let (before, rest) = axes.split_at(along);
        let (places, after) = rest.split_at(picked);
        let place = index(match &indices {
            Ok(tensor) => tensor.at(builder, places),
            Err(scalar) => scalar.clone(),
        });
        let element = |place: Expr| x.at(builder, &[before, &[place], after].concat());
        let (place, is_taken) = taken(mode, place, extent);
        Expr::select(is_taken, element(place), Expr::number(f64::NAN, x.dtype))
    });
    Ok(())
}

/// Returns the position that `take` reads for an index along an axis of this extent, and whether it is in bounds.
pub(super) fn taken(mode: &str, place: Expr, extent: Expr) -> (Expr, Expr) {
    match mode {
        "clip" => (Expr::int(0).max(place).min(extent - Expr::int(1)), Expr::bool(true)),
        "wrap" => (place.floor_mod(extent), Expr::bool(true)),
        "nan" => (place.clone(), in_range(place, Expr::int(0), extent)),
        _ => (place, Expr::bool(true)),
    }
}

/// Emits `gather_nd`: the last axis of `indices` has one index per axis after the `batch_dims` leading axes. Negative
/// indices count from the end, as in ONNX.
pub(crate) fn gather_nd(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, indices) = (lowering.tensor("data")?, lowering.tensor("indices")?);
    let batch = usize::try_from(lowering.call.int("batch_dims").unwrap_or(0)).unwrap_or(0);
    let width = tuple_width(&indices)?;
    let lengths = data.extents(&mut lowering.builder);
    lowering.compute(|builder, axes| {
        // INVARIANT: the result has the axes of `indices` except the last, then the axes of `data` that are not
        // indexed.
        let (lead, rest) = axes.split_at(indices.ndim() - 1);
        let places = index_tuple(builder, &indices, lead, width, &lengths[batch..]);
        data.at(builder, &[&lead[..batch], &places, rest].concat())
    });
    Ok(())
}

/// Returns the length of the last axis of a tensor of index tuples.
///
/// # Errors
/// Fails if it is not constant, or if there is no axis.
pub(super) fn tuple_width(indices: &Operand) -> Result<usize, Unsupported> {
    let width = indices.shape.last().and_then(rx_base::Dim::as_constant);
    width
        .and_then(|width| usize::try_from(width).ok())
        .ok_or_else(|| Unsupported::because("the last length of `indices` is not known"))
}

/// Returns the `width` components of the index tuple at `lead`, for axes with these extents.
pub(super) fn index_tuple(
    builder: &KernelBuilder,
    indices: &Operand,
    lead: &[Expr],
    width: usize,
    extents: &[Expr],
) -> Vec<Expr> {
    let place = |(at, extent): (usize, &Expr)| {
        let place = index(indices.at(builder, &[lead, &[Expr::int(at as i64)]].concat()));
        from_front(place, indices.dtype, extent.clone())
    };
    extents.iter().take(width).enumerate().map(place).collect()
}

/// Emits `index_tensor`: `data[i, j, …]`. Negative indices count from the end, as in NumPy.
pub(crate) fn index_tensor(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let indices = lowering.tensors("indices")?;
    let common = indices.iter().map(Operand::ndim).max().unwrap_or(0);
    let lengths = data.extents(&mut lowering.builder);
    lowering.compute(|builder, axes| {
        let (lead, rest) = axes.split_at(common);
        let mut places = broadcast_indices(builder, &indices, lead, &lengths);
        places.extend_from_slice(rest);
        data.at(builder, &places)
    });
    Ok(())
}

/// Loads index tensors, broadcast together, at `axes`, for axes with these extents.
pub(super) fn broadcast_indices(
    builder: &KernelBuilder,
    indices: &[Operand],
    axes: &[Expr],
    extents: &[Expr],
) -> Vec<Expr> {
    let place = |(tensor, extent): (&Operand, &Expr)| {
        from_front(index(tensor.broadcast_at(builder, axes)), tensor.dtype, extent.clone())
    };
    std::iter::zip(indices, extents).map(place).collect()
}

/// Emits `one_hot`. An index outside the depth sets no element.
pub(crate) fn one_hot(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let indices = lowering.tensor("indices")?;
    let (on, off) = (lowering.scalar("on_value")?, lowering.scalar("off_value")?);
    let out = lowering.output(0);
    let rank = lowering.output_shape(0).len();
    let along = axis(lowering, "axis", rank, lowering.call.int("axis").unwrap_or(-1))?;
    lowering.builder.compute(out, |builder, axes| {
        let dtype = builder.dtype(out);
        let mut places = axes.to_vec();
        // INVARIANT: a normalized axis is less than the rank.
        let place = places.remove(along);
        let hit = index(indices.at(builder, &places)).eq(place);
        Expr::select(hit, super::number_as(on, dtype), super::number_as(off, dtype))
    });
    Ok(())
}

/// Emits `argmax` and `argmin`: the index of the first maximum or minimum. NaN wins in both cases, as in NumPy and
/// PyTorch.
///
/// It is a tuple reduction of two values, the element and its index. Of equal elements the smaller index wins, so the
/// reduction does not depend on the order (TVM's `MakeArgmaxReducer`, `include/tvm/topi/reduction.h`, extended by the
/// rule for NaN).
pub(crate) fn arg_extremum(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let along = lowering.call.int("axis").map(|value| axis(lowering, "axis", x.ndim(), value)).transpose()?;
    let keep = lowering.call.bool("keepdims") == Some(true);
    let (op, extremum) = match lowering.call.schema.name {
        "argmin" => (CompareOp::Lt, BinaryOp::Min),
        _ => (CompareOp::Gt, BinaryOp::Max),
    };
    let axes = Axes::new(x.ndim(), &along.map_or_else(|| (0..x.ndim()).collect(), |along| vec![along]));
    let (out, operator) = (lowering.output(0), lowering.call.short_name());
    let builder = &mut lowering.builder;
    let lengths = extents(builder, &x.shape);
    let (rows, searched) = (axes.kept(&lengths), axes.reduced(&lengths));
    if searched.iter().all(|length| length.as_int() == Some(1)) || searched.iter().any(|one| one.as_int() == Some(0)) {
        builder.compute(out, |_, _| Expr::int(0));
        return Ok(());
    }
    let best = builder.temporary("best", &axes.kept(&x.shape), x.dtype);
    let of_kind = |extents: Vec<Expr>, kind| extents.into_iter().map(move |extent| (extent, kind));
    let of_rows = rows.len();
    let loops: Vec<(Expr, IterKind)> =
        of_kind(rows, IterKind::Spatial).chain(of_kind(searched.clone(), IterKind::Reduce)).collect();
    builder.block(operator, &loops, |builder, loops| {
        let (row, index) = loops.split_at(of_rows);
        let (var, value) = builder.variable("value", x.dtype);
        let (place, at) = (ravel(index, &searched), axes.result_index(row, keep));
        let (held, held_place) = (builder.load(best, row), builder.load(out, &at));
        let (is_nan, was_nan) = (super::is_nan(value.clone()), super::is_nan(held.clone()));
        let better = Expr::compare(op, value.clone(), held.clone());
        let better = super::either(better, is_nan.clone().and(!was_nan.clone()));
        let tied = super::either(value.clone().eq(held), is_nan.and(was_nan));
        let wins = super::either(better, tied.and(place.clone().lt(held_place)));
        let stores = |place: Expr, value: Expr| {
            Stmt::seq([builder.store(out, at.clone(), place), builder.store(best, row.to_vec(), value)])
        };
        let init = stores(Expr::int(0), identity(extremum, x.dtype));
        let body = Stmt::when(wins, stores(place, value));
        let element = x.at(builder, &axes.join(row, index));
        (Some(init), Stmt::Let { var, value: element, body: Box::new(body) })
    });
    Ok(())
}

/// Emits `bucketize`: the number of boundaries less than the value (with `right`, less than or equal to it). NaN is
/// greater than all boundaries, as in `searchsorted` of PyTorch and NumPy.
pub(crate) fn bucketize(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (input, boundaries) = (lowering.tensor("input_tensor")?, lowering.tensor("boundaries")?);
    let right = lowering.call.bool("right") == Some(true);
    let out = lowering.output(0);
    let dtype = super::common_dtype(input.dtype, boundaries.dtype);
    let (shape, count) = (lowering.builder.shape(out), boundaries.extents(&mut lowering.builder));
    let wanted = lowering.builder.dtype(out);
    lowering.builder.reduce(out, &shape, &count, Expr::number(0.0, wanted), BinaryOp::Add, |builder, axes, reduced| {
        let (value, bound) = (input.at(builder, axes).cast(dtype), boundaries.at(builder, reduced).cast(dtype));
        let beyond = Expr::compare(if right { CompareOp::Gt } else { CompareOp::Ge }, bound, value);
        let counted = Expr::select(beyond, Expr::number(0.0, wanted), Expr::number(1.0, wanted));
        (axes.to_vec(), counted)
    });
    Ok(())
}
