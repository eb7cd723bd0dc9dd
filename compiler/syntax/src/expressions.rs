//! Access to the expressions of statements, together with the text that they were parsed from.

use crate::ast::{Expr, ExprKind, StatementKind, TokenRange};
use crate::cursor::Cursor;
use crate::segment::{Segment, Statement};
use rx_base::Span;

/// An outermost expression of a statement: a target, a value, an annotation, or an argument of a class.
#[derive(Clone, Copy)]
pub struct Root<'a> {
    /// The token, in the segment's table, from which the token indices of its tree count.
    pub base: u32,
    /// The cursor for its tree.
    pub cursor: Cursor<'a>,
    /// The expression.
    pub expr: &'a Expr,
}

impl StatementKind {
    /// Returns the outermost expressions of a statement, in order. Token indices in those of a parameter count from the
    /// parameter's first token.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            StatementKind::Decorator(expr)
            | StatementKind::While(expr)
            | StatementKind::If(expr)
            | StatementKind::Elif(expr)
            | StatementKind::Expr(expr) => vec![expr],
            StatementKind::Class { bases, .. } => bases.iter().map(|base| &base.value).collect(),
            StatementKind::Def { params, ret, .. } => {
                let params = params.iter().flat_map(|p| p.tree.annotation.iter().chain(&p.tree.default));
                params.chain(ret).collect()
            }
            StatementKind::With(items) => {
                items.iter().flat_map(|item| std::iter::once(&item.context).chain(&item.target)).collect()
            }
            StatementKind::For { target, iter } => vec![target, iter],
            StatementKind::Assign { targets, value } => targets.iter().chain(Some(value)).collect(),
            StatementKind::AnnAssign { target, annotation, value } => {
                [target, annotation].into_iter().chain(value).collect()
            }
            StatementKind::AugAssign { target, value, .. } => vec![target, value],
            StatementKind::Return(value) => value.iter().collect(),
            StatementKind::Assert { test, message } => std::iter::once(test).chain(message).collect(),
            _ => Vec::new(),
        }
    }
}

impl Segment {
    /// Returns the outermost expressions of a statement, in order, with their cursors.
    pub fn roots<'a>(&'a self, statement: &'a Statement) -> Vec<Root<'a>> {
        let (base, cursor) = (statement.first_token, self.cursor(statement));
        let root = |expr| Root { base, cursor, expr };
        let StatementKind::Def { params, ret, .. } = &statement.tree.kind else {
            return statement.tree.kind.expressions().into_iter().map(root).collect();
        };
        let of_params = params.iter().flat_map(|param| {
            let (base, cursor) = (base.saturating_add(param.first_token), cursor.parameter(param));
            param.tree.annotation.iter().chain(&param.tree.default).map(move |expr| Root { base, cursor, expr })
        });
        of_params.chain(ret.iter().map(root)).collect()
    }

    /// Visits every expression of a statement, in pre-order.
    pub fn each_expr<'a>(&'a self, statement: &'a Statement, visit: &mut dyn FnMut(Cursor<'a>, &'a Expr)) {
        let mut open: Vec<_> = self.roots(statement).into_iter().map(|root| (root.cursor, root.expr)).rev().collect();
        while let Some((cursor, expr)) = open.pop() {
            visit(cursor, expr);
            open.extend(expr.children().into_iter().rev().map(|child| (cursor, child)));
        }
    }

    /// Returns the last statement that starts at or before a byte, with its index.
    pub fn statement_before(&self, at: u32) -> Option<(usize, &Statement)> {
        let statements = &self.tree().statements;
        let index = statements.partition_point(|statement| statement.span.start <= at).checked_sub(1)?;
        Some((index, statements.get(index)?))
    }

    /// Returns the call expression with exactly this span.
    pub fn call_at(&self, span: Span) -> Option<(Cursor<'_>, &Expr)> {
        let (_, statement) = self.statement_before(span.start)?;
        let mut found = None;
        self.each_expr(statement, &mut |cursor, expr| {
            if matches!(expr.kind, ExprKind::Call { .. }) && found.is_none() && cursor.span(expr.tokens) == span {
                found = Some((cursor, expr));
            }
        });
        found
    }

    /// Returns the span of the name in the function header that the segment contains.
    pub fn function_name(&self) -> Option<Span> {
        self.tree().statements.iter().find_map(|statement| match &statement.tree.kind {
            StatementKind::Def { name, .. } => Some(self.cursor(statement).span(TokenRange::one(*name))),
            _ => None,
        })
    }
}
