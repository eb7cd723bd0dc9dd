//! From typed calls back to how they are written: where an argument stands, and every expression of a segment.

use rx_base::Span;
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segment, Statement};

/// A call as it is written.
pub(super) struct WrittenCall<'a> {
    pub cursor: Cursor<'a>,
    pub arguments: &'a [Argument],
}

impl WrittenCall<'_> {
    /// Where the argument for a parameter stands, given by keyword or as the `position`-th; `None` when it is left out.
    pub fn argument(&self, keyword: &str, position: Option<usize>) -> Option<Span> {
        let named = |argument: &&Argument| argument.keyword.is_some_and(|token| self.cursor.text(token) == keyword);
        let positional = || self.arguments.get(position?).filter(|argument| argument.keyword.is_none());
        let found = self.arguments.iter().find(named).or_else(positional)?;
        Some(self.cursor.span(found.value.tokens))
    }
}

/// The call written at `span` of a segment.
pub(super) fn call_at(segment: &Segment, span: Span) -> Option<WrittenCall<'_>> {
    let statements = &segment.tree().statements;
    let at = statements.partition_point(|statement| statement.span.start <= span.start).checked_sub(1)?;
    let mut found = None;
    each_expr(segment, statements.get(at)?, &mut |cursor, expr| {
        if let ExprKind::Call { arguments, .. } = &expr.kind
            && found.is_none()
            && cursor.span(expr.tokens) == span
        {
            found = Some(WrittenCall { cursor, arguments });
        }
    });
    found
}

/// Visits every expression of a statement, outer ones before their parts.
pub(super) fn each_expr<'a>(
    segment: &'a Segment,
    statement: &'a Statement,
    visit: &mut dyn FnMut(Cursor<'a>, &'a Expr),
) {
    let cursor = segment.cursor(statement);
    let mut open: Vec<(Cursor<'a>, &'a Expr)> = Vec::new();
    match &statement.tree.kind {
        StatementKind::Decorator(expr)
        | StatementKind::While(expr)
        | StatementKind::If(expr)
        | StatementKind::Elif(expr)
        | StatementKind::Expr(expr)
        | StatementKind::Return(Some(expr)) => open.push((cursor, expr)),
        StatementKind::Def { params, ret, .. } => {
            for param in params {
                let own = cursor.parameter(param);
                open.extend(param.tree.annotation.iter().chain(&param.tree.default).map(|part| (own, part)));
            }
            open.extend(ret.iter().map(|ret| (cursor, ret)));
        }
        StatementKind::With(items) => open.extend(items.iter().map(|item| (cursor, &item.context))),
        StatementKind::For { target, iter } => open.extend([(cursor, target), (cursor, iter)]),
        StatementKind::Assign { targets, value } => {
            open.extend(targets.iter().chain([value]).map(|part| (cursor, part)));
        }
        StatementKind::AnnAssign { target, annotation, value } => {
            open.extend([target, annotation].into_iter().chain(value).map(|part| (cursor, part)));
        }
        StatementKind::AugAssign { target, value, .. } => open.extend([(cursor, target), (cursor, value)]),
        StatementKind::Assert { test, message } => {
            open.extend([test].into_iter().chain(message).map(|part| (cursor, part)));
        }
        _ => {}
    }
    open.reverse();
    while let Some((cursor, expr)) = open.pop() {
        visit(cursor, expr);
        open.extend(expr.children().into_iter().rev().map(|child| (cursor, child)));
    }
}
