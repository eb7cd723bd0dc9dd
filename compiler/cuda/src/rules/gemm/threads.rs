//! Sums in registers, multiplied by each thread for itself: any dtype, in its own arithmetic.

use super::kernel::Elements;
use super::operand::Operand;
use super::tiles::{Tiling, Unit, sum_type};
use super::words::Words;
use crate::printer::Kernel;
use rx_base::DType;

/// What a thread has of a tile: elements of 16 bytes that stand together, in groups that are spread over the tile, so that
/// neighbouring threads read neighbouring banks.
struct Share {
    rows: Part,
    columns: Part,
}

/// Rows or columns of a thread.
struct Part {
    own: i64,
    /// Elements that stand together.
    width: i64,
    /// From one group to the next.
    apart: i64,
    /// The thread's place.
    thread: String,
}

impl Part {
    /// Which of the tile's rows or columns the thread's `which` is.
    fn at(&self, which: &str) -> String {
        let Part { width, apart, thread, .. } = self;
        match self.own == self.width {
            true => format!("{thread} * {width} + {which}"),
            false => format!("{which} / {width} * {apart} + {thread} * {width} + {which} % {width}"),
        }
    }
}

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

pub(super) fn declare(kernel: &mut Kernel<'_>, words: &Words, tiling: Tiling, dtype: DType) -> Result<(), String> {
    let (ctype, bytes) = sum_type(dtype)?;
    let Share { rows, columns } = share(tiling, bytes);
    kernel.line(&format!("{ctype} {}[{}][{}] = {{}};", words.sums, rows.own, columns.own));
    Ok(())
}

/// Multiplies the tiles in `slot`.
pub(super) fn multiply(
    kernel: &mut Kernel<'_>,
    words: &Words,
    tiling: Tiling,
    [a, b]: &[Operand<'_>; 2],
) -> Result<(), String> {
    kernel.need("rx_pack");
    let bytes = if matches!(a.element, "double" | "unsigned long long") { 8 } else { 4 };
    let Share { rows, columns } = share(tiling, bytes);
    let element = a.element;
    kernel.unrolled("k", tiling.k);
    for (operand, part, tile) in [(a, &rows, &words.tiles[0]), (b, &columns, &words.tiles[1])] {
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
    kernel.line(&format!("for (int j = 0; j < {}; ++j) {}[i][j] += {left} * {right};", columns.own, words.sums));
    kernel.close();
    kernel.close();
    Ok(())
}

/// Prints what is done with each of a thread's elements.
pub(super) fn elements(kernel: &mut Kernel<'_>, elements: &Elements<'_>, tiling: Tiling) -> Result<(), String> {
    let (_, bytes) = sum_type(elements.problem.dtype)?;
    let Share { rows, columns } = share(tiling, bytes);
    kernel.unrolled("i", rows.own);
    elements.open_row(kernel, &rows.at("i"))?;
    let Part { own, width, apart, thread } = &columns;
    kernel.unrolled("j", own / width);
    let sum = format!("{}[i][j * {width} + e]", elements.words.sums);
    elements.neighbours(kernel, &format!("j * {apart} + {thread} * {width}"), *width, &sum)?;
    (0..3).for_each(|_| kernel.close());
    Ok(())
}
