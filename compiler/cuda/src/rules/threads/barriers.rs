//! Barrier placement: inserts `__syncthreads()` between conflicting accesses of a block's threads to one buffer.
//!
//! ```text
//! S[tx] = A[tx]            S[tx] = A[tx]
//! B[tx] = S[127 - tx]  →   __syncthreads()
//!                          B[tx] = S[127 - tx]
//! ```
//!
//! Requires uniform starts and extents of loops with barriers or cross-thread reductions, and declines others; branches
//! and `while` loops of the tree are uniform already. Guarantees a barrier between two nodes that access one shared or
//! global buffer if at least one of them writes it. This includes loop-carried pairs: the end of an iteration precedes
//! the beginning of the next. There are two exceptions. A buffer that the kernel never reads needs no barrier, and two
//! disjoint writes need none between them (see `disjoint`).
//!
//! Reference: the TVM pass `ThreadSync` (`thread_storage_sync.cc`).

use super::Node;
use super::compact::PrivateOrShared;
use crate::rules::Declined;
use rustc_hash::FxHashSet;
use rx_tir::spmd::Varying;
use rx_tir::{BufferId, Effects, Expr, PrimFunc};

/// Returns the tree with barriers inserted. `buffers` are the block's private and shared buffers.
///
/// # Errors
/// A barrier or a cross-thread reduction would be in a loop whose start or extent may differ between threads.
pub(super) fn place(
    (func, varying): (&PrimFunc, &Varying),
    buffers: &[PrivateOrShared],
    tree: Node,
) -> Result<Node, Declined> {
    let mut seen = Effects::default();
    gather(&tree, &mut seen);
    // A buffer that is only read, or only written, needs no barrier.
    let is_seen = |id: &BufferId| !func.buffer(*id).scope.is_private() && seen.read.contains(id);
    let ordered: FxHashSet<BufferId> = seen.written.iter().filter(|id| is_seen(id)).copied().collect();
    let disjoint = buffers.iter().filter(|own| own.has_disjoint_writes).map(|own| own.id).collect();
    let placer = Placer { varying, ordered, disjoint };
    let tree = placer.node(tree, &mut Effects::default())?;
    Ok(tree)
}

/// Adds the buffers that a tree reads and writes to `into`.
fn gather(node: &Node, into: &mut Effects) {
    match node {
        Node::Seq(nodes) => nodes.iter().for_each(|node| gather(node, into)),
        Node::For { start, extent, body, .. } => {
            [start, extent].into_iter().for_each(|expr| into.expr(expr));
            gather(body, into);
        }
        Node::If { condition, then, otherwise } => {
            into.expr(condition);
            [Some(then), otherwise.as_ref()].into_iter().flatten().for_each(|side| gather(side, into));
        }
        Node::While { condition: expr, body } | Node::Let { value: expr, body, .. } => {
            into.expr(expr);
            gather(body, into);
        }
        Node::Leaf(stmt) => into.stmt(stmt),
        Node::Copy(copy) => copy.effects(into),
        Node::Warp(warp) => {
            into.stmt(&warp.stmt);
            warp.condition.iter().for_each(|condition| into.expr(condition));
        }
        Node::Reduce(cross_thread) => {
            cross_thread.counts.iter().chain(&cross_thread.stores).for_each(|expr| into.expr(expr));
            for one in &cross_thread.reduced {
                [&one.element, &one.init].into_iter().chain(&one.indices).for_each(|expr| into.expr(expr));
                into.written.insert(one.buffer);
            }
        }
        Node::Barrier => {}
    }
}

/// The walk that places barriers: visits a tree in execution order, with the reads and writes since the last barrier.
struct Placer<'l> {
    varying: &'l Varying,
    /// The shared and global buffers that the kernel both reads and writes.
    ordered: FxHashSet<BufferId>,
    /// The buffers with disjoint writes: a write after a write needs no barrier.
    disjoint: FxHashSet<BufferId>,
}

impl Placer<'_> {
    /// Whether the effects before a point conflict with those after it, so that a barrier is needed between them.
    fn conflicts_with(&self, before: &Effects, now: &Effects) -> bool {
        let again = |id: &&BufferId| before.written.contains(id) && !self.disjoint.contains(id);
        now.read.iter().any(|id| before.written.contains(id))
            || now.written.iter().any(|id| before.read.contains(id))
            || now.written.iter().any(|id| again(&id))
    }

    /// Returns the effects on the buffers of [`Placer::ordered`]; only these may need barriers.
    fn of_ordered(&self, effects: Effects) -> Effects {
        effects.of_only(|id| self.ordered.contains(&id))
    }

    /// Returns the node with barriers. `before` holds the effects that may have no barrier after them: up to the
    /// beginning of the node when the function is called, and up to its end when it returns.
    fn node(&self, node: Node, before: &mut Effects) -> Result<Node, Declined> {
        match node {
            Node::Seq(nodes) => {
                let placed = nodes.into_iter().map(|node| self.node(node, before));
                Ok(Node::Seq(placed.collect::<Result<_, _>>()?))
            }
            Node::For { var, start, extent, body } => {
                let in_front = self.in_front(&[&start, &extent], Some(&body), before);
                let body = Box::new(self.loop_body(*body, before)?);
                let differs = [&start, &extent].into_iter().any(|expr| !self.varying.is_uniform(expr));
                if differs && waits(&body) {
                    return Err(Declined::because(
                        "requires uniform extents of loops with barriers; found one that differs between threads",
                    ));
                }
                Ok(after_barrier(in_front, Node::For { var, start, extent, body }))
            }
            Node::While { condition, body } => {
                let in_front = self.in_front(&[&condition], Some(&body), before);
                let mut asked = Effects::default();
                asked.expr(&condition);
                let asked = self.of_ordered(asked);
                // The condition is evaluated after the body, and the body of the next iteration runs after that.
                let around = match asked.read.is_empty() {
                    true => *body,
                    false => Node::Seq(vec![Node::Barrier, *body, Node::Barrier]),
                };
                let body = Box::new(self.loop_body(around, before)?);
                before.add(&asked);
                Ok(after_barrier(in_front, Node::While { condition, body }))
            }
            Node::If { condition, then, otherwise } => {
                let in_front = self.in_front(&[&condition], None, before);
                let mut other = before.clone();
                let then = Box::new(self.node(*then, before)?);
                let otherwise = otherwise.map(|side| self.node(*side, &mut other)).transpose()?.map(Box::new);
                before.add(&other);
                Ok(after_barrier(in_front, Node::If { condition, then, otherwise }))
            }
            Node::Let { var, value, body } => {
                let in_front = self.in_front(&[&value], None, before);
                let body = Box::new(self.node(*body, before)?);
                Ok(after_barrier(in_front, Node::Let { var, value, body }))
            }
            Node::Barrier => {
                *before = Effects::default();
                Ok(Node::Barrier)
            }
            Node::Leaf(_) | Node::Copy(_) | Node::Warp(_) | Node::Reduce(_) => {
                let mut own = Effects::default();
                gather(&node, &mut own);
                let own = self.of_ordered(own);
                let needs = self.conflicts_with(before, &own);
                if needs {
                    *before = Effects::default();
                }
                before.add(&own);
                Ok(after_barrier(needs, node))
            }
        }
    }
}

impl Placer<'_> {
    /// Whether a barrier is needed before a node: whether an access of its expressions `asked` or, for a loop, of its
    /// `body` conflicts with an access in `before`. After this barrier, only loop-carried dependences and conflicts
    /// within an iteration need barriers in the body ([`Placer::loop_body`]).
    ///
    /// Also adds the effects of `asked` to `before`, which is cleared first if a barrier is needed.
    fn in_front(&self, asked: &[&Expr], body: Option<&Node>, before: &mut Effects) -> bool {
        let mut all = Effects::default();
        asked.iter().for_each(|expr| all.expr(expr));
        let mut own = all.clone();
        body.into_iter().for_each(|body| gather(body, &mut all));
        own = self.of_ordered(own);
        let conflicts_with = self.conflicts_with(before, &self.of_ordered(all));
        if conflicts_with {
            *before = Effects::default();
        }
        before.add(&own);
        conflicts_with
    }

    /// Places barriers in a loop body, including those for loop-carried dependences. An access in the body may conflict
    /// with an access before the loop, or with one in the previous iteration that no barrier follows. Which accesses no
    /// barrier follows depends on the barriers that are placed. So the barriers are placed again, with the accesses at
    /// the end of an iteration added to those before the loop, until nothing new is added.
    fn loop_body(&self, body: Node, before: &mut Effects) -> Result<Node, Declined> {
        let count = |effects: &Effects| effects.read.len() + effects.written.len();
        let mut start = before.clone();
        loop {
            let mut end = start.clone();
            let placed = self.node(body.clone(), &mut end)?;
            let known = count(&start);
            start.add(&end);
            if count(&start) == known {
                before.add(&end);
                return Ok(placed);
            }
        }
    }
}

/// Returns the node, with a barrier before it if `barrier`.
fn after_barrier(barrier: bool, node: Node) -> Node {
    if barrier { Node::Seq(vec![Node::Barrier, node]) } else { node }
}

/// Whether a tree contains a barrier. A cross-thread reduction counts as one, since it may contain one.
fn waits(node: &Node) -> bool {
    matches!(node, Node::Reduce(_) | Node::Barrier) || node.children().into_iter().any(waits)
}
