//! Which tile a block computes, and with which unit: a small table, and how a problem's extents choose from it.

use super::hopper;
use super::problem::{Axis, Factor, Problem};
use crate::rules::{Declined, Target};
use rx_base::DType;
use rx_base::dtype::TypeCode;

/// How a block computes its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Rows, columns and summed values of a tile.
    pub(crate) m: i64,
    pub(crate) n: i64,
    pub(crate) k: i64,
    /// How many tiles of the factors are in shared memory at once.
    pub(crate) stages: i64,
    pub(crate) unit: Unit,
}

/// What multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Each thread sums a small tile of this many rows and columns in registers.
    Threads { m: i64, n: i64 },
    /// Tensor cores: this many warps along rows and columns of the tile.
    Warps { m: i64, n: i64, kind: Fragment, means: Means },
}

/// How warps multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// Each by itself, from registers: `mma.sync`.
    Alone,
    /// Four together, from shared memory: `wgmma` of `sm_90a`. All threads bring tiles.
    Group,
    /// As [`Means::Group`], from tiles that one thread has copied (TMA); four warps more are there for it.
    Bulk,
}

/// Elements of factors that tensor cores multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    /// `float16`, sums in `float32`.
    F16,
    /// `bfloat16`, sums in `float32`.
    Bf16,
    /// `float32` rounded to 10 bits of fraction, sums in `float32`.
    Tf32,
    /// 8-bit integers, sums in `int32`; whether each factor's are signed.
    I8 { a_signed: bool, b_signed: bool },
}

impl Fragment {
    /// Bytes of an element.
    pub(crate) fn bytes(self) -> i64 {
        match self {
            Fragment::F16 | Fragment::Bf16 => 2,
            Fragment::Tf32 => 4,
            Fragment::I8 { .. } => 1,
        }
    }

    /// The factors' types in the names of products (`rx_mma_…`, `rx_wgmma_…`).
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fragment::F16 => "f16",
            Fragment::Bf16 => "bf16",
            Fragment::Tf32 => "tf32",
            Fragment::I8 { a_signed: true, b_signed: true } => "s8_s8",
            Fragment::I8 { a_signed: true, b_signed: false } => "s8_u8",
            Fragment::I8 { a_signed: false, b_signed: true } => "u8_s8",
            Fragment::I8 { a_signed: false, b_signed: false } => "u8_u8",
        }
    }

    /// The fragment that a problem's factors are made of.
    fn of(problem: &Problem, target: &Target) -> Option<Fragment> {
        let sums_in = |wanted: DType| problem.dtype == wanted;
        let of_floats = sums_in(DType::FLOAT32) || problem.dtype.is_float() && problem.dtype.bits == 16;
        match (problem.a.narrow.dtype(), problem.b.narrow.dtype()) {
            (DType::FLOAT16, DType::FLOAT16) if of_floats => Some(Fragment::F16),
            (DType::BFLOAT16, DType::BFLOAT16) if of_floats => Some(Fragment::Bf16),
            (DType::FLOAT32, DType::FLOAT32) if target.tf32 && sums_in(DType::FLOAT32) => Some(Fragment::Tf32),
            (a, b) if is_byte(a) && is_byte(b) && sums_in(DType::INT32) => {
                Some(Fragment::I8 { a_signed: a == DType::INT8, b_signed: b == DType::INT8 })
            }
            _ => None,
        }
    }
}

fn is_byte(dtype: DType) -> bool {
    dtype == DType::INT8 || dtype == DType::UINT8
}

/// What an extent that is not known is taken for.
pub(super) const UNKNOWN: i64 = 512;

/// Fewer summed values than this are not worth a part of their own.
const LEAST_PART: i64 = 256;

/// The most parts a sum is cut into.
const MOST_PARTS: i64 = 32;

impl Tiling {
    /// Threads of a block.
    pub(crate) fn threads(self) -> i64 {
        match self.unit {
            Unit::Threads { m, n } => self.m / m * (self.n / n),
            Unit::Warps { m, n, means, .. } => m * n * 32 + if means == Means::Bulk { 128 } else { 0 },
        }
    }

    /// The tilings for a problem's dtypes, the largest first.
    fn table(problem: &Problem, target: &Target) -> Vec<Tiling> {
        if let Some(kind) = Fragment::of(problem, target) {
            let warps = |m, n, warps_m, warps_n| {
                // A chunk of 16 bytes is one step of a fragment; four of them are a line of a tile.
                let unit = Unit::Warps { m: warps_m, n: warps_n, kind, means: Means::Alone };
                Tiling { m, n, k: 64 / kind.bytes(), stages: 3, unit }
            };
            return vec![warps(128, 128, 2, 4), warps(64, 64, 2, 2), warps(32, 64, 1, 4)];
        }
        let of_threads = |m, n, k, of_m, of_n| Tiling { m, n, k, stages: 2, unit: Unit::Threads { m: of_m, n: of_n } };
        match problem.dtype.bits {
            64 => vec![of_threads(64, 64, 8, 4, 4), of_threads(32, 32, 8, 4, 4)],
            _ => vec![
                of_threads(128, 128, 8, 8, 8),
                of_threads(64, 64, 16, 4, 4),
                of_threads(32, 64, 16, 4, 4),
                of_threads(32, 32, 16, 4, 4),
            ],
        }
    }
}

/// A tiling, into how many parts the sum is cut, and why.
pub(crate) struct Choice {
    pub(crate) tiling: Tiling,
    pub(crate) parts: i64,
    pub(crate) reason: String,
}

/// Extents as they are taken for the choice, those not known guessed.
pub(crate) struct Sizes {
    m: i64,
    n: i64,
    pub(crate) k: i64,
    batch: i64,
    /// Whether none was guessed.
    is_known: bool,
    /// What is known, to be read.
    pub(crate) text: String,
}

impl Sizes {
    fn of(problem: &Problem) -> Sizes {
        let size = |axis: &Axis| axis.constant().unwrap_or(UNKNOWN);
        let (m, n, k) = (size(&problem.m), size(&problem.n), size(&problem.k));
        let batch = problem.batch.constant().unwrap_or(1).max(1);
        let is_known =
            [&problem.m, &problem.n, &problem.k, &problem.batch].iter().all(|axis| axis.constant().is_some());
        let text = |axis: &Axis, name: &str| {
            axis.constant().map_or_else(|| format!("{name} unknown"), |size| size.to_string())
        };
        let text = [text(&problem.m, "m"), text(&problem.n, "n"), text(&problem.k, "k")].join(" x ");
        Sizes { m, n, k, batch, is_known, text }
    }

    /// How many tiles there are.
    pub(crate) fn blocks(&self, tiling: &Tiling) -> i64 {
        let along = |extent: i64, tile: i64| extent.max(0).saturating_add(tile - 1) / tile;
        along(self.m, tiling.m).saturating_mul(along(self.n, tiling.n)).saturating_mul(self.batch)
    }

    /// The share of the tiles' work that is for elements of the result.
    pub(crate) fn used(&self, tiling: &Tiling) -> f64 {
        let padded = self.blocks(tiling) as f64 * (tiling.m * tiling.n) as f64;
        (self.m as f64 * self.n as f64 * self.batch as f64) / padded.max(1.0)
    }

    /// Into how many parts the sum is cut, where the tiles are few for the multiprocessors and the sum is long.
    pub(crate) fn parts(&self, tiling: &Tiling, units: i64) -> i64 {
        let tiles = self.blocks(tiling);
        match self.is_known && tiles > 0 && tiles.saturating_mul(2) <= units {
            true => (units / tiles).min(self.k / LEAST_PART).clamp(1, MOST_PARTS),
            false => 1,
        }
    }
}

/// Chooses from the table: the largest tile of which there are enough for the device, else the smallest that wastes no
/// more; and a sum in parts where the tiles are few and the sum is long. What `sm_90a` does faster is chosen there
/// ([`hopper::choice`]).
pub(crate) fn choose(problem: &Problem, target: &Target) -> Result<Choice, Declined> {
    let units = i64::from(target.units);
    let sizes = Sizes::of(problem);
    let table = Tiling::table(problem, target);
    let smallest = table.last().map_or(0.0, |tiling| sizes.used(tiling));
    let enough = |tiling: &&Tiling| sizes.blocks(tiling) >= units && sizes.used(tiling) >= 0.6 * smallest;
    let chosen = table.iter().find(enough);
    let by_waste =
        || table.iter().find(|tiling| sizes.used(tiling) >= 0.8 * smallest && sizes.blocks(tiling) * 4 >= units);
    let few = chosen.is_none();
    let tiling = *chosen.or_else(by_waste).or(table.last()).ok_or_else(|| Declined::because("no tile of its dtype"))?;
    let tiles = sizes.blocks(&tiling);
    let parts = if few { sizes.parts(&tiling, units) } else { 1 };
    let why = match few {
        false => format!("tiles {tiles}, enough for multiprocessors {units}"),
        true => format!("tiles {tiles}, few"),
    };
    let cut = if parts > 1 { format!(", so the sum is cut into {parts} parts") } else { String::new() };
    let choice = Choice { tiling, parts, reason: format!("{}: {why}{cut}", sizes.text) };
    Ok(hopper::choice::choose(problem, target, &sizes, &choice).unwrap_or(choice))
}

impl Factor {
    /// The value whose bits stand in a tile.
    pub(crate) fn in_tile(&self, unit: Unit) -> &rx_tir::Expr {
        match unit {
            Unit::Threads { .. } => &self.value,
            Unit::Warps { .. } => &self.narrow,
        }
    }
}

impl Unit {
    /// What multiplies, for a schedule's note.
    pub(crate) fn text(self) -> String {
        match self {
            Unit::Threads { m, n } => format!("{m}x{n} per thread"),
            Unit::Warps { kind, means: Means::Alone, .. } => {
                let name = match kind {
                    Fragment::F16 => "m16n8k16 of float16",
                    Fragment::Bf16 => "m16n8k16 of bfloat16",
                    Fragment::Tf32 => "m16n8k8 of tf32",
                    Fragment::I8 { .. } => "m16n8k32 of 8-bit integers",
                };
                format!("mma.sync {name}")
            }
            Unit::Warps { m, kind, .. } => {
                let name = match kind {
                    Fragment::F16 => "k16 of float16",
                    Fragment::Bf16 => "k16 of bfloat16",
                    Fragment::Tf32 => "k8 of tf32",
                    Fragment::I8 { .. } => "k32 of 8-bit integers",
                };
                format!("wgmma m64{name}, {m} warps")
            }
        }
    }
}

/// The type in which a thread sums: of integers one that wraps.
pub(crate) fn sum_type(dtype: DType) -> Result<(&'static str, i64), String> {
    Ok(match (dtype.code, dtype.bits) {
        (TypeCode::Int | TypeCode::UInt, bits) if bits <= 32 => ("unsigned", 4),
        (TypeCode::Int | TypeCode::UInt, 64) => ("unsigned long long", 8),
        (TypeCode::Float, 64) => ("double", 8),
        _ if crate::printer::types::is_single(dtype) => ("float", 4),
        _ => return Err(format!("a sum of dtype {dtype}")),
    })
}
