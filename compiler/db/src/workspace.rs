//! The workspace: documents and the queries about them.

use crate::module::FunctionRow;
use crate::modules::ModuleRow;
use crate::position::{absolute, place_diagnostic};
use crate::queries::{Database, check_item, portability};
use crate::suppress::suppressions;
use crate::sync::{Inputs, Pool};
use rx_analysis::{elaborate, suppression};
use rx_base::{Code, Diagnostic, Severity, Span, TvmVersion};
use rx_context::ItemPlace;
use rx_ops::user::Operators;
use rx_syntax::document::{Document, FileKind, ItemKind};
use rx_syntax::{numbered_names, numbered_names_in};
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// The id of a file in a [`Workspace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// The error of a query that was cancelled because the documents changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// The kind of a [`TypeRow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A parameter.
    Param,
    /// A binding or bare statement.
    Binding,
    /// A returned value.
    Return,
}

impl fmt::Display for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowKind::Param => "param",
            RowKind::Binding => "binding",
            RowKind::Return => "return",
        })
    }
}

/// The struct info of one parameter, binding or returned value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeRow {
    /// The name of the top-level function.
    pub function: String,
    /// The variable; `return` for a returned value, `_` for a bare statement.
    pub name: String,
    /// Whether it is a parameter, a binding or a returned value.
    pub kind: RowKind,
    /// The type that later uses see, in the `tvm-0.27` dialect.
    pub struct_info: String,
    /// Whether the type was inferred, not written.
    pub inferred: bool,
    /// The position of the name, in bytes of the file.
    pub span: Span,
}

struct File {
    document: Document,
    inputs: Inputs,
    tvm: Option<TvmVersion>,
}

/// A set of documents with the salsa database over them.
#[derive(Default)]
pub struct Workspace {
    db: Database,
    files: Vec<Option<File>>,
    pool: Pool,
}

impl Workspace {
    /// Creates a workspace without files.
    pub fn new() -> Workspace {
        Workspace::default()
    }

    /// Sets the release of TVM that a file is meant for. If the file has no errors, it gets warnings about features
    /// that this release cannot read, lower or build.
    pub fn set_tvm(&mut self, file: FileId, version: Option<TvmVersion>) {
        if let Some(file) = self.files.get_mut(file.0 as usize).and_then(Option::as_mut) {
            file.tvm = version;
        }
    }

    /// Adds a file.
    pub fn add(&mut self, text: &str, kind: FileKind) -> FileId {
        let document = Document::new(text, kind);
        let inputs = Inputs::new(&mut self.db, &mut self.pool, &document);
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(Some(File { document, inputs, tvm: None }));
        id
    }

    /// Replaces the bytes `range` of a file. A range outside the text or inside a character is moved to the nearest
    /// valid range.
    pub fn edit(&mut self, file: FileId, range: Range<usize>, new: &str) {
        let Some(file) = self.files.get_mut(file.0 as usize).and_then(Option::as_mut) else { return };
        let _span = tracing::debug_span!("edit").entered();
        let edit = file.document.edit(range, new);
        file.inputs.follow(&mut self.db, &mut self.pool, &file.document, edit.old, edit.new);
    }

    /// Sets the operators that a file's project declares; results that depend on them are recomputed.
    pub fn set_operators(&mut self, file: FileId, operators: Arc<Operators>) {
        let Some(file) = self.files.get_mut(file.0 as usize).and_then(Option::as_mut) else { return };
        file.inputs.set_operators(&mut self.db, Some(operators).filter(|operators| !operators.is_empty()));
    }

    /// Removes a file.
    pub fn remove(&mut self, file: FileId) {
        if let Some(file) = self.files.get_mut(file.0 as usize).and_then(Option::take) {
            file.inputs.retire(&mut self.db, &mut self.pool);
        }
    }

    /// Returns a file's document; an empty one if the file was removed.
    pub fn document(&self, file: FileId) -> &Document {
        static EMPTY: LazyLock<Document> = LazyLock::new(|| Document::new("", FileKind::Rx));
        self.file(file).map_or_else(|| &*EMPTY, |file| &file.document)
    }

    fn file(&self, file: FileId) -> Option<&File> {
        self.files.get(file.0 as usize).and_then(Option::as_ref)
    }

    pub(crate) fn db(&self) -> &Database {
        &self.db
    }

    /// Returns the database, a file's document and its inputs.
    pub(crate) fn parts(&self, file: FileId) -> Option<(&Database, &Document, &Inputs)> {
        self.file(file).map(|file| (&self.db, &file.document, &file.inputs))
    }

    /// Returns the diagnostics of a file, in order of position, without those that comments suppress and with those
    /// about suppressions that have no effect. An unknown name of the surrounding Python is reported once, even if
    /// several functions use it.
    pub fn diagnostics(&self, file: FileId) -> Vec<Diagnostic<Span>> {
        let Some(file) = self.file(file) else { return Vec::new() };
        let suppressions = suppressions(&file.document);
        let mut found = diagnostics(&self.db, file);
        if !suppressions.is_empty() {
            // Portability is checked only if a TVM release is chosen and the file has no errors. Otherwise a
            // suppression of its codes is not reported as unused.
            let limits = file.tvm.is_some() && is_valid(&found);
            found = suppression::apply(&suppressions, found, |code: Code| limits || code.number() / 100 != PORTABILITY);
        }
        captured_names_once(&mut found);
        found
    }

    /// Returns the diagnostics of a file, in order of position, including suppressed ones.
    pub fn unsuppressed_diagnostics(&self, file: FileId) -> Vec<Diagnostic<Span>> {
        self.file(file).map(|file| diagnostics(&self.db, file)).unwrap_or_default()
    }

    /// Returns the struct info of every parameter, binding and returned value of a file, in order of position.
    pub fn types(&self, file: FileId) -> Vec<TypeRow> {
        self.file(file).map(|file| types(&self.db, file)).unwrap_or_default()
    }

    /// Unwinds if an edit is waiting for this copy, as queries do by themselves. Call it in long computations between
    /// queries, inside [`Snapshot::catch`].
    pub fn unwind_if_cancelled(&self) {
        salsa::Database::unwind_if_revision_cancelled(&self.db);
    }

    /// Returns a copy for reading on another thread. A later [`Workspace::edit`] cancels the copy's queries and waits
    /// until it is dropped, so call them through [`Snapshot::catch`].
    pub fn snapshot(&self) -> Snapshot {
        let files = self.files.iter().map(|file| {
            file.as_ref().map(|file| File {
                document: file.document.clone(),
                inputs: file.inputs.share(),
                tvm: file.tvm,
            })
        });
        Snapshot(Workspace { db: self.db.clone(), files: files.collect(), pool: Pool::default() })
    }
}

/// A copy of a [`Workspace`] for reading.
pub struct Snapshot(pub(crate) Workspace);

impl Snapshot {
    /// Runs `ask`.
    ///
    /// # Errors
    /// [`Cancelled`] if an edit ended the queries.
    pub fn catch<T>(&self, ask: impl FnOnce(&Snapshot) -> T) -> Result<T, Cancelled> {
        salsa::Cancelled::catch(std::panic::AssertUnwindSafe(|| ask(self))).map_err(|_| Cancelled)
    }

    /// Like [`Workspace::document`].
    pub fn document(&self, file: FileId) -> &Document {
        self.0.document(file)
    }

    /// Like [`Workspace::diagnostics`].
    pub fn diagnostics(&self, file: FileId) -> Vec<Diagnostic<Span>> {
        self.0.diagnostics(file)
    }

    /// Like [`Workspace::types`].
    pub fn types(&self, file: FileId) -> Vec<TypeRow> {
        self.0.types(file)
    }

    /// Like [`Workspace::modules`].
    pub fn modules(&self, file: FileId) -> Vec<ModuleRow> {
        self.0.modules(file)
    }

    /// Like [`Workspace::functions`].
    pub fn functions(&self, file: FileId) -> Vec<FunctionRow> {
        self.0.functions(file)
    }
}

/// The group of the portability codes, RX10xx.
const PORTABILITY: u16 = 10;

fn is_valid(found: &[Diagnostic<Span>]) -> bool {
    found.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
}

/// Keeps only the first report of each captured name.
fn captured_names_once(found: &mut Vec<Diagnostic<Span>>) {
    let mut seen: HashSet<String> = HashSet::new();
    found.retain(|diagnostic| {
        diagnostic.code != Code::CapturedPythonName || seen.insert(diagnostic.message.to_string())
    });
}

fn diagnostics(db: &Database, file: &File) -> Vec<Diagnostic<Span>> {
    let mut found = Vec::new();
    for (at, (input, item)) in file.inputs.items.iter().zip(file.document.items()).enumerate() {
        let check = check_item(db, *input);
        found.extend(check.diagnostics.iter().map(|diagnostic| place_diagnostic(&file.document, at, diagnostic)));
        for (segment, diagnostic) in item.indentation_diagnostics() {
            let segment = u32::try_from(segment).unwrap_or(u32::MAX);
            let place = |span: &Span| absolute(&file.document, at, &ItemPlace::Segment(segment, *span));
            let primary = place(&diagnostic.primary).unwrap_or_default();
            found.push(diagnostic.map_places(primary, place));
        }
        if item.kind != ItemKind::Foreign {
            let numbered = match &check.function {
                Some(function) => numbered_names_in(item, function.numbered.iter().map(|at| *at as usize)),
                None => numbered_names(item),
            };
            add_numbered_names(&file.document, at, numbered, &mut found);
        }
    }
    if let (Some(version), true) = (file.tvm, is_valid(&found)) {
        for (at, input) in file.inputs.items.iter().enumerate() {
            let limits = portability(db, *input, version);
            found.extend(limits.iter().map(|limit| place_diagnostic(&file.document, at, limit)));
        }
    }
    found.sort_by_key(|diagnostic| (diagnostic.primary, diagnostic.code));
    // A mistake in a macro is found by every function that calls the macro: keep one.
    found.dedup_by(|a, b| (a.primary, a.code, &a.message) == (b.primary, b.code, &b.message) && !a.labels.is_empty());
    found
}

/// Adds the diagnostics of the names in item `at` that begin with a digit. Each replaces the other diagnostics at its
/// position.
fn add_numbered_names(
    document: &Document,
    at: usize,
    numbered: Vec<Diagnostic<(usize, Span)>>,
    found: &mut Vec<Diagnostic<Span>>,
) {
    for diagnostic in numbered {
        let place = |(segment, span): &(usize, Span)| {
            absolute(document, at, &ItemPlace::Segment(u32::try_from(*segment).unwrap_or(u32::MAX), *span))
        };
        let primary = place(&diagnostic.primary).unwrap_or_default();
        let diagnostic = diagnostic.map_places(primary, place);
        let is_own = |span: &Span| diagnostic.fixes.iter().any(|fix| fix.edits.iter().any(|(own, _)| own == span));
        found.retain(|other| other.code != Code::UndefinedName || !is_own(&other.primary));
        found.push(diagnostic);
    }
}

fn types(db: &Database, file: &File) -> Vec<TypeRow> {
    let mut rows = Vec::new();
    for (at, (input, item)) in file.inputs.items.iter().zip(file.document.items()).enumerate() {
        let Some(check) = check_item(db, *input).function else { continue };
        let function = item.name.map_or_else(String::new, |name| name.to_string());
        for (segment, result) in check.segments.iter().enumerate() {
            let segment = u32::try_from(segment).unwrap_or(u32::MAX);
            for row in &result.rows {
                let kind = match row.kind {
                    elaborate::RowKind::Param => RowKind::Param,
                    elaborate::RowKind::Binding => RowKind::Binding,
                    elaborate::RowKind::Return => RowKind::Return,
                };
                rows.push(TypeRow {
                    function: function.clone(),
                    name: row.name.to_string(),
                    kind,
                    struct_info: row.ty.to_string(),
                    inferred: row.inferred,
                    span: absolute(&file.document, at, &ItemPlace::Segment(segment, row.span)).unwrap_or_default(),
                });
            }
        }
    }
    rows
}
