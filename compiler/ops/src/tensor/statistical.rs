//! Reductions and scans: schemas and struct-info rules.

use super::compute::statistical as compute;
use super::operands::element_count;
use super::values::{pick, reduce};
use crate::arguments::MAX_WRITTEN_RANK;
use crate::axes::{normalize_axes, normalize_axis};
use crate::call::{CallInfo, Problem};
use crate::compute::Loops;
use crate::cost::Cost;
use crate::infer_layout::{Laid, LaidOut, LayoutCall, axes_attr, letter};
use crate::layout::Layout;
use crate::operands::{Element, rank_like, tensor_type};
use crate::schema::{AttrKind, Param, Schema, Traits};
use rx_base::{DType, Dim};
use rx_ir::{Shape, StructInfo, TensorInfo};
use rx_tir::BinaryOp;

const REDUCTION: &[Param] = &[
    Param::tensor("x", "The input."),
    Param::optional_attr("axis", AttrKind::Ints, "The axis or axes to reduce; all of them when left out."),
    Param::flag("keepdims", false, "Whether reduced axes stay, with size 1."),
];
const SCAN: &[Param] = &[
    Param::tensor("data", "The input."),
    Param::optional_attr("axis", AttrKind::Int, "The axis to run along; the flattened input when left out."),
    Param::optional_attr("dtype", AttrKind::DType, "The dtype of the result; that of `data` when left out."),
    // TVM treats `None` as false (TVM relax/op/statistical.py).
    Param::optional_attr(
        "exclusive",
        AttrKind::Bool,
        "Whether each value leaves out its own element, so that the first is neutral; not when left out.",
    ),
];

/// Creates a reduction with one result tensor.
const fn reduction(name: &'static str, doc: &'static str, loops: Loops) -> Schema {
    Schema::new(name, doc, reduce)
        .taking(REDUCTION)
        .lowered_by(loops)
        .costing(Cost::PerInput(1))
        .with_traits(Traits::OPAQUE.computing(reduce::reduction).laid_out(reduction_layouts))
}

/// Creates a cumulative operator (scan).
const fn cumulative(name: &'static str, doc: &'static str, loops: Loops) -> Schema {
    Schema::new(name, doc, scan)
        .taking(SCAN)
        .lowered_by(loops)
        .costing(Cost::PerInput(1))
        .with_traits(Traits::OPAQUE.computing(reduce::scan))
}

pub(crate) static OPERATORS: &[Schema] = &[
    cumulative("cumprod", "The product of all elements up to each one, along an axis.", |lowering| {
        compute::scan(lowering, BinaryOp::Mul)
    }),
    cumulative("cumsum", "The sum of all elements up to each one, along an axis.", |lowering| {
        compute::scan(lowering, BinaryOp::Add)
    }),
    reduction("max", "The largest element over some axes, or all.", |lowering| compute::fold(lowering, BinaryOp::Max)),
    reduction("mean", "The mean over some axes, or all.", compute::mean),
    Schema::new(
        "median",
        "The median over some axes, or all. Over exactly one axis the result is a tuple: the medians, and their \
         positions on the axis as `int64`.",
        median,
    )
    .taking(REDUCTION)
    .lowered_by(compute::median)
    .with_traits(Traits::OPAQUE.computing(pick::median)),
    reduction("min", "The smallest element over some axes, or all.", |lowering| compute::fold(lowering, BinaryOp::Min)),
    reduction("prod", "The product over some axes, or all.", |lowering| compute::fold(lowering, BinaryOp::Mul)),
    reduction(
        "std",
        "The standard deviation over some axes, or all; the mean of squares is not corrected for bias.",
        compute::std,
    )
    .costing(Cost::PerInput(4)),
    reduction("sum", "The sum over some axes, or all.", |lowering| compute::fold(lowering, BinaryOp::Add)),
    reduction(
        "variance",
        "The variance over some axes, or all; the mean of squares is not corrected for bias.",
        |lowering| compute::deviation(lowering, |variance| variance),
    )
    .costing(Cost::PerInput(4)),
];

/// Layout rule of reductions (TVM's `InferLayoutStatistical`): `x` keeps its layout, a reduced axis is reduced with all
/// its pieces, and the other axes keep their order in the result. A split axis that stays with extent 1 is not split
/// any more.
fn reduction_layouts(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let ndim = call.ndim("x")?;
    let reduced = match call.call.ints("axis") {
        Some(axes) => normalize_axes(call.call, "axis", ndim, &axes).ok()?,
        None => (0..ndim).collect(),
    };
    let is_reduced = |known: char| reduced.iter().any(|axis| letter(*axis) == Some(known));
    let keepdims = call.call.bool("keepdims").unwrap_or(false);
    let is_split =
        |layout: &Layout| reduced.iter().filter_map(|axis| letter(*axis)).any(|axis| layout.factor_of(axis) > 1);
    let given = call.layout("x")?;
    let layout = match (keepdims && is_split(given)) || given.axis_pieces().any(|pieces| pieces.len() > 1) {
        true => call.whole("x")?,
        false => given.clone(),
    };
    let of_reduced: Vec<bool> =
        layout.axis_pieces().map(|pieces| pieces.iter().any(|(letter, _)| is_reduced(*letter))).collect();
    let axes: Vec<usize> = (0..layout.ndim()).filter(|axis| of_reduced.get(*axis) == Some(&true)).collect();
    let result = if keepdims { layout.clone() } else { without(&layout, &is_reduced, ndim)? };
    Some(LaidOut::result(Laid::Tensor(result)).of("x", &layout).with("axis", axes_attr(&axes)))
}

/// Returns the layout without the axes of some letters; the remaining letters are renamed to A, B, C, …. Returns `None`
/// if pieces of several letters share an axis.
fn without(layout: &Layout, is_gone: &dyn Fn(char) -> bool, ndim: usize) -> Option<Layout> {
    let text = layout.axis_pieces().filter_map(|pieces| match pieces[..] {
        [(letter, size)] if !is_gone(letter) => Some(match size {
            Some(size) => format!("{size}{}", letter.to_ascii_lowercase()),
            None => letter.to_string(),
        }),
        _ => None,
    });
    let kept: String = Layout::initial(ndim)?.letters().filter(|letter| !is_gone(*letter)).collect();
    let counted = Layout::initial(kept.len())?;
    Layout::parse(&text.collect::<String>()).ok()?.relettered(&kept, counted.text())
}

/// The type of a reduction's result, before the operator's final adjustments.
struct Reduced<'a> {
    data: &'a TensorInfo,
    shape: Shape,
    /// The number of axes given; `None` if all axes are reduced.
    axes: Option<usize>,
}

/// Infers the shape after a reduction (TVM's `InferTypeStatistical`).
fn reduced<'a>(call: &CallInfo<'a>) -> Result<Reduced<'a>, Problem> {
    let data = call.tensor("x")?;
    let given = call.ints("axis");
    let keepdims = call.bool("keepdims").unwrap_or(false);
    let ndim = data.shape.ndim();
    let axes = match (&given, ndim) {
        (Some(given), Some(ndim)) => Some(normalize_axes(call, "axis", ndim, given)?),
        _ => None,
    };
    let one = || Dim::constant(1);
    let shape = match (data.shape.written_dims(), &given) {
        (Some(dims), None) => Shape::known(if keepdims { vec![one(); dims.len()] } else { Vec::new() }),
        (Some(dims), Some(_)) => {
            let mut reduce = vec![false; dims.len()];
            for axis in axes.iter().flatten() {
                // INVARIANT: `normalize_axes` returns axes less than the rank.
                reduce[*axis] = true;
                call.derive(keepdims.then_some(*axis), || "keepdims=True leaves 1 of a reduced axis".to_owned());
            }
            let kept = std::iter::zip(dims, reduce).filter_map(|(dim, reduce)| match (reduce, keepdims) {
                (false, _) => Some(dim.clone()),
                (true, true) => Some(one()),
                (true, false) => None,
            });
            Shape::known(kept.collect::<Vec<_>>())
        }
        (None, None) if !keepdims => Shape::known([]),
        (None, None) => match ndim {
            Some(ndim) if ndim <= MAX_WRITTEN_RANK => Shape::known(vec![one(); ndim]),
            ndim => rank_like(&data.shape, ndim),
        },
        (None, Some(_)) if keepdims => rank_like(&data.shape, ndim),
        (None, Some(_)) => match (ndim, &axes) {
            // INVARIANT: the axes are distinct and less than the rank, so there are at most `ndim`.
            (Some(ndim), Some(axes)) if axes.len() == ndim => Shape::known([]),
            (Some(ndim), Some(axes)) => Shape::Rank(ndim - axes.len()),
            _ => rank_like(&data.shape, None),
        },
    };
    Ok(Reduced { data, shape, axes: given.map(|given| given.len()) })
}

fn reduce(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let Reduced { data, shape, .. } = reduced(call)?;
    Ok(tensor_type(shape, Element::of(data), data.vdevice))
}

/// Infers the type of `median` (TVM's `InferTypeStatisticalExtension`). If dims are known, the result is a tuple (with
/// indices) when at most one axis is given. If dims are unknown, it is a tuple unless all dims of the result are known
/// anyway.
fn median(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let Reduced { data, shape, axes } = reduced(call)?;
    let single = match (&data.shape, axes) {
        (Shape::Known(_), axes) => axes.is_none_or(|axes| axes > 1),
        _ => shape.dims().is_some(),
    };
    let values = tensor_type(shape.clone(), Element::of(data), data.vdevice);
    if single {
        return Ok(values);
    }
    let positions = tensor_type(shape, Element::known(Some(DType::INT64)), data.vdevice);
    Ok(StructInfo::tuple([values, positions]))
}

/// Infers the type of a scan (TVM's `InferTypeScan`, which does not check the axis). Without an axis the input is
/// flattened, so the result has one dimension. TVM instead keeps the rank of an input whose dims are unknown.
fn scan(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let element = call.dtype("dtype").map_or(Element::of(data), |dtype| Element::known(Some(dtype)));
    let shape = match (call.int("axis"), data.shape.written_dims()) {
        (Some(axis), _) => {
            if let Some(ndim) = data.shape.ndim() {
                normalize_axis(call, "axis", ndim, axis)?;
            }
            data.shape.clone()
        }
        (None, Some(dims)) => Shape::known([element_count(dims)]),
        (None, None) => rank_like(&data.shape, Some(1)),
    };
    Ok(tensor_type(shape, element, data.vdevice))
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, flag, infer, number, numbers, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn over(op: &str, input: &str, axes: Option<&[i64]>, keepdims: bool) -> Result<StructInfo, Option<Code>> {
        let mut args: Vec<(&str, Given)> = vec![("x", tensor(input)), ("keepdims", flag(keepdims))];
        args.extend(axes.map(|axes| ("axis", numbers(axes))));
        infer(op, &args)
    }

    #[test]
    fn reductions_drop_axes_or_keep_them_as_one() {
        for (input, axes, keepdims, wanted) in [
            ("a b c d:float32", Some(&[1, 2][..]), false, "a d:float32"),
            ("a b c d:float32", Some(&[1, -2]), true, "a 1 1 d:float32"),
            ("a b:float32", None, false, ":float32"),
            ("a b:float32", Some(&[]), false, "a b:float32"),
            ("?2:float32", None, true, "1 1:float32"),
            ("?2:float32", Some(&[0]), false, "?1:float32"),
            ("?2:float32", Some(&[0, 1]), false, ":float32"),
            ("*:float32", Some(&[0]), true, "*:float32"),
            ("?9999999999:float32", None, true, "?9999999999:float32"),
        ] {
            assert_eq!(over("mean", input, axes, keepdims), Ok(ty(wanted)), "{input} {axes:?} {keepdims}");
        }
        for wrong in [&[4][..], &[-5], &[3, 3], &[-1, 3]] {
            assert_eq!(over("sum", "?4:int8", Some(wrong), false), Err(Some(Code::AxisOutOfRange)));
        }
    }

    #[test]
    fn the_median_over_one_axis_tells_positions() {
        let both = |values, positions| Ok(StructInfo::tuple([ty(values), ty(positions)]));
        assert_eq!(over("median", "2 3:int8", Some(&[1]), false), both("2:int8", "2:int64"));
        assert_eq!(over("median", "2 3:int8", Some(&[0, 1]), true), Ok(ty("1 1:int8")));
        assert_eq!(over("median", "*:int8", None, false), Ok(ty(":int8")));
        assert_eq!(over("median", "*:int8", None, true), both("*:int8", "*:int64"));
        assert_eq!(over("median", "?4:int8", Some(&[1]), false), both("?3:int8", "?3:int64"));
    }

    #[test]
    fn scans_keep_the_shape_or_flatten() {
        assert_eq!(infer("cumsum", &[("data", tensor("2 n:int8")), ("axis", number(1))]), Ok(ty("2 n:int8")));
        let flat = infer("cumprod", &[("data", tensor("2 3 4:int8")), ("dtype", text("int32"))]);
        assert_eq!(flat, Ok(ty("24:int32")));
        let wrong = infer("cumsum", &[("data", tensor("2 n:int8")), ("axis", number(2))]);
        assert_eq!(wrong, Err(Some(Code::AxisOutOfRange)));
    }
}
