//! Operators that pick elements by index tensors: schemas and struct-info rules.

use super::compute::{manipulate, pick};
use super::operands::{IndexKind, agree, check_index_dtype, check_same_rank, int_attr, retyped, scalar, tensors};
use super::values::{arrange, pick as picked};
use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::infer_layout::{self, LaidOut, LayoutCall};
use crate::layout::Layout;
use crate::operands::{rank_like, tensor_like};
use crate::schema::{AttrKind, Param, ParamKind, Schema, Traits};
use crate::traits::{self, Part, Site};
use rx_base::{Code, Dim};
use rx_ir::{Shape, StructInfo, TensorInfo};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "gather_elements",
        "For each index, the element of `data` at the same position, except along the axis, where the index is the \
         position. The result has the shape of `indices`. ONNX GatherElements.",
        gather_elements,
    )
    .taking(&[
        Param::tensor("data", "The tensor to pick from."),
        Param::tensor("indices", "Places along the axis, signed integers; of the rank of `data`."),
        Param::int("axis", 0, "The axis that `indices` point along."),
    ])
    .lowered_by(manipulate::gather_elements)
    .costing(Cost::Gather)
    .with_traits(
        Traits::OPAQUE
            .keeping("data")
            .indexing(|call| vec![traits::along_axis(call, "indices", "data")])
            .computing(picked::gather_elements)
            .laid_out(gather_elements_layouts),
    ),
    Schema::new("gather_nd", "Picks elements or slices by index tuples. ONNX GatherND.", gather_nd)
        .taking(&[
            Param::tensor("data", "The tensor to pick from."),
            Param::tensor("indices", "int64; its last axis holds one index for each of the leading axes of `data`."),
            Param::int("batch_dims", 0, "Leading axes that both tensors share."),
        ])
        .lowered_by(pick::gather_nd)
        .costing(Cost::Gather)
        .with_traits(Traits::OPAQUE.keeping("data").indexing(gather_nd_sites).computing(arrange::some)),
    Schema::new(
        "index_tensor",
        "Advanced indexing, `data[i, j, …]` with tensors of indices. The indices' common shape replaces the \
         leading axes.",
        index_tensor,
    )
    .taking(&[
        Param::tensor("data", "The tensor to pick from."),
        Param::operand("indices", ParamKind::Tensors, "One index tensor for each leading axis, broadcast together."),
    ])
    .lowered_by(pick::index_tensor)
    .costing(Cost::Gather)
    .with_traits(Traits::OPAQUE.keeping("data").indexing(|call| traits::by_axis(call, false)).computing(arrange::some)),
    Schema::new("one_hot", "Turns each index into a vector that is on at that place and off elsewhere.", one_hot)
        .taking(&[
            Param::tensor("indices", "Which place along the new axis is on; integers."),
            Param::operand("on_value", ParamKind::Prim, "The value at the index."),
            Param::operand("off_value", ParamKind::Prim, "The value elsewhere, of the dtype of `on_value`."),
            Param::required_attr("depth", AttrKind::Int, "The length of the new axis, > 0."),
            Param::int("axis", -1, "The index of the new axis in the result."),
        ])
        .lowered_by(pick::one_hot)
        .costing(Cost::PerOutput(0))
        .with_traits(Traits::OPAQUE.indexing(one_hot_sites).computing(picked::one_hot)),
];

/// Lists the accesses of `gather_nd`, whose index tuples apply to the axes after the batch axes.
fn gather_nd_sites(call: &CallInfo<'_>) -> Vec<Site> {
    let batch = call.int("batch_dims").and_then(|batch| usize::try_from(batch).ok());
    traits::by_tuples(call, batch.unwrap_or(0))
}

/// Lists the access of `one_hot`. An index outside the depth is defined: it sets no element.
fn one_hot_sites(call: &CallInfo<'_>) -> Vec<Site> {
    let ndim = call.ty("indices").as_tensor().and_then(|tensor| tensor.shape.ndim());
    let axis =
        ndim.and_then(|ndim| normalize_axis(call, "axis", ndim.saturating_add(1), call.int("axis").unwrap_or(-1)).ok());
    vec![Site {
        indices: "indices",
        part: Part::Whole,
        data: None,
        axis: axis.unwrap_or(0),
        extent: call.int("depth").map(Dim::constant),
        from_end: false,
        guarded: false,
    }]
}

/// Layout rule of `gather_elements` (TVM's `InferLayoutGatherElements`): both operands get the layout of `data`, or of
/// `indices` if only that differs from its type. Axes are not split.
fn gather_elements_layouts(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let initial = Layout::initial(call.ndim("data")?)?;
    let of_indices = *call.layout("data")? == initial && *call.layout("indices")? != initial;
    let layout = if of_indices { call.whole("indices")? } else { call.whole("data")? };
    infer_layout::along(call, layout, &["data", "indices"])
}

fn gather_elements(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (data, indices) = (call.tensor("data")?, call.tensor("indices")?);
    check_index_dtype(call, ParamPlace::Param("indices"), "indices", indices.dtype, IndexKind::Signed)?;
    if data.shape == Shape::Error || indices.shape == Shape::Error {
        return Ok(tensor_like(data, Shape::Error));
    }
    let (Some(ndim), Some(_)) = (data.shape.ndim(), indices.shape.ndim()) else {
        return Ok(tensor_like(data, Shape::Unknown));
    };
    normalize_axis(call, "axis", ndim, int_attr(call, "axis")?.unwrap_or(0))?;
    check_same_rank(call, ("data", data), ("indices", indices))?;
    Ok(tensor_like(data, indices.shape.clone()))
}

fn gather_nd(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (data, indices) = (call.tensor("data")?, call.tensor("indices")?);
    let batch = int_attr(call, "batch_dims")?.unwrap_or(0);
    let bad_batch = |message: std::fmt::Arguments<'_>| -> Problem {
        call.error(Code::AttrOutOfRange, ParamPlace::Param("batch_dims"), message).into()
    };
    let batch = usize::try_from(batch).map_err(|_| bad_batch(format_args!("batch_dims {batch} is negative")))?;
    check_index_dtype(call, ParamPlace::Param("indices"), "indices", indices.dtype, IndexKind::Int64)?;
    if data.shape == Shape::Error || indices.shape == Shape::Error {
        return Ok(tensor_like(data, Shape::Error));
    }
    let (Some(ndim), Some(index_ndim)) = (data.shape.ndim(), indices.shape.ndim()) else {
        return Ok(tensor_like(data, Shape::Unknown));
    };
    if batch > ndim {
        return Err(bad_batch(format_args!("batch_dims is {batch}, `data` has {ndim} dimensions")));
    }
    if batch >= index_ndim {
        let message = format_args!("batch_dims is {batch}, `indices` must have more dimensions and has {index_ndim}");
        return Err(bad_batch(message));
    }
    let last = indices.shape.written_dims().and_then(<[Dim]>::split_last);
    let Some((width, lead)) = last.and_then(|(last, lead)| Some((last.as_constant()?, lead))) else {
        return Ok(tensor_like(data, Shape::Unknown));
    };
    let Some(picked) = usize::try_from(width).ok().and_then(|width| width.checked_add(batch)).filter(|at| *at <= ndim)
    else {
        return Err(tuples_too_long(call, width, ndim, batch));
    };
    Ok(tensor_like(
        data,
        match data.shape.written_dims() {
            Some(dims) => Shape::known([lead, dims.get(picked..).unwrap_or_default()].concat()),
            None => Shape::Rank(lead.len() + (ndim - picked)),
        },
    ))
}

fn tuples_too_long(call: &CallInfo<'_>, width: i64, ndim: usize, batch: usize) -> Problem {
    let free = ndim.saturating_sub(batch);
    let message = format_args!("each entry of `indices` has {width} indices, `data` has {free} axes to index");
    call.operand_error(Code::ShapeMismatch, "indices", message)
        .with_label(ParamPlace::Param("data"), call.ty("data").to_string())
        .with_note(format!("the last length of `indices` is at most {ndim} dimensions - batch_dims {batch} = {free}"))
        .into()
}

fn index_tensor(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let indices = tensors(call, "indices")?;
    if indices.is_empty() {
        let message = format_args!("`indices` is empty, at least one index tensor is needed");
        return Err(call.error(Code::ArgumentType, ParamPlace::Param("indices"), message).into());
    }
    for (at, index) in indices.iter().enumerate() {
        let place = ParamPlace::Element("indices", at);
        check_index_dtype(call, place, &format!("indices[{at}]"), index.dtype, IndexKind::Signed)?;
    }
    let tail = match data.shape.ndim() {
        Some(ndim) => Some(ndim.checked_sub(indices.len()).ok_or_else(|| {
            let message = format_args!("{} index tensors for `data` of {ndim} dimensions", indices.len());
            call.error_for(Code::TensorNdimMismatch, "indices", "data", message)
        })?),
        None => None,
    };
    let common = index_shape(call, &indices)?;
    Ok(tensor_like(
        data,
        match (common, data.shape.written_dims(), tail) {
            (Some(mut dims), Some(rest), _) => {
                dims.extend_from_slice(rest.get(indices.len()..).unwrap_or_default());
                Shape::known(dims)
            }
            (Some(dims), None, Some(tail)) => Shape::Rank(dims.len().saturating_add(tail)),
            _ => rank_like(&data.shape, None),
        },
    ))
}

/// Returns the shape to which the index tensors broadcast; `None` if a shape is unknown or it is unknown whether two
/// dims are equal.
fn index_shape(call: &CallInfo<'_>, indices: &[&TensorInfo]) -> Result<Option<Vec<Dim>>, Problem> {
    let Some(shapes) = indices.iter().map(|index| index.shape.written_dims()).collect::<Option<Vec<&[Dim]>>>() else {
        return Ok(None);
    };
    let mut result = vec![Dim::constant(1); shapes.iter().map(|dims| dims.len()).max().unwrap_or(0)];
    for (at, dims) in shapes.into_iter().enumerate() {
        for (known, dim) in std::iter::zip(result.iter_mut().rev(), dims.iter().rev()) {
            match (known.as_constant(), dim.as_constant()) {
                (Some(1), _) => *known = dim.clone(),
                (_, Some(1)) => {}
                (Some(a), Some(b)) if a != b => {
                    let message = format_args!("`indices[{at}]` has length {b} where another has {a}");
                    return Err(call
                        .error(Code::BroadcastMismatch, ParamPlace::Element("indices", at), message)
                        .with_note("index tensors are broadcast together; lengths are equal or 1")
                        .into());
                }
                _ if agree(call, known, dim) => {}
                _ => return Ok(None),
            }
        }
    }
    Ok(Some(result))
}

fn one_hot(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let indices = call.tensor("indices")?;
    let ((_, on), (_, off)) = (scalar(call, "on_value")?, scalar(call, "off_value")?);
    if let (Some(on), Some(off)) = (on, off)
        && on != off
    {
        let message = format_args!("`on_value` is {on}, `off_value` is {off}; they must have one dtype");
        let report = call.error(Code::DtypeMismatch, ParamPlace::Param("off_value"), message);
        return Err(report.with_label(ParamPlace::Param("on_value"), on.to_string()).into());
    }
    let depth = int_attr(call, "depth")?.ok_or(Problem::Propagate)?;
    if depth <= 0 {
        let message = format_args!("depth {depth} must be positive");
        return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("depth"), message).into());
    }
    check_index_dtype(call, ParamPlace::Param("indices"), "indices", indices.dtype, IndexKind::Integer)?;
    let dtype = on.or(off);
    let Some(ndim) = indices.shape.ndim() else {
        return Ok(retyped(indices, rank_like(&indices.shape, None), dtype));
    };
    let axis = normalize_axis(call, "axis", ndim.saturating_add(1), int_attr(call, "axis")?.unwrap_or(-1))?;
    Ok(retyped(
        indices,
        match indices.shape.written_dims() {
            Some(dims) => {
                let mut dims = dims.to_vec();
                dims.insert(axis.min(dims.len()), Dim::constant(depth));
                call.derive(Some(axis), || format!("depth = {depth}"));
                Shape::known(dims)
            }
            None => Shape::Rank(ndim.saturating_add(1)),
        },
        dtype,
    ))
}

#[cfg(test)]
mod tests {
    use crate::tests::{float, infer, int, number, tensor, tuple, ty};
    use rx_base::Code;

    #[test]
    fn gather_elements_has_the_shape_of_the_indices() {
        let gather = |data: &str, indices: &str, axis: i64| {
            infer("gather_elements", &[("data", tensor(data)), ("indices", tensor(indices)), ("axis", number(axis))])
        };
        assert_eq!(gather("2 3:int8@llvm:0:global", "5 n:int64", 1), Ok(ty("5 n:int8@llvm:0:global")));
        assert_eq!(gather("?2:int8", "?2:int64", -1), Ok(ty("?2:int8")));
        assert_eq!(gather("*:int8", "2 3:?", 9), Ok(ty("*:int8")));
        assert_eq!(gather("2 3:int8", "2 3:int64", 2), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(gather("2 3:int8", "2:int64", 0), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(gather("2 3:int8", "2 3:uint32", 0), Err(Some(Code::IndexDtype)));
    }

    #[test]
    fn gather_nd_replaces_the_leading_axes() {
        let gather = |data: &str, indices: &str, batch: i64| {
            infer("gather_nd", &[("data", tensor(data)), ("indices", tensor(indices)), ("batch_dims", number(batch))])
        };
        assert_eq!(gather("2 3 4:int8", "5 2:int64", 0), Ok(ty("5 4:int8")));
        assert_eq!(gather("2 3 n:int8", "2 5 1:int64", 1), Ok(ty("2 5 n:int8")));
        assert_eq!(gather("?3:int8", "5 2:int64", 0), Ok(ty("?2:int8")));
        assert_eq!(gather("2 3:int8", "5 n:int64", 0), Ok(ty("*:int8")));
        assert_eq!(gather("2 3 4:int8", "2 4:int64", 0), Err(Some(Code::ShapeMismatch)));
        assert_eq!(gather("2 3 4:int8", "2 2:int32", 0), Err(Some(Code::IndexDtype)));
        assert_eq!(gather("2 3 4:int8", "2 2:int64", -1), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(gather("2 3 4:int8", "2 2:int64", 2), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(gather("2:int8", ":int64", 0), Err(Some(Code::AttrOutOfRange)));
    }

    #[test]
    fn index_tensors_are_broadcast_together() {
        let index = |data: &str, indices: &[&str]| {
            infer("index_tensor", &[("data", tensor(data)), ("indices", tuple(indices))])
        };
        assert_eq!(index("2 3 4:int8", &["5 1:int64", "6:int32"]), Ok(ty("5 6 4:int8")));
        assert_eq!(index("?3:int8", &["n:int64"]), Ok(ty("?3:int8")));
        assert_eq!(index("2 3:int8", &["n:int64", "m:int64"]), Ok(ty("*:int8")));
        assert_eq!(index("2 3:int8", &["?1:int64"]), Ok(ty("*:int8")));
        assert_eq!(index("2 3:int8", &["4:int64", "5:int64"]), Err(Some(Code::BroadcastMismatch)));
        assert_eq!(index("2:int8", &["4:int64", "4:int64"]), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(index("2:int8", &["4:float32"]), Err(Some(Code::IndexDtype)));
        assert_eq!(index("2:int8", &[]), Err(Some(Code::ArgumentType)));
    }

    #[test]
    fn one_hot_adds_an_axis() {
        let one_hot = |indices: &str, depth: i64, axis: i64| {
            let values = [("on_value", float(1.0, "float32")), ("off_value", float(0.0, "float32"))];
            let mut args = vec![("indices", tensor(indices)), ("depth", number(depth)), ("axis", number(axis))];
            args.extend(values);
            infer("one_hot", &args)
        };
        assert_eq!(one_hot("n:int32", 4, -1), Ok(ty("n 4:float32")));
        assert_eq!(one_hot("2 2:int32", 3, 1), Ok(ty("2 3 2:float32")));
        assert_eq!(one_hot("*:int32", 3, 1), Ok(ty("*:float32")));
        assert_eq!(one_hot("2:int32", 0, 1), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(one_hot("2:int32", 3, 2), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(one_hot("2:float32", 3, 0), Err(Some(Code::IndexDtype)));
        let mixed = [
            ("indices", tensor("2:int32")),
            ("on_value", float(1.0, "float32")),
            ("off_value", int("0")),
            ("depth", number(3)),
        ];
        assert_eq!(infer("one_hot", &mixed), Err(Some(Code::DtypeMismatch)));
    }
}
