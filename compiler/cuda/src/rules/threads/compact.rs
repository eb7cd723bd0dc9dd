//! Buffer compaction: shrinks local, shared and fragment buffers to the accessed region.
//!
//! ```text
//! S = alloc((1024,), scope="shared")                      S = alloc((32,), scope="shared")
//! for bx in T.thread_binding(32, "blockIdx.x"):           S[threadIdx_x] = A[blockIdx_x * 32 + threadIdx_x]
//!     for tx in T.thread_binding(32, "threadIdx.x"):  →
//!         S[bx * 32 + tx] = A[bx * 32 + tx]
//! ```
//!
//! The region is the one that a block (for a private buffer, a thread or a warp) accesses in one iteration of the loops
//! that all accesses have in common; all elements, if it is not known. Accesses become relative to the region's begin.
//! Afterwards the pass resolves operations on fragments, turns vectorized loops that copy into wide copies, and unrolls
//! short loops that index private buffers.
//!
//! Reference: the TVM pass `CompactBufferAllocation`.

use super::{Launch, Node, disjoint, fragments, vectors, with_body};
use crate::rules::Declined;
use rustc_hash::FxHashMap;
use rx_base::{DType, Dim};
use rx_loops::affine::is_multiple;
use rx_loops::scope::Scope as Known;
use rx_tir::rewrite::{map_expr, map_stmt_shallow};
use rx_tir::{BinaryOp, BufferId, Expr, LoopKind, PrimFunc, Scope, Stmt, VarId, WARP};

/// A buffer in the private memory of a thread (or warp) or the shared memory of a block.
#[derive(Clone, Debug)]
pub(super) struct PrivateOrShared {
    pub(super) id: BufferId,
    /// Whether it is in shared memory.
    pub(super) is_shared: bool,
    /// Whether it is a shared buffer with disjoint writes: it is proved that no two threads of a block write the same
    /// element. If a fragment store writes it, that no two warps do (see `disjoint`).
    pub(super) has_disjoint_writes: bool,
    /// Its size in bytes after compaction, with padding. For a fragment, of all threads of the warp.
    pub(super) bytes: i64,
}

/// Returns one offset in bytes for each buffer, and the total size of the shared ones. The offset of a shared buffer is
/// that in the block's shared memory; a private buffer takes no space there, and its offset has no meaning.
pub(super) fn offsets(buffers: &[PrivateOrShared]) -> (Vec<i64>, i64) {
    let mut all = 0i64;
    let mut offsets = Vec::with_capacity(buffers.len());
    for own in buffers {
        offsets.push(all);
        if own.is_shared {
            // Each buffer is aligned to 16 bytes, the widest vector access.
            all = all.saturating_add(own.bytes).saturating_add(15) / 16 * 16;
        }
    }
    (offsets, all)
}

/// Returns the bytes of shared memory that the buffers take.
pub(super) fn shared_bytes(buffers: &[PrivateOrShared]) -> i64 {
    offsets(buffers).1
}

/// The maximal constant extent of a loop that is unrolled because it indexes a private buffer. Unrolling allows the
/// buffer to be in registers.
pub(super) const UNROLLED: i64 = 16;

/// Limit of the size of a thread's buffer, in bytes.
const LOCAL_BYTES: i64 = 16 << 10;

/// An access, and the loops around it, outermost first.
struct Access {
    buffer: BufferId,
    indices: Vec<Expr>,
    loops: Vec<(VarId, Values)>,
}

/// Shrinks the private and shared buffers, in the tree and in the function's table of buffers, and returns them.
///
/// # Errors
/// - The accessed region of a buffer is not known, and the buffer has a symbolic shape.
/// - A private buffer is larger than [`LOCAL_BYTES`], or a fragment buffer than [`LOCAL_BYTES`] for each lane of a
///   warp; or the size of a buffer overflows.
/// - A buffer in global memory is neither a parameter nor a temporary of the function.
/// - An operation on fragments has no instructions, or another statement accesses fragments.
pub(super) fn compact(
    func: &mut PrimFunc,
    launch: &Launch,
    temporaries: &[BufferId],
    tree: &mut Node,
) -> Result<Vec<PrivateOrShared>, Declined> {
    let mut accesses = Accesses { all: Vec::new(), named: Vec::new(), loops: Vec::new() };
    accesses.node(tree);
    let mut known = Known::new(&with_body(func, Stmt::nothing()));
    for axis in &launch.axes {
        known.enter_loop(axis.var, DType::INT64, &Expr::int(0), &axis.extent);
    }
    accesses.enter(func, &mut known, tree);
    let mut buffers: Vec<BufferId> = accesses.all.iter().map(|access| access.buffer).collect();
    buffers.sort();
    buffers.dedup();
    buffers.retain(|id| !func.buffer_params().any(|one| one == *id));
    let mut owned = Vec::new();
    let mut for_fragments = Vec::new();
    fragments::sources(func, tree, &mut for_fragments);
    let mut bases: FxHashMap<BufferId, Vec<Dim>> = FxHashMap::default();
    for id in buffers {
        let scope = func.buffer(id).scope;
        if scope == Scope::Global {
            match temporaries.contains(&id) {
                true => continue,
                false => {
                    let name = func.buffer(id).name;
                    return Err(Declined::because(format!(
                        "requires a scope of `{name}` other than global; found none"
                    )));
                }
            }
        }
        let own: Vec<&Access> = accesses.all.iter().filter(|access| access.buffer == id).collect();
        let is_named =
            |access: &Access| access.indices.iter().any(|index| accesses.named.iter().any(|named| index.uses(*named)));
        let region = match own.iter().any(|access| is_named(access)) {
            // Let values are not tracked, so an index that depends on one has an unknown range.
            true => whole(func, id),
            false => region(func, launch, &mut known, &own, scope == Scope::Shared).or_else(|_| whole(func, id)),
        }?;
        let mut shape: Vec<i64> = region.iter().map(|(_, extent)| *extent).collect();
        let is_shared = scope == Scope::Shared;
        let has_disjoint_writes =
            is_shared && disjoint::has_disjoint_writes(func, launch, &mut known, tree, (id, &region));
        if for_fragments.contains(&id) {
            let padding = fragments::padding(func, id, &shape);
            shape.last_mut().into_iter().for_each(|columns| *columns = columns.saturating_add(padding));
        }
        let elements = shape.iter().try_fold(1i64, |all, extent| all.checked_mul(*extent));
        let bytes = elements.and_then(|all| all.checked_mul(func.buffer(id).dtype.bytes().cast_signed()));
        let most = match scope {
            Scope::Shared => i64::MAX,
            Scope::Fragment(_) => LOCAL_BYTES * WARP,
            _ => LOCAL_BYTES,
        };
        let bytes = bytes.filter(|bytes| *bytes <= most);
        let bytes = bytes.ok_or_else(|| {
            let name = func.buffer(id).name;
            Declined::because(format!("requires at most {most} bytes for `{name}`; found more"))
        })?;
        owned.push(PrivateOrShared { id, is_shared, has_disjoint_writes, bytes });
        func.buffers[id.0 as usize].shape = shape.into_iter().map(Expr::int).collect();
        bases.insert(id, region.into_iter().map(|(base, _)| base).collect());
    }
    let mut moving = Moving { known, bases };
    moving.node(tree);
    fragments::resolve(func, &mut moving.known, tree)?;
    vectors::find(func, launch, &mut moving.known, tree);
    let local: Vec<BufferId> = owned.iter().filter(|one| !one.is_shared).map(|one| one.id).collect();
    unroll(tree, &local);
    Ok(owned)
}

/// Returns the whole buffer as the region; declines a buffer of symbolic shape.
fn whole(func: &PrimFunc, id: BufferId) -> Result<Vec<(Dim, i64)>, Declined> {
    let extents = func.buffer(id).shape.iter().map(|extent| Some((Dim::constant(0), extent.as_int()?.max(0))));
    let name = func.buffer(id).name;
    let unknown =
        || Declined::because(format!("requires a constant bound of the accessed region of `{name}`; found none"));
    extents.collect::<Option<_>>().ok_or_else(unknown)
}

/// Returns the accessed region: begin and extent for each axis of the buffer.
///
/// Loops that all accesses have in common and block axes do not widen it, nor do thread axes of a private buffer: there
/// is a separate buffer for each thread (or warp). For example, `S[bx * 32 + tx]` with 32 threads accesses begin
/// `bx * 32` and extent 32 of a shared buffer, but begin `bx * 32 + tx` and extent 1 of a private one. Declines if it
/// finds no constant extent, or no expression for an index relative to the begin.
fn region(
    func: &PrimFunc,
    launch: &Launch,
    known: &mut Known,
    accesses: &[&Access],
    is_shared: bool,
) -> Result<Vec<(Dim, i64)>, Declined> {
    let unknown = || Declined::because("requires a constant bound of the accessed region; found none");
    let Some(first) = accesses.first() else { return Ok(Vec::new()) };
    let shared_loops =
        |a: &[(VarId, Values)], b: &[(VarId, Values)]| a.iter().zip(b).take_while(|(a, b)| a.0 == b.0).count();
    let common = accesses.iter().map(|other| shared_loops(&first.loops, &other.loops)).min().unwrap_or(0);
    let mut region: Vec<(Dim, i64, i64)> = Vec::new();
    for access in accesses {
        let mut moving: FxHashMap<VarId, Values> = access.loops[common..].iter().copied().collect();
        if is_shared {
            moving.extend(launch.lanes().map(|axis| (axis.var, from_zero(&axis.extent))));
        }
        for (at, index) in access.indices.iter().enumerate() {
            let simple = known.dim(index);
            let simple = known.expr(&simple, index.dtype());
            let simple = simple.and_then(|simple| span(known, &simple, &moving));
            let (base, low, high) = simple.or_else(|| span(known, index, &moving)).ok_or_else(unknown)?;
            match region.get_mut(at) {
                None => region.push((base, low, high)),
                Some((of, least, most)) => {
                    let disjoint = (&base - &*of).as_constant().ok_or_else(unknown)?;
                    *least = (*least).min(low.checked_add(disjoint).ok_or_else(unknown)?);
                    *most = (*most).max(high.checked_add(disjoint).ok_or_else(unknown)?);
                }
            }
        }
    }
    let shape = &func.buffer(first.buffer).shape;
    let regions = region.into_iter().zip(shape).map(|((base, low, high), extent)| {
        let length = (high - low).checked_add(1)?;
        match extent.as_int() {
            // The region is no smaller than the buffer.
            Some(extent) if extent <= length => Some((Dim::constant(0), extent)),
            _ => Some((&base + &Dim::constant(low), length)),
        }
    });
    regions.collect::<Option<_>>().ok_or_else(unknown)
}

/// Splits an index into a base, which is constant while the loops of `moving` run, and a lower and an upper bound of
/// the value that these loops add to it. Returns `None` if it finds no such bounds.
///
/// For example, `bx * 32 + tx` while `tx` takes 32 values has base `bx * 32` and the range 0 to 31.
fn span(known: &mut Known, index: &Expr, moving: &FxHashMap<VarId, Values>) -> Option<(Dim, i64, i64)> {
    if index.has_load() {
        return None;
    }
    if !index.any(&|part| matches!(part, Expr::Var { var, .. } if moving.contains_key(var))) {
        return Some((known.dim(index), 0, 0));
    }
    let none = Dim::constant(0);
    match index {
        Expr::Var { var, .. } => {
            let (low, high) = (*moving.get(var)?)?;
            Some((none, low, high))
        }
        Expr::Cast { value, .. } | Expr::Checked { index: value, .. } => span(known, value, moving),
        Expr::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), left, right } => {
            let (a, low_a, high_a) = span(known, left, moving)?;
            let (b, low_b, high_b) = span(known, right, moving)?;
            match op {
                BinaryOp::Add => Some((&a + &b, low_a.checked_add(low_b)?, high_a.checked_add(high_b)?)),
                _ => Some((&a - &b, low_a.checked_sub(high_b)?, high_a.checked_sub(low_b)?)),
            }
        }
        Expr::Binary { op: BinaryOp::Mul, left, right } => {
            let (factor, value) = match (left.as_int(), right.as_int()) {
                (Some(factor), _) => (factor, right),
                (_, Some(factor)) => (factor, left),
                _ => return None,
            };
            let (base, low, high) = span(known, value, moving)?;
            let (a, b) = (low.checked_mul(factor)?, high.checked_mul(factor)?);
            Some((&base * &Dim::constant(factor), a.min(b), a.max(b)))
        }
        Expr::Binary { op: op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), left, right } => {
            let by = right.as_int().filter(|by| *by > 0)?;
            let (base, low, high) = span(known, left, moving)?;
            // A multiple of the divisor adds a whole quotient to a division, and nothing to a remainder.
            let rest = base.constant_part();
            let multiple = &base - &Dim::constant(rest);
            if multiple.is_error() || !is_multiple(&multiple, by) {
                return None;
            }
            let (low, high) = (low.checked_add(rest)?, high.checked_add(rest)?);
            match op {
                BinaryOp::FloorDiv => {
                    Some((multiple.floor_div(&Dim::constant(by)), low.div_euclid(by), high.div_euclid(by)))
                }
                _ if low.div_euclid(by) == high.div_euclid(by) => Some((none, low.rem_euclid(by), high.rem_euclid(by))),
                _ => Some((none, 0, by - 1)),
            }
        }
        _ => None,
    }
}

/// The least and the largest value of a loop variable; `None` if they are not constants.
type Values = Option<(i64, i64)>;

/// Returns the values of a loop with this start and number of iterations; without iterations, only the start.
fn values(start: &Expr, extent: &Expr) -> Values {
    let (start, extent) = (start.as_int()?, extent.as_int()?);
    Some((start, start.checked_add(extent.max(1) - 1)?))
}

/// Returns the values of a loop that starts at 0.
fn from_zero(extent: &Expr) -> Values {
    values(&Expr::int(0), extent)
}

/// The search for the accesses in a tree.
struct Accesses {
    /// The accesses found so far.
    all: Vec<Access>,
    /// The variables of let values.
    named: Vec<VarId>,
    /// The loops around the current node, outermost first.
    loops: Vec<(VarId, Values)>,
}

impl Accesses {
    fn node(&mut self, node: &Node) {
        match node {
            Node::Seq(nodes) => nodes.iter().for_each(|node| self.node(node)),
            Node::For { var, extent, start, body } => {
                [start, extent].into_iter().for_each(|expr| self.expr(expr));
                self.loops.push((*var, values(start, extent)));
                self.node(body);
                self.loops.pop();
            }
            Node::If { condition, then, otherwise } => {
                self.expr(condition);
                [Some(then), otherwise.as_ref()].into_iter().flatten().for_each(|side| self.node(side));
            }
            Node::While { condition: expr, body } => {
                self.expr(expr);
                self.node(body);
            }
            Node::Let { var, value, body } => {
                self.expr(value);
                self.named.push(*var);
                self.node(body);
            }
            Node::Leaf(stmt) => self.stmt(stmt),
            Node::Warp(warp) => {
                warp.condition.iter().for_each(|condition| self.expr(condition));
                self.stmt(&warp.stmt);
            }
            Node::Reduce(cross_thread) => {
                let depth = self.loops.len();
                self.loops.extend(cross_thread.loops.iter().map(|one| (one.var, from_zero(&one.extent))));
                cross_thread.reduced.iter().for_each(|one| self.expr(&one.element));
                cross_thread.counts.iter().for_each(|condition| self.expr(condition));
                self.loops.truncate(depth);
                let outer = cross_thread.loops.iter().filter(|one| one.kind == rx_tir::IterKind::Spatial);
                self.loops.extend(outer.map(|one| (one.var, from_zero(&one.extent))));
                cross_thread.stores.iter().for_each(|expr| self.expr(expr));
                for one in &cross_thread.reduced {
                    self.expr(&one.init);
                    self.access(one.buffer, &one.indices);
                }
                self.loops.truncate(depth);
            }
            Node::Copy(_) | Node::Barrier => {}
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        stmt.expressions().into_iter().for_each(|expr| self.expr(expr));
        if let Stmt::Store { buffer, indices, .. } = stmt {
            self.access(*buffer, indices);
        }
        if let Stmt::Let { var, .. } = stmt {
            self.named.push(*var);
        }
        let depth = self.loops.len();
        if let Stmt::For { var, start, extent, .. } = stmt {
            self.loops.push((*var, values(start, extent)));
        }
        stmt.children().into_iter().for_each(|child| self.stmt(child));
        self.loops.truncate(depth);
    }

    fn expr(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices, .. } = part {
                self.access(*buffer, indices);
            }
        });
    }

    fn access(&mut self, buffer: BufferId, indices: &[Expr]) {
        self.all.push(Access { buffer, indices: indices.to_vec(), loops: self.loops.clone() });
    }

    /// Enters all loops of a tree into the analyzer context.
    fn enter(&self, func: &PrimFunc, known: &mut Known, node: &Node) {
        fn of_loops(stmt: &Stmt, enter: &mut dyn FnMut(VarId, &Expr, &Expr)) {
            stmt.walk(&mut |part| {
                if let Stmt::For { var, start, extent, .. } = part {
                    enter(*var, start, extent);
                }
            });
        }
        let mut enter =
            |var: VarId, start: &Expr, extent: &Expr| known.enter_loop(var, func.var(var).dtype, start, extent);
        fn each(node: &Node, enter: &mut dyn FnMut(VarId, &Expr, &Expr)) {
            match node {
                Node::For { var, start, extent, .. } => enter(*var, start, extent),
                Node::Leaf(stmt) => of_loops(stmt, enter),
                Node::Warp(warp) => of_loops(&warp.stmt, enter),
                Node::Reduce(cross_thread) => {
                    cross_thread.loops.iter().for_each(|one| enter(one.var, &Expr::int(0), &one.extent));
                }
                _ => {}
            }
            node.children().into_iter().for_each(|child| each(child, enter));
        }
        each(node, &mut enter);
    }
}

/// The rewrite that makes the indices of an access relative to the begin of its buffer's region.
struct Moving {
    known: Known,
    /// The begin of each buffer's region, one for each axis.
    bases: FxHashMap<BufferId, Vec<Dim>>,
}

impl Moving {
    fn node(&mut self, node: &mut Node) {
        match node {
            Node::Seq(nodes) => nodes.iter_mut().for_each(|node| self.node(node)),
            Node::For { start, extent, body, .. } => {
                [start, extent].into_iter().for_each(|expr| *expr = self.expr(expr));
                self.node(body);
            }
            Node::If { condition, then, otherwise } => {
                *condition = self.expr(condition);
                [Some(then), otherwise.as_mut()].into_iter().flatten().for_each(|side| self.node(side));
            }
            Node::While { condition: expr, body } | Node::Let { value: expr, body, .. } => {
                *expr = self.expr(expr);
                self.node(body);
            }
            Node::Leaf(stmt) => *stmt = self.stmt(stmt),
            Node::Warp(warp) => {
                warp.stmt = self.stmt(&warp.stmt);
                warp.condition = warp.condition.as_ref().map(|condition| self.expr(condition));
            }
            Node::Reduce(cross_thread) => {
                for one in &mut cross_thread.reduced {
                    for expr in [&mut one.element, &mut one.init, &mut one.begin] {
                        *expr = self.expr(expr);
                    }
                    one.indices = self.indices(one.buffer, &one.indices);
                }
                for condition in [&mut cross_thread.counts, &mut cross_thread.stores] {
                    *condition = condition.as_ref().map(|condition| self.expr(condition));
                }
            }
            Node::Copy(_) | Node::Barrier => {}
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        // The second closure rewrites child statements and needs the same state as the first.
        let this = std::cell::RefCell::new(self);
        let moved = map_stmt_shallow(stmt, &mut |expr| this.borrow_mut().expr(expr), &mut |inner| {
            this.borrow_mut().stmt(inner)
        });
        match moved {
            Stmt::Store { buffer, indices, value, site } => {
                let indices = this.into_inner().indices(buffer, &indices);
                Stmt::Store { buffer, indices, value, site }
            }
            other => other,
        }
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        map_expr(expr, &mut |part| match part {
            Expr::Load { buffer, dtype, indices } => {
                let indices = self.indices(buffer, &indices);
                Expr::Load { buffer, dtype, indices }
            }
            other => other,
        })
    }

    /// Returns the indices of an access to a buffer relative to its region.
    fn indices(&mut self, buffer: BufferId, indices: &[Expr]) -> Vec<Expr> {
        let Some(bases) = self.bases.get(&buffer) else { return indices.to_vec() };
        let moved = indices.iter().zip(bases).map(|(index, base)| {
            let dtype = index.dtype();
            let distance = &self.known.dim(index) - base;
            self.known.expr(&distance, dtype).or_else(|| Some(index.clone() - self.known.expr(base, dtype)?))
        });
        // If the begin of the region has no expression, the indices stay.
        moved.collect::<Option<_>>().unwrap_or_else(|| indices.to_vec())
    }
}

/// Marks as unrolled, in the leaves of a tree, the serial and vectorized loops whose variable indexes a private buffer
/// and whose number of iterations is a constant of at most [`UNROLLED`].
fn unroll(node: &mut Node, local: &[BufferId]) {
    if let Node::Leaf(stmt) = node {
        *stmt = unrolled(stmt, local);
    }
    node.children_mut().into_iter().for_each(|child| unroll(child, local));
}

/// Marks the loops in a leaf's statement as unrolled, under the conditions of [`unroll`].
fn unrolled(stmt: &Stmt, local: &[BufferId]) -> Stmt {
    let inner = rx_tir::rewrite::map_children(stmt, &mut |child| unrolled(child, local));
    match inner {
        Stmt::For { var, start, extent, kind: LoopKind::Serial | LoopKind::Vectorized, body }
            if extent.as_int().is_some_and(|extent| extent <= UNROLLED) && chooses(&body, var, local) =>
        {
            Stmt::For { var, start, extent, kind: LoopKind::Unrolled, body }
        }
        other => other,
    }
}

/// Whether the loop's variable occurs in an index of an access to one of these buffers. The search covers the leaves of
/// the tree, the statements of fragment operations, and the elements and results of cross-thread reductions. It does
/// not cover vectorized copies, or other expressions of nodes, such as conditions and let values.
pub(super) fn node_chooses(node: &Node, var: VarId, local: &[BufferId]) -> bool {
    match node {
        Node::Leaf(stmt) => chooses(stmt, var, local),
        Node::Warp(warp) => chooses(&warp.stmt, var, local),
        Node::Reduce(cross_thread) => cross_thread.reduced.iter().any(|one| {
            chooses(&Stmt::Evaluate(one.element.clone()), var, local)
                || (local.contains(&one.buffer) && one.indices.iter().any(|index| index.uses(var)))
        }),
        node => node.children().into_iter().any(|child| node_chooses(child, var, local)),
    }
}

/// Whether the loop's variable occurs in an index of an access of the statement to one of these buffers.
fn chooses(stmt: &Stmt, var: VarId, local: &[BufferId]) -> bool {
    let chosen =
        |buffer: BufferId, indices: &[Expr]| local.contains(&buffer) && indices.iter().any(|index| index.uses(var));
    let reads = |part: &Expr| matches!(part, Expr::Load { buffer, indices, .. } if chosen(*buffer, indices));
    stmt.any(&|part| {
        matches!(part, Stmt::Store { buffer, indices, .. } if chosen(*buffer, indices))
            || part.expressions().into_iter().any(|expr| expr.any(&reads))
    })
}
