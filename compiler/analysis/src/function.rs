//! A function's segments in order, redone only where text or recorded facts changed.
//!
//! Each segment's result is a pure function of its text, the block state it starts in, the file context and the answers it
//! recorded. [`FunctionMemo`] keeps the results of the last run and an index from names to their definitions; a run finds
//! the segments whose text changed, elaborates them, and follows the *names* whose meaning changed into later segments. An
//! edit that changes no exported type stops right there. Nothing observable depends on the memo.

mod advice;
mod index;

use crate::elaborate::{BlockState, Export, SegmentResult, SharedTypes, elaborate, suggest};
use crate::entry::{Entry, ItemPart, Outer, Place};
use crate::file_context::{FUNCTION_CONTEXT, FileContext};
use crate::signature::Header;
use advice::{missing_return, span_of};
use index::{Definitions, Mask};
use rx_base::name::{NameMap, name};
use rx_base::{Code, Diagnostic, Fix, Name, Span};
use rx_ir::{IndexSites, Signature, StructInfo, Summary};
use rx_syntax::Segment;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// A place in terms of a function's segments, or a part of another item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ItemPlace {
    /// Bytes of one segment of this item.
    Segment(u32, Span),
    /// A part of another item's header.
    Item(Name, ItemPart),
}

/// What the check of a Relax function found.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCheck {
    /// Results by segment; the first is the header's.
    pub segments: Arc<[Arc<SegmentResult>]>,
    /// Mistakes in order of position.
    pub diagnostics: Arc<[Diagnostic<ItemPlace>]>,
    /// The type of what it returns: declared, else inferred.
    pub returned: Option<StructInfo>,
    /// Its accesses by indices, counted.
    pub index_sites: IndexSites,
    /// What callers are told of its values; `None` where there is nothing to tell.
    pub summary: Option<Arc<Summary>>,
}

/// What a function asks of its module.
pub trait Items {
    /// The signature of the item `name`.
    fn signature(&self, name: Name) -> Option<Arc<Signature>>;
    /// What is known of the values of the function `name`.
    fn summary(&self, name: Name) -> Option<Arc<Summary>>;
}

/// The last run of a function, kept to make the next one cheap.
#[derive(Debug, Default)]
pub struct FunctionMemo(Mutex<Option<Box<State>>>);

/// INVARIANT: `segments`, `results`, `starts` and `masks` have one entry per segment; code below indexes them by numbers of
/// segments.
#[derive(Debug)]
struct State {
    file: Arc<FileContext>,
    segments: Vec<Arc<Segment>>,
    results: Vec<Arc<SegmentResult>>,
    /// The block state each segment was elaborated in.
    starts: Vec<BlockState>,
    /// For each segment, a filter of the names it asked for.
    masks: Vec<Mask>,
    definitions: Definitions,
    globals: NameMap<Option<Arc<Signature>>>,
    summaries: NameMap<Option<Arc<Summary>>>,
    with_diagnostics: BTreeSet<u32>,
    with_requirements: BTreeSet<u32>,
    index_sites: IndexSites,
    types: SharedTypes,
}

impl FunctionMemo {
    fn take(&self) -> Option<Box<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, state: Box<State>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    /// The items the last run asked for.
    fn globals(&self) -> Vec<Name> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|state| state.globals.keys().copied().collect()).unwrap_or_default()
    }

    /// The functions of whose values the last run asked.
    fn summaries(&self) -> Vec<Name> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|state| state.summaries.keys().copied().collect()).unwrap_or_default()
    }
}

/// Checks a Relax function: `segments` of which the first is the header, elaborated in `header`.
///
/// `items` answers for the module's items.
pub fn check_function(
    segments: &[Arc<Segment>],
    header: &Header,
    file: &Arc<FileContext>,
    items: &dyn Items,
    memo: &FunctionMemo,
) -> FunctionCheck {
    // Asked before the memo is taken: a cancelled query unwinds from here and must not lose it.
    let globals = memo.globals().into_iter().map(|name| (name, items.signature(name))).collect();
    let summaries = memo.summaries().into_iter().map(|name| (name, items.summary(name))).collect();
    let mut run = Run::start(memo.take(), segments, header, file, items, Answers { globals, summaries });
    run.all();
    let (state, check) = run.finish(header);
    memo.put(state);
    check
}

/// What the module's items say now of what the last run asked.
struct Answers {
    globals: NameMap<Option<Arc<Signature>>>,
    summaries: NameMap<Option<Arc<Summary>>>,
}

struct Run<'a> {
    state: Box<State>,
    items: &'a dyn Items,
    /// Segments whose text changed: `[first, last)`.
    dirty: std::ops::Range<usize>,
    /// Names whose meaning after some segment differs from the last run's.
    changed: NameMap<()>,
    changed_mask: Mask,
    globals_changed: bool,
}

impl<'a> Run<'a> {
    fn start(
        old: Option<Box<State>>,
        segments: &[Arc<Segment>],
        header: &Header,
        file: &Arc<FileContext>,
        items: &'a dyn Items,
        answers: Answers,
    ) -> Run<'a> {
        let usable = old.filter(|old| Arc::ptr_eq(&old.file, file) || old.file == *file);
        let mut run = match usable {
            Some(state) => Run::resume(state, segments, items),
            None => Run::cold(segments, header, file, items),
        };
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

    /// Notes that an item answers otherwise than in the last run.
    fn item_changed(&mut self, name: Name) {
        self.globals_changed = true;
        self.changed.insert(name, ());
        self.changed_mask.add(name);
    }

    fn cold(segments: &[Arc<Segment>], header: &Header, file: &Arc<FileContext>, items: &'a dyn Items) -> Run<'a> {
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
        let state = State {
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
        };
        Run {
            state: Box::new(state),
            items,
            dirty: 1..segments.len(),
            changed: NameMap::default(),
            changed_mask: Mask::default(),
            globals_changed: false,
        }
    }

    fn resume(mut state: Box<State>, segments: &[Arc<Segment>], items: &'a dyn Items) -> Run<'a> {
        let (before, after) = (state.segments.len(), segments.len());
        let prefix = state.segments.iter().zip(segments).take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let most = before.min(after) - prefix;
        let suffix = state
            .segments
            .iter()
            .rev()
            .zip(segments.iter().rev())
            .take(most)
            .take_while(|(a, b)| Arc::ptr_eq(a, b))
            .count();
        let dirty = prefix..after - suffix;
        let mut changed = NameMap::default();
        let mut changed_mask = Mask::default();
        if before == after {
            for (slot, segment) in state.segments[dirty.clone()].iter_mut().zip(&segments[dirty.clone()]) {
                *slot = segment.clone();
            }
        } else {
            // Indices shift: what the replaced segments exported is compared by what replaces it, name by name.
            for result in &state.results[prefix..before - suffix] {
                for export in &result.exports {
                    changed.insert(export.name, ());
                    changed_mask.add(export.name);
                }
            }
            let empty = Arc::new(empty_result());
            let replaced = prefix..before - suffix;
            let fresh = dirty.len();
            state.segments = segments.to_vec();
            state.results.splice(replaced.clone(), std::iter::repeat_n(empty, fresh));
            state.starts.splice(replaced.clone(), std::iter::repeat_n(BlockState::default(), fresh));
            state.masks.splice(replaced, std::iter::repeat_n(Mask::default(), fresh));
            state.definitions = Definitions::default();
            state.with_diagnostics.clear();
            state.with_requirements.clear();
            state.index_sites = IndexSites::default();
            for (at, result) in state.results.iter().enumerate() {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                state.definitions.insert(at, &result.exports);
                if !result.diagnostics.is_empty() {
                    state.with_diagnostics.insert(at);
                }
                if !result.requirements.is_empty() {
                    state.with_requirements.insert(at);
                }
                state.index_sites += result.index_sites;
            }
        }
        Run { state, items, dirty, changed, changed_mask, globals_changed: false }
    }

    /// Puts the header's result in place of the last run's.
    fn adopt_header(&mut self, header: &Header) {
        let Some(first) = self.state.results.first() else { return };
        if Arc::ptr_eq(first, &header.result) {
            if !header.result.diagnostics.is_empty() {
                self.state.with_diagnostics.insert(0);
            }
            return;
        }
        self.replace(0, header.result.clone());
        self.dirty.start = self.dirty.start.max(1).min(self.state.segments.len());
    }

    /// Stores a segment's new result and notes the names whose meaning changed.
    fn replace(&mut self, at: usize, result: Arc<SegmentResult>) {
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let old = std::mem::replace(&mut self.state.results[at], result.clone());
        if old.exports != result.exports {
            for export in changed_exports(&old.exports, &result.exports) {
                self.changed.insert(export, ());
                self.changed_mask.add(export);
            }
            self.state.definitions.remove(index, &old.exports);
            self.state.definitions.insert(index, &result.exports);
        }
        let note = |set: &mut BTreeSet<u32>, empty: bool| match empty {
            true => set.remove(&index),
            false => set.insert(index),
        };
        note(&mut self.state.with_diagnostics, result.diagnostics.is_empty());
        note(&mut self.state.with_requirements, result.requirements.is_empty());
        self.state.index_sites -= old.index_sites;
        self.state.index_sites += result.index_sites;
    }

    /// Elaborates what needs it, in order.
    fn all(&mut self) {
        let count = self.state.segments.len();
        let header_changed = !self.changed.is_empty();
        let first = if self.globals_changed || header_changed { 1 } else { self.dirty.start.max(1) };
        for at in first..count {
            let start = self.state.results[at - 1].end.clone();
            let must = self.dirty.contains(&at) || self.state.starts[at] != start;
            if !must && self.changed.is_empty() && at >= self.dirty.end {
                // Nothing differs from here on.
                return;
            }
            if must || self.asks_for_changed(at) {
                self.elaborate(at, start);
            }
        }
    }

    /// Whether a recorded answer of segment `at` is another now.
    fn asks_for_changed(&self, at: usize) -> bool {
        if !self.state.masks[at].meets(&self.changed_mask) {
            return false;
        }
        let result = &self.state.results[at];
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let changed = |name: &Name| self.changed.contains_key(name);
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
        let mut mask = Mask::default();
        result.imports.iter().for_each(|(name, _)| mask.add(*name));
        result.globals.iter().for_each(|(name, _)| mask.add(*name));
        for (name, summary) in &result.summaries {
            mask.add(*name);
            self.state.summaries.insert(*name, summary.clone());
        }
        self.state.masks[at] = mask;
        self.state.starts[at] = start;
        self.replace(at, Arc::new(result));
    }

    fn finish(self, header: &Header) -> (Box<State>, FunctionCheck) {
        let state = self.state;
        let mut diagnostics = Vec::new();
        for at in &state.with_diagnostics {
            let Some(result) = state.results.get(*at as usize) else { continue };
            for diagnostic in &result.diagnostics {
                let translate = |place: &Place| state.place(*at, place);
                let primary = translate(&diagnostic.primary).unwrap_or(ItemPlace::Segment(*at, Span::default()));
                let mut placed = diagnostic.map_places(primary.clone(), translate);
                if let (Code::UndefinedName | Code::UndefinedSymbolicVar, Place::Here(span)) =
                    (diagnostic.code, &diagnostic.primary)
                    && let Some(wrong) = result.unresolved.iter().find(|unresolved| unresolved.span == *span)
                {
                    let all = |meant: &str| -> Vec<_> {
                        let uses = state.uses(wrong, *at);
                        // In quotes it is no token of its own.
                        let uses = if uses.contains(&primary) { uses } else { vec![primary.clone()] };
                        uses.into_iter().map(|place| (place, meant.to_owned())).collect()
                    };
                    if let Some(near) = state.nearest(wrong, *at) {
                        placed = suggest(placed, near, all(near));
                    } else if let Some(meant) = state.meant(wrong, *at) {
                        let title = format!("use `{meant}`");
                        placed = placed.with_fix(Fix { title, edits: all(&meant), safe: false });
                    }
                }
                if *at == 0 {
                    placed = state.with_return_type(placed, span_of(diagnostic));
                }
                diagnostics.push(placed);
            }
        }
        let ended = state.results.last().is_none_or(|last| last.end.returned);
        if !ended && matches!(&*header.signature, Signature::Relax(_)) {
            diagnostics.push(missing_return(&state));
        }
        let declared = match &*header.signature {
            Signature::Relax(signature) => signature.ret.clone(),
            _ => None,
        };
        let returned = declared.or_else(|| state.results.iter().rev().find_map(|result| result.returned.clone()));
        let check = FunctionCheck {
            segments: state.results.as_slice().into(),
            diagnostics: diagnostics.into(),
            returned,
            index_sites: state.index_sites,
            summary: state.summary(),
        };
        (state, check)
    }
}

impl State {
    /// What callers are told of the function's values.
    fn summary(&self) -> Option<Arc<Summary>> {
        /// Accesses beyond are not told of.
        const MOST: usize = 64;
        let results = self.with_requirements.iter().filter_map(|at| self.results.get(*at as usize));
        let requirements: Vec<_> = results.flat_map(|result| result.requirements.iter().cloned()).take(MOST).collect();
        // As for the type, the last value returned counts.
        let returning = self.results.iter().rev().find(|result| result.returned.is_some());
        let result = returning.and_then(|result| result.returned_values.clone());
        (!requirements.is_empty() || result.is_some()).then(|| Arc::new(Summary { requirements, result }))
    }

    fn place(&self, at: u32, place: &Place) -> Option<ItemPlace> {
        match place {
            Place::Here(span) => Some(ItemPlace::Segment(at, *span)),
            Place::Definition(name) => {
                let (segment, span) = self.definitions.place(*name, at, &self.results)?;
                Some(ItemPlace::Segment(segment, span))
            }
            Place::Item(name, part) => Some(ItemPlace::Item(*name, *part)),
        }
    }
}

/// The names whose last definition in a segment differs.
fn changed_exports(old: &[Export], new: &[Export]) -> Vec<Name> {
    let last = |exports: &[Export]| -> NameMap<Entry> {
        exports.iter().map(|export| (export.name, export.entry.clone())).collect()
    };
    let (old, new) = (last(old), last(new));
    let gone_or_other = old.iter().filter(|(name, entry)| new.get(*name) != Some(*entry)).map(|(name, _)| *name);
    let fresh = new.keys().filter(|name| !old.contains_key(*name)).copied();
    gone_or_other.chain(fresh).collect()
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
    }
}

/// The world outside one segment: earlier segments of the function, items of the module.
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

/// The reserved name under which a function's context is exported.
pub fn function_context_name() -> Name {
    name(FUNCTION_CONTEXT)
}

#[cfg(test)]
mod tests {
    use super::{FunctionMemo, ItemPlace, Items, check_function};
    use crate::FileContext;
    use crate::signature::relax_header;
    use rx_base::{Diagnostic, Name, Span};
    use rx_ir::{Signature, Summary};
    use rx_syntax::Segment;
    use std::sync::Arc;

    /// No other item.
    struct Alone;

    impl Items for Alone {
        fn signature(&self, _name: Name) -> Option<Arc<Signature>> {
            None
        }

        fn summary(&self, _name: Name) -> Option<Arc<Summary>> {
            None
        }
    }

    const HEADER: &str = "@R.function(pure=False)
def main(x: R.Tensor((\"n\", 4), \"float32\"), c: R.Tensor((), \"bool\")) -> R.Tensor((\"n\", 5), \"float32\"):
";

    /// The body in parts that may be segments of their own. Each says something of an earlier one: a label at a definition,
    /// a name that is meant, a bound.
    const BODY: [&str; 21] = [
        "    a = t1\n",
        "    b1 = R.nn.relu(x)\n",
        "    b2: R.Tensor((\"m * 2\", 4), \"float32\") = R.nn.relu(x)\n",
        "    b3 = R.matmul(b2, b2)\n",
        "    R.func_attr({\"tir_var_upper_bound\": {\"n\": 8}})\n",
        "    if c:\n        R.func_attr({\"tir_var_lower_bound\": {\"n\": 2}})\n        d = x\n    else:\n        d = x\n",
        "    @R.function\n    def f(y: R.Tensor((2,))):\n        R.func_attr({\"tir_var_upper_bound\": {\"n\": 1}})\n        return y\n",
        "    e = R.strided_slice(x, [0], [0], [n * 0 + 2])\n",
        "    with R.dataflow():\n",
        "        lv = R.permute_dims(x)\n",
        "        gv = R.permute_dims(lv)\n",
        "        R.output(gv)\n",
        "    g = R.matmul(gv, gv)\n",
        "    h = lv\n",
        "    i = gvx\n",
        "    s0 = R.match_cast(t0, R.Tensor((\"p\", 4), \"float32\"))\n",
        "    s1 = R.match_cast(s0, R.Tensor((n, 4), \"float32\"))\n",
        "    R.assert_op(n == 8)\n",
        "    s2: R.Tensor((9, 4), \"float32\") = s0\n",
        "    j = x.q + R.zeros((\"k - x.w\", 2), \"float32\")\n",
        "    return b1\n",
    ];

    /// A header that is indented less than the body, whose lines go on below.
    const ASTRAY: [&str; 4] = [
        "            a = R.nn.relu(x)\n        if c: else:\n",
        "            b = R.nn.relu(a)\n",
        "            d = R.nn.relu(b)\n",
        "            return d\n",
    ];

    /// What is said of the function when its segments have `width` parts of `body`, with places in the whole text.
    fn check(body: &[&str], width: usize) -> Vec<Diagnostic<Span>> {
        let mut texts = vec![HEADER.to_owned()];
        texts.extend(body.chunks(width).map(|parts| parts.concat()));
        let segments: Vec<_> = texts.iter().map(|text| Arc::new(Segment::new(text.as_str().into()))).collect();
        let file = Arc::new(FileContext::default());
        let header = relax_header(&segments[0], &file);
        let check = check_function(&segments, &header, &file, &Alone, &FunctionMemo::default());
        let place = |place: &ItemPlace| match place {
            ItemPlace::Segment(at, span) => {
                let before: usize = texts.iter().take(*at as usize).map(String::len).sum();
                Some(span.shift(before as u32))
            }
            ItemPlace::Item(..) => None,
        };
        let placed = |diagnostic: &Diagnostic<ItemPlace>| {
            diagnostic.map_places(place(&diagnostic.primary).unwrap_or_default(), place)
        };
        check.diagnostics.iter().map(placed).collect()
    }

    #[test]
    fn where_segments_are_cut_changes_nothing() {
        for body in [&BODY[..], &ASTRAY] {
            let whole = check(body, body.len());
            assert!(!whole.is_empty());
            for width in 1..body.len() {
                assert_eq!(check(body, width), whole, "segments of {width} parts");
            }
        }
    }

    #[test]
    fn labels_and_suggestions_look_at_what_precedes() {
        let text = HEADER.to_owned() + &BODY.concat();
        let found = check(&BODY, 1);
        let label = |message: &str| {
            let diagnostic = found.iter().find(|diagnostic| diagnostic.message.contains(message));
            diagnostic.map_or(Vec::new(), |diagnostic| {
                diagnostic.labels.iter().map(|label| &text[label.place.range()]).collect()
            })
        };
        assert_eq!(label("declared to return"), ["R.Tensor((\"n\", 5), \"float32\")", "b1"]);
        let help = |message: &str| {
            found
                .iter()
                .filter(|diagnostic| diagnostic.message.contains(message))
                .flat_map(|found| &found.help)
                .collect()
        };
        let meant: Vec<&String> = help("`gvx` is not defined");
        assert_eq!(meant, ["did you mean `gv`?"]);
    }
}
