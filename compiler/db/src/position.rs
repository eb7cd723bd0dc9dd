//! Conversion of item-relative places to bytes of the file.

use rx_base::{Diagnostic, Name, Span};
use rx_context::{ItemPart, ItemPlace};
use rx_syntax::ast::{ExprKind, StatementKind, TokenRange};
use rx_syntax::document::{Document, FunctionKind, ItemKind};
use rx_syntax::{Segment, Segments};

/// Returns the position of a part of a header, in bytes of its segment.
pub(crate) fn part_span(head: &Segment, part: ItemPart) -> Option<Span> {
    for statement in &head.tree().statements {
        let cursor = head.cursor(statement);
        let StatementKind::Def { name, params, ret, .. } = &statement.tree.kind else { continue };
        let own_name = cursor.span(TokenRange { start: *name, end: *name + 1 });
        return Some(match part {
            ItemPart::Name | ItemPart::Binding(_) => own_name,
            ItemPart::Return => ret.as_ref().map_or(own_name, |ret| cursor.span(ret.tokens)),
            ItemPart::Param(index) => match params.get(index as usize) {
                Some(param) => cursor.parameter(param).span(param.tree.tokens),
                None => own_name,
            },
            ItemPart::ParamType(index) => match params.get(index as usize) {
                Some(param) => {
                    let annotation = param.tree.annotation.as_ref();
                    cursor.parameter(param).span(annotation.map_or(param.tree.tokens, |annotation| annotation.tokens))
                }
                None => own_name,
            },
        });
    }
    None
}

/// Finds the value of the first binding of a variable: the segment, and the position in it.
fn bound_value(segments: &Segments, variable: Name) -> Option<(usize, Span)> {
    segments.iter().enumerate().find_map(|(at, segment)| {
        segment.tree().statements.iter().find_map(|statement| {
            let (target, value) = match &statement.tree.kind {
                StatementKind::Assign { targets, value } => (targets.first()?, value),
                StatementKind::AnnAssign { target, value, .. } => (target, value.as_ref()?),
                _ => return None,
            };
            let cursor = segment.cursor(statement);
            let is_it = matches!(target.kind, ExprKind::Name) && cursor.name(target.tokens.start) == variable;
            is_it.then(|| (at, cursor.span(value.tokens)))
        })
    })
}

/// Converts a place of item `at` to bytes of the file.
pub(crate) fn absolute(document: &Document, at: usize, place: &ItemPlace) -> Option<Span> {
    match place {
        ItemPlace::Segment(segment, span) => {
            let start = document.item_start(at) + document.items().get(at)?.segment_start(*segment as usize);
            Some(span.shift(u32::try_from(start).ok()?))
        }
        ItemPlace::Macro(place) => {
            let own = document.items().get(at)?.module;
            let (target, item) = document.items().iter().enumerate().rfind(|(_, item)| {
                let is_seen = item.module.is_none() || item.module == own;
                is_seen && item.name == Some(place.name) && item.kind == ItemKind::Function(FunctionKind::Macro)
            })?;
            let start = document.item_start(target) + item.segment_start(place.segment as usize);
            Some(place.span.shift(u32::try_from(start).ok()?))
        }
        ItemPlace::Item(name, part) => {
            let module = document.items().get(at)?.module;
            // Of several functions of this name the last counts, as in Python.
            let target = document.items().iter().rposition(|item| {
                item.name == Some(*name) && item.module == module && matches!(item.kind, ItemKind::Function(_))
            })?;
            let item = document.items().get(target)?;
            if let ItemPart::Binding(variable) = part
                && let Some((segment, span)) = bound_value(&item.segments, *variable)
            {
                let start = document.item_start(target) + item.segment_start(segment);
                return Some(span.shift(u32::try_from(start).ok()?));
            }
            let start = u32::try_from(document.item_start(target)).ok()?;
            Some(part_span(item.segments.first()?, *part)?.shift(start))
        }
    }
}

/// Converts the places of a diagnostic of item `at` to bytes of the file.
pub(crate) fn place_diagnostic(document: &Document, at: usize, diagnostic: &Diagnostic<ItemPlace>) -> Diagnostic<Span> {
    let primary = absolute(document, at, &diagnostic.primary).unwrap_or_default();
    diagnostic.map_places(primary, |place| absolute(document, at, place))
}
