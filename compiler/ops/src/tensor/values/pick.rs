//! Value rules of operators that pick elements by indices, and of operators that return indices. For example, `argmax`
//! along an axis of extent `n` is in `[0, n - 1]`.

use crate::axes::normalize_axis;
use crate::tensor::operands::{element_count, integer_value};
use crate::values::range::indices_of;
use crate::values::{Operand, ValueCall, constant_dims, places};
use rx_base::Dim;
use rx_base::symbolic::Answer;
use rx_ir::values::Basis;
use rx_ir::{Elements, End, Known, TensorValues, Values};

/// Returns the dims of the tensor passed for `param`.
fn dims<'a>(call: &ValueCall<'a>, param: &str) -> Option<&'a [Dim]> {
    call.call.ty(param).as_tensor()?.shape.dims()
}

/// Returns the extent of the axis that attribute `axis` names.
fn extent<'a>(call: &ValueCall<'a>, param: &str, default: i64) -> Option<&'a Dim> {
    let dims = dims(call, param)?;
    let axis = call.call.int("axis").unwrap_or(default);
    dims.get(normalize_axis(call.call, "axis", dims.len(), axis).ok()?)
}

/// Value rule of `argmax` and `argmin`: an index along the axis, or into the flattened input.
pub(crate) fn arg_extremum(call: &ValueCall<'_>) -> Option<Values> {
    let searched = match call.call.attr("axis") {
        Some(_) => extent(call, "x", 0)?.clone(),
        None => element_count(dims(call, "x")?),
    };
    call.tensor(indices_of(&searched, Basis::Stated))
}

/// Value rule of `argsort`: every index along the axis occurs.
pub(crate) fn argsort(call: &ValueCall<'_>) -> Option<Values> {
    call.tensor(indices_of(extent(call, "data", -1)?, Basis::Attained))
}

/// Value rule of `topk`: elements, and indices along the axis. All of them occur if `k` is the whole axis.
pub(crate) fn topk(call: &ValueCall<'_>) -> Option<Values> {
    let extent = extent(call, "data", -1);
    let count = call.call.int("k").unwrap_or(1);
    let all =
        extent.is_some_and(|extent| count < 1 || call.call.at_least(&Dim::constant(count), extent) == Answer::Proved);
    let basis = if all { Basis::Attained } else { Basis::Stated };
    let indices = || extent.map(|extent| indices_of(extent, basis)).unwrap_or_default();
    let values = || call.operand("data").moved(true, None).unwrap_or_default();
    match call.call.str("ret_type").unwrap_or("both") {
        "values" => call.tensor(values()),
        "indices" => call.tensor(indices()),
        _ => pair(values().into(), indices().into()),
    }
}

fn pair(first: Known, second: Known) -> Option<Values> {
    Values::tuple(vec![first, second]).map(|values| Values::clone(&values))
}

/// Value rule of `median` over one axis: the medians and their indices.
pub(crate) fn median(call: &ValueCall<'_>) -> Option<Values> {
    call.result.as_tuple()?;
    let dims = dims(call, "x")?;
    let [axis] = call.call.ints("axis")?[..] else { return None };
    let extent = dims.get(normalize_axis(call.call, "axis", dims.len(), axis).ok()?)?;
    pair(None, indices_of(extent, Basis::Stated).into())
}

/// Value rule of `bucketize`: from 0 to the number of boundaries.
pub(crate) fn bucketize(call: &ValueCall<'_>) -> Option<Values> {
    let [count] = dims(call, "boundaries")? else { return None };
    call.tensor(TensorValues::between(Some(End::stated(0)), Some(End::stated(count.clone()))))
}

/// Value rule of `nonzero`: indices along each axis.
pub(crate) fn nonzero(call: &ValueCall<'_>) -> Option<Values> {
    let longest = dims(call, "x")?.iter().cloned().reduce(|a, b| a.maximum(&b))?;
    call.tensor(indices_of(&longest, Basis::Stated))
}

/// Value rule of `unique`: all values of the input, then, if requested, indices into the input, indices into the unique
/// values, and counts.
pub(crate) fn unique(call: &ValueCall<'_>) -> Option<Values> {
    let values: Known = call.operand("x").moved(false, None).unwrap_or_default().into();
    if call.result.as_tuple().is_none() {
        return values.map(|values| Values::clone(&values));
    }
    let is_set = |name: &str| {
        call.call
            .operand(name)
            .and_then(integer_value)
            .and_then(|value| value.as_constant())
            .is_some_and(|flag| flag != 0)
            || call.call.bool(name) == Some(true)
    };
    let count = match call.call.operand("axis") {
        None => dims(call, "x").map(element_count),
        Some(axis) => integer_value(axis).and_then(|axis| {
            let dims = dims(call, "x")?;
            dims.get(normalize_axis(call.call, "axis", dims.len(), axis.as_constant()?).ok()?).cloned()
        }),
    };
    let places = || count.as_ref().map(|count| indices_of(count, Basis::Stated)).unwrap_or_default();
    let counts = || TensorValues::between(Some(End::stated(1)), count.clone().map(End::stated));
    let mut fields = vec![values];
    for name in ["return_index", "return_inverse", "return_counts"] {
        if is_set(name) {
            fields.push(if name == "return_counts" { counts() } else { places() }.into());
        }
    }
    Values::tuple(fields).map(|values| Values::clone(&values))
}

/// Value rule of `multinomial_from_uniform`: the index of a class.
pub(crate) fn multinomial(call: &ValueCall<'_>) -> Option<Values> {
    call.tensor(indices_of(dims(call, "prob")?.last()?, Basis::Stated))
}

/// Value rule of `one_hot`: the on and off values.
pub(crate) fn one_hot(call: &ValueCall<'_>) -> Option<Values> {
    let (on, off) = (call.operand("on_value"), call.operand("off_value"));
    call.either((on.low, on.high), (off.low, off.high))
}

/// Value rule of `take`: the picked elements if indices and data are known, otherwise a subset of the data.
pub(crate) fn take(call: &ValueCall<'_>) -> Option<Values> {
    call.known("x")?;
    let x = call.operand("x");
    // Mode `nan` also produces NaN, which value analysis ignores.
    let picked = take_places(call, &x);
    call.moved(&x, true, picked)
}

fn take_places(call: &ValueCall<'_>, x: &Operand) -> Option<Vec<usize>> {
    x.elements.as_ref()?;
    let (to, from) = (call.dims()?, x.dims.as_ref()?);
    let axis = normalize_axis(call.call, "axis", from.len(), call.call.int("axis").unwrap_or(0)).ok()?;
    let indices = call.operand("indices");
    let Some(Elements::Ints(index)) = &indices.elements else { return None };
    let index_dims = constant_dims(call.call.ty("indices")).unwrap_or_default();
    let extent = i64::try_from(*from.get(axis)?).ok()?;
    let mode = call.call.str("mode").unwrap_or("fast");
    places(&to, from, |at| {
        let (before, rest) = at.split_at_checked(axis)?;
        let (picked, after) = rest.split_at_checked(index_dims.len())?;
        let linear = picked.iter().zip(&index_dims).fold(0, |linear, (place, extent)| linear * extent + place);
        let place = *index.get(linear)?;
        let place = match mode {
            "clip" => place.min(extent - 1).max(0),
            "wrap" => place.checked_rem_euclid(extent)?,
            _ => place,
        };
        Some([before, &[usize::try_from(place).ok()?], after].concat())
    })
}

/// Value rule of `gather_elements`, like [`take`].
pub(crate) fn gather_elements(call: &ValueCall<'_>) -> Option<Values> {
    call.known("data")?;
    let data = call.operand("data");
    let picked = gather_places(call, &data);
    call.moved(&data, true, picked)
}

fn gather_places(call: &ValueCall<'_>, data: &Operand) -> Option<Vec<usize>> {
    data.elements.as_ref()?;
    let (to, from) = (call.dims()?, data.dims.as_ref()?);
    let axis = normalize_axis(call.call, "axis", from.len(), call.call.int("axis").unwrap_or(0)).ok()?;
    let indices = call.operand("indices");
    let Some(Elements::Ints(index)) = &indices.elements else { return None };
    let mut next = index.iter();
    places(&to, from, |at| {
        let mut place = at.to_vec();
        *place.get_mut(axis)? = usize::try_from(*next.next()?).ok()?;
        Some(place)
    })
}
