//! The prover for symbolic integers, with three answers: proved, refuted, open.

use super::arithmetic::gcd;
use super::cases;
use super::facts::Facts;
use super::remainder::expand_remainders;
use super::{Atom, Dim, Product, Repr};
use crate::name::{Name, NameMap};

/// The answer to a question about all values of its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// True for all values.
    Proved,
    /// False for all values.
    Refuted,
    /// Depends on the values, or not decided.
    Open,
}

/// The known bounds of symbols, in addition to being ≥ 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Inclusive lower bounds; 0 where absent.
    pub lower: NameMap<i64>,
    /// Inclusive upper bounds.
    pub upper: NameMap<i64>,
    /// Learned equalities and inequalities.
    pub(super) facts: Facts,
    /// Learned bounds of single symbols. They hold in addition to the stated ones.
    pub(super) learned_lower: NameMap<i64>,
    pub(super) learned_upper: NameMap<i64>,
}

impl Bounds {
    /// Whether anything was learned in addition to the stated bounds.
    pub fn has_learned(&self) -> bool {
        !self.facts.is_empty() || !self.learned_lower.is_empty() || !self.learned_upper.is_empty()
    }

    /// Returns these bounds with other stated bounds.
    pub fn restated(&self, stated: &Bounds) -> Bounds {
        Bounds { lower: stated.lower.clone(), upper: stated.upper.clone(), ..self.clone() }
    }

    /// The greatest known lower bound of the symbol.
    pub fn low(&self, name: Name) -> i64 {
        let bound = |bounds: &NameMap<i64>| bounds.get(&name).copied().unwrap_or(0);
        bound(&self.lower).max(if self.learned_lower.is_empty() { 0 } else { bound(&self.learned_lower) })
    }

    /// The least known upper bound of the symbol.
    pub fn high(&self, name: Name) -> Option<i64> {
        let (stated, learned) = (self.upper.get(&name).copied(), self.learned_upper.get(&name).copied());
        closest(stated, learned, i64::min)
    }

    /// Returns the bounds of single symbols, without other facts.
    pub(super) fn without_facts(&self) -> Bounds {
        Bounds { facts: Facts::default(), ..self.clone() }
    }

    /// Sets the range of a symbol.
    pub(super) fn set(&mut self, name: Name, low: i64, high: Option<i64>) {
        for bounds in [&mut self.lower, &mut self.learned_lower] {
            bounds.remove(&name);
        }
        for bounds in [&mut self.upper, &mut self.learned_upper] {
            bounds.remove(&name);
        }
        self.lower.insert(name, low);
        if let Some(high) = high {
            self.upper.insert(name, high);
        }
    }
}

/// Decides whether `a == b`. [`Dim::ERROR`] equals everything.
pub fn equal(a: &Dim, b: &Dim, bounds: &Bounds) -> Answer {
    if a == b || a.is_error() || b.is_error() {
        return Answer::Proved;
    }
    if let (Some(x), Some(y)) = (a.as_constant(), b.as_constant()) {
        return if x == y { Answer::Proved } else { Answer::Refuted };
    }
    let difference = bounds.facts.reduce(&(a - b));
    let quick = match zero(&difference, bounds) {
        Answer::Open => zero(&expand_remainders(&difference), bounds),
        answer => answer,
    };
    match quick {
        Answer::Open => cases::is_zero(&difference, bounds),
        answer => answer,
    }
}

/// Decides whether `a >= b`. Proved if either is [`Dim::ERROR`].
pub fn at_least(a: &Dim, b: &Dim, bounds: &Bounds) -> Answer {
    let difference = bounds.facts.reduce(&(a - b));
    match at_least_by_range(&difference, bounds) {
        Answer::Open => cases::is_not_negative(&difference, bounds),
        answer => answer,
    }
}

/// Decides whether a difference is at least 0, from its range only.
pub(super) fn at_least_by_range(difference: &Dim, bounds: &Bounds) -> Answer {
    if difference.is_error() || lower(difference, bounds).is_some_and(|low| low >= 0) {
        return Answer::Proved;
    }
    match upper(difference, bounds).is_some_and(|high| high < 0) {
        true => Answer::Refuted,
        false => Answer::Open,
    }
}

pub(super) fn zero(difference: &Dim, bounds: &Bounds) -> Answer {
    let sum = match &difference.0 {
        Repr::Constant(0) | Repr::Error => return Answer::Proved,
        Repr::Constant(_) => return Answer::Refuted,
        Repr::Sum(sum) => sum,
    };
    if lower(difference, bounds).is_some_and(|low| low > 0) || upper(difference, bounds).is_some_and(|high| high < 0) {
        return Answer::Refuted;
    }
    // Every term is a multiple of the common divisor. If the constant is not, the sum is never 0.
    let common = sum.terms.iter().fold(0, |common, (_, coefficient)| gcd(common, *coefficient));
    if common > 1 && sum.constant % common != 0 {
        return Answer::Refuted;
    }
    Answer::Open
}

/// The greatest known constant that is ≤ `dim`.
pub fn lower(dim: &Dim, bounds: &Bounds) -> Option<i64> {
    range(dim, bounds).0
}

/// The least known constant that is ≥ `dim`.
pub fn upper(dim: &Dim, bounds: &Bounds) -> Option<i64> {
    range(dim, bounds).1
}

/// An interval. `None` means unbounded on that side.
type Interval = (Option<i64>, Option<i64>);

fn range(dim: &Dim, bounds: &Bounds) -> Interval {
    let sum = match &dim.0 {
        Repr::Constant(value) => return (Some(*value), Some(*value)),
        Repr::Error => return (None, None),
        Repr::Sum(sum) => sum,
    };
    let mut total: Interval = (Some(sum.constant), Some(sum.constant));
    for (product, coefficient) in &sum.terms {
        let (low, high) = range_of_product(product, bounds);
        let scale = |end: Option<i64>| end.and_then(|end| end.checked_mul(*coefficient));
        let (low, high) = if *coefficient > 0 { (scale(low), scale(high)) } else { (scale(high), scale(low)) };
        let add = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        total = (add(total.0, low), add(total.1, high));
    }
    total
}

fn range_of_product(product: &Product, bounds: &Bounds) -> Interval {
    let mut total: Interval = (Some(1), Some(1));
    for (atom, exponent) in product {
        let factor = range_of_atom(atom, bounds);
        for _ in 0..*exponent {
            total = multiply(total, factor);
        }
        // A square is never negative.
        if exponent % 2 == 0 && product.len() == 1 && total.0.is_none_or(|low| low < 0) {
            total.0 = Some(0);
        }
    }
    total
}

fn multiply(a: Interval, b: Interval) -> Interval {
    let non_negative = |i: Interval| i.0.is_some_and(|low| low >= 0);
    if non_negative(a) && non_negative(b) {
        let both = |x: Option<i64>, y: Option<i64>| x?.checked_mul(y?);
        return (both(a.0, b.0).or(Some(0)), both(a.1, b.1));
    }
    let (Some(a0), Some(a1), Some(b0), Some(b1)) = (a.0, a.1, b.0, b.1) else { return (None, None) };
    let corners = [a0.checked_mul(b0), a0.checked_mul(b1), a1.checked_mul(b0), a1.checked_mul(b1)];
    if corners.iter().any(Option::is_none) {
        return (None, None);
    }
    (corners.iter().flatten().min().copied(), corners.iter().flatten().max().copied())
}

fn range_of_atom(atom: &Atom, bounds: &Bounds) -> Interval {
    match atom {
        Atom::Symbol(name) => (Some(bounds.low(*name)), bounds.high(*name)),
        Atom::FloorDiv(a, b) => {
            let (low, high) = range(a, bounds);
            match range(b, bounds) {
                (Some(by), Some(same)) if by == same && by > 0 => {
                    (low.map(|low| low.div_euclid(by)), high.map(|high| high.div_euclid(by)))
                }
                (Some(by), _) if by >= 0 && low.is_some_and(|low| low >= 0) => (Some(0), high),
                _ => (None, None),
            }
        }
        Atom::FloorMod(a, b) => match range(b, bounds) {
            (Some(low), high) if low >= 0 => {
                let high = high.and_then(|high| high.checked_sub(1));
                match range(a, bounds) {
                    (Some(least), Some(most)) if least >= 0 => {
                        (Some(0), Some(high.map_or(most, |high| high.min(most))))
                    }
                    _ => (Some(0), high),
                }
            }
            _ => (None, None),
        },
        Atom::Min(a, b) => {
            let ((al, ah), (bl, bh)) = (range(a, bounds), range(b, bounds));
            (al.zip(bl).map(|(x, y)| x.min(y)), closest(ah, bh, i64::min))
        }
        Atom::Max(a, b) => {
            let ((al, ah), (bl, bh)) = (range(a, bounds), range(b, bounds));
            (closest(al, bl, i64::max), ah.zip(bh).map(|(x, y)| x.max(y)))
        }
        Atom::Opaque(..) => (None, None),
    }
}

fn closest(a: Option<i64>, b: Option<i64>, pick: fn(i64, i64) -> i64) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(pick(a, b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::name;

    fn n() -> Dim {
        Dim::symbol(name("n"))
    }
    fn m() -> Dim {
        Dim::symbol(name("m"))
    }
    fn c(value: i64) -> Dim {
        Dim::constant(value)
    }
    fn eq(a: &Dim, b: &Dim) -> Answer {
        equal(a, b, &Bounds::default())
    }

    #[test]
    fn sums_and_products_have_one_form() {
        assert_eq!(&(&n() + &m()) * &c(2), &(&m() * &c(2)) + &(&n() + &n()));
        assert_eq!(&(&n() * &m()) - &(&m() * &n()), c(0));
        assert_eq!((&n() * &c(4)).floor_div(&c(4)), n());
        assert_eq!((&(&n() * &c(4)) + &c(3)).floor_div(&c(4)), n());
        assert_eq!((&n() * &m()).floor_div(&n()), m());
        assert_eq!((&n() + &c(7)).floor_div(&n()), &c(7).floor_div(&n()) + &c(1));
        assert_eq!((&(&n() * &m()) + &c(7)).floor_mod(&n()), c(7).floor_mod(&n()));
        assert_eq!((&(&n() * &c(6)) + &c(5)).floor_mod(&c(3)), c(2));
    }

    #[test]
    fn answers_are_proved_refuted_or_open() {
        assert_eq!(eq(&n(), &(&n() + &c(1))), Answer::Refuted);
        assert_eq!(eq(&n(), &m()), Answer::Open);
        assert_eq!(eq(&(&n() * &c(2)), &(&(&m() * &c(2)) + &c(1))), Answer::Refuted);
        assert_eq!(eq(&(&n() + &c(1)), &c(0)), Answer::Refuted);
        let recomposed = &(&n().floor_div(&c(4)) * &c(4)) + &n().floor_mod(&c(4));
        assert_eq!(eq(&recomposed, &n()), Answer::Proved);
        assert_eq!(n().maximum(&c(0)), n());
    }

    #[test]
    fn overflow_is_an_error_part() {
        assert!((&c(1 << 62) * &c(4)).is_error());
        assert_eq!(eq(&(&c(1 << 62) * &c(4)), &n()), Answer::Proved);
    }
}
