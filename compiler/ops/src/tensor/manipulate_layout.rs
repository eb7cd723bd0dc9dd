//! *Layout inference of axis manipulations* ([`super::manipulate`]). No rule accepts split axes.
//!
//! ```text
//! squeeze(x, axis=[1]), x: [n, 1, h, w] in "ACDB"  →  squeeze(x, axis=[3]), result in "ABC"
//! tile(x, [1, 2]), x in "BA"                       →  tile(x, [2, 1]), result in "BA"
//! ```
//!
//! Reference: TVM src/relax/op/tensor/manipulate.cc.

use crate::axes::{normalize_axes, normalize_axis};
use crate::infer_layout::{Laid, LaidOut, LayoutCall, axes_attr, axis_attr, letter, place, places, with_new_last_axes};
use crate::layout::Layout;
use rx_base::Dim;
use rx_ir::Attr;

/// Layout rule of `expand_dims`: new axes have the positions of the result type. The other axes keep their stored order
/// between them.
pub(super) fn expand_dims(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("x")?;
    let given = call.call.ints("axis")?;
    let all = Layout::initial(layout.ndim().checked_add(given.len())?)?;
    let new = normalize_axes(call.call, "axis", all.ndim(), &given).ok()?;
    let is_new = |letter: char| all.axis_of(letter).is_some_and(|axis| new.contains(&axis));
    let others: String = all.letters().filter(|letter| !is_new(*letter)).collect();
    let moved = layout.relettered(Layout::initial(layout.ndim())?.text(), &others)?;
    let mut moved = moved.letters();
    let result: Option<String> =
        all.letters().map(|letter| if is_new(letter) { Some(letter) } else { moved.next() }).collect();
    Some(LaidOut::result(Laid::Tensor(Layout::parse(&result?).ok()?)).of("x", &layout))
}

/// Layout rule of `squeeze`: removes the axes at their stored positions. They are given by the attribute or by extents
/// of 1.
pub(super) fn squeeze(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("x")?;
    let dims = call.call.ty("x").as_tensor().and_then(|tensor| tensor.shape.dims())?;
    let is_one = |axis: &usize| dims.get(*axis).and_then(Dim::as_constant) == Some(1);
    let gone = match call.call.ints("axis") {
        Some(axes) => normalize_axes(call.call, "axis", layout.ndim(), &axes).ok()?,
        None => (0..layout.ndim()).filter(is_one).collect(),
    };
    // An axis with a known extent other than 1 cannot be removed. The result must have the corresponding known rank.
    let stays = |axis: &usize| dims.get(*axis).and_then(Dim::as_constant).is_some_and(|length| length != 1);
    let rank = call.result.as_tensor().and_then(|tensor| tensor.shape.ndim());
    if gone.iter().any(stays) || rank != layout.ndim().checked_sub(gone.len()) {
        return None;
    }
    let mut axes = places(&layout, &gone)?;
    axes.sort_unstable();
    let kept: String = Layout::initial(layout.ndim())?
        .letters()
        .filter(|known| !gone.iter().any(|axis| letter(*axis) == Some(*known)))
        .collect();
    let left: String = layout.letters().filter(|letter| kept.contains(*letter)).collect();
    let result = Layout::parse(&left).ok()?.relettered(&kept, Layout::initial(kept.len())?.text())?;
    Some(LaidOut::result(Laid::Tensor(result)).of("x", &layout).with("axis", axes_attr(&axes)))
}

/// Layout rule of `permute_dims`: the permutation is adapted to the stored order, and the result has the layout of its
/// type.
pub(super) fn permute_dims(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("x")?;
    let order = match call.call.ints("axes") {
        Some(axes) => normalize_axes(call.call, "axes", layout.ndim(), &axes).ok()?,
        None => (0..layout.ndim()).rev().collect(),
    };
    let axes = places(&layout, &order)?;
    Some(LaidOut::result(Laid::initial(call.result)).of("x", &layout).with("axes", axes_attr(&axes)))
}

/// Layout rule of `repeat` along an axis. Without an axis, elements are read in the order of the type, so the operand
/// keeps the layout of its type; TVM ignores this case.
pub(super) fn repeat(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("data")?;
    let axis = normalize_axis(call.call, "axis", layout.ndim(), call.call.int("axis")?).ok()?;
    let at = place(&layout, axis)?;
    Some(LaidOut::result(Laid::Tensor(layout.clone())).of("data", &layout).with("axis", axis_attr(at)))
}

/// Layout rule of `tile`: the repeat counts are permuted to the stored order of the axes. Counts of added leading axes
/// stay first.
pub(super) fn tile(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("data")?;
    let repeats = call.call.ints("repeats")?;
    let added = repeats.len().saturating_sub(layout.ndim());
    let (front, own) = repeats.split_at_checked(added)?;
    let lacking = layout.ndim().checked_sub(own.len())?;
    let along = |known: char| {
        let axis = Layout::initial(layout.ndim())?.axis_of(known)?;
        axis.checked_sub(lacking).map_or(Some(1), |at| own.get(at).copied())
    };
    let moved: Vec<i64> = layout.letters().map(along).collect::<Option<_>>()?;
    let repeats = front.iter().chain(&moved).map(|count| Attr::Int((*count).into())).collect();
    let result = with_new_last_axes(&layout, layout.ndim().checked_add(added)?)?;
    Some(LaidOut::result(Laid::Tensor(result)).of("data", &layout).with("repeats", Attr::List(repeats)))
}
