//! Proves that index expressions are injective in some loops: that different values of the loops give different
//! indices.

use rx_loops::poly::{Poly, Stride, widens};
use rx_tir::{BinaryOp, Expr, VarId};

/// A loop that may be bound to threads.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// The loop variable.
    pub(crate) var: VarId,
    /// The first value.
    pub(crate) start: Expr,
    /// The number of values.
    pub(crate) extent: Expr,
}

/// Returns, for each of `loops`, whether its value is proved to be determined by the values of `expressions`. The
/// expressions may only have variables of `loops` and variables that are uniform over all threads.
///
/// For example, if `j` has 4 values, `i * 4 + j` determines `i` and `j`, and `i * 3 + j` determines neither.
pub(crate) fn determined(expressions: &[Expr], loops: &[&Loop]) -> Vec<bool> {
    let mut known = vec![false; loops.len()];
    let sums: Vec<Vec<i64>> = expressions.iter().filter_map(|expr| factors(expr, loops)).collect();
    // A sum determines its loops as a number determines its digits. Loops that are already determined are only an
    // offset.
    loop {
        let before = known.clone();
        for sum in &sums {
            let unknown: Vec<usize> = (0..loops.len()).filter(|at| sum[*at] != 0 && !known[*at]).collect();
            if are_splits(sum, &unknown, loops) {
                unknown.iter().for_each(|at| known[*at] = true);
            }
        }
        if known == before {
            break;
        }
    }
    for (at, candidate) in loops.iter().enumerate() {
        known[at] |= is_covered(expressions, candidate);
    }
    known
}

/// Returns the factors of the loops in an affine expression; its other terms must be uniform over all threads. Returns
/// `None` if the expression is not affine in the loops, or if a factor is not constant.
fn factors(expr: &Expr, loops: &[&Loop]) -> Option<Vec<i64>> {
    let sum = Poly::of(expr)?;
    let factor = |candidate: &&Loop| match sum.stride(candidate.var) {
        Stride::Invariant => Some(0),
        Stride::Constant(factor) => Some(factor),
        Stride::Other => None,
    };
    loops.iter().map(factor).collect()
}

/// Whether a sum determines the loops `wanted`: in ascending order of the absolute factors, each factor is larger than
/// the sum of `factor * (extent - 1)` over the loops before it.
fn are_splits(sum: &[i64], wanted: &[usize], loops: &[&Loop]) -> bool {
    let mut order = wanted.to_vec();
    order.sort_by_key(|at| sum[*at].unsigned_abs());
    let mut reach = Some(0u64);
    for at in order {
        let factor = sum[at].unsigned_abs();
        // Only the loop with the largest factor may have an unknown extent.
        if reach.is_none_or(|reach| factor <= reach) {
            return false;
        }
        let last = loops[at].extent.as_int().map(|extent| extent.saturating_sub(1).max(0).unsigned_abs());
        reach = last.and_then(|last| reach?.checked_add(factor.checked_mul(last)?));
    }
    true
}

/// Whether the expressions contain splits, in any order, that determine a loop which starts at 0.
///
/// For example, `i // 12`, `i % 12 // 4` and `i % 4` determine `i`.
fn is_covered(expressions: &[Expr], candidate: &Loop) -> bool {
    if candidate.start.as_int() != Some(0) {
        return false;
    }
    let mut splits: Vec<IterSplit> = expressions.iter().filter_map(|expr| split(expr, candidate.var)).collect();
    splits.sort_by_key(|split| split.divisor);
    let mut below = 1i64;
    for IterSplit { divisor, modulus } in splits {
        if divisor > below {
            return false;
        }
        let Some(reach) = modulus.map(|modulus| divisor.saturating_mul(modulus)) else { return true };
        if divisor == below || reach % below == 0 {
            below = below.max(reach);
        }
    }
    candidate.extent.as_int().is_some_and(|extent| extent <= below)
}

/// The split `loop // divisor % modulus` of a loop. Without a modulus it is all of `loop // divisor`.
struct IterSplit {
    divisor: i64,
    modulus: Option<i64>,
}

fn split(expr: &Expr, of: VarId) -> Option<IterSplit> {
    match expr {
        Expr::Var { var, .. } if *var == of => Some(IterSplit { divisor: 1, modulus: None }),
        Expr::Cast { dtype, value } if widens(value.dtype(), *dtype) => split(value, of),
        Expr::Binary { op, left, right } => {
            let inner = split(left, of)?;
            let by = right.as_int().filter(|by| *by > 0)?;
            match (op, inner.modulus) {
                (BinaryOp::FloorDiv | BinaryOp::TruncDiv, None) => {
                    Some(IterSplit { divisor: inner.divisor.checked_mul(by)?, modulus: None })
                }
                (BinaryOp::FloorDiv | BinaryOp::TruncDiv, Some(modulus)) if modulus % by == 0 => {
                    Some(IterSplit { divisor: inner.divisor.checked_mul(by)?, modulus: Some(modulus / by) })
                }
                (BinaryOp::FloorMod | BinaryOp::TruncMod, None) => Some(IterSplit { modulus: Some(by), ..inner }),
                (BinaryOp::FloorMod | BinaryOp::TruncMod, Some(modulus)) if modulus % by == 0 => {
                    Some(IterSplit { modulus: Some(by), ..inner })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Loop, determined};
    use rx_base::DType;
    use rx_tir::{Expr, VarId};

    fn axis(number: u32, extent: Option<i64>) -> (Loop, Expr) {
        let var = Expr::Var { var: VarId(number), dtype: DType::INT64 };
        let extent = extent.map_or(Expr::Var { var: VarId(100 + number), dtype: DType::INT64 }, Expr::int);
        (Loop { var: VarId(number), start: Expr::int(0), extent }, var)
    }

    #[test]
    fn digits_of_a_sum_are_split_where_they_do_not_overlap() {
        let ((a, i), (b, j)) = (axis(0, None), axis(1, Some(4)));
        let sum = |factor: i64| i.clone() * Expr::int(factor) + j.clone();
        assert_eq!(determined(&[sum(4)], &[&a, &b]), [true, true]);
        assert_eq!(determined(&[sum(3)], &[&a, &b]), [false, false]);
        assert_eq!(determined(&[sum(3), j.clone()], &[&a, &b]), [true, true]);
    }

    #[test]
    fn narrowed_loop_is_not_determined() {
        let (a, i) = axis(0, None);
        assert_eq!(determined(&[i.clone().cast(DType::INT32)], &[&a]), [false]);
        assert_eq!(determined(&[i.cast(DType::INT64)], &[&a]), [true]);
    }

    #[test]
    fn quotients_and_remainders_cover_a_fused_loop() {
        let (a, i) = axis(0, Some(24));
        let parts = [i.clone().floor_div(Expr::int(12)), i.clone().floor_mod(Expr::int(12)).floor_div(Expr::int(4))];
        assert_eq!(determined(&parts, &[&a]), [false]);
        let all = [parts[0].clone(), parts[1].clone(), i.clone().floor_mod(Expr::int(4))];
        assert_eq!(determined(&all, &[&a]), [true]);
        assert_eq!(determined(&[i.floor_mod(Expr::int(12))], &[&a]), [false]);
    }
}
