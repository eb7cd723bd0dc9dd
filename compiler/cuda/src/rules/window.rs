//! Schedule rule `window`: sliding-window reductions for which a matrix product does not pay, mainly depthwise
//! convolutions, grouped convolutions with few channels, and poolings.
//!
//! ```text
//! for n, y, x, c, ky, kx: out[n, y, x, c] += data[n, y + ky, x + kx, c] * weight[ky, kx, c]
//! →
//! thread: 4 outputs along x, 8 neighbouring channels c
//!     for ky:
//!         values = data[n, y + ky, x .. x + 6, c .. c + 8]     // each position once, 16 bytes per load
//!         for kx: w = weight[ky, kx, c .. c + 8]
//!             for i in 0..4: sums[i] += values[i + kx] * w
//!     out[n, y, x .. x + 4, c .. c + 8] = epilogue(sums)       // following elementwise statements
//! ```
//!
//! Requires: a sum, maximum or minimum over a window ([`rx_loops::SlidingWindow`]) of at most 128 taps, with a constant
//! initial value; at most 8 output channels that read the same windows, otherwise `gemm` is faster; with more than one
//! such channel, at least 32 outputs per multiprocessor; without a weight, windows that overlap, or at most 64
//! iterations per output.
//!
//! Guarantees: sums of floats of less than 32 bits accumulate in `float32` and round once; sums of integers wrap like
//! the function's.
//!
//! Neighbouring threads have neighbours along the axis that is contiguous in the result, if there is one. A thread may
//! have several outputs along another axis, and then loads the positions that their windows share once, to registers.
//! For example, 4 outputs of a 3 x 3 window with stride 1 load 18 elements for 36 products. If channels are contiguous
//! and aligned, a thread has 8, 4 or 2 of them, as fit into 16 bytes. If several output channels along an axis read the
//! same windows, a thread has all channels of one such axis, unless it is the axis of neighbouring threads.
//!
//! No tile is kept in shared memory. Elements that other threads load again usually come from the L1 cache. If a thread
//! has several outputs of a 3 x 3 window, the loads from L1 take less time than memory needs to deliver each element
//! once. A tile would need a barrier and as many loads from shared memory. Edges need no separate kernel: padding only
//! adds comparisons for each position.
//!
//! - [`problem`]: the matched reduction, and the choice of the outputs per thread.
//! - [`kernel`]: the CUDA text.
//! - [`packs`]: vector loads of neighbouring channels.

mod kernel;
mod packs;
mod problem;

use super::{Declined, Rule, Schedule, Task};
use kernel::WindowKernel;
use problem::Problem;

/// The rule `window`.
pub(super) const RULE: Rule = Rule {
    name: "window",
    summary: "Depthwise and narrow convolutions, pooling: the outputs of a thread share the loads of their windows.",
    take,
};

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let problem = Problem::of(task)?;
    let (taken, note) = (problem.epilogue.taken, problem.note());
    Ok(Schedule { note, ..Schedule::single(taken, WindowKernel { problem }) })
}
