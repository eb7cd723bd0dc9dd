//! The statements that are a product: one, or two of which the second gathers what the first makes; by phases where outputs of
//! one remainder meet the same terms.

use super::super::epilogue::Front;
use crate::rules::{Declined, Task};
use rx_base::Dim;
use rx_schedule::{Nest, Phased, ProductNest, by_phases, composed};
use rx_tir::{BufferId, Expr, IterKind, PrimFunc};

/// By how much a gathered product may have more terms than the sums that it gathers. Where tensor cores multiply, writing the sums
/// and reading them again takes longer than some terms of nothing.
const MORE_TERMS: f64 = 1.3;
const MORE_TERMS_OF_TENSOR_CORES: f64 = 2.0;

/// A product and what is known of the statements it is.
pub(super) struct Source {
    pub(super) found: ProductNest,
    /// With variables for loops that were parted.
    pub(super) func: PrimFunc,
    pub(super) front: Front,
    /// How many phases there are; 1: all terms are summed for each output.
    pub(super) phases: i64,
    /// How many elements are written.
    pub(super) elements: Dim,
}

impl Source {
    /// The product that the task's first statements are.
    pub(super) fn of(task: &Task<'_>) -> Result<Source, Declined> {
        if let Some(gathered) = Source::gathered(task) {
            return Ok(gathered);
        }
        let nest = task.nest(0)?;
        nest.update()?;
        let mut func = task.func.clone();
        let phased = by_phases(&nest, &mut func, false);
        let by_phase = phased.and_then(|phased| Source::new(phased, &nest, func, Front::plain()).ok());
        match by_phase {
            Some(source) => Ok(source),
            None => {
                let whole = Phased { nest: nest.clone(), condition: None, count: 1 };
                Source::new(whole, &nest, task.func.clone(), Front::plain())
            }
        }
    }

    /// A sum that gathers the sums of products of the statement before it, which nothing else sees.
    fn gathered(task: &Task<'_>) -> Option<Source> {
        let (first, second) = (task.nest(0).ok()?, task.nest(1).ok()?);
        let (nest, products) = composed(&first, &second)?;
        if !task.is_temporary(products) || task.is_used_behind(2, products) {
            return None;
        }
        let mut func = task.func.clone();
        let phased = by_phases(&nest, &mut func, true)?;
        if !is_worth(task.func, (&first, &second), products, phased.count) {
            return None;
        }
        let front = Front { statements: 2, within: vec![products], condition: None };
        Source::new(phased, &second, func, front).ok()
    }

    fn new(phased: Phased, whole: &Nest, mut func: PrimFunc, front: Front) -> Result<Source, Declined> {
        let mut found = ProductNest::of(&phased.nest, &mut func)?;
        let spatial = whole.loops.iter().filter(|one| one.kind != IterKind::Reduce);
        let mut elements = Dim::constant(1);
        for one in spatial {
            elements = &elements * &found.scope.dim(&one.extent);
        }
        let front = Front { condition: phased.condition, ..front };
        Ok(Source { found, func, front, phases: phased.count, elements })
    }
}

/// Whether gathering as the terms are summed is less work than sums that are written and gathered then.
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
    let rounds = second.loops.iter().filter(|one| one.kind == IterKind::Reduce).map(|one| one.extent.as_int());
    let terms =
        rounds.fold(phases as f64, |terms, extent| terms * extent.map_or(f64::INFINITY, |extent| extent as f64));
    let narrow = |part: &Expr| matches!(part, Expr::Load { dtype, .. } if dtype.bits < 32);
    let is_narrow = first.reduction().is_some_and(|reduction| reduction.value.any(&narrow));
    terms <= taps * if is_narrow { MORE_TERMS_OF_TENSOR_CORES } else { MORE_TERMS }
}

fn has_remainder(index: &Expr) -> bool {
    index.any(&|part| matches!(part, Expr::Binary { op: rx_tir::BinaryOp::FloorMod, .. }))
}
