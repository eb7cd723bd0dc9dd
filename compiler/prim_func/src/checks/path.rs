//! What holds where an access stands: the loops, axes, values and conditions around it.

use super::evaluate::Values;
use crate::reader::trace::{TracedAxis, TracedLoop};
use rustc_hash::FxHashSet;
use rx_tir::{Expr, LoopKind, VarId};

/// Something that holds for what comes after it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'t> {
    /// In a loop.
    Loop(&'t TracedLoop),
    /// In a block with this axis.
    Axis(&'t TracedAxis),
    /// For any value of this axis's domain, whatever binds it.
    Domain(&'t TracedAxis),
    /// Where a variable has a value.
    Let(VarId, &'t Expr),
    /// Where a condition holds, or does not.
    Assume(&'t Expr, bool),
}

impl<'t> Step<'t> {
    /// The variable it binds.
    pub(super) fn var(&self) -> Option<VarId> {
        match self {
            Step::Loop(it) => Some(it.var),
            Step::Axis(axis) | Step::Domain(axis) => Some(axis.iter.var),
            Step::Let(var, _) => Some(*var),
            Step::Assume(..) => None,
        }
    }

    /// The variable to which it gives a value, and the value.
    pub(super) fn value(&self) -> Option<(VarId, &'t Expr)> {
        match self {
            Step::Axis(axis) => Some((axis.iter.var, &axis.iter.binding)),
            Step::Let(var, value) => Some((*var, value)),
            _ => None,
        }
    }

    /// The loop that it is.
    pub(super) fn as_loop(&self) -> Option<&'t TracedLoop> {
        match self {
            Step::Loop(it) => Some(it),
            _ => None,
        }
    }

    /// Whether both are the same step of a function.
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

/// How many places one search looks at.
const PLACES: usize = 4096;

/// How many steps a path may have.
const LONGEST: usize = 128;

/// How many values of one loop are tried where not all are.
const SAMPLES: usize = 12;

/// How many places all searches of one function look at together, and dims all its proofs. Those that matter look at few.
const WORK: usize = 1 << 18;
pub(super) const FUEL: usize = 1 << 14;

/// What searches of a function share.
#[derive(Debug)]
pub(super) struct Searcher {
    values: Values,
    work: usize,
}

/// What a place is called to.
pub(super) struct Place<'s> {
    /// The values of variables there.
    pub(super) values: &'s Values,
    /// Whether it is reached: all conditions hold. Otherwise some read memory and may hold.
    pub(super) sure: bool,
}

impl Searcher {
    /// For a function of so many variables.
    pub(super) fn new(vars: usize) -> Searcher {
        Searcher { values: Values::of(vars), work: WORK }
    }

    /// Whether nothing more may be looked at, or not at so long a path; else takes what a proof costs that uses
    /// any two of its conditions.
    pub(super) fn is_spent(&mut self, path: &[Step<'_>]) -> bool {
        let is_spent = self.work == 0 || path.len() > LONGEST;
        self.work = self.work.saturating_sub(64 + path.len() * path.len());
        is_spent
    }

    /// Calls `visit` for places at the end of the path, where `symbols` have the values given, until it says so.
    /// All places are visited where they are few, else the ends of loops and what the constants of conditions tell apart.
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

struct Walk<'s, 't> {
    path: &'s [Step<'t>],
    relevant: &'s Relevant,
    /// Loops of at most so many iterations are run through.
    all: i64,
    left: usize,
    /// Threads and their values: loops over the same thread are the same loop.
    threads: Vec<(rx_base::Name, i64)>,
    work: &'s mut usize,
}

impl Walk<'_, '_> {
    /// Whether the search is over.
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

    /// The values of a range that are tried.
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
            // A loop of unknown length may do nothing.
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

/// The variables that decide what happens at a place.
#[derive(Debug, Default)]
pub(super) struct Relevant {
    vars: FxHashSet<VarId>,
    threads: Vec<rx_base::Name>,
    /// Constants of conditions and ranges.
    constants: Vec<i64>,
}

impl Relevant {
    /// The variables that the expressions at the end of the path depend on, through values, axes, ranges and conditions.
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

    /// With this variable, and what reads as the thread it runs over.
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

    /// Whether a variable is among them.
    pub(super) fn has(&self, var: VarId) -> bool {
        self.vars.contains(&var)
    }

    /// Those among `vars`.
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

    /// Values of a long range: its ends, and those around the constants.
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
