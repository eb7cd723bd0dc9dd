//! *Divergence analysis*: finds the values that differ between the threads of a block, and so the branches that are
//! uniform. The analysis is a fixed-point iteration over variables and private buffers.

use super::{Axis, Collective, Collectives, is_thread};
use crate::expr::Expr;
use crate::func::{BufferId, PrimFunc, VarId};
use crate::placeholders::placeholder_of;
use crate::stmt::{LoopKind, Stmt};
use rustc_hash::FxHashMap;

/// A set of thread axes: one bit for each.
pub(super) type Axes = u8;

/// The axes along which variables, and the contents of private buffers, may differ between threads.
pub struct Varying {
    vars: FxHashMap<VarId, Axes>,
    buffers: FxHashMap<BufferId, Axes>,
    /// All axes with more than one thread.
    pub(super) all: Axes,
    locals: Vec<bool>,
}

impl Varying {
    /// Analyzes statements of a function. A private buffer differs along an axis if a stored value or index does, or if
    /// only some threads execute the store. One that receives the result of an all-reduce counts as different along all
    /// axes.
    pub fn of(func: &PrimFunc, statements: &[Stmt], axes: &[Axis], collectives: &Collectives) -> Varying {
        let mut vars = FxHashMap::default();
        let mut all = 0;
        for (at, axis) in axes.iter().enumerate().filter(|(_, axis)| axis.extent > 1) {
            all |= 1 << at;
            vars.insert(axis.var, 1 << at);
        }
        let locals = func.buffers.iter().map(|buffer| buffer.scope.is_private()).collect();
        let varying = Varying { vars, buffers: FxHashMap::default(), all, locals };
        let mut search = Search { varying, axes, collectives, is_new: true };
        while search.is_new {
            search.is_new = false;
            statements.iter().for_each(|stmt| search.stmt(stmt, 0));
        }
        search.varying
    }

    /// Whether all threads of a block are known to have the same value.
    pub fn is_uniform(&self, expr: &Expr) -> bool {
        self.expr(expr) == 0
    }

    /// Returns the axes along which a value differs. An element of shared or global memory at a uniform index is
    /// uniform.
    pub(super) fn expr(&self, expr: &Expr) -> Axes {
        let mut found = 0;
        expr.walk(&mut |part| match part {
            Expr::Var { var, .. } => found |= self.vars.get(var).copied().unwrap_or(0),
            Expr::Load { buffer, .. } => found |= self.buffer(*buffer),
            _ => {}
        });
        found
    }

    pub(super) fn exprs<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Axes {
        exprs.into_iter().fold(0, |found, expr| found | self.expr(expr))
    }

    /// Returns the axes along which the contents of a private buffer may differ; none for any other buffer.
    pub(super) fn buffer(&self, buffer: BufferId) -> Axes {
        self.buffers.get(&buffer).copied().unwrap_or(0)
    }

    /// Whether the buffer is private to a thread or warp.
    pub(super) fn is_local(&self, buffer: BufferId) -> bool {
        self.locals.get(buffer.0 as usize).copied().unwrap_or(false)
    }

    /// Returns the axis of a loop over threads that has fewer iterations than the axis has threads, so that some
    /// threads do not execute it; the empty set if there is none. A loop of unknown extent counts as shorter.
    pub(super) fn left_out(axes: &[Axis], tag: &str, extent: &Expr) -> Axes {
        let shorter = |axis: &Axis| *axis.tag == *tag && extent.as_int().is_none_or(|own| own < axis.extent);
        axes.iter().position(shorter).map_or(0, |at| 1 << at)
    }
}

struct Search<'f> {
    varying: Varying,
    axes: &'f [Axis],
    collectives: &'f Collectives,
    /// Whether the last iteration of the analysis found a variable or buffer that differs along one more axis.
    is_new: bool,
}

impl Search<'_> {
    fn var(&mut self, var: VarId, axes: Axes) {
        let known = self.varying.vars.entry(var).or_default();
        self.is_new |= axes & !*known != 0;
        *known |= axes;
    }

    fn buffer(&mut self, buffer: BufferId, axes: Axes) {
        if self.varying.is_local(buffer) {
            let known = self.varying.buffers.entry(buffer).or_default();
            self.is_new |= axes & !*known != 0;
            *known |= axes;
        }
    }

    /// Analyzes a statement. Threads may diverge in executing it along the axes `control`.
    fn stmt(&mut self, stmt: &Stmt, control: Axes) {
        if let Some((_, Collective::AllReduce(reduction))) = placeholder_of(stmt, self.collectives) {
            reduction.targets.iter().for_each(|(buffer, _)| self.buffer(*buffer, self.varying.all));
            return;
        }
        let mut inside = control;
        match stmt {
            Stmt::For { var, extent, kind: LoopKind::ThreadBinding(tag), .. } if is_thread(tag) => {
                let axis = self.axes.iter().find(|axis| axis.tag == *tag);
                let of_axis = axis.map_or(0, |axis| self.varying.vars.get(&axis.var).copied().unwrap_or(0));
                self.var(*var, of_axis);
                inside |= Varying::left_out(self.axes, tag, extent);
            }
            Stmt::For { var, start, extent, .. } => {
                let own = self.varying.exprs([start, extent]);
                self.var(*var, own);
                inside |= own;
            }
            Stmt::Block(block) => {
                for iter in &block.iters {
                    let own = self.varying.expr(&iter.binding);
                    self.var(iter.var, own);
                }
                inside |= self.varying.exprs(&block.predicate);
            }
            Stmt::Let { var, value, .. } => {
                let own = self.varying.expr(value);
                self.var(*var, own);
            }
            Stmt::If { condition, .. } | Stmt::While { condition, .. } => inside |= self.varying.expr(condition),
            Stmt::Store { buffer, indices, value, .. } => {
                let own = self.varying.exprs(indices.iter().chain([value]));
                self.buffer(*buffer, control | own);
            }
            Stmt::Seq(_) | Stmt::Assert { .. } | Stmt::Evaluate(_) => {}
        }
        stmt.children().into_iter().for_each(|child| self.stmt(child, inside));
    }
}
