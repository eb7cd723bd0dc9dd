//! A module of a file, as lowering takes it.

use rx_base::{Diagnostic, Name, Span};
use rx_db::{ModuleId, Workspace};
use rx_ir::Function;
use rx_lower::{Loops, Module};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// What reading a prim_func gave: none of this name, its loops, or why it has none.
type PrimFuncRead = Option<Result<Loops, String>>;

/// A module's functions.
pub struct FileModule<'w> {
    workspace: &'w Workspace,
    module: ModuleId,
    /// Each is read once.
    prim_funcs: RefCell<HashMap<Name, PrimFuncRead>>,
    /// What is wrong in prim_funcs, at their places.
    mistakes: RefCell<Vec<Diagnostic<Span>>>,
}

impl<'w> FileModule<'w> {
    /// The functions of a module of a file without errors.
    pub fn new(workspace: &'w Workspace, module: ModuleId) -> FileModule<'w> {
        FileModule { workspace, module, prim_funcs: RefCell::default(), mistakes: RefCell::default() }
    }

    /// What is wrong in the prim_funcs that were asked for.
    pub fn into_mistakes(self) -> Vec<Diagnostic<Span>> {
        self.mistakes.into_inner()
    }
}

impl Module for FileModule<'_> {
    fn function(&self, name: Name) -> Option<Arc<Function>> {
        self.workspace.function(self.module, name).map(Arc::new)
    }

    fn prim_func(&self, name: Name) -> PrimFuncRead {
        if let Some(known) = self.prim_funcs.borrow().get(&name) {
            return known.clone();
        }
        let read = self.workspace.prim_func(self.module, name).map(|read| match read {
            Ok(func) => Ok(Loops::new(func)),
            Err(diagnostics) => {
                let reason = diagnostics.first().map(|first| first.message.clone()).unwrap_or_default();
                self.mistakes.borrow_mut().extend(diagnostics);
                Err(reason)
            }
        });
        self.prim_funcs.borrow_mut().insert(name, read.clone());
        read
    }
}
