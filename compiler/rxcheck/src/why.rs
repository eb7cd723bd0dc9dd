//! `--why`: explains where a dim, rank or dtype of a value comes from.

use crate::args::Args;
use crate::check::{Options, workspace};
use crate::content::read;
use crate::discover::{Input, discover};
use crate::output::{Failure, Status, print};
use crate::{panics, pool};
use rx_base::{Label, Severity, Span};
use rx_db::{Asked, Encoding, Step, StepKind, StructInfo, Trace, Why};
use rx_report::{Format, FullReport, Source, printable};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;

/// The most steps shown in a report; JSON has all.
const MOST_LINES: usize = 48;

/// The most operators named for a run of steps that change nothing.
const MOST_NAMES: usize = 4;

/// A position `FILE:LINE` or `FILE:LINE:COLUMN`; lines and columns count from 1. The path may contain colons:
/// for example, `C:\net.rx:12` is line 12 of `C:\net.rx`. In a notebook, a position is as diagnostics show it:
/// `FILE:cell 3, line 7` or `FILE:cell 3, line 7, column 5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    path: PathBuf,
    cell: Option<u32>,
    line: u32,
    column: Option<u32>,
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Position, String> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
        let usage = || format!("`{text}` is no FILE:LINE or FILE:LINE:COLUMN");
        let (rest, last) = text.rsplit_once(':').ok_or_else(usage)?;
        if let Some(place) = last.strip_prefix("cell ").filter(|_| !rest.is_empty()) {
            let (cell, place) = place.split_once(", line ").ok_or_else(usage)?;
            let (line, column) = place.split_once(", column ").map_or((place, None), |(line, it)| (line, Some(it)));
            let counted = |text| number(text).ok_or_else(usage);
            let column = column.map(counted).transpose()?;
            return Ok(Position { path: rest.into(), cell: Some(counted(cell)?), line: counted(line)?, column });
        }
        let last = number(last).ok_or_else(usage)?;
        let (path, line, column) = match rest.rsplit_once(':').map(|(path, line)| (path, number(line))) {
            Some((path, Some(line))) => (path, line, Some(last)),
            _ => (rest, last, None),
        };
        if path.is_empty() {
            return Err(usage());
        }
        Ok(Position { path: path.into(), cell: None, line, column })
    }
}

/// A value of `--dim`: an axis, `dtype` or `rank`. For a field of a tuple it follows the field's index and a dot.
/// For example, `1.0` is axis 0 of field 1, and `1.dtype` is the dtype of field 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part(Asked);

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        text.parse().map(Part)
    }
}

/// Answers `--why`.
pub fn why(args: &Args, position: &Position) -> Status {
    let paths = std::slice::from_ref(&position.path);
    let found = discover(args, paths);
    if let Some(status) = crate::mistaken(args, &found) {
        return status;
    }
    let mut status = Status::Clean;
    for failure in &found.failures {
        status = status.max(failure.say());
    }
    // Run on a worker thread, whose stack is large enough for deeply nested text.
    let asked = pool::in_order(
        &found.inputs,
        NonZeroUsize::MIN,
        |input| match panics::catch(|| answer(args, input, position)) {
            Ok(answer) => answer,
            Err(panic) => Err(Failure::internal(&input.shown, &panic)),
        },
        |answer| {
            let failed = match answer {
                Ok(text) => print(&text).is_err_and(|ended| {
                    status = status.max(ended);
                    true
                }),
                Err(failure) => {
                    status = status.max(failure.say());
                    false
                }
            };
            if failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    if asked.is_err() { Status::Failed } else { status }
}

fn answer(args: &Args, input: &Input, position: &Position) -> Result<String, Failure> {
    let content = read(input).map_err(|error| Failure::new(input.shown.as_ref(), &error))?;
    let (workspace, file) = workspace(&content.code(&content.text), input, &Options::new(args));
    let place = shown(input, position);
    let all = Asked::Everything;
    let asked = args.dim.as_ref().map_or(&all, |part| &part.0);
    let line = content.line(position.cell, position.line - 1);
    let line = line.ok_or_else(|| Failure::usage(format!("{place}: requires a line of a code cell of Python")))?;
    let found = match position.column {
        Some(column) => {
            let document = workspace.document(file);
            let offset = document.offset_of(line, column - 1, Encoding::Utf32);
            let inside = document.line_column(offset, Encoding::Utf32).0 == line;
            if inside { workspace.why(file, offset, asked) } else { None }
        }
        None => workspace.why_line(file, line, asked),
    };
    let Some(why) = found else {
        return Err(Failure::usage(format!("{place}: there is no value of a Relax function there")));
    };
    if why.traces.is_empty() {
        let what = match (&why.ty, &args.dim) {
            (StructInfo::Tuple(_), Some(_)) => "say which field: `--dim 0.1` is axis 1 of field 0",
            (_, Some(_)) => "there is no such part to trace",
            (_, None) => "nothing of it is known",
        };
        return Err(Failure::usage(format!("{place}: {} is {}; {what}", why.subject, why.ty)));
    }
    let source = content.source(&input.shown, &content.text);
    Ok(match (args.format(), &why.traces[..]) {
        (Format::Json, _) => rx_report::json_line(&record(&source, &why)) + "\n",
        (Format::Text, [only]) => drawn(&source, &why, only, args.color()),
        (Format::Text, _) => summary(&source, &why),
        _ => why.traces.iter().map(|trace| concise(&source, &why, trace)).collect(),
    })
}

/// Formats the position that was asked for.
fn shown(input: &Input, Position { cell, line, column, .. }: &Position) -> String {
    let asked = rx_report::Position { cell: *cell, line: *line, column: column.unwrap_or(1) };
    match column {
        Some(_) => format!("{}:{asked}", input.shown),
        None => format!("{}:{}", input.shown, asked.line_after_path()),
    }
}

/// Renders the report of one chain of steps.
fn drawn(source: &Source<'_>, why: &Why<Span>, trace: &Trace<Span>, color: bool) -> String {
    let telling = trace.steps.iter().filter(|step| !step.unchanged);
    let labels: Vec<Label<Span>> = telling.map(|step| Label { place: step.place, text: step.text.clone() }).collect();
    let notes = vec![chain(source, trace).join("\n")];
    let story = FullReport {
        title: "why".to_owned(),
        severity: Severity::Info,
        message: &format!("{} of {} is {}", trace.part, why.subject, trace.fact),
        primary: why.place,
        primary_label: &format!("{} is {}", trace.part, trace.fact),
        labels: &labels,
        notes: &notes,
        help: &[],
        fixes: &[],
    };
    story.drawn(source, color)
}

/// Formats the chain: one line per step that changes something, and one per run of steps that do not.
fn chain(source: &Source<'_>, trace: &Trace<Span>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = &trace.steps[..];
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|step| step.unchanged && step.kind == StepKind::Operator).count();
        if run > 1 {
            let (kept, after) = rest.split_at(run);
            lines.push(kept_line(source, kept));
            rest = after;
            continue;
        }
        let line = position_of(source, first.place).line_words();
        lines.push(format!("{line}: {}{}", first.text, details(source, first)));
        rest = rest.get(1..).unwrap_or_default();
    }
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        let tail = lines.split_off(lines.len() - MOST_LINES / 2);
        lines.truncate(MOST_LINES / 2);
        lines.push(format!("… {more} more (--format json has all) …"));
        lines.extend(tail);
    }
    lines
}

fn position_of(source: &Source<'_>, span: Span) -> rx_report::Position {
    source.position(span.start as usize)
}

/// Formats a run of steps that change nothing, for example
/// `lines 31 to 12: 9 steps change nothing (R.nn.relu, R.add)`.
fn kept_line(source: &Source<'_>, steps: &[Step<Span>]) -> String {
    let mut names: Vec<String> = Vec::new();
    for step in steps {
        let name = step.callee.map_or_else(String::new, |callee| format!("R.{callee}"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len() > MOST_NAMES;
    names.truncate(MOST_NAMES);
    let line = |step: Option<&Step<Span>>| step.map(|step| position_of(source, step.place));
    let words = match (line(steps.first()), line(steps.last())) {
        (Some(first), Some(last)) if first.cell.is_some() => format!("{} to {}", first.line_words(), last.line_words()),
        (Some(first), Some(last)) => format!("lines {} to {}", first.line, last.line),
        _ => String::new(),
    };
    let more = if more { ", …" } else { "" };
    format!("{words}: {} steps change nothing ({}{more})", steps.len(), names.join(", "))
}

fn details(source: &Source<'_>, step: &Step<Span>) -> String {
    let line_of = |span| position_of(source, span).line_words();
    let own = line_of(step.place);
    let details = step.details.iter().map(|detail| match detail.place {
        Some(place) if line_of(place) == own => detail.text.clone(),
        Some(place) => format!("{} ({})", detail.text, line_of(place)),
        None => detail.text.clone(),
    });
    let details: Vec<String> = details.collect();
    if details.is_empty() { String::new() } else { format!("  [{}]", details.join("; ")) }
}

/// Summarizes every part of a value, one line each.
fn summary(source: &Source<'_>, why: &Why<Span>) -> String {
    let position = source.position(why.place.start as usize);
    let mut lines = vec![format!("{}:{position}: {}: {}", source.name(), why.subject, why.ty)];
    for trace in &why.traces {
        let reported = trace.steps.iter().find(|step| !step.unchanged);
        let end = trace.steps.last();
        let said = |step: &Step<Span>| format!("{} ({})", step.text, position_of(source, step.place).line_words());
        let text = match (reported, end) {
            (Some(reported), Some(end)) if reported != end => format!("{}; from {}", said(reported), said(end)),
            (_, Some(end)) => said(end),
            (_, None) => String::new(),
        };
        lines.push(format!("  {} = {}: {text}", trace.part, trace.fact));
    }
    lines.push("  --dim with an axis, `dtype` or `rank` shows the whole chain".to_owned());
    lines.into_iter().map(|line| line.chars().map(printable).chain(['\n']).collect::<String>()).collect()
}

/// Formats one line per step.
fn concise(source: &Source<'_>, why: &Why<Span>, trace: &Trace<Span>) -> String {
    let position = source.position(why.place.start as usize);
    let head = format!("{}:{position}", source.name());
    let mut lines = vec![format!("{head}: {} of {} is {}", trace.part, why.subject, trace.fact)];
    for step in &trace.steps {
        let position = source.position(step.place.start as usize);
        let details = details(source, step);
        lines.push(format!("{}:{position}: {}{details}", source.name(), step.text));
    }
    lines.into_iter().map(|line| line.chars().map(printable).chain(['\n']).collect::<String>()).collect()
}

/// The answer as `--format json` writes it (`docs/json.md`).
#[derive(Serialize)]
struct Record<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    line: u32,
    column: u32,
    subject: &'a str,
    struct_info: String,
    traces: Vec<TraceRecord<'a>>,
}

#[derive(Serialize)]
struct TraceRecord<'a> {
    part: &'a str,
    value: &'a str,
    steps: Vec<StepRecord<'a>>,
}

#[derive(Serialize)]
struct StepRecord<'a> {
    kind: &'static str,
    end: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    line: u32,
    column: u32,
    variable: Option<&'a str>,
    callee: Option<&'a str>,
    part: &'a str,
    value: &'a str,
    formula: Option<&'a str>,
    text: &'a str,
    unchanged: bool,
    details: Vec<DetailRecord<'a>>,
}

#[derive(Serialize)]
struct DetailRecord<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    line: Option<u32>,
    column: Option<u32>,
}

fn record<'a>(source: &Source<'a>, why: &'a Why<Span>) -> Record<'a> {
    let at = |span: Span| source.position(span.start as usize);
    let detail = |detail: &'a rx_db::Detail<Span>| {
        let position = detail.place.map(at);
        DetailRecord {
            text: &detail.text,
            cell: position.and_then(|position| position.cell),
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
        }
    };
    let step = |step: &'a Step<Span>| {
        let position = at(step.place);
        StepRecord {
            kind: step.kind.name(),
            end: step.kind.is_end(),
            cell: position.cell,
            line: position.line,
            column: position.column,
            variable: step.variable.as_ref().map(|name| name.as_str()),
            callee: step.callee.as_ref().map(|name| name.as_str()),
            part: &step.part,
            value: &step.fact,
            formula: step.formula.as_deref(),
            text: &step.text,
            unchanged: step.unchanged,
            details: step.details.iter().map(detail).collect(),
        }
    };
    let trace = |trace: &'a Trace<Span>| TraceRecord {
        part: &trace.part,
        value: &trace.fact,
        steps: trace.steps.iter().map(step).collect(),
    };
    let position = at(why.place);
    Record {
        file: source.name(),
        cell: position.cell,
        line: position.line,
        column: position.column,
        subject: &why.subject,
        struct_info: why.ty.to_string(),
        traces: why.traces.iter().map(trace).collect(),
    }
}
