//! Shared buffers in which each element has one thread that writes it: their writes need no order among themselves.

use super::{Launch, Node};
use crate::injective::{Loop, determined};
use rx_base::{DType, Dim};
use rx_schedule::scope::Scope as Known;
use rx_tir::{BufferId, Expr, PrimFunc, Stmt, VarId};

/// Whether no two threads of a block write one element of a buffer of this shape: one statement writes it, whose index tells
/// threads and the loops that it is made of apart. A loop that it is not made of has each thread write its own elements again.
pub(super) fn is_written_apart(
    func: &PrimFunc,
    launch: &Launch,
    known: &mut Known,
    tree: &Node,
    (id, shape): (BufferId, &[i64]),
) -> bool {
    let mut writers = Writers { of: id, found: Vec::new(), loops: Vec::new(), is_other: false };
    writers.node(tree);
    let [writer] = &writers.found[..] else { return false };
    if writers.is_other {
        return false;
    }
    let mut position = Dim::constant(0);
    for (index, extent) in writer.indices.iter().zip(shape) {
        position = &(&position * &Dim::constant(*extent)) + &known.dim(index);
    }
    let Some(position) = known.expr(&position, DType::INT64) else { return false };
    // The threads of a warp share what it writes by rows and columns.
    let lanes = launch.lanes().filter(|axis| axis.extent.as_int() != Some(1));
    let lanes = lanes.filter(|axis| !(writer.is_warp && *axis.tag == *"threadIdx.x"));
    let threads = lanes.map(|axis| Loop { var: axis.var, start: Expr::int(0), extent: axis.extent.clone() });
    let inner = writer.loops.iter().filter(|one| position.uses(one.var)).cloned();
    let all: Vec<Loop> = threads.chain(inner).collect();
    let is_uniform = |var: VarId| {
        launch.blocks().any(|axis| axis.var == var)
            || func.scalar_params().any(|one| one == var)
            || func.symbols.contains(&var)
    };
    let mut is_known = true;
    position.walk(&mut |part| {
        is_known &= match part {
            Expr::Var { var, .. } => is_uniform(*var) || all.iter().any(|one| one.var == *var),
            Expr::Load { .. } | Expr::Call { .. } => false,
            _ => true,
        }
    });
    is_known && determined(&[position], &all.iter().collect::<Vec<_>>()).into_iter().all(|is_told| is_told)
}

/// A store, and the loops around it.
struct Writer {
    indices: Vec<Expr>,
    loops: Vec<Loop>,
    is_warp: bool,
}

struct Writers {
    of: BufferId,
    found: Vec<Writer>,
    loops: Vec<Loop>,
    /// It is written in another form.
    is_other: bool,
}

impl Writers {
    fn node(&mut self, node: &Node) {
        match node {
            Node::Seq(nodes) => nodes.iter().for_each(|node| self.node(node)),
            Node::For { var, start, extent, body } => {
                self.loops.push(Loop { var: *var, start: start.clone(), extent: extent.clone() });
                self.node(body);
                self.loops.pop();
            }
            Node::If { then, otherwise, .. } => {
                [Some(then), otherwise.as_ref()].into_iter().flatten().for_each(|side| self.node(side));
            }
            Node::While { body, .. } | Node::Let { body, .. } => self.node(body),
            Node::Leaf(stmt) => self.stmt(stmt, false),
            Node::Warp(warp) => self.stmt(&warp.stmt, true),
            Node::Reduce(together) => self.is_other |= together.reduction.buffer == self.of,
            Node::Barrier => {}
        }
    }

    fn stmt(&mut self, stmt: &Stmt, is_warp: bool) {
        let depth = self.loops.len();
        match stmt {
            Stmt::Store { buffer, indices, .. } if *buffer == self.of => {
                self.found.push(Writer { indices: indices.clone(), loops: self.loops.clone(), is_warp });
            }
            Stmt::For { var, start, extent, .. } => {
                self.loops.push(Loop { var: *var, start: start.clone(), extent: extent.clone() });
            }
            _ => {}
        }
        stmt.children().into_iter().for_each(|child| self.stmt(child, is_warp));
        self.loops.truncate(depth);
    }
}
