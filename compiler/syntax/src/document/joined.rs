//! Joins several successive changes of a document into one edit.
//!
//! The positions of each change refer to the text after the changes before it, as in the language server protocol. The
//! changes are applied to a window of whole lines, which grows as needed. So the document is parsed again once, and not
//! once per change. For example, inserting `a` at (3, 0), then `b` at (3, 1), is the insertion of `ab` at (3, 0).

use super::Document;
use super::position::{Encoding, bytes_of_column};
use crate::line;
use std::ops::Range;

/// The maximal size of a window in bytes. Changes further apart become separate edits.
const MAX_WINDOW: usize = 1 << 16;

/// A line and a column, both from 0.
pub type Point = (u32, u32);

/// One edit that has the effect of several successive changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedEdit {
    /// The bytes of the document to replace.
    pub range: Range<usize>,
    /// The replacement.
    pub text: String,
    /// The number of changes that it contains.
    pub count: usize,
}

/// A range of whole lines of a document, with the changes so far applied.
struct Window<'d> {
    document: &'d Document,
    encoding: Encoding,
    /// The lines' bytes in the unchanged document.
    range: Range<usize>,
    /// The lines in the unchanged document; the end is exclusive.
    lines: Range<u32>,
    text: String,
}

impl Document {
    /// Joins the first of `changes` with as many of the following ones as fit into one window. Positions outside the
    /// text are clamped as in [`Document::offset_of`], and an end before its start is taken as the start. `None` if
    /// there are no changes.
    pub fn join<'c>(
        &self,
        changes: impl IntoIterator<Item = (Point, Point, &'c str)>,
        encoding: Encoding,
    ) -> Option<JoinedEdit> {
        let mut changes = changes.into_iter();
        let (start, end, new) = changes.next()?;
        let at = |(line, column): Point| self.offset_of(line, column, encoding);
        let first = at(start)..at(end).max(at(start));
        let mut joined = JoinedEdit { range: first, text: new.to_owned(), count: 1 };
        let Some(second) = changes.next() else { return Some(joined) };
        let line = self.line_column(joined.range.start, encoding).0;
        let at = self.offset_of(line, 0, encoding);
        let mut window = Window { document: self, encoding, range: at..at, lines: line..line, text: String::new() };
        if !window.change((start, end, new)) {
            return Some(joined);
        }
        for change in std::iter::once(second).chain(changes) {
            // If this change does not fit into the window, undo its partial effect.
            let so_far = (window.range.clone(), window.text.clone());
            if !window.change(change) {
                (window.range, window.text) = so_far;
                break;
            }
            joined.count += 1;
        }
        if joined.count > 1 {
            (joined.range, joined.text) = (window.range, window.text);
        }
        Some(joined)
    }
}

impl Window<'_> {
    /// Applies a change. Returns `false` if the window would become too large; the window must then not be used.
    fn change(&mut self, (start, end, new): (Point, Point, &str)) -> bool {
        if !self.cover(start.0) || !self.cover(end.0) {
            return false;
        }
        let from = self.offset(start);
        let to = self.offset(end).max(from);
        self.text.replace_range(from..to, new);
        self.end_in_a_line_break()
    }

    /// Extends the window upwards or downwards to include a line of the changed text.
    fn cover(&mut self, line: u32) -> bool {
        if line < self.lines.start {
            let start = self.document.offset_of(line, 0, self.encoding);
            if self.range.start - start > MAX_WINDOW {
                return false;
            }
            self.text.insert_str(0, &self.document.slice(start..self.range.start));
            self.range.start = start;
            self.lines.start = line;
        }
        let behind = self.lines.start.saturating_add(line::count_newlines(&self.text).0);
        line < behind || self.extend(line - behind)
    }

    /// Extends the window by the next line of the document and `more` further ones.
    fn extend(&mut self, more: u32) -> bool {
        self.lines.end = self.lines.end.saturating_add(more).saturating_add(1);
        let end = self.document.offset_of(self.lines.end, 0, self.encoding);
        if end - self.range.end > MAX_WINDOW {
            return false;
        }
        self.text.push_str(&self.document.slice(self.range.end..end));
        self.range.end = end;
        true
    }

    /// The offset in the window of a position in a line that it covers; the window's end if the text has no such line.
    fn offset(&self, (line, column): Point) -> usize {
        let starts = line::line_starts(&self.text);
        let start = match line.saturating_sub(self.lines.start).checked_sub(1) {
            None => 0,
            Some(before) => starts.get(before as usize).map_or(self.text.len(), |start| *start as usize),
        };
        start + bytes_of_column(self.text.get(start..).unwrap_or_default(), column, self.encoding)
    }

    /// Extends the window until it ends in a line break, because a change may have joined its last line with the next
    /// one. Returns `false` after a lone `\r`: text in the window that begins with `\n` would form one line break with
    /// it.
    fn end_in_a_line_break(&mut self) -> bool {
        let is_whole = |window: &Self| window.text.is_empty() || window.text.ends_with('\n');
        while self.range.end < self.document.len() && !is_whole(self) {
            if self.text.len() > MAX_WINDOW || !self.extend(0) {
                return false;
            }
        }
        let before = self.range.start.saturating_sub(1)..self.range.start;
        self.text.len() <= MAX_WINDOW && self.document.slice(before) != "\r"
    }
}
