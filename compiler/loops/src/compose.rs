//! *Composition of two sums*: a sum of products that a second sum gathers becomes one sum of products.
//!
//! Before, with an intermediate tensor `products`:
//!
//! ```text
//! for i, k: products[i] += a[i, k] * b[i, k]
//! for o, r: out[o]      += select(c(o, r), products[f(o, r)], 0)
//! ```
//!
//! After, with `f(o, r)` in place of `i`:
//!
//! ```text
//! for o, r, k: out[o] += select(c(o, r), a[f(o, r), k], 0) * select(c(o, r), b[f(o, r), k], 0)
//! ```
//!
//! Requires two sums that start at 0, without predicates. The first one must store at `products[i, …]` with a separate
//! loop or the index 0 for each axis. Guarantees the same terms; floats are added in another order. `rx-cuda` uses it
//! for a transposed convolution that is written as a matrix product followed by a gather of its elements (col2im).

use crate::accumulate::{Nest, Reduction};
use rustc_hash::FxHashMap;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::{BufferId, VarId};
use rx_tir::rewrite::substitute;
use rx_tir::stmt::{IterKind, Stmt};

/// Composes `out[…] = Σ_r products[…]` with `products[…] = Σ_k a · b` into `out[…] = Σ_r Σ_k a · b`.
///
/// Returns the composed nest and the buffer `products`, which the nest does not read. Where the second sum reads
/// `products` under a condition, both factors are 0 if the condition is false. Returns `None` if one of the nests has
/// another form.
///
/// A condition that a factor already has stays on that factor alone. So `0 * Inf` is still NaN where it is false, as in
/// a padded convolution.
pub fn composed(first: &Nest, second: &Nest) -> Option<(Nest, BufferId)> {
    let (inner, outer) = (sum(first)?, sum(second)?);
    let (condition, read) = match &outer.value {
        Expr::Select { condition, then, otherwise } if is_zero(otherwise) => (Some((**condition).clone()), &**then),
        value => (None, value),
    };
    let Expr::Load { buffer, indices, .. } = read else { return None };
    if *buffer != inner.buffer || condition.as_ref().is_some_and(Expr::has_load) || indices.iter().any(Expr::has_load) {
        return None;
    }
    let mut values: FxHashMap<VarId, Expr> = FxHashMap::default();
    for (own, read) in inner.indices.iter().zip(indices) {
        match own {
            Expr::Var { var, dtype }
                if first.loops.iter().any(|one| one.var == *var && one.kind == IterKind::Spatial) =>
            {
                if values.insert(*var, read.clone().cast(*dtype)).is_some() {
                    return None;
                }
            }
            Expr::Int { value: 0, .. } => {}
            _ => return None,
        }
    }
    let spatial = first.loops.iter().filter(|one| one.kind == IterKind::Spatial);
    if !spatial.clone().all(|one| values.contains_key(&one.var)) {
        return None;
    }
    let Expr::Binary { op: BinaryOp::Mul, left, right } = &inner.value else { return None };
    let factor = |expr: &Expr| {
        let moved = substitute(expr, &|var| values.get(&var).cloned());
        match &condition {
            Some(condition) => where_it_holds(moved, condition.clone()),
            None => moved,
        }
    };
    let value = Expr::binary(BinaryOp::Mul, factor(left), factor(right));
    let Reduction { buffer: target, indices, site, .. } = outer;
    let dtype = value.dtype();
    let element = Expr::Load { buffer: target, dtype, indices: indices.clone() };
    let body = Stmt::Store { buffer: target, indices, value: element + value, site };
    let loops = second.loops.iter().chain(first.loops.iter().filter(|one| one.kind == IterKind::Reduce)).cloned();
    Some((Nest { loops: loops.collect(), body, ..second.clone() }, inner.buffer))
}

/// Matches `nest` as an unpredicated sum with initial value 0 over spatial and reduction loops only.
fn sum(nest: &Nest) -> Option<Reduction> {
    let reduction = nest.reduction()?;
    let plain = nest.loops.iter().all(|one| matches!(one.kind, IterKind::Spatial | IterKind::Reduce));
    let from_zero = reduction.init.as_ref().is_some_and(is_zero);
    (plain && from_zero && nest.predicate.is_none() && reduction.combine == BinaryOp::Add).then_some(reduction)
}

/// Returns `select(condition, value, 0)`. The selection is put inside casts and merged into an existing selection with
/// 0, so that a load under them is still recognized as an element of a factor.
pub(crate) fn where_it_holds(value: Expr, condition: Expr) -> Expr {
    match value {
        Expr::Cast { dtype, value } => where_it_holds(*value, condition).cast(dtype),
        Expr::Select { condition: known, then, otherwise } if is_zero(&otherwise) => {
            Expr::select(known.and(condition), *then, *otherwise)
        }
        value => {
            let zero = Expr::number(0.0, value.dtype());
            Expr::select(condition, value, zero)
        }
    }
}

pub(crate) fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Float { value, .. } => *value == 0.0 && value.is_sign_positive(),
        Expr::Int { value, .. } => *value == 0,
        _ => false,
    }
}
