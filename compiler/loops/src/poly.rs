//! Index arithmetic as polynomials, which show strides and loop-invariant parts of an index as it is written. Use
//! [`crate::Affine`] where ranges must be proved.

use rx_tir::{BinaryOp, BufferId, Expr, PrimFunc, UnaryOp, VarId};

/// An indeterminate of a polynomial.
#[derive(Clone, Debug, PartialEq)]
pub enum Atom {
    /// A variable.
    Var(VarId),
    /// An integer expression of another form, such as a quotient, a load or a checked index.
    Opaque(Expr),
}

impl Atom {
    /// Whether the value depends on the variable.
    pub fn uses(&self, var: VarId) -> bool {
        match self {
            Atom::Var(own) => *own == var,
            Atom::Opaque(expr) => expr.uses(var),
        }
    }
}

/// A sum of products of atoms with integer coefficients, such as `n·i + 2·j + 3`. The arithmetic is that of the
/// integers, as in proofs about index ranges. So an index must not be computed in a type narrower than `int64`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Poly {
    /// The products with their coefficients. The empty product is the constant term.
    pub terms: Vec<(Vec<Atom>, i64)>,
}

/// The maximum number of terms of a polynomial.
const MOST_TERMS: usize = 128;

/// The change of an address from one iteration of a loop to the next.
#[derive(Clone, Debug, PartialEq)]
pub enum Stride {
    /// The address does not depend on the loop.
    Invariant,
    /// The address moves by this number of elements.
    Constant(i64),
    /// The address moves in another way, for example by a symbolic number of elements.
    Other,
}

impl Poly {
    /// Creates a constant polynomial.
    pub fn constant(value: i64) -> Poly {
        Poly { terms: vec![(Vec::new(), value)] }
    }

    fn atom(atom: Atom) -> Poly {
        Poly { terms: vec![(vec![atom], 1)] }
    }

    /// Converts an integer expression to a polynomial. Returns `None` if a coefficient overflows or there are too many
    /// terms.
    pub fn of(expr: &Expr) -> Option<Poly> {
        match expr {
            Expr::Int { value, .. } => Some(Poly::constant(*value)),
            Expr::Var { var, .. } => Some(Poly::atom(Atom::Var(*var))),
            // Widening keeps the value. Other casts are opaque atoms.
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

    /// Adds two polynomials. Returns `None` on overflow or if there are too many terms.
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
            // A product of n sums of two terms has up to 2ⁿ terms.
            None if coefficient != 0 && self.terms.len() >= MOST_TERMS => return None,
            None if coefficient != 0 => self.terms.push((atoms, coefficient)),
            None => {}
        }
        Some(())
    }

    /// Multiplies two polynomials. Returns `None` on overflow or if there are too many terms.
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

    /// Returns the flat index of an element in a dense row-major buffer. Returns `None` on overflow or if there are too
    /// many terms.
    pub fn element(func: &PrimFunc, buffer: BufferId, indices: &[Expr]) -> Option<Poly> {
        let mut flat = Poly::default();
        for (extent, index) in func.buffer(buffer).shape.iter().zip(indices) {
            flat = flat.times(&Poly::of(extent)?)?.plus(&Poly::of(index)?)?;
        }
        Some(flat)
    }

    /// Returns the stride of the polynomial in the variable.
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

/// Whether both are integer dtypes and every value of `from` is a value of `to`.
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
