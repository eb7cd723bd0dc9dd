//! Matching: the statements that form a product, with two rewrites for transposed convolutions.
//!
//! ```text
//! Two statements: products[i, k] = Σ_c x[i, c] * w[k, c]
//!                 out[o] = Σ_j select(exists(o, j), products[i(o, j), k(o, j)], 0)
//! →               out[o] = Σ_j Σ_c select(exists, x[i(o, j), c], 0) * select(exists, w[k(o, j), c], 0)
//! Phases:         out[o] = Σ_k over all taps, many of them 0 for a stride s
//! →               out[s * q + phase] = Σ_k over the taps of this phase
//! ```
//!
//! Here `k(o, j) = o % s + s * j` is tap number `j` of output `o`, and `i(o, j) = o // s - j` the input that it
//! multiplies (without padding); `exists` holds if both are in bounds.
//!
//! Requires: for two statements, that nothing else reads `products`, that the product splits into phases as well, and
//! that it does not have many more terms than the sums that it replaces ([`is_worth`]). Guarantees: if no rewrite
//! applies, the product is the first statement as it is written.

use super::super::epilogue::Front;
use crate::rules::{Declined, Task};
use rx_base::Dim;
use rx_loops::{Nest, Phased, ProductNest, by_phases, composed};
use rx_tir::{BufferId, Expr, IterKind, PrimFunc};

/// The largest ratio of terms of the fused product to terms of the separate sums at which fusion pays, if the sums load
/// no elements of less than 32 bits.
const MORE_TERMS: f64 = 1.3;
/// As [`MORE_TERMS`], if the sums load elements of less than 32 bits, which tensor cores usually multiply: writing and
/// rereading the sums then costs more than the additional terms, which are 0.
const MORE_TERMS_OF_TENSOR_CORES: f64 = 2.0;

/// A matched product and the statements that it replaces.
pub(super) struct Source {
    /// The product, with its loops by role.
    pub(super) found: ProductNest,
    /// The function, with new variables for split loops.
    pub(super) func: PrimFunc,
    /// The statements that the product replaces, as the epilogue needs them.
    pub(super) front: Front,
    /// The number of phases; 1 if every output sums all terms.
    pub(super) phases: i64,
    /// The number of elements that are written: the product of the extents of the loops that the result's indices use.
    pub(super) elements: Dim,
}

impl Source {
    /// Matches the first statements of the task. Tries in order: a product whose sums the next statement gathers (as in
    /// col2im); the first statement split into the phases of a transposed convolution ([`rx_loops::by_phases`]); the
    /// first statement unchanged.
    pub(super) fn of(task: &Task<'_>) -> Result<Source, Declined> {
        if let Some(gathered) = Source::gathered(task) {
            return Ok(gathered);
        }
        let nest = task.nest(0)?;
        nest.update()?;
        let mut func = task.func.clone();
        let phased = by_phases(nest, &mut func, false);
        let by_phase = phased.and_then(|phased| Source::new(phased, nest, func, Front::plain()).ok());
        match by_phase {
            Some(source) => Ok(source),
            None => {
                let whole = Phased { nest: nest.clone(), condition: None, count: 1 };
                Source::new(whole, nest, task.func.clone(), Front::plain())
            }
        }
    }

    /// Matches a statement that gathers the sums of the statement before it. Returns `None` if, for example, the two
    /// statements do not compose ([`composed`]), the sums are needed otherwise, there are no phases, the product has
    /// too many terms, or the composed statement is no product.
    fn gathered(task: &Task<'_>) -> Option<Source> {
        let (first, second) = (task.nest(0).ok()?, task.nest(1).ok()?);
        let (nest, products) = composed(first, second)?;
        if !task.is_temporary(products) || task.is_used_after(2, products) {
            return None;
        }
        let mut func = task.func.clone();
        let phased = by_phases(&nest, &mut func, true)?;
        if !is_worth(task.func, (first, second), products, phased.count) {
            return None;
        }
        let front = Front { statements: 2, within: vec![products], condition: None };
        Source::new(phased, second, func, front).ok()
    }

    /// Matches a nest by role. `whole` is the nest that writes the result, before its loops are split. The number of
    /// elements is the product of the extents of those of its loops that the indices of the result use. The loops' kind
    /// is not used, because without a block K loops are [`IterKind::Ordered`] like the others.
    fn new(phased: Phased, whole: &Nest, mut func: PrimFunc, front: Front) -> Result<Source, Declined> {
        let mut found = ProductNest::of(&phased.nest, &mut func)?;
        let indices = whole.update()?.indices;
        let of_result = whole.loops.iter().filter(|one| indices.iter().any(|index| index.uses(one.var)));
        let mut elements = Dim::constant(1);
        for one in of_result {
            elements = &elements * &found.scope.dim(&one.extent);
        }
        let front = Front { condition: phased.condition, ..front };
        Ok(Source { found, func, front, phases: phased.count, elements })
    }
}

/// Whether, for each input, the fused product has at most [`MORE_TERMS`] (or [`MORE_TERMS_OF_TENSOR_CORES`]) times as
/// many terms as `first` has sums. `first` computes one sum for each tap; the number of taps is the product of the
/// extents of those axes of `products` that `second` reads at an index with a remainder. The fused product has the
/// iterations of the reduction loops of `second`, in each of the `phases`. For example, 5 taps with stride 2 are 2
/// phases of 3 taps, 6 terms instead of 5.
fn is_worth(func: &PrimFunc, (first, second): (&Nest, &Nest), products: BufferId, phases: i64) -> bool {
    let Some(read) = second.reduction().map(|reduction| reduction.value) else { return false };
    let mut taps = 1.0;
    read.walk(&mut |part| {
        if let Expr::Load { buffer, indices, .. } = part
            && *buffer == products
        {
            for (index, extent) in indices.iter().zip(&func.buffer(products).shape) {
                if has_remainder(index) {
                    taps *= extent.as_int().map_or(f64::INFINITY, |extent| extent as f64);
                }
            }
        }
    });
    let iterations = second.loops.iter().filter(|one| one.kind == IterKind::Reduce).map(|one| one.extent.as_int());
    let terms =
        iterations.fold(phases as f64, |terms, extent| terms * extent.map_or(f64::INFINITY, |extent| extent as f64));
    let narrow = |part: &Expr| matches!(part, Expr::Load { dtype, .. } if dtype.bits < 32);
    let is_narrow = first.reduction().is_some_and(|reduction| reduction.value.any(&narrow));
    terms <= taps * if is_narrow { MORE_TERMS_OF_TENSOR_CORES } else { MORE_TERMS }
}

/// Whether an index contains a floor modulo.
fn has_remainder(index: &Expr) -> bool {
    index.any(&|part| matches!(part, Expr::Binary { op: rx_tir::BinaryOp::FloorMod, .. }))
}
