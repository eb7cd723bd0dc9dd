//! Windows that slide over what they read, where no matrix product pays: depthwise convolutions, convolutions with few channels in
//! a group, poolings, and what has their form ([`rx_schedule::Sliding`]).
//!
//! Neighbouring threads have neighbours along the axis that is contiguous in the result. A thread has several outputs along another
//! axis of the window, and reads what their windows share once, to registers. So of a 3 x 3 window in steps of 1 with 4 outputs
//! 18 elements are read for 36 products. Where channels are contiguous, a thread has as many as 16 bytes hold. Where few channels
//! of the result are made of the same windows, a thread has all of them.
//!
//! No tile is kept in shared memory: what is read again comes from the first cache, each time by whole lines, and with outputs
//! in registers a 3 x 3 window asks it for less than it gives while memory brings the elements once. A tile would ask for
//! a barrier and for as many reads of shared memory. An edge is a condition at each position, not a kernel of its own: the taps
//! are unrolled, so that it is a comparison.
//!
//! Sums of 16-bit floats are made in `float32` and rounded once; sums of integers wrap as the function's do.
//!
//! - [`problem`]: what a thread has, and how that is chosen.
//! - [`kernel`]: its text; [`packs`]: elements of neighbouring channels that are read as one.

mod kernel;
mod packs;
mod problem;

use super::{Declined, Rule, Schedule, Task};
use kernel::WindowKernel;
use problem::Problem;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "window",
    summary: "Depthwise and narrow convolutions, poolings: windows read once for several outputs of a thread.",
    take,
};

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let problem = Problem::of(task)?;
    let (taken, note) = (problem.epilogue.taken, problem.note());
    Ok(Schedule { note, ..Schedule::single(taken, WindowKernel { problem }) })
}
