//! Between bytes, segments, and lines and columns.

use super::Document;
use super::layout::last_at_or_before;
use crate::segment::Segment;

/// What a column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units.
    Utf16,
    /// Characters.
    Utf32,
}

/// A place in a document as its segment holds it.
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
    /// Where an item starts, in bytes; the text's length for one past the last.
    pub fn item_start(&self, item: usize) -> usize {
        self.starts.get(item).copied().unwrap_or(self.len())
    }

    /// Where a segment of an item starts, in bytes of the text.
    pub fn segment_start(&self, item: usize, segment: usize) -> usize {
        let within = self.items.get(item).map_or(0, |item| item.segment_start(segment));
        self.item_start(item) + within
    }

    /// The segment that holds the byte at `offset`, or ends the text before it. `None` in an empty document alone.
    pub fn locate(&self, offset: usize) -> Option<Location> {
        let offset = offset.min(self.len());
        let item = last_at_or_before(&self.starts, offset, self.items.len());
        let within = offset - self.item_start(item);
        let layout = &self.items.get(item)?.layout;
        let segment = layout.segment_at(within as u32);
        Some(Location { item, segment, offset: within - layout.start(segment) as usize })
    }

    /// The segment at a location.
    pub fn segment(&self, location: Location) -> Option<&Segment> {
        Some(self.items.get(location.item)?.segments.get(location.segment)?)
    }

    /// Line and column, from 0, of a byte; one inside a character counts as the character's start. Characters and lines
    /// for people are [`Encoding::Utf32`] with 1 added to both.
    pub fn line_column(&self, offset: usize, encoding: Encoding) -> (u32, u32) {
        let Some(location) = self.locate(offset) else { return (0, 0) };
        let Some(segment) = self.segment(location) else { return (0, 0) };
        let text = segment.text();
        let before = &text[..text.floor_char_boundary(location.offset)];
        let line_start = line_start(text, before.len());
        let (breaks, _) = crate::line::count_newlines(&text[..line_start]);
        let item = self.lines.get(location.item).copied().unwrap_or(0);
        let line = item as u32 + self.items[location.item].layout.line(location.segment) + breaks;
        (line, columns(&before[line_start..], encoding, segment.is_ascii()))
    }

    /// The byte at a line and column, from 0. A line past the end is the text's end, a column past the line the line's.
    pub fn offset_of(&self, line: u32, column: u32, encoding: Encoding) -> usize {
        let line = line as usize;
        if line > self.lines.last().copied().unwrap_or(0) || self.items.is_empty() {
            return self.len();
        }
        let item = last_at_or_before(&self.lines, line, self.items.len());
        let within = (line - self.lines[item]) as u32;
        let layout = &self.items[item].layout;
        let segment = layout.segment_of_line(within);
        let text = self.items[item].segments.get(segment).map_or("", |segment| segment.text());
        let mut start = 0;
        for _ in layout.line(segment)..within {
            start = next_line(text, start);
        }
        self.segment_start(item, segment) + start + bytes_of_column(&text[start..], column, encoding)
    }
}

/// The start of the line that holds the byte at `offset`.
fn line_start(text: &str, offset: usize) -> usize {
    let bytes = text.as_bytes();
    // The newline of `\r\n` belongs to the line that it ends.
    let split = offset > 0 && bytes[offset - 1] == b'\r' && bytes.get(offset) == Some(&b'\n');
    let before = &bytes[..offset - usize::from(split)];
    before.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |newline| newline + 1)
}

/// The start of the line after the one that `start` starts; the text's end if there is none.
fn next_line(text: &str, start: usize) -> usize {
    let rest = &text.as_bytes()[start..];
    match rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        None => text.len(),
        Some(at) if rest[at..].starts_with(b"\r\n") => start + at + 2,
        Some(at) => start + at + 1,
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

/// The bytes before a column of the line that `text` starts with, at most the line's own; a column inside a character
/// is the character's start.
fn bytes_of_column(text: &str, column: u32, encoding: Encoding) -> usize {
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
