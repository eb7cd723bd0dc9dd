//! `--sequence`: compares the dumps of a pipeline's phases in order, and finds the first phase with a new error.

mod compare;
mod show;

use crate::args::Args;
use crate::check::Options;
use crate::content::read;
use crate::discover::{Found, Input, discover};
use crate::output::{Failure, Status, print};
use crate::{panics, pool};
use compare::{Phase, Step};
use rx_report::Format;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// Checks the phases in order and prints the changes of each.
pub fn sequence(args: &Args) -> Status {
    let found = discover(args, &args.paths);
    if let Some(status) = crate::mistaken(args, &found) {
        return status;
    }
    let Found { mut inputs, failures, .. } = found;
    if !args.given_order {
        inputs.sort_by(|a, b| compare::natural(&a.shown, &b.shown));
    }
    let mut status = failures.iter().fold(Status::Clean, |status, failure| status.max(failure.say()));
    // Run on a worker thread, whose stack is large enough for deeply nested text.
    let run = pool::in_order(
        &[()],
        NonZeroUsize::MIN,
        |()| match panics::catch(|| run(args, &inputs)) {
            Ok(status) => status,
            Err(panic) => Failure::internal("--sequence", &panic).say(),
        },
        |ended| {
            status = status.max(ended);
            ControlFlow::Continue(())
        },
    );
    if run.is_err() { Status::Failed } else { status }
}

fn run(args: &Args, inputs: &[Input]) -> Status {
    let options = Options::new(args);
    let mut status = Status::Clean;
    let mut before: Option<Phase> = None;
    let mut found = false;
    let mut number = 0;
    for input in inputs {
        let content = match read(input) {
            Ok(content) => content,
            Err(error) => {
                status = status.max(Failure::new(input.shown.as_ref(), &error).say());
                continue;
            }
        };
        let phase = Phase::new(input, content, &options);
        if !phase.has_relax() && !input.named {
            continue;
        }
        number += 1;
        let step = Step::between(before.as_ref(), &phase, number);
        let mut text = match args.format() {
            Format::Json => show::json(&phase, &step),
            _ => show::text(&phase, &step),
        };
        if let (false, Some(first)) = (found, step.new_errors.first()) {
            found = true;
            status = status.max(Status::Mistakes);
            text += &match args.format() {
                Format::Json => show::first_json(before.as_ref(), &phase, &step, first),
                _ => show::first(before.as_ref(), &phase, &step, first, args.color()),
            };
        }
        if let Err(ended) = print(&text) {
            return status.max(ended);
        }
        before = Some(phase);
    }
    if !found && !args.quiet {
        let said = match number {
            0 => "rxcheck: no Relax text found".to_owned(),
            1 => "ok: 1 phase, no new error".to_owned(),
            count => format!("ok: {count} phases, no new error"),
        };
        let _ = writeln!(std::io::stderr(), "{said}");
    }
    status
}
