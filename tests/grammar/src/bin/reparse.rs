//! One-character edits of a generated program, read again by the tree-sitter grammar, in CPU time of one thread.
//!
//! ```text
//! reparse [N] [--split K] [--edits E] [FILE]
//! ```
//! N bindings (100,000) in one function, or in functions of K; or the text of a file. Bar: at most 20 ms an edit at 100,000
//! lines, wherever it is made.

use rx_bench::generate::{Language, Scale, network, scale};
use rx_bench::measure::{Samples, thread_cpu_time};
use rx_grammar_tests::{edit, first_error, parser};
use std::process::ExitCode;
use std::time::Duration;
use tree_sitter::{Parser, Tree};

struct Options {
    bindings: usize,
    split: usize,
    edits: usize,
    file: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { bindings: 100_000, split: 1, edits: 20, file: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = |what: &str| {
            let text = args.next().ok_or_else(|| format!("{what} needs a number"))?;
            text.parse::<usize>().map_err(|_| format!("{what}: `{text}` is no number"))
        };
        match arg.as_str() {
            "--split" => options.split = number("--split")?,
            "--edits" => options.edits = number("--edits")?,
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
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("reparse: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    if let Some(file) = &options.file {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        return measure(file, &text, options.edits);
    }
    if options.split <= 1 {
        measure("conv/relu chain, one function", &network(options.bindings, Language::Relax), options.edits)?;
    }
    let mut program = Scale::new(options.bindings);
    if options.split > 1 {
        program = program.split(options.split);
    }
    measure("layers", &scale(&program), options.edits)
}

/// Parses, then types each of these at the start, in the middle and at the end, and takes it back; every reading counts.
fn measure(name: &str, text: &str, edits: usize) -> Result<(), String> {
    let mut parser = parser()?;
    let (tree, cold) = thread_cpu_time(|| parser.parse(text, None));
    let mut tree = tree.ok_or("the parser gave up")?;
    println!("{name}: {} lines, {} MB, cold {}", text.lines().count(), text.len() / 1_000_000, millis(cold));
    if let Some((line, what)) = first_error(&tree) {
        println!("  error at line {line}: {}", what.chars().take(200).collect::<String>());
    }
    let mut text = text.to_owned();
    for (place, share) in [("start", 1), ("middle", 50), ("end", 99)] {
        for (what, typed) in [("space", " "), ("letter", "x"), ("newline", "\n"), ("bracket", "("), ("quote", "\"")] {
            let mut spent = Vec::new();
            for step in 0..edits {
                let at = line_end(&text, text.len() / 100 * share + step * 1000);
                spent.extend(again(&mut parser, &mut text, &mut tree, at, typed)?);
            }
            let samples = Samples::new(spent);
            println!("  {place:7} {what:8} median {} max {}", millis(samples.median()), millis(samples.max()));
        }
    }
    Ok(())
}

/// The end of the line at a byte, or of the text: before its last character, inside its brackets.
fn line_end(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| at + length);
    end.saturating_sub(1)
}

/// Types a character and deletes it.
fn again(
    parser: &mut Parser,
    text: &mut String,
    tree: &mut Tree,
    at: usize,
    typed: &str,
) -> Result<[Duration; 2], String> {
    let mut spent = [Duration::ZERO; 2];
    for (step, time) in spent.iter_mut().enumerate() {
        let (old, new) = if step == 0 { (0, typed) } else { (typed.len(), "") };
        edit(text, tree, at, old, new);
        let (read, elapsed) = thread_cpu_time(|| parser.parse(&*text, Some(tree)));
        *tree = read.ok_or("the parser gave up")?;
        *time = elapsed;
    }
    Ok(spent)
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
