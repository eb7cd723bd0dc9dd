//! `rxcheck`: checks Relax IR text and reports every mistake.
//!
//! The command line finds the files (`discover`), reads them (`content`), asks the database for diagnostics or
//! types (`check`), applies fixes (`rewrite`), processes several files in parallel (`pool`), and prints the results in
//! the order of the files (`output`). `rxcheck lsp` executes the `rx-lsp` binary in the same folder (`lsp`). The crate
//! implements no rule of the language. It is also a library, so that the Python wheel's binary of the same name can
//! call it.

mod args;
mod check;
mod content;
mod discover;
mod explain;
mod kept;
mod lsp;
mod output;
mod panics;
mod pool;
mod rewrite;
mod sequence;
mod stats;
mod types;
mod watch;
mod why;

use args::Args;
use check::Options;
use clap::CommandFactory;
use discover::Found;
use output::{Printer, Status};
use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;

/// Entry point of the binary: parses the process's arguments, checks, and returns the exit status.
pub fn main() -> ExitCode {
    if let Some(arguments) = lsp::asked(std::env::args_os()) {
        return lsp::serve(arguments);
    }
    let args = Args::of_process();
    if let Err(message) = rx_trace::init(args.verbose) {
        eprintln!("rxcheck: {message}");
        return ExitCode::from(2);
    }
    panics::record();
    let status = match (&args.explain, args.completions, &args.why) {
        (Some(code), ..) => explain::explain(code, args.color()),
        (None, Some(shell), _) => completions(shell),
        (None, None, Some(position)) => why::why(&args, position),
        (None, None, None) if args.sequence => sequence::sequence(&args),
        (None, None, None) if args.watch => watch::watch(&args),
        (None, None, None) => run(&args),
    };
    status.exit_code()
}

/// Returns the definition of the command line, from which the manual page is generated.
pub fn command() -> clap::Command {
    Args::command()
}

/// Prints the completion script for a shell.
fn completions(shell: clap_complete::Shell) -> Status {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "rxcheck", &mut script);
    output::print(&String::from_utf8_lossy(&script)).err().unwrap_or(Status::Clean)
}

/// Prints the mistakes of settings files.
fn print_mistaken(found: &Found, options: &Options, printer: &mut Printer<'_>) {
    for project in &found.mistaken {
        if printer.outcome(check::settings(project, options)).is_err() {
            break;
        }
    }
}

/// If settings files have mistakes, prints those and returns the exit status. Other diagnostics might be false without
/// the settings.
fn mistaken(args: &Args, found: &Found) -> Option<Status> {
    if found.mistaken.is_empty() {
        return None;
    }
    let mut printer = Printer::new(args);
    print_mistaken(found, &Options::new(args), &mut printer);
    Some(printer.finish(false))
}

/// Checks all files and prints all reports.
fn run(args: &Args) -> Status {
    let mut printer = Printer::new(args);
    let found = discover::discover(args, &args.paths);
    for failure in &found.failures {
        printer.failure(failure);
    }
    let options = Options::new(args);
    print_mistaken(&found, &options, &mut printer);
    let printed = pool::in_order(
        &found.inputs,
        args.workers(),
        |input| check::check(input, &options),
        |outcome| {
            if printer.outcome(outcome).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    if let Err(error) = printed {
        // Nothing more can be done if stderr is closed too.
        let _ = writeln!(std::io::stderr(), "rxcheck: no worker thread could be started: {error}");
        return Status::Failed;
    }
    printer.finish(found.inputs.is_empty() && found.failures.is_empty())
}
