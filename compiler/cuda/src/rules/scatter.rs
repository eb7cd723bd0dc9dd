//! Stores to places that data say: scatters, counts, and gradients that add up where an index points. Several may go to one
//! place, in the loops' order, so their loops cannot be threads by themselves. Places can be: each thread goes through all
//! iterations and does those whose place is its own. What it does is in the loops' order for every place, so results are those
//! of the loops to the bit, sums too. All threads of a warp read the same indices; no thread waits for a store of another.
//!
//! Exception: products and sums that the device's compiler contracts to fused multiply-adds (`--fmad`) are rounded once.

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

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "scatter",
    summary: "Stores to places that data say: a thread goes through all of them, and does those to places of its own.",
    take,
};

/// Threads that are enough: with fewer, a warp waits for one store after the other.
const ENOUGH_THREADS: i64 = 4096;

/// Threads for the places where the call says how many the other loops give.
const USUAL_OWNERS: i64 = 32;

/// Fewer iterations in order are soon done.
const FEW: i64 = 16;

/// Threads of a block: few, so that the warps are spread over the device.
const BLOCK: i64 = 64;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let first = task.statements.first().ok_or_else(|| Declined::because("there is no statement"))?;
    Declined::when(first.guard.is_some(), "it is done under a condition")?;
    let uniform: FxHashSet<VarId> = task.func.scalar_params().chain(task.func.symbols.iter().copied()).collect();
    let (loops, body) = loops_of(&first.stmt);
    let Stmt::Block(block) = body else { return Err(Declined::because("no loops around one block")) };
    Declined::when(block.init.is_some() || !block.allocations.is_empty(), "its block does more than store elements")?;
    let buffer = only_store(body)?;
    let chosen = parallel_loops(&spaces(&loops), body, &|var| uniform.contains(&var));
    let (threads, serial): (Vec<_>, Vec<_>) = loops.into_iter().zip(chosen).partition(|(_, is_thread)| *is_thread);
    let mut threads: Vec<Loop> = threads.into_iter().map(|((one, _), _)| one).collect();
    let serial: Vec<(Loop, LoopKind)> = serial.into_iter().map(|(one, _)| one).collect();
    Declined::when(count(&spaces(&serial)).is_some_and(|rounds| rounds < FEW), "little is done in order")?;
    let owners = match count(&threads) {
        Some(others) => 1 << (ENOUGH_THREADS / others.max(1)).max(1).ilog2(),
        None => USUAL_OWNERS,
    };
    Declined::when(owners < 2, "there are threads enough without those of places")?;
    // Along an axis whose index is the threads' own, places differ anyway.
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
    Declined::when(axes.is_empty(), "all goes to one place")?;
    let mut func = task.func.clone();
    let owner = func.add_var(name("owner"), DType::INT64);
    let place = func.add_var(name("place"), DType::INT64);
    let body = owned(body, &mut Owned { func: &func, buffer, axes: &axes, owner, place, owners });
    threads.insert(0, Loop { var: owner, start: Expr::int(0), extent: Expr::int(owners) });
    let body = with_loops(serial, body);
    let note = format!("{owners} threads go through all, each stores to places of its own");
    Ok(Schedule { note, ..Schedule::single(1, ScatterKernel { func, threads, body }) })
}

/// How often loops go round, where that is known.
fn count(loops: &[Loop]) -> Option<i64> {
    loops.iter().try_fold(1i64, |all, one| all.checked_mul(one.extent.as_int()?.max(1)))
}

fn spaces(loops: &[(Loop, LoopKind)]) -> Vec<Loop> {
    loops.iter().map(|(one, _)| one.clone()).collect()
}

/// The buffer that a statement's only store is to, which reads of it no other element than the one it stores.
fn only_store(stmt: &Stmt) -> Result<BufferId, Declined> {
    let mut stores = Vec::new();
    let mut is_plain = true;
    stmt.walk(&mut |part| match part {
        Stmt::Store { buffer, indices, value, .. } => stores.push((*buffer, indices, value)),
        Stmt::While { .. } | Stmt::Assert { .. } | Stmt::Evaluate(_) => is_plain = false,
        _ => {}
    });
    let [(buffer, indices, value)] = stores[..] else {
        return Err(Declined::because("it does more than store an element"));
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
        return Err(Declined::because("it reads other elements than the one it stores"));
    }
    Ok(buffer)
}

/// Whose places are whose.
struct Owned<'f> {
    func: &'f PrimFunc,
    buffer: BufferId,
    /// The axes that decide it.
    axes: &'f [usize],
    owner: VarId,
    place: VarId,
    owners: i64,
}

/// The statement with its store done only by the thread whose place it is to.
fn owned(stmt: &Stmt, of: &mut Owned<'_>) -> Stmt {
    let Stmt::Store { buffer, indices, value, site } = stmt else {
        return map_children(stmt, &mut |child| owned(child, of));
    };
    let shape = &of.func.buffer(of.buffer).shape;
    let wide = |expr: &Expr| expr.clone().cast(DType::INT64);
    let parts = of.axes.iter().filter_map(|at| Some((wide(indices.get(*at)?), wide(shape.get(*at)?))));
    let place = parts.reduce(|(place, extent), (index, inner)| (place * inner.clone() + index, extent * inner));
    let place = place.map_or(Expr::int(0), |(place, _)| place);
    // What all threads check for the place needs no second check, but for indices that are no part of it.
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

struct ScatterKernel {
    func: PrimFunc,
    /// Loops whose iterations are threads, that of the places' owners first.
    threads: Vec<Loop>,
    /// What a thread does.
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
