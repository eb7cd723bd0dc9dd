//! Functions that say themselves what their threads are: loops bound to `blockIdx.x`, `threadIdx.x` and so on become a
//! kernel of that very launch.
//!
//! As in TVM, loops bound to one axis are one thread index, threads behind a loop's extent leave it out, buffers of the scopes
//! `local` and `shared` are no larger than what a thread or a block touches of them, barriers stand between accesses of
//! different threads to one buffer, and a reduction over an axis that is bound to threads is made by those threads together.
//! Fragments of tensor cores are in the registers of a warp.
//! (TVM: `unify_thread_binding`, `compact_buffer_region`, `thread_storage_sync`, `lower_cross_thread_reduction`.)
//!
//! A function that computes something else when its threads run one after the other, as on the other devices, is declined.

mod apart;
mod barriers;
mod compact;
mod fragments;
mod kernel;
mod points;
mod races;
mod together;
mod tree;
mod vectors;

use super::{Declined, Rule, Schedule, Task};
use crate::source::HostLoop;
use kernel::ThreadsKernel;
use rx_base::name::name;
use rx_base::{DType, Name};
use rx_tir::spmd::{self, Collectives, Varying};
use rx_tir::{BinaryOp, BufferId, Expr, LoopKind, PrimFunc, Site, Stmt, VarId, is_evaluable};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "threads",
    summary: "Functions whose loops are bound to blocks and threads: launched as they say.",
    take,
};

/// Threads of a block, at most; and those along `threadIdx.z`.
const MOST_THREADS: i64 = 1024;
const MOST_THREADS_OF_Z: i64 = 64;

/// Bytes of a block's shared memory with a size in the text, at most; a launch says how large more of it is.
const SHARED_BYTES: i64 = 48 << 10;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let first = task.statements.first().ok_or_else(|| Declined::because("there is no statement"))?;
    let uniform = |var: VarId| task.func.scalar_params().any(|one| one == var) || task.func.symbols.contains(&var);
    let mut launch = Launch::default();
    launch.read(&first.stmt, (&uniform, &first.rounds))?;
    Declined::when(launch.axes.is_empty(), "no loop is bound to a thread")?;
    // Loops over one block may be gone; what follows for the same threads is the same kernel.
    let mut taken = 1;
    if launch.blocks().next().is_none() && first.guard.is_none() {
        for next in task.statements.iter().skip(1) {
            let mut own = launch.clone();
            let is_like = next.guard.is_none()
                && own.read(&next.stmt, (&uniform, &next.rounds)).is_ok()
                && own.blocks().next().is_none();
            if !is_like || !super::stages::has_threads(task, taken) {
                break;
            }
            launch = own;
            taken += 1;
        }
    }
    Declined::when(launch.threads() > MOST_THREADS, "a block would have more threads than a device has")?;
    if launch.sizes()[2] > MOST_THREADS_OF_Z {
        return Err(Declined::because("a block would have more threads along z than a device has"));
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
        let is_outside = task.is_used_behind(taken, buffer.id) || func.buffer_params().any(|one| one == buffer.id);
        Declined::when(is_outside, "what lies in a block's memory is wanted by others")?;
    }
    buffers.sort_by_key(|buffer| buffer.id);
    let tree = barriers::place((&func, &varying), &buffers, tree)?;
    let shared: i64 = buffers.iter().filter(|buffer| buffer.is_shared).map(|buffer| buffer.bytes).sum();
    let note = format!("{} threads of a block, {shared} bytes of its shared buffers", launch.threads());
    let kernel = ThreadsKernel { func, launch, tree, buffers, statements, guard: first.guard.clone() };
    let (all, declared) = kernel.memory();
    if all > i64::from(task.target.shared_bytes()) || declared > SHARED_BYTES {
        return Err(Declined::because("its shared buffers are larger than the memory of a block"));
    }
    Ok(Schedule { note, ..Schedule::single(taken, kernel) })
}

/// A thread axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// `blockIdx.x`.
    pub(super) tag: Name,
    /// The variable that stands for all loops that are bound to it.
    pub(super) var: VarId,
    pub(super) extent: Expr,
}

/// The thread axes of a kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Launch {
    pub(super) axes: Vec<Axis>,
}

/// Which variables the host knows, and the loops it runs around a launch.
type Host<'h> = (&'h dyn Fn(VarId) -> bool, &'h [HostLoop]);

/// Which of x, y and z an axis is.
fn place_of(tag: &str) -> Option<usize> {
    ["x", "y", "z"].iter().position(|end| tag.ends_with(end))
}

impl Launch {
    /// Adds the axes of a statement's loops.
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

    fn add(&mut self, tag: Name, (start, extent): (&Expr, &Expr), (uniform, rounds): Host<'_>) -> Result<(), Declined> {
        if tag.starts_with("vthread") {
            return Ok(());
        }
        let is_block = tag.starts_with("blockIdx.");
        let is_axis = (is_block || tag.starts_with("threadIdx.")) && place_of(&tag).is_some();
        Declined::when(!is_axis || start.as_int() != Some(0), "a loop is bound to a thread of another kind")?;
        let known = self.axes.iter_mut().find(|axis| axis.tag == tag);
        match (is_block, most(extent, rounds), known) {
            (true, _, Some(known)) if known.extent == *extent => {}
            (true, _, Some(_)) => return Err(Declined::because("loops over blocks have several lengths")),
            (true, _, None) if is_evaluable(extent, uniform) => {
                self.axes.push(Axis { tag, var: VarId(0), extent: extent.clone().cast(DType::INT64) });
            }
            (false, Some(_), _) if !is_evaluable(extent, uniform) => {
                return Err(Declined::because("how many threads there are is computed in the kernel"));
            }
            (false, Some(most), Some(known)) => known.extent = known.extent.clone().max(Expr::int(most)),
            (false, Some(most), None) => self.axes.push(Axis { tag, var: VarId(0), extent: Expr::int(most) }),
            (false, None, _) => return Err(Declined::because("how many threads a block may have is not said")),
            _ => return Err(Declined::because("how many threads there are is computed in the kernel")),
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

    /// Threads of a block.
    pub(super) fn threads(&self) -> i64 {
        self.sizes().into_iter().fold(1, i64::saturating_mul)
    }

    /// Threads of a block on axes x, y and z.
    pub(super) fn sizes(&self) -> [i64; 3] {
        let size = |end| self.lanes().find(|axis| axis.tag.ends_with(end)).and_then(|axis| axis.extent.as_int());
        ["x", "y", "z"].map(|end| size(end).unwrap_or(1))
    }

    /// The variables that differ between the threads of a block; its [`Varying::is_uniform`] is of expressions outside of loops over threads.
    fn varying(&self, func: &PrimFunc, statements: &[Stmt]) -> Varying {
        let axis =
            |axis: &Axis| spmd::Axis { tag: axis.tag, var: axis.var, extent: axis.extent.as_int().unwrap_or(i64::MAX) };
        let axes: Vec<spmd::Axis> = self.lanes().map(axis).collect();
        Varying::of(func, statements, &axes, &Collectives::default())
    }

    /// Whether an expression differs between a block's threads.
    pub(super) fn is_of_threads(&self, expr: &Expr) -> bool {
        self.lanes().any(|axis| expr.uses(axis.var))
    }
}

/// What an extent is at most, where it says so: a block has that many threads, of which some leave a loop out.
fn most(extent: &Expr, rounds: &[HostLoop]) -> Option<i64> {
    let most = |expr: &Expr| most(expr, rounds);
    match extent {
        Expr::Int { value, .. } => Some(*value),
        Expr::Var { var, .. } => {
            let round = rounds.iter().find(|round| round.var == *var)?;
            round.start.as_int()?.checked_add(round.extent.as_int()?)?.checked_sub(1)
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

/// A statement of a kernel, without loops over threads.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Seq(Vec<Node>),
    For {
        var: VarId,
        start: Expr,
        extent: Expr,
        body: Box<Node>,
    },
    /// What all threads do alike, or none of them.
    If {
        condition: Expr,
        then: Box<Node>,
        otherwise: Option<Box<Node>>,
    },
    /// A loop that all threads leave alike.
    While {
        condition: Expr,
        body: Box<Node>,
    },
    /// A name for what is the same for all threads.
    Let {
        var: VarId,
        value: Expr,
        body: Box<Node>,
    },
    /// What a thread does by itself.
    Leaf(Stmt),
    /// What a thread copies at once.
    Copy(Box<vectors::Copy>),
    /// What threads do together.
    Reduce(Box<Together>),
    /// What the threads of a warp do together with fragments.
    Warp(Box<fragments::Warp>),
    /// All threads of a block wait for each other.
    Barrier,
}

impl Node {
    /// The nodes right in it.
    pub(super) fn children(&self) -> Vec<&Node> {
        match self {
            Node::Seq(nodes) => nodes.iter().collect(),
            Node::For { body, .. } | Node::While { body, .. } | Node::Let { body, .. } => vec![body],
            Node::If { then, otherwise, .. } => std::iter::once(&**then).chain(otherwise.as_deref()).collect(),
            Node::Leaf(_) | Node::Copy(_) | Node::Reduce(_) | Node::Warp(_) | Node::Barrier => Vec::new(),
        }
    }

    /// The same, to be changed.
    pub(super) fn children_mut(&mut self) -> Vec<&mut Node> {
        match self {
            Node::Seq(nodes) => nodes.iter_mut().collect(),
            Node::For { body, .. } | Node::While { body, .. } | Node::Let { body, .. } => vec![body],
            Node::If { then, otherwise, .. } => std::iter::once(&mut **then).chain(otherwise.as_deref_mut()).collect(),
            Node::Leaf(_) | Node::Copy(_) | Node::Reduce(_) | Node::Warp(_) | Node::Barrier => Vec::new(),
        }
    }
}

/// A reduction over axes that are bound to threads, of one value or of several at once.
#[derive(Clone, Debug)]
pub(super) struct Together {
    /// Loops inside of what threads do together.
    pub(super) loops: Vec<rx_schedule::Loop>,
    pub(super) reduced: Vec<Reduced>,
    /// The axes.
    pub(super) over: Vec<VarId>,
    /// Threads and iterations where it does not hold bring nothing.
    pub(super) counts: Option<Expr>,
    /// Threads where it does not hold store nothing.
    pub(super) stores: Option<Expr>,
}

/// An element that is reduced.
#[derive(Clone, Debug)]
pub(super) struct Reduced {
    pub(super) buffer: BufferId,
    pub(super) indices: Vec<Expr>,
    pub(super) init: Expr,
    /// What each thread begins with.
    pub(super) begin: Expr,
    /// What an iteration brings.
    pub(super) element: Expr,
    /// What a thread has.
    pub(super) partial: VarId,
    /// What comes to it.
    pub(super) other: VarId,
    /// What both come to, of all that are reduced at once.
    pub(super) combined: Expr,
    pub(super) site: Site,
}

/// A function of these variables and buffers, to analyse a statement in.
pub(super) fn with_body(func: &PrimFunc, body: Stmt) -> PrimFunc {
    PrimFunc { body, ..func.clone() }
}
