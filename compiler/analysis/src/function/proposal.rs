//! Checks edits of a function before they are offered as a fix.
//!
//! The edited segments are elaborated, and then later segments that use a name whose definition differs, as in a run.
//! The state of the function is not changed.

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

impl State {
    /// Whether the edits fix an error of the function and cause no other. `elaborations` is the number of segments that
    /// may still be elaborated; edits that need more are rejected.
    pub(super) fn is_better_with(&self, edits: &[(ItemPlace, String)], elaborations: &mut usize) -> bool {
        let Some(edited) = self.edited(edits) else { return false };
        let Some(first) = edited.keys().next().copied() else { return false };
        let mut replaced: NameMap<(u32, Entry)> = NameMap::default();
        let mut changed = Names::default();
        // The change in the number of errors of each code.
        let mut errors: BTreeMap<Code, i64> = BTreeMap::new();
        let known = self.segments.iter().zip(&self.results).zip(self.starts.iter().zip(&self.masks)).enumerate();
        for (index, ((segment, old), (start, mask))) in known.skip(first as usize) {
            let at = u32::try_from(index).unwrap_or(u32::MAX);
            let uses_changed = || changed.meet(mask) && old.imports.iter().any(|(name, _)| changed.contains(*name));
            let segment = match edited.get(&at) {
                Some(edited) => edited,
                None if uses_changed() => segment,
                None => continue,
            };
            let left = elaborations.checked_sub(1).filter(|_| changed.len() <= MOST_CHANGED);
            let Some(left) = left else { return false };
            *elaborations = left;
            let outer = Overlay { state: self, at, replaced: &replaced };
            let new = elaborate(segment, start, &self.file, &outer, &mut SharedTypes::default());
            for (diagnostics, change) in [(&old.diagnostics, -1), (&new.diagnostics, 1)] {
                for diagnostic in diagnostics.iter().filter(|it| it.severity == Severity::Error) {
                    *errors.entry(diagnostic.code).or_default() += change;
                }
            }
            changed_exports(&old.exports, &new.exports).into_iter().for_each(|name| changed.add(name));
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
