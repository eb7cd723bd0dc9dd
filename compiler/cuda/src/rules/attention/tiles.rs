//! Tile sizes of the attention kernel and their choice.

use super::load::uncast;
use super::problem::Problem;
use crate::rules::{Declined, Target};
use rx_base::DType;

/// The maximum number of rows per batch value that counts as decoding, where few queries read many keys and values.
const FEW_ROWS: i64 = 16;

/// The number of keys per split-KV slice. It is large enough that a block reads much more than its partial result.
const SLICE: i64 = 256;

/// The tile sizes of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    /// The unit that multiplies, with its number of rows.
    pub(super) unit: Unit,
    /// The number of keys per tile.
    pub(super) keys: i64,
    /// The maximum number of keys per split-KV slice; `None` without split-KV.
    pub(super) slice: Option<i64>,
}

/// The unit that multiplies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Tensor cores: `warps` warps, each with `fragments` times 16 rows. For example, 4 warps with 2 fragments have 128
    /// rows. `is_bfloat`: the operands are `bfloat16`, otherwise `float16`.
    Warps { warps: i64, fragments: i64, is_bfloat: bool },
    /// Single threads: `lines` groups of 16 neighbouring threads, each with `rows` rows. A thread has groups of `pack`
    /// neighbouring columns of the result.
    Threads { lines: i64, rows: i64, pack: i64 },
}

impl Tiling {
    /// Returns the number of rows of a block.
    pub(super) fn rows(&self) -> i64 {
        match self.unit {
            Unit::Warps { warps, fragments, .. } => warps * fragments * 16,
            Unit::Threads { lines, rows, .. } => lines * rows,
        }
    }

    /// Returns the number of threads of a block.
    pub(super) fn threads(&self) -> i64 {
        match self.unit {
            Unit::Warps { warps, .. } => warps * 32,
            Unit::Threads { lines, .. } => lines * 16,
        }
    }

    /// Returns the dtype of the tiles in shared memory.
    pub(super) fn dtype(&self) -> DType {
        match self.unit {
            Unit::Warps { is_bfloat: true, .. } => DType::BFLOAT16,
            Unit::Warps { .. } => DType::FLOAT16,
            Unit::Threads { .. } => DType::FLOAT32,
        }
    }

    /// Rounds the length of a row of queries, keys or values up to a multiple of the unit's granularity.
    pub(super) fn padded(&self, elements: i64) -> i64 {
        let whole = match self.unit {
            Unit::Warps { .. } => 16,
            Unit::Threads { pack, .. } => 16 * pack,
        };
        (elements + whole - 1) / whole * whole
    }

    /// Returns the next tiling to try if this one exceeds the shared memory: with fewer rows per thread or warp, then
    /// fewer keys per tile, then fewer warps or lines. Returns `None` if this is the smallest.
    pub(super) fn smaller(&self) -> Option<Tiling> {
        let unit = match self.unit {
            Unit::Warps { warps, fragments: 2, is_bfloat } => Unit::Warps { warps, fragments: 1, is_bfloat },
            Unit::Threads { lines, rows, pack } if rows > 1 => Unit::Threads { lines, rows: rows / 2, pack },
            _ if self.keys > 32 => return Some(Tiling { keys: 32, ..*self }),
            Unit::Warps { warps, fragments, is_bfloat } if warps > 1 => {
                Unit::Warps { warps: warps / 2, fragments, is_bfloat }
            }
            Unit::Threads { lines, rows, pack } if lines > 2 => Unit::Threads { lines: lines / 2, rows, pack },
            _ => return None,
        };
        Some(Tiling { unit, ..*self })
    }

    /// Describes the tiling for the scheduling remark.
    pub(super) fn note(&self) -> String {
        let (rows, keys) = (self.rows(), self.keys);
        let unit = match self.unit {
            Unit::Warps { warps, is_bfloat, .. } => {
                let (dtype, s) = (if is_bfloat { "bfloat16" } else { "float16" }, if warps == 1 { "" } else { "s" });
                format!("{warps} warp{s} on tensor cores, {dtype}")
            }
            Unit::Threads { lines, .. } => format!("{} threads", lines * 16),
        };
        let slices = self
            .slice
            .map_or(String::new(), |slice| format!("; split-KV: slices of {slice} keys, combined by a second kernel"));
        format!("{rows} rows, tiles of {keys} keys, {unit}; scores stay on chip{slices}")
    }
}

/// Chooses the tiling of a problem, by reasoning instead of measurement. A warp or thread reads keys and values from
/// shared memory once for all its rows. So it has the maximum number of rows, unless they are long, there are few of
/// them, or some multiprocessors would otherwise have no block. Tiles may exceed the shared memory: see
/// [`Tiling::smaller`]. Declines, for single threads, operands that are not floats of at most 32 bits.
pub(super) fn choose(problem: &Problem, target: &Target) -> Result<Tiling, Declined> {
    let longest = problem.depth.1.max(problem.width.1);
    let rows = problem.row_count().as_int();
    // Whether tiles of `tile` rows give each multiprocessor at least one block. Symbolic counts are assumed to be
    // large.
    let are_enough = |tile: i64| match (rows, problem.batch_count().as_int()) {
        (Some(rows), Some(batch)) => (rows + tile - 1) / tile * batch >= i64::from(target.units),
        _ => true,
    };
    let is_few = rows.is_some_and(|rows| rows <= FEW_ROWS);
    let keys = problem.key_count().as_int();
    let slice = (is_few && keys.is_none_or(|keys| keys > 2 * SLICE)).then_some(SLICE);
    if let Some(dtype) = half(problem) {
        let is_bfloat = dtype == DType::BFLOAT16;
        let fragments = if longest > 128 || !are_enough(128) { 1 } else { 2 };
        // With two fragments and more than 64 elements per row, 64 keys just fit the registers, and only if the numbers
        // of rows and keys are constants, which need no registers.
        let fits = longest <= 64 || fragments == 1 || rows.is_some() && keys.is_some();
        let keys = if longest <= 128 && fits { 64 } else { 32 };
        let unit = match is_few {
            true => Unit::Warps { warps: 1, fragments: 1, is_bfloat },
            false => Unit::Warps { warps: 4, fragments, is_bfloat },
        };
        return Ok(Tiling { unit, keys, slice });
    }
    for factor in [&problem.query, &problem.keys, &problem.values] {
        let dtype = factor.dtype();
        if !dtype.is_float() || dtype.bits > 32 {
            return Err(Declined::because(format!("requires factors of floats of at most 32 bits; found {dtype}")));
        }
    }
    let pack = match longest {
        ..=16 => 1,
        17..=32 => 2,
        _ => 4,
    };
    let (lines, of_thread) = match rows {
        Some(..=2) => (2, 1),
        Some(..=8) => (8, 1),
        // There are few blocks. Reads of keys from shared memory are the bottleneck; with two rows per thread, each
        // read serves two rows. More rows per thread would leave too few threads to hide latencies.
        _ if !are_enough(32) => (8, 2),
        _ if longest > 128 || !are_enough(64) => (16, 2),
        _ => (16, 4),
    };
    let keys = if longest > 64 { 32 } else { 64 };
    Ok(Tiling { unit: Unit::Threads { lines, rows: of_thread, pack }, keys, slice })
}

/// Returns the 16-bit dtype of all three operands, if they have the same; casts to `float32` are ignored.
fn half(problem: &Problem) -> Option<DType> {
    [DType::FLOAT16, DType::BFLOAT16].into_iter().find(|dtype| {
        [&problem.query, &problem.keys, &problem.values].into_iter().all(|factor| uncast(factor, *dtype).is_some())
    })
}
