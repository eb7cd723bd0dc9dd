//! An index from names to their definitions and last uses in the segments of a function.

use crate::elaborate::{Export, SegmentResults};
use crate::entry::Entry;
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use smallvec::SmallVec;
use std::ops::Range;

/// The definitions and the last use of each name.
#[derive(Debug, Default)]
pub(super) struct Definitions(NameMap<Places>);

/// The segments that define and use a name.
#[derive(Debug, Default)]
struct Places {
    /// Pairs of a segment and an index into its exports, ascending.
    defined: SmallVec<[(u32, u32); 2]>,
    /// No later segment uses the name.
    last_use: u32,
}

impl Definitions {
    /// Reserves capacity for this many names.
    pub(super) fn reserve(&mut self, names: usize) {
        self.0.reserve(names);
    }

    /// Adds the exports of segment `at`.
    pub(super) fn insert(&mut self, at: u32, exports: &[Export]) {
        for (slot, export) in exports.iter().enumerate() {
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            let defined = &mut self.0.entry(export.name).or_default().defined;
            let position = defined.partition_point(|place| *place < (at, slot));
            defined.insert(position, (at, slot));
        }
    }

    /// Removes the exports of segment `at`.
    pub(super) fn remove(&mut self, at: u32, exports: &[Export]) {
        for export in exports {
            if let Some(places) = self.0.get_mut(&export.name) {
                places.defined.retain(|(segment, _)| *segment != at);
            }
        }
    }

    /// Adds a use of a name in segment `at`. The name need not be defined.
    pub(super) fn add_use(&mut self, name: Name, at: u32) {
        let last_use = &mut self.0.entry(name).or_default().last_use;
        *last_use = at.max(*last_use);
    }

    /// Returns a segment after which no segment uses the name.
    pub(super) fn last_use(&self, name: Name) -> u32 {
        self.0.get(&name).map_or(0, |places| places.last_use)
    }

    /// Removes the definitions in the segments `old`, and renumbers later segments: the one after `old` gets the number
    /// `end`.
    pub(super) fn renumber(&mut self, old: &Range<u32>, end: u32) {
        for places in self.0.values_mut() {
            places.defined.retain(|(segment, _)| {
                let at = *segment;
                if at >= old.end {
                    *segment = at - old.end + end;
                }
                !old.contains(&at)
            });
            if places.last_use >= old.start {
                places.last_use = places.last_use.max(old.end) - old.end + end;
            }
        }
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
        let defined = self.0.get(&name).map(|places| places.defined.as_slice()).unwrap_or_default();
        let before = defined.partition_point(|(segment, _)| *segment < at);
        defined
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
    last_use: u32,
}

impl Names {
    /// Adds a name of which segment `last_use` is the last that may use it.
    pub(super) fn add(&mut self, name: Name, last_use: u32) {
        self.names.insert(name, ());
        self.mask.add(name);
        self.last_use = last_use.max(self.last_use);
    }

    /// Returns a segment after which no segment uses one of the names.
    pub(super) fn last_use(&self) -> u32 {
        self.last_use
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
