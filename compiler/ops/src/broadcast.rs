//! Shape broadcasting with the rules of NumPy and TVM: `[n, 1, 4]` and `[3, 1]` broadcast to `[n, 3, 4]`.

use crate::call::{CallInfo, ParamPlace, Problem};
use rx_base::{Answer, Code, Dim};
use rx_ir::Shape;

/// The broadcasting rule in words, for notes of diagnostics.
pub(crate) const RULE: &str =
    "axes are compared from the last one; two sizes go together when they are equal or one is 1";

/// Two dims that cannot be broadcast: they differ for all values of the symbols, and neither can be 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BroadcastConflict {
    /// The axis of the left shape, counted from 0, and its extent.
    pub left: (usize, Dim),
    /// The axis of the right shape, counted from 0, and its extent.
    pub right: (usize, Dim),
}

impl BroadcastConflict {
    /// Creates the error for operands called `left` and `right`, located at the right one.
    pub(crate) fn report(&self, call: &CallInfo<'_>, left: &'static str, right: &'static str) -> Problem {
        let ((left_axis, left_dim), (right_axis, right_dim)) = (&self.left, &self.right);
        call.error(
            Code::BroadcastMismatch,
            ParamPlace::Param(right),
            format_args!(
                "shapes do not broadcast: axis {left_axis} of `{left}` is {left_dim}, \
                 axis {right_axis} of `{right}` is {right_dim}"
            ),
        )
        .with_primary_label(format!("{}: axis {right_axis} is {right_dim}", call.ty(right)))
        .with_label(ParamPlace::Param(left), format!("{}: axis {left_axis} is {left_dim}", call.ty(left)))
        .with_note(RULE)
        .into()
    }
}

/// Returns the shape that two operands are broadcast to.
///
/// Follows TVM's `InferBinaryBroadcastShape`. If it is unknown whether two dims are equal, only the rank of the result
/// is known. If an operand's dims are unknown, only the rank is known, provided both ranks are. Two shapes that are the
/// same variable give that variable. A variable whose dims are known counts as those dims.
///
/// # Errors
/// Returns the last pair of dims that cannot be broadcast for any value of the symbols.
pub(crate) fn broadcast_shapes(call: &CallInfo<'_>, left: &Shape, right: &Shape) -> Result<Shape, BroadcastConflict> {
    match (left, right) {
        (Shape::Error, _) | (_, Shape::Error) => Ok(Shape::Error),
        _ => {
            if let (Some(left), Some(right)) = (left.dims(), right.dims())
                && let known @ Shape::Known(_) = broadcast_dims(call, left, right)?
            {
                return Ok(known);
            }
            match (left, right) {
                (Shape::Var { name, .. }, Shape::Var { name: other, .. }) if name == other => Ok(left.clone()),
                _ => Ok(Shape::of_rank(larger_rank(left.ndim(), right.ndim()))),
            }
        }
    }
}

/// Returns the rank of the result of broadcasting two ranks.
pub(crate) fn larger_rank(left: Option<usize>, right: Option<usize>) -> Option<usize> {
    Some(left?.max(right?))
}

fn broadcast_dims(call: &CallInfo<'_>, left: &[Dim], right: &[Dim]) -> Result<Shape, BroadcastConflict> {
    let (longer, shorter) = if left.len() >= right.len() { (left, right) } else { (right, left) };
    let lead = longer.len() - shorter.len();
    let mut result = longer.to_vec();
    let mut known = true;
    for (axis, other) in shorter.iter().enumerate().rev() {
        // INVARIANT: axis < shorter.len(), so lead + axis < longer.len().
        let dim = &mut result[lead + axis];
        match broadcast_dim(call, dim, other) {
            Pair::Is(merged) => *dim = merged,
            Pair::Open => known = false,
            Pair::Conflict => {
                let (longer, shorter) = ((lead + axis, dim.clone()), (axis, other.clone()));
                let (left, right) = if left.len() >= right.len() { (longer, shorter) } else { (shorter, longer) };
                return Err(BroadcastConflict { left, right });
            }
        }
    }
    Ok(if known { Shape::known(result) } else { Shape::Rank(longer.len()) })
}

enum Pair {
    Is(Dim),
    Open,
    Conflict,
}

fn broadcast_dim(call: &CallInfo<'_>, a: &Dim, b: &Dim) -> Pair {
    if a.as_constant() == Some(1) {
        return Pair::Is(b.clone());
    }
    if b.as_constant() == Some(1) {
        return Pair::Is(a.clone());
    }
    match (a.is_error(), b.is_error()) {
        // A constant other than 1 determines the result, whatever the dim with the error is.
        (true, _) if b.as_constant().is_some() => return Pair::Is(b.clone()),
        (_, true) if a.as_constant().is_some() => return Pair::Is(a.clone()),
        (true, _) | (_, true) => return Pair::Is(Dim::ERROR),
        (false, false) => {}
    }
    match call.equal(a, b) {
        Answer::Proved => Pair::Is(a.clone()),
        Answer::Refuted if never_together(call, a, b) => Pair::Conflict,
        _ => Pair::Open,
    }
}

/// Whether two dims differ for all values of the symbols and neither can be 1.
pub(crate) fn never_together(call: &CallInfo<'_>, a: &Dim, b: &Dim) -> bool {
    let never = |a: &Dim, b: &Dim| call.equal(a, b) == Answer::Refuted;
    let one = Dim::constant(1);
    never(a, b) && never(a, &one) && never(b, &one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{call_of, dims};

    fn known(text: &str) -> Shape {
        Shape::known(dims(text))
    }

    #[test]
    fn shapes_broadcast_from_the_last_axis() {
        call_of("add", &[], |call| {
            let check = |left: &Shape, right: &Shape, wanted: Shape| {
                assert_eq!(broadcast_shapes(call, left, right), Ok(wanted), "{left:?} {right:?}");
            };
            check(&known("1 n"), &known("4 k m 1"), known("4 k m n"));
            check(&known("2 3"), &known(""), known("2 3"));
            check(&known("m n"), &known("m n+2"), Shape::Rank(2));
            check(&known("2 3"), &Shape::Rank(4), Shape::Rank(4));
            check(&Shape::Rank(2), &Shape::Unknown, Shape::Unknown);
            check(&Shape::known([Dim::ERROR]), &known("4"), known("4"));
            check(&Shape::Error, &known("4"), Shape::Error);
            let variable = Shape::variable(rx_base::name::name("s"), &known("2 1"));
            check(&variable, &variable, known("2 1"));
            check(&variable, &known("4 2 3"), known("4 2 3"));
        });
    }

    #[test]
    fn only_dims_that_can_never_agree_clash() {
        call_of("add", &[], |call| {
            let clash = broadcast_shapes(call, &known("5 2 3"), &known("4 3"));
            let wanted = BroadcastConflict { left: (1, 2.into()), right: (0, 4.into()) };
            assert_eq!(clash, Err(wanted));
            assert!(broadcast_shapes(call, &known("n+2"), &known("n+3")).is_err());
            assert!(broadcast_shapes(call, &known("n+1"), &known("n+2")).is_ok());
        });
    }
}
