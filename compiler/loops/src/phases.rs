//! *Phase decomposition of transposed convolutions* (sub-pixel convolution): splits the outputs by their remainder
//! modulo the stride.
//!
//! Output `o` uses input `i` and tap `k` if `i * stride + k * dilation = o + padding`. All outputs with one remainder
//! by the stride, a *phase*, use the same taps. Without phases, every output sums over all taps, and the taps of the
//! other phases are multiplied by 0.
//!
//! ```text
//! for o, k:        out[o] += select((o + 1 - k) % 2 == 0, x[(o + 1 - k) // 2], 0) * w[k]
//! ```
//!
//! becomes, with `o = 2 * q + p` and `k = first(p) + 2 * t`, where `first(p)` is the first tap of phase `p`,
//!
//! ```text
//! for q, p, t:     out[2 * q + p] += x[q + (p + 1 - first(p)) // 2 - t] * w[first(p) + 2 * t]
//! ```
//!
//! Requires a sum of products in which at least one loop of the result is divided by a constant of at most 16, each
//! loop by one constant. At least one tap must be selected by a condition `(axis + step · tap + offset) % constant ==
//! 0`, where `step` is invertible modulo the constant, unless the caller says that the indices select the taps
//! (`is_gathered`). Guarantees the same sum for finite factors: the omitted terms are `0 * w`, which is NaN if `w` is
//! infinite or NaN.

use crate::accumulate::{Loop, Nest};
use crate::affine::linear;
use crate::compose::{is_zero, where_it_holds};
use crate::guards::guards;
use crate::scope::Scope;
use crate::simplify::{replace_var, simplify_in};
use rx_base::Dim;
use rx_tir::expr::{BinaryOp, CompareOp, Expr};
use rx_tir::func::{Buffer, PrimFunc, VarId};
use rx_tir::stmt::{IterKind, Site, Stmt};

/// The maximum divisor: the stride of the transposed convolution along one axis.
const MOST_PHASES: i64 = 16;

/// A nest that is split into phases.
#[derive(Clone, Debug)]
pub struct Phased {
    /// The nest. If the stride does not divide an output extent, some of its iterations are outside of the result.
    pub nest: Nest,
    /// The condition under which an iteration is inside the result; none if the extents that are split are constant
    /// multiples of their strides.
    pub condition: Option<Expr>,
    /// The number of phases of the nest: the product of the strides along all axes. For example, a transposed
    /// convolution with the stride 2 along two axes has 4 phases.
    pub count: i64,
}

/// A loop whose sum with other terms is divided by the constant `by`, as the dividend of a quotient or remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divided {
    of: VarId,
    by: i64,
}

/// A tap that contributes only where `axis + step * tap + offset` is divisible by `by`.
struct Meeting {
    axis: VarId,
    tap: VarId,
    step: i64,
    offset: i64,
    by: i64,
}

/// Splits a sum of products into phases. Loops that are split get new variables of `func`. `is_gathered` holds if the
/// indices already select the taps of an output, so that no divisibility conditions are needed. Returns `None`, for
/// example, if the nest is no such sum, has a predicate or a checked index, has no phases, or has a condition that
/// cannot be eliminated.
pub fn by_phases(nest: &Nest, func: &mut PrimFunc, is_gathered: bool) -> Option<Phased> {
    let mut is_checked = false;
    parts(nest, &mut |part| is_checked |= matches!(part, Expr::Checked { .. }));
    if nest.reduction()?.combine != BinaryOp::Add || nest.predicate.is_some() || is_checked {
        return None;
    }
    let mut nest = nest.clone();
    simplify_nest(&mut nest, func);
    let mut scope = scope_of(&nest, func);
    let divided = divided(&nest, &mut scope)?;
    let meetings = meetings(&nest, &mut scope, &divided)?;
    if meetings.is_empty() && !is_gathered {
        return None;
    }
    let (mut condition, mut exists, mut phases) = (None, Vec::new(), Vec::new());
    for one in &divided {
        let (phase, ragged) = part(&mut nest, func, *one)?;
        phases.push((one.of, phase));
        condition = match (condition, ragged) {
            (Some(known), Some(ragged)) => Some(Expr::and(known, ragged)),
            (known, ragged) => known.or(ragged),
        };
    }
    for meeting in &meetings {
        let (_, phase) = *phases.iter().find(|(axis, _)| *axis == meeting.axis)?;
        exists.extend(step_over(&mut nest, func, meeting, phase)?);
    }
    simplify_nest(&mut nest, func);
    guard_factors(&mut nest, func, exists)?;
    simplify_nest(&mut nest, func);
    let mut is_left = false;
    parts(&nest, &mut |part| is_left |= is_meeting(part).is_some());
    let count = divided.iter().try_fold(1i64, |count, one| count.checked_mul(one.by))?;
    (!is_left).then_some(Phased { nest, condition, count })
}

fn simplify_nest(nest: &mut Nest, func: &PrimFunc) {
    let mut scope = scope_of(nest, func);
    nest.body = simplify_in(&mut scope, func, &nest.body);
}

fn scope_of(nest: &Nest, func: &PrimFunc) -> Scope {
    let mut scope = Scope::new(func);
    for one in &nest.loops {
        scope.enter_loop(one.var, func.var(one.var).dtype, &Expr::int(0), &one.extent);
    }
    scope
}

/// Matches a quotient or remainder by a constant from 2 to [`MOST_PHASES`]; returns the dividend and the divisor.
fn division(expr: &Expr) -> Option<(&Expr, i64)> {
    match expr {
        Expr::Binary { op: BinaryOp::FloorDiv | BinaryOp::FloorMod, left, right } => {
            let by = right.as_int().filter(|by| (2..=MOST_PHASES).contains(by))?;
            Some((left, by))
        }
        _ => None,
    }
}

/// Matches `dividend % divisor == 0` with a divisor as in [`division`]; returns the dividend and the divisor.
fn is_meeting(expr: &Expr) -> Option<(&Expr, i64)> {
    match expr {
        Expr::Compare { op: CompareOp::Eq, left, right } if right.as_int() == Some(0) => match &**left {
            remainder @ Expr::Binary { op: BinaryOp::FloorMod, .. } => division(remainder),
            _ => None,
        },
        _ => None,
    }
}

fn parts(nest: &Nest, visit: &mut dyn FnMut(&Expr)) {
    nest.body.walk(&mut |stmt| {
        for expr in stmt.expressions() {
            expr.walk(&mut |part| visit(part));
        }
    });
}

/// Finds the loops of the result that are divided, each by one constant. Returns `None` if there are none, if a
/// loop is divided by two constants, or if a dividend is not affine with coefficient 1 for its only loop of the result.
fn divided(nest: &Nest, scope: &mut Scope) -> Option<Vec<Divided>> {
    let mut dividends: Vec<(Expr, i64)> = Vec::new();
    parts(nest, &mut |part| {
        if let Some((dividend, by)) = division(part) {
            dividends.push((dividend.clone(), by));
        }
    });
    let mut found: Vec<Divided> = Vec::new();
    for (dividend, by) in dividends {
        let dim = scope.dim(&dividend);
        let (_, steps) = linear(scope, &nest.loops, dim)?;
        let spatial: Vec<&Loop> =
            nest.loops.iter().filter(|one| one.kind == IterKind::Spatial && steps.contains_key(&one.var)).collect();
        let [axis] = spatial[..] else { return None };
        if steps.get(&axis.var).and_then(Dim::as_constant) != Some(1) {
            return None;
        }
        let divided = Divided { of: axis.var, by };
        if found.iter().any(|known| known.of == divided.of && known.by != by) {
            return None;
        }
        if !found.contains(&divided) {
            found.push(divided);
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Finds the taps that divisibility conditions select. Returns `None` if a condition has another form or a step that is
/// not invertible, or if two different conditions select one tap.
fn meetings(nest: &Nest, scope: &mut Scope, divided: &[Divided]) -> Option<Vec<Meeting>> {
    let mut conditions: Vec<(Expr, i64)> = Vec::new();
    parts(nest, &mut |part| {
        if let Some((dividend, by)) = is_meeting(part) {
            conditions.push((dividend.clone(), by));
        }
    });
    let mut found: Vec<Meeting> = Vec::new();
    for (dividend, by) in conditions {
        let dim = scope.dim(&dividend);
        let (base, steps) = linear(scope, &nest.loops, dim)?;
        let axis = divided.iter().find(|one| steps.contains_key(&one.of) && one.by == by)?.of;
        let mut taps = steps.iter().filter(|(var, _)| **var != axis);
        let (Some((tap, step)), None) = (taps.next(), taps.next()) else { return None };
        let (step, offset) = (step.as_constant()?, base.as_constant()?);
        inverse(step, by)?;
        match found.iter().find(|known| known.tap == *tap) {
            Some(known) if known.axis == axis && known.step == step && known.offset == offset => {}
            Some(_) => return None,
            None => found.push(Meeting { axis, tap: *tap, step, offset, by }),
        }
    }
    Some(found)
}

/// Returns the inverse of `step` modulo `by`, if it exists.
fn inverse(step: i64, by: i64) -> Option<i64> {
    (1..by).find(|one| (one * step.rem_euclid(by)).rem_euclid(by) == 1)
}

/// Splits a loop of the result into one over the outputs of a phase and one over the phases. Returns the variable of
/// the latter, and the condition that an output exists unless the extent is a constant multiple of the stride.
fn part(nest: &mut Nest, func: &mut PrimFunc, Divided { of, by }: Divided) -> Option<(VarId, Option<Expr>)> {
    let at = nest.loops.iter().position(|one| one.var == of)?;
    let Loop { extent, kind, .. } = nest.loops[at].clone();
    let (name, dtype) = (func.var(of).name, func.var(of).dtype);
    let (outer, phase) = (func.add_var(name, dtype), func.add_var(name, dtype));
    let int = |value: i64| Expr::Int { value, dtype: extent.dtype() };
    let count = (extent.clone() + int(by - 1)).floor_div(int(by));
    let value = func.var_expr(outer) * Expr::Int { value: by, dtype } + func.var_expr(phase);
    let both = [Loop { var: outer, extent: count, kind }, Loop { var: phase, extent: int(by), kind }];
    nest.loops.splice(at..=at, both);
    nest.body = replace_var(&nest.body, of, &value);
    nest.init = nest.init.as_ref().map(|init| replace_var(init, of, &value));
    let is_whole = extent.as_int().is_some_and(|extent| extent % by == 0);
    Some((phase, (!is_whole).then(|| value.cast(extent.dtype()).lt(extent))))
}

/// Replaces the loop over all taps by a loop over the taps of a phase. Returns the condition that a tap exists if the
/// stride does not divide the number of taps, and `None` if that number is not constant.
fn step_over(nest: &mut Nest, func: &mut PrimFunc, meeting: &Meeting, phase: VarId) -> Option<Option<Expr>> {
    let Meeting { tap, step, offset, by, .. } = *meeting;
    let at = nest.loops.iter().position(|one| one.var == tap)?;
    let Loop { extent, kind, .. } = nest.loops[at].clone();
    let extent = extent.as_int()?;
    let (name, dtype) = (func.var(tap).name, func.var(tap).dtype);
    let number = func.add_var(name, dtype);
    let int = |value: i64| Expr::Int { value, dtype };
    // The first tap `k` of a phase solves `phase + step · k + offset ≡ 0` modulo `by`, so it is congruent to
    // `-(phase + offset) / step`.
    let of_phase = (-inverse(step, by)?).rem_euclid(by);
    let first = func.var_expr(phase).cast(dtype) * int(of_phase) + int((offset.rem_euclid(by) * of_phase) % by);
    // The remainder is written as `a - a // by * by`, so that `a` cancels in the indices.
    let first = first.clone() - first.floor_div(int(by)) * int(by);
    let value = first + func.var_expr(number) * int(by);
    nest.loops[at] = Loop { var: number, extent: Expr::int((extent + by - 1) / by), kind };
    nest.body = replace_var(&nest.body, tap, &value);
    Some((extent % by != 0).then(|| value.lt(int(extent))))
}

/// Attaches conditions to the factors: those that they had, the new ones, and bounds of indices that are no longer
/// proved in range because of iterations outside of the outputs and taps. A bound is attached to the factor with the
/// index, each other condition to every factor that mentions all of its loops. Returns `None` if the sum is not over
/// products, or if a condition fits neither factor.
fn guard_factors(nest: &mut Nest, func: &PrimFunc, new: Vec<Expr>) -> Option<()> {
    let reduction = nest.reduction()?;
    let Expr::Binary { op: BinaryOp::Mul, left, right } = &reduction.value else { return None };
    let mut conditions = new;
    let factors = [left, right].map(|factor| bare(factor, &mut conditions));
    let of_loops =
        |expr: &Expr| -> Vec<VarId> { nest.loops.iter().map(|one| one.var).filter(|var| expr.uses(*var)).collect() };
    let own: Vec<Vec<VarId>> = factors.iter().map(of_loops).collect();
    let mut guarded = factors;
    for condition in conditions {
        let needed = of_loops(&condition);
        let mut is_kept = false;
        for (factor, own) in guarded.iter_mut().zip(&own) {
            if needed.iter().all(|var| own.contains(var)) {
                is_kept = true;
                *factor = where_it_holds(factor.clone(), condition.clone());
            }
        }
        if !is_kept {
            return None;
        }
    }
    let [left, right] = guarded.map(|factor| in_range(nest, func, factor));
    let element = Expr::Load { buffer: reduction.buffer, dtype: left.dtype(), indices: reduction.indices.clone() };
    let value = element + Expr::binary(BinaryOp::Mul, left, right);
    nest.body = Stmt::Store { buffer: reduction.buffer, indices: reduction.indices, value, site: reduction.site };
    Some(())
}

/// Returns the factor as 0 where one of its indices is out of range: puts it into a `select` for the bounds that are
/// not proved inside the nest's loops and that it does not check yet.
fn in_range(nest: &Nest, func: &PrimFunc, factor: Expr) -> Expr {
    let mut func = func.clone();
    let (name, dtype, shape) = (func.name, factor.dtype(), vec![Expr::int(1)]);
    let one = func.add_buffer(Buffer { name, dtype, shape, strides: None, order: None, scope: rx_tir::Scope::Global });
    let site = Site { origin: None, operator: func.name };
    let store = Stmt::Store { buffer: one, indices: vec![Expr::int(0)], value: factor.clone(), site };
    let around = |body, one: &Loop| Stmt::for_loop(one.var, one.extent.clone(), body);
    func.body = nest.loops.iter().rev().fold(store, around);
    let mut conditions = Vec::new();
    guards(&func).0.body.walk(&mut |stmt| {
        for expr in stmt.expressions() {
            expr.walk(&mut |part| {
                if let Expr::Checked { index, extent, .. } = part {
                    let dtype = index.dtype();
                    conditions.push((**index).clone().ge(Expr::Int { value: 0, dtype }));
                    conditions.push((**index).clone().lt((**extent).clone().cast(dtype)));
                }
            });
        }
    });
    let mut known = Vec::new();
    bare(&factor, &mut known);
    conditions.retain(|condition| !known.contains(condition));
    conditions.into_iter().fold(factor, where_it_holds)
}

/// Removes the selections `select(condition, value, 0)` around the factor, also inside casts; appends their conditions
/// to `conditions`.
fn bare(factor: &Expr, conditions: &mut Vec<Expr>) -> Expr {
    match factor {
        Expr::Cast { dtype, value } => bare(value, conditions).cast(*dtype),
        Expr::Select { condition, then, otherwise } if is_zero(otherwise) => {
            conjuncts(condition, conditions);
            bare(then, conditions)
        }
        other => other.clone(),
    }
}

fn conjuncts(condition: &Expr, into: &mut Vec<Expr>) {
    match condition {
        Expr::Binary { op: BinaryOp::And, left, right } => {
            conjuncts(left, into);
            conjuncts(right, into);
        }
        other if other.as_int() == Some(1) => {}
        other if !into.contains(other) => into.push(other.clone()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rx_base::DType;
    use rx_base::name::name;
    use rx_tir::KernelBuilder;
    use rx_tir::builder::in_range;

    /// Builds `out[o] = Σ_k x[i] * w[k]` where `i * stride + k * dilation = o + 1`, for 5 inputs.
    fn transposed(outputs: i64, taps: i64, stride: i64, dilation: i64) -> (PrimFunc, Nest) {
        let mut builder = KernelBuilder::new(name("transposed"));
        let dims = |size: i64| [Dim::from(size)];
        let x = builder.param("x", &dims(5), DType::FLOAT32);
        let w = builder.param("w", &dims(taps), DType::FLOAT32);
        let out = builder.param("out", &dims(outputs), DType::FLOAT32);
        let zero = Expr::number(0.0, DType::FLOAT32);
        let [outputs, taps] = [outputs, taps].map(Expr::int);
        builder.reduce(out, &[outputs], &[taps], zero.clone(), BinaryOp::Add, |builder, at, k| {
            let reached = at[0].clone() + Expr::int(1) - k[0].clone() * Expr::int(dilation);
            let place = reached.clone().floor_div(Expr::int(stride));
            let meets = reached.floor_mod(Expr::int(stride)).eq(Expr::int(0));
            let inside = meets.and(in_range(place.clone(), Expr::int(0), Expr::int(5)));
            let data = Expr::select(inside, builder.load(x, &[place]), zero.clone());
            (at.to_vec(), data * builder.load(w, &k[..1]))
        });
        let func = builder.finish();
        let nest = Nest::of(&func.body, &func).expect("a nest");
        (func, nest)
    }

    fn extents(phased: &Phased) -> Vec<Option<i64>> {
        phased.nest.loops.iter().map(|one| one.extent.as_int()).collect()
    }

    #[test]
    fn outputs_of_a_phase_use_every_second_tap() {
        let (mut func, nest) = transposed(10, 4, 2, 1);
        let phased = by_phases(&nest, &mut func, false).expect("phases");
        assert_eq!(extents(&phased), [Some(5), Some(2), Some(2)], "outputs of a phase, phases, taps of each");
        assert_eq!((phased.count, phased.condition), (2, None));
    }

    #[test]
    fn a_phase_may_be_longer_than_the_result_and_have_fewer_taps() {
        let (mut func, nest) = transposed(9, 3, 2, 1);
        let phased = by_phases(&nest, &mut func, false).expect("phases");
        assert_eq!(extents(&phased), [Some(5), Some(2), Some(2)]);
        assert!(phased.condition.is_some(), "the tenth output is none");
    }

    #[test]
    fn a_dilation_with_a_common_divisor_has_no_phases() {
        let (mut func, nest) = transposed(10, 4, 2, 2);
        assert!(by_phases(&nest, &mut func, false).is_none());
    }

    #[test]
    fn a_plain_sum_has_no_phases() {
        let (mut func, nest) = transposed(5, 3, 1, 1);
        assert!(by_phases(&nest, &mut func, false).is_none());
    }
}
