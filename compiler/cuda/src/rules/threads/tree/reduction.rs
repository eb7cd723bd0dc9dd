//! Matches cross-thread reductions: a block with a reduction axis that is bound to threads.
//!
//! ```text
//! for tx in T.thread_binding(32, "threadIdx.x"):
//!     for k in range(n / 32):
//!         with T.block():
//!             vk = T.axis.reduce(n, k * 32 + tx)           →  CrossThread { over: [threadIdx_x], loops: [k], .. }
//!             with T.init(): B[0] = 0
//!             B[0] = B[0] + A[vk]
//! ```
//!
//! Requires that all reduction loops are in the statement or bound to threads, that no index of the result depends on
//! them, and that the update is associative (`rx_loops::Nest::reduction`, `tuple_reduction`).
//!
//! Reference: the TVM pass `LowerCrossThreadReduction`.

use super::{Builder, Place, all, conjuncts, uses_only};
use crate::rules::Declined;
use crate::rules::row_pipeline::collect::identity;
use crate::rules::row_pipeline::print::begin;
use crate::rules::threads::{CrossThread, Reduced};
use rx_base::name::name;
use rx_loops::{Nest, Reduction, TupleElement};
use rx_tir::{BufferId, CompareOp, Expr, IterKind, Stmt, VarId};

/// Returns `n > 0` for a guard `axis < n` of a reduced axis with an `n` that is not a constant; `None` for other
/// guards.
fn threads_of(guard: &Expr, over: &[VarId]) -> Option<Expr> {
    let Expr::Compare { op: CompareOp::Lt, left, right } = guard else { return None };
    let is_axis = matches!(&**left, Expr::Var { var, .. } if over.contains(var)) && right.as_int().is_none();
    is_axis.then(|| Expr::compare(CompareOp::Gt, (**right).clone(), Expr::Int { value: 0, dtype: right.dtype() }))
}

/// Returns the reason for declining a reduction over thread axes that has another form.
fn other() -> Declined {
    Declined::because("requires a cross-thread reduction in a known form; found another")
}

impl Builder<'_> {
    /// Returns the statement as a cross-thread reduction; `None` if it is no block (with or without loops around it)
    /// that reduces over a `threadIdx` axis.
    ///
    /// # Errors
    /// If it is such a block, but in a form that [`CrossThread`] cannot describe; or if its results are both in private
    /// and in other buffers, or in global memory outside of loops over the blocks.
    pub(super) fn together(&mut self, stmt: &Stmt, place: &Place) -> Result<Option<CrossThread>, Declined> {
        let mut inner = stmt;
        while let Stmt::For { body, .. } = inner {
            inner = body;
        }
        let Stmt::Block(block) = inner else { return Ok(None) };
        let of = |kind: IterKind| block.iters.iter().filter(move |iter| iter.kind == kind);
        let axes = self.launch.lanes().map(|axis| axis.var);
        let over: Vec<VarId> = axes.filter(|var| of(IterKind::Reduce).any(|iter| iter.binding.uses(*var))).collect();
        if over.is_empty() {
            return Ok(None);
        }
        let nest = Nest::of(stmt, self.func).ok_or_else(other)?;
        // A reduction loop around the statement would restart the sum in each of its iterations.
        let is_inside = |var: VarId| over.contains(&var) || nest.loops.iter().any(|one| one.var == var);
        if !of(IterKind::Reduce).all(|iter| uses_only(&iter.binding, &is_inside)) {
            return Err(other());
        }
        let uses_over = |expr: &Expr| over.iter().any(|var| expr.uses(*var));
        if of(IterKind::Spatial).any(|iter| uses_over(&iter.binding)) {
            return Err(other());
        }
        let reduced = self.reduced(&nest).ok_or_else(other)?;
        let is_mixed = |kind| kind != IterKind::Spatial && kind != IterKind::Reduce;
        if reduced.iter().any(|one| one.indices.iter().any(uses_over))
            || nest.loops.iter().any(|one| is_mixed(one.kind))
        {
            return Err(other());
        }
        let mut of_elements = place.guards.clone();
        nest.predicate.iter().for_each(|predicate| conjuncts(predicate, &mut of_elements));
        let loops: Vec<VarId> =
            nest.loops.iter().filter(|one| one.kind == IterKind::Reduce).map(|one| one.var).collect();
        let is_of_row = |guard: &Expr| !over.iter().chain(&loops).any(|var| guard.uses(*var));
        let mut stores: Vec<Expr> = of_elements.iter().filter(|guard| is_of_row(guard)).cloned().collect();
        // A loop over a reduced thread axis with a symbolic extent `n` has the guard `tx < n`. If `n` is not positive
        // at run time, the loop has no iterations, so not even the initial value may be stored. Therefore each such
        // guard adds the condition `n > 0` to those of the store.
        stores.extend(place.guards.iter().filter_map(|guard| threads_of(guard, &over)));
        let buffers: Vec<BufferId> = reduced.iter().map(|one| one.buffer).collect();
        if !buffers.iter().all(|id| self.func.buffer(*id).scope.is_private()) {
            // All threads of the reduced axes have the result; thread 0 stores it.
            let first = |var: VarId| self.func.var_expr(var).eq(Expr::int(0));
            stores.extend(over.iter().map(|var| first(*var)));
            let mut place = place.clone();
            place.bound.extend(&over);
            stores.extend(self.elected_thread(&buffers, &place)?);
            if buffers.iter().any(|id| self.func.buffer(*id).scope.is_private()) {
                return Err(Declined::because(
                    "requires results in private or in shared buffers; found both in one reduction",
                ));
            }
        }
        let (counts, stores) = (all(of_elements), all(stores));
        Ok(Some(CrossThread { loops: nest.loops, reduced, over, counts, stores }))
    }

    /// Returns the elements that a nest reduces; `None` if it is no reduction, or if one of them has no known initial
    /// value, or no known value that the partial results of threads can begin with.
    fn reduced(&mut self, nest: &Nest) -> Option<Vec<Reduced>> {
        match nest.reduction() {
            Some(reduction) => Some(vec![self.alone(reduction)?]),
            None => {
                let parts = nest.tuple_reduction(self.func)?;
                parts.into_iter().map(|part| self.of_several(part)).collect()
            }
        }
    }

    /// Returns the element of a reduction of a single value.
    fn alone(&mut self, of: Reduction) -> Option<Reduced> {
        let Reduction { buffer, indices, init, combine, value: element, site } = of;
        let init = init?;
        let own = self.func.buffer(buffer);
        let (named, dtype) = (own.name, own.dtype);
        identity(combine, dtype)?;
        let begin = begin(combine, &init, dtype)?;
        let partial = self.func.add_var(named, dtype);
        let other = self.func.add_var(name("other"), dtype);
        let sides = [partial, other].map(|var| Box::new(self.func.var_expr(var)));
        let [left, right] = sides;
        let combined = Expr::Binary { op: combine, left, right };
        Some(Reduced { buffer, indices, init, begin, element, partial, other, combined, site })
    }

    /// Returns one element of a tuple reduction.
    fn of_several(&self, of: TupleElement) -> Option<Reduced> {
        let TupleElement { buffer, indices, init, element, left, right, combined, operation, site } = of;
        let begin = match operation {
            Some(operation) => begin(operation, &init, self.func.buffer(buffer).dtype)?,
            // The update chooses one side, so combining `init` several times changes nothing.
            None => init.clone(),
        };
        Some(Reduced { buffer, indices, init, begin, element, partial: left, other: right, combined, site })
    }
}
