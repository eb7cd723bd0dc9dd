//! What a function says of its symbols, beyond its attributes: a `match_cast`, an annotation that says more than was
//! proved, the arguments of a call, an assertion, the condition of a branch. Each is checked when the program runs, so it
//! holds in the statements behind it, and in a branch to the branch's end.
//!
//! Facts stand in the function's scope under a name of their own, like the header: a segment asks for them at its start,
//! and is elaborated again when the answer is another.

use super::Elaborator;
use crate::entry::{Entry, FACTS, Place};
use rx_base::name::name;
use rx_base::symbolic::{Answer, Bounds, prove};
use rx_base::{Code, Diagnostic, Dim, Name, Span};
use rx_ir::{Shape, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, CompareOp, Expr, ExprKind, UnaryOp};
use std::sync::Arc;

/// The most places a diagnostic shows of what it stands on.
const MAX_SHOWN: usize = 3;

impl Elaborator<'_> {
    /// What is known at the segment's start: what attributes state and what was learned.
    pub(super) fn known_at_start(&mut self) -> Arc<Bounds> {
        let stated = self.function_context().map(|context| context.bounds.clone()).unwrap_or_default();
        match self.lookup(name(FACTS)) {
            Some(Entry::Facts(learned)) => Arc::new(learned.restated(&stated)),
            _ => stated,
        }
    }

    /// Adds facts that hold from here on in the innermost block; `span` is what says them. A broken statement says nothing.
    fn learn(&mut self, span: Span, add: impl FnOnce(&mut Bounds)) {
        if self.is_broken() {
            return;
        }
        let mut bounds = Bounds::clone(&self.bounds);
        let before = bounds.statements().len();
        add(&mut bounds);
        if bounds == *self.bounds {
            return;
        }
        for statement in bounds.statements().get(before..).unwrap_or_default() {
            self.define(marker(&statement.text), Entry::value(StructInfo::Error), span);
        }
        self.keep(bounds);
    }

    fn keep(&mut self, bounds: Bounds) {
        self.bounds = Arc::new(bounds);
        if self.scopes.len() == 1 {
            self.define(name(FACTS), Entry::Facts(self.bounds.clone()), rx_context::NOWHERE);
        }
    }

    /// Forgets what was known of a name that stands for another value from here on.
    pub(super) fn forget(&mut self, symbol: Name) {
        if self.bounds.has_learned() {
            let mut bounds = Bounds::clone(&self.bounds);
            bounds.forget(symbol);
            if bounds != *self.bounds {
                self.keep(bounds);
            }
        }
    }

    /// What is known again after a block in which more was: facts end with it, attributes are the function's.
    pub(super) fn leave_block(&mut self, before: &Arc<Bounds>) {
        if *before != self.bounds {
            self.bounds = Arc::new(before.restated(&self.bounds));
        }
    }

    /// Pairs of dims that are equal from here on, since the program checks it.
    pub(super) fn learn_all(&mut self, equalities: &[(Dim, Dim)], span: Span) {
        if equalities.iter().any(|(a, b)| a != b) {
            self.learn(span, |bounds| equalities.iter().for_each(|(a, b)| bounds.learn_equal(a, b)));
        }
    }

    /// A value of the type `is` is found to be of type `declared`: dims at the same places are equal.
    pub(super) fn learn_types(&mut self, declared: &StructInfo, is: &StructInfo, span: Span) {
        let mut equalities = Vec::new();
        pair_dims(declared, is, &mut equalities);
        self.learn_all(&equalities, span);
    }

    /// Dims of a type that a value is checked to have are not negative: `n - 3` says that `n` is at least 3.
    pub(super) fn learn_extents(&mut self, ty: &StructInfo, span: Span) {
        let mut extents = Vec::new();
        each_dim(ty, &mut |dim| {
            if prove::lower(dim, &Bounds::default()).is_none_or(|low| low < 0) && !dim.is_error() {
                extents.push(dim.clone());
            }
        });
        if !extents.is_empty() {
            self.learn(span, |bounds| extents.iter().for_each(|dim| bounds.learn_at_least(dim, &Dim::constant(0))));
        }
    }

    /// `R.assert_op(condition)`: the condition holds behind it. One that never does is a mistake.
    pub(super) fn learn_assertion(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) {
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
            let mut report = Diagnostic::new(Code::AssertionNeverHolds, Place::Here(span), message);
            let mut symbols = Vec::new();
            self.relations(cursor, &condition.value, true, &mut |_, a, b| symbols.extend([a, b]));
            report = self.with_facts(report, &symbols.iter().collect::<Vec<_>>());
            self.report(report);
            return;
        }
        self.learn_condition(cursor, &condition.value, true);
    }

    /// What a condition of scalars says where it holds, or where it does not.
    pub(super) fn learn_condition(&mut self, cursor: Cursor<'_>, condition: &Expr, holds: bool) {
        let mut facts = Vec::new();
        self.relations(cursor, condition, holds, &mut |op, a, b| facts.push((op, a, b)));
        if facts.is_empty() {
            return;
        }
        let one = Dim::constant(1);
        self.learn(cursor.span(condition.tokens), |bounds| {
            for (op, a, b) in &facts {
                match op {
                    CompareOp::Eq => bounds.learn_equal(a, b),
                    CompareOp::Ge => bounds.learn_at_least(a, b),
                    CompareOp::Gt => bounds.learn_at_least(a, &(b + &one)),
                    CompareOp::Le => bounds.learn_at_least(b, a),
                    CompareOp::Lt => bounds.learn_at_least(b, &(a + &one)),
                    _ => {}
                }
            }
        });
    }

    /// Whether a condition of scalars holds, as far as is known.
    fn truth(&mut self, cursor: Cursor<'_>, condition: &Expr) -> Answer {
        let bounds = self.bounds.clone();
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

    /// The comparisons of integers that hold together where `condition` is `holds`.
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

    /// The integer an operand of a condition is, if it is one. The condition was elaborated before: nothing is reported.
    fn integer_of(&mut self, cursor: Cursor<'_>, operand: &Expr) -> Option<Dim> {
        if !self.is_integer(cursor, operand) {
            return None;
        }
        let dim = self.dim(cursor, operand);
        (!dim.is_error()).then_some(dim)
    }

    /// Whether an expression is made of symbols, integer scalars and numbers only, so that its dim can be taken.
    fn is_integer(&mut self, cursor: Cursor<'_>, operand: &Expr) -> bool {
        match &operand.kind {
            ExprKind::Integer => true,
            ExprKind::Name => match self.lookup(cursor.name(operand.tokens.start)) {
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
                head.and_then(|head| self.file.namespace(head)) == Some(rx_context::Namespace::Tir)
                    && arguments.iter().all(|argument| self.is_integer(cursor, &argument.value))
            }
            _ => false,
        }
    }

    /// Adds to a diagnostic about these dims what it stands on: the facts that speak of their symbols, with their places.
    pub(super) fn with_facts(&self, mut diagnostic: Diagnostic<Place>, dims: &[&Dim]) -> Diagnostic<Place> {
        for statement in self.bounds.statements_about(dims).into_iter().take(MAX_SHOWN) {
            let text = &statement.text;
            diagnostic = match statement.stated {
                true => diagnostic.with_note(format!("the function's attributes say {text}")),
                false => {
                    let place = self.definition_of(marker(text));
                    diagnostic.with_label(place, format!("so {text} from here on"))
                }
            };
        }
        diagnostic
    }
}

/// The name under which a fact's place stands; `<` keeps programs from writing it.
fn marker(statement: &str) -> Name {
    name(&format!("<{statement}>"))
}

/// The dims of two types at the same places.
fn pair_dims(a: &StructInfo, b: &StructInfo, into: &mut Vec<(Dim, Dim)>) {
    match (a, b) {
        (StructInfo::Tuple(a), StructInfo::Tuple(b)) => a.iter().zip(b.iter()).for_each(|(a, b)| pair_dims(a, b, into)),
        (StructInfo::Shape(a), StructInfo::Shape(b)) => pair_shapes(a, b, into),
        (StructInfo::Prim(a), StructInfo::Prim(b)) => {
            into.extend(a.value.clone().zip(b.value.clone()));
        }
        _ => {
            if let (Some(a), Some(b)) = (a.as_tensor(), b.as_tensor()) {
                pair_shapes(&a.shape, &b.shape, into);
            }
        }
    }
}

fn pair_shapes(a: &Shape, b: &Shape, into: &mut Vec<(Dim, Dim)>) {
    if let (Some(a), Some(b)) = (a.dims(), b.dims())
        && a.len() == b.len()
    {
        into.extend(a.iter().cloned().zip(b.iter().cloned()));
    }
}

/// Every extent of a type.
fn each_dim(ty: &StructInfo, visit: &mut dyn FnMut(&Dim)) {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().for_each(|field| each_dim(field, visit)),
        StructInfo::Shape(shape) => shape.dims().into_iter().flatten().for_each(visit),
        _ => {
            if let Some(tensor) = ty.as_tensor() {
                tensor.shape.dims().into_iter().flatten().for_each(visit);
            }
        }
    }
}
