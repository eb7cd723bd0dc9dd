//! What becomes of a formatted text.

use std::io::{self, Write};
use std::process::ExitCode;

use rx_report::stdout::print;
use rx_report::store::replace;
use similar::TextDiff;

use crate::args::Args;
use crate::source::Source;

/// How a file fared, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is formatted, or was written so.
    Done,
    /// `--check` found that it is not.
    Differs,
    /// It could not be read, written or understood.
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

/// What the command line wants done.
pub struct Output {
    check: bool,
    diff: bool,
}

impl Output {
    /// As `args` say.
    pub fn new(args: &Args) -> Output {
        Output { check: args.check, diff: args.diff }
    }

    /// Says why a file could not be formatted.
    pub fn failed(&self, problem: &str) -> Outcome {
        complain(&format!("rxfmt: {problem}"));
        Outcome::Failed
    }

    /// Says what is wrong with a file, which stays as it is.
    pub fn mistakes(&self, mistakes: &[String]) -> Outcome {
        mistakes.iter().for_each(|mistake| complain(mistake));
        Outcome::Failed
    }

    /// Writes `formatted`, or says how it differs.
    pub fn formatted(&self, source: &Source, formatted: &str) -> Outcome {
        let same = source.text == formatted;
        if self.diff && !same {
            let diff = TextDiff::from_lines(source.text.as_str(), formatted);
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
    // When stderr is closed nobody can be told; the exit status still says it.
    let _ = writeln!(io::stderr().lock(), "{line}");
}
