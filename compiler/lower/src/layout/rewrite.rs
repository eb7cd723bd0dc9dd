//! Kernels whose tensors lie in another order.

use super::Order;
use super::reading::stores;
use crate::loops::Loops;
use crate::program::{KernelId, Program};
use rustc_hash::FxHashMap;
use rx_schedule::Nest;
use rx_tir::rewrite::map_children;
use rx_tir::{BufferId, IterKind, LoopKind, PrimFunc, Stmt, VarId, permuted};
use std::collections::BTreeMap;

/// The orders of a kernel's buffers that lie otherwise.
pub(super) type Orders = BTreeMap<BufferId, Order>;

/// Rewritten kernels, each made once for each way its buffers lie.
#[derive(Default)]
pub(super) struct Rewriter {
    funcs: FxHashMap<(KernelId, Orders), Loops>,
    kernels: FxHashMap<(KernelId, Orders), KernelId>,
}

impl Rewriter {
    /// The kernel's function where its buffers lie so.
    pub(super) fn func(&mut self, kernel: KernelId, func: &PrimFunc, orders: &Orders) -> Loops {
        let made = self.funcs.entry((kernel, orders.clone()));
        made.or_insert_with(|| Loops::new(rewritten(func, orders))).clone()
    }

    /// The same as a kernel of the program.
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

/// The function where its buffers lie so. Loops around what is written in another order stand in that order, innermost what is
/// last in memory: threads are given by it. Loops that are reduced over stay where they are.
fn rewritten(func: &PrimFunc, orders: &Orders) -> PrimFunc {
    let mut result = permuted(func, &|buffer| orders.get(&buffer).cloned());
    result.body = statement(&result.body, &result, orders);
    result
}

fn statement(stmt: &Stmt, func: &PrimFunc, orders: &Orders) -> Stmt {
    match stmt {
        Stmt::For { .. } => in_order(stmt, func, orders).unwrap_or_else(|| stmt.clone()),
        Stmt::Seq(_) | Stmt::Block(_) => map_children(stmt, &mut |child| statement(child, func, orders)),
        other => other.clone(),
    }
}

/// One loop around something.
struct Around {
    var: VarId,
    start: rx_tir::Expr,
    extent: rx_tir::Expr,
    kind: LoopKind,
}

/// Loops around one block in the order of the axes that it writes; `None` where it writes nothing that lies in another order, or the
/// loops depend on each other.
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
    // What no index mentions goes outermost.
    spatial.sort_by_key(|(_, one)| place(one));
    let spatial = places.into_iter().zip(spatial).map(|(at, (_, one))| (at, one));
    let mut loops: Vec<(usize, Around)> = spatial.chain(rest).collect();
    loops.sort_by_key(|(at, _)| *at);
    Some(loops.into_iter().rev().fold(inner.clone(), |body, (_, one)| {
        let Around { var, start, extent, kind } = one;
        Stmt::For { var, start, extent, kind, body: Box::new(body) }
    }))
}
