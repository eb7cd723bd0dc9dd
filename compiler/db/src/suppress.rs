//! The suppression comments of a file, with their positions.

use rx_analysis::suppression::{Meant, Scope, Suppression};
use rx_base::Span;
use rx_syntax::Segment;
use rx_syntax::directive::{Directive, DirectiveKind, Named, Target};
use rx_syntax::document::{Document, ItemKind};

/// Returns the suppression comments of a document, in order. In Python text that rx does not check, only those for the
/// next statement and for the whole file count.
pub(crate) fn suppressions(document: &Document) -> Vec<Suppression> {
    let mut found = Vec::new();
    for (at, item) in document.items().iter().enumerate() {
        for (segment, directive) in item.directives() {
            let looked_at = item.kind != ItemKind::Foreign
                || directive.target == Target::Next
                || matches!(directive.kind, DirectiveKind::IgnoreFile(_));
            if let (true, Some(part)) = (looked_at, item.segments.get(segment)) {
                found.push(placed(document, (at, segment), part, directive));
            }
        }
    }
    found
}

fn placed(document: &Document, at: (usize, usize), segment: &Segment, directive: &Directive) -> Suppression {
    let base = start(document, at);
    let word = |span: &Span| {
        let text = segment.text().get(span.range()).unwrap_or_default();
        (span.shift(base), text.to_owned())
    };
    let meant = |named: &Named| match named {
        Named::All => Meant::All,
        Named::Codes(codes) => Meant::Codes(codes.iter().map(word).collect()),
    };
    let lines = |target: Target, base: u32| match target {
        Target::Here { line, statements } => {
            Scope::Lines { line: line.shift(base), statements: statements.map(|span| span.shift(base)) }
        }
        Target::Next => Scope::Nothing,
    };
    let (meant, scope) = match &directive.kind {
        DirectiveKind::IgnoreFile(named) => (meant(named), Scope::File),
        DirectiveKind::Malformed(why) => (Meant::Malformed(why), Scope::Nothing),
        DirectiveKind::Ignore(named) => {
            let scope = match directive.target {
                Target::Next => {
                    next_head(document, at).map_or(Scope::Nothing, |(at, target)| lines(target, start(document, at)))
                }
                target => lines(target, base),
            };
            (meant(named), scope)
        }
    };
    Suppression { span: directive.span.shift(base), removal: directive.removal.shift(base), meant, scope }
}

/// Returns the start of a segment, in bytes of the file.
fn start(document: &Document, (item, segment): (usize, usize)) -> u32 {
    let inside = document.items().get(item).map_or(0, |item| item.segment_start(segment));
    u32::try_from(document.item_start(item) + inside).unwrap_or(u32::MAX)
}

/// Finds the first statement after a segment, with its segment.
fn next_head(document: &Document, (item, segment): (usize, usize)) -> Option<((usize, usize), Target)> {
    let items = document.items().iter().enumerate().skip(item);
    let behind = items.flat_map(|(at, it)| {
        let first = if at == item { segment + 1 } else { 0 };
        it.segments.iter().enumerate().skip(first).map(move |(segment, part)| ((at, segment), part))
    });
    // Almost every segment has a statement, so the search is short.
    behind.into_iter().find_map(|(at, part)| Some((at, Target::head_of(part)?)))
}
