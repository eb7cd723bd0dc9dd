//! Elements that several threads would write, each something else: what such a function does serially, no kernel of its launch
//! does.

use super::Launch;
use crate::rules::Declined;
use rx_tir::{BufferId, Expr, PrimFunc, Scope, Stmt, VarId};

/// Declines a statement in loops over the axes `bound`, done where `guards` hold, that stores one element for several values
/// of an axis, where what is stored is made of the axis or of the element itself.
pub(super) fn check(
    func: &PrimFunc,
    launch: &Launch,
    (bound, guards): (&[VarId], &[Expr]),
    stmt: &Stmt,
) -> Result<(), Declined> {
    let axes = launch.axes.iter().filter(|axis| bound.contains(&axis.var) && axis.extent.as_int() != Some(1));
    for axis in axes {
        // Which of them stores is said by a condition.
        if guards.iter().any(|guard| guard.uses(axis.var)) {
            continue;
        }
        let is_own = |id: BufferId| match func.buffer(id).scope {
            Scope::Local | Scope::Fragment(_) => true,
            Scope::Shared => axis.tag.starts_with("blockIdx"),
            Scope::Global => false,
        };
        Declined::when(meets(stmt, axis.var, &is_own), "threads would write one element, each something else")?;
    }
    Ok(())
}

fn meets(stmt: &Stmt, axis: VarId, is_own: &dyn Fn(BufferId) -> bool) -> bool {
    match stmt {
        Stmt::If { condition, .. } if condition.uses(axis) => false,
        // What a name stands for is not followed.
        Stmt::Let { value, .. } if value.uses(axis) => false,
        Stmt::Store { buffer, indices, value, .. } => {
            let mut is_updated = value.uses(axis);
            value.walk(&mut |part| is_updated |= matches!(part, Expr::Load { buffer: read, .. } if read == buffer));
            is_updated && !is_own(*buffer) && !indices.iter().any(|index| is_told(index, axis))
        }
        Stmt::For { start, extent, .. } if start.uses(axis) || extent.uses(axis) => false,
        other => other.children().into_iter().any(|child| meets(child, axis, is_own)),
    }
}

/// Whether an index may tell an axis's values apart: it is made of them, or read from memory.
fn is_told(index: &Expr, axis: VarId) -> bool {
    index.any(&|part| matches!(part, Expr::Load { .. }) || matches!(part, Expr::Var { var, .. } if *var == axis))
}
