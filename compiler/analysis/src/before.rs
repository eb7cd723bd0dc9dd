//! What stands before a place of a checked function, and what statements written there would be.
//!
//! For people who look at a place: names are looked for when they are asked for, so that an answer does not cost what the
//! function is long.

use crate::elaborate::{BlockState, SegmentResult, elaborate};
use crate::entry::{Entry, Outer};
use crate::function::FunctionCheck;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_context::FileContext;
use rx_ir::{Signature, Summary};
use rx_syntax::Segment;
use std::cell::RefCell;
use std::sync::Arc;

/// What is known at a byte of a segment.
pub struct Before<'a> {
    results: &'a [Arc<SegmentResult>],
    segment: usize,
    offset: u32,
    signatures: &'a dyn Fn(Name) -> Option<Arc<Signature>>,
    found: RefCell<NameMap<Option<Entry>>>,
}

impl<'a> Before<'a> {
    /// What is known before byte `offset` of segment `segment`; `signatures` answers for the module's items.
    pub fn new(
        check: &'a FunctionCheck,
        segment: usize,
        offset: u32,
        signatures: &'a dyn Fn(Name) -> Option<Arc<Signature>>,
    ) -> Before<'a> {
        Before { results: &check.segments, segment, offset, signatures, found: RefCell::default() }
    }

    /// The blocks that are open where the segment starts.
    pub fn start(&self) -> BlockState {
        let before = self.segment.checked_sub(1).and_then(|before| self.results.get(before));
        before.map(|before| before.end.clone()).unwrap_or_default()
    }

    fn search(&self, name: Name) -> Option<Entry> {
        let own = self.results.get(self.segment)?;
        let defined_here = own
            .exports
            .iter()
            .rev()
            .find(|export| export.name == name && export.span.is_some_and(|span| span.start < self.offset));
        if let Some(export) = defined_here {
            return Some(export.entry.clone());
        }
        if let Some((_, entry)) = own.imports.iter().find(|(known, _)| *known == name) {
            return entry.clone();
        }
        let earlier = self.results.get(..self.segment).unwrap_or_default();
        let exports = earlier.iter().rev().flat_map(|result| result.exports.iter().rev());
        exports.into_iter().find(|export| export.name == name).map(|export| export.entry.clone())
    }
}

impl Outer for Before<'_> {
    fn lookup(&self, name: Name) -> Option<Entry> {
        if let Some(found) = self.found.borrow().get(&name) {
            return found.clone();
        }
        let found = self.search(name);
        self.found.borrow_mut().insert(name, found.clone());
        found
    }

    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        (self.signatures)(name)
    }

    /// Values are in no type.
    fn summary(&self, _name: Name) -> Option<Arc<Summary>> {
        None
    }
}

/// What statements would be, were each written at the place that `before` speaks of; in the dataflow block of this ordinal,
/// where one is open there.
pub fn suppose(statements: &[String], before: &Before<'_>, dataflow: Option<u32>, file: &FileContext) -> SegmentResult {
    // Columns are ours to choose: the header's is 0.
    let dataflow_count = dataflow.map_or(0, |ordinal| ordinal.saturating_add(1));
    let dataflow = dataflow.map(|ordinal| (0, ordinal));
    let start = BlockState { dataflow, dataflow_count, ..BlockState::default() };
    let text: String = statements.iter().flat_map(|statement| ["    ", statement, "\n"]).collect();
    elaborate(&Segment::new(text.into()), &start, file, before, &mut Default::default())
}
