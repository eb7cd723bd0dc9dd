//! Factors of a sum of products that are elements of memory, with the contiguous runs that a device can load as one
//! vector.

use crate::affine::{Affine, is_multiple};
use crate::roles::ProductNest;
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};

/// A factor of the form `select(condition, buffer[indices], 0)`, or `buffer[indices]` without a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorElement {
    /// The buffer.
    pub buffer: BufferId,
    /// The indices of the element.
    pub indices: Vec<Expr>,
    /// The condition under which the element counts; none if it always does.
    pub condition: Option<Expr>,
    /// The address of the element. If it is affine only within one product of the batch, as in [`crate::phases`], the
    /// variables of batch loops count as constants.
    pub at: Affine,
}

impl FactorElement {
    /// Matches a factor as an element. Returns `None` if the factor is computed, also if it is a cast (see
    /// [`without_casts`]), or if its address is not affine even within one product of the batch.
    pub fn of(narrow: &Expr, found: &mut ProductNest, func: &PrimFunc) -> Option<FactorElement> {
        let (load, condition) = match narrow {
            Expr::Select { condition, then, otherwise } if is_zero(otherwise) => (&**then, Some(&**condition)),
            other => (other, None),
        };
        let Expr::Load { buffer, indices, .. } = load else { return None };
        let at = found.affine(func, *buffer, indices).or_else(|| found.affine_in_batch(func, *buffer, indices))?;
        Some(FactorElement { buffer: *buffer, indices: indices.clone(), condition: condition.cloned(), at })
    }

    /// Whether the loop has stride 1.
    pub fn is_contiguous(&self, var: VarId) -> bool {
        self.at.stride(var).as_constant() == Some(1)
    }

    /// Whether an axis can be loaded in aligned vectors of `count` elements. The elements of a vector must be adjacent
    /// in memory, start at a multiple of `count`, and all meet or all fail the condition. The axis is given as loops
    /// with their extents, outermost first. Loops that are contiguous in memory together count as one: for loops `i` of
    /// 4 and `j` of 2 over `A[i, j]` of shape `[4, 2]`, vectors of 8 fit.
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

/// A GEMM operand, as [`choose_k_order`] compares it.
#[derive(Clone, Copy, Debug)]
pub struct GemmOperand<'f> {
    /// The factor as an element, if it is one.
    pub element: Option<&'f FactorElement>,
    /// The number of its elements for each value of the K loops, within one product of a batch; an estimate if it is
    /// symbolic.
    pub count: i64,
    /// The number of elements of a vector load.
    pub chunk: i64,
}

/// Moves a K loop that is contiguous in one of the factors innermost, if there is one. If each factor has such a loop,
/// chooses the factor with which more elements are loaded as vectors, and at a tie the second one.
pub fn choose_k_order(sums: &[(VarId, Expr)], [first, second]: [GemmOperand<'_>; 2]) -> Vec<(VarId, Expr)> {
    let with_last = |mut order: Vec<(VarId, Expr)>, factor: &GemmOperand<'_>| {
        if let Some(element) = factor.element
            && let Some(at) = order.iter().rposition(|(var, _)| element.is_contiguous(*var))
        {
            let found = order.remove(at);
            order.push(found);
        }
        order
    };
    let in_chunks = |order: &[(VarId, Expr)]| {
        let of = |one: &GemmOperand<'_>| one.element.is_some_and(|element| element.is_in_chunks(order, one.chunk));
        [first, second].iter().filter(|one| of(one)).fold(0i64, |all, one| all.saturating_add(one.count.max(1)))
    };
    let usual = with_last(with_last(sums.to_vec(), &first), &second);
    let other = with_last(with_last(sums.to_vec(), &second), &first);
    if in_chunks(&other) > in_chunks(&usual) { other } else { usual }
}

/// Removes the outer casts that are known to be lossless, which mostly yields the value in the dtype that it has in
/// memory.
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

/// Whether every value of dtype `from` is known to be a value of dtype `to`. Between dtypes of different type codes,
/// returns `true` only from unsigned to wider signed integers and from `bfloat16` to `float32` and `float64`. Other
/// lossless casts, for example from `bool`, from small integers to floats, or from 8-bit floats, return `false`.
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
