//! Where threads must wait for each other: between an access of one to memory that others see and a later access of another,
//! unless both only read (TVM: `thread_storage_sync`). In a loop the end is before the beginning.

use super::{Launch, Node};
use crate::rules::Declined;
use rustc_hash::FxHashSet;
use rx_tir::{BufferId, Expr, PrimFunc, Scope, Stmt};

/// The tree with barriers.
pub(super) fn place(func: &PrimFunc, launch: &Launch, tree: Node) -> Result<Node, Declined> {
    let mut seen = Effects::default();
    gather(&tree, &mut seen);
    // What is only read, or only written, needs no order.
    let is_seen = |id: &BufferId| func.buffer(*id).scope != Scope::Local && seen.read.contains(id);
    let ordered: FxHashSet<BufferId> = seen.written.iter().filter(|id| is_seen(id)).copied().collect();
    let placer = Placer { launch, ordered };
    let tree = placer.node(tree, &mut Effects::default())?;
    Ok(tree)
}

/// Buffers that were read and written since the last barrier.
#[derive(Clone, Debug, Default)]
struct Effects {
    read: FxHashSet<BufferId>,
    written: FxHashSet<BufferId>,
}

impl Effects {
    fn meets(&self, later: &Effects) -> bool {
        later.read.iter().any(|id| self.written.contains(id))
            || later.written.iter().any(|id| self.read.contains(id) || self.written.contains(id))
    }

    fn add(&mut self, other: &Effects) {
        self.read.extend(&other.read);
        self.written.extend(&other.written);
    }

    fn expr(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, .. } = part {
                self.read.insert(*buffer);
            }
        });
    }

    fn stmt(&mut self, stmt: &Stmt) {
        stmt.walk(&mut |part| {
            if let Stmt::Store { buffer, .. } = part {
                self.written.insert(*buffer);
            }
            part.expressions().into_iter().for_each(|expr| self.expr(expr));
        });
    }

    fn retain(mut self, ordered: &FxHashSet<BufferId>) -> Effects {
        self.read.retain(|id| ordered.contains(id));
        self.written.retain(|id| ordered.contains(id));
        self
    }
}

/// What a tree reads and writes.
fn gather(node: &Node, into: &mut Effects) {
    match node {
        Node::Seq(nodes) => nodes.iter().for_each(|node| gather(node, into)),
        Node::For { start, extent, body, .. } => {
            [start, extent].into_iter().for_each(|expr| into.expr(expr));
            gather(body, into);
        }
        Node::Leaf(stmt) => into.stmt(stmt),
        Node::Reduce(together) => {
            into.expr(&together.reduction.value);
            together
                .reduction
                .init
                .iter()
                .chain(&together.counts)
                .chain(&together.stores)
                .for_each(|expr| into.expr(expr));
            into.written.insert(together.reduction.buffer);
        }
        Node::Barrier => {}
    }
}

struct Placer<'l> {
    launch: &'l Launch,
    ordered: FxHashSet<BufferId>,
}

impl Placer<'_> {
    fn node(&self, node: Node, before: &mut Effects) -> Result<Node, Declined> {
        match node {
            Node::Seq(nodes) => {
                let placed = nodes.into_iter().map(|node| self.node(node, before));
                Ok(Node::Seq(placed.collect::<Result<_, _>>()?))
            }
            Node::For { var, start, extent, body } => {
                let mut all = Effects::default();
                gather(&body, &mut all);
                // One barrier in front of the loop instead of one in each round.
                let in_front = before.meets(&all.retain(&self.ordered));
                if in_front {
                    *before = Effects::default();
                }
                let mut around = before.clone();
                self.node((*body).clone(), &mut around)?;
                around.add(before);
                let mut inside = around;
                let body = Box::new(self.node(*body, &mut inside)?);
                let mut differs = false;
                for expr in [&start, &extent] {
                    expr.walk(&mut |part| differs |= matches!(part, Expr::Load { .. } | Expr::Checked { .. }));
                    differs |= self.launch.is_of_threads(expr);
                }
                if differs && waits(&body) {
                    return Err(Declined::because(
                        "threads wait for each other in a loop that they do not do equally often",
                    ));
                }
                before.add(&inside);
                let node = Node::For { var, start, extent, body };
                Ok(if in_front { Node::Seq(vec![Node::Barrier, node]) } else { node })
            }
            Node::Barrier => {
                *before = Effects::default();
                Ok(Node::Barrier)
            }
            Node::Leaf(_) | Node::Reduce(_) => {
                let mut own = Effects::default();
                gather(&node, &mut own);
                let own = own.retain(&self.ordered);
                let needs = before.meets(&own);
                if needs {
                    *before = Effects::default();
                }
                before.add(&own);
                Ok(if needs { Node::Seq(vec![Node::Barrier, node]) } else { node })
            }
        }
    }
}

/// Whether threads wait for each other in it.
fn waits(node: &Node) -> bool {
    match node {
        Node::Seq(nodes) => nodes.iter().any(waits),
        Node::For { body, .. } => waits(body),
        Node::Leaf(_) => false,
        Node::Reduce(_) | Node::Barrier => true,
    }
}
