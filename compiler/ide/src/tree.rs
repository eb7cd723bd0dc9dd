//! The expressions of a statement, with the tokens they are made of.

use rx_syntax::ast::{Expr, ExprKind, StatementKind, TokenRange};
use rx_syntax::{Cursor, Segment, Statement};

/// An expression of a statement that is no part of another.
#[derive(Clone, Copy)]
pub(crate) struct Root<'a> {
    /// The first token that its tree counts from, in the segment's table.
    pub(crate) base: u32,
    /// The text behind its tree.
    pub(crate) cursor: Cursor<'a>,
    /// The expression.
    pub(crate) expr: &'a Expr,
}

/// The outermost expressions of a statement: targets, values, annotations, arguments of a class.
pub(crate) fn roots<'a>(segment: &'a Segment, statement: &'a Statement) -> Vec<Root<'a>> {
    let (base, cursor) = (statement.first_token, segment.cursor(statement));
    let root = |expr| Root { base, cursor, expr };
    match &statement.tree.kind {
        StatementKind::Decorator(expr)
        | StatementKind::While(expr)
        | StatementKind::If(expr)
        | StatementKind::Elif(expr)
        | StatementKind::Expr(expr)
        | StatementKind::Return(Some(expr)) => vec![root(expr)],
        StatementKind::Class { bases, .. } => bases.iter().map(|base| root(&base.value)).collect(),
        StatementKind::Def { params, ret, .. } => {
            let of_params = params.iter().flat_map(|param| {
                let (base, cursor) = (base.saturating_add(param.first_token), cursor.parameter(param));
                let parts = param.tree.annotation.iter().chain(&param.tree.default);
                parts.map(move |expr| Root { base, cursor, expr })
            });
            of_params.chain(ret.iter().map(root)).collect()
        }
        StatementKind::With(items) => {
            items.iter().flat_map(|item| std::iter::once(&item.context).chain(&item.target)).map(root).collect()
        }
        StatementKind::For { target, iter } => vec![root(target), root(iter)],
        StatementKind::Assign { targets, value } => targets.iter().chain([value]).map(root).collect(),
        StatementKind::AnnAssign { target, annotation, value } => {
            [target, annotation].into_iter().chain(value).map(root).collect()
        }
        StatementKind::AugAssign { target, value, .. } => vec![root(target), root(value)],
        StatementKind::Assert { test, message } => std::iter::once(test).chain(message).map(root).collect(),
        _ => Vec::new(),
    }
}

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
    let root = roots(segment, statement).into_iter().find(inside)?;
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
