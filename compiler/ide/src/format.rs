//! Formatting, with the same result as `rxfmt`.

use crate::changes::changes;
use rx_base::Span;
use rx_base::fix::Edit;
use rx_syntax::dialect::Dialect;
use rx_syntax::document::{Document, Encoding, Item, ItemKind, Location};
use rx_syntax::format::{checked, errors};
use rx_syntax::printer::{print_as, tree_eq_as};
use rx_syntax::{Segment, Statement};
use std::ops::Range;

/// The characters after which [`format_typed`] formats a statement.
pub const FORMAT_AFTER: [char; 2] = ['\n', ')'];

/// The maximal length in bytes of the text that is read to format one statement.
const MOST_READ: usize = 1 << 16;

/// Returns the edits that format a document in its own dialect. If `range` is given, only those that touch these bytes.
/// As on the command line, a document with syntax errors is not changed.
pub fn format(document: &Document, range: Option<Range<usize>>) -> Vec<Edit> {
    if errors(document).next().is_some() {
        return Vec::new();
    }
    let dialect = Dialect::detect(document);
    let text = document.text();
    let Ok(formatted) = checked(document, dialect, dialect) else { return Vec::new() };
    let mut edits = changes(&text, &formatted);
    if let Some(range) = range {
        edits.retain(|(span, _)| {
            range.start <= span.end as usize && (span.start as usize) < range.end.max(range.start + 1)
        });
    }
    edits
}

/// Returns the edits that format the statement that the character `typed`, which ends at the byte `offset`, completes:
/// after a line break the statement of the line before, after `)` the statement that ends with it. The rest of the text
/// may have syntax errors, because it is being written. A statement on several lines keeps its lines, and so does one
/// that shares its line with another.
pub fn format_typed(document: &Document, offset: usize, typed: char) -> Vec<Edit> {
    let (line, _) = document.line_column(offset, Encoding::Utf8);
    let found = match typed {
        '\n' | '\r' => line.checked_sub(1).and_then(|line| statement_of(document, line)),
        ')' => statement_of(document, line).filter(|found| found.end(document) == offset),
        _ => None,
    };
    found.and_then(|found| found.formatted(document)).unwrap_or_default()
}

/// A statement that has its line for itself.
struct Line<'a> {
    item: &'a Item,
    location: Location,
    segment: &'a Segment,
    statement: &'a Statement,
}

/// Returns the only statement on a line, if it is on no other line and has no syntax error.
fn statement_of(document: &Document, line: u32) -> Option<Line<'_>> {
    let (start, end) =
        (document.offset_of(line, 0, Encoding::Utf8), document.offset_of(line, u32::MAX, Encoding::Utf8));
    let location = document.locate(start)?;
    let item = document.items().get(location.item)?;
    let is_code = match item.kind {
        ItemKind::ModuleHeader | ItemKind::ModuleStatement | ItemKind::Function(_) => true,
        ItemKind::Prelude => document.kind() == rx_db::FileKind::Rx,
        ItemKind::Metadata | ItemKind::Foreign => false,
    };
    let segment: &Segment = item.segments.get(location.segment).filter(|_| is_code)?;
    let until = location.offset + (end - start);
    let on_line = |statement: &&Statement| {
        location.offset < statement.span.end as usize && (statement.span.start as usize) < until
    };
    let mut all = segment.tree().statements.iter().filter(on_line);
    let (statement, None) = (all.next()?, all.next()) else { return None };
    let is_inside = location.offset <= statement.span.start as usize && statement.span.end as usize <= until;
    (is_inside && !statement.inline && statement.tree.error.is_none()).then_some(Line {
        item,
        location,
        segment,
        statement,
    })
}

impl Line<'_> {
    /// Returns the start of the segment, in bytes of the file.
    fn start(&self, document: &Document) -> usize {
        document.segment_start(self.location.item, self.location.segment)
    }

    /// Returns the end of the statement, in bytes of the file.
    fn end(&self, document: &Document) -> usize {
        self.start(document) + self.statement.span.end as usize
    }

    /// Returns the edits that format the statement. The printer reads a text that ends with the statement and contains
    /// the declarations on which its spelling depends.
    fn formatted(&self, document: &Document) -> Option<Vec<Edit>> {
        let text = self.context(document)?;
        let dialect = Dialect::detect(document);
        let written = Document::new(&text, document.kind());
        let printed = Document::new(&print_as(&written, dialect, dialect), document.kind());
        // As in `checked`, but in the dialect of the file, of which the text may have no evidence.
        tree_eq_as((&written, dialect), (&printed, dialect)).ok()?;
        let kind = std::mem::discriminant(&self.statement.tree.kind);
        let segments = printed.items().iter().flat_map(|item| item.segments.iter());
        let mut statements =
            segments.flat_map(|segment| segment.tree().statements.iter().map(move |statement| (segment, statement)));
        // A header may be followed by the declarations of its dims.
        let (segment, statement) = statements.rfind(|(_, it)| std::mem::discriminant(&it.tree.kind) == kind)?;
        let new = segment.text().get(statement.span.range())?;
        let old = self.segment.text().get(self.statement.span.range())?;
        let at = u32::try_from(self.start(document)).ok()? + self.statement.span.start;
        let placed = |(span, new): Edit| (Span::new(span.start + at, span.end + at), new);
        Some(changes(old, new).into_iter().map(placed).collect())
    }

    /// Returns the imports and symbolic dims of the file, the header of the module, the header of the function and its
    /// first statements, and the segment up to the end of the statement.
    fn context(&self, document: &Document) -> Option<String> {
        let mut text = String::new();
        let before = document.items().get(..self.location.item)?;
        let own_header = |item: &Item| item.kind == ItemKind::ModuleHeader && item.module == self.item.module;
        let around = before.iter().filter(|item| item.kind == ItemKind::Prelude || own_header(item));
        let segments = around.flat_map(|item| item.segments.iter());
        for segment in segments.chain(self.item.segments.iter().take(self.location.segment.min(2))) {
            text.push_str(segment.text());
            if text.len() > MOST_READ {
                return None;
            }
        }
        text.push_str(self.segment.text().get(..self.statement.span.end as usize)?);
        text.push('\n');
        (text.len() <= MOST_READ).then_some(text)
    }
}
