//! Value rules of operators that combine several tensors: `concat`, `stack`, `meshgrid`, and scatter operators.

use crate::axes::normalize_axis;
use crate::values::range::hull;
use crate::values::{Operand, ValueCall, places};
use rx_base::Dim;
use rx_base::symbolic::Answer;
use rx_ir::values::Basis;
use rx_ir::{Elements, End, StructInfo, TensorValues, Values};

/// Value rule of `concat` and `stack`.
pub(crate) fn joined(call: &ValueCall<'_>) -> Option<Values> {
    call.known("tensors")?;
    let tensors = call.tuple("tensors");
    if let Some(elements) = joined_elements(call, &tensors) {
        return call.tensor(TensorValues::of(elements)?);
    }
    ends_of_all(call, &tensors, &tensor_types(call))
}

fn tensor_types<'a>(call: &ValueCall<'a>) -> Vec<&'a StructInfo> {
    match call.call.ty("tensors") {
        StructInfo::Tuple(fields) => fields.iter().collect(),
        ty => vec![ty],
    }
}

/// Returns the hull of all tensors' ranges. An end counts as attained only if its tensor is not empty.
fn ends_of_all(call: &ValueCall<'_>, tensors: &[Operand], types: &[&StructInfo]) -> Option<Values> {
    let one = Dim::constant(1);
    let has_elements = |ty: &&StructInfo| {
        let dims = ty.as_tensor().and_then(|tensor| tensor.shape.dims());
        dims.is_some_and(|dims| dims.iter().all(|dim| call.call.at_least(dim, &one) == Answer::Proved))
    };
    let ends = tensors.iter().zip(types).map(|(tensor, ty)| {
        let basis = if has_elements(ty) { Basis::Attained } else { Basis::Stated };
        let end = |end: &Option<End>| end.clone().map(|end| end.at_most(basis));
        (end(&tensor.low), end(&tensor.high))
    });
    let (low, high) = ends.reduce(|a, b| hull(a, b, call.call.bounds))?;
    call.tensor(TensorValues::between(low, high))
}

fn joined_elements(call: &ValueCall<'_>, tensors: &[Operand]) -> Option<Elements> {
    let to = call.dims()?;
    let axis = normalize_axis(call.call, "axis", to.len(), call.call.int("axis").unwrap_or(0)).ok()?;
    let is_stack = call.call.schema.name == "stack";
    // For each position of the joined axis: the tensor that supplies it, and the position within that tensor.
    let mut owners: Vec<(usize, usize)> = Vec::new();
    for (at, tensor) in tensors.iter().enumerate() {
        tensor.elements.as_ref()?;
        let length = if is_stack { 1 } else { *tensor.dims.as_ref()?.get(axis)? };
        owners.extend((0..length).map(|place| (at, place)));
    }
    let mut picked = Vec::new();
    places(&to, &to, |at| {
        let (owner, place) = *owners.get(*at.get(axis)?)?;
        let dims = tensors.get(owner)?.dims.as_ref()?;
        let mut source = at.to_vec();
        if is_stack {
            source.remove(axis);
        } else {
            *source.get_mut(axis)? = place;
        }
        let linear = source.iter().zip(dims).fold(0, |linear, (place, extent)| linear * extent + place);
        picked.push((owner, linear));
        Some(at.to_vec())
    })?;
    let ints = |(owner, place): &(usize, usize)| match tensors.get(*owner)?.elements.as_ref()? {
        Elements::Ints(values) => values.get(*place).copied(),
        Elements::Floats(_) => None,
    };
    if let Some(all) = picked.iter().map(ints).collect::<Option<_>>() {
        return Some(Elements::Ints(all));
    }
    let floats = |(owner, place): &(usize, usize)| match tensors.get(*owner)?.elements.as_ref()? {
        Elements::Floats(values) => values.get(*place).copied(),
        Elements::Ints(_) => None,
    };
    picked.iter().map(floats).collect::<Option<_>>().map(Elements::Floats)
}

/// Value rule of `meshgrid`: each result holds the elements of one operand.
pub(crate) fn meshgrid(call: &ValueCall<'_>) -> Option<Values> {
    call.known("tensors")?;
    let grids = call.tuple("tensors").into_iter().map(|tensor| tensor.moved(false, None).unwrap_or_default().into());
    Values::tuple(grids.collect()).map(|values| Values::clone(&values))
}

/// Value rule of `scatter_elements`, `scatter_nd`, `index_put` and `slice_scatter`: the result has elements of the data
/// and of the updates, and each of them may be overwritten.
pub(crate) fn overwritten(call: &ValueCall<'_>) -> Option<Values> {
    let [data, updates] = match call.call.schema.name {
        "slice_scatter" => ["input_tensor", "src"],
        "index_put" => ["data", "values"],
        _ => ["data", "updates"],
    };
    let combines = match call.call.schema.name {
        "slice_scatter" => false,
        "index_put" => call.call.bool("accumulate") == Some(true),
        _ => call.call.str("reduction").is_some_and(|reduction| !matches!(reduction, "update" | "min" | "max")),
    };
    if combines || call.known(data).is_none() || call.known(updates).is_none() {
        return None;
    }
    if let Some(elements) = scattered(call) {
        return call.tensor(TensorValues::of(elements)?);
    }
    let (data, updates) = (call.operand(data), call.operand(updates));
    call.either((data.low, data.high), (updates.low, updates.high))
}

/// Returns the result of `scatter_elements` on known integers. Returns `None` if two updates have the same target,
/// since their order depends on the kernel.
fn scattered(call: &ValueCall<'_>) -> Option<Elements> {
    let is_update = || call.call.str("reduction").is_none_or(|reduction| reduction == "update");
    (call.call.schema.name == "scatter_elements" && is_update()).then_some(())?;
    let ints = |param| match call.operand(param) {
        Operand { elements: Some(Elements::Ints(values)), dims: Some(dims), .. } => Some((values, dims)),
        _ => None,
    };
    let ((data, to), (indices, from), (updates, of_updates)) = (ints("data")?, ints("indices")?, ints("updates")?);
    let axis = normalize_axis(call.call, "axis", to.len(), call.call.int("axis").unwrap_or(0)).ok()?;
    let extent = i64::try_from(*to.get(axis)?).ok()?;
    (from == of_updates).then_some(())?;
    let mut left = indices.iter();
    let targets = places(&from, &to, |at| {
        let index = *left.next()?;
        let mut place = at.to_vec();
        *place.get_mut(axis)? = usize::try_from(if index < 0 { index + extent } else { index }).ok()?;
        Some(place)
    })?;
    let mut result = data.to_vec();
    let mut written = vec![false; result.len()];
    for (place, value) in targets.into_iter().zip(updates.iter()) {
        *result.get_mut(place)? = *value;
        if std::mem::replace(written.get_mut(place)?, true) {
            return None;
        }
    }
    Some(Elements::Ints(result.into()))
}
