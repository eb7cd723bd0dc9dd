//! Keyword arguments: finds the parameters of macros and nested functions that they refer to.

use super::{Access, Bound, Callee, Extent, File, Meaning, Occurrence, Reading, Role, read, resolve};
use rx_base::Span;
use rx_base::name::name;
use rx_syntax::Segment;
use rx_syntax::ast::StatementKind;
use rx_syntax::document::{FunctionKind, Item, ItemKind};

/// The position of a parameter's name in its declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParameterPlace {
    pub(super) item: usize,
    pub(super) segment: usize,
    /// The span in bytes of the segment.
    pub(super) span: Span,
}

impl File<'_, '_> {
    /// Returns the parameter that the requested name refers to as a keyword argument in a call of `callee`.
    pub(super) fn parameter(&self, item: usize, segment: usize, callee: Callee) -> Option<ParameterPlace> {
        let file = File { view: self.view, wanted: callee.name };
        let items = file.view.document().items();
        let own = items.get(item)?;
        let reading = read(own, &[callee.name], 0..own.segments.len());
        let called = |(at, start): (usize, u32)| at == segment && start == callee.start;
        let called = reading.mentions.iter().position(|mention| called((mention.segment, mention.span.start)))?;
        let meanings = resolve(&reading, file.around(item)?, |_, _| true);
        match meanings.rooted(called) {
            Meaning::Local(_) => {
                let bound = reading.mentions.get(meanings.binding(called)?)?;
                let is_function = bound.role == Role::Bind(Bound::Function);
                let header = own.segments.get(bound.segment).filter(|_| is_function)?;
                let span = self.parameter_of(header, |name| name == bound.span)?;
                Some(ParameterPlace { item, segment: bound.segment, span })
            }
            Meaning::Outer => {
                let Extent::Module(module) = file.outer_kind(item).1 else { return None };
                // If several macros have the name, the last one counts, as in Python.
                let called = |other: &Item| {
                    (other.module, other.name) == (module, Some(callee.name))
                        && other.kind == ItemKind::Function(FunctionKind::Macro)
                };
                let item = items.iter().rposition(called)?;
                let span = self.parameter_of(items.get(item)?.segments.first()?, |_| true)?;
                Some(ParameterPlace { item, segment: 0, span })
            }
            _ => None,
        }
    }

    /// Returns the parameter with the requested name of the first function in the segment whose name's span `is_wanted`
    /// accepts.
    fn parameter_of(&self, segment: &Segment, is_wanted: impl Fn(Span) -> bool) -> Option<Span> {
        let tokens = &segment.tree().tokens;
        segment.tree().statements.iter().find_map(|statement| {
            let StatementKind::Def { name: own, params, .. } = &statement.tree.kind else { return None };
            let base = statement.first_token;
            tokens.span(base + own).filter(|own| is_wanted(*own))?;
            let names = params.iter().filter_map(|param| {
                // `*args` and `**options` cannot be passed by keyword.
                let name = param.tree.name.filter(|_| param.tree.stars == 0)?;
                tokens.span(base + param.first_token + name)
            });
            let is_it = |span: &Span| segment.text().get(span.range()).map(name) == Some(self.wanted);
            names.filter(is_it).last()
        })
    }

    /// Returns the keyword arguments that refer to a parameter of an item or of a function nested in it, given the
    /// occurrences `places` of that parameter.
    pub(super) fn keywords(&self, of: usize, reading: &Reading, places: &[Occurrence]) -> Vec<Occurrence> {
        let items = self.view.document().items();
        let declared = |place: ParameterPlace| {
            let is_it = |found: &Occurrence| {
                let mention = reading.mentions.get(found.at.1);
                found.access == Access::Declaration
                    && mention.is_some_and(|mention| (mention.segment, mention.span) == (place.segment, place.span))
            };
            place.item == of && places.iter().any(is_it)
        };
        let is_macro = |item: &Item| item.kind == ItemKind::Function(FunctionKind::Macro);
        let everywhere = items.get(of).is_some_and(is_macro);
        let mut found = Vec::new();
        for (at, item) in items.iter().enumerate() {
            if item.kind == ItemKind::Foreign || at != of && !everywhere {
                continue;
            }
            let reading = read(item, &[self.wanted], 0..item.segments.len());
            for (number, mention) in reading.mentions.iter().enumerate() {
                let Role::Keyword(callee) = mention.role else { continue };
                let parameter = self.parameter(at, mention.segment, callee);
                let Some(span) = parameter.filter(|place| declared(*place)).and_then(|_| self.span(at, mention)) else {
                    continue;
                };
                found.push(Occurrence { span, access: Access::Read, literal: None, at: (at, number) });
            }
        }
        found
    }
}
