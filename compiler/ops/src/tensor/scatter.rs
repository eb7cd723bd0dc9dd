//! Operators that write elements to positions given by indices: schemas and struct-info rules.

use super::compute::scatter as compute;
use super::operands::{
    IndexKind, agree, ceil_div, check_index_dtype, check_same_dtype, check_same_rank, differ, int_attr, integer_value,
    scalar, tensor_or_tensors, tuple_text,
};
use super::values::join;
use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::infer_layout::{self, Laid, LaidOut, LayoutCall};
use crate::layout::Layout;
use crate::operands::{computed_from, tensor_like};
use crate::schema::{AttrKind, Default, Param, ParamKind, Schema, Traits};
use crate::traits::{self, Site};
use rx_base::{Answer, Code, Dim, Severity};
use rx_ir::{StructInfo, TensorInfo};

/// The reductions that TVM can lower.
const REDUCTIONS: &[&str] = &["update", "add", "mul", "mean", "max", "min"];

// The kind is a plain string, since TVM's inference accepts any string and only its lowering fails for an unknown one.
const REDUCTION: Param = Param::attr(
    "reduction",
    AttrKind::Str,
    Default::Str("update"),
    "How the old value is used: `update` replaces it; `add`, `mul`, `mean`, `max` and `min` combine the two.",
);

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "scatter_elements",
        "A copy of `data` in which each value of `updates` is written at its own position, except along \
         the axis, where the index is the position. ONNX ScatterElements.",
        scatter_elements,
    )
    .taking(&[
        Param::tensor("data", "The tensor to start from."),
        Param::tensor("indices", "Places along the axis, integers; of the rank of `data`."),
        Param::tensor("updates", "The values to write, of the shape of `indices` and the dtype of `data`."),
        Param::int("axis", 0, "The axis that `indices` point along."),
        REDUCTION,
    ])
    .lowered_by(compute::scatter_elements)
    .costing(Cost::PerOutput(0))
    .with_traits(
        Traits::OPAQUE.indexing(scatter_elements_sites).computing(join::overwritten).laid_out(scatter_elements_layouts),
    ),
    Schema::new(
        "scatter_nd",
        "A copy of `data` in which elements or slices are written at index tuples. ONNX ScatterND.",
        scatter_nd,
    )
    .taking(&[
        Param::tensor("data", "The tensor to start from."),
        Param::tensor("indices", "Integers; the last axis holds one index for each of the leading axes of `data`."),
        Param::tensor("updates", "The elements or slices to write: `indices.shape[:-1] + data.shape[k:]`."),
        REDUCTION,
    ])
    .lowered_by(compute::scatter_nd)
    .costing(Cost::PerOutput(0))
    .with_traits(
        Traits::OPAQUE
            .indexing(|call| traits::by_tuples(call, 0))
            .computing(join::overwritten)
            .laid_out(scatter_nd_layouts),
    ),
    Schema::new("slice_scatter", "A copy of the input in which a slice is replaced by `src`.", slice_scatter)
        .taking(&[
            Param::tensor("input_tensor", "The tensor to start from."),
            Param::tensor("src", "The values to write; as long as the slice along the axis."),
            Param::operand("start", ParamKind::Prim, "The first place written."),
            Param::operand("end", ParamKind::Prim, "The place before which to stop."),
            Param::operand("step", ParamKind::Prim, "The distance between places, ≥ 1."),
            Param::int("axis", 0, "The axis of the slice."),
        ])
        .lowered_by(compute::slice_scatter)
        .costing(Cost::PerOutput(0))
        .with_traits(Traits::OPAQUE.computing(join::overwritten)),
    Schema::new("index_put", "A copy of `data` in which `values` are written at `data[indices]`.", index_put)
        .taking(&[
            Param::tensor("data", "The tensor to start from."),
            Param::operand("indices", ParamKind::Tensors, "One index tensor for each axis of `data`, integers."),
            Param::tensor("values", "The values to write, of the dtype of `data`."),
            Param::flag("accumulate", false, "Whether to add to the old values instead of replacing them."),
        ])
        .lowered_by(compute::index_put)
        .costing(Cost::PerOutput(0))
        .with_traits(Traits::OPAQUE.indexing(|call| traits::by_axis(call, true)).computing(join::overwritten)),
];

/// Reports a warning for a reduction that cannot be lowered. The type does not depend on it.
fn warn_of_reduction(call: &CallInfo<'_>) {
    let Some(reduction) = call.str("reduction").filter(|given| !REDUCTIONS.contains(given)) else { return };
    let message = format_args!("reduction \"{reduction}\" cannot be lowered");
    let mut report = call
        .error(Code::AttrBadValue, ParamPlace::Param("reduction"), message)
        .with_help(format!("use one of {}", REDUCTIONS.join(", ")));
    report.severity = Severity::Warning;
    call.report(report);
}

fn scatter_elements_sites(call: &CallInfo<'_>) -> Vec<Site> {
    vec![Site { from_end: true, ..traits::along_axis(call, "indices", "data") }]
}

/// Layout rule of `scatter_elements` (TVM's `InferLayoutScatterElements`): all operands get the layout of `data`, or
/// that of `indices` and `updates` if these two are equal. Axes are not split.
fn scatter_elements_layouts(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let (indices, updates) = (call.layout("indices")?, call.layout("updates")?);
    let layout = if indices == updates { call.whole("indices")? } else { call.whole("data")? };
    infer_layout::along(call, layout, &["data", "indices", "updates"])
}

/// Layout rule of `scatter_nd` (TVM's `InferLayoutScatterND`): `updates` gets the layout of `data` if it has the same
/// rank. The indexed axes must keep their positions, otherwise all operands keep the layouts of their types; TVM does
/// not check this.
fn scatter_nd_layouts(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("data")?;
    let columns = call.call.ty("indices").as_tensor()?.shape.dims().and_then(|dims| dims.last()?.as_constant());
    let indexed = columns.and_then(|columns| usize::try_from(columns).ok())?;
    let initial = Layout::initial(layout.ndim())?;
    let in_place = layout.letters().zip(initial.letters()).take(indexed).all(|(own, wanted)| own == wanted);
    if !in_place || call.ndim("updates") != Some(layout.ndim()) {
        return None;
    }
    Some(LaidOut::result(Laid::Tensor(layout.clone())).of("data", &layout).of("updates", &layout))
}

fn scatter_elements(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (data, indices, updates) = (call.tensor("data")?, call.tensor("indices")?, call.tensor("updates")?);
    warn_of_reduction(call);
    let Some(ndim) = data.shape.ndim() else { return Ok(like_data(data)) };
    check_same_rank(call, ("data", data), ("indices", indices))?;
    check_same_rank(call, ("indices", indices), ("updates", updates))?;
    check_same_dtype(call, ("data", data), ("updates", updates))?;
    check_index_dtype(call, ParamPlace::Param("indices"), "indices", indices.dtype, IndexKind::Integer)?;
    normalize_axis(call, "axis", ndim, int_attr(call, "axis")?.unwrap_or(0))?;
    if let (Some(a), Some(b)) = (indices.shape.dims(), updates.shape.dims()) {
        for (axis, (index, update)) in std::iter::zip(a, b).enumerate() {
            if differ(call, index, update) {
                return Err(axis_clash(call, axis, ("indices", index), ("updates", update)));
            }
        }
    }
    Ok(like_data(data))
}

/// Returns the type of the data after a scatter. As in TVM, only the rank of a shape variable is kept.
fn like_data(data: &TensorInfo) -> StructInfo {
    tensor_like(data, computed_from(&[data], data.shape.clone()))
}

fn axis_clash(
    call: &CallInfo<'_>,
    axis: usize,
    (first, a): (&'static str, &Dim),
    (second, b): (&'static str, &Dim),
) -> Problem {
    let message = format_args!("axis {axis} of `{first}` is {a}, of `{second}` {b}; they must agree");
    call.operand_error(Code::ShapeMismatch, second, message)
        .with_label(ParamPlace::Param(first), call.ty(first).to_string())
        .into()
}

fn scatter_nd(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (data, indices, updates) = (call.tensor("data")?, call.tensor("indices")?, call.tensor("updates")?);
    warn_of_reduction(call);
    for (name, tensor) in [("data", data), ("updates", updates)] {
        if tensor.dtype.is_none() && !tensor.dtype_error {
            let message = format_args!("the dtype of `{name}` must be known, it is {}", call.ty(name));
            return Err(call.error(Code::DtypeMismatch, ParamPlace::Param(name), message).into());
        }
    }
    check_same_dtype(call, ("data", data), ("updates", updates))?;
    check_index_dtype(call, ParamPlace::Param("indices"), "indices", indices.dtype, IndexKind::Integer)?;
    if let (Some(data), Some(indices), Some(updates)) = (data.shape.dims(), indices.shape.dims(), updates.shape.dims())
    {
        check_scatter_shapes(call, data, indices, updates)?;
    }
    Ok(like_data(data))
}

/// Checks `updates.shape == indices.shape[:-1] + data.shape[k:]`, which must be proved, as in TVM.
fn check_scatter_shapes(call: &CallInfo<'_>, data: &[Dim], indices: &[Dim], updates: &[Dim]) -> Result<(), Problem> {
    let report = |place, message: std::fmt::Arguments<'_>| {
        call.error_for(Code::ShapeMismatch, place, "data", message)
            .with_note("updates.shape is indices.shape[:-1] + data.shape[k:], where k is the last length of `indices`")
    };
    let Some((last, lead)) = indices.split_last() else {
        return Err(report("indices", format_args!("`indices` must have at least one dimension")).into());
    };
    if last.is_error() {
        return Ok(());
    }
    let Some(width) = last.as_constant() else {
        return Err(
            report("indices", format_args!("the last length of `indices` must be a constant, it is {last}")).into()
        );
    };
    let Some(rest) = usize::try_from(width).ok().and_then(|width| data.get(width..)) else {
        let message = format_args!("each entry has {width} indices, `data` has {} axes", data.len());
        return Err(report("indices", message).into());
    };
    let wanted = [lead, rest].concat();
    let fits = wanted.len() == updates.len() && std::iter::zip(&wanted, updates).all(|(a, b)| agree(call, a, b));
    match fits {
        true => Ok(()),
        false => {
            let (wanted, given) = (tuple_text(&wanted), tuple_text(updates));
            let report = report("updates", format_args!("`updates` must have the shape {wanted}, it has {given}"));
            Err(report.with_label(ParamPlace::Param("indices"), call.ty("indices").to_string()).into())
        }
    }
}

/// Returns the value of an integer operand; `None` if it is computed at run time.
fn integer(call: &CallInfo<'_>, name: &'static str) -> Result<Option<Dim>, Problem> {
    let (expr, dtype) = scalar(call, name)?;
    match dtype {
        Some(dtype) if !dtype.is_int() => {
            let message = format_args!("`{name}` must be an integer, it is {dtype}");
            Err(call.error(Code::ArgumentType, ParamPlace::Param(name), message).into())
        }
        _ => Ok(integer_value(expr)),
    }
}

fn slice_scatter(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (data, src) = (call.tensor("input_tensor")?, call.tensor("src")?);
    let Some(ndim) = data.shape.ndim() else { return Ok(like_data(data)) };
    let axis = normalize_axis(call, "axis", ndim, int_attr(call, "axis")?.unwrap_or(0))?;
    check_same_rank(call, ("input_tensor", data), ("src", src))?;
    check_same_dtype(call, ("input_tensor", data), ("src", src))?;
    let (start, end, step) = (integer(call, "start")?, integer(call, "end")?, integer(call, "step")?);
    if let (Some(start), Some(end), Some(step)) = (start, end, step) {
        check_slice(call, (data, src), axis, [&start, &end, &step])?;
    }
    Ok(call.ty("input_tensor").clone())
}

fn check_slice(
    call: &CallInfo<'_>,
    (data, src): (&TensorInfo, &TensorInfo),
    axis: usize,
    [start, end, step]: [&Dim; 3],
) -> Result<(), Problem> {
    let never = |a: &Dim, b: &Dim| call.at_least(a, b) == Answer::Refuted;
    if never(step, &Dim::constant(1)) {
        let message = format_args!("step {step} must be at least 1");
        return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("step"), message).into());
    }
    if never(end, start) {
        let message = format_args!("end {end} lies before start {start}");
        return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("end"), message).into());
    }
    let (Some(data), Some(src)) = (data.shape.dims(), src.shape.dims()) else { return Ok(()) };
    let count = ceil_div(&(end - start), step);
    for (at, (old, new)) in std::iter::zip(data, src).enumerate() {
        if at != axis && differ(call, old, new) {
            return Err(axis_clash(call, at, ("input_tensor", old), ("src", new)));
        }
        if at == axis && differ(call, new, &count) {
            let message = format_args!("the slice has {count} places along axis {axis}, `src` has {new}");
            return Err(call
                .operand_error(Code::ShapeMismatch, "src", message)
                .with_note(format!("ceil(({end} - {start}) / {step}) = {count}"))
                .into());
        }
    }
    Ok(())
}

fn index_put(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (data, values) = (call.tensor("data")?, call.tensor("values")?);
    let indices = tensor_or_tensors(call, "indices")?;
    let Some(ndim) = data.shape.ndim() else { return Ok(like_data(data)) };
    for (at, index) in indices.iter().enumerate() {
        let place = ParamPlace::Element("indices", at);
        if index.shape.ndim() == Some(0) {
            let message = format_args!("`indices[{at}]` must have at least one dimension");
            return Err(call.error(Code::TensorNdimMismatch, place, message).into());
        }
        check_index_dtype(call, place, &format!("indices[{at}]"), index.dtype, IndexKind::Integer)?;
    }
    if indices.len() != ndim {
        let message = format_args!("{} index tensors for `data` of {ndim} dimensions", indices.len());
        return Err(call.error_for(Code::TensorNdimMismatch, "indices", "data", message).into());
    }
    check_same_dtype(call, ("data", data), ("values", values))?;
    Ok(like_data(data))
}

#[cfg(test)]
mod tests {
    use crate::tests::{call_of, infer, int, number, tensor, text, tuple, ty};
    use rx_base::Code;

    #[test]
    fn scatter_elements_keeps_the_type_of_data() {
        let scatter = |data: &str, indices: &str, updates: &str, axis: i64| {
            infer(
                "scatter_elements",
                &[
                    ("data", tensor(data)),
                    ("indices", tensor(indices)),
                    ("updates", tensor(updates)),
                    ("axis", number(axis)),
                ],
            )
        };
        assert_eq!(scatter("4 4:int8", "2 2:int64", "2 2:int8", 1), Ok(ty("4 4:int8")));
        assert_eq!(scatter("a b:int8", "c d:?", "e f:int8", 0), Ok(ty("a b:int8")));
        assert_eq!(scatter("*:int8", "2:int64", "2 2:int16", 9), Ok(ty("*:int8")));
        for (indices, updates, axis, code) in [
            ("2 2:int64", "2 3:int8", 0, Code::ShapeMismatch),
            ("2:int64", "2:int8", 0, Code::TensorNdimMismatch),
            ("2 2:int64", "2 2:int16", 0, Code::DtypeMismatch),
            ("2 2:float32", "2 2:int8", 0, Code::IndexDtype),
            ("2 2:int64", "2 2:int8", 99, Code::AxisOutOfRange),
        ] {
            assert_eq!(scatter("4 4:int8", indices, updates, axis), Err(Some(code)), "{indices} {updates}");
        }
    }

    #[test]
    fn an_unknown_reduction_is_warned_of() {
        let args =
            [("data", tensor("4")), ("indices", tensor("2")), ("updates", tensor("2")), ("reduction", text("updates"))];
        call_of("scatter_elements", &args, |call| {
            assert!((call.schema.infer)(call).is_ok());
            assert_eq!(call.findings.borrow().first().map(|found| found.code), Some(Code::AttrBadValue));
        });
    }

    #[test]
    fn scatter_nd_wants_updates_of_one_shape() {
        let scatter = |data: &str, indices: &str, updates: &str| {
            infer("scatter_nd", &[("data", tensor(data)), ("indices", tensor(indices)), ("updates", tensor(updates))])
        };
        assert_eq!(scatter("4 4 n:int8", "2 1:int64", "2 4 n:int8"), Ok(ty("4 4 n:int8")));
        assert_eq!(scatter("?2:int8", "2 1:int64", "?2:int8"), Ok(ty("?2:int8")));
        for (data, indices, updates, code) in [
            ("8:int8", "4 1:int64", "5:int8", Code::ShapeMismatch),
            ("8:int8", "4 2:int64", "4:int8", Code::ShapeMismatch),
            ("8:int8", "4 n:int64", "4:int8", Code::ShapeMismatch),
            ("8:int8", "n 1:int64", "m:int8", Code::ShapeMismatch),
            ("8:int8", ":int64", "4:int8", Code::ShapeMismatch),
            ("8:?", "4 1:int64", "4:int8", Code::DtypeMismatch),
        ] {
            assert_eq!(scatter(data, indices, updates), Err(Some(code)), "{data} {indices} {updates}");
        }
    }

    #[test]
    fn slice_scatter_counts_places() {
        let scatter = |src: &str, start: &str, end: &str, step: &str| {
            infer(
                "slice_scatter",
                &[
                    ("input_tensor", tensor("8 n:int8")),
                    ("src", tensor(src)),
                    ("start", int(start)),
                    ("end", int(end)),
                    ("step", int(step)),
                ],
            )
        };
        assert_eq!(scatter("3 n:int8", "2", "8", "2"), Ok(ty("8 n:int8")));
        assert_eq!(scatter("m n:int8", "0", "m", "1"), Ok(ty("8 n:int8")));
        assert_eq!(scatter("4 n:int8", "2", "8", "2"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(scatter("3 n+1:int8", "2", "8", "2"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(scatter("3 n:int8", "8", "2", "1"), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(scatter("3 n:int8", "2", "8", "0"), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(scatter("3 n:int16", "2", "8", "2"), Err(Some(Code::DtypeMismatch)));
    }

    #[test]
    fn index_put_takes_an_index_for_each_axis() {
        let put = |data: &str, indices: &[&str], values: &str| {
            infer("index_put", &[("data", tensor(data)), ("indices", tuple(indices)), ("values", tensor(values))])
        };
        assert_eq!(put("4 n:int8", &["2:int64", "2:uint32"], "2:int8"), Ok(ty("4 n:int8")));
        assert_eq!(put("4 n:int8", &["2:int64"], "2:int8"), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(put("4:int8", &["2:float32"], "2:int8"), Err(Some(Code::IndexDtype)));
        assert_eq!(put("4:int8", &["2:int64"], "2:int16"), Err(Some(Code::DtypeMismatch)));
        let single = [("data", tensor("4:int8")), ("indices", tensor("2:int64")), ("values", tensor("2:int8"))];
        assert_eq!(infer("index_put", &single), Ok(ty("4:int8")));
    }
}
