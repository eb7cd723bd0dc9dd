//! Schedule rule `gemm`: sums of products, mainly matrix products and convolutions (as implicit GEMM), by tiles in
//! shared memory.
//!
//! ```text
//! for b, m, n, k: C[b, m, n] += A[b, m, k] * B[b, k, n]        // any loops, by role
//! →
//! block: one tile of C                                         // e.g. 128 x 128; with TMA several, one by one
//!     for each K tile:
//!         copy the tiles of A and B to shared memory           // a ring of stages
//!         sums += A tile * B tile                              // mma.sync, wgmma or fused multiply-adds
//!     C = epilogue(sums)                                       // following elementwise statements
//! ```
//!
//! Requires: a sum of products, each loop of which has one role ([`rx_loops::ProductNest`]), and at least one M loop
//! and one N loop. A loop is batch if both factors and the result use it, M or N if the result and one factor use it,
//! and K if both factors but not the result use it. For example, in an NHWC convolution the batch and spatial loops are
//! M, the output channels N, and the input channels and the taps K (for NCHW, M and N are exchanged). All loops of a
//! role form one linear index, from which the loops' values are computed; a factor is any expression of those values.
//! So operands may be transposed, cast, dequantized or padded.
//!
//! Guarantees:
//! - Sums of 16-bit floats accumulate in `float32` and round once, even where the function rounds after each term. The
//!   result is then closer to the exact sum.
//! - Integer sums wrap like the function's.
//!
//! INVARIANT: buffers begin at multiples of 16 bytes, as every device allocation does; 16-byte reads rely on it.
//!
//! A transposed convolution with a stride is split into phases where possible; a phase is the outputs that use the same
//! taps ([`rx_loops::by_phases`]). If the definition first computes all products and then gathers them, the two
//! statements become one product where that pays ([`source`]), and the gathered values then never reach memory.
//!
//! Addresses are separable where possible ([`separable`]): a thread keeps the row part (the offset, and the distances
//! to the edges of the data) in registers and decodes only the K part for each tile. Then the bounds check of an
//! element of a padded window costs one addition and one comparison for each padded axis.
//!
//! Limit: an input that several overlapping windows contain is loaded to shared memory once for each of them.
//!
//! Reference: TVM's `python/tvm/s_tir/dlight/gpu/matmul.py` (the same normalization of loops to batch, M, N, K);
//! CUTLASS's `include/cutlass/gemm/threadblock/mma_multistage.h` (the multistage pipeline).
//!
//! - [`problem`]: the matched product and its epilogue ([`super::epilogue`]).
//! - [`source`]: the statements that the product replaces.
//! - [`tiles`]: tile sizes and multiply units; [`choice`]: which of them, and how many split-K slices.
//! - [`kernel`]: the loop over K tiles. [`operand`] loads the tiles; [`threads`] or tensor cores ([`warps`]) multiply
//!   them.
//! - [`hopper`]: `wgmma` tensor cores of `sm_90a`, where four warps (a warpgroup) multiply together.
//! - [`narrow`]: index arithmetic in 32 bits.
//! - [`split_k`]: split-K, for products with few tiles.

mod choice;
mod hopper;
pub(super) mod kernel;
pub(super) mod names;
pub(super) mod narrow;
mod operand;
pub(super) mod problem;
mod separable;
mod source;
mod split_k;
mod threads;
pub(super) mod tiles;
mod warps;

use super::{Declined, KernelBody, Rule, Schedule, Scratch, Task};
use hopper::kernel::TmaProduct;
use kernel::{TiledProduct, partial_type};
use problem::Problem;
use rx_tir::Expr;
use split_k::SplitKReduction;
use std::rc::Rc;
use tiles::{Mma, Unit};

/// The rule `gemm`.
pub(super) const RULE: Rule = Rule {
    name: "gemm",
    summary: "Matrix products and convolutions by tiles in shared memory, on tensor cores where the dtypes allow.",
    take,
};

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let problem = Problem::of(task)?;
    Declined::when(problem.is_empty_side(), "requires rows in both factors; found a factor without")?;
    let choice = choice::choose(&problem, task.target)?;
    let (tiling, slices) = (choice.tiling, choice.slices);
    let problem = Rc::new(problem);
    let product = TiledProduct::new(Rc::clone(&problem), tiling, slices).map_err(Declined)?;
    let (loads, product): (String, Box<dyn KernelBody>) = match tiling.unit {
        Unit::Warps { mma: Mma::WarpgroupTma, .. } => {
            let product = TmaProduct::new(product, task.target.units).map_err(Declined)?;
            (product.note(), Box::new(product))
        }
        _ => (product.note(), Box::new(product)),
    };
    let (m, n, k) = (tiling.m, tiling.n, tiling.k);
    let (unit, epilogue) = (tiling.unit.text(), problem.epilogue.note());
    let phases = match problem.phases {
        1 => String::new(),
        count => format!("; {count} phases of outputs, each with its own taps"),
    };
    let note = format!("tiles of {m}x{n}x{k}, {unit}; {}{phases}; {loads}{epilogue}", choice.reason);
    let mut kernels = vec![product];
    let mut scratch = Vec::new();
    if slices > 1 {
        let (_, bytes) = partial_type(&tiling, problem.dtype).map_err(Declined)?;
        let bytes = SplitKReduction::elements(&problem) * Expr::int(bytes * slices);
        scratch.push(Scratch { name: "slices", bytes });
        kernels.push(Box::new(SplitKReduction { problem: Rc::clone(&problem), tiling, slices }));
    }
    Ok(Schedule { taken: problem.epilogue.taken, kernels, scratch, note })
}
