//! Watching a run.

use crate::value::Output;
use rx_base::Name;
use rx_ir::Origin;
use rx_lower::KernelId;
use std::time::Duration;

/// A kernel that ran; the device had nothing else to do.
#[derive(Clone, Copy, Debug)]
pub struct KernelRun<'r> {
    /// Which.
    pub kernel: KernelId,
    /// The statement that it was run for.
    pub origin: Option<Origin>,
    /// When it began: since the run did.
    pub start: Duration,
    /// How long it took.
    pub time: Duration,
    /// The shapes of its buffers, and its scalars, as [`rx_tir::bind_symbols`] takes them; what is no integer is 0.
    pub shapes: &'r [&'r [i64]],
    /// See `shapes`.
    pub scalars: &'r [i64],
}

/// Is told what happens in a run, in order ([`crate::Executor::run_observed`]): in calls, branches and recursion too.
pub trait Observer {
    /// Whether it is told of each kernel's own time ([`Observer::kernel`]): the device then finishes one kernel before it begins
    /// the next. Else a run takes the time it takes without an observer.
    fn is_timing(&self) -> bool {
        true
    }

    /// A kernel ran, and how long that took.
    fn kernel(&mut self, run: &KernelRun<'_>);

    /// A kernel ran; where nobody is timing, a device that works on its own may not have finished it yet.
    fn passed(&mut self) {}

    /// The statement at `origin` bound `variable` to `value`. Of programs that say so ([`rx_lower::lower_watched`]).
    fn bound(&mut self, origin: Origin, variable: Name, value: Output);
}
