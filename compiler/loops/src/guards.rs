//! *Bounds-check insertion*: marks every access that is not proved in range.
//!
//! ```text
//! B[i] = A[C[i]]   ->   B[i] = A[checked(0 <= C[i] < extent of A)]
//! ```
//!
//! Here `i` is proved to be less than the extent of `B` by its loop, and nothing is known of the value `C[i]`. Requires
//! nothing. Guarantees that an index without [`Expr::Checked`] is in `0..extent` for all values of symbols and scalars.

use crate::scope::Scope;
use crate::walk::{Rewrite, rewrite_stmt};
use rx_base::Dim;
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::stmt::Site;

/// The number of indices that [`guards`] examined, by whether they need a check at run time. Indices that were already
/// wrapped are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardCount {
    /// Indices that are proved in range.
    pub proved: usize,
    /// Indices that [`guards`] wrapped in [`Expr::Checked`].
    pub checked: usize,
}

/// Wraps every index of a load or store that is not proved to lie in `0..extent` in [`Expr::Checked`]. Indices that are
/// already wrapped are not wrapped again.
pub fn guards(func: &PrimFunc) -> (PrimFunc, GuardCount) {
    let mut scope = Scope::new(func);
    let mut guarding = Guarding { func, count: GuardCount::default() };
    let body = rewrite_stmt(&mut guarding, &mut scope, func, &func.body, Site { origin: None, operator: func.name });
    let count = guarding.count;
    (PrimFunc { body, ..func.clone() }, count)
}

struct Guarding<'f> {
    func: &'f PrimFunc,
    count: GuardCount,
}

impl Rewrite for Guarding<'_> {
    fn expr(&mut self, _scope: &mut Scope, expr: Expr, _site: Site) -> Expr {
        expr
    }

    fn indices(&mut self, scope: &mut Scope, buffer: BufferId, indices: Vec<Expr>, site: Site) -> Vec<Expr> {
        let indexed = self.func.buffer(buffer);
        let shape = &indexed.shape;
        let guard = |(axis, (index, extent)): (usize, (Expr, &Expr))| {
            if matches!(index, Expr::Checked { .. }) {
                return index;
            }
            if is_in_range(scope, &index, extent) {
                self.count.proved += 1;
                return index;
            }
            self.count.checked += 1;
            let (index, extent) = (Box::new(index), Box::new(extent.clone()));
            Expr::Checked { index, extent, buffer, axis: indexed.axis_of_tensor(axis) as u32, site }
        };
        indices.into_iter().zip(shape).enumerate().map(guard).collect()
    }
}

/// Whether the scope proves `0 <= index < extent`.
fn is_in_range(scope: &mut Scope, index: &Expr, extent: &Expr) -> bool {
    let index = scope.dim(index);
    let extent = scope.dim(extent);
    let room = &(&extent - &index) - &Dim::constant(1);
    scope.not_negative(&index) && scope.not_negative(&room)
}
