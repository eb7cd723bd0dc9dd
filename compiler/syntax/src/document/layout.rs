//! Data that an item stores for its segments in addition to their texts: offsets, scan states and indentation errors.

use super::outline::{Entry, IndentationError};
use rx_base::{Diagnostic, Span};

/// A table with one row for each segment of an item, stored by columns. After an edit, the rows before and after the
/// edit are reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The byte offset of each segment in the item, then the total length.
    starts: Vec<u32>,
    /// The number of line breaks before each segment, then the total.
    lines: Vec<u32>,
    /// The scan's state at the segments' starts. Most segments of a body have the same, so each is stored with the first
    /// of the segments that have it.
    entries: Vec<(u32, Entry)>,
    /// The number of logical lines of each segment.
    statements: Vec<u32>,
    /// Indentation errors, in order, each with its segment; spans are relative to the segment's start.
    errors: Vec<(u32, IndentationError)>,
    /// The segments that may contain directives for rx, in order.
    directed: Vec<u32>,
}

/// The table's row for one segment.
pub(super) struct Row {
    pub(super) bytes: u32,
    pub(super) lines: u32,
    pub(super) entry: Entry,
    pub(super) statements: u32,
    pub(super) errors: Vec<IndentationError>,
    pub(super) directed: bool,
}

impl Layout {
    /// Creates a table without rows.
    pub(super) fn new() -> Layout {
        Layout {
            starts: vec![0],
            lines: vec![0],
            entries: Vec::new(),
            statements: Vec::new(),
            errors: Vec::new(),
            directed: Vec::new(),
        }
    }

    /// Returns the rows of the first `count` segments.
    pub(super) fn prefix(&self, count: usize) -> Layout {
        Layout {
            starts: front(&self.starts, count + 1),
            lines: front(&self.lines, count + 1),
            entries: front(&self.entries, self.entries.partition_point(|(segment, _)| (*segment as usize) < count)),
            statements: front(&self.statements, count),
            errors: front(&self.errors, self.errors.partition_point(|(segment, _)| (*segment as usize) < count)),
            directed: front(&self.directed, self.directed.partition_point(|segment| (*segment as usize) < count)),
        }
    }

    /// Appends a row.
    pub(super) fn push(&mut self, row: Row) {
        let segment = self.len() as u32;
        self.starts.push(self.byte_len() + row.bytes);
        self.lines.push(self.line_count() + row.lines);
        self.push_entry(segment, row.entry);
        self.statements.push(row.statements);
        self.errors.extend(row.errors.into_iter().map(|error| (segment, error)));
        self.directed.extend(row.directed.then_some(segment));
    }

    fn push_entry(&mut self, segment: u32, entry: Entry) {
        if self.entries.last().is_none_or(|(_, last)| *last != entry) {
            self.entries.push((segment, entry));
        }
    }

    /// Appends the rows of `other` from segment `first` on.
    pub(super) fn extend(&mut self, other: &Layout, first: usize) {
        let (bytes, lines) = (self.byte_len(), self.line_count());
        let segments = self.len() as u32;
        let (bytes_before, lines_before) = (other.start(first), other.line(first));
        self.starts.extend(other.starts.iter().skip(first + 1).map(|start| bytes + (start - bytes_before)));
        self.lines.extend(other.lines.iter().skip(first + 1).map(|line| lines + (line - lines_before)));
        let entries = other.entry(first).map(|entry| (first as u32, entry)).into_iter();
        let later = other.entries.iter().filter(|(segment, _)| *segment as usize > first).copied();
        for (segment, entry) in entries.chain(later) {
            self.push_entry(segment - first as u32 + segments, entry);
        }
        self.statements.extend(other.statements.iter().skip(first));
        let errors = other.errors.iter().filter(|(segment, _)| *segment as usize >= first);
        self.errors.extend(errors.map(|(segment, error)| (segment - first as u32 + segments, *error)));
        let directed = other.directed.iter().filter(|segment| **segment as usize >= first);
        self.directed.extend(directed.map(|segment| segment - first as u32 + segments));
    }

    /// Whether both have the same indentation errors.
    pub(super) fn same_errors(&self, other: &Layout) -> bool {
        self.errors == other.errors
    }

    /// The segments that may contain directives for rx.
    pub(super) fn directed(&self) -> &[u32] {
        &self.directed
    }

    /// The number of segments.
    pub(super) fn len(&self) -> usize {
        self.statements.len()
    }

    pub(super) fn byte_len(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    pub(super) fn line_count(&self) -> u32 {
        self.lines.last().copied().unwrap_or(0)
    }

    /// The byte offset of a segment; the total length for the index after the last.
    pub(super) fn start(&self, segment: usize) -> u32 {
        self.starts.get(segment).copied().unwrap_or(self.byte_len())
    }

    /// The number of line breaks before a segment.
    pub(super) fn line(&self, segment: usize) -> u32 {
        self.lines.get(segment).copied().unwrap_or(self.line_count())
    }

    /// The scan's state at a segment's start.
    pub(super) fn entry(&self, segment: usize) -> Option<Entry> {
        let after = self.entries.partition_point(|(first, _)| *first as usize <= segment);
        let (_, entry) = self.entries.get(after.checked_sub(1)?)?;
        (segment < self.len()).then_some(*entry)
    }

    /// The number of logical lines of a segment.
    pub(super) fn statements(&self, segment: usize) -> u32 {
        self.statements.get(segment).copied().unwrap_or(0)
    }

    /// The last segment that starts at or before a byte offset.
    pub(super) fn segment_at(&self, offset: u32) -> usize {
        last_at_or_before(&self.starts, offset, self.len())
    }

    /// The last segment that starts at or before a line.
    pub(super) fn segment_of_line(&self, line: u32) -> usize {
        last_at_or_before(&self.lines, line, self.len())
    }

    pub(super) fn indentation_diagnostics(&self) -> impl Iterator<Item = (usize, Diagnostic<Span>)> + '_ {
        self.errors
            .iter()
            .map(|(segment, error)| (*segment as usize, Diagnostic::new(error.code, error.span, error.message)))
    }
}

/// Copies the first `count` values, with capacity for as many values as there are.
fn front<T: Clone>(values: &[T], count: usize) -> Vec<T> {
    let mut copies = Vec::with_capacity(values.len());
    copies.extend_from_slice(values.get(..count).unwrap_or(values));
    copies
}

/// The index of the last of the first `len` values that is at most `wanted`; 0 if there is none. The values are sorted.
pub(super) fn last_at_or_before<T: Ord + Copy>(values: &[T], wanted: T, len: usize) -> usize {
    let values = values.get(..len).unwrap_or(values);
    values.partition_point(|value| *value <= wanted).saturating_sub(1)
}
