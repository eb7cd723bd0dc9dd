//! Value rules of reductions and scans.

use crate::axes::{normalize_axes, normalize_axis};
use crate::values::{Operand, ValueCall, places};
use rx_base::Dim;
use rx_base::symbolic::Answer;
use rx_ir::values::Basis;
use rx_ir::{Elements, End, TensorValues, Values};

/// Value rule of reductions: the result of `max` and `min` has elements of the input; `sum` and `prod` are computed
/// from known elements.
pub(crate) fn reduction(call: &ValueCall<'_>) -> Option<Values> {
    call.known("x")?;
    let x = call.operand("x");
    let name = call.call.schema.name;
    if let Some(elements) = reduced(call, &x, name) {
        return call.tensor(TensorValues::of(elements)?);
    }
    if !x.is_known() || !matches!(name, "max" | "min" | "mean" | "median") {
        return None;
    }
    // The maximum over all elements is also the maximum of its row, so it is attained.
    let end = |end: &Option<End>, kept: bool| {
        end.clone().map(|end| end.at_most(if kept { Basis::Attained } else { Basis::Stated }))
    };
    call.tensor(TensorValues::between(end(&x.low, name == "min"), end(&x.high, name == "max")))
}

fn reduced(call: &ValueCall<'_>, x: &Operand, name: &str) -> Option<Elements> {
    let combine: fn(i64, i64) -> Option<i64> = match name {
        "max" => |a, b| Some(a.max(b)),
        "min" => |a, b| Some(a.min(b)),
        "sum" => i64::checked_add,
        "prod" => i64::checked_mul,
        _ => return None,
    };
    let (Some(Elements::Ints(values)), Some(from)) = (&x.elements, &x.dims) else { return None };
    let is_reduced: Vec<bool> = match call.call.ints("axis") {
        None => vec![true; from.len()],
        Some(axes) => {
            let axes = normalize_axes(call.call, "axis", from.len(), &axes).ok()?;
            (0..from.len()).map(|axis| axes.contains(&axis)).collect()
        }
    };
    let to: Vec<usize> =
        from.iter().zip(&is_reduced).map(|(extent, reduced)| if *reduced { 1 } else { *extent }).collect();
    let target = places(from, &to, |at| {
        Some(at.iter().zip(&is_reduced).map(|(at, reduced)| if *reduced { 0 } else { *at }).collect())
    })?;
    let mut result: Vec<Option<i64>> = vec![None; to.iter().product()];
    for (value, place) in values.iter().zip(target) {
        let slot = result.get_mut(place)?;
        *slot = Some(match slot {
            None => *value,
            Some(old) => combine(*old, *value)?,
        });
    }
    result.into_iter().collect::<Option<_>>().map(Elements::Ints)
}

/// Value rule of `cumsum` and `cumprod` of integers.
pub(crate) fn scan(call: &ValueCall<'_>) -> Option<Values> {
    call.known("data")?;
    let data = call.operand("data");
    let exclusive = call.call.bool("exclusive") == Some(true);
    let is_sum = call.call.schema.name == "cumsum";
    if let Some(elements) = scanned(call, &data, exclusive, is_sum) {
        return call.tensor(TensorValues::of(elements)?);
    }
    is_sum.then(|| sums(call, &data, exclusive)).flatten()
}

/// Computes the scan of known elements along the axis, or over all elements if there is no axis.
fn scanned(call: &ValueCall<'_>, data: &Operand, exclusive: bool, is_sum: bool) -> Option<Elements> {
    let (Some(Elements::Ints(values)), Some(dims)) = (&data.elements, &data.dims) else { return None };
    let (inner, extent): (usize, usize) = match call.call.int("axis") {
        None => (1, values.len()),
        Some(axis) => {
            let axis = normalize_axis(call.call, "axis", dims.len(), axis).ok()?;
            (dims.iter().skip(axis + 1).product(), *dims.get(axis)?)
        }
    };
    let mut result = values.to_vec();
    let neutral = i64::from(!is_sum);
    for (at, value) in values.iter().enumerate() {
        let along = at.checked_div(inner)?.checked_rem(extent)?;
        let before = match along {
            0 => neutral,
            _ => {
                let previous = at - inner;
                // INVARIANT: a position that is not the first along the axis has a predecessor `inner` positions before
                // it.
                let own = if exclusive { values[previous] } else { neutral };
                if is_sum { result[previous].checked_add(own)? } else { result[previous].checked_mul(own)? }
            }
        };
        result[at] = match (exclusive, is_sum) {
            (true, _) => before,
            (false, true) => before.checked_add(*value)?,
            (false, false) => before.checked_mul(*value)?,
        };
    }
    Some(Elements::Ints(result.into()))
}

/// Returns the range of a cumulative sum of elements that are not negative: the sums grow along the axis.
fn sums(call: &ValueCall<'_>, data: &Operand, exclusive: bool) -> Option<Values> {
    if call.dtype().is_none_or(|dtype| !dtype.is_int()) {
        return None;
    }
    let dims = call.call.ty("data").as_tensor()?.shape.dims()?;
    let extent = match call.call.int("axis") {
        None => crate::tensor::operands::element_count(dims),
        Some(axis) => dims.get(normalize_axis(call.call, "axis", dims.len(), axis).ok()?)?.clone(),
    };
    let (low, high) = (data.low.as_ref()?, data.high.as_ref()?);
    if low.value.is_error() || call.call.at_least(&low.value, &Dim::constant(0)) != Answer::Proved {
        return None;
    }
    let last = if exclusive { &extent - &Dim::constant(1) } else { extent };
    let most = &high.value * &last;
    let least = if exclusive { Dim::constant(0) } else { low.value.clone() };
    let basis = if data.single().is_some() { low.basis.min(high.basis) } else { Basis::Loose };
    call.tensor(TensorValues::between(Some(End { value: least, basis }), Some(End { value: most, basis })))
}
