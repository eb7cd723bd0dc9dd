//! Operators that give the elements another shape (`reshape`, `flatten`), repeat them (`broadcast_to`) or sum them
//! (`collapse_sum`): schemas and struct-info rules.

use super::compute::manipulate as compute;
use super::operands::{agree, differ, element_count, shape, tuple_text};
use super::values::arrange;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::operands::{rank_like, tensor_like};
use crate::schema::{Param, ParamKind, Schema, Traits};
use rx_base::{Code, Dim, counted};
use rx_ir::{ExprKind, Shape, StructInfo, TensorInfo};

/// The maximum rank for which a fitting extent is suggested.
const MAX_ADVISED_RANK: usize = 16;

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "reshape",
        "The elements of `x`, in order, under another shape. The number of elements stays the same.",
        reshape,
    )
    .taking(&[
        Param::tensor("x", "The input."),
        Param::operand(
            "shape",
            ParamKind::Shape,
            "The new shape. One length may be -1, which is computed; 0 copies the length of the same axis of `x`.",
        ),
    ])
    .computed_as(Compute::View("x"))
    .costing(Cost::Nothing)
    .with_traits(Traits::OPAQUE.keeping("x").computing(arrange::same)),
    Schema::new(
        "flatten",
        "The elements of `x` as a tensor of one dimension. A scalar becomes a tensor of one element.",
        flatten,
    )
    .taking(&[Param::tensor("x", "The input.")])
    .computed_as(Compute::View("x"))
    .costing(Cost::Nothing)
    .with_traits(Traits::OPAQUE.keeping("x").computing(arrange::same)),
    Schema::new(
        "broadcast_to",
        "Repeats `x` along axes of length 1 and along new leading axes until it has the given shape.",
        broadcast_to,
    )
    .taking(&[
        Param::tensor("x", "The input."),
        Param::operand("shape", ParamKind::Shape, "The shape to repeat `x` into, of at least as many dimensions."),
    ])
    .lowered_by(compute::broadcast_to)
    .costing(Cost::PerOutput(0))
    .with_traits(Traits::OPAQUE.keeping("x").computing(arrange::broadcast)),
    Schema::new(
        "collapse_sum_to",
        "Sums `data` over the axes along which a tensor of the given shape would be broadcast to it. \
         The gradient of `broadcast_to`.",
        collapse_sum_to,
    )
    .taking(&[
        Param::tensor("data", "The input."),
        Param::operand("shape", ParamKind::Shape, "The shape to sum into; `data` must be a broadcast of it."),
    ])
    .lowered_by(compute::collapse_sum)
    .costing(Cost::PerInput(1)),
    Schema::new(
        "collapse_sum_like",
        "Sums `data` into the shape of `collapse_target`, as `collapse_sum_to` does.",
        collapse_sum_like,
    )
    .taking(&[
        Param::tensor("data", "The input."),
        Param::tensor("collapse_target", "A tensor of the shape to sum into; its elements are not used."),
    ])
    .lowered_by(compute::collapse_sum)
    .costing(Cost::PerInput(1)),
];

fn reshape(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let target = shape(call, "shape")?;
    let Some(written) = target.dims() else { return Ok(tensor_like(x, target)) };
    // -1 and 0 are special if the shape is written in the call. In a shape variable they are ordinary extents.
    let in_line = !matches!(call.operand("shape").map(|expr| &expr.kind), Some(ExprKind::Var(_)));
    let dims = if in_line { resolve_lengths(call, x, written)? } else { written.to_vec() };
    check_count(call, x, &dims)?;
    Ok(tensor_like(x, Shape::known(dims)))
}

/// Returns the written extents with -1 and 0 resolved (TVM's `ConvertNewShapeToExpr`).
fn resolve_lengths(call: &CallInfo<'_>, x: &TensorInfo, written: &[Dim]) -> Result<Vec<Dim>, Problem> {
    let mut inferred = None;
    for (at, dim) in written.iter().enumerate() {
        let place = ParamPlace::Element("shape", at);
        match dim.as_constant() {
            Some(-1) if inferred.is_some() => {
                let message = format_args!("two lengths are -1, only one can be computed");
                return Err(call.error(Code::AttrBadValue, place, message).into());
            }
            Some(-1) => inferred = Some(at),
            Some(length) if length < 0 => {
                let message =
                    format_args!("`shape[{at}]` is {length}; a length is at least 0, or -1 for the remaining length");
                return Err(call.error(Code::AttrOutOfRange, place, message).into());
            }
            _ => {}
        }
    }
    let is_zero = |dim: &Dim| dim.as_constant() == Some(0);
    let special = |(at, dim): (usize, &Dim)| (inferred == Some(at) || is_zero(dim)).then(|| (at, dim.clone()));
    let Some((at, dim)) = written.iter().enumerate().find_map(special) else { return Ok(written.to_vec()) };
    let source = match &x.shape {
        Shape::Known(dims) | Shape::Var { dims: Some(dims), .. } => dims,
        Shape::Error => {
            let unknown = |dim: &Dim| dim.as_constant().is_some_and(|length| length <= 0);
            return Ok(written.iter().map(|dim| if unknown(dim) { Dim::ERROR } else { dim.clone() }).collect());
        }
        _ => return Err(unknown_source(call, at, &dim)),
    };
    let mut dims = written.to_vec();
    for (at, dim) in dims.iter_mut().enumerate().filter(|(_, dim)| is_zero(dim)) {
        *dim = source.get(at).cloned().ok_or_else(|| {
            let message = format_args!("0 copies axis {at} of `x`, which has {} dimensions", source.len());
            call.error(Code::TensorNdimMismatch, ParamPlace::Element("shape", at), message)
                .with_label(ParamPlace::Param("x"), call.ty("x").to_string())
        })?;
    }
    if let Some(at) = inferred {
        let others = dims.iter().filter(|dim| dim.as_constant().is_none_or(|length| length > 0)).cloned();
        let length = element_count(source).floor_div(&element_count(&others.collect::<Vec<_>>()));
        if let Some(dim) = dims.get_mut(at) {
            *dim = length;
        }
    }
    Ok(dims)
}

fn unknown_source(call: &CallInfo<'_>, at: usize, written: &Dim) -> Problem {
    let message = format_args!("axis {at} is written {written}, and the shape of `x` it depends on is not known");
    call.error(Code::ReshapeCountMismatch, ParamPlace::Element("shape", at), message)
        .with_label(ParamPlace::Param("x"), call.ty("x").to_string())
        .with_help("write the length, or give `x` a known shape with R.match_cast first")
        .into()
}

fn check_count(call: &CallInfo<'_>, x: &TensorInfo, dims: &[Dim]) -> Result<(), Problem> {
    let Some(source) = x.shape.dims() else { return Ok(()) };
    let (old, new) = (element_count(source), element_count(dims));
    if !differ(call, &old, &new) {
        return Ok(());
    }
    let report = call
        .error(
            Code::ReshapeCountMismatch,
            ParamPlace::Param("shape"),
            format_args!("`x` has {old} elements, the new shape {new}"),
        )
        .with_primary_label(format!("new shape {}", tuple_text(dims)))
        .with_label(ParamPlace::Param("x"), format!("{}: {old} elements", call.ty("x")))
        .with_note(format!("{}, {}", product_equation(source, &old), product_equation(dims, &new)));
    Err(match fitting_length(call, &old, dims) {
        Some((at, length)) => report.with_help(format!("axis {at} would fit with length {length}, or -1")),
        None => report,
    }
    .into())
}

/// Returns the axis whose extent can be changed so that the number of elements is `old`, with that extent, if there is
/// exactly one.
fn fitting_length(call: &CallInfo<'_>, old: &Dim, dims: &[Dim]) -> Option<(usize, Dim)> {
    // Each candidate multiplies all dims, and a suggestion for a very long shape is not useful.
    let tried = if dims.len() <= MAX_ADVISED_RANK { dims.len() } else { 0 };
    let mut found = (0..tried).filter_map(|at| {
        let (before, rest) = (dims.get(..at)?, dims.get(at + 1..)?);
        let others = &element_count(before) * &element_count(rest);
        let length = old.floor_div(&others);
        agree(call, &(&length * &others), old).then_some((at, length)).filter(|(_, length)| !length.is_error())
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn product_text(dims: &[Dim]) -> String {
    if dims.is_empty() {
        return "1".to_owned();
    }
    let simple = |dim: &Dim| dim.as_constant().is_some() || dim.as_symbol().is_some();
    let texts: Vec<String> =
        dims.iter().map(|dim| if simple(dim) { dim.to_string() } else { format!("({dim})") }).collect();
    texts.join(" * ")
}

/// Prints `2 * 3 * 4 = 24`, or only the product if there are fewer than two dims.
fn product_equation(dims: &[Dim], product: &Dim) -> String {
    match dims.len() {
        0 | 1 => product.to_string(),
        _ => format!("{} = {product}", product_text(dims)),
    }
}

fn flatten(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    Ok(match (&x.shape, x.shape.ndim()) {
        (_, Some(0)) => tensor_like(x, Shape::known([Dim::constant(1)])),
        (_, Some(1)) => call.ty("x").clone(),
        (Shape::Known(dims), _) => tensor_like(x, Shape::known([element_count(dims)])),
        (shape, _) => tensor_like(x, rank_like(shape, Some(1))),
    })
}

fn broadcast_to(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let target = shape(call, "shape")?;
    if let (Some(from), Some(to)) = (x.shape.ndim(), target.ndim())
        && to < from
    {
        return Err(too_few_dims(call, "x", from, to));
    }
    if let (Some(from), Some(to)) = (x.shape.dims(), target.dims()) {
        for (back, (old, new)) in std::iter::zip(from.iter().rev(), to.iter().rev()).enumerate() {
            if old.as_constant() != Some(1) && differ(call, old, new) {
                let (old_axis, new_axis) = (from.len() - 1 - back, to.len() - 1 - back);
                return Err(call
                    .error(
                        Code::BroadcastMismatch,
                        ParamPlace::Element("shape", new_axis),
                        format_args!("axis {old_axis} of `x` is {old}, the new shape has {new} there"),
                    )
                    .with_primary_label(format!("new shape {}", tuple_text(to)))
                    .with_label(ParamPlace::Param("x"), format!("{}: axis {old_axis} is {old}", call.ty("x")))
                    .with_note("an axis keeps its length, or grows from length 1")
                    .into());
            }
        }
    }
    Ok(tensor_like(x, target))
}

fn too_few_dims(call: &CallInfo<'_>, data: &'static str, from: usize, to: usize) -> Problem {
    call.error_for(
        Code::TensorNdimMismatch,
        "shape",
        data,
        format_args!("`{data}` has {}, the new shape only {to}", counted(from, "dimension")),
    )
    .into()
}

fn collapse_sum_to(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let target = shape(call, "shape")?;
    check_collapse(call, &data.shape, &target, "shape")?;
    Ok(tensor_like(data, target))
}

fn collapse_sum_like(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let target = call.tensor("collapse_target")?;
    check_collapse(call, &data.shape, &target.shape, "collapse_target")?;
    Ok(TensorInfo { shape: target.shape.clone(), vdevice: target.vdevice, ..data.clone() }.into())
}

/// Checks that `data` can be summed to `target`: aligned at the last axis, each target dim equals the data's dim or is
/// 1 (TVM's `CheckCollapseShape`). As in TVM, dims whose equality is unknown are rejected, since they determine which
/// axes are summed.
fn check_collapse(call: &CallInfo<'_>, data: &Shape, target: &Shape, name: &'static str) -> Result<(), Problem> {
    let label = |report: rx_base::Diagnostic<ParamPlace>| {
        report.with_label(ParamPlace::Param("data"), call.ty("data").to_string())
    };
    if let (Some(from), Some(to)) = (data.ndim(), target.ndim())
        && to > from
    {
        let message = format_args!("`data` has {from} dimensions and cannot be summed into {to}");
        return Err(label(call.error(Code::TensorNdimMismatch, ParamPlace::Param(name), message)).into());
    }
    let (Some(data), Some(target)) = (data.dims(), target.dims()) else { return Ok(()) };
    for (back, (from, to)) in std::iter::zip(data.iter().rev(), target.iter().rev()).enumerate() {
        if to.as_constant() == Some(1) || agree(call, from, to) {
            continue;
        }
        let (from_axis, to_axis) = (data.len() - 1 - back, target.len() - 1 - back);
        let message = format_args!("axis {from_axis} of `data` is {from}, axis {to_axis} of the target is {to}");
        let report = label(call.error(Code::BroadcastMismatch, ParamPlace::Param(name), message))
            .with_note("an axis of the target must have the length of the data's or length 1");
        return Err(match differ(call, from, to) {
            true => report.into(),
            false => report.with_help("if they are equal, say so with R.match_cast before the call").into(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::tests::{dims, given, infer, shape, tensor, ty};
    use rx_base::Code;
    use rx_ir::{Shape, StructInfo};

    #[test]
    fn reshape_counts_elements() {
        let reshape = |x: &str, to: &str| infer("reshape", &[("x", tensor(x)), ("shape", shape(to))]);
        assert_eq!(reshape("2 3 4 5:float32", "3 8 5"), Ok(ty("3 8 5:float32")));
        assert_eq!(reshape("n 4 8:float16", "n 32"), Ok(ty("n 32:float16")));
        assert_eq!(reshape("n 4 8:float16", "-1 16").map(|ty| ty.to_string()).as_deref(), {
            Ok("R.Tensor((n * 2, 16), dtype=\"float16\")")
        });
        assert_eq!(reshape("2 3 4:int8", "0 -1"), Ok(ty("2 12:int8")));
        assert_eq!(reshape("*:?", "3 8 5"), Ok(ty("3 8 5:?")));
        for (x, to, code) in [
            ("2 3 4 5:float32", "4 4 1 5", Code::ReshapeCountMismatch),
            ("n 4:float32", "m 4+1 0", Code::TensorNdimMismatch),
            ("?4:float32", "2 3 -1", Code::ReshapeCountMismatch),
            ("2 3:float32", "-1 -1", Code::AttrBadValue),
            ("2 3:float32", "-2 -3", Code::AttrOutOfRange),
            ("2 3:float32", "4 -1", Code::ReshapeCountMismatch),
        ] {
            assert_eq!(reshape(x, to), Err(Some(code)), "{x} to {to}");
        }
    }

    #[test]
    fn a_shape_variable_names_the_result() {
        let to = |shape| [("x", tensor("2 3:float32")), ("shape", given(StructInfo::Shape(shape)))];
        assert_eq!(infer("reshape", &to(Shape::Rank(3))), Ok(ty("$x/3:float32")));
        assert_eq!(infer("reshape", &to(Shape::known(dims("3 2")))), Ok(ty("3 2:float32")));
        assert_eq!(infer("broadcast_to", &to(Shape::Unknown)), Ok(ty("$x:float32")));
        assert_eq!(infer("broadcast_to", &to(Shape::Rank(1))), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(infer("reshape", &to(Shape::Error)).map(|ty| ty.to_string()).as_deref(), {
            Ok("R.Tensor(dtype=\"float32\")")
        });
    }

    #[test]
    fn flatten_multiplies() {
        for (x, wanted) in
            [("3 4 5:int8", "60:int8"), (":int8", "1:int8"), ("n:int8", "n:int8"), ("?3:int8", "?1:int8"), ("*", "?1")]
        {
            assert_eq!(infer("flatten", &[("x", tensor(x))]), Ok(ty(wanted)), "{x}");
        }
    }

    #[test]
    fn broadcasting_grows_axes_of_length_one() {
        let broadcast = |x: &str, to: &str| infer("broadcast_to", &[("x", tensor(x)), ("shape", shape(to))]);
        assert_eq!(broadcast("2 1 3:int8", "4 2 5 3"), Ok(ty("4 2 5 3:int8")));
        assert_eq!(broadcast("2 a:int8", "b a"), Ok(ty("b a:int8")));
        assert_eq!(broadcast("2 1 3:int8", "2 1 6"), Err(Some(Code::BroadcastMismatch)));
        assert_eq!(broadcast("2 1:int8", "2"), Err(Some(Code::TensorNdimMismatch)));
    }

    #[test]
    fn collapsing_undoes_broadcasting() {
        let collapse = |x: &str, to: &str| infer("collapse_sum_to", &[("data", tensor(x)), ("shape", shape(to))]);
        assert_eq!(collapse("2 3 n:int8", "3 n"), Ok(ty("3 n:int8")));
        assert_eq!(collapse("3 4 5:int8", "1 5"), Ok(ty("1 5:int8")));
        assert_eq!(collapse("3 4 5:int8", "4 4 5"), Err(Some(Code::BroadcastMismatch)));
        assert_eq!(collapse("3 a 5:int8", "3 b 5"), Err(Some(Code::BroadcastMismatch)));
        let like =
            |x: &str, y: &str| infer("collapse_sum_like", &[("data", tensor(x)), ("collapse_target", tensor(y))]);
        assert_eq!(like("2 3 4:int8", "?2:float32@cuda:0:global"), Ok(ty("?2:int8@cuda:0:global")));
        assert_eq!(like("*", "3 4"), Ok(ty("3 4")));
        assert_eq!(like("3 6:int8", "3 5:int8"), Err(Some(Code::BroadcastMismatch)));
    }
}
