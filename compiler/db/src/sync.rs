//! Synchronization of the salsa inputs with a document.

use crate::queries::{Database, FileInput, ItemInput, ScopeInput, check_item, header};
use rx_ops::user::Operators;
use rx_syntax::document::{Document, Item, ItemKind};
use rx_syntax::{Segment, Segments};
use salsa::Setter;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Inputs that no document uses any more. Salsa never frees an input, so they are reused.
#[derive(Default)]
pub(crate) struct Pool {
    items: Vec<ItemInput>,
    scopes: Vec<ScopeInput>,
    files: Vec<FileInput>,
}

impl Pool {
    /// Clears an item's input, drops its last results, and keeps it for reuse.
    fn retire(&mut self, db: &mut Database, item: ItemInput) {
        item.set_name(db).to(None);
        forget(db, item);
        self.items.push(item);
    }

    fn item(&mut self, db: &mut Database, of: &Item, scope: ScopeInput) -> ItemInput {
        match self.items.pop() {
            Some(input) => {
                input.set_kind(db).to(of.kind);
                input.set_name(db).to(of.name);
                input.set_scope(db).to(scope);
                set_text(db, input, of);
                input
            }
            None => ItemInput::new(
                db,
                of.kind,
                of.name,
                head(of),
                of.segments.clone(),
                scope,
                Arc::default(),
                Arc::default(),
            ),
        }
    }

    fn scope(&mut self, db: &mut Database, file: FileInput) -> ScopeInput {
        match self.scopes.pop() {
            Some(scope) => {
                scope.set_file(db).to(file);
                scope
            }
            None => ScopeInput::new(db, file, Arc::from([]), Arc::from([]), Arc::from([]), None),
        }
    }

    fn file(&mut self, db: &mut Database) -> FileInput {
        self.files.pop().unwrap_or_else(|| FileInput::new(db, Arc::from([])))
    }
}

/// The salsa inputs of a document: one per item, one per scope.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) items: Vec<ItemInput>,
    scopes: BTreeMap<Option<u32>, ScopeInput>,
    file: Option<FileInput>,
    operators: Option<Arc<Operators>>,
}

impl Inputs {
    /// Creates inputs for every item of a document.
    pub(crate) fn new(db: &mut Database, pool: &mut Pool, document: &Document) -> Inputs {
        let mut inputs = Inputs::default();
        inputs.splice(db, pool, document, 0..0, 0..document.items().len());
        inputs
    }

    /// Returns the inputs of a removed document to the pool.
    pub(crate) fn retire(self, db: &mut Database, pool: &mut Pool) {
        for scope in self.scopes.into_values() {
            scope.set_preludes(db).to(Arc::from([]));
            scope.set_functions(db).to(Arc::from([]));
            scope.set_surroundings(db).to(Arc::from([]));
            if scope.operators(db).is_some() {
                scope.set_operators(db).to(None);
            }
            pool.scopes.push(scope);
        }
        for item in self.items {
            pool.retire(db, item);
        }
        // After the items: the old results of the last one are dropped when the next input is set.
        if let Some(file) = self.file {
            file.set_outer(db).to(Arc::from([]));
            pool.files.push(file);
        }
    }

    /// Sets the operators that the document's project declares.
    pub(crate) fn set_operators(&mut self, db: &mut Database, operators: Option<Arc<Operators>>) {
        self.operators = operators;
        for scope in self.scopes.values() {
            if scope.operators(db) != self.operators {
                scope.set_operators(db).to(self.operators.clone());
            }
        }
    }

    /// The scope of a module, or (`None`) of the functions outside modules.
    pub(crate) fn scope(&self, module: Option<u32>) -> Option<ScopeInput> {
        self.scopes.get(&module).copied()
    }

    /// The operators that the document's project declares.
    pub(crate) fn operators(&self) -> Option<&Operators> {
        self.operators.as_deref()
    }

    /// Updates the inputs after an edit that replaced the items `old` by the items `new`. Unchanged fields are not set.
    pub(crate) fn follow(
        &mut self,
        db: &mut Database,
        pool: &mut Pool,
        document: &Document,
        old: Range<usize>,
        new: Range<usize>,
    ) {
        let in_place = old.len() == new.len()
            && self.items.get(old.clone()).is_some_and(|inputs| {
                inputs.iter().zip(&document.items()[new.clone()]).all(|(input, item)| {
                    input.kind(db) == item.kind
                        && input.name(db) == item.name
                        && self.scope_of(item) == Some(input.scope(db))
                })
            });
        if !in_place {
            return self.splice(db, pool, document, old, new);
        }
        for at in new {
            if let (Some(input), Some(item)) = (self.items.get(at), document.items().get(at)) {
                set_text(db, *input, item);
            }
        }
    }

    /// Copies the list of inputs for a snapshot.
    pub(crate) fn share(&self) -> Inputs {
        Inputs {
            items: self.items.clone(),
            scopes: self.scopes.clone(),
            file: self.file,
            operators: self.operators.clone(),
        }
    }

    fn scope_of(&self, item: &Item) -> Option<ScopeInput> {
        self.scopes.get(&item.module).copied()
    }

    fn splice(
        &mut self,
        db: &mut Database,
        pool: &mut Pool,
        document: &Document,
        old: Range<usize>,
        new: Range<usize>,
    ) {
        let file = *self.file.get_or_insert_with(|| pool.file(db));
        for item in document.items() {
            let operators = &self.operators;
            self.scopes.entry(item.module).or_insert_with(|| {
                let scope = pool.scope(db, file);
                if operators.is_some() {
                    scope.set_operators(db).to(operators.clone());
                }
                scope
            });
        }
        let end = old.end.min(self.items.len());
        let mut replaced: Vec<ItemInput> = self.items.get(old.start.min(end)..end).unwrap_or_default().to_vec();
        let items = &document.items()[new];
        // An item whose kind and name are unchanged keeps its input, and with it the memo of its last check.
        let kept: Vec<Option<ItemInput>> = items
            .iter()
            .map(|item| {
                let same = replaced.iter().position(|input| input.kind(db) == item.kind && input.name(db) == item.name);
                same.map(|same| replaced.remove(same))
            })
            .collect();
        // Retire removed items before creating new ones, to reuse their inputs and memory.
        for gone in replaced {
            pool.retire(db, gone);
        }
        let mut fresh = Vec::with_capacity(items.len());
        for (item, kept) in items.iter().zip(kept) {
            let Some(scope) = self.scopes.get(&item.module).copied() else { continue };
            let input = match kept {
                Some(input) => {
                    set_text(db, input, item);
                    if input.scope(db) != scope {
                        input.set_scope(db).to(scope);
                    }
                    input
                }
                None => pool.item(db, item, scope),
            };
            fresh.push(input);
        }
        self.items.splice(old.start.min(end)..end, fresh);
        // Modules are numbered in order, so an inserted module renumbers the items after it.
        for (input, item) in self.items.iter().zip(document.items()) {
            if let Some(scope) = self.scopes.get(&item.module)
                && input.scope(db) != *scope
            {
                input.set_scope(db).to(*scope);
            }
        }
        self.fill_file(db, document);
        self.fill_scopes(db, document);
    }

    /// Sets the file's outer items if they changed.
    fn fill_file(&self, db: &mut Database, document: &Document) {
        let is_outer = |item: &Item| item.module.is_none() || item.kind == ItemKind::ModuleHeader;
        let pairs = self.items.iter().zip(document.items());
        let outer: Vec<ItemInput> = pairs.filter(|(_, item)| is_outer(item)).map(|(input, _)| *input).collect();
        if let Some(file) = self.file
            && file.outer(db)[..] != outer[..]
        {
            file.set_outer(db).to(outer.into());
        }
    }

    /// Sets each scope's members if they changed.
    fn fill_scopes(&self, db: &mut Database, document: &Document) {
        for (module, scope) in &self.scopes {
            let mut preludes = Vec::new();
            let mut functions = Vec::new();
            let mut surroundings = Vec::new();
            for (input, item) in self.items.iter().zip(document.items()) {
                match item.kind {
                    ItemKind::Function(_) if item.module == *module => functions.push(*input),
                    ItemKind::ModuleHeader | ItemKind::ModuleStatement if item.module == *module => {
                        preludes.push(*input)
                    }
                    ItemKind::Prelude | ItemKind::Metadata => preludes.push(*input),
                    ItemKind::Foreign | ItemKind::ModuleHeader => surroundings.push(*input),
                    ItemKind::Function(_) if item.module.is_none() => surroundings.push(*input),
                    _ => {}
                }
            }
            if scope.preludes(db)[..] != preludes[..] {
                scope.set_preludes(db).to(preludes.into());
            }
            if scope.functions(db)[..] != functions[..] {
                scope.set_functions(db).to(functions.into());
            }
            if scope.surroundings(db)[..] != surroundings[..] {
                scope.set_surroundings(db).to(surroundings.into());
            }
        }
    }
}

/// Clears an item's input and drops its last results. Salsa keeps the old value of a query until it has computed
/// another and an input is set again, so the queries are evaluated for the empty item.
fn forget(db: &mut Database, item: ItemInput) {
    item.set_kind(db).to(ItemKind::Foreign);
    item.set_head(db).to(empty());
    item.set_segments(db).to(Segments::default());
    item.set_memo(db).to(Arc::default());
    item.set_substitution(db).to(Arc::default());
    header(db, item);
    check_item(db, item);
}

fn head(item: &Item) -> Arc<Segment> {
    item.segments.first().cloned().unwrap_or_else(empty)
}

fn empty() -> Arc<Segment> {
    Arc::new(Segment::new("".into()))
}

/// The number of segments below which [`forget`] is not worth its cost.
const LARGE: usize = 256;

/// Sets an item's text if it changed; salsa's setters do not compare.
fn set_text(db: &mut Database, input: ItemInput, item: &Item) {
    // An item that lost most of its text probably lost it to another item. That one is checked before this item's old
    // results are dropped, so both would be in memory at the same time.
    if input.segments(db).len() > LARGE && item.segments.len() < input.segments(db).len() / 2 {
        forget(db, input);
        input.set_kind(db).to(item.kind);
    }
    let head = head(item);
    if !Arc::ptr_eq(&input.head(db), &head) {
        input.set_head(db).to(head);
    }
    if !input.segments(db).is_same(&item.segments) {
        input.set_segments(db).to(item.segments.clone());
    }
}
