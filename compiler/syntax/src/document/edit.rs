//! Incremental edits.
//!
//! An edit rescans from the segment before it until the scan reaches the start of an old segment, after the edit, in
//! the state that is stored for that segment. From there on the old segments remain valid. For example, after a change
//! inside one function body, usually two or three segments are lexed again.

use super::lead::{IMPORT, imports};
use super::outline::{Cut, Entry, Step};
use super::position::Location;
use super::split::{Assembly, Choice, End, Part, SEGMENT_STATEMENTS, split};
use super::{Document, FileKind, Item};
use crate::segment::Segment;
use std::ops::Range;
use std::sync::Arc;

/// The items that an edit replaced. All other items are unchanged; those after it have only moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Their indices before the edit.
    pub old: Range<usize>,
    /// The indices of the new items.
    pub new: Range<usize>,
}

/// A segment with fewer statements than this after an edit is merged with the next one.
const FEW_STATEMENTS: u32 = 2;

/// The largest number of statements that a segment may have after edits.
const MANY_STATEMENTS: u32 = 2 * SEGMENT_STATEMENTS;

/// The text that is rescanned: whole old segments, with the edit applied.
struct Window {
    text: String,
    /// The starts of old segments at or before the edit, as offsets in the window. The text of these segments may have
    /// changed.
    before: Vec<(usize, Location)>,
    /// The starts of old segments at or after the edit, as offsets in the window.
    after: Vec<(usize, Location)>,
    /// Whether the window ends at the text's end.
    to_end: bool,
}

/// The result of scanning a window.
struct Scan<'t> {
    parts: Vec<Part<'t>>,
    /// The first old segment that stays valid, with all segments after it; `None` if the scan reached the text's end.
    rest: Option<Location>,
}

impl Document {
    /// Replaces the bytes `range` by `new`. A range that exceeds the text or cuts through a character is clamped to
    /// character boundaries.
    pub fn edit(&mut self, range: Range<usize>, new: &str) -> Edit {
        let start = self.char_boundary(range.start);
        let end = self.char_boundary(range.end.max(range.start)).max(start);
        let Some((first, last)) = self.locate(start).zip(self.locate(end)) else { return self.rebuild(new) };
        let restart = self.segment_before(first).unwrap_or(first);
        if self.kind == FileKind::Python && self.holds_import(restart, last, &(start..end), new) {
            let mut text = self.text();
            text.replace_range(start..end, new);
            if imports(&text) != *self.imports {
                return self.rebuild(&text);
            }
        }
        let mut segments_after = 1;
        loop {
            let window = self.window(restart, last, segments_after, &(start..end), new);
            if let Some(scan) = self.scan(restart, &window) {
                return self.replace(restart, &window, scan);
            }
            segments_after = segments_after * 2 + 2;
        }
    }

    /// Replaces the whole text and builds all items again.
    fn rebuild(&mut self, text: &str) -> Edit {
        let old = 0..self.items.len();
        self.build(text);
        Edit { old, new: 0..self.items.len() }
    }

    /// Whether the text near an edit contains the word `import`, before or after the edit.
    fn holds_import(&self, restart: Location, last: Location, range: &Range<usize>, new: &str) -> bool {
        let (old, base, _) = self.texts(restart, last, 1);
        let mut edited = old.clone();
        edited.replace_range(range.start - base..range.end - base, new);
        old.contains(IMPORT) || edited.contains(IMPORT)
    }

    /// The last character boundary at or before `offset`.
    fn char_boundary(&self, offset: usize) -> usize {
        let Some(location) = self.locate(offset) else { return 0 };
        let text = self.segment(location).map_or("", Segment::text);
        self.segment_start(location.item, location.segment) + text.floor_char_boundary(location.offset)
    }

    fn segment_before(&self, location: Location) -> Option<Location> {
        if let Some(segment) = location.segment.checked_sub(1) {
            return Some(Location { segment, offset: 0, ..location });
        }
        let item = location.item.checked_sub(1)?;
        let segment = self.items.get(item)?.segments.len().checked_sub(1)?;
        Some(Location { item, segment, offset: 0 })
    }

    fn segment_after(&self, location: Location) -> Option<Location> {
        let Location { item, segment, .. } = location;
        if segment + 1 < self.items.get(item)?.segments.len() {
            return Some(Location { item, segment: segment + 1, offset: 0 });
        }
        (item + 1 < self.items.len()).then_some(Location { item: item + 1, segment: 0, offset: 0 })
    }

    /// Returns the text from segment `first` to the segment `more` segments after `last`, its start in the document,
    /// and the starts of its segments in the document.
    fn texts(&self, first: Location, last: Location, more: usize) -> (String, usize, Vec<(usize, Location)>) {
        let base = self.segment_start(first.item, first.segment);
        let mut text = String::new();
        let mut starts = Vec::new();
        let mut left = more;
        let mut at = Some(first);
        while let Some(location) = at {
            if (location.item, location.segment) > (last.item, last.segment) {
                let Some(fewer) = left.checked_sub(1) else { break };
                left = fewer;
            }
            starts.push((base + text.len(), Location { offset: 0, ..location }));
            text.push_str(self.segment(location).map_or("", Segment::text));
            at = self.segment_after(location);
        }
        (text, base, starts)
    }

    /// Returns the text in `range`, whose ends must be character boundaries.
    pub(super) fn slice(&self, range: Range<usize>) -> String {
        let Some((first, last)) = self.locate(range.start).zip(self.locate(range.end)) else { return String::new() };
        let (text, base, _) = self.texts(first, last, 0);
        let cut = range.start.saturating_sub(base)..range.end.saturating_sub(base);
        text.get(cut).unwrap_or_default().to_owned()
    }

    fn window(&self, restart: Location, last: Location, more: usize, range: &Range<usize>, new: &str) -> Window {
        let (mut text, base, starts) = self.texts(restart, last, more);
        let to_end = base + text.len() == self.len();
        text.replace_range(range.start - base..range.end - base, new);
        let before = starts.iter().filter(|(start, _)| *start <= range.start);
        let after = starts.iter().skip(1).filter(|(start, _)| *start >= range.end);
        Window {
            before: before.map(|(start, location)| (start - base, *location)).collect(),
            after: after
                .map(|(start, location)| (start - range.end + range.start + new.len() - base, *location))
                .collect(),
            text,
            to_end,
        }
    }

    /// Scans a window. `None` if the window ended before the scan reached an old segment in its stored state; the
    /// caller then retries with a longer one.
    fn scan<'w>(&self, restart: Location, window: &'w Window) -> Option<Scan<'w>> {
        let entry = self.entry(restart)?;
        let choose = |step: &Step<'_>, so_far: u32| {
            if let Some(location) = find(&window.after, step.start)
                && self.entry(location) == Some(step.entry)
            {
                let next = self.items.get(location.item).map_or(0, |item| item.layout.statements(location.segment));
                let few = so_far < FEW_STATEMENTS && so_far + next <= MANY_STATEMENTS;
                return if few && step.cut == Cut::May && step.head.is_none() { Choice::Join } else { Choice::Stop };
            }
            let kept = find(&window.before, step.start).is_some();
            if kept || so_far >= MANY_STATEMENTS { Choice::Cut } else { Choice::Join }
        };
        match split(&window.text, self.kind, &self.imports, entry, choose) {
            (parts, End::Stopped(at)) => Some(Scan { parts, rest: find(&window.after, at) }),
            (parts, End::Text) => window.to_end.then_some(Scan { parts, rest: None }),
        }
    }

    fn entry(&self, location: Location) -> Option<Entry> {
        self.items.get(location.item)?.layout.entry(location.segment)
    }

    /// Replaces the segments from `restart` to the scan's `rest` by the parts that the scan found.
    fn replace(&mut self, restart: Location, window: &Window, scan: Scan<'_>) -> Edit {
        // INVARIANT: locations come from `locate` and its neighbours, and name items that exist.
        let mut first = restart.item;
        let continues = scan.parts.first().is_none_or(|part| part.head.is_none());
        let mut assembly = if restart.segment > 0 {
            Assembly::resume(&self.items[first], restart.segment)
        } else if continues && first > 0 {
            first -= 1;
            Assembly::resume(&self.items[first], self.items[first].segments.len())
        } else {
            Assembly::default()
        };
        for part in scan.parts {
            let text = window.text.get(part.range.clone()).unwrap_or_default();
            let old = find(&window.before, part.range.start).and_then(|location| self.shared(location, text));
            assembly.push(part, old.unwrap_or_else(|| Arc::new(Segment::new(text.into()))));
        }
        let end = match scan.rest {
            None => self.items.len(),
            Some(Location { item, segment: 0, .. }) => item,
            Some(Location { item, segment, .. }) => {
                assembly.append_rest(&self.items[item], segment);
                item + 1
            }
        };
        assembly.close();
        self.splice(first..end, assembly.items)
    }

    /// Returns the segment at a location if its text equals `text`, so that an unchanged segment is shared.
    fn shared(&self, location: Location, text: &str) -> Option<Arc<Segment>> {
        let segment = self.items.get(location.item)?.segments.get(location.segment)?;
        (segment.text() == text).then(|| segment.clone())
    }

    /// Replaces items, except those at either end that did not change.
    fn splice(&mut self, old: Range<usize>, mut items: Vec<Item>) -> Edit {
        let replaced = self.items.get(old.clone()).unwrap_or_default();
        let front = replaced.iter().zip(&items).take_while(|(old, new)| same(old, new)).count();
        // INVARIANT: `front` counts pairs, so neither list is shorter than `front`, and neither remaining list is
        // shorter than `back`.
        let (replaced, rest) = (&replaced[front..], &items[front..]);
        let back = replaced.iter().rev().zip(rest.iter().rev()).take_while(|(old, new)| same(old, new)).count();
        items.truncate(items.len() - back);
        items.drain(..front);
        let old = old.start + front..old.end - back;
        let new = old.start..old.start + items.len();
        self.items.splice(old.clone(), items);
        self.recount(old.start);
        Edit { old, new }
    }
}

/// Whether an item is unchanged, with the same segments.
fn same(old: &Item, new: &Item) -> bool {
    let heads = |item: &Item| (item.kind, item.indent, item.name, item.module, item.segments.len());
    heads(old) == heads(new) && old.layout.same_errors(&new.layout) && old.segments.is_same(&new.segments)
}

fn find(starts: &[(usize, Location)], at: usize) -> Option<Location> {
    let index = starts.binary_search_by_key(&at, |(start, _)| *start).ok()?;
    starts.get(index).map(|(_, location)| *location)
}
