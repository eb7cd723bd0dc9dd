//! Which loops of a nest may be threads.
//!
//! Two proofs. *By slices*: every access to every buffer that the nest writes has the same indices on some axes, and these
//! tell the loops apart; so different threads touch different elements. *By declaration*: the nest is one block, its
//! spatial axes tell the loops apart, and what it writes it reads nowhere else; that spatial instances write different
//! elements is what `T.axis.spatial` promises. What neither shows stays a loop inside the thread.

use crate::injective::{Loop, determined};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_tir::rewrite::{map_expr, substitute};
use rx_tir::{Block, BufferId, Expr, IterKind, Stmt, VarId, is_evaluable};

/// Which of `loops`, the loops around `body`, may be threads. `is_uniform` says which variables have one value during the
/// call.
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

/// Loops that the common indices of every written buffer tell apart. Losing a loop may lose indices that mention it, so
/// this is repeated until nothing changes.
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

/// Keeps those of the chosen loops that the expressions over chosen loops tell apart.
fn keep_determined(chosen: &mut [bool], loops: &[Loop], expressions: &[Expr], is_uniform: &dyn Fn(VarId) -> bool) {
    let places: Vec<usize> = (0..loops.len()).filter(|at| chosen[*at]).collect();
    let candidates: Vec<&Loop> = places.iter().map(|at| &loops[*at]).collect();
    let usable = |var: VarId| is_uniform(var) || candidates.iter().any(|candidate| candidate.var == var);
    let expressions: Vec<Expr> = expressions.iter().filter(|expr| is_evaluable(expr, &usable)).cloned().collect();
    for (at, found) in places.iter().zip(determined(&expressions, &candidates)) {
        chosen[*at] = found;
    }
}

/// Loops that the block's spatial axes tell apart, where its writes are as declared.
fn by_declaration(
    loops: &[Loop],
    mut chosen: Vec<bool>,
    block: &Block,
    accesses: &Accesses,
    is_uniform: &dyn Fn(VarId) -> bool,
) -> Vec<bool> {
    if !accesses.reads_only_what_is_written_beside() {
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

/// What a statement reads and writes, in terms of the loops around it.
#[derive(Default)]
pub(crate) struct Accesses {
    /// Elements that are stored, without the checks of their indices.
    pub(crate) stores: Vec<(BufferId, Vec<Expr>)>,
    loads: Vec<(BufferId, Vec<Expr>)>,
    /// Buffers it writes that live longer than it does.
    written: Vec<BufferId>,
    private: FxHashSet<BufferId>,
    /// Block axes that are bound so far.
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

    /// An index over loops, without the checks in it.
    fn resolve(&self, index: &Expr) -> Expr {
        let over_loops = substitute(index, &|var| self.bound.get(&var).cloned());
        map_expr(&over_loops, &mut |part| match part {
            Expr::Checked { index, .. } => *index,
            other => other,
        })
    }

    /// The indices that all accesses to a buffer have in common.
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

    /// Whether every element it reads of a buffer it writes is one that it writes at the same indices, and no place it
    /// writes to comes out of a buffer.
    fn reads_only_what_is_written_beside(&self) -> bool {
        let is_store = |load: &(BufferId, Vec<Expr>)| self.stores.contains(load);
        let reads = self.loads.iter().filter(|(buffer, _)| self.written.contains(buffer)).all(is_store);
        let mut stores = self.stores.iter().filter(|(buffer, _)| self.written.contains(buffer));
        reads && !stores.any(|(_, indices)| indices.iter().any(Expr::has_load))
    }
}
