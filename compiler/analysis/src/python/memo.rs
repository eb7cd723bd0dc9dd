//! A cache of substituted segments between edits.

use super::substitute::{self, Known};
use super::value::PyConstants;
use rx_base::Name;
use rx_syntax::Segment;
use std::sync::{Arc, Mutex, PoisonError};

/// The last substitution in an item; the cache does not affect results.
#[derive(Debug, Default)]
pub struct SubstitutionMemo(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    constants: Arc<PyConstants>,
    /// The names of constants that the item binds itself.
    shadowed: Vec<Name>,
    segments: Vec<Row>,
    /// The number of rows with a substituted segment.
    substituted: usize,
    /// The number of rows that bind names of constants.
    binding: usize,
}

/// A segment that has been examined.
#[derive(Clone, Debug)]
struct Row {
    text: Arc<Segment>,
    /// Whether it may use a constant.
    affected: bool,
    /// The names of constants that it binds.
    binds: Box<[Name]>,
    /// The substituted segment, if it differs.
    result: Option<Arc<Segment>>,
}

impl SubstitutionMemo {
    pub(super) fn substituted(
        &self,
        segments: &Arc<[Arc<Segment>]>,
        constants: &Arc<PyConstants>,
    ) -> Arc<[Arc<Segment>]> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&kept.constants, constants) && kept.constants != *constants {
            *kept = Kept::default();
        }
        kept.constants = constants.clone();
        kept.follow(segments);
        if kept.substituted == 0 {
            return segments.clone();
        }
        kept.segments.iter().map(|row| row.result.as_ref().unwrap_or(&row.text).clone()).collect()
    }
}

impl Kept {
    /// Examines the new segments, and substitutes in the segments that need it.
    fn follow(&mut self, segments: &[Arc<Segment>]) {
        let (before, after) = (self.segments.len(), segments.len());
        let same = |(row, segment): (&Row, &Arc<Segment>)| Arc::ptr_eq(&row.text, segment);
        let prefix = self.segments.iter().zip(segments).take_while(|pair| same(*pair)).count();
        let most = before.min(after) - prefix;
        let suffix =
            self.segments.iter().rev().zip(segments.iter().rev()).take(most).take_while(|pair| same(*pair)).count();
        let new = segments.iter().enumerate().skip(prefix).take(after - suffix - prefix).map(|(at, text)| {
            let (affected, binds) = substitute::look_at(text, &self.constants, at == 0);
            Row { text: text.clone(), affected, binds, result: None }
        });
        let new: Vec<Row> = new.collect();
        self.binding += new.iter().filter(|row| !row.binds.is_empty()).count();
        for old in self.segments.splice(prefix..before - suffix, new) {
            self.binding -= usize::from(!old.binds.is_empty());
            self.substituted -= usize::from(old.result.is_some());
        }
        let shadowed = match self.binding {
            0 => Vec::new(),
            _ => sorted(self.segments.iter().flat_map(|row| row.binds.iter().copied())),
        };
        let same_names = shadowed == self.shadowed;
        self.shadowed = shadowed;
        let dirty = if same_names { prefix..after - suffix } else { 0..after };
        let known = Known { constants: &self.constants, shadowed: &self.shadowed };
        for row in self.segments.iter_mut().take(dirty.end).skip(dirty.start).filter(|row| row.affected) {
            let result = substitute::segment(&row.text, &known).map(Arc::new);
            self.substituted += usize::from(result.is_some());
            self.substituted -= usize::from(row.result.is_some());
            row.result = result;
        }
    }
}

/// Returns the names of constants that an item binds itself.
pub(super) fn shadowed(segments: &[Arc<Segment>], constants: &PyConstants) -> Vec<Name> {
    let binds = |(at, segment): (usize, &Arc<Segment>)| substitute::look_at(segment, constants, at == 0).1.into_vec();
    sorted(segments.iter().enumerate().flat_map(binds))
}

fn sorted(names: impl Iterator<Item = Name>) -> Vec<Name> {
    let mut names: Vec<Name> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}
