//! Extract variable: names an intermediate value.
//!
//! ```text
//! return R.nn.relu(R.add(x, y))       # before, with `R.add(x, y)` selected
//!
//! add = R.add(x, y)                   # after
//! return R.nn.relu(add)
//! ```
//!
//! Requires a call, a field or an arithmetic operation without side effects that is evaluated whenever its statement
//! is.

use super::fresh::Fresh;
use super::site::Site;
use super::{Proposal, RefactorKind};
use crate::tree::last_name;
use rx_base::Span;
use rx_db::FileView;
use rx_syntax::Cursor;
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use std::collections::HashSet;

/// Returns the extraction of the selected expression of the text `file`. For a cursor, of the innermost expression
/// around it that is a part of its statement's value.
pub(super) fn proposal(view: &FileView<'_>, file: &str, range: Span) -> Option<Proposal> {
    let site = Site::at(view, range.start)?;
    let (cursor, expr) = chosen(&site, range)?;
    let text = match cursor.source(expr.tokens) {
        text if !site.is_pure(view, text) => return None,
        // Without its surroundings, an operation on several lines needs parentheses.
        text if text.contains(['\n', '\r']) && matches!(expr.kind, ExprKind::Binary(..) | ExprKind::Unary(..)) => {
            format!("({text})")
        }
        text => text.to_owned(),
    };
    let name = Fresh::variables(file).name(like(cursor, expr));
    let separator = match site.statement.inline {
        true => "; ".to_owned(),
        false => format!("{}{}", view.document().line_end(), site.indent()),
    };
    let place = Span::empty(site.span().start);
    let edits = vec![
        (place, format!("{name} = {text}{separator}")),
        (cursor.span(expr.tokens).shift(site.start), name.clone()),
    ];
    let title = format!("Extract `{name}` into a variable");
    let (edited, value, touched) = (site.function(view)?, Some(name.clone()), HashSet::from([name]));
    Some(Proposal { title, kind: RefactorKind::Extract, edits, edited, touched, added: None, value })
}

/// Returns the expression to extract.
fn chosen<'a>(site: &Site<'a>, range: Span) -> Option<(Cursor<'a>, &'a Expr)> {
    let (root, path) = site.path(range.start)?;
    let value = site.value().filter(|value| std::ptr::eq(*value, root.expr))?;
    let cursor = root.cursor;
    let at = match range.is_empty() {
        true => path.iter().rposition(|expr| is_operation(expr))?,
        false => path.iter().position(|expr| cursor.span(expr.tokens).shift(site.start) == range)?,
    };
    let (expr, around) = (*path.get(at)?, path.get(..at)?);
    // The value of a binding has a name already.
    let is_named = std::ptr::eq(expr, value) && !matches!(site.kind(), StatementKind::Return(_) | StatementKind::If(_));
    let is_callee = around.last().is_some_and(|around| match &around.kind {
        ExprKind::Call { callee, .. } => std::ptr::eq(&**callee, expr),
        _ => false,
    });
    let is_extractable = is_operation(expr) && !is_named && !is_callee && !around.iter().any(|it| is_lazy(it));
    is_extractable.then_some((cursor, expr))
}

/// Whether an expression computes a value.
fn is_operation(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Parenthesized(inner) => is_operation(inner),
        ExprKind::Call { .. } | ExprKind::Subscript { .. } | ExprKind::Binary(..) | ExprKind::Unary(..) => true,
        _ => false,
    }
}

/// Whether the parts of an expression may be evaluated never or several times.
fn is_lazy(expr: &Expr) -> bool {
    let kind = &expr.kind;
    matches!(
        kind,
        ExprKind::Lambda { .. } | ExprKind::Comprehension | ExprKind::Conditional { .. } | ExprKind::Bool2(..)
    )
}

/// Returns a name for the value of an expression: that of the function, or of the tuple.
fn like<'a>(cursor: Cursor<'a>, expr: &Expr) -> &'a str {
    match &expr.kind {
        ExprKind::Call { callee, .. } => last_name(cursor, callee),
        ExprKind::Name => cursor.text(expr.tokens.start),
        ExprKind::Subscript { value, .. } => like(cursor, value),
        ExprKind::Parenthesized(inner) => like(cursor, inner),
        _ => "value",
    }
}
