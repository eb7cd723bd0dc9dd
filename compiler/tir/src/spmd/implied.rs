//! *Implied barriers*: inserts the barriers that a body without any needs, as TVM's `thread_storage_sync` does.
//!
//! ```text
//! for tx:                                  for tx:
//!     S[tx] = A[tx]                            S[tx] = A[tx]
//!     B[tx] = S[127 - tx]           ->         barrier
//!                                              B[tx] = S[127 - tx]
//! ```
//!
//! Without the barrier, a thread may read an element before another thread writes it. If the 128 threads are executed
//! one after the other, threads 0 to 63 read too early here. Requires a body without collective operations. Guarantees,
//! for each shared buffer whose stores and loads have different or unknown strides along a loop over threads, that a
//! barrier is between a write and a read in a later statement, and between a read and a write in a later statement,
//! also across the iterations of a loop. Stores at one index in all threads do not count.

use super::{Collective, Collectives, is_thread};
use crate::dim::to_dim;
use crate::effects::Effects;
use crate::expr::Expr;
use crate::func::{BufferId, PrimFunc, Scope, VarId, WARP};
use crate::rewrite::{map_children, substitute};
use crate::stmt::{LoopKind, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::name;
use rx_base::{DType, Dim, Name};

/// Inserts the implied barriers into a body that has no collective operations. Other bodies do not change.
pub fn insert_implied_barriers(func: &mut PrimFunc, collectives: &mut Collectives) {
    if !collectives.is_empty() {
        return;
    }
    // Only shared memory gets implied barriers.
    if !func.buffers.iter().any(|buffer| buffer.scope == Scope::Shared) {
        return;
    }
    let (values, unread) = (FxHashMap::default(), FxHashSet::default());
    let mut accesses = Accesses { func, values, unread, threads: Vec::new(), all: Vec::new() };
    accesses.stmt(&func.body);
    let crossed = accesses.crossed();
    if crossed.is_empty() {
        return;
    }
    let body = std::mem::replace(&mut func.body, Stmt::nothing());
    let lanes = most_lanes(&body);
    let mut placer = Placer { func, collectives, crossed, lanes };
    let body = placer.stmt(body, false);
    func.body = body;
}

/// The maximum number of subexpressions of a value that is substituted for its variable.
const MAX_PARTS: usize = 256;

/// An access to shared memory. In its indices, block axes and `let` variables are replaced by their values, except for
/// those of [`Accesses::unread`], whose values are too large.
struct Access {
    buffer: BufferId,
    is_store: bool,
    indices: Vec<Expr>,
    /// The variables of the enclosing loops over threads, except those of constant extent 1.
    threads: Vec<VarId>,
}

/// For each axis of the buffer, by how much the index on that axis grows from one thread to the next; `None` if that is
/// not known.
type Steps = Vec<Option<Dim>>;

/// The strides of a buffer's accesses along one loop over threads.
#[derive(Default)]
struct Moves {
    stores: FxHashSet<Steps>,
    loads: FxHashSet<Steps>,
}

impl Moves {
    /// Whether there are stores and loads, and their strides are not all known and the same. A thread may then read an
    /// element that another thread writes.
    fn are_crossed(&self) -> bool {
        let mut all = self.stores.union(&self.loads);
        let is_alike = match (all.next(), all.next()) {
            (Some(only), None) => only.iter().all(Option::is_some),
            _ => false,
        };
        !self.stores.is_empty() && !self.loads.is_empty() && !is_alike
    }
}

struct Accesses<'f> {
    func: &'f PrimFunc,
    /// The values of block axes and `let` variables.
    values: FxHashMap<VarId, Expr>,
    /// Variables whose values are too large to substitute. The strides of indices that use them are unknown.
    unread: FxHashSet<VarId>,
    threads: Vec<VarId>,
    all: Vec<Access>,
}

impl Accesses<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        stmt.expressions().into_iter().for_each(|expr| self.loads(expr));
        let depth = self.threads.len();
        match stmt {
            Stmt::For { var, extent, kind: LoopKind::ThreadBinding(tag), .. }
                if is_thread(tag) && extent.as_int() != Some(1) =>
            {
                self.threads.push(*var);
            }
            Stmt::Block(block) => {
                for iter in &block.iters {
                    self.name(iter.var, &iter.binding);
                }
            }
            Stmt::Let { var, value, .. } => self.name(*var, value),
            Stmt::Store { buffer, indices, .. } => self.access(*buffer, indices, true),
            _ => {}
        }
        stmt.children().into_iter().for_each(|child| self.stmt(child));
        self.threads.truncate(depth);
    }

    /// Records the value of a variable, unless it is too large, or uses a variable whose value is: a chain of `let`s
    /// that each use the previous one twice grows exponentially.
    fn name(&mut self, var: VarId, value: &Expr) {
        let value = self.expr(value);
        let (mut parts, mut is_read) = (0, true);
        value.walk(&mut |part| {
            parts += 1;
            is_read &= !matches!(part, Expr::Var { var, .. } if self.unread.contains(var));
        });
        if is_read && parts <= MAX_PARTS {
            self.values.insert(var, value);
        } else {
            self.unread.insert(var);
        }
    }

    fn expr(&self, expr: &Expr) -> Expr {
        substitute(expr, &|var| self.values.get(&var).cloned())
    }

    fn loads(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices, .. } = part {
                self.access(*buffer, indices, false);
            }
        });
    }

    fn access(&mut self, buffer: BufferId, indices: &[Expr], is_store: bool) {
        if self.func.buffer(buffer).scope == Scope::Shared {
            let indices = indices.iter().map(|index| self.expr(index)).collect();
            self.all.push(Access { buffer, is_store, indices, threads: self.threads.clone() });
        }
    }

    /// Returns the buffers that need barriers: along one loop over threads, the strides of their stores and loads
    /// differ, or a stride is unknown. Stores at one index in all threads, and loads that differ from the stores by an
    /// offset only, are not detected.
    fn crossed(&self) -> FxHashSet<BufferId> {
        let mut moves: FxHashMap<(BufferId, VarId), Moves> = FxHashMap::default();
        for access in &self.all {
            for thread in &access.threads {
                let depends = |index: &Expr| index.uses(*thread) || self.unread.iter().any(|var| index.uses(*var));
                if access.is_store && !access.indices.iter().any(depends) {
                    continue;
                }
                let steps: Steps = access.indices.iter().map(|index| self.step(index, *thread)).collect();
                let moves = moves.entry((access.buffer, *thread)).or_default();
                if access.is_store { &mut moves.stores } else { &mut moves.loads }.insert(steps);
            }
        }
        moves.into_iter().filter(|(_, moves)| moves.are_crossed()).map(|((buffer, _), _)| buffer).collect()
    }

    /// Returns the difference between the next thread's index and this thread's; `None` if the index has no symbolic
    /// form or uses a variable of `unread`.
    fn step(&self, index: &Expr, thread: VarId) -> Option<Dim> {
        if self.unread.iter().any(|var| index.uses(*var)) {
            return None;
        }
        if !index.uses(thread) {
            return Some(Dim::constant(0));
        }
        let one = |dtype| Expr::Int { value: 1, dtype };
        let next = substitute(index, &|var| {
            let itself = self.func.var_expr(var);
            (var == thread).then(|| itself.clone() + one(itself.dtype()))
        });
        let symbol = |var: VarId| Some(Dim::symbol(name(&format!("v{}", var.0))));
        Some(&to_dim(&next, &symbol)? - &to_dim(index, &symbol)?)
    }
}

/// Returns the largest constant extent of a loop over `threadIdx.x`, with its tag; `None` if that is not above 1.
fn most_lanes(body: &Stmt) -> Option<(Name, i64)> {
    let mut found: Option<(Name, i64)> = None;
    body.walk(&mut |stmt| {
        if let Stmt::For { extent, kind: LoopKind::ThreadBinding(tag), .. } = stmt
            && **tag == *"threadIdx.x"
            && let Some(extent) = extent.as_int()
        {
            let most = found.map_or(extent, |(_, known)| known.max(extent));
            found = Some((*tag, most));
        }
    });
    found.filter(|(_, extent)| *extent > 1)
}

struct Placer<'f> {
    func: &'f mut PrimFunc,
    collectives: &'f mut Collectives,
    crossed: FxHashSet<BufferId>,
    lanes: Option<(Name, i64)>,
}

impl Placer<'_> {
    /// Inserts barriers into a statement. Outside of loops over `threadIdx.x`, operations on fragments are executed in
    /// the first thread of each warp. `in_lanes` is whether such a loop encloses the statement.
    fn stmt(&mut self, stmt: Stmt, in_lanes: bool) -> Stmt {
        if !in_lanes && self.is_of_warps(&stmt) {
            return self.by_first_lane(stmt);
        }
        match stmt {
            Stmt::Seq(parts) => self.in_order(parts, in_lanes),
            Stmt::For { var, start, extent, kind, body } => {
                let is_lanes = matches!(kind, LoopKind::ThreadBinding(tag) if *tag == *"threadIdx.x");
                let is_threads = matches!(kind, LoopKind::ThreadBinding(_));
                let inner = self.stmt(*body, in_lanes || is_lanes);
                let inner = if is_threads { inner } else { self.round(inner) };
                Stmt::For { var, start, extent, kind, body: Box::new(inner) }
            }
            Stmt::While { condition, body } => {
                let inner = self.stmt(*body, in_lanes);
                Stmt::While { condition, body: Box::new(self.round(inner)) }
            }
            other => map_children(&other, &mut |child| self.stmt(child.clone(), in_lanes)),
        }
    }

    /// Ends a loop's iteration with a barrier if it reads and writes one of the buffers, since the next iteration may
    /// write an element that this one reads, or read one that this one writes.
    fn round(&mut self, body: Stmt) -> Stmt {
        let effects = self.effects(&body);
        if effects.read.is_disjoint(&effects.written) { body } else { Stmt::seq([body, self.wait()]) }
    }

    fn in_order(&mut self, parts: Vec<Stmt>, in_lanes: bool) -> Stmt {
        let mut made = Vec::with_capacity(parts.len());
        let mut before = Effects::default();
        for part in parts {
            let own = self.effects(&part);
            let is_read = own.read.iter().any(|id| before.written.contains(id));
            if is_read || own.written.iter().any(|id| before.read.contains(id)) {
                made.push(self.wait());
                before = Effects::default();
            }
            before.add(&own);
            made.push(self.stmt(part, in_lanes));
        }
        Stmt::seq(made)
    }

    fn effects(&self, stmt: &Stmt) -> Effects {
        Effects::of(stmt).of_only(|id| self.crossed.contains(&id))
    }

    fn wait(&mut self) -> Stmt {
        let var = self.func.add_var(name("wait"), DType::BOOL);
        self.collectives.insert(var, Collective::Barrier);
        Stmt::Evaluate(self.func.var_expr(var))
    }

    /// Whether a statement is a store that reads or writes a fragment, or serial loops around one. A warp executes it
    /// as one operation.
    fn is_of_warps(&self, stmt: &Stmt) -> bool {
        let mut inner = stmt;
        while let Stmt::For { body, kind: LoopKind::Serial, .. } = inner {
            inner = body;
        }
        let is_fragment = |id: &BufferId| matches!(self.func.buffer(*id).scope, Scope::Fragment(_));
        let effects = Effects::of(inner);
        matches!(inner, Stmt::Store { .. }) && effects.read.iter().chain(&effects.written).any(is_fragment)
    }

    /// Makes the first thread of each warp execute the statement: wraps it in a new loop over `threadIdx.x`, under the
    /// condition that the thread's index is a multiple of 32. The loop is as long as the longest constant one over
    /// `threadIdx.x` in the function. Without one of more than 1 iteration, returns the statement as it is.
    fn by_first_lane(&mut self, stmt: Stmt) -> Stmt {
        let Some((tag, extent)) = self.lanes else { return stmt };
        let int = |value| Expr::Int { value, dtype: DType::INT32 };
        let var = self.func.add_var(name("lane"), DType::INT32);
        let condition = self.func.var_expr(var).floor_mod(int(WARP)).eq(int(0));
        let body = Box::new(Stmt::when(condition, stmt));
        Stmt::For { var, start: int(0), extent: int(extent), kind: LoopKind::ThreadBinding(tag), body }
    }
}
