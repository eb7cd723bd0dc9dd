//! Values of Python constants.

use rx_base::Name;
use std::fmt;
use std::sync::Arc;

/// The maximal length of strings in bytes, and of sequences in scalars, nested ones included: a constant may be used
/// often, and its elements may be constants too.
const MAX_SIZE: usize = 1024;

/// The value of a constant.
#[derive(Clone, Debug)]
pub enum PyValue {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// A tuple.
    Tuple(Arc<[PyValue]>),
    /// A list.
    List(Arc<[PyValue]>),
}

/// Floats are equal if their bits are: equality must be reflexive even for NaN, because unchanged values are what
/// avoids recomputation.
impl PartialEq for PyValue {
    fn eq(&self, other: &PyValue) -> bool {
        match (self, other) {
            (PyValue::None, PyValue::None) => true,
            (PyValue::Bool(a), PyValue::Bool(b)) => a == b,
            (PyValue::Int(a), PyValue::Int(b)) => a == b,
            (PyValue::Float(a), PyValue::Float(b)) => a.to_bits() == b.to_bits(),
            (PyValue::Str(a), PyValue::Str(b)) => a == b,
            (PyValue::Tuple(a), PyValue::Tuple(b)) | (PyValue::List(a), PyValue::List(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for PyValue {}

impl PyValue {
    /// Creates a string, unless it is too long.
    pub(super) fn string(text: &str) -> Option<PyValue> {
        (text.len() <= MAX_SIZE).then(|| PyValue::Str(text.into()))
    }

    /// Creates a tuple, unless it is too large.
    pub(super) fn tuple(elements: Vec<PyValue>) -> Option<PyValue> {
        fits(&elements).then(|| PyValue::Tuple(elements.into()))
    }

    /// Creates a list, unless it is too large.
    pub(super) fn list(elements: Vec<PyValue>) -> Option<PyValue> {
        fits(&elements).then(|| PyValue::List(elements.into()))
    }

    /// Returns the elements of a tuple or list.
    pub(super) fn elements(&self) -> Option<&[PyValue]> {
        match self {
            PyValue::Tuple(elements) | PyValue::List(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns the truth value, as in Python's `bool(…)`.
    pub(super) fn truth(&self) -> bool {
        match self {
            PyValue::None => false,
            PyValue::Bool(truth) => *truth,
            PyValue::Int(number) => *number != 0,
            PyValue::Float(number) => *number != 0.0,
            PyValue::Str(text) => !text.is_empty(),
            PyValue::Tuple(elements) | PyValue::List(elements) => !elements.is_empty(),
        }
    }

    /// Returns an integer, or a boolean as 0 or 1.
    pub(super) fn integer(&self) -> Option<i128> {
        match self {
            PyValue::Int(number) => Some(*number),
            PyValue::Bool(truth) => Some(i128::from(*truth)),
            _ => None,
        }
    }

    /// Returns a number as a float.
    pub(super) fn float(&self) -> Option<f64> {
        match self {
            PyValue::Float(number) => Some(*number),
            other => other.integer().map(|number| number as f64),
        }
    }

    /// Formats a value as Python's `str(…)` does; `None` for floats and sequences.
    pub(super) fn text(&self) -> Option<String> {
        Some(match self {
            PyValue::None => "None".to_owned(),
            PyValue::Bool(truth) => (if *truth { "True" } else { "False" }).to_owned(),
            PyValue::Int(number) => number.to_string(),
            PyValue::Str(text) => text.to_string(),
            PyValue::Float(_) | PyValue::Tuple(_) | PyValue::List(_) => return None,
        })
    }

    /// Returns the number of scalars and sequences in the value.
    fn size(&self) -> usize {
        match self.elements() {
            Some(elements) => elements.iter().fold(1, |sum, element| sum + element.size()),
            None => 1,
        }
    }
}

fn fits(elements: &[PyValue]) -> bool {
    let mut left = MAX_SIZE;
    elements.iter().all(|element| {
        let size = element.size();
        left = left.saturating_sub(size);
        left > 0
    })
}

/// Formats a value in Python's notation.
impl fmt::Display for PyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |elements: &[PyValue]| elements.iter().map(PyValue::to_string).collect::<Vec<_>>().join(", ");
        match self {
            PyValue::None => f.write_str("None"),
            PyValue::Bool(true) => f.write_str("True"),
            PyValue::Bool(false) => f.write_str("False"),
            PyValue::Int(number) => write!(f, "{number}"),
            PyValue::Float(number) => write!(f, "{number:?}"),
            PyValue::Str(text) => {
                let mut quoted = String::new();
                rx_syntax::printer::quote(&mut quoted, text);
                f.write_str(&quoted)
            }
            PyValue::Tuple(elements) if elements.len() == 1 => write!(f, "({},)", joined(elements)),
            PyValue::Tuple(elements) => write!(f, "({})", joined(elements)),
            PyValue::List(elements) => write!(f, "[{}]", joined(elements)),
        }
    }
}

/// The constants that an item sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PyConstants {
    /// The constants, sorted by name.
    values: Vec<(Name, PyValue)>,
    /// The builtin functions whose names are redefined here.
    hidden: Vec<Name>,
}

impl PyConstants {
    pub(super) fn new(mut values: Vec<(Name, PyValue)>, hidden: Vec<Name>) -> PyConstants {
        values.sort_unstable_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        PyConstants { values, hidden }
    }

    /// Returns the value of a constant.
    pub fn get(&self, name: &str) -> Option<(Name, &PyValue)> {
        let at = self.values.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        self.values.get(at).map(|(name, value)| (*name, value))
    }

    /// Whether the name of a builtin function is redefined.
    pub(super) fn hides(&self, name: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden.as_str() == name)
    }

    /// Whether there are no constants.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
