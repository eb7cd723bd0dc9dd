//! The chumsky grammar of one logical line, over token kinds.
//!
//! The input is a slice of [`TokenKind`]s, so a parse is a pure function of the kinds, and [`crate::shape`] caches it.
//! Brackets are balanced and nesting is bounded before the grammar parses a line ([`crate::nesting`]).
//! [`crate::recover`] handles a line that does not parse.

mod expression;
mod failure;
mod statement;

pub(crate) use failure::Failure;

use crate::ast::{Expr, ParameterTree, StatementKind, TokenRange};
use crate::token::TokenKind;
use chumsky::prelude::*;

/// The grammar's input.
pub(crate) type Kinds<'k> = &'k [TokenKind];

/// The extra type parameters of chumsky's parsers: the error type, no state, no context.
pub(crate) type Extra = extra::Err<Failure>;

/// The entry points of the grammar, built together because they share the expression grammar. Building takes several
/// microseconds, so build it once for many lines.
pub(crate) struct Grammar<'k> {
    statement: Boxed<'k, 'k, Kinds<'k>, StatementKind, Extra>,
    expressions: Boxed<'k, 'k, Kinds<'k>, Expr, Extra>,
    parameter: Boxed<'k, 'k, Kinds<'k>, ParameterTree, Extra>,
}

impl<'k> Grammar<'k> {
    /// Builds the grammar for inputs that live as long as `'k`.
    pub(crate) fn new() -> Grammar<'k> {
        let expression = expression::expression().boxed();
        Grammar {
            statement: statement::statement(expression.clone()).boxed(),
            expressions: expression::expressions(expression.clone()).boxed(),
            parameter: statement::parameter(expression).boxed(),
        }
    }

    /// Parses a whole statement, except a `def` header.
    pub(crate) fn statement(&self, kinds: Kinds<'k>) -> Result<StatementKind, Failure> {
        first_failure(self.statement.parse(kinds))
    }

    /// Parses an expression. Several expressions with commas form a tuple.
    pub(crate) fn expressions(&self, kinds: Kinds<'k>) -> Result<Expr, Failure> {
        first_failure(self.expressions.parse(kinds))
    }

    /// Parses a parameter of a `def`.
    pub(crate) fn parameter(&self, kinds: Kinds<'k>) -> Result<ParameterTree, Failure> {
        first_failure(self.parameter.parse(kinds))
    }
}

fn first_failure<T>(result: ParseResult<T, Failure>) -> Result<T, Failure> {
    result.into_result().map_err(|failures| failures.into_iter().next().unwrap_or_default())
}

/// Converts a chumsky span to a token range.
fn range(span: SimpleSpan<usize>) -> TokenRange {
    TokenRange { start: span.start as u32, end: span.end as u32 }
}
