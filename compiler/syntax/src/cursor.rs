//! From a tree's token indices back to text.

use crate::ast::{Expr, ExprKind, Parameter, TokenIndex, TokenRange};
use crate::literal;
use crate::token::{TokenKind, TokenTable};
use rx_base::name::name;
use rx_base::{Name, Span};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The names of `a.b.c`, outermost first.
pub type SmallPath = SmallVec<[Name; 4]>;

/// The text behind one tree: a statement's or a parameter's. Indices that lie outside the text yield empty answers.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    text: &'a str,
    tokens: &'a TokenTable,
    base: u32,
    /// Where all of it stands, if its own places are none of the text around it.
    quoted: Option<Span>,
}

/// Some tokens of a tree, with the cursor that reads them.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The tree's text.
    pub cursor: Cursor<'a>,
    /// Which tokens.
    pub tokens: TokenRange,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a TokenTable, base: u32) -> Cursor<'a> {
        Cursor { text, tokens, base, quoted: None }
    }

    /// The same text as the content of a string at `place`: whatever is asked for stands there.
    pub fn quoted_at(self, place: Span) -> Cursor<'a> {
        Cursor { quoted: Some(place), ..self }
    }

    /// These tokens of the text.
    pub fn at(self, tokens: TokenRange) -> At<'a> {
        At { cursor: self, tokens }
    }

    fn token_span(self, token: TokenIndex) -> Option<Span> {
        self.tokens.span(self.base.checked_add(token)?)
    }

    /// The kind of a token.
    pub fn kind(&self, token: TokenIndex) -> Option<TokenKind> {
        self.tokens.kind(self.base.checked_add(token)?)
    }

    /// A token's text.
    pub fn text(&self, token: TokenIndex) -> &'a str {
        if self.tokens.is_substituted()
            && let Some(literal) = self.base.checked_add(token).and_then(|token| self.tokens.literal(token))
        {
            return &literal.text;
        }
        self.token_span(token).and_then(|span| self.text.get(span.range())).unwrap_or_default()
    }

    /// Whether trees of this text may have literals that stand nowhere in it, so that equal texts may mean different things.
    pub fn is_substituted(&self) -> bool {
        self.tokens.is_substituted()
    }

    /// The index, for this cursor's trees, of the literal with number `literal` of a substituted segment.
    pub fn literal_token(&self, literal: u32) -> Option<TokenIndex> {
        self.tokens.len().checked_add(literal)?.checked_sub(self.base)
    }

    /// A token's text, interned.
    pub fn name(&self, token: TokenIndex) -> Name {
        name(self.text(token))
    }

    /// The bytes of some tokens in the segment; for none, the empty place after the token before them. Of quoted text it
    /// is the whole string.
    pub fn span(&self, range: TokenRange) -> Span {
        self.quoted.unwrap_or_else(|| self.own_span(range))
    }

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

    /// The text of some tokens, blanks and comments between them included.
    pub fn source(&self, range: TokenRange) -> &'a str {
        self.text.get(self.own_span(range).range()).unwrap_or_default()
    }

    /// The text of a dotted name, without what Python allows around its dots: `R.add` of `R . add`.
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

    /// The text behind a parameter's tree.
    pub fn parameter(&self, parameter: &Parameter) -> Cursor<'a> {
        Cursor { base: self.base.saturating_add(parameter.first_token), ..*self }
    }

    /// The value of a string literal, or of several side by side; `None` for other expressions, for bytes and for
    /// f-strings, and where an escape is wrong.
    pub fn string_value(&self, expr: &Expr) -> Option<Cow<'a, str>> {
        let ExprKind::String = expr.kind else { return None };
        let mut value = literal::string(self.text(expr.tokens.start))?;
        for token in expr.tokens.start + 1..expr.tokens.end {
            value.to_mut().push_str(&literal::string(self.text(token))?);
        }
        Some(value)
    }

    /// The boolean that a call passes for a keyword: `pure` of `@R.function(pure=False)`.
    pub fn flag(&self, call: &Expr, keyword: &str) -> Option<bool> {
        let ExprKind::Call { arguments, .. } = &call.kind else { return None };
        arguments.iter().find_map(|argument| match argument.value.kind {
            ExprKind::Bool(value) if self.text(argument.keyword?) == keyword => Some(value),
            _ => None,
        })
    }

    /// The value of an integer literal; `None` for other expressions and beyond 127 bits.
    pub fn integer_value(&self, expr: &Expr) -> Option<i128> {
        let ExprKind::Integer = expr.kind else { return None };
        literal::integer(self.text(expr.tokens.start))
    }

    /// The value of a float literal; `None` for other expressions and imaginary numbers.
    pub fn float_value(&self, expr: &Expr) -> Option<f64> {
        let ExprKind::Float = expr.kind else { return None };
        literal::float(self.text(expr.tokens.start))
    }

    /// The names of `a.b.c`; `None` for other expressions.
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
