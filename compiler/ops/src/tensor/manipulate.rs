//! Operators that insert, remove, reorder, reverse or repeat axes: schemas and struct-info rules.

use super::compute::manipulate as compute;
use super::manipulate_layout;
use super::operands::{IndexKind, check_index_dtype, differ, element_count, int_attr, ints_attr};
use super::values::arrange;
use crate::axes::{normalize_axes, normalize_axis};
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::infer_layout;
use crate::operands::{rank_like, require_ndim, tensor_like};
use crate::schema::{AttrKind, Param, Schema, Traits};
use rustc_hash::FxHashSet;
use rx_base::{Code, Dim, counted};
use rx_ir::{Shape, StructInfo, TensorInfo};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("expand_dims", "Inserts axes of length 1.", expand_dims)
        .taking(&[
            Param::tensor("x", "The input."),
            Param::required_attr(
                "axis",
                AttrKind::Ints,
                "The indices of the new axes in the result; negative ones count from its end.",
            ),
        ])
        .computed_as(Compute::View("x"))
        .costing(Cost::Nothing)
        .with_traits(Traits::OPAQUE.keeping("x").computing(arrange::same).laid_out(manipulate_layout::expand_dims)),
    Schema::new(
        "squeeze",
        "Removes axes of length 1. A given axis of a constant length other than 1 is kept; one of symbolic length \
         is removed and must turn out to be 1.",
        squeeze,
    )
    .taking(&[
        Param::tensor("x", "The input."),
        Param::optional_attr("axis", AttrKind::Ints, "The axes to remove; without it, every axis of length 1."),
    ])
    .computed_as(Compute::View("x"))
    .costing(Cost::Nothing)
    .with_traits(Traits::OPAQUE.keeping("x").computing(arrange::same).laid_out(manipulate_layout::squeeze)),
    Schema::new("permute_dims", "Reorders the axes: the transpose.", permute_dims)
        .taking(&[
            Param::tensor("x", "The input."),
            Param::optional_attr(
                "axes",
                AttrKind::Ints,
                "For each axis of the result, the axis of `x` it is; without it, the axes are reversed.",
            ),
        ])
        .lowered_by(compute::permute_dims)
        .costing(Cost::Copy)
        .with_traits(Traits::OPAQUE.keeping("x").computing(arrange::permute).laid_out(manipulate_layout::permute_dims)),
    Schema::new("repeat", "Repeats each element: `[a, b]` twice is `[a, a, b, b]`.", repeat)
        .taking(&[
            Param::tensor("data", "The input."),
            Param::required_attr("repeats", AttrKind::Int, "How often each element is repeated, ≥ 0."),
            Param::optional_attr(
                "axis",
                AttrKind::Int,
                "The axis along which to repeat; without it, `data` is flattened first.",
            ),
        ])
        .lowered_by(compute::repeat)
        .costing(Cost::Copy)
        .with_traits(Traits::OPAQUE.keeping("data").computing(arrange::repeat).laid_out(manipulate_layout::repeat)),
    Schema::new("tile", "Repeats the tensor as a whole: `[a, b]` twice is `[a, b, a, b]`.", tile)
        .taking(&[
            Param::tensor("data", "The input."),
            Param::required_attr(
                "repeats",
                AttrKind::Ints,
                "Copies along each axis, ≥ 0, for the last axes; more numbers than axes add leading axes.",
            ),
        ])
        .lowered_by(compute::tile)
        .costing(Cost::Copy)
        .with_traits(Traits::OPAQUE.keeping("data").computing(arrange::tile).laid_out(manipulate_layout::tile)),
    Schema::new("flip", "Reverses the order of the elements along an axis.", flip)
        .taking(&[
            Param::tensor("data", "The input."),
            Param::required_attr("axis", AttrKind::Int, "The axis to reverse."),
        ])
        .lowered_by(compute::flip)
        .costing(Cost::Copy)
        .with_traits(Traits::OPAQUE.keeping("data").computing(arrange::flip).laid_out(infer_layout::along_axis)),
    Schema::new(
        "reverse_sequence",
        "Reverses the first `seq_lengths[i]` elements of sequence `i` of a batch and copies the other elements.",
        reverse_sequence,
    )
    .taking(&[
        Param::tensor("data", "The input."),
        Param::tensor("seq_lengths", "How many elements to reverse for each batch entry; int32 or int64."),
        Param::int("seq_axis", 1, "The axis along which elements are reversed."),
        Param::int("batch_axis", 0, "The axis that `seq_lengths` runs along."),
    ])
    .lowered_by(compute::reverse_sequence)
    .costing(Cost::Copy)
    .with_traits(Traits::OPAQUE.keeping("data").computing(arrange::reordered)),
];

fn expand_dims(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let axes = ints_attr(call, "axis")?.unwrap_or_default();
    if axes.is_empty() {
        return Ok(call.ty("x").clone());
    }
    let Some(ndim) = x.shape.ndim() else { return Ok(tensor_like(x, rank_like(&x.shape, None))) };
    let out_ndim = ndim.saturating_add(axes.len());
    let axes = normalize_axes(call, "axis", out_ndim, &axes)?;
    let Some(dims) = x.shape.written_dims() else { return Ok(tensor_like(x, Shape::Rank(out_ndim))) };
    let mut rest = dims.iter();
    let inserted: FxHashSet<usize> = axes.into_iter().collect();
    let new = |axis: usize| inserted.contains(&axis);
    let one = Dim::constant(1);
    let result: Vec<Dim> =
        (0..out_ndim).filter_map(|axis| if new(axis) { Some(&one) } else { rest.next() }).cloned().collect();
    Ok(tensor_like(x, Shape::known(result)))
}

fn squeeze(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    match ints_attr(call, "axis")? {
        Some(axes) if axes.is_empty() => Ok(call.ty("x").clone()),
        Some(axes) => squeeze_axes(call, &axes),
        None => Ok(match x.shape.dims() {
            // It is unknown whether a symbolic extent is 1, so the rank of the result is also unknown.
            Some(dims) => match dims.iter().map(Dim::as_constant).collect::<Option<Vec<i64>>>() {
                Some(lengths) => {
                    let kept = lengths.into_iter().filter(|length| *length != 1).map(Dim::constant);
                    squeezed(x, kept.collect(), None)
                }
                None if dims.iter().any(Dim::is_error) => tensor_like(x, Shape::Error),
                None => tensor_like(x, Shape::Unknown),
            },
            None => tensor_like(x, rank_like(&x.shape, None)),
        }),
    }
}

fn squeeze_axes(call: &CallInfo<'_>, axes: &[i64]) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let Some(ndim) = x.shape.ndim() else { return Ok(tensor_like(x, rank_like(&x.shape, None))) };
    let axes = normalize_axes(call, "axis", ndim, axes)?;
    let Some(dims) = x.shape.dims() else { return Ok(tensor_like(x, Shape::Rank(ndim.saturating_sub(axes.len())))) };
    let axes: FxHashSet<usize> = axes.into_iter().collect();
    let kept = |axis: usize, dim: &Dim| !axes.contains(&axis) || dim.as_constant().is_some_and(|length| length != 1);
    if let Some((axis, dim)) = dims.iter().enumerate().find(|(axis, dim)| axes.contains(axis) && kept(*axis, dim)) {
        let message = format_args!("axis {axis} of `x` has length {dim}, not 1, and stays");
        call.report(call.error(Code::AttrNoEffect, ParamPlace::Param("axis"), message));
    }
    let result: Vec<Dim> =
        dims.iter().enumerate().filter(|(axis, dim)| kept(*axis, dim)).map(|(_, dim)| dim.clone()).collect();
    let rank = result.len();
    Ok(squeezed(x, result, Some(rank)))
}

/// Returns the type of `x` with only these dims left. A shape variable stays itself if no dim is removed; otherwise
/// only `rank` is known.
fn squeezed(x: &TensorInfo, kept: Vec<Dim>, rank: Option<usize>) -> StructInfo {
    match &x.shape {
        Shape::Var { ndim: Some(ndim), .. } if *ndim == kept.len() => tensor_like(x, x.shape.clone()),
        Shape::Var { .. } => tensor_like(x, Shape::of_rank(rank)),
        _ => tensor_like(x, Shape::known(kept)),
    }
}

fn permute_dims(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let Some(axes) = ints_attr(call, "axes")? else {
        return Ok(match x.shape.written_dims() {
            Some(dims) => tensor_like(x, Shape::known(dims.iter().rev().cloned().collect::<Vec<_>>())),
            None if matches!(x.shape.ndim(), Some(0 | 1)) => call.ty("x").clone(),
            None => tensor_like(x, rank_like(&x.shape, x.shape.ndim())),
        });
    };
    let Some(ndim) = x.shape.ndim() else {
        if x.shape == Shape::Error {
            return Ok(tensor_like(x, Shape::Error));
        }
        let message = format_args!("`axes` names {} axes, and the rank of `x` is not known", axes.len());
        return Err(call
            .operand_error(Code::TensorNdimMismatch, "x", message)
            .with_help(format!(
                "give it a rank first: `R.match_cast({}, R.Tensor(ndim={}))`",
                call.written("x"),
                axes.len()
            ))
            .into());
    };
    if axes.len() != ndim {
        let message = format_args!("`x` has {}, `axes` names {}", counted(ndim, "dimension"), axes.len());
        return Err(call.error_for(Code::TensorNdimMismatch, "axes", "x", message).into());
    }
    let axes = normalize_axes(call, "axes", ndim, &axes)?;
    if axes.iter().enumerate().all(|(at, axis)| at == *axis) {
        return Ok(call.ty("x").clone());
    }
    Ok(match x.shape.written_dims() {
        Some(dims) => {
            let result: Vec<Dim> = axes.iter().filter_map(|axis| dims.get(*axis).cloned()).collect();
            tensor_like(x, Shape::known(result))
        }
        None => tensor_like(x, Shape::Rank(ndim)),
    })
}

fn check_not_negative(call: &CallInfo<'_>, place: ParamPlace, count: i64) -> Result<(), Problem> {
    match count < 0 {
        true => Err(call.error(Code::AttrOutOfRange, place, format_args!("repeats {count} is negative")).into()),
        false => Ok(()),
    }
}

fn repeat(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let repeats = int_attr(call, "repeats")?.ok_or(Problem::Propagate)?;
    check_not_negative(call, ParamPlace::Param("repeats"), repeats)?;
    let times = Dim::constant(repeats);
    let Some(axis) = int_attr(call, "axis")? else {
        return Ok(match data.shape.written_dims() {
            Some(dims) => tensor_like(data, Shape::known([&element_count(dims) * &times])),
            None => tensor_like(data, rank_like(&data.shape, Some(1))),
        });
    };
    let axis = data.shape.ndim().map(|ndim| normalize_axis(call, "axis", ndim, axis)).transpose()?;
    if repeats == 1 {
        return Ok(call.ty("data").clone());
    }
    Ok(match (data.shape.written_dims(), axis) {
        (Some(dims), Some(axis)) => {
            let scaled = |(at, dim): (usize, &Dim)| if at == axis { dim * &times } else { dim.clone() };
            tensor_like(data, Shape::known(dims.iter().enumerate().map(scaled).collect::<Vec<_>>()))
        }
        _ => tensor_like(data, rank_like(&data.shape, data.shape.ndim())),
    })
}

fn tile(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let repeats = ints_attr(call, "repeats")?.ok_or(Problem::Propagate)?;
    for (at, count) in repeats.iter().enumerate() {
        check_not_negative(call, ParamPlace::Element("repeats", at), *count)?;
    }
    let Some(ndim) = data.shape.ndim() else { return Ok(tensor_like(data, rank_like(&data.shape, None))) };
    let Some(dims) = data.shape.written_dims() else {
        return Ok(match repeats.len() <= ndim && repeats.iter().all(|count| *count == 1) {
            true => call.ty("data").clone(),
            false => tensor_like(data, Shape::Rank(ndim.max(repeats.len()))),
        });
    };
    // Both lists are aligned at the end; missing entries of the shorter list count as 1.
    let out_ndim = ndim.max(repeats.len());
    let one = Dim::constant(1);
    let at_axis = |axis: usize| {
        let dim = (axis + ndim).checked_sub(out_ndim).and_then(|at| dims.get(at)).unwrap_or(&one);
        let count = (axis + repeats.len()).checked_sub(out_ndim).and_then(|at| repeats.get(at)).copied().unwrap_or(1);
        dim * &Dim::constant(count)
    };
    Ok(tensor_like(data, Shape::known((0..out_ndim).map(at_axis).collect::<Vec<_>>())))
}

fn flip(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    if let (Some(ndim), Some(axis)) = (data.shape.ndim(), int_attr(call, "axis")?) {
        normalize_axis(call, "axis", ndim, axis)?;
    }
    Ok(call.ty("data").clone())
}

fn reverse_sequence(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (data, lengths) = (call.tensor("data")?, call.tensor("seq_lengths")?);
    require_ndim(call, "seq_lengths", 1, "(batch)")?;
    let place = ParamPlace::Param("seq_lengths");
    check_index_dtype(call, place, "seq_lengths", lengths.dtype, IndexKind::Int32Or64)?;
    if let Some(ndim) = data.shape.ndim() {
        normalize_axis(call, "seq_axis", ndim, int_attr(call, "seq_axis")?.unwrap_or(1))?;
        let axis = normalize_axis(call, "batch_axis", ndim, int_attr(call, "batch_axis")?.unwrap_or(0))?;
        if let (Some(batch), Some(given)) =
            (data.shape.dims().and_then(|dims| dims.get(axis)), lengths.shape.dims().and_then(<[Dim]>::first))
            && differ(call, batch, given)
        {
            return Err(call
                .error(
                    Code::ShapeMismatch,
                    place,
                    format_args!("axis {axis} of `data` is {batch}, `seq_lengths` has {given} elements"),
                )
                .with_primary_label(call.ty("seq_lengths").to_string())
                .with_label(ParamPlace::Param("data"), format!("{}: axis {axis} is {batch}", call.ty("data")))
                .into());
        }
    }
    Ok(call.ty("data").clone())
}

#[cfg(test)]
mod tests {
    use crate::tests::{call_of, given, infer, number, numbers, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    #[test]
    fn expand_dims_counts_axes_of_the_result() {
        let expand = |x: &str, axes: &[i64]| infer("expand_dims", &[("x", tensor(x)), ("axis", numbers(axes))]);
        assert_eq!(expand("2 3 4:int8", &[-1, 1, -6, 3, 5]), Ok(ty("2 1 1 1 3 1 4 1:int8")));
        assert_eq!(expand("n:int8", &[0]), Ok(ty("1 n:int8")));
        assert_eq!(expand("?3:int8", &[1, 3]), Ok(ty("?5:int8")));
        assert_eq!(expand("$s/3:int8", &[]), Ok(ty("$s/3:int8")));
        assert_eq!(expand("*:int8", &[7]), Ok(ty("*:int8")));
        assert_eq!(expand("2 3 4:int8", &[1, 5]), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(expand("?3:int8", &[1, -4]), Err(Some(Code::AxisOutOfRange)));
    }

    #[test]
    fn squeeze_removes_dims_that_may_be_one() {
        let squeeze = |x: &str, axes: &[i64]| infer("squeeze", &[("x", tensor(x)), ("axis", numbers(axes))]);
        let squeeze_all = |x: &str| infer("squeeze", &[("x", tensor(x))]);
        assert_eq!(squeeze("a 1 b:int8", &[1]), Ok(ty("a b:int8")));
        assert_eq!(squeeze("a 3 4:int8", &[0]), Ok(ty("3 4:int8")));
        assert_eq!(squeeze("2 3 4:int8", &[0]), Ok(ty("2 3 4:int8")));
        assert_eq!(squeeze("?6:int8", &[1, 4]), Ok(ty("?4:int8")));
        assert_eq!(squeeze_all("2 1 3 1 4:int8"), Ok(ty("2 3 4:int8")));
        assert_eq!(squeeze_all("a 1 b:int8"), Ok(ty("*:int8")));
        assert_eq!(squeeze("?6:int8", &[6]), Err(Some(Code::AxisOutOfRange)));
        call_of("squeeze", &[("x", tensor("2 3")), ("axis", numbers(&[0]))], |call| {
            assert!((call.schema.infer)(call).is_ok());
            assert_eq!(call.findings.borrow().iter().map(|found| found.code).collect::<Vec<_>>(), [Code::AttrNoEffect]);
        });
    }

    #[test]
    fn permute_dims_needs_every_axis_once() {
        let permute = |x: &str, axes: &[i64]| infer("permute_dims", &[("x", tensor(x)), ("axes", numbers(axes))]);
        assert_eq!(permute("1 2 3 n:int8", &[-2, -3, 3, -4]), Ok(ty("3 2 n 1:int8")));
        assert_eq!(permute("$s/2:int8", &[0, 1]), Ok(ty("$s/2:int8")));
        assert_eq!(permute("$s/2:int8", &[1, 0]), Ok(ty("?2:int8")));
        assert_eq!(infer("permute_dims", &[("x", tensor("1 2 3"))]), Ok(ty("3 2 1")));
        assert_eq!(infer("permute_dims", &[("x", tensor("*:int8"))]), Ok(ty("*:int8")));
        assert_eq!(permute("1 2 3 4:int8", &[0, 2, 1]), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(permute("*:int8", &[1, 0]), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(permute("1 2:int8", &[0, 0]), Err(Some(Code::AxisOutOfRange)));
    }

    #[test]
    fn repeat_and_tile_scale_lengths() {
        let repeat = |x: &str, times: i64, axis: i64| {
            infer("repeat", &[("data", tensor(x)), ("repeats", number(times)), ("axis", number(axis))])
        };
        assert_eq!(repeat("2 10 4:int8", 2, -2), Ok(ty("2 20 4:int8")));
        assert_eq!(repeat("?3:int8", 2, 0), Ok(ty("?3:int8")));
        assert_eq!(repeat("*:int8", 2, -4), Ok(ty("*:int8")));
        assert_eq!(repeat("2:int8", 2, 1), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(repeat("2:int8", -1, 0), Err(Some(Code::AttrOutOfRange)));
        let flat = infer("repeat", &[("data", tensor("2 10 4:int8")), ("repeats", number(2))]);
        assert_eq!(flat, Ok(ty("160:int8")));
        let tile = |x: &str, times: &[i64]| infer("tile", &[("data", tensor(x)), ("repeats", numbers(times))]);
        assert_eq!(tile("2 3 4:int8", &[3, 2]), Ok(ty("2 9 8:int8")));
        assert_eq!(tile("2 3 4:int8", &[5, 4, 3, 2]), Ok(ty("5 8 9 8:int8")));
        assert_eq!(tile("?3:int8", &[1]), Ok(ty("?3:int8")));
        assert_eq!(tile("?3:int8", &[1, 1, 1, 1]), Ok(ty("?4:int8")));
        assert_eq!(infer("tile", &[("data", tensor("2 3")), ("repeats", number(2))]), Ok(ty("2 6")));
    }

    #[test]
    fn reversing_keeps_the_type() {
        assert_eq!(infer("flip", &[("data", tensor("2 n:int8")), ("axis", number(1))]), Ok(ty("2 n:int8")));
        let flip = infer("flip", &[("data", tensor("2 n:int8")), ("axis", number(2))]);
        assert_eq!(flip, Err(Some(Code::AxisOutOfRange)));
        let reverse = |data: &str, lengths: &str| {
            infer("reverse_sequence", &[("data", tensor(data)), ("seq_lengths", tensor(lengths))])
        };
        assert_eq!(reverse("2 10 4:int8", "2:int32"), Ok(ty("2 10 4:int8")));
        assert_eq!(reverse("*:int8", "?1:int64"), Ok(ty("*:int8")));
        for (lengths, code) in [
            ("2 1:int32", Code::TensorNdimMismatch),
            ("2:float32", Code::IndexDtype),
            ("2:int16", Code::IndexDtype),
            ("3:int32", Code::ShapeMismatch),
        ] {
            assert_eq!(reverse("2 10 4:int8", lengths), Err(Some(code)), "{lengths}");
        }
        let any = [("data", tensor("2")), ("seq_lengths", given(StructInfo::Object))];
        assert_eq!(infer("reverse_sequence", &any), Err(Some(Code::ArgumentType)));
    }
}
