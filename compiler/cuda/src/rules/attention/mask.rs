//! Which keys a row can see, of the form of its score: a choice that is −∞ where a key is below one bound or above another.
//! Keys that no row of a block sees are not gone over. A weight of 0 is taken not to matter, as it does not where the values
//! are finite.

use super::problem::Problem;
use rx_base::DType;
use rx_tir::expr::{BinaryOp, CompareOp};
use rx_tir::rewrite::substitute;
use rx_tir::{Expr, VarId};

/// Bounds of the keys of a row, over the loops of batch and rows; any number of each.
#[derive(Debug)]
pub(super) struct Bounds {
    /// No key below is seen.
    pub(super) first: Vec<Expr>,
    /// No key from here on is seen.
    pub(super) end: Vec<Expr>,
    /// The score of keys within the bounds.
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
        if let Expr::Select { condition, then, otherwise } = score
            && matches!(**otherwise, Expr::Float { value, .. } if value == f64::NEG_INFINITY)
            && bounds.learn(condition, problem.key.var)
        {
            bounds.inside = casts.iter().rev().fold((**then).clone(), |value, dtype| value.cast(*dtype));
        }
        bounds
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.end.is_empty()
    }

    /// Takes the bounds out of a condition that seen keys meet. Whether they are all of it: keys within them meet it.
    fn learn(&mut self, condition: &Expr, key: VarId) -> bool {
        let (op, left, right) = match condition {
            Expr::Binary { op: BinaryOp::And, left, right } => {
                let left = self.learn(left, key);
                return self.learn(right, key) && left;
            }
            Expr::Compare { op, left, right } if left.dtype().is_int() => (*op, left, right),
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
        // `left - right` is `rest + key` or `rest - key`.
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

/// Whether it can be evaluated whatever the conditions before it say: it reads nothing, and divides by constants.
fn is_plain(expr: &Expr) -> bool {
    let mut plain = true;
    expr.walk(&mut |part| match part {
        Expr::Load { .. } | Expr::Checked { .. } | Expr::Call { .. } => plain = false,
        Expr::Binary { op, right, .. } => {
            let is_sum = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
            plain &= is_sum || right.as_int().is_some_and(|by| by > 0);
        }
        _ => {}
    });
    plain
}

/// How often a variable is added up in a sum; none where it stands elsewhere in it.
fn factor(expr: &Expr, var: VarId) -> Option<i64> {
    match expr {
        Expr::Var { var: of, .. } => Some(i64::from(*of == var)),
        expr if !expr.uses(var) => Some(0),
        Expr::Cast { value, dtype } if dtype.is_int() && dtype.bits >= value.dtype().bits => factor(value, var),
        Expr::Binary { op: BinaryOp::Add, left, right } => Some(factor(left, var)? + factor(right, var)?),
        Expr::Binary { op: BinaryOp::Sub, left, right } => Some(factor(left, var)? - factor(right, var)?),
        _ => None,
    }
}

/// The dtype a variable has in an expression.
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
