//! Warpgroup products on `sm_90a`: four warps multiply 64 rows together (`wgmma`), and both factors are in shared
//! memory.
//!
//! ```text
//! wgmma.fence
//! for each 32 bytes of K: wgmma.mma_async(sums, descriptor of A, descriptor of B)
//! wgmma.commit_group
//! ```
//!
//! Requires: tiles with lines of 128 bytes along K or along the free axis, in the 128-byte swizzle: the 16-byte chunks
//! of a line are permuted by the line's number, so that the chunks at one position of eight lines are in different
//! banks. Lines along the free axis have 64 elements; a wider tile is several such panels, one after the other. Only
//! 16-bit elements may be MN-major.
//! Guarantees: the accumulators have the layout of `mma.sync` ([`super::warps`]).
//!
//! `wgmma` truncates `float32` factors to tf32 (10 bits of fraction); it does not round them.
//!
//! Reference: PTX ISA, "Shared Memory Matrix Layout" (the 128-byte swizzle).
//!
//! - [`kernel`]: the warp-specialized kernel, if both factors are dense views ([`view`]) that [`tilings`] accepts. One
//!   thread copies tiles with TMA; one or two warpgroups multiply.
//! - Otherwise, all threads load the tiles, as for `mma.sync` ([`super::kernel`]).

pub(super) mod kernel;
pub(super) mod view;

use super::names::GemmNames;
use super::operand::Major;
use super::problem::Problem;
use super::tiles::{Fragment, Mma, Tiling, Unit};
use crate::printer::Kernel;
use crate::rules::Target;
use view::View;

/// Bytes of one line of a tile, and of the eight lines that are one atom of the 128-byte swizzle.
pub(super) const LINE: i64 = 128;
const EIGHT_LINES: i64 = 8 * LINE;

/// Rows that one warpgroup multiplies.
pub(super) const ROWS: i64 = 64;

/// The only architecture that has `wgmma`; later ones do not have it.
const ARCH: u32 = 90;

/// Returns the tilings for a product on `sm_90a`: with TMA if both factors are dense views of elements as wide as the
/// fragment's, and K-major unless the elements have 16 bits; otherwise the one that all threads load. Returns none for
/// other architectures, and for dtypes without a [`Fragment`].
pub(super) fn tilings(problem: &Problem, target: &Target) -> Vec<Tiling> {
    let Some(kind) = Fragment::of(problem, target).filter(|_| target.arch == ARCH) else { return Vec::new() };
    let of = |m: i64, n: i64, stages: i64, mma: Mma| {
        let unit = Unit::Warps { m: m / 16, n: 1, kind, mma };
        Tiling { m, n, k: LINE / kind.bytes(), stages, unit }
    };
    let fits = |view: &Result<View, String>| {
        view.as_ref()
            .is_ok_and(|view| view.element_bytes == kind.bytes() && (kind.bytes() == 2 || view.along == Major::K))
    };
    match fits(&problem.a.view) && fits(&problem.b.view) {
        // The stages use 192 KB of a multiprocessor's shared memory: in one block, or in two with the last tiling.
        true => vec![
            of(128, 256, 4, Mma::WarpgroupTma),
            of(128, 128, 6, Mma::WarpgroupTma),
            of(64, 128, 4, Mma::WarpgroupTma),
        ],
        false => vec![of(128, 128, 3, Mma::Warpgroup)],
    }
}

/// Emits the products of the tiles at `from_a` and `from_b`, in the layouts `[a, b]`, as one commit group of `wgmma`.
/// It does not wait for them.
pub(super) fn multiply(
    kernel: &mut Kernel<'_>,
    names: &GemmNames,
    tiling: Tiling,
    [a, b]: [Major; 2],
) -> Result<(), String> {
    let Unit::Warps { n: 1, kind, .. } = tiling.unit else {
        return Err("requires a tile of warpgroups; found another tile".to_owned());
    };
    let helper = format!("rx_wgmma_{}_{}", kind.name(), tiling.n);
    kernel.need("rx_wgmma");
    kernel.need(helper.clone());
    let bytes = kind.bytes();
    // In elements: one line, and the K values of one `wgmma` (32 bytes).
    let (line, step) = (LINE / bytes, 32 / bytes);
    let place = |along: Major| match along {
        // The hardware ignores the leading distance of a K-major operand with this swizzle.
        Major::K => (format!("k * {step}"), 16),
        Major::Mn => (format!("k * {}", step * line), tiling.k * LINE),
    };
    let ((at_a, leading_a), (at_b, leading_b)) = (place(a), place(b));
    let flag = |along: Major| i32::from(along == Major::Mn);
    kernel.line("rx_wgmma_fence();");
    kernel.unrolled("k", tiling.k / step);
    kernel.line(&format!("{helper}<{}, {}>({}[0],", flag(a), flag(b), names.sums));
    kernel.go_on(&format!("rx_matrix(&from_a[team * {} + {at_a}], {leading_a}, {EIGHT_LINES}),", ROWS * line));
    kernel.go_on(&format!("rx_matrix(&from_b[{at_b}], {leading_b}, {EIGHT_LINES}));"));
    kernel.close();
    kernel.line("rx_wgmma_commit();");
    Ok(())
}
