//! Where threads must wait for each other: between an access of one to memory that others see and a later access of another,
//! unless both only read (TVM: `thread_storage_sync`). In a loop the end is before the beginning.

use super::Node;
use super::compact::Own;
use crate::rules::Declined;
use rustc_hash::FxHashSet;
use rx_tir::spmd::Varying;
use rx_tir::{BufferId, Effects, Expr, PrimFunc};

/// The tree with barriers.
pub(super) fn place((func, varying): (&PrimFunc, &Varying), buffers: &[Own], tree: Node) -> Result<Node, Declined> {
    let mut seen = Effects::default();
    gather(&tree, &mut seen);
    // What is only read, or only written, needs no order.
    let is_seen = |id: &BufferId| !func.buffer(*id).scope.is_private() && seen.read.contains(id);
    let ordered: FxHashSet<BufferId> = seen.written.iter().filter(|id| is_seen(id)).copied().collect();
    let apart = buffers.iter().filter(|own| own.is_written_apart).map(|own| own.id).collect();
    let placer = Placer { varying, ordered, apart };
    let tree = placer.node(tree, &mut Effects::default())?;
    Ok(tree)
}

/// What a tree reads and writes.
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
        Node::Reduce(together) => {
            together.counts.iter().chain(&together.stores).for_each(|expr| into.expr(expr));
            for one in &together.reduced {
                [&one.element, &one.init].into_iter().chain(&one.indices).for_each(|expr| into.expr(expr));
                into.written.insert(one.buffer);
            }
        }
        Node::Barrier => {}
    }
}

/// Walks along a tree with what was read and written since the last barrier.
struct Placer<'l> {
    varying: &'l Varying,
    ordered: FxHashSet<BufferId>,
    /// Those whose writes need no order among themselves.
    apart: FxHashSet<BufferId>,
}

impl Placer<'_> {
    /// Whether threads wait between what was done before and what is done now.
    fn meets(&self, before: &Effects, now: &Effects) -> bool {
        let again = |id: &&BufferId| before.written.contains(id) && !self.apart.contains(id);
        now.read.iter().any(|id| before.written.contains(id))
            || now.written.iter().any(|id| before.read.contains(id))
            || now.written.iter().any(|id| again(&id))
    }

    fn of_ordered(&self, effects: Effects) -> Effects {
        effects.of_only(|id| self.ordered.contains(&id))
    }

    fn node(&self, node: Node, before: &mut Effects) -> Result<Node, Declined> {
        match node {
            Node::Seq(nodes) => {
                let placed = nodes.into_iter().map(|node| self.node(node, before));
                Ok(Node::Seq(placed.collect::<Result<_, _>>()?))
            }
            Node::For { var, start, extent, body } => {
                let in_front = self.in_front(&[&start, &extent], Some(&body), before);
                let body = Box::new(self.round(*body, before)?);
                let differs = [&start, &extent].into_iter().any(|expr| !self.varying.is_uniform(expr));
                if differs && waits(&body) {
                    return Err(Declined::because(
                        "threads wait for each other in a loop that they do not do equally often",
                    ));
                }
                Ok(behind(in_front, Node::For { var, start, extent, body }))
            }
            Node::While { condition, body } => {
                let in_front = self.in_front(&[&condition], Some(&body), before);
                let mut asked = Effects::default();
                asked.expr(&condition);
                let asked = self.of_ordered(asked);
                // The condition is asked again behind the body, and the body runs behind it.
                let around = match asked.read.is_empty() {
                    true => *body,
                    false => Node::Seq(vec![Node::Barrier, *body, Node::Barrier]),
                };
                let body = Box::new(self.round(around, before)?);
                before.add(&asked);
                Ok(behind(in_front, Node::While { condition, body }))
            }
            Node::If { condition, then, otherwise } => {
                let in_front = self.in_front(&[&condition], None, before);
                let mut other = before.clone();
                let then = Box::new(self.node(*then, before)?);
                let otherwise = otherwise.map(|side| self.node(*side, &mut other)).transpose()?.map(Box::new);
                before.add(&other);
                Ok(behind(in_front, Node::If { condition, then, otherwise }))
            }
            Node::Let { var, value, body } => {
                let in_front = self.in_front(&[&value], None, before);
                let body = Box::new(self.node(*body, before)?);
                Ok(behind(in_front, Node::Let { var, value, body }))
            }
            Node::Barrier => {
                *before = Effects::default();
                Ok(Node::Barrier)
            }
            Node::Leaf(_) | Node::Copy(_) | Node::Warp(_) | Node::Reduce(_) => {
                let mut own = Effects::default();
                gather(&node, &mut own);
                let own = self.of_ordered(own);
                let needs = self.meets(before, &own);
                if needs {
                    *before = Effects::default();
                }
                before.add(&own);
                Ok(behind(needs, node))
            }
        }
    }
}

impl Placer<'_> {
    /// Whether threads wait in front of a statement that reads `asked` and, of a loop, does `body`: one barrier there instead of
    /// one in each round.
    fn in_front(&self, asked: &[&Expr], body: Option<&Node>, before: &mut Effects) -> bool {
        let mut all = Effects::default();
        asked.iter().for_each(|expr| all.expr(expr));
        let mut own = all.clone();
        body.into_iter().for_each(|body| gather(body, &mut all));
        own = self.of_ordered(own);
        let meets = self.meets(before, &self.of_ordered(all));
        if meets {
            *before = Effects::default();
        }
        before.add(&own);
        meets
    }

    /// What a round of a loop does, behind itself as well as behind what stands in front of the loop.
    fn round(&self, body: Node, before: &mut Effects) -> Result<Node, Declined> {
        let mut around = before.clone();
        self.node(body.clone(), &mut around)?;
        around.add(before);
        let mut inside = around;
        let body = self.node(body, &mut inside)?;
        before.add(&inside);
        Ok(body)
    }
}

fn behind(barrier: bool, node: Node) -> Node {
    if barrier { Node::Seq(vec![Node::Barrier, node]) } else { node }
}

/// Whether threads wait for each other in it.
fn waits(node: &Node) -> bool {
    matches!(node, Node::Reduce(_) | Node::Barrier) || node.children().into_iter().any(waits)
}
