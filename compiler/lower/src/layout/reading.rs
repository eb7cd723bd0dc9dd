//! Analyzes the loops of a kernel: which axes of its tensors are channels, and which axes of two tensors correspond.
//!
//! For example, in `y[n, o, h, w] += x[n, c, h + i, w + j] * k[o, c, i, j]` the channel axis of the data `x` and of the
//! weight `k` is 1 (loop `c`), and that of `y` is 1 (loop `o`).

use super::cost::is_tiled;
use rx_base::{DType, Dim};
use rx_loops::scope::Scope;
use rx_loops::{Nest, ProductNest, Role};
use rx_tir::{BufferId, Expr, LoopKind, PrimFunc, Scope as Memory, Stmt, VarId};

/// The readings of a kernel's nests, in order.
pub(super) struct Reading {
    pub(super) nests: Vec<NestReading>,
}

/// The reading of one nest.
pub(super) struct NestReading {
    /// The loads and stores in the nest's body.
    pub(super) accesses: Vec<Access>,
    /// The channel axes, if the nest is a convolution on tensor cores. Axes are not propagated by the loops of such a
    /// nest.
    pub(super) product: Option<Channels>,
    /// Whether the nest has a reduction.
    pub(super) is_reduction: bool,
}

/// A load or a store.
pub(super) struct Access {
    pub(super) buffer: BufferId,
    /// For each axis, the loop `i` if the index is `i + c`, where `c` contains no loop variable and no load; otherwise
    /// `None`.
    pub(super) by: Vec<Option<VarId>>,
    /// Whether an index contains several loop variables, as in a sliding window.
    pub(super) slides: bool,
    /// The number of axes whose index contains a loop variable or a load.
    pub(super) moving: usize,
}

impl Access {
    /// Returns the only axis whose index is the given loop plus an offset ([`Access::by`]). Returns `None` where there
    /// is no such axis, or several.
    pub(super) fn axis_by(&self, var: VarId) -> Option<usize> {
        let mut axes = (0..self.by.len()).filter(|axis| self.by[*axis] == Some(var));
        let axis = axes.next()?;
        axes.next().is_none().then_some(axis)
    }
}

/// The channel axes of a convolution, each with its buffer.
pub(super) struct Channels {
    /// The channel axis of the data (the operand that is read for each pixel).
    pub(super) data: (BufferId, usize),
    /// The input-channel axis of the weight.
    pub(super) weight: (BufferId, usize),
    /// The output-channel axis of the result.
    pub(super) target: Option<(BufferId, usize)>,
}

impl Reading {
    /// Analyzes a function. Returns `None` where it does not consist of plain nests in global memory, or has loops that
    /// are bound to threads already: such a kernel is not rewritten.
    pub(super) fn of(func: &PrimFunc, together: &dyn Fn(DType) -> Option<i64>) -> Option<Reading> {
        let plain = func.buffers.iter().all(|buffer| buffer.strides.is_none() && buffer.scope == Memory::Global);
        let mut is_bound = false;
        func.body.walk(&mut |stmt| {
            is_bound |= matches!(stmt, Stmt::For { kind: LoopKind::ThreadBinding(_), .. });
        });
        if !plain || is_bound {
            return None;
        }
        let mut statements = Vec::new();
        rx_loops::nests::top_level(&func.body, &mut Vec::new(), &mut statements);
        let nests = statements.iter().map(|stmt| Some(NestReading::of(&Nest::of(stmt, func)?, func, together)));
        Some(Reading { nests: nests.collect::<Option<_>>()? })
    }
}

/// Returns the stores in the body of a nest, in order: buffer, indices and value.
pub(super) fn stores(body: &Stmt) -> Vec<(BufferId, &[Expr], &Expr)> {
    let mut found: Vec<(BufferId, &[Expr], &Expr)> = Vec::new();
    body.walk(&mut |stmt| {
        if let Stmt::Store { buffer, indices, value, .. } = stmt {
            found.push((*buffer, indices, value));
        }
    });
    found
}

impl NestReading {
    fn of(nest: &Nest, func: &PrimFunc, together: &dyn Fn(DType) -> Option<i64>) -> NestReading {
        let loops: Vec<VarId> = nest.loops.iter().map(|one| one.var).collect();
        let mut scope = Scope::new(func);
        for one in &nest.loops {
            scope.enter_loop(one.var, func.var(one.var).dtype, &Expr::int(0), &one.extent);
        }
        let mut accesses = Vec::new();
        let mut read = |expr: &Expr| {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices, .. } = part {
                    accesses.push((*buffer, indices.clone()));
                }
            });
        };
        nest.body.walk(&mut |stmt| stmt.expressions().into_iter().for_each(&mut read));
        for (buffer, indices, _) in stores(&nest.body) {
            accesses.push((buffer, indices.to_vec()));
        }
        let access = |(buffer, indices): (BufferId, Vec<Expr>)| Access::of(&mut scope, &loops, buffer, &indices);
        let accesses = accesses.into_iter().map(access).collect();
        let mut own = func.clone();
        let product = ProductNest::of(nest, &mut own).ok().filter(|found| is_tiled(found, together));
        let product = product.and_then(|mut found| channels(&mut found));
        let is_reduction = nest.init.is_some() || nest.reduction().is_some();
        NestReading { accesses, product, is_reduction }
    }
}

impl Access {
    fn of(scope: &mut Scope, loops: &[VarId], buffer: BufferId, indices: &[Expr]) -> Access {
        let (mut by, mut slides, mut moving) = (Vec::new(), false, 0);
        for index in indices {
            let reads = reads_memory(index);
            let used: Vec<VarId> = loops.iter().copied().filter(|var| index.uses(*var)).collect();
            moving += usize::from(reads || !used.is_empty());
            slides |= used.len() > 1;
            by.push(match used[..] {
                [var] if !reads && is_step(scope, index, var, &used) => Some(var),
                _ => None,
            });
        }
        Access { buffer, by, slides, moving }
    }
}

/// Whether an index is the value of loop `var` plus an expression that no loop of `loops` changes.
fn is_step(scope: &mut Scope, index: &Expr, var: VarId, loops: &[VarId]) -> bool {
    let rest = &scope.dim(index) - &Dim::symbol(scope.symbol(var));
    let mut is_uniform = !rest.is_error();
    rest.for_each_symbol(&mut |symbol| is_uniform &= loops.iter().all(|var| scope.symbol(*var) != symbol));
    is_uniform
}

/// Returns the channel axes of a sum of products, if it counts as a convolution: its data has at least three axes, and
/// one besides the channel axis depends on the pixel. No index of its weight depends on batch loops alone. Both are
/// indexed by the same channel loop.
fn channels(found: &mut ProductNest) -> Option<Channels> {
    let (left, right) = (found.product.left.clone(), found.product.right.clone());
    let of = |found: &mut ProductNest, data: &Expr, weight: &Expr, pixels: Role, outputs: Role| {
        let (data, weight) = (only_load(data)?, only_load(weight)?);
        let axis = channel_axis(found, data.1)?;
        let shared = sum_of(found, &data.1[axis])?;
        let of_weight = weight.1.iter().position(|index| sum_of(found, index) == Some(shared))?;
        // The data must have another axis that depends on the pixel. An operand with a batch axis is not a weight.
        let is_plane = data.1.iter().enumerate().any(|(at, index)| at != axis && uses_role(found, index, pixels));
        let is_batched = weight.1.iter().any(|index| is_batch(found, index));
        if data.1.len() < 3 || !is_plane || is_batched {
            return None;
        }
        let reduction = &found.product.reduction;
        let target = (reduction.buffer, reduction.indices.clone());
        let by_output =
            target.1.iter().position(|index| uses_role(found, index, outputs) && !uses_role(found, index, pixels));
        let target = by_output.filter(|_| target.1.len() >= 3).map(|axis| (target.0, axis));
        Some(Channels { data: (data.0, axis), weight: (weight.0, of_weight), target })
    };
    of(found, &left, &right, Role::M, Role::N).or_else(|| of(found, &right, &left, Role::N, Role::M))
}

/// Returns the load of a factor that has the most indices. Returns `None` where there is no load, or where another,
/// different load has at least three indices.
fn only_load(factor: &Expr) -> Option<(BufferId, &[Expr])> {
    let mut loads: Vec<(BufferId, &[Expr])> = Vec::new();
    factor.walk(&mut |part| {
        if let Expr::Load { buffer, indices, .. } = part {
            loads.push((*buffer, indices));
        }
    });
    let first = loads.first().copied()?;
    // Tensors of rank less than 3 may be loaded as well, for example a per-channel scale.
    let main = loads.iter().copied().max_by_key(|(_, indices)| indices.len()).unwrap_or(first);
    loads.iter().all(|one| one.1.len() < 3 || *one == main).then_some(main)
}

/// Returns the only axis of the data whose index is a reduction loop plus an offset, as [`sum_of`] matches it. The
/// offset is for example that of the group.
fn channel_axis(found: &mut ProductNest, indices: &[Expr]) -> Option<usize> {
    let mut axes = (0..indices.len()).filter(|axis| sum_of(found, &indices[*axis]).is_some());
    let axis = axes.next()?;
    axes.next().is_none().then_some(axis)
}

/// Returns the reduction loop `k` if an index is `k` plus an offset that reads no memory and depends on no M, N or
/// other reduction loop.
fn sum_of(found: &mut ProductNest, index: &Expr) -> Option<VarId> {
    if reads_memory(index) {
        return None;
    }
    let of_role = |found: &ProductNest, wanted: Role| -> Vec<VarId> {
        let own = found.product.loops.iter().filter(|(var, _, role)| *role == wanted && index.uses(*var));
        own.map(|(var, ..)| *var).collect()
    };
    let [sum] = of_role(found, Role::K)[..] else { return None };
    if !of_role(found, Role::M).is_empty() || !of_role(found, Role::N).is_empty() {
        return None;
    }
    is_step(&mut found.scope, index, sum, &[sum]).then_some(sum)
}

/// Whether an index depends on a loop of the given role.
fn uses_role(found: &ProductNest, index: &Expr, wanted: Role) -> bool {
    found.product.loops.iter().any(|(var, _, role)| *role == wanted && index.uses(*var))
}

/// Whether an index depends on batch loops only.
fn is_batch(found: &ProductNest, index: &Expr) -> bool {
    let used = found.product.loops.iter().filter(|(var, ..)| index.uses(*var));
    let mut roles = used.map(|(_, _, role)| *role).peekable();
    roles.peek().is_some() && roles.all(|role| role == Role::Batch)
}

/// Whether an index contains a load.
fn reads_memory(index: &Expr) -> bool {
    let mut found = false;
    index.walk(&mut |part| found |= matches!(part, Expr::Load { .. }));
    found
}
