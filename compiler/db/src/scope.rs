//! Modules as arguments of queries in crates above this one, such as lowering.

use crate::modules::ModuleId;
use crate::queries::{ItemInput, ScopeInput, check_item, full_signature, scope_context, scope_index, texts};
use crate::workspace::Workspace;
use rx_analysis::body::function_body;
use rx_base::{Diagnostic, Name};
use rx_context::ItemPlace;
use rx_ir::{Function, Signature};
use rx_prim_func::reader;
use rx_syntax::document::{FunctionKind, ItemKind};
use rx_tir::PrimFunc;
use std::sync::Arc;

/// The loops of a prim_func, or the diagnostics that prevent reading it.
pub(crate) type ReadPrimFunc = Result<Arc<PrimFunc>, Arc<[Diagnostic<ItemPlace>]>>;

/// The identity of a module, or of the functions outside modules, as an argument of queries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope(ScopeInput);

impl Scope {
    /// Whether the scope has a function of this name and kind.
    pub fn has(self, db: &dyn salsa::Database, name: Name, kind: FunctionKind) -> bool {
        item(db, self.0, name, kind).is_some()
    }

    /// Returns the Relax function of this name with its body; of several the last, as in Python.
    pub fn function(self, db: &dyn salsa::Database, name: Name) -> Option<Arc<Function>> {
        relax_function(db, item(db, self.0, name, FunctionKind::Relax)?)
    }

    /// Returns the loops of the prim_func of this name; of several the last. The error is the message of its first
    /// mistake; [`Workspace::prim_func`] returns all mistakes with positions.
    pub fn prim_func(self, db: &dyn salsa::Database, name: Name) -> Option<Result<Arc<PrimFunc>, String>> {
        let message = |mistakes: Arc<[Diagnostic<ItemPlace>]>| mistakes.first().map(|first| first.message.clone());
        let read = prim_func(db, item(db, self.0, name, FunctionKind::Prim)?);
        Some(read.map_err(|mistakes| message(mistakes).unwrap_or_default()))
    }
}

impl Workspace {
    /// The database, for queries of crates above this one.
    pub fn database(&self) -> &dyn salsa::Database {
        self.db()
    }

    /// Returns a module as an argument of queries; `None` if the file has no such module.
    pub fn scope(&self, module: ModuleId) -> Option<Scope> {
        let (_, _, inputs) = self.parts(module.file)?;
        inputs.scope(module.module).map(Scope)
    }
}

/// Returns the last function of this name and kind.
fn item(db: &dyn salsa::Database, scope: ScopeInput, name: Name, kind: FunctionKind) -> Option<ItemInput> {
    let is_it = |item: &ItemInput| item.kind(db) == ItemKind::Function(kind);
    match scope_index(db, scope).get(&name).copied() {
        Some(item) if is_it(&item) => Some(item),
        // The last function of this name is of the other kind; look for one of the wanted kind.
        Some(_) => scope.functions(db).iter().rev().find(|item| is_it(item) && item.name(db) == Some(name)).copied(),
        None => None,
    }
}

/// Returns a Relax function with its body.
#[salsa::tracked(returns(clone), no_eq)]
pub(crate) fn relax_function(db: &dyn salsa::Database, item: ItemInput) -> Option<Arc<Function>> {
    let Signature::Relax(signature) = &*full_signature(db, item) else { return None };
    let check = check_item(db, item).function?;
    let context = scope_context(db, item.scope(db));
    Some(Arc::new(function_body(item.name(db)?, &texts(db, item), signature, &check, &context)))
}

/// Returns the loops of a prim_func.
#[salsa::tracked(returns(clone))]
pub(crate) fn prim_func(db: &dyn salsa::Database, item: ItemInput) -> ReadPrimFunc {
    let context = scope_context(db, item.scope(db));
    let read = reader::prim_func(&texts(db, item), &context, item.name(db).unwrap_or_default());
    read.map(Arc::new).map_err(Arc::from)
}
