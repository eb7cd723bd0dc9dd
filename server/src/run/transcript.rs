//! Parses the output of a child and derives the outcome of the run from it. The output is not trusted: lines that are
//! not events are treated as noise.

use super::child::{Ended, Stop};
use super::observed::Observed;
use super::stage::Stage;
use super::wording::{described, median, placed, shown, too_long, with_more, words};
use super::{Missing, Outcome};
use serde_json::Value;
use std::ops::Range;
use std::process::ExitStatus;

/// The maximal number of outputs that are kept. Of the others, only the number is reported.
const MAX_OUTPUTS: usize = 256;

/// The maximal number of outputs that are named in the message.
const SHOWN: usize = 3;

/// The exit status of a child that rejects its command line.
const USAGE: i32 = 2;

/// The end of a message about wrong arguments.
const ARGUMENTS: &str = "(arguments of rxrun: setting rx.run.arguments)";

/// A progress step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The description.
    pub message: String,
    /// The completed percentage. It never decreases.
    pub percent: u32,
}

/// The phases of a run, each with its fixed range of the percentage, since their durations are not known in advance.
const LOADING: Range<u32> = 0..20;
const WEIGHTS: Range<u32> = 20..30;
const BUILDING: Range<u32> = 30..60;
const RUNNING: Range<u32> = 60..90;
/// The percentage at which runs for values and times begin, after the run itself.
const OBSERVING: u32 = 90;

/// The output of a child up to now.
#[derive(Default)]
pub struct Transcript {
    /// The requested stage; `None` for a run.
    stage: Option<Stage>,
    /// The `emitted` event with the text of the stage.
    emitted: Option<Value>,
    /// The median time of the runs in seconds.
    seconds: Option<f64>,
    outputs: Vec<Value>,
    left_out: usize,
    /// The failure and its reason, in the child's words: `failed: …`.
    failure: Option<String>,
    /// The labels of the modules to choose from.
    modules: Vec<String>,
    /// The values that the user has to give.
    missing: Missing,
    /// The first error in the program, and the number of errors.
    mistake: Option<String>,
    mistakes: usize,
    /// The first output that differs from the reference of `--check`.
    difference: Option<String>,
    /// The reported values and kernels.
    pub observed: Observed,
    /// The completed percentage.
    percent: u32,
    /// The device of the run, as a suffix for messages: ` on the CPU`.
    device: String,
    /// The purpose of the extra run in progress. The run itself has already ended and its outputs were reported.
    observing: Option<Observation>,
    /// Sentences about extra runs that failed, each with the reason.
    unobserved: Vec<String>,
    noise: Option<String>,
}

/// The purpose of an extra run after the main one: to time kernels or to collect values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Observation {
    Profile,
    Values,
}

impl Observation {
    fn read(event: &Value) -> Option<Observation> {
        match event.get("what")?.as_str()? {
            "profile" => Some(Observation::Profile),
            "values" => Some(Observation::Values),
            _ => None,
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Observation::Profile => "timing kernels",
            Observation::Values => "running to record values",
        }
    }

    /// Returns the sentence for an extra run that failed.
    fn unknown(self, why: &str) -> String {
        match self {
            Observation::Profile => format!("the times of its kernels are not available: {why}"),
            Observation::Values => format!("not all of its values are available: {why}"),
        }
    }
}

impl Transcript {
    /// Creates the transcript of a child that was started for a run (`None`) or for a stage.
    pub fn of(stage: Option<Stage>) -> Transcript {
        Transcript { stage, ..Transcript::default() }
    }

    /// Handles a line of output. Returns the progress step that it reports, if any.
    pub fn line(&mut self, line: &[u8]) -> Option<Step> {
        let line = line.trim_ascii();
        match serde_json::from_slice::<Value>(line) {
            Ok(event) if event.is_object() => self.event(event),
            _ => {
                if !line.is_empty() && self.noise.is_none() {
                    self.noise = Some(words(&String::from_utf8_lossy(line)));
                }
                None
            }
        }
    }

    /// Handles a line that is longer than `most` bytes. In the output of a stage, it is the line with the text.
    pub fn cut(&mut self, most: u64) {
        if self.stage.is_some() {
            self.failure.get_or_insert_with(|| too_long(most));
        }
    }

    fn event(&mut self, event: Value) -> Option<Step> {
        match event.get("event").and_then(Value::as_str) {
            Some("checked") => return self.step("checked, lowering".to_owned(), LOADING.start),
            Some("loading") => {
                let (done, total) = counts(&event)?;
                let message = format!("loading {}/{} MiB", done >> 20, total? >> 20);
                return self.step(message, part(LOADING, done, total));
            }
            Some("building") => {
                let (done, total) = counts(&event)?;
                return self.step(format!("building {done}/{}", total?), part(BUILDING, done, total));
            }
            Some("built") => {
                let device = event.get("device").and_then(Value::as_str).map(|device| format!(" on {}", words(device)));
                self.device = device.unwrap_or_default();
                return self.step(format!("running{}", self.device), RUNNING.start);
            }
            Some("running") => {
                let (done, total) = counts(&event)?;
                let (doing, percent) = match (event.get("what").and_then(Value::as_str), Observation::read(&event)) {
                    (_, Some(subject)) => (subject.doing().to_owned(), OBSERVING),
                    (Some("weights"), _) => ("preparing weights".to_owned(), part(WEIGHTS, done, total)),
                    _ => (format!("running{}", self.device), part(RUNNING, done, total)),
                };
                let of = total.map(|total| format!("/{total}")).unwrap_or_default();
                return self.step(format!("{doing}: {done}{of} kernels"), percent);
            }
            Some("observing") => {
                self.observing = Observation::read(&event).or(self.observing);
                return self.step(self.observing?.doing().to_owned(), OBSERVING);
            }
            Some("value") => self.observed.value(&event),
            Some("kernel") => self.observed.kernel(&event),
            Some("remark") => {
                let unobserved = Observation::read(&event).map(|subject| subject.unknown(&placed(&event, "message")));
                self.unobserved.extend(unobserved.filter(|_| self.unobserved.len() < SHOWN));
            }
            Some("ran") => self.seconds = median(event.get("seconds")).or(self.seconds),
            Some("emitted") => self.emitted = Some(event),
            Some("output") if self.outputs.len() < MAX_OUTPUTS => self.outputs.push(event),
            Some("output") => self.left_out += 1,
            Some("compared") if event.get("ok") == Some(&Value::Bool(false)) => {
                self.difference.get_or_insert_with(|| placed(&event, "text"));
            }
            Some("bad-input") => {
                let why = placed(&event, "message");
                self.failure.get_or_insert_with(|| format!("was not run: {why} {ARGUMENTS}"));
                let missing = |field: &str| names(event.get("missing").and_then(|missing| missing.get(field)));
                self.missing = Missing { dims: missing("dims"), inputs: missing("inputs") };
            }
            Some("usage") => {
                // An output file that cannot be written is only detected after the function has returned.
                let how = if self.seconds.is_some() { "failed" } else { self.undone() };
                self.failure.get_or_insert_with(|| format!("{how}: {}", placed(&event, "message")));
                self.modules = names(event.get("modules"));
            }
            Some("run-failed") => {
                self.failure.get_or_insert_with(|| format!("failed: {}", placed(&event, "message")));
            }
            // Events of later versions of `rxrun` are ignored.
            Some(_) => {}
            None if event.get("severity").and_then(Value::as_str) == Some("error") => {
                self.mistakes += 1;
                self.mistake.get_or_insert_with(|| placed(&event, "message"));
            }
            None => {}
        }
        None
    }

    fn step(&mut self, message: String, percent: u32) -> Option<Step> {
        self.percent = self.percent.max(percent);
        Some(Step { message, percent: self.percent })
    }

    /// Returns the outcome of the run of `label`, given the way in which the child `ended` and the end `log` of its
    /// standard error.
    pub fn conclude(mut self, label: &str, ended: &Ended, log: String) -> Outcome {
        let mut outcome = Outcome { log, ..Outcome::default() };
        if let (Some(subject), Some(why)) = (self.observing, self.cut_short(ended, &outcome.log)) {
            self.unobserved.push(subject.unknown(&why));
            return self.returned(label, outcome);
        }
        outcome.message = match ended {
            Ended::Stopped(stop) => {
                outcome.cancelled = true;
                match stop {
                    Stop::Cancelled => format!("{label} was cancelled"),
                    Stop::Replaced => format!("{label} was cancelled: another {} of this file started", self.subject()),
                }
            }
            Ended::TimedOut(limit) => {
                format!("{label} was stopped after {} (setting rx.run.timeoutSeconds)", shown(limit.as_secs_f64()))
            }
            Ended::Itself(Err(error)) => format!("{label} {}: rx lost track of rxrun: {error}", self.broken()),
            Ended::Itself(Ok(status)) => match self.failed(label) {
                None if status.success() && self.seconds.is_some() => return self.returned(label, outcome),
                // If a pass could not be applied, the child fails, but the text is complete and describes the problem.
                None if self.emitted.as_ref().is_some_and(|event| status.success() || names_problem(event)) => {
                    outcome.ok = true;
                    String::new()
                }
                Some(message) => message,
                None if is_older(&outcome.log) => format!(
                    "{label} was not run: this rxrun is older than rx-lsp and does not report values: update it, or set rx.run.values to false"
                ),
                None => match rejected(*status, &outcome.log) {
                    Some(why) => format!("{label} {}: {why} {ARGUMENTS}", self.undone()),
                    None => format!("{label} {}: {}", self.broken(), self.crash(*status, &outcome.log)),
                },
            },
        };
        self.filled(outcome)
    }

    /// Returns the reason why an extra run did not finish although the main run did and no failure was reported.
    fn cut_short(&self, ended: &Ended, log: &str) -> Option<String> {
        self.seconds.filter(|_| self.failed("").is_none())?;
        match ended {
            Ended::TimedOut(limit) => {
                Some(format!("rxrun was stopped after {} (setting rx.run.timeoutSeconds)", shown(limit.as_secs_f64())))
            }
            Ended::Itself(Ok(status)) if !status.success() => Some(self.crash(*status, log)),
            _ => None,
        }
    }

    /// Returns the outcome of a function that returned, whether or not the extra runs succeeded.
    fn returned(self, label: &str, mut outcome: Outcome) -> Outcome {
        outcome.ok = true;
        outcome.message = self.success(label, self.seconds.unwrap_or_default());
        self.filled(outcome)
    }

    fn filled(self, mut outcome: Outcome) -> Outcome {
        outcome.seconds = self.seconds;
        outcome.outputs = self.outputs;
        outcome.emitted = self.emitted;
        outcome.modules = self.modules;
        outcome.missing = self.missing;
        outcome
    }

    /// Returns the noun for the request in messages.
    fn subject(&self) -> &'static str {
        if self.stage.is_some() { "stage" } else { "run" }
    }

    /// Returns the verb for a failure of the program.
    fn undone(&self) -> &'static str {
        if self.stage.is_some() { "cannot be shown" } else { "was not run" }
    }

    /// Returns the verb for a failure of the child.
    fn broken(&self) -> &'static str {
        if self.stage.is_some() { "cannot be shown" } else { "failed" }
    }

    /// Returns the failure that the child itself reported.
    fn failed(&self, label: &str) -> Option<String> {
        if let Some(failure) = &self.failure {
            return Some(format!("{label} {failure}"));
        }
        if let Some(mistake) = &self.mistake {
            return Some(format!("{label} {}: {}", self.undone(), with_more(mistake, self.mistakes)));
        }
        self.difference.as_ref().map(|difference| format!("{label} returned different values: {difference}"))
    }

    fn success(&self, label: &str, seconds: f64) -> String {
        let mut message = format!("{label} ran in {}", shown(seconds));
        for (at, output) in self.outputs.iter().take(SHOWN).enumerate() {
            message.push_str(if at == 0 { ": " } else { "; " });
            message.push_str(&described(output));
        }
        let more = self.outputs.len().saturating_sub(SHOWN) + self.left_out;
        if more > 0 {
            message.push_str(&format!("; and {more} more"));
        }
        for unobserved in &self.unobserved {
            message.push_str(&format!("; {unobserved}"));
        }
        message
    }

    /// Describes a child that ended without reporting a result.
    fn crash(&self, status: ExitStatus, log: &str) -> String {
        let mut message = match status.success() {
            true => "rxrun exited without a result".to_owned(),
            false => format!("rxrun exited early ({status})"),
        };
        if killed(status) {
            message.push_str("; the system may be out of memory");
        }
        let last = log.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(words);
        if let Some(last) = last.or_else(|| self.noise.clone()) {
            message.push_str(&format!(": {last}"));
        }
        message
    }
}

/// Whether the event contains a pass that could not be applied.
fn names_problem(event: &Value) -> bool {
    let stages = event.get("stages").and_then(Value::as_array);
    stages.into_iter().flatten().any(|stage| stage.get("problem").is_some_and(Value::is_string))
}

/// Whether the child rejected the options for values and times because it is an older version.
fn is_older(log: &str) -> bool {
    ["--values", "--profile"].iter().any(|option| log.contains(&format!("unexpected argument '{option}'")))
}

/// Returns the reason why the child rejected its command line: the first line of the error, without the usage below it.
/// A line that ends in a colon continues in the next one. `None` if it was not rejected.
fn rejected(status: ExitStatus, log: &str) -> Option<String> {
    let mut lines = log.lines().skip_while(|line| !line.starts_with("error: ")).map(str::trim);
    let first = lines.next().filter(|_| status.code() == Some(USAGE))?.strip_prefix("error: ")?;
    let more = lines.next().filter(|_| first.ends_with(':'));
    Some(words(&more.map_or_else(|| first.to_owned(), |more| format!("{first} {more}"))))
}

/// Returns the names in an array of strings.
fn names(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).take(MAX_OUTPUTS).map(words).collect()
}

/// Returns the completed amount of an event, and the total if it is known.
fn counts(event: &Value) -> Option<(u64, Option<u64>)> {
    let count = |field| event.get(field).and_then(Value::as_u64);
    Some((count("done")?, count("total")))
}

/// Returns the percentage for `done` of `total` within the range of one phase. For example, 12 of 31 kernels in
/// [`BUILDING`] (30 to 60 %) is 41 %.
fn part(part: Range<u32>, done: u64, total: Option<u64>) -> u32 {
    let Some(total) = total.filter(|total| *total > 0) else { return part.start };
    let length = u128::from(part.end.saturating_sub(part.start));
    // The quotient is at most `length`, so the conversion is lossless.
    part.start + (u128::from(done.min(total)) * length / u128::from(total)) as u32
}

/// Whether the child was killed by SIGKILL, which is also the signal of Linux's out-of-memory killer.
#[cfg(unix)]
fn killed(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
}

#[cfg(not(unix))]
fn killed(_status: ExitStatus) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::{Step, Transcript};
    use crate::run::child::{Ended, Stop};
    use crate::run::{Missing, Outcome};
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    fn reported(lines: &[&str]) -> Transcript {
        let mut transcript = Transcript::default();
        lines.iter().for_each(|line| drop(transcript.line(line.as_bytes())));
        transcript
    }

    /// Returns the outcome for a `status` as in wait(2): a signal's number, or an exit status times 256.
    fn ended(lines: &[&str], status: i32, log: &str) -> Outcome {
        reported(lines).conclude("`main`", &Ended::Itself(Ok(ExitStatus::from_raw(status))), log.to_owned())
    }

    #[test]
    fn a_run_is_one_line() {
        let lines = [
            r#"{"event":"ran","seconds":[0.0025,0.0019,0.0018]}"#,
            r#"{"event":"output","name":"out0","dtype":"float32","shape":[1,10],"min":-1.5,"mean":0.25,"max":2,"nan":0}"#,
            r#"{"event":"output","name":"out1","dtype":"float32","shape":[3],"min":null,"mean":null,"max":null,"nan":3}"#,
        ];
        let outcome = ended(&lines, 0, "");
        assert!(outcome.ok && outcome.seconds == Some(0.0019) && outcome.outputs.len() == 2);
        assert_eq!(
            outcome.message,
            "`main` ran in 1.9 ms: out0 float32 (1, 10), min -1.5000, mean 0.2500, max 2; \
             out1 float32 (3,), min not finite, mean not finite, max not finite, 3 NaN"
        );
    }

    #[test]
    fn modules_to_choose_from_are_kept() {
        let line = r#"{"event":"usage","message":"several modules","modules":["A","B",7]}"#;
        let outcome = ended(&[line], 512, "");
        assert_eq!((outcome.ok, &*outcome.message), (false, "`main` was not run: several modules"));
        assert_eq!(outcome.modules, ["A", "B"]);
    }

    #[test]
    fn missing_values_are_kept() {
        let line = r#"{"event":"bad-input","message":"unknown","missing":{"dims":["n",1],"inputs":["t.0"]}}"#;
        let missing = ended(&[line], 512, "").missing;
        assert_eq!((&missing.dims[..], &missing.inputs[..]), (&["n".to_owned()][..], &["t.0".to_owned()][..]));
        let line = r#"{"event":"bad-input","message":"does not fit"}"#;
        assert_eq!(ended(&[line], 512, "").missing, Missing::default());
    }

    #[test]
    fn rejected_argument_message_is_the_first_line() {
        let usage = "\n\nUsage: rxrun [OPTIONS] <FILE>\n\nFor more information, try '--help'.\n";
        let message = |error: &str, status| ended(&[], status * 256, &format!("error: {error}{usage}")).message;
        assert_eq!(
            message("unexpected argument '--sed' found\n\n  tip: a similar argument exists: '--seed'", 2),
            "`main` was not run: unexpected argument '--sed' found (arguments of rxrun: setting rx.run.arguments)"
        );
        let required = message("the following required arguments were not provided:\n  --weights <FILE>", 2);
        assert!(required.contains("not run: the following required arguments were not provided: --weights <FILE> ("));
        // Another exit status is not about the command line.
        assert!(message("no memory", 3).starts_with("`main` failed: rxrun exited early"));
    }

    #[test]
    fn progress_is_reported_in_steps() {
        let step = |line: &str| Transcript::default().line(line.as_bytes());
        let building = Step { message: "building 12/31".into(), percent: 41 };
        assert_eq!(step(r#"{"event":"building","done":12,"total":31}"#), Some(building));
        let loading = Step { message: "loading 3/4 MiB".into(), percent: 15 };
        assert_eq!(step(r#"{"event":"loading","file":"w.npz","done":3145728,"total":4194304}"#), Some(loading));
        assert_eq!(step(r#"{"event":"building","done":9,"total":0}"#).map(|step| step.percent), Some(30));
        assert_eq!(step(r#"{"event":"building","done":-1,"total":[]}"#), None);
        let running = Step { message: "running: 7/10 kernels".into(), percent: 81 };
        assert_eq!(step(r#"{"event":"running","what":"run","run":1,"done":7,"total":10}"#), Some(running));
        let weights = Step { message: "preparing weights: 7 kernels".into(), percent: 20 };
        assert_eq!(step(r#"{"event":"running","what":"weights","run":null,"done":7,"total":null}"#), Some(weights));
        assert_eq!(step(r#"{"event":"of a later version"}"#), None);
    }

    #[test]
    fn failures_name_their_place() {
        let failed = r#"{"event":"run-failed","message":"index 9","file":"/a/net.rx","line":17,"column":3}"#;
        assert_eq!(ended(&[failed], 256, "").message, "`main` failed: net.rx:17: index 9");
        let mistake = r#"{"file":"net.rx","code":"RX0501","severity":"error","message":"wrong","line":4}"#;
        let warning = r#"{"file":"net.rx","code":"RX0001","severity":"warning","message":"odd","line":1}"#;
        let outcome = ended(&[warning, mistake, mistake], 256, "2 errors");
        assert_eq!(outcome.message, "`main` was not run: net.rx:4: wrong (and 1 more error)");
        let input = r#"{"event":"bad-input","message":"the dim n is not known"}"#;
        let message = ended(&[input], 512, "").message;
        assert!(message.starts_with("`main` was not run: the dim n is not known (arguments"), "{message}");
        let unwritten = r#"{"event":"usage","message":"out.npz: permission denied"}"#;
        assert_eq!(ended(&[unwritten], 512, "").message, "`main` was not run: out.npz: permission denied");
        let late = ended(&[r#"{"event":"ran","seconds":[1]}"#, unwritten], 512, "");
        assert_eq!((late.ok, &late.message[..]), (false, "`main` failed: out.npz: permission denied"));
        // A failure after a result makes the run fail.
        assert!(!ended(&[r#"{"event":"ran","seconds":[1]}"#, failed], 0, "").ok);
    }

    #[test]
    fn a_child_that_says_nothing_is_described() {
        let message = |lines: &[&str], status, log| ended(lines, status, log).message;
        assert_eq!(message(&["hello", "more"], 0, ""), "`main` failed: rxrun exited without a result: hello");
        let oom = message(&[], 9, "");
        assert!(oom.contains("SIGKILL") && oom.ends_with("the system may be out of memory"), "{oom}");
        let abort = message(&[], 6, "memory allocation of 9 bytes failed\n\n");
        assert!(abort.ends_with(": memory allocation of 9 bytes failed"), "{abort}");
        assert!(message(&[r#"{"event":"ran","seconds":[1]}"#], 3 * 256, "").contains("exit status: 3"));
    }

    #[test]
    fn failure_of_observation_does_not_fail_the_run() {
        let ran = r#"{"event":"ran","seconds":[0.002]}"#;
        let output = r#"{"event":"output","name":"out0","dtype":"int64","shape":[],"min":1,"mean":1,"max":1,"nan":0}"#;
        let timing = r#"{"event":"observing","what":"profile"}"#;
        let values = r#"{"event":"observing","what":"values"}"#;
        let ok = "`main` ran in 2.0 ms: out0 int64 (), min 1, mean 1, max 1";
        assert_eq!(ended(&[ran, output, timing, values], 0, "").message, ok);
        let killed = ended(&[ran, output, timing, values], 9, "");
        assert!(killed.ok && killed.outputs.len() == 1);
        let why = "rxrun exited early (signal: 9 (SIGKILL)); the system may be out of memory";
        assert_eq!(killed.message, format!("{ok}; not all of its values are available: {why}"));
        let failed = r#"{"event":"remark","what":"values","message":"no memory","file":"a.rx","line":3,"column":1}"#;
        let outcome = ended(&[ran, output, values, failed], 0, "");
        assert_eq!(
            (outcome.ok, outcome.message),
            (true, format!("{ok}; not all of its values are available: a.rx:3: no memory"))
        );
        let late = Ended::TimedOut(Duration::from_secs(5));
        let outcome = reported(&[ran, output, timing]).conclude("`main`", &late, String::new());
        let why = "rxrun was stopped after 5.00 s (setting rx.run.timeoutSeconds)";
        assert_eq!(outcome.message, format!("{ok}; the times of its kernels are not available: {why}"));
        // A run fails if its function did not return, if its outputs differ, or if it was cancelled.
        assert!(!ended(&[values], 9, "").ok);
        let differs = r#"{"event":"compared","name":"out0","ok":false,"text":"1 elements differ"}"#;
        assert!(!ended(&[ran, output, differs, values], 256, "").ok);
        let cancelled = Ended::Stopped(Stop::Cancelled);
        assert!(!reported(&[ran, output, values]).conclude("`main`", &cancelled, String::new()).ok);
    }

    #[test]
    fn progress_never_falls() {
        let mut transcript =
            reported(&[r#"{"event":"ran","seconds":[1]}"#, r#"{"event":"observing","what":"values"}"#]);
        let step = transcript.line(br#"{"event":"building","done":1,"total":4}"#);
        assert_eq!(step, Some(Step { message: "building 1/4".into(), percent: 90 }));
        let step = transcript.line(br#"{"event":"running","what":"values","run":null,"done":3,"total":8}"#);
        assert_eq!(step, Some(Step { message: "running to record values: 3/8 kernels".into(), percent: 90 }));
    }

    #[test]
    fn older_rxrun_is_distinguished_from_a_broken_one() {
        let log = "error: unexpected argument '--values' found\n\nUsage: rxrun [OPTIONS] <FILE>\n";
        let message = ended(&[], 2 * 256, log).message;
        let wanted = "`main` was not run: this rxrun is older than rx-lsp and does not report values";
        assert!(message.starts_with(wanted) && message.ends_with("set rx.run.values to false"), "{message}");
    }

    #[test]
    fn cancelled_and_late_runs_report_the_cause() {
        let conclude = |ended| reported(&["{"]).conclude("`main`", &ended, String::new());
        assert!(conclude(Ended::Stopped(Stop::Cancelled)).cancelled);
        let late = conclude(Ended::TimedOut(Duration::from_secs(5)));
        assert_eq!(late.message, "`main` was stopped after 5.00 s (setting rx.run.timeoutSeconds)");
        assert!(!late.ok && !late.cancelled);
    }

    #[test]
    fn unknown_output_is_shortened() {
        let long = format!("\u{1b}[31m{}", "x".repeat(10_000));
        let message = ended(&[&long], 0, "").message;
        assert!(message.len() < 1000 && !message.contains('\u{1b}'), "{message}");
    }
}
