//! Elements in order, and their places: `sort`, `argsort`.

use super::pick;
use crate::axes::normalize_axis;
use crate::values::{Operand, ValueCall};
use rx_ir::{Elements, TensorValues, Values};
use std::cmp::Ordering;

/// `sort`: the same elements, in order where they are known.
pub(crate) fn sort(call: &ValueCall<'_>) -> Option<Values> {
    call.known("x")?;
    let x = call.operand("x");
    let places = order(call, &x).map(|order| order.places);
    call.moved(&x, false, places)
}

/// `argsort`: every place along the axis occurs; which one stands where is known of elements that differ.
pub(crate) fn argsort(call: &ValueCall<'_>) -> Option<Values> {
    let known = call.known("data").and_then(|_| order(call, &call.operand("data"))).filter(|order| !order.has_ties);
    match known {
        Some(order) => call.tensor(TensorValues::of(Elements::Ints(order.along.into()))?),
        None => pick::argsort(call),
    }
}

/// Where each element of a sorted tensor comes from.
struct Order {
    /// Its place among all elements.
    places: Vec<usize>,
    /// Its place along the axis.
    along: Vec<i64>,
    /// Whether two of one line are equal: which comes first is the kernel's to say.
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
    // A line starts at each place whose index along the axis is 0.
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

/// No float is a NaN.
fn compare(elements: &Elements, a: usize, b: usize) -> Ordering {
    match elements {
        Elements::Ints(values) => values.get(a).cmp(&values.get(b)),
        Elements::Floats(values) => values.get(a).partial_cmp(&values.get(b)).unwrap_or(Ordering::Equal),
    }
}
