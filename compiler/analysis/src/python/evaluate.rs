//! Evaluates constant expressions.

use super::arithmetic::{binary, compare, element, slice, unary};
use super::builtins::{BUILTINS, call};
use super::value::PyValue;
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, BoolOp, Expr, ExprKind};

/// The names that an expression may use.
pub(super) trait Names {
    /// Returns the value of a constant.
    fn value(&self, name: &str) -> Option<PyValue>;

    /// Whether the name of a builtin function denotes that function.
    fn is_builtin(&self, name: &str) -> bool;
}

/// Evaluates an expression of literals and constants.
pub(super) fn evaluate(cursor: Cursor<'_>, expr: &Expr, names: &dyn Names) -> Option<PyValue> {
    let children: Vec<Option<PyValue>> =
        expr.children().into_iter().map(|child| evaluate(cursor, child, names)).collect();
    combine(cursor, expr, &children, names)
}

/// Evaluates an expression, given the values of its [`Expr::children`]. The value of a slice is the tuple of its
/// bounds; that of a starred argument is its sequence.
pub(super) fn combine(
    cursor: Cursor<'_>,
    expr: &Expr,
    children: &[Option<PyValue>],
    names: &dyn Names,
) -> Option<PyValue> {
    let child = |at: usize| children.get(at)?.as_ref();
    match &expr.kind {
        ExprKind::Name => names.value(cursor.text(expr.tokens.start)),
        ExprKind::Integer => cursor.integer_value(expr).map(PyValue::Int),
        ExprKind::Float => cursor.float_value(expr).map(PyValue::Float),
        ExprKind::String => match cursor.string_value(expr) {
            Some(text) => PyValue::string(&text),
            None => formatted(cursor, expr, names),
        },
        ExprKind::Bool(truth) => Some(PyValue::Bool(*truth)),
        ExprKind::None => Some(PyValue::None),
        ExprKind::Parenthesized(_) => child(0).cloned(),
        ExprKind::Starred { double: false, .. } => child(0).filter(|value| value.elements().is_some()).cloned(),
        ExprKind::Tuple(parts) => PyValue::tuple(spread(parts.iter(), children)?),
        ExprKind::List(parts) => PyValue::list(spread(parts.iter(), children)?),
        ExprKind::Unary(op, _) => unary(*op, child(0)?),
        ExprKind::Binary(op, ..) => binary(*op, child(0)?, child(1)?),
        ExprKind::Compare(_, rest) => {
            let mut holds = true;
            for (at, (op, _)) in rest.iter().enumerate() {
                holds &= compare(*op, child(at)?, child(at + 1)?)?;
            }
            Some(PyValue::Bool(holds))
        }
        ExprKind::Bool2(op, _) => {
            let ends_at = *op == BoolOp::Or;
            let mut last = None;
            for value in children {
                let value = value.as_ref()?;
                last = Some(value);
                if value.truth() == ends_at {
                    break;
                }
            }
            last.cloned()
        }
        ExprKind::Conditional { .. } => child(if child(1)?.truth() { 0 } else { 2 }).cloned(),
        ExprKind::Subscript { index, .. } => match &index.kind {
            ExprKind::Slice { .. } => slice(child(0)?, child(1)?.elements()?),
            _ => element(child(0)?, child(1)?),
        },
        ExprKind::Slice { lower, upper, step } => {
            let mut given = children.iter();
            let mut bound = |part: &Option<Box<Expr>>| match part {
                Some(_) => given.next()?.clone(),
                None => Some(PyValue::None),
            };
            PyValue::tuple(vec![bound(lower)?, bound(upper)?, bound(step)?])
        }
        ExprKind::Call { callee, arguments } => {
            let function = builtin(cursor, callee, names)?;
            if arguments.iter().any(|argument| argument.keyword.is_some()) {
                return None;
            }
            let values = spread(arguments.iter().map(|argument: &Argument| &argument.value), children.get(1..)?)?;
            call(function, &values)
        }
        _ => None,
    }
}

/// Returns the name of the builtin function that is called.
pub(super) fn builtin<'t>(cursor: Cursor<'t>, callee: &Expr, names: &dyn Names) -> Option<&'t str> {
    let function = matches!(callee.kind, ExprKind::Name).then(|| cursor.text(callee.tokens.start))?;
    (BUILTINS.contains(&function) && names.is_builtin(function)).then_some(function)
}

/// Returns the values of several expressions; `*sequence` contributes the elements of the sequence.
fn spread<'e>(parts: impl Iterator<Item = &'e Expr>, values: &[Option<PyValue>]) -> Option<Vec<PyValue>> {
    let mut all = Vec::with_capacity(values.len());
    for (part, value) in parts.zip(values) {
        let value = value.as_ref()?;
        match part.kind {
            ExprKind::Starred { .. } => all.extend(value.elements()?.iter().cloned()),
            _ => all.push(value.clone()),
        }
    }
    Some(all)
}

/// Evaluates an f-string with only constants in its braces, such as `f"float{BITS}"`.
fn formatted(cursor: Cursor<'_>, expr: &Expr, names: &dyn Names) -> Option<PyValue> {
    if expr.tokens.end - expr.tokens.start != 1 {
        return None;
    }
    let inner = format_string(cursor.text(expr.tokens.start))?;
    let mut text = String::new();
    let mut rest = inner;
    while let Some(at) = rest.find(['{', '}']) {
        // INVARIANT: offsets are those of ASCII characters that were found in `rest`, or of the one after them.
        text.push_str(&rest[..at]);
        let (mark, after) = rest[at..].split_at(1);
        if let Some(doubled) = after.strip_prefix(mark) {
            text.push_str(mark);
            rest = doubled;
            continue;
        }
        let (name, after) = after.split_once('}').filter(|_| mark == "{")?;
        text.push_str(&names.value(name.trim())?.text()?);
        rest = after;
    }
    text.push_str(rest);
    PyValue::string(&text)
}

/// Returns the text between the quotes of an f-string on one line, without escapes.
pub(super) fn format_string(literal: &str) -> Option<&str> {
    let quoted = literal.strip_prefix(['f', 'F'])?;
    let inner =
        [("\"", "\""), ("'", "'")].iter().find_map(|(open, close)| quoted.strip_prefix(open)?.strip_suffix(close))?;
    (!inner.contains(['\\', '"', '\''])).then_some(inner)
}
