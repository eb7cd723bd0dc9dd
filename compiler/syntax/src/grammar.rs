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

#[cfg(test)]
mod tests {
    use crate::render::{error, statement};

    #[test]
    fn operators_bind_as_in_python() {
        assert_eq!(statement("a + b * c ** -d ** e"), "⟨a Add ⟨b Mul ⟨c Pow Neg⟨⟨d Pow e⟩⟩⟩⟩⟩");
        assert_eq!(statement("-a ** b - c - d"), "⟨⟨Neg⟨⟨a Pow b⟩⟩ Sub c⟩ Sub d⟩");
        assert_eq!(statement("a >> b % 32 & 1 == 1"), "⟨⟨⟨a RightShift ⟨b Mod 32⟩⟩ BitAnd 1⟩ Eq 1⟩");
        assert_eq!(statement("not a in b and c or d or e"), "⟨⟨Not⟨⟨a In b⟩⟩ And c⟩ Or d Or e⟩");
        assert_eq!(statement("a < b <= c is not d not in e"), "⟨a Lt b Le c IsNot d NotIn e⟩");
        assert_eq!(statement("a if b else c if d else e"), "⟨a if b else ⟨c if d else e⟩⟩");
        assert_eq!(
            statement("x[a | b ^ c & ~d, 1:2, ::k, ...]"),
            "x[tuple(⟨a BitOr ⟨b BitXor ⟨c BitAnd Invert⟨d⟩⟩⟩⟩, 1:2:, ::k, ...)]"
        );
    }

    #[test]
    fn atoms_and_their_suffixes() {
        assert_eq!(
            statement("R.nn.conv2d(x, w, strides=[1, 1], *a, **b)[0].f()"),
            "R.nn.conv2d(x, w, strides=list(1, 1), *a, **b)[0].f()"
        );
        assert_eq!(
            statement("((a), (a,), (), {}, {a: b, **c}, {a}, [*b])"),
            "tuple((a), tuple(a), tuple(), dict(), dict(a: b, **: c), set(a), list(*b))"
        );
        assert_eq!(statement("f(lambda x, y=1: x, (z := 2), k=\"a\" 'b')"), "f(lambda/2⟨x⟩, (⟨z := 2⟩), k=\"a\" 'b')");
        assert_eq!(
            statement("{k: v for k, v in x if y}, [await b for a in c], f(x for x in y)"),
            "tuple({k: v for k, v in x if y}, [await b for a in c], f(x for x in y))"
        );
        assert_eq!(statement("match.type + case"), "⟨match.type Add case⟩");
    }

    #[test]
    fn statements() {
        assert_eq!(statement("gv: R.Tuple(T, T) = A, lv"), "gv: R.Tuple(T, T) = tuple(A, lv)");
        assert_eq!(statement("a = b, = c"), "a = tuple(b) = c");
        assert_eq!(statement("x //= 2"), "x FloorDiv= 2");
        assert_eq!(statement("with a as b, f() as (c, d):"), "with a as b, f() as tuple(c, d)");
        assert_eq!(statement("with (a as b, c,):"), "with a as b, c as -");
        assert_eq!(statement("for i, j in T.grid(1, 2):"), "for tuple(i, j) in T.grid(1, 2)");
        assert_eq!(
            statement("def main[n, *m](x: R.Tensor((n,), \"f\"), *, y=1, **k) -> R.Any:"),
            "def main[n,m](x: R.Tensor(tuple(n), \"f\") = -; *_: - = -; y: - = 1; **k: - = -) -> R.Any"
        );
        for text in [
            "import a.b as c, d",
            "from . import (a, b as c,)",
            "from a.b import *",
            "class A(B, metaclass=C):",
            "assert a, b",
            "raise X from y",
            "try:",
            "async def f(): pass",
            "match x:",
            "type X = int",
            "x = yield y",
            "del a, b",
            "global x",
        ] {
            assert_eq!(error(text), None, "{text}");
        }
    }

    #[test]
    fn messages_name_the_expected_token() {
        let found = |text: &str| error(text).map(|(message, at)| format!("{message} @{at}"));
        assert_eq!(found("x = = 1").as_deref(), Some("expected an expression, found `=` @="));
        assert_eq!(found("x = f(a b)").as_deref(), Some("expected `,`, `)` or `=`, found the name `b` @b"));
        assert_eq!(found("x = a +").as_deref(), Some("expected an expression, found the end of the line @"));
        assert_eq!(found("if x").as_deref(), Some("expected `,` or `:`, found the end of the line @"));
        assert_eq!(found("x = \"abc").as_deref(), Some("the string is never closed @\"abc"));
        assert_eq!(found("x = a $ b").as_deref(), Some("`$` starts no token of TVMScript @$"));
        assert_eq!(found("f(a=1, b)").as_deref(), Some("a positional argument after a keyword argument @b"));
        assert_eq!(found("f(x) = 1").as_deref(), Some("nothing can be assigned to this expression @f(x)"));
        assert_eq!(found("def f(x: R.Tensor((2, 3, \"f\"), y: T):").as_deref(), Some("`(` is never closed @("));
        assert_eq!(found("{a: b, c}").as_deref(), Some("a dict's and a set's entries are mixed @a"));
    }
}
