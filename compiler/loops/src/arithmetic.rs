//! Conversion between integer expressions and symbolic integers ([`Dim`]), as methods of [`Scope`].

use crate::scope::{Scope, is_signed, symbol_of};
use rx_base::name::name;
use rx_base::symbolic::{Atom, prove};
use rx_base::{DType, Dim};
use rx_tir::expr::{BinaryOp, Expr, UnaryOp};
use rx_tir::func::VarId;

impl Scope {
    /// Converts an expression to a symbolic integer. An expression that is not index arithmetic becomes an opaque atom,
    /// so the result is never the error dim.
    pub fn dim(&mut self, expr: &Expr) -> Dim {
        match self.integer(expr) {
            Some(dim) => dim,
            None => self.opaque_dim(expr),
        }
    }

    /// Converts as [`Scope::dim`] does, but only expressions of integer dtypes. Arithmetic of unsigned dtypes, which
    /// wraps around, becomes an opaque atom. Returns `None` for other dtypes, for `uint64` constants above
    /// `i64::MAX`, and for casts from either.
    pub(crate) fn integer(&mut self, expr: &Expr) -> Option<Dim> {
        let dtype = expr.dtype();
        if !dtype.is_int() {
            return None;
        }
        if let Some(value) = expr.as_int() {
            return (dtype != DType::UINT64 || value >= 0).then(|| Dim::constant(value));
        }
        let dim = match expr {
            Expr::Var { var, .. } => Some(self.variable(*var, dtype)),
            Expr::Checked { index, .. } => self.integer(index),
            Expr::Cast { value, .. } => {
                // A value that may have wrapped around differs from the integer that its operands compute.
                let inner = self.integer(value)?;
                (self.fits(&inner, value.dtype()) && self.fits(&inner, dtype)).then_some(inner)
            }
            Expr::Unary { op: UnaryOp::Neg, value } if is_signed(dtype) => self.integer(value).map(|dim| -&dim),
            Expr::Binary { op, left, right } if is_signed(dtype) => self.binary(*op, left, right, dtype),
            _ => None,
        };
        Some(dim.filter(|dim| !dim.is_error()).unwrap_or_else(|| self.opaque_dim(expr)))
    }

    fn variable(&mut self, var: VarId, dtype: DType) -> Dim {
        if let Some(value) = self.values.get(&var) {
            return value.clone();
        }
        let symbol = symbol_of(var);
        self.meanings.entry(symbol).or_insert(Expr::Var { var, dtype });
        if self.extents.contains(&var) { Dim::symbol(symbol) } else { Dim::opaque(symbol, Vec::new()) }
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, dtype: DType) -> Option<Dim> {
        let (a, b) = (self.integer(left)?, self.integer(right)?);
        match op {
            BinaryOp::Add => return Some(recombined(&a + &b)),
            BinaryOp::Sub => return Some(recombined(&a - &b)),
            BinaryOp::Mul => return Some(&a * &b),
            _ => {}
        }
        // Wraparound commutes with `+`, `-` and `*`, but not with the operations below, so the operands must fit their
        // dtype.
        if !self.fits(&a, dtype) || !self.fits(&b, dtype) {
            return None;
        }
        match op {
            BinaryOp::Min => Some(self.smaller(&a, &b)),
            BinaryOp::Max => Some(-&self.smaller_negated(&a, &b)),
            BinaryOp::FloorDiv if self.is_positive(&b) => Some(self.quotient(&a, &b)),
            BinaryOp::FloorMod if self.is_positive(&b) => Some(self.remainder(&a, &b)),
            BinaryOp::TruncDiv | BinaryOp::Div if self.is_positive(&b) && self.not_negative(&a) => {
                Some(self.quotient(&a, &b))
            }
            BinaryOp::TruncMod if self.is_positive(&b) && self.not_negative(&a) => Some(self.remainder(&a, &b)),
            _ => None,
        }
    }

    fn smaller(&mut self, a: &Dim, b: &Dim) -> Dim {
        let difference = b - a;
        if self.not_negative(&difference) {
            return a.clone();
        }
        if self.not_negative(&-&difference) {
            return b.clone();
        }
        a.minimum(b)
    }

    /// Returns `-max(a, b)`.
    fn smaller_negated(&mut self, a: &Dim, b: &Dim) -> Dim {
        let difference = a - b;
        if self.not_negative(&difference) {
            return -a;
        }
        if self.not_negative(&-&difference) {
            return -b;
        }
        -&a.maximum(b)
    }

    fn quotient(&mut self, a: &Dim, b: &Dim) -> Dim {
        let dim = a.floor_div(b);
        self.settle(dim)
    }

    fn remainder(&mut self, a: &Dim, b: &Dim) -> Dim {
        let dim = a.floor_mod(b);
        self.settle(dim)
    }

    /// Simplifies quotients and remainders whose dividend is proved to lie in `[0, divisor)`: `a // b` becomes 0 and
    /// `a % b` becomes `a`.
    fn settle(&mut self, dim: Dim) -> Dim {
        let mut settled = dim.clone();
        for (product, coefficient) in dim.terms() {
            let [(atom @ (Atom::FloorDiv(a, b) | Atom::FloorMod(a, b)), 1)] = &product[..] else { continue };
            let last = &(b - a) - &Dim::constant(1);
            if self.not_negative(a) && self.not_negative(&last) {
                let scale = Dim::constant(*coefficient);
                settled = &settled - &(&Dim::from(atom.clone()) * &scale);
                if matches!(atom, Atom::FloorMod(..)) {
                    settled = &settled + &(a * &scale);
                }
            }
        }
        settled
    }

    fn is_positive(&mut self, dim: &Dim) -> bool {
        self.not_negative(&(dim - &Dim::constant(1)))
    }

    /// Whether every value of the dim is proved to be a value of the dtype. For `int64` this is assumed, and in a scope
    /// for checks ([`Scope::for_checks`]) for all dtypes.
    pub(crate) fn fits(&self, dim: &Dim, dtype: DType) -> bool {
        if !self.wraps {
            return true;
        }
        if dtype.bits >= 64 {
            return is_signed(dtype) || prove::lower(dim, &self.bounds).is_some_and(|low| low >= 0);
        }
        let bits = u32::from(dtype.bits);
        let (least, most) = match is_signed(dtype) {
            true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            false => (0, (1i64 << bits) - 1),
        };
        // A variable, extent or loaded element is a value of its dtype. The result of arithmetic on them may not be.
        let whole = matches!(dim.terms(), [(product, 1)] if dim.constant_part() == 0 && matches!(product[..],
            [(Atom::Symbol(_) | Atom::Opaque(..), 1)]));
        let inside = prove::lower(dim, &self.bounds).is_some_and(|low| low >= least)
            && prove::upper(dim, &self.bounds).is_some_and(|high| high <= most);
        inside || whole && self.has_dtype(dim, dtype)
    }

    fn has_dtype(&self, dim: &Dim, dtype: DType) -> bool {
        self.meaning_of(dim).is_some_and(|expr| expr.dtype() == dtype)
    }

    fn meaning_of(&self, dim: &Dim) -> Option<&Expr> {
        let [(product, 1)] = dim.terms() else { return None };
        match &product[..] {
            [(Atom::Symbol(symbol), 1)] => self.meanings.get(symbol),
            [(atom, 1)] => self.opaque_expr(atom),
            _ => None,
        }
    }

    /// Creates an opaque atom. Equal expressions share an atom if their value cannot change between evaluations.
    /// Otherwise each occurrence gets a separate atom.
    fn opaque_dim(&mut self, expr: &Expr) -> Dim {
        let stable = self.is_stable(expr);
        if stable && let Some((_, dim)) = self.opaque.iter().find(|(known, _)| known == expr) {
            return dim.clone();
        }
        self.unknown += 1;
        let symbol = name(&format!("%e{}", self.unknown));
        let dim = Dim::opaque(symbol, Vec::new());
        self.meanings.insert(symbol, expr.clone());
        if stable {
            self.opaque.push((expr.clone(), dim.clone()));
        }
        dim
    }

    /// Whether the expression has the same value at every evaluation with the same variables, because it reads no
    /// buffer that the function writes.
    fn is_stable(&self, expr: &Expr) -> bool {
        !expr.any(&|part| matches!(part, Expr::Load { buffer, .. } if self.written.contains(buffer)))
    }

    /// Returns the expression that an opaque atom represents.
    pub(crate) fn opaque_expr(&self, atom: &Atom) -> Option<&Expr> {
        match atom {
            Atom::Opaque(symbol, _) => self.meanings.get(symbol),
            _ => None,
        }
    }

    /// Converts a symbolic integer to an expression of a dtype. Returns `None`, for example, for the error dim, or if a
    /// symbol is unknown in this scope.
    pub fn expr(&self, dim: &Dim, dtype: DType) -> Option<Expr> {
        if dim.is_error() {
            return None;
        }
        let representable = |value: i64| dtype.bits >= 64 || self.fits(&Dim::constant(value), dtype);
        if !representable(dim.constant_part()) || !dim.terms().iter().all(|(_, scale)| representable(*scale)) {
            return None;
        }
        let constant = |value: i64| Expr::Int { value, dtype };
        let mut sum: Option<Expr> = None;
        // Positive terms come first, which yields `a - b` and not `-b + a`.
        let (positive, negative): (Vec<_>, Vec<_>) = dim.terms().iter().partition(|(_, coefficient)| *coefficient > 0);
        for (product, coefficient) in positive.into_iter().chain(negative) {
            let mut factors: Option<Expr> = None;
            for (atom, exponent) in product {
                let factor = self.atom_expr(atom, dtype)?;
                for _ in 0..*exponent {
                    factors = Some(match factors {
                        Some(factors) => factors * factor.clone(),
                        None => factor.clone(),
                    });
                }
            }
            let factors = factors?;
            sum = Some(match sum {
                Some(sum) if *coefficient < 0 => sum - factors * constant(coefficient.checked_neg()?),
                Some(sum) => sum + factors * constant(*coefficient),
                None => factors * constant(*coefficient),
            });
        }
        Some(match (sum, dim.constant_part()) {
            (None, value) => constant(value),
            (Some(sum), 0) => sum,
            (Some(sum), value) if value < 0 => sum - constant(value.checked_neg()?),
            (Some(sum), value) => sum + constant(value),
        })
    }

    fn atom_expr(&self, atom: &Atom, dtype: DType) -> Option<Expr> {
        let both = |a: &Dim, b: &Dim| Some((self.expr(a, dtype)?, self.expr(b, dtype)?));
        Some(match atom {
            Atom::Symbol(symbol) | Atom::Opaque(symbol, _) => self.meanings.get(symbol)?.clone().cast(dtype),
            Atom::FloorDiv(a, b) => both(a, b).map(|(a, b)| a.floor_div(b))?,
            Atom::FloorMod(a, b) => both(a, b).map(|(a, b)| a.floor_mod(b))?,
            Atom::Min(a, b) => both(a, b).map(|(a, b)| a.min(b))?,
            Atom::Max(a, b) => both(a, b).map(|(a, b)| a.max(b))?,
        })
    }
}

/// Rewrites `a // b * b + a % b` to `a`: replaces each `a % b` by `a - a // b * b` where the sum then has fewer atoms.
fn recombined(dim: Dim) -> Dim {
    let mut sum = dim.clone();
    for (product, coefficient) in dim.terms() {
        let [(Atom::FloorMod(a, b), 1)] = &product[..] else { continue };
        let scale = Dim::constant(*coefficient);
        let remainder = &Dim::from(Atom::FloorMod(a.clone(), b.clone())) * &scale;
        let written_out = &(a - &(b * &a.floor_div(b))) * &scale;
        let other = &(&sum - &remainder) + &written_out;
        if !other.is_error() && other.atoms() < sum.atoms() {
            sum = other;
        }
    }
    sum
}
