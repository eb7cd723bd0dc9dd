//! Value rules of unary operators, `clip`, `astype`, `where` and `ewise_fma`.

use super::binary::{is_positive, negated};
use crate::values::range::{cast_elements, higher_of, lower_of};
use crate::values::{Operand, ValueCall, broadcast_places, relation};
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim};
use rx_ir::values::Basis;
use rx_ir::{Elements, End, TensorValues, Values};

/// Value rule of the operators of table `elementwise`, except `clip`, selected by name.
pub(crate) fn unary(call: &ValueCall<'_>) -> Option<Values> {
    let name = call.call.schema.name;
    let range =
        |low: i64, high: i64| call.tensor(TensorValues::between(Some(End::stated(low)), Some(End::stated(high))));
    match name {
        "sigmoid" => return range(0, 1),
        "cos" | "sin" | "tanh" | "erf" => return range(-1, 1),
        "sign" if call.known("x").is_none() => return range(-1, 1),
        _ => {}
    }
    call.known("x")?;
    let x = call.operand("x");
    if let Some(elements) = &x.elements {
        let is_bool = call.dtype().is_some_and(|dtype| dtype.is_bool());
        let name = if is_bool && name == "bitwise_not" { "logical_not" } else { name };
        return call.tensor(TensorValues::of(of_elements(name, elements)?)?);
    }
    if !x.is_known() {
        return None;
    }
    call.tensor(match name {
        "negative" => {
            let Operand { low, high, .. } = negated(&x);
            TensorValues::between(low, high)
        }
        "abs" => absolute(&x, call.call.bounds),
        "sign" => sign(&x, call.call.bounds),
        "logical_not" | "bitwise_not" if call.dtype().is_some_and(DType::is_bool) => {
            let Operand { low, high, .. } = negated(&x);
            let one_more = |end: Option<End>| end.map(|end| End { value: &end.value + &Dim::constant(1), ..end });
            TensorValues::between(one_more(low), one_more(high))
        }
        // These functions are monotone and map integers to themselves, and the ends are integers.
        "floor" | "ceil" | "round" | "trunc" => TensorValues::between(x.low, x.high),
        _ => return None,
    })
}

fn of_elements(name: &str, elements: &Elements) -> Option<Elements> {
    Some(match elements {
        Elements::Ints(values) => {
            Elements::Ints(values.iter().map(|value| of_int(name, *value)).collect::<Option<_>>()?)
        }
        Elements::Floats(values) => {
            Elements::Floats(values.iter().map(|value| of_float(name, *value)).collect::<Option<_>>()?)
        }
    })
}

fn of_int(name: &str, value: i64) -> Option<i64> {
    match name {
        "abs" => value.checked_abs(),
        "negative" => value.checked_neg(),
        "sign" => Some(value.signum()),
        "square" => value.checked_mul(value),
        "bitwise_not" => Some(!value),
        "floor" | "ceil" | "round" | "trunc" => Some(value),
        "logical_not" => Some(i64::from(value == 0)),
        _ => None,
    }
}

fn of_float(name: &str, value: f64) -> Option<f64> {
    match name {
        "abs" => Some(value.abs()),
        "negative" => Some(-value),
        "sign" => Some(if value > 0.0 {
            1.0
        } else if value < 0.0 {
            -1.0
        } else {
            0.0
        }),
        "square" => Some(value * value),
        "sqrt" => Some(value.sqrt()),
        "floor" => Some(value.floor()),
        "ceil" => Some(value.ceil()),
        "round" => Some(value.round_ties_even()),
        "trunc" => Some(value.trunc()),
        _ => None,
    }
}

/// Returns the range of the sign, -1, 0 or 1, as far as the ends of `x` determine it.
fn sign(x: &Operand, bounds: &Bounds) -> TensorValues {
    let least = |x: &Operand| match (is_positive(x, 1, bounds), is_positive(x, 0, bounds)) {
        (true, _) => 1,
        (_, true) => 0,
        _ => -1,
    };
    TensorValues::between(Some(End::stated(least(x))), Some(End::stated(-least(&negated(x)))))
}

fn absolute(x: &Operand, bounds: &Bounds) -> TensorValues {
    if is_positive(x, 0, bounds) {
        return TensorValues::between(x.low.clone(), x.high.clone());
    }
    let other = negated(x);
    let high = x.high.clone().zip(other.high).map(|(a, b)| higher_of(a, b, bounds));
    TensorValues::between(Some(End::stated(0)), high)
}

/// Value rule of `relu`: `max(x, 0)`.
pub(crate) fn relu(call: &ValueCall<'_>) -> Option<Values> {
    let param = call.call.schema.params.first()?.name;
    call.known(param)?;
    let zero = Operand { low: Some(End::attained(0)), high: Some(End::attained(0)), ..Operand::default() };
    limited(call, &call.operand(param), Some(&zero), None)
}

/// Value rule of `clip`, `max(min(x, max), min)`. The bounds limit the result even if nothing is known about `x`.
pub(crate) fn clip(call: &ValueCall<'_>) -> Option<Values> {
    limited(call, &call.operand("x"), Some(&call.operand("min")), Some(&call.operand("max")))
}

fn limited(call: &ValueCall<'_>, x: &Operand, min: Option<&Operand>, max: Option<&Operand>) -> Option<Values> {
    let bound = |operand: Option<&Operand>| operand.and_then(|operand| operand.elements.clone());
    let constant = |operand: Option<&Operand>| operand.is_none_or(|operand| operand.elements.is_some());
    if let (Some(elements), true, true) = (&x.elements, constant(min), constant(max))
        && let Some(elements) = limit_elements(elements, bound(min).as_ref(), bound(max).as_ref())
    {
        return call.tensor(TensorValues::of(elements)?);
    }
    let bounds = call.call.bounds;
    let at = |operand: Option<&Operand>, pick: fn(&Operand) -> &Option<End>| {
        operand.and_then(|operand| pick(operand).clone()).map(|end| end.at_most(end_basis(operand)))
    };
    let (least, most) = (at(min, |operand| &operand.low), at(max, |operand| &operand.high));
    let below = |end: Option<End>| match (end, most.clone()) {
        (Some(end), Some(most)) => Some(lower_of(end, most, bounds)),
        (one, other) => one.or(other),
    };
    let above = |end: Option<End>| match (end, least.clone()) {
        (Some(end), Some(least)) => Some(higher_of(end, least, bounds)),
        (one, other) => one.or(other),
    };
    // If an end of `x` is unknown, the result's lower end is that of `min`, and its upper end that of `max`.
    let low = x.low.clone().map_or(least.clone(), |low| above(below(Some(low))));
    let high = match (x.high.clone(), most.clone()) {
        (None, None) => None,
        (high, _) => above(below(high)),
    };
    call.tensor(TensorValues::between(low, high))
}

/// Returns the basis of a bound. A bound that is the same everywhere may be attained.
fn end_basis(operand: Option<&Operand>) -> Basis {
    match operand.and_then(|operand| operand.elements.as_ref()) {
        // A fractional bound is not attained by an integer.
        Some(Elements::Floats(values)) if values.iter().any(|value| value.fract() != 0.0) => Basis::Loose,
        _ => Basis::Stated,
    }
}

fn limit_elements(x: &Elements, min: Option<&Elements>, max: Option<&Elements>) -> Option<Elements> {
    let float = |bound: Option<&Elements>, default: f64| match bound {
        None => Some(default),
        Some(Elements::Ints(values)) => values.first().map(|value| *value as f64),
        Some(Elements::Floats(values)) => values.first().copied(),
    };
    let (low, high) = (float(min, f64::NEG_INFINITY)?, float(max, f64::INFINITY)?);
    Some(match x {
        Elements::Floats(values) => Elements::Floats(values.iter().map(|value| value.min(high).max(low)).collect()),
        Elements::Ints(values) => {
            // Integers are limited by the nearest integers inside the bounds.
            let (low, high) = (low.ceil(), high.floor());
            let exact = |bound: f64| bound.is_infinite() || bound.abs() <= 9_007_199_254_740_992.0;
            (exact(low) && exact(high)).then_some(())?;
            let (low, high) = (low as i64, high as i64);
            Elements::Ints(values.iter().map(|value| (*value).min(high).max(low)).collect())
        }
    })
}

/// Value rule of `astype` and `wrap_param`.
pub(crate) fn cast(call: &ValueCall<'_>) -> Option<Values> {
    let param = call.call.schema.traits.kept?;
    let x = call.operand(param);
    let dtype = call.dtype()?;
    if let Some(elements) = &x.elements {
        return call.tensor(TensorValues::of(cast_elements(elements, dtype)?)?);
    }
    // The range of a narrow dtype also holds after a conversion to a wider one.
    let is_small = x.dtype.is_some_and(|dtype| dtype.bits <= 16);
    if dtype.is_bool() || !x.is_known() && !is_small {
        return None;
    }
    call.tensor(TensorValues::between(x.low, x.high))
}

/// Value rule of `where`: elements of both branches, each restricted by the condition.
pub(crate) fn choose(call: &ValueCall<'_>) -> Option<Values> {
    let (a, b) = (call.operand("x1"), call.operand("x2"));
    let condition = call.operand("condition");
    if !a.is_known() && !b.is_known() && !condition.is_known() && call.known("condition").is_none() {
        return None;
    }
    if let (Some(dims), Some(Elements::Ints(chosen))) = (call.dims(), &condition.elements)
        && let Some(places) = broadcast_places(&dims, condition.dims.as_ref()?)
    {
        let spread =
            |operand: &Operand| operand.elements.as_ref()?.pick(&broadcast_places(&dims, operand.dims.as_ref()?)?);
        let chosen: Option<Vec<bool>> =
            places.iter().map(|place| chosen.get(*place).map(|value| *value != 0)).collect();
        let elements = match (spread(&a), spread(&b), chosen) {
            (Some(Elements::Ints(a)), Some(Elements::Ints(b)), Some(chosen)) => {
                Some(Elements::Ints(mix(&chosen, &a, &b)))
            }
            (Some(Elements::Floats(a)), Some(Elements::Floats(b)), Some(chosen)) => {
                Some(Elements::Floats(mix(&chosen, &a, &b)))
            }
            _ => None,
        };
        if let Some(elements) = elements {
            return call.tensor(TensorValues::of(elements)?);
        }
    }
    let always = condition.single().and_then(Dim::as_constant).map(|value| value != 0);
    let a = relation::chosen(call, "x1", "condition", true).filter(|_| always != Some(false));
    let b = relation::chosen(call, "x2", "condition", false).filter(|_| always != Some(true));
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (Some(only), None) | (None, Some(only)) => {
            let places = call.dims().zip(only.dims.as_ref()).and_then(|(to, from)| broadcast_places(&to, from));
            return call.moved(&only, false, places);
        }
        (None, None) => return None,
    };
    call.either((a.low, a.high), (b.low, b.high))
}

fn mix<T: Copy>(chosen: &[bool], a: &[T], b: &[T]) -> std::sync::Arc<[T]> {
    chosen.iter().zip(a.iter().zip(b)).map(|(first, (a, b))| if *first { *a } else { *b }).collect()
}

/// Value rule of operators with results from 0 to 1.
pub(crate) fn probabilities(call: &ValueCall<'_>) -> Option<Values> {
    call.tensor(TensorValues::between(Some(End::stated(Dim::constant(0))), Some(End::stated(Dim::constant(1)))))
}
