//! Proofs of divisibility: that an integer is a multiple of a constant for all values of its symbols, or if certain
//! other integers are multiples, which the caller checks at run time. Not all multiples are proved: for example,
//! `n * (n + 1)` is always even, but this is not found.

use rx_base::Dim;
use rx_base::symbolic::Atom;

/// The multiples of a constant, with a list of integers that are assumed to be multiples. For example, a kernel that
/// loads vectors of 8 may assume `n % 8 == 0`, and is launched only if that holds.
#[derive(Clone, Debug)]
pub struct Multiples {
    of: i64,
    given: Vec<(Dim, Rest)>,
}

/// The remainder of an integer modulo the constant: its terms that are not known to be multiples, and its constant
/// part.
#[derive(Clone, Debug, PartialEq)]
struct Rest {
    terms: Vec<(Vec<(Atom, u32)>, i64)>,
    constant: i64,
}

impl Multiples {
    /// Creates the multiples of a positive number, without assumptions.
    pub fn of(number: i64) -> Multiples {
        Multiples { of: number.max(1), given: Vec::new() }
    }

    /// Returns the constant whose multiples these are.
    pub fn number(&self) -> i64 {
        self.of
    }

    /// Returns the assumed integers. A caller that relies on [`Multiples::has`] must check at run time that they are
    /// multiples.
    pub fn given(&self) -> impl Iterator<Item = &Dim> {
        self.given.iter().map(|(dim, _)| dim)
    }

    /// Whether the integer is proved to be a multiple for all values of symbols, under the assumptions.
    pub fn has(&self, dim: &Dim) -> bool {
        let rest = self.rest(dim);
        !dim.is_error() && rest.constant == 0 && rest.terms.is_empty()
    }

    /// Assumes that the integer is a multiple. Returns `false`, and adds no assumption, for the error dim, and if under
    /// the other assumptions its remainder is a constant other than 0.
    pub fn assume(&mut self, dim: &Dim) -> bool {
        let rest = self.rest(dim);
        if dim.is_error() || rest.terms.is_empty() {
            return !dim.is_error() && rest.constant == 0;
        }
        self.given.push((dim.clone(), rest));
        true
    }

    fn rest(&self, dim: &Dim) -> Rest {
        let is_left = |(product, coefficient): &&(Vec<(Atom, u32)>, i64)| {
            coefficient % self.of != 0 && !self.given.iter().any(|(_, given)| given.divides(product, *coefficient))
        };
        let of = |coefficient: i64| coefficient.rem_euclid(self.of);
        let terms = dim.terms().iter().filter(is_left).map(|(product, factor)| (product.clone(), of(*factor)));
        let rest = Rest { terms: terms.collect(), constant: of(dim.constant_part()) };
        if self.given.iter().any(|(_, given)| *given == rest) { Rest { terms: Vec::new(), constant: 0 } } else { rest }
    }
}

impl Rest {
    /// Whether the remainder is one term without constant that divides the term `coefficient · product`.
    fn divides(&self, product: &[(Atom, u32)], coefficient: i64) -> bool {
        let [(own, factor)] = &self.terms[..] else { return false };
        let has = |(atom, exponent): &(Atom, u32)| product.iter().any(|(one, often)| one == atom && often >= exponent);
        self.constant == 0 && coefficient % factor == 0 && own.iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::Multiples;
    use rx_base::Dim;
    use rx_base::name::name;

    fn symbol(text: &str) -> Dim {
        Dim::symbol(name(text))
    }

    #[test]
    fn multiples_for_any_values_need_no_assumption() {
        let (n, m) = (symbol("n"), symbol("m"));
        let eights = Multiples::of(8);
        assert!(eights.has(&Dim::constant(64)) && !eights.has(&Dim::constant(12)));
        assert!(eights.has(&(&(&n * &Dim::constant(8)) + &Dim::constant(16))));
        assert!(eights.has(&(&n.floor_div(&Dim::constant(8)) * &Dim::constant(8))));
        assert!(!eights.has(&(&n * &m)) && !eights.has(&Dim::ERROR));
        assert!(Multiples::of(1).has(&n));
    }

    #[test]
    fn products_of_an_assumed_multiple_are_multiples() {
        let (n, m) = (symbol("n"), symbol("m"));
        let mut eights = Multiples::of(8);
        assert!(eights.assume(&n));
        assert!(eights.has(&n) && eights.has(&(&n * &m)) && eights.has(&(&(&n * &n) + &Dim::constant(8))));
        assert!(!eights.has(&m) && !eights.has(&(&n + &m)));
        // `n` and `n + 1` cannot both be multiples of 8.
        assert!(!eights.assume(&(&n + &Dim::constant(1))));
        assert_eq!(eights.given().count(), 1);
    }

    #[test]
    fn assumed_factor_makes_a_product_a_multiple() {
        let (n, m) = (symbol("n"), symbol("m"));
        let mut eights = Multiples::of(8);
        assert!(eights.assume(&(&n * &Dim::constant(4))));
        assert!(eights.has(&(&(&n * &m) * &Dim::constant(4))) && !eights.has(&(&n * &Dim::constant(2))));
    }

    #[test]
    fn assumed_sum_is_recognized() {
        let (n, m) = (symbol("n"), symbol("m"));
        let mut fours = Multiples::of(4);
        let sum = &n + &m;
        assert!(fours.assume(&sum));
        assert!(fours.has(&(&sum + &Dim::constant(4))) && !fours.has(&n));
    }
}
