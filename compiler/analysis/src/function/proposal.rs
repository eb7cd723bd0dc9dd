//! Checks edits of a function before they are offered as a fix.
//!
//! The edited segments are elaborated, and then later segments that use a name whose definition differs, as in a run.
//! The state of the function is not changed.

use super::changed_exports;
use super::index::Names;
use super::memo::State;
use crate::elaborate::{SegmentResult, SharedTypes, elaborate};
use crate::entry::{Entry, Outer};
use rx_base::fix::{apply, is_better};
use rx_base::{Name, Span};
use rx_context::ItemPlace;
use rx_ir::{Signature, Summary};
use rx_syntax::Segment;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximal number of names whose definitions may change. Edits with a wider effect are not offered.
const MOST_CHANGED: usize = 128;

impl State {
    /// Whether the edits fix an error of the function and cause no other.
    pub(super) fn is_better_with(&self, edits: &[(ItemPlace, String)]) -> bool {
        let Some(edited) = self.edited(edits) else { return false };
        let Some(first) = edited.keys().next().copied() else { return false };
        let mut results: BTreeMap<u32, SegmentResult> = BTreeMap::new();
        let mut changed = Names::default();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let known = self.segments.iter().zip(&self.results).zip(self.starts.iter().zip(&self.masks)).enumerate();
        for (index, ((segment, old), (start, mask))) in known.skip(first as usize) {
            let at = u32::try_from(index).unwrap_or(u32::MAX);
            let uses_changed = || changed.meet(mask) && old.imports.iter().any(|(name, _)| changed.contains(*name));
            let segment = match edited.get(&at) {
                Some(edited) => edited,
                None if uses_changed() => segment,
                None => continue,
            };
            if changed.len() > MOST_CHANGED {
                return false;
            }
            let outer = Overlay { state: self, at, results: &results };
            let new = elaborate(segment, start, &self.file, &outer, &mut SharedTypes::default());
            before.extend_from_slice(&old.diagnostics);
            after.extend_from_slice(&new.diagnostics);
            changed_exports(&old.exports, &new.exports).into_iter().for_each(|name| changed.add(name));
            results.insert(at, new);
        }
        changed.len() <= MOST_CHANGED && is_better(&before, &after, 1)
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

/// The [`Outer`] of a segment after the edits: `results` replace those of earlier segments.
struct Overlay<'a> {
    state: &'a State,
    at: u32,
    results: &'a BTreeMap<u32, SegmentResult>,
}

impl Outer for Overlay<'_> {
    fn lookup(&self, name: Name) -> Option<Entry> {
        let kept = self.state.definitions.last(name, self.at, &self.state.results);
        let replaced = self.results.iter().rev().find_map(|(at, result)| {
            let export = result.exports.iter().rev().find(|export| export.name == name)?;
            Some((*at, export))
        });
        match (kept, replaced) {
            (Some((kept_at, entry)), Some((at, _))) if kept_at > at => Some(entry.clone()),
            (_, Some((_, export))) => Some(export.entry.clone()),
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
