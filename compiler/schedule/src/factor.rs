//! Factors of a sum of products that are elements of memory, and which of them are neighbours there: what a device reads at once.

use crate::affine::{Affine, is_multiple};
use crate::roles::ProductNest;
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};

/// An element that is a factor where a condition holds; elsewhere the factor is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorElement {
    /// The buffer.
    pub buffer: BufferId,
    /// Its indices.
    pub indices: Vec<Expr>,
    /// Where it counts; everywhere if there is none.
    pub condition: Option<Expr>,
    /// Where it stands; of each product of a batch where only that is evenly spaced, as of phases.
    pub at: Affine,
}

impl FactorElement {
    /// The element that a factor, without casts that lose nothing ([`without_casts`]), is. `None` where it is computed, or its
    /// elements are not evenly spaced.
    pub fn of(narrow: &Expr, found: &mut ProductNest, func: &PrimFunc) -> Option<FactorElement> {
        let (load, condition) = match narrow {
            Expr::Select { condition, then, otherwise } if is_zero(otherwise) => (&**then, Some(&**condition)),
            other => (other, None),
        };
        let Expr::Load { buffer, indices, .. } = load else { return None };
        let at = found.affine(func, *buffer, indices).or_else(|| found.affine_in_batch(func, *buffer, indices))?;
        Some(FactorElement { buffer: *buffer, indices: indices.clone(), condition: condition.cloned(), at })
    }

    /// Whether the loop's values are neighbours in memory.
    pub fn is_contiguous(&self, var: VarId) -> bool {
        self.at.stride(var).as_constant() == Some(1)
    }

    /// Whether `count` values of an axis, from a multiple of it, are neighbours in memory that begin at a multiple of it, and
    /// count all or none. The axis is loops with their extents, outermost first; those that are walked as one in memory are one
    /// here.
    pub fn is_in_chunks(&self, axis: &[(VarId, Expr)], count: i64) -> bool {
        let (mut span, mut within) = (1, Vec::new());
        for (var, extent) in axis.iter().rev() {
            let depends = self.condition.as_ref().is_some_and(|condition| condition.uses(*var));
            let Some(extent) = extent.as_int().filter(|extent| *extent > 0 && !depends) else { return false };
            if self.at.stride(*var).as_constant() != Some(span) {
                return false;
            }
            (span, within) = (span.saturating_mul(extent), [within, vec![*var]].concat());
            if span % count == 0 {
                return is_multiple(&self.at.base, count)
                    && self.at.strides.iter().all(|(var, stride)| within.contains(var) || is_multiple(stride, count));
            }
        }
        false
    }
}

/// A factor as [`order_sums`] weighs it.
#[derive(Clone, Copy, Debug)]
pub struct Weighed<'f> {
    /// The element it is, if it is one.
    pub element: Option<&'f FactorElement>,
    /// How many elements of its own it has for each summed value.
    pub count: i64,
    /// How many neighbours are read at once.
    pub chunk: i64,
}

/// Puts the loops that are summed over in the order in which more is read in chunks: innermost is one whose values are neighbours
/// in a factor. Where it makes no difference that is one of the second.
pub fn order_sums(sums: &[(VarId, Expr)], [first, second]: [Weighed<'_>; 2]) -> Vec<(VarId, Expr)> {
    let with_last = |mut order: Vec<(VarId, Expr)>, factor: &Weighed<'_>| {
        if let Some(element) = factor.element
            && let Some(at) = order.iter().rposition(|(var, _)| element.is_contiguous(*var))
        {
            let found = order.remove(at);
            order.push(found);
        }
        order
    };
    let in_chunks = |order: &[(VarId, Expr)]| {
        let of = |one: &Weighed<'_>| one.element.is_some_and(|element| element.is_in_chunks(order, one.chunk));
        [first, second].iter().filter(|one| of(one)).fold(0i64, |all, one| all.saturating_add(one.count.max(1)))
    };
    let usual = with_last(with_last(sums.to_vec(), &first), &second);
    let other = with_last(with_last(sums.to_vec(), &second), &first);
    if in_chunks(&other) > in_chunks(&usual) { other } else { usual }
}

/// The value without casts that lose nothing: of the dtype in which it stands in memory, mostly.
pub fn without_casts(value: &Expr) -> &Expr {
    let mut narrow = value;
    while let Expr::Cast { dtype, value } = narrow {
        if !is_exact(value.dtype(), *dtype) {
            break;
        }
        narrow = value;
    }
    narrow
}

fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Float { value, .. } => *value == 0.0 && value.is_sign_positive(),
        Expr::Int { value, .. } => *value == 0,
        _ => false,
    }
}

/// Whether every value of a dtype is one of another.
fn is_exact(from: DType, to: DType) -> bool {
    use TypeCode::{BFloat, Float, Int, UInt};
    match (from.code, to.code) {
        (Int, Int) | (UInt, UInt) => from.bits <= to.bits,
        (UInt, Int) => from.bits < to.bits,
        (Float, Float) => from.bits <= to.bits,
        (BFloat, Float) => to.bits >= 32,
        (a, b) => a == b && from.bits == to.bits,
    }
}
