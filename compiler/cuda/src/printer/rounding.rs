//! Products that are rounded separately, because their sum decides something discrete.
//!
//! ```text
//! T.floor(x * T.float32(0.25) - T.float32(0.5))    →    floorf(__fmul_rn(x, 0.25f) - 0.5f)
//! ```
//!
//! NVRTC contracts a product and a sum to a fused multiply-add (`--fmad`), which is rounded once, so the last bit can
//! differ from the interpreter's. If the sum is then rounded to an integer, converted to one, divided with a whole
//! quotient or compared, the result can be a different one: for example, `resize2d` with `nearest_neighbor` could read
//! the next row. `__fmul_rn` and `__dmul_rn` are never contracted. Accumulators of sums are not affected, since their
//! products do not occur in such an expression.
//!
//! Reference: CUDA C++ Programming Guide, "Mathematical Functions", on `__fmul_rn`.

use super::Kernel;
use super::expr::{Bound, POSTFIX, SUM, UNARY};
use super::types;
use rustc_hash::FxHashSet;
use rx_tir::{BinaryOp, Expr, Intrinsic, Stmt, UnaryOp, VarId};

/// Whether an expression of floats is a rounding to a whole number, a quotient or remainder of a division with a whole
/// quotient, a comparison, or a cast to an integer or `bool`: a difference in the last bit of an operand can then
/// change the result by a whole step.
pub(super) fn decides(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { dtype, value } => value.dtype().is_float() && !dtype.is_float(),
        Expr::Compare { left, .. } => left.dtype().is_float(),
        Expr::Binary { op: BinaryOp::FloorDiv | BinaryOp::FloorMod, left, .. } => left.dtype().is_float(),
        Expr::Binary { op: BinaryOp::TruncDiv | BinaryOp::TruncMod, left, .. } => left.dtype().is_float(),
        Expr::Call { function, dtype, .. } => dtype.is_float() && rounds(*function),
        _ => false,
    }
}

fn rounds(function: Intrinsic) -> bool {
    use Intrinsic::{Ceil, Floor, Fmod, NearbyInt, Round, Trunc};
    matches!(function, Ceil | Floor | Fmod | NearbyInt | Round | Trunc)
}

/// Adds the float variables that occur in operands of expressions that [`decides`] accepts, directly or through the
/// values of `let`s.
pub(super) fn add_deciding_vars(stmt: &Stmt, vars: &mut FxHashSet<VarId>) {
    // The uses of a variable are in the body, so the body is visited before the value.
    for child in stmt.children() {
        add_deciding_vars(child, vars);
    }
    let reaches = match stmt {
        Stmt::Let { var, .. } => vars.contains(var),
        _ => false,
    };
    for expr in stmt.expressions() {
        add_vars(expr, reaches, vars);
    }
}

fn add_vars(expr: &Expr, reaches: bool, vars: &mut FxHashSet<VarId>) {
    let reaches = reaches || decides(expr);
    match expr {
        Expr::Var { var, dtype } if reaches && dtype.is_float() => drop(vars.insert(*var)),
        _ => expr.children().into_iter().for_each(|child| add_vars(child, reaches, vars)),
    }
}

impl Kernel<'_> {
    /// Prints a sum or difference of floats. Products that are its operands are rounded separately if the result
    /// reaches a discrete decision.
    pub(super) fn float_sum(&mut self, symbol: &str, left: &Expr, right: &Expr) -> Result<Bound, String> {
        let (left, right) = (self.addend(left, SUM)?, self.addend(right, SUM + 1)?);
        Ok((format!("{left} {symbol} {right}"), SUM))
    }

    /// Prints an operand of a sum, or a value that is assigned. If it reaches a discrete decision (see [`decides`]), a
    /// float product, also within a negation, becomes a call of `__fmul_rn` or `__dmul_rn`.
    pub(super) fn addend(&mut self, expr: &Expr, level: u8) -> Result<String, String> {
        match expr {
            Expr::Binary { op: BinaryOp::Mul, left, right } if self.is_deciding && expr.dtype().is_float() => {
                let name = if types::is_single(expr.dtype()) { "__fmul_rn" } else { "__dmul_rn" };
                Ok(format!("{name}({}, {})", self.operand(left, 0)?, self.operand(right, 0)?))
            }
            Expr::Unary { op: UnaryOp::Neg, value } if self.is_deciding && is_product(value) => {
                let text = format!("-{}", self.addend(value, POSTFIX)?);
                Ok(if UNARY < level { format!("({text})") } else { text })
            }
            _ => self.operand(expr, level),
        }
    }
}

fn is_product(expr: &Expr) -> bool {
    matches!(expr, Expr::Binary { op: BinaryOp::Mul, .. })
}
