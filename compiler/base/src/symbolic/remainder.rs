//! Combination of divisions and remainders with the same dividend in a sum: `n - n // 4 * 4` becomes `n % 4`,
//! `n - n % 4` becomes `n // 4 * 4`, and `n // 4 * 4 + n % 4` becomes `n`.
//!
//! A sum is rewritten only if the result has fewer terms. So `n // 56 * 60 + n % 56`, the offset in a padded row, is
//! kept.

use super::arithmetic::{add_scaled, multiply};
use super::{Atom, Dim, Product, Repr};

/// Combines divisions and remainders in a sum.
pub(super) fn joined(dim: Dim) -> Dim {
    if !may_join(&dim) {
        return dim;
    }
    let (folded, expanded) = (folded(dim.clone()), folded(expand_remainders(&dim)));
    let better = if expanded.terms().len() < folded.terms().len() { expanded } else { folded };
    if !better.is_error() && better.terms().len() < dim.terms().len() { better } else { dim }
}

/// Whether a sum contains a division or remainder together with a term of its dividend, or with another division or
/// remainder of that dividend.
fn may_join(dim: &Dim) -> bool {
    let terms = dim.terms();
    terms.len() > 1
        && terms.iter().enumerate().any(|(at, (product, _))| {
            product.iter().any(|(atom, _)| {
                let (Atom::FloorDiv(a, _) | Atom::FloorMod(a, _)) = atom else { return false };
                if names_a_variable(a) {
                    return false;
                }
                let others = terms.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, (other, _))| other);
                others.into_iter().any(|other| is_part(other, a) || other.iter().any(|(atom, _)| divides(atom, a)))
            })
        })
}

/// Whether a dividend contains a loop variable. Loop transformations expand remainders so that divisors cancel, so such
/// sums are not rewritten.
fn names_a_variable(dividend: &Dim) -> bool {
    let mut found = false;
    dividend.for_each_symbol(&mut |symbol| found |= symbol.as_str().starts_with(Dim::VARIABLE));
    found
}

/// Whether a product contains all atoms of the first term of a dividend.
fn is_part(product: &Product, dividend: &Dim) -> bool {
    let Some((first, _)) = dividend.terms().first() else { return false };
    first.iter().all(|(atom, _)| product.iter().any(|(other, _)| other == atom))
}

/// Whether an atom is a division or a remainder of this dividend.
fn divides(atom: &Atom, dividend: &Dim) -> bool {
    match atom {
        Atom::FloorDiv(a, _) | Atom::FloorMod(a, _) => a == dividend,
        _ => false,
    }
}

/// Replaces each `x - x // c * c` in the sum by `x % c`, as long as that reduces the number of terms.
fn folded(mut dim: Dim) -> Dim {
    loop {
        let terms = dim.terms();
        let shorter = terms.iter().find_map(|(product, coefficient)| {
            let (at, a, by) = product.iter().enumerate().find_map(|(at, (atom, exponent))| match atom {
                Atom::FloorDiv(a, by) if *exponent == 1 => Some((at, a, by)),
                _ => None,
            })?;
            let beside: Product =
                product.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, atom)| atom.clone()).collect();
            let whole = Dim::sum(vec![(product.clone(), *coefficient)], 0);
            let made = dividends(&dim, a, by).into_iter().filter_map(|(dividend, by)| {
                let times = quotient(&beside, *coefficient, &by)?;
                let rest = add_scaled(&add_scaled(&dim, &whole, -1), &multiply(&times, &dividend), 1);
                let remainder = dividend.floor_mod(&by);
                Some(add_scaled(&rest, &multiply(&times, &remainder), -1))
            });
            made.into_iter().find(|made| !made.is_error() && made.terms().len() < terms.len())
        });
        match shorter {
            Some(shorter) => dim = shorter,
            None => return dim,
        }
    }
}

/// Returns the dividends, with divisors, of which `a // by` may be the quotient: `a` itself, and each `a // d` in the
/// sum, since `a // by` is `(a // d) // (by / d)`.
fn dividends(dim: &Dim, a: &Dim, by: &Dim) -> Vec<(Dim, Dim)> {
    let mut found = vec![(a.clone(), by.clone())];
    let Some(by) = by.as_constant() else { return found };
    for (atom, _) in dim.terms().iter().flat_map(|(product, _)| product) {
        if let Atom::FloorDiv(other, inner) = atom
            && other == a
            && let Some(inner) = inner.as_constant().filter(|inner| *inner > 0 && *inner < by && by % inner == 0)
        {
            found.push((Dim::atom(atom.clone()), Dim::constant(by / inner)));
        }
    }
    found
}

/// Returns `coefficient · product / by`, if the division is exact.
fn quotient(product: &Product, coefficient: i64, by: &Dim) -> Option<Dim> {
    let (divisor, scale) = match &by.0 {
        Repr::Constant(value) => (&[][..], *value),
        Repr::Sum(sum) => match (&sum.terms[..], sum.constant) {
            ([(product, scale)], 0) => (&product[..], *scale),
            _ => return None,
        },
        Repr::Error => return None,
    };
    let mut left = product.clone();
    for (atom, exponent) in divisor {
        let at = left.iter().position(|(known, _)| known == atom)?;
        let known = left.get_mut(at)?;
        known.1 = known.1.checked_sub(*exponent)?;
    }
    left.retain(|(_, exponent)| *exponent > 0);
    let coefficient = (coefficient.checked_rem(scale)? == 0).then_some(coefficient.checked_div(scale)?)?;
    Some(match left.is_empty() {
        true => Dim::constant(coefficient),
        false => Dim::sum(vec![(left, coefficient)], 0),
    })
}

/// Replaces every `a % b` by `a - b * (a // b)`, so that both forms of a value become equal.
pub(super) fn expand_remainders(dim: &Dim) -> Dim {
    let Repr::Sum(sum) = &dim.0 else { return dim.clone() };
    let mut result = Dim::constant(sum.constant);
    for (product, coefficient) in &sum.terms {
        let mut term = Dim::constant(*coefficient);
        for (atom, exponent) in product {
            let factor = match atom {
                Atom::FloorMod(a, b) => add_scaled(a, &multiply(b, &a.floor_div(b)), -1),
                other => Dim::atom(other.clone()),
            };
            for _ in 0..*exponent {
                term = multiply(&term, &factor);
            }
        }
        result = add_scaled(&result, &term, 1);
    }
    result
}

#[cfg(test)]
mod tests {
    use crate::name::name;
    use crate::symbolic::Dim;

    fn n() -> Dim {
        Dim::symbol(name("n"))
    }

    fn c(value: i64) -> Dim {
        Dim::constant(value)
    }

    #[test]
    fn division_and_remainder_of_one_dividend_are_joined() {
        let m = Dim::symbol(name("m"));
        let down = &n().floor_div(&c(4)) * &c(4);
        let rest = n().floor_mod(&c(4));
        assert_eq!(&n() - &down, rest);
        assert_eq!(&n() - &rest, down);
        assert_eq!(&down + &rest, n());
        assert_eq!(&(&down - &n()) + &m, &m - &rest);
        assert_eq!(&n() - &(&n().floor_div(&m) * &m), n().floor_mod(&m));
        assert_eq!(&(&n() * &m) - &(&down * &m), &rest * &m);
        let up = &(&n() + &c(3)).floor_div(&c(4)) * &c(4);
        assert_eq!(&up - &n(), &c(3) - &(&n() + &c(3)).floor_mod(&c(4)));
        let (half, eighth) = (n().floor_div(&c(2)), n().floor_div(&c(8)));
        assert_eq!(&half - &(&eighth * &c(4)), half.floor_mod(&c(4)));
    }

    #[test]
    fn sum_that_would_not_be_shorter_stays() {
        let (whole, rest) = (n().floor_div(&c(56)), n().floor_mod(&c(56)));
        let padded = &(&whole * &c(60)) + &rest;
        assert_eq!(padded.to_string(), "(n // 56) * 60 + (n % 56)");
        assert_eq!((&n() - &n().floor_div(&c(2))).to_string(), "n - (n // 2)");
    }
}
