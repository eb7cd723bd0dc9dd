//! Source lines as shown: a short line is complete, of a long line only windows around the labels are shown.

use crate::plain::printable;
use crate::source::{ceil_char_boundary, floor_char_boundary};
use std::ops::Range;

/// Lines of up to this many columns are shown completely.
const WHOLE: usize = 160;
/// The number of columns shown of a longer line, shared by its labels.
const WINDOW: usize = 120;
/// The fewest columns shown around one label.
const SMALLEST_WINDOW: usize = 60;
/// A label wider than this many columns is shown by its two ends.
const WIDE_LABEL: usize = 80;
/// The number of columns shown outside each end of such a label.
const OUTSIDE: usize = 30;
/// The number of columns shown inside each end of such a label.
const INSIDE: usize = 40;
/// A gap of fewer columns than this is shown, not elided.
const SMALLEST_GAP: usize = 10;
/// The number of columns between tab stops.
const TAB: usize = 4;

/// A printable line, with a map from offsets of the text to offsets of the line.
pub(crate) struct ShownLine {
    /// The printable text without a line end.
    pub(crate) text: String,
    /// Pairs of an offset in the text and an offset in `text` above, ascending: one pair per character or elision, and
    /// one for the end of the line if it is shown.
    map: Vec<(usize, usize)>,
}

impl ShownLine {
    /// Creates the shown form of the line of `text` that begins at `line_start`, with all `spans` visible.
    ///
    /// Each span is on the line, has start ≤ end, and may be empty.
    pub(crate) fn new(text: &str, line_start: usize, spans: &[Range<usize>]) -> ShownLine {
        let last = spans.iter().map(|span| span.end).max().unwrap_or(line_start).max(line_start);
        let (seen, ends) = line_end(text, last);
        let pieces = if ends && columns_within(text, line_start..seen, WHOLE) {
            std::iter::once(line_start..seen).collect()
        } else {
            merge(text, windows(text, line_start..seen, spans))
        };
        let mut shown = ShownLine { text: String::new(), map: Vec::new() };
        let mut at = line_start;
        for piece in pieces {
            if piece.start > at {
                shown.elide(at);
            }
            shown.copy(text, piece.clone());
            at = piece.end;
        }
        if at < seen || !ends {
            shown.elide(at);
        } else {
            shown.map.push((at, shown.text.len()));
        }
        shown
    }

    /// Returns the offset in the shown line of the character at `offset` of the text.
    pub(crate) fn start(&self, offset: usize) -> usize {
        let after = self.map.partition_point(|&(from, _)| from <= offset);
        after.checked_sub(1).and_then(|index| self.map.get(index)).map_or(0, |&(_, to)| to)
    }

    /// Returns the offset in the shown line where text that ends at `offset` ends.
    pub(crate) fn end(&self, offset: usize) -> usize {
        let index = self.map.partition_point(|&(from, _)| from < offset);
        self.map.get(index).map_or(self.text.len(), |&(_, to)| to)
    }

    fn elide(&mut self, from: usize) {
        self.map.push((from, self.text.len()));
        self.text.push('…');
    }

    fn copy(&mut self, text: &str, piece: Range<usize>) {
        let mut column = 0;
        for (offset, c) in text.get(piece.clone()).unwrap_or("").char_indices() {
            self.map.push((piece.start + offset, self.text.len()));
            let repeat = if c == '\t' { TAB - column % TAB } else { 1 };
            self.text.extend(std::iter::repeat_n(printable(c), repeat));
            column += if c == '\t' { repeat } else { columns(c) };
        }
    }
}

/// Returns how far the line is examined after `from`, and whether the line ends there.
fn line_end(text: &str, from: usize) -> (usize, bool) {
    // Enough bytes for a short line or a window, whatever the characters.
    let limit = floor_char_boundary(text, from.saturating_add(4 * WHOLE));
    match text.as_bytes().get(from..limit).unwrap_or_default().iter().position(|&byte| byte == b'\n') {
        Some(newline) => {
            let end = from + newline;
            let carriage = end > from && text.as_bytes().get(end - 1) == Some(&b'\r');
            (end - usize::from(carriage), true)
        }
        None => (limit, limit == text.len()),
    }
}

/// Returns the pieces of a long line around each span, unordered.
fn windows(text: &str, line: Range<usize>, spans: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let window = (WINDOW / spans.len().max(1)).max(SMALLEST_WINDOW);
    for span in spans {
        if columns_within(text, span.clone(), WIDE_LABEL) {
            let around = window.saturating_sub(text.get(span.clone()).map_or(0, width)) / 2;
            pieces.push(back(text, &line, span.start, around)..forward(text, &line, span.end, around));
        } else {
            pieces.push(back(text, &line, span.start, OUTSIDE)..forward(text, &line, span.start, INSIDE));
            pieces.push(back(text, &line, span.end, INSIDE)..forward(text, &line, span.end, OUTSIDE));
        }
    }
    if pieces.is_empty() {
        pieces.push(line.start..forward(text, &line, line.start, WINDOW));
    }
    // Do not replace just a few characters at either end by `…`.
    for piece in &mut pieces {
        if columns_within(text, line.start..piece.start, SMALLEST_GAP) {
            piece.start = line.start;
        }
        if columns_within(text, piece.end..line.end, SMALLEST_GAP) {
            piece.end = line.end;
        }
    }
    pieces
}

/// Sorts the pieces, and joins those that overlap or have only a small gap between them.
fn merge(text: &str, mut pieces: Vec<Range<usize>>) -> Vec<Range<usize>> {
    pieces.sort_by_key(|piece| (piece.start, piece.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match merged.last_mut() {
            Some(last) if piece.start <= last.end || columns_within(text, last.end..piece.start, SMALLEST_GAP) => {
                last.end = last.end.max(piece.end);
            }
            _ => merged.push(piece),
        }
    }
    merged
}

/// Returns the offset about `count` columns before `from`, but not before the line.
fn back(text: &str, line: &Range<usize>, from: usize, count: usize) -> usize {
    // A character has at most four bytes; the slice limits the search on lines of megabytes.
    let lowest = ceil_char_boundary(text, from.saturating_sub(4 * count).max(line.start));
    let mut left = count;
    let mut at = from;
    for (offset, c) in text.get(lowest..from).unwrap_or("").char_indices().rev() {
        let Some(rest) = left.checked_sub(columns(c)) else { break };
        (left, at) = (rest, lowest + offset);
    }
    at
}

/// Returns the offset about `count` columns after `from`, but not after the line.
fn forward(text: &str, line: &Range<usize>, from: usize, count: usize) -> usize {
    let highest = floor_char_boundary(text, from.saturating_add(4 * count).min(line.end));
    let mut left = count;
    let mut at = from;
    for c in text.get(from..highest).unwrap_or("").chars() {
        let Some(rest) = left.checked_sub(columns(c)) else { break };
        (left, at) = (rest, at + c.len_utf8());
    }
    at
}

/// Whether a range takes at most `limit` columns; examines only as many bytes as needed.
fn columns_within(text: &str, range: Range<usize>, limit: usize) -> bool {
    range.len() <= limit || (range.len() <= 4 * limit && text.get(range).is_some_and(|slice| width(slice) <= limit))
}

fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The approximate number of columns of a character; scripts from Hangul Jamo on are mostly wide.
fn columns(c: char) -> usize {
    if c < '\u{1100}' { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::ShownLine;
    use std::ops::Range;

    /// Returns the shown form of the first line of `text` with one label.
    fn one(text: &str, label: Range<usize>) -> ShownLine {
        ShownLine::new(text, 0, std::slice::from_ref(&label))
    }

    #[test]
    fn short_lines_are_whole_and_tabs_become_blanks() {
        let shown = one("\tx\ty = 1\r\nnext", 1..2);
        assert_eq!(shown.text, "    x   y = 1");
        assert_eq!((shown.start(1), shown.end(2)), (4, 5));
        assert_eq!((shown.start(8), shown.end(8)), (13, 13), "the end of the line");
    }

    #[test]
    fn a_long_line_is_cut_round_its_label() {
        let text = format!("{}HERE{}", "a".repeat(100_000), "b".repeat(100_000));
        let shown = one(&text, 100_000..100_004);
        assert_eq!(shown.text, format!("…{}HERE{}…", "a".repeat(58), "b".repeat(58)));
        assert_eq!(shown.text.get(shown.start(100_000)..shown.end(100_004)), Some("HERE"));
    }

    #[test]
    fn a_long_label_shows_both_ends() {
        let text = format!("{}<{}>{}\n", "a".repeat(300), "-".repeat(5000), "b".repeat(300));
        let shown = one(&text, 300..5302);
        let inside = "-".repeat(39);
        assert_eq!(shown.text, format!("…{}<{inside}…{inside}>{}…", "a".repeat(30), "b".repeat(30)));
        assert_eq!(shown.text.get(shown.start(300)..shown.end(5302)), Some(&*format!("<{inside}…{inside}>")));
    }

    #[test]
    fn ends_of_a_long_line_are_not_elided_when_near() {
        let text = format!("x: {}\n", "y".repeat(500));
        let shown = ShownLine::new(&text, 0, &[0..1, 503..503]);
        assert!(shown.text.starts_with("x: y") && shown.text.ends_with("yyy") && shown.text.contains("y…y"));
        assert_eq!(shown.start(503), shown.text.len());
    }

    #[test]
    fn wide_characters_and_hostile_ones_keep_their_places() {
        let text = format!("{}漢\x1b🙂", "字".repeat(400));
        let shown = one(&text, 1200..1203);
        assert_eq!(shown.text.get(shown.start(1200)..shown.end(1203)), Some("漢"));
        assert!(shown.text.ends_with("漢␛🙂") && shown.text.starts_with('…'));
    }
}
