//! Reports write races: iterations that may run concurrently or in any order, and that store different values to the
//! same element.
//!
//! ```text
//! for i in T.parallel(8):
//!     A[i // 2] = B[i]       # warning: iterations i = 0 and i = 1 of a parallel loop both write `A[0]`
//! ```
//!
//! Concurrent loops are parallel and vectorized loops, and loops over `blockIdx` and `threadIdx`, if their iterations
//! share the buffer. A `threadIdx` axis over which the innermost block reduces does not count. A race is reported only
//! if two concrete iterations are found that store different values to the same element. Loads of different elements
//! count as different values, and so do two updates of the element (`A[0] = A[0] + 1`).
//!
//! The iterations of a spatial axis of the innermost block count as concurrent too, for stores to global buffers
//! outside of `T.init`. A buffer that the block declares to read is left out: the block is meant to update it.

use super::Walk;
use super::evaluate::Values;
use super::path::{Place, Relevant, Step};
use crate::reader::trace::{Access, TracedAxis, TracedLoop};
use rustc_hash::FxHashMap;
use rx_base::symbolic::Atom;
use rx_base::{Code, Diagnostic};
use rx_context::ItemPlace;
use rx_tir::func::Scope as Memory;
use rx_tir::{BufferId, Expr, IterKind, LoopKind, VarId};

/// The values that a search tries for the symbols: in each attempt, all symbols have the same one.
const TRIED: [i64; 2] = [4, 7];

/// Two iterations that write the same element.
struct Collision {
    /// The indices of the element.
    element: Vec<i64>,
    /// The value of the loop variable or axis in the first iteration.
    first: i64,
    /// The value of the loop variable or axis in the second iteration.
    second: i64,
}

impl<'t> Walk<'t> {
    /// Reports iterations of concurrent loops or spatial axes that store different values to the same element.
    pub(super) fn check_races(&mut self, access: &'t Access) {
        let (Some(element), Some(_)) = (&access.element, &access.value) else { return };
        for (step, it) in self.concurrent(access.buffer) {
            if self.searcher.is_spent(&self.path) || self.tells_apart(element, step, it) {
                continue;
            }
            let key = |place: &Values| place.get(it.var);
            let steps = &self.path.clone();
            if let Some(collision) = self.collision(access, steps, (step, it.var), &key) {
                let mut found = raced(access, it, &collision);
                found.fixes.extend(self.text.sequential(&it.place));
                self.found.push(found);
                return;
            }
        }
        self.check_spatial(access);
    }

    /// Returns the enclosing loops whose iterations run concurrently and share the buffer, with their indices in the
    /// path. A `threadIdx` axis over which the innermost block reduces is not among them.
    fn concurrent(&self, buffer: BufferId) -> Vec<(usize, &'t TracedLoop)> {
        let memory = self.trace.func.buffer(buffer).scope;
        let loops = self.path.iter().enumerate().filter_map(|(step, it)| Some((step, it.as_loop()?)));
        let shares = |(step, it): &(usize, &'t TracedLoop)| {
            let concurrent = match it.kind {
                LoopKind::Parallel | LoopKind::Vectorized => memory != Memory::Local,
                LoopKind::ThreadBinding(tag) if tag.starts_with("blockIdx") => memory == Memory::Global,
                LoopKind::ThreadBinding(tag) if tag.starts_with("threadIdx") => {
                    memory != Memory::Local && !self.reduces_over(it)
                }
                _ => false,
            };
            concurrent && !self.blocks.is_allocated_inside(buffer, *step)
        };
        loops.filter(shares).collect()
    }

    /// Whether the innermost block reduces over this thread axis: the binding of one of its reduction axes uses it. TVM
    /// then lowers the block to a cross-thread reduction.
    fn reduces_over(&self, it: &TracedLoop) -> bool {
        let Some(block) = self.blocks.innermost() else { return false };
        let threads = self.path.iter().filter_map(Step::as_loop).filter(|other| other.kind == it.kind);
        let threads: Vec<VarId> = threads.map(|thread| thread.var).collect();
        self.axes_from(block.first_step)
            .any(|axis| axis.iter.kind == IterKind::Reduce && threads.iter().any(|var| axis.iter.binding.uses(*var)))
    }

    /// Whether different values of the loop's variable are proved to give different elements. The proof requires an
    /// index in which the absolute coefficient of the variable exceeds the total range of the index over the variables
    /// inside the loop. For example, in `A[i * 4 + j]` with `j` in `range(4)`, the coefficient 4 exceeds the range 3.
    fn tells_apart(&mut self, element: &[Expr], step: usize, it: &TracedLoop) -> bool {
        let mut scope = self.start.at_end(&self.path, &self.trace.func);
        let own = scope.symbol(it.var);
        let inner: Vec<(rx_base::Name, VarId)> = self
            .path
            .iter()
            .skip(step + 1)
            .filter_map(|step| match step {
                Step::Loop(it) => Some((scope.symbol(it.var), it.var)),
                Step::Axis(axis) => Some((scope.symbol(axis.iter.var), axis.iter.var)),
                _ => None,
            })
            .collect();
        element.iter().any(|index| {
            let dim = scope.dim(index);
            let mut coefficient = 0;
            // The total range of the index over the variables inside the loop.
            let mut reach = Some(0i64);
            for (product, scale) in dim.terms() {
                let mut symbols = Vec::new();
                product.iter().for_each(|(atom, _)| {
                    rx_base::Dim::from(atom.clone()).for_each_symbol(&mut |symbol| symbols.push(symbol));
                });
                match &product[..] {
                    [(Atom::Symbol(symbol), 1)] if *symbol == own => coefficient = *scale,
                    [(Atom::Symbol(symbol), 1)] => {
                        if let Some((_, var)) = inner.iter().find(|(known, _)| known == symbol) {
                            let width = self.intervals.width(*var).and_then(|width| width.checked_mul(scale.abs()));
                            reach = reach.zip(width).and_then(|(reach, width)| reach.checked_add(width));
                        }
                    }
                    _ if symbols.contains(&own) => reach = None,
                    _ if inner.iter().any(|(known, _)| symbols.contains(known)) => reach = None,
                    // An opaque term may depend on any variable.
                    _ if product.iter().any(|(atom, _)| matches!(atom, Atom::Opaque(..))) => reach = None,
                    _ => {}
                }
            }
            coefficient != 0 && reach.is_some_and(|reach| reach < coefficient.abs())
        })
    }

    /// Searches for two iterations that store to the same element, differ in `key`, and agree on all relevant variables
    /// before `step`. Returns the first pair found; `None` if there is none, or if that pair is not known to store
    /// different values.
    fn collision(
        &mut self,
        access: &Access,
        path: &[Step<'t>],
        (step, own): (usize, VarId),
        key: &dyn Fn(&Values) -> Option<i64>,
    ) -> Option<Collision> {
        let element = access.element.as_ref()?;
        let relevant = Relevant::of(path, element).with(own, path);
        let outer: Vec<VarId> = path.iter().take(step).filter_map(Step::var).filter(|var| relevant.has(*var)).collect();
        let all: Vec<VarId> = path.iter().filter_map(Step::var).collect();
        let symbols = relevant.among(&self.symbols);
        let reads_own = self.reads_own_element(access);
        for tried in TRIED {
            let given: Vec<(VarId, i64)> = symbols.iter().map(|symbol| (*symbol, tried)).collect();
            let mut seen: FxHashMap<Vec<i64>, (i64, Vec<Option<i64>>)> = FxHashMap::default();
            let mut found = None;
            let reached = !self.may_have_left;
            let mut visit = |place: Place<'_>| {
                if !reached || !place.sure {
                    return false;
                }
                let values = place.values;
                let at: Option<Vec<i64>> = element.iter().map(|index| values.value(index)).collect();
                let fixed: Option<Vec<i64>> = outer.iter().map(|var| values.get(*var)).collect();
                let (Some(at), Some(fixed), Some(own)) = (at, fixed, key(values)) else { return false };
                let snapshot: Vec<Option<i64>> = all.iter().map(|var| values.get(*var)).collect();
                let known = seen.entry(fixed.into_iter().chain(at.iter().copied()).collect());
                match known {
                    std::collections::hash_map::Entry::Vacant(entry) => {
                        entry.insert((own, snapshot));
                        false
                    }
                    std::collections::hash_map::Entry::Occupied(entry) => {
                        let (first, before) = entry.get();
                        if *first == own {
                            return false;
                        }
                        found = Some((at, *first, own, before.clone(), snapshot));
                        true
                    }
                }
            };
            self.searcher.search(path, &relevant, &given, &mut visit);
            let Some((at, first, second, before, after)) = found else { continue };
            let differ = reads_own || {
                let vars = self.trace.func.vars.len();
                let complete = |snapshot: &[Option<i64>]| {
                    let mut values = Values::of(vars);
                    given.iter().for_each(|(symbol, value)| values.set(*symbol, Some(*value)));
                    all.iter().zip(snapshot).for_each(|(var, value)| values.set(*var, *value));
                    values.complete(path);
                    values
                };
                let (one, other) = (complete(&before), complete(&after));
                let value = access.value.as_ref()?;
                self.same(value, (&one, &other), step, 0) == Some(false)
            };
            return differ.then_some(Collision { element: at, first, second });
        }
        None
    }

    /// Whether an expression has the same value in two iterations; `None` if unknown. Loads at different indices count
    /// as different, and so do operations with a different operand, unless their values are known.
    fn same(&self, expr: &Expr, (one, other): (&Values, &Values), step: usize, depth: usize) -> Option<bool> {
        if let (Some(a), Some(b)) = (one.value(expr), other.value(expr)) {
            return Some(a == b);
        }
        if depth > 64 {
            return None;
        }
        let part = |part: &Expr| self.same(part, (one, other), step, depth + 1);
        match expr {
            Expr::Float { .. } | Expr::Int { .. } => Some(true),
            Expr::Var { var, .. } => self.path.iter().rev().find_map(|step| match step {
                Step::Let(bound, value) if bound == var => Some(part(value)),
                _ => None,
            })?,
            Expr::Load { buffer, indices, .. } => {
                let same: Vec<Option<bool>> = indices.iter().map(part).collect();
                let private = self.trace.func.buffer(*buffer).scope == Memory::Local
                    || self.blocks.is_allocated_inside(*buffer, step);
                match all(&same) {
                    Some(true) if private => None,
                    answer => answer,
                }
            }
            Expr::Select { condition, then, otherwise } => match (one.value(condition), other.value(condition)) {
                (Some(a), Some(b)) if (a != 0) == (b != 0) => part(if a != 0 { then } else { otherwise }),
                _ => None,
            },
            expr => all(&expr.children().into_iter().map(part).collect::<Vec<_>>()),
        }
    }

    /// Reports iterations of a spatial axis of the innermost block that store different values to the same element of a
    /// global buffer.
    fn check_spatial(&mut self, access: &'t Access) {
        let (Some(block), Some(element)) = (self.blocks.innermost(), &access.element) else { return };
        let first = block.first_step;
        let shared = self.trace.func.buffer(access.buffer).scope == Memory::Global
            && !self.blocks.is_allocated_inside(access.buffer, first);
        // A buffer that the block writes and declares to read is meant to be updated in each iteration.
        if self.blocks.in_init() || !shared || block.updates(access.buffer) {
            return;
        }
        let axes: Vec<&'t TracedAxis> = self.axes_from(first).collect();
        let spatial = |axis: &&&TracedAxis| {
            axis.iter.kind == IterKind::Spatial
                && axis.iter.extent.as_int() != Some(1)
                && !element.iter().any(|index| is_variable(index, axis.iter.var))
        };
        let doubtful: Vec<&'t TracedAxis> = axes.iter().filter(spatial).copied().collect();
        for axis in doubtful {
            if self.searcher.is_spent(&self.path) {
                return;
            }
            // Axes take all values of their domains, regardless of the loops. So of the conditions in the block only
            // those that use no variables but its axes are kept.
            let own: Vec<VarId> = axes.iter().map(|axis| axis.iter.var).collect();
            let others = |spatial: bool| {
                let others = axes.iter().filter(move |it| (it.iter.kind == IterKind::Spatial) == spatial);
                others.filter(|other| other.iter.var != axis.iter.var).map(|axis| Step::Domain(axis))
            };
            let inside = self.path.iter().skip(first).filter(|step| match step {
                Step::Axis(_) | Step::Domain(_) => false,
                Step::Assume(condition, _) => speaks_of(condition, &own),
                Step::Loop(_) | Step::Let(..) => true,
            });
            let mut path: Vec<Step<'t>> = self.path.iter().take(first).copied().chain(others(false)).collect();
            let split = path.len();
            path.push(Step::Domain(axis));
            path.extend(others(true).chain(inside.copied()));
            let key = |values: &Values| values.get(axis.iter.var);
            if let Some(collision) = self.collision(access, &path, (split, axis.iter.var), &key) {
                self.found.push(not_spatial(access, axis, &collision));
                return;
            }
        }
    }
}

/// Whether a condition uses only variables from a list.
fn speaks_of(condition: &Expr, vars: &[VarId]) -> bool {
    let mut only = true;
    condition.walk(&mut |part| {
        if let Expr::Var { var, .. } = part {
            only &= vars.contains(var);
        }
    });
    only
}

fn is_variable(index: &Expr, wanted: VarId) -> bool {
    match index {
        Expr::Var { var, .. } => *var == wanted,
        Expr::Cast { value, .. } => is_variable(value, wanted),
        _ => false,
    }
}

fn all(parts: &[Option<bool>]) -> Option<bool> {
    match parts {
        parts if parts.contains(&Some(false)) => Some(false),
        parts if parts.contains(&None) => None,
        _ => Some(true),
    }
}

fn spelled(access: &Access, element: &[i64]) -> String {
    let indices: Vec<String> = element.iter().map(i64::to_string).collect();
    format!("{}[{}]", access.name, indices.join(", "))
}

fn raced(access: &Access, it: &TracedLoop, collision: &Collision) -> Diagnostic<ItemPlace> {
    let Collision { element, first, second } = collision;
    let (element, name) = (spelled(access, element), it.name);
    let how = match it.kind {
        LoopKind::Vectorized => "of a vectorized loop".to_owned(),
        LoopKind::ThreadBinding(tag) => format!("on threads of `{tag}`"),
        _ => "of a parallel loop".to_owned(),
    };
    let message = format!("iterations {name} = {first} and {name} = {second} {how} both write `{element}`");
    Diagnostic::new(Code::WriteRace, access.place.clone(), message)
        .with_label(it.place.clone(), "its iterations run at once")
        .with_help(format!("make the element depend on `{name}`, or run the loop in order"))
}

fn not_spatial(access: &Access, axis: &TracedAxis, collision: &Collision) -> Diagnostic<ItemPlace> {
    let Collision { element, first, second } = collision;
    let (element, name) = (spelled(access, element), axis.name);
    let message =
        format!("{name} = {first} and {name} = {second} both write `{element}`, though `{name}` is a spatial axis");
    Diagnostic::new(Code::WriteRace, access.place.clone(), message)
        .with_label(axis.place.clone(), "iterations of a spatial axis may run in any order, or at once")
        .with_help(format!("make `{name}` a reduction axis, or the element depend on it"))
}
