//! From names to their definitions, segment by segment.

use crate::elaborate::{Export, SegmentResult};
use crate::entry::Entry;
use rx_base::Name;
use rx_base::name::NameMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Where names are defined: for each name the segments and export slots, ascending.
#[derive(Debug, Default)]
pub(super) struct Definitions(NameMap<SmallVec<[(u32, u32); 2]>>);

impl Definitions {
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

    /// The last definition of `name` before segment `at`: its segment and export.
    pub(super) fn find<'r>(&self, name: Name, at: u32, results: &'r [Arc<SegmentResult>]) -> Option<(u32, &'r Export)> {
        let places = self.0.get(&name)?;
        let before = places.partition_point(|(segment, _)| *segment < at);
        let (segment, slot) = *places.get(before.checked_sub(1)?)?;
        Some((segment, results.get(segment as usize)?.exports.get(slot as usize)?))
    }

    /// What `name` stands for before segment `at`.
    pub(super) fn lookup<'r>(&self, name: Name, at: u32, results: &'r [Arc<SegmentResult>]) -> Option<&'r Entry> {
        self.find(name, at, results).map(|(_, export)| &export.entry)
    }
}

/// A filter over names: two masks that do not meet share no name. 512 bits keep segments of a hundred names apart.
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

    pub(super) fn meets(&self, other: &Mask) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}
