//! The formatter: prints a document in the printer's layout, in its own dialect or converted to another.

use crate::dialect::Dialect;
use crate::document::{Document, ItemKind};
use crate::printer::{self, Difference, tree_eq_as};
use crate::{numbered_names, syntax_diagnostics};
use rx_base::{Diagnostic, Severity, Span};

/// Formats `document` in the layout of TVM's `mod.script()` and the spelling of `dialect`. To keep the document's
/// dialect, pass the result of [`Dialect::detect`].
///
/// Formatting changes no tree, loses no comment, and is idempotent. In a Python file only the decorated functions and
/// classes change. Broken statements are kept as written: a caller that overwrites a file checks [`errors`] first.
pub fn format(document: &Document, dialect: Dialect) -> String {
    printer::print(document, dialect)
}

/// Formats as [`format()`] does, for callers that overwrite a file: converts `document` from dialect `own` to
/// `dialect`, then compares the trees of both texts. The comparison protects the file from a bug in the formatter.
pub fn checked(document: &Document, own: Dialect, dialect: Dialect) -> Result<String, Difference> {
    let formatted = format(document, dialect);
    tree_eq_as((document, own), (&Document::new(&formatted, document.kind()), dialect))?;
    Ok(formatted)
}

/// The syntax errors of a document's items, in order, each as item index, segment index and a diagnostic with a span in
/// that segment. Python code outside TVMScript is not checked. A file with such errors must not be overwritten.
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
