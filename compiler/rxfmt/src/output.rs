//! Output of formatted texts: writes them, or reports how they differ.

use std::io::{self, Write};
use std::process::ExitCode;

use rx_report::stdout::print;
use rx_report::store::replace;
use similar::TextDiff;

use crate::args::Args;
use crate::source::Source;

/// The result for a file, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The file is formatted, or was rewritten.
    Done,
    /// `--check` found that the file is not formatted.
    Differs,
    /// The file could not be read, parsed or written.
    Failed,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::Differs => 1,
            Outcome::Failed => 2,
        })
    }
}

/// The mode of output.
pub struct Output {
    check: bool,
    diff: bool,
}

impl Output {
    /// Reads the mode from `args`.
    pub fn new(args: &Args) -> Output {
        Output { check: args.check, diff: args.diff }
    }

    /// Reports the reason why a file could not be formatted.
    pub fn failed(&self, problem: &str) -> Outcome {
        complain(&format!("rxfmt: {problem}"));
        Outcome::Failed
    }

    /// Reports the syntax errors of a file, which stays unchanged.
    pub fn mistakes(&self, mistakes: &[String]) -> Outcome {
        mistakes.iter().for_each(|mistake| complain(mistake));
        Outcome::Failed
    }

    /// Writes `formatted`, or reports how it differs from the source.
    pub fn formatted(&self, source: &Source, formatted: &str) -> Outcome {
        let same = source.text() == formatted;
        if self.diff && !same {
            let diff = TextDiff::from_lines(source.text(), formatted);
            let (old, new) = (format!("{} (before)", source.name), format!("{} (formatted)", source.name));
            let diff = diff.unified_diff().header(&old, &new).to_string();
            if let Err(error) = print(&diff) {
                return self.failed(&error.to_string());
            }
        }
        if self.check && !same {
            complain(&format!("rxfmt: {}: not formatted", source.name));
            return Outcome::Differs;
        }
        let written = match &source.path {
            _ if self.check || self.diff => Ok(()),
            Some(_) if same => Ok(()),
            Some(path) => replace(path, formatted),
            None => print(formatted),
        };
        match written {
            Ok(()) => Outcome::Done,
            Err(error) => self.failed(&format!("{}: {error}", source.name)),
        }
    }
}

fn complain(line: &str) {
    // If standard error is closed, only the exit status shows the error.
    let _ = writeln!(io::stderr().lock(), "{line}");
}
