//! A view of one file with the results of its items, for features that answer questions about positions in it.

use crate::modules::ModuleId;
use crate::position::absolute;
use crate::queries::{Database, check_item, full_signature, item_signature, scope_context, scope_index, texts};
use crate::sync::Inputs;
use crate::workspace::{FileId, Snapshot, Workspace};
use rx_analysis::body::recorded_segment;
use rx_analysis::elaborate::{Recorded, SegmentResult};
use rx_analysis::function::FunctionCheck;
use rx_analysis::position_scope::{PositionScope, suppose};
use rx_analysis::{Entry, Outer};
use rx_base::{Name, Span};
use rx_context::{FileContext, ItemPlace};
use rx_ir::Signature;
use rx_syntax::Segment;
use rx_syntax::document::Document;
use std::sync::Arc;

/// A file of a [`Workspace`] with the results of its items. Items are identified by their index in [`Document::items`];
/// for an index out of range the methods return `None`.
#[derive(Clone, Copy)]
pub struct FileView<'a> {
    workspace: &'a Workspace,
    file: FileId,
    db: &'a Database,
    document: &'a Document,
    inputs: &'a Inputs,
}

impl Workspace {
    /// Returns a view of a file; `None` if the file was removed.
    pub fn view(&self, file: FileId) -> Option<FileView<'_>> {
        let (db, document, inputs) = self.parts(file)?;
        Some(FileView { workspace: self, file, db, document, inputs })
    }
}

impl Snapshot {
    /// Like [`Workspace::view`].
    pub fn view(&self, file: FileId) -> Option<FileView<'_>> {
        self.0.view(file)
    }
}

impl<'a> FileView<'a> {
    /// The workspace that contains the file.
    pub fn workspace(&self) -> &'a Workspace {
        self.workspace
    }

    /// The file's id in its workspace.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// The module that contains an item.
    pub fn module(&self, item: usize) -> Option<ModuleId> {
        Some(ModuleId { file: self.file, module: self.document.items().get(item)?.module })
    }

    /// The file's text.
    pub fn document(&self) -> &'a Document {
        self.document
    }

    /// Returns the result of checking a Relax function: struct info by segment.
    pub fn check(&self, item: usize) -> Option<Arc<FunctionCheck>> {
        check_item(self.db, *self.inputs.items.get(item)?).function
    }

    /// Returns the module-level declarations that an item sees: aliases, captured names, operators.
    pub fn context(&self, item: usize) -> Option<Arc<FileContext>> {
        Some(scope_context(self.db, self.inputs.items.get(item)?.scope(self.db)))
    }

    /// Returns the signature of an item; an undeclared return type is inferred.
    pub fn signature(&self, item: usize) -> Option<Arc<Signature>> {
        Some(full_signature(self.db, *self.inputs.items.get(item)?))
    }

    /// Returns the signature of the function or external function `name` as seen from item `from`.
    pub fn signature_of(&self, from: usize, name: Name) -> Option<Arc<Signature>> {
        item_signature(self.db, *self.inputs.items.get(from)?, name)
    }

    /// Returns the index of the function that `name` refers to in item `from`. Of several functions of the module with
    /// this name it is the last, as in Python.
    pub fn function(&self, from: usize, name: Name) -> Option<usize> {
        let scope = self.inputs.items.get(from)?.scope(self.db);
        let wanted = scope_index(self.db, scope).get(&name).copied()?;
        self.inputs.items.iter().position(|input| *input == wanted)
    }

    /// Returns the statements of a segment of a checked Relax function as typed bindings.
    pub fn recorded(&self, item: usize, segment: usize) -> Option<Recorded> {
        let (check, context) = (self.check(item)?, self.context(item)?);
        let texts = texts(self.db, *self.inputs.items.get(item)?);
        let before = check.segments.get(segment.checked_sub(1)?)?;
        Some(recorded_segment(texts.get(segment)?, &before.end, &context, check.segments.get(segment)?))
    }

    /// Checks `statements` as if each were written at byte `offset` of a segment of a Relax function, in the dataflow
    /// block with the ordinal `dataflow`.
    pub fn suppose(
        &self,
        (item, segment, offset): (usize, usize, u32),
        dataflow: Option<u32>,
        statements: &[String],
    ) -> Option<SegmentResult> {
        let (check, context) = (self.check(item)?, self.context(item)?);
        let signatures = |name| self.signature_of(item, name);
        let scope =
            PositionScope::new(&check, segment, offset, &signatures).with_open_blocks(self.segment(item, segment)?);
        Some(suppose(statements, &scope, dataflow, &context))
    }

    fn segment(&self, item: usize, segment: usize) -> Option<&'a Segment> {
        Some(self.document.items().get(item)?.segments.get(segment)?)
    }

    /// Looks up a variable as visible at byte `offset` of a segment of a Relax function.
    pub fn entry(&self, item: usize, segment: usize, offset: u32, name: Name) -> Option<Entry> {
        let check = self.check(item)?;
        let scope = PositionScope::new(&check, segment, offset, &|_| None);
        scope.with_open_blocks(self.segment(item, segment)?).lookup(name)
    }

    /// Converts a place of an item to bytes of the file.
    pub fn absolute(&self, item: usize, place: &ItemPlace) -> Option<Span> {
        absolute(self.document, item, place)
    }
}
