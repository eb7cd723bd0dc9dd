//! Value rules of operators that reorder, repeat or select elements of one tensor. For example, `flip` of the known
//! elements `[1, 2, 3]` has the elements `[3, 2, 1]`.

use crate::axes::{normalize_axes, normalize_axis};
use crate::tensor::slice::sliced_axes;
use crate::values::{Operand, ValueCall, broadcast_places, places};
use rx_ir::{TensorValues, Values};

/// Returns the operand that supplies the result's elements, if anything is known about it. Drops its dims if its
/// elements are unknown, since only known elements need positions.
fn source(call: &ValueCall<'_>) -> Option<Operand> {
    let param = call.call.schema.traits.kept?;
    call.known(param)?;
    let mut operand = call.operand(param);
    if operand.elements.is_none() {
        operand.dims = None;
    }
    Some(operand)
}

/// Value rule of operators that keep elements and their order: `reshape`, `squeeze`, `to_vdevice`.
pub(crate) fn same(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    let all = x.elements.as_ref().map(|elements| (0..elements.len()).collect());
    call.moved(&x, false, all)
}

/// Value rule of operators that return some of the elements, without tracking which.
pub(crate) fn some(call: &ValueCall<'_>) -> Option<Values> {
    call.moved(&source(call)?, true, None)
}

/// Value rule of operators that reorder all elements, without tracking the order: `reverse_sequence`.
pub(crate) fn reordered(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    call.moved(&x, false, None)
}

/// Value rule of `broadcast_to`.
pub(crate) fn broadcast(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    let places = call.dims().zip(x.dims.as_ref()).and_then(|(to, from)| broadcast_places(&to, from));
    call.moved(&x, false, places)
}

/// Value rule of `permute_dims`.
pub(crate) fn permute(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    let order = x.dims.as_ref().and_then(|dims| match call.call.ints("axes") {
        Some(axes) => normalize_axes(call.call, "axes", dims.len(), &axes).ok(),
        None => Some((0..dims.len()).rev().collect()),
    });
    let at_source = call.dims().zip(x.dims.as_ref()).zip(order).and_then(|((to, from), order)| {
        places(&to, from, |at| {
            let mut place = vec![0; from.len()];
            for (axis, index) in order.iter().zip(at) {
                *place.get_mut(*axis)? = *index;
            }
            Some(place)
        })
    });
    call.moved(&x, false, at_source)
}

/// Returns the source positions of the result, where `source` maps the index along one axis and `axis` is the
/// attribute's name.
fn along(
    call: &ValueCall<'_>,
    x: &Operand,
    axis: &'static str,
    source: impl Fn(usize, usize) -> usize,
) -> Option<Vec<usize>> {
    let (to, from) = (call.dims()?, x.dims.as_ref()?);
    let axis = normalize_axis(call.call, axis, from.len(), call.call.int(axis)?).ok()?;
    let extent = *from.get(axis)?;
    places(&to, from, |at| {
        let mut place = at.to_vec();
        let index = place.get_mut(axis)?;
        *index = source(*index, extent);
        Some(place)
    })
}

/// Value rule of `flip`.
pub(crate) fn flip(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    let places = along(call, &x, "axis", |index, extent| extent.saturating_sub(1 + index));
    call.moved(&x, false, places)
}

/// Value rule of `repeat`.
pub(crate) fn repeat(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    let repeats = usize::try_from(call.call.int("repeats")?).ok().filter(|repeats| *repeats > 0)?;
    let places = match call.call.attr("axis") {
        Some(_) => along(call, &x, "axis", |index, _| index / repeats),
        None => call.dims().map(|to| (0..to.iter().product()).map(|at: usize| at / repeats).collect()),
    };
    call.moved(&x, false, places)
}

/// Value rule of `tile`.
pub(crate) fn tile(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    let places = call.dims().zip(x.dims.as_ref()).and_then(|(to, from)| {
        let lead = to.len().checked_sub(from.len())?;
        places(&to, from, |at| at.iter().skip(lead).zip(from).map(|(at, extent)| at.checked_rem(*extent)).collect())
    });
    call.moved(&x, false, places)
}

/// Value rule of `strided_slice`.
pub(crate) fn strided_slice(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    let at_source = slice_places(call, &x);
    call.moved(&x, true, at_source)
}

fn slice_places(call: &ValueCall<'_>, x: &Operand) -> Option<Vec<usize>> {
    let (to, from) = (call.dims()?, x.dims.as_ref()?);
    let inbound = call.call.bool("assume_inbound") == Some(true);
    let mut steps: Vec<(i64, i64)> = vec![(0, 1); from.len()];
    for slice in sliced_axes(call.call).ok()? {
        let axis = normalize_axis(call.call, "axes", from.len(), slice.axis).ok()?;
        let extent = i64::try_from(*from.get(axis)?).ok()?;
        let (begin, stride) = (slice.begin.as_constant()?, slice.stride.as_constant()?);
        // The begin is counted from the front and clamped, as in the struct-info rule.
        let begin = match (inbound, stride > 0) {
            (true, _) => begin,
            (false, true) => if begin < 0 { begin.checked_add(extent)? } else { begin }.clamp(0, extent),
            (false, false) => if begin < 0 { begin.checked_add(extent)? } else { begin }.clamp(-1, extent - 1),
        };
        *steps.get_mut(axis)? = (begin, stride);
    }
    places(&to, from, |at| {
        let place = at.iter().zip(&steps).map(|(at, (begin, stride))| {
            usize::try_from(begin.checked_add(stride.checked_mul(i64::try_from(*at).ok()?)?)?).ok()
        });
        place.collect()
    })
}

/// Value rule of `split`: consecutive parts along an axis.
pub(crate) fn split(call: &ValueCall<'_>) -> Option<Values> {
    let x = source(call)?;
    let fields = call.result.as_tuple()?;
    let axis =
        x.dims.as_ref().and_then(|dims| normalize_axis(call.call, "axis", dims.len(), call.call.int("axis")?).ok());
    let mut start = 0;
    let parts = fields.iter().map(|field| {
        let dims = crate::values::constant_dims(field);
        let at_source = dims.zip(x.dims.as_ref()).zip(axis).and_then(|((to, from), axis)| {
            let first = start;
            start += to.get(axis)?;
            places(&to, from, |at| {
                let mut place = at.to_vec();
                *place.get_mut(axis)? += first;
                Some(place)
            })
        });
        x.moved(true, at_source).unwrap_or_else(TensorValues::default).into()
    });
    Values::tuple(parts.collect()).map(|values| Values::clone(&values))
}
