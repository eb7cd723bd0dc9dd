//! Minimum and maximum of dims, simplified under the assumption that symbols are not negative: `min(n, n // 4 * 4)` is
//! `n // 4 * 4`, and `max(n // 2, n)` is `n`.

use super::arithmetic::{add_scaled, multiply};
use super::prove::{self, Answer, Bounds};
use super::remainder::expand_remainders;
use super::{Atom, Dim, Product};

/// The maximal number of operands of nested minima that are compared with each other.
const MAX_OPERANDS: usize = 8;

/// The depth to which nested minima, maxima and divisions are examined.
const DEPTH: usize = 4;

/// The choice between minimum and maximum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pick {
    Smaller,
    Larger,
}

impl Dim {
    /// Returns the minimum of both.
    pub fn minimum(&self, other: &Dim) -> Dim {
        extremum(self, other, Pick::Smaller)
    }

    /// Returns the maximum of both.
    pub fn maximum(&self, other: &Dim) -> Dim {
        extremum(self, other, Pick::Larger)
    }
}

/// Returns the minimum or maximum of `a` and `b`. Nested minima (or maxima) are flattened, operands that another one
/// makes redundant are dropped, and the rest is sorted, so that equal sets of operands have one form.
fn extremum(a: &Dim, b: &Dim, pick: Pick) -> Dim {
    if a.is_error() || b.is_error() {
        return Dim::ERROR;
    }
    let mut operands = Vec::new();
    for dim in [a, b] {
        operands_of(dim, pick, &mut operands);
    }
    if operands.len() > MAX_OPERANDS {
        return chosen(a.clone(), b.clone(), pick);
    }
    let mut kept: Vec<Dim> = Vec::new();
    for operand in operands {
        let is_superfluous = |known: &Dim| match pick {
            Pick::Smaller => is_at_least(&operand, known, DEPTH),
            Pick::Larger => is_at_least(known, &operand, DEPTH),
        };
        if kept.iter().any(is_superfluous) {
            continue;
        }
        kept.retain(|known| match pick {
            Pick::Smaller => !is_at_least(known, &operand, DEPTH),
            Pick::Larger => !is_at_least(&operand, known, DEPTH),
        });
        kept.push(operand);
    }
    kept.sort();
    let mut kept = kept.into_iter();
    let first = kept.next().unwrap_or(Dim::ERROR);
    kept.fold(first, |whole, operand| chosen(whole, operand, pick))
}

/// Collects the operands of nested minima or maxima.
fn operands_of(dim: &Dim, pick: Pick, into: &mut Vec<Dim>) {
    match (dim.as_atom(), pick) {
        (Some(Atom::Min(a, b)), Pick::Smaller) | (Some(Atom::Max(a, b)), Pick::Larger) => {
            operands_of(a, pick, into);
            operands_of(b, pick, into);
        }
        _ => into.push(dim.clone()),
    }
}

fn chosen(a: Dim, b: Dim, pick: Pick) -> Dim {
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    Dim::atom(match pick {
        Pick::Smaller => Atom::Min(a, b),
        Pick::Larger => Atom::Max(a, b),
    })
}

/// Whether `a >= b` can be shown for all non-negative symbols, from ranges and the operands of minima and maxima.
fn is_at_least(a: &Dim, b: &Dim, depth: usize) -> bool {
    if a == b || is_not_negative(&(a - b), depth) {
        return true;
    }
    let Some(depth) = depth.checked_sub(1) else { return false };
    let of_b = match b.as_atom() {
        Some(Atom::Min(x, y)) => is_at_least(a, x, depth) || is_at_least(a, y, depth),
        Some(Atom::Max(x, y)) => is_at_least(a, x, depth) && is_at_least(a, y, depth),
        _ => false,
    };
    of_b || match a.as_atom() {
        Some(Atom::Max(x, y)) => is_at_least(x, b, depth) || is_at_least(y, b, depth),
        Some(Atom::Min(x, y)) => is_at_least(x, b, depth) && is_at_least(y, b, depth),
        _ => false,
    }
}

fn is_not_negative(dim: &Dim, depth: usize) -> bool {
    let bounds = Bounds::default();
    let by_range = |dim: &Dim| !dim.is_error() && prove::at_least_by_range(dim, &bounds) == Answer::Proved;
    if by_range(dim) {
        return true;
    }
    let expanded = expand_remainders(dim);
    by_range(&expanded) || [false, true].into_iter().any(|all| is_above(&expanded, all, depth))
}

/// Whether the dim can be shown to be greater than −1 after each division is replaced by an exact bound: `x // c` is at
/// most `x / c`, and at least `(x - c + 1) / c`. Divisions with a positive coefficient are replaced only if `all` is
/// set.
fn is_above(dim: &Dim, all: bool, depth: usize) -> bool {
    let bounds = Bounds::default();
    let (mut dim, mut scale) = (dim.clone(), 1i64);
    for _ in 0..depth {
        let division = dim.terms().iter().find_map(|(product, coefficient)| match &product[..] {
            [(Atom::FloorDiv(a, by), 1)] if all || *coefficient < 0 => {
                let by = by.as_constant().filter(|by| *by > 0)?;
                Some((product.clone(), *coefficient, a.clone(), by))
            }
            _ => None,
        });
        let Some((product, coefficient, a, by)) = division else { return false };
        let a = if coefficient < 0 { a } else { add_scaled(&a, &Dim::constant(by - 1), -1) };
        let Some(scaled) = scale.checked_mul(by) else { return false };
        dim = without_division(&dim, &product, coefficient, &a, by);
        scale = scaled;
        // `dim` is now a lower bound of `scale` times the original. If it is greater than `-scale`, the original is greater
        // than -1, and so, as an integer, at least 0.
        if !dim.is_error() && prove::lower(&dim, &bounds).is_some_and(|low| low > -scale) {
            return true;
        }
    }
    false
}

/// Returns `by · dim`, with `coefficient · a` in place of `by` times the term.
fn without_division(dim: &Dim, product: &Product, coefficient: i64, a: &Dim, by: i64) -> Dim {
    let term = Dim::sum(vec![(product.clone(), coefficient)], 0);
    let rest = multiply(&add_scaled(dim, &term, -1), &Dim::constant(by));
    add_scaled(&rest, &multiply(a, &Dim::constant(coefficient)), 1)
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
    fn choice_that_the_signs_of_symbols_decide_is_none() {
        let m = Dim::symbol(name("m"));
        let down = &n().floor_div(&c(4)) * &c(4);
        let up = &(&n() + &c(3)).floor_div(&c(4)) * &c(4);
        for (smaller, larger) in [
            (down.clone(), n()),
            (n().floor_div(&c(2)), n()),
            (n(), up.clone()),
            (down, up),
            (n().floor_div(&c(4)), n().floor_div(&c(2))),
            (n().floor_mod(&c(4)), n()),
            (n().floor_mod(&c(4)), c(3)),
            (n().floor_mod(&m), n()),
            (&n() - &n().floor_mod(&c(4)), n()),
            (n(), &n() + &m.floor_div(&c(4))),
            (&(&n() * &c(3)).floor_div(&c(4)) + &m, &n() + &m),
            (n(), n().maximum(&m)),
            (n().minimum(&m), n()),
        ] {
            assert_eq!(smaller.minimum(&larger), smaller, "{smaller} and {larger}");
            assert_eq!(larger.minimum(&smaller), smaller, "{smaller} and {larger}");
            assert_eq!(smaller.maximum(&larger), larger, "{smaller} and {larger}");
        }
    }

    #[test]
    fn nested_choices_have_one_form() {
        let (m, k) = (Dim::symbol(name("m")), Dim::symbol(name("k")));
        assert_eq!(n().maximum(&m.maximum(&k)), n().maximum(&m).maximum(&k));
        assert_eq!(n().minimum(&m.minimum(&n().floor_div(&c(2)))), m.minimum(&n().floor_div(&c(2))));
        assert_eq!(n().minimum(&m).minimum(&n()), n().minimum(&m));
    }
}
