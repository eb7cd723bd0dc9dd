//! `--watch`: checks again whenever a file changes.
//!
//! Files are polled a few times a second, by name, size and modification time. Polling works on every system, on
//! network drives and in containers (where the crate `notify` may miss changes), and it treats new and renamed files
//! and a changed rx.toml alike. Each file keeps its database between checks ([`kept`](crate::kept)), so a check costs
//! only as much as the change affects.

use crate::args::Args;
use crate::check::{self, Options, Outcome};
use crate::discover::{Found, Input, discover};
use crate::kept::{self, Kept};
use crate::output::{Failure, Printer, Status};
use crate::pool;
use rx_report::Format;
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two polls.
const PAUSE: Duration = Duration::from_millis(200);

/// Polling takes at most this fraction (1/`SHARE`) of the time.
const SHARE: u32 = 10;

/// Terminal escape that clears the screen and the scrollback and moves the cursor to the top left.
const CLEAR: &str = "\x1b[2J\x1b[3J\x1b[H";

/// Checks, and checks again after every change, until the output is closed or the process is ended.
pub fn watch(args: &Args) -> Status {
    let options = Options::new(args);
    let mut kept: HashMap<PathBuf, Mutex<Option<Kept>>> = HashMap::new();
    let mut before: Option<Found> = None;
    loop {
        let started = Instant::now();
        let found = discover(args, &args.paths);
        let same = before.as_ref().is_some_and(|before| same(before, &found));
        if !same || found.inputs.iter().any(|input| is_stale(input, &mut kept)) {
            let (status, ended) = round(args, &options, &found, &mut kept);
            if ended {
                return status;
            }
        }
        before = Some(found);
        std::thread::sleep(PAUSE.max(started.elapsed() * SHARE));
    }
}

/// Whether the same files would be checked with the same settings.
fn same(before: &Found, now: &Found) -> bool {
    let inputs = |found: &Found| -> Vec<(PathBuf, Option<PathBuf>, String)> {
        let input = |input: &Input| {
            let settings = &input.project.file;
            (input.path().to_owned(), settings.path.clone(), settings.text.clone())
        };
        found.inputs.iter().map(input).collect()
    };
    let mistaken = |found: &Found| -> Vec<(Option<PathBuf>, String)> {
        found.mistaken.iter().map(|it| (it.file.path.clone(), it.file.text.clone())).collect()
    };
    before.failures == now.failures && inputs(before) == inputs(now) && mistaken(before) == mistaken(now)
}

fn is_stale(input: &Input, kept: &mut HashMap<PathBuf, Mutex<Option<Kept>>>) -> bool {
    let slot = kept.get_mut(input.path()).map(|slot| slot.get_mut().unwrap_or_else(PoisonError::into_inner));
    slot.and_then(Option::as_mut).is_none_or(|kept| kept.is_stale(input.path()))
}

/// Checks all inputs and prints the results. Returns the status, and whether output is closed, so that watching ends.
fn round(
    args: &Args,
    options: &Options,
    found: &Found,
    kept: &mut HashMap<PathBuf, Mutex<Option<Kept>>>,
) -> (Status, bool) {
    kept.retain(|path, _| found.inputs.iter().any(|input| input.path() == path));
    for input in &found.inputs {
        kept.entry(input.path().to_owned()).or_default();
    }
    clear(args);
    let mut printer = Printer::new(args);
    found.failures.iter().for_each(|failure| printer.failure(failure));
    let mut ended = found.mistaken.iter().any(|it| printer.outcome(check::settings(it, options)).is_err());
    let work = |input: &Input| again(input, options, kept.get(input.path()));
    let started = pool::in_order(&found.inputs, args.workers(), work, |outcome| {
        ended |= printer.outcome(outcome).is_err();
        if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Err(error) = started {
        printer.failure(&Failure::new(Path::new("worker threads"), &error));
        ended = true;
    }
    let files = found.inputs.len();
    let status = printer.finish(files == 0 && found.failures.is_empty());
    if !args.quiet && !ended {
        let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        // A closed stderr is no reason to stop.
        let _ = writeln!(io::stderr(), "watching {files}; Ctrl-C ends");
    }
    (status, ended)
}

/// Checks a file, incrementally if it has kept state.
fn again(input: &Input, options: &Options, slot: Option<&Mutex<Option<Kept>>>) -> Outcome {
    match slot {
        Some(slot) => kept::again(input, options, &mut slot.lock().unwrap_or_else(PoisonError::into_inner)),
        None => check::check(input, options),
    }
}

/// Clears the terminal before the reports.
fn clear(args: &Args) {
    let text = matches!(args.format(), Format::Text | Format::Concise);
    if text && args.output_file.is_none() && io::stdout().is_terminal() {
        // If the terminal is gone, printing the reports ends the loop.
        let _ = io::stdout().write_all(CLEAR.as_bytes());
    }
}
