//! The formatter: a document in the printer's layout, kept in its own dialect or brought into another.

use crate::dialect::Dialect;
use crate::document::Document;
use crate::printer;

/// `document` in the layout of TVM's `mod.script()` and the spelling of `dialect`; [`Dialect::detect`] gives the one it has.
///
/// Formatting changes no tree and loses no comment; done twice it gives the same text. Of a Python file only the decorated
/// functions and classes change. Broken statements stand as written: a caller that may overwrite a file asks
/// for syntax diagnostics first.
pub fn format(document: &Document, dialect: Dialect) -> String {
    printer::print(document, dialect)
}
