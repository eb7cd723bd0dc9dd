//! Several tensors made one, and one made several.

use super::{axis, with_axis};
use crate::compute::{Lowering, Unsupported};
use crate::tensor::operands::agree;
use rx_base::Dim;
use rx_ir::Attr;
use rx_tir::Expr;

/// `concat`: each tensor is copied to its place.
pub(crate) fn concat(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let tensors = lowering.tensors("tensors")?;
    let out = lowering.output(0);
    let along = axis(lowering, "axis", lowering.output_shape(0).len(), lowering.call.int("axis").unwrap_or(0))?;
    let mut before = Dim::constant(0);
    for tensor in tensors {
        let offset = lowering.builder.dim(&before);
        let extents = tensor.extents(&mut lowering.builder);
        lowering.builder.map(out, &extents, |builder, axes| {
            let place = axes[along].clone() + offset;
            (with_axis(axes, along, place), tensor.at(builder, axes))
        });
        // INVARIANT: joined tensors have the result's rank, and the axis is below it.
        before = &before + &tensor.shape[along];
    }
    Ok(())
}

/// `stack`.
pub(crate) fn stack(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let tensors = lowering.tensors("tensors")?;
    let out = lowering.output(0);
    let along = axis(lowering, "axis", lowering.output_shape(0).len(), lowering.call.int("axis").unwrap_or(0))?;
    for (at, tensor) in tensors.into_iter().enumerate() {
        let extents = tensor.extents(&mut lowering.builder);
        lowering.builder.map(out, &extents, |builder, axes| {
            let mut indices = axes.to_vec();
            indices.insert(along.min(indices.len()), Expr::int(at as i64));
            (indices, tensor.at(builder, axes))
        });
    }
    Ok(())
}

/// `split`: one function for all parts.
pub(crate) fn split(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let along = axis(lowering, "axis", x.ndim(), lowering.call.int("axis").unwrap_or(0))?;
    let cuts = match lowering.call.attr("indices_or_sections") {
        Some(Attr::List(_)) => lowering.call.ints("indices_or_sections"),
        _ => None,
    };
    // INVARIANT: every part has the rank of `x`, and the axis is below it.
    let each = lowering.output_shape(0)[along].clone();
    for part in 0..lowering.output_count() {
        let start = match (part.checked_sub(1), &cuts) {
            (None, _) => Dim::constant(0),
            // A cut past an end counts as that end, as in the rule.
            (Some(before), Some(cuts)) => {
                Dim::constant(cuts.get(before).copied().unwrap_or(0).max(0)).minimum(&x.shape[along])
            }
            (Some(_), None) => &each * &Dim::constant(part as i64),
        };
        let start = lowering.builder.dim(&start);
        let out = lowering.output(part);
        lowering.builder.compute(out, |builder, axes| {
            let place = start + axes[along].clone();
            x.at(builder, &with_axis(axes, along, place))
        });
    }
    Ok(())
}

/// `meshgrid`: tensor `i` is repeated along all axes but its own, which is axis `i`; with `xy` the first two are swapped.
pub(crate) fn meshgrid(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let tensors = lowering.tensors("tensors")?;
    let swapped = lowering.call.str("indexing") == Some("xy") && tensors.len() >= 2;
    if swapped && !agree(lowering.call, &lowering.output_shape(0)[0], &lowering.output_shape(0)[1]) {
        // TVM's rule, which types follow, keeps the order of the lengths; its kernel swaps them.
        return Err(Unsupported::because("indexing=\"xy\" has a type that does not fit its values"));
    }
    for (at, tensor) in tensors.into_iter().enumerate() {
        let own = if swapped && at < 2 { 1 - at } else { at };
        let out = lowering.output(at);
        lowering.builder.compute(out, |builder, axes| tensor.at(builder, &axes[own..=own]));
    }
    Ok(())
}
