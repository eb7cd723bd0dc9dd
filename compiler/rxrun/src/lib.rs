//! `rxrun`: checks, compiles and runs a function of a Relax module.
//!
//! The modules, in the order of a run: `session` loads and checks the program; `arrays`, `arguments`, `inputs`, `dims`
//! and `constants` read the inputs or draw them at random; `weights` prepares weights; `execute` lowers, builds and
//! runs the program; `progress`, `profile` and `values` observe the run; `emit` prints a stage instead of running;
//! `report` prints the results, with positions of `place`. The crate implements no rule of the language.

mod args;
mod arguments;
mod arrays;
mod choices;
mod constants;
mod describe;
mod device;
mod dims;
mod emit;
mod execute;
mod failure;
mod inputs;
mod place;
mod profile;
mod progress;
mod report;
mod session;
mod table;
mod values;
mod weights;

use args::Args;
use clap::Parser;
use failure::Failure;
use report::Report;
use session::Session;
use std::process::ExitCode;

/// Entry point of the binary: parses the process's arguments, runs, and returns the exit status.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return ExitCode::from(rx_report::stdout::usage_status(error.print(), error.exit_code())),
    };
    if let Err(message) = rx_trace::init(args.verbose) {
        eprintln!("rxrun: {message}");
        return ExitCode::from(2);
    }
    // The language server starts rxrun for its runs; without the server, no one would read their results or stop them.
    rx_base::process::end_with_owner();
    rx_report::process::run("rxrun", move || run(&args))
}

/// Returns the definition of the command line, from which the manual page is generated.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

fn run(args: &Args) -> u8 {
    let mut report = Report::new(args);
    let status = match work(args, &mut report) {
        Ok(()) => 0,
        Err(failure) => report.failure(&failure),
    };
    report.lost(status)
}

fn work(args: &Args, report: &mut Report) -> Result<(), Failure> {
    let session = Session::open(args, report)?;
    if let Some(stage) = args.stage() {
        return emit::stage(stage, &session, args, report);
    }
    let entry = session.entry(args.entry.as_deref())?;
    execute::execute(&session, entry, args, report)
}
