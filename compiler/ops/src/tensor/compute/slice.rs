//! *Strided slice.*
//!
//! ```text
//! strided_slice(x, axes=[0], begin=[b], end=[e], strides=[s])  →  out[i] = x[b + i * s]
//! ```
//!
//! Reference: TVM include/tvm/topi/detail/strided_slice.h.

use super::{axis, from_front};
use crate::compute::{Lowering, Unsupported};
use crate::tensor::slice::SlicedAxis;
use rx_base::{Answer, DType, Dim};
use rx_tir::Expr;

/// Emits `strided_slice`: position `i` of an axis reads position `begin + i * stride` of the data, where `begin` is
/// counted from the front and clamped as in the struct-info rule.
pub(crate) fn strided_slice(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let sliced = crate::tensor::slice::sliced_axes(lowering.call)
        .map_err(|_| Unsupported::because("the bounds of the slice are not known"))?;
    let mut steps = vec![None; x.ndim()];
    for slice in sliced {
        let along = axis(lowering, "axes", x.ndim(), slice.axis)?;
        let begin = first_place(lowering, &slice, &x.shape[along])?;
        let stride = lowering.builder.dim(&slice.stride);
        steps[along] = Some((begin, stride));
    }
    lowering.compute(|builder, axes| {
        let source = |(place, step): (&Expr, &Option<(Expr, Expr)>)| match step {
            Some((begin, stride)) => begin.clone() + place.clone() * stride.clone(),
            None => place.clone(),
        };
        let indices: Vec<Expr> = axes.iter().zip(&steps).map(source).collect();
        x.at(builder, &indices)
    });
    Ok(())
}

/// Returns the first position of a slice along an axis of this extent (TOPI's `CanonicalizeIndex`).
fn first_place(lowering: &mut Lowering<'_>, slice: &SlicedAxis, extent: &Dim) -> Result<Expr, Unsupported> {
    if lowering.call.bool("assume_inbound") == Some(true) {
        return Ok(lowering.builder.dim(&slice.begin));
    }
    let (zero, one) = (Dim::constant(0), Dim::constant(1));
    let (low, high) = match lowering.call.at_least(&slice.stride, &zero) {
        Answer::Proved => (zero.clone(), extent.clone()),
        Answer::Refuted => (-&one, extent - &one),
        Answer::Open => return Err(Unsupported::because(format!("the sign of stride {} is not known", slice.stride))),
    };
    let from_begin = match lowering.call.at_least(&slice.begin, &zero) {
        Answer::Proved => slice.begin.clone(),
        Answer::Refuted => &slice.begin + extent,
        // It is unknown until run time whether the index counts from the end.
        Answer::Open => {
            let [begin, extent, low, high] = [&slice.begin, extent, &low, &high].map(|dim| lowering.builder.dim(dim));
            return Ok(from_front(begin, DType::INT64, extent).max(low).min(high));
        }
    };
    Ok(lowering.builder.dim(&from_begin.maximum(&low).minimum(&high)))
}
