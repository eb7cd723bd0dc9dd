//! Scheduling of a function as loop nests, matrix products and windowed sums, for the CPU back end.

use crate::accumulate::Nest;
use crate::gemm::{Scheduled, Step};
use crate::guards::guards;
use crate::matmul::gemm_steps;
use crate::roles::Declined;
use crate::simplify::simplify;
use crate::windowed_sum::windowed_sum;
use rx_tir::begin_empty_reductions;
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::rewrite::{map_expr, map_stmt_shallow};
use rx_tir::stmt::Stmt;

/// Schedules the function as steps. Nests that match become matrix products or windowed sums; all other statements stay
/// as they are.
///
/// The function is simplified first, so that loops of one iteration are gone before roles are classified. Then
/// reductions without iterations get their initial value, and accesses are guarded: an index that is not proved in
/// range is [`rx_tir::Expr::Checked`] in the steps.
pub fn schedule(func: &PrimFunc) -> Scheduled {
    let (func, _) = guards(&begin_empty_reductions(&simplify(func)));
    in_steps(func)
}

/// Schedules as [`schedule`] does, but without guards and assertions, to measure their cost. An index out of range is
/// undefined behavior.
pub fn schedule_unguarded(func: &PrimFunc) -> Scheduled {
    let mut func = begin_empty_reductions(&simplify(func));
    func.body = without_checks(&func.body);
    in_steps(func)
}

/// Removes assertions and index checks.
fn without_checks(stmt: &Stmt) -> Stmt {
    let mut index_alone = |part: Expr| match part {
        Expr::Checked { index, .. } => *index,
        part => part,
    };
    match stmt {
        Stmt::Assert { .. } => Stmt::nothing(),
        stmt => map_stmt_shallow(stmt, &mut |expr| map_expr(expr, &mut index_alone), &mut without_checks),
    }
}

/// Schedules the top-level statements of a simplified function.
fn in_steps(func: PrimFunc) -> Scheduled {
    let mut temporaries = Vec::new();
    let mut statements = Vec::new();
    top_level(&func.body, &mut temporaries, &mut statements);
    let mut scheduled = Scheduled { func, temporaries, steps: Vec::new(), declined: Vec::new() };
    for statement in statements {
        let nest = Nest::of(&statement, &scheduled.func);
        let product = nest
            .as_ref()
            .ok_or(Declined("requires loops around one block; found another statement"))
            .and_then(|nest| gemm_steps(nest, &mut scheduled.func, &mut scheduled.temporaries));
        let Err(Declined(reason)) = product.map(|steps| scheduled.steps.extend(steps)) else { continue };
        match nest.map(|nest| windowed_sum(&nest, &scheduled.func)) {
            Some(Ok(windowed_sum)) => scheduled.steps.push(Step::WindowedSum(Box::new(windowed_sum))),
            _ => {
                scheduled.declined.push(reason);
                scheduled.steps.push(Step::Nest(statement));
            }
        }
    }
    scheduled
}

/// Appends the top-level statements to `into`, in order, and the buffers of the blocks that only allocate to
/// `temporaries`.
pub fn top_level(stmt: &Stmt, temporaries: &mut Vec<BufferId>, into: &mut Vec<Stmt>) {
    match stmt {
        Stmt::Seq(statements) => {
            for statement in statements {
                top_level(statement, temporaries, into);
            }
        }
        Stmt::Block(block) if block.only_holds() => {
            temporaries.extend(&block.allocations);
            top_level(&block.body, temporaries, into);
        }
        other => into.push(other.clone()),
    }
}
