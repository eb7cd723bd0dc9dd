//! Runs the cases of the other modules on a GPU, the most informative groups first.
//!
//! A kernel that faults or does not end makes the device unusable for its process. So the test process runs no
//! kernels: it starts this binary again as a worker, which reports what it begins and each result as lines of JSON on
//! its standard error. If the worker reports that the device is lost, exits early or reports nothing for too long,
//! another worker continues after the work that was begun, up to a maximum number of workers.
//!
//! If `RX_GPU_REPORT` names a file, the lines are also appended to it: the begun work (`next` is where another worker
//! would continue), and for each case that was run whether it agrees and the milliseconds of its kernels.

use crate::case::{Case, Failure};
use crate::hopper::hopper;
use crate::{attention, compiled, host_loops, operators, paged, products, rows, scans, scatters, scheduled, sorts};
use crate::{cross_thread, tensor_cores, vectors, windows};
use rx_base::DType;
use rx_cuda::device::{Device, DeviceBuffer, DeviceError, Module};
use rx_cuda::images::ImageCache;
use rx_cuda::rules::Target;
use rx_tensor::Tensor;
use serde_json::{Value, json};
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::resume_unwind;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The environment variable with the place where a worker begins.
const FROM: &str = "RX_GPU_FROM";

/// The time limit of a kernel. The slowest takes a few milliseconds.
const LIMIT: Duration = Duration::from_secs(3);

/// The time limit for a worker without output, for example while it compiles on all cores.
const SILENCE: Duration = Duration::from_secs(45);

/// The maximum number of cases that are compiled and loaded together: enough to use all cores.
const TOGETHER: usize = 128;

/// The maximum number of workers of a test: one, and one after each that exited early.
const MOST_WORKERS: usize = 20;

/// The maximum number of workers that may exit early in a group; then its other cases are skipped. Otherwise kernels
/// that never end would take the time of all other groups.
const MOST_OF_GROUP: usize = 3;

/// The index of a group and of a case in it: the place where a worker begins.
#[derive(Clone, Copy, PartialEq)]
struct Place {
    group: usize,
    case: usize,
}

impl Place {
    const START: Place = Place { group: 0, case: 0 };

    /// Parses the displayed form, for example `2:17`.
    fn read(text: &str) -> Option<Place> {
        let (group, case) = text.split_once(':')?;
        Some(Place { group: group.parse().ok()?, case: case.parse().ok()? })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.group, self.case)
    }
}

/// Cases that are compiled for one target.
struct Group {
    name: &'static str,
    target: Target,
    cases: fn() -> Vec<Case>,
    /// Returns the expected result of a case.
    expected: fn(&Case) -> Result<Vec<Tensor>, Failure>,
}

fn group(name: &'static str, target: &Target, cases: fn() -> Vec<Case>) -> Group {
    Group { name, target: target.clone(), cases, expected: Case::expected }
}

#[test]
fn kernels_agree_on_a_device() {
    agree("kernels_agree_on_a_device", kernels);
}

#[test]
fn operators_agree_on_a_device() {
    agree("operators_agree_on_a_device", of_operators);
}

fn of_operators(_arch: u32) -> Vec<Group> {
    let all = || operators::families().into_iter().flat_map(|(_, cases)| cases).collect();
    vec![group("operators", &Target::default(), all)]
}

/// Returns the groups of functions made for these tests, for a device of an architecture; last, those of
/// [`other_forms`].
fn kernels(arch: u32) -> Vec<Group> {
    let plain = Target::default();
    let mut groups = vec![
        group("kernels", &plain, crate::made),
        group("rows", &plain, || rows::cases().into_iter().map(|one| one.case).collect()),
        group("attention", &plain, attention::cases),
        group("products", &plain, products::cases),
    ];
    if arch == 90 {
        groups.push(group("products on sm_90a", &hopper(1), crate::hopper::cases));
    }
    groups.extend([
        group("products of few rows", &plain, products::narrow_cases),
        group("windows", &plain, windows::cases),
        group("scheduled by TVM", &plain, || scheduled::pairs().into_iter().map(|(many, _)| many).collect()),
        group("scheduled by hand", &plain, || scheduled::written().into_iter().chain(scheduled::sums()).collect()),
        group("paged attention", &plain, || {
            paged::pairs().into_iter().map(|(many, _)| many).chain(paged::alone()).collect()
        }),
        group("tensor cores", &plain, || tensor_cores::PAIRS.iter().map(|pair| tensor_cores::cases(pair).0).collect()),
        group("cross-thread reductions", &plain, || {
            cross_thread::PAIRS.iter().map(|pair| cross_thread::cases(pair).0).collect()
        }),
        group("host loops", &plain, host_loops::launched),
        group("scans", &plain, scans::cases),
        group("sorts", &plain, sorts::cases),
        Group { expected: by_cpu, ..group("sorts of long rows", &plain, sorts::long) },
        group("scatters", &plain, scatters::cases),
        group("lengths of the call", &plain, || vectors::all().iter().flat_map(vectors::Called::cases).collect()),
    ]);
    groups.extend(other_forms(arch));
    groups
}

/// Returns the groups of products and windows for other targets, which get other kernels.
fn other_forms(arch: u32) -> Vec<Group> {
    let small = crate::small_device();
    let mut groups = Vec::new();
    if arch == 90 {
        let tf32 = Target { tf32: true, ..hopper(1) };
        groups.extend([
            group("long sums on sm_90a", &hopper(4), crate::hopper::in_parts),
            group("tf32 on sm_90a", &tf32, || crate::hopper::of_tf32().into_iter().chain(in_tf32()).collect()),
            group("all products on sm_90a", &hopper(1), products::cases),
        ]);
    }
    groups.extend([
        group("tf32", &Target { tf32: true, ..Target::default() }, in_tf32),
        group("products of large tiles", &small, products::cases),
        group("windows of many outputs", &small, windows::cases),
    ]);
    groups
}

/// Returns the products with `float32` buffers only, with a tolerance for products in tf32.
fn in_tf32() -> Vec<Case> {
    let is_single = |case: &Case| case.func.buffers.iter().all(|one| one.dtype == DType::FLOAT32);
    products::cases().into_iter().filter(is_single).map(|case| case.within(1e-2)).collect()
}

/// Computes the expected result on the CPU, for cases that are too long for the interpreter.
fn by_cpu(case: &Case) -> Result<Vec<Tensor>, Failure> {
    let buffers = compiled::on_cpu(case).unwrap_or_else(|error| panic!("{}: {error}", case.name))?;
    let tensor = |(of, bytes): (&Tensor, Vec<u8>)| {
        Tensor::from_bytes(of.dtype(), of.shape(), &bytes).unwrap_or_else(|error| panic!("{}: {error}", case.name))
    };
    Ok(case.arguments.iter().zip(buffers).map(tensor).collect())
}

/// Runs the test `test`. This process is either a worker or the one that starts workers, which skips the test without
/// a device.
fn agree(test: &str, groups: fn(u32) -> Vec<Group>) {
    match std::env::var(FROM) {
        Ok(from) => work(groups, &from),
        Err(_) => {
            if device().is_some() {
                watch(test);
            }
        }
    }
}

/// Opens a device. Returns `None` if there is no NVRTC, no driver or no device, or if the device is too old.
fn device() -> Option<Device> {
    if !crate::nvrtc::is_found() {
        return None;
    }
    match Device::probe() {
        Ok(device) => Some(device),
        Err(error @ (DeviceError::NoDriver | DeviceError::NoDevice | DeviceError::TooOld { .. })) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Starts workers until all cases were run or skipped, or [`MOST_WORKERS`] have exited early. Then panics if there are
/// failures, and lists them.
fn watch(test: &str) {
    let mut report = Report::open();
    let mut from = Some(Place::START);
    let mut ended = Vec::new();
    for _ in 0..MOST_WORKERS {
        let Some(place) = from else { break };
        from = report.worker(test, place).map(|(group, next)| {
            ended.push(next.group);
            let of_group = ended.iter().filter(|group| **group == next.group).count();
            if of_group < MOST_OF_GROUP { next } else { report.leaves(&group, next) }
        });
    }
    if let Some(place) = from {
        let error = format!("{MOST_WORKERS} processes ended early; nothing was run from {place} on");
        report.tell(&result(test, "the rest", &error));
    }
    let Report { cases, failures, .. } = report;
    assert!(cases > 0, "nothing was run");
    assert!(failures.is_empty(), "{} of {cases} cases:\n{}", failures.len(), failures.join("\n"));
}

/// The lines that workers reported, as counts and failures, and the file to which they are appended.
struct Report {
    file: Option<File>,
    cases: usize,
    failures: Vec<String>,
}

impl Report {
    fn open() -> Report {
        let file = std::env::var_os("RX_GPU_REPORT").map(|path| {
            let file = File::options().create(true).append(true).open(&path);
            file.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        });
        Report { file, cases: 0, failures: Vec::new() }
    }

    /// Records a line. It is written to the file at once, since this process may be killed, too.
    fn tell(&mut self, line: &Value) {
        if let Some(file) = &mut self.file {
            file.write_all(format!("{line}\n").as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        }
        if let Some(is_right) = line["ok"].as_bool() {
            self.cases += 1;
            if !is_right {
                let [group, error] = ["group", "error"].map(|field| line[field].as_str().unwrap_or_default());
                self.failures.push(format!("{group}: {error}"));
            }
        }
    }

    /// Runs a worker until it exits, its device is lost, or it has written nothing for the time [`SILENCE`]. Returns
    /// the group it was in and the place where the next worker continues, or `None` if all cases were run.
    fn worker(&mut self, test: &str, from: Place) -> Option<(String, Place)> {
        let binary = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
        let mut worker = Command::new(binary)
            .args(["--exact", &format!("device::{test}"), "--nocapture", "--test-threads=1"])
            .env(FROM, from.to_string())
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{error}"));
        let lines = BufReader::new(worker.stderr.take().expect("it is piped")).split(b'\n');
        let (says, reported) = mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| says.send(line)));
        let mut heard = Heard::default();
        loop {
            match reported.recv_timeout(SILENCE) {
                Ok(line) => self.hear(&String::from_utf8_lossy(&line), &mut heard),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    heard.words.push_str("it said nothing any more");
                    let _ = worker.kill();
                    break;
                }
            }
            if heard.is_lost {
                // The kernel may keep running as long as the process exists. Killing a process that has already exited
                // is no error.
                let _ = worker.kill();
                break;
            }
        }
        let status = worker.wait().unwrap_or_else(|error| panic!("{error}"));
        if status.success() {
            return None;
        }
        if !heard.is_lost {
            self.tell(&heard.ended(test, status));
        }
        Some(heard.next.unwrap_or_else(|| (test.to_owned(), from)))
    }

    /// Skips the remaining cases of a group. Returns the place where the next group begins.
    fn leaves(&mut self, group: &str, place: Place) -> Place {
        let rest = format!("cases from number {} on", place.case);
        self.tell(&result(group, &rest, &format!("{rest}: left, since {MOST_OF_GROUP} processes ended in this group")));
        Place { group: place.group + 1, case: 0 }
    }

    fn hear(&mut self, line: &str, heard: &mut Heard) {
        let reported: Value = serde_json::from_str(line).unwrap_or_default();
        if !reported.is_object() {
            println!("{line}");
            heard.words.push_str(line);
            heard.words.push(' ');
            return;
        }
        self.tell(&reported);
        heard.words.clear();
        heard.is_lost = reported["is_lost"] == true;
        if let (Some(group), Some(next)) = (reported["group"].as_str(), reported["next"].as_str().and_then(Place::read))
        {
            heard.next = Some((group.to_owned(), next));
            heard.begun = Some(reported);
        } else if reported["ok"].is_boolean() {
            heard.begun = None;
        }
    }
}

/// The state of a worker, as far as it is reported.
#[derive(Default)]
struct Heard {
    /// The work that it has begun and not ended.
    begun: Option<Value>,
    /// The group it is in, and the place where another worker would continue.
    next: Option<(String, Place)>,
    /// The other output since the last report: for example the message of a panic.
    words: String,
    is_lost: bool,
}

impl Heard {
    /// Returns the failure of the work that was begun, after the process ended without reporting its result.
    fn ended(&self, test: &str, status: ExitStatus) -> Value {
        let begun = self.begun.as_ref();
        let [group, case] = [("group", test), ("case", "between cases")]
            .map(|(field, other)| begun.and_then(|begun| begun[field].as_str()).unwrap_or(other));
        result(group, case, &format!("{case}: the process ended, {status}: {}", self.words.trim_end()))
    }
}

/// Returns the line of work that was not completed.
fn result(group: &str, case: &str, error: &str) -> Value {
    json!({ "group": group, "case": case, "ok": false, "error": error, "is_lost": true })
}

/// Runs the groups as a worker, beginning at a place.
fn work(groups: fn(u32) -> Vec<Group>, from: &str) {
    let from = Place::read(from).unwrap_or_else(|| panic!("{FROM}={from}"));
    let device = device().unwrap_or_else(|| panic!("a worker finds no device, or no NVRTC"));
    device.limit(Some(LIMIT));
    let groups = groups(device.arch());
    if from == Place::START {
        // The plan lists the groups of both tests: a run that is cut off in the first test never starts the second.
        let all = kernels(device.arch()).into_iter().chain(of_operators(device.arch()));
        let names: Vec<&str> = all.map(|group| group.name).collect();
        tell(&json!({ "group": "plan", "of": "groups", "cases": names }));
    }
    for (number, group) in groups.iter().enumerate().skip(from.group) {
        let first = if number == from.group { from.case } else { 0 };
        group.run(&device, number, first);
    }
}

/// Reports a line to the process that started this worker.
fn tell(line: &Value) {
    let reported = std::io::stderr().write_all(format!("{line}\n").as_bytes());
    reported.unwrap_or_else(|error| panic!("{error}"));
}

/// Reports a result. Exits if the device is lost.
fn tell_result(line: &Value) {
    tell(line);
    if line["is_lost"] == true {
        // Exits without a panic: unwinding would drop values that call the driver, which may not return.
        std::process::exit(1);
    }
}

impl Group {
    /// Runs the cases of the group, beginning with case `first`.
    fn run(&self, device: &Device, number: usize, first: usize) {
        self.begins("what its cases are", Place { group: number + 1, case: 0 });
        let mut cases = (self.cases)();
        for case in &mut cases {
            // A device contracts multiplications and additions to fused multiply-adds, and its math functions have
            // errors of a few units in the last place.
            case.tolerance = if case.tolerance == 0.0 { 0.0 } else { case.tolerance.max(1e-5) };
        }
        for (at, some) in cases.chunks(TOGETHER).enumerate() {
            let (start, end) = (at * TOGETHER, at * TOGETHER + some.len());
            if first < end {
                self.run_some(device, number, some, start, first.saturating_sub(start));
            }
        }
    }

    /// Runs cases, which are loaded together if possible. The first of them has the number `start` in the group; the
    /// first `skipped` of them are not run.
    fn run_some(&self, device: &Device, number: usize, cases: &[Case], start: usize, skipped: usize) {
        let loading = format!("compiling and loading of {} cases from number {start} on", cases.len());
        self.begins(&loading, Place { group: number, case: start + cases.len() });
        // Always prints all of the cases, wherever the worker begins, so that the text is the same and its images are
        // found in the cache.
        let source = crate::source_for(cases, &self.target);
        let (loaded, expected) = std::thread::scope(|scope| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let each = (cases.len() - skipped).div_ceil(cores).max(1);
            let compute = |some: &[Case]| some.iter().map(self.expected).collect::<Vec<_>>();
            let workers: Vec<_> =
                cases[skipped..].chunks(each).map(|some| scope.spawn(move || compute(some))).collect();
            let loaded = device.load(source, &ImageCache::of_user(), &mut |_, _| ());
            let expected = workers.into_iter().flat_map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
            (loaded, expected.collect::<Vec<_>>())
        });
        let module = match loaded {
            Ok(module) => module,
            Err(error) => {
                let is_lost = is_lost(device, &error);
                if !is_lost && cases.len() > 1 {
                    // If loading fails, each half is tried, so that one rejected case does not prevent the others.
                    let (some, others) = cases.split_at(cases.len() / 2);
                    if skipped < some.len() {
                        self.run_some(device, number, some, start, skipped);
                    }
                    let skipped = skipped.saturating_sub(some.len());
                    return self.run_some(device, number, others, start + some.len(), skipped);
                }
                let error = format!("{loading}: {error}");
                return tell_result(
                    &json!({ "group": self.name, "case": loading, "ok": false, "error": error, "is_lost": is_lost }),
                );
            }
        };
        for ((function, case), expected) in cases.iter().enumerate().skip(skipped).zip(&expected) {
            self.begins(&case.name, Place { group: number, case: start + function + 1 });
            let Outcome { milliseconds, verdict, is_lost } = outcome(device, &module, function, case, expected);
            tell_result(&json!({
                "device": device.name(), "group": self.name, "case": case.name, "function": case.func.name.as_str(),
                "milliseconds": milliseconds, "ok": verdict.is_ok(), "error": verdict.as_ref().err(), "is_lost": is_lost,
            }));
        }
    }

    fn begins(&self, case: &str, next: Place) {
        tell(&json!({ "group": self.name, "case": case, "next": next.to_string() }));
    }
}

/// Runs a case and compares its buffers.
fn outcome(
    device: &Device,
    module: &Module,
    function: usize,
    case: &Case,
    expected: &Result<Vec<Tensor>, Failure>,
) -> Outcome {
    let mut milliseconds = 0.0;
    let mut launched = || {
        let buffers = case.bytes().into_iter().map(|bytes| device.upload(bytes)).collect::<Result<Vec<_>, _>>()?;
        let passed: Vec<&DeviceBuffer> = buffers.iter().collect();
        milliseconds = device.milliseconds(|| module.launch(function, &passed, &case.values()))?;
        module.finish()?;
        buffers.iter().map(|buffer| device.download(buffer)).collect::<Result<Vec<_>, _>>()
    };
    let (verdict, is_lost) = match launched() {
        Ok(buffers) => (case.compare_all(Ok(&buffers), expected), false),
        Err(DeviceError::Fault(fault)) => (case.compare_all(Err(Failure::from(&fault)), expected), false),
        Err(error) => (Err(format!("{}: {error}", case.name)), is_lost(device, &error)),
    };
    Outcome { milliseconds, verdict, is_lost }
}

/// The result of a case.
struct Outcome {
    milliseconds: f32,
    verdict: Result<(), String>,
    is_lost: bool,
}

/// Whether the device is unusable after an error. Then the driver reports the same error for every later call; this
/// also detects errors that [`DeviceError::is_lasting`] does not list.
fn is_lost(device: &Device, error: &DeviceError) -> bool {
    error.is_lasting() || device.synchronize().is_err()
}
