//! Finds shared buffers with disjoint writes: each element is written by one thread only, or, if fragment stores write
//! the buffer, by one warp only. A barrier between two writes of such a buffer is unnecessary (see `barriers`).

use super::enumeration::{self, Loop};
use super::{Launch, Node};
use rustc_hash::FxHashMap;
use rx_base::{DType, Dim};
use rx_loops::scope::Scope as Known;
use rx_tir::rewrite::substitute;
use rx_tir::{BufferId, Expr, PrimFunc, Stmt, VarId, WARP};

/// Whether it is proved that no two threads of a block (for a fragment store: no two warps) write the same element of a
/// shared buffer, of which `region` (begin and extent of each axis) is accessed.
///
/// Requires that exactly one store and no cross-thread reduction writes the buffer. Enumerates all threads and all
/// values of the loops that the index depends on; guards are ignored. A loop that the index does not depend on needs no
/// enumeration: each thread only writes its elements again. An index that uses a let value or a loaded value is not
/// proved, since the value may be another one in each iteration.
///
/// For example, `S[tx * 4 + i]` with `i < 4` is disjoint; `S[tx * 3 + i]` is not, as thread 0 at `i = 3` and thread 1
/// at `i = 0` both write element 3.
pub(super) fn has_disjoint_writes(
    func: &PrimFunc,
    launch: &Launch,
    known: &mut Known,
    tree: &Node,
    (id, region): (BufferId, &[(Dim, i64)]),
) -> bool {
    let mut writers = Writers { of: id, found: Vec::new(), loops: Vec::new(), named: Vec::new(), is_other: false };
    writers.node(tree);
    let [writer] = &writers.found[..] else { return false };
    // Such a value is no constant offset, which would cancel out below.
    let may_change = |index: &Expr| index.has_load() || writers.named.iter().any(|named| index.uses(*named));
    if writers.is_other || writer.indices.iter().any(may_change) {
        return false;
    }
    // The lanes of a warp write a fragment together, so `threadIdx.x` is not enumerated if it is a single warp.
    let mut threads = Loop::threads(launch);
    if writer.is_warp
        && let Some(lanes) = launch.axis("threadIdx.x")
    {
        if lanes.extent.as_int().is_none_or(|extent| extent > WARP) {
            return false;
        }
        threads.retain(|one| one.var != lanes.var);
    }
    let mut position = Dim::constant(0);
    for (index, (begin, extent)) in writer.indices.iter().zip(region) {
        position = &(&position * &Dim::constant(*extent)) + &(&known.dim(index) - begin);
    }
    let Some(position) = known.expr(&position, DType::INT64) else { return false };
    let is_used = |one: &&Loop| position.uses(one.var);
    let inner = writer.loops.iter().filter(is_used).cloned();
    let all: Vec<Loop> = threads.iter().cloned().chain(inner).collect();
    let zero = |var: VarId| {
        let is_moving = all.iter().any(|one| one.var == var);
        is_moving.then(|| Expr::Int { value: 0, dtype: func.var(var).dtype })
    };
    // An offset that is the same for all threads and iterations cancels out.
    let distance = &known.dim(&position) - &known.dim(&substitute(&position, &zero));
    let Some(distance) = known.expr(&distance, DType::INT64) else { return false };
    let iterations = all.iter().skip(threads.len()).map(|one| one.extent.unwrap_or(1).max(1));
    let inner = iterations.fold(1i64, i64::saturating_mul);
    let mut owners: FxHashMap<i64, i64> = FxHashMap::default();
    enumeration::all(&distance, &all, &mut |number, element| {
        let owner = number / inner;
        *owners.entry(element).or_insert(owner) == owner
    })
}

/// A store to the buffer.
struct Writer {
    /// The indices, one for each axis of the buffer.
    indices: Vec<Expr>,
    /// The loops around the store, outermost first.
    loops: Vec<Loop>,
    /// Whether the threads of a warp store a fragment together.
    is_warp: bool,
}

/// The search for the stores to one buffer in a tree.
struct Writers {
    /// The buffer.
    of: BufferId,
    /// The stores found so far.
    found: Vec<Writer>,
    /// The loops around the current node, outermost first.
    loops: Vec<Loop>,
    /// The variables of let values.
    named: Vec<VarId>,
    /// Whether a node other than a plain store or a fragment store writes it: a cross-thread reduction.
    is_other: bool,
}

impl Writers {
    fn node(&mut self, node: &Node) {
        let depth = self.loops.len();
        match node {
            Node::For { var, start, extent, .. } => self.loops.push(Loop::new(*var, start, extent)),
            Node::Let { var, .. } => self.named.push(*var),
            Node::Leaf(stmt) => self.stmt(stmt, false),
            Node::Warp(warp) => self.stmt(&warp.stmt, true),
            Node::Reduce(cross_thread) => {
                self.is_other |= cross_thread.reduced.iter().any(|one| one.buffer == self.of);
            }
            _ => {}
        }
        node.children().into_iter().for_each(|child| self.node(child));
        self.loops.truncate(depth);
    }

    fn stmt(&mut self, stmt: &Stmt, is_warp: bool) {
        let depth = self.loops.len();
        match stmt {
            Stmt::Store { buffer, indices, .. } if *buffer == self.of => {
                self.found.push(Writer { indices: indices.clone(), loops: self.loops.clone(), is_warp });
            }
            Stmt::For { var, start, extent, .. } => {
                self.loops.push(Loop::new(*var, start, extent));
            }
            Stmt::Let { var, .. } => self.named.push(*var),
            _ => {}
        }
        stmt.children().into_iter().for_each(|child| self.stmt(child, is_warp));
        self.loops.truncate(depth);
    }
}
