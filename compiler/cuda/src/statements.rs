//! A function as a sequence of statements, which rules make kernels of.

use crate::parallel::is_known;
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::Name;
use rx_tir::rewrite::{map_children, map_stmt, substitute};
use rx_tir::{BufferId, Expr, PrimFunc, Stmt, VarId};
use std::fmt;

/// Why a function cannot be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The function.
    pub function: Name,
    /// What in it.
    pub what: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be printed as CUDA: {}", self.function, self.what)
    }
}

impl std::error::Error for Unsupported {}

/// A statement of a function's top level, which needs all of those before it.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) stmt: Stmt,
    /// Where it does not hold, nothing is done; known to the host.
    pub(crate) guard: Option<Expr>,
}

/// A function's statements in order, and the buffers that live between them.
pub(crate) struct Statements {
    pub(crate) statements: Vec<Statement>,
    pub(crate) temporaries: Vec<BufferId>,
}

/// Splits a function at its top level.
pub(crate) fn statements(func: &PrimFunc) -> Statements {
    let uniform: FxHashSet<VarId> = func.scalar_params().chain(func.symbols.iter().copied()).collect();
    let body = without_unit_loops(func);
    let mut splitter = Splitter { uniform, result: Statements { statements: Vec::new(), temporaries: Vec::new() } };
    splitter.split(&body, &Expr::bool(true));
    splitter.result
}

struct Splitter {
    uniform: FxHashSet<VarId>,
    result: Statements,
}

impl Splitter {
    /// Adds the nests of a top-level statement that is done where `guard` holds.
    fn split(&mut self, stmt: &Stmt, guard: &Expr) {
        match stmt {
            Stmt::Seq(statements) => statements.iter().for_each(|one| self.split(one, guard)),
            Stmt::Block(block) if block.iters.is_empty() && block.init.is_none() && self.is_known(&block.predicate) => {
                self.result.temporaries.extend(&block.allocations);
                let guard = block.predicate.iter().fold(guard.clone(), |guard, one| guard.and(one.clone()));
                self.split(&block.body, &guard);
            }
            Stmt::Let { var, value, body } if self.is_known(&Some(value.clone())) => {
                let body = map_stmt(body, &mut |expr| substitute(expr, &|one| (one == *var).then(|| value.clone())));
                self.split(&body, guard);
            }
            Stmt::If { condition, then, otherwise } if self.is_known(&Some(condition.clone())) => {
                self.split(then, &guard.clone().and(condition.clone()));
                if let Some(otherwise) = otherwise {
                    self.split(otherwise, &guard.clone().and(!condition.clone()));
                }
            }
            other => self
                .result
                .statements
                .push(Statement { stmt: other.clone(), guard: guard.as_int().is_none().then(|| guard.clone()) }),
        }
    }

    fn is_known(&self, expr: &Option<Expr>) -> bool {
        expr.iter().all(|expr| is_known(expr, &|var| self.uniform.contains(&var)))
    }
}

/// The body with loops of one iteration left out, and block axes that are nothing but a loop or a constant replaced by it
/// where they are used.
fn without_unit_loops(func: &PrimFunc) -> Stmt {
    let mut values: FxHashMap<VarId, Expr> = FxHashMap::default();
    let stripped = strip(func, &func.body, &mut values);
    // A value is over binders outside its own, which were left out before it; so one round is enough.
    map_stmt(&stripped, &mut |expr| replace(expr, &values))
}

fn replace(expr: &Expr, values: &FxHashMap<VarId, Expr>) -> Expr {
    substitute(expr, &|var| values.get(&var).cloned())
}

fn strip(func: &PrimFunc, stmt: &Stmt, values: &mut FxHashMap<VarId, Expr>) -> Stmt {
    match stmt {
        Stmt::For { var, start, extent, body, .. } if extent.as_int() == Some(1) => {
            let value = replace(start, values).cast(func.var(*var).dtype);
            values.insert(*var, value);
            strip(func, body, values)
        }
        Stmt::Block(block) => {
            for iter in &block.iters {
                let binding = replace(&iter.binding, values);
                if is_renaming(func, iter.var, &binding) {
                    values.insert(iter.var, binding);
                }
            }
            map_children(stmt.clone(), &mut |child| strip(func, child, values))
        }
        other => map_children(other.clone(), &mut |child| strip(func, child, values)),
    }
}

/// Whether a block's axis is nothing but another variable or a constant.
pub(crate) fn is_renaming(func: &PrimFunc, axis: VarId, binding: &Expr) -> bool {
    matches!(binding, Expr::Var { .. } | Expr::Int { .. }) && binding.dtype() == func.var(axis).dtype
}
