//! `rxrun`: checks, compiles and runs a function of a Relax module.
//!
//! It loads and checks the program (`session`), finds or draws the inputs (`arrays`, `arguments`, `inputs`, `dims`, `constants`),
//! prepares weights (`weights`), lowers, builds and runs it (`execute`), observes the run (`progress`, `profile`, `values`), or
//! prints a stage of it (`emit`), and reports the result (`report`). No rule of the language is here.

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

/// The binary: the process's arguments, standard streams and exit status.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return ExitCode::from(rx_report::stdout::usage_status(error.print(), error.exit_code())),
    };
    if let Err(message) = rx_trace::init(args.verbose) {
        eprintln!("rxrun: {message}");
        return ExitCode::from(2);
    }
    rx_report::process::run("rxrun", move || run(&args))
}

/// The command line, as its manual page has it.
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
