//! Shifting of token indices in trees: the parts of a long line are parsed separately, each with indices from 0, and
//! then moved to their position in the line.

use crate::ast::{Argument, Expr, ExprKind, SyntaxError, TokenRange};

fn range(tokens: &mut TokenRange, by: u32) {
    tokens.start += by;
    tokens.end += by;
}

impl SyntaxError {
    /// Returns the error with its token indices increased by `by`.
    pub(crate) fn shifted(mut self, by: u32) -> SyntaxError {
        range(&mut self.tokens, by);
        self
    }
}

/// Returns the expression with all token indices increased by `by`.
pub(crate) fn expr(mut value: Expr, by: u32) -> Expr {
    if by != 0 {
        shift(&mut value, by);
    }
    value
}

fn shift(value: &mut Expr, by: u32) {
    range(&mut value.tokens, by);
    let mut child = |value: &mut Expr| shift(value, by);
    match &mut value.kind {
        ExprKind::Attribute { value, name } => {
            *name += by;
            child(value);
        }
        ExprKind::Subscript { value, index } => {
            child(value);
            child(index);
        }
        ExprKind::Call { callee, arguments: list } => {
            child(callee);
            arguments(list, by);
        }
        ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Set(items) | ExprKind::Bool2(_, items) => {
            items.iter_mut().for_each(child);
        }
        ExprKind::Parenthesized(inner) | ExprKind::Unary(_, inner) | ExprKind::Starred { value: inner, .. } => {
            child(inner)
        }
        ExprKind::Dict(entries) => {
            for (key, value) in entries {
                key.as_mut().map(&mut child);
                child(value);
            }
        }
        ExprKind::Slice { lower, upper, step } => {
            [lower, upper, step].into_iter().flatten().for_each(|bound| child(bound));
        }
        ExprKind::Binary(_, lhs, rhs) => {
            child(lhs);
            child(rhs);
        }
        ExprKind::Compare(first, rest) => {
            child(first);
            rest.iter_mut().for_each(|(_, operand)| child(operand));
        }
        ExprKind::Conditional { then, test, otherwise } => {
            [then, test, otherwise].into_iter().for_each(|part| child(part))
        }
        ExprKind::Lambda { params, body } => {
            params.iter_mut().for_each(|param| param.first_token += by);
            child(body);
        }
        ExprKind::Walrus { name, value } => {
            *name += by;
            child(value);
        }
        ExprKind::Name
        | ExprKind::Integer
        | ExprKind::Float
        | ExprKind::String
        | ExprKind::Bool(_)
        | ExprKind::None
        | ExprKind::Ellipsis
        | ExprKind::Comprehension
        | ExprKind::Python
        | ExprKind::Error => {}
    }
}

/// Shifts a call's arguments.
fn arguments(list: &mut [Argument], by: u32) {
    for argument in list {
        if let Some(keyword) = &mut argument.keyword {
            *keyword += by;
        }
        shift(&mut argument.value, by);
    }
}
