//! Write-write race check: declines statements that it recognizes as races, in which several threads may write
//! different values to one element. An index that mentions the thread axis counts as different for each thread.
//!
//! Such a statement has a defined result only if it runs serially. For example:
//!
//! ```text
//! for tx in T.thread_binding(32, "threadIdx.x"):
//!     B[0] = B[0] + A[tx]
//! ```

use super::Launch;
use crate::rules::Declined;
use rx_tir::{BufferId, Expr, PrimFunc, Scope, Stmt, VarId};

/// Declines a statement if, for a thread or block axis of `bound`, it has a store whose indices neither mention the
/// axis nor contain a load, and whose value mentions the axis or reads the stored buffer. Axes of extent 1 do not
/// count.
///
/// A store is accepted if a guard, `if` condition, let value, loop start or loop extent around it mentions the axis,
/// since that may select one thread or separate elements. Stores to private buffers are accepted as well, and for a
/// block axis those to shared buffers. `bound` are the axes that loops around the statement are bound to; `guards` are
/// the conditions under which it is executed.
///
/// # Errors
/// If it declines the statement.
pub(super) fn check(
    func: &PrimFunc,
    launch: &Launch,
    (bound, guards): (&[VarId], &[Expr]),
    stmt: &Stmt,
) -> Result<(), Declined> {
    let axes = launch.axes.iter().filter(|axis| bound.contains(&axis.var) && axis.extent.as_int() != Some(1));
    for axis in axes {
        // The condition may select the thread that stores.
        if guards.iter().any(|guard| guard.uses(axis.var)) {
            continue;
        }
        let is_own = |id: BufferId| match func.buffer(id).scope {
            Scope::Local | Scope::Fragment(_) => true,
            Scope::Shared => axis.tag.starts_with("blockIdx"),
            Scope::Global => false,
        };
        if has_race(stmt, axis.var, &is_own) {
            let tag = axis.tag;
            return Err(Declined::because(format!("requires separate elements for each `{tag}`; found a data race")));
        }
    }
    Ok(())
}

/// Whether [`check`] declines a statement for this axis, if no guard mentions it. `is_own`: whether each thread (or
/// block) along the axis has its own copy of a buffer.
fn has_race(stmt: &Stmt, axis: VarId, is_own: &dyn Fn(BufferId) -> bool) -> bool {
    match stmt {
        Stmt::If { condition, .. } if condition.uses(axis) => false,
        // Let values are not tracked: an index may depend on the axis through this one.
        Stmt::Let { value, .. } if value.uses(axis) => false,
        Stmt::Store { buffer, indices, value, .. } => {
            let mut is_updated = value.uses(axis);
            value.walk(&mut |part| is_updated |= matches!(part, Expr::Load { buffer: read, .. } if read == buffer));
            is_updated && !is_own(*buffer) && !indices.iter().any(|index| is_told(index, axis))
        }
        Stmt::For { start, extent, .. } if start.uses(axis) || extent.uses(axis) => false,
        other => other.children().into_iter().any(|child| has_race(child, axis, is_own)),
    }
}

/// Whether an index may differ between values of the axis: it mentions the axis, or is read from memory.
fn is_told(index: &Expr, axis: VarId) -> bool {
    index.any(&|part| matches!(part, Expr::Load { .. }) || matches!(part, Expr::Var { var, .. } if *var == axis))
}
