//! The pass `KeepRawEntry` as a code action: makes a function that takes prepared weights callable with raw weights.
//!
//! ```text
//! # before, as left by LiftTransformParams
//! def main_transform_params(model_params): ...           # prepares the weights
//! def main(x, wt): ...                                   # num_input = 1; wt is a prepared weight
//!
//! # after
//! def main_prepared_transform_params(model_params): ...  # rx.once: the result is memoized
//! def main_prepared(x, wt): ...
//! def main(x, w): ...                                    # prepares w, then calls main_prepared
//! ```
//!
//! Requires a public Relax function with `num_input`, a matching `NAME_transform_params` or `transform_params`, and a
//! file that can be read as a module. A shared `transform_params` keeps its name. Guarantees that the result consists
//! of renames, changed attributes and one inserted function, so that comments and layout of the other text are
//! preserved. The pass is `compiler/transform/src/passes/keep_raw_entry.rs`.

use crate::rename::rename;
use rx_base::fix::Edit;
use rx_base::name::name;
use rx_base::{Name, Span};
use rx_db::{FileKind, FileView, FunctionKind, ModuleId};
use rx_ir::function::RAW_ENTRY;
use rx_ir::{Constants, FunctionSignature, Item as ModuleItem, Module, RelaxFunction, Signature};
use rx_prim_func::attributes::{WrittenAttributes, written_attributes};
use rx_syntax::ast::StatementKind;
use rx_syntax::dialect::Dialect;
use rx_syntax::document::{Item, ItemKind};
use rx_syntax::{Document, printer};
use rx_transform::print::{dictionary, print, undeclared};
use rx_transform::{RawEntry, Renamed, raw_entries};
use std::sync::Arc;

/// Returns the name of the function at a byte offset, if another function prepares its weights and it has no entry for
/// raw weights yet. Reads signatures only, no bodies.
pub fn takes_prepared_weights(view: &FileView<'_>, offset: usize) -> Option<Name> {
    let document = view.document();
    let at = document.locate(offset)?.item;
    let item = document.items().get(at)?;
    let (ItemKind::Function(FunctionKind::Relax), Some(own)) = (item.kind, item.name) else { return None };
    let (signature, private) = relax(view, at)?;
    let inputs = usize::try_from(signature.num_input?).ok().filter(|inputs| *inputs < signature.params.len())?;
    let beside = [format!("{own}_transform_params"), "transform_params".to_owned()];
    let (prepares, _) = beside.iter().find_map(|known| relax(view, view.function(at, name(known))?))?;
    let fits =
        prepares.params.len() == 1 && inputs + prepares.ret.as_ref()?.as_tuple()?.len() == signature.params.len();
    let is_raw = |written: &WrittenAttributes| written.entries.iter().any(|(key, _)| &**key == RAW_ENTRY);
    (fits && !private && !written_attributes(&item.segments).is_some_and(|written| is_raw(&written))).then_some(own)
}

/// Returns the edits, in order, that keep the function at a byte offset callable with raw weights. The function and the
/// one that prepares its weights are renamed, and a new function with the old name is inserted after it, which takes
/// raw weights and prepares them once. `None` if nothing prepares the function's weights, if the file cannot be read as
/// a module, or if a new name would conflict.
pub fn raw_entry(view: &FileView<'_>, offset: usize) -> Option<Vec<Edit>> {
    let own = takes_prepared_weights(view, offset)?;
    let within = view.module(view.document().locate(offset)?.item)?;
    let module = view.workspace().module(within).ok()?;
    let RawEntry { runs, prepares, entry } = raw_entries(&module, |function| function == own).pop()?;
    let mut edits = renamed(view, within, &runs)?;
    edits.extend(renamed(view, within, &prepares)?);
    let stated = [stated(view, within, &runs)?, stated(view, within, &prepares)?].into_iter().flatten();
    for (place, text) in stated {
        // The attributes are written anew, so renames inside them are dropped.
        edits.retain(|(span, _)| span.end <= place.start || place.end <= span.start);
        edits.push((place, text));
    }
    let (at, item) = item_called(view, within, own)?;
    let document = view.document();
    let (end, indent) = (document.line_end(), " ".repeat(item.indent as usize));
    let dialect = dialect(document, item, !undeclared(&alone(&module, &entry, Arc::clone(&module.prelude))).is_empty());
    let text = print(&alone(&module, &entry, Arc::from("")));
    let text = entry_text(&printed_in(&text, dialect), own)?;
    let lines = text.lines().map(|line| match line.is_empty() {
        true => end.to_owned(),
        false => format!("{end}{indent}{line}"),
    });
    let place = u32::try_from(document.item_start(at) + item.byte_len().saturating_sub(trailing_blanks(item))).ok()?;
    edits.push((Span::empty(place), format!("{end}{}", lines.collect::<String>())));
    edits.sort();
    Some(edits)
}

/// Returns the edits that rename a function and all references to it.
fn renamed(view: &FileView<'_>, within: ModuleId, renamed: &Renamed) -> Option<Vec<Edit>> {
    if renamed.from == renamed.to {
        return Some(Vec::new());
    }
    let functions = view.workspace().functions(view.file());
    let place = functions.iter().rfind(|it| it.name == renamed.from && it.module == within.module)?.span;
    rename(view, place.start as usize, &renamed.to).ok()
}

/// Returns the edit that adapts a function's attributes to its new name. The inner `None` means that they do not
/// change.
fn stated(view: &FileView<'_>, within: ModuleId, renamed: &Renamed) -> Option<Option<Edit>> {
    let (at, item) = item_called(view, within, renamed.from)?;
    let WrittenAttributes { place, entries } = written_attributes(&item.segments)?;
    let mut attributes = entries.clone();
    renamed.state(&mut attributes);
    if attributes == entries {
        return Some(None);
    }
    let text = match place.is_empty() {
        false => dictionary(&attributes),
        true => {
            let indent = " ".repeat(item.indent as usize + 4);
            format!("{indent}R.func_attr({}){}", dictionary(&attributes), view.document().line_end())
        }
    };
    let start = view.document().item_start(at);
    let offset = |inside: usize| u32::try_from(start + inside).ok();
    Some(Some((Span::new(offset(place.start)?, offset(place.end)?), text)))
}

/// Returns the function of a module with this name, and its index. If there are several, the last one counts, as in
/// Python.
fn item_called<'v>(view: &FileView<'v>, within: ModuleId, wanted: Name) -> Option<(usize, &'v Item)> {
    let is_it = |item: &Item| {
        item.name == Some(wanted) && item.module == within.module && matches!(item.kind, ItemKind::Function(_))
    };
    view.document().items().iter().enumerate().rfind(|(_, item)| is_it(item))
}

/// Returns a Relax function's signature, and whether the function is private.
fn relax(view: &FileView<'_>, at: usize) -> Option<(FunctionSignature, bool)> {
    let signature = view.signature(at)?;
    match &*signature {
        Signature::Relax(relax) => Some((relax.clone(), signature.is_private())),
        _ => None,
    }
}

/// Returns a module that contains only this function.
fn alone<L>(module: &Module<L>, function: &RelaxFunction, prelude: Arc<str>) -> Module<L> {
    let items = vec![ModuleItem::Relax(Arc::new(function.clone()))];
    Module { prelude, constants: Constants::default(), class: module.class, items }
}

/// Returns the dialect in which to print a function after `item`: the file's dialect, adapted to the way in which
/// `item` declares symbolic dims.
pub(crate) fn dialect(document: &Document, item: &Item, undeclared: bool) -> Dialect {
    match Dialect::detect(document) {
        Dialect::Tvm027 if undeclared && has_type_params(item) => Dialect::Tvm027Py312,
        Dialect::Tvm027 if undeclared => Dialect::Classic,
        detected => detected,
    }
}

fn has_type_params(item: &Item) -> bool {
    let statements = item.segments.first().into_iter().flat_map(|segment| &segment.tree().statements);
    statements.into_iter().any(|statement| match &statement.tree.kind {
        StatementKind::Def { type_params, .. } => !type_params.is_empty(),
        _ => false,
    })
}

/// Converts text in rx's own dialect to another dialect.
pub(crate) fn printed_in(text: &str, dialect: Dialect) -> String {
    printer::print_as(&Document::new(text, FileKind::Rx), Dialect::Tvm027, dialect)
}

/// Returns the lines of the function with this name, from its decorator on, without the indentation of a class.
pub(crate) fn entry_text(text: &str, wanted: Name) -> Option<String> {
    let document = Document::new(text, FileKind::Rx);
    let item = document.items().iter().find(|item| item.name == Some(wanted))?;
    let text: String = item.segments.iter().map(|segment| segment.text()).collect();
    let indent = " ".repeat(item.indent as usize);
    let lines = text.trim_end().lines().map(|line| line.strip_prefix(&indent).unwrap_or(line));
    Some(lines.skip_while(|line| line.trim().is_empty()).collect::<Vec<_>>().join("\n"))
}

/// Returns the number of trailing blank bytes of an item.
pub(crate) fn trailing_blanks(item: &Item) -> usize {
    let mut blank = 0;
    for segment in item.segments.iter().rev() {
        let text = segment.text();
        let kept = text.trim_end().len();
        blank += text.len() - kept;
        if kept > 0 {
            break;
        }
    }
    blank
}
