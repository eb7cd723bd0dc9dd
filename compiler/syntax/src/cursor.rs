//! Cursors, which map the token indices of a tree to the text that it was parsed from.

use crate::ast::{Expr, ExprKind, Parameter, TokenIndex, TokenRange};
use crate::literal;
use crate::token::{TokenKind, TokenTable};
use rx_base::name::name;
use rx_base::{Name, Span};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The names of `a.b.c`, in source order.
pub type SmallPath = SmallVec<[Name; 4]>;

/// The text of one tree: a statement's or a parameter's. Methods return an empty result for an index outside the text.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    text: &'a str,
    tokens: &'a TokenTable,
    base: u32,
    /// If the text is the content of a string: the span of that string in the text around it. All spans are then this
    /// one.
    quoted: Option<Span>,
}

/// Tokens of a tree, with the cursor that reads their text.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The text of the tree.
    pub cursor: Cursor<'a>,
    /// The tokens.
    pub tokens: TokenRange,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a TokenTable, base: u32) -> Cursor<'a> {
        Cursor { text, tokens, base, quoted: None }
    }

    /// Returns a cursor over the same text as the content of a string literal at `place`: [`Cursor::span`] then always
    /// returns `place`.
    pub fn quoted_at(self, place: Span) -> Cursor<'a> {
        Cursor { quoted: Some(place), ..self }
    }

    /// Returns these tokens together with the cursor.
    pub fn at(self, tokens: TokenRange) -> At<'a> {
        At { cursor: self, tokens }
    }

    #[inline]
    fn token_span(self, token: TokenIndex) -> Option<Span> {
        self.tokens.span(self.base.checked_add(token)?)
    }

    /// The kind of a token.
    #[inline]
    pub fn kind(&self, token: TokenIndex) -> Option<TokenKind> {
        self.tokens.kind(self.base.checked_add(token)?)
    }

    /// The text of a token.
    #[inline]
    pub fn text(&self, token: TokenIndex) -> &'a str {
        if self.tokens.is_substituted()
            && let Some(literal) = self.base.checked_add(token).and_then(|token| self.tokens.literal(token))
        {
            return &literal.text;
        }
        self.token_span(token).and_then(|span| self.text.get(span.range())).unwrap_or_default()
    }

    /// Whether trees over this text may contain literals that are not written in it (see
    /// [`crate::Segment::substituted`]). Equal texts may then have different meanings.
    pub fn is_substituted(&self) -> bool {
        self.tokens.is_substituted()
    }

    /// Returns the token index, relative to this cursor's tree, of literal number `literal` of a substituted segment.
    pub fn literal_token(&self, literal: u32) -> Option<TokenIndex> {
        self.tokens.len().checked_add(literal)?.checked_sub(self.base)
    }

    /// The text of a token, interned.
    pub fn name(&self, token: TokenIndex) -> Name {
        name(self.text(token))
    }

    /// The bytes of a token range in the segment. For an empty range, the empty span after the token before it. For the
    /// content of a string literal, the span of the whole literal.
    #[inline]
    pub fn span(&self, range: TokenRange) -> Span {
        self.quoted.unwrap_or_else(|| self.own_span(range))
    }

    #[inline]
    fn own_span(&self, range: TokenRange) -> Span {
        let first = self.token_span(range.start);
        if range.start >= range.end {
            let before = range.start.checked_sub(1).and_then(|before| self.token_span(before));
            let place = before.map(|span| span.end).or(first.map(|span| span.start));
            return Span::empty(place.unwrap_or(self.text.len() as u32));
        }
        if range.end - range.start == 1
            && let Some(only) = first
        {
            return only;
        }
        let end = self.text.len() as u32;
        let first = first.unwrap_or(Span::empty(end));
        let last = self.token_span(range.end - 1).unwrap_or(Span::empty(end));
        Span::new(first.start, last.end.max(first.start))
    }

    /// The text of a token range, with the blanks and comments between the tokens.
    pub fn source(&self, range: TokenRange) -> &'a str {
        self.text.get(self.own_span(range).range()).unwrap_or_default()
    }

    /// The text of a dotted name, without blanks around its dots: `R.add` for `R . add`.
    pub fn path(&self, range: TokenRange) -> &'a str {
        let source = self.source(range);
        let is_part = |token| self.kind(token).is_some_and(|kind| kind == TokenKind::Dot || kind.is_name());
        let is_spaced = source.contains(|c: char| c.is_whitespace() || c == '\\');
        if !is_spaced || !(range.start..range.end).all(is_part) {
            return source;
        }
        let parts: String = (range.start..range.end).map(|token| self.text(token)).collect();
        name(&parts).as_str()
    }

    /// Returns the cursor for a parameter's tree.
    pub fn parameter(&self, parameter: &Parameter) -> Cursor<'a> {
        Cursor { base: self.base.saturating_add(parameter.first_token), ..*self }
    }

    /// The value of a string literal, or of several adjacent ones. `None` for other expressions, for bytes and
    /// f-strings, and if an escape is invalid.
    pub fn string_value(&self, expr: &Expr) -> Option<Cow<'a, str>> {
        let ExprKind::String = expr.kind else { return None };
        let mut value = literal::string(self.text(expr.tokens.start))?;
        for token in expr.tokens.start + 1..expr.tokens.end {
            value.to_mut().push_str(&literal::string(self.text(token))?);
        }
        Some(value)
    }

    /// The boolean that a call passes for a keyword: for `pure` in `@R.function(pure=False)`, `false`.
    pub fn flag(&self, call: &Expr, keyword: &str) -> Option<bool> {
        let ExprKind::Call { arguments, .. } = &call.kind else { return None };
        arguments.iter().find_map(|argument| match argument.value.kind {
            ExprKind::Bool(value) if self.text(argument.keyword?) == keyword => Some(value),
            _ => None,
        })
    }

    /// The value of an integer literal; `None` for other expressions and for values that do not fit into an `i128`.
    pub fn integer_value(&self, expr: &Expr) -> Option<i128> {
        let ExprKind::Integer = expr.kind else { return None };
        literal::integer(self.text(expr.tokens.start))
    }

    /// The value of a float literal; `None` for other expressions and for imaginary literals.
    pub fn float_value(&self, expr: &Expr) -> Option<f64> {
        let ExprKind::Float = expr.kind else { return None };
        literal::float(self.text(expr.tokens.start))
    }

    /// The names of a dotted name `a.b.c`; `None` for other expressions.
    pub fn dotted(&self, expr: &Expr) -> Option<SmallPath> {
        let mut names = SmallPath::new();
        let mut expr = expr;
        loop {
            match &expr.kind {
                ExprKind::Name => {
                    names.push(self.name(expr.tokens.start));
                    names.reverse();
                    return Some(names);
                }
                ExprKind::Attribute { value, name } => {
                    names.push(self.name(*name));
                    expr = value;
                }
                _ => return None,
            }
        }
    }
}
