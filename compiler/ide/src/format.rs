//! Formatting, as `rxfmt` does it.

use crate::changes::changes;
use rx_base::fix::Edit;
use rx_syntax::dialect::Dialect;
use rx_syntax::document::Document;
use rx_syntax::format::{checked, errors};
use std::ops::Range;

/// The edits that format a document, in its own dialect; of those, the ones that touch bytes `range`, where one is given. A
/// document with syntax errors stays as it is, as on the command line.
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
