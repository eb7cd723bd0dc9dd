//! Symbolic integers: the dims of shapes.
//!
//! A [`Dim`] is an integer expression over symbols, kept in a normal form: a sum of products of atoms, where an atom is
//! a symbol or a floor division, remainder, minimum, maximum or opaque call of such expressions. Equal normal forms are
//! equal functions; [`prove`] answers what the normal form alone does not. Symbols stand for extents and are ≥ 0.

mod arithmetic;
mod display;
pub mod prove;

pub use prove::{Answer, Bounds};

use crate::name::{Name, NameSet};
use std::sync::Arc;

/// The most terms a sum may have; beyond it the expression is [`Dim::ERROR`], which agrees with everything.
pub(crate) const MAX_TERMS: usize = 128;

/// An integer expression over non-negative symbols, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dim(pub(crate) Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Repr {
    Constant(i64),
    /// At least one term; a sum without terms is a constant.
    Sum(Arc<Sum>),
    /// Agrees with everything: a contradiction already reported, an overflow, or an expression too large to keep.
    Error,
}

/// `constant + Σ coefficient · product`; products ascend, no coefficient is 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Sum {
    pub(crate) terms: Vec<(Product, i64)>,
    pub(crate) constant: i64,
}

/// A product of powers; atoms ascend, exponents are ≥ 1.
pub(crate) type Product = Vec<(Atom, u32)>;

/// What sums and products are made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A symbol.
    Symbol(Name),
    /// Division rounded toward −∞.
    FloorDiv(Dim, Dim),
    /// Remainder of [`Atom::FloorDiv`], of the divisor's sign.
    FloorMod(Dim, Dim),
    /// The smaller.
    Min(Dim, Dim),
    /// The larger.
    Max(Dim, Dim),
    /// A call whose meaning is not known here, `T.if_then_else(…)` for one; equal only to itself.
    Opaque(Name, Vec<Dim>),
}

impl Dim {
    /// Agrees with everything; what a reported contradiction leaves behind.
    pub const ERROR: Dim = Dim(Repr::Error);

    /// The constant `value`.
    pub const fn constant(value: i64) -> Dim {
        Dim(Repr::Constant(value))
    }

    /// The symbol `name`.
    pub fn symbol(name: Name) -> Dim {
        Dim::atom(Atom::Symbol(name))
    }

    /// A call of unknown meaning.
    pub fn opaque(function: Name, arguments: Vec<Dim>) -> Dim {
        Dim::atom(Atom::Opaque(function, arguments))
    }

    pub(crate) fn atom(atom: Atom) -> Dim {
        Dim(Repr::Sum(Arc::new(Sum { terms: vec![(vec![(atom, 1)], 1)], constant: 0 })))
    }

    /// The value, if it is the same for all symbols.
    pub fn as_constant(&self) -> Option<i64> {
        match self.0 {
            Repr::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The symbol, if the expression is nothing but one.
    pub fn as_symbol(&self) -> Option<Name> {
        match self.as_atom()? {
            Atom::Symbol(name) => Some(*name),
            _ => None,
        }
    }

    pub(crate) fn as_atom(&self) -> Option<&Atom> {
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

    /// Calls `visit` on every symbol, repeats included.
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

    /// The expression with each symbol replaced where `of` gives a value; all at once, not one after the other.
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

impl From<i64> for Dim {
    fn from(value: i64) -> Dim {
        Dim::constant(value)
    }
}
