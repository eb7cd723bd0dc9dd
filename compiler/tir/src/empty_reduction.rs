//! *Initialization of empty reductions*: stores the initial value of reductions without iterations.
//!
//! ```text
//!                                           if m <= 0:
//!                                               for i in range(n): out[i] = 0
//! for i, k in T.grid(n, m):          ->     for i, k in T.grid(n, m):
//!     with T.sblock("sum"): ...                 with T.sblock("sum"): ...
//! ```
//!
//! TVM initializes a reduction in its first iteration (TVM `src/s_tir/transform/lower_init_block.cc`), so a reduction
//! without iterations leaves its result unwritten. Operators yield the initial value then: 0 for a sum, −∞ for a
//! maximum, as in NumPy and PyTorch. Only the perfect nest directly around the block counts, without loops over
//! threads. Guarantees the same result for other reductions.

use crate::expr::{BinaryOp, CompareOp, Expr};
use crate::func::{PrimFunc, VarId};
use crate::rewrite::{map_children, map_stmt, substitute};
use crate::stmt::{Block, IterKind, LoopKind, Stmt};

/// A loop of a nest.
struct Loop {
    var: VarId,
    start: Expr,
    extent: Expr,
}

/// Initializes the reductions that may have no iterations. Before the loops of each, a statement stores the initial
/// values under the condition that one of the reduction loops is empty. The loops are those of the largest perfect nest
/// around the block without loops over threads. Reductions with constant positive extents do not change, and neither do
/// those whose init, predicate or loop extents depend on the reduction loops, or whose init is a sequence or another
/// compound statement.
pub fn begin_empty_reductions(func: &PrimFunc) -> PrimFunc {
    begin_empty_reductions_of(func, &|_| true)
}

/// Initializes as [`begin_empty_reductions`] does, but only the nests that `concerns` accepts. The caller initializes
/// the others in another way.
pub fn begin_empty_reductions_of(func: &PrimFunc, concerns: &dyn Fn(&Stmt) -> bool) -> PrimFunc {
    let mut begun = func.clone();
    begun.body = rewritten(&func.body, &mut begun, concerns);
    begun
}

fn rewritten(stmt: &Stmt, func: &mut PrimFunc, concerns: &dyn Fn(&Stmt) -> bool) -> Stmt {
    let mut loops = Vec::new();
    if let Some(block) = nest(stmt, &mut loops) {
        return match concerns(stmt).then(|| begun(&loops, block, func)).flatten() {
            Some(begun) => Stmt::seq([begun, stmt.clone()]),
            None => stmt.clone(),
        };
    }
    map_children(stmt, &mut |child| rewritten(child, func, concerns))
}

/// Matches a perfect nest of loops, none of which is over threads, around a block with an init. Returns the block and
/// collects the loops, outermost first.
fn nest<'s>(mut stmt: &'s Stmt, loops: &mut Vec<Loop>) -> Option<&'s Block> {
    loop {
        match stmt {
            Stmt::For { kind: LoopKind::ThreadBinding(_), .. } => return None,
            Stmt::For { var, start, extent, body, .. } => {
                loops.push(Loop { var: *var, start: start.clone(), extent: extent.clone() });
                stmt = body;
            }
            Stmt::Block(block) => return block.init.is_some().then_some(block),
            _ => return None,
        }
    }
}

/// Builds the statement that initializes the block's elements if one of its reduction loops is empty. Returns `None` if
/// the extents of the reduction loops are positive constants, if the init, the predicate or the extent of a loop
/// depends on the reduction loops, or if the init is a sequence or another compound statement.
fn begun(loops: &[Loop], block: &Block, func: &mut PrimFunc) -> Option<Stmt> {
    let reduced = block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
    let reduced: Vec<&Expr> = reduced.map(|iter| &iter.binding).collect();
    let is_reduced = |outer: &&Loop| reduced.iter().any(|binding| binding.uses(outer.var));
    let (inner, outer): (Vec<&Loop>, Vec<&Loop>) = loops.iter().partition(is_reduced);
    let none = |inner: &&Loop| Expr::compare(CompareOp::Le, inner.extent.clone(), zero(&inner.extent));
    let conditions = inner.iter().map(none).filter(|condition| condition.as_int() != Some(0));
    let empty = conditions.reduce(|a, b| Expr::binary(BinaryOp::Or, a, b))?;
    let value = |var: VarId| block.iters.iter().find(|iter| iter.var == var).map(|iter| iter.binding.clone());
    let init = map_stmt(block.init.as_ref()?, &mut |expr| substitute(expr, &value));
    let predicate = block.predicate.as_ref().map(|predicate| substitute(predicate, &value));
    let by_inner = |expr: &Expr| inner.iter().any(|inner| expr.uses(inner.var));
    let mut depends = predicate.as_ref().is_some_and(by_inner) || outer.iter().any(|outer| by_inner(&outer.extent));
    init.walk(&mut |part| depends |= part.expressions().into_iter().any(by_inner) || !part.children().is_empty());
    if depends || inner.iter().any(|one| by_inner(&one.extent)) {
        return None;
    }
    let init = predicate.into_iter().fold(init, |init, predicate| Stmt::when(predicate, init));
    Some(match outer.iter().any(|outer| empty.uses(outer.var)) {
        true => around(&outer, Stmt::when(empty, init), func),
        false => Stmt::when(empty, around(&outer, init, func)),
    })
}

/// Builds serial loops around a statement, with new variables, since each variable has one binder.
fn around(loops: &[&Loop], body: Stmt, func: &mut PrimFunc) -> Stmt {
    let fresh: Vec<(VarId, VarId)> = loops
        .iter()
        .map(|one| {
            let var = *func.var(one.var);
            (one.var, func.add_var(var.name, var.dtype))
        })
        .collect();
    let value = |var: VarId| fresh.iter().find(|(old, _)| *old == var).map(|(_, new)| func.var_expr(*new));
    let renamed = |expr: &Expr| substitute(expr, &value);
    let body = map_stmt(&body, &mut |expr| renamed(expr));
    loops.iter().zip(&fresh).rev().fold(body, |body, (one, (_, var))| Stmt::For {
        var: *var,
        start: renamed(&one.start),
        extent: renamed(&one.extent),
        kind: LoopKind::Serial,
        body: Box::new(body),
    })
}

fn zero(like: &Expr) -> Expr {
    Expr::Int { value: 0, dtype: like.dtype() }
}

#[cfg(test)]
mod tests {
    use super::begin_empty_reductions;
    use crate::print::script;
    use crate::{BinaryOp, Expr, KernelBuilder};
    use rx_base::name::name;
    use rx_base::{DType, Dim};

    /// Prints the sum over the last axis of a matrix with `columns` columns, after [`begin_empty_reductions`].
    fn sum(columns: &Dim) -> String {
        let mut builder = KernelBuilder::new(name("sum"));
        let rows = Dim::symbol(name("n"));
        let x = builder.param("x", &[rows.clone(), columns.clone()], DType::FLOAT32);
        let out = builder.param("out", std::slice::from_ref(&rows), DType::FLOAT32);
        let extents = [builder.dim(&rows)];
        let reduced = [builder.dim(columns)];
        let zero = Expr::number(0.0, DType::FLOAT32);
        builder.reduce(out, &extents, &reduced, zero, BinaryOp::Add, |builder, axes, reduced| {
            (axes.to_vec(), builder.load(x, &[axes, reduced].concat()))
        });
        script(&begin_empty_reductions(&builder.finish()))
    }

    #[test]
    fn sum_over_no_elements_is_its_initial_value() {
        let text = sum(&Dim::symbol(name("m")));
        let begun = "if m <= T.int64(0):\n        for ax0 in range(n):\n            out[ax0] = T.float32(0.0)\n    for";
        assert!(text.contains(begun), "{text}");
    }

    #[test]
    fn reductions_that_cannot_be_empty_stay() {
        let text = sum(&Dim::constant(3));
        assert!(!text.contains("if "), "{text}");
    }
}
