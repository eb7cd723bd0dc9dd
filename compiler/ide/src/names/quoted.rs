//! Names inside strings: quoted dims, and strings that repeat a declared name.

use super::mention::argument_of;
use crate::tree::last_name;
use rx_base::{DType, Name, Span};
use rx_context::file_context::is_symbol_maker;
use rx_syntax::ast::{Expr, ExprKind, TokenRange};
use rx_syntax::token::tokens;
use rx_syntax::{Cursor, Segment, TokenKind};
use std::borrow::Cow;

/// The role of an expression, from its position in the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// A dim: an integer expression, quoted or not.
    Dim,
    /// A key of the bounds of symbolic dims in a function's attributes.
    Bounds,
    /// The value of the attribute `global_symbol`.
    GlobalSymbol,
    /// The name in the declaration of a symbol.
    Declares,
    /// Any other role.
    Other,
}

/// Returns the role of the last expression of a path that starts at a statement's root.
pub(crate) fn context(cursor: Cursor<'_>, path: &[&Expr]) -> Context {
    let mut context = Context::Other;
    // The keys of the enclosing dictionary entries, outermost first.
    let mut keys: Vec<Option<Cow<'_, str>>> = Vec::new();
    let mut in_attributes = false;
    for pair in path.windows(2) {
        let [outer, inner] = pair else { continue };
        match &outer.kind {
            ExprKind::Call { callee, arguments } => {
                let Some((at, argument)) = argument_of(arguments, inner) else {
                    context = Context::Other;
                    continue;
                };
                let keyword = argument.keyword.map(|keyword| cursor.text(keyword));
                in_attributes = matches!(last_name(cursor, callee), "func_attr");
                context = argument_context(cursor, callee, at, keyword, inner);
            }
            ExprKind::Dict(entries) if in_attributes => {
                let entry = entries.iter().find(|(key, value)| {
                    key.as_ref().is_some_and(|key| std::ptr::eq(key, *inner)) || std::ptr::eq(value, *inner)
                });
                let Some((key, value)) = entry else { continue };
                let is_key = !std::ptr::eq(value, *inner);
                let name = key.as_ref().and_then(|key| cursor.string_value(key));
                let outer_key = keys.last().cloned().flatten();
                context = match (is_key, outer_key.as_deref(), name.as_deref()) {
                    (true, Some("tir_var_upper_bound" | "tir_var_lower_bound"), _) => Context::Bounds,
                    (false, None, Some("global_symbol")) => Context::GlobalSymbol,
                    _ => Context::Other,
                };
                keys.push(name);
            }
            ExprKind::Tuple(_) | ExprKind::List(_) if !in_attributes => {}
            ExprKind::Parenthesized(_) | ExprKind::Binary(..) | ExprKind::Unary(..) => {}
            _ => context = Context::Other,
        }
    }
    context
}

/// Returns the role of an argument of a call.
fn argument_context(cursor: Cursor<'_>, callee: &Expr, at: usize, keyword: Option<&str>, inner: &Expr) -> Context {
    let shape = |position: usize, names: &[&str]| match keyword {
        Some(keyword) => names.contains(&keyword),
        None => at == position,
    };
    let last = last_name(cursor, callee);
    let is_dim = match last {
        "Tensor" | "DTensor" => shape(0, &["shape"]),
        "Shape" | "shape" => shape(0, &["values"]),
        "Prim" | "prim" => keyword == Some("value") || keyword.is_none() && at == 1,
        "Buffer" => shape(0, &["shape"]),
        "match_buffer" => shape(1, &["shape"]),
        "prim_value" => shape(0, &["value"]),
        _ => false,
    };
    // The operand of a cast such as `T.int64(n)` is treated as a dim.
    let cast = DType::parse(last).is_some();
    let bare = matches!(inner.kind, ExprKind::String) && !matches!(last, "Prim" | "prim" | "prim_value");
    if is_dim && !bare || cast && !matches!(inner.kind, ExprKind::String) {
        Context::Dim
    } else if is_symbol_maker(cursor, callee) && shape(0, &["name"]) {
        Context::Declares
    } else if last != "func_attr" && keyword.is_none() && matches!(inner.kind, ExprKind::Tuple(_) | ExprKind::List(_)) {
        // A shape passed to an operator: `R.reshape(x, ("n", 4))`.
        if at > 0 || matches!(last, "zeros" | "ones" | "full") { Context::Dim } else { Context::Other }
    } else {
        Context::Other
    }
}

/// Returns the spans of the names in a string that is a dim or names a symbol, in bytes of the segment. `None` for any
/// other string, and if escapes make the spans unknown.
pub(crate) fn symbols_in(segment: &Segment, cursor: Cursor<'_>, path: &[&Expr]) -> Option<Vec<Span>> {
    let literal = path.last().filter(|literal| matches!(literal.kind, ExprKind::String))?;
    if !matches!(context(cursor, path), Context::Dim | Context::Bounds | Context::Declares) {
        return None;
    }
    let value = cursor.string_value(literal)?;
    let pieces = pieces(segment, cursor, literal.tokens);
    names_of_dim(&value).into_iter().map(|name| place(&pieces, name)).collect()
}

/// Converts a part of the string's value to a span of the segment.
fn place(pieces: &[Piece], part: Span) -> Option<Span> {
    let piece = pieces.iter().find(|piece| piece.from <= part.start && part.end <= piece.to)?;
    Some(Span::new(part.start - piece.from, part.end - piece.from).shift(piece.start?))
}

/// Returns the mentions of a name in a string literal, in bytes of the segment. If escapes make a span unknown, the
/// whole literal with its value is returned instead. If `whole` is true, the value must be equal to the name.
pub(crate) fn names_in(
    segment: &Segment,
    cursor: Cursor<'_>,
    literal: &Expr,
    wanted: Name,
    whole: bool,
) -> Vec<(Span, Option<Box<str>>)> {
    let Some(value) = cursor.string_value(literal) else { return Vec::new() };
    let places = names_of_value(&value, wanted, whole);
    if places.is_empty() {
        return Vec::new();
    }
    let pieces = pieces(segment, cursor, literal.tokens);
    let placed: Option<Vec<_>> = places.iter().map(|part| Some((place(&pieces, *part)?, None))).collect();
    placed.unwrap_or_else(|| vec![(cursor.span(literal.tokens), Some(value.into()))])
}

/// Returns the spans of a name in a string's value.
pub(crate) fn names_of_value(value: &str, wanted: Name, whole: bool) -> Vec<Span> {
    if whole {
        let span = Span::new(0, u32::try_from(value.len()).unwrap_or(u32::MAX));
        return if value == wanted.as_str() { vec![span] } else { Vec::new() };
    }
    let is_it = |span: Span| value.get(span.range()) == Some(wanted.as_str());
    names_of_dim(value).into_iter().filter(|name| is_it(*name)).collect()
}

/// Returns the spans of the symbols in the text of a dim. Functions and keywords are not symbols:
/// `T.floordiv(a=n, b=2)` contains only `n`.
fn names_of_dim(value: &str) -> Vec<Span> {
    let tokens: Vec<_> = tokens(value).filter(|token| !token.kind.is_trivia()).collect();
    let kind = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(|token| token.kind);
    let is_symbol = |at: usize| {
        let after = kind(at.checked_add(1));
        kind(at.checked_sub(1)) != Some(TokenKind::Dot)
            && !matches!(after, Some(TokenKind::Dot | TokenKind::Equal | TokenKind::LeftParen))
    };
    let names = tokens.iter().enumerate().filter(|(at, token)| token.kind.is_name() && is_symbol(*at));
    names.map(|(_, token)| token.span).collect()
}

/// One of several adjacent string literals, which Python concatenates.
struct Piece {
    /// The range of its text in the concatenated value, in bytes.
    from: u32,
    to: u32,
    /// The start of that text in the segment; `None` if escapes make it differ from the source.
    start: Option<u32>,
}

fn pieces(segment: &Segment, cursor: Cursor<'_>, literal: TokenRange) -> Vec<Piece> {
    let mut at = 0;
    let piece = |token| {
        let one = Expr { kind: ExprKind::String, tokens: TokenRange::one(token) };
        let value = cursor.string_value(&one)?;
        let start = match &value {
            // A borrowed value is a slice of the segment's text, so its address gives its offset.
            Cow::Borrowed(part) => (part.as_ptr() as usize).checked_sub(segment.text().as_ptr() as usize),
            Cow::Owned(_) => None,
        };
        let from = at;
        at += u32::try_from(value.len()).ok()?;
        Some(Piece { from, to: at, start: start.and_then(|start| u32::try_from(start).ok()) })
    };
    (literal.start..literal.end).filter_map(piece).collect()
}
