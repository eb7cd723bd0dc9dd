//! A text with its path, and conversion of byte offsets to lines and columns.

use rx_base::notebook::Cells;
use std::fmt;
use std::sync::OnceLock;

/// The number of bytes between two checkpoints: the most that a lookup scans.
const STRIDE: usize = 4096;

/// A position for people: lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// In a notebook, the number of the cell, from 1; cells of text count.
    pub cell: Option<u32>,
    /// Line of the text, or of the cell, from 1. Lines end at `\n`; a `\r` before it belongs to the line end.
    pub line: u32,
    /// Column, from 1, in characters. A byte order mark is not counted.
    pub column: u32,
}

impl Position {
    /// Formats the line: `line 7`, or `cell 3, line 7` in a notebook.
    pub fn line_words(self) -> String {
        match self.cell {
            Some(cell) => format!("cell {cell}, line {}", self.line),
            None => format!("line {}", self.line),
        }
    }

    /// Formats the line as it follows `path:`: `7`, or `cell 3, line 7` in a notebook.
    pub fn line_after_path(self) -> String {
        if self.cell.is_some() { self.line_words() } else { self.line.to_string() }
    }
}

/// Formats the position as it follows `path:`: `7:5`, or `cell 3, line 7, column 5` in a notebook.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.cell.is_some() { ", column " } else { ":" };
        write!(f, "{}{separator}{}", self.line_after_path(), self.column)
    }
}

/// A text and the path it is shown under.
pub struct Source<'a> {
    name: &'a str,
    text: &'a str,
    /// In a notebook, whose cells are joined, the number of each cell.
    numbers: Option<&'a [u32]>,
    cells: OnceLock<Cells>,
    checkpoints: OnceLock<Vec<Checkpoint>>,
}

/// The line and character counts at byte `index * STRIDE`.
#[derive(Clone, Copy, Default)]
struct Checkpoint {
    /// The number of characters before it.
    chars: u32,
    /// The number of line ends before it.
    lines: u32,
    /// The start of its line, in bytes.
    line_start: u32,
    /// The start of its line, in characters.
    line_start_chars: u32,
}

/// The line and column of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) position: Position,
    /// The line of the text, from 1. In a notebook it differs from the line of the position.
    pub(crate) row: u32,
    /// The offset, moved into the text, to a character boundary and out of a line end.
    pub(crate) offset: usize,
    /// The first byte of the line.
    pub(crate) line_start: usize,
}

impl<'a> Source<'a> {
    /// Creates a source of `text` with the name `name`. The text is scanned only when a position is requested.
    pub fn new(name: &'a str, text: &'a str) -> Source<'a> {
        Source { name, text, numbers: None, cells: OnceLock::new(), checkpoints: OnceLock::new() }
    }

    /// Makes this the source of a notebook: the text is that of its code cells, [joined](rx_base::notebook::join), and
    /// `numbers` are the numbers of these cells in the notebook.
    pub fn with_cells(self, numbers: Option<&'a [u32]>) -> Source<'a> {
        Source { numbers, ..self }
    }

    /// The path as shown.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the line and column of a byte offset; offsets past the end count as the end.
    pub fn position(&self, offset: usize) -> Position {
        self.locate(offset).position
    }

    /// Returns the position of the start of a line of the text, which counts from 1.
    pub fn line(&self, line: usize) -> Position {
        let row = u32::try_from(line.saturating_sub(1)).unwrap_or(u32::MAX);
        let (cell, line) = self.cell(row);
        Position { cell, line: line.saturating_add(1), column: 1 }
    }

    pub(crate) fn locate(&self, offset: usize) -> Located {
        let offset = self.settle(offset);
        let checkpoints = self.checkpoints.get_or_init(|| checkpoints(self.text));
        let index = offset / STRIDE;
        let mut at = checkpoints.get(index).copied().unwrap_or_default();
        at.advance(self.text.as_bytes(), index * STRIDE, offset);
        let (cell, line) = self.cell(at.lines);
        let position = Position { cell, line: line + 1, column: at.chars.saturating_sub(at.line_start_chars) + 1 };
        Located { position, row: at.lines + 1, offset, line_start: at.line_start as usize }
    }

    /// Returns the number of the cell that contains a line of the text, and the line in the cell; lines count from 0.
    fn cell(&self, line: u32) -> (Option<u32>, u32) {
        let Some(numbers) = self.numbers else { return (None, line) };
        let (index, line) = self.cells.get_or_init(|| Cells::new(self.text)).locate(line);
        (numbers.get(index).copied(), line)
    }

    /// Whether this is the source of a notebook.
    pub fn is_notebook(&self) -> bool {
        self.numbers.is_some()
    }

    /// Returns the nearest valid offset at or before `offset`: in the text, between characters, and not inside a line
    /// end or the byte order mark.
    fn settle(&self, offset: usize) -> usize {
        let offset = floor_char_boundary(self.text, offset);
        let bytes = self.text.as_bytes();
        let in_line_end = offset > 0 && bytes.get(offset) == Some(&b'\n') && bytes.get(offset - 1) == Some(&b'\r');
        (offset - usize::from(in_line_end)).max(mark_length(self.text))
    }
}

impl Checkpoint {
    /// Advances from byte `from`, which `self` describes, to byte `to`.
    fn advance(&mut self, bytes: &[u8], from: usize, to: usize) {
        let slice = bytes.get(from..to).unwrap_or_default();
        if let Some(last) = slice.iter().rposition(|&byte| byte == b'\n') {
            // A text has less than 4 GiB, so the counts fit in 32 bits.
            self.lines += slice.iter().filter(|&&byte| byte == b'\n').count() as u32;
            self.line_start = (from + last + 1) as u32;
            self.line_start_chars = self.chars + count_chars(slice.get(..=last).unwrap_or_default());
        }
        self.chars += count_chars(slice);
    }
}

fn checkpoints(text: &str) -> Vec<Checkpoint> {
    let bytes = text.as_bytes();
    let mut table = Vec::with_capacity(bytes.len() / STRIDE + 1);
    let mark = mark_length(text);
    // The first line begins after the byte order mark; `chars` counts the mark, so that columns do not include it.
    let mut at = Checkpoint { line_start: mark as u32, line_start_chars: u32::from(mark > 0), ..Checkpoint::default() };
    table.push(at);
    for from in (0..bytes.len()).step_by(STRIDE) {
        at.advance(bytes, from, (from + STRIDE).min(bytes.len()));
        table.push(at);
    }
    table
}

/// Counts the characters that begin in `bytes`.
fn count_chars(bytes: &[u8]) -> u32 {
    // Continuation bytes are 0b10xxxxxx: those less than -64 as signed bytes.
    bytes.iter().filter(|&&byte| byte as i8 >= -64).count() as u32
}

/// Returns the length of the byte order mark at the start of the text, in bytes.
fn mark_length(text: &str) -> usize {
    if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 }
}

/// Returns the nearest character boundary of `text` at or before `offset`.
pub(crate) fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Returns the nearest character boundary of `text` at or after `offset`.
pub(crate) fn ceil_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset += 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::{STRIDE, Source};

    fn at(text: &str, offset: usize) -> (u32, u32) {
        let position = Source::new("t.rx", text).position(offset);
        (position.line, position.column)
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(at("é = 漢字\n🙂 = x", 3), (1, 3));
        assert_eq!(at("é = 漢字\n🙂 = x", "é = 漢字\n🙂".len()), (2, 2));
    }

    #[test]
    fn offsets_inside_a_character_or_past_the_end_are_moved() {
        assert_eq!(at("漢字", 1), (1, 1));
        assert_eq!(at("漢字", 4), (1, 2));
        assert_eq!(at("a\n", 2), (2, 1));
        assert_eq!(at("a\n", 99), (2, 1));
        assert_eq!(at("", 0), (1, 1));
    }

    #[test]
    fn carriage_returns_belong_to_the_line_end_and_a_mark_to_nothing() {
        assert_eq!(at("ab\r\ncd", 2), (1, 3));
        assert_eq!(at("ab\r\ncd", 3), (1, 3));
        assert_eq!(at("ab\r\ncd", 4), (2, 1));
        assert_eq!(at("\u{FEFF}ab\ncd", 4), (1, 2));
        assert_eq!(at("\u{FEFF}ab\ncd", 0), (1, 1));
        assert_eq!(at("\u{FEFF}ab\ncd", 6), (2, 1));
    }

    #[test]
    fn positions_of_a_notebook_name_the_cell() {
        let text = rx_base::notebook::join(["x = 1\ny", "z"]);
        let position = |numbers, at: &str| {
            let source = Source::new("n.ipynb", &text).with_cells(numbers);
            source.position(text.find(at).unwrap_or_default()).to_string()
        };
        let numbers: &[u32] = &[2, 5];
        assert_eq!(position(Some(numbers), "y"), "cell 2, line 2, column 1");
        assert_eq!(position(Some(numbers), "z"), "cell 5, line 1, column 1");
        assert_eq!(position(None, "z"), "4:1");
    }

    #[test]
    fn positions_agree_with_a_plain_count_across_checkpoints() {
        let mut text = String::new();
        for n in 0..900 {
            text.push_str(if n % 7 == 0 { "x漢é\r\n" } else { "abc🙂 = f(x, y)" });
            if n % 5 == 0 {
                text.push('\n');
            }
        }
        text.push_str(&"é".repeat(3 * STRIDE));
        let source = Source::new("t.rx", &text);
        let (mut line, mut column) = (1, 1);
        let mut previous = '\0';
        for (offset, c) in text.char_indices() {
            if !(c == '\n' && previous == '\r') {
                let position = source.position(offset);
                assert_eq!((position.line, position.column), (line, column), "at {offset}");
            }
            column += 1;
            if c == '\n' {
                (line, column) = (line + 1, 1);
            }
            previous = c;
        }
    }
}
