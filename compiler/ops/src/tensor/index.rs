//! `take`, which picks slices along an axis: schema and struct-info rule.

use super::compute::pick as compute;
use super::operands::{IndexKind, check_index_dtype, int_attr, scalar_dtype};
use super::values::pick;
use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::operands::{rank_like, tensor_like};
use crate::schema::{AttrKind, Param, ParamKind, Schema, Traits};
use crate::traits::{self, Site};
use rx_base::{Code, DType, Dim, counted, one_of};
use rx_ir::{Shape, StructInfo};

pub(crate) static OPERATORS: &[Schema] = &[Schema::new(
    "take",
    "Picks slices of `x` along an axis. The shape of `indices` replaces the axis.",
    take,
)
.taking(&[
    Param::tensor("x", "The tensor to pick from."),
    Param::operand("indices", ParamKind::Any, "Places along the axis: a tensor of integers, or an integer scalar."),
    Param::optional_attr(
        "axis",
        AttrKind::Int,
        "The axis to pick along; may be left out only where `x` has one dimension.",
    ),
    Param::choice(
        "mode",
        &["fast", "clip", "wrap", "nan"],
        "fast",
        "How an index outside `[0, length)` is treated: `fast` is not checked, `clip` takes the nearest, `wrap` counts \
         modulo the length, `nan` gives NaN and needs float data.",
    ),
])
.lowered_by(compute::take)
.costing(Cost::Gather)
.with_traits(Traits::OPAQUE.keeping("x").indexing(sites).computing(pick::take))];

/// Lists the access of `take`. Only mode `fast` does not define the result of an index out of bounds.
fn sites(call: &CallInfo<'_>) -> Vec<Site> {
    let guarded = call.str("mode").is_some_and(|mode| mode != "fast");
    vec![Site { guarded, ..traits::along_axis(call, "indices", "x") }]
}

fn take(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let (indices, index_dtype) = indices(call)?;
    check_index_dtype(call, ParamPlace::Param("indices"), "indices", index_dtype, IndexKind::Integer)?;
    if let ("nan", Some(dtype)) = (call.str("mode").unwrap_or("fast"), x.dtype)
        && !dtype.is_float()
    {
        return Err(call
            .error_for(
                Code::TakeNanNeedsFloat,
                "mode",
                "x",
                format_args!("mode=\"nan\" needs float data, `x` is {dtype}"),
            )
            .with_help("use mode=\"clip\" or mode=\"wrap\"")
            .into());
    }
    let axis = int_attr(call, "axis")?;
    if x.shape == Shape::Error {
        return Ok(tensor_like(x, Shape::Error));
    }
    if axis.is_none() && x.shape.ndim() != Some(1) {
        return Err(axis_required(call, x.shape.ndim()));
    }
    let axis = x.shape.ndim().map(|ndim| normalize_axis(call, "axis", ndim, axis.unwrap_or(0))).transpose()?;
    Ok(tensor_like(
        x,
        match (x.shape.written_dims(), indices.written_dims(), axis) {
            (Some(dims), Some(picked), Some(axis)) => {
                let (before, after) = (dims.get(..axis), dims.get(axis + 1..));
                Shape::known([before.unwrap_or_default(), picked, after.unwrap_or_default()].concat())
            }
            _ => match (x.shape.ndim(), indices.ndim()) {
                (Some(ndim), Some(picked)) => Shape::Rank(ndim.saturating_sub(1).saturating_add(picked)),
                _ => rank_like(&indices, None),
            },
        },
    ))
}

/// Returns the shape and dtype of the indices. A scalar has the shape `()`.
fn indices(call: &CallInfo<'_>) -> Result<(Shape, Option<DType>), Problem> {
    let ty = call.ty("indices");
    match (ty, ty.as_tensor()) {
        (_, Some(tensor)) => Ok((tensor.shape.clone(), tensor.dtype)),
        (StructInfo::Error, _) => Err(Problem::Propagate),
        (StructInfo::Prim(prim), _) => {
            let dtype = call.operand("indices").and_then(|expr| scalar_dtype(expr, prim));
            Ok((Shape::known(Vec::<Dim>::new()), dtype))
        }
        _ => Err(call.wrong_kind(ParamPlace::Param("indices"), "indices", "a tensor or a scalar", ty)),
    }
}

fn axis_required(call: &CallInfo<'_>, ndim: Option<usize>) -> Problem {
    let rank = ndim.map_or_else(|| "an unknown number of dimensions".to_owned(), |ndim| counted(ndim, "dimension"));
    let message = format_args!("`axis` is needed unless `x` has one dimension, it has {rank}");
    let report = call.error_for(Code::TakeAxisRequired, "axis", "x", message);
    match ndim {
        Some(ndim) if ndim > 0 => {
            let axes: Vec<String> = (0..ndim.min(4)).map(|axis| format!("axis={axis}")).collect();
            report.with_help(format!("say which axis to pick along: {}", one_of(&axes))).into()
        }
        _ => report.into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, float, given, infer, int, number, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::{Shape, StructInfo};

    fn take(x: &str, indices: Given, rest: Vec<(&'static str, Given)>) -> Result<StructInfo, Option<Code>> {
        let mut args = vec![("x", tensor(x)), ("indices", indices)];
        args.extend(rest);
        infer("take", &args)
    }

    #[test]
    fn indices_replace_the_axis() {
        let along = |x: &str, indices: &str, axis: i64| take(x, tensor(indices), vec![("axis", number(axis))]);
        assert_eq!(along("4 10:float32", "6 n:int64", 1), Ok(ty("4 6 n:float32")));
        assert_eq!(along("4 10:float32", ":uint8", -2), Ok(ty("10:float32")));
        assert_eq!(along("?2:float32", "6 4:int64", 1), Ok(ty("?3:float32")));
        assert_eq!(along("*:float32", "6:?", 1), Ok(ty("*:float32")));
        assert_eq!(take("10:int8", tensor("6 4:int32"), vec![]), Ok(ty("6 4:int8")));
        assert_eq!(take("4 10:int8", int("3"), vec![("axis", number(1))]), Ok(ty("4:int8")));
    }

    #[test]
    fn mistakes_have_their_own_codes() {
        let axis = || ("axis", number(1));
        for (x, indices, rest, code) in [
            ("4 10:int8", tensor("6:int64"), vec![], Code::TakeAxisRequired),
            ("*:int8", tensor("6:int64"), vec![], Code::TakeAxisRequired),
            ("4 10:int8", tensor("6:int64"), vec![("axis", number(2))], Code::AxisOutOfRange),
            ("4 10:int8", tensor("6:float32"), vec![axis()], Code::IndexDtype),
            ("4 10:int8", float(1.0, "?"), vec![axis()], Code::IndexDtype),
            ("4 10:int8", tensor("6:int64"), vec![axis(), ("mode", text("nan"))], Code::TakeNanNeedsFloat),
            ("4 10:int8", given(StructInfo::Shape(Shape::Rank(1))), vec![axis()], Code::ArgumentType),
        ] {
            assert_eq!(take(x, indices, rest), Err(Some(code)), "{x}");
        }
        assert!(take("4 10:float16", tensor("6:int64"), vec![axis(), ("mode", text("nan"))]).is_ok());
    }
}
