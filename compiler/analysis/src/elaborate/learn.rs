//! What a function says of its symbols, beyond its attributes: a `match_cast`, an annotation that says more than was
//! proved, the arguments of a call, an assertion, the condition of a branch. Each is checked when the program runs, so it
//! holds in the statements behind it, and in a branch to the branch's end.
//!
//! Facts stand in the function's scope under a name of their own, like the header: a segment asks for them at its start,
//! and is elaborated again when the answer is another.

use super::checker::Checker;
use crate::entry::{Entry, FACTS, Place};
use rx_base::name::name;
use rx_base::symbolic::{Bounds, prove};
use rx_base::{Diagnostic, Dim, Name, Span};
use rx_ir::{Shape, StructInfo};
use std::sync::Arc;

/// The most places a diagnostic shows of what it stands on.
const MAX_SHOWN: usize = 3;

impl Checker<'_> {
    /// What is known at the segment's start: what attributes state and what was learned.
    pub(super) fn known_at_start(&mut self) -> Arc<Bounds> {
        let stated = self.function_context().map(|context| context.bounds.clone()).unwrap_or_default();
        match self.lookup(name(FACTS)) {
            Some(Entry::Facts(learned)) => Arc::new(learned.restated(&stated)),
            _ => stated,
        }
    }

    /// Adds facts that hold from here on in the innermost block; `span` is what says them. A broken statement says nothing.
    pub(super) fn learn(&mut self, span: Span, add: impl FnOnce(&mut Bounds)) {
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
