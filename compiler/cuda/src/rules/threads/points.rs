//! What holds for all threads of a block and all rounds of some loops, looked at one by one: what divisions and remainders of
//! both come to follows from no rule that is quicker to find than the answer.

use super::Launch;
use rx_tir::{Expr, VarId, evaluate_index};

/// Points that are looked at, at most: about as many elements as fit into a block's memory.
const MOST: i64 = 1 << 16;

/// A loop, or an axis of threads, that counts from 0; nothing where how far is not known.
#[derive(Clone)]
pub(super) struct Loop {
    pub(super) var: VarId,
    pub(super) extent: Option<i64>,
}

impl Loop {
    pub(super) fn new(var: VarId, start: &Expr, extent: &Expr) -> Loop {
        Loop { var, extent: extent.as_int().filter(|_| start.as_int() == Some(0)) }
    }

    /// The axes of a block's threads.
    pub(super) fn threads(launch: &Launch) -> Vec<Loop> {
        launch.lanes().map(|axis| Loop { var: axis.var, extent: axis.extent.as_int() }).collect()
    }
}

/// Whether `holds` of the value of `expr` at every point of the loops, which comes with the point's number: the last loop counts
/// fastest. `false` where there are too many, or where it is made of more than these loops.
pub(super) fn all(expr: &Expr, loops: &[Loop], holds: &mut dyn FnMut(i64, i64) -> bool) -> bool {
    let Some(extents) = loops.iter().map(|one| one.extent).collect::<Option<Vec<i64>>>() else { return false };
    let count = extents.iter().try_fold(1i64, |all, extent| all.checked_mul(*extent).filter(|all| *all <= MOST));
    let Some(count) = count else { return false };
    (0..count).all(|number| {
        let mut values = vec![0; loops.len()];
        let mut rest = number;
        for (value, extent) in values.iter_mut().zip(&extents).rev() {
            (*value, rest) = (rest % extent, rest / extent);
        }
        let value_of = |var: VarId| loops.iter().position(|one| one.var == var).map(|at| values[at]);
        evaluate_index(expr, &value_of).is_some_and(|value| holds(number, value))
    })
}
