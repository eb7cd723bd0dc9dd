//! Recognizes kernels that only copy elements, for example transposes, slices, broadcasts and reshapes.

use rx_base::Dim;
use rx_loops::scope::Scope;
use rx_loops::{Affine, Loop, Nest};
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::{Expr, IterKind, Stmt};

/// A copy nest: `output[to] = input[from]` under plain spatial loops.
struct Move {
    loops: Vec<Loop>,
    output: BufferId,
    to: Vec<Expr>,
    input: BufferId,
    from: Vec<Expr>,
}

impl Move {
    fn of(func: &PrimFunc) -> Option<Move> {
        let nest = Nest::of(&func.body, func)?;
        let Stmt::Store { buffer, indices, value: Expr::Load { buffer: input, indices: from, .. }, .. } = nest.body
        else {
            return None;
        };
        // An index that depends on memory (a gather) is data-dependent, so the access is not a plain move.
        let is_known = |index: &Expr| {
            let mut known = true;
            index.walk(&mut |part| known &= !matches!(part, Expr::Load { .. }));
            known
        };
        let plain = nest.init.is_none() && nest.predicate.is_none() && buffer != input && from.iter().all(is_known);
        let spatial = nest.loops.iter().all(|inner| inner.kind == IterKind::Spatial);
        (plain && spatial).then_some(Move { loops: nest.loops, output: buffer, to: indices, input, from })
    }
}

/// Whether a kernel is one nest that only copies elements, loaded at indices that do not depend on memory.
pub(super) fn is_move(func: &PrimFunc) -> bool {
    Move::of(func).is_some()
}

/// Whether a kernel's output holds all elements of its input in the same row-major order, so that the kernel can be
/// replaced by a view.
pub(super) fn is_view(func: &PrimFunc) -> bool {
    let Some(Move { loops, output, to, input, from }) = Move::of(func) else { return false };
    let mut scope = Scope::new(func);
    let mut count = |extents: &mut dyn Iterator<Item = &Expr>| {
        extents.fold(Dim::constant(1), |all, extent| &all * &scope.dim(extent))
    };
    let iterations = count(&mut loops.iter().map(|inner| &inner.extent));
    let [elements, all] = [output, input].map(|buffer| count(&mut func.buffer(buffer).shape.iter()));
    let is_plain = |buffer: BufferId| func.buffer(buffer).strides.is_none();
    let same = |a: &Dim, b: &Dim| !a.is_error() && a == b;
    if !same(&iterations, &elements) || !same(&elements, &all) || !is_plain(output) || !is_plain(input) {
        return false;
    }
    let places = [(output, &to), (input, &from)].map(|(buffer, at)| Affine::of(func, &loops, buffer, at));
    let [Some(to), Some(from)] = places else { return false };
    let moves = |inner: &Loop| inner.extent.as_int() != Some(1);
    to.base == from.base
        && loops.iter().filter(|inner| moves(inner)).all(|inner| to.stride(inner.var) == from.stride(inner.var))
}
