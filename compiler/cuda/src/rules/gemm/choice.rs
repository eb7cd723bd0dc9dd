//! The choice of a tiling and of the number of split-K slices: the candidate with the least estimated time.
//!
//! ```text
//! time = slices of tiles of a multiprocessor * multiply-adds of a slice / throughput
//!      + elements of a multiprocessor * instructions of the epilogue / instructions per microsecond
//!      + (stores and loads of the slices + launch of the second kernel, if there is more than one slice)
//! ```
//!
//! The throughputs are fractions of the multiprocessor's peak. Most follow from times of the kernel table on an H100
//! (`docs/gpu.md`). For `mma.sync` with 128 rows and TMA tiles with 128 columns, the ratio to a measured tiling is an
//! estimate. For `mma.sync` with a gathered factor (convolutions), all are estimates: larger than these kernels reach,
//! but the table was measured with the tilings that they choose. The fractions decide between tilings, so on another
//! device mainly their ratios matter.

use super::hopper;
use super::problem::{Axis, Problem};
use super::tiles::{Fragment, Mma, Tiling, Unit};
use crate::rules::{Declined, Target, groups_of};

/// The assumed extent of M, N or K if it is not a constant.
pub(super) const UNKNOWN: i64 = 512;

/// The fewest K values per split-K slice on average; shorter slices do not pay. The last slices may be shorter or empty.
const LEAST_SLICE: i64 = 256;

/// The largest number of split-K slices.
const MOST_SLICES: i64 = 32;

/// The largest number of slices per multiprocessor that split-K creates, over all tiles. More slices would add work
/// without filling idle threads. K is split only if there is at most one tile per multiprocessor.
const TILES_EACH: i64 = 2;

/// Elements of split-K slices that the device stores or loads in a microsecond.
const SLICE_ELEMENTS: f64 = 750e3;

/// Microseconds that the launch of the second kernel takes, which adds the slices.
const SECOND_LAUNCH: f64 = 3.0;

/// Instructions of threads that a multiprocessor executes in a microsecond: 128 per cycle at 1.755 GHz. So the batch
/// norm and `relu` after a convolution take 1.5 microseconds for a tile of 64x128.
const INSTRUCTIONS: f64 = 224e3;

/// Warps that a multiprocessor needs to keep its four schedulers busy.
const BUSY_WARPS: i64 = 4;

/// A chosen tiling, with the number of split-K slices and the reason in words.
pub(crate) struct Choice {
    pub(crate) tiling: Tiling,
    pub(crate) slices: i64,
    pub(crate) reason: String,
}

/// The extents of a product as numbers. An extent that is not constant is assumed to be [`UNKNOWN`]; for the batch, 1.
struct Sizes {
    m: i64,
    n: i64,
    k: i64,
    batch: i64,
    /// The instructions of the epilogue for one element.
    epilogue: i64,
    /// Whether all extents are constants.
    is_known: bool,
    /// The extents of M, N and K for the schedule's note.
    text: String,
}

impl Sizes {
    /// Returns the extents of a product.
    fn of(problem: &Problem) -> Sizes {
        let size = |axis: &Axis| axis.constant().unwrap_or(UNKNOWN).max(0);
        let (m, n, k) = (size(&problem.m), size(&problem.n), size(&problem.k));
        let batch = problem.batch.constant().unwrap_or(1).max(1);
        let is_known =
            [&problem.m, &problem.n, &problem.k, &problem.batch].iter().all(|axis| axis.constant().is_some());
        let text = |axis: &Axis, name: &str| {
            axis.constant().map_or_else(|| format!("{name} symbolic"), |size| size.to_string())
        };
        let text = [text(&problem.m, "m"), text(&problem.n, "n"), text(&problem.k, "k")].join(" x ");
        Sizes { m, n, k, batch, epilogue: problem.epilogue.instructions(), is_known, text }
    }

    /// Returns the number of tiles that cover the result.
    fn tiles(&self, tiling: &Tiling) -> i64 {
        groups_of(self.m, tiling.m).saturating_mul(groups_of(self.n, tiling.n)).saturating_mul(self.batch)
    }

    /// Returns the largest number of split-K slices to consider.
    fn most_slices(&self, tiling: &Tiling, units: i64) -> i64 {
        let tiles = self.tiles(tiling);
        match self.is_known && tiles > 0 && tiles <= units {
            true => (TILES_EACH * units / tiles).min(self.k / LEAST_SLICE).clamp(1, MOST_SLICES),
            false => 1,
        }
    }

    /// Returns the estimated time in microseconds of a product by a tiling, in this number of split-K slices.
    /// `throughput` is the multiply-adds per microsecond of a busy multiprocessor.
    fn time(&self, tiling: &Tiling, slices: i64, units: i64, throughput: f64) -> f64 {
        let tiles = self.tiles(tiling).saturating_mul(slices);
        let each = groups_of(tiles, units);
        let depth = groups_of(self.k, tiling.k * slices).saturating_mul(tiling.k).min(self.k);
        let warps = each.saturating_mul(tiling.threads() / 32).min(BUSY_WARPS);
        let busy = warps as f64 / BUSY_WARPS as f64;
        let product = each as f64 * (tiling.m * tiling.n) as f64 * depth as f64 / (throughput * busy);
        let elements = self.m as f64 * self.n as f64 * self.batch as f64;
        let split = if slices > 1 { elements * slices as f64 * 2.0 / SLICE_ELEMENTS + SECOND_LAUNCH } else { 0.0 };
        // The second kernel has the epilogue of split-K slices, and a thread for each element.
        let groups = if slices > 1 { units as f64 } else { tiles.max(1) as f64 / each.max(1) as f64 };
        product + split + elements / groups * self.epilogue as f64 / INSTRUCTIONS
    }
}

/// Returns the assumed peak of a multiprocessor of an H100, in multiply-adds per microsecond: for tensor cores by the
/// dtype of the factors, otherwise by `bits`, the width of the result's dtype.
fn peak(tiling: &Tiling, bits: u8) -> f64 {
    match tiling.unit {
        Unit::Warps { kind: Fragment::F16 | Fragment::Bf16, .. } => 3.0e6,
        Unit::Warps { kind: Fragment::Tf32, .. } => 1.5e6,
        Unit::Warps { kind: Fragment::I8 { .. }, .. } => 6.0e6,
        Unit::Threads { .. } if bits == 64 => 0.1e6,
        Unit::Threads { .. } => 0.2e6,
    }
}

/// Returns the fraction of the peak that a tiling reaches with enough tiles. A `wgmma` with 256 columns reads 10 KB of
/// shared memory in its 128 cycles, one with 128 columns 6 KB in 64 cycles, and a multiprocessor reads 128 bytes per
/// cycle; so larger tiles are faster. `is_dense` is whether both factors are dense views.
fn rate(tiling: &Tiling, is_dense: bool) -> f64 {
    match (tiling.unit, tiling.m, tiling.n) {
        (Unit::Warps { mma: Mma::WarpgroupTma, .. }, 128, 256) => 0.82,
        (Unit::Warps { mma: Mma::WarpgroupTma, .. }, 128, _) => 0.74,
        (Unit::Warps { mma: Mma::WarpgroupTma, .. }, _, _) => 0.62,
        (Unit::Warps { mma: Mma::Warpgroup, .. }, _, _) => 0.53,
        (Unit::Warps { mma: Mma::Warp, .. }, 128, _) if !is_dense => 0.49,
        (Unit::Warps { mma: Mma::Warp, .. }, 64, _) if !is_dense => 0.37,
        (Unit::Warps { mma: Mma::Warp, .. }, _, _) if !is_dense => 0.25,
        (Unit::Warps { mma: Mma::Warp, .. }, 128, _) => 0.28,
        (Unit::Warps { mma: Mma::Warp, .. }, 64, _) => 0.21,
        (Unit::Warps { mma: Mma::Warp, .. }, _, _) => 0.14,
        (Unit::Threads { .. }, 128, _) => 0.80,
        (Unit::Threads { .. }, 64, _) => 0.63,
        (Unit::Threads { .. }, _, 64) => 0.48,
        (Unit::Threads { .. }, _, _) => 0.43,
    }
}

/// Chooses a tiling and a number of split-K slices.
///
/// # Errors
/// There is no tiling to choose from; [`Tiling::table`] has some for every dtype.
pub(crate) fn choose(problem: &Problem, target: &Target) -> Result<Choice, Declined> {
    let units = i64::from(target.units).max(1);
    let sizes = Sizes::of(problem);
    let is_dense = problem.a.view.is_ok() && problem.b.view.is_ok();
    let mut tilings = Tiling::table(problem, target);
    tilings.extend(hopper::tilings(problem, target));
    let candidates = tilings
        .into_iter()
        .flat_map(|tiling| (1..=sizes.most_slices(&tiling, units)).map(move |slices| (tiling, slices)));
    let timed = candidates.map(|(tiling, slices)| {
        let throughput = peak(&tiling, problem.dtype.bits) * rate(&tiling, is_dense);
        (sizes.time(&tiling, slices, units, throughput), tiling, slices)
    });
    let best = timed.min_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let (_, tiling, slices) =
        best.ok_or_else(|| Declined::because("requires a dtype that has tiles; found another dtype"))?;
    let tiles = sizes.tiles(&tiling);
    let split = if slices > 1 { format!(", split-K into {slices} slices") } else { String::new() };
    let reason = format!("{}: {tiles} tiles for {units} multiprocessors{split}", sizes.text);
    Ok(Choice { tiling, slices, reason })
}

#[cfg(test)]
mod tests {
    use super::{Mma, Sizes, Tiling, Unit, peak, rate};
    use crate::rules::gemm::tiles::Fragment;

    #[test]
    fn slices_that_divide_k_have_no_partial_tile() {
        let unit = Unit::Warps { m: 8, n: 1, kind: Fragment::Bf16, mma: Mma::WarpgroupTma };
        let tiling = Tiling { m: 128, n: 128, k: 64, stages: 6, unit };
        let sizes = |k| Sizes { m: 128, n: 128, k, batch: 1, epilogue: 0, is_known: true, text: String::new() };
        let time = |k, slices| sizes(k).time(&tiling, slices, 132, 3.0e6);
        // With four slices, K = 1024 takes as long as K = 769: each slice has four K tiles of 64 values.
        assert_eq!(time(1024, 4), time(769, 4));
        assert!(time(1025, 4) > time(1024, 4));
    }

    /// The 1 x 1 convolution of resnet50 with 196 pixels, 1024 input and 256 output channels. Small tiles distribute
    /// its batch norm over more multiprocessors.
    #[test]
    fn tile_of_a_long_epilogue_is_small() {
        let large = Unit::Warps { m: 4, n: 1, kind: Fragment::Bf16, mma: Mma::WarpgroupTma };
        let large = Tiling { m: 64, n: 128, k: 64, stages: 4, unit: large };
        let small = Unit::Warps { m: 2, n: 2, kind: Fragment::Bf16, mma: Mma::Warp };
        let small = Tiling { m: 32, n: 64, k: 32, stages: 3, unit: small };
        let is_small_faster = |epilogue| {
            let sizes = Sizes { m: 196, n: 256, k: 1024, batch: 1, epilogue, is_known: true, text: String::new() };
            let time = |tiling: &Tiling| sizes.time(tiling, 1, 132, peak(tiling, 16) * rate(tiling, true));
            time(&small) < time(&large)
        };
        // A bias takes 4 instructions, a batch norm with `relu` 41.
        assert!(!is_small_faster(4));
        assert!(is_small_faster(41));
    }
}
