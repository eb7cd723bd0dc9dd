//! Value rules of binary operators: exact elements if both operands' elements are known, otherwise ranges. For example,
//! `x + y` for `x` in `[0, n - 1]` and `y` in `[1, 2]` is in `[1, n + 1]`.

use crate::values::range::{higher_of, lower_of};
use crate::values::{Operand, ValueCall, broadcast_places};
use rx_base::symbolic::prove::at_least;
use rx_base::symbolic::{Answer, Bounds};
use rx_base::{DType, Dim};
use rx_ir::values::Basis;
use rx_ir::{Elements, End, TensorValues, Values};

/// Value rule of the operators of table `binary`, selected by name.
pub(crate) fn binary(call: &ValueCall<'_>) -> Option<Values> {
    let name = call.call.schema.name;
    let known = |param| call.known(param).is_some();
    if !known("x1") && !known("x2") && !limits_alone(name) {
        return None;
    }
    let (left, right) = (call.operand("x1"), call.operand("x2"));
    if !left.is_known() && !right.is_known() {
        return None;
    }
    if let Some(elements) = elements(call, name, &left, &right) {
        return call.tensor(TensorValues::of(elements)?);
    }
    let bounds = call.call.bounds;
    let is_int = call.dtype().is_some_and(DType::is_int);
    call.tensor(match name {
        "add" => add(&left, &right),
        "subtract" => add(&left, &negated(&right)),
        "multiply" => multiply(&left, &right, bounds)?,
        "floor_divide" => divide(&left, &right, bounds)?,
        // Division truncates, which is a floor division for operands that are not negative.
        "divide" if is_int && is_positive(&left, 0, bounds) => divide(&left, &right, bounds)?,
        "floor_mod" => remainder(&left, &right, bounds)?,
        "mod" if is_positive(&left, 0, bounds) => remainder(&left, &right, bounds)?,
        "mod" => signed_remainder(&right, bounds)?,
        "minimum" => minimum(&left, &right, bounds),
        "maximum" => maximum(&left, &right, bounds),
        "logical_and" | "bitwise_and" if are_bools(&left, &right) => minimum(&left, &right, bounds),
        "logical_or" | "bitwise_or" if are_bools(&left, &right) => maximum(&left, &right, bounds),
        "bitwise_and" if is_int => mask(&left, &right)?,
        "bitwise_or" | "bitwise_xor" if is_int => union_of_bits(name, &left, &right, bounds)?,
        "right_shift" => divide(&left, &power_of_two(&right)?, bounds)?,
        "left_shift" => multiply(&left, &power_of_two(&right)?, bounds)?,
        _ => of_truth(decided(name, &left, &right, bounds)?),
    })
}

fn are_bools(a: &Operand, b: &Operand) -> bool {
    [a, b].iter().all(|operand| operand.dtype.is_some_and(DType::is_bool))
}

/// Returns the facts about a comparison that has the same result everywhere.
fn of_truth(holds: bool) -> TensorValues {
    let end = Some(End::attained(i64::from(holds)));
    TensorValues::between(end.clone(), end)
}

/// Returns the result of a comparison, if the ranges of its operands determine it.
fn decided(name: &str, a: &Operand, b: &Operand, bounds: &Bounds) -> Option<bool> {
    let answer = |a: &Option<End>, b: &Option<End>| {
        let (a, b) = a.as_ref().zip(b.as_ref()).filter(|(a, b)| !a.value.is_error() && !b.value.is_error())?;
        Some(at_least(&a.value, &b.value, bounds))
    };
    let below = |a: &Operand, b: &Operand| answer(&a.high, &b.low) == Some(Answer::Refuted);
    let not_above = |a: &Operand, b: &Operand| answer(&b.low, &a.high) == Some(Answer::Proved);
    let either = |holds: bool, fails: bool| (holds || fails).then_some(holds);
    match name {
        "less" => either(below(a, b), not_above(b, a)),
        "less_equal" => either(not_above(a, b), below(b, a)),
        "greater" => either(below(b, a), not_above(a, b)),
        "greater_equal" => either(not_above(b, a), below(a, b)),
        "equal" => either(a.single().is_some() && a.single() == b.single(), below(a, b) || below(b, a)),
        "not_equal" => decided("equal", a, b, bounds).map(|holds| !holds),
        _ => None,
    }
}

/// Whether one known scalar operand limits the result, whatever the other operand is.
fn limits_alone(name: &str) -> bool {
    matches!(name, "floor_mod" | "mod" | "minimum" | "maximum" | "bitwise_and")
}

fn elements(call: &ValueCall<'_>, name: &str, left: &Operand, right: &Operand) -> Option<Elements> {
    let dims = call.dims()?;
    let spread = |operand: &Operand| operand.elements.as_ref()?.pick(&broadcast_places(&dims, operand.dims.as_ref()?)?);
    let (left, right) = (spread(left)?, spread(right)?);
    match (&left, &right) {
        (Elements::Ints(a), Elements::Ints(b)) => {
            a.iter().zip(&**b).map(|(a, b)| of_ints(name, *a, *b)).collect::<Option<_>>().map(Elements::Ints)
        }
        _ => {
            let floats = |elements: &Elements| -> Vec<f64> {
                match elements {
                    Elements::Ints(values) => values.iter().map(|value| *value as f64).collect(),
                    Elements::Floats(values) => values.to_vec(),
                }
            };
            let pairs = floats(&left).into_iter().zip(floats(&right));
            if let Some(holds) = comparison(name) {
                return Some(Elements::Ints(pairs.map(|(a, b)| i64::from(holds(a.partial_cmp(&b)))).collect()));
            }
            pairs.map(|(a, b)| of_floats(name, a, b)).collect::<Option<_>>().map(Elements::Floats)
        }
    }
}

type Holds = fn(Option<std::cmp::Ordering>) -> bool;

fn comparison(name: &str) -> Option<Holds> {
    Some(match name {
        "equal" => |order| order.is_some_and(std::cmp::Ordering::is_eq),
        "not_equal" => |order| !order.is_some_and(std::cmp::Ordering::is_eq),
        "less" => |order| order.is_some_and(std::cmp::Ordering::is_lt),
        "less_equal" => |order| order.is_some_and(std::cmp::Ordering::is_le),
        "greater" => |order| order.is_some_and(std::cmp::Ordering::is_gt),
        "greater_equal" => |order| order.is_some_and(std::cmp::Ordering::is_ge),
        _ => return None,
    })
}

fn of_ints(name: &str, a: i64, b: i64) -> Option<i64> {
    if let Some(holds) = comparison(name) {
        return Some(i64::from(holds(Some(a.cmp(&b)))));
    }
    match name {
        "add" => a.checked_add(b),
        "subtract" => a.checked_sub(b),
        "multiply" => a.checked_mul(b),
        "divide" => a.checked_div(b),
        "floor_divide" => Some(a.checked_div(b)? - i64::from(a.checked_rem(b)? != 0 && (a < 0) != (b < 0))),
        "floor_mod" => {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        "mod" => a.checked_rem(b),
        "maximum" => Some(a.max(b)),
        "minimum" => Some(a.min(b)),
        "power" => a.checked_pow(u32::try_from(b).ok()?),
        "bitwise_and" => Some(a & b),
        "bitwise_or" => Some(a | b),
        "bitwise_xor" => Some(a ^ b),
        "left_shift" if (0..32).contains(&b) => a.checked_mul(1 << b),
        "right_shift" if (0..64).contains(&b) => Some(a >> b),
        "logical_and" => Some(i64::from(a != 0 && b != 0)),
        "logical_or" => Some(i64::from(a != 0 || b != 0)),
        "logical_xor" => Some(i64::from((a != 0) != (b != 0))),
        _ => None,
    }
}

fn of_floats(name: &str, a: f64, b: f64) -> Option<f64> {
    match name {
        "add" => Some(a + b),
        "subtract" => Some(a - b),
        "multiply" => Some(a * b),
        "divide" => Some(a / b),
        "maximum" => Some(a.max(b)),
        "minimum" => Some(a.min(b)),
        _ => None,
    }
}

/// Returns the basis of an end that is computed from two ends. An attained end stays attained only if one operand is
/// the same everywhere.
fn joint(a: &End, b: &End, one_is_single: bool) -> Basis {
    let basis = a.basis.min(b.basis);
    if one_is_single { basis } else { basis.min(Basis::Stated) }
}

fn one_is_single(a: &Operand, b: &Operand) -> bool {
    a.single().is_some() || b.single().is_some()
}

fn add(a: &Operand, b: &Operand) -> TensorValues {
    let single = one_is_single(a, b);
    let sum = |a: &Option<End>, b: &Option<End>| {
        let (a, b) = (a.as_ref()?, b.as_ref()?);
        Some(End { value: &a.value + &b.value, basis: joint(a, b, single) })
    };
    TensorValues::between(sum(&a.low, &b.low), sum(&a.high, &b.high))
}

/// Returns the facts about the negated operand.
pub(super) fn negated(operand: &Operand) -> Operand {
    let swap = |end: &Option<End>| end.as_ref().map(|end| End { value: -&end.value, basis: end.basis });
    Operand { low: swap(&operand.high), high: swap(&operand.low), ..operand.clone() }
}

/// Whether all elements are at least `least`.
pub(super) fn is_positive(operand: &Operand, least: i64, bounds: &Bounds) -> bool {
    let least = Dim::constant(least);
    operand
        .low
        .as_ref()
        .is_some_and(|low| !low.value.is_error() && at_least(&low.value, &least, bounds) == Answer::Proved)
}

fn multiply(a: &Operand, b: &Operand, bounds: &Bounds) -> Option<TensorValues> {
    if !is_positive(a, 0, bounds) && is_positive(b, 0, bounds) {
        return multiply(b, a, bounds);
    }
    if !is_positive(a, 0, bounds) {
        let (a, b) = (negated(a), negated(b));
        return is_positive(&a, 0, bounds).then(|| multiply(&a, &b, bounds)).flatten();
    }
    let single = one_is_single(a, b);
    let product = |a: &Option<End>, b: &Option<End>| {
        let (a, b) = (a.as_ref()?, b.as_ref()?);
        Some(End { value: &a.value * &b.value, basis: joint(a, b, single) })
    };
    // If `b` is not negative, the minimum of the product is the product of the minima. If `b` is not positive, the
    // roles of its ends are exchanged.
    Some(match (is_positive(b, 0, bounds), is_positive(&negated(b), 0, bounds)) {
        (true, _) => TensorValues::between(product(&a.low, &b.low), product(&a.high, &b.high)),
        (_, true) => TensorValues::between(product(&a.high, &b.low), product(&a.low, &b.high)),
        _ => TensorValues::between(product(&a.high, &b.low), product(&a.high, &b.high)),
    })
}

/// Returns the range of a floor division by one positive number.
fn divide(a: &Operand, b: &Operand, bounds: &Bounds) -> Option<TensorValues> {
    let by = b.single().filter(|_| is_positive(b, 1, bounds))?;
    let quotient = |end: &Option<End>| end.as_ref().map(|end| End { value: end.value.floor_div(by), basis: end.basis });
    Some(TensorValues::between(quotient(&a.low), quotient(&a.high)))
}

/// Returns the range of the remainder of [`divide`].
fn remainder(a: &Operand, b: &Operand, bounds: &Bounds) -> Option<TensorValues> {
    let by = b.single().filter(|_| is_positive(b, 0, bounds))?;
    let below = |end: &End| !end.value.is_error() && at_least(&end.value, by, bounds) == Answer::Refuted;
    if is_positive(a, 0, bounds) && a.high.as_ref().is_some_and(below) {
        return Some(TensorValues::between(a.low.clone(), a.high.clone()));
    }
    let integers = a.dtype.is_none_or(|dtype| !dtype.is_float());
    let largest = if integers { by - &Dim::constant(1) } else { by.clone() };
    let basis = if integers { Basis::Stated } else { Basis::Loose };
    Some(TensorValues::between(Some(End::stated(0)), Some(End { value: largest, basis })))
}

/// Returns the range of the remainder of a truncating division. Its sign is that of the dividend, which is unknown.
fn signed_remainder(b: &Operand, bounds: &Bounds) -> Option<TensorValues> {
    let by = b.single().filter(|_| is_positive(b, 1, bounds))?;
    let largest = by - &Dim::constant(1);
    Some(TensorValues::between(Some(End { value: -&largest, basis: Basis::Loose }), Some(End::stated(largest))))
}

/// Returns the range of a minimum. One upper end is enough for the upper end; the lower end needs both.
fn minimum(a: &Operand, b: &Operand, bounds: &Bounds) -> TensorValues {
    let high = match (&a.high, &b.high) {
        (Some(a), Some(b)) => Some(lower_of(a.clone(), b.clone(), bounds)),
        (one, other) => one.clone().or(other.clone()),
    };
    let low = a.low.clone().zip(b.low.clone()).map(|(a, b)| lower_of(a, b, bounds));
    TensorValues::between(low.map(may), high.map(may))
}

fn maximum(a: &Operand, b: &Operand, bounds: &Bounds) -> TensorValues {
    let low = match (&a.low, &b.low) {
        (Some(a), Some(b)) => Some(higher_of(a.clone(), b.clone(), bounds)),
        (one, other) => one.clone().or(other.clone()),
    };
    let high = a.high.clone().zip(b.high.clone()).map(|(a, b)| higher_of(a, b, bounds));
    TensorValues::between(low.map(may), high.map(may))
}

/// Returns the end, marked as not necessarily attained.
fn may(end: End) -> End {
    end.at_most(Basis::Stated)
}

/// Returns the range of a bitwise `and` with a constant mask: from 0 to the mask.
fn mask(a: &Operand, b: &Operand) -> Option<TensorValues> {
    let constant = |operand: &Operand| operand.single().and_then(Dim::as_constant).filter(|mask| *mask >= 0);
    let mask = constant(b).or_else(|| constant(a))?;
    Some(TensorValues::between(Some(End::stated(0)), Some(End::stated(mask))))
}

/// Returns the range of `or` and `xor` of operands that are not negative: no bit is higher than the operands' highest
/// bit. An `or` is also at least as large as each operand.
fn union_of_bits(name: &str, a: &Operand, b: &Operand, bounds: &Bounds) -> Option<TensorValues> {
    (is_positive(a, 0, bounds) && is_positive(b, 0, bounds)).then_some(())?;
    let constant = |end: &Option<End>| end.as_ref().and_then(|end| end.value.as_constant());
    let high = constant(&a.high).zip(constant(&b.high)).map(|(a, b)| {
        // All bits up to the highest one of either operand. Neither operand has the sign bit.
        let unused = (a | b).leading_zeros().clamp(1, 64) - 1;
        End { value: Dim::constant(i64::MAX.checked_shr(unused).unwrap_or(0)), basis: Basis::Loose }
    });
    let low = match name {
        "bitwise_or" => maximum(a, b, bounds).low(),
        _ => Some(End::stated(0)),
    };
    Some(TensorValues::between(low, high))
}

fn power_of_two(exponent: &Operand) -> Option<Operand> {
    let exponent = exponent.single()?.as_constant().filter(|exponent| (0..=40).contains(exponent))?;
    let end = Some(End::attained(1i64 << exponent));
    Some(Operand { low: end.clone(), high: end, ..Operand::default() })
}
