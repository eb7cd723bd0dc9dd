//! What keeps rows of which every score is −∞ from being 0 over 0: a reduction of a row that says whether all scores are −∞, and
//! weights that are 0 where it does. PyTorch's decomposed attention asks whether any is not.

use super::reading::{is_minus_infinity, unrounded};
use crate::rules::Declined;
use rx_schedule::Reduction;
use rx_tir::expr::{BinaryOp, CompareOp, UnaryOp};
use rx_tir::{BufferId, Expr};

/// A row's answer to whether all its scores are −∞.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) buffer: BufferId,
    /// The score it asks of.
    pub(super) score: Expr,
    /// What the buffer holds where all scores are −∞, and where one is not.
    of_none: i64,
    of_some: i64,
}

impl Check {
    /// The check that a reduction over the keys is; `value` is what it reduces, over the axes.
    pub(super) fn of(reduction: &Reduction, value: &Expr) -> Result<Check, Declined> {
        let declined = || Declined::because("a row's integers do not say whether all its scores are −∞");
        let score = asked(value).ok_or_else(declined)?;
        let of = |is_none: bool| truth(value, &|part| is_asked(part, score).map(|is_eq| i64::from(is_eq == is_none)));
        let (of_none, of_some) = (of(true).ok_or_else(declined)?, of(false).ok_or_else(declined)?);
        // One score that is not −∞ decides.
        let decides = match reduction.combine {
            BinaryOp::Max | BinaryOp::Or => of_some > of_none,
            BinaryOp::Min | BinaryOp::And => of_some < of_none,
            _ => false,
        };
        // What it begins with leaves the first score's answer as it is.
        let begins = reduction.init.as_ref().and_then(Expr::as_int).is_some_and(|first| match reduction.combine {
            BinaryOp::Max | BinaryOp::Or => first <= of_none,
            _ => first >= of_none,
        });
        let score = unrounded(score);
        (decides && begins).then_some(Check { buffer: reduction.buffer, score, of_none, of_some }).ok_or_else(declined)
    }

    /// Whether a condition that reads the check holds of rows whose scores are all −∞ and of no others, or the other way round.
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

/// What is compared with −∞ in an expression.
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

/// Whether an expression asks if the score is −∞, or if it is not.
fn is_asked(expr: &Expr, score: &Expr) -> Option<bool> {
    let Expr::Compare { op: op @ (CompareOp::Eq | CompareOp::Ne), left, right } = expr else { return None };
    let asks = **left == *score && is_minus_infinity(right) || **right == *score && is_minus_infinity(left);
    asks.then_some(*op == CompareOp::Eq)
}

/// The value of an integer or boolean expression of which some parts are known.
fn truth(expr: &Expr, known: &dyn Fn(&Expr) -> Option<i64>) -> Option<i64> {
    if let Some(value) = known(expr) {
        return Some(value);
    }
    let of = |part: &Expr| truth(part, known);
    match expr {
        Expr::Int { value, .. } => Some(*value),
        Expr::Cast { dtype, value } if dtype.is_bool() => Some(i64::from(of(value)? != 0)),
        // Both answers are small numbers, which every dtype has.
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
