//! Reports loop variables and axes that shadow an outer one with the same name.

use super::Walk;
use super::path::Step;
use rx_base::{Code, Diagnostic, Name};
use rx_context::ItemPlace;
use rx_tir::LoopKind;

impl Walk<'_> {
    /// Reports a loop or axis that shadows an enclosing loop or axis. A thread axis may be launched again under the
    /// same name.
    pub(super) fn check_shadow(&mut self, name: Name, kind: Option<LoopKind>, place: &ItemPlace) {
        if name == "_" {
            return;
        }
        let thread = kind.filter(|kind| matches!(kind, LoopKind::ThreadBinding(_)));
        let hidden = self.path.iter().rev().find_map(|step| match step {
            Step::Loop(it) if it.name == name && thread == Some(it.kind) => None,
            Step::Loop(it) if it.name == name => Some(&it.place),
            Step::Axis(axis) if axis.name == name => Some(&axis.place),
            _ => None,
        });
        if let Some(hidden) = hidden {
            let message = format!("`{name}` hides the `{name}` of a loop around it");
            let mut found = Diagnostic::new(Code::ShadowedLoopVariable, place.clone(), message)
                .with_label(hidden.clone(), "hidden from here on")
                .with_help("give one of them another name");
            found.fixes.extend(self.text.renamed(place, name));
            self.found.push(found);
        }
    }
}
