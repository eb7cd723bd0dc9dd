//! Splits a function into the statements that schedule rules turn into kernels.
//!
//! ```text
//! for r in range(n):                              statement                         host loops   guard
//!     for i in blocks(m): A[i] = …           →    for i in blocks(m): A[i] = …      r            none
//!     if m > 4:                                   for j in blocks(m): B[j] = …      r            m > 4
//!         for j in blocks(m): B[j] = …
//! ```
//!
//! Here `blocks(m)` is a loop bound to `blockIdx.x`. Loops around launches (`r`) run on the host: a statement has the
//! loops and the condition of its launch, and `CudaFunction::plan` enumerates the launches. A rule is given statements
//! of the same host loops only.
//!
//! Requires that the host can evaluate the starts and extents of such loops and the conditions: they depend on scalars,
//! symbols and the variables of outer host loops. Other loops and conditions remain in the statement. The loops run on
//! the host mainly because the blocks of a launch cannot wait for each other. An intermediate result also counts as
//! live after a statement if a statement of the same host loop uses it, and its contents survive into a later iteration
//! of that loop.

use crate::rules::uses;
use crate::source::{HostLoop, MOST_LAUNCHES};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::{DType, Name};
use rx_loops::Nest;
use rx_tir::rewrite::{map_children, map_expr, map_stmt, substitute};
use rx_tir::{BufferId, Expr, LoopKind, PrimFunc, Site, Stmt, VarId, evaluate_index, is_evaluable};
use std::cell::OnceCell;

/// The reason why a function cannot be printed as CUDA C.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function} cannot be printed as CUDA: {reason}")]
pub struct Unsupported {
    /// The function.
    pub function: Name,
    /// The reason of the last rule that was tried, for example a dtype without a C type.
    pub reason: String,
}

/// A top-level statement of a function. It may depend on the statements before it and, in a host loop, on later ones of
/// the loop.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) stmt: Stmt,
    /// The condition under which the statement runs, which the host can evaluate; `None` if there is none.
    pub(crate) guard: Option<Expr>,
    /// The host loops around the statement, outermost first.
    pub(crate) host_loops: Vec<HostLoop>,
    /// The result of [`Statement::nest`], computed at the first use, since many rules match it.
    nest: OnceCell<Option<Nest>>,
}

impl Statement {
    /// Returns the statement as a loop nest around one block, or around statements without blocks and loops. Returns
    /// `None` if it has another form. `func` must be the same in every call, apart from variables that rules add to it.
    pub(crate) fn nest(&self, func: &PrimFunc) -> Option<&Nest> {
        self.nest.get_or_init(|| Nest::of(&self.stmt, func)).as_ref()
    }
}

/// The statements of a function in order, and its intermediate results.
#[derive(Default)]
pub(crate) struct Statements {
    pub(crate) statements: Vec<Statement>,
    /// Buffers that are allocated outside the statements, and through which these can pass intermediate results.
    pub(crate) temporaries: Vec<BufferId>,
    /// For each temporary, the variables of the host loops around its allocation. Its contents do not survive an
    /// iteration of them.
    anew: FxHashMap<BufferId, Vec<VarId>>,
}

impl Statements {
    /// Returns the statements from index `from` on, before the first one whose host loops differ from those of the
    /// statement at `from`.
    pub(crate) fn together(&self, from: usize) -> &[Statement] {
        let left = self.statements.get(from..).unwrap_or_default();
        let is_apart = |one: &Statement| left.first().is_some_and(|first| first.host_loops != one.host_loops);
        &left[..left.iter().position(is_apart).unwrap_or(left.len())]
    }

    /// Returns the function as rules see it: with the variables of the host loops as symbols, so that they are passed to
    /// kernels, and with a short body, since rules copy the function. The body only has a store to each buffer that the
    /// function writes, as an analysis context ([`rx_loops::scope::Scope`]) requires; the statements are in `self`.
    pub(crate) fn declarations(&self, func: &PrimFunc) -> PrimFunc {
        let mut func = PrimFunc {
            name: func.name,
            params: func.params.clone(),
            symbols: func.symbols.clone(),
            vars: func.vars.clone(),
            buffers: func.buffers.clone(),
            body: Stmt::seq(written(&func.body).into_iter().map(|buffer| store_of(func, buffer))),
            origins: func.origins.clone(),
        };
        for host_loop in self.statements.iter().flat_map(|statement| &statement.host_loops) {
            if !func.symbols.contains(&host_loop.var) {
                func.symbols.push(host_loop.var);
            }
        }
        func
    }

    /// Whether one of the statements from index `from` on uses a buffer.
    pub(crate) fn use_from(&self, from: usize, buffer: BufferId) -> bool {
        self.statements.iter().skip(from).any(|one| uses(&one.stmt, buffer))
    }

    /// Whether a later iteration of a host loop around the statement at `at` may use the contents that a temporary has
    /// after this statement. That is so if the temporary is allocated outside of such a loop, and a statement in the
    /// loop uses it.
    pub(crate) fn use_again(&self, at: usize, temporary: BufferId) -> bool {
        let anew = self.anew.get(&temporary).map_or(&[][..], Vec::as_slice);
        let host_loops = self.statements.get(at).map_or(&[][..], |statement| &statement.host_loops);
        host_loops.iter().find(|host_loop| !anew.contains(&host_loop.var)).is_some_and(|again| {
            let mut inside = self.statements.iter().filter(|one| one.host_loops.contains(again));
            inside.any(|one| uses(&one.stmt, temporary))
        })
    }
}

/// Returns the buffers that a statement writes, in order of the first store.
fn written(stmt: &Stmt) -> Vec<BufferId> {
    let (mut known, mut buffers) = (FxHashSet::default(), Vec::new());
    stmt.walk(&mut |part| {
        if let Stmt::Store { buffer, .. } = part
            && known.insert(*buffer)
        {
            buffers.push(*buffer);
        }
    });
    buffers
}

/// Returns a store of 0 to the first element of a buffer.
fn store_of(func: &PrimFunc, buffer: BufferId) -> Stmt {
    let of = func.buffer(buffer);
    let indices = vec![Expr::int(0); of.shape.len()];
    Stmt::Store { buffer, indices, value: Expr::number(0.0, of.dtype), site: Site::default() }
}

/// Splits a function into its top-level statements.
pub(crate) fn statements(func: &PrimFunc) -> Statements {
    let uniform: FxHashSet<VarId> = func.scalar_params().chain(func.symbols.iter().copied()).collect();
    let body = without_unit_loops(func);
    let mut splitter = Splitter { func, uniform, host_loops: Vec::new(), result: Statements::default() };
    splitter.split(&body, &Expr::bool(true));
    splitter.result
}

struct Splitter<'f> {
    func: &'f PrimFunc,
    /// The variables that the host knows: scalar parameters, symbols and the variables of the host loops around.
    uniform: FxHashSet<VarId>,
    /// The host loops around the current statement, outermost first.
    host_loops: Vec<HostLoop>,
    result: Statements,
}

impl Splitter<'_> {
    /// Splits `stmt` into top-level statements and adds them to the result. `guard` is the condition under which `stmt`
    /// runs.
    fn split(&mut self, stmt: &Stmt, guard: &Expr) {
        match stmt {
            Stmt::Seq(statements) => statements.iter().for_each(|one| self.split(one, guard)),
            Stmt::Block(block) if block.iters.is_empty() && block.init.is_none() && self.is_known(&block.predicate) => {
                self.result.temporaries.extend(&block.allocations);
                let host_loops: Vec<VarId> = self.host_loops.iter().map(|host_loop| host_loop.var).collect();
                self.result.anew.extend(block.allocations.iter().map(|id| (*id, host_loops.clone())));
                let guard = block.predicate.iter().fold(guard.clone(), |guard, one| guard.and(one.clone()));
                self.split(&block.body, &guard);
            }
            Stmt::Let { var, value, body } if self.is_known([value]) => {
                let body = map_stmt(body, &mut |expr| substitute(expr, &|one| (one == *var).then(|| value.clone())));
                self.split(&body, guard);
            }
            Stmt::If { condition, then, otherwise } if self.is_known([condition]) => {
                self.split(then, &guard.clone().and(condition.clone()));
                if let Some(otherwise) = otherwise {
                    self.split(otherwise, &guard.clone().and(!condition.clone()));
                }
            }
            Stmt::For { var, start, extent, body, .. } if self.is_of_host(stmt) => {
                self.count((*var, start, extent), body, guard);
            }
            other => self.add(other, guard),
        }
    }

    /// Splits the body of a host loop.
    fn count(&mut self, (var, start, extent): (VarId, &Expr, &Expr), body: &Stmt, guard: &Expr) {
        // The loop variable is passed as a size, which must not be negative: a loop whose start is not a nonnegative
        // constant counts from 0.
        let is_size = start.as_int().is_some_and(|start| start >= 0);
        let (start, body) = match is_size {
            true => (start.clone(), body.clone()),
            false => {
                let value = start.clone().cast(self.func.var(var).dtype) + self.func.var_expr(var);
                let value = |one: VarId| (one == var).then(|| value.clone());
                let body = map_stmt(body, &mut |expr| substitute(expr, &value));
                (Expr::Int { value: 0, dtype: start.dtype() }, body)
            }
        };
        // Where the guard is false the extent may be invalid, so the loop has no iterations.
        let none = Expr::Int { value: 0, dtype: extent.dtype() };
        let extent = Expr::select(guard.clone(), extent.clone(), none);
        self.host_loops.push(HostLoop { var, start, extent });
        self.uniform.insert(var);
        self.split(&body, guard);
        self.uniform.remove(&var);
        self.host_loops.pop();
    }

    /// Adds one statement, or none if the guard is constant and false. A guard that is constant and true is dropped.
    fn add(&mut self, stmt: &Stmt, guard: &Expr) {
        let guard = match guard.as_int() {
            Some(0) => return,
            Some(_) => None,
            None => Some(guard.clone()),
        };
        self.result.statements.push(Statement {
            stmt: stmt.clone(),
            guard,
            host_loops: self.host_loops.clone(),
            nest: OnceCell::new(),
        });
    }

    /// Whether the host runs a loop and launches the kernels of its body in each iteration. Requires:
    ///
    /// - The body consists of launches only ([`Splitter::launches`]).
    /// - All iterations together have at most [`MOST_LAUNCHES`] launches, as [`least_launches`] counts them.
    /// - A launch binds a loop to blocks, since blocks synchronize only between launches; or it binds a loop to threads
    ///   with an extent that the host does not know before the loop.
    ///
    /// Otherwise the loop remains in its statement.
    fn is_of_host(&self, stmt: &Stmt) -> bool {
        let is_apart = stmt.any(&|part| match part {
            Stmt::For { extent, kind: LoopKind::ThreadBinding(tag), .. } => {
                tag.starts_with("blockIdx.") || !self.is_known([extent])
            }
            _ => false,
        });
        let is_short = i64::try_from(MOST_LAUNCHES).is_ok_and(|most| least_launches(stmt) <= most);
        !is_launch(stmt) && is_apart && is_short && self.launches(stmt, &mut Vec::new())
    }

    /// Whether a statement consists of launches only, and the host can evaluate their number and the sizes of the
    /// allocated memory. `counted` are the variables of the loops and `let`s around the statement, from the candidate
    /// for a host loop on; the host knows them as well.
    fn launches(&self, stmt: &Stmt, counted: &mut Vec<VarId>) -> bool {
        let knows = |expr: &Expr| is_evaluable(expr, &|var| self.uniform.contains(&var) || counted.contains(&var));
        match stmt {
            Stmt::Seq(parts) => parts.iter().all(|part| self.launches(part, counted)),
            Stmt::Block(block) => {
                let mut extents = block.allocations.iter().flat_map(|id| &self.func.buffer(*id).shape);
                block.only_holds() && extents.all(knows) && self.launches(&block.body, counted)
            }
            Stmt::If { condition, then, otherwise } => {
                let mut sides = std::iter::once(then).chain(otherwise);
                knows(condition) && sides.all(|side| self.launches(side, counted))
            }
            Stmt::For { .. } if is_launch(stmt) => true,
            Stmt::For { start, extent, kind, .. }
                if !matches!(kind, LoopKind::Serial | LoopKind::Unrolled) || !knows(start) || !knows(extent) =>
            {
                false
            }
            Stmt::Let { value, .. } if !knows(value) => false,
            Stmt::For { var, body, .. } | Stmt::Let { var, body, .. } => {
                counted.push(*var);
                let launches = self.launches(body, counted);
                counted.pop();
                launches
            }
            _ => false,
        }
    }

    /// Whether the host can evaluate the expressions.
    fn is_known<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> bool {
        exprs.into_iter().all(|expr| is_evaluable(expr, &|var| self.uniform.contains(&var)))
    }
}

/// Returns the number of launches of a statement, with those in both branches of an `if`. A loop of symbolic extent
/// counts as one iteration.
fn least_launches(stmt: &Stmt) -> i64 {
    let inside = || stmt.children().into_iter().map(least_launches).fold(0, i64::saturating_add);
    match stmt {
        _ if is_launch(stmt) => 1,
        Stmt::For { extent, .. } => inside().saturating_mul(extent.as_int().map_or(1, |extent| extent.max(0))),
        _ => inside(),
    }
}

/// Whether a statement is a loop bound to blocks, threads or virtual threads.
fn is_launch(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { kind: LoopKind::ThreadBinding(_), .. })
}

/// Returns the body without loops of one iteration, and with some casts of constants folded ([`whole`]). Block axes
/// whose binding is a variable or a constant of the axis's dtype are replaced by it.
fn without_unit_loops(func: &PrimFunc) -> Stmt {
    let mut values: FxHashMap<VarId, Expr> = FxHashMap::default();
    let stripped = strip(func, &func.body, &mut values);
    // No value contains a variable that has a value itself: `strip` replaces these. So one substitution is enough.
    map_stmt(&stripped, &mut |expr| map_expr(&replace(expr, &values), &mut whole))
}

/// Folds a cast of a constant float expression to `int32` or `int64`, if the host can evaluate it and the value fits
/// `int32`: TVM leaves `T.Cast("int64", T.ceil(T.log2(…)))` unfolded.
fn whole(expr: Expr) -> Expr {
    match &expr {
        Expr::Cast { dtype: dtype @ (DType::INT32 | DType::INT64), value } if value.dtype().is_float() => {
            let value = evaluate_index(&expr, &|_| None).filter(|value| i32::try_from(*value).is_ok());
            value.map_or_else(|| expr.clone(), |value| Expr::Int { value, dtype: *dtype })
        }
        _ => expr,
    }
}

/// Substitutes the values for their variables.
fn replace(expr: &Expr, values: &FxHashMap<VarId, Expr>) -> Expr {
    substitute(expr, &|var| values.get(&var).cloned())
}

/// Removes the loops of one iteration from a statement, and adds the values of their variables to `values`. For block
/// axes whose binding is a variable or a constant ([`is_renaming`]), adds the binding.
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
            map_children(stmt, &mut |child| strip(func, child, values))
        }
        other => map_children(other, &mut |child| strip(func, child, values)),
    }
}

/// Whether the binding of a block axis is a variable or a constant of the axis's dtype.
pub(crate) fn is_renaming(func: &PrimFunc, axis: VarId, binding: &Expr) -> bool {
    matches!(binding, Expr::Var { .. } | Expr::Int { .. }) && binding.dtype() == func.var(axis).dtype
}
