//! Observation of a run, for profilers and debuggers.

use crate::value::Output;
use rx_base::Name;
use rx_ir::Origin;
use rx_lower::KernelId;
use std::time::Duration;

/// The execution of one kernel, during which the device did no other work.
#[derive(Clone, Copy, Debug)]
pub struct KernelRun<'r> {
    /// The kernel.
    pub kernel: KernelId,
    /// The Relax statement that the kernel was run for.
    pub origin: Option<Origin>,
    /// The start time, relative to the start of the run.
    pub start: Duration,
    /// The duration.
    pub time: Duration,
    /// The shapes of the kernel's buffers, as [`rx_tir::bind_symbols`] takes them.
    pub shapes: &'r [&'r [i64]],
    /// The values of the kernel's scalar parameters, as [`rx_tir::bind_symbols`] takes them. A value that is not an
    /// integer is passed as 0.
    pub scalars: &'r [i64],
}

/// Receives the events of a run in order ([`crate::Executor::run_observed`]), including those inside calls, branches
/// and recursion. Kernels of calls that are lowered at run time are not reported.
pub trait Observer {
    /// Whether [`Observer::kernel`] is called with each kernel's time. The device then finishes each kernel before it
    /// starts the next. Otherwise the run waits for the device mainly where it reads a value from it, and at its end.
    fn is_timing(&self) -> bool {
        true
    }

    /// Called after each kernel that did not fail, with its time. Only if [`Observer::is_timing`].
    fn kernel(&mut self, run: &KernelRun<'_>);

    /// Called after each kernel that did not fail. Unless [`Observer::is_timing`], an asynchronous device may not have
    /// finished the kernel yet.
    fn passed(&mut self) {}

    /// Called when the statement at `origin` has bound `variable` to `value`. Only programs from
    /// [`rx_lower::lower_watched`] report bindings.
    fn bound(&mut self, origin: Origin, variable: Name, value: Output);
}
