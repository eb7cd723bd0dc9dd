//! *All-reduce*: expands a reduction over the threads of a block (TVM `lower_thread_allreduce`).
//!
//! One value with `+`, `*`, `min` or `max` becomes a block whose reduction axis is bound to threads, which devices have
//! primitives for:
//!
//! ```text
//! for tx: sum[0] += value(tx)             (tx is a reduction axis)
//! for tx: target = sum[0]
//! ```
//!
//! Otherwise, also for tuples, threads exchange the values through shared memory. Each thread then reduces the values
//! of all threads along the reduced axes:
//!
//! ```text
//! for tx: shared[tx] = value(tx)
//! for tx: kept = identity; for t: kept = combine(kept, shared[t]); target = kept
//! ```

use super::split::{Part, Splitter, bound, int};
use super::{AllReduce, Axis};
use crate::expr::{BinaryOp, Expr};
use crate::func::{PrimFunc, Scope, VarId};
use crate::placeholders::{Outcome, Problem};
use crate::rewrite::substitute;
use crate::stmt::{Block, Iter, IterKind, LoopKind, Stmt};
use rx_base::DType;

impl Splitter<'_> {
    /// Expands an all-reduce to pieces.
    pub(super) fn all_reduce(&mut self, at: VarId, of: &AllReduce) -> Outcome<Vec<Part>> {
        let mut over = Vec::new();
        for index in &of.over {
            let index = self.expr(index);
            let axis = axis_named(&index).and_then(|var| self.axes.iter().find(|axis| axis.var == var));
            over.push(
                *axis
                    .ok_or(Problem { at, reason: "an all-reduce requires thread indices; found another expression" })?,
            );
        }
        let condition = self.expr(&of.condition);
        let brought =
            |value: &Expr, identity: &Expr| Expr::select(condition.clone(), self.expr(value), self.expr(identity));
        let values: Vec<Expr> = of.values.iter().zip(&of.identities).map(|(a, b)| brought(a, b)).collect();
        match (operation(of), &values[..]) {
            (Some(combine), [value]) => Ok(self.by_block(of, &over, combine, value)),
            _ => Ok(self.by_exchange(of, &over, values)),
        }
    }

    /// Reduces one value by `+`, `*`, `min` or `max`: a block whose reduction axes are bound to threads.
    fn by_block(&mut self, of: &AllReduce, over: &[Axis], combine: BinaryOp, value: &Expr) -> Vec<Part> {
        let dtype = value.dtype();
        let (target, indices) = &of.targets[0]; // INVARIANT: as many targets as values, of which there is one.
        let name = self.func.buffer(*target).name;
        let axes: Vec<Axis> = self.many().copied().collect();
        let (reduced, kept): (Vec<Axis>, Vec<Axis>) =
            axes.iter().partition(|axis| over.iter().any(|one| one.var == axis.var));
        let shape = kept.iter().map(|axis| int(axis.extent)).chain([int(1)]).collect();
        let result = self.new_buffer(name, dtype, shape, Scope::Local);
        let mut loops = Vec::new();
        let mut iters = Vec::new();
        for (axis, kind) in
            kept.iter().map(|axis| (axis, IterKind::Spatial)).chain(reduced.iter().map(|axis| (axis, IterKind::Reduce)))
        {
            let named = self.func.var(axis.var).name;
            let (var, of_loop) = (self.func.add_var(named, DType::INT32), self.func.add_var(named, DType::INT32));
            let binding = self.func.var_expr(of_loop);
            iters.push(Iter { var, kind, start: int(0), extent: int(axis.extent), binding });
            loops.push((*axis, of_loop));
        }
        let own = |var: VarId| {
            let at = loops.iter().position(|(axis, _)| axis.var == var)?;
            Some(self.func.var_expr(iters[at].var)) // INVARIANT: one iteration axis per loop.
        };
        let place: Vec<Expr> = (0..kept.len()).map(|at| self.func.var_expr(iters[at].var)).chain([int(0)]).collect();
        let value = substitute(value, &own);
        let store = |value: Expr| Stmt::Store { buffer: result, indices: place.clone(), value, site: of.site };
        let sum = Expr::binary(combine, self.func.load(result, place.clone()), value);
        let (body, init) = (store(sum), Some(store(self.expr(&of.identities[0]))));
        let block = Block { name: of.site.operator, iters, predicate: None, allocations: Vec::new(), init, body };
        let nest = loops.iter().rev().fold(Stmt::Block(Box::new(block)), |body, (axis, var)| bound(*var, axis, body));
        let read = kept.iter().map(|axis| self.func.var_expr(axis.var)).chain([int(0)]).collect();
        let value = self.func.load(result, read);
        let copy = Stmt::Store { buffer: *target, indices: self.element(*target, indices), value, site: of.site };
        vec![Part::Once(self.with_buffers(vec![result], vec![Part::Once(nest), Part::Each(copy)]))]
    }

    /// Reduces any values by any combiner: each thread writes its values to shared memory and reduces those of all
    /// threads along the axes `over`.
    fn by_exchange(&mut self, of: &AllReduce, over: &[Axis], values: Vec<Expr>) -> Vec<Part> {
        let extents: Vec<Expr> = self.many().map(|axis| int(axis.extent)).collect();
        let extents = if extents.is_empty() { vec![int(1)] } else { extents };
        let own = if self.many().next().is_none() { vec![int(0)] } else { self.thread() };
        let name = of.site.operator;
        let mut exchanged = Vec::new();
        let mut kept = Vec::new();
        let mut stores = Vec::new();
        for value in values {
            let dtype = value.dtype();
            let buffer = self.new_buffer(name, dtype, extents.clone(), Scope::Shared);
            stores.push(Stmt::Store { buffer, indices: own.clone(), value, site: of.site });
            exchanged.push(buffer);
            kept.push(self.func.add_cell(name, dtype));
        }
        let loops: Vec<(Axis, VarId)> = over
            .iter()
            .filter(|axis| axis.extent > 1)
            .map(|axis| (*axis, self.func.add_var(self.func.var(axis.var).name, DType::INT32)))
            .collect();
        let others = |var: VarId| {
            loops.iter().find(|(axis, _)| axis.var == var).map(|(_, of_loop)| self.func.var_expr(*of_loop))
        };
        let place: Vec<Expr> = own.iter().map(|index| substitute(index, &others)).collect();
        let keep = |func: &PrimFunc, at: usize, value: Expr| func.set_cell(kept[at], value, of.site);
        let begun = of.identities.iter().enumerate().map(|(at, identity)| keep(self.func, at, self.expr(identity)));
        let begun: Vec<Stmt> = begun.collect();
        // All results are computed before one of them is stored, since the combiner reads the old values.
        let [left, right] = &of.operands;
        let operand = |var: VarId| {
            let of = |vars: &[VarId]| vars.iter().position(|one| *one == var);
            of(left)
                .map(|at| self.func.cell(kept[at]))
                .or_else(|| of(right).map(|at| self.func.load(exchanged[at], place.clone())))
        };
        let combined: Vec<Expr> = of.combined.iter().map(|value| substitute(&self.expr(value), &operand)).collect();
        let named: Vec<(VarId, Expr)> =
            combined.into_iter().map(|value| (self.func.add_var(name, value.dtype()), value)).collect();
        let round = named.iter().enumerate().map(|(at, (var, _))| keep(self.func, at, self.func.var_expr(*var)));
        let round = Stmt::seq(round);
        let round = named.iter().rev().fold(round, |body, (var, value)| Stmt::Let {
            var: *var,
            value: value.clone(),
            body: Box::new(body),
        });
        let round = loops.iter().rev().fold(round, |body, (axis, var)| Stmt::For {
            var: *var,
            start: int(0),
            extent: int(axis.extent),
            kind: LoopKind::Serial,
            body: Box::new(body),
        });
        let results = of.targets.iter().enumerate().map(|(at, (target, indices))| {
            let value = self.func.cell(kept[at]);
            Stmt::Store { buffer: *target, indices: self.element(*target, indices), value, site: of.site }
        });
        let body = Stmt::seq(begun.into_iter().chain([round]).chain(results));
        let block = Stmt::holding(rx_base::name::name(""), kept.clone(), body);
        let parts = vec![Part::Each(Stmt::seq(stores)), Part::Barrier, Part::Each(block)];
        vec![Part::Once(self.with_buffers(exchanged, parts))]
    }
}

/// Returns the variable if the index is a variable, up to casts.
fn axis_named(index: &Expr) -> Option<VarId> {
    match index {
        Expr::Var { var, .. } => Some(*var),
        Expr::Cast { value, .. } => axis_named(value),
        _ => None,
    }
}

/// Returns the operation if the combiner is `+`, `*`, `min` or `max` of the two operands, in either order.
fn operation(of: &AllReduce) -> Option<BinaryOp> {
    let ([left], [right], [combined]) = (&of.operands[0][..], &of.operands[1][..], &of.combined[..]) else {
        return None;
    };
    match combined {
        Expr::Binary { op, left: a, right: b } => {
            let is = |expr: &Expr, var: &VarId| matches!(expr, Expr::Var { var: own, .. } if own == var);
            let both = (is(a, left) && is(b, right)) || (is(a, right) && is(b, left));
            let is_free = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
            (both && is_free).then_some(*op)
        }
        _ => None,
    }
}
