//! An index from names to their definitions in the segments of a function.

use crate::elaborate::{Export, SegmentResults};
use crate::entry::Entry;
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use smallvec::SmallVec;
use std::ops::Range;

/// The definitions of each name: pairs of a segment and an index into its exports, ascending.
#[derive(Debug, Default)]
pub(super) struct Definitions(NameMap<SmallVec<[(u32, u32); 2]>>);

impl Definitions {
    /// Reserves capacity for this many names.
    pub(super) fn reserve(&mut self, names: usize) {
        self.0.reserve(names);
    }

    /// Adds the exports of segment `at`.
    pub(super) fn insert(&mut self, at: u32, exports: &[Export]) {
        for (slot, export) in exports.iter().enumerate() {
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            let places = self.0.entry(export.name).or_default();
            let position = places.partition_point(|place| *place < (at, slot));
            places.insert(position, (at, slot));
        }
    }

    /// Removes the exports of segment `at`.
    pub(super) fn remove(&mut self, at: u32, exports: &[Export]) {
        for export in exports {
            if let Some(places) = self.0.get_mut(&export.name) {
                places.retain(|(segment, _)| *segment != at);
                if places.is_empty() {
                    self.0.remove(&export.name);
                }
            }
        }
    }

    /// Removes the definitions in the segments `old`, and renumbers later segments: the one after `old` gets the number
    /// `end`.
    pub(super) fn renumber(&mut self, old: &Range<u32>, end: u32) {
        self.0.retain(|_, places| {
            places.retain(|(segment, _)| {
                let at = *segment;
                if at >= old.end {
                    *segment = at - old.end + end;
                }
                !old.contains(&at)
            });
            !places.is_empty()
        });
    }

    /// Returns the last definition of `name` before segment `at`.
    pub(super) fn lookup<'r>(&self, name: Name, at: u32, results: &'r SegmentResults) -> Option<&'r Entry> {
        self.last(name, at, results).map(|(_, entry)| entry)
    }

    /// Like [`Definitions::lookup`]; returns the segment of the definition too.
    pub(super) fn last<'r>(&self, name: Name, at: u32, results: &'r SegmentResults) -> Option<(u32, &'r Entry)> {
        self.before(name, at, results).next().map(|(segment, export)| (segment, &export.entry))
    }

    /// Returns the last place of a definition of `name` before segment `at`: its segment and span.
    pub(super) fn place(&self, name: Name, at: u32, results: &SegmentResults) -> Option<(u32, Span)> {
        self.before(name, at, results).find_map(|(segment, export)| Some((segment, export.span?)))
    }

    /// Returns the exports of `name` before segment `at`, the last one first.
    fn before<'r>(&self, name: Name, at: u32, results: &'r SegmentResults) -> impl Iterator<Item = (u32, &'r Export)> {
        let places = self.0.get(&name).map(|places| places.as_slice()).unwrap_or_default();
        let before = places.partition_point(|(segment, _)| *segment < at);
        places
            .iter()
            .take(before)
            .rev()
            .map_while(|(segment, slot)| Some((*segment, results.get(*segment as usize)?.exports.get(*slot as usize)?)))
    }
}

/// A Bloom filter over names: two masks without a common bit share no name. With 512 bits, segments of a hundred
/// names are usually distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mask([u64; 8]);

impl Mask {
    pub(super) fn add(&mut self, name: Name) {
        let hash = name.precomputed_hash();
        let word = (hash >> 6) as usize % self.0.len();
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (hash & 63);
        }
    }

    fn meets(&self, other: &Mask) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

/// A set of names with its filter.
#[derive(Default)]
pub(super) struct Names {
    names: NameMap<()>,
    mask: Mask,
}

impl Names {
    pub(super) fn add(&mut self, name: Name) {
        self.names.insert(name, ());
        self.mask.add(name);
    }

    pub(super) fn contains(&self, name: Name) -> bool {
        self.names.contains_key(&name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether one of the names may be among those of a filter.
    pub(super) fn meet(&self, mask: &Mask) -> bool {
        self.mask.meets(mask)
    }
}
