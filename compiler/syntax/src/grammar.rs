//! The grammar of one logical line, in chumsky, over token kinds alone.
//!
//! Input is a slice of [`TokenKind`]s, so a parse is a pure function of the kinds: [`crate::shape`] caches it. Brackets
//! are balanced and nesting is bounded before the grammar sees a line ([`crate::nesting`]); a line that does not parse
//! is taken apart by [`crate::recover`].

mod expression;
mod failure;
mod statement;

pub(crate) use failure::Failure;

use crate::ast::{Expr, ParameterTree, StatementKind, TokenRange};
use crate::token::TokenKind;
use chumsky::prelude::*;

/// What the grammar reads.
pub(crate) type Kinds<'k> = &'k [TokenKind];

/// What chumsky carries along: our error, no state, no context.
pub(crate) type Extra = extra::Err<Failure>;

/// The entry points, built together because they share the expression grammar. Building takes some microseconds:
/// build once for many lines.
pub(crate) struct Grammar<'k> {
    statement: Boxed<'k, 'k, Kinds<'k>, StatementKind, Extra>,
    expressions: Boxed<'k, 'k, Kinds<'k>, Expr, Extra>,
    parameter: Boxed<'k, 'k, Kinds<'k>, ParameterTree, Extra>,
}

impl<'k> Grammar<'k> {
    /// The grammar for inputs that live as long as `'k`.
    pub(crate) fn new() -> Grammar<'k> {
        let expression = expression::expression().boxed();
        Grammar {
            statement: statement::statement(expression.clone()).boxed(),
            expressions: expression::expressions(expression.clone()).boxed(),
            parameter: statement::parameter(expression).boxed(),
        }
    }

    /// Reads a whole statement but a `def` header.
    pub(crate) fn statement(&self, kinds: Kinds<'k>) -> Result<StatementKind, Failure> {
        first_failure(self.statement.parse(kinds))
    }

    /// Reads an expression, or several with commas, which make a tuple.
    pub(crate) fn expressions(&self, kinds: Kinds<'k>) -> Result<Expr, Failure> {
        first_failure(self.expressions.parse(kinds))
    }

    /// Reads a parameter of a `def`.
    pub(crate) fn parameter(&self, kinds: Kinds<'k>) -> Result<ParameterTree, Failure> {
        first_failure(self.parameter.parse(kinds))
    }
}

fn first_failure<T>(result: ParseResult<T, Failure>) -> Result<T, Failure> {
    result.into_result().map_err(|failures| failures.into_iter().next().unwrap_or_default())
}

/// The tokens of a chumsky span.
fn range(span: SimpleSpan<usize>) -> TokenRange {
    TokenRange { start: span.start as u32, end: span.end as u32 }
}
