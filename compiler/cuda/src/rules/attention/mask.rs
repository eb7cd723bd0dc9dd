//! Mask bounds: derives from the score which keys a row can see, so that a block usually skips fully masked tiles.
//!
//! ```text
//! select(n <= m and n > m - 128, S, -inf)     // a causal mask with a sliding window
//! →
//! m - 127 <= n < m + 1                        // Bounds { first: [m - 128 + 1], end: [m + 1] }
//! ```
//!
//! A mask that is added, `S + select(n <= m, 0, -inf)`, works as well.
//!
//! Requires: a score that is −∞ depending on comparisons of signed integers without loads; in each of them the key is
//! added or subtracted once. Other conditions give no bounds; the score itself then masks. Guarantees: a key outside
//! the bounds has the score −∞, so its exponential is 0. This assumes finite operands, since ∞ − ∞ and 0 · ∞ would be
//! NaN.

use super::problem::Problem;
use super::reading::{is_minus_infinity, is_zero};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::expr::{BinaryOp, CompareOp, UnaryOp};
use rx_tir::rewrite::substitute;
use rx_tir::{Expr, VarId};

/// The bounds of the keys that a row sees, as `int64` expressions over the loops of batch and rows. A row sees only
/// keys that satisfy all of them.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Lower bounds, inclusive.
    pub(super) first: Vec<Expr>,
    /// Upper bounds, exclusive.
    pub(super) end: Vec<Expr>,
    /// The score of keys within the bounds: without the mask if the bounds are its whole condition.
    pub(super) inside: Expr,
}

impl Bounds {
    pub(super) fn of(problem: &Problem) -> Bounds {
        let mut bounds = Bounds { first: Vec::new(), end: Vec::new(), inside: problem.score.clone() };
        let (mut score, mut casts) = (&problem.score, Vec::new());
        while let Expr::Cast { value, dtype } = score {
            score = value;
            casts.push(*dtype);
        }
        if let Some((condition, seen, then)) = masked(score)
            && bounds.add_bounds(condition, seen, problem.key.var)
        {
            bounds.inside = casts.iter().rev().fold(then.clone(), |value, dtype| value.cast(*dtype));
        }
        bounds
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.end.is_empty()
    }

    /// Adds the bounds that a condition implies. The condition holds for the keys that a row sees if `seen`, otherwise
    /// for the masked ones. Returns whether the bounds are the whole condition, so that every key within them is seen.
    fn add_bounds(&mut self, condition: &Expr, seen: bool, key: VarId) -> bool {
        let (op, left, right) = match (condition, seen) {
            (Expr::Binary { op: BinaryOp::And, left, right }, true)
            | (Expr::Binary { op: BinaryOp::Or, left, right }, false) => {
                let left = self.add_bounds(left, seen, key);
                return self.add_bounds(right, seen, key) && left;
            }
            (Expr::Unary { op: UnaryOp::Not, value }, _) => return self.add_bounds(value, !seen, key),
            (Expr::Cast { value, .. }, _) if value.dtype().is_bool() => return self.add_bounds(value, seen, key),
            (Expr::Compare { op, left, right }, _) if left.dtype().is_int() => {
                if let Some((inner, holds)) = truth(*op, left, right) {
                    return self.add_bounds(inner, holds == seen, key);
                }
                // The operands may be differences, which wrap below 0 in an unsigned dtype.
                if left.dtype().code != TypeCode::Int {
                    return false;
                }
                (if seen { *op } else { op.negated() }, left, right)
            }
            _ => return false,
        };
        let (Some(of_left), Some(of_right)) = (factor(left, key), factor(right, key)) else { return false };
        if !is_plain(left) || !is_plain(right) {
            return false;
        }
        let wide = |expr: &Expr| {
            substitute(expr, &|var| (var == key).then(|| Expr::Int { value: 0, dtype: key_dtype(expr, key) }))
                .cast(DType::INT64)
        };
        // `left - right` must be `rest + key` or `rest - key`.
        let (less, more) = match of_left - of_right {
            1 => (wide(right) - wide(left), true),
            -1 => (wide(left) - wide(right), false),
            _ => return false,
        };
        let one = Expr::int(1);
        match (op, more) {
            (CompareOp::Ge, false) | (CompareOp::Le, true) => self.end.push(less + one),
            (CompareOp::Gt, false) | (CompareOp::Lt, true) => self.end.push(less),
            (CompareOp::Ge, true) | (CompareOp::Le, false) => self.first.push(less),
            (CompareOp::Gt, true) | (CompareOp::Lt, false) => self.first.push(less + one),
            (CompareOp::Eq | CompareOp::Ne, _) => return false,
        }
        true
    }
}

/// Matches a masked score, `select(c, x, -inf)` or `select(c, 0, -inf) + x`. Returns `c`, whether `c` holds for the
/// keys that are seen, and `x`.
fn masked(score: &Expr) -> Option<(&Expr, bool, &Expr)> {
    let Expr::Binary { op: BinaryOp::Add, left, right } = score else { return chosen(score) };
    [(left, right), (right, left)].into_iter().find_map(|(mask, score)| {
        let (condition, seen, added) = chosen(mask)?;
        is_zero(Some(added)).then_some((condition, seen, &**score))
    })
}

/// Matches `select(c, x, -inf)` or `select(c, -inf, x)`. Returns `c`, whether `c` selects `x`, and `x`.
fn chosen(expr: &Expr) -> Option<(&Expr, bool, &Expr)> {
    let Expr::Select { condition, then, otherwise } = expr else { return None };
    match (is_minus_infinity(then), is_minus_infinity(otherwise)) {
        (true, false) => Some((condition, false, otherwise)),
        (false, true) => Some((condition, true, then)),
        _ => None,
    }
}

/// Matches a comparison of a condition, converted to an integer, with a constant. Returns the condition, and whether
/// the comparison holds if the condition does. For example, `select(c, 1, 0) == 0` gives `c` and false.
fn truth<'e>(op: CompareOp, left: &'e Expr, right: &Expr) -> Option<(&'e Expr, bool)> {
    let number = right.as_int()?;
    let (condition, yes, no) = match left {
        Expr::Select { condition, then, otherwise } => (&**condition, then.as_int()?, otherwise.as_int()?),
        Expr::Cast { value, .. } if value.dtype().is_bool() => (&**value, 1, 0),
        value if value.dtype().is_bool() => (value, 1, 0),
        _ => return None,
    };
    let (yes, no) = (op.holds(yes, number), op.holds(no, number));
    (yes != no).then_some((condition, yes))
}

/// Whether the expression is safe to evaluate without the conditions around it. It must have no loads, calls or checked
/// indices. Of the binary operations, it may have `+`, `-`, `*`, minimum and maximum, and others, such as a division,
/// if the right operand is a positive constant.
fn is_plain(expr: &Expr) -> bool {
    expr.all(&|part| match part {
        Expr::Load { .. } | Expr::Checked { .. } | Expr::Call { .. } => false,
        Expr::Binary { op, right, .. } => {
            let is_sum = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
            is_sum || right.as_int().is_some_and(|by| by > 0)
        }
        _ => true,
    })
}

/// Returns the coefficient of a variable in a sum, or `None` if the variable is inside other operations than `+`, `-`
/// and casts that keep signed integers. For example, for `n` it is −1 in `m - n + 3`, 0 in `m`, and `None` in `n * 2`.
fn factor(expr: &Expr, var: VarId) -> Option<i64> {
    match expr {
        Expr::Var { var: of, .. } => Some(i64::from(*of == var)),
        expr if !expr.uses(var) => Some(0),
        Expr::Cast { value, dtype } => {
            let is_signed = |of: DType| of.code == TypeCode::Int;
            let keeps = is_signed(*dtype) && is_signed(value.dtype()) && dtype.bits >= value.dtype().bits;
            if keeps { factor(value, var) } else { None }
        }
        Expr::Binary { op: BinaryOp::Add, left, right } => Some(factor(left, var)? + factor(right, var)?),
        Expr::Binary { op: BinaryOp::Sub, left, right } => Some(factor(left, var)? - factor(right, var)?),
        _ => None,
    }
}

/// Returns the dtype of a variable in an expression, or `int64` if the expression does not use it.
fn key_dtype(expr: &Expr, key: VarId) -> DType {
    let mut found = DType::INT64;
    expr.walk(&mut |part| {
        if let Expr::Var { var, dtype } = part
            && *var == key
        {
            found = *dtype;
        }
    });
    found
}
