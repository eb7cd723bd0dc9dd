//! Symbolic proofs: facts that hold for all values of a kernel's symbols.

use super::evaluate::Values;
use super::path::{Relevant, Step};
use rustc_hash::FxHashSet;
use rx_base::symbolic::Atom;
use rx_base::{DType, Dim, Name};
use rx_loops::scope::Scope;
use rx_tir::{BufferId, Expr, PrimFunc, VarId};
use std::cell::Cell;
use std::rc::Rc;

/// The facts that hold on every path of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Start {
    /// Variables that count as non-negative: symbols, and variables that are extents of a buffer parameter.
    pub(super) extents: FxHashSet<VarId>,
    /// Buffers that the function may store to: all if a statement could not be read.
    pub(super) written: FxHashSet<BufferId>,
    /// The remaining budget of all proofs.
    pub(super) fuel: Rc<Cell<usize>>,
}

impl Start {
    fn scope(&self) -> Scope {
        Scope::over(self.extents.clone(), self.written.clone()).for_checks(self.fuel.clone())
    }

    /// Returns the analyzer context at the end of a path, with the facts of all its steps.
    pub(super) fn at_end(&self, path: &[Step<'_>], func: &PrimFunc) -> Scope {
        let mut scope = self.scope();
        for step in path {
            match step {
                Step::Loop(it) => scope.enter_loop(it.var, dtype(func, it.var), &it.start, &it.extent),
                Step::Domain(axis) => {
                    let iter = &axis.iter;
                    scope.enter_loop(iter.var, dtype(func, iter.var), &iter.start, &iter.extent);
                }
                Step::Axis(axis) => {
                    let iter = &axis.iter;
                    scope.enter_axis(iter.var, dtype(func, iter.var), &iter.start, &iter.extent, &iter.binding);
                }
                Step::Let(var, value) => scope.enter_let(*var, dtype(func, *var), value),
                Step::Assume(condition, holds) => scope.assume_condition(condition, *holds),
            }
        }
        scope
    }
}

fn dtype(func: &PrimFunc, var: VarId) -> DType {
    func.var(var).dtype
}

/// The side of its range on which an index lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Less than the first index.
    Below,
    /// Greater than the last index.
    Beyond,
}

/// A range check of an index: `low <= index < high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'e> {
    pub(super) index: &'e Expr,
    /// The first valid index; `None` for 0.
    pub(super) low: Option<&'e Expr>,
    /// The last valid index plus one.
    pub(super) high: &'e Expr,
}

impl Bound<'_> {
    /// Evaluates the check for these values. Returns the side and the index if it is out of range; `None` if it is in
    /// range or unknown.
    pub(super) fn left(&self, values: &Values) -> Option<(Side, i64)> {
        let index = values.value(self.index)?;
        let low = match self.low {
            Some(low) => values.value(low),
            None => Some(0),
        };
        if low.is_some_and(|low| index < low) {
            return Some((Side::Below, index));
        }
        values.value(self.high).is_some_and(|high| index >= high).then_some((Side::Beyond, index))
    }

    /// Whether the index is proved to be in range.
    pub(super) fn holds(&self, scope: &mut Scope) -> bool {
        let index = scope.dim(self.index);
        [Side::Beyond, Side::Below].into_iter().all(|side| {
            let excess = self.excess(scope, &index, side);
            scope.not_negative(&(&-&excess - &Dim::constant(1)))
        })
    }

    /// Returns an expression that is non-negative if and only if the index is out of range on this side:
    /// `index - high` or `low - index - 1`.
    fn excess(&self, scope: &mut Scope, index: &Dim, side: Side) -> Dim {
        match side {
            Side::Beyond => index - &scope.dim(self.high),
            Side::Below => {
                let low = self.low.map_or(Dim::constant(0), |low| scope.dim(low));
                &(&low - index) - &Dim::constant(1)
            }
        }
    }

    /// Whether the index is proved to be out of range on this side whenever it is evaluated.
    pub(super) fn never_holds(&self, scope: &mut Scope, side: Side) -> bool {
        let index = scope.dim(self.index);
        let excess = self.excess(scope, &index, side);
        scope.not_negative(&excess)
    }

    /// Generalizes a witness to all values of the symbols, assuming that the loops around it are not empty. Loops take
    /// their first or last value, as in the witness. If that proves nothing, one of the three innermost relevant loops
    /// takes the value at which the index is just out of range instead. Returns the index in that iteration as a
    /// symbolic expression; `None` if it is not proved to be out of range. For example, the witness `i = 4` of `for i
    /// in range(n)` with n = 5 generalizes to `i = n - 1`.
    pub(super) fn always_left(
        &self,
        start: &Start,
        path: &[Step<'_>],
        relevant: &Relevant,
        (witness, side): (&Values, Side),
    ) -> Option<(Dim, Scope)> {
        let corner = Corner { bound: *self, start, path, relevant, witness, side };
        let mut inner = path.iter().rev().filter_map(Step::as_loop).filter(|it| relevant.has(it.var)).take(3);
        corner.at(None).or_else(|| inner.find_map(|it| corner.at(Some(it.var))))
    }
}

/// An iteration of the loops of a path in symbolic form, for example `i = n - 1`. Each loop is at its first or last
/// value, as in `witness`; a loop that is not relevant is at its first. [`Corner::at`] can instead set one loop to the
/// value at which the index is just out of range.
struct Corner<'s, 't> {
    bound: Bound<'s>,
    start: &'s Start,
    path: &'s [Step<'t>],
    relevant: &'s Relevant,
    witness: &'s Values,
    side: Side,
}

impl Corner<'_, '_> {
    /// Returns the index in this iteration if it is proved to be out of range. The loop `solved` takes the value at
    /// which the index is just out of range.
    fn at(&self, solved: Option<VarId>) -> Option<(Dim, Scope)> {
        let value = match solved {
            None => None,
            Some(var) => Some((var, self.solve(var)?)),
        };
        let mut scope = self.start.scope();
        self.enter(&mut scope, value.as_ref())?;
        let index = scope.dim(self.bound.index);
        let excess = self.bound.excess(&mut scope, &index, self.side);
        scope.not_negative(&excess).then_some((index, scope))
    }

    /// Solves for the value of a loop variable at which the index is just out of range: `index - high` is 0, or
    /// `low - index - 1` is 0. The other loops are at their first or last values. Requires that the variable has the
    /// coefficient 1 or -1 in this difference and is in no other term of it.
    fn solve(&self, var: VarId) -> Option<Dim> {
        let mut scope = self.start.scope();
        let symbol: Name = scope.symbol(var);
        let itself = Dim::symbol(symbol);
        for step in self.path {
            match step {
                Step::Loop(it) if it.var == var => scope.set_value(var, itself.clone()),
                step => self.set(&mut scope, step)?,
            }
        }
        let index = scope.dim(self.bound.index);
        let excess = self.bound.excess(&mut scope, &index, self.side);
        let atom = Atom::Symbol(symbol);
        let coefficient =
            excess.terms().iter().find(|(product, _)| product[..] == [(atom.clone(), 1)]).map(|it| it.1)?;
        let rest = &excess - &(&itself * &Dim::constant(coefficient));
        let mut free = true;
        rest.for_each_symbol(&mut |known| free &= known != symbol);
        match coefficient {
            _ if !free => None,
            1 => Some(-&rest),
            -1 => Some(rest),
            _ => None,
        }
    }

    /// Sets the variable that a step binds to its symbolic value in this iteration. A relevant loop variable gets the
    /// first or the last value of its loop, whichever it has in the witness. For example, if `i` is 4 in the witness
    /// and n = 5, then `i` of `for i in range(n)` gets the value `n - 1`. Other loop variables get the first value.
    /// Returns `None` if there is no such value: for example, if `i` is 2 in the witness.
    fn set(&self, scope: &mut Scope, step: &Step<'_>) -> Option<()> {
        match step {
            Step::Loop(it) => {
                let (start, extent) = (scope.dim(&it.start), scope.dim(&it.extent));
                let last = &extent - &Dim::constant(1);
                let value = match self.relevant.has(it.var).then(|| self.witness.get(it.var)).flatten() {
                    None => start,
                    Some(at) => {
                        let first = self.witness.value(&it.start)?;
                        let count = self.witness.value(&it.extent)?;
                        match at - first {
                            distance if distance == count - 1 => &start + &last,
                            0 => start,
                            _ => return None,
                        }
                    }
                };
                scope.assume(&last);
                scope.set_value(it.var, value);
            }
            Step::Domain(_) => return None,
            Step::Axis(_) | Step::Let(..) | Step::Assume(..) => {
                if let Some((var, value)) = step.value() {
                    let value = scope.dim(value);
                    scope.set_value(var, value);
                }
            }
        }
        Some(())
    }

    /// Enters all steps of the path, assuming that no loop is empty. Returns `None` if a step has no value
    /// ([`Corner::set`]) or the iteration is not proved to be reached.
    fn enter(&self, scope: &mut Scope, solved: Option<&(VarId, Dim)>) -> Option<()> {
        for step in self.path {
            match (step, solved) {
                (Step::Loop(it), Some((var, value))) if it.var == *var => {
                    let (start, extent) = (scope.dim(&it.start), scope.dim(&it.extent));
                    let distance = value - &start;
                    let last = &extent - &Dim::constant(1);
                    scope.assume(&last);
                    let inside = scope.not_negative(&distance) && scope.not_negative(&(&last - &distance));
                    if !inside {
                        return None;
                    }
                    scope.set_value(it.var, value.clone());
                }
                (Step::Assume(condition, holds), _) => {
                    if scope.decide(condition) != Some(*holds) {
                        return None;
                    }
                }
                (step, _) => self.set(scope, step)?,
            }
        }
        Some(())
    }
}
