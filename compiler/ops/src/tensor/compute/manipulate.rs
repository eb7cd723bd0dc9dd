//! *Permutation, broadcast, repetition and reversal of axes*, and sums that undo a broadcast.
//!
//! ```text
//! permute_dims(x, [1, 0]):  out[i, j] = x[j, i]
//! repeat(x, 2, axis=0):     out[i] = x[i // 2]
//! tile(x, [2]):             out[i] = x[i % n]
//! ```
//!
//! Reference: TVM include/tvm/topi/transform.h (`transpose`, `repeat`, `tile`, `flip`, `reverse_sequence`) and ONNX
//! GatherElements.

use super::{axis, from_front, index, unravel, with_axis};
use crate::axes::normalize_axes;
use crate::compute::{Lowering, Unsupported};
use crate::tensor::operands::agree;
use rx_tir::{BinaryOp, Expr};

/// Emits `permute_dims`.
pub(crate) fn permute_dims(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let axes = match lowering.call.ints("axes") {
        Some(axes) => normalize_axes(lowering.call, "axes", x.ndim(), &axes)
            .map_err(|_| Unsupported::because("`axes` is no permutation"))?,
        None => (0..x.ndim()).rev().collect(),
    };
    lowering.compute(|builder, places| {
        let mut indices = vec![Expr::int(0); x.ndim()];
        for (place, axis) in places.iter().zip(&axes) {
            // INVARIANT: a normalized axis is less than the rank.
            indices[*axis] = place.clone();
        }
        x.at(builder, &indices)
    });
    Ok(())
}

/// Emits `broadcast_to`.
pub(crate) fn broadcast_to(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    lowering.compute(|builder, axes| x.broadcast_at(builder, axes));
    Ok(())
}

/// Emits `collapse_sum_to` and `collapse_sum_like`: sums the leading axes, and the axes that have extent 1 only in the
/// result.
pub(crate) fn collapse_sum(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let (out, target) = (lowering.output(0), lowering.output_shape(0).to_vec());
    let lead = data.ndim().saturating_sub(target.len());
    // For each axis of the data, whether it is summed. The other axes are those of the result.
    let summed: Vec<bool> = (0..data.ndim())
        .map(|at| match at.checked_sub(lead).and_then(|at| target.get(at)) {
            Some(dim) => !agree(lowering.call, dim, &data.shape[at]),
            None => true,
        })
        .collect();
    let extents = data.extents(&mut lowering.builder);
    let reduced: Vec<Expr> =
        std::iter::zip(&extents, &summed).filter(|(_, summed)| **summed).map(|(extent, _)| extent.clone()).collect();
    let shape = lowering.builder.shape(out);
    let zero = Expr::number(0.0, data.dtype);
    let op = if data.dtype.is_bool() { BinaryOp::Or } else { BinaryOp::Add };
    lowering.builder.reduce(out, &shape, &reduced, zero, op, |builder, axes, reduced| {
        let mut reduced = reduced.iter();
        let place = |(at, summed): (usize, &bool)| match summed {
            true => reduced.next().cloned().unwrap_or(Expr::int(0)),
            false => at.checked_sub(lead).and_then(|at| axes.get(at)).cloned().unwrap_or(Expr::int(0)),
        };
        let indices: Vec<Expr> = summed.iter().enumerate().map(place).collect();
        (axes.to_vec(), data.at(builder, &indices))
    });
    Ok(())
}

/// Emits `repeat`: position `i` along the axis reads position `i // repeats` of the data.
pub(crate) fn repeat(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let repeats = lowering.call.int("repeats").unwrap_or(1).max(1);
    let along = lowering.call.int("axis").map(|value| axis(lowering, "axis", data.ndim(), value)).transpose()?;
    let extents = data.extents(&mut lowering.builder);
    lowering.compute(|builder, axes| {
        let source = |place: &Expr| place.clone().floor_div(Expr::int(repeats));
        let indices = match along {
            Some(along) => with_axis(axes, along, source(&axes[along])),
            None => unravel(axes.first().map_or(Expr::int(0), source), &extents),
        };
        data.at(builder, &indices)
    });
    Ok(())
}

/// Emits `tile`: position `i` reads position `i % extent` of the data.
pub(crate) fn tile(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let copied: Vec<bool> = {
        let shape = lowering.output_shape(0);
        let lead = shape.len().saturating_sub(data.ndim());
        std::iter::zip(&data.shape, shape.iter().skip(lead)).map(|(from, to)| from != to).collect()
    };
    let extents = data.extents(&mut lowering.builder);
    lowering.compute(|builder, axes| {
        let lead = axes.len().saturating_sub(extents.len());
        let source = |((place, extent), copied): ((&Expr, &Expr), &bool)| match copied {
            true => place.clone().floor_mod(extent.clone()),
            false => place.clone(),
        };
        let indices: Vec<Expr> = axes.iter().skip(lead).zip(&extents).zip(&copied).map(source).collect();
        data.at(builder, &indices)
    });
    Ok(())
}

/// Emits `flip`.
pub(crate) fn flip(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let along = axis(lowering, "axis", data.ndim(), lowering.call.int("axis").unwrap_or(0))?;
    let extents = data.extents(&mut lowering.builder);
    lowering.compute(|builder, axes| {
        let mirrored = extents[along].clone() - Expr::int(1) - axes[along].clone();
        data.at(builder, &with_axis(axes, along, mirrored))
    });
    Ok(())
}

/// Emits `reverse_sequence`: reverses the first `seq_lengths[b]` positions of sequence `b` and keeps the rest.
pub(crate) fn reverse_sequence(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, lengths) = (lowering.tensor("data")?, lowering.tensor("seq_lengths")?);
    let along = axis(lowering, "seq_axis", data.ndim(), lowering.call.int("seq_axis").unwrap_or(1))?;
    let batch = axis(lowering, "batch_axis", data.ndim(), lowering.call.int("batch_axis").unwrap_or(0))?;
    lowering.compute(|builder, axes| {
        let place = axes[along].clone();
        let length = index(lengths.at(builder, &axes[batch..=batch]));
        let reversed = place.clone().lt(length.clone());
        let source = Expr::select(reversed, length - Expr::int(1) - place.clone(), place);
        data.at(builder, &with_axis(axes, along, source))
    });
    Ok(())
}

/// Emits `gather_elements`: reads the element at the same index, except that the axis is indexed by `indices`. Negative
/// indices count from the end, as in ONNX.
pub(crate) fn gather_elements(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, indices) = (lowering.tensor("data")?, lowering.tensor("indices")?);
    let along = axis(lowering, "axis", data.ndim(), lowering.call.int("axis").unwrap_or(0))?;
    let extents = data.extents(&mut lowering.builder);
    lowering.compute(|builder, axes| {
        let place = from_front(index(indices.at(builder, axes)), indices.dtype, extents[along].clone());
        data.at(builder, &with_axis(axes, along, place))
    });
    Ok(())
}
