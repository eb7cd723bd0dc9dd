//! How tensors lie that are normalised ([`super::norm`]; TVM src/relax/op/nn/nn.cc). Parameters lie as typed.

use crate::axes::{normalize_axes, normalize_axis};
use crate::relayout::{Laid, LaidOut, LayoutCall, axes_attr, axis_attr, place, places};

/// The data lies in whole axes, the statistics as typed.
pub(super) fn batch_norm(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("data")?;
    let axis = normalize_axis(call.call, "axis", layout.ndim(), call.call.int("axis")?).ok()?;
    let Laid::Tuple(mut fields) = Laid::initial(call.result) else { return None };
    *fields.first_mut()? = Laid::Tensor(layout.clone());
    let at = place(&layout, axis)?;
    Some(LaidOut::result(Laid::Tuple(fields)).of("data", &layout).with("axis", axis_attr(at)))
}

/// Layer norm and RMS norm: the axes normalised together are whole and stay in their order, in which the parameters have
/// them; TVM looks at neither.
pub(super) fn normalized(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.layout("data")?;
    let axes = normalize_axes(call.call, "axes", call.ndim("data")?, &call.call.ints("axes")?).ok()?;
    let moved = places(layout, &axes)?;
    if axes.is_sorted() && !moved.is_sorted() {
        return None;
    }
    Some(LaidOut::result(Laid::Tensor(layout.clone())).of("data", layout).with("axes", axes_attr(&moved)))
}

/// Group norm and instance norm: the channels and the axes normalised are whole.
pub(super) fn by_channel(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.layout("data")?;
    let ndim = call.ndim("data")?;
    let axes = normalize_axes(call.call, "axes", ndim, &call.call.ints("axes")?).ok()?;
    let channel = normalize_axis(call.call, "channel_axis", ndim, call.call.int("channel_axis")?).ok()?;
    let (moved, at) = (places(layout, &axes)?, places(layout, &[channel])?);
    let out = LaidOut::result(Laid::Tensor(layout.clone())).of("data", layout).with("axes", axes_attr(&moved));
    Some(out.with("channel_axis", axis_attr(*at.first()?)))
}
