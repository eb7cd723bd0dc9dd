//! Register tiles: each thread multiplies on its own, without tensor cores, for every dtype that has a [`sum_type`].
//!
//! ```text
//! for k in 0..tile_k:
//!     of_a = this thread's rows of A[k][…], of_b = this thread's columns of B[k][…]      // 16-byte shared loads
//!     for i, j: sums[i][j] += of_a[i] * of_b[j]
//! ```
//!
//! Requires: tiles in the layout `[k][row]`, already converted to the accumulator's type. Guarantees: each sum is
//! accumulated in ascending K order within its slice.

use super::kernel::Elements;
use super::names::GemmNames;
use super::operand::Operand;
use super::tiles::{Tiling, Unit, sum_type};
use crate::printer::Kernel;
use rx_base::DType;

/// The elements of a tile that one thread computes. Its rows, and likewise its columns, are groups of up to 16
/// contiguous bytes. The groups are spread evenly over the tile, so that consecutive threads read consecutive banks.
/// For example, of a tile with 128 `float` columns, the thread at position `t` along the row has the 8 columns
/// `4 * t .. 4 * t + 4` and `64 + 4 * t .. 64 + 4 * t + 4`.
struct Share {
    rows: Part,
    columns: Part,
}

/// The rows, or the columns, of one thread.
struct Part {
    /// How many there are.
    own: i64,
    /// How many are contiguous in each group.
    width: i64,
    /// The distance between the starts of consecutive groups.
    apart: i64,
    /// The thread's position along this axis of the tile, as text.
    thread: String,
}

impl Part {
    /// Returns the index in the tile of the thread's row or column number `which`.
    fn at(&self, which: &str) -> String {
        let Part { width, apart, thread, .. } = self;
        match self.own == self.width {
            true => format!("{thread} * {width} + {which}"),
            false => format!("{which} / {width} * {apart} + {thread} * {width} + {which} % {width}"),
        }
    }
}

/// Returns the elements of each thread; `bytes` is the size of an accumulator.
fn share(tiling: Tiling, bytes: i64) -> Share {
    let (own_m, own_n) = match tiling.unit {
        Unit::Threads { m, n } => (m, n),
        Unit::Warps { .. } => (1, 1),
    };
    let across = tiling.n / own_n;
    let part = |own: i64, all: i64, thread: String| {
        let width = own.min(16 / bytes);
        Part { own, width, apart: all / (own / width), thread }
    };
    Share {
        rows: part(own_m, tiling.m, format!("threadIdx.x / {across}")),
        columns: part(own_n, tiling.n, format!("threadIdx.x % {across}")),
    }
}

/// Declares the thread's accumulators.
pub(super) fn declare(kernel: &mut Kernel<'_>, names: &GemmNames, tiling: Tiling, dtype: DType) -> Result<(), String> {
    let (ctype, bytes) = sum_type(dtype)?;
    let Share { rows, columns } = share(tiling, bytes);
    kernel.line(&format!("{ctype} {}[{}][{}] = {{}};", names.sums, rows.own, columns.own));
    Ok(())
}

/// Emits the product of the tiles in the ring's `slot`.
pub(super) fn multiply(
    kernel: &mut Kernel<'_>,
    names: &GemmNames,
    tiling: Tiling,
    [a, b]: &[Operand<'_>; 2],
) -> Result<(), String> {
    kernel.need("rx_pack");
    let bytes = if matches!(a.element, "double" | "unsigned long long") { 8 } else { 4 };
    let Share { rows, columns } = share(tiling, bytes);
    let element = a.element;
    kernel.unrolled("k", tiling.k);
    for (operand, part, tile) in [(a, &rows, &names.tiles[0]), (b, &columns, &names.tiles[1])] {
        let (own, width, side) = (part.own, part.width, operand.side);
        let start = format!("{tile} + slot * {} + k * {}", operand.elements(), operand.line());
        kernel.line(&format!("rx_pack<{element}, {width}> of_{side}[{}];", own / width));
        kernel.line("#pragma unroll");
        kernel.line(&format!(
            "for (int i = 0; i < {}; ++i) of_{side}[i] = *(const rx_pack<{element}, {width}>*)({start} + i * {} + {} * {width});",
            own / width,
            part.apart,
            part.thread
        ));
    }
    let read = |side: char, part: &Part, which: &str| match part.own == part.width {
        true => format!("of_{side}[0].at[{which}]"),
        false => format!("of_{side}[{which} / {0}].at[{which} % {0}]", part.width),
    };
    kernel.unrolled("i", rows.own);
    kernel.line("#pragma unroll");
    let (left, right) = (read('a', &rows, "i"), read('b', &columns, "j"));
    kernel.line(&format!("for (int j = 0; j < {}; ++j) {}[i][j] += {left} * {right};", columns.own, names.sums));
    kernel.close();
    kernel.close();
    Ok(())
}

/// Emits the epilogue of each element that the thread computed; with split-K, the store of its partial sum instead.
pub(super) fn elements(kernel: &mut Kernel<'_>, elements: &Elements<'_>, tiling: Tiling) -> Result<(), String> {
    let (_, bytes) = sum_type(elements.problem.dtype)?;
    let Share { rows, columns } = share(tiling, bytes);
    kernel.unrolled("i", rows.own);
    elements.open_row(kernel, &rows.at("i"))?;
    let Part { own, width, apart, thread } = &columns;
    kernel.unrolled("j", own / width);
    let sum = format!("{}[i][j * {width} + e]", elements.names.sums);
    elements.neighbours(kernel, &format!("j * {apart} + {thread} * {width}"), *width, &sum)?;
    (0..3).for_each(|_| kernel.close());
    Ok(())
}
