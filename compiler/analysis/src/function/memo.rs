//! The memoized state of a function's last run.

use super::index::{Definitions, Mask};
use crate::elaborate::{BlockState, SegmentResult, SegmentResults, SharedTypes};
use crate::signature::Header;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_context::FileContext;
use rx_ir::{IndexSites, Signature, Summary};
use rx_syntax::Segments;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The state of the last run of a function, which the next run reuses.
#[derive(Debug, Default)]
pub struct FunctionMemo(Mutex<Option<Box<State>>>);

/// The state of a run.
///
/// INVARIANT: `segments`, `results`, `starts` and `masks` have one entry per segment; this module and the run index
/// them by segment numbers.
#[derive(Debug)]
pub(super) struct State {
    pub(super) file: Arc<FileContext>,
    pub(super) segments: Segments,
    pub(super) results: SegmentResults,
    /// The block state at the start of each segment, as of its elaboration.
    pub(super) starts: Vec<BlockState>,
    /// A filter of the names that each segment looked up.
    pub(super) masks: Vec<Mask>,
    pub(super) definitions: Definitions,
    pub(super) globals: NameMap<Option<Arc<Signature>>>,
    pub(super) summaries: NameMap<Option<Arc<Summary>>>,
    pub(super) with_diagnostics: BTreeSet<u32>,
    pub(super) with_requirements: BTreeSet<u32>,
    /// The segments with names that begin with a digit.
    pub(super) numbered: BTreeSet<u32>,
    /// The segments that define symbolic dims.
    pub(super) symbolic: BTreeSet<u32>,
    pub(super) index_sites: IndexSites,
    pub(super) types: SharedTypes,
}

impl FunctionMemo {
    pub(super) fn take(&self) -> Option<Box<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn put(&self, state: Box<State>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    /// Returns the items that the last run queried.
    pub(super) fn globals(&self) -> Vec<Name> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|state| state.globals.keys().copied().collect()).unwrap_or_default()
    }

    /// Returns the functions whose summaries the last run queried.
    pub(super) fn summaries(&self) -> Vec<Name> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|state| state.summaries.keys().copied().collect()).unwrap_or_default()
    }
}

impl State {
    /// Creates the state of a function of which only the header is elaborated.
    pub(super) fn new(segments: &Segments, header: &Header, file: &Arc<FileContext>) -> State {
        let empty = Arc::new(empty_result());
        let mut results = vec![empty; segments.len()];
        let mut definitions = Definitions::default();
        // Most lines bind at most one name.
        let lines: usize = segments.iter().skip(1).map(|segment| segment.line_count() as usize).sum();
        definitions.reserve(header.result.exports.len() + lines);
        if let Some(first) = results.first_mut() {
            *first = header.result.clone();
            definitions.insert(0, &header.result.exports);
        }
        State {
            file: file.clone(),
            segments: segments.clone(),
            results: results.into_iter().collect(),
            starts: vec![BlockState::default(); segments.len()],
            masks: vec![Mask::default(); segments.len()],
            definitions,
            globals: NameMap::default(),
            summaries: NameMap::default(),
            with_diagnostics: BTreeSet::new(),
            with_requirements: BTreeSet::new(),
            numbered: BTreeSet::new(),
            symbolic: BTreeSet::new(),
            index_sites: header.result.index_sites,
            types: SharedTypes::clone(&header.types),
        }
    }

    /// Replaces the segments of the last run. Returns the range of the new segments, and the names that the removed
    /// segments defined.
    pub(super) fn replace_segments(&mut self, segments: &Segments) -> (Range<usize>, Vec<Name>) {
        let (replaced, dirty) = self.segments.changed(segments);
        self.segments = segments.clone();
        if replaced.len() == dirty.len() {
            // A segment's last result stays until the new one is compared with it.
            return (dirty, Vec::new());
        }
        // Indices shift, so the removed results are dropped. All names that they exported count as changed.
        let removed = self.results.iter().take(replaced.end).skip(replaced.start);
        let gone = removed.clone().flat_map(|result| &result.exports).map(|export| export.name).collect();
        for result in removed {
            self.index_sites -= result.index_sites;
        }
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let (old, end) = (number(replaced.start)..number(replaced.end), number(dirty.end));
        self.definitions.renumber(&old, end);
        let sets = [&mut self.with_diagnostics, &mut self.with_requirements, &mut self.numbered, &mut self.symbolic];
        for set in sets {
            *set = renumbered(set, &old, end);
        }
        let empty = Arc::new(empty_result());
        self.results = self.results.splice(replaced.clone(), std::iter::repeat_n(empty, dirty.len()));
        self.starts.splice(replaced.clone(), std::iter::repeat_n(BlockState::default(), dirty.len()));
        self.masks.splice(replaced, std::iter::repeat_n(Mask::default(), dirty.len()));
        (dirty, gone)
    }

    /// Notes whether a segment has names that begin with a digit.
    pub(super) fn note_numbered(&mut self, at: usize) {
        let Some(segment) = self.segments.get(at) else { return };
        let is_empty = segment.tree().tokens.numbered().is_empty();
        note(&mut self.numbered, u32::try_from(at).unwrap_or(u32::MAX), is_empty);
    }

    /// Returns the summary of the function's values for callers.
    pub(super) fn summary(&self) -> Option<Arc<Summary>> {
        /// The maximal number of accesses in a summary; later ones are dropped.
        const MOST: usize = 64;
        let results = self.with_requirements.iter().filter_map(|at| self.results.get(*at as usize));
        let requirements: Vec<_> = results.flat_map(|result| result.requirements.iter().cloned()).take(MOST).collect();
        // As for the return type, the last `return` counts.
        let returning = self.results.iter().rev().find(|result| result.returned.is_some());
        let result = returning.and_then(|result| result.returned_values.clone());
        (!requirements.is_empty() || result.is_some()).then(|| Arc::new(Summary { requirements, result }))
    }
}

/// Removes segment `at` from a set of segments if it is `empty`, otherwise adds it.
pub(super) fn note(set: &mut BTreeSet<u32>, at: u32, empty: bool) {
    match empty {
        true => set.remove(&at),
        false => set.insert(at),
    };
}

/// Returns a set of segments without the segments `old`, where the segment after them gets the number `end`.
fn renumbered(set: &BTreeSet<u32>, old: &Range<u32>, end: u32) -> BTreeSet<u32> {
    let before = set.range(..old.start).copied();
    before.chain(set.range(old.end..).map(|at| at - old.end + end)).collect()
}

fn empty_result() -> SegmentResult {
    SegmentResult {
        imports: Vec::new(),
        globals: Vec::new(),
        summaries: Vec::new(),
        exports: Vec::new(),
        symbols: Vec::new(),
        end: BlockState::default(),
        diagnostics: Vec::new(),
        rows: Vec::new(),
        returned: None,
        return_text: None,
        returned_values: None,
        requirements: Vec::new(),
        index_sites: IndexSites::default(),
        unresolved: Vec::new(),
        wanted: Vec::new(),
        statements: 0,
        recorded: Default::default(),
    }
}
