//! The expressions of a statement, with the tokens they are made of.

use rx_syntax::ast::{Expr, ExprKind, TokenRange};
use rx_syntax::{Cursor, Root, Segment, Statement};

/// Whether a range of a tree holds a token.
pub(crate) fn holds(range: TokenRange, token: u32) -> bool {
    (range.start..range.end).contains(&token)
}

/// The expressions that hold a token of the segment's table, outermost first.
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

/// The name a call's callee ends in: `Tensor` of `R.Tensor(…)`, with the call's arguments.
pub(crate) fn last_name<'a>(cursor: Cursor<'a>, callee: &Expr) -> &'a str {
    match &callee.kind {
        ExprKind::Name => cursor.text(callee.tokens.start),
        ExprKind::Attribute { name, .. } => cursor.text(*name),
        _ => "",
    }
}
