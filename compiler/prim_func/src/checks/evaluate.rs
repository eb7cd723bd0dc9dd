//! Evaluates integer expressions for given values of variables, and computes their intervals.

use super::path::Step;
use rx_tir::{BinaryOp, Expr, UnaryOp, VarId};

/// A fact about each variable, indexed by variable; `None` if unknown.
#[derive(Debug, Default)]
pub(super) struct OfVars<T>(Vec<Option<T>>);

impl<T: Copy> OfVars<T> {
    /// Creates the table for this number of variables, all unknown.
    pub(super) fn of(vars: usize) -> OfVars<T> {
        OfVars(vec![None; vars])
    }

    /// Returns the fact about a variable.
    pub(super) fn get(&self, var: VarId) -> Option<T> {
        self.0.get(var.0 as usize).copied().flatten()
    }

    /// Sets or clears the fact about a variable.
    pub(super) fn set(&mut self, var: VarId, known: Option<T>) {
        if let Some(slot) = self.0.get_mut(var.0 as usize) {
            *slot = known;
        }
    }
}

/// The known values of variables.
pub(super) type Values = OfVars<i64>;

impl Values {
    /// Computes the values of the axes and let-bound variables of a path that have none yet.
    pub(super) fn complete(&mut self, path: &[Step<'_>]) {
        for (var, value) in path.iter().filter_map(Step::value) {
            if self.get(var).is_none() {
                let value = self.value(value);
                self.set(var, value);
            }
        }
    }

    /// Evaluates an integer expression in `int64`, regardless of the widths of its dtypes. Returns `None` if the value
    /// is unknown, for example since it depends on a variable without a known value, on memory, on a call or on floats,
    /// overflows, or is undefined.
    pub(super) fn value(&self, expr: &Expr) -> Option<i64> {
        match expr {
            Expr::Int { value, .. } => Some(*value),
            Expr::Var { var, .. } => self.get(*var),
            Expr::Cast { dtype, value } if dtype.is_bool() => self.value(value).map(|value| i64::from(value != 0)),
            Expr::Cast { dtype, value } if dtype.is_int() && !value.dtype().is_float() => self.value(value),
            Expr::Checked { index, .. } => self.value(index),
            Expr::Unary { op, value } => {
                let value = self.value(value)?;
                match op {
                    UnaryOp::Neg => value.checked_neg(),
                    UnaryOp::Not => Some(i64::from(value == 0)),
                    UnaryOp::BitNot => Some(!value),
                }
            }
            Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
                let decisive = i64::from(*op == BinaryOp::Or);
                match (self.value(left), self.value(right)) {
                    (Some(one), _) | (_, Some(one)) if one == decisive => Some(decisive),
                    (Some(_), Some(_)) => Some(1 - decisive),
                    _ => None,
                }
            }
            Expr::Binary { op, left, right } => binary(*op, self.value(left)?, self.value(right)?),
            Expr::Compare { op, left, right } => {
                let (a, b) = (self.value(left)?, self.value(right)?);
                Some(i64::from(op.holds(a, b)))
            }
            Expr::Select { condition, then, otherwise } => match self.value(condition)? {
                0 => self.value(otherwise),
                _ => self.value(then),
            },
            _ => None,
        }
    }
}

fn binary(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div | BinaryOp::TruncDiv => a.checked_div(b),
        BinaryOp::TruncMod => a.checked_rem(b),
        BinaryOp::FloorDiv if b > 0 => Some(a.div_euclid(b)),
        BinaryOp::FloorMod if b > 0 => Some(a.rem_euclid(b)),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::BitOr => Some(a | b),
        BinaryOp::BitXor => Some(a ^ b),
        BinaryOp::ShiftLeft if (0..63).contains(&b) => a.checked_mul(1 << b),
        BinaryOp::ShiftRight if (0..63).contains(&b) => Some(a >> b),
        _ => None,
    }
}

/// A lower and an upper bound of the values of an expression, both inclusive.
pub(super) type Interval = (i64, i64);

/// The intervals of variables.
pub(super) type Intervals = OfVars<Interval>;

impl Intervals {
    /// Returns the difference between a variable's upper and lower bound.
    pub(super) fn width(&self, var: VarId) -> Option<i64> {
        let (least, greatest) = self.get(var)?;
        greatest.checked_sub(least)
    }

    /// Returns an interval that contains all values of an expression, provided that no cast or operation wraps around;
    /// `None` if unknown. The conditions under which the expression is evaluated do not narrow the interval. For
    /// example, for `i` in 0..=3 the expression `i * 8 + 7` is in 7..=31.
    pub(super) fn interval(&self, expr: &Expr) -> Option<Interval> {
        match expr {
            Expr::Int { value, .. } => Some((*value, *value)),
            Expr::Var { var, .. } => self.get(*var),
            Expr::Cast { dtype, value } if dtype.is_int() && value.dtype().is_int() => self.interval(value),
            Expr::Binary { op, left, right } => {
                let (a, b) = (self.interval(left)?, self.interval(right)?);
                match op {
                    BinaryOp::Add => Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)),
                    BinaryOp::Sub => Some((a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)),
                    BinaryOp::Mul => {
                        let ends = [
                            a.0.checked_mul(b.0)?,
                            a.0.checked_mul(b.1)?,
                            a.1.checked_mul(b.0)?,
                            a.1.checked_mul(b.1)?,
                        ];
                        Some((*ends.iter().min()?, *ends.iter().max()?))
                    }
                    BinaryOp::FloorDiv if b.0 == b.1 && b.0 > 0 => Some((a.0.div_euclid(b.0), a.1.div_euclid(b.0))),
                    BinaryOp::FloorMod if b.0 == b.1 && b.0 > 0 => match a.0.div_euclid(b.0) == a.1.div_euclid(b.0) {
                        true => Some((a.0.rem_euclid(b.0), a.1.rem_euclid(b.0))),
                        false => Some((0, b.0 - 1)),
                    },
                    BinaryOp::Min => Some((a.0.min(b.0), a.1.min(b.1))),
                    BinaryOp::Max => Some((a.0.max(b.0), a.1.max(b.1))),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
