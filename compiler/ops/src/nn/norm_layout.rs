//! *Layout inference of normalizations* ([`super::norm`]). The data may have any layout whose normalized axes are not
//! split; the parameters keep the layout of their types.
//!
//! ```text
//! layer_norm(x, gamma, beta, axes=[3]), x in "ACDB"  →  layer_norm(x, gamma, beta, axes=[2]), result in "ACDB"
//! ```
//!
//! Reference: TVM src/relax/op/nn/nn.cc.

use crate::axes::{normalize_axes, normalize_axis};
use crate::infer_layout::{Laid, LaidOut, LayoutCall, axes_attr, axis_attr, place, places};

/// Layout rule of batch normalization: the data has no split axes, the statistics keep the layout of their types.
pub(super) fn batch_norm(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("data")?;
    let axis = normalize_axis(call.call, "axis", layout.ndim(), call.call.int("axis")?).ok()?;
    let Laid::Tuple(mut fields) = Laid::initial(call.result) else { return None };
    *fields.first_mut()? = Laid::Tensor(layout.clone());
    let at = place(&layout, axis)?;
    Some(LaidOut::result(Laid::Tuple(fields)).of("data", &layout).with("axis", axis_attr(at)))
}

/// Layout rule of layer and RMS normalization. The normalized axes must not be split and must stay in their order,
/// because the parameters have that order. TVM checks neither.
pub(super) fn normalized(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.layout("data")?;
    let axes = normalize_axes(call.call, "axes", call.ndim("data")?, &call.call.ints("axes")?).ok()?;
    let moved = places(layout, &axes)?;
    if axes.is_sorted() && !moved.is_sorted() {
        return None;
    }
    Some(LaidOut::result(Laid::Tensor(layout.clone())).of("data", layout).with("axes", axes_attr(&moved)))
}

/// Layout rule of group and instance normalization: the channel axis and the normalized axes must not be split.
pub(super) fn by_channel(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.layout("data")?;
    let ndim = call.ndim("data")?;
    let axes = normalize_axes(call.call, "axes", ndim, &call.call.ints("axes")?).ok()?;
    let channel = normalize_axis(call.call, "channel_axis", ndim, call.call.int("channel_axis")?).ok()?;
    let (moved, at) = (places(layout, &axes)?, places(layout, &[channel])?);
    let out = LaidOut::result(Laid::Tensor(layout.clone())).of("data", layout).with("axes", axes_attr(&moved));
    Some(out.with("channel_axis", axis_attr(*at.first()?)))
}
