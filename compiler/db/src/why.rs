//! Provenance of shapes: traces a dim, rank or dtype of a value back to the statement that determined it.

use crate::position::absolute;
use crate::queries::{Database, check_item, item_signature, scope_context, scope_index, signature, texts};
use crate::workspace::{FileId, Snapshot, Workspace};
use rx_analysis::trace::{self, Asked, FunctionText, MAX_STEPS, TracePlace, Why, World};
use rx_base::{Name, Span};
use rx_ir::Signature;
use rx_ops::Schema;
use rx_syntax::document::{Document, Encoding, FunctionKind, ItemKind};
use std::sync::Arc;

impl Workspace {
    /// Traces the value at `offset` bytes of a file back to its origin: a variable, call, parameter, or a dim of an
    /// annotation. Returns `None` if there is no value of a Relax function at `offset`.
    pub fn why(&self, file: FileId, offset: usize, asked: &Asked) -> Option<Why<Span>> {
        self.why_at(file, offset, false, asked, None)
    }

    /// Like [`Workspace::why`], but short: each chain ends after `steps` steps and has no additional facts.
    pub fn why_briefly(&self, file: FileId, offset: usize, steps: usize) -> Option<Why<Span>> {
        self.why_at(file, offset, false, &Asked::Everything, Some(steps))
    }

    /// Like [`Workspace::why`], for the value that the statement on a line binds or returns; lines count from 0.
    pub fn why_line(&self, file: FileId, line: u32, asked: &Asked) -> Option<Why<Span>> {
        let (_, document, _) = self.parts(file)?;
        let start = document.offset_of(line, 0, Encoding::Utf8);
        if document.line_column(start, Encoding::Utf8).0 != line {
            return None;
        }
        let location = document.locate(start)?;
        let rest = document.segment(location)?.text().get(location.offset..)?;
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        self.why_at(file, start + blanks, true, asked, None)
    }

    fn why_at(
        &self,
        file: FileId,
        offset: usize,
        line_only: bool,
        asked: &Asked,
        steps: Option<usize>,
    ) -> Option<Why<Span>> {
        let (db, document, inputs) = self.parts(file)?;
        let location = document.locate(offset)?;
        let item = document.items().get(location.item)?;
        let name = item.name.filter(|_| item.kind == ItemKind::Function(FunctionKind::Relax))?;
        let world = Items { db, item: *inputs.items.get(location.item)?, steps: steps.unwrap_or(MAX_STEPS) };
        let segment = u32::try_from(location.segment).ok()?;
        let at = u32::try_from(location.offset).ok()?;
        let found = trace::why(&world, name, segment, at, line_only, asked)?;
        Some(found.map_places(&|place| placed(document, location.item, place)))
    }
}

impl Snapshot {
    /// Like [`Workspace::why`].
    pub fn why(&self, file: FileId, offset: usize, asked: &Asked) -> Option<Why<Span>> {
        self.0.why(file, offset, asked)
    }
}

/// Converts a place of a chain to bytes of the file; `from` is the item in which the chain begins.
fn placed(document: &Document, from: usize, place: &TracePlace) -> Option<Span> {
    let items = document.items();
    let module = items.get(from)?.module;
    let is_function = |item: &rx_syntax::document::Item| {
        item.name == Some(place.function) && item.module == module && matches!(item.kind, ItemKind::Function(_))
    };
    let at = match items.get(from) {
        Some(item) if item.name == Some(place.function) => from,
        _ => items.iter().rposition(is_function)?,
    };
    absolute(document, at, &place.place)
}

/// The functions visible from one function.
struct Items<'a> {
    db: &'a Database,
    item: crate::queries::ItemInput,
    steps: usize,
}

impl World for Items<'_> {
    fn function(&self, name: Name) -> Option<FunctionText> {
        let scope = self.item.scope(self.db);
        // The function itself may be hidden by a later function of the same name.
        let own = self.item.name(self.db) == Some(name);
        let item = if own { self.item } else { scope_index(self.db, scope).get(&name).copied()? };
        let Signature::Relax(signature) = &*signature(self.db, item) else { return None };
        Some(FunctionText {
            segments: texts(self.db, item),
            check: check_item(self.db, item).function?,
            signature: signature.clone(),
            file: scope_context(self.db, scope),
        })
    }

    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        item_signature(self.db, self.item, name)
    }

    fn most_steps(&self) -> usize {
        self.steps
    }

    fn operator(&self, name: Name) -> Option<&'static Schema> {
        scope_context(self.db, self.item.scope(self.db)).operator(name)
    }
}
