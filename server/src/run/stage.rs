//! Compilation stages of a function as documents: passes, TIR, CUDA C, PTX, machine code. Nothing is executed. The
//! server computes the first three itself ([`super::built`]). PTX needs NVRTC and machine code needs the JIT, so
//! `rxrun --emit` computes those in a child process.

use super::Outcome;
use crate::lsp::{Point, Range, Uri, to_proto};
use crate::notebooks::{AskedCell, in_document};
use rx_base::Span;
use rx_db::{Document, Encoding};
use rx_ide::FunctionAt;
use serde_json::Value;
use tokio::sync::oneshot;

/// The command that shows a stage.
pub const COMMAND: &str = "rx.stage";

/// The maximal length of a text in bytes; editors do not open longer ones.
pub const MAX_TEXT: u64 = 1 << 26;

/// A compilation stage of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its module, initially and after each pass on the way to its kernels.
    Passes,
    /// Its kernels as TIR loop nests.
    Tir,
    /// Its kernels as CUDA C.
    Cuda,
    /// Its kernels as PTX. Requires NVRTC.
    Ptx,
    /// Its kernels as machine code of the host.
    Cpu,
}

impl Stage {
    /// Returns the stage with this name.
    pub fn of_word(word: &str) -> Option<Stage> {
        let all = [Stage::Passes, Stage::Tir, Stage::Cuda, Stage::Ptx, Stage::Cpu];
        all.into_iter().find(|stage| stage.word() == word)
    }

    /// Returns its name, as in `rxrun --emit`.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Passes => "passes",
            Stage::Tir => "tir",
            Stage::Cuda => "cuda",
            Stage::Ptx => "ptx",
            Stage::Cpu => "cpu",
        }
    }

    /// Whether the server computes it without a child process.
    pub fn is_built_here(self) -> bool {
        match self {
            Stage::Passes | Stage::Tir | Stage::Cuda => true,
            Stage::Ptx | Stage::Cpu => false,
        }
    }

    /// Returns the name of a function's stage for messages.
    pub fn label(self, function: &str) -> String {
        if self == Stage::Passes { "passes".to_owned() } else { format!("`{function}`") }
    }

    /// Returns the language identifier of its text.
    pub fn language(self) -> &'static str {
        match self {
            Stage::Passes | Stage::Tir => "python",
            Stage::Cuda => "cuda-cpp",
            Stage::Ptx => "ptx",
            Stage::Cpu => "rx-cpu",
        }
    }
}

/// A request to show a stage.
#[derive(Debug)]
pub struct Order {
    /// The document.
    pub uri: Uri,
    /// A position in the function.
    pub at: Point,
    /// The stage.
    pub stage: Stage,
    /// The sender of the response, which is `None` if there is no function at the position. It is closed once the
    /// client cancels the request.
    pub reply: oneshot::Sender<Option<Shown>>,
}

/// The function to show, in the text at the time when the child starts.
#[derive(Debug)]
pub struct Subject {
    /// Its name.
    pub function: String,
    /// The label of its module.
    pub module: Option<String>,
    /// Whether its module is the only one of the text.
    pub alone: bool,
    /// The document with the text.
    pub document: Document,
    /// The client's position encoding.
    pub encoding: Encoding,
    /// The cell, if the document is one of a notebook.
    pub cell: Option<AskedCell>,
}

/// A computed stage of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The name of the function.
    pub function: String,
    /// The label of its module.
    pub module: Option<String>,
    /// The stage.
    pub stage: Stage,
    /// The text, or a sentence with the reason why there is none.
    pub text: Result<String, String>,
    /// The kernels in the text; for [`Stage::Passes`], the bindings.
    pub parts: Vec<Part>,
    /// For [`Stage::Passes`], the output of each pass. The first entry is the module before all passes.
    pub passes: Vec<PassOutput>,
}

/// The output of one pass, as a part of a longer text.
#[derive(Clone, Debug, PartialEq)]
pub struct PassOutput {
    /// The name of the pass; `None` for the module before all passes.
    pub pass: Option<String>,
    /// Whether the pass changed the module.
    pub changed: bool,
    /// The reason why the pass could not be applied.
    pub problem: Option<String>,
    /// The lines of the module in the text, from 0; the end is exclusive.
    pub lines: (u64, u64),
}

/// A kernel in the text of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its lines, from 0; the end is exclusive.
    pub lines: (u64, u64),
    /// The ranges of the source statements that it was compiled from.
    pub ranges: Vec<Range>,
}

/// Returns the function at a byte offset. For [`Stage::Passes`], which shows the whole module, it falls back to the
/// first function of the module or of the text.
pub fn function_at(document: &Document, offset: usize, stage: Stage) -> Option<FunctionAt> {
    let any = || rx_ide::first_function(document, offset).filter(|_| stage == Stage::Passes);
    rx_ide::function_in(document, offset).or_else(any)
}

/// Converts the outcome of `rxrun --emit` to a stage.
pub fn shown(subject: &Subject, stage: Stage, outcome: Outcome) -> Shown {
    let shown = |text, parts| {
        let (function, module) = (subject.function.clone(), subject.module.clone());
        Shown { function, module, stage, text, parts, passes: Vec::new() }
    };
    let Some(event) = outcome.emitted.filter(|_| outcome.ok) else {
        return shown(Err(outcome.message), Vec::new());
    };
    let parts = event.get("parts").and_then(Value::as_array);
    let parts = parts.into_iter().flatten().filter_map(|value| part(subject, value)).collect();
    match event.get("text").and_then(Value::as_str) {
        Some(text) => {
            let passes = event.get("stages").and_then(Value::as_array).into_iter().flatten();
            let passes = passes.filter_map(pass_output).collect();
            Shown { passes, ..shown(Ok(text.to_owned()), parts) }
        }
        None => shown(Err("rxrun returned no text".to_owned()), Vec::new()),
    }
}

/// Reads a line or column, which counts from 1 in `docs/json.md`, and converts it to count from 0.
fn number(value: &Value, field: &str) -> Option<u64> {
    value.get(field)?.as_u64()?.checked_sub(1)
}

/// Parses one of the `stages` of `docs/json.md`.
fn pass_output(value: &Value) -> Option<PassOutput> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(PassOutput {
        pass: text("pass"),
        changed: value.get("changed")?.as_bool()?,
        problem: text("problem"),
        lines: (number(value, "start_line")?, number(value, "end_line")?),
    })
}

/// Parses one of the `parts` of `docs/json.md`. Columns are in characters there.
fn part(subject: &Subject, value: &Value) -> Option<Part> {
    let offset = |value: &Value, line: &str, column: &str| {
        let line = u32::try_from(number(value, line)?).ok()?;
        let column = u32::try_from(number(value, column)?).ok()?;
        u32::try_from(subject.document.offset_of(line, column, Encoding::Utf32)).ok()
    };
    let range = |value: &Value| {
        let span = Span::new(offset(value, "line", "column")?, offset(value, "end_line", "end_column")?);
        in_document(to_proto::range(&subject.document, span, subject.encoding), subject.cell.as_ref())
    };
    Some(Part {
        name: value.get("name")?.as_str()?.to_owned(),
        lines: (number(value, "start_line")?, number(value, "end_line")?),
        ranges: value.get("places")?.as_array()?.iter().filter_map(range).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Stage, Subject, shown};
    use crate::run::Outcome;
    use rx_db::{Document, Encoding, FileKind};
    use serde_json::json;

    fn subject() -> Subject {
        let document = Document::new("# x\né = '𝄞' + 1\n", FileKind::Rx);
        let (function, module) = ("main".to_owned(), Some("Module".to_owned()));
        Subject { function, module, alone: true, document, encoding: Encoding::Utf16, cell: None }
    }

    #[test]
    fn places_are_in_the_clients_columns() {
        let place = json!({"line": 2, "column": 5, "end_line": 2, "end_column": 12});
        let strange = json!({"line": 0, "column": "5"});
        let parts =
            json!([{"name": "k", "start_line": 1, "end_line": 3, "places": [place, strange]}, 7, {"name": "j"}]);
        let emitted = Some(json!({"event": "emitted", "stage": "tir", "text": "a\nb\n", "parts": parts}));
        let shown = shown(&subject(), Stage::Tir, Outcome { ok: true, emitted, ..Outcome::default() });
        assert_eq!(shown.text.as_deref(), Ok("a\nb\n"));
        let [part] = &shown.parts[..] else { panic!("{shown:?}") };
        assert_eq!((part.name.as_str(), part.lines), ("k", (0, 2)));
        let [range] = &part.ranges[..] else { panic!("{part:?}") };
        assert_eq!((range.start.line, range.start.character, range.end.character), (1, 4, 12));
    }

    #[test]
    fn passes_are_reported_in_order() {
        let first = json!({"pass": null, "changed": true, "problem": null, "start_line": 3, "end_line": 5});
        let second = json!({"pass": "FoldConstant", "changed": false, "problem": "no", "start_line": 3, "end_line": 5});
        let stages = json!([first, second, {"pass": "Strange"}, 7]);
        let emitted = Some(json!({"text": "a\nb\n", "parts": [], "stages": stages}));
        let shown = shown(&subject(), Stage::Passes, Outcome { ok: true, emitted, ..Outcome::default() });
        let passes: Vec<_> = shown.passes.iter().map(|made| (made.pass.as_deref(), made.changed, made.lines)).collect();
        assert_eq!(passes, [(None, true, (2, 4)), (Some("FoldConstant"), false, (2, 4))]);
        assert_eq!(shown.passes[1].problem.as_deref(), Some("no"));
    }

    #[test]
    fn a_failure_is_a_message() {
        let outcome =
            Outcome { message: "it failed".to_owned(), emitted: Some(json!({"text": "x"})), ..Outcome::default() };
        let shown = shown(&subject(), Stage::Cuda, outcome);
        assert_eq!((shown.text, shown.parts), (Err("it failed".to_owned()), Vec::new()));
        assert!(
            ["passes", "tir", "cuda", "ptx", "cpu"]
                .iter()
                .all(|word| Stage::of_word(word).is_some_and(|it| it.word() == *word))
        );
        assert_eq!(Stage::of_word("relax"), None);
    }
}
