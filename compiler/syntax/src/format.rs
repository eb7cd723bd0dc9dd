//! The formatter: a document in the printer's layout, kept in its own dialect or brought into another.

use crate::dialect::Dialect;
use crate::document::{Document, ItemKind};
use crate::printer::{self, Difference, tree_eq_as};
use crate::{numbered_names, syntax_diagnostics};
use rx_base::{Diagnostic, Severity, Span};

/// `document` in the layout of TVM's `mod.script()` and the spelling of `dialect`; [`Dialect::detect`] gives the one it has.
///
/// Formatting changes no tree and loses no comment; done twice it gives the same text. Of a Python file only the decorated
/// functions and classes change. Broken statements stand as written: a caller that may overwrite a file asks
/// for [`errors`] first.
pub fn format(document: &Document, dialect: Dialect) -> String {
    printer::print(document, dialect)
}

/// As [`format()`], for those that overwrite a text: `document`, which is in dialect `own`, in the spelling of `dialect`, once
/// it was seen that its trees are the same. The formatter changes none; should it ever, the text must not pay for it.
///
/// # Errors
/// The first difference of the trees.
pub fn checked(document: &Document, own: Dialect, dialect: Dialect) -> Result<String, Difference> {
    let formatted = format(document, dialect);
    tree_eq_as((document, own), (&Document::new(&formatted, document.kind()), dialect))?;
    Ok(formatted)
}

/// The syntax errors of a document's items but for Python's own text, in order: item, segment, and a place in the segment. A
/// text that has some is not overwritten.
pub fn errors(document: &Document) -> impl Iterator<Item = (usize, usize, Diagnostic<Span>)> + '_ {
    let items = document.items().iter().enumerate().filter(|(_, item)| item.kind != ItemKind::Foreign);
    items.flat_map(|(at, item)| {
        let segments = item.segments.iter().enumerate();
        let syntax = segments.flat_map(|(segment, text)| {
            syntax_diagnostics(text).into_iter().map(move |diagnostic| (segment, diagnostic))
        });
        let numbered = numbered_names(item).into_iter().map(|diagnostic| {
            let (segment, span) = diagnostic.primary;
            (segment, diagnostic.map_places(span, |_| None))
        });
        let all = syntax.chain(item.indentation_diagnostics()).chain(numbered);
        all.filter(|(_, diagnostic)| diagnostic.severity == Severity::Error)
            .map(move |(segment, diagnostic)| (at, segment, diagnostic))
    })
}
