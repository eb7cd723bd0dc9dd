//! Analysis and rewriting of loop-level IR functions for the compiled targets.
//!
//! Passes: [`mod@simplify`] normalizes index arithmetic and removes trivial loops, [`mod@guards`] marks every access
//! that is not proved in range, and [`mod@inline`] fuses element-wise producers into their consumers. [`nests`] splits
//! a function into loop nests, matrix products ([`gemm`]) and windowed sums ([`WindowedSum`]). The products and sums
//! are recognized by their access maps ([`roles`]), as a polyhedral compiler does. [`iterations`] computes the trip
//! counts of loops before they run.
//!
//! Patterns that the CUDA schedules match and the CPU back end does not use: overlapping windows ([`sliding_window`]),
//! the factors of a product that are contiguous in memory ([`factor`]), tuple reductions such as argmax
//! (`tuple_reduction`), prefix scans (`recurrence`), sorting by counting (`ranking`), transposed convolutions by phase
//! ([`phases`]), and a sum of gathered sums as one sum ([`compose`]). `rx-lower` uses [`factor`] and [`phases`] as
//! well, to estimate the cost of layouts.
//!
//! # Invariants
//!
//! - Every pass keeps each result to the bit, and tests compare with the interpreter. For example, `legalize_sub_byte`
//!   computes 4-bit values as 8-bit integers and `float32` to the same bits as the interpreter, which computes with
//!   4-bit dtypes directly. Exceptions: a recognized sum of floats may be added in another order, and [`phases`] omits
//!   terms that have a factor 0.
//! - After [`mod@guards`], each index that is not proved in range is marked (`Expr::Checked`). A rule removes the mark
//!   only where it proves the range in another way.
//!   `schedule_unguarded` omits guards and assertions; only `rx_cpu::CheckCost` calls it, to measure their cost.
//! - Roles (batch, M, N, K) follow from access maps, after loops of one iteration are removed; never from positions or
//!   names.
//! - A tuple reduction is recognized only if its combiner is associative: for sums and products of floats up to
//!   rounding, and for minima and maxima of floats except for NaN. Choices are tested by enumeration: all cases of
//!   three operands, with NaN as a fourth value where an update tests for it.
//! - A rule may decline, usually with its reason; the fallback is the loop nest as it is written.
//! - The conditions of a windowed sum are exactly those of the nest: an out-of-bounds tap is not loaded and contributes
//!   `0 * w`, so NaN and Inf in `w` propagate.

pub mod accumulate;
pub mod affine;
mod arithmetic;
pub mod compose;
pub mod factor;
pub mod gemm;
pub mod guards;
pub mod independent;
pub mod inline;
pub mod iterations;
mod matmul;
pub mod multiples;
pub mod nests;
pub mod op_pattern;
mod pack;
pub mod phases;
pub mod poly;
pub mod prove;
mod ranking;
mod recurrence;
pub mod roles;
pub mod scope;
pub mod simplify;
pub mod sliding_window;
mod sub_byte;
mod target_info;
mod tuple_reduction;
mod walk;
mod windowed_sum;

pub use accumulate::{Loop, Nest, Reduction, explicit_loops};
pub use affine::Affine;
pub use compose::composed;
pub use factor::{FactorElement, GemmOperand, choose_k_order, without_casts};
pub use gemm::{BatchAxis, Gemm, Matrix, Scheduled, Step};
pub use guards::{GuardCount, guards};
pub use independent::are_independent;
pub use inline::{inline, inline_all};
pub use iterations::{IterationCount, constant_iterations, is_host_computable};
pub use multiples::Multiples;
pub use nests::{schedule, schedule_unguarded};
pub use phases::{Phased, by_phases};
pub use poly::{Poly, Stride};
pub use ranking::Ranking;
pub use recurrence::Recurrence;
pub use roles::{Declined, Product, ProductNest, Role};
pub use simplify::simplify;
pub use sliding_window::{Shared, SlidingWindow, WindowIndex};
pub use sub_byte::legalize_sub_byte;
pub use target_info::{DefaultTargetInfo, TargetInfo};
pub use tuple_reduction::{TupleElement, commutes};
pub use windowed_sum::{Place, WindowAxis, WindowedSum};
