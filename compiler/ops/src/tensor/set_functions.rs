//! `unique` and `nonzero`: schemas and struct-info rules.

use super::operands::{integer_value, retyped};
use super::values::pick;
use crate::axes::normalize_axis;
use crate::call::{Arg, CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::operands::{rank_like, tensor_like};
use crate::schema::{Default, Param, ParamKind, Schema, Traits};
use rx_base::{Code, DType, Dim};
use rx_ir::{Shape, StructInfo};

/// Creates a boolean parameter that TVM passes as an operand.
const fn flag(name: &'static str, default: bool, doc: &'static str) -> Param {
    Param { name, kind: ParamKind::Prim, default: Default::Bool(default), doc }
}

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "unique",
        "The different values of a tensor, and on request where they occur and how often. \
         How many there are is known at run time.",
        unique,
    )
    .taking(&[
        Param::tensor("x", "The input."),
        flag("sorted", true, "Whether the values come in ascending order."),
        flag("return_index", false, "Whether to give where each value first occurs."),
        flag("return_inverse", false, "Whether to give, for each element of the input, its place among the values."),
        flag("return_counts", false, "Whether to give how often each value occurs."),
        Param::optional(
            "axis",
            ParamKind::Prim,
            "The axis along which slices are compared; without it, the elements of the flattened input are.",
        ),
    ])
    .computed_as(Compute::Host)
    .with_traits(Traits::OPAQUE.computing(pick::unique)),
    Schema::new(
        "nonzero",
        "The indices of the elements that are not 0, as int64: one row for each axis, one column for each element.",
        nonzero,
    )
    .taking(&[Param::tensor("x", "The input.")])
    .computed_as(Compute::Host)
    .with_traits(Traits::OPAQUE.computing(pick::nonzero)),
];

/// Returns whether a flag is set. Its value must be constant.
fn is_set(call: &CallInfo<'_>, name: &'static str) -> Result<bool, Problem> {
    let value = match call.arg(name) {
        Arg::Operand(expr) if expr.ty.is_error() => return Err(Problem::Propagate),
        Arg::Operand(expr) => integer_value(expr).and_then(|value| value.as_constant()).map(|value| value != 0),
        _ => Some(call.bool(name).unwrap_or(false)),
    };
    value.ok_or_else(|| {
        let message = format_args!("`{name}` must be True or False, known when the program is written");
        call.error(Code::ArgumentType, ParamPlace::Param(name), message).into()
    })
}

fn unique(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let axis = call.operand("axis");
    if let (Some(ndim), Some(axis)) = (x.shape.ndim(), axis.and_then(integer_value).and_then(|axis| axis.as_constant()))
    {
        normalize_axis(call, "axis", ndim, axis)?;
    }
    let scalar = x.shape.ndim() == Some(0);
    let one_element = || Shape::known([Dim::constant(1)]);
    let values = match axis {
        _ if scalar => one_element(),
        Some(_) => rank_like(&x.shape, x.shape.ndim()),
        None => Shape::Rank(1),
    };
    let extra = retyped(x, if scalar { one_element() } else { Shape::Rank(1) }, Some(DType::INT64));
    let mut results = vec![tensor_like(x, values)];
    for name in ["return_index", "return_inverse", "return_counts"] {
        if is_set(call, name)? {
            results.push(extra.clone());
        }
    }
    Ok(match results.len() {
        // INVARIANT: `results` has one element here.
        1 => results.remove(0),
        _ => StructInfo::tuple(results),
    })
}

fn nonzero(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    Ok(retyped(x, Shape::Rank(2), Some(DType::INT64)))
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, flag, given, infer, int, prim, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    #[test]
    fn unique_gives_the_requested_results() {
        let all = || vec![("return_index", int("1")), ("return_inverse", flag(true)), ("return_counts", int("1"))];
        let unique = |x: &str, rest: Vec<(&'static str, Given)>| {
            let mut args = vec![("x", tensor(x))];
            args.extend(rest);
            infer("unique", &args)
        };
        assert_eq!(unique("2 n:int8", vec![]), Ok(ty("?1:int8")));
        assert_eq!(unique("2 n:int8", vec![("axis", int("-2"))]), Ok(ty("?2:int8")));
        assert_eq!(unique("*:int8", vec![("axis", int("1"))]), Ok(ty("*:int8")));
        let (values, extra) = (ty("1:int8"), ty("1:int64"));
        assert_eq!(unique(":int8", all()), Ok(StructInfo::tuple([values, extra.clone(), extra.clone(), extra])));
        assert_eq!(unique("2 3:int8", vec![("axis", int("2"))]), Err(Some(Code::AxisOutOfRange)));
        let unknown = vec![("return_index", given(prim("bool")))];
        assert_eq!(unique("2 3:int8", unknown), Err(Some(Code::ArgumentType)));
        assert_eq!(infer("unique", &[("x", given(StructInfo::Object))]), Err(Some(Code::ArgumentType)));
    }

    #[test]
    fn nonzero_has_two_axes() {
        assert_eq!(infer("nonzero", &[("x", tensor("2 n 4:bool@llvm:0:global"))]), Ok(ty("?2:int64@llvm:0:global")));
    }
}
