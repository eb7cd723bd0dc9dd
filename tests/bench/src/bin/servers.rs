//! Benchmark of language servers on the same network: opening, edits, bursts of edits, requests directly after an edit.
//!
//! ```text
//! servers --server rx-lsp [--mlir mlir-lsp-server] [--python "ruff server"] [--operators 1000,10000,100000] [--edits 60]
//! ```
//! Every server gets the network in its own language ([`rx_bench::generate::network`]) and the same kinds of edits, in
//! turns. The figures are wall time from the first byte sent to the last byte read, and the CPU time of the server's
//! process. An edit and its undoing have separate figures: one adds the work of a mistake's fixes, the other has none. The
//! limits are printed next to rx's figures. Ratios are another server's figure divided by rx's.

use rx_bench::generate::{Language, network};
use rx_bench::lsp::{Edit, Server};
use rx_bench::measure::{Samples, process_cpu_time, resident_memory};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The number of times that the document is opened, each in a new server.
const OPENINGS: usize = 5;
/// The number of edits in a burst.
const BURST: usize = 10;
/// The most bursts.
const BURSTS: usize = 9;
/// The most requests of a kind, each directly after an edit.
const REQUESTS: usize = 50;
/// The number of lines on a screen.
const SCREEN: usize = 60;
/// The number of first edits, and of first requests of a kind, that only warm up caches and are not counted.
const WARM_UP: usize = 2;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("servers: {why}");
            return ExitCode::from(2);
        }
    };
    for operators in &options.operators {
        if let Err(error) = compare(&options, *operators) {
            eprintln!("servers: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

struct Options {
    /// rx first.
    servers: Vec<(Language, String)>,
    operators: Vec<usize>,
    edits: usize,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { servers: Vec::new(), operators: vec![1_000, 10_000, 100_000], edits: 60 };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{word}: `{text}` is no number"));
            match word.as_str() {
                "--server" => options.servers.insert(0, (Language::Relax, value)),
                "--mlir" => options.servers.push((Language::Mlir, value)),
                "--python" => options.servers.push((Language::Python, value)),
                "--operators" => options.operators = value.split(',').map(number).collect::<Result<_, _>>()?,
                "--edits" => options.edits = number(&value)?,
                _ => return Err(format!("unknown option {word}")),
            }
        }
        match options.servers.first() {
            Some((Language::Relax, _)) => Ok(options),
            _ => Err("say --server target/release/rx-lsp".to_owned()),
        }
    }
}

/// A kind of edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Space,
    Break,
    Shape,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Space, Kind::Break, Kind::Shape];

    /// Returns the names of the edit and of its undoing.
    fn names(self) -> [&'static str; 2] {
        match self {
            Kind::Space => ["a space", "without the space"],
            Kind::Break => ["a breaking `(`", "without the `(`"],
            Kind::Shape => ["another padding", "the former padding"],
        }
    }

    /// Returns the text to replace in a line and its replacement; an empty text is at the end of the line.
    fn change(self, language: Language) -> (&'static str, &'static str) {
        match (self, language) {
            (Kind::Space, _) => ("", " "),
            (Kind::Break, _) => ("", "("),
            (Kind::Shape, Language::Mlir) => ("pad = array<i64: 1", "pad = array<i64: 2"),
            (Kind::Shape, _) => ("padding=[1", "padding=[2"),
        }
    }
}

/// A server with its document.
struct Contestant {
    language: Language,
    name: String,
    server: Server,
    document: PathBuf,
    text: String,
    /// The time of each opening.
    open: Vec<Duration>,
    resident: Option<u64>,
    /// The line of a convolution in the middle of the document.
    line: usize,
    /// By kind of edit, the figures of the edit and of its undoing.
    edits: Vec<[Figures; 2]>,
    burst: Vec<Duration>,
    publications: usize,
    requests: Vec<(&'static str, Vec<Duration>)>,
}

/// The samples of one edit.
#[derive(Default)]
struct Figures {
    wall: Vec<Duration>,
    cpu: Duration,
}

fn compare(options: &Options, operators: usize) -> io::Result<()> {
    let mut all = Vec::new();
    for (language, command) in &options.servers {
        all.push(Contestant::start(*language, command, operators)?);
    }
    for kind in Kind::ALL {
        for contestant in &mut all {
            contestant.edits.push(Default::default());
        }
        for round in 0..WARM_UP + options.edits {
            for contestant in &mut all {
                contestant.there_and_back(kind, round >= WARM_UP)?;
            }
        }
    }
    for contestant in &mut all {
        contestant.bursts(options.edits.min(BURSTS))?;
        contestant.requests(options.edits.min(REQUESTS))?;
    }
    print(operators, &all);
    Ok(())
}

impl Drop for Contestant {
    fn drop(&mut self) {
        // Ignore a file that cannot be removed: it is temporary.
        let _ = std::fs::remove_file(&self.document);
    }
}

impl Contestant {
    fn start(language: Language, command: &str, operators: usize) -> io::Result<Contestant> {
        let (extension, id) = match language {
            Language::Relax => ("rx", "rx"),
            Language::Mlir => ("mlir", "mlir"),
            Language::Python => ("py", "python"),
        };
        let document = std::env::temp_dir().join(format!("rx_bench_{}_{operators}.{extension}", std::process::id()));
        let text = network(operators, language);
        std::fs::write(&document, &text)?;
        let mut open = Vec::new();
        let mut server = Server::start(command, &document)?;
        open.push(server.open(id, &text)?);
        while open.len() < OPENINGS {
            server = Server::start(command, &document)?;
            open.push(server.open(id, &text)?);
        }
        let middle = text.lines().count() / 2;
        let is_convolution = |line: &str| line.contains("conv2d") && line.contains("pad");
        let line = text.lines().enumerate().skip(middle).find(|(_, line)| is_convolution(line)).map(|(at, _)| at);
        let line = line.ok_or_else(|| io::Error::other("a network of two operators at least"))?;
        let program = command.split_whitespace().next().unwrap_or_default();
        let name = std::path::Path::new(program).file_name().map_or_else(String::new, |it| it.to_string_lossy().into());
        let resident = resident_memory(server.process());
        Ok(Contestant {
            language,
            name,
            server,
            document,
            text,
            open,
            resident,
            line,
            edits: Vec::new(),
            burst: Vec::new(),
            publications: 0,
            requests: Vec::new(),
        })
    }

    /// Replaces `old` in the line of the convolution, or appends to the line; returns the column and the whole new
    /// text.
    fn edit(&self, old: &str, new: &str) -> io::Result<(usize, String)> {
        let line = self.text.lines().nth(self.line).unwrap_or_default();
        let column = if old.is_empty() { Some(line.len()) } else { line.find(old) };
        let column = column.ok_or_else(|| io::Error::other(format!("no `{old}` in `{line}`")))?;
        // INVARIANT: `line` is a piece of the text.
        let start = line.as_ptr() as usize - self.text.as_ptr() as usize + column;
        let mut after = self.text.clone();
        after.replace_range(start..start + old.len(), new);
        Ok((column, after))
    }

    /// Makes one edit and undoes it, and waits for the diagnostics after each.
    fn there_and_back(&mut self, kind: Kind, counts: bool) -> io::Result<()> {
        let (old, new) = kind.change(self.language);
        let (column, after) = self.edit(old, new)?;
        let line = self.line;
        let before = std::mem::take(&mut self.text);
        let edits =
            [Edit { line, column, old, new, after: &after }, Edit { line, column, old: new, new: old, after: &before }];
        for (direction, edit) in edits.iter().enumerate() {
            let spent = process_cpu_time(self.server.process());
            let message = self.server.change(edit);
            let start = Instant::now();
            self.server.send(&message)?;
            let (end, _) = self.server.diagnostics()?;
            let spent = process_cpu_time(self.server.process()).zip(spent).map(|(now, then)| now - then);
            if counts && let Some(figures) = self.edits.last_mut().and_then(|both| both.get_mut(direction)) {
                figures.wall.push(end.duration_since(start));
                figures.cpu += spent.unwrap_or_default();
            }
        }
        self.text = before;
        Ok(())
    }

    /// Sends edits without waiting; measures the time from the last of them to its diagnostics.
    fn bursts(&mut self, count: usize) -> io::Result<()> {
        let (column, after) = self.edit("", " ")?;
        let (line, before) = (self.line, std::mem::take(&mut self.text));
        for _ in 0..count {
            let mut messages = Vec::new();
            for step in 0..BURST {
                let edit = match step % 2 {
                    0 => Edit { line, column, old: "", new: " ", after: &after },
                    _ => Edit { line, column, old: " ", new: "", after: &before },
                };
                messages.push(self.server.change(&edit));
            }
            for message in &messages {
                self.server.send(message)?;
            }
            let start = Instant::now();
            let (end, publications) = self.server.diagnostics()?;
            self.burst.push(end.saturating_duration_since(start));
            self.publications = self.publications.max(publications);
        }
        self.text = before;
        Ok(())
    }

    /// Sends requests about the edited line, each directly after an edit.
    fn requests(&mut self, count: usize) -> io::Result<()> {
        let text = self.text.lines().nth(self.line).unwrap_or_default();
        let column = |word: &str| text.find(word).map_or(0, |at| at + word.len());
        let at = |character: usize| json!({"line": self.line, "character": character});
        // The operator, its first operand, and the start of the operand.
        let (operator, operand) = match self.language {
            Language::Relax => (column("R.nn.con"), column("R.nn.conv2d(") + 1),
            Language::Mlir => (column("tosa.con"), column("tosa.conv2d %") + 1),
            Language::Python => (column("= con"), column("conv2d(") + 1),
        };
        let first = self.line.saturating_sub(SCREEN / 2);
        let screen = json!({"start": {"line": first, "character": 0}, "end": {"line": first + SCREEN, "character": 0}});
        let asked: [(&'static str, &str, Value); 5] = [
            ("hover", "textDocument/hover", json!({"position": at(operator)})),
            ("definition", "textDocument/definition", json!({"position": at(operand)})),
            ("completion", "textDocument/completion", json!({"position": at(operand - 1)})),
            ("inlay hints of a screen", "textDocument/inlayHint", json!({"range": screen})),
            ("semantic tokens, delta", "textDocument/semanticTokens/full/delta", json!({})),
        ];
        for (name, method, mut params) in asked {
            if !self.offers(method) {
                continue;
            }
            if name.starts_with("semantic") {
                let full = self.server.ask("textDocument/semanticTokens/full", json!({}))?;
                params["previousResultId"] = full.message["result"]["resultId"].clone();
            }
            let samples = self.right_after_edits(method, &params, count)?;
            self.requests.push((name, samples));
        }
        Ok(())
    }

    fn right_after_edits(&mut self, method: &str, params: &Value, count: usize) -> io::Result<Vec<Duration>> {
        let (column, after) = self.edit("", " ")?;
        let (line, before) = (self.line, std::mem::take(&mut self.text));
        let mut samples = Vec::new();
        let mut params = params.clone();
        for step in 0..WARM_UP + count {
            let edit = match step % 2 {
                0 => Edit { line, column, old: "", new: " ", after: &after },
                _ => Edit { line, column, old: " ", new: "", after: &before },
            };
            let message = self.server.change(&edit);
            self.server.send(&message)?;
            let start = Instant::now();
            let answer = self.server.ask(method, params.clone())?;
            if step >= WARM_UP {
                samples.push(answer.at.duration_since(start));
            }
            if let Some(id) = answer.message["result"].get("resultId") {
                params["previousResultId"] = id.clone();
            }
        }
        self.text = before;
        Ok(samples)
    }

    fn offers(&self, method: &str) -> bool {
        let provider = match method {
            "textDocument/hover" => "/hoverProvider",
            "textDocument/definition" => "/definitionProvider",
            "textDocument/completion" => "/completionProvider",
            "textDocument/inlayHint" => "/inlayHintProvider",
            _ => "/semanticTokensProvider/full/delta",
        };
        self.server.capabilities.pointer(provider).is_some_and(|it| !it.is_null() && *it != false)
    }
}

/// Limits in milliseconds: number of operators, p50 and p99 of an edit for networks of at most that size.
const EDIT_BARS: [(usize, f64, f64); 3] = [(1_000, 1.0, 3.0), (10_000, 1.0, 5.0), (100_000, 1.0, 15.0)];

fn print(operators: usize, all: &[Contestant]) {
    println!("\n{operators} operators");
    let rows = rows(operators, all);
    for (name, cells, bar) in rows {
        let first = cells.first().copied().flatten();
        let mut line = format!("  {name:<48}");
        for (contestant, cell) in all.iter().zip(&cells) {
            let text = match cell {
                None => format!("{} –", contestant.name),
                Some(value) => format!("{} {}", contestant.name, shown(*value)),
            };
            let ratio = match (cell, first) {
                (Some(value), Some(first))
                    if contestant.language != Language::Relax && first > 0.0 && name.ends_with("ms") =>
                {
                    format!(" ({:.1}×)", value / first)
                }
                _ => String::new(),
            };
            line.push_str(&format!("  {:<32}", text + &ratio));
        }
        if let (Some(bar), Some(value)) = (bar, first) {
            let verdict = if value <= bar { "met" } else { "NOT MET" };
            line.push_str(&format!("bar {}: {verdict}", shown(bar)));
        }
        println!("{}", line.trim_end());
    }
}

/// A line of the table: its title, a figure for each server, and the limit for rx's figure.
type Row = (String, Vec<Option<f64>>, Option<f64>);

fn rows(operators: usize, all: &[Contestant]) -> Vec<Row> {
    let large = operators >= 100_000;
    let bars = EDIT_BARS.iter().find(|(size, ..)| operators <= *size);
    let mut rows: Vec<Row> = Vec::new();
    let mut row = |name: String, figure: &dyn Fn(&Contestant) -> Option<f64>, bar: Option<f64>| {
        rows.push((name, all.iter().map(figure).collect(), bar));
    };
    row("text, MB".to_owned(), &|it| Some(it.text.len() as f64 / 1e6), None);
    let open = |it: &Contestant| Some(millis(Samples::new(it.open.clone()).median()));
    row(format!("open → diagnostics: p50 of {OPENINGS}, ms"), &open, large.then_some(500.0));
    row("resident after it, MB".to_owned(), &|it| Some(it.resident? as f64 / 1e6), large.then_some(250.0));
    let edits = Kind::ALL.iter().enumerate().flat_map(|(at, kind)| [0, 1].map(|to| (at, to, kind.names()[to])));
    for (at, to, name) in edits {
        let samples = move |it: &Contestant| Samples::new(it.edits[at][to].wall.clone());
        row(format!("{name}: p50, ms"), &|it| Some(millis(samples(it).median())), bars.map(|it| it.1));
        row(format!("{name}: p99, ms"), &|it| Some(millis(samples(it).percentile(99))), bars.map(|it| it.2));
        let cpu = |it: &Contestant| {
            let figures = &it.edits[at][to];
            Some(millis(figures.cpu) / figures.wall.len().max(1) as f64)
        };
        row(format!("{name}: CPU an edit, ms"), &cpu, None);
    }
    let median = |figures: &Figures| millis(Samples::new(figures.wall.clone()).median());
    let two_edits = all.first().map(|rx| rx.edits[0].iter().map(median).sum());
    let last = |it: &Contestant| Some(millis(Samples::new(it.burst.clone()).median()));
    row(format!("{BURST} edits at once: the last, ms"), &last, two_edits);
    row("    publications, at most".to_owned(), &|it| Some(it.publications as f64), Some(3.0));
    for name in ["hover", "definition", "completion", "inlay hints of a screen", "semantic tokens, delta"] {
        let samples = |it: &Contestant| it.requests.iter().find(|(kind, _)| *kind == name).map(|it| it.1.clone());
        let p99 = |it: &Contestant| Some(millis(Samples::new(samples(it)?).percentile(99)));
        row(format!("{name} after an edit: p99, ms"), &p99, large.then_some(5.0));
    }
    rows
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn shown(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
