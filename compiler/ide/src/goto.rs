//! Go to definition, find references, document highlights.

use crate::names::{Access, Symbol, declared_at, symbol_at};
use rx_base::Span;
use rx_db::FileView;

/// The declarations of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name at the requested position.
    pub origin: Span,
    /// The names in the declarations. There are several if the branches of an `if` bind the variable.
    pub targets: Vec<Span>,
}

/// Returns the declarations of the symbol at `offset`.
pub fn definition(view: &FileView<'_>, offset: usize) -> Option<Definition> {
    let Symbol { origin, declarations, .. } = declared_at(view, offset)?;
    (!declarations.is_empty()).then_some(Definition { origin, targets: declarations })
}

/// Returns the occurrences of the symbol at `offset`, with or without its declarations.
pub fn references(view: &FileView<'_>, offset: usize, declarations: bool) -> Vec<Span> {
    let found = symbol_at(view, offset).map(|symbol| symbol.occurrences).unwrap_or_default();
    let wanted = found.iter().filter(|found| declarations || found.access != Access::Declaration);
    wanted.map(|found| found.span).collect()
}

/// Returns the occurrences of the symbol at `offset`, with the kind of access of each.
pub fn highlights(view: &FileView<'_>, offset: usize) -> Vec<(Span, Access)> {
    let found = symbol_at(view, offset).map(|symbol| symbol.occurrences).unwrap_or_default();
    found.into_iter().map(|found| (found.span, found.access)).collect()
}
