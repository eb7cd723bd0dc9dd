//! `rxfmt`: formats Relax IR text.
//!
//! `discover` finds the files, `source` reads them, the formatter of `rx-syntax` formats them, and `output` writes them
//! or reports the differences. The crate implements no rule of the language.

mod args;
mod discover;
mod output;
mod source;

use std::process::ExitCode;

use args::Args;
use clap::Parser;
use output::{Outcome, Output};
use rx_syntax::dialect::Dialect;
use rx_syntax::format::checked;
use source::Source;

/// Entry point of the binary: parses the process's arguments, formats, and returns the exit status.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return ExitCode::from(rx_report::stdout::usage_status(error.print(), error.exit_code())),
    };
    let output = Output::new(&args);
    let found = discover::discover(&args.files);
    let problems = found.problems.iter().map(|problem| output.failed(problem)).max();
    let worst = found.files.iter().map(|file| run(file, &args, &output)).max();
    worst.max(problems).unwrap_or(Outcome::Done).into()
}

/// Returns the definition of the command line, from which the manual page is generated.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

/// Formats one file.
fn run(file: &str, args: &Args, output: &Output) -> Outcome {
    let source = match Source::read(file, &args.stdin_name) {
        Ok(source) => source,
        Err(problem) => return output.failed(&problem),
    };
    let document = source.document();
    let mistakes = source.mistakes(&document);
    if !mistakes.is_empty() {
        return output.mistakes(&mistakes);
    }
    let own = Dialect::detect(&document);
    let dialect = args.dialect.unwrap_or(own);
    match checked(&document, own, dialect) {
        Ok(formatted) => match source.with_document(formatted) {
            Ok(text) => output.formatted(&source, &text),
            Err(problem) => output.failed(&problem),
        },
        Err(difference) => {
            output.failed(&format!("{}: left as it is, for formatting changes it: {difference}", source.name))
        }
    }
}
