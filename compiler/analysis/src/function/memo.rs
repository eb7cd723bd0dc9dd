//! What is kept of a function's last run.

use super::index::{Definitions, Mask};
use crate::elaborate::{BlockState, SegmentResult, SharedTypes};
use crate::signature::Header;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_context::FileContext;
use rx_ir::{IndexSites, Signature, Summary};
use rx_syntax::Segment;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The last run of a function, kept to make the next one cheap.
#[derive(Debug, Default)]
pub struct FunctionMemo(Mutex<Option<Box<State>>>);

/// INVARIANT: `segments`, `results`, `starts` and `masks` have one entry per segment; this module and the run index them by
/// numbers of segments.
#[derive(Debug)]
pub(super) struct State {
    pub(super) file: Arc<FileContext>,
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) results: Vec<Arc<SegmentResult>>,
    /// The block state each segment was elaborated in.
    pub(super) starts: Vec<BlockState>,
    /// For each segment, a filter of the names it asked for.
    pub(super) masks: Vec<Mask>,
    pub(super) definitions: Definitions,
    pub(super) globals: NameMap<Option<Arc<Signature>>>,
    pub(super) summaries: NameMap<Option<Arc<Summary>>>,
    pub(super) with_diagnostics: BTreeSet<u32>,
    pub(super) with_requirements: BTreeSet<u32>,
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

    /// The items the last run asked for.
    pub(super) fn globals(&self) -> Vec<Name> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|state| state.globals.keys().copied().collect()).unwrap_or_default()
    }

    /// The functions of whose values the last run asked.
    pub(super) fn summaries(&self) -> Vec<Name> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|state| state.summaries.keys().copied().collect()).unwrap_or_default()
    }
}

impl State {
    /// Of a function of which nothing is known but its header.
    pub(super) fn new(segments: &[Arc<Segment>], header: &Header, file: &Arc<FileContext>) -> State {
        let empty = Arc::new(empty_result());
        let mut results = vec![empty; segments.len()];
        let mut definitions = Definitions::default();
        // A line binds one name at most, nearly always.
        let lines: usize = segments.iter().skip(1).map(|segment| segment.line_count() as usize).sum();
        definitions.reserve(header.result.exports.len() + lines);
        if let Some(first) = results.first_mut() {
            *first = header.result.clone();
            definitions.insert(0, &header.result.exports);
        }
        State {
            file: file.clone(),
            segments: segments.to_vec(),
            results,
            starts: vec![BlockState::default(); segments.len()],
            masks: vec![Mask::default(); segments.len()],
            definitions,
            globals: NameMap::default(),
            summaries: NameMap::default(),
            with_diagnostics: BTreeSet::new(),
            with_requirements: BTreeSet::new(),
            index_sites: header.result.index_sites,
            types: SharedTypes::clone(&header.types),
        }
    }

    /// Puts these segments in place of the last run's. The result is which of them are new, and the names whose definitions
    /// went with those they replace.
    pub(super) fn replace_segments(&mut self, segments: &[Arc<Segment>]) -> (Range<usize>, Vec<Name>) {
        let (before, after) = (self.segments.len(), segments.len());
        let prefix = self.segments.iter().zip(segments).take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let most = before.min(after) - prefix;
        let pairs_from_behind = self.segments.iter().rev().zip(segments.iter().rev()).take(most);
        let suffix = pairs_from_behind.take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let (replaced, dirty) = (prefix..before - suffix, prefix..after - suffix);
        if before == after {
            // A segment's last result stays until there is another, with which it is compared.
            for (slot, segment) in self.segments[dirty.clone()].iter_mut().zip(&segments[dirty.clone()]) {
                *slot = segment.clone();
            }
            return (dirty, Vec::new());
        }
        // Indices shift: what the replaced segments exported is compared by what replaces it, name by name.
        let gone = self.results[replaced.clone()].iter().flat_map(|result| &result.exports);
        let gone = gone.map(|export| export.name).collect();
        self.segments = segments.to_vec();
        let empty = Arc::new(empty_result());
        self.results.splice(replaced.clone(), std::iter::repeat_n(empty, dirty.len()));
        self.starts.splice(replaced.clone(), std::iter::repeat_n(BlockState::default(), dirty.len()));
        self.masks.splice(replaced, std::iter::repeat_n(Mask::default(), dirty.len()));
        self.index_results();
        (dirty, gone)
    }

    /// Finds anew what is kept of all results together.
    fn index_results(&mut self) {
        self.definitions = Definitions::default();
        self.with_diagnostics.clear();
        self.with_requirements.clear();
        self.index_sites = IndexSites::default();
        for (at, result) in self.results.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            self.definitions.insert(at, &result.exports);
            if !result.diagnostics.is_empty() {
                self.with_diagnostics.insert(at);
            }
            if !result.requirements.is_empty() {
                self.with_requirements.insert(at);
            }
            self.index_sites += result.index_sites;
        }
    }

    /// What callers are told of the function's values.
    pub(super) fn summary(&self) -> Option<Arc<Summary>> {
        /// Accesses beyond are not told of.
        const MOST: usize = 64;
        let results = self.with_requirements.iter().filter_map(|at| self.results.get(*at as usize));
        let requirements: Vec<_> = results.flat_map(|result| result.requirements.iter().cloned()).take(MOST).collect();
        // As for the type, the last value returned counts.
        let returning = self.results.iter().rev().find(|result| result.returned.is_some());
        let result = returning.and_then(|result| result.returned_values.clone());
        (!requirements.is_empty() || result.is_some()).then(|| Arc::new(Summary { requirements, result }))
    }
}

fn empty_result() -> SegmentResult {
    SegmentResult {
        imports: Vec::new(),
        globals: Vec::new(),
        summaries: Vec::new(),
        exports: Vec::new(),
        end: BlockState::default(),
        diagnostics: Vec::new(),
        rows: Vec::new(),
        returned: None,
        return_text: None,
        returned_values: None,
        requirements: Vec::new(),
        index_sites: IndexSites::default(),
        unresolved: Vec::new(),
        statements: 0,
        recorded: Default::default(),
    }
}
