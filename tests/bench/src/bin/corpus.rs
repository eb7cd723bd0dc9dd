//! Benchmark of a corpus: checks every text in one process, on several threads.
//!
//! ```text
//! corpus FILE.jsonl [--field text] [--jobs 2] [--runs 5]
//! ```
//! Limit (issue 4): the 2,960 texts of `cases/modules.jsonl` in at most 2 s on two cores. Reading the file is not
//! counted; each text has a separate workspace, as in `rxcheck`.

use rx_bench::measure::{peak_memory, thread_cpu_time};
use rx_db::{FileKind, Workspace};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The number of slowest texts that are printed.
const SLOWEST: usize = 3;

struct Options {
    path: String,
    field: String,
    jobs: usize,
    runs: usize,
}

fn options() -> Result<Options, String> {
    let mut options = Options { path: String::new(), field: "text".to_owned(), jobs: 2, runs: 5 };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: String| match text.parse::<usize>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("`{text}` is no positive number")),
        };
        match arg.as_str() {
            "--field" => options.field = value()?,
            "--jobs" => options.jobs = number(value()?)?,
            "--runs" => options.runs = number(value()?)?,
            _ => options.path = arg,
        }
    }
    if options.path.is_empty() { Err("no file is named".to_owned()) } else { Ok(options) }
}

/// Reads the texts of a file of JSON lines, with the rows' ids.
fn texts(options: &Options) -> Result<Vec<(String, String)>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", options.path);
    let lines = std::fs::read_to_string(&options.path).map_err(|error| wrong(&error))?;
    let mut texts = Vec::new();
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).map_err(|error| wrong(&error))?;
        let string = |field: &str| row.get(field).and_then(serde_json::Value::as_str).map(str::to_owned);
        if let Some(text) = string(&options.field) {
            texts.push((string("id").unwrap_or_default(), text));
        }
    }
    Ok(texts)
}

/// Checks every text; returns the CPU time and the index of each, and the number of diagnostics.
fn check(texts: &[(String, String)], jobs: usize) -> (Vec<(Duration, usize)>, usize) {
    let next = AtomicUsize::new(0);
    let found = AtomicUsize::new(0);
    let worker = || {
        let mut times = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((_, text)) = texts.get(at) else { return times };
            let (diagnostics, time) = thread_cpu_time(|| {
                let mut workspace = Workspace::new();
                let file = workspace.add(text, FileKind::Rx);
                workspace.diagnostics(file).len()
            });
            found.fetch_add(diagnostics, Ordering::Relaxed);
            times.push((time, at));
        }
    };
    let times = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    (times, found.into_inner())
}

fn run(options: &Options) -> Result<(), String> {
    let texts = texts(options)?;
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let mut runs = Vec::new();
    let mut slowest = Vec::new();
    let mut diagnostics = 0;
    for _ in 0..options.runs {
        let start = Instant::now();
        let (times, found) = check(&texts, options.jobs);
        runs.push(start.elapsed());
        (slowest, diagnostics) = (times, found);
    }
    runs.sort_unstable();
    slowest.sort_unstable();
    let seconds =
        |time: Option<&Duration>| time.map_or_else(String::new, |time| format!("{:.2} s", time.as_secs_f64()));
    let cpu: Duration = slowest.iter().map(|(time, _)| *time).sum();
    println!(
        "{} texts, {:.1} MB, {diagnostics} diagnostics, {} threads: best {}, worst {} of {} runs; {} of CPU; peak {} MB",
        texts.len(),
        bytes as f64 / 1e6,
        options.jobs,
        seconds(runs.first()),
        seconds(runs.last()),
        runs.len(),
        seconds(Some(&cpu)),
        peak_memory().map_or(0, |bytes| bytes / 1_000_000),
    );
    for (time, at) in slowest.iter().rev().take(SLOWEST) {
        let id = texts.get(*at).map_or("", |(id, _)| id.as_str());
        println!("  {:.1} ms of CPU: {id}", time.as_secs_f64() * 1e3);
    }
    Ok(())
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("corpus: {message}");
            ExitCode::from(2)
        }
    }
}
