//! Incremental checking of a function: elaborates its segments in order, and reruns only those whose text or recorded
//! answers changed.
//!
//! The result of a segment is a pure function of its text, the block state at its start, the file context and the
//! answers that it recorded. [`FunctionMemo`] keeps the results of the last run and an index from names to their
//! definitions. A run finds the segments whose text changed, elaborates them, and then elaborates later segments that
//! use a *name* whose definition changed. So an edit that changes no exported type reruns a single segment. The memo
//! affects only the cost of a run, never its result.

mod advice;
mod attributes;
mod diagnostics;
mod index;
mod memo;
mod move_out;
mod proposal;

pub use memo::FunctionMemo;

use crate::elaborate::{BlockState, Export, SegmentResult, SegmentResults, elaborate};
use crate::entry::{Entry, FUNCTION_CONTEXT, Outer};
use crate::signature::Header;
use index::{Mask, Names};
use memo::{State, note};
use rx_base::name::{NameMap, name};
use rx_base::{Diagnostic, Name};
use rx_context::{FileContext, ItemPlace};
use rx_ir::{IndexSites, Signature, StructInfo, Summary};
use rx_syntax::{Segments, with_trees_ahead};
use std::cell::RefCell;
use std::sync::Arc;

/// The result of the check of a Relax function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCheck {
    /// The results by segment; the first is that of the header.
    pub segments: SegmentResults,
    /// The diagnostics, in order of position.
    pub diagnostics: Arc<[Diagnostic<ItemPlace>]>,
    /// The declared return type, otherwise the inferred one.
    pub returned: Option<StructInfo>,
    /// The counts of its index accesses.
    pub index_sites: IndexSites,
    /// The summary of its values for callers; `None` if it is empty.
    pub summary: Option<Arc<Summary>>,
    /// The segments with names that begin with a digit, in order.
    pub numbered: Vec<u32>,
    /// The segments that define symbolic dims, in order.
    pub symbolic: Vec<u32>,
}

/// The queries of a function's check about its module.
pub trait Items {
    /// Returns the signature of the item `name`.
    fn signature(&self, name: Name) -> Option<Arc<Signature>>;
    /// Returns the summary of the values of the function `name`.
    fn summary(&self, name: Name) -> Option<Arc<Summary>>;
}

/// Checks a Relax function. The first of `segments` is its header, elaborated in `header`; `items` answers queries
/// about the module's items.
pub fn check_function(
    segments: &Segments,
    header: &Header,
    file: &Arc<FileContext>,
    items: &dyn Items,
    memo: &FunctionMemo,
) -> FunctionCheck {
    // Query before the memo is taken: a cancelled query unwinds from here, and must not lose the memo.
    let globals = memo.globals().into_iter().map(|name| (name, items.signature(name))).collect();
    let summaries = memo.summaries().into_iter().map(|name| (name, items.summary(name))).collect();
    let mut run = Run::start(memo.take(), segments, header, file, items, Answers { globals, summaries });
    with_trees_ahead(segments, run.dirty.clone(), || run.all());
    let (state, check) = run.finish(header);
    memo.put(state);
    check
}

/// The module's current answers to the queries of the last run.
struct Answers {
    globals: NameMap<Option<Arc<Signature>>>,
    summaries: NameMap<Option<Arc<Summary>>>,
}

struct Run<'a> {
    state: Box<State>,
    items: &'a dyn Items,
    /// The segments whose text changed: `[first, last)`.
    dirty: std::ops::Range<usize>,
    /// The names whose definition after some segment differs from that in the last run.
    changed: Names,
    globals_changed: bool,
}

impl<'a> Run<'a> {
    fn start(
        old: Option<Box<State>>,
        segments: &Segments,
        header: &Header,
        file: &Arc<FileContext>,
        items: &'a dyn Items,
        answers: Answers,
    ) -> Run<'a> {
        let usable = old.filter(|old| Arc::ptr_eq(&old.file, file) || old.file == *file);
        let (state, dirty, gone) = match usable {
            Some(mut state) => {
                let (dirty, gone) = state.replace_segments(segments);
                (state, dirty, gone)
            }
            None => (Box::new(State::new(segments, header, file)), 1..segments.len(), Vec::new()),
        };
        let mut run = Run { state, items, dirty, changed: Names::default(), globals_changed: false };
        gone.into_iter().for_each(|name| run.name_changed(name));
        for (name, now) in answers.globals {
            let before = run.state.globals.get(&name).cloned().flatten();
            if before != now {
                run.item_changed(name);
            }
            run.state.globals.insert(name, now);
        }
        for (name, now) in answers.summaries {
            let before = run.state.summaries.get(&name).cloned().flatten();
            if before != now {
                run.item_changed(name);
            }
            run.state.summaries.insert(name, now);
        }
        run.adopt_header(header);
        run
    }

    /// Marks an item whose signature or summary differs from that in the last run.
    fn item_changed(&mut self, name: Name) {
        self.globals_changed = true;
        self.name_changed(name);
    }

    /// Marks a name whose definition differs from that in the last run.
    fn name_changed(&mut self, name: Name) {
        self.changed.add(name, self.state.definitions.last_use(name));
    }

    /// Replaces the header's result of the last run.
    fn adopt_header(&mut self, header: &Header) {
        // The other segments are noted when they are elaborated.
        self.state.note_numbered(0);
        let Some(first) = self.state.results.first() else { return };
        if Arc::ptr_eq(first, &header.result) {
            note(&mut self.state.with_diagnostics, 0, header.result.diagnostics.is_empty());
            note(&mut self.state.symbolic, 0, header.result.symbols.is_empty());
            return;
        }
        self.replace(0, header.result.clone());
        self.dirty.start = self.dirty.start.max(1).min(self.state.segments.len());
    }

    /// Stores the new result of a segment, and marks the names whose definition changed.
    fn replace(&mut self, at: usize, result: Arc<SegmentResult>) {
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let old = std::mem::replace(&mut self.state.results[at], result.clone());
        if old.exports != result.exports {
            // Changed names matter only to later segments that are not elaborated anyway.
            let all_run = self.dirty.start <= at + 1 && self.dirty.end >= self.state.segments.len();
            if !all_run {
                changed_exports(&old.exports, &result.exports).into_iter().for_each(|name| self.name_changed(name));
            }
            self.state.definitions.remove(index, &old.exports);
            self.state.definitions.insert(index, &result.exports);
        }
        note(&mut self.state.with_diagnostics, index, result.diagnostics.is_empty());
        note(&mut self.state.with_requirements, index, result.requirements.is_empty());
        note(&mut self.state.symbolic, index, result.symbols.is_empty());
        self.state.index_sites -= old.index_sites;
        self.state.index_sites += result.index_sites;
    }

    /// Elaborates the segments that need it, in order.
    fn all(&mut self) {
        let count = self.state.segments.len();
        let header_changed = !self.changed.is_empty();
        let first = if self.globals_changed || header_changed { 1 } else { self.dirty.start.max(1) };
        // Between two segments that did not run, the block state is that of the last run, except where segments were
        // removed.
        let mut previous_ran = true;
        for at in first..count {
            let may_differ = previous_ran || at == self.dirty.end;
            let must =
                self.dirty.contains(&at) || may_differ && self.state.starts[at] != self.state.results[at - 1].end;
            if !must && at >= self.dirty.end && at > self.changed.last_use() as usize {
                // Nothing differs from here on.
                return;
            }
            previous_ran = must || self.asks_for_changed(at);
            if previous_ran {
                self.elaborate(at, self.state.results[at - 1].end.clone());
            }
        }
    }

    /// Whether a recorded answer of segment `at` has changed.
    fn asks_for_changed(&self, at: usize) -> bool {
        if !self.changed.meet(&self.state.masks[at]) {
            return false;
        }
        let result = &self.state.results[at];
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let changed = |name: &Name| self.changed.contains(*name);
        result.imports.iter().any(|(name, was)| {
            changed(name) && self.state.definitions.lookup(*name, index, &self.state.results) != was.as_ref()
        }) || result
            .globals
            .iter()
            .any(|(name, was)| changed(name) && self.state.globals.get(name).is_none_or(|now| now != was))
            || result
                .summaries
                .iter()
                .any(|(name, was)| changed(name) && self.state.summaries.get(name).is_none_or(|now| now != was))
    }

    fn elaborate(&mut self, at: usize, start: BlockState) {
        let mut types = std::mem::take(&mut self.state.types);
        let outer = SegmentOuter {
            state: &self.state,
            at: u32::try_from(at).unwrap_or(u32::MAX),
            items: self.items,
            asked: RefCell::new(Vec::new()),
        };
        let file = self.state.file.clone();
        let result = elaborate(&self.state.segments[at], &start, &file, &outer, &mut types);
        let asked = outer.asked.into_inner();
        self.state.types = types;
        for (name, signature) in asked {
            self.state.globals.insert(name, signature);
        }
        for (name, summary) in &result.summaries {
            self.state.summaries.insert(*name, summary.clone());
        }
        let imports = result.imports.iter().map(|(name, _)| name);
        let globals = result.globals.iter().map(|(name, _)| name);
        let mut mask = Mask::default();
        for name in imports.chain(globals).chain(result.summaries.iter().map(|(name, _)| name)) {
            mask.add(*name);
            self.state.definitions.add_use(*name, u32::try_from(at).unwrap_or(u32::MAX));
        }
        self.state.masks[at] = mask;
        self.state.starts[at] = start;
        self.state.note_numbered(at);
        self.replace(at, Arc::new(result));
    }

    fn finish(self, header: &Header) -> (Box<State>, FunctionCheck) {
        let mut state = self.state;
        let mut types = std::mem::take(&mut state.types);
        let diagnostics = state.diagnostics(header, &mut types).into();
        state.types = types;
        let declared = match &*header.signature {
            Signature::Relax(signature) => signature.ret.clone(),
            _ => None,
        };
        let returned = declared.or_else(|| state.results.iter().rev().find_map(|result| result.returned.clone()));
        let check = FunctionCheck {
            segments: state.results.clone(),
            diagnostics,
            returned,
            index_sites: state.index_sites,
            summary: state.summary(),
            numbered: state.numbered.iter().copied().collect(),
            symbolic: state.symbolic.iter().copied().collect(),
        };
        (state, check)
    }
}

/// Returns the names whose last definition in a segment differs.
fn changed_exports(old: &[Export], new: &[Export]) -> Vec<Name> {
    let last = |exports: &[Export]| -> NameMap<Entry> {
        exports.iter().map(|export| (export.name, export.entry.clone())).collect()
    };
    let (old, new) = (last(old), last(new));
    let gone_or_other = old.iter().filter(|(name, entry)| new.get(*name) != Some(*entry)).map(|(name, _)| *name);
    let fresh = new.keys().filter(|name| !old.contains_key(*name)).copied();
    gone_or_other.chain(fresh).collect()
}

/// The [`Outer`] of one segment: answers from earlier segments of the function and from items of the module.
struct SegmentOuter<'a> {
    state: &'a State,
    at: u32,
    items: &'a dyn Items,
    asked: RefCell<Vec<(Name, Option<Arc<Signature>>)>>,
}

impl Outer for SegmentOuter<'_> {
    fn lookup(&self, name: Name) -> Option<Entry> {
        self.state.definitions.lookup(name, self.at, &self.state.results).cloned()
    }

    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        if let Some(known) = self.state.globals.get(&name) {
            return known.clone();
        }
        let signature = self.items.signature(name);
        self.asked.borrow_mut().push((name, signature.clone()));
        signature
    }

    fn summary(&self, name: Name) -> Option<Arc<Summary>> {
        match self.state.summaries.get(&name) {
            Some(known) => known.clone(),
            None => self.items.summary(name),
        }
    }
}

/// Returns the reserved name under which a function's context is exported.
pub fn function_context_name() -> Name {
    name(FUNCTION_CONTEXT)
}
