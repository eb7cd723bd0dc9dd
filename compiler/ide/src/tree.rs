//! Helpers to find expressions of a statement by their tokens.

use rx_syntax::ast::{Expr, ExprKind, TokenRange};
use rx_syntax::{Cursor, Root, Segment, Statement};

/// Whether a range of tokens contains a token.
pub(crate) fn holds(range: TokenRange, token: u32) -> bool {
    (range.start..range.end).contains(&token)
}

/// Returns the expressions that contain a token (an index in the segment's table), outermost first.
pub(crate) fn path_to<'a>(
    segment: &'a Segment,
    statement: &'a Statement,
    token: u32,
) -> Option<(Root<'a>, Vec<&'a Expr>)> {
    let inside = |root: &Root<'a>| token.checked_sub(root.base).is_some_and(|token| holds(root.expr.tokens, token));
    let root = segment.roots(statement).into_iter().find(inside)?;
    let token = token - root.base;
    let mut path = vec![root.expr];
    while let Some(inner) = path.last().and_then(|expr| child_at(expr, token)) {
        path.push(inner);
    }
    Some((root, path))
}

fn child_at(expr: &Expr, token: u32) -> Option<&Expr> {
    expr.children().into_iter().find(|child| holds(child.tokens, token))
}

/// Returns the last component of a callee's name: `Tensor` for the call `R.Tensor(…)`.
pub(crate) fn last_name<'a>(cursor: Cursor<'a>, callee: &Expr) -> &'a str {
    match &callee.kind {
        ExprKind::Name => cursor.text(callee.tokens.start),
        ExprKind::Attribute { name, .. } => cursor.text(*name),
        _ => "",
    }
}
