//! Benchmark of a cold check and of one-character edits of a generated program, in CPU time of one thread.
//!
//! ```text
//! edits [N] [--split K] [--dyn] [--parse] [--edits E] [--seed S]
//! ```
//! Limits (issue 2, for N = 100,000): cold check ≤ 0.6 s, median time from an edit to fresh diagnostics of the whole
//! file ≤ 1 ms, peak memory ≤ 250 MB.

use rx_bench::generate::{Scale, scale};
use rx_bench::measure::{Samples, peak_memory, thread_cpu_time};
use rx_db::{Document, Encoding, FileKind, Workspace};
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

/// Edits slower than this are printed.
const SLOW: Duration = Duration::from_millis(20);

struct Options {
    bindings: usize,
    split: usize,
    symbolic: bool,
    parse_only: bool,
    edits: usize,
    seed: u64,
}

fn options() -> Result<Options, String> {
    let mut options = Options { bindings: 100_000, split: 1, symbolic: false, parse_only: false, edits: 400, seed: 1 };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = |name: &str| {
            let text = args.next().ok_or_else(|| format!("{name} needs a number"))?;
            text.parse::<u64>().map_err(|_| format!("{name}: `{text}` is no number"))
        };
        match arg.as_str() {
            "--split" => options.split = number("--split")? as usize,
            "--edits" => options.edits = number("--edits")? as usize,
            "--seed" => options.seed = number("--seed")?,
            "--dyn" => options.symbolic = true,
            "--parse" => options.parse_only = true,
            other => {
                options.bindings = other.parse().map_err(|_| format!("`{other}` is no number of bindings"))?;
            }
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    match options() {
        Ok(options) => {
            run(&options);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("edits: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) {
    let mut program = Scale::new(options.bindings);
    if options.split > 1 {
        program = program.split(options.split);
    }
    program.symbolic = options.symbolic;
    let text = scale(&program);
    println!("text: {} bytes, {} lines", text.len(), text.lines().count());
    if options.parse_only {
        return parse(&text);
    }
    let mut workspace = Workspace::new();
    let ((file, found), cold) = thread_cpu_time(|| {
        let file = workspace.add(&text, FileKind::Rx);
        let found = workspace.diagnostics(file).len();
        (file, found)
    });
    println!("cold check: {} ms, {found} diagnostics", millis(cold));
    if let Some(bytes) = peak_memory() {
        println!("peak memory after the cold check: {} MB", bytes / 1_000_000);
    }
    // The document contains the text; a second copy would count as memory of the checker.
    let (body, length) = (text.find("R.dataflow").unwrap_or(0), text.len());
    drop(text);
    edits(&mut workspace, file, body..length, options);
    if let Some(bytes) = peak_memory() {
        println!("peak memory: {} MB", bytes / 1_000_000);
    }
}

/// Measures parsing alone, without types.
fn parse(text: &str) {
    let (document, split) = thread_cpu_time(|| Document::new(text, FileKind::Rx));
    let (statements, trees) = thread_cpu_time(|| {
        let segments = document.items().iter().flat_map(|item| item.segments.iter());
        segments.map(|segment| segment.tree().statements.len()).sum::<usize>()
    });
    println!(
        "split into segments: {} ms; tokens and trees: {} ms; {statements} statements",
        millis(split),
        millis(trees)
    );
    if let Some(bytes) = peak_memory() {
        println!("peak memory: {} MB for {} MB of text", bytes / 1_000_000, text.len() / 1_000_000);
    }
}

/// Changes one character at random places of `body` and changes it back; requests all diagnostics each time.
fn edits(workspace: &mut Workspace, file: rx_db::FileId, body: Range<usize>, options: &Options) {
    let mut random = Random(options.seed);
    let mut samples = Vec::new();
    let mut by_character: Vec<(char, Vec<Duration>)> =
        ['7', 'x', ' ', '(', '\n'].into_iter().map(|inserted| (inserted, Vec::new())).collect();
    for _ in 0..options.edits {
        let at = body.start + random.below(body.len());
        let which = random.below(by_character.len());
        let Some((inserted, times)) = by_character.get_mut(which) else { continue };
        let inserted = inserted.to_string();
        let (_, there) = thread_cpu_time(|| {
            workspace.edit(file, at..at, &inserted);
            workspace.diagnostics(file).len()
        });
        let (left, back) = thread_cpu_time(|| {
            workspace.edit(file, at..at + inserted.len(), "");
            workspace.diagnostics(file).len()
        });
        if left != 0 {
            println!("{left} diagnostics are left after undoing `{inserted:?}` at {at}");
        }
        if there.max(back) > SLOW {
            let (line, column) = workspace.document(file).line_column(at, Encoding::Utf8);
            println!(
                "slow: {inserted:?} at {}:{}: {} us, undone {} us",
                line + 1,
                column + 1,
                there.as_micros(),
                back.as_micros()
            );
        }
        samples.extend([there, back]);
        times.extend([there, back]);
    }
    let samples = Samples::new(samples);
    println!(
        "edit -> diagnostics of the whole file: median {} us, p95 {} us, max {} us",
        samples.median().as_micros(),
        samples.percentile(95).as_micros(),
        samples.max().as_micros()
    );
    for (inserted, times) in by_character {
        let times = Samples::new(times);
        println!(
            "  inserting {inserted:?}: median {} us, p95 {} us",
            times.median().as_micros(),
            times.percentile(95).as_micros()
        );
    }
}

fn millis(duration: Duration) -> u128 {
    duration.as_millis()
}

/// The generator SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }
}
