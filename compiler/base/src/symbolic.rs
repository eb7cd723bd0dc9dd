//! Symbolic integers: the dims of shapes.
//!
//! A [`Dim`] is an integer expression over symbols in normal form: a sum of products of atoms. An atom is a symbol, or
//! a floor division, remainder, minimum, maximum or opaque call whose operands are such expressions. For example,
//! `(n + 1) * (m + 1)` has the normal form `n * m + n + m + 1`. Dims with equal normal forms are equal for all values;
//! [`prove`] decides further questions. A symbol represents an extent and is ≥ 0.

mod arithmetic;
mod cases;
mod display;
mod extremum;
mod facts;
pub mod prove;
mod remainder;

pub use facts::Statement;
pub use prove::{Answer, Bounds};

use crate::name::{Name, NameSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The maximal number of terms of a sum. A larger expression becomes [`Dim::ERROR`], which is compatible with
/// everything.
pub(crate) const MAX_TERMS: usize = 128;

/// The maximal number of atoms of an expression, counted with nested ones and powers. A larger expression becomes
/// [`Dim::ERROR`]. Operands are shared in memory, so each step of `m = T.max(m // 2, m - 1)` doubles the printed size:
/// without a limit, printing and comparing would take exponential time.
pub(crate) const MAX_ATOMS: usize = 512;

/// An integer expression over non-negative symbols, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dim(pub(crate) Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Repr {
    Constant(i64),
    /// A sum with at least one term. A sum without terms is a constant.
    Sum(Arc<Sum>),
    /// Compatible with everything: the result of a reported contradiction, of an overflow, or of an expression that is
    /// too large.
    Error,
}

/// `constant + Σ coefficient · product`. Products ascend, no coefficient is 0, and there are at most [`MAX_ATOMS`]
/// atoms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sum {
    pub(crate) terms: Vec<(Product, i64)>,
    pub(crate) constant: i64,
    /// The number of atoms, counted with nested ones and powers. It follows from the terms.
    pub(crate) atoms: usize,
}

/// Hashes the constant, the coefficients and the first symbol of each product. Types are hashed at every call, and few
/// types differ only in the rest.
impl Hash for Sum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_i64(self.constant);
        state.write_usize(self.atoms);
        for (product, coefficient) in &self.terms {
            state.write_i64(*coefficient);
            if let Some((Atom::Symbol(symbol), _)) = product.first() {
                symbol.hash(state);
            }
        }
    }
}

/// A product of powers. Atoms ascend, exponents are ≥ 1.
pub(crate) type Product = Vec<(Atom, u32)>;

/// A factor of the products in a sum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A symbol.
    Symbol(Name),
    /// Division rounded toward −∞.
    FloorDiv(Dim, Dim),
    /// The remainder of [`Atom::FloorDiv`], with the divisor's sign.
    FloorMod(Dim, Dim),
    /// The minimum of both.
    Min(Dim, Dim),
    /// The maximum of both.
    Max(Dim, Dim),
    /// A call without known semantics, for example `T.if_then_else(…)`. It equals only an identical call.
    Opaque(Name, Vec<Dim>),
}

impl Dim {
    /// The error dim, compatible with everything, which is the result of a reported contradiction.
    pub const ERROR: Dim = Dim(Repr::Error);

    /// The first character of the name of a symbol that represents a TIR loop variable, as in `%3`.
    pub const VARIABLE: char = '%';

    /// Creates a constant.
    pub const fn constant(value: i64) -> Dim {
        Dim(Repr::Constant(value))
    }

    /// Creates a symbol.
    pub fn symbol(name: Name) -> Dim {
        Dim::atom(Atom::Symbol(name))
    }

    /// Creates a call without known semantics.
    pub fn opaque(function: Name, arguments: Vec<Dim>) -> Dim {
        Dim::atom(Atom::Opaque(function, arguments))
    }

    pub(crate) fn atom(atom: Atom) -> Dim {
        Dim::sum(vec![(vec![(atom, 1)], 1)], 0)
    }

    /// Creates the sum of `terms`, which must be sorted, and `constant`.
    pub(crate) fn sum(terms: Vec<(Product, i64)>, constant: i64) -> Dim {
        if terms.is_empty() {
            return Dim::constant(constant);
        }
        let atoms = terms.iter().flat_map(|(product, _)| product);
        let atoms = atoms
            .fold(0usize, |sum, (atom, exponent)| sum.saturating_add(atom.size().saturating_mul(*exponent as usize)));
        match terms.len() <= MAX_TERMS && atoms <= MAX_ATOMS {
            true => Dim(Repr::Sum(Arc::new(Sum { terms, constant, atoms }))),
            false => Dim::ERROR,
        }
    }

    /// The constant of the sum, which is added to [`Dim::terms`]; 0 for [`Dim::ERROR`].
    pub fn constant_part(&self) -> i64 {
        match &self.0 {
            Repr::Constant(value) => *value,
            Repr::Sum(sum) => sum.constant,
            Repr::Error => 0,
        }
    }

    /// The terms of the sum: products of atoms with their exponents, each with its coefficient.
    pub fn terms(&self) -> &[(Vec<(Atom, u32)>, i64)] {
        match &self.0 {
            Repr::Sum(sum) => &sum.terms,
            Repr::Constant(_) | Repr::Error => &[],
        }
    }

    /// The number of atoms, counted with nested ones and powers.
    pub fn atoms(&self) -> usize {
        match &self.0 {
            Repr::Sum(sum) => sum.atoms,
            Repr::Constant(_) | Repr::Error => 0,
        }
    }

    /// The value, if the expression is a constant.
    pub fn as_constant(&self) -> Option<i64> {
        match self.0 {
            Repr::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The symbol, if the expression is a single symbol.
    pub fn as_symbol(&self) -> Option<Name> {
        match self.as_atom()? {
            Atom::Symbol(name) => Some(*name),
            _ => None,
        }
    }

    /// The atom, if the expression is a single atom.
    pub fn as_atom(&self) -> Option<&Atom> {
        let Repr::Sum(sum) = &self.0 else { return None };
        match (&sum.terms[..], sum.constant) {
            ([(product, 1)], 0) => match &product[..] {
                [(atom, 1)] => Some(atom),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether this is [`Dim::ERROR`].
    pub fn is_error(&self) -> bool {
        matches!(self.0, Repr::Error)
    }

    /// Adds every symbol of the expression to `into`.
    pub fn collect_symbols(&self, into: &mut NameSet) {
        self.for_each_symbol(&mut |name| {
            into.insert(name);
        });
    }

    /// Calls `visit` on every symbol, with repetitions.
    pub fn for_each_symbol(&self, visit: &mut impl FnMut(Name)) {
        let Repr::Sum(sum) = &self.0 else { return };
        for (product, _) in &sum.terms {
            for (atom, _) in product {
                match atom {
                    Atom::Symbol(name) => visit(*name),
                    Atom::FloorDiv(a, b) | Atom::FloorMod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                        a.for_each_symbol(visit);
                        b.for_each_symbol(visit);
                    }
                    Atom::Opaque(_, arguments) => arguments.iter().for_each(|dim| dim.for_each_symbol(visit)),
                }
            }
        }
    }

    /// Replaces each symbol for which `of` returns a value, simultaneously.
    pub fn substitute(&self, of: &dyn Fn(Name) -> Option<Dim>) -> Dim {
        let Repr::Sum(sum) = &self.0 else { return self.clone() };
        let mut result = Dim::constant(sum.constant);
        for (product, coefficient) in &sum.terms {
            let mut term = Dim::constant(*coefficient);
            for (atom, exponent) in product {
                let factor = substitute_atom(atom, of);
                for _ in 0..*exponent {
                    term = &term * &factor;
                }
            }
            result = &result + &term;
        }
        result
    }
}

fn substitute_atom(atom: &Atom, of: &dyn Fn(Name) -> Option<Dim>) -> Dim {
    match atom {
        Atom::Symbol(name) => of(*name).unwrap_or_else(|| Dim::symbol(*name)),
        Atom::FloorDiv(a, b) => a.substitute(of).floor_div(&b.substitute(of)),
        Atom::FloorMod(a, b) => a.substitute(of).floor_mod(&b.substitute(of)),
        Atom::Min(a, b) => a.substitute(of).minimum(&b.substitute(of)),
        Atom::Max(a, b) => a.substitute(of).maximum(&b.substitute(of)),
        Atom::Opaque(function, arguments) => {
            Dim::opaque(*function, arguments.iter().map(|dim| dim.substitute(of)).collect())
        }
    }
}

impl Atom {
    /// The number of atoms in it, itself included.
    pub(crate) fn size(&self) -> usize {
        match self {
            Atom::Symbol(_) => 1,
            Atom::FloorDiv(a, b) | Atom::FloorMod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                1 + a.atoms() + b.atoms()
            }
            // The name of an opaque call may be the text of a whole expression, so its length counts.
            Atom::Opaque(function, arguments) => {
                arguments.iter().fold(1 + function.len() / 64, |sum, argument| sum.saturating_add(argument.atoms()))
            }
        }
    }
}

impl From<Atom> for Dim {
    fn from(atom: Atom) -> Dim {
        Dim::atom(atom)
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Dim {
        Dim::constant(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::name;

    #[test]
    fn dim_that_doubles_at_every_step_becomes_an_error() {
        let (n, m) = (Dim::symbol(name("n")), Dim::symbol(name("m")));
        let mut dim = n.clone();
        for step in 0..60 {
            dim = (&dim.floor_div(&Dim::constant(3)) * &m).maximum(&(&dim - &Dim::constant(step)));
        }
        assert!(dim.is_error());
        assert!(Dim::opaque(name("f"), vec![n; MAX_ATOMS]).is_error());
    }

    #[test]
    fn powers_are_written_out_and_count_as_such() {
        let n = Dim::symbol(name("n"));
        let power = (0..60).fold(Dim::constant(1), |power, _| &power * &n);
        assert!(!power.is_error());
        let half = power.floor_div(&Dim::constant(2));
        let power_of = |exponent: usize| (0..exponent).fold(Dim::constant(1), |power, _| &power * &half);
        assert!(!power_of(8).is_error());
        assert!(power_of(9).is_error());
    }
}
