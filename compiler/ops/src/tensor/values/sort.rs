//! Value rules of `sort` and `argsort`.

use super::pick;
use crate::axes::normalize_axis;
use crate::values::{Operand, ValueCall};
use rx_ir::{Elements, TensorValues, Values};
use std::cmp::Ordering;

/// Value rule of `sort`: the same elements, in order if they are known.
pub(crate) fn sort(call: &ValueCall<'_>) -> Option<Values> {
    call.known("x")?;
    let x = call.operand("x");
    let places = order(call, &x).map(|order| order.places);
    call.moved(&x, false, places)
}

/// Value rule of `argsort`: every index along the axis occurs. The exact indices are known if no two elements are
/// equal.
pub(crate) fn argsort(call: &ValueCall<'_>) -> Option<Values> {
    let known = call.known("data").and_then(|_| order(call, &call.operand("data"))).filter(|order| !order.has_ties);
    match known {
        Some(order) => call.tensor(TensorValues::of(Elements::Ints(order.along.into()))?),
        None => pick::argsort(call),
    }
}

/// The source of each element of a sorted tensor.
struct Order {
    /// The row-major position in the operand.
    places: Vec<usize>,
    /// The index along the axis.
    along: Vec<i64>,
    /// Whether two elements of one row are equal; their order then depends on the kernel.
    has_ties: bool,
}

fn order(call: &ValueCall<'_>, x: &Operand) -> Option<Order> {
    let (elements, dims) = (x.elements.as_ref()?, x.dims.as_ref()?);
    let axis = normalize_axis(call.call, "axis", dims.len(), call.call.int("axis").unwrap_or(-1)).ok()?;
    let extent = *dims.get(axis)?;
    let inner: usize = dims.iter().skip(axis + 1).product();
    let descending = call.call.bool("descending").unwrap_or(false);
    let count = elements.len();
    let mut found = Order { places: vec![0; count], along: vec![0; count], has_ties: false };
    // A row begins at each position whose index along the axis is 0.
    for start in (0..count).filter(|place| (place / inner.max(1)).is_multiple_of(extent.max(1))) {
        let mut line: Vec<usize> = (0..extent).map(|at| start + at * inner).collect();
        let mut ties = false;
        line.sort_by(|a, b| {
            let order = compare(elements, *a, *b);
            ties |= order == Ordering::Equal;
            if descending { order.reverse() } else { order }
        });
        found.has_ties |= ties;
        for (at, place) in line.into_iter().enumerate() {
            *found.places.get_mut(start + at * inner)? = place;
            *found.along.get_mut(start + at * inner)? = i64::try_from((place - start) / inner.max(1)).ok()?;
        }
    }
    Some(found)
}

/// Compares two elements; value analysis has no NaN.
fn compare(elements: &Elements, a: usize, b: usize) -> Ordering {
    match elements {
        Elements::Ints(values) => values.get(a).cmp(&values.get(b)),
        Elements::Floats(values) => values.get(a).partial_cmp(&values.get(b)).unwrap_or(Ordering::Equal),
    }
}
