//! Several changes of a document, one after the other, as one edit.
//!
//! Each change names places of the text that those before it have made. They are made in a window of whole lines, which
//! grows as they need it, so that the document is read again once and not per change.

use super::Document;
use super::position::{Encoding, bytes_of_column};
use crate::line;
use std::ops::Range;

/// Changes further apart are edits of their own.
const MAX_WINDOW: usize = 1 << 16;

/// Line and column, from 0.
pub type Point = (u32, u32);

/// What successive changes come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedEdit {
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// What replaces them.
    pub text: String,
    /// How many of the changes this is.
    pub count: usize,
}

/// Whole lines of a document, and what has become of them.
struct Window<'d> {
    document: &'d Document,
    encoding: Encoding,
    /// The lines' bytes in the document.
    range: Range<usize>,
    /// The first line, and the first behind the last.
    lines: Range<u32>,
    text: String,
}

impl Document {
    /// The first of `changes`, with as many of the next as can be made together with it. A place outside the text is cut
    /// down as [`Document::offset_of`] does, an end before its start is its start. `None`: there are no changes.
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
            // What a change that goes too far has done to the window is left out.
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
    /// Makes a change. False: it goes too far; the window is then not to be used.
    fn change(&mut self, (start, end, new): (Point, Point, &str)) -> bool {
        if !self.cover(start.0) || !self.cover(end.0) {
            return false;
        }
        let from = self.offset(start);
        let to = self.offset(end).max(from);
        self.text.replace_range(from..to, new);
        self.end_in_a_line_break()
    }

    /// Takes in the lines up to one of the changed text.
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

    /// Takes in the next line of the document and `more`.
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

    /// The byte of the window at a place of a line that it covers, or its end where the text has no such line.
    fn offset(&self, (line, column): Point) -> usize {
        let starts = line::line_starts(&self.text);
        let start = match line.saturating_sub(self.lines.start).checked_sub(1) {
            None => 0,
            Some(before) => starts.get(before as usize).map_or(self.text.len(), |start| *start as usize),
        };
        start + bytes_of_column(self.text.get(start..).unwrap_or_default(), column, self.encoding)
    }

    /// Takes in the line that the last one was joined with. A lone `\r` next to the window could become half of a line break:
    /// no window stands there.
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
