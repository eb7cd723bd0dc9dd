//! Vectorized copies: replaces a `T.vectorized` loop that copies contiguous elements by one wide load and one wide
//! store.
//!
//! ```text
//! for v in T.vectorized(4):                       *(rx_pack<float, 4>*)&S[tx * 4] =
//!     S[tx * 4 + v] = A[bx * 128 + tx * 4 + v]  →     *(const rx_pack<float, 4>*)&A[bx * 128 + tx * 4];
//! ```
//!
//! Requires 2, 4, 8 or 16 elements of 4, 8 or 16 bytes in all, two different buffers of the same dtype that are not
//! private and have no strides, contiguous elements that begin at a multiple of the width for all threads and
//! iterations, and conditions that are the same for all lanes. Buffers begin at multiples of 16 bytes.
//!
//! Reference: the TVM pass `VectorizeLoop`.

use super::enumeration::{self, Loop};
use super::{Launch, Node};
use crate::printer::{Kernel, types};
use rx_base::{DType, Dim};
use rx_loops::affine::is_multiple;
use rx_loops::scope::Scope as Known;
use rx_tir::rewrite::substitute;
use rx_tir::{Buffer, BufferId, CompareOp, Effects, Expr, LoopKind, PrimFunc, Stmt, VarId};

/// Limit of the bytes of a load or a store.
const MOST_BYTES: i64 = 16;

/// A copy of contiguous elements by one thread.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Copy {
    /// Predicate for making the copy; `None`: all threads make it.
    condition: Option<Expr>,
    /// The number of elements.
    lanes: i64,
    /// Buffer and indices of the first element, of the target and of the source.
    to: (BufferId, Vec<Expr>),
    from: (BufferId, Vec<Expr>),
    /// For a copied `select(condition, source, constant)`, the condition and the constant.
    choice: Option<(Expr, Expr)>,
}

impl Copy {
    /// Adds the buffers that the copy reads and writes to `into`.
    pub(super) fn effects(&self, into: &mut Effects) {
        let choice = self.choice.iter().flat_map(|(holds, other)| [holds, other]);
        let exprs = self.condition.iter().chain(choice).chain(&self.to.1).chain(&self.from.1);
        exprs.for_each(|expr| into.expr(expr));
        into.read.insert(self.from.0);
        into.written.insert(self.to.0);
    }

    /// Prints the copy. Relies on buffers that begin at multiples of 16 bytes.
    pub(super) fn print(&self, kernel: &mut Kernel<'_>, func: &PrimFunc) -> Result<(), String> {
        let dtype = func.buffer(self.to.0).dtype;
        kernel.need("rx_pack");
        kernel.need_storage(dtype);
        let storage =
            types::storage(dtype).ok_or_else(|| format!("requires a dtype that has a CUDA type; found {dtype}"))?;
        let pack = format!("rx_pack<{storage}, {}>", self.lanes);
        if let Some(condition) = &self.condition {
            let condition = kernel.operand(condition, 0)?;
            kernel.open(&format!("if ({condition}) {{"));
        }
        let (to, from) = (kernel.place(self.to.0, &self.to.1)?, kernel.place(self.from.0, &self.from.1)?);
        let copy = format!("*({pack}*)&{to} = *(const {pack}*)&{from};");
        match &self.choice {
            None => kernel.line(&copy),
            Some((holds, other)) => {
                let holds = kernel.operand(holds, 0)?;
                kernel.open(&format!("if ({holds}) {{"));
                kernel.line(&copy);
                kernel.outdent();
                kernel.open("} else {");
                let others = vec![kernel.stored(other, dtype)?; self.lanes as usize].join(", ");
                kernel.line(&format!("*({pack}*)&{to} = {pack}{{{{{others}}}}};"));
                kernel.close();
            }
        }
        if self.condition.is_some() {
            kernel.close();
        }
        Ok(())
    }
}

/// Replaces the leaves of a tree that are vectorized copies by [`Node::Copy`].
pub(super) fn find(func: &PrimFunc, launch: &Launch, known: &mut Known, tree: &mut Node) {
    Search { func, known, loops: Loop::threads(launch) }.node(tree);
}

/// The search for vectorized copies in a tree.
struct Search<'s> {
    func: &'s PrimFunc,
    known: &'s mut Known,
    /// The thread axes of the block, and the loops around the current node, outermost first.
    loops: Vec<Loop>,
}

impl Search<'_> {
    fn node(&mut self, node: &mut Node) {
        if let Node::Leaf(stmt) = node
            && let Some(copy) = self.copy(stmt)
        {
            *node = Node::Copy(Box::new(copy));
        }
        let depth = self.loops.len();
        if let Node::For { var, start, extent, .. } = node {
            self.loops.push(Loop::new(*var, start, extent));
        }
        node.children_mut().into_iter().for_each(|child| self.node(child));
        self.loops.truncate(depth);
    }

    /// Matches a vectorized copy.
    fn copy(&mut self, stmt: &Stmt) -> Option<Copy> {
        let (outer, stmt) = guarded(stmt);
        let Stmt::For { var, start, extent, kind: LoopKind::Vectorized, body } = stmt else { return None };
        let lanes = extent.as_int().filter(|lanes| start.as_int() == Some(0) && [2, 4, 8, 16].contains(lanes))?;
        let (inner, stmt) = guarded(body);
        let Stmt::Store { buffer, indices, value, .. } = stmt else { return None };
        let (choice, value) = match value {
            Expr::Select { condition, then, otherwise } => {
                let other = matches!(**otherwise, Expr::Float { .. } | Expr::Int { .. }).then_some(&**otherwise)?;
                (Some((&**condition, other)), &**then)
            }
            value => (None, value),
        };
        let Expr::Load { buffer: source, indices: from, dtype } = value else { return None };
        let target = self.func.buffer(*buffer);
        let bytes = dtype.bytes().cast_signed() * lanes;
        let is_whole = target.dtype == *dtype && [4, 8, MOST_BYTES].contains(&bytes) && buffer != source;
        // Registers are not addressable, so a private buffer has no wide accesses.
        let is_plain = |one: &Buffer| one.strides.is_none() && !one.scope.is_private();
        let is_plain = is_plain(target) && is_plain(self.func.buffer(*source));
        if !is_whole || !is_plain || !dtype.bits.is_multiple_of(8) {
            return None;
        }
        let first = |expr: &Expr| {
            substitute(expr, &|one| (one == *var).then_some(Expr::Int { value: 0, dtype: self.func.var(*var).dtype }))
        };
        let alike: Vec<&Expr> = inner.into_iter().chain(choice.map(|(holds, _)| holds)).collect();
        let firsts = |indices: &[Expr]| indices.iter().map(first).collect::<Vec<Expr>>();
        let copy = Copy {
            condition: outer.into_iter().chain(inner).map(first).reduce(Expr::and),
            lanes,
            to: (*buffer, firsts(indices)),
            from: (*source, firsts(from)),
            choice: choice.map(|(holds, other)| (first(holds), other.clone())),
        };
        self.loops.push(Loop { var: *var, extent: Some(lanes) });
        let is_copy = alike.iter().all(|condition| self.is_alike(condition, *var))
            && [(*buffer, indices), (*source, from)]
                .into_iter()
                .all(|(id, at)| self.is_side_by_side(id, at, *var, lanes));
        self.loops.pop();
        is_copy.then_some(copy)
    }

    /// Whether a condition is the same for all lanes of a vector.
    fn is_alike(&mut self, condition: &Expr, lane: VarId) -> bool {
        match condition {
            Expr::Binary { left, right, .. } if condition.dtype().is_bool() => {
                self.is_alike(left, lane) && self.is_alike(right, lane)
            }
            // `i < n`, where `i` counts the lanes and begins at a multiple of their number, and `n` is a multiple as
            // well.
            Expr::Compare { op: CompareOp::Lt, left, right }
                if !right.uses(lane) && self.apart(left, lane, &mut |apart, lane| apart == lane) =>
            {
                let lanes = self.loops.iter().find(|one| one.var == lane).and_then(|one| one.extent).unwrap_or(1);
                let right = self.known.dim(right);
                is_multiple(&right, lanes) && self.is_at_multiple(left, lane, lanes)
            }
            Expr::Compare { left, right, .. } => [left, right]
                .into_iter()
                .all(|side| !side.uses(lane) || self.apart(side, lane, &mut |apart, _| apart == 0)),
            other => !other.uses(lane),
        }
    }

    /// Whether the lanes access contiguous elements, the first at a multiple of `lanes`, for all threads and
    /// iterations.
    fn is_side_by_side(&mut self, id: BufferId, indices: &[Expr], lane: VarId, lanes: i64) -> bool {
        let is_read = |part: &Expr| matches!(part, Expr::Load { .. } | Expr::Checked { .. } | Expr::Call { .. });
        if indices.iter().any(|index| index.any(&is_read)) {
            return false;
        }
        let mut position = Dim::constant(0);
        for (index, extent) in indices.iter().zip(&self.func.buffer(id).shape) {
            let extent = self.known.dim(extent);
            position = &(&position * &extent) + &self.known.dim(index);
        }
        let Some(position) = self.known.expr(&position, DType::INT64) else { return false };
        self.apart(&position, lane, &mut |apart, lane| apart == lane) && self.is_at_multiple(&position, lane, lanes)
    }

    /// Whether a value that increases by 1 per lane is a multiple of `lanes` at the first lane, for all threads and
    /// iterations.
    fn is_at_multiple(&mut self, value: &Expr, lane: VarId, lanes: i64) -> bool {
        // Splits the value into a part that is the same for all threads and iterations, which is proved symbolically,
        // and a part that depends on these, which is enumerated.
        let zero = |var: VarId| {
            let is_moving = self.loops.iter().any(|one| one.var == var);
            is_moving.then(|| Expr::Int { value: 0, dtype: self.func.var(var).dtype })
        };
        let begin = self.known.dim(&substitute(value, &zero));
        let moved = &self.known.dim(value) - &begin;
        let Some(moved) = self.known.expr(&moved, DType::INT64) else { return false };
        is_multiple(&begin, lanes)
            && self.holds_everywhere(&moved, lane, &mut |place, lane| (place - lane) % lanes == 0)
    }

    /// Whether `holds(distance, lane)` is true for all threads, iterations and lanes, where `distance` is the value at
    /// the lane minus the value at lane 0.
    fn apart(&mut self, value: &Expr, lane: VarId, holds: &mut dyn FnMut(i64, i64) -> bool) -> bool {
        let zero = Expr::Int { value: 0, dtype: self.func.var(lane).dtype };
        let first = substitute(value, &|var| (var == lane).then(|| zero.clone()));
        let apart = &self.known.dim(value) - &self.known.dim(&first);
        let Some(apart) = self.known.expr(&apart, DType::INT64) else { return false };
        self.holds_everywhere(&apart, lane, holds)
    }

    /// Whether `holds(value, lane)` is true for all threads, iterations and lanes.
    fn holds_everywhere(&self, value: &Expr, lane: VarId, holds: &mut dyn FnMut(i64, i64) -> bool) -> bool {
        // The loop over lanes is innermost, so a point's number modulo the lanes is the lane.
        let is_used = |one: &&Loop| one.var != lane && value.uses(one.var);
        let mut loops: Vec<Loop> = self.loops.iter().filter(is_used).cloned().collect();
        let Some(last) = self.loops.iter().find(|one| one.var == lane) else { return false };
        let lanes = last.extent.unwrap_or(1).max(1);
        loops.push(last.clone());
        enumeration::all(value, &loops, &mut |number, value| holds(value, number % lanes))
    }
}

/// Splits a statement into the condition of an `if` without `else` around it, if there is one, and the statement
/// inside.
fn guarded(stmt: &Stmt) -> (Option<&Expr>, &Stmt) {
    match stmt {
        Stmt::If { condition, then, otherwise: None } => (Some(condition), then),
        other => (None, other),
    }
}
