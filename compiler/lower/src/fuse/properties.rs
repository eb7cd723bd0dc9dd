//! Properties of a kernel's function that decide with which others it is joined.

use super::{chain, moves};
use rx_schedule::op_pattern::is_spatial;
use rx_tir::func::PrimFunc;
use rx_tir::{Expr, Stmt};

/// Properties of a function.
#[derive(Debug)]
pub(crate) struct Properties {
    /// [`is_spatial`]: every block computes elements one by one.
    pub(crate) is_injective: bool,
    /// It only moves elements.
    pub(crate) is_move: bool,
    /// Its output holds all elements of its input in their order.
    pub(crate) is_view: bool,
    /// It adds up products of elements of different tensors.
    pub(crate) is_product: bool,
    /// It makes each element of at most one, by arithmetic that may as well be done at every reader.
    pub(crate) is_light: bool,
    /// It computes each element by arithmetic that may as well be done at every reader.
    pub(crate) is_cheap: bool,
    /// An index in it is checked when it runs.
    pub(crate) is_checked: bool,
}

impl Properties {
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

/// The most elements that a stored value reads, whether one calls a function, and whether an index is checked.
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
