//! Conversion between symbolic integers ([`Dim`]) and expressions.

use crate::expr::{BinaryOp, Expr};
use crate::func::VarId;
use rx_base::name::name;
use rx_base::symbolic::Atom;
use rx_base::{Dim, Name};

/// Converts a symbolic integer to an `int64` expression. `symbol` returns the value of a symbol, given its name. For an
/// opaque value, which has no formula and which a caller has to compute, `symbol` is called with the text of the value
/// as its name. The error dim becomes 0; no function is built from unknown dims.
pub fn of_dim(dim: &Dim, symbol: &mut dyn FnMut(Name, &Dim) -> Expr) -> Expr {
    let mut sum = Expr::int(dim.constant_part());
    for (product, coefficient) in dim.terms() {
        let mut factor: Option<Expr> = None;
        for (atom, exponent) in product {
            let atom = of_atom(atom, symbol);
            for _ in 0..*exponent {
                factor = Some(match factor {
                    Some(factor) => factor * atom.clone(),
                    None => atom.clone(),
                });
            }
        }
        let term = factor.unwrap_or(Expr::int(1)) * Expr::int(*coefficient);
        sum = if sum.as_int() == Some(0) { term } else { term + sum };
    }
    sum
}

/// Converts an integer expression to a symbolic integer. `symbol` returns the dim of a variable. Casts are ignored.
/// Dividends and divisors are assumed not to be negative, as extents are, so truncating division is floor division.
/// Returns `None` for operations without a symbolic form, and if `symbol` does so for a variable.
pub fn to_dim(expr: &Expr, symbol: &dyn Fn(VarId) -> Option<Dim>) -> Option<Dim> {
    match expr {
        Expr::Int { value, .. } => Some(Dim::constant(*value)),
        Expr::Var { var, .. } => symbol(*var),
        Expr::Cast { value, .. } => to_dim(value, symbol),
        Expr::Binary { op, left, right } => {
            let (left, right) = (to_dim(left, symbol)?, to_dim(right, symbol)?);
            match op {
                BinaryOp::Add => Some(&left + &right),
                BinaryOp::Sub => Some(&left - &right),
                BinaryOp::Mul => Some(&left * &right),
                BinaryOp::FloorDiv | BinaryOp::TruncDiv => Some(left.floor_div(&right)),
                BinaryOp::FloorMod | BinaryOp::TruncMod => Some(left.floor_mod(&right)),
                BinaryOp::Min => Some(left.minimum(&right)),
                BinaryOp::Max => Some(left.maximum(&right)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn of_atom(atom: &Atom, symbol: &mut dyn FnMut(Name, &Dim) -> Expr) -> Expr {
    let mut of = |dim: &Dim| of_dim(dim, symbol);
    match atom {
        Atom::FloorDiv(a, b) => of(a).floor_div(of(b)),
        Atom::FloorMod(a, b) => of(a).floor_mod(of(b)),
        Atom::Min(a, b) => of(a).min(of(b)),
        Atom::Max(a, b) => of(a).max(of(b)),
        Atom::Symbol(own) => symbol(*own, &Dim::symbol(*own)),
        Atom::Opaque(..) => {
            let value = Dim::from(atom.clone());
            symbol(name(&value.to_string()), &value)
        }
    }
}
