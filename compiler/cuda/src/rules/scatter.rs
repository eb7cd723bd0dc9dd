//! Schedule rule `scatter`: owner-computes scatters, for stores at indices that are read from memory (scatters,
//! histograms, gradients of gathers).
//!
//! ```text
//! for n: B[I[n]] = B[I[n]] + V[n]     →     thread t of 4096:
//!                                               for n: if (I[n] % 4096 == t) B[I[n]] = B[I[n]] + V[n]
//! ```
//!
//! Several iterations may store to the same element, so they cannot be threads. Each thread executes all serial
//! iterations in order, but only the stores to elements that it owns: those whose position, along the axes that serial
//! loops or data index, modulo the number of owners is the thread's number among the owners. No thread waits for
//! another. Loops that are proved parallel become additional threads; then there are usually fewer owners than 4096.
//!
//! Requires a block without an init, allocations, `while` loops, assertions, evaluated calls or a condition of the
//! host; a single store, at an index that serial loops or data determine; no read of its buffer except that of the
//! stored element in the stored value; at least 16 serial iterations if their number is a constant; at most 2048
//! parallel ones if theirs is. Guarantees the results of the serial loops to the bit, also for sums. The exceptions are
//! products and sums that the device compiler contracts to fused multiply-adds (`--fmad`), which are rounded once.

use super::fallback::{loops_of, thread_count, with_loops};
use super::{Declined, Frame, KernelBody, Rule, Schedule, Task};
use crate::injective::Loop;
use crate::parallel::{Accesses, parallel_loops};
use crate::printer::Kernel;
use crate::source::LaunchShape;
use rustc_hash::FxHashSet;
use rx_base::DType;
use rx_base::name::name;
use rx_tir::rewrite::{map_children, map_expr};
use rx_tir::{BufferId, Expr, LoopKind, PrimFunc, Stmt, VarId};

/// The rule, as the table of rules lists it.
pub(super) const RULE: Rule = Rule {
    name: "scatter",
    summary: "Stores at indices read from memory: each thread executes all iterations, and stores elements that it owns.",
    take,
};

/// Number of threads to aim at. With fewer, each warp executes many stores one after the other, and waits for each.
const ENOUGH_THREADS: i64 = 4096;

/// Number of owners if the number of other threads is not a constant.
const USUAL_OWNERS: i64 = 32;

/// Minimum number of serial iterations for which the rule is worthwhile.
const FEW: i64 = 16;

/// Threads of a block: few, so that the warps are spread over the device.
const BLOCK: i64 = 64;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let first = task.statements.first().ok_or_else(|| Declined::because("requires a statement; found none"))?;
    Declined::when(first.guard.is_some(), "requires an unconditional launch; found a condition of the host")?;
    let uniform: FxHashSet<VarId> = task.func.scalar_params().chain(task.func.symbols.iter().copied()).collect();
    let (loops, body) = loops_of(&first.stmt);
    let Stmt::Block(block) = body else {
        return Err(Declined::because("requires loops around one block; found another statement"));
    };
    Declined::when(
        block.init.is_some() || !block.allocations.is_empty(),
        "requires a block without an init and allocations; found one with them",
    )?;
    let buffer = only_store(body)?;
    let chosen = parallel_loops(&spaces(&loops), body, &|var| uniform.contains(&var));
    let (threads, serial): (Vec<_>, Vec<_>) = loops.into_iter().zip(chosen).partition(|(_, is_thread)| *is_thread);
    let mut threads: Vec<Loop> = threads.into_iter().map(|((one, _), _)| one).collect();
    let serial: Vec<(Loop, LoopKind)> = serial.into_iter().map(|(one, _)| one).collect();
    if let Some(iterations) = count(&spaces(&serial)).filter(|iterations| *iterations < FEW) {
        return Err(Declined::because(format!("requires at least {FEW} serial iterations; found {iterations}")));
    }
    let owners = match count(&threads) {
        Some(others) => 1 << (ENOUGH_THREADS / others.max(1)).max(1).ilog2(),
        None => USUAL_OWNERS,
    };
    Declined::when(owners < 2, "requires few parallel iterations; found enough for the device")?;
    // An axis whose index depends only on the parallel loops and on scalars has the same index in all serial iterations
    // of a thread, so it does not count for the owner.
    let own: Vec<VarId> = threads.iter().map(|one| one.var).chain(uniform.iter().copied()).collect();
    let axes: Vec<usize> = match &Accesses::of(body).stores[..] {
        [(_, indices)] => {
            let is_own = |index: &Expr| {
                index.all(&|part| match part {
                    Expr::Var { var, .. } => own.contains(var),
                    Expr::Load { .. } => false,
                    _ => true,
                })
            };
            (0..indices.len()).filter(|at| !is_own(&indices[*at])).collect()
        }
        _ => Vec::new(),
    };
    Declined::when(axes.is_empty(), "requires a store index that serial loops or data determine; found none")?;
    let mut func = task.func.clone();
    let owner = func.add_var(name("owner"), DType::INT64);
    let place = func.add_var(name("place"), DType::INT64);
    let body = owned(body, &mut Owned { func: &func, buffer, axes: &axes, owner, place, owners });
    threads.insert(0, Loop { var: owner, start: Expr::int(0), extent: Expr::int(owners) });
    let body = with_loops(serial, body);
    let note = format!("{owners} threads execute all iterations; each stores only elements that it owns");
    Ok(Schedule { note, ..Schedule::single(1, ScatterKernel { func, threads, body }) })
}

/// Returns the number of iterations of nested loops, with an extent below 1 counted as 1. Returns `None` if an extent
/// is not constant, or if the number does not fit `i64`.
fn count(loops: &[Loop]) -> Option<i64> {
    loops.iter().try_fold(1i64, |all, one| all.checked_mul(one.extent.as_int()?.max(1)))
}

/// Returns the loops without their kinds.
fn spaces(loops: &[(Loop, LoopKind)]) -> Vec<Loop> {
    loops.iter().map(|(one, _)| one.clone()).collect()
}

/// Returns the buffer of a statement's only store.
///
/// # Errors
/// The statement has no store or several, a `while` loop, an assertion or an evaluated call; or it reads the buffer
/// anywhere but at the stored element in the stored value.
fn only_store(stmt: &Stmt) -> Result<BufferId, Declined> {
    let mut stores = Vec::new();
    let mut is_plain = true;
    stmt.walk(&mut |part| match part {
        Stmt::Store { buffer, indices, value, .. } => stores.push((*buffer, indices, value)),
        Stmt::While { .. } | Stmt::Assert { .. } | Stmt::Evaluate(_) => is_plain = false,
        _ => {}
    });
    let [(buffer, indices, value)] = stores[..] else {
        return Err(Declined::because(format!("requires one store; found {}", stores.len())));
    };
    let loads = |expr: &Expr| {
        let mut count = 0;
        expr.walk(&mut |part| count += usize::from(matches!(part, Expr::Load { buffer: of, .. } if *of == buffer)));
        count
    };
    let mut at_place = 0;
    value.walk(&mut |part| {
        let is_own = matches!(part, Expr::Load { buffer: of, indices: at, .. } if *of == buffer && at == indices);
        at_place += usize::from(is_own);
    });
    let mut all = 0;
    stmt.walk(&mut |part| all += part.expressions().into_iter().map(loads).sum::<usize>());
    if !is_plain || all != at_place || indices.iter().any(|index| loads(index) > 0) {
        return Err(Declined::because("requires reads of the buffer only at the stored element; found others"));
    }
    Ok(buffer)
}

/// The assignment of elements to owners.
struct Owned<'f> {
    func: &'f PrimFunc,
    /// The buffer that is stored to.
    buffer: BufferId,
    /// The axes of the buffer whose indices determine the owner.
    axes: &'f [usize],
    /// The variable of the thread's number among the owners.
    owner: VarId,
    /// The variable of an element's linear position along `axes`.
    place: VarId,
    /// The number of owners.
    owners: i64,
}

/// Returns the statement with its store executed by the owner only.
fn owned(stmt: &Stmt, of: &mut Owned<'_>) -> Stmt {
    let Stmt::Store { buffer, indices, value, site } = stmt else {
        return map_children(stmt, &mut |child| owned(child, of));
    };
    let shape = &of.func.buffer(of.buffer).shape;
    let wide = |expr: &Expr| expr.clone().cast(DType::INT64);
    let parts = of.axes.iter().filter_map(|at| Some((wide(indices.get(*at)?), wide(shape.get(*at)?))));
    let place = parts.reduce(|(place, extent), (index, inner)| (place * inner.clone() + index, extent * inner));
    let place = place.map_or(Expr::int(0), |(place, _)| place);
    // All threads compute `place`, which checks the indices along `of.axes`. So the store checks only its indices along
    // the other axes.
    let unchecked = |index: &Expr| {
        map_expr(index, &mut |part| match part {
            Expr::Checked { index, .. } => *index,
            other => other,
        })
    };
    let at = |number: usize, index: &Expr| if of.axes.contains(&number) { unchecked(index) } else { index.clone() };
    let places: Vec<Expr> = indices.iter().enumerate().map(|(number, index)| at(number, index)).collect();
    let value = map_expr(value, &mut |part| match part {
        Expr::Load { buffer: one, dtype, indices: own } if one == *buffer && own == *indices => {
            Expr::Load { buffer: one, dtype, indices: places.clone() }
        }
        other => other,
    });
    let number = of.func.var_expr(of.place).floor_mod(Expr::int(of.owners));
    let store = Stmt::Store { buffer: *buffer, indices: places.clone(), value, site: *site };
    let condition = number.eq(of.func.var_expr(of.owner));
    let then = Stmt::when(condition, store);
    Stmt::Let { var: of.place, value: place, body: Box::new(then) }
}

/// A kernel of a scatter.
struct ScatterKernel {
    /// The function, with the variables of owners and positions.
    func: PrimFunc,
    /// Loops whose iterations are threads, the one over owners first.
    threads: Vec<Loop>,
    /// The statement that each thread executes.
    body: Stmt,
}

impl KernelBody for ScatterKernel {
    fn frame(&self) -> Frame<'_> {
        let count = thread_count(&self.threads).unwrap_or(Expr::int(1));
        let blocks = (count + Expr::int(BLOCK - 1)).floor_div(Expr::int(BLOCK));
        let shape = LaunchShape::blocks(blocks, BLOCK as u32);
        Frame { func: Some(&self.func), is_cooperative: false, ..Frame::new(shape, [&self.body]) }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        kernel.has_threads(thread_count(&self.threads));
        kernel.thread_index(&self.threads)?;
        kernel.stmt(&self.body)
    }
}
