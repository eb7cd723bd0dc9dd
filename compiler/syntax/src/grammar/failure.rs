//! The grammar's error type: the token at which the parse failed, and the set of alternatives that were expected there.

use super::Kinds;
use crate::token::TokenKind;
use chumsky::DefaultExpected;
use chumsky::error::{Error, LabelError};
use chumsky::prelude::SimpleSpan;
use chumsky::util::MaybeRef;

/// Grammar rules that messages name instead of the tokens they can start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// An expression.
    Expression,
    /// An assignment or an expression at the start of a line.
    Statement,
}

/// A bit set of token kinds and grammar rules. chumsky merges errors often, so a merge must be cheap: it is one `or`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Expected(u128);

const PART_SHIFT: u32 = 120;

// The bits of the rules must not overlap those of the token kinds.
const _: () = assert!((TokenKind::Unknown as u32) < PART_SHIFT);

impl Expected {
    const fn kind(kind: TokenKind) -> Expected {
        Expected(1 << kind as u32)
    }

    const fn part(part: Part) -> Expected {
        Expected(1 << (PART_SHIFT + part as u32))
    }

    fn has(self, other: Expected) -> bool {
        self.0 & other.0 != 0
    }
}

/// A failed parse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The index of the token at which the parse failed; the number of tokens if the input ended too early.
    pub(crate) at: u32,
    expected: Expected,
    /// A complete message, or empty.
    pub(crate) message: &'static str,
}

impl Failure {
    /// Creates a failure with a specific message.
    pub(crate) fn message(at: u32, message: &'static str) -> Failure {
        Failure { at, expected: Expected::default(), message }
    }

    /// Returns the expected alternatives as phrases. Operators that could continue an expression are left out, because
    /// they are possible after every expression.
    pub(crate) fn expected(&self) -> Vec<&'static str> {
        use TokenKind::*;
        let mut phrases = Vec::new();
        if self.expected.has(Expected::part(Part::Statement)) {
            phrases.push("a statement");
        } else if self.expected.has(Expected::part(Part::Expression)) {
            phrases.push("an expression");
        }
        const TELLING: [TokenKind; 16] = [
            Name,
            Comma,
            RightParen,
            RightBracket,
            RightBrace,
            LeftParen,
            Colon,
            Equal,
            In,
            As,
            Import,
            Else,
            If,
            Dot,
            For,
            String,
        ];
        let has = |kind: TokenKind| self.expected.has(Expected::kind(kind));
        // A slash is expected only as an operator after an operand.
        let after_expression = has(Slash);
        let before_expression = !phrases.is_empty();
        for kind in TELLING {
            let starts = matches!(kind, Name | LeftParen | String);
            let continues = matches!(kind, LeftParen | Dot | If | For | In | String);
            if has(kind) && !(after_expression && continues || before_expression && starts) {
                phrases.push(kind.phrase());
            }
        }
        phrases
    }
}

impl<'k> Error<'k, Kinds<'k>> for Failure {
    fn merge(mut self, other: Failure) -> Failure {
        self.expected.0 |= other.expected.0;
        if self.message.is_empty() {
            self.message = other.message;
        }
        self
    }
}

impl<'k> LabelError<'k, Kinds<'k>, DefaultExpected<'k, TokenKind>> for Failure {
    fn expected_found<E: IntoIterator<Item = DefaultExpected<'k, TokenKind>>>(
        expected: E,
        _: Option<MaybeRef<'k, TokenKind>>,
        span: SimpleSpan<usize>,
    ) -> Failure {
        let mut set = Expected::default();
        for item in expected {
            if let DefaultExpected::Token(kind) = item {
                set.0 |= Expected::kind(*kind).0;
            }
        }
        Failure { at: span.start as u32, expected: set, message: "" }
    }
}

impl<'k> LabelError<'k, Kinds<'k>, Part> for Failure {
    fn expected_found<E: IntoIterator<Item = Part>>(
        expected: E,
        _: Option<MaybeRef<'k, TokenKind>>,
        span: SimpleSpan<usize>,
    ) -> Failure {
        let set = expected.into_iter().fold(0, |set, part| set | Expected::part(part).0);
        Failure { at: span.start as u32, expected: Expected(set), message: "" }
    }

    fn label_with(&mut self, part: Part) {
        self.expected = Expected::part(part);
    }
}
