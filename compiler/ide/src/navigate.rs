//! From a name to where it is declared and used.

use crate::names::{Access, Symbol, declared_at, symbol_at};
use rx_base::Span;
use rx_db::FileView;

/// Where a thing is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name that was asked for.
    pub origin: Span,
    /// The declarations' names: several of a variable that the branches of an `if` bind.
    pub targets: Vec<Span>,
}

/// Where the thing at `offset` is declared.
pub fn definition(view: &FileView<'_>, offset: usize) -> Option<Definition> {
    let Symbol { origin, declarations, .. } = declared_at(view, offset)?;
    (!declarations.is_empty()).then_some(Definition { origin, targets: declarations })
}

/// The places that speak of the thing at `offset`, its declarations among them or not.
pub fn references(view: &FileView<'_>, offset: usize, declarations: bool) -> Vec<Span> {
    let found = symbol_at(view, offset).map(|symbol| symbol.occurrences).unwrap_or_default();
    let wanted = found.iter().filter(|found| declarations || found.access != Access::Declaration);
    wanted.map(|found| found.span).collect()
}

/// The places that speak of the thing at `offset`, each with what is done there.
pub fn highlights(view: &FileView<'_>, offset: usize) -> Vec<(Span, Access)> {
    let found = symbol_at(view, offset).map(|symbol| symbol.occurrences).unwrap_or_default();
    found.into_iter().map(|found| (found.span, found.access)).collect()
}
