//! Schedule rule `attention`: fused attention (FlashAttention), `softmax(score(Q · Kᵀ)) · V` in one kernel, or in two
//! with split-KV.
//!
//! ```text
//! for b, m, n, d: S[b, m, n] += Q[b, m, d] * K[b, n, d]
//! for b, m, n:    P[b, m, n]  = score(S[b, m, n])              // any: scaled, biased, masked
//! for b, m, n:    M[b, m]     = max(M[b, m], P[b, m, n])
//! for b, m, n:    L[b, m]    += exp(P[b, m, n] - M[b, m])
//! for b, m, n, e: O[b, m, e] += exp(P[b, m, n] - M[b, m]) / L[b, m] * V[b, n, e]
//! →
//! block: some rows m of one b
//!     for each tile of keys n:
//!         scores = score(Q tile * K tile)                      // registers
//!         rescale the sums to the new row maxima               // online softmax
//!         sums += exp(scores - maxima) * V tile
//!     O = epilogue(sums / total)                               // following elementwise statements
//! ```
//!
//! Requires: these statements in this order, possibly with elementwise statements between them; row lengths `d` and `e`
//! of constant extents up to 256; floating-point operands of at most 32 bits; a softmax that subtracts the row's
//! maximum; intermediate results that no other statement uses. The match is by the computed values ([`problem`],
//! [`reading`]), so the score may be any elementwise function of the product. Query heads may share keys and values
//! (grouped-query attention). The softmax may be the safe one, which gives 0 for fully masked rows ([`masked_rows`]).
//!
//! Guarantees: scores and weights never reach global memory. Sums accumulate in `float32`, whatever the dtypes of the
//! intermediate buffers. Scores are rounded where the program rounds them: by casts, and by stores to buffers of less
//! than 32 bits per element. On tensor cores the weights are rounded to the 16-bit dtype of the operands.
//!
//! Reference: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022,
//! "FlashAttention"; Dao 2023, "FlashAttention-2"; TVM's `python/tvm/relax/frontend/nn/llm/kv_cache.py` (the same
//! algorithm as hand-written TIR).
//!
//! - [`tiles`]: tile sizes and their choice.
//! - [`kernel`]: the loop over tiles of keys. [`load`] loads the tiles, [`places`] decodes the indices of batch and
//!   rows, and [`scores`] computes scores and rescales the sums.
//! - [`warps`] and [`threads`]: the products, by tensor cores if all three operands are `float16` or all are `bfloat16`
//!   (casts to `float32` are ignored), otherwise by single threads.
//! - [`split_kv`]: split-KV. If few rows have many keys, or a symbolic number of them, several blocks share the keys of
//!   a row, and a second kernel combines their results.
//! - [`mask`]: keys that a mask of comparisons hides from all rows of a block are usually skipped.
//!
//! Exported models contain attention as several functions. `rx-lower` fuses those into one function if
//! `can_schedule_as_one_kernel` reports that one schedule takes all of them and keeps the values between them out of
//! global memory.

mod kernel;
mod load;
mod mask;
mod masked_rows;
mod places;
mod problem;
mod reading;
mod scores;
mod split_kv;
mod template;
mod threads;
mod tiles;
mod warps;

use super::{Declined, Rule, Schedule, Scratch, Task};
use kernel::AttentionKernel;
use problem::Problem;
use split_kv::SplitKvCombine;
use std::rc::Rc;

/// The rule `attention`.
pub(super) const RULE: Rule = Rule {
    name: "attention",
    summary: "Fused attention (FlashAttention): two products and the softmax between them; scores stay on chip.",
    take,
};

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let problem = Rc::new(Problem::of(task)?);
    let mut tiling = tiles::choose(&problem, task.target)?;
    let attend = loop {
        let attend = AttentionKernel::new(Rc::clone(&problem), tiling).map_err(Declined)?;
        if attend.shared_bytes <= task.target.shared_bytes() - attend.declared_bytes() {
            break attend;
        }
        let smaller = tiling.smaller();
        tiling = smaller.ok_or_else(|| {
            let most = task.target.shared_bytes();
            Declined::because(format!("requires tiles of at most {most} bytes of shared memory; found larger tiles"))
        })?;
    };
    let note = format!("{}; {}", tiling.note(), attend.note());
    let mut schedule = Schedule { note, ..Schedule::single(problem.statements.len(), attend) };
    if let Some(slice) = tiling.slice {
        let split_kv = SplitKvCombine { problem: Rc::clone(&problem), slice };
        schedule.scratch.push(Scratch { name: "partial", bytes: split_kv.bytes() });
        schedule.kernels.push(Box::new(split_kv));
    }
    Ok(schedule)
}
