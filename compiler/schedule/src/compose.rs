//! A sum of products that another sum gathers, as one sum of products: what is gathered then never reaches memory.

use crate::accumulate::{Nest, Reduction};
use rustc_hash::FxHashMap;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::{BufferId, VarId};
use rx_tir::rewrite::substitute;
use rx_tir::stmt::{IterKind, Stmt};

/// `out[…] = Σ_r Σ_k a · b` for `products[…] = Σ_k a · b` and `out[…] = Σ_r products[…]`; where the second sum reads under a
/// condition, both factors are 0 elsewhere. Gives the nest and the buffer that it no longer needs. `None` where the nests are of
/// other forms.
///
/// As with a padded convolution, a factor that is infinite or no number makes a term no number where the other is 0.
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

/// The sum from 0 that a nest is, over loops that are for what they are said to be for.
fn sum(nest: &Nest) -> Option<Reduction> {
    let reduction = nest.reduction()?;
    let plain = nest.loops.iter().all(|one| matches!(one.kind, IterKind::Spatial | IterKind::Reduce));
    let from_zero = reduction.init.as_ref().is_some_and(is_zero);
    (plain && from_zero && nest.predicate.is_none() && reduction.combine == BinaryOp::Add).then_some(reduction)
}

/// The value where a condition holds, elsewhere 0; under casts, so that an element stays one.
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
