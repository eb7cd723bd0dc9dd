//! A document as a list of lines to print: statements with their depth, and the comments and blank lines around them.

use crate::ast::StatementKind;
use crate::document::{Document, FileKind, Item, ItemKind};
use crate::{Cursor, Segment, Statement};

/// A comment on a separate line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment<'d> {
    pub(crate) text: &'d str,
    pub(crate) depth: usize,
    /// Whether it follows a blank line.
    pub(crate) blank: bool,
}

/// A statement with the comments and blank lines around it.
pub(crate) struct Line<'d> {
    pub(crate) depth: usize,
    pub(crate) statement: &'d Statement,
    pub(crate) segment: &'d Segment,
    /// The comments above it.
    pub(crate) comments: Vec<Comment<'d>>,
    /// The comments between its own lines.
    pub(crate) inside: Vec<&'d str>,
    /// Whether it directly follows a blank line.
    pub(crate) blank: bool,
    /// The comment at the end of its last line.
    pub(crate) trailing: Option<&'d str>,
}

impl<'d> Line<'d> {
    pub(crate) fn kind(&self) -> &'d StatementKind {
        &self.statement.tree.kind
    }

    pub(crate) fn cursor(&self) -> Cursor<'d> {
        self.segment.cursor(self.statement)
    }
}

/// A run of lines that is printed without interruption.
pub(crate) struct Code<'d> {
    pub(crate) lines: Vec<Line<'d>>,
    /// Comments after the last statement.
    pub(crate) tail: Vec<Comment<'d>>,
    /// In Python files, the text before the first statement, which includes its indentation. It must not change.
    /// Otherwise empty.
    pub(crate) before: String,
    /// In Python files, the text after the last statement, which must not change. Otherwise empty.
    pub(crate) after: String,
}

/// A part of a document.
pub(crate) enum Part<'d> {
    /// Python that is printed verbatim.
    Verbatim(Vec<&'d Segment>),
    Code(Code<'d>),
}

/// Splits a document into parts. An `.rx` file is one code part. In a Python file, code alternates with the text around
/// it.
pub(crate) fn parts(document: &Document) -> Vec<Part<'_>> {
    if document.kind() == FileKind::Rx {
        return vec![Part::Code(read(document.items(), false))];
    }
    let runs = document.items().chunk_by(|a, b| is_code(a) == is_code(b));
    runs.map(part).collect()
}

fn part(run: &[Item]) -> Part<'_> {
    match run {
        [first, ..] if is_code(first) => Part::Code(read(run, true)),
        _ => Part::Verbatim(segments(run).collect()),
    }
}

fn is_code(item: &Item) -> bool {
    matches!(item.kind, ItemKind::ModuleHeader | ItemKind::ModuleStatement | ItemKind::Function(_))
}

fn segments(items: &[Item]) -> impl Iterator<Item = &Segment> {
    items.iter().flat_map(|item| item.segments.iter().map(|segment| &**segment))
}

/// Collects the lines of `items`. In a Python file the text before the first statement and after the last is returned
/// separately.
fn read(items: &[Item], python: bool) -> Code<'_> {
    let mut reader = Reader { newlines: 1, surroundings: python, ..Reader::default() };
    for segment in segments(items) {
        reader.segment(segment);
    }
    let (mut before, mut after) = (String::new(), String::new());
    if python {
        if let Some(last) = reader.lines.last_mut() {
            last.trailing = None;
        }
        reader.pending.clear();
        let text: String = segments(items).map(Segment::text).collect();
        before.push_str(text.get(..reader.first_start).unwrap_or(""));
        after.push_str(text.get(reader.last_end..).unwrap_or(""));
    }
    let tail = reader.take_comments(0, false);
    Code { lines: reader.lines, tail, before, after }
}

/// A comment whose depth depends on the next statement.
struct Pending<'d> {
    text: &'d str,
    column: u32,
    blank: bool,
}

#[derive(Default)]
struct Reader<'d> {
    lines: Vec<Line<'d>>,
    pending: Vec<Pending<'d>>,
    /// The number of line breaks since the last statement or comment.
    newlines: usize,
    /// The columns of the open blocks.
    indents: Vec<u32>,
    /// Whether the text around the code is kept separately, verbatim.
    surroundings: bool,
    /// The number of bytes in the segments read so far.
    offset: usize,
    first_start: usize,
    last_end: usize,
}

impl<'d> Reader<'d> {
    fn segment(&mut self, segment: &'d Segment) {
        let text = segment.text();
        let mut comments = segment.comments().peekable();
        let mut at = 0;
        for statement in segment.tree().statements.iter() {
            let (start, end) = (statement.span.start as usize, statement.span.end as usize);
            while let Some(comment) = comments.next_if(|comment| (comment.start as usize) < start) {
                self.gap(text, at, comment.start as usize);
                self.comment(text, comment.range());
                at = comment.end as usize;
            }
            self.gap(text, at, start);
            let blank = std::mem::take(&mut self.newlines) > 1;
            let mut inside = Vec::new();
            while let Some(comment) = comments.next_if(|comment| (comment.start as usize) < end) {
                inside.push(text.get(comment.range()).unwrap_or("").trim_end());
            }
            self.statement(segment, statement, blank, inside);
            at = end;
        }
        for comment in comments {
            self.gap(text, at, comment.start as usize);
            self.comment(text, comment.range());
            at = comment.end as usize;
        }
        self.gap(text, at, text.len());
        self.offset += text.len();
    }

    fn gap(&mut self, text: &str, from: usize, to: usize) {
        let bytes = text.as_bytes().get(from..to).unwrap_or_default();
        let newlines = bytes.iter().enumerate().filter(|(at, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        self.newlines += newlines.count();
    }

    fn comment(&mut self, text: &'d str, range: std::ops::Range<usize>) {
        let comment = text.get(range.clone()).unwrap_or("").trim_end();
        let newlines = std::mem::take(&mut self.newlines);
        match self.lines.last_mut() {
            Some(last) if newlines == 0 && last.trailing.is_none() && self.pending.is_empty() => {
                last.trailing = Some(comment);
            }
            None if self.surroundings => {}
            _ => self.pending.push(Pending { text: comment, column: column(text, range.start), blank: newlines > 1 }),
        }
    }

    fn statement(&mut self, segment: &'d Segment, statement: &'d Statement, blank: bool, inside: Vec<&'d str>) {
        if self.lines.is_empty() {
            self.first_start = self.offset + statement.span.start as usize;
        }
        self.last_end = self.offset + statement.span.end as usize;
        let opened = self.lines.last().is_some_and(|line| line.kind().opens_block());
        let deeper = self.lines.last().map_or(0, |line| line.depth + 1);
        let depth = if statement.inline {
            if opened { deeper } else { deeper.saturating_sub(1) }
        } else {
            self.depth(statement.indent, opened)
        };
        let comments = self.take_comments(depth, opened && depth == deeper);
        if !statement.inline {
            self.indents.truncate(depth);
            self.indents.push(statement.indent);
        }
        self.lines.push(Line { depth, statement, segment, comments, inside, blank, trailing: None });
    }

    /// Returns the depth of a statement in column `indent`: the number of open blocks that contain it.
    fn depth(&self, indent: u32, opened: bool) -> usize {
        let open = self.indents.len();
        if opened && self.indents.last().is_some_and(|top| indent > *top) {
            return open;
        }
        let inside = self.indents.iter().rposition(|level| *level <= indent);
        inside.unwrap_or(0)
    }

    /// Returns the pending comments. Each is at least as deep as the statement below it, and exactly as deep if that is
    /// the `first` of a block.
    fn take_comments(&mut self, depth: usize, first: bool) -> Vec<Comment<'d>> {
        let indents = &self.indents;
        let place = |pending: Pending<'d>| {
            let level = indents.iter().rposition(|level| *level <= pending.column).unwrap_or(0);
            let level = if first { depth } else { level.max(depth) };
            Comment { text: pending.text, depth: level, blank: pending.blank }
        };
        std::mem::take(&mut self.pending).into_iter().map(place).collect()
    }
}

/// Returns the column of `offset`: the number of characters since the line's start, where a tab advances to the next
/// multiple of 8.
fn column(text: &str, offset: usize) -> u32 {
    let line = text.get(..offset).unwrap_or("");
    let line = line.rsplit(['\n', '\r']).next().unwrap_or("");
    line.chars().fold(0, |column, c| if c == '\t' { (column / 8 + 1) * 8 } else { column + 1 })
}
