//! Schedule rule `fallback`: one thread for each element, no tiles, no shared memory. It takes every statement.
//!
//! ```text
//! for i in range(n):                  const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
//!     for k in range(m):         →    if (thread >= n) return;
//!         B[i] = B[i] + A[i, k]       for (int k = 0; k < m; ++k) B[thread] = B[thread] + A[thread * m + k];
//! ```
//!
//! Outer loops whose iterations are proved independent, and whose bounds the host can evaluate, become threads
//! ([`crate::parallel`]); the other loops are executed by each thread, in order. So the kernel can be compared with the
//! loops line by line. A nest without such loops runs in one thread.

use super::{Declined, Frame, KernelBody, Rule, Schedule, Task};
use crate::injective::Loop;
use crate::parallel::parallel_loops;
use crate::printer::Kernel;
use crate::source::LaunchShape;
use rustc_hash::FxHashSet;
use rx_base::DType;
use rx_tir::{Expr, LoopKind, Stmt, VarId};

/// The rule, as the table of rules lists it.
pub(super) const RULE: Rule =
    Rule { name: "fallback", summary: "One thread per element; takes every statement.", take };

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let first = task.statements.first().ok_or_else(|| Declined::because("requires a statement; found none"))?;
    let uniform: FxHashSet<VarId> = task.func.scalar_params().chain(task.func.symbols.iter().copied()).collect();
    let (loops, body) = loops_of(&first.stmt);
    let all: Vec<Loop> = loops.iter().map(|(one, _)| one.clone()).collect();
    let chosen = parallel_loops(&all, body, &|var| uniform.contains(&var));
    let (threads, serial): (Vec<_>, Vec<_>) = loops.into_iter().zip(chosen).partition(|(_, is_thread)| *is_thread);
    let threads: Vec<Loop> = threads.into_iter().map(|((one, _), _)| one).collect();
    let mut body = with_loops(serial.into_iter().map(|(one, _)| one), body.clone());
    if let Some(guard) = &first.guard {
        body = Stmt::when(guard.clone(), body);
    }
    let note = if threads.is_empty() { "one thread" } else { "one thread per element" };
    Ok(Schedule { note: note.to_owned(), ..Schedule::single(1, PlainKernel { threads, body }) })
}

/// Splits a loop nest into its perfectly nested outer loops, outermost first, and the statement inside of them.
pub(super) fn loops_of(stmt: &Stmt) -> (Vec<(Loop, LoopKind)>, &Stmt) {
    let mut loops = Vec::new();
    let mut body = stmt;
    while let Stmt::For { var, start, extent, kind, body: inner } = body {
        loops.push((Loop { var: *var, start: start.clone(), extent: extent.clone() }, *kind));
        body = inner;
    }
    (loops, body)
}

/// Returns a statement in loops, given outermost first.
pub(super) fn with_loops(
    loops: impl IntoIterator<Item = (Loop, LoopKind), IntoIter: DoubleEndedIterator>,
    stmt: Stmt,
) -> Stmt {
    loops.into_iter().rev().fold(stmt, |body, (Loop { var, start, extent }, kind)| Stmt::For {
        var,
        start,
        extent,
        kind,
        body: Box::new(body),
    })
}

/// The kernel of a nest.
struct PlainKernel {
    /// Loops whose iterations are threads, outermost first. Without any, one thread executes the nest.
    threads: Vec<Loop>,
    /// The statement that each thread executes.
    body: Stmt,
}

/// Returns the number of threads for loops whose iterations are threads; `None` without loops.
pub(super) fn thread_count(loops: &[Loop]) -> Option<Expr> {
    let extent = |one: &Loop| one.extent.clone().cast(DType::INT64).max(Expr::int(0));
    loops.iter().map(extent).reduce(|product, extent| product * extent)
}

impl KernelBody for PlainKernel {
    fn frame(&self) -> Frame<'_> {
        let shape = thread_count(&self.threads).map_or_else(LaunchShape::single, LaunchShape::threads);
        Frame { is_cooperative: false, ..Frame::new(shape, [&self.body]) }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        kernel.has_threads(thread_count(&self.threads));
        if !self.threads.is_empty() {
            kernel.thread_index(&self.threads)?;
        }
        kernel.stmt(&self.body)
    }
}
