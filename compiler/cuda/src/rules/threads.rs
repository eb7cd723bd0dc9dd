//! Schedule rule `threads`: lowers loops that are bound to GPU threads (`T.thread_binding`) to a kernel with exactly
//! that launch.
//!
//! ```text
//! for bx in T.thread_binding(n, "blockIdx.x"):           grid = (n, 1, 1), block = (128, 1, 1)
//!     for tx in T.thread_binding(128, "threadIdx.x"):    const long long blockIdx_x = blockIdx.x;
//!         S[tx] = A[bx * 128 + tx]                  →    const long long threadIdx_x = threadIdx.x;
//!     for ty in T.thread_binding(64, "threadIdx.x"):     S[threadIdx_x] = A[blockIdx_x * 128 + threadIdx_x];
//!         B[bx * 64 + ty] = S[2 * ty]                    __syncthreads();
//!                                                        if (threadIdx_x < 64) B[...] = S[2 * threadIdx_x];
//! ```
//!
//! Requires that loops bound to `blockIdx` and `threadIdx` start at 0 and have extents that the host can evaluate,
//! constant upper bounds of the extents of `threadIdx`, sizes within CUDA's limits (for example, 1024 threads per
//! block), and no two threads that race on an element: a statement in which several threads store different values to
//! one element has another result when threads run one after the other, as on the other devices. `races` declines the
//! races that it recognizes.
//!
//! Guarantees, as TVM does: all loops bound to one axis share one thread index; threads beyond the extent of a loop
//! skip it; buffers of scope `local` and `shared` are shrunk to the region that a thread or a block accesses, if it is
//! known; barriers separate conflicting accesses to one buffer (see `barriers`); a reduction over an axis that is bound
//! to threads becomes an all-reduce; tensor core fragments are in the registers of a warp.
//!
//! Reference: the TVM passes `UnifyThreadBinding`, `CompactBufferAllocation`, `ThreadSync` and
//! `LowerCrossThreadReduction`.

mod barriers;
mod compact;
mod cross_thread;
mod disjoint;
mod enumeration;
mod fragments;
mod kernel;
mod races;
mod tree;
mod vectors;

use super::{Declined, Rule, Schedule, Task};
use crate::source::HostLoop;
use kernel::ThreadsKernel;
use rx_base::name::name;
use rx_base::{DType, Name};
use rx_tir::spmd::{self, Collectives, Varying};
use rx_tir::{BinaryOp, BufferId, Expr, LoopKind, PrimFunc, Site, Stmt, VarId, is_evaluable};

/// The rule, as the table of rules lists it.
pub(super) const RULE: Rule = Rule {
    name: "threads",
    summary: "Functions with loops bound to blockIdx and threadIdx: launched with these extents.",
    take,
};

/// CUDA's limits of the threads of a block: in all, and along `threadIdx.z`.
const MOST_THREADS: i64 = 1024;
const MOST_THREADS_OF_Z: i64 = 64;

/// Limit of statically sized shared memory of a block, in bytes. More of it needs dynamic shared memory, whose size is
/// an argument of the launch.
const SHARED_BYTES: i64 = 48 << 10;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let first = task.statements.first().ok_or_else(|| Declined::because("requires a statement; found none"))?;
    let uniform = |var: VarId| task.func.scalar_params().any(|one| one == var) || task.func.symbols.contains(&var);
    let mut launch = Launch::default();
    launch.read(&first.stmt, (&uniform, &first.host_loops))?;
    Declined::when(launch.axes.is_empty(), "requires loops bound to threads; found none")?;
    // The loop over a grid of one block may have been removed as a unit loop. So if the first statement has no loop
    // over blocks and no guard, the kernel also gets the statements directly after it that have neither, but bind loops
    // to threads.
    let mut taken = 1;
    if launch.blocks().next().is_none() && first.guard.is_none() {
        for next in task.statements.iter().skip(1) {
            let mut own = launch.clone();
            let is_like = next.guard.is_none()
                && own.read(&next.stmt, (&uniform, &next.host_loops)).is_ok()
                && own.blocks().next().is_none();
            if !is_like || !super::row_pipeline::has_threads(task, taken) {
                break;
            }
            launch = own;
            taken += 1;
        }
    }
    let threads = launch.threads();
    if threads > MOST_THREADS {
        return Err(Declined::because(format!("requires at most {MOST_THREADS} threads per block; found {threads}")));
    }
    let along_z = launch.sizes()[2];
    if along_z > MOST_THREADS_OF_Z {
        return Err(Declined::because(format!(
            "requires at most {MOST_THREADS_OF_Z} threads per block along z; found {along_z}"
        )));
    }
    let mut func = task.func.clone();
    for axis in &mut launch.axes {
        axis.var = func.add_var(name(&axis.tag.replace('.', "_")), DType::INT64);
    }
    let statements: Vec<Stmt> = task.statements.iter().take(taken).map(|one| one.stmt.clone()).collect();
    let varying = launch.varying(&func, &statements);
    let mut tree = tree::of(&mut func, &launch, &varying, &statements)?;
    let mut buffers = compact::compact(&mut func, &launch, &task.of.0.temporaries, &mut tree)?;
    for buffer in &buffers {
        let is_outside = task.is_used_after(taken, buffer.id) || func.buffer_params().any(|one| one == buffer.id);
        if is_outside {
            let name = func.buffer(buffer.id).name;
            return Err(Declined::because(format!(
                "requires `{name}` to be used in the kernel only; found another use"
            )));
        }
    }
    buffers.sort_by_key(|buffer| buffer.id);
    let tree = barriers::place((&func, &varying), &buffers, tree)?;
    let shared: i64 = buffers.iter().filter(|buffer| buffer.is_shared).map(|buffer| buffer.bytes).sum();
    let note = format!("{} threads per block, {shared} bytes of shared buffers", launch.threads());
    let kernel = ThreadsKernel { func, launch, tree, buffers, statements, guard: first.guard.clone() };
    let (all, declared) = kernel.memory();
    if all > i64::from(task.target.shared_bytes()) || declared > SHARED_BYTES {
        let most = task.target.shared_bytes();
        return Err(Declined::because(format!(
            "requires at most {most} bytes of shared memory, {SHARED_BYTES} static; found {all}, {declared} static"
        )));
    }
    Ok(Schedule { note, ..Schedule::single(taken, kernel) })
}

/// A thread axis: `blockIdx.{x,y,z}` or `threadIdx.{x,y,z}`.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The CUDA name, such as `blockIdx.x`.
    pub(super) tag: Name,
    /// The variable that replaces the variables of all loops bound to the axis.
    pub(super) var: VarId,
    /// The number of blocks or threads along the axis, an `int64`. For threads a constant: the largest upper bound of
    /// the loops' extents.
    pub(super) extent: Expr,
}

/// The thread axes of a kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Launch {
    pub(super) axes: Vec<Axis>,
}

/// Whether the host knows a variable's value, and the host loops around the launch, outermost first.
type Host<'h> = (&'h dyn Fn(VarId) -> bool, &'h [HostLoop]);

/// Returns the dimension of an axis: 0, 1 or 2 for a tag that ends with `x`, `y` or `z`.
fn place_of(tag: &str) -> Option<usize> {
    ["x", "y", "z"].iter().position(|end| tag.ends_with(end))
}

impl Launch {
    /// Adds the axes that the loops of a statement are bound to.
    fn read(&mut self, stmt: &Stmt, host: Host<'_>) -> Result<(), Declined> {
        let mut problem = None;
        stmt.walk(&mut |part| {
            if let Stmt::For { start, extent, kind: LoopKind::ThreadBinding(tag), .. } = part
                && let Err(why) = self.add(*tag, (start, extent), host)
            {
                problem = Some(why);
            }
        });
        problem.map_or(Ok(()), Err)
    }

    /// Adds the axis of one loop. If the axis is known, a loop over `blockIdx` must have the axis's extent, and a loop
    /// over `threadIdx` may increase that extent. A loop bound to `vthread` adds nothing: it stays serial.
    fn add(
        &mut self,
        tag: Name,
        (start, extent): (&Expr, &Expr),
        (uniform, host_loops): Host<'_>,
    ) -> Result<(), Declined> {
        if tag.starts_with("vthread") {
            return Ok(());
        }
        let is_block = tag.starts_with("blockIdx.");
        let is_axis = (is_block || tag.starts_with("threadIdx.")) && place_of(&tag).is_some();
        if !is_axis || start.as_int() != Some(0) {
            return Err(Declined::because(format!("requires loops from 0 over blockIdx or threadIdx; found `{tag}`")));
        }
        let known = self.axes.iter_mut().find(|axis| axis.tag == tag);
        match (is_block, most(extent, host_loops), known) {
            (true, _, Some(known)) if known.extent == extent.clone().cast(DType::INT64) => {}
            (true, _, Some(_)) => {
                return Err(Declined::because(format!("requires one extent of `{tag}`; found several")));
            }
            (true, _, None) if is_evaluable(extent, uniform) => {
                self.axes.push(Axis { tag, var: VarId(0), extent: extent.clone().cast(DType::INT64) });
            }
            (false, Some(_), _) if !is_evaluable(extent, uniform) => {
                return Err(Declined::because(format!(
                    "requires an extent of `{tag}` that the host knows; found another"
                )));
            }
            (false, Some(most), Some(known)) => known.extent = known.extent.clone().max(Expr::int(most)),
            (false, Some(most), None) => self.axes.push(Axis { tag, var: VarId(0), extent: Expr::int(most) }),
            (false, None, _) => {
                return Err(Declined::because(format!("requires a constant bound of `{tag}`; found none")));
            }
            _ => {
                return Err(Declined::because(format!(
                    "requires an extent of `{tag}` that the host knows; found another"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn axis(&self, tag: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| *axis.tag == *tag)
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &Axis> {
        self.axes.iter().filter(|axis| axis.tag.starts_with("blockIdx"))
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = &Axis> {
        self.axes.iter().filter(|axis| axis.tag.starts_with("threadIdx"))
    }

    /// Returns the number of threads of a block.
    pub(super) fn threads(&self) -> i64 {
        self.sizes().into_iter().fold(1, i64::saturating_mul)
    }

    /// Returns the extents of a block along x, y and z: 1 for an axis that no loop is bound to.
    pub(super) fn sizes(&self) -> [i64; 3] {
        let size = |end| self.lanes().find(|axis| axis.tag.ends_with(end)).and_then(|axis| axis.extent.as_int());
        ["x", "y", "z"].map(|end| size(end).unwrap_or(1))
    }

    /// Returns the divergence analysis of the statements: which variables and buffers differ between the threads of a
    /// block.
    ///
    /// Its [`Varying::is_uniform`] only looks at an expression's value. A caller that needs all threads to evaluate the
    /// expression also checks the guards: threads that skip a loop over threads do not evaluate it at all.
    fn varying(&self, func: &PrimFunc, statements: &[Stmt]) -> Varying {
        let axis =
            |axis: &Axis| spmd::Axis { tag: axis.tag, var: axis.var, extent: axis.extent.as_int().unwrap_or(i64::MAX) };
        let axes: Vec<spmd::Axis> = self.lanes().map(axis).collect();
        Varying::of(func, statements, &axes, &Collectives::default())
    }

    /// Whether an expression mentions a thread axis of the block, so that it may differ between threads.
    pub(super) fn is_of_threads(&self, expr: &Expr) -> bool {
        self.lanes().any(|axis| expr.uses(axis.var))
    }
}

/// Returns a constant upper bound of an extent, provided that no operation in it overflows; `None` if none is found. A
/// block has at least that many threads along the axis; those beyond the actual extent skip the loop. For example,
/// `min(n, 128)` has the bound 128.
fn most(extent: &Expr, host_loops: &[HostLoop]) -> Option<i64> {
    let most = |expr: &Expr| most(expr, host_loops);
    match extent {
        Expr::Int { value, .. } => Some(*value),
        Expr::Var { var, .. } => {
            let host_loop = host_loops.iter().find(|host_loop| host_loop.var == *var)?;
            host_loop.start.as_int()?.checked_add(host_loop.extent.as_int()?)?.checked_sub(1)
        }
        Expr::Cast { dtype: DType::INT32 | DType::INT64, value } => most(value),
        Expr::Select { then, otherwise, .. } => Some(most(then)?.max(most(otherwise)?)),
        Expr::Binary { op: BinaryOp::Min, left, right } => match (most(left), most(right)) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        },
        Expr::Binary { op, left, right } => {
            let (left, constant) = (most(left)?, right.as_int());
            match (op, constant) {
                (BinaryOp::Max, _) => Some(left.max(most(right)?)),
                (BinaryOp::Add, _) => left.checked_add(most(right)?),
                (BinaryOp::Sub, Some(less)) => left.checked_sub(less),
                (BinaryOp::Mul, Some(factor)) if factor >= 0 => left.checked_mul(factor),
                (BinaryOp::FloorDiv, Some(divisor)) if divisor > 0 => Some(left.div_euclid(divisor)),
                (BinaryOp::ShiftLeft, _) => {
                    let by = u32::try_from(most(right)?).ok().filter(|by| *by < 31)?;
                    left.checked_mul(1 << by).filter(|_| left >= 0)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// A statement of the kernel body. Loops over threads and blocks are gone: every thread of the grid executes the body.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Seq(Vec<Node>),
    For {
        var: VarId,
        start: Expr,
        extent: Expr,
        body: Box<Node>,
    },
    /// A uniform branch: all threads of a block take the same side.
    If {
        condition: Expr,
        then: Box<Node>,
        otherwise: Option<Box<Node>>,
    },
    /// A loop with a uniform condition: all threads of a block exit it in the same iteration.
    While {
        condition: Expr,
        body: Box<Node>,
    },
    /// A let value that is the same for all threads of a block.
    Let {
        var: VarId,
        value: Expr,
        body: Box<Node>,
    },
    /// A statement that each thread executes by itself, without barriers inside.
    Leaf(Stmt),
    /// A vectorized copy that each thread makes by itself.
    Copy(Box<vectors::Copy>),
    /// A cross-thread reduction.
    Reduce(Box<CrossThread>),
    /// An operation of a whole warp on tensor core fragments.
    Warp(Box<fragments::Warp>),
    /// A barrier of the block: `__syncthreads()`.
    Barrier,
}

impl Node {
    /// Returns the direct children, in order.
    pub(super) fn children(&self) -> Vec<&Node> {
        match self {
            Node::Seq(nodes) => nodes.iter().collect(),
            Node::For { body, .. } | Node::While { body, .. } | Node::Let { body, .. } => vec![body],
            Node::If { then, otherwise, .. } => std::iter::once(&**then).chain(otherwise.as_deref()).collect(),
            Node::Leaf(_) | Node::Copy(_) | Node::Reduce(_) | Node::Warp(_) | Node::Barrier => Vec::new(),
        }
    }

    /// Returns the direct children, in order, as mutable references.
    pub(super) fn children_mut(&mut self) -> Vec<&mut Node> {
        match self {
            Node::Seq(nodes) => nodes.iter_mut().collect(),
            Node::For { body, .. } | Node::While { body, .. } | Node::Let { body, .. } => vec![body],
            Node::If { then, otherwise, .. } => std::iter::once(&mut **then).chain(otherwise.as_deref_mut()).collect(),
            Node::Leaf(_) | Node::Copy(_) | Node::Reduce(_) | Node::Warp(_) | Node::Barrier => Vec::new(),
        }
    }
}

/// A cross-thread reduction (all-reduce) over thread axes, of one value or of a tuple (such as a maximum and its
/// index).
#[derive(Clone, Debug)]
pub(super) struct CrossThread {
    /// The serial loops of each thread, outermost first. For each iteration of the spatial ones, threads reduce one
    /// element of each result; the reduction loops accumulate a thread's partial results.
    pub(super) loops: Vec<rx_loops::Loop>,
    /// The elements that are reduced at once, one of each result: more than one for a tuple.
    pub(super) reduced: Vec<Reduced>,
    /// The thread axes that are reduced over.
    pub(super) over: Vec<VarId>,
    /// Predicate for contributing an element: threads and iterations where it is false are skipped. `None`: all
    /// contribute.
    pub(super) counts: Option<Expr>,
    /// Predicate for storing the result. `None`: all threads store it.
    pub(super) stores: Option<Expr>,
}

/// One element that a cross-thread reduction computes.
#[derive(Clone, Debug)]
pub(super) struct Reduced {
    pub(super) buffer: BufferId,
    pub(super) indices: Vec<Expr>,
    /// The initial value. It is combined with the result once, unless the partial results begin with it (`begin`).
    pub(super) init: Expr,
    /// The value that each thread's partial result begins with: `init` if combining it several times changes nothing
    /// (as for a maximum), otherwise the identity.
    pub(super) begin: Expr,
    /// The value that one iteration contributes.
    pub(super) element: Expr,
    /// Variable of the thread's partial result.
    pub(super) partial: VarId,
    /// Variable of the value that is combined with it: an iteration's element, another thread's partial result, or
    /// `init`.
    pub(super) other: VarId,
    /// The combination of `partial` and `other`. For a tuple, it may also mention these two variables of its other
    /// elements.
    pub(super) combined: Expr,
    /// The source position of the store, which run-time errors name.
    pub(super) site: Site,
}

/// Returns the function with another body, for analyses of a statement that need the table of variables and buffers.
pub(super) fn with_body(func: &PrimFunc, body: Stmt) -> PrimFunc {
    PrimFunc { body, ..func.clone() }
}
