//! Value rules of operators that create tensors, and of triangular parts. For example, `arange(n)` is in `[0, n - 1]`
//! and attains both ends.

use crate::arguments::{Scalar, scalar};
use crate::values::range::hull;
use crate::values::{Operand, ValueCall, places};
use rx_base::symbolic::Answer;
use rx_base::{DType, Dim};
use rx_ir::values::MAX_ELEMENTS;
use rx_ir::{Elements, End, Shape, StructInfo, TensorValues, Values};

/// Value rule of `full` and `full_like`: one value everywhere.
pub(crate) fn full(call: &ValueCall<'_>) -> Option<Values> {
    call.known("fill_value")?;
    call.filled(&call.operand("fill_value"))
}

/// Value rule of `zeros` and `zeros_like`.
pub(crate) fn zeros(call: &ValueCall<'_>) -> Option<Values> {
    call.filled(&one_value(0))
}

/// Value rule of `ones` and `ones_like`.
pub(crate) fn ones(call: &ValueCall<'_>) -> Option<Values> {
    call.filled(&one_value(1))
}

fn one_value(value: i64) -> Operand {
    let end = Some(End::attained(value));
    Operand { elements: Some(Elements::Ints([value].into())), low: end.clone(), high: end, ..Operand::default() }
}

/// Value rule of `eye` and `eye_like`: 1 on a diagonal, 0 elsewhere.
pub(crate) fn eye(call: &ValueCall<'_>) -> Option<Values> {
    let diagonal = constant(call, "k");
    if let (Some(dims), Some(diagonal)) = (call.dims(), diagonal)
        && let [rows, columns] = dims[..]
    {
        let element = |row: usize, column: usize| i64::from(column as i64 - row as i64 == diagonal);
        let elements = (0..rows).flat_map(|row| (0..columns).map(move |column| element(row, column))).collect();
        return call.tensor(TensorValues::of(Elements::Ints(elements))?);
    }
    call.tensor(TensorValues::between(Some(End::stated(0)), Some(End::stated(1))))
}

fn constant(call: &ValueCall<'_>, param: &'static str) -> Option<i64> {
    match scalar(call.call, param) {
        Ok(Some(Scalar::Int(dim))) => dim.as_constant(),
        _ => None,
    }
}

/// Value rule of `arange`: `start`, `start + step`, ….
pub(crate) fn arange(call: &ValueCall<'_>) -> Option<Values> {
    let given = |param| scalar(call.call, param).ok().flatten();
    let (first, second) = (given("start")?, given("end"));
    let start = if second.is_some() { first } else { Scalar::Int(Dim::constant(0)) };
    let step = given("step").unwrap_or(Scalar::Int(Dim::constant(1)));
    let dtype = call.dtype()?;
    if let Some(elements) = arange_elements(call, &start, &step, dtype) {
        return call.tensor(TensorValues::of(elements)?);
    }
    let (Scalar::Int(start), Scalar::Int(step)) = (start, step) else { return None };
    let [count] = call.result.as_tensor()?.shape.dims()? else { return None };
    let last = &start + &(&(count - &Dim::constant(1)) * &step);
    let (first, last) = (Some(End::attained(start)), Some(End::attained(last)));
    call.tensor(match call.call.at_least(&step, &Dim::constant(0)) {
        Answer::Proved => TensorValues::between(first, last),
        Answer::Refuted => TensorValues::between(last, first),
        Answer::Open => return None,
    })
}

fn arange_elements(call: &ValueCall<'_>, start: &Scalar, step: &Scalar, dtype: DType) -> Option<Elements> {
    let count = *call.dims()?.first()?;
    match (start, step) {
        (Scalar::Int(start), Scalar::Int(step)) => {
            let (start, step) = (start.as_constant()?, step.as_constant()?);
            let element = |at: usize| start.checked_add(step.checked_mul(i64::try_from(at).ok()?)?);
            (0..count).map(element).collect::<Option<_>>().map(Elements::Ints)
        }
        // Rounding of general fractions depends on the kernel's order of operations. Multiples of a power of two, such
        // as halves, are exact.
        _ => {
            let whole = |scalar: &Scalar| match scalar {
                Scalar::Int(value) => value.as_constant().map(|value| value as f64),
                Scalar::Float(value) => Some(*value),
                Scalar::Unknown(_) => None,
            };
            let (start, step) = (whole(start)?, whole(step)?);
            let exact_as = |value: f64| value.fract() == 0.0 && value.abs() <= 16_777_216.0;
            let exact = |value: f64| exact_as(value) || dtype.is_float() && exact_as(value * 256.0);
            (exact(start) && exact(step)).then_some(())?;
            let element = |at: usize| Some(start + at as f64 * step).filter(|value| exact(*value));
            (0..count).map(element).collect::<Option<_>>().map(Elements::Floats)
        }
    }
}

/// Value rule of `tril` and `triu`: the elements of one side, 0 on the other.
pub(crate) fn triangle(call: &ValueCall<'_>) -> Option<Values> {
    call.known("x")?;
    let x = call.operand("x");
    let upper = call.call.schema.name == "triu";
    if let (Some(elements), Some(dims), Some(diagonal)) = (&x.elements, &x.dims, constant(call, "k")) {
        let mut kept = Vec::new();
        places(dims, dims, |at| {
            let (row, column) = (*at.get(at.len().checked_sub(2)?)?, *at.last()?);
            let offset = column as i64 - row as i64;
            kept.push(if upper { offset >= diagonal } else { offset <= diagonal });
            Some(at.to_vec())
        })?;
        return call.tensor(TensorValues::of(match elements {
            Elements::Ints(values) => Elements::Ints(masked(values, &kept, 0)),
            Elements::Floats(values) => Elements::Floats(masked(values, &kept, 0.0)),
        })?);
    }
    let zero = || Some(End::stated(0));
    call.either((x.low, x.high), (zero(), zero()))
}

fn masked<T: Copy>(values: &[T], kept: &[bool], other: T) -> std::sync::Arc<[T]> {
    values.iter().zip(kept).map(|(value, kept)| if *kept { *value } else { other }).collect()
}

/// Value rule of `shape_to_tensor`: the dims of a shape value.
pub(crate) fn shape_to_tensor(call: &ValueCall<'_>) -> Option<Values> {
    let StructInfo::Shape(Shape::Known(dims)) = call.call.ty("expr") else { return None };
    if dims.len() > MAX_ELEMENTS {
        return None;
    }
    if let Some(elements) = dims.iter().map(Dim::as_constant).collect::<Option<_>>() {
        return call.tensor(TensorValues::of(Elements::Ints(elements))?);
    }
    let ends = |dim: &Dim| (Some(End::attained(dim.clone())), Some(End::attained(dim.clone())));
    let (low, high) = dims.iter().map(ends).reduce(|a, b| hull(a, b, call.call.bounds))?;
    call.tensor(TensorValues::between(low, high))
}

/// Value rule of `size`: the number of elements.
pub(crate) fn size(call: &ValueCall<'_>) -> Option<Values> {
    let dims = call.call.ty("expr").as_tensor()?.shape.dims()?;
    let count = dims.iter().fold(Dim::constant(1), |count, dim| &count * dim);
    call.filled(&match count.as_constant() {
        Some(count) => one_value(count),
        None => {
            Operand { low: Some(End::attained(count.clone())), high: Some(End::attained(count)), ..Operand::default() }
        }
    })
}
