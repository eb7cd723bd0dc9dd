//! Byte ranges.

use std::ops::Range;

/// A half-open byte range `[start, end)` of a text. The span does not identify the text; its owner does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the span `[start, end)`.
    #[inline]
    pub const fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// Creates the empty span at `offset`.
    pub const fn empty(offset: u32) -> Span {
        Span { start: offset, end: offset }
    }

    /// The number of bytes.
    pub const fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the span contains no byte.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns the smallest span that contains both.
    pub fn cover(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether `offset` is in the span or at its end.
    pub const fn touches(self, offset: u32) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// Returns the span moved right by `by` bytes.
    #[inline]
    pub const fn shift(self, by: u32) -> Span {
        Span { start: self.start + by, end: self.end + by }
    }

    /// Returns the span as a range of `usize`, for slicing.
    #[inline]
    pub const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
