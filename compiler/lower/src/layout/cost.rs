//! What a layout costs: the bytes that kernels read apart.
//!
//! Of a sum of products that tensor cores multiply, a factor is read apart where neither its own loops nor those that are summed over
//! walk it 16 bytes at a time ([`FactorElement::is_in_chunks`]): then each element is a read of its own. Of everything else, what
//! neighbouring threads read is apart where it is not near: where the loop that is contiguous in what is written takes more than a
//! few elements in one step, and no loop that is reduced over walks neighbours.
//!
//! The bytes of an access are its element's bytes times the rounds of the loops it depends on, for a convolution's data `pixels ×
//! channels × taps`. A group of tensors is worth another order where
//!
//! ```text
//! Σ bytes apart before > Σ bytes apart after        over the kernels that write or read one of them
//! ```
//!
//! What a convolution gains is on the left, what kernels at a group's border lose, whose other tensors lie as they are written, on
//! the right. What is not known is taken for [`UNKNOWN`] on both sides. That weights are put in order once is not counted.

use super::reading::stores;
use rx_base::DType;
use rx_schedule::{
    Affine, FactorElement, Loop, Nest, ProductNest, Role, Weighed, by_phases, order_sums, without_casts,
};
use rx_tir::{BufferId, Expr, IterKind, PrimFunc, VarId};

/// What an extent that is not known is taken for.
const UNKNOWN: i64 = 64;

/// Elements between neighbouring threads that still share most of what is read at once.
const NEAR: i64 = 4;

/// A sum of more elements is made by threads that share it.
const LONG: i64 = 128;

/// The bytes that a function reads apart. `together`: how many elements of a dtype tensor cores have at once, where they have any.
pub(super) fn apart(func: &PrimFunc, together: &dyn Fn(DType) -> Option<i64>) -> f64 {
    let mut statements = Vec::new();
    rx_schedule::nests::top_level(&func.body, &mut Vec::new(), &mut statements);
    statements.iter().filter_map(|stmt| Nest::of(stmt, func)).map(|nest| of_nest(&nest, func, together)).sum()
}

fn of_nest(nest: &Nest, func: &PrimFunc, together: &dyn Fn(DType) -> Option<i64>) -> f64 {
    let mut own = func.clone();
    // A transposed convolution is a product for each phase of its outputs.
    let phased = by_phases(nest, &mut own, false).map_or_else(|| nest.clone(), |phased| phased.nest);
    match ProductNest::of(&phased, &mut own) {
        Ok(found) if is_tiled(&found, together) => of_product(found, &own, together),
        _ => of_map(nest, func),
    }
}

/// Whether tensor cores multiply the factors, each of which has loops of its own.
pub(super) fn is_tiled(found: &ProductNest, together: &dyn Fn(DType) -> Option<i64>) -> bool {
    let has = |wanted: Role| found.product.loops.iter().any(|(_, _, role)| *role == wanted);
    let [left, right] = [&found.product.left, &found.product.right].map(|factor| without_casts(factor).dtype());
    left.bytes() == right.bytes()
        && together(left).is_some()
        && together(right).is_some()
        && has(Role::M)
        && has(Role::N)
}

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
        [0, 1].map(|at| Weighed { element: elements[at].as_ref(), count: count(&free[at]), chunk: chunks[at] });
    let sums = order_sums(&of(Role::K), weighed);
    let mut bytes = 0.0;
    for at in [0, 1] {
        let in_chunks = elements[at].as_ref().is_some_and(|element| {
            let mut rows = free[at].clone();
            // What is contiguous in the result is walked first, where that is a loop of the factor.
            let first = |one: &Affine, rows: &[(VarId, Expr)]| {
                rows.iter().map(|(var, _)| *var).find(|var| one.stride(*var).as_constant() == Some(1))
            };
            let inner = first(&found.product.target, &rows).or_else(|| first(&element.at, &rows));
            rows.sort_by_key(|(var, _)| Some(*var) == inner);
            element.is_in_chunks(&sums, chunks[at]) || element.is_in_chunks(&rows, chunks[at])
        });
        if !in_chunks {
            bytes += without_casts(&factors[at]).dtype().bytes() as f64 * rounds(&found.nest.loops, &factors[at]);
        }
    }
    bytes
}

/// The bytes that are read apart where neighbouring threads have neighbours of the result.
fn of_map(nest: &Nest, func: &PrimFunc) -> f64 {
    stores(&nest.body).into_iter().map(|(buffer, indices, value)| of_store(nest, func, (buffer, indices), value)).sum()
}

fn of_store(nest: &Nest, func: &PrimFunc, (buffer, indices): (BufferId, &[Expr]), value: &Expr) -> f64 {
    let step = |at: &Affine, one: &Loop| at.stride(one.var).as_constant();
    let Some(target) = Affine::of(func, &nest.loops, buffer, indices) else { return 0.0 };
    let lane = nest.loops.iter().rev().find(|one| step(&target, one) == Some(1));
    let reduced = || nest.loops.iter().filter(|one| one.kind == IterKind::Reduce);
    // Windows have few elements: neighbours there are not what threads have.
    let is_long = reduced().map(|one| size(&one.extent)).fold(1i64, i64::saturating_mul) > LONG;
    let mut bytes = 0.0;
    value.walk(&mut |part| {
        let Expr::Load { buffer, indices, dtype } = part else { return };
        let Some(at) = Affine::of(func, &nest.loops, *buffer, indices) else { return };
        let along_lane = lane.is_none_or(|lane| step(&at, lane).is_some_and(|step| step.abs() <= NEAR));
        let along_sum = is_long && reduced().any(|one| step(&at, one) == Some(1) && step(&target, one) == Some(0));
        if !along_lane && !along_sum {
            bytes += dtype.bytes() as f64 * rounds(&nest.loops, part);
        }
    });
    bytes
}

/// How often an expression has another value.
fn rounds(loops: &[Loop], expr: &Expr) -> f64 {
    loops.iter().filter(|one| expr.uses(one.var)).map(|one| size(&one.extent) as f64).product()
}

fn size(extent: &Expr) -> i64 {
    extent.as_int().unwrap_or(UNKNOWN).max(0)
}
