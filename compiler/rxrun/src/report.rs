//! Output of `rxrun`: results go to standard output, everything else to standard error; with `--format json`, events go
//! to standard output.

use crate::args::{Args, Emit, Format};
use crate::failure::{Failure, Missing};
use crate::place::Place;
use crate::table::Table;
use clap::ValueEnum;
use rx_base::{Code, Diagnostic, Span, counted};
use rx_build::listing::Part;
use rx_build::passes::Stage;
use rx_report::{Content, Source};
use rx_tensor::Progress;
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long something must take before its progress is shown.
const PATIENCE: Duration = Duration::from_millis(300);

/// Terminal escape that clears the current line.
const OVER: &str = "\r\u{1b}[2K";

/// Prints in the format given by `--format`.
pub struct Report {
    format: Format,
    color: bool,
    terminal: bool,
    /// The program's name and content once it is loaded, for errors with a position.
    program: Option<(String, Arc<Content>)>,
    /// Whether the terminal's last line shows progress. It is shared with the closure that prints the program's output.
    progress_shown: Rc<Cell<bool>>,
    /// The first error while writing to standard output, if there was one. A pipe closed by its reader is not an error.
    lost: Rc<RefCell<Option<io::Error>>>,
}

/// The kind of run in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// The function that prepares raw weights.
    Weights,
    /// The program: the number of this run, from 1, and how many runs there are.
    Run(u32, u32),
    /// The program, observed.
    Observed(Observation),
}

impl Running {
    fn name(self) -> &'static str {
        match self {
            Running::Weights => "weights",
            Running::Run(..) => "run",
            Running::Observed(activity) => activity.name(),
        }
    }

    fn words(self) -> String {
        match self {
            Running::Weights => "preparing weights".to_owned(),
            Running::Run(_, 1) => "running".to_owned(),
            Running::Run(at, of) => format!("running ({at} of {of})"),
            Running::Observed(Observation::Profile) => "timing kernels".to_owned(),
            Running::Observed(Observation::Values) => "running to record values".to_owned(),
        }
    }
}

/// The purpose of an observed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    Profile,
    Values,
}

impl Observation {
    fn name(self) -> &'static str {
        match self {
            Observation::Profile => "profile",
            Observation::Values => "values",
        }
    }

    /// The words for an observed run that failed.
    fn missing(self) -> &'static str {
        match self {
            Observation::Profile => "no profile",
            Observation::Values => "not all values",
        }
    }
}

impl Report {
    pub fn new(args: &Args) -> Report {
        let terminal = io::stderr().is_terminal();
        Report {
            format: args.format,
            color: args.color(),
            terminal,
            program: None,
            progress_shown: Rc::default(),
            lost: Rc::default(),
        }
    }

    /// Sets the program's name and content, in which errors are shown.
    pub fn about(&mut self, name: &str, content: Arc<Content>) {
        self.program = Some((name.to_owned(), content));
    }

    /// Reports a diagnostic of the program.
    pub fn diagnostic(&mut self, source: &Source<'_>, diagnostic: &Diagnostic<Span>) {
        let text = match self.format {
            Format::Text => rx_report::full(source, diagnostic, self.color),
            Format::Json => rx_report::json(source, diagnostic),
        };
        match self.format {
            Format::Text => self.line(&text),
            Format::Json => self.out(&text),
        }
    }

    pub fn checked(&mut self, name: &str, took: Duration) {
        self.event("checked", &format!("checked {name} in {}", shown(took)), json!({ "seconds": took.as_secs_f64() }));
    }

    /// Reports the progress of a build: a line that is overwritten on a terminal, or a JSON event.
    pub fn building(&mut self, done: usize, total: usize, since: Duration) {
        match self.format {
            Format::Json => self.object("building", json!({ "done": done, "total": total })),
            Format::Text => self.progress(since, &format!("building: {done} of {total} kernels")),
        }
    }

    /// Reports the progress of reading a file of arrays, in the same way as [`Report::building`].
    pub fn loading(&mut self, file: &str, progress: Progress, since: Duration) {
        let Progress { done, total } = progress;
        match self.format {
            Format::Json => self.object("loading", json!({ "file": file, "done": done, "total": total })),
            Format::Text => {
                self.progress(since, &format!("loading: {} of {} MiB of {file}", done >> 20, total >> 20));
            }
        }
    }

    /// Reports the progress of a run, in the same way as [`Report::building`]: how many kernels ran, and of how many if
    /// that is known. Nothing is reported at the beginning, not even as JSON, so that short runs are not slowed down.
    pub fn running(&mut self, activity: Running, done: u64, total: Option<u64>, since: Duration) {
        match self.format {
            Format::Json if since <= PATIENCE => {}
            Format::Json => {
                let run = if let Running::Run(at, _) = activity { Some(at) } else { None };
                self.object("running", json!({ "what": activity.name(), "run": run, "done": done, "total": total }));
            }
            Format::Text => {
                let total = total.map(|total| format!(" of {total}")).unwrap_or_default();
                self.progress(since, &format!("{}: {done}{total} kernels", activity.words()));
            }
        }
    }

    /// Whether progress is shown or emitted at all.
    pub fn tells_progress(&self) -> bool {
        self.format == Format::Json || self.terminal
    }

    /// Overwrites the terminal's last line, if the operation has already taken long enough.
    fn progress(&self, since: Duration, text: &str) {
        if self.terminal && since > PATIENCE {
            self.progress_shown.set(true);
            let _ = write!(io::stderr(), "{OVER}{text}");
        }
    }

    /// Clears the progress line.
    pub fn quiet(&self) {
        clear(&self.progress_shown);
    }

    pub fn built(&mut self, kernels: usize, device: &str, took: Duration) {
        self.quiet();
        let text = format!("built {} for {device} in {}", counted(kernels, "kernel"), shown(took));
        self.event("built", &text, json!({ "kernels": kernels, "device": device, "seconds": took.as_secs_f64() }));
    }

    /// Reports a remark, such as a hint about the build.
    pub fn remark(&mut self, text: &str) {
        self.event("remark", text, json!({ "message": text }));
    }

    /// Reports that the runs are over and an observed run follows.
    pub fn observing(&mut self, activity: Observation) {
        if self.format == Format::Json {
            self.object("observing", json!({ "what": activity.name() }));
        }
    }

    /// Reports that an observed run failed. The exit status is still that of the runs before it.
    pub fn not_observed(&mut self, activity: Observation, failure: &Failure) {
        if self.progress_shown.take() {
            self.line("");
        }
        let (message, span) = failure.reason();
        let program = self.program.clone();
        let source = program.as_ref().map(|(name, content)| content.source(name, &content.text));
        let mut fields = json!({ "what": activity.name(), "message": message });
        let place = insert_place(&mut fields, span, source.as_ref());
        let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
        self.event("remark", &format!("rxrun: {}: {place}{message}", activity.missing()), fields);
    }

    /// Reports that the function returned: the time of each run and, where the device measures them, its busy time in
    /// each run and the peak of its memory.
    pub fn ran(&mut self, times: &[Duration], busy: &[Duration], peak_bytes: Option<u64>) {
        self.quiet();
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let (Some(first), Some(median)) = (sorted.first(), sorted.get(sorted.len() / 2)) else { return };
        let text = match sorted.len() {
            1 => format!("ran in {}", shown(*first)),
            count => format!("ran {count} times: fastest {}, median {}", shown(*first), shown(*median)),
        };
        let seconds = |times: &[Duration]| times.iter().map(Duration::as_secs_f64).collect::<Vec<f64>>();
        let mut fields = json!({ "seconds": seconds(times) });
        let mut on_device = String::new();
        if let (Some(fastest), Some(bytes)) = (busy.iter().min(), peak_bytes) {
            on_device = format!("; {} on the device, {} MiB of it", shown(*fastest), bytes.div_ceil(1 << 20));
            fields["device_seconds"] = seconds(busy).into();
            fields["device_bytes"] = bytes.into();
        }
        self.event("ran", &format!("{text}{on_device}"), fields);
    }

    /// Prints the text of a stage; as JSON, with the source positions of its parts.
    pub fn emitted(&mut self, stage: Emit, text: &str, parts: &[Part], stages: &[Stage]) {
        let source = self.program.as_ref().map(|(name, content)| content.source(name, &content.text));
        let place = |span: &Span| Some(Place::of(source.as_ref()?, *span).fields());
        let part = |part: &Part| {
            json!({
                "name": part.name,
                "start_line": part.lines.start + 1,
                "end_line": part.lines.end + 1,
                "places": part.places.iter().filter_map(place).collect::<Vec<_>>(),
            })
        };
        let parts: Vec<_> = parts.iter().map(part).collect();
        let word = stage.to_possible_value();
        let word = word.as_ref().map_or("", |value| value.get_name());
        let mut fields = json!({ "stage": word, "text": format!("{text}\n"), "parts": parts });
        if stage == Emit::Passes {
            let stage = |stage: &Stage| {
                json!({
                    "pass": stage.pass,
                    "changed": stage.changed,
                    "problem": stage.problem,
                    "start_line": stage.lines.start + 1,
                    "end_line": stage.lines.end + 1,
                })
            };
            fields["stages"] = stages.iter().map(stage).collect();
        }
        self.result("emitted", text, fields);
    }

    /// Emits the kernels of a schedule as JSON objects. In the text format they are part of the text.
    pub fn kernels(&mut self, kernels: Vec<serde_json::Value>) {
        if self.format == Format::Json {
            kernels.into_iter().for_each(|fields| self.object("kernel", fields));
        }
    }

    /// Returns a closure that prints the program's own output as it arrives: to standard output as text, or as JSON
    /// events.
    pub fn printer(&self) -> impl FnMut(&str) + 'static {
        let (format, progress_shown, lost) = (self.format, self.progress_shown.clone(), self.lost.clone());
        move |text| {
            clear(&progress_shown);
            let line = match format {
                Format::Text => text.to_owned(),
                Format::Json => json!({ "event": "printed", "text": text }).to_string(),
            };
            write_line(&line, &lost);
        }
    }

    /// Prints a line on standard error.
    pub fn line(&mut self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Prints a line of the result on standard output.
    pub fn out(&mut self, text: &str) {
        write_line(text, &self.lost);
    }

    /// Reports that results could not be written, if so; returns the exit status.
    pub fn lost(&mut self, status: u8) -> u8 {
        match self.lost.take() {
            Some(error) => {
                self.line(&format!("rxrun: standard output: {error}"));
                status.max(2)
            }
            None => status,
        }
    }

    /// Prints results: as a table with a heading, or as one JSON object for each of `fields`.
    pub fn table<const N: usize>(&mut self, event: &str, table: &Table<N>, fields: Vec<serde_json::Value>) {
        match self.format {
            Format::Text if fields.is_empty() => {}
            Format::Text => {
                self.out("");
                table.lines().iter().for_each(|line| self.out(line));
            }
            Format::Json => fields.into_iter().for_each(|fields| self.object(event, fields)),
        }
    }

    /// Prints a result: as text, or as a JSON object.
    pub fn result(&mut self, event: &str, text: &str, fields: serde_json::Value) {
        match self.format {
            Format::Text => self.out(text),
            Format::Json => self.object(event, fields),
        }
    }

    fn event(&mut self, event: &str, text: &str, fields: serde_json::Value) {
        match self.format {
            Format::Text => self.line(text),
            Format::Json => self.object(event, fields),
        }
    }

    fn object(&mut self, event: &str, mut fields: serde_json::Value) {
        if let Some(object) = fields.as_object_mut() {
            object.insert("event".to_owned(), event.into());
        }
        self.out(&fields.to_string());
    }

    /// Reports the reason for the end of the run; returns the exit status.
    pub fn failure(&mut self, failure: &Failure) -> u8 {
        if self.progress_shown.take() {
            self.line("");
        }
        let program = self.program.take();
        let source = program.as_ref().map(|(name, content)| content.source(name, &content.text));
        match (failure, &source) {
            (Failure::Reported(_), _) => {}
            (Failure::Program(diagnostics), Some(source)) => {
                diagnostics.iter().for_each(|diagnostic| self.diagnostic(source, diagnostic));
            }
            (Failure::Program(diagnostics), None) => {
                diagnostics.iter().for_each(|diagnostic| self.line(&diagnostic.message));
            }
            (Failure::Run(message, span), source) => self.at(Code::RunFailed, message, (*span, source.as_ref()), None),
            (Failure::Input(message, span), source) => self.at(Code::BadInput, message, (*span, source.as_ref()), None),
            (Failure::Missing(message, span, missing), source) => {
                self.at(Code::BadInput, message, (*span, source.as_ref()), Some(missing));
            }
            (Failure::Usage(message), _) => match self.format {
                Format::Text => self.line(&format!("rxrun: {message}")),
                Format::Json => self.object("usage", json!({ "message": message })),
            },
            (Failure::Module(message, modules), _) => match self.format {
                Format::Text => self.line(&format!("rxrun: {message}")),
                Format::Json => self.object("usage", json!({ "message": message, "modules": modules })),
            },
        }
        failure.status()
    }

    /// Reports an error at a position: `file:line:column: error: …` with the source line. JSON lists the `missing`
    /// values, if there are any.
    fn at(
        &mut self,
        code: Code,
        message: &str,
        (span, source): (Option<Span>, Option<&Source<'_>>),
        missing: Option<&Missing>,
    ) {
        match self.format {
            Format::Json => {
                let mut fields = match missing {
                    Some(Missing { dims, inputs }) => {
                        json!({ "message": message, "missing": { "dims": dims, "inputs": inputs } })
                    }
                    None => json!({ "message": message }),
                };
                insert_place(&mut fields, span, source);
                self.object(code.slug(), fields);
            }
            Format::Text => match (span, source) {
                (Some(span), Some(source)) => {
                    let diagnostic = Diagnostic::new(code, span, message);
                    let text = rx_report::full(source, &diagnostic, self.color);
                    self.line(&text);
                }
                _ => self.line(&format!("rxrun: {message}")),
            },
        }
    }
}

/// Writes a line to standard output, and keeps the first error.
fn write_line(text: &str, lost: &RefCell<Option<io::Error>>) {
    if let Err(error) = rx_report::stdout::print(&format!("{text}\n")) {
        lost.borrow_mut().get_or_insert(error);
    }
}

/// Clears the progress line of the terminal.
fn clear(progress_shown: &Cell<bool>) {
    if progress_shown.take() {
        let _ = write!(io::stderr(), "{OVER}");
    }
}

/// Adds file, line and column of `span` to `fields`, if known, and the cell in a notebook. Returns them as text:
/// `net.rx:7:5`.
fn insert_place(fields: &mut serde_json::Value, span: Option<Span>, source: Option<&Source<'_>>) -> Option<String> {
    let (span, source, object) = (span?, source?, fields.as_object_mut()?);
    let position = source.position(span.start as usize);
    object.insert("file".to_owned(), source.name().into());
    object.insert("line".to_owned(), position.line.into());
    object.insert("column".to_owned(), position.column.into());
    if let Some(cell) = position.cell {
        object.insert("cell".to_owned(), cell.into());
    }
    Some(format!("{}:{position}", source.name()))
}

/// Returns the usual words for an error of the file system.
pub fn io_message(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Formats a duration, for example `3.1 ms` or `0.84 s`.
pub fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        seconds if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{seconds:.2} s"),
    }
}
