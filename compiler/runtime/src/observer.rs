//! Watching a run.

use crate::value::Output;
use rx_base::Name;
use rx_ir::Origin;
use rx_lower::KernelId;
use std::time::Duration;

/// Is told what happens in a run, in order ([`crate::Executor::run_observed`]): in calls, branches and recursion too.
pub trait Observer {
    /// A kernel ran for `time`; the device had nothing else to do. `origin` is the statement that it was run for.
    fn kernel(&mut self, kernel: KernelId, origin: Option<Origin>, time: Duration);

    /// The statement at `origin` bound `variable` to `value`. Of programs that say so ([`rx_lower::lower_watched`]).
    fn bound(&mut self, origin: Origin, variable: Name, value: Output);
}
