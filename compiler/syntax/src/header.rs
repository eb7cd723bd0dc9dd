//! Parsing of `def` headers, one parameter at a time, since a model's function can have tens of thousands of
//! parameters.

use crate::ast::{Expr, Parameter, StatementKind, StatementTree, SyntaxError, TokenRange};
use crate::shape::{Reader, syntax_error};
use crate::token::TokenKind::{self, *};
use crate::{nesting, recover, shift};
use rx_base::Code;

fn error(code: Code, start: usize, end: usize, expected: Vec<&'static str>) -> SyntaxError {
    SyntaxError { code, tokens: TokenRange { start: start as u32, end: end as u32 }, expected, message: "" }
}

/// Parses `def name[type_params](params) -> ret:`. A broken header keeps the parts that can be parsed: for example,
/// `def f(x: T, y T, z: U)` has three parameters, of which the second has an error.
pub(crate) fn definition<'k>(reader: &Reader<'k>, kinds: &'k [TokenKind]) -> StatementTree {
    let wanted =
        |at: usize, expected: &'static str| error(Code::SyntaxError, at, (at + 1).min(kinds.len()), vec![expected]);
    let nesting_error = nesting::check(kinds);
    let balanced = nesting_error.is_none();
    let mut first_error = nesting_error;
    if !kinds.get(1).is_some_and(|kind| kind.is_name()) {
        first_error.get_or_insert(wanted(1, "the function's name"));
        return StatementTree { kind: StatementKind::Error, error: first_error };
    }
    let (type_params, mut at, stray) = type_parameters(kinds, 2);
    if let Some(stray) = stray {
        first_error.get_or_insert(wanted(stray, "`,` or `]`"));
    }
    let (end, colon) = match kinds.last() {
        Some(Colon) if kinds.len() > at => (kinds.len() - 1, true),
        _ => (kinds.len(), false),
    };
    let mut params = Vec::new();
    if kinds.get(at) == Some(&LeftParen) {
        let close = closing_paren(kinds, at, end);
        params = parameters(reader, kinds, at + 1, close, balanced);
        if !balanced && let Some(nearer) = params.iter().find_map(parameter_error) {
            first_error = Some(nearer);
        }
        at = (close + 1).min(end);
    } else {
        first_error.get_or_insert(wanted(at, "`(`"));
    }
    let mut ret = None;
    if kinds.get(at) == Some(&Arrow) && at < end {
        let (annotation, found) = return_annotation(reader, kinds, at + 1, end);
        ret = Some(annotation);
        first_error = first_error.or(found);
    } else if at < end {
        first_error.get_or_insert(wanted(at, "`:`"));
    }
    if !colon {
        first_error.get_or_insert(error(Code::SyntaxError, kinds.len(), kinds.len(), vec!["`:`"]));
    }
    let kind = StatementKind::Def { name: 1, type_params, params, ret };
    StatementTree { kind, error: first_error }
}

/// Parses the return annotation, between the arrow and `end`.
fn return_annotation<'k>(
    reader: &Reader<'k>,
    kinds: &'k [TokenKind],
    start: usize,
    end: usize,
) -> (Expr, Option<SyntaxError>) {
    // INVARIANT: the arrow is before `end`, so the range is not reversed.
    let annotation = &kinds[start..end];
    let broken = match nesting::check(annotation) {
        Some(error) => error,
        None => match reader.grammar().expressions(annotation) {
            Ok(value) => return (shift::expr(value, start as u32), None),
            Err(failure) => syntax_error(annotation, failure),
        },
    };
    (recover::expression(reader, kinds, start, end), Some(broken.shifted(start as u32)))
}

/// Parses PEP 695 type parameters from token `at`, if there are any. Returns the names, the token after the closing
/// bracket, and the first token that is neither a name nor a separator: a symbolic dim has no bound and no default.
fn type_parameters(kinds: &[TokenKind], at: usize) -> (Vec<u32>, usize, Option<usize>) {
    if kinds.get(at) != Some(&LeftBracket) {
        return (Vec::new(), at, None);
    }
    let mut names = Vec::new();
    let mut stray = None;
    let mut depth = 0usize;
    for (index, kind) in kinds.iter().enumerate().skip(at) {
        let after_separator = matches!(kinds.get(index.wrapping_sub(1)), Some(LeftBracket | Comma | Star | DoubleStar));
        match kind {
            kind if kind.is_opener() => depth += 1,
            kind if kind.is_closer() => {
                depth -= 1;
                if depth == 0 {
                    return (names, index + 1, stray);
                }
            }
            kind if kind.is_name() && depth == 1 && after_separator => names.push(index as u32),
            Comma | Star | DoubleStar => {}
            _ => {
                stray.get_or_insert(index);
            }
        }
        if depth > 1 {
            stray.get_or_insert(index);
        }
    }
    // The bracket is never closed, which is already reported: continue at the parameters.
    let paren = kinds.iter().position(|kind| *kind == LeftParen).unwrap_or(kinds.len());
    names.retain(|name| (*name as usize) < paren);
    (names, paren, None)
}

/// Returns the `)` that matches the `(` at `open`. If it is missing, the last `)` before the arrow or the end; if there
/// is none either, the arrow or the end.
fn closing_paren(kinds: &[TokenKind], open: usize, end: usize) -> usize {
    let mut depth = 0usize;
    for (at, kind) in kinds.iter().enumerate().take(end).skip(open) {
        match kind {
            kind if kind.is_opener() => depth += 1,
            kind if kind.is_closer() => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    let arrow = kinds.iter().take(end).rposition(|kind| *kind == Arrow).unwrap_or(end);
    let close = kinds.iter().take(arrow).rposition(|kind| *kind == RightParen);
    close.filter(|close| *close > open).unwrap_or(arrow)
}

/// Parses the parameters between two tokens. If brackets do not balance, `, name:` starts a parameter at any depth.
fn parameters<'k>(
    reader: &Reader<'k>,
    kinds: &'k [TokenKind],
    start: usize,
    end: usize,
    balanced: bool,
) -> Vec<Parameter> {
    let mut params = Vec::new();
    let mut first = start;
    let mut depth = 0usize;
    for at in start..=end {
        let kind = if at < end { kinds.get(at).copied().unwrap_or(Comma) } else { Comma };
        let starts_parameter =
            || kinds.get(at + 1).is_some_and(|next| next.is_name()) && kinds.get(at + 2) == Some(&Colon);
        if kind.is_opener() {
            depth += 1;
        } else if kind.is_closer() {
            depth = depth.saturating_sub(1);
        } else if at == end || kind == Comma && (depth == 0 || !balanced && starts_parameter()) {
            // The last comma may be a trailing one.
            if at > first || at < end {
                // INVARIANT: `at` is at most the end, which is in `kinds`, and `first` at most `at`.
                let tree = reader.parameter(&kinds[first..at]);
                params.push(Parameter { first_token: first as u32, tree });
            }
            depth = 0;
            first = at + 1;
        }
    }
    params
}

/// Returns the error of a statement, or the first error of its parameters, with token indices that count from the
/// statement's first token.
pub(crate) fn first_error(tree: &StatementTree) -> Option<SyntaxError> {
    if tree.error.is_some() {
        return tree.error.clone();
    }
    let StatementKind::Def { params, .. } = &tree.kind else { return None };
    params.iter().find_map(parameter_error)
}

/// Returns a parameter's error, with token indices that count from the statement's first token.
fn parameter_error(param: &Parameter) -> Option<SyntaxError> {
    Some(param.tree.error.clone()?.shifted(param.first_token))
}
