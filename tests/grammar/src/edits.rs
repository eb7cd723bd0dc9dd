//! Typical single edits, at lines of every kind: for the benchmark, and for the test that an incremental parse equals a
//! fresh one.

use std::ops::Range;

/// A replacement of `old` bytes at `at` by `new`.
#[derive(Clone, Copy, Debug)]
pub struct Replacement {
    /// The first byte.
    pub at: usize,
    /// The number of bytes to remove.
    pub old: usize,
    /// The text to insert.
    pub new: &'static str,
}

/// Finds a line of some kind at or after a byte, otherwise before it; returns its range without the line end.
pub type Find = fn(&str, usize) -> Option<Range<usize>>;

/// Creates an edit of the line at a range; `None` if the edit does not apply to the line.
pub type Make = fn(&str, Range<usize>) -> Option<Replacement>;

/// The kinds of lines.
pub const LINES: [(&str, Find); 10] = [
    ("first line", |text, _| Some(line_at(text, 0))),
    ("decorator of a class", |text, from| find(text, from, "@I.")),
    ("class", |text, from| find(text, from, "class ")),
    ("decorator of a function", |text, from| find(text, from, "@R.")),
    ("def", |text, from| find(text, from, "def ")),
    ("with", |text, from| find(text, from, "with ")),
    ("first binding", |text, from| find(text, from, "with ").map(|line| line_at(text, line.end + 1))),
    ("binding", |text, from| find(text, from, "lv")),
    ("output", |text, from| find(text, from, "R.output")),
    ("return", |text, from| find(text, from, "return ")),
];

/// The edits.
pub const EDITS: [(&str, Make); 37] = [
    ("blank before the text", |text, line| before(text, line, " ")),
    ("4 blanks before the text", |text, line| before(text, line, "    ")),
    ("newline before the text", |text, line| before(text, line, "\n")),
    ("letter before the text", |text, line| before(text, line, "x")),
    ("letter in the first word", |text, line| Some(insert((code(text, line.clone()) + 2).min(line.end), "x"))),
    ("number before the text", |text, line| before(text, line, "1")),
    ("bracket before the text", |text, line| before(text, line, "(")),
    ("quote before the text", |text, line| before(text, line, "\"")),
    ("triple quote before the text", |text, line| before(text, line, "\"\"\"")),
    ("# before the text", |text, line| before(text, line, "#")),
    ("a blank less before the text", |text, line| {
        (code(text, line.clone()) > line.start).then(|| delete(line.start, 1))
    }),
    ("no blank before the text", |text, line| {
        let indent = code(text, line.clone()) - line.start;
        (indent > 0).then(|| delete(line.start, indent))
    }),
    ("blank before the last character", |_, line| within(line, " ")),
    ("letter before the last character", |_, line| within(line, "x")),
    ("newline before the last character", |_, line| within(line, "\n")),
    ("( before the last character", |_, line| within(line, "(")),
    ("[ before the last character", |_, line| within(line, "[")),
    ("{ before the last character", |_, line| within(line, "{")),
    (") before the last character", |_, line| within(line, ")")),
    ("quote before the last character", |_, line| within(line, "\"")),
    ("triple quote before the last one", |_, line| within(line, "\"\"\"")),
    (": before the last character", |_, line| within(line, ":")),
    ("# before the last character", |_, line| within(line, "#")),
    ("letter at the end", |_, line| Some(insert(line.end, "x"))),
    ("newline at the end", |_, line| Some(insert(line.end, "\n"))),
    ("blanks of a new line at the end", |_, line| Some(insert(line.end, "\n        "))),
    ("( at the end", |_, line| Some(insert(line.end, "("))),
    (": at the end", |_, line| Some(insert(line.end, ":"))),
    ("= at the end", |_, line| Some(insert(line.end, " = "))),
    ("backslash at the end", |_, line| Some(insert(line.end, "\\"))),
    ("quote at the end", |_, line| Some(insert(line.end, "\""))),
    ("triple quote at the end", |_, line| Some(insert(line.end, "\"\"\""))),
    ("last character deleted", |_, line| (!line.is_empty()).then(|| delete(line.end - 1, 1))),
    ("line's end deleted", |text, line| (line.end < text.len()).then(|| delete(line.end, 1))),
    ("( deleted", |text, line| first(text, line, '(')),
    ("quote deleted", |text, line| first(text, line, '"')),
    ("line deleted", |text, line| (line.end < text.len()).then(|| delete(line.start, line.end + 1 - line.start))),
];

fn insert(at: usize, new: &'static str) -> Replacement {
    Replacement { at, old: 0, new }
}

fn delete(at: usize, old: usize) -> Replacement {
    Replacement { at, old, new: "" }
}

fn before(text: &str, line: Range<usize>, new: &'static str) -> Option<Replacement> {
    Some(insert(code(text, line), new))
}

fn within(line: Range<usize>, new: &'static str) -> Option<Replacement> {
    (!line.is_empty()).then(|| insert(line.end - 1, new))
}

fn first(text: &str, line: Range<usize>, wanted: char) -> Option<Replacement> {
    let at = text.get(line.clone())?.find(wanted)?;
    Some(delete(line.start + at, 1))
}

/// Returns the offset where a line's code starts.
fn code(text: &str, line: Range<usize>) -> usize {
    let code = text.get(line.clone()).unwrap_or_default();
    line.start + code.len() - code.trim_start().len()
}

/// Returns the line that contains a byte, without its line end.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    start..after.find('\n').map_or(text.len(), |newline| at + newline)
}

/// Finds a line that starts with `words` after its indentation.
fn find(text: &str, from: usize, words: &str) -> Option<Range<usize>> {
    let starts = |at: &usize| text.get(..*at).is_some_and(|before| before.trim_end_matches(' ').ends_with('\n'));
    let ahead = text.get(from..)?.match_indices(words).map(|(at, _)| from + at).find(starts);
    let at = ahead.or_else(|| text.get(..from)?.rmatch_indices(words).map(|(at, _)| at).find(starts))?;
    Some(line_at(text, at))
}
