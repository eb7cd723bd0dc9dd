//! Products on `sm_90a`: four warps multiply 64 rows together (`wgmma`), and read both factors from shared memory.
//!
//! A tile of a factor has lines of 128 bytes, along the sum or along its free axis; the 16-byte chunks of a line are permuted by
//! its number, so that eight lines fill all banks (PTX ISA, "Shared Memory Matrix Layout", 128-byte swizzle). Lines along the
//! free axis have 64 elements; tiles with more are panels of such lines, one behind the other. Only 16-bit elements may lie along
//! their free axis.
//!
//! - [`kernel`]: one thread has tiles copied (TMA), eight warps or four multiply; for factors that are dense views ([`view`]).
//! - What is no such view is brought by all threads, as for `mma.sync` ([`super::kernel`]).
//! - [`choice`]: which of it is worth it.
//!
//! `wgmma` reads `float32` factors as tf32 without rounding: what is behind 10 bits of fraction is cut off.

pub(super) mod choice;
pub(super) mod kernel;
pub(super) mod view;

use super::operand::Along;
use super::tiles::{Tiling, Unit};
use super::words::Words;
use crate::printer::Kernel;

/// Bytes of a line of a tile, and of eight lines, whose chunks are permuted among themselves.
pub(super) const LINE: i64 = 128;
const EIGHT_LINES: i64 = 8 * LINE;

/// Rows that four warps multiply.
pub(super) const ROWS: i64 = 64;

/// Prints the products of the tiles at `from_a` and `from_b`, which lie along these axes, as one group.
pub(super) fn multiply(
    kernel: &mut Kernel<'_>,
    words: &Words,
    tiling: Tiling,
    [a, b]: [Along; 2],
) -> Result<(), String> {
    let Unit::Warps { n: 1, kind, .. } = tiling.unit else { return Err("a tile without groups of warps".to_owned()) };
    let helper = format!("rx_wgmma_{}_{}", kind.name(), tiling.n);
    kernel.need("rx_wgmma");
    kernel.need(helper.clone());
    let bytes = kind.bytes();
    // In elements: one line, and what one product takes of the sum.
    let (line, step) = (LINE / bytes, 32 / bytes);
    let place = |along: Along| match along {
        Along::Sum => (format!("k * {step}"), 16),
        Along::Free => (format!("k * {}", step * line), tiling.k * LINE),
    };
    let ((at_a, leading_a), (at_b, leading_b)) = (place(a), place(b));
    let flag = |along: Along| i32::from(along == Along::Free);
    kernel.line("rx_products_begin();");
    kernel.unrolled("k", tiling.k / step);
    kernel.line(&format!("{helper}<{}, {}>({}[0],", flag(a), flag(b), words.sums));
    kernel.go_on(&format!("rx_matrix(&from_a[team * {} + {at_a}], {leading_a}, {EIGHT_LINES}),", ROWS * line));
    kernel.go_on(&format!("rx_matrix(&from_b[{at_b}], {leading_b}, {EIGHT_LINES}));"));
    kernel.close();
    kernel.line("rx_products_end();");
    Ok(())
}
