//! Index arithmetic as polynomials, which show strides and invariant parts. [`crate::Affine`] is the form for which ranges are proved.

use rx_tir::{BinaryOp, BufferId, Expr, PrimFunc, UnaryOp, VarId};

/// What a polynomial is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Atom {
    /// A variable.
    Var(VarId),
    /// An integer expression of another form: a quotient, a load, a guarded index.
    Opaque(Expr),
}

impl Atom {
    /// Whether its value depends on the variable.
    pub fn uses(&self, var: VarId) -> bool {
        match self {
            Atom::Var(own) => *own == var,
            Atom::Opaque(expr) => expr.uses(var),
        }
    }
}

/// A sum of products of atoms, each with a coefficient. Arithmetic is that of the integers: it is what proofs about index
/// ranges speak of, so an index is never computed in a narrower type than `int64`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Poly {
    /// The products; the empty one is the constant.
    pub terms: Vec<(Vec<Atom>, i64)>,
}

/// The most terms of a polynomial.
const MOST_TERMS: usize = 128;

/// How an address moves with a loop's variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Stride {
    /// Not at all.
    Invariant,
    /// By this many elements.
    Constant(i64),
    /// In another way.
    Other,
}

impl Poly {
    /// A constant.
    pub fn constant(value: i64) -> Poly {
        Poly { terms: vec![(Vec::new(), value)] }
    }

    fn atom(atom: Atom) -> Poly {
        Poly { terms: vec![(vec![atom], 1)] }
    }

    /// The polynomial that an integer expression is; `None` where coefficients overflow, or there are too many terms.
    pub fn of(expr: &Expr) -> Option<Poly> {
        match expr {
            Expr::Int { value, .. } => Some(Poly::constant(*value)),
            Expr::Var { var, .. } => Some(Poly::atom(Atom::Var(*var))),
            // Widening keeps the value. Narrowing may not, but an index it changes was out of range before.
            Expr::Cast { dtype, value } if widens(value.dtype(), *dtype) => Poly::of(value),
            Expr::Unary { op: UnaryOp::Neg, value } => Poly::of(value)?.times(&Poly::constant(-1)),
            Expr::Binary { op: BinaryOp::Add, left, right } => Poly::of(left)?.plus(&Poly::of(right)?),
            Expr::Binary { op: BinaryOp::Sub, left, right } => {
                Poly::of(left)?.plus(&Poly::of(right)?.times(&Poly::constant(-1))?)
            }
            Expr::Binary { op: BinaryOp::Mul, left, right } => Poly::of(left)?.times(&Poly::of(right)?),
            other => Some(Poly::atom(Atom::Opaque(other.clone()))),
        }
    }

    /// The sum; `None` on overflow, or of too many terms.
    pub fn plus(mut self, other: &Poly) -> Option<Poly> {
        for (atoms, coefficient) in &other.terms {
            self.add(atoms.clone(), *coefficient)?;
        }
        Some(self)
    }

    fn add(&mut self, atoms: Vec<Atom>, coefficient: i64) -> Option<()> {
        match self.terms.iter().position(|(own, _)| same_product(own, &atoms)) {
            Some(at) => {
                let sum = self.terms[at].1.checked_add(coefficient)?;
                self.terms[at].1 = sum;
                if sum == 0 {
                    self.terms.swap_remove(at);
                }
            }
            // A product of n sums has 2ⁿ terms.
            None if coefficient != 0 && self.terms.len() >= MOST_TERMS => return None,
            None if coefficient != 0 => self.terms.push((atoms, coefficient)),
            None => {}
        }
        Some(())
    }

    /// The product; `None` on overflow, or of too many terms.
    pub fn times(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let atoms = left.iter().chain(right).cloned().collect();
                product.add(atoms, a.checked_mul(*b)?)?;
            }
        }
        Some(product)
    }

    /// The element that indices name in a dense row-major buffer, counted from its first.
    pub fn element(func: &PrimFunc, buffer: BufferId, indices: &[Expr]) -> Option<Poly> {
        let mut flat = Poly::default();
        for (extent, index) in func.buffer(buffer).shape.iter().zip(indices) {
            flat = flat.times(&Poly::of(extent)?)?.plus(&Poly::of(index)?)?;
        }
        Some(flat)
    }

    /// How it moves with the variable.
    pub fn stride(&self, var: VarId) -> Stride {
        let mut stride = 0;
        for (atoms, coefficient) in &self.terms {
            match &atoms[..] {
                [Atom::Var(own)] if *own == var => stride = *coefficient,
                atoms if atoms.iter().any(|atom| atom.uses(var)) => return Stride::Other,
                _ => {}
            }
        }
        if stride == 0 { Stride::Invariant } else { Stride::Constant(stride) }
    }
}

/// Whether every value of an integer dtype is one of another.
pub fn widens(from: rx_base::DType, to: rx_base::DType) -> bool {
    use rx_base::dtype::TypeCode::{Int, UInt};
    match (from.code, to.code) {
        (Int, Int) | (UInt, UInt) => from.bits <= to.bits,
        (UInt, Int) => from.bits < to.bits,
        _ => false,
    }
}

fn same_product(left: &[Atom], right: &[Atom]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut rest: Vec<&Atom> = right.iter().collect();
    left.iter().all(|atom| match rest.iter().position(|other| *other == atom) {
        Some(at) => {
            rest.swap_remove(at);
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{Poly, Stride};
    use rx_base::dtype::DType;
    use rx_base::name::name;
    use rx_tir::{Buffer, Expr, PrimFunc, Scope};

    #[test]
    fn strides_of_a_symbolic_matrix() {
        let mut func = PrimFunc::new(name("f"));
        let [i, j, n] = ["i", "j", "n"].map(|text| func.add_var(name(text), DType::INT64));
        let var = |var| Expr::Var { var, dtype: DType::INT64 };
        let shape = vec![Expr::int(4), var(n)];
        let buffer =
            Buffer { name: name("A"), dtype: DType::FLOAT32, shape, strides: None, order: None, scope: Scope::Global };
        let buffer = func.add_buffer(buffer);
        let indices = [var(i) + Expr::int(1), var(j) * Expr::int(2) + Expr::int(3)];
        let Some(element) = Poly::element(&func, buffer, &indices) else { panic!("no overflow") };
        assert_eq!(element.stride(j), Stride::Constant(2));
        assert_eq!(element.stride(i), Stride::Other);
        assert_eq!(element.terms.len(), 4, "i·n + n + 2·j + 3: {element:?}");
    }
}
