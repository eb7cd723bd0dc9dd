//! *Layout inference of `concat`, `stack` and `split`* ([`super::join`]).
//!
//! ```text
//! concat((x, y), axis=1), x in "ACDB", y in "ABCD"  →  concat((x, y), axis=3), both and the result in "ACDB"
//! stack((x, y), axis=1), both in "BA"               →  stack(…, axis=0), result in "BCA"
//! ```
//!
//! Requires: the layouts of all tensors are known.
//! Guarantees: all joined tensors get the same layout.
//! Reference: TVM src/relax/op/tensor/manipulate.cc.

use crate::axes::normalize_axis;
use crate::infer_layout::{Laid, LaidOut, LayoutCall, axis_attr, letter, place};
use crate::layout::Layout;
use rx_ir::{Attr, StructInfo};

/// Returns the layouts of the joined tensors; `None` if one of them has none.
fn layouts<'a>(call: &LayoutCall<'a>) -> Option<Vec<&'a Layout>> {
    let Laid::Tuple(fields) = call.laid("tensors") else { return None };
    fields.iter().map(Laid::as_layout).collect()
}

/// Creates the decision that all `count` tensors have `layout` and the result has the layout `result`.
fn alike(count: usize, layout: Layout, result: Layout) -> LaidOut {
    let laid = Laid::Tuple(vec![Laid::Tensor(layout); count]);
    LaidOut::result(Laid::Tensor(result)).of_laid("tensors", laid)
}

/// Layout rule of `concat`. Uses the first layout that splits axes, if all tensors can have it. Otherwise uses the
/// first layout without split axes, or the layout of the type.
pub(super) fn concat(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layouts = layouts(call)?;
    let first = *layouts.first()?;
    let ndim = first.letters().count();
    let axis = match call.call.int("axis") {
        Some(axis) => normalize_axis(call.call, "axis", ndim, axis).ok()?,
        None if ndim == 1 => 0,
        None => return None,
    };
    let laid = |layout: &Layout| Laid::Tuple(vec![Laid::Tensor(layout.clone()); layouts.len()]);
    let suits = |layout: &&&Layout| laid(layout).suits(call.call.ty("tensors"));
    let layout = match layouts.iter().find(|layout| !layout.is_plain()) {
        Some(split) if suits(&split) => (*split).clone(),
        Some(_) => match layouts.iter().find(|layout| layout.is_plain()) {
            Some(whole) => (*whole).clone(),
            None => Layout::initial(ndim)?,
        },
        None => first.clone(),
    };
    let axis = place(&layout, axis)?;
    Some(alike(layouts.len(), layout.clone(), layout).with("axis", axis_attr(axis)))
}

/// Layout rule of `stack`. Uses the layout of the first tensor, without split axes. The new axis precedes axis `axis`
/// in the type, so it is inserted before the position of that axis in the layout.
pub(super) fn stack(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layouts = layouts(call)?;
    let first = *layouts.first()?;
    let ndim = first.letters().count();
    let layout = if first.is_plain() { first.clone() } else { Layout::initial(ndim)? };
    let axis = normalize_axis(call.call, "axis", ndim.checked_add(1)?, call.call.int("axis").unwrap_or(0)).ok()?;
    let at = place(&layout, axis).unwrap_or(ndim);
    let all = Layout::initial(ndim.checked_add(1)?)?;
    let new = letter(axis)?;
    let others: String = all.letters().filter(|letter| *letter != new).collect();
    let mut result: Vec<char> = layout.relettered(Layout::initial(ndim)?.text(), &others)?.letters().collect();
    result.insert(at, new);
    let result = Layout::parse(&result.into_iter().collect::<String>()).ok()?;
    Some(alike(layouts.len(), layout, result).with("axis", axis_attr(at)))
}

/// Layout rule of `split`. The parts have the layout of the operand, if all of them can.
pub(super) fn split(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let given = call.layout("x")?;
    let axis = normalize_axis(call.call, "axis", call.ndim("x")?, call.call.int("axis").unwrap_or(0)).ok()?;
    let StructInfo::Tuple(parts) = call.result else { return None };
    let laid = |layout: &Layout| Laid::Tuple(vec![Laid::Tensor(layout.clone()); parts.len()]);
    // Positions of cuts count elements, but the outer part of a split axis counts pieces.
    let counts_elements = matches!(call.call.attr("indices_or_sections"), Some(Attr::List(_)));
    let may_cut = letter(axis).is_some_and(|letter| given.factor_of(letter) == 1) || !counts_elements;
    let layout = if may_cut && laid(given).suits(call.result) { given.clone() } else { call.whole("x")? };
    let axis = place(&layout, axis)?;
    Some(LaidOut::result(laid(&layout)).of("x", &layout).with("axis", axis_attr(axis)))
}
