//! Variables of loops that others of the same name hide.

use super::Walk;
use super::path::Step;
use crate::function::ItemPlace;
use rx_base::{Code, Diagnostic, Name};

impl Walk<'_> {
    /// Whether a loop or axis hides a loop or axis around it.
    pub(super) fn check_shadow(&mut self, name: Name, place: &ItemPlace) {
        if name == "_" {
            return;
        }
        let hidden = self.path.iter().rev().find_map(|step| match step {
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
