//! Adapts a module of a file to the interface that lowering needs.

use crate::device::Device;
use crate::queries::{MemoizedQueries, prim_func};
use rx_base::Name;
use rx_db::Scope;
use rx_ir::Function;
use rx_lower::{Loops, Module, Queries};
use std::cell::RefCell;
use std::sync::Arc;

/// The functions of a module, read from the database.
pub(crate) struct ScopeModule<'db> {
    kept: MemoizedQueries<'db>,
    scope: Scope,
    unreadable: RefCell<Vec<Name>>,
}

impl<'db> ScopeModule<'db> {
    pub(crate) fn new(db: &'db dyn salsa::Database, scope: Scope) -> ScopeModule<'db> {
        ScopeModule { kept: MemoizedQueries::new(db, &Device::Interp), scope, unreadable: RefCell::default() }
    }

    /// Returns the requested prim_funcs that have errors.
    pub(crate) fn unreadable(self) -> Vec<Name> {
        let mut names = self.unreadable.into_inner();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Module for ScopeModule<'_> {
    fn function(&self, name: Name) -> Option<Arc<Function>> {
        self.scope.function(self.kept.db, name)
    }

    fn prim_func(&self, name: Name) -> Option<Result<Loops, String>> {
        let read = prim_func(self.kept.db, self.scope, name);
        if matches!(read, Some(Err(_))) {
            self.unreadable.borrow_mut().push(name);
        }
        read
    }

    fn queries(&self) -> &dyn Queries {
        &self.kept
    }
}
