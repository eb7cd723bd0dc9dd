//! Splitting of a scanned text into segments, and assembly of segments into items. Both a new document and an edit use
//! it.

use super::layout::{Layout, Row};
use super::lead::{Imports, imports};
use super::outline::{Cut, Entry, Head, IndentationError, Outline, Step};
use super::{Document, FileKind, Item};
use crate::segment::{Segment, Segments};
use rx_base::Span;
use rx_base::name::name;
use std::ops::Range;
use std::sync::Arc;

/// The number of statements after which a segment is cut at the next allowed place.
pub(super) const SEGMENT_STATEMENTS: u32 = 8;

/// The description of a segment to create.
pub(super) struct Part<'t> {
    /// Its bytes in the scanned text.
    pub(super) range: Range<usize>,
    pub(super) entry: Entry,
    pub(super) head: Option<Head<'t>>,
    pub(super) statements: u32,
    pub(super) errors: Vec<IndentationError>,
}

/// The action at a place where a segment may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Continue the current segment.
    Join,
    /// Start a new segment.
    Cut,
    /// Stop the scan: all that follows is unchanged.
    Stop,
}

/// The reason why a scan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It reached the text's end.
    Text,
    /// [`Choice::Stop`] was chosen at this offset.
    Stopped(usize),
}

/// Scans `text` and splits it into parts. At each place where a segment may or must start, `choose` gets the step and
/// the number of statements of the current segment, and decides. Where a segment must start, the answers `Join` and
/// `Cut` have the same effect.
pub(super) fn split<'t>(
    text: &'t str,
    kind: FileKind,
    imports: &Imports,
    entry: Entry,
    mut choose: impl FnMut(&Step<'t>, u32) -> Choice,
) -> (Vec<Part<'t>>, End) {
    let mut outline = Outline::new(text, kind, imports, entry);
    let mut parts: Vec<Part<'t>> = Vec::new();
    while let Some(step) = outline.step() {
        let so_far = parts.last().map_or(0, |part| part.statements);
        let choice = match step.cut {
            Cut::No => Choice::Join,
            Cut::May | Cut::Must => choose(&step, so_far),
        };
        if choice == Choice::Stop {
            return (parts, End::Stopped(step.start));
        }
        match parts.last_mut() {
            Some(part) if choice == Choice::Join && step.cut != Cut::Must => {
                part.range.end = step.next;
                part.statements += step.statements;
                part.errors.extend(step.errors);
            }
            _ => parts.push(Part {
                range: step.start..step.next,
                entry: step.entry,
                head: step.head,
                statements: step.statements,
                errors: step.errors.into_vec(),
            }),
        }
    }
    (parts, End::Text)
}

/// The items that are being assembled, and the open one.
#[derive(Default)]
pub(super) struct Assembly {
    pub(super) items: Vec<Item>,
    open: Option<(Item, Layout)>,
    /// The number of segments of the open item, as it was before, that are kept.
    kept: usize,
    /// The segments that follow those.
    segments: Vec<Arc<Segment>>,
    /// The segments of an old item, from an index on, that follow those.
    rest: Option<(Segments, usize)>,
}

impl Assembly {
    /// Continues an item of which the first `count` segments are kept.
    pub(super) fn resume(item: &Item, count: usize) -> Assembly {
        let open = Some((item.clone(), item.layout.prefix(count)));
        Assembly { open, kept: count, ..Assembly::default() }
    }

    /// Appends a segment: to a new item if the part has a head, otherwise to the open item.
    pub(super) fn push(&mut self, part: Part<'_>, segment: Arc<Segment>) {
        if let Some(head) = part.head {
            self.close();
            self.open = Some((item(head), Layout::new()));
        }
        let Some((_, layout)) = &mut self.open else { return };
        let base = part.range.start as u32;
        let place = |mut error: IndentationError| {
            error.span = Span::new(error.span.start - base, error.span.end - base);
            error
        };
        layout.push(Row {
            bytes: (part.range.end - part.range.start) as u32,
            lines: segment.line_count(),
            entry: part.entry,
            statements: part.statements,
            errors: part.errors.into_iter().map(place).collect(),
            directed: segment.may_have_directives(),
        });
        self.segments.push(segment);
    }

    /// Appends the segments of an old item, from `first` on, to the open item.
    pub(super) fn append_rest(&mut self, item: &Item, first: usize) {
        let Some((_, layout)) = &mut self.open else { return };
        layout.extend(&item.layout, first);
        self.rest = Some((item.segments.clone(), first));
    }

    /// Finishes the open item. An item without segments is dropped.
    pub(super) fn close(&mut self) {
        let (kept, segments) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.segments));
        let (rest, first) = self.rest.take().unwrap_or_default();
        let Some((mut item, layout)) = self.open.take() else { return };
        item.segments = item.segments.joined(kept, segments, &rest, first);
        if !item.segments.is_empty() {
            item.layout = Arc::new(layout);
            self.items.push(item);
        }
    }
}

fn item(head: Head<'_>) -> Item {
    Item {
        kind: head.kind,
        indent: head.indent,
        name: head.name.map(name),
        segments: Segments::default(),
        module: head.module,
        layout: Arc::new(Layout::new()),
    }
}

impl Document {
    /// Builds all items from `text`.
    pub(super) fn build(&mut self, text: &str) {
        if self.kind == FileKind::Python {
            self.imports = Arc::new(imports(text));
        }
        let greedy =
            |_: &Step<'_>, statements| if statements < SEGMENT_STATEMENTS { Choice::Join } else { Choice::Cut };
        let (parts, _) = split(text, self.kind, &self.imports, Entry::START, greedy);
        let mut assembly = Assembly::default();
        for part in parts {
            let segment = Segment::new(text.get(part.range.clone()).unwrap_or_default().into());
            assembly.push(part, Arc::new(segment));
        }
        assembly.close();
        self.items = assembly.items;
        self.starts.clear();
        self.lines.clear();
        self.recount(0);
    }
}
