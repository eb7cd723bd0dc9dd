//! Formatting of symbolic integers in TVMScript syntax.

use super::{Atom, Dim, Product, Repr};
use std::fmt;

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Constant(value) => write!(f, "{value}"),
            Repr::Error => f.write_str("?"),
            Repr::Sum(sum) => {
                let mut first = true;
                // Positive terms first, so that `n - m` is not printed as `-m + n`.
                let (positive, negative): (Vec<_>, Vec<_>) = sum.terms.iter().partition(|(_, c)| *c > 0);
                let lead_constant = positive.is_empty() && sum.constant > 0;
                if lead_constant {
                    write!(f, "{}", sum.constant)?;
                    first = false;
                }
                for (product, coefficient) in positive.into_iter().chain(negative) {
                    write_term(f, product, *coefficient, first)?;
                    first = false;
                }
                match sum.constant {
                    0 => Ok(()),
                    _ if lead_constant => Ok(()),
                    constant if constant < 0 => write!(f, " - {}", constant.unsigned_abs()),
                    constant => write!(f, " + {constant}"),
                }
            }
        }
    }
}

fn write_term(f: &mut fmt::Formatter<'_>, product: &Product, coefficient: i64, first: bool) -> fmt::Result {
    match (first, coefficient < 0) {
        (true, false) => {}
        (true, true) => {
            if coefficient != -1 {
                write!(f, "{coefficient}")?;
                f.write_str(" * ")?;
            } else {
                f.write_str("-1 * ")?;
            }
        }
        (false, false) => f.write_str(" + ")?,
        (false, true) => f.write_str(" - ")?,
    }
    let mut separator = "";
    for (atom, exponent) in product {
        for _ in 0..*exponent {
            f.write_str(separator)?;
            write_atom(f, atom, product.len() > 1 || *exponent > 1 || coefficient != 1 || !first)?;
            separator = " * ";
        }
    }
    let size = coefficient.unsigned_abs();
    if size != 1 && !(first && coefficient < 0) {
        write!(f, " * {size}")?;
    }
    Ok(())
}

fn write_atom(f: &mut fmt::Formatter<'_>, atom: &Atom, inside_product: bool) -> fmt::Result {
    let (operator, a, b) = match atom {
        Atom::Symbol(name) => return f.write_str(name),
        Atom::FloorDiv(a, b) => ("//", a, b),
        Atom::FloorMod(a, b) => ("%", a, b),
        Atom::Min(a, b) => return write!(f, "T.min({a}, {b})"),
        Atom::Max(a, b) => return write!(f, "T.max({a}, {b})"),
        Atom::Opaque(operator, arguments) if is_infix(operator) => {
            return write_infix(f, operator, arguments, inside_product);
        }
        Atom::Opaque(function, arguments) => {
            write!(f, "{function}(")?;
            for (at, argument) in arguments.iter().enumerate() {
                write!(f, "{}{argument}", if at == 0 { "" } else { ", " })?;
            }
            return f.write_str(")");
        }
    };
    if inside_product {
        f.write_str("(")?;
    }
    write_operand(f, a)?;
    write!(f, " {operator} ")?;
    write_operand(f, b)?;
    if inside_product {
        f.write_str(")")?;
    }
    Ok(())
}

/// Whether an opaque call is printed as an infix operator: the conditions in `T.if_then_else`.
fn is_infix(function: &str) -> bool {
    matches!(function, "<" | "<=" | "==" | "!=" | "and" | "or")
}

fn write_infix(f: &mut fmt::Formatter<'_>, operator: &str, operands: &[Dim], inside: bool) -> fmt::Result {
    if inside {
        f.write_str("(")?;
    }
    for (at, operand) in operands.iter().enumerate() {
        if at > 0 {
            write!(f, " {operator} ")?;
        }
        write_operand(f, operand)?;
    }
    if inside { f.write_str(")") } else { Ok(()) }
}

fn write_operand(f: &mut fmt::Formatter<'_>, dim: &Dim) -> fmt::Result {
    match dim.as_constant().is_some_and(|value| value >= 0) || dim.as_symbol().is_some() {
        true => write!(f, "{dim}"),
        false => write!(f, "({dim})"),
    }
}

#[cfg(test)]
mod tests {
    use crate::name::name;
    use crate::symbolic::Dim;

    #[test]
    fn dims_read_as_people_write_them() {
        let (n, m) = (Dim::symbol(name("n")), Dim::symbol(name("m")));
        assert_eq!((&n - &Dim::constant(1)).to_string(), "n - 1");
        assert_eq!((&(&n * &m) + &Dim::constant(2)).to_string(), "m * n + 2");
        assert_eq!((&n - &m).to_string(), "n - m");
        assert_eq!((&(&n + &Dim::constant(1)).floor_div(&Dim::constant(2)) + &m).to_string(), "m + ((n + 1) // 2)");
    }
}
