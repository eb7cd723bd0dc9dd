//! What is printed, what is counted, and the exit status that follows.

use crate::args::{Args, Format};
use crate::check::{Checked, Outcome};
use rx_base::{Diagnostic, Severity};
use rx_report::line_of;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::path::Path;
use std::process::ExitCode;

/// Characters of a path or a system's message in one line.
const LONGEST: usize = 2000;

/// How a run ended, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// No error.
    Clean,
    /// An error in a text.
    Mistakes,
    /// Wrong usage, or a file that cannot be read.
    Failed,
    /// A fault of rxcheck itself.
    Internal,
}

impl Status {
    /// 0 to 3.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// An input that was not checked, in one line, and how bad that is.
#[derive(Clone, Debug)]
pub struct Failure {
    message: String,
    status: Status,
}

impl Failure {
    /// A file that cannot be read.
    pub fn new(path: &Path, error: &io::Error) -> Failure {
        let message = match error.kind() {
            ErrorKind::NotFound => "no such file or folder".to_owned(),
            ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        Failure { message: format!("{}: {message}", path.display()), status: Status::Failed }
    }

    /// A panic on a file.
    pub fn internal(shown: &str, panic: &str) -> Failure {
        let report = concat!(env!("CARGO_PKG_REPOSITORY"), "/issues");
        let message = format!("{shown}: internal error: {panic}; please report it with the file at {report}");
        Failure { message, status: Status::Internal }
    }
}

/// Diagnostics by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    errors: usize,
    warnings: usize,
    remarks: usize,
}

impl Counts {
    /// The counts of `diagnostics`; hints are not counted.
    pub fn of<P>(diagnostics: &[Diagnostic<P>]) -> Counts {
        let count = |severity| diagnostics.iter().filter(|it| it.severity == severity).count();
        Counts { errors: count(Severity::Error), warnings: count(Severity::Warning), remarks: count(Severity::Info) }
    }

    fn add(&mut self, other: Counts) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.remarks += other.remarks;
    }

    /// `2 errors, 1 warning`; empty if there are none of either.
    fn words(self) -> String {
        let words = [(self.errors, "error"), (self.warnings, "warning")];
        let words = words.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| plural(count, word));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Prints outcomes in the order they are given and keeps the sums.
pub struct Printer<'a> {
    args: &'a Args,
    out: BufWriter<Stdout>,
    room: usize,
    left_out: usize,
    counts: Counts,
    checked: usize,
    with_mistakes: usize,
    status: Status,
    /// No one reads on.
    closed: bool,
}

impl<'a> Printer<'a> {
    /// A printer to standard output.
    pub fn new(args: &'a Args) -> Printer<'a> {
        Printer {
            args,
            out: BufWriter::with_capacity(1 << 16, io::stdout()),
            room: if args.types { usize::MAX } else { args.most_reports() },
            left_out: 0,
            counts: Counts::default(),
            checked: 0,
            with_mistakes: 0,
            status: Status::Clean,
            closed: false,
        }
    }

    /// An input that was not checked.
    pub fn failure(&mut self, failure: &Failure) {
        self.status = self.status.max(failure.status);
        say(&format!("rxcheck: {}", failure.message));
    }

    /// What became of one input.
    ///
    /// # Errors
    /// When nothing more can be printed: a closed pipe, which is no failure, or a full disk, which has been reported.
    pub fn outcome(&mut self, outcome: Outcome) -> io::Result<()> {
        match outcome {
            Outcome::Checked(checked) => self.checked(checked),
            Outcome::Failed(failure) => {
                self.failure(&failure);
                Ok(())
            }
            Outcome::Skipped => Ok(()),
        }
    }

    fn checked(&mut self, checked: Checked) -> io::Result<()> {
        self.checked += 1;
        self.counts.add(checked.counts);
        self.with_mistakes += usize::from(checked.counts.errors + checked.counts.warnings > 0);
        let wrong = checked.counts.errors > 0 || (self.args.error_on_warning && checked.counts.warnings > 0);
        self.status = self.status.max(if wrong { Status::Mistakes } else { Status::Clean });
        if let (Some(remark), false) = (&checked.remark, self.args.quiet) {
            say(remark);
        }
        let fit = self.room.min(checked.reports.len());
        self.room -= fit;
        self.left_out += checked.left_out + (checked.reports.len() - fit);
        let mut reports = checked.reports.iter().take(fit);
        let written = reports.try_for_each(|report| self.out.write_all(report.as_bytes()));
        let written = written.and_then(|()| self.out.flush());
        written.inspect_err(|error| self.lost(error))
    }

    /// Output that did not arrive.
    fn lost(&mut self, error: &io::Error) {
        self.closed = true;
        if error.kind() != ErrorKind::BrokenPipe {
            self.failure(&Failure { message: format!("standard output: {error}"), status: Status::Failed });
        }
    }

    /// The last lines, and how it ended. `nothing`: no file was meant at all.
    pub fn finish(mut self, nothing: bool) -> Status {
        if self.left_out > 0 && !self.closed {
            let line = format!("… and {} more (--max-diagnostics 0 prints all)", self.left_out);
            if self.args.format == Format::Full {
                let written = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
                if let Err(error) = written {
                    self.lost(&error);
                }
            } else if !self.args.quiet {
                say(&line);
            }
        }
        if !self.args.quiet && !self.closed {
            self.summary(nothing);
        }
        self.status
    }

    fn summary(&self, nothing: bool) {
        let words = self.counts.words();
        if !words.is_empty() {
            let files = plural(self.with_mistakes, "file");
            say(&format!("{words} in {files} ({} checked)", self.checked));
        } else if nothing || (self.checked == 0 && self.status == Status::Clean) {
            say("rxcheck: no Relax text found");
        } else if self.status == Status::Clean && (self.args.format == Format::Full || io::stderr().is_terminal()) {
            let remarks = match self.counts.remarks {
                0 => String::new(),
                count => format!(", {}", plural(count, "remark")),
            };
            say(&format!("ok: {}, no mistakes{remarks}", plural(self.checked, "file")));
        }
    }
}

/// A line on stderr; where that is closed, nothing.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", line_of(line, LONGEST));
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
