//! A prover for `dim >= 0`: it eliminates variables by the bounds of their ranges, innermost first, as in
//! Fourier-Motzkin elimination.
//!
//! For example, with `i` in `0..n` and `j` in `0..4`:
//!
//! ```text
//! 4 * n - 1 - (4 * i + j)  >=  4 * n - 1 - (4 * i + 3)  >=  4 * n - 1 - (4 * (n - 1) + 3)  =  0
//! ```

use crate::scope::Scope;
use rx_base::symbolic::{Atom, prove};
use rx_base::{Dim, Name};
use rx_tir::Expr;

/// The maximum number of dims that a proof attempt without facts visits. All attempts with one fact share a limit of
/// four times as many dims, and all attempts with two facts share another limit of that size. Successful proofs visit
/// few dims; the limits bound unsuccessful ones.
const STEPS: usize = 96;

/// The maximum number of dims in one question, with all nested proofs. A long dim counts as several ([`ATOMS`]).
const WORK: usize = 8192;

/// A dim counts 1 against [`WORK`], and 1 more for each of this many atoms in it.
const ATOMS: usize = 16;

/// The maximum depth of case distinctions and replacements.
const DEPTH: usize = 24;

/// The maximum nesting depth of proofs. A proof about a selection converts its condition and branches, which needs
/// other proofs.
const NESTED: usize = 2;

impl Scope {
    /// Whether the dim is proved not to be negative. Returns `false` for the error dim.
    pub fn not_negative(&mut self, dim: &Dim) -> bool {
        if let Some(value) = dim.as_constant() {
            return value >= 0;
        }
        if dim.is_error() {
            return false;
        }
        if self.nested >= NESTED {
            return prove::lower(dim, &self.bounds).is_some_and(|low| low >= 0);
        }
        let outermost = self.nested == 0;
        if outermost {
            if let Some(known) = self.answers.get(dim) {
                return *known;
            }
            self.work = WORK;
        }
        self.nested += 1;
        let proved = self.proves(dim);
        self.nested -= 1;
        if outermost {
            self.answers.insert(dim.clone(), proved);
        }
        proved
    }

    fn proves(&mut self, dim: &Dim) -> bool {
        let mut steps = STEPS;
        if self.eliminate(dim, &mut steps, DEPTH) {
            return true;
        }
        // If `dim - fact` is not negative for a known nonnegative fact, neither is `dim`. One fact is tried, then two.
        let facts: Vec<Dim> = self.facts.iter().rev().filter(|fact| related(fact, dim)).cloned().collect();
        let mut steps = 4 * STEPS;
        let rests: Vec<Dim> = facts.iter().map(|fact| dim - fact).collect();
        if rests.iter().any(|rest| self.eliminate(rest, &mut steps, DEPTH)) {
            return true;
        }
        let mut steps = 4 * STEPS;
        rests.iter().enumerate().any(|(at, rest)| {
            facts
                .iter()
                .skip(at)
                .any(|fact| self.burn() && related(fact, rest) && self.eliminate(&(rest - fact), &mut steps, DEPTH))
        })
    }

    /// Proves `dim >= 0` by replacing variables, quotients and remainders by their bounds, and minima, maxima and
    /// selections by the values of their cases, one after the other.
    fn eliminate(&mut self, dim: &Dim, steps: &mut usize, depth: usize) -> bool {
        if dim.is_error() || *steps == 0 || self.work == 0 || depth == 0 || !self.burn() {
            return false;
        }
        *steps -= 1;
        // A long dim counts as several short ones.
        self.work = self.work.saturating_sub(1 + dim.atoms() / ATOMS);
        match prove::lower(dim, &self.bounds) {
            Some(low) if low >= 0 => return true,
            _ if dim.as_constant().is_some() => return false,
            _ => {}
        }
        let ranges = &self.ranges;
        let variable = ranges.iter().rev().find(|(symbol, _)| {
            let atom = Atom::Symbol(*symbol);
            is_linear(dim, &atom) && !inside_atoms(dim, *symbol)
        });
        if let Some((symbol, last)) = variable.cloned() {
            let (coefficient, rest) = take(dim, &Atom::Symbol(symbol));
            let Some(rising) = self.sign(&coefficient) else { return false };
            let replaced = if rising { rest } else { &rest + &(&coefficient * &last) };
            return self.eliminate(&replaced, steps, depth - 1);
        }
        let compound: Vec<Atom> = compound_atoms(dim);
        compound.iter().any(|atom| self.replace(dim, atom, steps, depth))
    }

    /// Whether `dim >= 0` is proved by replacing `atom` by its bounds or by the values of its cases.
    fn replace(&mut self, dim: &Dim, atom: &Atom, steps: &mut usize, depth: usize) -> bool {
        let (coefficient, rest) = take(dim, atom);
        let Some(rising) = self.sign(&coefficient) else { return false };
        let with = |value: &Dim| &rest + &(&coefficient * value);
        let one = Dim::constant(1);
        match atom {
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let (first, second) = (with(a), with(b));
                let both = matches!(atom, Atom::Min(..)) == rising;
                match self.eliminate(&first, steps, depth - 1) {
                    true if both => self.eliminate(&second, steps, depth - 1),
                    false if !both => self.eliminate(&second, steps, depth - 1),
                    answer => answer,
                }
            }
            Atom::FloorMod(a, b) if self.at_least_one(b) => {
                let bound = if rising { Dim::constant(0) } else { b - &one };
                let written_out = a - &(b * &a.floor_div(b));
                self.eliminate(&with(&bound), steps, depth - 1)
                    || !rising && self.eliminate(a, steps, depth - 1) && self.eliminate(&with(a), steps, depth - 1)
                    || self.eliminate(&with(&written_out), steps, depth - 1)
            }
            Atom::FloorDiv(a, b) if self.at_least_one(b) => {
                // With `q = a // b`, `b·q <= a <= b·q + b - 1`. The goal is multiplied by `b`: an integer `x` is not
                // negative if `b·x > -b`.
                let dividend = if rising { &(a - b) + &one } else { a.clone() };
                let scaled = &(&(b * &rest) + &(&coefficient * &dividend)) + &(b - &one);
                self.eliminate(&scaled, steps, depth - 1)
            }
            Atom::Opaque(..) => {
                let Some(Expr::Select { condition, then, otherwise }) = self.opaque_expr(atom).cloned() else {
                    return false;
                };
                [(then, true), (otherwise, false)].into_iter().all(|(value, holds)| {
                    let mark = self.mark();
                    self.assume_condition(&condition, holds);
                    let value = self.dim(&value);
                    let goal = &rest + &(&coefficient * &value);
                    let facts: Vec<Dim> = self.facts.iter().skip(mark.facts).cloned().collect();
                    let proved = self.eliminate(&goal, steps, depth - 1)
                        || facts.iter().any(|fact| self.eliminate(&(&goal - fact), steps, depth - 1));
                    self.leave(mark);
                    proved
                })
            }
            _ => false,
        }
    }

    fn at_least_one(&self, dim: &Dim) -> bool {
        prove::lower(dim, &self.bounds).is_some_and(|low| low >= 1)
    }

    /// Returns `true` if the dim is never negative, `false` if it is never positive, and `None` if neither is known.
    fn sign(&self, dim: &Dim) -> Option<bool> {
        if prove::lower(dim, &self.bounds).is_some_and(|low| low >= 0) {
            return Some(true);
        }
        prove::upper(dim, &self.bounds).is_some_and(|high| high <= 0).then_some(false)
    }
}

/// Whether the atom occurs in the dim, and only to the power 1.
fn is_linear(dim: &Dim, atom: &Atom) -> bool {
    let mut exponents = dim.terms().iter().flat_map(|(product, _)| product).filter(|(known, _)| known == atom);
    let found = exponents.next();
    found.is_some_and(|(_, exponent)| *exponent == 1) && exponents.all(|(_, exponent)| *exponent == 1)
}

/// Whether the symbol occurs inside an atom that is not a symbol, such as a quotient or a minimum.
pub(crate) fn inside_atoms(dim: &Dim, symbol: Name) -> bool {
    let mut found = false;
    for (product, _) in dim.terms() {
        for (atom, _) in product {
            if !matches!(atom, Atom::Symbol(_)) {
                Dim::from(atom.clone()).for_each_symbol(&mut |known| found |= known == symbol);
            }
        }
    }
    found
}

/// Returns the atoms that are not symbols and occur only to the power 1.
fn compound_atoms(dim: &Dim) -> Vec<Atom> {
    let mut atoms: Vec<Atom> = Vec::new();
    for (product, _) in dim.terms() {
        for (atom, _) in product {
            if !matches!(atom, Atom::Symbol(_)) && !atoms.contains(atom) && is_linear(dim, atom) {
                atoms.push(atom.clone());
            }
        }
    }
    atoms
}

/// Splits `dim = coefficient · atom + rest`, for an atom that occurs only to the power 1.
pub(crate) fn take(dim: &Dim, atom: &Atom) -> (Dim, Dim) {
    let (mut coefficient, mut rest) = (Dim::constant(0), Dim::constant(dim.constant_part()));
    for (product, scale) in dim.terms() {
        let mut factors = Dim::constant(*scale);
        let mut found = false;
        for (factor, exponent) in product {
            if factor == atom {
                found = true;
                continue;
            }
            let factor = Dim::from(factor.clone());
            for _ in 0..*exponent {
                factors = &factors * &factor;
            }
        }
        if found { coefficient = &coefficient + &factors } else { rest = &rest + &factors }
    }
    (coefficient, rest)
}

/// Whether two dims share an atom, so that their difference may be simpler than both.
fn related(a: &Dim, b: &Dim) -> bool {
    let atoms = |dim: &Dim| -> Vec<Atom> {
        dim.terms().iter().flat_map(|(product, _)| product).map(|(atom, _)| atom.clone()).collect()
    };
    let of_b = atoms(b);
    atoms(a).iter().any(|atom| of_b.contains(atom))
}
