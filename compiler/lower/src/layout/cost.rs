//! The cost model of layouts: the bytes that a kernel loads uncoalesced.
//!
//! - In a sum of products that runs on tensor cores, the loads of an operand are coalesced if the operand is contiguous
//!   in chunks of 16 bytes, along its own loops or along the reduction loops ([`FactorElement::is_in_chunks`]).
//!   Otherwise every element is a separate load. That includes operands that are computed and operands whose address is
//!   not affine.
//! - In any other nest, neighbouring threads are assumed to compute neighbouring elements of the output: those along
//!   the loop in which the output is contiguous. A load is coalesced if one step of this loop moves its address by at
//!   most [`NEAR`] elements, or if there is no such loop. For example, in `out[c, i] = x[i, c]` the load is
//!   uncoalesced if `c` has more than 4 values, because a step of `i` skips a row of `x`. A load is also coalesced
//!   if it is contiguous along a reduction loop and the reduction loops have more than [`LONG`] iterations together,
//!   because several threads share such a reduction. In these nests, unlike in products, a load costs nothing if its
//!   own address, or the address of the store of its value, is not affine in the loops.
//!
//! An uncoalesced load costs the bytes of its element times the iterations of the loops that it depends on; for a
//! convolution's data these are `pixels × channels × taps`. A group of tensors gets the new layout where
//!
//! ```text
//! Σ bytes uncoalesced before > Σ bytes uncoalesced after        over the kernel calls that write or read one of them
//! ```
//!
//! The gains of the convolutions compete with the losses of kernels at the group's border, whose other tensors keep
//! their layout. Unknown extents count as [`UNKNOWN`] on both sides. The transposition of weights is not counted, since
//! it happens once.

use super::reading::stores;
use rx_base::DType;
use rx_loops::{
    Affine, FactorElement, GemmOperand, Loop, Nest, ProductNest, Role, by_phases, choose_k_order, without_casts,
};
use rx_tir::{BufferId, Expr, IterKind, PrimFunc, VarId};

/// The assumed value of an extent that is not a constant.
const UNKNOWN: i64 = 64;

/// The maximum distance, in elements, between the loads of neighbouring threads that still counts as coalesced.
const NEAR: i64 = 4;

/// The number of elements above which several threads are assumed to share a reduction.
const LONG: i64 = 128;

/// Returns the bytes that a function loads uncoalesced. `together` returns the elements per chunk of a dtype
/// ([`rx_loops::TargetInfo::channel_vector_width`]), or `None` if the cost model assumes no tensor cores for it.
pub(super) fn apart(func: &PrimFunc, together: &dyn Fn(DType) -> Option<i64>) -> f64 {
    let mut statements = Vec::new();
    rx_loops::nests::top_level(&func.body, &mut Vec::new(), &mut statements);
    statements.iter().filter_map(|stmt| Nest::of(stmt, func)).map(|nest| of_nest(&nest, func, together)).sum()
}

/// Returns the cost of one nest.
fn of_nest(nest: &Nest, func: &PrimFunc, together: &dyn Fn(DType) -> Option<i64>) -> f64 {
    let mut own = func.clone();
    // A transposed convolution is one product for each phase (each remainder of the output index modulo the stride).
    let phased = by_phases(nest, &mut own, false).map_or_else(|| nest.clone(), |phased| phased.nest);
    match ProductNest::of(&phased, &mut own) {
        Ok(found) if is_tiled(&found, together) => of_product(found, &own, together),
        _ => of_map(nest, func),
    }
}

/// Whether the cost model assumes that the nest runs on tensor cores: both operands have supported dtypes of the same
/// width, and each has separate loops (M and N).
pub(super) fn is_tiled(found: &ProductNest, together: &dyn Fn(DType) -> Option<i64>) -> bool {
    let has = |wanted: Role| found.product.loops.iter().any(|(_, _, role)| *role == wanted);
    let [left, right] = [&found.product.left, &found.product.right].map(|factor| without_casts(factor).dtype());
    left.bytes() == right.bytes()
        && together(left).is_some()
        && together(right).is_some()
        && has(Role::M)
        && has(Role::N)
}

/// Returns the cost of a sum of products: an operand that is not loaded in chunks costs the bytes of its element times
/// the iterations of the loops that it depends on.
fn of_product(mut found: ProductNest, func: &PrimFunc, together: &dyn Fn(DType) -> Option<i64>) -> f64 {
    let loops: Vec<(VarId, Expr, Role)> = found
        .nest
        .loops
        .iter()
        .filter_map(|one| {
            let role = found.product.loops.iter().find(|(var, ..)| *var == one.var)?.2;
            Some((one.var, one.extent.clone(), role))
        })
        .collect();
    let of = |wanted: Role| -> Vec<(VarId, Expr)> {
        let own = loops.iter().filter(|(_, _, role)| *role == wanted);
        own.map(|(var, extent, _)| (*var, extent.clone())).collect()
    };
    let factors = [found.product.left.clone(), found.product.right.clone()];
    let elements = factors.clone().map(|factor| FactorElement::of(without_casts(&factor), &mut found, func));
    let chunks = factors.each_ref().map(|factor| together(without_casts(factor).dtype()).unwrap_or(1));
    let free = [of(Role::M), of(Role::N)];
    let count = |axis: &[(VarId, Expr)]| axis.iter().fold(1i64, |all, (_, extent)| all.saturating_mul(size(extent)));
    let weighed =
        [0, 1].map(|at| GemmOperand { element: elements[at].as_ref(), count: count(&free[at]), chunk: chunks[at] });
    let sums = choose_k_order(&of(Role::K), weighed);
    let mut bytes = 0.0;
    for at in [0, 1] {
        let in_chunks = elements[at].as_ref().is_some_and(|element| {
            let mut rows = free[at].clone();
            // The innermost of the operand's own loops is the one that is contiguous in the result. If there is none,
            // it is the one that is contiguous in the operand.
            let first = |one: &Affine, rows: &[(VarId, Expr)]| {
                rows.iter().map(|(var, _)| *var).find(|var| one.stride(*var).as_constant() == Some(1))
            };
            let inner = first(&found.product.target, &rows).or_else(|| first(&element.at, &rows));
            rows.sort_by_key(|(var, _)| Some(*var) == inner);
            element.is_in_chunks(&sums, chunks[at]) || element.is_in_chunks(&rows, chunks[at])
        });
        if !in_chunks {
            bytes += without_casts(&factors[at]).dtype().bytes() as f64 * iterations(&found.nest.loops, &factors[at]);
        }
    }
    bytes
}

/// Returns the cost of a nest in which neighbouring threads compute neighbouring elements of the result.
fn of_map(nest: &Nest, func: &PrimFunc) -> f64 {
    stores(&nest.body).into_iter().map(|(buffer, indices, value)| of_store(nest, func, (buffer, indices), value)).sum()
}

/// Returns the cost of the loads in one stored value.
fn of_store(nest: &Nest, func: &PrimFunc, (buffer, indices): (BufferId, &[Expr]), value: &Expr) -> f64 {
    let step = |at: &Affine, one: &Loop| at.stride(one.var).as_constant();
    let Some(target) = Affine::of(func, &nest.loops, buffer, indices) else { return 0.0 };
    let lane = nest.loops.iter().rev().find(|one| step(&target, one) == Some(1));
    let reduced = || nest.loops.iter().filter(|one| one.kind == IterKind::Reduce);
    // Short reductions (pooling windows) run within a thread, so a load that is contiguous along them is not coalesced
    // across threads.
    let is_long = reduced().map(|one| size(&one.extent)).fold(1i64, i64::saturating_mul) > LONG;
    let mut bytes = 0.0;
    value.walk(&mut |part| {
        let Expr::Load { buffer, indices, dtype } = part else { return };
        let Some(at) = Affine::of(func, &nest.loops, *buffer, indices) else { return };
        let along_lane = lane.is_none_or(|lane| step(&at, lane).is_some_and(|step| step.abs() <= NEAR));
        let along_sum = is_long && reduced().any(|one| step(&at, one) == Some(1) && step(&target, one) == Some(0));
        if !along_lane && !along_sum {
            bytes += dtype.bytes() as f64 * iterations(&nest.loops, part);
        }
    });
    bytes
}

/// Returns the number of iterations of the loops that an expression depends on.
fn iterations(loops: &[Loop], expr: &Expr) -> f64 {
    loops.iter().filter(|one| expr.uses(one.var)).map(|one| size(&one.extent) as f64).product()
}

/// Returns the value of a constant extent, or [`UNKNOWN`].
fn size(extent: &Expr) -> i64 {
    extent.as_int().unwrap_or(UNKNOWN).max(0)
}
