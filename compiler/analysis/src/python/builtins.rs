//! Python's builtin functions on constants: `int`, `len`, `max`, ….

use super::arithmetic::{binary, order};
use super::value::PyValue;
use rx_syntax::ast::BinaryOp;
use std::cmp::Ordering;

/// The functions that are evaluated.
pub(super) const BUILTINS: [&str; 13] =
    ["int", "float", "bool", "str", "len", "min", "max", "abs", "round", "sum", "tuple", "list", RANGE];

/// The function whose calls are not replaced by their value, since loops need them: `for i in range(N)`.
pub(super) const RANGE: &str = "range";

/// Evaluates a call; `None` if Python rejects it or it is not evaluated.
pub(super) fn call(function: &str, arguments: &[PyValue]) -> Option<PyValue> {
    match (function, arguments) {
        ("int", [value]) => int(value),
        ("float", [PyValue::Str(text)]) => text.trim().parse().ok().map(PyValue::Float),
        ("float", [value]) => value.float().map(PyValue::Float),
        ("bool", [value]) => Some(PyValue::Bool(value.truth())),
        ("str", [value]) => PyValue::string(&value.text()?),
        ("len", [PyValue::Str(text)]) => integer(text.chars().count()),
        ("len", [value]) => integer(value.elements()?.len()),
        ("min", values) => extreme(values, Ordering::Less),
        ("max", values) => extreme(values, Ordering::Greater),
        ("abs", [PyValue::Float(number)]) => Some(PyValue::Float(number.abs())),
        ("abs", [value]) => value.integer()?.checked_abs().map(PyValue::Int),
        ("round", [PyValue::Float(number)]) => int(&PyValue::Float(number.round_ties_even())),
        ("round", [value]) => value.integer().map(PyValue::Int),
        ("sum", [values]) => {
            values.elements()?.iter().try_fold(PyValue::Int(0), |sum, value| binary(BinaryOp::Add, &sum, value))
        }
        ("tuple", []) => PyValue::tuple(Vec::new()),
        ("tuple", [values]) => PyValue::tuple(values.elements()?.to_vec()),
        ("list", []) => PyValue::list(Vec::new()),
        ("list", [values]) => PyValue::list(values.elements()?.to_vec()),
        (RANGE, [end]) => range(0, end.integer()?, 1),
        (RANGE, [start, end]) => range(start.integer()?, end.integer()?, 1),
        (RANGE, [start, end, step]) => range(start.integer()?, end.integer()?, step.integer()?),
        _ => None,
    }
}

fn integer(count: usize) -> Option<PyValue> {
    i128::try_from(count).ok().map(PyValue::Int)
}

fn int(value: &PyValue) -> Option<PyValue> {
    /// Floats of smaller magnitude fit a signed 128-bit integer.
    const LIMIT: f64 = 1e38;
    match value {
        PyValue::Float(number) => (number.abs() < LIMIT).then(|| PyValue::Int(number.trunc() as i128)),
        PyValue::Str(text) => text.trim().parse().ok().map(PyValue::Int),
        other => other.integer().map(PyValue::Int),
    }
}

/// Returns the smallest or largest of several values, or of the elements of one sequence; among equal ones the first.
fn extreme(values: &[PyValue], wanted: Ordering) -> Option<PyValue> {
    let values = match values {
        [sequence] => sequence.elements()?,
        several => several,
    };
    let (first, rest) = values.split_first()?;
    let found = rest.iter().try_fold(first, |best, value| {
        let order = order(value, best)?;
        Some(if order == wanted { value } else { best })
    });
    found.cloned()
}

fn range(start: i128, end: i128, step: i128) -> Option<PyValue> {
    /// The maximal length of a range that is built. It is above the size limit of a [`PyValue`], which rejects longer
    /// ones anyway.
    const MOST: usize = 1 << 11;
    if step == 0 {
        return None;
    }
    let mut values = Vec::new();
    let mut at = start;
    while if step > 0 { at < end } else { at > end } {
        values.push(PyValue::Int(at));
        if values.len() > MOST {
            return None;
        }
        at = at.checked_add(step)?;
    }
    PyValue::tuple(values)
}
