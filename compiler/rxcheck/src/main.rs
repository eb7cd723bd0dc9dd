//! `rxcheck`: checks Relax IR text and reports every mistake.
//!
//! A face: it finds the files ([`discover`]), reads them ([`rx_report::load`]), asks the database for diagnostics or types
//! ([`check`]), several files at once ([`pool`]), and prints what comes back in the order asked ([`output`]). No rule of
//! the language lives here.

mod args;
mod check;
mod discover;
mod explain;
mod output;
mod panics;
mod pool;
mod types;

use args::Args;
use clap::Parser;
use output::{Printer, Status};
use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let status = match &args.explain {
        Some(code) => explain::explain(code),
        None => run(&args),
    };
    status.exit_code()
}

/// Checks all files and prints all reports.
fn run(args: &Args) -> Status {
    panics::record();
    let (inputs, failures) = discover::discover(&args.paths, &args.stdin_name);
    let mut printer = Printer::new(args);
    for failure in &failures {
        printer.failure(failure);
    }
    let options = check::Options::new(args);
    let printed = pool::in_order(
        &inputs,
        args.workers(),
        |input| check::check(input, &options),
        |outcome| {
            if printer.outcome(outcome).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    if let Err(error) = printed {
        // Nothing is left to do when stderr is closed too.
        let _ = writeln!(std::io::stderr(), "rxcheck: no worker thread could be started: {error}");
        return Status::Failed;
    }
    printer.finish(inputs.is_empty() && failures.is_empty())
}
