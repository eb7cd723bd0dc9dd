//! Warp-level tensor-core products: `ldmatrix` loads fragments from shared memory, `mma.sync` multiplies them.
//!
//! ```text
//! for each 32 bytes of K:
//!     ldmatrix.x4 → of_a[i] (16 rows each), of_b[2j], of_b[2j + 1] (8 columns each)
//!     for i, j: mma.sync(sums[i][j], of_a[i], of_b[j])
//! // Lane l holds sums[i][j][h * 2 + e] = C[i * 16 + h * 8 + l / 4][j * 8 + l % 4 * 2 + e].
//! ```
//!
//! Requires: swizzled tiles with lines of 16-byte chunks ([`Operand::place`]). A step is 32 bytes of K for every dtype.
//! Guarantees: `wgmma` accumulators have the same layout, so [`super::hopper`] shares the declaration and the epilogue.
//!
//! Reference: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", and the sections on the other
//! shapes.

use super::hopper;
use super::kernel::Elements;
use super::names::GemmNames;
use super::operand::{Major, Operand};
use super::tiles::{Fragment, Mma, Tiling, Unit};
use crate::printer::Kernel;

/// The rows and columns of one accumulator fragment.
const ROWS: i64 = 16;
const COLUMNS: i64 = 8;

/// The elements of a tile that one warp computes.
struct Share {
    kind: Fragment,
    /// The number of rows and columns.
    rows: i64,
    columns: i64,
    /// The first row and column in the tile, as texts.
    row: String,
    column: String,
}

/// Returns the elements of each warp.
fn share(tiling: Tiling) -> Result<Share, String> {
    let Unit::Warps { m, n, kind, .. } = tiling.unit else {
        return Err("requires a tile for tensor cores; found another tile".to_owned());
    };
    let (rows, columns) = (tiling.m / m, tiling.n / n);
    Ok(Share { kind, rows, columns, row: format!("warp / {n} * {rows}"), column: format!("warp % {n} * {columns}") })
}

/// Declares the warp and lane index, and the accumulators.
pub(super) fn declare(kernel: &mut Kernel<'_>, names: &GemmNames, tiling: Tiling) -> Result<(), String> {
    kernel.line("const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;");
    declare_sums(kernel, names, tiling)
}

/// Declares a warp's accumulators: for each fragment, the four elements that a lane holds.
pub(super) fn declare_sums(kernel: &mut Kernel<'_>, names: &GemmNames, tiling: Tiling) -> Result<(), String> {
    let share = share(tiling)?;
    let ctype = if matches!(share.kind, Fragment::I8 { .. }) { "int" } else { "float" };
    kernel.line(&format!("{ctype} {}[{}][{}][4] = {{}};", names.sums, share.rows / ROWS, share.columns / COLUMNS));
    Ok(())
}

/// Emits the product of the tiles in the ring's `slot`.
pub(super) fn multiply(
    kernel: &mut Kernel<'_>,
    names: &GemmNames,
    tiling: Tiling,
    [a, b]: &[Operand<'_>; 2],
) -> Result<(), String> {
    let share = share(tiling)?;
    let (of_rows, of_columns) = (share.rows / ROWS, share.columns / COLUMNS);
    kernel.line(&format!("const {}* from_a = {} + slot * {};", a.element, names.tiles[0], a.elements()));
    kernel.line(&format!("const {}* from_b = {} + slot * {};", b.element, names.tiles[1], b.elements()));
    if let Unit::Warps { mma: Mma::Warpgroup, .. } = tiling.unit {
        kernel.line("const int team = warp / 4;");
        return hopper::multiply(kernel, names, tiling, [a.along, b.along]);
    }
    kernel.need("rx_ldmatrix");
    kernel.unrolled("k", tiling.k / (2 * a.chunk));
    kernel.line(&format!("unsigned of_a[{of_rows}][4], of_b[{of_columns}][2];"));
    read_rows(kernel, a, &share);
    read_columns(kernel, b, &share);
    if share.kind == Fragment::Tf32 {
        round(kernel, of_rows, of_columns);
    }
    kernel.unrolled("i", of_rows);
    kernel.line("#pragma unroll");
    let mma = format!("rx_mma_{}", share.kind.name());
    kernel.need(mma.clone());
    kernel.line(&format!("for (int j = 0; j < {of_columns}; ++j) {mma}({}[i][j], of_a[i], of_b[j]);", names.sums));
    kernel.close();
    kernel.close();
    Ok(())
}

/// Emits the loads of the warp's fragments of `A` into `of_a`. An MN-major tile is transposed by `ldmatrix.trans`.
fn read_rows(kernel: &mut Kernel<'_>, a: &Operand<'_>, share: &Share) {
    let row = &share.row;
    kernel.unrolled("i", share.rows / ROWS);
    let (helper, line, at) = match a.along {
        Major::K => ("rx_ldmatrix", format!("{row} + i * 16 + lane % 16"), "k * 2 + lane / 16".to_owned()),
        Major::Mn => (
            "rx_ldmatrix_transposed",
            "k * 16 + lane / 16 * 8 + lane % 8".to_owned(),
            format!("({row}) / 8 + i * 2 + lane / 8 % 2"),
        ),
    };
    kernel.line(&format!("const int line = {line}, chunk = {at};"));
    kernel.line(&format!("{helper}(of_a[i], &from_a[{}]);", a.place("line", "chunk")));
    kernel.close();
}

/// Emits the loads of the warp's fragments of `B` into `of_b`, two per `ldmatrix.x4`.
fn read_columns(kernel: &mut Kernel<'_>, b: &Operand<'_>, share: &Share) {
    let column = &share.column;
    kernel.unrolled("j", share.columns / COLUMNS / 2);
    kernel.line("unsigned both[4];");
    let (helper, line, at) = match b.along {
        Major::K => {
            ("rx_ldmatrix", format!("{column} + j * 16 + lane / 16 * 8 + lane % 8"), "k * 2 + lane / 8 % 2".to_owned())
        }
        Major::Mn => {
            ("rx_ldmatrix_transposed", "k * 16 + lane % 16".to_owned(), format!("({column}) / 8 + j * 2 + lane / 16"))
        }
    };
    kernel.line(&format!("const int line = {line}, chunk = {at};"));
    kernel.line(&format!("{helper}(both, &from_b[{}]);", b.place("line", "chunk")));
    kernel.line("of_b[2 * j][0] = both[0], of_b[2 * j][1] = both[1];");
    kernel.line("of_b[2 * j + 1][0] = both[2], of_b[2 * j + 1][1] = both[3];");
    kernel.close();
}

/// Emits the rounding of the loaded `float32` fragments to tf32. Without it `mma.sync` truncates.
fn round(kernel: &mut Kernel<'_>, of_rows: i64, of_columns: i64) {
    kernel.need("rx_to_tf32");
    kernel.line("// Round to tf32; mma.sync would truncate to 10 bits of fraction.");
    for (side, i, count, each) in [('a', 'i', of_rows * 4, 4), ('b', 'j', of_columns * 2, 2)] {
        let one = format!("of_{side}[{i} / {each}][{i} % {each}]");
        kernel.line("#pragma unroll");
        kernel.line(&format!("for (int {i} = 0; {i} < {count}; ++{i}) {one} = rx_to_tf32({one});"));
    }
}

/// Emits the epilogue of each element that a lane holds; with split-K, the store of its partial sum instead.
pub(super) fn elements(kernel: &mut Kernel<'_>, elements: &Elements<'_>, tiling: Tiling) -> Result<(), String> {
    let share = share(tiling)?;
    kernel.unrolled("i", share.rows / ROWS * 2);
    elements.open_row(kernel, &format!("{} + i * 8 + lane / 4", share.row))?;
    kernel.unrolled("j", share.columns / COLUMNS);
    let sum = format!("{}[i / 2][j][i % 2 * 2 + e]", elements.names.sums);
    elements.neighbours(kernel, &format!("{} + j * 8 + lane % 4 * 2", share.column), 2, &sum)?;
    (0..3).for_each(|_| kernel.close());
    Ok(())
}
