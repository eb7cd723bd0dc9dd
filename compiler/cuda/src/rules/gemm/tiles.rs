//! Tile sizes and multiply units: a small table per dtype, from which [`super::choice`] chooses. The kernel templates
//! read [`Tiling`].

use super::problem::{Factor, Problem};
use crate::rules::Target;
use rx_base::DType;
use rx_base::dtype::TypeCode;

/// The tile of a block, and the unit that multiplies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Rows of the result in a tile.
    pub(crate) m: i64,
    /// Columns of the result in a tile.
    pub(crate) n: i64,
    /// K values in a tile of a factor.
    pub(crate) k: i64,
    /// Stages of the ring: the number of K tiles of each factor that shared memory has space for.
    pub(crate) stages: i64,
    pub(crate) unit: Unit,
}

/// The unit that multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Scalar multiply-adds: each thread computes `m` x `n` elements in registers.
    Threads { m: i64, n: i64 },
    /// Tensor cores: `m` x `n` warps cover the rows and columns of the tile.
    Warps { m: i64, n: i64, kind: Fragment, mma: Mma },
}

/// The tensor-core instruction of a kernel, and for `wgmma` the threads that copy the tiles to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mma {
    /// Each warp separately, from registers: `mma.sync`.
    Warp,
    /// A warpgroup (four warps) together, from shared memory: `wgmma` of `sm_90a`. All threads load the tiles.
    Warpgroup,
    /// As [`Mma::Warpgroup`], but one thread of an additional warpgroup copies the tiles with TMA.
    WarpgroupTma,
}

/// The dtypes that tensor cores multiply, with the dtype of the accumulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    /// `float16`, accumulated in `float32`.
    F16,
    /// `bfloat16`, accumulated in `float32`.
    Bf16,
    /// `float32` as tf32 (10 bits of fraction), accumulated in `float32`.
    Tf32,
    /// 8-bit integers, each factor signed or unsigned, accumulated in `int32`.
    I8 { a_signed: bool, b_signed: bool },
}

impl Fragment {
    /// Returns the size of an element in bytes.
    pub(crate) fn bytes(self) -> i64 {
        match self {
            Fragment::F16 | Fragment::Bf16 => 2,
            Fragment::Tf32 => 4,
            Fragment::I8 { .. } => 1,
        }
    }

    /// Returns the dtypes as they occur in the names of helpers (`rx_mma_…`, `rx_wgmma_…`).
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

    /// Returns the fragment for the dtypes of a product. `None` if tensor cores do not multiply these factors to a sum
    /// of this dtype, and for `float32` if the target does not allow tf32.
    pub(super) fn of(problem: &Problem, target: &Target) -> Option<Fragment> {
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

impl Tiling {
    /// Returns the number of threads in a block, including the warpgroup that copies with TMA.
    pub(crate) fn threads(self) -> i64 {
        match self.unit {
            Unit::Threads { m, n } => self.m / m * (self.n / n),
            Unit::Warps { m, n, mma, .. } => m * n * 32 + if mma == Mma::WarpgroupTma { 128 } else { 0 },
        }
    }

    /// Returns the tilings for the dtypes of a product, the largest first, without those of [`super::hopper`].
    pub(super) fn table(problem: &Problem, target: &Target) -> Vec<Tiling> {
        if let Some(kind) = Fragment::of(problem, target) {
            let warps = |m, n, warps_m, warps_n| {
                // A K tile of 64 bytes is two `mma` steps of 32 bytes.
                let unit = Unit::Warps { m: warps_m, n: warps_n, kind, mma: Mma::Warp };
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

impl Factor {
    /// Returns the value that tiles of a unit hold: for tensor cores the value before lossless casts.
    pub(crate) fn in_tile(&self, unit: Unit) -> &rx_tir::Expr {
        match unit {
            Unit::Threads { .. } => &self.value,
            Unit::Warps { .. } => &self.narrow,
        }
    }
}

impl Unit {
    /// Returns the unit in words, for the schedule's note.
    pub(crate) fn text(self) -> String {
        match self {
            Unit::Threads { m, n } => format!("{m}x{n} per thread"),
            Unit::Warps { kind, mma: Mma::Warp, .. } => {
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

/// Returns the C type in which a thread accumulates without tensor cores, and its size in bytes. It is unsigned for
/// integers, so that overflow wraps instead of being undefined.
pub(crate) fn sum_type(dtype: DType) -> Result<(&'static str, i64), String> {
    Ok(match (dtype.code, dtype.bits) {
        (TypeCode::Int | TypeCode::UInt, bits) if bits <= 32 => ("unsigned", 4),
        (TypeCode::Int | TypeCode::UInt, 64) => ("unsigned long long", 8),
        (TypeCode::Float, 64) => ("double", 8),
        _ if crate::printer::types::is_single(dtype) => ("float", 4),
        _ => return Err(format!("requires an accumulator type for the sum; found {dtype}")),
    })
}
