//! Python's operators on constants. An operation that Python rejects, or whose result is too large, has no value.

use super::value::PyValue;
use rx_syntax::ast::{BinaryOp, CompareOp, UnaryOp};
use std::cmp::Ordering;

/// Evaluates `op operand`.
pub(super) fn unary(op: UnaryOp, operand: &PyValue) -> Option<PyValue> {
    match (op, operand) {
        (UnaryOp::Not, operand) => Some(PyValue::Bool(!operand.truth())),
        (UnaryOp::Neg, PyValue::Float(number)) => Some(PyValue::Float(-number)),
        (UnaryOp::Pos, PyValue::Float(number)) => Some(PyValue::Float(*number)),
        (UnaryOp::Neg, operand) => operand.integer()?.checked_neg().map(PyValue::Int),
        (UnaryOp::Pos, operand) => operand.integer().map(PyValue::Int),
        (UnaryOp::Invert, operand) => operand.integer().map(|number| PyValue::Int(!number)),
    }
}

/// Evaluates `left op right`.
pub(super) fn binary(op: BinaryOp, left: &PyValue, right: &PyValue) -> Option<PyValue> {
    match (op, left, right) {
        (BinaryOp::Add, PyValue::Str(a), PyValue::Str(b)) => PyValue::string(&format!("{a}{b}")),
        (BinaryOp::Add, PyValue::Tuple(a), PyValue::Tuple(b)) => PyValue::tuple([&a[..], b].concat()),
        (BinaryOp::Add, PyValue::List(a), PyValue::List(b)) => PyValue::list([&a[..], b].concat()),
        (BinaryOp::Mul, sequence @ (PyValue::Str(_) | PyValue::Tuple(_) | PyValue::List(_)), count)
        | (BinaryOp::Mul, count, sequence @ (PyValue::Str(_) | PyValue::Tuple(_) | PyValue::List(_))) => {
            repeated(sequence, count.integer()?)
        }
        _ => match (left.integer(), right.integer()) {
            (Some(a), Some(b)) => integers(op, a, b),
            _ => floats(op, left.float()?, right.float()?),
        },
    }
}

fn repeated(sequence: &PyValue, count: i128) -> Option<PyValue> {
    /// The maximal length of a repetition that is built. It is above the size limit of a [`PyValue`], which rejects
    /// longer ones anyway.
    const MOST: usize = 1 << 11;
    let length = match sequence {
        PyValue::Str(text) => text.len(),
        other => other.elements()?.len(),
    };
    let count = usize::try_from(count.max(0)).ok()?;
    if length.checked_mul(count)? > MOST {
        return None;
    }
    match sequence {
        PyValue::Str(text) => PyValue::string(&text.repeat(count)),
        PyValue::Tuple(elements) => {
            PyValue::tuple(std::iter::repeat_n(&elements[..], count).flatten().cloned().collect())
        }
        PyValue::List(elements) => {
            PyValue::list(std::iter::repeat_n(&elements[..], count).flatten().cloned().collect())
        }
        _ => None,
    }
}

fn integers(op: BinaryOp, a: i128, b: i128) -> Option<PyValue> {
    let floor_div = || {
        let quotient = a.checked_div(b)?;
        Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
    };
    Some(PyValue::Int(match op {
        BinaryOp::Add => a.checked_add(b)?,
        BinaryOp::Sub => a.checked_sub(b)?,
        BinaryOp::Mul => a.checked_mul(b)?,
        BinaryOp::Div if b != 0 => return Some(PyValue::Float(a as f64 / b as f64)),
        BinaryOp::FloorDiv => floor_div()?,
        BinaryOp::Mod => a.checked_sub(floor_div()?.checked_mul(b)?)?,
        BinaryOp::Pow if b >= 0 => a.checked_pow(u32::try_from(b).ok()?)?,
        BinaryOp::Pow => return floats(op, a as f64, b as f64),
        BinaryOp::LeftShift => a.checked_mul(2i128.checked_pow(u32::try_from(b).ok()?)?)?,
        BinaryOp::RightShift => a >> u32::try_from(b).ok()?.min(127),
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Div | BinaryOp::MatMul => return None,
    }))
}

fn floats(op: BinaryOp, a: f64, b: f64) -> Option<PyValue> {
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div if b != 0.0 => a / b,
        BinaryOp::FloorDiv if b != 0.0 => (a / b).floor(),
        BinaryOp::Mod if b != 0.0 => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        // Python's powers of negative numbers may be complex, and those of 0 may be errors.
        BinaryOp::Pow if a > 0.0 => a.powf(b),
        _ => return None,
    };
    Some(PyValue::Float(result))
}

/// Evaluates the comparison `left op right`.
pub(super) fn compare(op: CompareOp, left: &PyValue, right: &PyValue) -> Option<bool> {
    let order = || order(left, right);
    Some(match op {
        CompareOp::Eq => equal(left, right),
        CompareOp::Ne => !equal(left, right),
        CompareOp::Lt => order()?.is_lt(),
        CompareOp::Le => order()?.is_le(),
        CompareOp::Gt => order()?.is_gt(),
        CompareOp::Ge => order()?.is_ge(),
        CompareOp::Is if *right == PyValue::None => *left == PyValue::None,
        CompareOp::IsNot if *right == PyValue::None => *left != PyValue::None,
        CompareOp::In => right.elements()?.iter().any(|element| equal(left, element)),
        CompareOp::NotIn => !right.elements()?.iter().any(|element| equal(left, element)),
        CompareOp::Is | CompareOp::IsNot => return None,
    })
}

/// Evaluates Python's `==`, which compares numbers by value, whatever their types.
fn equal(left: &PyValue, right: &PyValue) -> bool {
    match (left, right) {
        (PyValue::Tuple(a), PyValue::Tuple(b)) | (PyValue::List(a), PyValue::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        (PyValue::Str(a), PyValue::Str(b)) => a == b,
        (PyValue::None, PyValue::None) => true,
        _ => order(left, right) == Some(Ordering::Equal),
    }
}

/// Returns the order of two numbers or two strings.
pub(super) fn order(left: &PyValue, right: &PyValue) -> Option<Ordering> {
    match (left, right) {
        (PyValue::Str(a), PyValue::Str(b)) => Some(a.cmp(b)),
        _ => match (left.integer(), right.integer()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => left.float()?.partial_cmp(&right.float()?),
        },
    }
}

/// Returns the element of a sequence, or the character of a string, at an index; a negative index counts from the
/// end.
pub(super) fn element(of: &PyValue, index: &PyValue) -> Option<PyValue> {
    let index = index.integer()?;
    let at = |length: usize| {
        let from_start = if index < 0 { index.checked_add(i128::try_from(length).ok()?)? } else { index };
        usize::try_from(from_start).ok()
    };
    match of {
        PyValue::Str(text) => {
            let mut buffer = [0; 4];
            let found = text.chars().nth(at(text.chars().count())?)?;
            PyValue::string(found.encode_utf8(&mut buffer))
        }
        other => {
            let elements = other.elements()?;
            elements.get(at(elements.len())?).cloned()
        }
    }
}

/// Evaluates a slice of a sequence; `bounds` has `None` for each bound that is not written.
pub(super) fn slice(of: &PyValue, bounds: &[PyValue]) -> Option<PyValue> {
    let elements = of.elements()?;
    let length = i128::try_from(elements.len()).ok()?;
    let [lower, upper, step] = bounds else { return None };
    let step = if *step == PyValue::None { 1 } else { step.integer()? };
    if step == 0 {
        return None;
    }
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |bound: &PyValue, default: i128| match bound {
        PyValue::None => Some(default),
        given => {
            let given = given.integer()?;
            Some(if given < 0 { given.saturating_add(length) } else { given }.clamp(lowest, highest))
        }
    };
    let (start, end) = match step > 0 {
        true => (bound(lower, 0)?, bound(upper, length)?),
        false => (bound(lower, length - 1)?, bound(upper, -1)?),
    };
    let mut taken = Vec::new();
    let mut at = start;
    while if step > 0 { at < end } else { at > end } {
        taken.push(elements.get(usize::try_from(at).ok()?)?.clone());
        at = at.checked_add(step)?;
    }
    match of {
        PyValue::List(_) => PyValue::list(taken),
        _ => PyValue::tuple(taken),
    }
}
