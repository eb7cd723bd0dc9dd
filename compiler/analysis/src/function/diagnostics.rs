//! Collects the diagnostics of a function from its segments: translates their places to the whole function, and adds
//! suggestions.

use super::advice::missing_return;
use super::attributes::title;
use super::memo::State;
use super::proposal::Trials;
use crate::elaborate::{MOST_REPAIRS, Role, SegmentResult, SharedTypes, Unresolved};
use crate::entry::Place;
use crate::signature::Header;
use rx_base::{Code, Diagnostic, Fix, Span};
use rx_context::ItemPlace;
use rx_context::mistakes::suggest;
use rx_ir::Signature;

/// The maximal number of searches for attributes in a function.
const MOST_SEARCHES: usize = 8;

/// The maximal number of segments that all these searches together elaborate to check fixes. They are repeated at each
/// edit of the function, so this limits their cost where many segments use an edited value.
const MOST_ELABORATIONS: usize = 128;

/// The maximal number of calls with effects in a function for which the move after the dataflow block is offered.
const MOST_MOVES: usize = 8;

impl State {
    /// Returns the diagnostics of the function, in order of position; a missing `return` is last. `types` are those of
    /// the run.
    pub(super) fn diagnostics(&self, header: &Header, types: &mut SharedTypes) -> Vec<Diagnostic<ItemPlace>> {
        let mut diagnostics = Vec::new();
        let mut trials = Trials { left: MOST_ELABORATIONS, types };
        let (mut searches, mut moves) = (MOST_SEARCHES, MOST_MOVES);
        for at in &self.with_diagnostics {
            let Some(result) = self.results.get(*at as usize) else { continue };
            for diagnostic in &result.diagnostics {
                let mut placed = self.placed(diagnostic, result, *at, &mut moves);
                for wanted in result.wanted.iter().filter(|wanted| wanted.place == diagnostic.primary) {
                    let Some(left) = searches.checked_sub(1) else { break };
                    searches = left;
                    let shown = || wanted.suggestions.iter().flatten().take(MOST_REPAIRS);
                    for fix in self.attribute_fixes(wanted, *at, &mut trials) {
                        if !placed.fixes.contains(&fix) {
                            // A report shows the titles of fixes only where there is no help.
                            let is_shown =
                                placed.help.is_empty() || shown().any(|suggestion| fix.title == title(suggestion));
                            placed.help.extend((!is_shown).then(|| fix.title.clone()));
                            placed.fixes.push(fix);
                        }
                    }
                }
                diagnostics.push(placed);
            }
        }
        let ended = self.results.last().is_none_or(|last| last.end.returned);
        if !ended && matches!(&*header.signature, Signature::Relax(_)) {
            diagnostics.push(missing_return(self));
        }
        diagnostics
    }

    /// Translates a diagnostic of segment `at`, and adds suggestions; `moves` is that of [`State::move_out`].
    fn placed(
        &self,
        diagnostic: &Diagnostic<Place>,
        result: &SegmentResult,
        at: u32,
        moves: &mut usize,
    ) -> Diagnostic<ItemPlace> {
        let translate = |place: &Place| self.place(at, place);
        let primary = translate(&diagnostic.primary).unwrap_or(ItemPlace::Segment(at, Span::default()));
        let mut placed = diagnostic.map_places(primary, translate);
        if let (Code::UndefinedName | Code::UndefinedSymbolicVar, Place::Here(span)) =
            (diagnostic.code, &diagnostic.primary)
            && let Some(wrong) = result.unresolved.iter().find(|unresolved| unresolved.span == *span)
        {
            placed = self.with_meant(placed, wrong, at);
        }
        if let (Code::ImpureInDataflow, Place::Here(span)) = (diagnostic.code, &diagnostic.primary) {
            placed.fixes.extend(self.move_out(at, *span, moves));
        }
        match at {
            0 => self.with_return_type(placed, span_of(diagnostic)),
            _ => placed,
        }
    }

    /// Adds the fix that replaces all uses of an undefined name by a suggested one.
    fn with_meant(&self, diagnostic: Diagnostic<ItemPlace>, wrong: &Unresolved, at: u32) -> Diagnostic<ItemPlace> {
        let primary = diagnostic.primary.clone();
        let all = |meant: &str| -> Vec<_> {
            let uses = self.uses(wrong, at);
            // A name in a string has no token, so it is not among the uses.
            let uses = if uses.contains(&primary) { uses } else { vec![primary.clone()] };
            uses.into_iter().map(|place| (place, meant.to_owned())).collect()
        };
        if let Role::Module { declared } | Role::Function { declared } = wrong.role {
            return self.with_module(diagnostic, wrong, declared, all);
        }
        if let Role::Replaced(meant) = wrong.role {
            return suggest(diagnostic, &meant, all(&meant));
        }
        if let Some(near) = self.nearest(wrong, at) {
            suggest(diagnostic, near, all(near))
        } else if let Some(meant) = self.meant(wrong, at) {
            let title = format!("use `{meant}`");
            diagnostic.with_fix(Fix { title, edits: all(&meant), safe: false })
        } else {
            diagnostic
        }
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

/// Returns the span of a diagnostic in its own segment.
fn span_of(diagnostic: &Diagnostic<Place>) -> Span {
    match diagnostic.primary {
        Place::Here(span) => span,
        _ => Span::default(),
    }
}
