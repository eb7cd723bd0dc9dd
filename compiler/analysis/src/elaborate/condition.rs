//! Refinement by conditions: facts about symbols that follow from the condition of an `if` or an `R.assert_op`.
//!
//! For example, `n >= 8` holds in the body of `if n >= 8:`, and `n < 8` in its `else`.

use super::elaborator::Elaborator;
use crate::entry::{Entry, mistake};
use rx_base::symbolic::{Answer, prove};
use rx_base::{Code, Dim};
use rx_ir::StructInfo;
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, CompareOp, Expr, ExprKind, UnaryOp};

impl Elaborator<'_> {
    /// Records the condition of `R.assert_op(condition)` for the statements after it, and reports a condition that is
    /// false for all values.
    pub(super) fn refine_by_assertion(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) {
        let condition = arguments.iter().enumerate().find(|(at, argument)| match argument.keyword {
            Some(keyword) => cursor.text(keyword) == "condition",
            None => *at == 0,
        });
        let Some((_, condition)) = condition else { return };
        if self.truth(cursor, &condition.value) == Answer::Refuted {
            let span = cursor.span(condition.value.tokens);
            let message = format!(
                "the assertion never holds: `{}` is false for all values",
                cursor.source(condition.value.tokens)
            );
            let mut report = mistake(Code::AssertionNeverHolds, span, message);
            let mut symbols = Vec::new();
            self.relations(cursor, &condition.value, true, &mut |_, a, b| symbols.extend([a, b]));
            report = self.check.with_facts(report, &symbols.iter().collect::<Vec<_>>());
            self.check.report(report);
            return;
        }
        self.refine_by_condition(cursor, &condition.value, true);
    }

    /// Records the facts about symbols that follow from a scalar condition being true (`holds`) or false.
    pub(super) fn refine_by_condition(&mut self, cursor: Cursor<'_>, condition: &Expr, holds: bool) {
        let mut facts = Vec::new();
        self.relations(cursor, condition, holds, &mut |op, a, b| facts.push((op, a, b)));
        if facts.is_empty() {
            return;
        }
        let one = Dim::constant(1);
        self.check.refine(cursor.span(condition.tokens), |bounds| {
            for (op, a, b) in &facts {
                match op {
                    CompareOp::Eq => bounds.assume_equal(a, b),
                    CompareOp::Ge => bounds.assume_at_least(a, b),
                    CompareOp::Gt => bounds.assume_at_least(a, &(b + &one)),
                    CompareOp::Le => bounds.assume_at_least(b, a),
                    CompareOp::Lt => bounds.assume_at_least(b, &(a + &one)),
                    _ => {}
                }
            }
        });
    }

    /// Evaluates a scalar condition as far as the facts allow.
    fn truth(&mut self, cursor: Cursor<'_>, condition: &Expr) -> Answer {
        let bounds = self.check.bounds.clone();
        let mut answer = Answer::Proved;
        let mut asked = false;
        let mut relations = Vec::new();
        self.relations(cursor, condition, true, &mut |op, a, b| relations.push((op, a, b)));
        let one = Dim::constant(1);
        for (op, a, b) in &relations {
            asked = true;
            let this = match op {
                CompareOp::Eq => prove::equal(a, b, &bounds),
                CompareOp::Ge => prove::at_least(a, b, &bounds),
                CompareOp::Gt => prove::at_least(a, &(b + &one), &bounds),
                CompareOp::Le => prove::at_least(b, a, &bounds),
                CompareOp::Lt => prove::at_least(b, &(a + &one), &bounds),
                CompareOp::Ne => match prove::equal(a, b, &bounds) {
                    Answer::Proved => Answer::Refuted,
                    Answer::Refuted => Answer::Proved,
                    Answer::Open => Answer::Open,
                },
                _ => Answer::Open,
            };
            answer = match (answer, this) {
                (Answer::Refuted, _) | (_, Answer::Refuted) => Answer::Refuted,
                (Answer::Open, _) | (_, Answer::Open) => Answer::Open,
                _ => Answer::Proved,
            };
        }
        if asked { answer } else { Answer::Open }
    }

    /// Calls `visit` with the comparisons of integers that all hold if the value of `condition` is `holds`.
    fn relations(
        &mut self,
        cursor: Cursor<'_>,
        condition: &Expr,
        holds: bool,
        visit: &mut dyn FnMut(CompareOp, Dim, Dim),
    ) {
        match &condition.kind {
            ExprKind::Parenthesized(inner) => self.relations(cursor, inner, holds, visit),
            ExprKind::Unary(UnaryOp::Not, inner) => self.relations(cursor, inner, !holds, visit),
            ExprKind::Bool2(op, operands) if matches!(op, rx_syntax::ast::BoolOp::And) == holds => {
                operands.iter().for_each(|operand| self.relations(cursor, operand, holds, visit));
            }
            ExprKind::Compare(first, rest) => {
                let [(op, second)] = &rest[..] else { return };
                let op = match (op, holds) {
                    (op, true) => *op,
                    (CompareOp::Lt, false) => CompareOp::Ge,
                    (CompareOp::Le, false) => CompareOp::Gt,
                    (CompareOp::Gt, false) => CompareOp::Le,
                    (CompareOp::Ge, false) => CompareOp::Lt,
                    (CompareOp::Eq, false) => CompareOp::Ne,
                    (CompareOp::Ne, false) => CompareOp::Eq,
                    _ => return,
                };
                if let (Some(a), Some(b)) = (self.integer_of(cursor, first), self.integer_of(cursor, second)) {
                    visit(op, a, b);
                }
            }
            _ => {}
        }
    }

    /// Returns an operand of a condition as an integer, if it is one. The condition was elaborated before, so nothing
    /// is reported.
    fn integer_of(&mut self, cursor: Cursor<'_>, operand: &Expr) -> Option<Dim> {
        if !self.is_integer(cursor, operand) {
            return None;
        }
        let dim = self.dim(cursor, operand);
        (!dim.is_error()).then_some(dim)
    }

    /// Whether an expression consists only of symbols, integer scalars and literals, so that it can be evaluated as a
    /// dim.
    fn is_integer(&mut self, cursor: Cursor<'_>, operand: &Expr) -> bool {
        match &operand.kind {
            ExprKind::Integer => true,
            ExprKind::Name => match self.check.lookup(cursor.name(operand.tokens.start)) {
                Some(Entry::Symbol { bound, .. }) => bound,
                Some(Entry::Value { ty: StructInfo::Prim(info), .. }) => info.dtype.is_none_or(|dtype| dtype.is_int()),
                _ => false,
            },
            ExprKind::Parenthesized(inner) | ExprKind::Unary(UnaryOp::Neg | UnaryOp::Pos, inner) => {
                self.is_integer(cursor, inner)
            }
            ExprKind::Binary(_, a, b) => self.is_integer(cursor, a) && self.is_integer(cursor, b),
            ExprKind::Call { callee, arguments } => {
                let head = cursor.path(callee.tokens).split_once('.').map(|(head, _)| head);
                head.and_then(|head| self.check.file.namespace(head)) == Some(rx_context::Namespace::Tir)
                    && arguments.iter().all(|argument| self.is_integer(cursor, &argument.value))
            }
            _ => false,
        }
    }
}
