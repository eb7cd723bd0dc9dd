//! Elementwise relations between a value and a variable. They narrow the branches of `where` by its condition: in
//! `where(i < 0, i + n, i)`, the first branch is less than `n` and the second is not negative, for every `i`.

use super::range::{higher_of, lower_of};
use super::{Operand, ValueCall};
use rx_base::symbolic::Answer;
use rx_base::symbolic::prove::at_least;
use rx_base::{DType, Dim};
use rx_ir::values::{Limit, Relation, Root};
use rx_ir::{End, ExprKind, TensorValues, Values};

/// The maximum number of limits kept for one condition.
const MAX_LIMITS: usize = 4;

/// Returns the relation of a call's result to a variable. `is_held` states that the result's dtype can hold both ends
/// of its range, so that the computation does not wrap around.
pub(super) fn of_call(call: &ValueCall<'_>, is_held: bool) -> Option<Relation> {
    let dtype = call.dtype()?;
    let name = call.call.schema.name;
    if dtype.is_int() {
        // A sum may wrap around in a narrow dtype.
        let (root, offset) = match name {
            "add" => match (call.operand("x1").single(), call.operand("x2").single()) {
                (_, Some(offset)) => shifted(root(call, "x1")?, offset),
                (Some(offset), _) => shifted(root(call, "x2")?, offset),
                _ => return None,
            },
            "subtract" => shifted(root(call, "x1")?, &(&Dim::constant(0) - call.operand("x2").single()?)),
            "astype" if call.operand("x").dtype.is_some_and(|from| from.bits < dtype.bits) => root(call, "x")?,
            "astype" if is_held => root(call, "x")?,
            _ => return None,
        };
        return (is_held || dtype.bits >= 32).then_some(Relation::Sum(root, offset));
    }
    if !dtype.is_bool() {
        return None;
    }
    let limits = match name {
        "less" | "less_equal" | "greater" | "greater_equal" | "equal" | "not_equal" => compared(call, name),
        "logical_and" | "bitwise_and" => {
            let fails_apart = |limit: Limit| Limit { fails: (None, None), ..limit };
            both_tests(call).map(fails_apart).collect()
        }
        "logical_or" | "bitwise_or" => {
            let holds_apart = |limit: Limit| Limit { holds: (None, None), ..limit };
            both_tests(call).map(holds_apart).collect()
        }
        "logical_not" | "bitwise_not" => {
            let swapped = |Limit { of, holds, fails }| Limit { of, holds: fails, fails: holds };
            test(call, "x").into_iter().map(swapped).collect()
        }
        _ => return None,
    };
    let limits: Vec<Limit> = limits.into_iter().take(MAX_LIMITS).collect();
    (!limits.is_empty()).then_some(Relation::Test(limits))
}

fn shifted((root, offset): (Root, Dim), by: &Dim) -> (Root, Dim) {
    (root, &offset + by)
}

fn relation<'a>(call: &ValueCall<'a>, param: &str) -> Option<&'a Relation> {
    call.known(param)?.as_tensor()?.relation.as_deref()
}

/// Returns the variable that an integer operand equals up to an offset, and the offset.
fn root(call: &ValueCall<'_>, param: &'static str) -> Option<(Root, Dim)> {
    if let Some(Relation::Sum(root, offset)) = relation(call, param) {
        return Some((root.clone(), offset.clone()));
    }
    let operand = call.call.operand(param)?;
    let is_int = operand.ty.as_tensor().and_then(|tensor| tensor.dtype).is_some_and(DType::is_int);
    let ExprKind::Var(variable) = operand.kind else { return None };
    let values = call.known(param).and_then(Values::as_tensor);
    let (low, high) = (values.and_then(TensorValues::low), values.and_then(TensorValues::high));
    is_int.then(|| (Root { variable, low, high }, Dim::constant(0)))
}

/// Returns the limits that a comparison implies for the variables on its two sides.
fn compared(call: &ValueCall<'_>, name: &str) -> Vec<Limit> {
    let mirrored = match name {
        "less" => "greater",
        "less_equal" => "greater_equal",
        "greater" => "less",
        "greater_equal" => "less_equal",
        other => other,
    };
    let side = |name: &str, own: &'static str, other: &'static str| {
        let (of, offset) = root(call, own)?;
        let Operand { low, high, .. } = call.operand(other);
        let end = |end: Option<End>, more: i64| {
            let value = end.filter(|end| !end.value.is_error())?.value;
            Some(&(&value + &Dim::constant(more)) - &offset)
        };
        let (holds, fails) = match name {
            "less" => ((None, end(high, -1)), (end(low, 0), None)),
            "less_equal" => ((None, end(high, 0)), (end(low, 1), None)),
            "greater" => ((end(low, 1), None), (None, end(high, 0))),
            "greater_equal" => ((end(low, 0), None), (None, end(high, -1))),
            "equal" => ((end(low, 0), end(high, 0)), (None, None)),
            _ => ((None, None), (end(low, 0), end(high, 0))),
        };
        let limits = |(low, high): &(Option<Dim>, Option<Dim>)| low.is_some() || high.is_some();
        (limits(&holds) || limits(&fails)).then_some(Limit { of, holds, fails })
    };
    [side(name, "x1", "x2"), side(mirrored, "x2", "x1")].into_iter().flatten().collect()
}

/// Returns the limits that a condition implies.
fn test(call: &ValueCall<'_>, param: &'static str) -> Vec<Limit> {
    match relation(call, param) {
        Some(Relation::Test(limits)) => limits.clone(),
        _ => Vec::new(),
    }
}

fn both_tests(call: &ValueCall<'_>) -> impl Iterator<Item = Limit> {
    test(call, "x1").into_iter().chain(test(call, "x2"))
}

/// Returns an operand of `where`, restricted to the positions where `condition` holds (or fails). Returns `None` if the
/// condition leaves no value for its elements.
pub(crate) fn chosen(
    call: &ValueCall<'_>,
    param: &'static str,
    condition: &'static str,
    holds: bool,
) -> Option<Operand> {
    let mut operand = call.operand(param);
    let limits = test(call, condition);
    if limits.is_empty() {
        return Some(operand);
    }
    let Some((root, offset)) = root(call, param) else { return Some(operand) };
    let bounds = call.call.bounds;
    for limit in limits.iter().filter(|limit| limit.of == root) {
        let (low, high) = if holds { &limit.holds } else { &limit.fails };
        let end = |value: &Dim| End::stated(value + &offset);
        if let Some(limit) = low.as_ref().map(end) {
            operand.low = Some(match operand.low {
                Some(own) => higher_of(own, limit, bounds),
                None => limit,
            });
        }
        if let Some(limit) = high.as_ref().map(end) {
            operand.high = Some(match operand.high {
                Some(own) => lower_of(own, limit, bounds),
                None => limit,
            });
        }
    }
    let is_empty = operand.low.as_ref().zip(operand.high.as_ref()).is_some_and(|(low, high)| {
        let (low, high) = (&low.value, &high.value);
        !low.is_error() && !high.is_error() && at_least(high, low, bounds) == Answer::Refuted
    });
    (!is_empty).then_some(operand)
}
