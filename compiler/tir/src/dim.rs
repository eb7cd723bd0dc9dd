//! Symbolic integers as expressions.

use crate::expr::{BinaryOp, Expr};
use crate::func::VarId;
use rx_base::name::name;
use rx_base::symbolic::Atom;
use rx_base::{Dim, Name};

/// A symbolic integer as an `int64` expression; `symbol` gives the values of symbols, by name. What rx does not know by
/// formula, and a caller has to compute, is asked for under its text. The error part is 0: no function is made of dims that
/// are not known.
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

/// An integer expression as a symbolic integer; `symbol` gives those of variables. Divisions are taken for those of what is not
/// negative, as extents are. `None` of what has no form.
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
