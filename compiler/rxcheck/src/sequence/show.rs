//! Output of `--sequence`, as text and JSON.

use super::compare::{Found, Function, Phase, Step};
use rx_base::{Code, counted};
use rx_report::{Record, printable};
use serde::Serialize;
use similar::TextDiff;

/// The most names listed for a kind of change; JSON has all.
const MOST_NAMES: usize = 6;

/// The most lines of a diff that are printed; JSON has all.
const MOST_LINES: usize = 200;

/// The most bytes of a declaration in one line of text; JSON has all.
const LONGEST: usize = 240;

/// Formats the summary line of a phase, and one line per changed signature.
pub fn text(phase: &Phase, step: &Step) -> String {
    let mut parts = vec![counted(phase.declared.len(), "function")];
    let lists = [("appeared", &step.appeared), ("vanished", &step.vanished), ("changed", &step.changed)];
    for (word, names) in lists {
        if !names.is_empty() {
            parts.push(format!("{} {word} ({})", names.len(), listed(names, step.several)));
        }
    }
    if step.old_errors > 0 {
        parts.push(format!("{} as before", counted(step.old_errors, "error")));
    }
    if !step.new_errors.is_empty() {
        parts.push(counted(step.new_errors.len(), "new error"));
    }
    let mut lines = vec![format!("phase {}: {}: {}", step.number, phase.shown, parts.join(", "))];
    for (function, was, is) in step.signatures.iter().take(MOST_NAMES) {
        let (code, function) = (Code::SignatureChanged, function.shown(step.several));
        lines.push(format!("  info[{code} {}]: the signature of `{function}` changes", code.slug()));
        let (was, is) = differing(was, is);
        lines.push(format!("    was {}", rx_report::line_of(&was, LONGEST)));
        lines.push(format!("    is  {}", rx_report::line_of(&is, LONGEST)));
    }
    if step.signatures.len() > MOST_NAMES {
        lines
            .push(format!("  … {} more signatures change (--format json has all)", step.signatures.len() - MOST_NAMES));
    }
    shown(&lines)
}

/// Shortens two long declarations: leaves out the parameters that both begin or end with.
fn differing(was: &str, is: &str) -> (String, String) {
    if was.len().max(is.len()) <= LONGEST {
        return (was.to_owned(), is.to_owned());
    }
    let (old, new) = (parameters(was), parameters(is));
    let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - first;
    let last = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let shown = |parts: &[&str]| {
        let end = parts.len().saturating_sub(last);
        let mut shown = parts.get(first..end).unwrap_or_default().join(", ");
        if first > 0 {
            shown = format!("…, {shown}");
        }
        if last > 0 {
            shown += ", …";
        }
        shown
    };
    (shown(&old), shown(&new))
}

/// Splits a declaration at the commas between its parameters. For example, `def f(x: A, y: B)` gives `def f(x: A` and
/// `y: B)`.
fn parameters(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b',' if depth == 1 => {
                parts.push(text.get(start..at).unwrap_or_default().trim_start());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default().trim_start());
    parts
}

fn listed(names: &[Function], several: bool) -> String {
    let mut text = names.iter().take(MOST_NAMES).map(|name| name.shown(several)).collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMES {
        text += ", …";
    }
    text
}

/// Replaces unprintable characters in lines of text.
fn shown(lines: &[String]) -> String {
    lines.iter().map(|line| line.chars().map(printable).chain(['\n']).collect::<String>()).collect()
}

/// Formats the first new error: position, report, and the diff of its function.
pub fn first(before: Option<&Phase>, phase: &Phase, step: &Step, found: &Found, color: bool) -> String {
    let mut place = format!("first new error: phase {}, {}", step.number, phase.shown);
    if let Some(function) = &found.function {
        place += &format!(", function `{}`", function.shown(step.several));
    }
    if let Some(binding) = found.binding {
        place += &format!(", binding `{binding}`");
    }
    let source = phase.source();
    let mut text = shown(&[place]) + &rx_report::full(&source, &found.diagnostic, color);
    match difference(before, phase, step, found) {
        Difference::None => {}
        Difference::Same => {
            text += &shown(&["the function itself did not change; a function that it calls did".to_owned()]);
        }
        Difference::New => text += &shown(&["the function is new in this phase".to_owned()]),
        Difference::Lines(diff) => {
            let mut lines: Vec<String> = diff.lines().take(MOST_LINES).map(str::to_owned).collect();
            let left = diff.lines().count().saturating_sub(MOST_LINES);
            if left > 0 {
                lines.push(format!("… {left} more lines (--format json has all)"));
            }
            text += &shown(&lines);
        }
    }
    text
}

/// The change of the function that contains an error.
enum Difference {
    /// Not available: there is no previous phase, or the error is in no function.
    None,
    /// The function did not change.
    Same,
    /// The function is new.
    New,
    /// A unified diff.
    Lines(String),
}

fn difference(before: Option<&Phase>, phase: &Phase, step: &Step, found: &Found) -> Difference {
    let (Some(before), Some(function)) = (before, &found.function) else { return Difference::None };
    match (before.printed.get(&before.own(phase, function)), phase.printed.get(function)) {
        (Some(old), Some(new)) if old == new => Difference::Same,
        (Some(old), Some(new)) => {
            let header = |phase: &Phase| format!("{} {}", phase.shown, function.shown(step.several));
            let diff = TextDiff::from_lines(old.as_str(), new.as_str());
            Difference::Lines(diff.unified_diff().header(&header(before), &header(phase)).to_string())
        }
        (None, Some(_)) => Difference::New,
        (_, None) => Difference::None,
    }
}

/// One phase as `--sequence --format json` writes it (`docs/json.md`).
#[derive(Serialize)]
struct PhaseRecord<'a> {
    phase: usize,
    file: &'a str,
    functions: usize,
    appeared: Vec<String>,
    vanished: Vec<String>,
    changed: Vec<String>,
    signatures: Vec<SignatureRecord<'a>>,
    old_errors: usize,
    new_errors: Vec<ErrorRecord<'a>>,
}

#[derive(Serialize)]
struct SignatureRecord<'a> {
    code: String,
    function: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    line: u32,
    before: &'a str,
    after: &'a str,
}

#[derive(Serialize)]
struct ErrorRecord<'a> {
    function: Option<String>,
    binding: Option<&'a str>,
    diagnostic: Record<'a>,
}

/// The last line of the JSON output, if there is a new error.
#[derive(Serialize)]
struct FirstRecord<'a> {
    first_new_error: FirstError<'a>,
}

#[derive(Serialize)]
struct FirstError<'a> {
    phase: usize,
    file: &'a str,
    function: Option<String>,
    binding: Option<&'a str>,
    code: String,
    message: &'a str,
    diff: Option<String>,
}

/// Formats one phase as a JSON line.
pub fn json<'a>(phase: &Phase, step: &'a Step) -> String {
    let source = phase.source();
    let names = |functions: &[Function]| functions.iter().map(|function| function.shown(step.several)).collect();
    let signature = |(function, before, after): &'a (Function, String, String)| {
        let span = phase.function_span(function).unwrap_or_default();
        let position = source.position(span.start as usize);
        SignatureRecord {
            code: Code::SignatureChanged.to_string(),
            function: function.shown(step.several),
            cell: position.cell,
            line: position.line,
            before,
            after,
        }
    };
    let record = PhaseRecord {
        phase: step.number,
        file: &phase.shown,
        functions: phase.declared.len(),
        appeared: names(&step.appeared),
        vanished: names(&step.vanished),
        changed: names(&step.changed),
        signatures: step.signatures.iter().map(signature).collect(),
        old_errors: step.old_errors,
        new_errors: step
            .new_errors
            .iter()
            .map(|found| ErrorRecord {
                function: found.function.as_ref().map(|function| function.shown(step.several)),
                binding: found.binding,
                diagnostic: Record::new(&source, &found.diagnostic),
            })
            .collect(),
    };
    rx_report::json_line(&record) + "\n"
}

/// Formats the first new error as a JSON line.
pub fn first_json(before: Option<&Phase>, phase: &Phase, step: &Step, found: &Found) -> String {
    let diff = match difference(before, phase, step, found) {
        Difference::Lines(diff) => Some(diff),
        Difference::Same => Some(String::new()),
        Difference::None | Difference::New => None,
    };
    let record = FirstRecord {
        first_new_error: FirstError {
            phase: step.number,
            file: &phase.shown,
            function: found.function.as_ref().map(|function| function.shown(step.several)),
            binding: found.binding,
            code: found.diagnostic.code.to_string(),
            message: &found.diagnostic.message,
            diff,
        },
    };
    rx_report::json_line(&record) + "\n"
}
