//! `--profile`: how long each kernel of a run took.

use crate::report::{Report, shown};
use crate::session::Session;
use crate::table::{Align, Table};
use rx_base::Name;
use rx_ir::Origin;
use rx_lower::{KernelId, Program};
use rx_report::{Source, place};
use rx_runtime::{Observer, Output};
use serde_json::{Value, json};
use std::time::Duration;

/// The kernels of a program and what was seen of them.
#[derive(Debug)]
pub struct Profile {
    /// By kernel: how often it ran, and how long all in all.
    kernels: Vec<(u64, Duration)>,
}

impl Profile {
    pub fn of(program: &Program) -> Profile {
        Profile { kernels: vec![(0, Duration::ZERO); program.kernels.len()] }
    }

    /// Tells of the kernels that ran, the longest first.
    pub fn tell(&self, session: &Session, program: &Program, report: &mut Report) {
        let text = session.workspace.document(session.file).text();
        let source = Source::new(&session.name, &text);
        let total: Duration = self.kernels.iter().map(|(_, time)| *time).sum();
        let ran = self.kernels.iter().zip(&program.kernels).filter(|((calls, _), _)| *calls > 0);
        let mut ran: Vec<_> = ran.collect();
        ran.sort_by_key(|((_, time), _)| std::cmp::Reverse(*time));
        let right = Align::Right;
        let mut table = Table::new([
            ("kernel", Align::Left),
            ("calls", right),
            ("time", right),
            ("share", right),
            ("lines", Align::Left),
        ]);
        let mut events = Vec::new();
        for ((calls, time), kernel) in ran {
            let places = places(session, &source, &kernel.func.origins);
            let share = 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
            let lines: Vec<String> = places.iter().map(|[line, ..]| line.to_string()).collect();
            let name = kernel.func.name.as_str();
            table.row([name.to_owned(), calls.to_string(), shown(*time), format!("{share:.1} %"), lines.join(", ")]);
            let places: Vec<Value> = places.into_iter().map(place_fields).collect();
            events.push(json!({ "name": name, "calls": calls, "seconds": time.as_secs_f64(), "places": places }));
        }
        report.table("kernel", &table, events);
    }
}

impl Observer for Profile {
    fn kernel(&mut self, kernel: KernelId, _: Option<Origin>, time: Duration) {
        if let Some((calls, sum)) = self.kernels.get_mut(kernel.0 as usize) {
            *calls += 1;
            *sum += time;
        }
    }

    fn bound(&mut self, _: Origin, _: Name, _: Output) {}
}

/// Where statements stand, in the order of the text: line and column of both ends.
fn places(session: &Session, source: &Source<'_>, origins: &[Origin]) -> Vec<[u32; 4]> {
    let mut spans: Vec<_> = origins.iter().filter_map(|origin| session.span(*origin)).collect();
    spans.sort_unstable();
    spans.dedup();
    spans.into_iter().map(|span| place(source, span)).collect()
}

/// A place as events have it.
pub fn place_fields([line, column, end_line, end_column]: [u32; 4]) -> Value {
    json!({ "line": line, "column": column, "end_line": end_line, "end_column": end_column })
}
