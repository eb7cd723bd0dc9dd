//! Checks of bracket balance and nesting depth, made in one pass before the grammar parses a line.
//!
//! The grammar and everything that walks a tree are recursive. The limits here bound that recursion.

use crate::ast::{SyntaxError, TokenRange};
use crate::token::TokenKind::{self, *};
use rx_base::Code;

/// The largest number of brackets that may be open at once.
pub(crate) const MAX_BRACKETS: usize = 256;

/// The largest number of operators, calls, subscripts and attributes in a chain of nested expressions: a bound on a
/// tree's depth.
pub(crate) const MAX_CHAIN: u32 = 1000;

/// Returns the first nesting error in a line.
pub(crate) fn check(kinds: &[TokenKind]) -> Option<SyntaxError> {
    too_deep(kinds).or_else(|| unbalanced(kinds))
}

fn error(code: Code, at: usize, message: &'static str) -> SyntaxError {
    let at = at as u32;
    SyntaxError { code, tokens: TokenRange::one(at), expected: Vec::new(), message }
}

/// The possible tree height at one bracket level: inside a pair of brackets, or outside all.
#[derive(Clone, Copy, Default)]
struct Level {
    /// The height of the highest tree before the last comma.
    finished: u32,
    /// The number of tree levels that tokens since the last comma may add.
    links: u32,
    /// The height of the highest bracket content since the last comma. Later links may be above it in the tree.
    inner: u32,
}

impl Level {
    fn height(self) -> u32 {
        self.finished.max(self.links + self.inner)
    }
}

/// Returns an error if brackets or operator chains exceed their limit.
pub(crate) fn too_deep(kinds: &[TokenKind]) -> Option<SyntaxError> {
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    for (at, &kind) in kinds.iter().enumerate() {
        if kind.is_opener() {
            if outer.len() >= MAX_BRACKETS {
                return Some(error(Code::NestingTooDeep, at, "brackets nest deeper than 256"));
            }
            level.links += 1;
            outer.push(std::mem::take(&mut level));
        } else if kind.is_closer() {
            close(&mut level, outer.pop());
        } else if kind == Comma || (kind == Equal && outer.is_empty()) {
            level = Level { finished: level.height(), ..Level::default() };
        } else if is_link(kind) {
            level.links += 1;
        }
        if level.height() > MAX_CHAIN {
            return Some(error(Code::NestingTooDeep, at, "the expression chains more than 1000 operators"));
        }
    }
    // Error recovery may close a bracket that is never closed.
    while let Some(outside) = outer.pop() {
        close(&mut level, Some(outside));
    }
    let last = kinds.len().saturating_sub(1);
    (level.height() > MAX_CHAIN)
        .then(|| error(Code::NestingTooDeep, last, "the expression chains more than 1000 operators"))
}

fn close(level: &mut Level, outside: Option<Level>) {
    if let Some(mut outside) = outside {
        outside.inner = outside.inner.max(level.height());
        *level = outside;
    }
}

/// Whether the token can make a tree one level deeper.
fn is_link(kind: TokenKind) -> bool {
    let operator = (Plus as u8..=NotEqual as u8).contains(&(kind as u8));
    operator || matches!(kind, Dot | Not | And | Or | If | Lambda | In | Is | Await | Yield | Walrus)
}

/// Returns an error for the first bracket without a counterpart.
fn unbalanced(kinds: &[TokenKind]) -> Option<SyntaxError> {
    let mut open: Vec<usize> = Vec::new();
    for (at, &kind) in kinds.iter().enumerate() {
        if kind.is_opener() {
            open.push(at);
        } else if kind.is_closer() {
            let matches = |&opener: &usize| kinds.get(opener).copied() == kind.counterpart();
            match open.last() {
                Some(opener) if matches(opener) => {
                    open.pop();
                }
                Some(&opener) if open.iter().any(matches) => {
                    return Some(error(Code::UnclosedBracket, opener, never_closed(kinds.get(opener).copied())));
                }
                _ => return Some(error(Code::UnclosedBracket, at, closes_nothing(kind))),
            }
        }
    }
    let innermost = open.pop()?;
    Some(error(Code::UnclosedBracket, innermost, never_closed(kinds.get(innermost).copied())))
}

fn never_closed(opener: Option<TokenKind>) -> &'static str {
    match opener {
        Some(LeftBracket) => "`[` is never closed",
        Some(LeftBrace) => "`{` is never closed",
        _ => "`(` is never closed",
    }
}

fn closes_nothing(closer: TokenKind) -> &'static str {
    match closer {
        RightBracket => "`]` closes no bracket",
        RightBrace => "`}` closes no bracket",
        _ => "`)` closes no bracket",
    }
}

#[cfg(test)]
mod tests {
    use super::{check, too_deep};
    use crate::token::{TokenKind, tokens};
    use rx_base::Code;

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokens(text).map(|token| token.kind).filter(|kind| !kind.is_trivia()).collect()
    }

    #[test]
    fn the_guilty_bracket_is_named() {
        let found = |text: &str| check(&kinds(text)).map(|error| (error.tokens.start, error.message));
        assert_eq!(found("f(a[0], {1: 2})"), None);
        assert_eq!(found("f(a[0)"), Some((3, "`[` is never closed")));
        assert_eq!(found("f(a"), Some((1, "`(` is never closed")));
        assert_eq!(found("a]"), Some((1, "`]` closes no bracket")));
    }

    #[test]
    fn depth_is_bounded_and_breadth_is_not() {
        let code = |text: &str| too_deep(&kinds(text)).map(|error| error.code);
        assert_eq!(code(&"(".repeat(257)), Some(Code::NestingTooDeep));
        assert_eq!(code(&("a".to_owned() + &"+a".repeat(2000))), Some(Code::NestingTooDeep));
        assert_eq!(code(&("a".to_owned() + &".b".repeat(2000))), Some(Code::NestingTooDeep));
        assert_eq!(code(&("a".to_owned() + &"()".repeat(2000))), Some(Code::NestingTooDeep));
        assert_eq!(code(&"R.f(a + b), ".repeat(5000)), None);
        assert_eq!(code(&("f(".to_owned() + &"g(x.y + 1), ".repeat(5000) + ")")), None);
    }
}
