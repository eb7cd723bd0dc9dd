//! Document links: operators, and diagnostic codes in comments, with the addresses of their documentation.

use crate::call_site::operator_of;
use rx_base::{Code, Span};
use rx_context::Namespace;
use rx_db::FileView;
use rx_syntax::directive::{DirectiveKind, Named};
use rx_syntax::document::ItemKind;
use rx_syntax::{Segment, TokenKind};

/// The maximal number of links of a document; later ones are left out.
pub const MOST_LINKS: usize = 2000;

/// A word with a link to its documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The word, in bytes of the file.
    pub span: Span,
    /// The URL.
    pub target: String,
}

/// Returns the first [`MOST_LINKS`] links of a file, in order.
pub fn document_links(view: &FileView<'_>) -> Vec<Link> {
    let document = view.document();
    let mut found = Vec::new();
    for (at, item) in document.items().iter().enumerate() {
        for (number, segment) in item.segments.iter().enumerate() {
            let Ok(base) = u32::try_from(document.segment_start(at, number)) else { return found };
            let mut here = codes(segment);
            if item.kind != ItemKind::Foreign {
                operators(view, at, segment, &mut here);
            }
            here.sort_by_key(|link| link.span.start);
            found.extend(here.into_iter().map(|link| Link { span: link.span.shift(base), ..link }));
            if found.len() >= MOST_LINKS {
                found.truncate(MOST_LINKS);
                return found;
            }
        }
    }
    found
}

/// Returns links for the diagnostic codes in suppression comments: `# rx: ignore[RX0651]`.
fn codes(segment: &Segment) -> Vec<Link> {
    let named = segment.directives().iter().filter_map(|directive| match &directive.kind {
        DirectiveKind::Ignore(Named::Codes(codes)) | DirectiveKind::IgnoreFile(Named::Codes(codes)) => Some(codes),
        _ => None,
    });
    let link = |span: &Span| {
        let code: Code = segment.text().get(span.range())?.parse().ok()?;
        Some(Link { span: *span, target: code.url() })
    };
    named.flatten().filter_map(link).collect()
}

/// Adds links for the dotted names that refer to an operator: `R.nn.relu`.
fn operators(view: &FileView<'_>, item: usize, segment: &Segment, found: &mut Vec<Link>) {
    let Some(context) = view.context(item) else { return };
    let tokens = &segment.tree().tokens;
    let text = |token: u32| tokens.span(token).and_then(|span| segment.text().get(span.range())).unwrap_or_default();
    for statement in &segment.tree().statements {
        let kind = |token: u32| tokens.kind(token).filter(|_| statement.tokens().contains(&token));
        let mut token = statement.first_token;
        while let Some(first_kind) = kind(token) {
            let first = token;
            token += 1;
            let member = first.checked_sub(1).and_then(kind) == Some(TokenKind::Dot);
            if first_kind != TokenKind::Name || member || context.namespace(text(first)) != Some(Namespace::Relax) {
                continue;
            }
            let mut path = text(first).to_owned();
            while kind(token) == Some(TokenKind::Dot) && kind(token + 1).is_some_and(TokenKind::is_name) {
                path.push('.');
                path.push_str(text(token + 1));
                token += 2;
            }
            let (Some(from), Some(to)) = (tokens.span(first), tokens.span(token - 1)) else { continue };
            let target = operator_of(view, item, &path).and_then(|schema| schema.url());
            found.extend(target.map(|target| Link { span: from.cover(to), target }));
        }
    }
}
