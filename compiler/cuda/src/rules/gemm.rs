//! Matrix products and convolutions: any sum of products whose factors have loops of their own, by tiles.
//!
//! What a loop is for follows from where it occurs ([`rx_schedule::ProductNest`]): in both factors and the result it is batch,
//! in one factor and the result a row or a column, in both factors a sum. All rows are one linear index, and so are all columns
//! and all summed values; a factor's element is computed from the loops' values at such indices, whatever its expression is. So a
//! convolution is the implicit product of its weights and windows, and operands may be transposed, cast, dequantised, padded.
//!
//! Sums of 16-bit floats are made in `float32` and rounded once, also where the function rounds after each term: that is nearer to
//! the sum. Sums of integers wrap as the function's do.
//!
//! Reads of 16 bytes take for granted that buffers begin at multiples of 16 bytes, as every allocation of a device does.
//!
//! A transposed convolution in steps has a product for each phase, the outputs that meet the same taps
//! ([`rx_schedule::by_phases`]): phases are batch. Where its definition makes all products first and gathers them then, the two
//! statements are one product, and what is gathered never reaches memory.
//!
//! What is not here yet: tiles that overlapping windows share.
//!
//! Of each tile a thread decodes summed values alone: what its rows decide - where they begin, how far they are from the edges of
//! the data - it keeps in registers ([`reach`]). An element of a padded window is then a sum and a comparison for each
//! edge. Neighbouring threads have neighbours in memory; 16-bit elements of a line of the data share their summed value.
//!
//! - [`problem`]: the product, and what follows it element by element ([`super::epilogue`]).
//! - [`source`]: the statements it is.
//! - [`tiles`]: tile sizes, and how they are chosen.
//! - [`kernel`]: the loop over tiles; [`operand`] brings them, by [`reach`] where it can, [`threads`] or tensor cores ([`warps`]) multiply them.
//! - [`hopper`]: tensor cores of `sm_90a`, where four warps multiply together.
//! - [`narrow`]: index arithmetic in 32 bits.
//! - [`parts`]: sums cut into parts, where there are few tiles.

mod hopper;
pub(super) mod kernel;
pub(super) mod narrow;
mod operand;
mod parts;
pub(super) mod problem;
mod reach;
mod source;
mod threads;
pub(super) mod tiles;
mod warps;
pub(super) mod words;

use super::{Declined, KernelBody, Rule, Schedule, Scratch, Task};
use hopper::kernel::BulkProduct;
use kernel::{TiledProduct, partial_type};
use parts::PartSums;
use problem::Problem;
use rx_tir::Expr;
use std::rc::Rc;
use tiles::{Means, Unit};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "gemm",
    summary: "Matrix products and convolutions by tiles in shared memory, on tensor cores where they are.",
    take,
};

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let problem = Problem::of(task)?;
    Declined::when(problem.is_empty_side(), "one factor has no rows of its own")?;
    let choice = tiles::choose(&problem, task.target)?;
    let (tiling, parts) = (choice.tiling, choice.parts);
    let problem = Rc::new(problem);
    let product = TiledProduct::new(Rc::clone(&problem), tiling, parts).map_err(Declined)?;
    let (brought, product): (String, Box<dyn KernelBody>) = match tiling.unit {
        Unit::Warps { means: Means::Bulk, .. } => {
            let product = BulkProduct::new(product, task.target.units).map_err(Declined)?;
            (product.note(), Box::new(product))
        }
        _ => (product.note(), Box::new(product)),
    };
    let (m, n, k) = (tiling.m, tiling.n, tiling.k);
    let (unit, behind) = (tiling.unit.text(), problem.epilogue.note());
    let phases = match problem.phases {
        1 => String::new(),
        count => format!("; {count} phases of outputs, each with the terms that meet it"),
    };
    let note = format!("tiles of {m}x{n}x{k}, {unit}; {}{phases}; {brought}{behind}", choice.reason);
    let mut kernels = vec![product];
    let mut scratch = Vec::new();
    if parts > 1 {
        let (_, bytes) = partial_type(&tiling, problem.dtype).map_err(Declined)?;
        let bytes = PartSums::elements(&problem) * Expr::int(bytes * parts);
        scratch.push(Scratch { name: "parts", bytes });
        kernels.push(Box::new(PartSums { problem: Rc::clone(&problem), tiling, parts }));
    }
    Ok(Schedule { taken: problem.epilogue.taken, kernels, scratch, note })
}
