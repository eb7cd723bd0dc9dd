//! Edits that write inferred types into a file.

use crate::position::absolute;
use crate::queries::{check_item, scope_context, texts};
use crate::workspace::{FileId, Snapshot, Workspace};
use rx_analysis::annotate::{Annotate, Style, annotations};
use rx_base::fix::Edit;
use rx_context::ItemPlace;
use rx_syntax::dialect::Dialect;
use std::ops::Range;

impl Workspace {
    /// Returns the edits that annotate bindings and returns with their inferred types, in order; with `range`, only
    /// those that touch these bytes of the file. Types are written in the file's dialect. The annotated text checks as
    /// before, with the same types.
    pub fn annotations(&self, file: FileId, which: Annotate, range: Option<Range<usize>>) -> Vec<Edit> {
        let Some((db, document, inputs)) = self.parts(file) else { return Vec::new() };
        let style = Style { which, dialect: Dialect::detect(document) };
        let mut edits = Vec::new();
        let touched =
            |start: usize, end: usize| range.as_ref().is_none_or(|range| range.start <= end && start <= range.end);
        for (at, (input, item)) in inputs.items.iter().zip(document.items()).enumerate() {
            let start = document.item_start(at);
            if !touched(start, start + item.byte_len()) {
                continue;
            }
            let Some(check) = check_item(db, *input).function else { continue };
            let context = scope_context(db, input.scope(db));
            let wanted =
                |segment| touched(start + item.segment_start(segment), start + item.segment_start(segment + 1));
            for annotation in annotations(&texts(db, *input), &check, &context, style, wanted) {
                let place = ItemPlace::Segment(annotation.segment, annotation.span);
                edits.extend(absolute(document, at, &place).map(|span| (span, annotation.text)));
            }
        }
        edits.retain(|(span, _)| touched(span.start as usize, span.end as usize));
        edits.sort();
        edits
    }
}

impl Snapshot {
    /// Like [`Workspace::annotations`].
    pub fn annotations(&self, file: FileId, which: Annotate, range: Option<Range<usize>>) -> Vec<Edit> {
        self.0.annotations(file, which, range)
    }
}
