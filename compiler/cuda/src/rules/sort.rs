//! Schedule rule `sort`: sorts rows (`sort`, `argsort`, `topk`) instead of counting the rank of each element.
//!
//! ```text
//! for i, a, b: R[i, a] += before(X[i, b], X[i, a])     // rank: how many elements come before element a
//! for i, a:    Y[i, R[i, a]] = X[i, a]
//!   →  rows that fit in shared memory: bitonic sort, several short rows of constant length for each block
//!      longer rows: bitonic sort of tiles, then merges of up to 8 sorted runs each, then the stores
//!      longer rows, top-k with small constant k: bitonic sort of tiles, of which each keeps its first k elements,
//!          then a sort of these
//! ```
//!
//! Requires that the ranks are used by the second statement only. Equal keys are ordered by their positions, so the
//! order is unique, and sorting gives the same result as counting. Whether an expression counts ranks is decided by
//! enumerating its cases (`rx_loops::Ranking`).
//!
//! Keys are converted to unsigned integers of the same order (of the reverse order to sort descending) and sorted
//! together with their positions; the stored values are loaded again from these positions. In a merged run, an
//! element's place is its place in its own run plus the number of elements before it in each other run, which a binary
//! search finds.
//!
//! Reference: K. E. Batcher, "Sorting networks and their applications", 1968 (bitonic sort).

mod kernel;

use super::{Declined, KernelBody, Rule, Schedule, Scratch, Task};
use kernel::{Problem, SortKernel, Step};
use rx_base::DType;
use rx_loops::scope::Scope;
use rx_loops::{Nest, Ranking};
use rx_tir::rewrite::{map_expr, map_stmt, substitute};
use rx_tir::{BufferId, Expr, IterKind, Stmt, VarId, is_evaluable};
use std::rc::Rc;

/// The rule, as the table of rules lists it.
pub(super) const RULE: Rule = Rule {
    name: "sort",
    summary: "sort, argsort and topk: bitonic sorts in shared memory; longer rows by tiles that are merged.",
    take,
};

/// Largest k of a top-k for which each tile keeps only its first k elements.
const FEW: i64 = 256;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let nest = task.nest(0)?;
    let ranking = Ranking::of(nest, task.func)?;
    let stores =
        task.nest(1).map_err(|_| Declined::because("requires a store by rank after the ranking; found none"))?;
    if !task.is_temporary(ranking.buffer) || task.is_used_after(2, ranking.buffer) {
        let name = task.func.buffer(ranking.buffer).name;
        return Err(Declined::because(format!("requires ranks `{name}` as an intermediate result; found another use")));
    }
    if super::row_pipeline::has_threads(task, 0) || super::row_pipeline::has_threads(task, 1) {
        return Err(Declined::because("requires loops without thread bindings; found a bound loop"));
    }
    let uniform = |var: VarId| task.func.scalar_params().any(|one| one == var) || task.func.symbols.contains(&var);
    let is_known = |extent: &Expr| is_evaluable(extent, &uniform);
    if !is_known(&ranking.length) || !ranking.rows.iter().all(|(_, extent)| is_known(extent)) {
        return Err(Declined::because("requires loop extents that the host knows; found one computed in the kernel"));
    }
    let (stores, taken) = Stores::of(task, &ranking, stores)?.parts();
    let problem = Rc::new(Problem {
        length: ranking.length.clone().cast(DType::INT64),
        rows: ranking.rows.iter().map(|(var, extent)| (*var, extent.clone().cast(DType::INT64))).collect(),
        taken: taken.clone().map(|taken| taken.cast(DType::INT64)),
        statements: task.statements.iter().take(2).map(|one| one.stmt.clone()).collect(),
        is_wide: ranking.key.dtype().bits == 64,
        ranking,
        stores,
    });
    let few = taken.as_ref().and_then(Expr::as_int).filter(|few| (1..=FEW).contains(few));
    Ok(schedule(&problem, few))
}

/// Returns the schedule for rows of every length that a call may have. `few` is the number of first elements that are
/// stored, if it is a small constant.
fn schedule(problem: &Rc<Problem>, few: Option<i64>) -> Schedule {
    let tile = problem.tile();
    let length = problem.length.clone();
    let kernel = |step, condition: Option<Expr>| -> Box<dyn KernelBody> {
        Box::new(SortKernel { problem: Rc::clone(problem), step, condition })
    };
    let is_long = Expr::int(tile).lt(length.clone());
    let (mut kernels, mut scratch) = (Vec::new(), Vec::new());
    if is_long.as_int() != Some(1) {
        let condition = length.as_int().is_none().then(|| !is_long.clone());
        kernels.push(kernel(Step::Rows, condition));
    }
    let mut note = match problem.rows_at_once() {
        1 => format!("1 row of up to {tile} elements per block in shared memory"),
        rows => format!("{rows} rows per block in shared memory"),
    };
    if is_long.as_int() == Some(0) {
        return Schedule { taken: 2, kernels, scratch, note };
    }
    let long = |count: Expr| {
        let bytes = problem.row_count() * count * Expr::int(problem.bytes());
        Expr::select(is_long.clone(), bytes, Expr::int(0))
    };
    let condition = |condition: Expr| condition.as_int().is_none().then_some(condition);
    if let Some(few) = few {
        scratch.push(Scratch { name: "firsts", bytes: long(problem.tiles() * Expr::int(few)) });
        kernels.push(kernel(Step::Tiles { keep: Some(few) }, condition(is_long.clone())));
        kernels.push(kernel(Step::Firsts { keep: few }, condition(is_long.clone())));
        note = format!("tiles of {tile} elements in shared memory; the first {few} of each tile are sorted again");
        return Schedule { taken: 2, kernels, scratch, note };
    }
    scratch.push(Scratch { name: "sorted", bytes: long(length.clone()) });
    scratch.push(Scratch { name: "merged", bytes: long(length.clone()) });
    kernels.push(kernel(Step::Tiles { keep: None }, condition(is_long.clone())));
    let mut run = tile;
    let mut number = 0;
    while run < i64::from(i32::MAX) && length.as_int().is_none_or(|length| run < length) {
        kernels.push(kernel(Step::Merge { run, number }, condition(Expr::int(run).lt(length.clone()))));
        run *= kernel::AT_ONCE;
        number += 1;
    }
    kernels.push(kernel(Step::Store, condition(is_long.clone())));
    let merged = if length.as_int().is_some() { format!("merged {number} times") } else { "merged".to_owned() };
    note = format!("tiles of {tile} elements in shared memory, {merged}, {} runs at a time", kernel::AT_ONCE);
    Schedule { taken: 2, kernels, scratch, note }
}

/// The stores of an element by its rank.
struct Stores {
    /// The stores, with the loop variables of the ranking statement.
    stmt: Stmt,
    /// Only ranks below this are stored; `None`: all.
    taken: Option<Expr>,
}

impl Stores {
    /// Returns the stores and the bound of the stored ranks.
    fn parts(self) -> (Stmt, Option<Expr>) {
        (self.stmt, self.taken)
    }

    /// Matches the second statement: stores at indices of which one is the element's rank.
    ///
    /// # Errors
    /// The statement has another form, or [`Stores::check`] declines one of its stores.
    fn of(task: &Task<'_>, ranking: &Ranking, nest: &Nest) -> Result<Stores, Declined> {
        let other = || Declined::because("requires a store by rank after the ranking; found another statement");
        if nest.init.is_some() || nest.predicate.is_some() {
            return Err(other());
        }
        if !nest.loops.iter().all(|one| one.kind == IterKind::Spatial) {
            return Err(Declined::because("requires spatial axes; found an axis of another kind"));
        }
        let rank = rank_of(&nest.body, ranking.buffer).ok_or_else(other)?;
        let named = names(task, ranking, nest, &rank).ok_or_else(other)?;
        let body = map_stmt(&nest.body, &mut |expr| substitute(expr, &|var| named(var)));
        let (stores, taken) = match &body {
            Stmt::If { condition, then, otherwise: None } => match condition {
                Expr::Compare { op: rx_tir::CompareOp::Lt, left, right }
                    if is_rank(left, ranking.buffer) && !right.has_load() =>
                {
                    ((**then).clone(), Some((**right).clone()))
                }
                _ => return Err(Declined::because("requires a condition rank < k; found another condition")),
            },
            body => (body.clone(), None),
        };
        let stores: Vec<&Stmt> = match &stores {
            Stmt::Seq(stores) => stores.iter().collect(),
            one => vec![one],
        };
        let written: Vec<BufferId> = stores.iter().filter_map(|store| target(store)).collect();
        Declined::when(written.len() != stores.len(), "requires element stores only; found another statement")?;
        for store in &stores {
            Self::check(ranking, store, &written)?;
        }
        let bound = taken.clone().unwrap_or(ranking.length.clone());
        let stmt = Stmt::seq(stores.iter().map(|store| without_checks(store, ranking.buffer, &bound)));
        Ok(Stores { stmt, taken })
    }

    /// Declines a store if it may store two elements to the same place, or if it or the ranking's key reads a buffer
    /// that the statement writes (`written`).
    fn check(ranking: &Ranking, store: &Stmt, written: &[BufferId]) -> Result<(), Declined> {
        let Stmt::Store { indices, value, .. } = store else {
            return Err(Declined::because("requires element stores only; found another statement"));
        };
        let by_rank = indices.iter().filter(|index| is_rank(index, ranking.buffer)).count();
        let is_row =
            |var: VarId| indices.iter().any(|index| matches!(index, Expr::Var { var: own, .. } if *own == var));
        let others = indices.iter().filter(|index| !is_rank(index, ranking.buffer));
        let is_plain = others.clone().all(|index| !index.has_load() && !index.uses(ranking.along));
        if by_rank != 1 || !is_plain || !ranking.rows.iter().all(|(var, _)| is_row(*var)) {
            return Err(Declined::because("requires a separate element for each rank; found stores that may overlap"));
        }
        let is_changed = |part: &Expr| matches!(part, Expr::Load { buffer, .. } if written.contains(buffer));
        let mut read = indices.iter().chain([value, &ranking.key]);
        Declined::when(
            read.any(|expr| expr.any(&is_changed)),
            "requires results in other buffers than the keys and values; found a shared buffer",
        )
    }
}

/// Returns the buffer of a store; `None` for other statements.
fn target(store: &Stmt) -> Option<BufferId> {
    match store {
        Stmt::Store { buffer, .. } => Some(*buffer),
        _ => None,
    }
}

/// Returns the indices at which a statement loads ranks; `None` if it loads none, or at different indices.
fn rank_of(stmt: &Stmt, ranks: BufferId) -> Option<Vec<Expr>> {
    let mut found: Option<Vec<Expr>> = None;
    let mut is_same = true;
    stmt.walk(&mut |part| {
        for expr in part.expressions() {
            expr.walk(&mut |part| match part {
                Expr::Load { buffer, indices, .. } if *buffer == ranks => match &found {
                    None => found = Some(indices.clone()),
                    Some(known) => is_same &= known == indices,
                },
                _ => {}
            });
        }
    });
    found.filter(|_| is_same)
}

/// Maps the loops of the stores to those of the ranking, by their positions in the indices of the ranks. `None` if an
/// index is neither a loop nor the same constant in both, if the extents of two loops are not proved equal, or if a
/// loop is used twice or left over.
fn names(
    task: &Task<'_>,
    ranking: &Ranking,
    nest: &Nest,
    rank: &[Expr],
) -> Option<impl Fn(VarId) -> Option<Expr> + use<>> {
    let mut scope = Scope::new(task.func);
    let mut pairs: Vec<(VarId, Expr)> = Vec::new();
    for (own, known) in rank.iter().zip(&ranking.indices) {
        match (own, known) {
            (Expr::Var { var, dtype }, Expr::Var { var: known, .. }) => {
                let extent = &nest.loops.iter().find(|one| one.var == *var)?.extent;
                let same = ranking.rows.iter().find(|(var, _)| var == known).map(|(_, extent)| extent);
                let same = same.or((*known == ranking.along).then_some(&ranking.length))?;
                if scope.dim(extent) != scope.dim(same) || pairs.iter().any(|(one, _)| one == var) {
                    return None;
                }
                pairs.push((*var, task.func.var_expr(*known).cast(*dtype)));
            }
            (own, known) if own.as_int().is_some() && own.as_int() == known.as_int() => {}
            _ => return None,
        }
    }
    let all = nest.loops.len() == pairs.len() && ranking.rows.len() + 1 == pairs.len();
    all.then_some(move |var: VarId| pairs.iter().find(|(one, _)| *one == var).map(|(_, value)| value.clone()))
}

/// Whether an expression is the element's rank, possibly with casts or bounds checks around it.
fn is_rank(expr: &Expr, ranks: BufferId) -> bool {
    match expr {
        Expr::Load { buffer, .. } => *buffer == ranks,
        Expr::Checked { index: value, .. } | Expr::Cast { value, .. } => is_rank(value, ranks),
        _ => false,
    }
}

/// Removes bounds checks that a rank is below `bound`, which is true of every rank that is stored.
fn without_checks(stmt: &Stmt, ranks: BufferId, bound: &Expr) -> Stmt {
    let mut unchecked = |part: Expr| match part {
        Expr::Checked { index, extent, .. } if is_rank(&index, ranks) && *extent == *bound => *index,
        part => part,
    };
    map_stmt(stmt, &mut |expr| map_expr(expr, &mut unchecked))
}
