//! A function as a sequence of statements, which rules make kernels of.
//!
//! Loops around launches run on the host: a kernel knows the loops and the condition that it is launched under, and
//! `CudaFunction::plan` enumerates them. A rule sees the statements of one iteration of such loops only.
//!
//! Invariants: a temporary is live after a statement as long as a later iteration of one of its loops reads it without writing it
//! first. A loop over blocks is inside no other loop of its kernel, since blocks cannot wait for each other.

use crate::rules::uses;
use crate::source::{HostLoop, MOST_LAUNCHES};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::{DType, Name};
use rx_schedule::Nest;
use rx_tir::rewrite::{map_children, map_expr, map_stmt, substitute};
use rx_tir::{BufferId, Expr, LoopKind, PrimFunc, Stmt, VarId, evaluate_index, is_evaluable};
use std::cell::OnceCell;

/// Why a function cannot be printed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function} cannot be printed as CUDA: {what}")]
pub struct Unsupported {
    /// The function.
    pub function: Name,
    /// What in it.
    pub what: String,
}

/// A statement of a function's top level, which needs all of those before it.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) stmt: Stmt,
    /// Where it does not hold, nothing is done; known to the host.
    pub(crate) guard: Option<Expr>,
    /// The loops of the host that it stands in, outermost first.
    pub(crate) rounds: Vec<HostLoop>,
    /// The loops around one block that it is, once a rule asked: every rule does.
    nest: OnceCell<Option<Nest>>,
}

impl Statement {
    /// The statement as loops around one block, in the function that all rules are given.
    pub(crate) fn nest(&self, func: &PrimFunc) -> Option<Nest> {
        self.nest.get_or_init(|| Nest::of(&self.stmt, func)).clone()
    }
}

/// A function's statements in order, and the buffers that live between them.
#[derive(Default)]
pub(crate) struct Statements {
    pub(crate) statements: Vec<Statement>,
    pub(crate) temporaries: Vec<BufferId>,
    /// Of a temporary that stands in loops of the host: their variables. Each round has it anew.
    anew: FxHashMap<BufferId, Vec<VarId>>,
}

impl Statements {
    /// The statements from the front of a place on that stand in the same loops of the host.
    pub(crate) fn together(&self, from: usize) -> &[Statement] {
        let left = self.statements.get(from..).unwrap_or_default();
        let is_apart = |one: &Statement| left.first().is_some_and(|first| first.rounds != one.rounds);
        &left[..left.iter().position(is_apart).unwrap_or(left.len())]
    }

    /// The function in which what the host's loops count is passed to kernels.
    pub(crate) fn passing_rounds(&self, func: &PrimFunc) -> PrimFunc {
        let mut func = func.clone();
        for round in self.statements.iter().flat_map(|statement| &statement.rounds) {
            if !func.symbols.contains(&round.var) {
                func.symbols.push(round.var);
            }
        }
        func
    }

    /// Whether one of the statements from a place on uses a buffer.
    pub(crate) fn use_from(&self, from: usize, buffer: BufferId) -> bool {
        self.statements.iter().skip(from).any(|one| uses(&one.stmt, buffer))
    }

    /// Whether what a temporary holds behind a statement is there in a further round of one of its loops, and used in it.
    pub(crate) fn use_again(&self, at: usize, temporary: BufferId) -> bool {
        let anew = self.anew.get(&temporary).map_or(&[][..], Vec::as_slice);
        let rounds = self.statements.get(at).map_or(&[][..], |statement| &statement.rounds);
        rounds.iter().find(|round| !anew.contains(&round.var)).is_some_and(|again| {
            let mut inside = self.statements.iter().filter(|one| one.rounds.contains(again));
            inside.any(|one| uses(&one.stmt, temporary))
        })
    }
}

/// Splits a function at its top level.
pub(crate) fn statements(func: &PrimFunc) -> Statements {
    let uniform: FxHashSet<VarId> = func.scalar_params().chain(func.symbols.iter().copied()).collect();
    let body = without_unit_loops(func);
    let mut splitter = Splitter { func, uniform, rounds: Vec::new(), result: Statements::default() };
    splitter.split(&body, &Expr::bool(true));
    splitter.result
}

struct Splitter<'f> {
    func: &'f PrimFunc,
    /// What has one value during the call.
    uniform: FxHashSet<VarId>,
    /// The loops of the host around what is split, outermost first.
    rounds: Vec<HostLoop>,
    result: Statements,
}

impl Splitter<'_> {
    /// Adds the nests of a top-level statement that is done where `guard` holds.
    fn split(&mut self, stmt: &Stmt, guard: &Expr) {
        match stmt {
            Stmt::Seq(statements) => statements.iter().for_each(|one| self.split(one, guard)),
            Stmt::Block(block) if block.iters.is_empty() && block.init.is_none() && self.is_known(&block.predicate) => {
                self.result.temporaries.extend(&block.allocations);
                let rounds: Vec<VarId> = self.rounds.iter().map(|round| round.var).collect();
                self.result.anew.extend(block.allocations.iter().map(|id| (*id, rounds.clone())));
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

    /// Splits what a loop of the host does.
    fn count(&mut self, (var, start, extent): (VarId, &Expr, &Expr), body: &Stmt, guard: &Expr) {
        // What is counted is passed as a size, and those are not negative.
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
        // Where the conditions around it do not hold, nobody asks how often.
        let none = Expr::Int { value: 0, dtype: extent.dtype() };
        let extent = Expr::select(guard.clone(), extent.clone(), none);
        self.rounds.push(HostLoop { var, start, extent });
        self.uniform.insert(var);
        self.split(&body, guard);
        self.uniform.remove(&var);
        self.rounds.pop();
    }

    fn add(&mut self, stmt: &Stmt, guard: &Expr) {
        let guard = guard.as_int().is_none().then(|| guard.clone());
        self.result.statements.push(Statement {
            stmt: stmt.clone(),
            guard,
            rounds: self.rounds.clone(),
            nest: OnceCell::new(),
        });
    }

    /// Whether a loop is one of the host's: it launches several blocks, which do not wait for each other otherwise, or in each round
    /// another number of threads. What one block does in a loop is one kernel.
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

    /// Whether a statement does nothing but launch threads, as often as the host knows and with memory whose size it knows; in
    /// it the host knows `counted`, too.
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

    fn is_known<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> bool {
        exprs.into_iter().all(|expr| is_evaluable(expr, &|var| self.uniform.contains(&var)))
    }
}

/// How many launches a statement makes, where a loop of unknown length runs once.
fn least_launches(stmt: &Stmt) -> i64 {
    let inside = || stmt.children().into_iter().map(least_launches).fold(0, i64::saturating_add);
    match stmt {
        _ if is_launch(stmt) => 1,
        Stmt::For { extent, .. } => inside().saturating_mul(extent.as_int().map_or(1, |extent| extent.max(0))),
        _ => inside(),
    }
}

fn is_launch(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { kind: LoopKind::ThreadBinding(_), .. })
}

/// The body with loops of one iteration left out, and block axes that are nothing but a loop or a constant replaced by it
/// where they are used.
fn without_unit_loops(func: &PrimFunc) -> Stmt {
    let mut values: FxHashMap<VarId, Expr> = FxHashMap::default();
    let stripped = strip(func, &func.body, &mut values);
    // A value is over binders outside its own, which were left out before it; so one round is enough.
    map_stmt(&stripped, &mut |expr| map_expr(&replace(expr, &values), &mut whole))
}

/// What a whole number is that constants of floats are computed to: TVM leaves `T.Cast("int64", T.ceil(T.log2(…)))` so.
fn whole(expr: Expr) -> Expr {
    match &expr {
        Expr::Cast { dtype: dtype @ (DType::INT32 | DType::INT64), value } if value.dtype().is_float() => {
            let value = evaluate_index(&expr, &|_| None).filter(|value| i32::try_from(*value).is_ok());
            value.map_or_else(|| expr.clone(), |value| Expr::Int { value, dtype: *dtype })
        }
        _ => expr,
    }
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
            map_children(stmt, &mut |child| strip(func, child, values))
        }
        other => map_children(other, &mut |child| strip(func, child, values)),
    }
}

/// Whether a block's axis is nothing but another variable or a constant.
pub(crate) fn is_renaming(func: &PrimFunc, axis: VarId, binding: &Expr) -> bool {
    matches!(binding, Expr::Var { .. } | Expr::Int { .. }) && binding.dtype() == func.var(axis).dtype
}
