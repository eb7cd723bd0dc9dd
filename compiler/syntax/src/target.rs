//! The check of assignment targets.

use crate::ast::{Expr, ExprKind, StatementKind, SyntaxError};
use rx_base::Code;

/// Returns an error for the first expression that is used as a target but cannot be assigned to.
pub(crate) fn check(kind: &StatementKind) -> Option<SyntaxError> {
    let wrong = match kind {
        StatementKind::Assign { targets, .. } => targets.iter().find_map(wrong_part),
        StatementKind::AnnAssign { target, .. } | StatementKind::AugAssign { target, .. } => wrong_single(target),
        StatementKind::For { target, .. } => wrong_part(target),
        StatementKind::With(items) => items.iter().find_map(|item| wrong_part(item.target.as_ref()?)),
        _ => None,
    }?;
    Some(SyntaxError {
        code: Code::SyntaxError,
        tokens: wrong.tokens,
        expected: Vec::new(),
        message: "nothing can be assigned to this expression",
    })
}

fn wrong_single(target: &Expr) -> Option<&Expr> {
    match &target.kind {
        ExprKind::Parenthesized(inner) => wrong_single(inner),
        ExprKind::Name | ExprKind::Attribute { .. } | ExprKind::Subscript { .. } => None,
        _ => Some(target),
    }
}

fn wrong_part(target: &Expr) -> Option<&Expr> {
    match &target.kind {
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().find_map(wrong_part),
        ExprKind::Starred { value, .. } | ExprKind::Parenthesized(value) => wrong_part(value),
        _ => wrong_single(target),
    }
}
