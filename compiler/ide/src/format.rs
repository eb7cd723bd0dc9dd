//! Formatting, with the same result as `rxfmt`.

use crate::changes::changes;
use rx_base::fix::Edit;
use rx_syntax::dialect::Dialect;
use rx_syntax::document::Document;
use rx_syntax::format::{checked, errors};
use std::ops::Range;

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
