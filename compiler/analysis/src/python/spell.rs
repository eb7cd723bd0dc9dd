//! Texts with literals written in place of constants: what a module says without the Python around it.

use super::memo::shadowed;
use super::substitute::{Known, edits};
use super::value::{PyConstants, PyValue};
use rx_base::Span;
use rx_syntax::Segment;
use std::cmp::Reverse;
use std::sync::Arc;

/// A change of a segment's text. Of changes of which one is inside the other, the outer holds.
pub(super) struct Edit {
    pub(super) span: Span,
    pub(super) text: String,
}

/// The text of an item with literals in place of the constants it names.
pub fn spelled_out(segments: &[Arc<Segment>], constants: &PyConstants) -> String {
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

/// A value as part of an expression.
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

/// Values between commas.
pub(super) fn listed(elements: &[PyValue]) -> String {
    elements.iter().map(literal).collect::<Vec<_>>().join(", ")
}
