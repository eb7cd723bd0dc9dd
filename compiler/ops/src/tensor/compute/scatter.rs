//! *Scatter*: `scatter_elements`, `scatter_nd`, `index_put`, `slice_scatter`, `grad.take_backward`. Copies the data,
//! then applies the updates in order.
//!
//! ```text
//! scatter_nd(data, indices, updates, "add"):
//! out = data;  for i in serial(k): out[indices[i]] = out[indices[i]] + updates[i]
//! ```
//!
//! Guarantees: several updates of one position are applied in order, because the axes along which positions may
//! coincide are ordered (serial).
//! Reference: TVM python/tvm/topi/scatter_elements.py and index_put.py.

use super::pick::{broadcast_indices, index_tuple, taken, tuple_width};
use super::{axis, copy_to_output, extents, from_front, index, ravel, unravel, with_axis};
use crate::compute::{Lowering, Operand, Unsupported};
use crate::tensor::operands::{agree, differ, element_count};
use rx_base::Dim;
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, Expr, IterKind, KernelBuilder, Stmt};

/// The combination of the old value and an update.
#[derive(Clone, Copy)]
enum Reduction {
    Update,
    Combine(&'static str),
    Mean,
}

impl Reduction {
    fn of(lowering: &Lowering<'_>) -> Result<Reduction, Unsupported> {
        Ok(match lowering.call.str("reduction").unwrap_or("update") {
            "update" => Reduction::Update,
            "add" => Reduction::Combine("add"),
            "mul" => Reduction::Combine("multiply"),
            "max" => Reduction::Combine("maximum"),
            "min" => Reduction::Combine("minimum"),
            "mean" => Reduction::Mean,
            other => return Err(Unsupported::because(format!("reduction \"{other}\" has no meaning"))),
        })
    }

    /// Stores the combination of the old value and `update` at index `places` of `buffer`.
    fn store(self, builder: &KernelBuilder, buffer: rx_tir::BufferId, places: Vec<Expr>, update: Expr) -> Stmt {
        let old = builder.load(buffer, &places);
        let value = match self {
            Reduction::Update => update,
            Reduction::Combine(operator) => super::binary::combine(operator, old, update),
            Reduction::Mean => {
                let two = Expr::number(2.0, old.dtype());
                Expr::binary(BinaryOp::Div, old + update, two)
            }
        };
        builder.store(buffer, places, value)
    }
}

/// Emits `scatter_elements`. Negative indices count from the end.
pub(crate) fn scatter_elements(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, indices, updates) = operands(lowering)?;
    let along = axis(lowering, "axis", data.ndim(), lowering.call.int("axis").unwrap_or(0))?;
    let reduction = Reduction::of(lowering)?;
    copy_to_output(lowering, &data);
    let out = lowering.output(0);
    let lengths = data.extents(&mut lowering.builder);
    let shape = indices.extents(&mut lowering.builder);
    let kind = |at: usize| if at == along { IterKind::Ordered } else { IterKind::Spatial };
    let axes: Vec<(Expr, IterKind)> = shape.into_iter().enumerate().map(|(at, extent)| (extent, kind(at))).collect();
    lowering.builder.block("scatter_elements", &axes, |builder, axes| {
        let place = from_front(index(indices.at(builder, axes)), indices.dtype, lengths[along].clone());
        let update = updates.at(builder, axes);
        (None, reduction.store(builder, out, with_axis(axes, along, place), update))
    });
    Ok(())
}

fn operands(lowering: &mut Lowering<'_>) -> Result<(Operand, Operand, Operand), Unsupported> {
    Ok((lowering.tensor("data")?, lowering.tensor("indices")?, lowering.tensor("updates")?))
}

/// Emits `scatter_nd`. Negative indices count from the end, as in ONNX.
pub(crate) fn scatter_nd(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, indices, updates) = operands(lowering)?;
    let reduction = Reduction::of(lowering)?;
    let width = tuple_width(&indices)?;
    copy_to_output(lowering, &data);
    let out = lowering.output(0);
    let lengths = data.extents(&mut lowering.builder);
    let shape = indices.extents(&mut lowering.builder);
    // INVARIANT: there is a last axis, with extent `width`.
    let lead = shape.len() - 1;
    let ordered = shape.into_iter().take(lead).map(|extent| (extent, IterKind::Ordered));
    let slice = lengths.iter().skip(width).map(|extent| (extent.clone(), IterKind::Spatial));
    let axes: Vec<(Expr, IterKind)> = ordered.chain(slice).collect();
    lowering.builder.block("scatter_nd", &axes, |builder, axes| {
        let (tuple, rest) = axes.split_at(lead);
        let mut places = index_tuple(builder, &indices, tuple, width, &lengths);
        places.extend_from_slice(rest);
        (None, reduction.store(builder, out, places, updates.at(builder, axes)))
    });
    Ok(())
}

/// Emits `index_put`. Negative indices count from the end.
pub(crate) fn index_put(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, indices) = (lowering.tensor("data")?, lowering.tensors("indices")?);
    let values = lowering.tensor("values")?;
    let accumulate = lowering.call.bool("accumulate") == Some(true);
    let reduction = if accumulate { Reduction::Combine("add") } else { Reduction::Update };
    let common = broadcast_dims(&indices);
    if values.ndim() > common.len() {
        return Err(Unsupported::because("`values` has more dimensions than the indices broadcast together"));
    }
    // Values with the right number of elements but another shape are used in row-major order, as in TVM
    // (python/tvm/topi/index_put.py).
    let fits = |(own, common): (&Dim, &Dim)| own.as_constant() == Some(1) || !differ(lowering.call, own, common);
    let is_broadcast = std::iter::zip(values.shape.iter().rev(), common.iter().rev()).all(fits);
    if !is_broadcast && !agree(lowering.call, &element_count(&values.shape), &element_count(&common)) {
        return Err(Unsupported::because("`values` cannot be broadcast to the common shape of the indices"));
    }
    copy_to_output(lowering, &data);
    let out = lowering.output(0);
    let lengths = data.extents(&mut lowering.builder);
    let own = values.extents(&mut lowering.builder);
    let shape = extents(&mut lowering.builder, &common);
    let axes: Vec<(Expr, IterKind)> = shape.iter().map(|extent| (extent.clone(), IterKind::Ordered)).collect();
    lowering.builder.block("index_put", &axes, |builder, axes| {
        let places = broadcast_indices(builder, &indices, axes, &lengths);
        let value = match is_broadcast {
            true => values.broadcast_at(builder, axes),
            false => values.at(builder, &unravel(ravel(axes, &shape), &own)),
        };
        (None, reduction.store(builder, out, places, value))
    });
    Ok(())
}

/// Returns the dims to which index tensors are broadcast: for each axis, aligned at the last, the first dim that is not
/// 1.
fn broadcast_dims(tensors: &[Operand]) -> Vec<Dim> {
    let rank = tensors.iter().map(Operand::ndim).max().unwrap_or(0);
    let mut result = vec![Dim::constant(1); rank];
    for tensor in tensors {
        for (known, dim) in std::iter::zip(result.iter_mut().rev(), tensor.shape.iter().rev()) {
            if known.as_constant() == Some(1) {
                *known = dim.clone();
            }
        }
    }
    result
}

/// Emits `slice_scatter`: positions `start`, `start + step`, … get the elements of `src`, as many as it has.
pub(crate) fn slice_scatter(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, src) = (lowering.tensor("input_tensor")?, lowering.tensor("src")?);
    let along = axis(lowering, "axis", data.ndim(), lowering.call.int("axis").unwrap_or(0))?;
    let start = super::needed_number(lowering, "start")?;
    let step = super::needed_number(lowering, "step")?;
    let (length, count) = (lowering.builder.dim(&data.shape[along]), lowering.builder.dim(&src.shape[along]));
    let start = from_front(start, rx_base::DType::INT64, length);
    lowering.compute(|builder, axes| {
        let offset = axes[along].clone() - start;
        let place = offset.clone().floor_div(step.clone());
        let on_step = offset.floor_mod(step).eq(Expr::int(0));
        let written = on_step.and(in_range(place.clone(), Expr::int(0), count));
        Expr::select(written, src.at(builder, &with_axis(axes, along, place)), data.at(builder, axes))
    });
    Ok(())
}

/// Emits `grad.take_backward`: zeros, with the output's gradient added at the positions that `take` read. Without an
/// axis, `x` is indexed as if it were flattened.
pub(crate) fn take_backward(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (gradient, x, indices) = (lowering.tensor("output_grad")?, lowering.tensor("x")?, lowering.tensor("indices")?);
    let along = lowering.call.int("axis").map(|value| axis(lowering, "axis", x.ndim(), value)).transpose()?;
    let rank = along.map_or(0, |_| x.ndim() - 1) + indices.ndim();
    if gradient.ndim() != rank {
        return Err(Unsupported::because(format!("`output_grad` must have the {rank} dimensions of `take`'s result")));
    }
    let mode = lowering.call.str("mode").unwrap_or("fast");
    let out = lowering.output(0);
    let zero = Expr::number(0.0, x.dtype);
    lowering.builder.compute(out, |_, _| zero);
    let (lengths, extents) = (x.extents(&mut lowering.builder), gradient.extents(&mut lowering.builder));
    let picked = along.unwrap_or(0)..along.unwrap_or(0) + indices.ndim();
    let kind = |at: usize| if picked.contains(&at) { IterKind::Ordered } else { IterKind::Spatial };
    let axes: Vec<(Expr, IterKind)> = extents.into_iter().enumerate().map(|(at, extent)| (extent, kind(at))).collect();
    let count = match along {
        Some(along) => lengths[along].clone(),
        None => lengths.iter().cloned().fold(Expr::int(1), |count, length| count * length),
    };
    lowering.builder.block("take_backward", &axes, |builder, axes| {
        // INVARIANT: the axes of the indices replace the indexed axis in the gradient.
        let place = index(indices.at(builder, &axes[picked.clone()]));
        let (place, is_taken) = taken(mode, place, count);
        let target = match along {
            Some(along) => [&axes[..along], &[place], &axes[picked.end..]].concat(),
            None => unravel(place, &lengths),
        };
        let share = gradient.at(builder, axes).cast(x.dtype);
        let store = builder.store(out, target.clone(), builder.load(out, &target) + share);
        (None, Stmt::when(is_taken, store))
    });
    Ok(())
}
