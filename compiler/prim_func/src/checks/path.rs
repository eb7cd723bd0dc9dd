//! Paths and the search for iterations: the loops, axes, values and conditions around an access, and the enumeration
//! of concrete values for them.

use super::evaluate::Values;
use crate::reader::trace::{TracedAxis, TracedLoop};
use rustc_hash::FxHashSet;
use rx_tir::{Expr, LoopKind, VarId};

/// A fact on a path. It holds for all later steps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'t> {
    /// The body of a loop.
    Loop(&'t TracedLoop),
    /// An axis of a block, whose value is its binding.
    Axis(&'t TracedAxis),
    /// An axis of a block with any value of its domain, regardless of its binding.
    Domain(&'t TracedAxis),
    /// A variable and its value.
    Let(VarId, &'t Expr),
    /// A condition, and whether it holds.
    Assume(&'t Expr, bool),
}

impl<'t> Step<'t> {
    /// Returns the variable that the step binds.
    pub(super) fn var(&self) -> Option<VarId> {
        match self {
            Step::Loop(it) => Some(it.var),
            Step::Axis(axis) | Step::Domain(axis) => Some(axis.iter.var),
            Step::Let(var, _) => Some(*var),
            Step::Assume(..) => None,
        }
    }

    /// Returns the variable whose value the step defines, and the value.
    pub(super) fn value(&self) -> Option<(VarId, &'t Expr)> {
        match self {
            Step::Axis(axis) => Some((axis.iter.var, &axis.iter.binding)),
            Step::Let(var, value) => Some((*var, value)),
            _ => None,
        }
    }

    /// Returns the loop, if the step is a loop.
    pub(super) fn as_loop(&self) -> Option<&'t TracedLoop> {
        match self {
            Step::Loop(it) => Some(it),
            _ => None,
        }
    }

    /// Whether both come from the same event of the trace, as an axis and its domain do.
    pub(super) fn is(&self, other: &Step<'_>) -> bool {
        match (self, other) {
            (Step::Loop(a), Step::Loop(b)) => std::ptr::eq(*a, *b),
            (Step::Axis(a) | Step::Domain(a), Step::Axis(b) | Step::Domain(b)) => std::ptr::eq(*a, *b),
            (Step::Let(a, _), Step::Let(b, _)) => a == b,
            (Step::Assume(a, _), Step::Assume(b, _)) => std::ptr::eq(*a, *b),
            _ => false,
        }
    }
}

/// The limit on the steps that one search visits. A step is visited, and counts, once for each combination of values
/// that the search tries for the steps before it.
const PLACES: usize = 4096;

/// The limit on the length of a path. Longer ones are not searched.
const LONGEST: usize = 128;

/// The largest number of values tried for a loop or axis domain that is not enumerated completely.
const SAMPLES: usize = 12;

/// The limit on the steps that all searches of a function visit together. Proofs count too, see [`Searcher::is_spent`].
const WORK: usize = 1 << 18;
/// The limit on the symbolic dims that all proofs of a function may process together.
pub(super) const FUEL: usize = 1 << 14;

/// The state shared by all searches of a function.
#[derive(Debug)]
pub(super) struct Searcher {
    /// The values of variables at the current place of a search.
    values: Values,
    /// The rest of the limit [`WORK`].
    work: usize,
}

/// A place that a search visits: an iteration at the end of a path.
pub(super) struct Place<'s> {
    /// The values of the variables.
    pub(super) values: &'s Values,
    /// Whether all conditions on the path are known to hold, and all its loops are known not to be empty. Otherwise
    /// some of these are unknown, for example since they read memory.
    pub(super) sure: bool,
}

impl Searcher {
    /// Creates a searcher for a function with this number of variables.
    pub(super) fn new(vars: usize) -> Searcher {
        Searcher { values: Values::of(vars), work: WORK }
    }

    /// Whether the budget is exhausted or the path is too long. Also charges the budget for a proof, whose cost is
    /// quadratic in the length of the path.
    pub(super) fn is_spent(&mut self, path: &[Step<'_>]) -> bool {
        let is_spent = self.work == 0 || path.len() > LONGEST;
        self.work = self.work.saturating_sub(64 + path.len() * path.len());
        is_spent
    }

    /// Calls `visit` for places at the end of the path, with the given values of symbols, until it returns true or a
    /// limit is reached. Tries all values of relevant loops and of axis domains that are short: the more there are of
    /// them, the lower is the limit. Of longer ones it tries some values, see [`Relevant::samples`], and of irrelevant
    /// loops the first.
    pub(super) fn search(
        &mut self,
        path: &[Step<'_>],
        relevant: &Relevant,
        symbols: &[(VarId, i64)],
        visit: &mut dyn FnMut(Place<'_>) -> bool,
    ) {
        if path.len() > LONGEST {
            return;
        }
        for (symbol, value) in symbols {
            self.values.set(*symbol, Some(*value));
        }
        let loops = path.iter().filter(|step| match step {
            Step::Loop(it) => relevant.has(it.var),
            Step::Domain(_) => true,
            _ => false,
        });
        let loops = loops.count();
        let all = match loops {
            0 | 1 => 1024,
            2 => 48,
            3 => 12,
            4 => 6,
            _ => 3,
        };
        let mut walk = Walk { path, relevant, all, left: PLACES, threads: Vec::new(), work: &mut self.work };
        walk.go(&mut self.values, 0, true, visit);
        for step in path {
            if let Some(var) = step.var() {
                self.values.set(var, None);
            }
        }
        for (symbol, _) in symbols {
            self.values.set(*symbol, None);
        }
    }
}

/// The state of one search.
struct Walk<'s, 't> {
    path: &'s [Step<'t>],
    relevant: &'s Relevant,
    /// The largest extent of a loop or axis domain that is enumerated completely.
    all: i64,
    /// The number of steps that this search may still visit.
    left: usize,
    /// Thread axes other than `vthread`, and their values. Loops bound to the same one have the same value.
    threads: Vec<(rx_base::Name, i64)>,
    work: &'s mut usize,
}

impl Walk<'_, '_> {
    /// Visits the places from step `at` on; returns whether the search is over.
    fn go(&mut self, values: &mut Values, at: usize, sure: bool, visit: &mut dyn FnMut(Place<'_>) -> bool) -> bool {
        if self.left == 0 || *self.work == 0 {
            return true;
        }
        self.left -= 1;
        *self.work -= 1;
        let Some(step) = self.path.get(at) else { return visit(Place { values, sure }) };
        match step {
            Step::Assume(condition, holds) => match values.value(condition) {
                Some(value) if (value != 0) != *holds => false,
                Some(_) => self.go(values, at + 1, sure, visit),
                None => self.go(values, at + 1, false, visit),
            },
            Step::Let(..) | Step::Axis(_) => {
                if let Some((var, value)) = step.value().filter(|(var, _)| self.relevant.has(*var)) {
                    let value = values.value(value);
                    values.set(var, value);
                }
                self.go(values, at + 1, sure, visit)
            }
            Step::Loop(it) => self.run(values, it, at, sure, visit),
            Step::Domain(axis) => {
                let iter = &axis.iter;
                let range = values.value(&iter.start).zip(values.value(&iter.extent));
                let range = range.and_then(|(start, extent)| Some((start, start.checked_add(extent)?)));
                let Some((start, end)) = range else { return false };
                for value in self.candidates(start, end, true) {
                    values.set(iter.var, Some(value));
                    if self.go(values, at + 1, sure, visit) {
                        return true;
                    }
                }
                false
            }
        }
    }

    /// Returns the values of a range to try: if they are `needed`, all or, of a long range, samples; otherwise only the
    /// first.
    fn candidates(&self, start: i64, end: i64, needed: bool) -> Vec<i64> {
        match needed {
            _ if start >= end => Vec::new(),
            false => vec![start],
            true if end.saturating_sub(start) <= self.all => (start..end).collect(),
            true => self.relevant.samples(start, end),
        }
    }

    fn run(
        &mut self,
        values: &mut Values,
        it: &TracedLoop,
        at: usize,
        sure: bool,
        visit: &mut dyn FnMut(Place<'_>) -> bool,
    ) -> bool {
        let range = values.value(&it.start).zip(values.value(&it.extent));
        let Some((start, extent)) = range else {
            // A loop with an unknown extent may be empty.
            values.set(it.var, None);
            return self.go(values, at + 1, false, visit);
        };
        let Some(end) = start.checked_add(extent).filter(|_| extent > 0) else { return false };
        let thread = match it.kind {
            LoopKind::ThreadBinding(tag) if !tag.starts_with("vthread") => Some(tag),
            _ => None,
        };
        let same = thread.and_then(|tag| self.threads.iter().rev().find(|(known, _)| *known == tag).copied());
        if let Some((_, value)) = same {
            if value < start || value >= end {
                return false;
            }
            values.set(it.var, Some(value));
            return self.go(values, at + 1, sure, visit);
        }
        let needed = self.relevant.has(it.var) || thread.is_some_and(|tag| self.relevant.threads.contains(&tag));
        for value in self.candidates(start, end, needed) {
            values.set(it.var, Some(value));
            self.threads.extend(thread.map(|tag| (tag, value)));
            let over = self.go(values, at + 1, sure, visit);
            if thread.is_some() {
                self.threads.pop();
            }
            if over {
                return true;
            }
        }
        false
    }
}

/// The variables that influence a property at the end of a path.
#[derive(Debug, Default)]
pub(super) struct Relevant {
    vars: FxHashSet<VarId>,
    threads: Vec<rx_base::Name>,
    /// The integer constants in all expressions on which the property depends, in ascending order.
    constants: Vec<i64>,
}

impl Relevant {
    /// Collects the variables on which expressions at the end of the path depend, directly or through values and axes,
    /// and those of all conditions and ranges on the path, which decide whether the end is reached.
    pub(super) fn of<'e>(path: &[Step<'_>], at_end: impl IntoIterator<Item = &'e Expr>) -> Relevant {
        let mut relevant = Relevant::default();
        for expr in at_end {
            relevant.add(expr);
        }
        for step in path.iter().rev() {
            match step {
                Step::Assume(condition, _) => relevant.add(condition),
                Step::Let(var, value) if relevant.has(*var) => relevant.add(value),
                Step::Axis(axis) if relevant.has(axis.iter.var) => relevant.add(&axis.iter.binding),
                Step::Domain(axis) => {
                    relevant.add(&axis.iter.start);
                    relevant.add(&axis.iter.extent);
                }
                Step::Loop(it) => {
                    relevant.add(&it.start);
                    relevant.add(&it.extent);
                    if let (LoopKind::ThreadBinding(tag), true) = (it.kind, relevant.has(it.var)) {
                        relevant.threads.push(tag);
                    }
                }
                _ => {}
            }
        }
        relevant.constants.sort_unstable();
        relevant.constants.dedup();
        relevant
    }

    /// Adds a variable and, if its loop is bound to a thread axis, that axis.
    pub(super) fn with(mut self, var: VarId, path: &[Step<'_>]) -> Relevant {
        self.vars.insert(var);
        self.threads.extend(path.iter().filter_map(|step| match step {
            Step::Loop(TracedLoop { var: known, kind: LoopKind::ThreadBinding(tag), .. }) if *known == var => {
                Some(*tag)
            }
            _ => None,
        }));
        self
    }

    /// Whether a variable is relevant.
    pub(super) fn has(&self, var: VarId) -> bool {
        self.vars.contains(&var)
    }

    /// Returns the relevant variables among `vars`.
    pub(super) fn among(&self, vars: &[VarId]) -> Vec<VarId> {
        vars.iter().copied().filter(|var| self.has(*var)).collect()
    }

    fn add(&mut self, expr: &Expr) {
        expr.walk(&mut |part| match part {
            Expr::Var { var, .. } => {
                self.vars.insert(*var);
            }
            Expr::Int { value, .. } => self.constants.push(*value),
            _ => {}
        });
    }

    /// Returns at most [`SAMPLES`] sample values of a long range, in ascending order: its first two and last two
    /// values, and each of the [`Relevant::constants`] with the integers before and after it, as far as they are in the
    /// range. If there are too many, the values around the largest constants are left out.
    fn samples(&self, start: i64, end: i64) -> Vec<i64> {
        let mut samples = vec![start, start.saturating_add(1), end.saturating_sub(2), end.saturating_sub(1)];
        for constant in &self.constants {
            for value in [constant.saturating_sub(1), *constant, constant.saturating_add(1)] {
                if samples.len() < SAMPLES && (start..end).contains(&value) {
                    samples.push(value);
                }
            }
        }
        samples.retain(|value| (start..end).contains(value));
        samples.sort_unstable();
        samples.dedup();
        samples
    }
}
