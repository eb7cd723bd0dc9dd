//! Progress of a run, counted in kernels.

use crate::report::{Observation, Report, Running};
use rx_base::Name;
use rx_base::name::NameMap;
use rx_ir::Origin;
use rx_lower::Program;
use rx_runtime::{Backend, Executor, KernelRun, Observer, Output, RunError, Value, kernel_runs};
use std::time::{Duration, Instant};

/// The shortest time between two progress reports.
const EVERY: Duration = Duration::from_millis(100);

/// Runs the program, and reports progress if someone sees it. `observer` receives the events of the run as well.
pub fn run<B: Backend>(
    executor: &mut Executor<B>,
    program: &Program,
    arguments: Vec<Value<B::Memory>>,
    symbols: &NameMap<i64>,
    (running, observer): (Running, Option<&mut dyn Observer>),
    report: &mut Report,
) -> Result<Value<B::Memory>, RunError> {
    if !report.tells_progress() {
        return match observer {
            Some(observer) => executor.run_observed(arguments, symbols, observer),
            None => executor.run(arguments, symbols),
        };
    }
    // In a later run, memoized values of the first run are not computed again.
    let again = matches!(running, Running::Run(2.., _) | Running::Observed(Observation::Profile));
    let total = kernel_runs(program, again);
    let begun = Instant::now();
    let mut progress = Progress { running, observer, done: 0, total, begun, reported: begun, report };
    let result = executor.run_observed(arguments, symbols, &mut progress);
    progress.report.quiet();
    result
}

/// Counts kernel runs, and forwards every event to `observer`.
struct Progress<'o, 'r> {
    running: Running,
    observer: Option<&'o mut (dyn Observer + 'o)>,
    done: u64,
    total: Option<u64>,
    begun: Instant,
    /// The time of the last progress report.
    reported: Instant,
    report: &'r mut Report,
}

impl Observer for Progress<'_, '_> {
    fn is_timing(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.is_timing())
    }

    fn kernel(&mut self, run: &KernelRun<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.kernel(run);
        }
    }

    fn passed(&mut self) {
        self.done += 1;
        let now = Instant::now();
        if now - self.reported >= EVERY {
            self.reported = now;
            self.report.running(self.running, self.done, self.total, now - self.begun);
        }
        if let Some(observer) = &mut self.observer {
            observer.passed();
        }
    }

    fn bound(&mut self, origin: Origin, variable: Name, value: Output) {
        if let Some(observer) = &mut self.observer {
            observer.bound(origin, variable, value);
        }
    }
}
