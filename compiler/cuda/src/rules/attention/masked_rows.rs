//! Safe softmax: matches the test for fully masked rows, whose weights are 0 instead of NaN.
//!
//! ```text
//! for m, n: any[m] |= P[m, n] != -inf                       // the check
//! weight = select(any[m], exp(P[m, n] - M[m]) / L[m], 0)    // its use
//! ```
//!
//! PyTorch's decomposition of attention has this form. The check may also be an `all`, or an integer minimum or maximum
//! of the converted comparison; the comparison and the condition of the use may be negated. Requires: the same score in
//! the check and in the softmax, with casts between floating-point dtypes ignored. Guarantees: [`Check::is_none`]
//! distinguishes exactly the fully masked rows from the others.

use super::reading::{is_minus_infinity, unrounded};
use crate::rules::Declined;
use rx_loops::Reduction;
use rx_tir::expr::{BinaryOp, CompareOp, UnaryOp};
use rx_tir::{BufferId, Expr};

/// A reduction that computes for each row whether all of its scores are −∞.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// The buffer of the results, one element per row.
    pub(super) buffer: BufferId,
    /// The score that is compared with −∞, without casts between floating-point dtypes.
    pub(super) score: Expr,
    /// The buffer's value for a row whose scores are all −∞.
    of_none: i64,
    /// The buffer's value for a row with a score that is not −∞.
    of_some: i64,
}

impl Check {
    /// Matches a reduction over the keys. `value` is the reduced value, over the loops of the product.
    pub(super) fn of(reduction: &Reduction, value: &Expr) -> Result<Check, Declined> {
        let declined =
            || Declined::because("requires an integer reduction that detects rows of scores −∞; found another");
        let score = asked(value).ok_or_else(declined)?;
        let of = |is_none: bool| truth(value, &|part| is_asked(part, score).map(|is_eq| i64::from(is_eq == is_none)));
        let (of_none, of_some) = (of(true).ok_or_else(declined)?, of(false).ok_or_else(declined)?);
        // A single score that is not −∞ must determine the result.
        let decides = match reduction.combine {
            BinaryOp::Max | BinaryOp::Or => of_some > of_none,
            BinaryOp::Min | BinaryOp::And => of_some < of_none,
            _ => false,
        };
        // The initial value must not change the result.
        let begins = reduction.init.as_ref().and_then(Expr::as_int).is_some_and(|first| match reduction.combine {
            BinaryOp::Max | BinaryOp::Or => first <= of_none,
            _ => first >= of_none,
        });
        let score = unrounded(score);
        (decides && begins).then_some(Check { buffer: reduction.buffer, score, of_none, of_some }).ok_or_else(declined)
    }

    /// Returns `Some(true)` if a condition that reads the check holds exactly for the rows whose scores are all −∞,
    /// `Some(false)` if it holds exactly for the other rows, and otherwise `None`.
    pub(super) fn is_none(&self, condition: &Expr) -> Option<bool> {
        let of = |value: i64| {
            let load =
                |part: &Expr| matches!(part, Expr::Load { buffer, .. } if *buffer == self.buffer).then_some(value);
            truth(condition, &load)
        };
        match (of(self.of_none)?, of(self.of_some)?) {
            (1, 0) => Some(true),
            (0, 1) => Some(false),
            _ => None,
        }
    }
}

/// Returns the expression that the first comparison with −∞ in `expr` compares.
fn asked(expr: &Expr) -> Option<&Expr> {
    let mut found = None;
    expr.walk(&mut |part| {
        if let Expr::Compare { left, right, .. } = part {
            found = found.or(match (is_minus_infinity(left), is_minus_infinity(right)) {
                (false, true) => Some(&**left),
                (true, false) => Some(&**right),
                _ => None,
            });
        }
    });
    found
}

/// Matches `==` or `!=` between the score and −∞. Returns whether it is `==`.
fn is_asked(expr: &Expr, score: &Expr) -> Option<bool> {
    let Expr::Compare { op: op @ (CompareOp::Eq | CompareOp::Ne), left, right } = expr else { return None };
    let asks = **left == *score && is_minus_infinity(right) || **right == *score && is_minus_infinity(left);
    asks.then_some(*op == CompareOp::Eq)
}

/// Evaluates an integer or boolean expression, given the values of some subexpressions.
fn truth(expr: &Expr, known: &dyn Fn(&Expr) -> Option<i64>) -> Option<i64> {
    if let Some(value) = known(expr) {
        return Some(value);
    }
    let of = |part: &Expr| truth(part, known);
    match expr {
        Expr::Int { value, .. } => Some(*value),
        Expr::Cast { dtype, value } if dtype.is_bool() => Some(i64::from(of(value)? != 0)),
        // 0 and 1 are values of every integer dtype. Other values may change in the cast, so they are not known.
        Expr::Cast { dtype, value } if dtype.is_int() => of(value).filter(|value| (0..=1).contains(value)),
        Expr::Unary { op: UnaryOp::Not, value } => Some(i64::from(of(value)? == 0)),
        Expr::Binary { op, left, right } => {
            let (left, right) = (of(left)?, of(right)?);
            match op {
                BinaryOp::And | BinaryOp::Min => Some(left.min(right)),
                BinaryOp::Or | BinaryOp::Max => Some(left.max(right)),
                _ => None,
            }
        }
        Expr::Compare { op, left, right } => Some(i64::from(op.holds(of(left)?, of(right)?))),
        Expr::Select { condition, then, otherwise } => of(if of(condition)? != 0 { then } else { otherwise }),
        _ => None,
    }
}
