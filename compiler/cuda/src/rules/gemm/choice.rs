//! The choice between `mma.sync` and the tilings of `sm_90a`, by estimated time. [`super::super::tiles::choose`] calls
//! it.

use super::super::operand::Along;
use super::super::problem::Problem;
use super::super::tiles::{Choice, Fragment, Means, Sizes, Tiling, Unit};
use super::view::View;
use crate::rules::Target;

/// The only architecture that has `wgmma`; later ones do not have it.
const ARCH: u32 = 90;

/// The least utilization of a tiling ([`Sizes::used`]); below it a smaller tile is better.
const LEAST_USED: f64 = 0.5;

/// Returns the estimated throughput of a multiprocessor with enough tiles, relative to the peak of its tensor cores.
/// The figures are reasoned, not measured: a `wgmma` with 256 columns reads 10 KB of shared memory in its 128 cycles,
/// one with 128 columns 6 KB in 64 cycles, and a multiprocessor reads 128 bytes per cycle. `mma.sync` is reported to
/// reach 60 to 65 % of `wgmma`.
fn rate(tiling: &Tiling) -> f64 {
    match (tiling.unit, tiling.m, tiling.n) {
        (Unit::Warps { means: Means::Bulk, .. }, 128, 256) => 1.0,
        (Unit::Warps { means: Means::Bulk, .. }, 128, _) => 0.9,
        (Unit::Warps { means: Means::Bulk, .. }, _, _) => 0.75,
        (Unit::Warps { means: Means::Group, .. }, _, _) => 0.7,
        (_, 128, _) => 0.6,
        (_, 64, _) => 0.45,
        _ => 0.3,
    }
}

/// Returns the tilings for a product: with TMA if both factors are dense views, otherwise the one that all threads
/// load.
fn table(problem: &Problem, kind: Fragment) -> Vec<Tiling> {
    let of = |m: i64, n: i64, stages: i64, means: Means| {
        let unit = Unit::Warps { m: m / 16, n: 1, kind, means };
        Tiling { m, n, k: super::LINE / kind.bytes(), stages, unit }
    };
    let fits = |view: &Result<View, String>| {
        view.as_ref()
            .is_ok_and(|view| view.element_bytes == kind.bytes() && (kind.bytes() == 2 || view.along == Along::Sum))
    };
    match fits(&problem.a.view) && fits(&problem.b.view) {
        // As many stages as fit in shared memory: one block per multiprocessor, or two with the last tiling.
        true => vec![of(128, 256, 4, Means::Bulk), of(128, 128, 6, Means::Bulk), of(64, 128, 4, Means::Bulk)],
        false => vec![of(128, 128, 3, Means::Group)],
    }
}

/// Returns a tiling for `sm_90a` if its estimated time is below that of `other`. The estimate is the number of waves of
/// blocks, times the work of a tile, divided by the throughput.
pub(crate) fn choose(problem: &Problem, target: &Target, sizes: &Sizes, other: &Choice) -> Option<Choice> {
    let Unit::Warps { kind, .. } = other.tiling.unit else { return None };
    if target.arch != ARCH {
        return None;
    }
    let units = i64::from(target.units).max(1);
    let time = |tiling: &Tiling, parts: i64| {
        let rounds = (sizes.blocks(tiling).saturating_mul(parts) + units - 1) / units;
        let depth = (sizes.k + tiling.k * parts - 1) / (tiling.k * parts) * tiling.k;
        (rounds * tiling.m * tiling.n) as f64 * depth as f64 / rate(tiling)
    };
    let candidates = table(problem, kind).into_iter().filter(|tiling| sizes.used(tiling) >= LEAST_USED);
    let timed = candidates.map(|tiling| {
        let parts = sizes.parts(&tiling, units);
        (time(&tiling, parts), tiling, parts)
    });
    let (best, tiling, parts) = timed.min_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    if best >= time(&other.tiling, other.parts) {
        return None;
    }
    let tiles = sizes.blocks(&tiling);
    let cut = if parts > 1 { format!(", so the sum is cut into {parts} parts") } else { String::new() };
    let text = &sizes.text;
    let reason = format!("{text}: tiles {tiles} for multiprocessors {units}{cut}, less time than with mma.sync");
    Some(Choice { tiling, parts, reason })
}
