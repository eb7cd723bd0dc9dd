//! *Concatenation and splitting* (`concat`, `stack`, `split`, `meshgrid`): copies each tensor into its range of the
//! result, or each range into its tensor.
//!
//! ```text
//! concat((x, y), axis=0), x: [m], y: [n]
//! for i in range(m): out[i] = x[i]
//! for i in range(n): out[m + i] = y[i]
//! ```
//!
//! Guarantees: one block per operand (`concat`, `stack`) or per result (`split`, `meshgrid`), all in one function.
//! Reference: TVM include/tvm/topi/transform.h (`concatenate`, `stack`, `split`, `meshgrid`).

use super::{axis, with_axis};
use crate::compute::{Lowering, Unsupported};
use crate::tensor::operands::agree;
use rx_base::Dim;
use rx_ir::Attr;
use rx_tir::Expr;

/// Emits `concat`: copies each tensor to its range of the result.
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
        // INVARIANT: joined tensors have the rank of the result, and the axis is less than it.
        before = &before + &tensor.shape[along];
    }
    Ok(())
}

/// Emits `stack`: copies each tensor to its index of the new axis.
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

/// Emits `split`: copies all parts in one function.
pub(crate) fn split(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let along = axis(lowering, "axis", x.ndim(), lowering.call.int("axis").unwrap_or(0))?;
    let cuts = match lowering.call.attr("indices_or_sections") {
        Some(Attr::List(_)) => lowering.call.ints("indices_or_sections"),
        _ => None,
    };
    // INVARIANT: every part has the rank of `x`, and the axis is less than it.
    let each = lowering.output_shape(0)[along].clone();
    for part in 0..lowering.output_count() {
        let start = match (part.checked_sub(1), &cuts) {
            (None, _) => Dim::constant(0),
            // A cut outside the axis counts as the nearer end, as in the struct-info rule.
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

/// Emits `meshgrid`: repeats tensor `i` along all axes except axis `i`. With `xy` indexing, the first two axes are
/// swapped.
pub(crate) fn meshgrid(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let tensors = lowering.tensors("tensors")?;
    let swapped = lowering.call.str("indexing") == Some("xy") && tensors.len() >= 2;
    if swapped && !agree(lowering.call, &lowering.output_shape(0)[0], &lowering.output_shape(0)[1]) {
        // The types follow TVM's struct-info rule, which does not swap the lengths, while TVM's kernel does.
        return Err(Unsupported::because("indexing=\"xy\" has a type that does not fit its values"));
    }
    for (at, tensor) in tensors.into_iter().enumerate() {
        let own = if swapped && at < 2 { 1 - at } else { at };
        let out = lowering.output(at);
        lowering.builder.compute(out, |builder, axes| tensor.at(builder, &axes[own..=own]));
    }
    Ok(())
}
