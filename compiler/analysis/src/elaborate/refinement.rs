//! Refinement: facts about symbols that statements of the function establish, in addition to its attributes.
//!
//! ```text
//! y = R.match_cast(x, R.Tensor((m, 8)))    # x: R.Tensor((n, k))
//! → n = m and k = 8 in the statements after it
//! ```
//!
//! Facts come from a `match_cast`, an annotation that is more precise than the proved type, the arguments of a call,
//! an assertion, or the condition of a branch. Each is checked at run time, so it holds in the statements after it;
//! in a branch, up to the end of the branch.
//!
//! Facts are stored in the function's scope under a reserved name, like the header. A segment asks for them at its
//! start, so it is elaborated again if they have changed.

use super::checker::Checker;
use crate::entry::{Entry, FACTS, Place};
use rx_base::name::name;
use rx_base::symbolic::{Bounds, prove};
use rx_base::{Diagnostic, Dim, Name, Span};
use rx_ir::{Shape, StructInfo};
use std::sync::Arc;

/// The maximal number of places that a diagnostic shows for the facts it relies on.
const MAX_SHOWN: usize = 3;

impl Checker<'_> {
    /// Returns the facts at the segment's start: those from attributes and those from earlier statements.
    pub(super) fn known_at_start(&mut self) -> Arc<Bounds> {
        let stated = self.function_context().map(|context| context.bounds.clone()).unwrap_or_default();
        match self.lookup(name(FACTS)) {
            Some(Entry::Facts(learned)) => Arc::new(learned.restated(&stated)),
            _ => stated,
        }
    }

    /// Adds facts that hold from here to the end of the innermost block; `span` is the code that establishes them. A
    /// statement with a syntax error adds none.
    pub(super) fn refine(&mut self, span: Span, add: impl FnOnce(&mut Bounds)) {
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

    /// Removes the facts about a name that denotes another value from here on.
    pub(super) fn forget(&mut self, symbol: Name) {
        if self.bounds.has_learned() {
            let mut bounds = Bounds::clone(&self.bounds);
            bounds.forget(symbol);
            if bounds != *self.bounds {
                self.keep(bounds);
            }
        }
    }

    /// Restores the facts before a block: facts end with their block, except for attributes, which belong to the
    /// function.
    pub(super) fn leave_block(&mut self, before: &Arc<Bounds>) {
        if *before != self.bounds {
            self.bounds = Arc::new(before.restated(&self.bounds));
        }
    }

    /// Records pairs of dims that are equal from here on, since the program checks this.
    pub(super) fn refine_all(&mut self, equalities: &[(Dim, Dim)], span: Span) {
        if equalities.iter().any(|(a, b)| a != b) {
            self.refine(span, |bounds| equalities.iter().for_each(|(a, b)| bounds.assume_equal(a, b)));
        }
    }

    /// Records that a value of the type `is` has the type `declared`, so corresponding dims are equal.
    pub(super) fn refine_types(&mut self, declared: &StructInfo, is: &StructInfo, span: Span) {
        let mut equalities = Vec::new();
        pair_dims(declared, is, &mut equalities);
        self.refine_all(&equalities, span);
    }

    /// Records that the dims of a checked type are not negative: `n - 3` implies `n >= 3`.
    pub(super) fn refine_extents(&mut self, ty: &StructInfo, span: Span) {
        let mut extents = Vec::new();
        each_dim(ty, &mut |dim| {
            if prove::lower(dim, &Bounds::default()).is_none_or(|low| low < 0) && !dim.is_error() {
                extents.push(dim.clone());
            }
        });
        if !extents.is_empty() {
            self.refine(span, |bounds| extents.iter().for_each(|dim| bounds.assume_at_least(dim, &Dim::constant(0))));
        }
    }

    /// Adds the facts about the symbols of these dims to a diagnostic, with the places that establish them.
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

/// Returns the name under which the place of a fact is stored; `<` keeps programs from using it.
fn marker(statement: &str) -> Name {
    name(&format!("<{statement}>"))
}

/// Collects pairs of corresponding dims of two types.
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

/// Calls `visit` with every extent in a type.
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
