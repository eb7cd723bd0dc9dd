//! Finds and parses the attributes of a prim_func, `T.func_attr({…})`, in its text.
//!
//! Passes use the position to change the attributes and leave the rest of the text unchanged.

use rx_base::Dim;
use rx_ir::Attr;
use rx_syntax::ast::{Expr, ExprKind, StatementKind, UnaryOp};
use rx_syntax::{Cursor, Segments, Statement};
use std::ops::Range;
use std::sync::Arc;

/// The attributes of a prim_func and their position, as byte offsets in the concatenated texts of its segments.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenAttributes {
    /// The range of the dictionary. Without one, the empty range after the header's line, where a statement may be
    /// inserted.
    pub place: Range<usize>,
    /// Its entries, in source order.
    pub entries: Entries,
}

/// A dictionary's entries, in source order. A repeated key occurs once, with its last value.
type Entries = Vec<(Arc<str>, Attr)>;

/// Returns the attributes of the prim_func with these segments; no entries if there is no dictionary. Returns `None` if
/// there is neither a dictionary nor a line break after a header, or if, after the header and before any dictionary, a
/// statement follows the `:` or `;` of another, such as a body on the header's line.
pub fn written_attributes(segments: &Segments) -> Option<WrittenAttributes> {
    let mut start = 0;
    let mut behind_header = None;
    for segment in segments {
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            let place = |span: rx_base::Span| start + span.start as usize..start + span.end as usize;
            if let Some((span, entries)) = func_attr(cursor, statement) {
                return Some(WrittenAttributes { place: place(span), entries });
            }
            if matches!(statement.tree.kind, StatementKind::Def { .. }) && behind_header.is_none() {
                let end = statement.span.end as usize;
                let line_end = segment.text().get(end..).and_then(|rest| rest.find('\n'));
                behind_header = line_end.map(|line_end| start + end + line_end + 1);
            } else if statement.inline && behind_header.is_some() {
                // The body may begin on the header's line.
                return None;
            }
        }
        start += segment.text().len();
    }
    behind_header.map(|end| WrittenAttributes { place: end..end, entries: Vec::new() })
}

/// Returns the span and entries of the dictionary in a `T.func_attr({…})`.
fn func_attr(cursor: Cursor<'_>, statement: &Statement) -> Option<(rx_base::Span, Entries)> {
    let StatementKind::Expr(Expr { kind: ExprKind::Call { callee, arguments }, .. }) = &statement.tree.kind else {
        return None;
    };
    let [argument] = &arguments[..] else { return None };
    if !cursor.path(callee.tokens).ends_with(".func_attr") {
        return None;
    }
    match literal(cursor, &argument.value) {
        Attr::Dict(entries) => Some((cursor.span(argument.value.tokens), entries)),
        _ => None,
    }
}

/// Returns the value of a literal. Keeps an expression that has no value as an attribute as its source text: for
/// example a call, a tuple, an integer beyond 64 bits, or a dict with a key that is no string.
pub fn literal(cursor: Cursor<'_>, expr: &Expr) -> Attr {
    let opaque = || Attr::Opaque(cursor.source(expr.tokens).into());
    match &expr.kind {
        ExprKind::None => Attr::None,
        ExprKind::Bool(value) => Attr::Bool(*value),
        ExprKind::Integer => {
            let value = cursor.integer_value(expr).and_then(|value| i64::try_from(value).ok());
            value.map_or_else(opaque, |value| Attr::Int(Dim::constant(value)))
        }
        ExprKind::Float => cursor.float_value(expr).map_or_else(opaque, Attr::Float),
        ExprKind::String => cursor.string_value(expr).map_or_else(opaque, |text| Attr::Str(text.as_ref().into())),
        ExprKind::List(items) => Attr::List(items.iter().map(|item| literal(cursor, item)).collect()),
        ExprKind::Dict(entries) => {
            let entry = |(key, value): &(Option<Expr>, Expr)| {
                let key = cursor.string_value(key.as_ref()?)?;
                Some((Arc::from(key.as_ref()), literal(cursor, value)))
            };
            entries.iter().map(entry).collect::<Option<Vec<_>>>().map_or_else(opaque, Attr::dict)
        }
        ExprKind::Unary(UnaryOp::Neg, operand) => match literal(cursor, operand) {
            Attr::Float(value) => Attr::Float(-value),
            Attr::Int(value) => Attr::Int(-&value),
            _ => opaque(),
        },
        _ => opaque(),
    }
}
