//! Finds the loops of a nest whose iterations are independent, so that threads can execute them.
//!
//! There are two proofs, and the one that covers more loops is used. The other loops remain loops inside the thread.
//!
//! - *By slices*: all accesses to a buffer that the nest writes and does not allocate have the same indices on some
//!   axes, and these indices determine the loops. So different threads access different elements. For example, the
//!   accesses of `out[i, 0] = x[i]; out[i, 1] = out[i, 0]` have `i` in common.
//! - *By declaration*: the body of the loops is a block whose spatial axes determine them, and its other axes do not
//!   use them. Every load from a buffer that the nest writes and does not allocate has the indices of a store to it,
//!   and no index of such a store contains a load. `T.axis.spatial` guarantees that different spatial instances write
//!   different elements.

use crate::injective::{Loop, determined};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_tir::rewrite::{map_expr, substitute};
use rx_tir::{Block, BufferId, Expr, IterKind, Stmt, VarId, is_evaluable};

/// Returns, for each of `loops` around `body`, whether its iterations are proved to be independent and the host can
/// evaluate its start and extent, so that threads can execute it. `is_uniform` returns whether a variable has one value
/// during the call.
pub(crate) fn parallel_loops(loops: &[Loop], body: &Stmt, is_uniform: &dyn Fn(VarId) -> bool) -> Vec<bool> {
    let launchable: Vec<bool> = loops
        .iter()
        .map(|one| [&one.start, &one.extent].into_iter().all(|expr| is_evaluable(expr, is_uniform)))
        .collect();
    let accesses = Accesses::of(body);
    let by_slices = by_slices(loops, launchable.clone(), &accesses, is_uniform);
    let by_declaration = match body {
        Stmt::Block(block) => by_declaration(loops, launchable, block, &accesses, is_uniform),
        _ => Vec::new(),
    };
    let count = |chosen: &[bool]| chosen.iter().filter(|one| **one).count();
    if count(&by_declaration) > count(&by_slices) { by_declaration } else { by_slices }
}

/// Returns, for each loop, whether it is in `chosen` and the common indices of every written buffer determine it.
/// Removing a loop also removes the indices that contain it, so this repeats until nothing changes.
fn by_slices(
    loops: &[Loop],
    mut chosen: Vec<bool>,
    accesses: &Accesses,
    is_uniform: &dyn Fn(VarId) -> bool,
) -> Vec<bool> {
    let slices: Vec<Vec<Expr>> = accesses.written.iter().map(|buffer| accesses.common_indices(*buffer)).collect();
    loop {
        let before = chosen.clone();
        for indices in &slices {
            keep_determined(&mut chosen, loops, indices, is_uniform);
        }
        if chosen == before {
            return chosen;
        }
    }
}

/// Keeps those of the chosen loops that the expressions determine. Only expressions over chosen loops and uniform
/// variables count.
fn keep_determined(chosen: &mut [bool], loops: &[Loop], expressions: &[Expr], is_uniform: &dyn Fn(VarId) -> bool) {
    let places: Vec<usize> = (0..loops.len()).filter(|at| chosen[*at]).collect();
    let candidates: Vec<&Loop> = places.iter().map(|at| &loops[*at]).collect();
    let usable = |var: VarId| is_uniform(var) || candidates.iter().any(|candidate| candidate.var == var);
    let expressions: Vec<Expr> = expressions.iter().filter(|expr| is_evaluable(expr, &usable)).cloned().collect();
    for (at, found) in places.iter().zip(determined(&expressions, &candidates)) {
        chosen[*at] = found;
    }
}

/// Returns, for each loop, whether it is in `chosen`, the block's spatial axes determine it, and no other axis uses it.
/// The result is empty if the accesses do not fit the declaration.
fn by_declaration(
    loops: &[Loop],
    mut chosen: Vec<bool>,
    block: &Block,
    accesses: &Accesses,
    is_uniform: &dyn Fn(VarId) -> bool,
) -> Vec<bool> {
    if !accesses.reads_only_own_writes() {
        return Vec::new();
    }
    let (spatial, others): (Vec<_>, Vec<_>) = block.iters.iter().partition(|iter| iter.kind == IterKind::Spatial);
    for (at, one) in loops.iter().enumerate() {
        chosen[at] &= !others.iter().any(|iter| iter.binding.uses(one.var));
    }
    let bindings: Vec<Expr> = spatial.iter().map(|iter| iter.binding.clone()).collect();
    loop {
        let before = chosen.clone();
        keep_determined(&mut chosen, loops, &bindings, is_uniform);
        if chosen == before {
            return chosen;
        }
    }
}

/// The loads and stores of a statement. In their indices, block axes are replaced by their bindings, and checks are
/// removed.
#[derive(Default)]
pub(crate) struct Accesses {
    /// The stored elements: buffer and indices.
    pub(crate) stores: Vec<(BufferId, Vec<Expr>)>,
    loads: Vec<(BufferId, Vec<Expr>)>,
    /// The buffers that the statement writes and does not allocate.
    written: Vec<BufferId>,
    private: FxHashSet<BufferId>,
    /// The bindings of the block axes that were visited, with outer block axes replaced.
    bound: FxHashMap<VarId, Expr>,
}

impl Accesses {
    pub(crate) fn of(body: &Stmt) -> Accesses {
        let mut accesses = Accesses::default();
        accesses.statement(body);
        let written: FxHashSet<BufferId> = accesses.stores.iter().map(|(buffer, _)| *buffer).collect();
        accesses.written = written.into_iter().filter(|buffer| !accesses.private.contains(buffer)).collect();
        accesses.written.sort();
        accesses
    }

    fn statement(&mut self, stmt: &Stmt) {
        if let Stmt::Block(block) = stmt {
            self.private.extend(&block.allocations);
            for iter in &block.iters {
                let binding = self.resolve(&iter.binding);
                self.bound.insert(iter.var, binding);
            }
        }
        for expr in stmt.expressions() {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices, .. } = part {
                    let indices = indices.iter().map(|index| self.resolve(index)).collect();
                    self.loads.push((*buffer, indices));
                }
            });
        }
        if let Stmt::Store { buffer, indices, .. } = stmt {
            let indices = indices.iter().map(|index| self.resolve(index)).collect();
            self.stores.push((*buffer, indices));
        }
        stmt.children().into_iter().for_each(|child| self.statement(child));
    }

    /// Returns an index with block axes replaced by their bindings, and without the checks in it.
    fn resolve(&self, index: &Expr) -> Expr {
        let over_loops = substitute(index, &|var| self.bound.get(&var).cloned());
        map_expr(&over_loops, &mut |part| match part {
            Expr::Checked { index, .. } => *index,
            other => other,
        })
    }

    /// Returns the indices that are equal in all accesses to a buffer, on the same axis.
    fn common_indices(&self, buffer: BufferId) -> Vec<Expr> {
        let mut all =
            self.stores.iter().chain(&self.loads).filter(|(one, _)| *one == buffer).map(|(_, indices)| indices);
        let Some(first) = all.next() else { return Vec::new() };
        let mut common: Vec<Option<&Expr>> = first.iter().map(Some).collect();
        for indices in all {
            for (slot, index) in common.iter_mut().zip(indices) {
                *slot = slot.filter(|known| *known == index);
            }
        }
        common.into_iter().flatten().cloned().collect()
    }

    /// Whether every load from a buffer in `written` has the indices of a store to it, and no index of a store to one
    /// contains a load.
    fn reads_only_own_writes(&self) -> bool {
        let is_store = |load: &(BufferId, Vec<Expr>)| self.stores.contains(load);
        let reads = self.loads.iter().filter(|(buffer, _)| self.written.contains(buffer)).all(is_store);
        let mut stores = self.stores.iter().filter(|(buffer, _)| self.written.contains(buffer));
        reads && !stores.any(|(_, indices)| indices.iter().any(Expr::has_load))
    }
}
