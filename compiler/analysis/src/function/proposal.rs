//! Checks edits of a function before they are offered as a fix.
//!
//! The edited segments are elaborated, and then later segments that use a name whose definition differs, as in a run.
//! The results of the function are not changed.

use super::changed_exports;
use super::index::Names;
use super::memo::State;
use crate::elaborate::{SharedTypes, elaborate};
use crate::entry::{Entry, Outer};
use rx_base::fix::apply;
use rx_base::name::NameMap;
use rx_base::{Code, Name, Severity, Span};
use rx_context::ItemPlace;
use rx_ir::{Signature, Summary};
use rx_syntax::Segment;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximal number of names whose definitions may change. Edits with a wider effect are not offered.
const MOST_CHANGED: usize = 128;

/// The means for checks of edits.
pub(super) struct Trials<'t> {
    /// The number of segments that may still be elaborated; edits that need more are rejected.
    pub(super) left: usize,
    /// The types of the function's last run.
    pub(super) types: &'t mut SharedTypes,
}

impl State {
    /// Whether the edits fix an error of the function and cause no other.
    pub(super) fn is_better_with(&self, edits: &[(ItemPlace, String)], trials: &mut Trials<'_>) -> bool {
        let Some(edited) = self.edited(edits) else { return false };
        let Some((first, last)) = edited.keys().next().zip(edited.keys().next_back()) else { return false };
        let mut replaced: NameMap<(u32, Entry)> = NameMap::default();
        let mut changed = Names::default();
        // The change in the number of errors of each code.
        let mut errors: BTreeMap<Code, i64> = BTreeMap::new();
        for index in *first as usize..self.segments.len() {
            let at = u32::try_from(index).unwrap_or(u32::MAX);
            if at > *last && at > changed.last_use() {
                // Nothing differs from here on.
                break;
            }
            let old = &self.results[index];
            let uses_changed =
                || changed.meet(&self.masks[index]) && old.imports.iter().any(|(name, _)| changed.contains(*name));
            let segment = match edited.get(&at) {
                Some(edited) => edited,
                None if uses_changed() => &self.segments[index],
                None => continue,
            };
            let left = trials.left.checked_sub(1).filter(|_| changed.len() <= MOST_CHANGED);
            let Some(left) = left else { return false };
            trials.left = left;
            let outer = Overlay { state: self, at, replaced: &replaced };
            let new = elaborate(segment, &self.starts[index], &self.file, &outer, trials.types);
            for (diagnostics, change) in [(&old.diagnostics, -1), (&new.diagnostics, 1)] {
                for diagnostic in diagnostics.iter().filter(|it| it.severity == Severity::Error) {
                    *errors.entry(diagnostic.code).or_default() += change;
                }
            }
            for name in changed_exports(&old.exports, &new.exports) {
                changed.add(name, self.definitions.last_use(name));
            }
            replaced.extend(new.exports.into_iter().map(|export| (export.name, (at, export.entry))));
        }
        let no_more = errors.values().all(|change| *change <= 0);
        changed.len() <= MOST_CHANGED && no_more && errors.values().any(|change| *change < 0)
    }

    /// Returns the edited segments; `None` if an edit is not in the body of the function.
    fn edited(&self, edits: &[(ItemPlace, String)]) -> Option<BTreeMap<u32, Arc<Segment>>> {
        let mut by_segment: BTreeMap<u32, Vec<(Span, String)>> = BTreeMap::new();
        for (place, text) in edits {
            match place {
                ItemPlace::Segment(at, span) if *at > 0 => {
                    by_segment.entry(*at).or_default().push((*span, text.clone()));
                }
                _ => return None,
            }
        }
        let segment = |(at, mut edits): (u32, Vec<(Span, String)>)| {
            edits.sort_by_key(|(span, _)| *span);
            let text = apply(self.segments.get(at as usize)?.text(), &edits);
            Some((at, Arc::new(Segment::new(text.as_str().into()))))
        };
        by_segment.into_iter().map(segment).collect()
    }
}

/// The [`Outer`] of a segment after the edits.
struct Overlay<'a> {
    state: &'a State,
    at: u32,
    /// The last definitions in earlier segments that were elaborated again, with their segments.
    replaced: &'a NameMap<(u32, Entry)>,
}

impl Outer for Overlay<'_> {
    fn lookup(&self, name: Name) -> Option<Entry> {
        let kept = self.state.definitions.last(name, self.at, &self.state.results);
        match (kept, self.replaced.get(&name)) {
            (Some((kept_at, entry)), Some((at, _))) if kept_at > *at => Some(entry.clone()),
            (_, Some((_, entry))) => Some(entry.clone()),
            (kept, None) => kept.map(|(_, entry)| entry.clone()),
        }
    }

    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        self.state.globals.get(&name).cloned().flatten()
    }

    fn summary(&self, name: Name) -> Option<Arc<Summary>> {
        self.state.summaries.get(&name).cloned().flatten()
    }
}
