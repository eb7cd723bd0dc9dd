//! Rewrites kernels for permuted buffers.
//!
//! ```text
//! for n, c, h, w: y[n, c, h, w] = f(x[n, c, h, w])    →    for n, h, w, c: y[n, h, w, c] = f(x[n, h, w, c])
//! ```
//!
//! Loops are reordered only in perfect nests whose loops do not depend on each other and are not bound to threads; the
//! loops of other nests keep their order. Guarantees that each buffer holds the same elements in its new order.

use super::Order;
use super::reading::stores;
use crate::loops::Loops;
use crate::program::{KernelId, Program};
use rustc_hash::FxHashMap;
use rx_loops::Nest;
use rx_tir::rewrite::map_children;
use rx_tir::{BufferId, IterKind, LoopKind, PrimFunc, Stmt, VarId, permuted};
use std::collections::BTreeMap;

/// The layouts of a kernel's buffers that change.
pub(super) type Orders = BTreeMap<BufferId, Order>;

/// A cache of rewritten kernels, by kernel and layouts.
#[derive(Default)]
pub(super) struct Rewriter {
    funcs: FxHashMap<(KernelId, Orders), Loops>,
    kernels: FxHashMap<(KernelId, Orders), KernelId>,
}

impl Rewriter {
    /// Returns the kernel's function, rewritten for the layouts.
    pub(super) fn func(&mut self, kernel: KernelId, func: &PrimFunc, orders: &Orders) -> Loops {
        let made = self.funcs.entry((kernel, orders.clone()));
        made.or_insert_with(|| Loops::new(rewritten(func, orders))).clone()
    }

    /// Returns the id of the rewritten kernel, and adds it to the program on the first call.
    pub(super) fn kernel(&mut self, kernel: KernelId, orders: &Orders, program: &mut Program) -> KernelId {
        if let Some(known) = self.kernels.get(&(kernel, orders.clone())) {
            return *known;
        }
        let own = program.kernel(kernel).clone();
        let added = program.add_kernel(own.with(self.func(kernel, &own.loops, orders)));
        self.kernels.insert((kernel, orders.clone()), added);
        added
    }
}

/// Permutes the buffers of a function. Where [`in_order`] can, the spatial loops around a store to a permuted buffer
/// are reordered to the buffer's order, with the last axis innermost, because threads are assigned in the order of the
/// loops. Reduction loops keep their positions.
fn rewritten(func: &PrimFunc, orders: &Orders) -> PrimFunc {
    let mut result = permuted(func, &|buffer| orders.get(&buffer).cloned());
    result.body = statement(&result.body, &result, orders);
    result
}

/// Reorders the loops of the outermost nests in a statement, where [`in_order`] can.
fn statement(stmt: &Stmt, func: &PrimFunc, orders: &Orders) -> Stmt {
    match stmt {
        Stmt::For { .. } => in_order(stmt, func, orders).unwrap_or_else(|| stmt.clone()),
        Stmt::Seq(_) | Stmt::Block(_) => map_children(stmt, &mut |child| statement(child, func, orders)),
        other => other.clone(),
    }
}

/// A loop of a nest.
struct Around {
    var: VarId,
    start: rx_tir::Expr,
    extent: rx_tir::Expr,
    kind: LoopKind,
}

/// Reorders the spatial loops of a nest to the order of the axes of the first permuted buffer that it stores. Returns
/// `None` where the statement is no perfect nest, stores no permuted buffer, or has loops that depend on each other or
/// are bound to threads.
fn in_order(stmt: &Stmt, func: &PrimFunc, orders: &Orders) -> Option<Stmt> {
    let nest = Nest::of(stmt, func)?;
    let (_, indices, _) = stores(&nest.body).into_iter().find(|(buffer, ..)| orders.contains_key(buffer))?;
    let mut around = Vec::new();
    let mut inner = stmt;
    while let Stmt::For { var, start, extent, kind, body } = inner {
        around.push(Around { var: *var, start: start.clone(), extent: extent.clone(), kind: *kind });
        inner = body;
    }
    let is_bound = |kind: LoopKind| matches!(kind, LoopKind::ThreadBinding(_));
    let uses = |one: &Around, var: VarId| one.start.uses(var) || one.extent.uses(var);
    let depends = around.iter().any(|one| is_bound(one.kind) || around.iter().any(|other| uses(one, other.var)));
    if depends || around.len() != nest.loops.len() {
        return None;
    }
    let is_spatial = |var: VarId| nest.loops.iter().any(|one| one.var == var && one.kind == IterKind::Spatial);
    let place = |one: &Around| indices.iter().position(|index| index.uses(one.var));
    let (mut spatial, rest): (Vec<_>, Vec<_>) =
        around.into_iter().enumerate().partition(|(_, one)| is_spatial(one.var));
    let places: Vec<usize> = spatial.iter().map(|(at, _)| *at).collect();
    // Spatial loops that occur in no index sort first.
    spatial.sort_by_key(|(_, one)| place(one));
    let spatial = places.into_iter().zip(spatial).map(|(at, (_, one))| (at, one));
    let mut loops: Vec<(usize, Around)> = spatial.chain(rest).collect();
    loops.sort_by_key(|(at, _)| *at);
    Some(loops.into_iter().rev().fold(inner.clone(), |body, (_, one)| {
        let Around { var, start, extent, kind } = one;
        Stmt::For { var, start, extent, kind, body: Box::new(body) }
    }))
}
