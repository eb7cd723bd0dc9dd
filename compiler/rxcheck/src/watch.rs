//! `--watch`: checks again whenever a file changes.
//!
//! Files are looked at a few times a second: names, sizes and times of change. That needs nothing of the system, holds for
//! network drives and containers (where the crate `notify` may see no changes), and finds new and renamed files and a
//! changed rx.toml in one way. Each file keeps its database between rounds ([`kept`](crate::kept)), so that a change costs
//! what it touches.

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

/// The shortest time between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// Looking takes at most one part in so many of the time.
const SHARE: u32 = 10;

/// Moves a terminal's cursor up and clears it, with what was scrolled away.
const CLEAR: &str = "\x1b[2J\x1b[3J\x1b[H";

/// Checks, and checks again on every change, until no one reads on or the process is ended.
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

/// Whether the same files are to be checked in the same way.
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

/// Checks what is found and prints it; whether that was the last time.
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
        // Where nobody reads it, nobody waits for it.
        let _ = writeln!(io::stderr(), "watching {files}; Ctrl-C ends");
    }
    (status, ended)
}

/// Checks a file with what is kept of the last time.
fn again(input: &Input, options: &Options, slot: Option<&Mutex<Option<Kept>>>) -> Outcome {
    match slot {
        Some(slot) => kept::again(input, options, &mut slot.lock().unwrap_or_else(PoisonError::into_inner)),
        None => check::check(input, options),
    }
}

/// Makes room for the reports on a terminal.
fn clear(args: &Args) {
    let text = matches!(args.format(), Format::Text | Format::Concise);
    if text && args.output_file.is_none() && io::stdout().is_terminal() {
        // A terminal that is gone ends the round when the reports are printed.
        let _ = io::stdout().write_all(CLEAR.as_bytes());
    }
}
