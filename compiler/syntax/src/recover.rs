//! Error recovery for a line that does not parse.
//!
//! The line is split according to the form of its statement (`target : annotation = value`), and the grammar parses
//! each part separately. Only the broken part becomes [`ExprKind::Error`], or a call with a broken argument. For
//! example, `x: T = f(a, , b)` remains a binding of `x` to a call with three arguments, the second of which is an
//! error.

use crate::ast::{Argument, BinaryOp, Expr, ExprKind, ParameterTree, StatementKind, SyntaxError, TokenRange, WithItem};
use crate::shape::Reader;
use crate::token::TokenKind::{self, *};
use crate::{nesting, shift};
use std::cell::Cell;

/// The number of tokens that the grammar may process in the recovery of one line. Nested parts are parsed repeatedly.
const BUDGET: usize = 1 << 15;

/// A line in recovery.
///
/// INVARIANT: ranges of tokens given to its methods end at `kinds.len()` at most; [`Line::expr`] clamps them.
struct Line<'r, 'k> {
    reader: &'r Reader<'k>,
    kinds: &'k [TokenKind],
    budget: Cell<usize>,
}

/// Returns the statement that a broken line can be recovered to.
pub(crate) fn statement<'k>(reader: &Reader<'k>, kinds: &'k [TokenKind]) -> StatementKind {
    let line = Line { reader, kinds, budget: Cell::new(BUDGET) };
    let end = kinds.len();
    let head_end = if kinds.last() == Some(&Colon) { end - 1 } else { end };
    match kinds.first() {
        Some(Return) if end == 1 => StatementKind::Return(None),
        Some(Return) => StatementKind::Return(Some(line.expr(1, end))),
        Some(At) => StatementKind::Decorator(line.expr(1, end)),
        Some(If) => StatementKind::If(line.expr(1, head_end)),
        Some(Elif) => StatementKind::Elif(line.expr(1, head_end)),
        Some(While) => StatementKind::While(line.expr(1, head_end)),
        Some(Else) => StatementKind::Else,
        Some(Pass) => StatementKind::Pass,
        Some(Break) => StatementKind::Break,
        Some(Continue) => StatementKind::Continue,
        Some(With) => StatementKind::With(line.with_items(1, head_end)),
        Some(For) => {
            let at = line.position(1, head_end, |kind| kind == In).unwrap_or(head_end);
            StatementKind::For { target: line.expr(1, at), iter: line.expr((at + 1).min(head_end), head_end) }
        }
        Some(Assert) => {
            let at = line.position(1, end, |kind| kind == Comma);
            let message = at.map(|at| line.expr(at + 1, end));
            StatementKind::Assert { test: line.expr(1, at.unwrap_or(end)), message }
        }
        Some(Class) if kinds.get(1).is_some_and(|kind| kind.is_name()) => {
            StatementKind::Class { name: 1, bases: Vec::new() }
        }
        Some(Class | Import | From | Def) | None => StatementKind::Error,
        Some(_) => line.assignment(),
    }
}

/// Recovers the expression between two tokens of a broken line.
pub(crate) fn expression<'k>(reader: &Reader<'k>, kinds: &'k [TokenKind], start: usize, end: usize) -> Expr {
    Line { reader, kinds, budget: Cell::new(BUDGET) }.expr(start, end)
}

/// Recovers a broken parameter.
pub(crate) fn parameter<'k>(reader: &Reader<'k>, kinds: &'k [TokenKind], error: SyntaxError) -> ParameterTree {
    let line = Line { reader, kinds, budget: Cell::new(BUDGET) };
    let end = kinds.len();
    let stars = match kinds.first() {
        Some(Star) => 1,
        Some(DoubleStar) => 2,
        _ => 0,
    };
    let at = usize::from(stars > 0);
    let name = kinds.get(at).is_some_and(|kind| kind.is_name()).then_some(at as u32);
    let colon = name.and(line.position(at, end, |kind| kind == Colon));
    let equal = name.and(line.position(at, end, |kind| kind == Equal));
    ParameterTree {
        stars,
        name,
        annotation: colon.map(|colon| line.expr(colon + 1, equal.unwrap_or(end).max(colon + 1))),
        default: equal.map(|equal| line.expr(equal + 1, end)),
        tokens: TokenRange { start: 0, end: end as u32 },
        error: Some(error),
    }
}

impl<'k> Line<'_, 'k> {
    fn tokens(&self, start: usize, end: usize) -> TokenRange {
        TokenRange { start: start as u32, end: end.max(start) as u32 }
    }

    /// Returns the first token outside brackets that is `wanted`. A surplus closing bracket is skipped.
    fn position(&self, start: usize, end: usize, wanted: impl Fn(TokenKind) -> bool) -> Option<usize> {
        let mut depth = 0usize;
        for at in start..end.min(self.kinds.len()) {
            let kind = self.kinds[at];
            if kind.is_opener() {
                depth += 1;
            } else if kind.is_closer() {
                depth = depth.saturating_sub(1);
            } else if depth == 0 && wanted(kind) {
                return Some(at);
            } else if kind == Equal && wanted(Equal) && !self.kinds[at - usize::from(at > 0)].is_name() {
                // Inside an unclosed bracket, an `=` that does not follow a name is no keyword argument's.
                return Some(at);
            }
        }
        None
    }

    /// Splits a token range at commas outside brackets.
    fn split(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        let mut first = start;
        while let Some(comma) = self.position(first, end, |kind| kind == Comma) {
            parts.push((first, comma));
            first = comma + 1;
        }
        if first < end {
            parts.push((first, end));
        }
        parts
    }

    fn with_items(&self, start: usize, end: usize) -> Vec<WithItem> {
        let item = |(start, end): (usize, usize)| {
            let named = self.position(start, end, |kind| kind == As);
            WithItem {
                context: self.expr(start, named.unwrap_or(end)),
                target: named.map(|named| self.expr(named + 1, end)),
            }
        };
        self.split(start, end).into_iter().map(item).collect()
    }

    fn assignment(&self) -> StatementKind {
        let end = self.kinds.len();
        let equal = |from: usize| self.position(from, end, |kind| kind == Equal);
        let colon = self.position(0, end, |kind| kind == Colon);
        let update = self.position(0, end, |kind| update(kind).is_some());
        let first = equal(0);
        if let Some(colon) = colon.filter(|colon| first.is_none_or(|equal| *colon < equal)) {
            let value = equal(colon + 1);
            return StatementKind::AnnAssign {
                target: self.expr(0, colon),
                annotation: self.expr(colon + 1, value.unwrap_or(end)),
                value: value.map(|at| self.expr(at + 1, end)),
            };
        }
        if let Some((at, op)) = update.and_then(|at| Some((at, update_op(self.kinds, at)?))) {
            return StatementKind::AugAssign { target: self.expr(0, at), op, value: self.expr(at + 1, end) };
        }
        let Some(mut at) = first else { return StatementKind::Expr(self.expr(0, end)) };
        let mut targets = vec![self.expr(0, at)];
        while let Some(next) = equal(at + 1) {
            targets.push(self.expr(at + 1, next));
            at = next;
        }
        StatementKind::Assign { targets, value: self.expr(at + 1, end) }
    }

    /// Parses the tokens as an expression; `None` if that fails.
    fn read(&self, start: usize, end: usize) -> Option<Expr> {
        let kinds = self.kinds.get(start..end)?;
        self.budget.set(self.budget.get().checked_sub(kinds.len())?);
        if kinds.is_empty() || nesting::check(kinds).is_some() {
            return None;
        }
        let value = self.reader.grammar().expressions(kinds).ok()?;
        Some(shift::expr(value, start as u32))
    }

    /// Returns the expression between two tokens: parsed as a whole, otherwise recovered from its parts, otherwise an
    /// error.
    fn expr(&self, start: usize, end: usize) -> Expr {
        let end = end.min(self.kinds.len());
        let start = start.min(end);
        if let Some(value) = self.read(start, end) {
            return value;
        }
        let broken = Expr { kind: ExprKind::Error, tokens: self.tokens(start, end) };
        if self.budget.get() < end - start || nesting::too_deep(&self.kinds[start..end]).is_some() {
            return broken;
        }
        self.budget.set(self.budget.get() - (end - start));
        self.take_apart(start, end).or_else(|| self.without_last_closer(start, end)).unwrap_or(broken)
    }

    /// Parses the tokens without a surplus closing bracket at the end.
    fn without_last_closer(&self, start: usize, end: usize) -> Option<Expr> {
        let last = end.checked_sub(1).filter(|last| *last > start && self.kinds[*last].is_closer())?;
        self.read(start, last)
    }

    /// Recovers a broken call, subscript or bracket from its parts; `None` for other expressions.
    fn take_apart(&self, start: usize, end: usize) -> Option<Expr> {
        let open = (start..end).find(|at| self.kinds[*at].is_opener())?;
        let close = self.closing(open, end);
        if close + 1 < end {
            return None;
        }
        let parts = self.split(open + 1, close.min(end));
        let tokens = self.tokens(start, end);
        let items = || parts.iter().map(|(start, end)| self.expr(*start, *end)).collect::<Vec<_>>();
        let kind = match self.kinds[open] {
            LeftParen if open > start => ExprKind::Call {
                callee: Box::new(self.read(start, open)?),
                arguments: parts.iter().map(|(start, end)| self.argument(*start, *end)).collect(),
            },
            LeftParen => ExprKind::Tuple(items()),
            LeftBracket if open == start => ExprKind::List(items()),
            LeftBracket => {
                let value = Box::new(self.read(start, open)?);
                let index = Expr { kind: ExprKind::Error, tokens: self.tokens(open + 1, close.min(end)) };
                ExprKind::Subscript { value, index: Box::new(index) }
            }
            _ => return None,
        };
        Some(Expr { kind, tokens })
    }

    fn argument(&self, start: usize, end: usize) -> Argument {
        let keyword = self.kinds[start].is_name() && start + 1 < end && self.kinds[start + 1] == Equal;
        match keyword {
            true => Argument { keyword: Some(start as u32), value: self.expr(start + 2, end) },
            false => Argument { keyword: None, value: self.expr(start, end) },
        }
    }

    /// Returns the bracket that closes the one at `open`, or `end`.
    fn closing(&self, open: usize, end: usize) -> usize {
        let mut depth = 0usize;
        for at in open..end {
            if self.kinds[at].is_opener() {
                depth += 1;
            } else if self.kinds[at].is_closer() {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
        }
        end
    }
}

fn update_op(kinds: &[TokenKind], at: usize) -> Option<BinaryOp> {
    update(*kinds.get(at)?)
}

/// Returns the operator of an assignment such as `+=`.
fn update(kind: TokenKind) -> Option<BinaryOp> {
    Some(match kind {
        PlusEqual => BinaryOp::Add,
        MinusEqual => BinaryOp::Sub,
        StarEqual => BinaryOp::Mul,
        SlashEqual => BinaryOp::Div,
        DoubleSlashEqual => BinaryOp::FloorDiv,
        PercentEqual => BinaryOp::Mod,
        DoubleStarEqual => BinaryOp::Pow,
        AtEqual => BinaryOp::MatMul,
        LeftShiftEqual => BinaryOp::LeftShift,
        RightShiftEqual => BinaryOp::RightShift,
        AmpersandEqual => BinaryOp::BitAnd,
        PipeEqual => BinaryOp::BitOr,
        CaretEqual => BinaryOp::BitXor,
        _ => return None,
    })
}
