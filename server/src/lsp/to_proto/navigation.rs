//! Conversions of locations, symbols, folds and calls to the protocol's types.

use crate::lsp::{Point, Uri};
use crate::reads::Subject;
use rx_base::Span;
use rx_db::{Encoding, FileView};
use rx_ide::{Access, Call, Fold, FoldKind, Outline, OutlineKind};
use tower_lsp::ls_types as proto;

/// Converts spans of a document to locations.
pub fn locations(subject: &Subject<'_>, spans: Vec<Span>) -> Vec<proto::Location> {
    spans.into_iter().map(|span| subject.location(span)).collect()
}

/// Converts highlights, with the kind of access (read or write) of each.
pub fn highlights(subject: &Subject<'_>, found: Vec<(Span, Access)>) -> Vec<proto::DocumentHighlight> {
    let highlight = |(span, access)| {
        let kind = match access {
            Access::Read => proto::DocumentHighlightKind::READ,
            Access::Write | Access::Declaration => proto::DocumentHighlightKind::WRITE,
        };
        proto::DocumentHighlight { range: subject.range(span), kind: Some(kind) }
    };
    found.into_iter().filter(|(span, _)| subject.holds(*span)).map(highlight).collect()
}

/// Converts the outline of a document to symbols: a tree, or a flat list for clients without hierarchical symbols.
pub fn document_symbols(subject: &Subject<'_>, found: Vec<Outline>) -> proto::DocumentSymbolResponse {
    if subject.profile.symbol_trees {
        let tree = found.into_iter().map(|part| document_symbol(subject, part)).collect();
        return proto::DocumentSymbolResponse::Nested(tree);
    }
    let mut row = Vec::new();
    found.iter().for_each(|part| flatten(&|span: Span| subject.location(span), part, None, &mut row));
    proto::DocumentSymbolResponse::Flat(row)
}

#[allow(deprecated, reason = "the type has a field that is")]
fn document_symbol(subject: &Subject<'_>, part: Outline) -> proto::DocumentSymbol {
    let children: Vec<_> = part.children.into_iter().map(|child| document_symbol(subject, child)).collect();
    proto::DocumentSymbol {
        name: part.name,
        detail: part.detail,
        kind: symbol_kind(part.kind),
        tags: None,
        deprecated: None,
        range: subject.range(part.span),
        selection_range: subject.range(part.selection),
        children: (!children.is_empty()).then_some(children),
    }
}

#[allow(deprecated, reason = "the type has a field that is")]
fn flatten(
    location: &impl Fn(Span) -> proto::Location,
    part: &Outline,
    container: Option<&str>,
    row: &mut Vec<proto::SymbolInformation>,
) {
    row.push(proto::SymbolInformation {
        name: part.name.clone(),
        kind: symbol_kind(part.kind),
        tags: None,
        deprecated: None,
        location: location(part.span),
        container_name: container.map(str::to_owned),
    });
    part.children.iter().for_each(|child| flatten(location, child, Some(&part.name), row));
}

fn symbol_kind(kind: OutlineKind) -> proto::SymbolKind {
    match kind {
        OutlineKind::Module => proto::SymbolKind::MODULE,
        OutlineKind::Function | OutlineKind::PrimFunc => proto::SymbolKind::FUNCTION,
        OutlineKind::Block => proto::SymbolKind::NAMESPACE,
        OutlineKind::Binding => proto::SymbolKind::VARIABLE,
        OutlineKind::Global => proto::SymbolKind::CONSTANT,
    }
}

/// Returns the modules and functions of a file as symbols. The file need not be open.
pub fn file_symbols(view: &FileView<'_>, uri: &Uri, encoding: Encoding) -> Vec<proto::SymbolInformation> {
    symbols_at(view, &|span: Span| super::location(view.document(), uri, None, span, encoding))
}

/// Returns the modules and functions of a file as symbols at these locations.
pub fn symbols_at(view: &FileView<'_>, location: &impl Fn(Span) -> proto::Location) -> Vec<proto::SymbolInformation> {
    let mut row = Vec::new();
    rx_ide::functions(view).iter().for_each(|part| flatten(location, part, None, &mut row));
    row
}

/// Whether `name` contains the letters of `query` in this order, ignoring case. For example, `conv2d_relu` matches the
/// query `c2r`.
pub fn has_letters(name: &str, query: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|letter| letter == wanted))
}

/// Converts the folds of a document.
pub fn folds(subject: &Subject<'_>, found: &[Fold]) -> Vec<proto::FoldingRange> {
    let fold = |fold: &Fold| {
        let range = subject.range(fold.span);
        let columns = !subject.profile.folds_lines;
        // For clients that fold whole lines only, the fold ends before the line of the closing bracket, which stays
        // visible.
        let end = subject.offset(Point { line: range.end.line, column: 0 });
        let closes = subject.profile.folds_lines && is_blank(subject, end, fold.span.end as usize);
        let end_line = range.end.line - u32::from(closes && range.end.line > range.start.line);
        (range.start.line < end_line).then(|| proto::FoldingRange {
            start_line: range.start.line,
            start_character: columns.then_some(range.start.character),
            end_line,
            end_character: columns.then_some(range.end.character),
            kind: match fold.kind {
                FoldKind::Comment => Some(proto::FoldingRangeKind::Comment),
                FoldKind::Imports => Some(proto::FoldingRangeKind::Imports),
                FoldKind::Region => None,
            },
            collapsed_text: None,
        })
    };
    found.iter().filter(|fold| subject.holds(fold.span)).filter_map(fold).collect()
}

/// Whether the text between two offsets of a line is blank.
fn is_blank(subject: &Subject<'_>, start: usize, end: usize) -> bool {
    let document = subject.view.document();
    let Some((from, to)) = document.locate(start).zip(document.locate(end)) else { return false };
    let text = document.segment(from).map_or("", |segment| segment.text());
    let same = (from.item, from.segment) == (to.item, to.segment);
    same && text.get(from.offset..to.offset).is_some_and(|line| line.trim().is_empty())
}

/// Converts nested spans, innermost first, to a chain of selection ranges.
pub fn selection(subject: &Subject<'_>, spans: &[Span]) -> proto::SelectionRange {
    let mut parent: Option<Box<proto::SelectionRange>> = None;
    let whole = subject.whole();
    for span in spans.iter().rev().filter(|span| whole.start <= span.start && span.end <= whole.end) {
        parent = Some(Box::new(proto::SelectionRange { range: subject.range(*span), parent: parent.take() }));
    }
    parent.map_or_else(|| proto::SelectionRange { range: subject.range(Span::default()), parent: None }, |inner| *inner)
}

/// Converts a function to an item of the call hierarchy.
pub fn call_item(subject: &Subject<'_>, function: Outline) -> proto::CallHierarchyItem {
    proto::CallHierarchyItem {
        name: function.name,
        kind: symbol_kind(function.kind),
        tags: None,
        detail: function.detail,
        uri: subject.location(function.selection).uri,
        range: subject.range(function.span),
        selection_range: subject.range(function.selection),
        data: None,
    }
}

/// Converts the callers of a function.
pub fn incoming(subject: &Subject<'_>, calls: Vec<Call>) -> Vec<proto::CallHierarchyIncomingCall> {
    let call = |call: Call| proto::CallHierarchyIncomingCall {
        from: call_item(subject, call.function),
        from_ranges: call.places.into_iter().map(|place| subject.range(place)).collect(),
    };
    calls.into_iter().map(call).collect()
}

/// Converts the functions that a function calls.
pub fn outgoing(subject: &Subject<'_>, calls: Vec<Call>) -> Vec<proto::CallHierarchyOutgoingCall> {
    let call = |call: Call| proto::CallHierarchyOutgoingCall {
        to: call_item(subject, call.function),
        from_ranges: call.places.into_iter().map(|place| subject.range(place)).collect(),
    };
    calls.into_iter().map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::has_letters;

    #[test]
    fn letters_are_found_in_order() {
        assert!(has_letters("conv2d_relu", "CVR") && has_letters("main", ""));
        assert!(!has_letters("relu", "ur"));
    }
}
