//! View elimination: rewrites a kernel that reads a view so that it reads the tensor before the view.
//!
//! ```text
//! x: [n, 32];  v: [n, 4, 8] = view(x)                                  # 1:n group
//! for i, j, k in (n, 4, 8): y[i, j, k] = f(v[i, j, k])   →   ... y[i, j, k] = f(x[i, j * 8 + k])
//!
//! x: [n, 4, 8];  v: [n, 32] = view(x)                                  # n:1 group
//! for i, j in (n, 32): y[i, j] = f(v[i, j])              →   for i, a, b in (n, 4, 8): y[i, a * 8 + b] = f(x[i, a, b])
//! ```
//!
//! Both shapes are partitioned into the smallest groups of dims with equal element counts (MLIR calls them
//! reassociation groups). Where one dim of the tensor is several dims of the view, its index is composed of theirs.
//! Where several dims are one, the loop over the view's dim is split. Guarantees that no index is divided: a kernel
//! that would need a division is not rewritten.
//!
//! Requires a buffer without strides. In an n:1 group, all extents of the tensor but the first must be positive
//! constants. A loop that is split must bind one block axis directly. Its extent must be the extent of the view's dim,
//! or a constant that is a multiple of the product of these constants.

use rustc_hash::FxHashMap;
use rx_base::Dim;
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, map_stmt, map_stmt_shallow, substitute};
use rx_tir::{Block, Expr, Iter, Stmt};
use std::ops::Range;

/// A reassociation group of a reshape: dims `from` of the tensor have as many elements as dims `to` of the view. At
/// least one of the two ranges has length 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The dims of the tensor, before the view.
    pub(super) from: Range<usize>,
    /// The dims of the view.
    pub(super) to: Range<usize>,
}

/// Rewrites the function to read its input `buffer` under the shape `from` instead of `to`. Returns `None`, for
/// example, where the shapes have no reassociation groups, a group has several dims of the view and `is_cut` is false,
/// the buffer has strides, or a read of the buffer cannot be rewritten (for example because an index would need a
/// division).
pub(super) fn reshaped(
    func: &PrimFunc,
    buffer: BufferId,
    (from, to): (&[Dim], &[Dim]),
    is_cut: bool,
) -> Option<PrimFunc> {
    let groups = groups(from, to)?;
    if func.buffer(buffer).strides.is_some() || !is_cut && groups.iter().any(|group| group.to.len() > 1) {
        return None;
    }
    let view = func.buffer(buffer).shape.clone();
    let mut reshaping = Reshaping { func: func.clone(), buffer, from, groups, view, failed: false };
    let body = reshaping.statement(&func.body);
    reshaping.func.body = body;
    let shape = reshaping.shape()?;
    reshaping.func.buffers[buffer.0 as usize].shape = shape;
    (!reshaping.failed).then_some(reshaping.func)
}

/// Partitions two shapes into reassociation groups; dims of extent 1 before, between and after the groups belong to
/// none. For example, `[n, 4, 8]` and `[n, 32]` give `n:n` and `[4, 8]:[32]`. Returns `None`, for example, where a
/// group would have several dims on both sides, or the element counts are not known to be equal.
pub(super) fn groups(from: &[Dim], to: &[Dim]) -> Option<Vec<Group>> {
    let product = |dims: &[Dim]| dims.iter().fold(Dim::constant(1), |all, dim| &all * dim);
    let is_one = |dim: &Dim| dim.as_constant() == Some(1);
    let (mut groups, mut at, mut to_at) = (Vec::new(), 0, 0);
    loop {
        at += from[at..].iter().take_while(|dim| is_one(dim)).count();
        to_at += to[to_at..].iter().take_while(|dim| is_one(dim)).count();
        if at == from.len() || to_at == to.len() {
            return (at == from.len() && to_at == to.len()).then_some(groups);
        }
        let (rest, to_rest) = (from.len() - at, to.len() - to_at);
        // Candidates, shortest first: one dim of the tensor and one or more of the view, then several of the tensor and
        // one of the view.
        let lengths = (1..=to_rest).map(|length| (1, length)).chain((2..=rest).map(|length| (length, 1)));
        let fits = |(length, to_length): &(usize, usize)| {
            let (a, b) = (product(&from[at..at + length]), product(&to[to_at..to_at + to_length]));
            !a.is_error() && a == b
        };
        let (length, to_length) = lengths.into_iter().find(fits)?;
        groups.push(Group { from: at..at + length, to: to_at..to_at + to_length });
        at += length;
        to_at += to_length;
    }
}

/// The rewrite of [`reshaped`], in progress.
struct Reshaping<'d> {
    func: PrimFunc,
    /// The buffer whose shape changes.
    buffer: BufferId,
    /// The shape before the view.
    from: &'d [Dim],
    groups: Vec<Group>,
    /// The shape of the view as expressions of the function.
    view: Vec<Expr>,
    /// Whether a load was found that cannot be rewritten.
    failed: bool,
}

/// The axes that each split axis is replaced by, outermost first, as pairs of value and extent.
pub(super) type Splits = FxHashMap<VarId, Vec<(Expr, Expr)>>;

/// The loops that replace a loop, outermost first, as pairs of variable and extent. A loop that is not split is its own
/// replacement.
pub(super) type NewLoops = Vec<(VarId, Expr)>;

impl Reshaping<'_> {
    /// Rewrites a statement. Sets `failed` where the buffer is read outside a nest, or in a nest that cannot be
    /// rewritten.
    fn statement(&mut self, stmt: &Stmt) -> Stmt {
        if let Some((loops, block)) = nest_of(stmt) {
            return self.nest(&loops, block).unwrap_or_else(|| {
                self.failed = true;
                stmt.clone()
            });
        }
        if stmt.expressions().into_iter().any(|expr| self.reads(expr)) {
            self.failed = true;
        }
        map_stmt_shallow(stmt, &mut Expr::clone, &mut |inner| self.statement(inner))
    }

    /// Whether an expression loads from the buffer.
    fn reads(&self, expr: &Expr) -> bool {
        let mut found = false;
        expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer, .. } if *buffer == self.buffer));
        found
    }

    /// Rewrites the loads of the buffer in a nest. Splits the loops over the view dims of n:1 groups. Returns `None`
    /// where the index of such a dim is neither a block axis nor a constant, or where an axis cannot be split or would
    /// have to be split in two ways.
    fn nest(&mut self, loops: &[(VarId, &Stmt)], block: &Block) -> Option<Stmt> {
        let mut indices: Vec<Vec<Expr>> = Vec::new();
        let mut collect = |expr: &Expr| {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices: at, .. } = part
                    && *buffer == self.buffer
                {
                    indices.push(at.clone());
                }
            });
        };
        block.predicate.iter().for_each(&mut collect);
        for part in block.init.iter().chain([&block.body]) {
            part.walk(&mut |stmt| stmt.expressions().into_iter().for_each(&mut collect));
        }
        let mut cuts: Vec<(VarId, Group)> = Vec::new();
        for at in &indices {
            for group in self.groups.clone().into_iter().filter(|group| group.from.len() > 1) {
                if let Expr::Var { var, .. } = at.get(group.to.start)? {
                    match cuts.iter().find(|(known, _)| known == var) {
                        Some((_, known)) if self.from[known.from.clone()] != self.from[group.from.clone()] => {
                            return None;
                        }
                        Some(_) => {}
                        None => cuts.push((*var, group)),
                    }
                }
            }
        }
        let (mut block, mut splits) = (block.clone(), Splits::default());
        let mut new_loops = uncut(loops);
        for (var, group) in cuts {
            self.cut(&mut block, (loops, &mut new_loops), (var, &group), &mut splits)?;
        }
        let mut failed = false;
        let rewritten = map_block(&block, &mut |expr| {
            let read = map_expr(expr, &mut |part| match part {
                Expr::Load { buffer, indices, dtype } if buffer == self.buffer => match self.indices(&indices, &splits)
                {
                    Some(indices) => Expr::Load { buffer, indices, dtype },
                    None => {
                        failed = true;
                        Expr::Load { buffer, indices, dtype }
                    }
                },
                other => other,
            });
            substitute(&read, &|var| splits.get(&var).and_then(|splits| joined(splits)))
        });
        if failed {
            return None;
        }
        in_loops(rewritten, loops, &new_loops)
    }

    /// Splits a block's axis and its loop along the tensor dims of an n:1 group.
    fn cut(
        &mut self,
        block: &mut Block,
        loops: (&[(VarId, &Stmt)], &mut [NewLoops]),
        (var, group): (VarId, &Group),
        splits: &mut Splits,
    ) -> Option<()> {
        let extent = block.iters.iter().find(|iter| iter.var == var)?.extent.clone();
        let extents = split_extents(&extent, &self.view[group.to.start], self.inner(group)?)?;
        splits.insert(var, cut(&mut self.func, block, loops, var, extents)?);
        Some(())
    }

    /// Returns [`inner`] of a group.
    fn inner(&self, group: &Group) -> Option<Vec<i64>> {
        inner(self.from, group)
    }

    /// Translates indices of the view to indices of the tensor.
    fn indices(&self, at: &[Expr], splits: &Splits) -> Option<Vec<Expr>> {
        let mut indices = vec![Expr::int(0); self.from.len()];
        for group in &self.groups {
            let view = at.get(group.to.clone())?;
            match (group.from.len(), view) {
                (1, [first, others @ ..]) => {
                    let extents = &self.view[group.to.start + 1..group.to.end];
                    let index = others.iter().zip(extents).fold(first.clone(), |all, (index, extent)| {
                        all * extent.clone().cast(index.dtype()) + index.clone()
                    });
                    indices[group.from.start] = index;
                }
                (_, [Expr::Var { var, .. }]) => {
                    for (slot, split) in indices[group.from.clone()].iter_mut().zip(splits.get(var)?) {
                        *slot = split.0.clone();
                    }
                }
                (_, [Expr::Int { value, dtype }]) => {
                    let mut rest = *value;
                    for (slot, extent) in indices[group.from.clone()].iter_mut().skip(1).zip(self.inner(group)?).rev() {
                        *slot = Expr::Int { value: rest.rem_euclid(extent), dtype: *dtype };
                        rest = rest.div_euclid(extent);
                    }
                    indices[group.from.start] = Expr::Int { value: rest, dtype: *dtype };
                }
                _ => return None,
            }
        }
        Some(indices)
    }

    /// Returns the shape before the view as expressions of the function.
    fn shape(&self) -> Option<Vec<Expr>> {
        let mut shape = vec![Expr::int(1); self.from.len()];
        for group in &self.groups {
            let view = &self.view[group.to.clone()];
            match group.from.len() {
                1 => shape[group.from.start] = view.iter().cloned().reduce(|a, b| a * b)?,
                _ => {
                    let extents = split_extents(view.first()?, view.first()?, self.inner(group)?)?;
                    shape[group.from.clone()].clone_from_slice(&extents);
                }
            }
        }
        Some(shape)
    }
}

/// Returns the extents of a group's tensor dims without the first. Returns `None` unless they are positive constants.
pub(super) fn inner(from: &[Dim], group: &Group) -> Option<Vec<i64>> {
    let dims = from.get(group.from.start + 1..group.from.end)?;
    dims.iter().map(|dim| dim.as_constant().filter(|extent| *extent > 0)).collect()
}

/// Returns the extents of the loops that a loop of the given extent is split into, outermost first. `inner` are all but
/// the first. `dim` is the extent of the view's dim: a symbolic extent must equal it. A constant extent must be a
/// multiple of the product of `inner`.
pub(super) fn split_extents(extent: &Expr, dim: &Expr, inner: Vec<i64>) -> Option<Vec<Expr>> {
    let dtype = extent.dtype();
    let below: i64 = inner.iter().try_fold(1i64, |all, extent| all.checked_mul(*extent))?;
    let outer = match extent.as_int() {
        Some(extent) if extent % below == 0 => Expr::Int { value: extent / below, dtype },
        None if extent == dim => extent.clone().floor_div(Expr::Int { value: below, dtype }),
        _ => return None,
    };
    Some(std::iter::once(outer).chain(inner.into_iter().map(|value| Expr::Int { value, dtype })).collect())
}

/// Composes the value of a split axis from the axes that replace it: `[(a, _), (b, 8)]` gives `a * 8 + b`.
pub(super) fn joined(splits: &[(Expr, Expr)]) -> Option<Expr> {
    let values = splits.iter().cloned();
    values
        .reduce(|(all, of), (split, extent)| (all * extent.clone().cast(split.dtype()) + split, of))
        .map(|(all, _)| all)
}

/// Returns each loop as its own replacement.
pub(super) fn uncut(loops: &[(VarId, &Stmt)]) -> Vec<NewLoops> {
    loops.iter().map(|(var, stmt)| vec![(*var, extent_of(stmt))]).collect()
}

/// Splits a block's axis and the loop that it is bound to into the given extents, outermost first. Returns the values
/// and extents of the new axes. Returns `None` unless the axis starts at 0 and is bound to the variable of a loop that
/// has the axis's extent, is not split yet, and is used by no other axis.
pub(super) fn cut(
    func: &mut PrimFunc,
    block: &mut Block,
    (loops, new_loops): (&[(VarId, &Stmt)], &mut [NewLoops]),
    var: VarId,
    extents: Vec<Expr>,
) -> Option<Vec<(Expr, Expr)>> {
    let at = block.iters.iter().position(|iter| iter.var == var)?;
    let iter = block.iters[at].clone();
    let Expr::Var { var: outer, .. } = iter.binding else { return None };
    let number = loops.iter().position(|(var, _)| *var == outer)?;
    let uses = block.iters.iter().filter(|other| other.binding.uses(outer)).count();
    let [(_, extent)] = &new_loops[number][..] else { return None };
    if uses != 1 || iter.start.as_int() != Some(0) || *extent != iter.extent {
        return None;
    }
    let (of_loop, of_iter) = (*func.var(outer), *func.var(var));
    let (mut cut_loops, mut iters, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for extent in extents {
        let own = func.add_var(of_loop.name, of_loop.dtype);
        let axis = func.add_var(of_iter.name, of_iter.dtype);
        let (start, binding) = (iter.start.clone(), func.var_expr(own));
        cut_loops.push((own, extent.clone()));
        values.push((func.var_expr(axis), extent.clone()));
        iters.push(Iter { var: axis, kind: iter.kind, start, extent, binding });
    }
    new_loops[number] = cut_loops;
    block.iters.splice(at..=at, iters);
    Some(values)
}

/// Wraps a block in the loops that replace `loops`.
pub(super) fn in_loops(block: Block, loops: &[(VarId, &Stmt)], new_loops: &[NewLoops]) -> Option<Stmt> {
    let mut stmt = Stmt::Block(Box::new(block));
    for ((_, old), parts) in loops.iter().zip(new_loops).rev() {
        for (var, extent) in parts.iter().rev() {
            let Stmt::For { start, kind, .. } = old else { return None };
            let (start, extent, body) = (start.clone(), extent.clone(), Box::new(stmt));
            stmt = Stmt::For { var: *var, start, extent, kind: *kind, body };
        }
    }
    Some(stmt)
}

/// Returns the extent of a loop.
fn extent_of(stmt: &Stmt) -> Expr {
    match stmt {
        Stmt::For { extent, .. } => extent.clone(),
        _ => Expr::int(1),
    }
}

/// Matches a nest: zero or more perfectly nested loops that start at 0, around one block with axes. Returns the loops,
/// outermost first, with their variables, and the block.
pub(super) fn nest_of(stmt: &Stmt) -> Option<(Vec<(VarId, &Stmt)>, &Block)> {
    let (mut loops, mut current) = (Vec::new(), stmt);
    loop {
        match current {
            Stmt::For { var, start, body, .. } if start.as_int() == Some(0) => {
                loops.push((*var, current));
                current = body;
            }
            Stmt::Block(block) if !block.iters.is_empty() => return Some((loops, block)),
            _ => return None,
        }
    }
}

/// Applies `map` to the expressions of a block, except those of its axes.
fn map_block(block: &Block, map: &mut dyn FnMut(&Expr) -> Expr) -> Block {
    Block {
        predicate: block.predicate.as_ref().map(&mut *map),
        init: block.init.as_ref().map(|init| map_stmt(init, map)),
        body: map_stmt(&block.body, map),
        ..block.clone()
    }
}
