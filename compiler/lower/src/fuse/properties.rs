//! Properties of a kernel's function that decide which kernels are fused with it.

use super::{chain, moves};
use rx_loops::op_pattern::is_spatial;
use rx_tir::func::PrimFunc;
use rx_tir::{Expr, Stmt};

/// The fusion-relevant properties of a function, computed once per function.
#[derive(Debug)]
pub(crate) struct Properties {
    /// Whether every block has spatial axes only ([`is_spatial`]): mainly TVM's elementwise, broadcast and injective
    /// patterns. It is `false` for a function with a reduction axis, and also, for example, with a predicate or a
    /// `while`.
    pub(crate) is_injective: bool,
    /// Whether it only copies elements (`moves::is_move`).
    pub(crate) is_move: bool,
    /// Whether its output holds all elements of its input in the same order (`moves::is_view`).
    pub(crate) is_view: bool,
    /// Whether a top-level nest is a sum of products of elements of different buffers, for example a matmul or a
    /// convolution.
    pub(crate) is_product: bool,
    /// Whether it is cheap (`is_cheap`) and each stored value contains at most one load.
    pub(crate) is_light: bool,
    /// Whether each element is computed by arithmetic cheap enough to be repeated at every read: the function is
    /// injective (`is_injective`), and no stored value calls a function such as `exp`.
    pub(crate) is_cheap: bool,
    /// Whether an index in it is checked at run time.
    pub(crate) is_checked: bool,
}

impl Properties {
    /// Analyzes a function.
    pub(crate) fn of(func: &PrimFunc) -> Properties {
        let is_injective = is_spatial(func);
        let (loads, is_costly, is_checked) = values(func);
        let is_move = moves::is_move(func);
        Properties {
            is_injective,
            is_move,
            is_view: is_move && moves::is_view(func),
            is_product: !is_injective && chain::is_product(func),
            is_light: is_injective && !is_costly && loads <= 1,
            is_cheap: is_injective && !is_costly,
            is_checked,
        }
    }
}

/// Returns the maximum number of loads in a stored value, whether a stored value calls a function, and whether an index
/// is checked at run time.
fn values(func: &PrimFunc) -> (usize, bool, bool) {
    let (mut most, mut is_costly, mut is_checked) = (0, false, false);
    func.body.walk(&mut |stmt| {
        for expr in stmt.expressions() {
            expr.walk(&mut |part| is_checked |= matches!(part, Expr::Checked { .. }));
        }
        if let Stmt::Store { value, .. } = stmt {
            let mut loads = 0;
            value.walk(&mut |part| {
                loads += usize::from(matches!(part, Expr::Load { .. }));
                is_costly |= matches!(part, Expr::Call { .. });
            });
            most = most.max(loads);
        }
    });
    (most, is_costly, is_checked)
}
