//! Checks a property of an index by enumerating all threads of a block and all iterations of some loops.
//!
//! Layouts with swizzles mix divisions, remainders and bitwise operations of thread and loop indices, which defeat
//! symbolic proofs. A block has few enough of them to try all. Used for vectorized copies (`vectors`) and disjoint
//! writes (`disjoint`).

use super::Launch;
use rx_tir::{Expr, VarId, evaluate_index};

/// Limit of the enumerated points: about as many as elements fit into the shared memory of a block.
const MOST: i64 = 1 << 16;

/// A loop or a thread axis, whose values are enumerated from 0.
#[derive(Clone)]
pub(super) struct Loop {
    pub(super) var: VarId,
    /// The number of its values; `None` if it is not a constant, or the loop begins elsewhere.
    pub(super) extent: Option<i64>,
}

impl Loop {
    /// Returns the loop with this start and extent.
    pub(super) fn new(var: VarId, start: &Expr, extent: &Expr) -> Loop {
        Loop { var, extent: extent.as_int().filter(|_| start.as_int() == Some(0)) }
    }

    /// Returns the thread axes of a block as loops.
    pub(super) fn threads(launch: &Launch) -> Vec<Loop> {
        launch.lanes().map(|axis| Loop { var: axis.var, extent: axis.extent.as_int() }).collect()
    }
}

/// Whether `holds(number, value)` is true at every point of the loops, where `value` is the value of `expr` there.
///
/// Points are numbered in row-major order, the last loop innermost: for loops of extents 32 and 4, point 9 is `(2, 1)`.
/// Returns `false` if there are more than [`MOST`] points, an extent is unknown, or the expression has no known value
/// at a point, for example as it uses another variable.
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
