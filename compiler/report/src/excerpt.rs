//! Excerpts: copies the few lines that a report shows out of the text, and maps the labels to them.

use crate::source::{Located, Source, ceil_char_boundary};
use crate::window::ShownLine;
use rx_base::Span;
use std::ops::Range;

/// The lines on which labels begin or end. Between two lines that are not adjacent there is one empty line.
/// For example, labels on lines 3 and 10 give `text` with three lines, and `numbers` `[3, 0, 10]`.
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// The line number in the source of each line of `text`; 0 for a separating line.
    pub(crate) numbers: Vec<u32>,
    /// The position in `text` of each requested span, in order; never empty.
    pub(crate) spans: Vec<Range<usize>>,
}

/// The located ends of a span.
struct Ends {
    start: Located,
    end: Located,
}

/// A line to show, with the parts that must be visible.
struct Line {
    /// The line of the text, from 1.
    row: u32,
    /// The number that is shown: in a notebook, that of the line in its cell.
    number: u32,
    start: usize,
    parts: Vec<Range<usize>>,
}

impl Excerpt {
    /// Creates the excerpt of `source` that shows all `spans`.
    pub(crate) fn new(source: &Source<'_>, spans: &[Span]) -> Excerpt {
        let ends: Vec<Ends> = spans.iter().map(|span| find(source, *span)).collect();
        let lines = lines(&ends);
        let mut excerpt = Excerpt { text: String::new(), numbers: Vec::new(), spans: Vec::new() };
        // For each shown line: its first byte in the source and in the excerpt, and the line itself.
        let mut shown: Vec<(usize, usize, ShownLine)> = Vec::with_capacity(lines.len());
        let mut last_row = None;
        for line in &lines {
            if last_row.replace(line.row).is_some_and(|last| last + 1 != line.row) {
                excerpt.push("", 0);
            }
            let window = ShownLine::new(source.text(), line.start, &line.parts);
            shown.push((line.start, excerpt.text.len(), window));
            if let Some((_, _, window)) = shown.last() {
                excerpt.push(&window.text, line.number);
            }
        }
        let at = |place: &Located, of: fn(&ShownLine, usize) -> usize| {
            let index = shown.binary_search_by_key(&place.line_start, |(start, ..)| *start).ok();
            index.and_then(|index| shown.get(index)).map_or(0, |(_, base, line)| base + of(line, place.offset))
        };
        let spans = ends.iter().map(|Ends { start, end }| {
            let start = at(start, ShownLine::start);
            let end = at(end, ShownLine::end);
            // An empty span is drawn under the next character, or under the line end: every line ends in `\n`.
            start..if end > start { end } else { ceil_char_boundary(&excerpt.text, start + 1) }
        });
        excerpt.spans = spans.collect();
        excerpt
    }

    fn push(&mut self, line: &str, number: u32) {
        self.text.push_str(line);
        self.text.push('\n');
        self.numbers.push(number);
    }
}

/// Locates both ends of a span. A span that includes a line end ends on that line, not on the next.
fn find(source: &Source<'_>, span: Span) -> Ends {
    let start = source.locate(span.start as usize);
    let mut end = source.locate((span.end as usize).max(start.offset));
    if end.line_start == end.offset && end.offset > start.offset {
        end = source.locate(end.offset - 1);
    }
    Ends { start, end }
}

/// Returns the lines to show, in order, each once.
fn lines(ends: &[Ends]) -> Vec<Line> {
    let mut parts: Vec<(&Located, Range<usize>)> = Vec::new();
    for Ends { start, end } in ends {
        if start.row == end.row {
            parts.push((start, start.offset..end.offset.max(start.offset)));
        } else {
            parts.push((start, start.offset..start.offset));
            parts.push((end, end.offset..end.offset));
        }
    }
    parts.sort_by_key(|(at, part)| (at.row, part.start, part.end));
    let mut lines: Vec<Line> = Vec::new();
    for (at, part) in parts {
        match lines.last_mut() {
            Some(line) if line.row == at.row => line.parts.push(part),
            _ => {
                let (row, number, start) = (at.row, at.position.line, at.line_start);
                lines.push(Line { row, number, start, parts: vec![part] });
            }
        }
    }
    lines
}
