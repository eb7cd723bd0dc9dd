//! The plain rule: one thread per element a nest computes. Loops that write different elements become threads; the others
//! run inside a thread, in order. Nothing is tiled and nothing is shared, so what is printed can be read against the loops
//! it comes from. A nest that the analysis cannot show independent runs in one thread.

use super::{Declined, Frame, KernelBody, Rule, Schedule, Task};
use crate::injective::Loop;
use crate::parallel::parallel_loops;
use crate::printer::Kernel;
use crate::source::LaunchShape;
use rustc_hash::FxHashSet;
use rx_base::DType;
use rx_tir::{Expr, LoopKind, Stmt, VarId};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "fallback", summary: "One thread per element; takes everything.", take };

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let first = task.statements.first().ok_or_else(|| Declined::because("there is no statement"))?;
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

/// The loops around a statement, outermost first, and what is in them.
pub(super) fn loops_of(stmt: &Stmt) -> (Vec<(Loop, LoopKind)>, &Stmt) {
    let mut loops = Vec::new();
    let mut body = stmt;
    while let Stmt::For { var, start, extent, kind, body: inner } = body {
        loops.push((Loop { var: *var, start: start.clone(), extent: extent.clone() }, *kind));
        body = inner;
    }
    (loops, body)
}

/// A statement in loops, outermost first.
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

/// A nest, and which of its loops are threads.
struct PlainKernel {
    /// Loops whose iterations are threads, outermost first. None: one thread does all.
    threads: Vec<Loop>,
    /// What a thread does.
    body: Stmt,
}

/// How many threads loops give whose iterations are threads; `None` where there are no loops.
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
