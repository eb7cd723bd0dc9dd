//! Printing of reports, counting of diagnostics, and the exit status that follows from them.

use crate::args::Args;
use crate::check::{Checked, Outcome};
use rx_base::{Diagnostic, Severity, counted};
use rx_report::{Format, Report, line_of};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The most characters that a path or a message of the system takes in one line.
const LONGEST: usize = 2000;

/// The result of a run, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// No error.
    Clean,
    /// A text has an error.
    Mistakes,
    /// Wrong usage, or a file cannot be read.
    Failed,
    /// A bug in rxcheck itself.
    Internal,
}

impl Status {
    /// The exit code, 0 to 3.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// The reason why an input was not checked, in one line, and the status that follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    status: Status,
}

/// Prints a text on standard output.
///
/// # Errors
/// The final status, if nothing more can be printed: a closed pipe is no failure; a full disk is one and has been reported.
pub fn print(text: &str) -> Result<(), Status> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Status::Clean),
        Err(error) => Err(Failure::usage(format!("standard output: {error}")).say()),
    }
}

impl Failure {
    /// Creates a failure for a file that cannot be read.
    pub fn new(path: &Path, error: &io::Error) -> Failure {
        let message = match error.kind() {
            ErrorKind::NotFound => "no such file or folder".to_owned(),
            ErrorKind::PermissionDenied if error.raw_os_error().is_some() => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        Failure { message: format!("{}: {message}", path.display()), status: Status::Failed }
    }

    /// Creates a failure for wrong usage, such as a `--why` position without a value.
    pub fn usage(message: String) -> Failure {
        Failure { message, status: Status::Failed }
    }

    /// Prints the message on stderr; returns the status.
    pub fn say(&self) -> Status {
        say(&format!("rxcheck: {}", self.message));
        self.status
    }

    /// Creates a failure for a panic on a file.
    pub fn internal(shown: &str, panic: &str) -> Failure {
        let report = concat!(env!("CARGO_PKG_REPOSITORY"), "/issues");
        let message = format!("{shown}: internal error: {panic}; please report it with the file at {report}");
        Failure { message, status: Status::Internal }
    }
}

/// Numbers of diagnostics by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    errors: usize,
    warnings: usize,
    remarks: usize,
}

impl Counts {
    /// Counts `diagnostics`; hints are not counted.
    pub fn of<P>(diagnostics: &[Diagnostic<P>]) -> Counts {
        let count = |severity| diagnostics.iter().filter(|it| it.severity == severity).count();
        Counts { errors: count(Severity::Error), warnings: count(Severity::Warning), remarks: count(Severity::Info) }
    }

    /// Whether the exit status is 1; with `strict`, warnings count like errors.
    pub fn fails(self, strict: bool) -> bool {
        self.errors > 0 || (strict && self.warnings > 0)
    }

    fn add(&mut self, other: Counts) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.remarks += other.remarks;
    }

    /// Formats the counts, for example `2 errors, 1 warning`; empty if there are neither errors nor warnings.
    fn words(self) -> String {
        let words = [(self.errors, "error"), (self.warnings, "warning")];
        let words = words.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| counted(count, word));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The destination of reports.
enum Out {
    Stdout(BufWriter<Stdout>),
    /// A file's path, and its text so far: the file is written at the end, whole or not at all.
    File(PathBuf, String),
}

impl Out {
    fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Out::Stdout(out) => out.write_all(text.as_bytes()),
            Out::File(_, kept) => {
                kept.push_str(text);
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Stdout(out) => out.flush(),
            Out::File(..) => Ok(()),
        }
    }
}

/// Prints the outcomes of inputs in order, and keeps the totals.
pub struct Printer<'a> {
    args: &'a Args,
    out: Out,
    /// All diagnostics, for formats that are a single document.
    report: Report,
    room: usize,
    left_out: usize,
    counts: Counts,
    checked: usize,
    with_mistakes: usize,
    /// Numbers of fixed mistakes, of texts with fixes, and of mistakes that have only an unsafe fix.
    fixed: [usize; 3],
    /// The number of written types, and the number of texts in which types were written.
    annotated: [usize; 2],
    status: Status,
    /// Whether standard output is closed.
    closed: bool,
}

impl<'a> Printer<'a> {
    /// Creates a printer for the destination and format given by `args`.
    pub fn new(args: &'a Args) -> Printer<'a> {
        Printer {
            args,
            out: match &args.output_file {
                Some(path) => Out::File(path.clone(), String::new()),
                None => Out::Stdout(BufWriter::with_capacity(1 << 16, io::stdout())),
            },
            report: Report::new(args.format()),
            room: args.most_reports(),
            left_out: 0,
            counts: Counts::default(),
            checked: 0,
            with_mistakes: 0,
            fixed: [0; 3],
            annotated: [0; 2],
            status: Status::Clean,
            closed: false,
        }
    }

    /// Reports an input that was not checked.
    pub fn failure(&mut self, failure: &Failure) {
        self.status = self.status.max(failure.say());
        if let Some(line) = self.args.format().failure(&failure.message) {
            let written = self.out.write(&line).and_then(|()| self.out.flush());
            // If the output cannot be written, that cannot be reported there either; the status shows it.
            self.closed |= written.is_err();
        }
        self.report.failure(failure.message.clone());
    }

    /// Prints the outcome of one input.
    ///
    /// # Errors
    /// If nothing more can be printed: a closed pipe, which is no failure, or a full disk, which has been reported.
    pub fn outcome(&mut self, outcome: Outcome) -> io::Result<()> {
        match outcome {
            Outcome::Checked(checked) => {
                self.checked += 1;
                self.status = self.status.max(if checked.fails { Status::Mistakes } else { Status::Clean });
                self.found(checked)
            }
            Outcome::Settings(checked) => {
                self.status = self.status.max(Status::Failed);
                self.found(checked)
            }
            Outcome::Failed(failure) => {
                self.failure(&failure);
                Ok(())
            }
            Outcome::Skipped => Ok(()),
        }
    }

    fn found(&mut self, checked: Checked) -> io::Result<()> {
        self.counts.add(checked.counts);
        self.with_mistakes += usize::from(checked.counts.errors + checked.counts.warnings > 0);
        let remarks = checked.remark.iter().chain(&checked.rewritten.remarks);
        remarks.filter(|_| !self.args.quiet).for_each(|remark| say(remark));
        let rewritten = &checked.rewritten;
        for (sum, more) in
            self.fixed.iter_mut().zip([rewritten.fixed, usize::from(rewritten.fixed > 0), rewritten.left])
        {
            *sum += more;
        }
        let annotated = rewritten.annotated;
        for (sum, more) in self.annotated.iter_mut().zip([annotated, usize::from(annotated > 0)]) {
            *sum += more;
        }
        if self.args.diff && rewritten.changed {
            self.status = self.status.max(Status::Mistakes);
        }
        let mut pieces = checked.pieces;
        let fit = self.room.min(pieces.len());
        self.room -= fit;
        self.left_out += checked.left_out + (pieces.len() - fit);
        pieces.truncate(fit);
        if self.args.format().is_document() {
            self.report.file(checked.name, pieces);
            return Ok(());
        }
        let texts = pieces.iter().map(|piece| &piece.text).chain(&checked.types);
        let written = match (&checked.rewritten.shown, &mut self.out) {
            // If standard output carries the rewritten text, reports go to standard error.
            (Some(shown), Out::Stdout(out)) => {
                texts.for_each(|text| drop(io::stderr().write_all(text.as_bytes())));
                out.write_all(shown.as_bytes())
            }
            (Some(shown), Out::File(_, kept)) if !self.args.diff => {
                texts.for_each(|text| kept.push_str(text));
                io::stdout().write_all(shown.as_bytes())
            }
            (shown, out) => texts.chain(shown).try_for_each(|text| out.write(text)),
        };
        let written = written.and_then(|()| self.out.flush());
        written.inspect_err(|error| self.lost(error))
    }

    /// Records that output could not be written.
    fn lost(&mut self, error: &io::Error) {
        self.closed = true;
        if error.kind() != ErrorKind::BrokenPipe {
            self.failure(&Failure { message: format!("standard output: {error}"), status: Status::Failed });
        }
    }

    /// Prints the document or the last lines; returns the status. `nothing`: the paths match no file at all.
    pub fn finish(mut self, nothing: bool) -> Status {
        let mut end = self.report.document();
        if self.left_out > 0 && !self.closed {
            let line = format!("… and {} more (--max-diagnostics 0 prints all)", self.left_out);
            if self.args.format() == Format::Text {
                end += &(line + "\n");
            } else if !self.args.quiet {
                say(&line);
            }
        }
        if !self.closed {
            let written = self.out.write(&end).and_then(|()| self.out.flush());
            if let Err(error) = written {
                self.lost(&error);
            }
        }
        if let Out::File(path, text) = &self.out
            && let Err(error) = rx_report::store::write(path, text)
        {
            self.failure(&Failure::new(&path.clone(), &error));
        }
        if !self.args.quiet && !self.closed {
            self.summary(nothing);
        }
        self.status
    }

    /// Prints a summary of `--fix` or `--diff`.
    fn fixes(&self) {
        let [fixed, texts, left] = self.fixed;
        let (did, nothing) = if self.args.diff { ("would fix", "nothing to fix") } else { ("fixed", "nothing fixed") };
        match (fixed, left) {
            (0, 0) => say(nothing),
            (0, _) => say(&format!("{nothing} ({left} with --unsafe-fixes)")),
            (_, 0) => say(&format!("{did} {} in {}", counted(fixed, "mistake"), counted(texts, "file"))),
            _ => {
                let (fixed, texts) = (counted(fixed, "mistake"), counted(texts, "file"));
                say(&format!("{did} {fixed} in {texts} ({left} more with --unsafe-fixes)"));
            }
        }
    }

    fn summary(&self, nothing: bool) {
        if self.args.fix || (self.args.diff && self.args.annotate.is_none()) {
            self.fixes();
        }
        if self.args.annotate.is_some() {
            let [annotated, texts] = self.annotated;
            let did = if self.args.diff { "would annotate" } else { "annotated" };
            say(&format!("{did} {} in {}", counted(annotated, "value"), counted(texts, "file")));
        }
        if self.args.diff && self.checked > 0 {
            return;
        }
        let words = self.counts.words();
        if !words.is_empty() {
            let files = counted(self.with_mistakes, "file");
            say(&format!("{words} in {files} ({} checked)", self.checked));
        } else if nothing || (self.checked == 0 && self.status == Status::Clean) {
            say("rxcheck: no Relax text found");
        } else if self.status == Status::Clean && (self.args.format() == Format::Text || io::stderr().is_terminal()) {
            let remarks = match self.counts.remarks {
                0 => String::new(),
                count => format!(", {}", counted(count, "remark")),
            };
            say(&format!("ok: {}, no mistakes{remarks}", counted(self.checked, "file")));
        }
    }
}

/// Prints a line on stderr; ignores a closed stderr.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", line_of(line, LONGEST));
}
