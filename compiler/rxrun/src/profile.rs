//! `--profile` and `--trace`: time, arithmetic operations and bytes of each kernel of a run.

use crate::failure::Failure;
use crate::place::Place;
use crate::report::{Report, shown};
use crate::session::Session;
use crate::table::{Align, Table};
use rx_base::Name;
use rx_ir::Origin;
use rx_lower::{KernelId, Program};
use rx_report::Source;
use rx_runtime::{KernelRun, Observer, Output};
use rx_tir::{Count, bind_symbols, count};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The most calls that a trace keeps: about 200 MB of JSON.
const MAX_TRACED: usize = 1_000_000;

/// The kernels of a program with the measurements of one run.
#[derive(Debug)]
pub struct Profile {
    program: Arc<Program>,
    counts: Vec<Option<Count>>,
    kernels: Vec<Sum>,
    /// Every call in order, if a trace is wanted.
    calls: Option<Vec<Call>>,
}

/// The sum over all calls of a kernel.
#[derive(Clone, Debug)]
struct Sum {
    calls: u64,
    time: Duration,
    work: Work,
}

/// Arithmetic operations and bytes moved by one or more calls.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// `None` if the extents of the loops do not determine the number.
    operations: Option<u64>,
    /// The size of all buffers that are passed, each counted once, in bytes.
    bytes: u64,
}

/// One call of a kernel.
#[derive(Debug)]
struct Call {
    kernel: KernelId,
    start: Duration,
    time: Duration,
    work: Work,
}

impl Profile {
    /// Creates an empty profile; with `trace`, every call is recorded.
    pub fn of(program: &Arc<Program>, trace: bool) -> Profile {
        let none = Sum { calls: 0, time: Duration::ZERO, work: Work { operations: Some(0), bytes: 0 } };
        Profile {
            program: program.clone(),
            counts: vec![None; program.kernels.len()],
            kernels: vec![none; program.kernels.len()],
            calls: trace.then(Vec::new),
        }
    }

    /// Prints the kernels that ran, the longest total time first.
    pub fn tell(&self, session: &Session, report: &mut Report) {
        let source = session.source();
        let total: Duration = self.kernels.iter().map(|sum| sum.time).sum();
        let ran = self.kernels.iter().zip(&self.program.kernels).filter(|(sum, _)| sum.calls > 0);
        let mut ran: Vec<_> = ran.collect();
        ran.sort_by_key(|(sum, _)| std::cmp::Reverse(sum.time));
        let right = Align::Right;
        let mut table = Table::new([
            ("kernel", Align::Left),
            ("calls", right),
            ("time", right),
            ("share", right),
            ("GFLOP/s", right),
            ("GB/s", right),
            ("lines", Align::Left),
        ]);
        let mut events = Vec::new();
        for (Sum { calls, time, work }, kernel) in ran {
            let places = places(session, &source, &kernel.origins);
            let share = 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
            let lines: Vec<String> = places.iter().map(|place| place.line()).collect();
            let name = kernel.name.as_str();
            table.row([
                name.to_owned(),
                calls.to_string(),
                shown(*time),
                format!("{share:.1} %"),
                work.operations.map_or_else(|| "-".to_owned(), |operations| rate(operations, *time)),
                rate(work.bytes, *time),
                lines.join(", "),
            ]);
            let places: Vec<Value> = places.into_iter().map(Place::fields).collect();
            events.push(json!({
                "name": name,
                "calls": calls,
                "seconds": time.as_secs_f64(),
                "operations": work.operations,
                "bytes": work.bytes,
                "places": places,
            }));
        }
        report.table("kernel", &table, events);
    }

    /// Writes every call as a trace for `chrome://tracing` and Perfetto: complete events of the "Trace Event Format",
    /// with times in microseconds.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_trace(&self, path: &Path, session: &Session, report: &mut Report) -> Result<(), Failure> {
        let source = session.source();
        let calls = self.calls.as_deref().unwrap_or_default();
        let places: Vec<Vec<Place>> =
            self.program.kernels.iter().map(|kernel| places(session, &source, &kernel.origins)).collect();
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let mut events = vec![json!({ "name": "process_name", "ph": "M", "pid": 1, "args": { "name": session.name } })];
        for Call { kernel, start, time, work } in calls {
            let at = kernel.0 as usize;
            let (Some(kernel), Some(places)) = (self.program.kernels.get(at), places.get(at)) else { continue };
            let lines: Vec<Value> = places.iter().map(|place| place.line_value()).collect();
            let args = json!({ "lines": lines, "operations": work.operations, "bytes": work.bytes });
            events.push(json!({
                "name": kernel.name.as_str(), "cat": "kernel", "ph": "X", "pid": 1, "tid": 1,
                "ts": micros(*start), "dur": micros(*time), "args": args,
            }));
        }
        let trace = json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string();
        let failed = |error| Failure::usage(format!("{}: {}", path.display(), crate::report::io_message(&error)));
        rx_report::store::write(path, &trace).map_err(failed)?;
        if calls.len() == MAX_TRACED {
            report.remark(&format!("{}: only the first {MAX_TRACED} calls are there", path.display()));
        }
        Ok(())
    }

    /// Computes the operations and bytes of one call.
    fn work(&mut self, run: &KernelRun<'_>) -> Work {
        let at = run.kernel.0 as usize;
        let (Some(kernel), Some(known)) = (self.program.kernels.get(at), self.counts.get_mut(at)) else {
            return Work { operations: None, bytes: 0 };
        };
        let count = known.get_or_insert_with(|| count(&kernel.loops));
        let values = bind_symbols(&kernel.loops, run.shapes, run.scalars);
        let operations = values.ok().and_then(|values| count.operations_of(&kernel.loops, &values));
        let sizes = kernel.loops.buffer_params().zip(run.shapes).map(|(buffer, shape)| {
            let elements = shape.iter().map(|extent| extent.unsigned_abs()).fold(1, u64::saturating_mul);
            elements.saturating_mul(kernel.loops.buffer(buffer).dtype.bytes())
        });
        Work { operations, bytes: sizes.fold(0, u64::saturating_add) }
    }
}

impl Observer for Profile {
    fn kernel(&mut self, run: &KernelRun<'_>) {
        let work = self.work(run);
        if let Some(sum) = self.kernels.get_mut(run.kernel.0 as usize) {
            sum.calls += 1;
            sum.time += run.time;
            let both = sum.work.operations.zip(work.operations);
            sum.work.operations = both.map(|(sum, own)| sum.saturating_add(own));
            sum.work.bytes = sum.work.bytes.saturating_add(work.bytes);
        }
        if let Some(calls) = &mut self.calls
            && calls.len() < MAX_TRACED
        {
            calls.push(Call { kernel: run.kernel, start: run.start, time: run.time, work });
        }
    }

    fn bound(&mut self, _: Origin, _: Name, _: Output) {}
}

/// Formats a rate in 10⁹ per second.
fn rate(amount: u64, time: Duration) -> String {
    let rate = amount as f64 / time.as_secs_f64().max(1e-9) / 1e9;
    if rate >= 100.0 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

/// Returns the source positions of statements in the order of the text.
fn places(session: &Session, source: &Source<'_>, origins: &[Origin]) -> Vec<Place> {
    let mut spans: Vec<_> = origins.iter().filter_map(|origin| session.span(*origin)).collect();
    spans.sort_unstable();
    spans.dedup();
    spans.into_iter().map(|span| Place::of(source, span)).collect()
}
