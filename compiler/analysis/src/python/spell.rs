//! Writes literals in place of constants, so that a module's text does not depend on the Python code around it.

use super::memo::shadowed;
use super::substitute::{Known, edits};
use super::value::{PyConstants, PyValue};
use rx_base::Span;
use rx_syntax::Segments;
use std::cmp::Reverse;

/// A change of a segment's text. If one change contains another, the outer one is applied.
pub(super) struct Edit {
    pub(super) span: Span,
    pub(super) text: String,
}

/// Returns the text of an item with its constants replaced by literals.
pub fn spelled_out(segments: &Segments, constants: &PyConstants) -> String {
    let shadowed = shadowed(segments, constants);
    let known = Known { constants, shadowed: &shadowed };
    segments.iter().map(|segment| applied(segment.text(), edits(segment, &known))).collect()
}

fn applied(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.span.start, Reverse(edit.span.end)));
    let (mut changed, mut at) = (String::new(), 0);
    for Edit { span, text: new } in edits {
        let range = span.range();
        if range.start >= at {
            changed.push_str(text.get(at..range.start).unwrap_or_default());
            changed.push_str(&new);
            at = range.end;
        }
    }
    changed.push_str(text.get(at..).unwrap_or_default());
    changed
}

/// Formats a value as part of an expression.
pub(super) fn literal(value: &PyValue) -> String {
    match value {
        PyValue::Int(number) if *number < 0 => format!("({number})"),
        PyValue::Float(number) if !number.is_finite() => format!("float(\"{number}\")"),
        PyValue::Float(number) if number.is_sign_negative() => format!("({number:?})"),
        PyValue::Tuple(elements) if elements.len() == 1 => format!("({},)", listed(elements)),
        PyValue::Tuple(elements) => format!("({})", listed(elements)),
        PyValue::List(elements) => format!("[{}]", listed(elements)),
        other => other.to_string(),
    }
}

/// Formats values separated by commas.
pub(super) fn listed(elements: &[PyValue]) -> String {
    elements.iter().map(literal).collect::<Vec<_>>().join(", ")
}
