//! Which tiles a block has, and why.

use super::bring::uncast;
use super::problem::Problem;
use crate::rules::{Declined, Target};
use rx_base::DType;

/// As many rows of one value of the batch, at most, are decoding: keys and values are read for few queries.
const FEW_ROWS: i64 = 16;

/// Keys of a part, where blocks share the keys of a row: enough that a block's partial result is small beside what it reads.
const PART: i64 = 256;

/// How a block is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    pub(super) unit: Unit,
    /// Keys of a tile.
    pub(super) keys: i64,
    /// Keys that a block goes over, where it is not all of them.
    pub(super) part: Option<i64>,
}

/// What multiplies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Tensor cores: warps, each with so many times 16 rows.
    Warps { warps: i64, fragments: i64, is_bfloat: bool },
    /// Threads: sixteen side by side for each `rows` rows, `lines` of sixteen; elements of the result `pack` at once.
    Threads { lines: i64, rows: i64, pack: i64 },
}

impl Tiling {
    pub(super) fn rows(&self) -> i64 {
        match self.unit {
            Unit::Warps { warps, fragments, .. } => warps * fragments * 16,
            Unit::Threads { lines, rows, .. } => lines * rows,
        }
    }

    pub(super) fn threads(&self) -> i64 {
        match self.unit {
            Unit::Warps { warps, .. } => warps * 32,
            Unit::Threads { lines, .. } => lines * 16,
        }
    }

    /// The dtype of tiles in shared memory.
    pub(super) fn dtype(&self) -> DType {
        match self.unit {
            Unit::Warps { is_bfloat: true, .. } => DType::BFLOAT16,
            Unit::Warps { .. } => DType::FLOAT16,
            Unit::Threads { .. } => DType::FLOAT32,
        }
    }

    /// Elements of a line of queries, keys or values, padded to what is multiplied at once.
    pub(super) fn padded(&self, elements: i64) -> i64 {
        let whole = match self.unit {
            Unit::Warps { .. } => 16,
            Unit::Threads { pack, .. } => 16 * pack,
        };
        (elements + whole - 1) / whole * whole
    }

    /// One that needs less shared memory, where there is one: of fewer rows of each thread or warp, of fewer keys, of fewer threads.
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

    /// Its note.
    pub(super) fn note(&self) -> String {
        let (rows, keys) = (self.rows(), self.keys);
        let unit = match self.unit {
            Unit::Warps { warps, is_bfloat, .. } => {
                let (dtype, s) = (if is_bfloat { "bfloat16" } else { "float16" }, if warps == 1 { "" } else { "s" });
                format!("{warps} warp{s} on tensor cores, {dtype}")
            }
            Unit::Threads { lines, .. } => format!("{} threads", lines * 16),
        };
        let parts = self.part.map_or(String::new(), |part| {
            format!("; few rows, so blocks share their keys in parts of {part}, and a second kernel joins them")
        });
        format!("{rows} rows by tiles of {keys} keys, {unit}; the scores never reach memory{parts}")
    }
}

/// The tiling of a problem. It is reasoned, not measured: keys and values are read from shared memory once for all rows of a
/// warp, so it has as many rows as its registers hold sums for; and tiles are small enough for two blocks of a multiprocessor.
pub(super) fn choose(problem: &Problem, target: &Target) -> Result<Tiling, Declined> {
    let longest = problem.depth.1.max(problem.width.1);
    let rows = problem.row_count().as_int();
    // Whether tiles of so many rows give each multiprocessor one; where nothing is known before the call, they do.
    let are_enough = |tile: i64| match (rows, problem.batch_count().as_int()) {
        (Some(rows), Some(batch)) => (rows + tile - 1) / tile * batch >= i64::from(target.units),
        _ => true,
    };
    let is_few = rows.is_some_and(|rows| rows <= FEW_ROWS);
    let keys = problem.key_count().as_int();
    let part = (is_few && keys.is_none_or(|keys| keys > 2 * PART)).then_some(PART);
    if let Some(dtype) = half(problem) {
        let is_bfloat = dtype == DType::BFLOAT16;
        let fragments = if longest > 128 || !are_enough(128) { 1 } else { 2 };
        let keys = if longest > 64 && fragments == 2 || longest > 128 { 32 } else { 64 };
        let unit = match is_few {
            true => Unit::Warps { warps: 1, fragments: 1, is_bfloat },
            false => Unit::Warps { warps: 4, fragments, is_bfloat },
        };
        return Ok(Tiling { unit, keys, part });
    }
    for factor in [&problem.query, &problem.keys, &problem.values] {
        let dtype = factor.dtype();
        if !dtype.is_float() || dtype.bits > 32 {
            return Err(Declined::because(format!("a factor is of {dtype}")));
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
        // A line of keys is read from shared memory once for two rows, which is what takes longest; more rows of a thread would leave
        // too few threads to wait with.
        _ if !are_enough(32) => (8, 2),
        _ if longest > 128 || !are_enough(64) => (16, 2),
        _ => (16, 4),
    };
    let keys = if longest > 64 { 32 } else { 64 };
    Ok(Tiling { unit: Unit::Threads { lines, rows: of_thread, pack }, keys, part })
}

/// The dtype of 16 bits that all three factors have.
fn half(problem: &Problem) -> Option<DType> {
    [DType::FLOAT16, DType::BFLOAT16].into_iter().find(|dtype| {
        [&problem.query, &problem.keys, &problem.values].into_iter().all(|factor| uncast(factor, *dtype).is_some())
    })
}
