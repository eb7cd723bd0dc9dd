//! Cutting a scanned text into segments.

use super::layout::{Layout, Row};
use super::lead::{Imports, imports};
use super::outline::{Cut, Entry, Head, IndentationError, Outline, Step};
use super::{Document, FileKind, Item};
use crate::segment::Segment;
use rx_base::Span;
use rx_base::name::name;
use std::ops::Range;
use std::sync::Arc;

/// Statements of a segment, where nothing stands against a cut.
pub(super) const SEGMENT_STATEMENTS: u32 = 32;

/// A segment to be made.
pub(super) struct Part<'t> {
    /// Its bytes in the scanned text.
    pub(super) range: Range<usize>,
    pub(super) entry: Entry,
    pub(super) head: Option<Head<'t>>,
    pub(super) statements: u32,
    pub(super) errors: Vec<IndentationError>,
}

/// What to do at a place where a segment may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Go on with the segment.
    Join,
    /// Start a segment.
    Cut,
    /// The scan is done: all that follows is as it was.
    Stop,
}

/// Why a scan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At the text's end.
    Text,
    /// By [`Choice::Stop`] at this offset.
    Stopped(usize),
}

/// Scans `text` and cuts it where `choose` says, which is asked at every place where a segment may or must start, with
/// the step and the statements of the segment so far. What it answers where one must start only matters if it stops.
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

/// Items being put together.
#[derive(Default)]
pub(super) struct Assembly {
    pub(super) items: Vec<Item>,
    segments: Vec<Arc<Segment>>,
    open: Option<(Item, Layout)>,
}

impl Assembly {
    /// Goes on with an item of which the first `count` segments stay.
    pub(super) fn resume(item: &Item, count: usize) -> Assembly {
        let segments = item.segments.iter().take(count).cloned().collect();
        Assembly { items: Vec::new(), segments, open: Some((item.clone(), item.layout.prefix(count))) }
    }

    /// Adds a segment, with a head to a new item.
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

    /// Adds the segments of an old item from `first` on to the open item.
    pub(super) fn append_rest(&mut self, item: &Item, first: usize) {
        let Some((_, layout)) = &mut self.open else { return };
        layout.extend(&item.layout, first);
        self.segments.extend(item.segments.iter().skip(first).cloned());
    }

    /// Ends the open item. One without segments is dropped.
    pub(super) fn close(&mut self) {
        let segments = std::mem::take(&mut self.segments);
        if let Some((mut item, layout)) = self.open.take()
            && !segments.is_empty()
        {
            item.segments = segments.into();
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
        segments: Arc::from([]),
        module: head.module,
        layout: Arc::new(Layout::new()),
    }
}

impl Document {
    /// Makes all items anew from `text`.
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
