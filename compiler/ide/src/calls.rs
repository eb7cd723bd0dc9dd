//! Call hierarchy: the callers of a function and the functions that it calls.

use crate::names::{Extent, File, Meaning, Role, Symbol, SymbolKind, read, resolve, symbol_at};
use crate::outline::{Outline, OutlineKind, functions};
use rx_base::{Name, Span};
use rx_db::FileView;
use rx_syntax::document::ItemKind;
use std::collections::BTreeMap;

/// A caller or callee, with the places of the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The other function.
    pub function: Outline,
    /// The places of the calls, in bytes of the file.
    pub places: Vec<Span>,
}

/// Returns the functions that the name at `offset` refers to.
pub fn function_at(view: &FileView<'_>, offset: usize) -> Vec<Outline> {
    let Some(Symbol { kind: SymbolKind::Function, declarations, .. }) = symbol_at(view, offset) else {
        return Vec::new();
    };
    let all = all_functions(view);
    let declared = |function: &Outline| declarations.contains(&function.selection);
    all.into_iter().filter(declared).collect()
}

/// Returns the functions that use the function at `offset`.
pub fn incoming(view: &FileView<'_>, offset: usize) -> Vec<Call> {
    let Some(symbol) = symbol_at(view, offset).filter(|symbol| symbol.kind == SymbolKind::Function) else {
        return Vec::new();
    };
    let mut places: BTreeMap<usize, Vec<Span>> = BTreeMap::new();
    for found in &symbol.occurrences {
        if !symbol.declarations.contains(&found.span) && found.literal.is_none() && is_use(view, found.span) {
            places.entry(found.at.0).or_default().push(found.span);
        }
    }
    let all = all_functions(view);
    let of_item =
        |(item, places): (usize, Vec<Span>)| Some(Call { function: function_of(view, &all, item)?.clone(), places });
    places.into_iter().filter_map(of_item).collect()
}

/// Whether a name is in code, not in a string.
fn is_use(view: &FileView<'_>, span: Span) -> bool {
    let Some(location) = view.document().locate(span.start as usize) else { return false };
    let Some(segment) = view.document().segment(location) else { return false };
    let Ok(offset) = u32::try_from(location.offset) else { return false };
    let tokens = &segment.tree().tokens;
    tokens.kind(tokens.at_or_after(offset)).is_some_and(|kind| kind.is_name())
}

/// Returns the functions of the module that the function at `offset` uses.
pub fn outgoing(view: &FileView<'_>, offset: usize) -> Vec<Call> {
    let Some(called) = function_at(view, offset).into_iter().next() else { return Vec::new() };
    let document = view.document();
    let Some(location) = document.locate(called.selection.start as usize) else { return Vec::new() };
    let Some(item) = document.items().get(location.item) else { return Vec::new() };
    let mut wanted: Vec<Name> = document
        .items()
        .iter()
        .filter(|other| other.module == item.module && matches!(other.kind, ItemKind::Function(_)))
        .filter_map(|other| other.name)
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let reading = read(item, &wanted, 0..item.segments.len());
    let mut calls: Vec<(Name, Vec<Span>)> = Vec::new();
    for (which, name) in wanted.iter().enumerate() {
        let file = File { view, wanted: *name };
        let Some(around) = file.around(location.item) else { continue };
        let modules = file.modules(location.item);
        let meanings = resolve(&reading, around, |_, mention| mention.which == which);
        let mut places = Vec::new();
        for (at, mention) in reading.mentions.iter().enumerate().filter(|(_, mention)| mention.which == which) {
            let is_it = match meanings.rooted(at) {
                Meaning::Member(base) => item.module.is_some() && modules.of(base) == item.module,
                Meaning::Outer => {
                    mention.role == Role::Read && file.outer_kind(location.item).1 == Extent::Module(item.module)
                }
                _ => false,
            };
            places.extend(is_it.then(|| file.span(location.item, mention)).flatten());
        }
        if !places.is_empty() {
            calls.push((*name, places));
        }
    }
    calls.sort_by_key(|(_, places)| places.first().copied());
    let all = all_functions(view);
    let call = |(name, places): (Name, Vec<Span>)| {
        let target = view.function(location.item, name)?;
        Some(Call { function: function_of(view, &all, target)?.clone(), places })
    };
    calls.into_iter().filter_map(call).collect()
}

/// Returns the functions of a file in one list, without their modules.
fn all_functions(view: &FileView<'_>) -> Vec<Outline> {
    let mut all = Vec::new();
    for part in functions(view) {
        if part.kind == OutlineKind::Module { all.extend(part.children) } else { all.push(part) }
    }
    all
}

/// Returns the function that is defined by an item.
fn function_of<'o>(view: &FileView<'_>, all: &'o [Outline], item: usize) -> Option<&'o Outline> {
    let (start, end) = (view.document().item_start(item), view.document().item_start(item + 1));
    all.iter().find(|function| (start..end).contains(&(function.selection.start as usize)))
}
