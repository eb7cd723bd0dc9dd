//! Operators that return positions of elements (`argmax`, `argmin`, `bucketize`): schemas and struct-info rules.

use super::compute::pick as compute;
use super::operands::{int_attr, retyped};
use super::values::pick;
use crate::arguments::MAX_WRITTEN_RANK;
use crate::axes::normalize_axis;
use crate::call::{CallInfo, Problem};
use crate::cost::Cost;
use crate::operands::{computed_from, rank_like, require_ndim};
use crate::schema::{AttrKind, Param, Schema, Traits};
use rx_base::{DType, Dim};
use rx_ir::{Shape, StructInfo};

const PARAMS: &[Param] = &[
    Param::tensor("x", "The input."),
    Param::optional_attr(
        "axis",
        AttrKind::Int,
        "The axis to search along; without it, the place in the flattened input.",
    ),
    Param::flag("keepdims", false, "Whether searched axes stay, with length 1."),
];

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("argmax", "The place of the largest element along an axis, as int64.", arg_extremum)
        .taking(PARAMS)
        .lowered_by(compute::arg_extremum)
        .costing(Cost::PerInput(1))
        .with_traits(Traits::OPAQUE.computing(pick::arg_extremum)),
    Schema::new("argmin", "The place of the smallest element along an axis, as int64.", arg_extremum)
        .taking(PARAMS)
        .lowered_by(compute::arg_extremum)
        .costing(Cost::PerInput(1))
        .with_traits(Traits::OPAQUE.computing(pick::arg_extremum)),
    Schema::new("bucketize", "For each value, the index of the bucket it falls in.", bucketize)
        .taking(&[
            Param::tensor("input_tensor", "The values to place."),
            Param::tensor("boundaries", "The bounds of the buckets, strictly ascending; of one dimension."),
            Param::flag("out_int32", false, "Whether the result is int32, not int64."),
            Param::flag("right", false, "Whether a value equal to a bound belongs to the bucket above it."),
        ])
        .lowered_by(compute::bucketize)
        .with_traits(Traits::OPAQUE.computing(pick::bucketize)),
];

fn arg_extremum(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let keep = call.bool("keepdims") == Some(true);
    let result = |shape| Ok(retyped(x, shape, Some(DType::INT64)));
    let Some(axis) = int_attr(call, "axis")? else {
        return result(match (keep, x.shape.ndim()) {
            (false, _) => Shape::known(Vec::<Dim>::new()),
            (true, Some(ndim)) if ndim <= MAX_WRITTEN_RANK => Shape::known(vec![Dim::constant(1); ndim]),
            (true, ndim) => rank_like(&x.shape, ndim),
        });
    };
    let Some(ndim) = x.shape.ndim() else { return result(rank_like(&x.shape, None)) };
    let axis = normalize_axis(call, "axis", ndim, axis)?;
    result(match x.shape.written_dims() {
        Some(dims) => {
            let mut dims = dims.to_vec();
            match dims.get_mut(axis) {
                Some(dim) if keep => *dim = Dim::constant(1),
                // INVARIANT: a normalized axis is less than the rank.
                _ => drop(dims.remove(axis)),
            }
            Shape::known(dims)
        }
        None => Shape::Rank(if keep { ndim } else { ndim.saturating_sub(1) }),
    })
}

fn bucketize(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let input = call.tensor("input_tensor")?;
    require_ndim(call, "boundaries", 1, "(bounds)")?;
    let dtype = if call.bool("out_int32") == Some(true) { DType::INT32 } else { DType::INT64 };
    Ok(retyped(input, computed_from(&[input], input.shape.clone()), Some(dtype)))
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, flag, infer, number, tensor, ty};
    use rx_base::Code;

    #[test]
    fn argmax_drops_or_keeps_the_axis() {
        for (x, axis, keep, wanted) in [
            ("2 n 4:float32", Some(1), false, Ok(ty("2 4:int64"))),
            ("2 n 4:float32@llvm:0:global", Some(-2), true, Ok(ty("2 1 4:int64@llvm:0:global"))),
            ("2 n 4", None, false, Ok(ty(":int64"))),
            ("?3", None, true, Ok(ty("1 1 1:int64"))),
            ("?3", Some(0), false, Ok(ty("?2:int64"))),
            ("*", Some(9), false, Ok(ty("*:int64"))),
            ("*", None, true, Ok(ty("*:int64"))),
            ("2 3", Some(2), false, Err(Some(Code::AxisOutOfRange))),
        ] {
            let mut args: Vec<(&str, Given)> = vec![("x", tensor(x)), ("keepdims", flag(keep))];
            args.extend(axis.map(|axis| ("axis", number(axis))));
            assert_eq!(infer("argmax", &args), wanted, "{x}");
        }
    }

    #[test]
    fn buckets_are_numbered_in_int64_or_int32() {
        let bucketize = |bounds: &str, short| {
            infer(
                "bucketize",
                &[("input_tensor", tensor("2 n:float32")), ("boundaries", tensor(bounds)), ("out_int32", flag(short))],
            )
        };
        assert_eq!(bucketize("5:float32", false), Ok(ty("2 n:int64")));
        assert_eq!(bucketize("*", true), Ok(ty("2 n:int32")));
        assert_eq!(bucketize("5 5", false), Err(Some(Code::TensorNdimMismatch)));
    }
}
