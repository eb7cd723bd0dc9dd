//! Benchmark of incremental parsing: single edits of a generated program, reparsed by the tree-sitter grammar, in CPU
//! time of one thread.
//!
//! ```text
//! reparse [N] [--split K] [--repeat R] [--slow MS] [FILE]
//! ```
//! The programs have N bindings (100,000): a chain in one function, layers in one function, and layers in K functions
//! (1,000). With FILE, its text is used instead. Every edit of [`rx_grammar_tests::edits`] is made at every kind of
//! line, at the start, in the middle and at the end, R times (1), and undone; both parses are measured. `--slow` lists
//! each parse that took at least so many milliseconds.
//!
//! Limit: 20 ms for every edit at 100,000 lines. Edits in a line of more than 100,000 characters (a header of 32,000
//! parameters) are listed separately and have no limit: removing or restoring its `def` takes time proportional to its
//! text.

use rx_bench::generate::{Language, Scale, network, scale};
use rx_bench::measure::{Samples, thread_cpu_time};
use rx_grammar_tests::edits::{EDITS, LINES, Replacement};
use rx_grammar_tests::{edit, first_error, parser};
use std::process::ExitCode;
use std::time::Duration;
use tree_sitter::{Parser, Tree};

const BAR: Duration = Duration::from_millis(20);

/// Lines with more characters than this have no time limit.
const LONG: usize = 100_000;

/// The places of edits, in per cent of the text.
const PLACES: [(&str, usize); 3] = [("start", 0), ("middle", 50), ("end", 99)];

struct Options {
    bindings: usize,
    split: usize,
    repeat: usize,
    slow: Duration,
    file: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { bindings: 100_000, split: 1000, repeat: 1, slow: Duration::MAX, file: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = |title: &str| {
            let text = args.next().ok_or_else(|| format!("{title} needs a number"))?;
            text.parse::<usize>().map_err(|_| format!("{title}: `{text}` is no number"))
        };
        match arg.as_str() {
            "--split" => options.split = number("--split")?,
            "--repeat" => options.repeat = number("--repeat")?,
            "--slow" => options.slow = Duration::from_millis(number("--slow")? as u64),
            other => match other.parse() {
                Ok(bindings) => options.bindings = bindings,
                Err(_) => options.file = Some(other.to_owned()),
            },
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("reparse: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs the benchmark; returns whether the limit was met everywhere.
fn run(options: &Options) -> Result<bool, String> {
    if let Some(file) = &options.file {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        return measure(file, &text, options);
    }
    let layers = Scale::new(options.bindings);
    let one = measure("chain, one function", &network(options.bindings, Language::Relax), options)?;
    let name = format!("layers, {} functions", options.split);
    let many = measure(&name, &scale(&layers.split(options.split)), options)?;
    let wide = measure("layers, one function", &scale(&layers), options)?;
    Ok(one && wide && many)
}

/// The measurements of one kind of edit.
#[derive(Default)]
struct Readings {
    spent: Vec<Duration>,
    worst: Duration,
    at: String,
}

impl Readings {
    fn add(&mut self, spent: Duration, at: impl FnOnce() -> String) {
        self.spent.push(spent);
        if spent > self.worst {
            self.worst = spent;
            self.at = at();
        }
    }

    fn print(&self, title: &str) {
        let median = Samples::new(self.spent.clone()).median();
        let (verdict, median, worst) = (verdict(self.worst), millis(median), millis(self.worst));
        println!("  {verdict} {title:32} median {median:>9}  worst {worst:>10}  {}", self.at);
    }
}

fn verdict(worst: Duration) -> &'static str {
    if worst <= BAR { "pass" } else { "OVER" }
}

/// Parses the text, makes every edit and undoes it; returns whether the limit was met.
fn measure(name: &str, text: &str, options: &Options) -> Result<bool, String> {
    let mut parser = parser()?;
    let (tree, cold) = thread_cpu_time(|| parser.parse(text, None));
    let mut tree = tree.ok_or("the parser gave up")?;
    println!("{name}: {} lines, {} MB, cold {}", text.lines().count(), text.len() / 1_000_000, millis(cold));
    if let Some((line, title)) = first_error(&tree) {
        println!("  error at line {line}: {}", title.chars().take(200).collect::<String>());
    }
    let mut text = text.to_owned();
    let everywhere = edits(&mut parser, &mut text, &mut tree, options, false)?;
    let worst = everywhere.iter().map(|(_, readings)| readings.worst).max().unwrap_or_default();
    everywhere.iter().for_each(|(title, readings)| readings.print(title));
    println!("  {} worst of all {}", verdict(worst), millis(worst));
    let long = edits(&mut parser, &mut text, &mut tree, options, true)?;
    if long.iter().any(|(_, readings)| !readings.spent.is_empty()) {
        println!("  in a line of more than {LONG} characters:");
        long.iter().filter(|(_, readings)| readings.worst > BAR).for_each(|(title, readings)| readings.print(title));
        let within = long.iter().filter(|(_, readings)| readings.worst <= BAR).count();
        println!("  the other {within} kinds of edits within {}", millis(BAR));
    }
    Ok(worst <= BAR)
}

/// Makes every edit and undoes it: either in long lines only, or in all others only.
fn edits(
    parser: &mut Parser,
    text: &mut String,
    tree: &mut Tree,
    options: &Options,
    long: bool,
) -> Result<Vec<(&'static str, Readings)>, String> {
    let mut all = Vec::new();
    for (title, make) in EDITS {
        let mut readings = Readings::default();
        for (line, find) in LINES {
            for (place, share) in PLACES {
                for step in 0..options.repeat {
                    let Some(range) = find(text, text.len() / 100 * share + step * 1000) else { continue };
                    if (range.len() > LONG) != long {
                        continue;
                    }
                    let Some(change) = make(text, range) else { continue };
                    for (back, spent) in again(parser, text, tree, &change)?.into_iter().enumerate() {
                        let at = || format!("{line}, {place}{}", if back == 1 { ", taken back" } else { "" });
                        if spent >= options.slow {
                            println!("    {title}: {} {} (byte {})", at(), millis(spent), change.at);
                        }
                        readings.add(spent, at);
                    }
                }
            }
        }
        all.push((title, readings));
    }
    Ok(all)
}

/// Makes a change and undoes it; returns the time of each parse.
fn again(
    parser: &mut Parser,
    text: &mut String,
    tree: &mut Tree,
    change: &Replacement,
) -> Result<[Duration; 2], String> {
    let old = text.get(change.at..change.at + change.old).unwrap_or_default().to_owned();
    let mut spent = [Duration::ZERO; 2];
    let steps = [(change.old, change.new), (change.new.len(), old.as_str())];
    for ((old, new), time) in steps.into_iter().zip(&mut spent) {
        edit(text, tree, change.at, old, new);
        let (read, elapsed) = thread_cpu_time(|| parser.parse(&*text, Some(tree)));
        *tree = read.ok_or("the parser gave up")?;
        *time = elapsed;
    }
    Ok(spent)
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
