//! A cache of substituted segments between edits.

use super::substitute::{self, Known};
use super::value::PyConstants;
use rx_base::Name;
use rx_syntax::{Segment, Segments};
use std::sync::{Arc, Mutex, PoisonError};

/// The last substitution in an item; the cache does not affect results.
#[derive(Debug, Default)]
pub struct SubstitutionMemo(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    constants: Arc<PyConstants>,
    /// The names of constants that the item binds itself.
    shadowed: Vec<Name>,
    segments: Segments,
    /// One row for each segment.
    rows: Vec<Row>,
    /// The number of rows that bind names of constants.
    binding: usize,
    /// The segments, substituted where that differs.
    results: Segments,
}

/// The findings about a segment.
#[derive(Clone, Debug)]
struct Row {
    /// Whether it may use a constant.
    affected: bool,
    /// The names of constants that it binds.
    binds: Box<[Name]>,
}

impl SubstitutionMemo {
    pub(super) fn substituted(&self, segments: &Segments, constants: &Arc<PyConstants>) -> Segments {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&kept.constants, constants) && kept.constants != *constants {
            *kept = Kept::default();
        }
        kept.constants = constants.clone();
        kept.follow(segments);
        kept.results.clone()
    }
}

impl Kept {
    /// Examines the new segments, and substitutes in the segments that need it.
    fn follow(&mut self, segments: &Segments) {
        let (replaced, changed) = self.segments.changed(segments);
        let new = segments.iter().enumerate().take(changed.end).skip(changed.start).map(|(at, text)| {
            let (affected, binds) = substitute::look_at(text, &self.constants, at == 0);
            Row { affected, binds }
        });
        let new: Vec<Row> = new.collect();
        self.binding += new.iter().filter(|row| !row.binds.is_empty()).count();
        for old in self.rows.splice(replaced.clone(), new) {
            self.binding -= usize::from(!old.binds.is_empty());
        }
        let shadowed = match self.binding {
            0 => Vec::new(),
            _ => sorted(self.rows.iter().flat_map(|row| row.binds.iter().copied())),
        };
        let same_names = shadowed == self.shadowed;
        self.shadowed = shadowed;
        let (replaced, dirty) =
            if same_names { (replaced, changed) } else { (0..self.segments.len(), 0..segments.len()) };
        self.segments = segments.clone();
        let known = Known { constants: &self.constants, shadowed: &self.shadowed };
        let result = |(row, text): (&Row, &Arc<Segment>)| {
            let substituted = if row.affected { substitute::segment(text, &known) } else { None };
            substituted.map_or_else(|| text.clone(), Arc::new)
        };
        let texts = segments.iter().take(dirty.end).skip(dirty.start);
        let results = self.results.splice(replaced, self.rows.iter().skip(dirty.start).zip(texts).map(result));
        // Without a substituted segment, share also the list.
        self.results = if results.is_same(segments) { segments.clone() } else { results };
    }
}

/// Returns the names of constants that an item binds itself.
pub(super) fn shadowed(segments: &Segments, constants: &PyConstants) -> Vec<Name> {
    let binds = |(at, segment): (usize, &Arc<Segment>)| substitute::look_at(segment, constants, at == 0).1.into_vec();
    sorted(segments.iter().enumerate().flat_map(binds))
}

fn sorted(names: impl Iterator<Item = Name>) -> Vec<Name> {
    let mut names: Vec<Name> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}
