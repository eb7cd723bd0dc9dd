//! The scope at a position of a checked function, and the elaboration of hypothetical statements there.
//!
//! For queries of the language server. A name is looked up only when it is asked for, so the cost of an answer does
//! not grow with the length of the function.

use crate::elaborate::{BlockState, Row, RowKind, SegmentResult, SegmentResults, elaborate};
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
    results: &'a SegmentResults,
    segment: usize,
    offset: u32,
    /// The variables of the `if` branches and nested functions that are open at the position, nearest first.
    open: Vec<&'a Row>,
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
        let results = &check.segments;
        PositionScope { results, segment, offset, open: Vec::new(), signatures, found: RefCell::default() }
    }

    /// Adds the variables of the branches and nested functions of `segment`, the text of the segment, that are open at
    /// the position.
    #[must_use]
    pub fn with_open_blocks(mut self, segment: &Segment) -> PositionScope<'a> {
        self.open = self.results.get(self.segment).map(|own| open_rows(segment, own, self.offset)).unwrap_or_default();
        self
    }

    /// Returns the blocks that are open at the start of the segment.
    pub fn start(&self) -> BlockState {
        let before = self.segment.checked_sub(1).and_then(|before| self.results.get(before));
        before.map(|before| before.end.clone()).unwrap_or_default()
    }

    fn search(&self, name: Name) -> Option<Entry> {
        if let Some(row) = self.open.iter().find(|row| row.name == name) {
            return Some(Entry::value(row.ty.clone()));
        }
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
        let earlier = self.results.iter().take(self.segment);
        let exports = earlier.rev().flat_map(|result| result.exports.iter().rev());
        exports.into_iter().find(|export| export.name == name).map(|export| export.entry.clone())
    }
}

/// Returns the variables bound before byte `offset` of a segment in the `if` branches and nested functions that are open
/// there, nearest first. For example, at `|` these are `b` and `a`:
///
/// ```text
/// if c:
///     a = R.abs(x)
///     if d:
///         e = R.exp(a)
///     else:
///         b = R.log(a)
///         y = R.add(|
/// ```
pub fn open_rows<'r>(segment: &Segment, result: &'r SegmentResult, offset: u32) -> Vec<&'r Row> {
    let statements = &segment.tree().statements;
    let Some((last, begun)) = segment.statement_before(offset) else { return Vec::new() };
    let after = segment.text().get(begun.span.end as usize..offset as usize).unwrap_or_default();
    // On a new line, the column of the position decides which blocks are open.
    let new_line = after.rsplit_once(['\n', '\r']).map(|(_, line)| line.chars().take_while(|it| *it == ' ').count());
    let mut indent = new_line.and_then(|column| u32::try_from(column).ok()).unwrap_or(begun.indent);
    let until = if new_line.is_some() { last + 1 } else { last };
    let outermost = statements.first().map_or(0, |first| first.indent);
    // For each statement that binds visible variables, their kind: a header binds parameters.
    let mut visible: Vec<Option<RowKind>> = vec![None; statements.len()];
    for (statement, kind) in statements.iter().zip(&mut visible).take(until).rev() {
        let is_header = statement.indent < indent;
        if statement.indent > indent || (statement.indent == outermost && !is_header) {
            continue;
        }
        indent = statement.indent;
        *kind = Some(if is_header { RowKind::Param } else { RowKind::Binding });
    }
    let is_visible = |row: &&Row| visible.get(row.statement as usize) == Some(&Some(row.kind));
    result.rows.iter().rev().filter(is_visible).collect()
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
