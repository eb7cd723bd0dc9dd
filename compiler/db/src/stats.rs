//! Statistics of the functions of a file: operators, parameters, arithmetic operations, memory.

use crate::modules::ModuleId;
use crate::view::FileView;
use crate::workspace::{FileId, Snapshot, Workspace};
use rx_analysis::stats::{CallStats, Callees, FunctionStats, expression_stats, function_stats};
use rx_base::name::{NameMap, NameSet};
use rx_base::symbolic::Bounds;
use rx_base::{Name, Span};
use rx_context::{ItemPart, ItemPlace};
use rx_ir::{Expr, IndexSites, Signature};
use rx_ops::Schema;
use rx_syntax::document::{FunctionKind, ItemKind};
use rx_tir::Count;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The deepest nesting of calls that is counted; calls beyond it are not.
const MAX_CALLS: usize = 512;

/// The statistics of one function of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsRow {
    /// The function's name.
    pub name: Name,
    /// The position of the name, in bytes of the file.
    pub span: Span,
    /// The function's module.
    pub module: ModuleId,
    /// The statistics.
    pub stats: FunctionOrLoops,
    /// The indexing accesses of a Relax function, counted by how much is known of their indices.
    pub index_sites: IndexSites,
}

/// The statistics of a Relax function or a prim_func.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionOrLoops {
    /// The statistics of a Relax function.
    Relax(Arc<FunctionStats>),
    /// The counts of a prim_func; empty if its loops cannot be analyzed.
    Prim(Count),
}

impl Workspace {
    /// Returns the statistics of each function of a file, in order.
    pub fn stats(&self, file: FileId) -> Vec<StatsRow> {
        let Some((_, document, _)) = self.parts(file) else { return Vec::new() };
        let mut modules: BTreeMap<Option<u32>, Module<'_>> = BTreeMap::new();
        let row = |(at, item): (usize, &rx_syntax::document::Item)| {
            let id = ModuleId { file, module: item.module };
            modules.entry(item.module).or_insert_with(|| Module::new(self, id)).row(at)
        };
        document.items().iter().enumerate().filter_map(row).collect()
    }
}

impl FileView<'_> {
    /// Returns the statistics of the function at item index `at`.
    pub fn stats(&self, at: usize) -> Option<StatsRow> {
        Module::new(self.workspace(), self.module(at)?).row(at)
    }

    /// Returns an evaluator for the costs of calls in a module.
    pub fn costs(&self, module: ModuleId) -> Costs<'_> {
        Costs(Module::new(self.workspace(), module))
    }
}

impl Snapshot {
    /// Like [`Workspace::stats`].
    pub fn stats(&self, file: FileId) -> Vec<StatsRow> {
        self.0.stats(file)
    }
}

/// Evaluates the costs of calls in a module. A callee's statistics are computed once and shared by all calls.
pub struct Costs<'a>(Module<'a>);

impl Costs<'_> {
    /// Returns the cost of the calls in one expression.
    pub fn of(&self, expr: &Expr) -> CallStats {
        expression_stats(expr, &self.0, &Bounds::default())
    }
}

/// Statistics of a module's functions, each computed once.
struct Module<'a> {
    workspace: &'a Workspace,
    id: ModuleId,
    functions: RefCell<NameMap<Option<Arc<FunctionStats>>>>,
    loops: RefCell<NameMap<Option<Count>>>,
    /// Functions whose statistics are being computed, to detect recursion.
    inside: RefCell<NameSet>,
}

impl<'a> Module<'a> {
    fn new(workspace: &'a Workspace, id: ModuleId) -> Module<'a> {
        let (functions, loops, inside) = Default::default();
        Module { workspace, id, functions, loops, inside }
    }

    fn row(&self, at: usize) -> Option<StatsRow> {
        let view = self.workspace.view(self.id.file)?;
        let item = view.document().items().get(at)?;
        let (ItemKind::Function(kind), Some(name)) = (item.kind, item.name) else { return None };
        let span = view.absolute(at, &ItemPlace::Item(name, ItemPart::Name)).unwrap_or_default();
        let stats = match kind {
            FunctionKind::Relax => FunctionOrLoops::Relax(self.function(name)?),
            _ => FunctionOrLoops::Prim(self.prim_func(name)?),
        };
        let index_sites = view.check(at).map(|check| check.index_sites).unwrap_or_default();
        Some(StatsRow { name, span, module: self.id, stats, index_sites })
    }
}

impl Callees for Module<'_> {
    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        self.workspace.signature(self.id, name)
    }

    fn function(&self, name: Name) -> Option<Arc<FunctionStats>> {
        if let Some(known) = self.functions.borrow().get(&name) {
            return known.clone();
        }
        {
            let mut inside = self.inside.borrow_mut();
            if inside.len() >= MAX_CALLS || !inside.insert(name) {
                return None;
            }
        }
        let function = self.workspace.function(self.id, name);
        let stats = function.map(|function| Arc::new(function_stats(&function, self)));
        self.inside.borrow_mut().remove(&name);
        self.functions.borrow_mut().insert(name, stats.clone());
        stats
    }

    fn prim_func(&self, name: Name) -> Option<Count> {
        if let Some(known) = self.loops.borrow().get(&name) {
            return known.clone();
        }
        let read = self.workspace.prim_func(self.id, name);
        let counted = read.map(|read| match read {
            Ok(func) => rx_tir::count(&func),
            Err(_) => Count { operations: None, bytes: None },
        });
        self.loops.borrow_mut().insert(name, counted.clone());
        counted
    }

    fn operator(&self, name: Name) -> Option<&'static Schema> {
        let declared = || Some(&self.workspace.parts(self.id.file)?.2.operators()?.find(name)?.schema);
        rx_ops::find(name).or_else(declared)
    }
}
