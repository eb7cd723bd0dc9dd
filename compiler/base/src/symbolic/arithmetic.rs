//! Arithmetic on normal forms. A result that overflows `i64` is [`Dim::ERROR`].

use super::prove::{self, Bounds};
use super::{Atom, Dim, MAX_TERMS, Product, Repr, remainder};
use std::ops::{Add, Mul, Neg, Sub};

/// The terms and constant of a sum; `None` after an overflow.
type Partial = Option<(Vec<(Product, i64)>, i64)>;

fn finish(partial: Partial) -> Dim {
    partial.map_or(Dim::ERROR, |(terms, constant)| Dim::sum(terms, constant))
}

/// The terms and constant of `dim`; `None` for an error.
fn parts(dim: &Dim) -> Partial {
    match &dim.0 {
        Repr::Constant(value) => Some((Vec::new(), *value)),
        Repr::Sum(sum) => Some((sum.terms.clone(), sum.constant)),
        Repr::Error => None,
    }
}

/// Returns `a + scale · b`, by merging the two sorted lists of terms. Divisions and remainders in the sum are not
/// combined: see [`remainder`].
pub(super) fn add_scaled(a: &Dim, b: &Dim, scale: i64) -> Dim {
    if let (Repr::Constant(x), Repr::Constant(y)) = (&a.0, &b.0) {
        return y.checked_mul(scale).and_then(|y| x.checked_add(y)).map_or(Dim::ERROR, Dim::constant);
    }
    finish(merge(parts(a), parts(b), scale))
}

fn merge(a: Partial, b: Partial, scale: i64) -> Partial {
    let ((left, constant), (right, added)) = (a?, b?);
    let constant = constant.checked_add(added.checked_mul(scale)?)?;
    let mut terms = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some((x, _)), Some((y, _))) => x.cmp(y),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return Some((terms, constant)),
        };
        let (product, coefficient) = match order {
            std::cmp::Ordering::Less => left.next()?,
            std::cmp::Ordering::Greater => right.next().and_then(|(p, c)| Some((p, c.checked_mul(scale)?)))?,
            std::cmp::Ordering::Equal => {
                let ((product, x), (_, y)) = (left.next()?, right.next()?);
                (product, x.checked_add(y.checked_mul(scale)?)?)
            }
        };
        if coefficient != 0 {
            terms.push((product, coefficient));
        }
    }
}

fn multiply_products(a: &Product, b: &Product) -> Option<Product> {
    let mut result = a.clone();
    for (atom, exponent) in b {
        match result.binary_search_by(|(known, _)| known.cmp(atom)) {
            Ok(at) => result[at].1 = result[at].1.checked_add(*exponent)?,
            Err(at) => result.insert(at, (atom.clone(), *exponent)),
        }
    }
    let degree: u32 = result.iter().try_fold(0u32, |sum, (_, exponent)| sum.checked_add(*exponent))?;
    (degree <= 64).then_some(result)
}

/// Returns `a · b`, multiplied out. As in [`add_scaled`], divisions and remainders are not combined.
pub(super) fn multiply(a: &Dim, b: &Dim) -> Dim {
    match (&a.0, &b.0) {
        (Repr::Error, _) | (_, Repr::Error) => return Dim::ERROR,
        (Repr::Constant(x), Repr::Constant(y)) => return x.checked_mul(*y).map_or(Dim::ERROR, Dim::constant),
        (Repr::Constant(0), _) | (_, Repr::Constant(0)) => return Dim::constant(0),
        (Repr::Constant(1), _) => return b.clone(),
        (_, Repr::Constant(1)) => return a.clone(),
        _ => {}
    }
    let (Some((left, c)), Some((right, d))) = (parts(a), parts(b)) else { return Dim::ERROR };
    if (left.len() + 1) * (right.len() + 1) > 4 * MAX_TERMS {
        return Dim::ERROR;
    }
    let one = |constant: i64| (constant != 0).then_some((Product::new(), constant));
    let mut total = Dim::constant(0);
    for (p, x) in left.iter().cloned().chain(one(c)) {
        let mut row: Vec<(Product, i64)> = Vec::with_capacity(right.len());
        let mut constant = 0;
        for (q, y) in right.iter().cloned().chain(one(d)) {
            let (Some(product), Some(coefficient)) = (multiply_products(&p, &q), x.checked_mul(y)) else {
                return Dim::ERROR;
            };
            match product.is_empty() {
                true => constant = coefficient,
                false => row.push((product, coefficient)),
            }
        }
        row.sort();
        total = finish(merge(parts(&total), Some((row, constant)), 1));
    }
    total
}

impl Dim {
    /// Returns `self // divisor`, rounded toward −∞. Division by the constant 0 is [`Dim::ERROR`].
    pub fn floor_div(&self, divisor: &Dim) -> Dim {
        if self.is_error() || divisor.is_error() || divisor.as_constant() == Some(0) {
            return Dim::ERROR;
        }
        if let (Some(a), Some(b)) = (self.as_constant(), divisor.as_constant()) {
            return checked_floor_div(a, b).map_or(Dim::ERROR, Dim::constant);
        }
        if let Some((quotient, rest)) = split_by_product(self, divisor) {
            return match rest.as_constant() {
                Some(0) => quotient,
                _ => &quotient + &Dim::atom(Atom::FloorDiv(rest, divisor.clone())),
            };
        }
        let Some(by) = divisor.as_constant().filter(|by| *by > 0) else {
            return Dim::atom(Atom::FloorDiv(self.clone(), divisor.clone()));
        };
        let (quotient, rest) = split_by(self, by);
        if rest.as_constant() == Some(0) {
            return quotient;
        }
        let bounds = Bounds::default();
        if let (Some(low), Some(high)) = (prove::lower(&rest, &bounds), prove::upper(&rest, &bounds))
            && low >= 0
            && high < by
        {
            return quotient;
        }
        let floor = match rest.as_atom() {
            // (a // b) // c == a // (b * c) for positive b, c.
            Some(Atom::FloorDiv(a, b)) => match b.as_constant().filter(|b| *b > 0).and_then(|b| b.checked_mul(by)) {
                Some(both) => a.floor_div(&Dim::constant(both)),
                None => Dim::atom(Atom::FloorDiv(rest.clone(), divisor.clone())),
            },
            _ => reduce_fraction(&rest, by),
        };
        &quotient + &floor
    }

    /// Returns `self % divisor`, with the divisor's sign. The remainder by the constant 0 is [`Dim::ERROR`].
    pub fn floor_mod(&self, divisor: &Dim) -> Dim {
        if self.is_error() || divisor.is_error() || divisor.as_constant() == Some(0) {
            return Dim::ERROR;
        }
        if let (Some(a), Some(b)) = (self.as_constant(), divisor.as_constant()) {
            return checked_floor_div(a, b)
                .and_then(|q| a.checked_sub(q.checked_mul(b)?))
                .map_or(Dim::ERROR, Dim::constant);
        }
        if let Some((_, rest)) = split_by_product(self, divisor) {
            return match rest.as_constant() {
                Some(0) => rest,
                _ => Dim::atom(Atom::FloorMod(rest, divisor.clone())),
            };
        }
        let Some(by) = divisor.as_constant().filter(|by| *by > 0) else {
            return Dim::atom(Atom::FloorMod(self.clone(), divisor.clone()));
        };
        let (_, rest) = split_by(self, by);
        let bounds = Bounds::default();
        if let (Some(low), Some(high)) = (prove::lower(&rest, &bounds), prove::upper(&rest, &bounds))
            && low >= 0
            && high < by
        {
            return rest;
        }
        match rest.as_atom() {
            Some(Atom::FloorMod(a, b)) if b.as_constant().is_some_and(|b| b > 0 && b % by == 0) => a.floor_mod(divisor),
            _ => Dim::atom(Atom::FloorMod(rest, divisor.clone())),
        }
    }
}

fn checked_floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a.checked_rem(b)? != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// Splits `a` into `b · quotient + rest`, where `b` is a product of atoms and the quotient contains the terms that `b`
/// divides. For example, `n * m + k` by `m` is `m · n + k`. `None` if `b` is not such a product or divides no term of
/// `a`. A symbol used as a divisor is assumed to be nonzero.
fn split_by_product(a: &Dim, b: &Dim) -> Option<(Dim, Dim)> {
    if a == b {
        return Some((Dim::constant(1), Dim::constant(0)));
    }
    let Repr::Sum(divisor) = &b.0 else { return None };
    let ([(product, scale)], 0) = (&divisor.terms[..], divisor.constant) else { return None };
    let (terms, constant) = parts(a)?;
    let (mut quotient, mut whole, mut rest) = (Vec::new(), 0, Vec::new());
    for (term, coefficient) in terms {
        let divides = coefficient.checked_rem(*scale) == Some(0);
        match divide_product(&term, product).filter(|_| divides) {
            Some(left) if left.is_empty() => whole = coefficient.checked_div(*scale)?,
            Some(left) => quotient.push((left, coefficient.checked_div(*scale)?)),
            None => rest.push((term, coefficient)),
        }
    }
    if quotient.is_empty() && whole == 0 {
        return None;
    }
    quotient.sort();
    Some((finish(Some((quotient, whole))), finish(Some((rest, constant)))))
}

fn divide_product(a: &Product, b: &Product) -> Option<Product> {
    let mut result = a.clone();
    for (atom, exponent) in b {
        let at = result.binary_search_by(|(known, _)| known.cmp(atom)).ok()?;
        result[at].1 = result[at].1.checked_sub(*exponent)?;
    }
    result.retain(|(_, exponent)| *exponent > 0);
    Some(result)
}

/// Splits `dim` into `by · quotient + rest`. A term goes to the quotient if `by` divides its coefficient, otherwise to
/// the rest. The constant of the rest is in `[0, by)`.
fn split_by(dim: &Dim, by: i64) -> (Dim, Dim) {
    let Some((terms, constant)) = parts(dim) else { return (Dim::ERROR, Dim::ERROR) };
    let (mut quotient, mut rest) = (Vec::new(), Vec::new());
    for (product, coefficient) in terms {
        let (q, r) = (coefficient.div_euclid(by), coefficient.rem_euclid(by));
        // A coefficient that `by` does not divide is not split, because `(3n) // 2` is easier to read than
        // `n + n // 2`.
        if r == 0 {
            quotient.push((product, q));
        } else {
            rest.push((product, coefficient));
        }
    }
    let (q, r) = (constant.div_euclid(by), constant.rem_euclid(by));
    (finish(Some((quotient, q))), finish(Some((rest, r))))
}

/// Returns `rest // by` with the common factor of the coefficients and `by` cancelled.
fn reduce_fraction(rest: &Dim, by: i64) -> Dim {
    let Some((terms, constant)) = parts(rest) else { return Dim::ERROR };
    let common = terms.iter().fold(by, |common, (_, coefficient)| gcd(common, *coefficient));
    if common <= 1 {
        return Dim::atom(Atom::FloorDiv(rest.clone(), Dim::constant(by)));
    }
    // floor((g·x + c) / (g·d)) == floor((x + floor(c / g)) / d).
    let terms = terms.into_iter().map(|(product, coefficient)| (product, coefficient / common)).collect();
    let reduced = finish(Some((terms, constant.div_euclid(common))));
    match by / common {
        1 => reduced,
        by => Dim::atom(Atom::FloorDiv(reduced, Dim::constant(by))),
    }
}

/// The greatest common divisor, which is never negative.
pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

impl Add for &Dim {
    type Output = Dim;
    fn add(self, other: &Dim) -> Dim {
        remainder::joined(add_scaled(self, other, 1))
    }
}

impl Sub for &Dim {
    type Output = Dim;
    fn sub(self, other: &Dim) -> Dim {
        remainder::joined(add_scaled(self, other, -1))
    }
}

impl Mul for &Dim {
    type Output = Dim;
    fn mul(self, other: &Dim) -> Dim {
        remainder::joined(multiply(self, other))
    }
}

impl Neg for &Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        remainder::joined(add_scaled(&Dim::constant(0), self, -1))
    }
}
