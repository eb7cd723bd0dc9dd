//! The scope at a position of a checked function, and the elaboration of hypothetical statements there.
//!
//! For queries of the language server. A name is looked up only when it is asked for, so the cost of an answer does
//! not grow with the length of the function.

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

/// The scope at a byte offset in a segment, as an [`Outer`] that answers lookups from the recorded results.
pub struct PositionScope<'a> {
    results: &'a [Arc<SegmentResult>],
    segment: usize,
    offset: u32,
    signatures: &'a dyn Fn(Name) -> Option<Arc<Signature>>,
    found: RefCell<NameMap<Option<Entry>>>,
}

impl<'a> PositionScope<'a> {
    /// Creates the scope before byte `offset` of segment `segment`; `signatures` returns the signatures of the
    /// module's items.
    pub fn new(
        check: &'a FunctionCheck,
        segment: usize,
        offset: u32,
        signatures: &'a dyn Fn(Name) -> Option<Arc<Signature>>,
    ) -> PositionScope<'a> {
        PositionScope { results: &check.segments, segment, offset, signatures, found: RefCell::default() }
    }

    /// Returns the blocks that are open at the start of the segment.
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

impl Outer for PositionScope<'_> {
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

    /// Returns nothing: known values do not affect types.
    fn summary(&self, _name: Name) -> Option<Arc<Summary>> {
        None
    }
}

/// Elaborates `statements` as if they were written at the position of `before`, inside the dataflow block with the
/// ordinal `dataflow` if one is open there.
pub fn suppose(
    statements: &[String],
    before: &PositionScope<'_>,
    dataflow: Option<u32>,
    file: &FileContext,
) -> SegmentResult {
    // The statements are indented by four columns, since the default state has the function header in column 0.
    let dataflow_count = dataflow.map_or(0, |ordinal| ordinal.saturating_add(1));
    let dataflow = dataflow.map(|ordinal| (0, ordinal));
    let start = BlockState { dataflow, dataflow_count, ..BlockState::default() };
    let text: String = statements.iter().flat_map(|statement| ["    ", statement, "\n"]).collect();
    elaborate(&Segment::new(text.into()), &start, file, before, &mut Default::default())
}
