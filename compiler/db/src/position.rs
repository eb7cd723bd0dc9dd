//! From relative places to bytes of the file.

use rx_analysis::ItemPart;
use rx_analysis::function::ItemPlace;
use rx_base::{Diagnostic, Span};
use rx_syntax::Segment;
use rx_syntax::ast::{StatementKind, TokenRange};
use rx_syntax::document::{Document, ItemKind};

/// Where a part of a header stands, in bytes of its segment.
pub(crate) fn part_span(head: &Segment, part: ItemPart) -> Option<Span> {
    for statement in &head.tree().statements {
        let cursor = head.cursor(statement);
        let StatementKind::Def { name, params, ret, .. } = &statement.tree.kind else { continue };
        let own_name = cursor.span(TokenRange { start: *name, end: *name + 1 });
        return Some(match part {
            ItemPart::Name => own_name,
            ItemPart::Return => ret.as_ref().map_or(own_name, |ret| cursor.span(ret.tokens)),
            ItemPart::Param(index) => match params.get(index as usize) {
                Some(param) => cursor.parameter(param).span(param.tree.tokens),
                None => own_name,
            },
        });
    }
    None
}

/// A place of item `at` in bytes of the file.
pub(crate) fn absolute(document: &Document, at: usize, place: &ItemPlace) -> Option<Span> {
    match place {
        ItemPlace::Segment(segment, span) => {
            let start = document.item_start(at) + document.items().get(at)?.segment_start(*segment as usize);
            Some(span.shift(u32::try_from(start).ok()?))
        }
        ItemPlace::Item(name, part) => {
            let module = document.items().get(at)?.module;
            let target = document.items().iter().position(|item| {
                item.name == Some(*name) && item.module == module && matches!(item.kind, ItemKind::Function(_))
            })?;
            let head = document.items().get(target)?.segments.first()?;
            let start = u32::try_from(document.item_start(target)).ok()?;
            Some(part_span(head, *part)?.shift(start))
        }
    }
}

/// A diagnostic of item `at` in bytes of the file.
pub(crate) fn place_diagnostic(document: &Document, at: usize, diagnostic: &Diagnostic<ItemPlace>) -> Diagnostic<Span> {
    let primary = absolute(document, at, &diagnostic.primary).unwrap_or_default();
    diagnostic.map_places(primary, |place| absolute(document, at, place))
}
