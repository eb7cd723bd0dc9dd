//! Conversions between byte offsets, segments, and lines and columns.

use super::Document;
use super::layout::last_at_or_before;
use crate::segment::Segment;

/// The unit in which columns are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units.
    Utf16,
    /// Characters.
    Utf32,
}

/// A position in a document, relative to the segment that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The item's index.
    pub item: usize,
    /// The segment's index in the item.
    pub segment: usize,
    /// Bytes from the segment's start.
    pub offset: usize,
}

impl Document {
    /// The byte offset of an item; the text's length for the index after the last.
    pub fn item_start(&self, item: usize) -> usize {
        self.starts.get(item).copied().unwrap_or(self.len())
    }

    /// The byte offset in the text of a segment of an item.
    pub fn segment_start(&self, item: usize, segment: usize) -> usize {
        let within = self.items.get(item).map_or(0, |item| item.segment_start(segment));
        self.item_start(item) + within
    }

    /// Returns the segment that contains the byte at `offset`; at the text's end, the last segment. `None` only in an
    /// empty document.
    pub fn locate(&self, offset: usize) -> Option<Location> {
        let offset = offset.min(self.len());
        let item = last_at_or_before(&self.starts, offset, self.items.len());
        let within = offset - self.item_start(item);
        let layout = &self.items.get(item)?.layout;
        let segment = layout.segment_at(within as u32);
        Some(Location { item, segment, offset: within - layout.start(segment) as usize })
    }

    /// Returns the segment at a location.
    pub fn segment(&self, location: Location) -> Option<&Segment> {
        Some(self.items.get(location.item)?.segments.get(location.segment)?)
    }

    /// Returns the line and column, both from 0, of a byte offset. An offset inside a character counts as the
    /// character's start. For output to users, use [`Encoding::Utf32`] and add 1 to both.
    pub fn line_column(&self, offset: usize, encoding: Encoding) -> (u32, u32) {
        let Some(location) = self.locate(offset) else { return (0, 0) };
        let Some((item, segment)) = self.items.get(location.item).zip(self.segment(location)) else { return (0, 0) };
        let text = segment.text();
        let end = text.floor_char_boundary(location.offset);
        let starts = segment.line_starts();
        let breaks = starts.partition_point(|start| *start as usize <= end);
        let line_start = breaks.checked_sub(1).and_then(|last| starts.get(last)).map_or(0, |start| *start as usize);
        let lines_before = self.lines.get(location.item).copied().unwrap_or(0) as u32;
        let line = lines_before + item.layout.line(location.segment) + breaks as u32;
        (line, columns(text.get(line_start..end).unwrap_or_default(), encoding, segment.is_ascii()))
    }

    /// Returns the byte offset of a line and column, both from 0. A line after the last gives the text's end, a column
    /// after the end of the line gives the line's end.
    pub fn offset_of(&self, line: u32, column: u32, encoding: Encoding) -> usize {
        if line as usize > self.lines.last().copied().unwrap_or(0) {
            return self.len();
        }
        let index = last_at_or_before(&self.lines, line as usize, self.items.len());
        let Some(item) = self.items.get(index) else { return self.len() };
        let within = line - self.lines.get(index).copied().unwrap_or(0) as u32;
        let at = item.layout.segment_of_line(within);
        let Some(segment) = item.segments.get(at) else { return self.len() };
        let line = (within - item.layout.line(at)) as usize;
        let start =
            line.checked_sub(1).and_then(|before| segment.line_starts().get(before)).map_or(0, |start| *start as usize);
        let rest = segment.text().get(start..).unwrap_or_default();
        self.segment_start(index, at) + start + bytes_of_column(rest, column, encoding)
    }
}

fn columns(text: &str, encoding: Encoding, ascii: bool) -> u32 {
    let count = match encoding {
        Encoding::Utf8 => text.len(),
        _ if ascii => text.len(),
        Encoding::Utf16 => text.chars().map(char::len_utf16).sum(),
        Encoding::Utf32 => text.chars().count(),
    };
    count as u32
}

/// Returns the number of bytes before a column of the first line of `text`, at most that line's length. A column inside
/// a character counts as the character's start.
pub(super) fn bytes_of_column(text: &str, column: u32, encoding: Encoding) -> usize {
    let mut left = column as usize;
    for (at, character) in text.char_indices() {
        let width = match encoding {
            Encoding::Utf8 => character.len_utf8(),
            Encoding::Utf16 => character.len_utf16(),
            Encoding::Utf32 => 1,
        };
        if matches!(character, '\n' | '\r') || left < width {
            return at;
        }
        left -= width;
    }
    text.len()
}
