//! Pooling over fixed windows, and adaptive pooling to a given size: schemas and struct-info rules.

use super::compute::pool::{adaptive_avg_pool, avg_pool, max_pool};
use super::costs;
use super::window::{Window, data_letters, hint_idle_dilation, padding, per_axis, spatial_letters};
use super::window_layout;
use crate::call::{CallInfo, Problem};
use crate::cost::Cost;
use crate::layout::{laid_out_dims, layout_attr};
use crate::operands::{computed_from, rank_like, tensor_like};
use crate::schema::{AttrKind, Default, Param, Schema, Traits};
use rx_base::Dim;
use rx_ir::{Shape, StructInfo};

/// The data operand of a pooling.
pub(crate) const DATA: Param = Param::tensor("data", "The input, in the layout `layout`.");

/// Creates the parameter for the window's extents.
pub(crate) const fn pool_size(default: Default) -> Param {
    Param::attr("pool_size", AttrKind::Ints, default, "Extent of the window, one for all spatial axes or one each.")
}

/// Creates the parameter for the strides.
pub(crate) const fn strides(default: Default) -> Param {
    Param::attr("strides", AttrKind::Ints, default, "Steps between windows, one for all spatial axes or one each.")
}

/// Creates the parameter for the padding around the input.
pub(crate) const fn padding_param(default: Default) -> Param {
    Param::attr(
        "padding",
        AttrKind::Ints,
        default,
        "Padding around the input: one value for all sides, one per spatial axis, or all sides before then all after.",
    )
}

/// Creates the parameter for the distance between taps.
pub(crate) const fn dilation(default: Default) -> Param {
    Param::attr(
        "dilation",
        AttrKind::Ints,
        default,
        "Steps between the taps of a window, for all spatial axes or each.",
    )
}

/// The parameter for the rounding of extents.
pub(crate) const CEIL_MODE: Param = Param::flag(
    "ceil_mode",
    false,
    "Whether a last window may reach past the padded input, instead of being left out.",
);

/// Creates the parameter that states whether padding counts in an average.
pub(crate) const fn count_include_pad(default: bool) -> Param {
    Param::flag("count_include_pad", default, "Whether an average counts the padding; of no meaning for a maximum.")
}

/// Creates the parameter for the layout of the input.
pub(crate) const fn layout(default: &'static str) -> Param {
    Param::layout(
        "layout",
        default,
        "Axes of `data`: batch N, channels C, and the spatial letters; `NCHW16c` packs channels by 16.",
    )
}

/// The parameter for the layout of the result.
pub(crate) const OUT_LAYOUT: Param =
    Param::optional_attr("out_layout", AttrKind::Layout, "The layout of the result; that of `data` when left out.");

const OUTPUT_SIZE: Param = Param::optional_attr(
    "output_size",
    AttrKind::Ints,
    "Spatial extents of the result, one for all axes or one each; those of the input when left out.",
);

/// Returns the parameters of a pooling over `RANK` spatial axes.
const fn params<const RANK: usize>(include_pad: bool) -> [Param; 9] {
    let (ones, zeros) = match RANK {
        1 => (Default::Ints(&[1]), Default::Ints(&[0, 0])),
        2 => (Default::Ints(&[1, 1]), Default::Ints(&[0, 0])),
        _ => (Default::Ints(&[1, 1, 1]), Default::Ints(&[0, 0, 0])),
    };
    [
        DATA,
        pool_size(ones),
        strides(ones),
        padding_param(zeros),
        dilation(ones),
        CEIL_MODE,
        count_include_pad(include_pad),
        layout(data_letters(RANK)),
        OUT_LAYOUT,
    ]
}

const fn pooling<const RANK: usize>(name: &'static str, doc: &'static str) -> Schema {
    Schema::new(name, doc, pool::<RANK>)
        .costing(Cost::Formula(costs::pool::<RANK>))
        .with_traits(Traits::OPAQUE.laid_out(window_layout::pool))
}

const fn adaptive_pooling<const RANK: usize>(name: &'static str, doc: &'static str) -> Schema {
    Schema::new(name, doc, adaptive::<RANK>)
        .taking(const { &[DATA, OUTPUT_SIZE, layout(data_letters(RANK)), OUT_LAYOUT] })
        .lowered_by(adaptive_avg_pool::<RANK>)
        .costing(Cost::PerInput(1))
        .with_traits(Traits::OPAQUE.laid_out(window_layout::pool))
}

pub(crate) static OPERATORS: &[Schema] = &[
    pooling::<1>("nn.max_pool1d", "Maximum over sliding windows of one spatial axis.")
        .taking(&params::<1>(false))
        .lowered_by(max_pool::<1>),
    pooling::<2>("nn.max_pool2d", "Maximum over sliding windows of two spatial axes.")
        .taking(&params::<2>(false))
        .lowered_by(max_pool::<2>),
    pooling::<3>("nn.max_pool3d", "Maximum over sliding windows of three spatial axes.")
        .taking(&params::<3>(false))
        .lowered_by(max_pool::<3>),
    pooling::<1>("nn.avg_pool1d", "Average over sliding windows of one spatial axis.")
        .taking(&params::<1>(true))
        .lowered_by(avg_pool::<1>),
    pooling::<2>("nn.avg_pool2d", "Average over sliding windows of two spatial axes.")
        .taking(&params::<2>(false))
        .lowered_by(avg_pool::<2>),
    pooling::<3>("nn.avg_pool3d", "Average over sliding windows of three spatial axes.")
        .taking(&params::<3>(true))
        .lowered_by(avg_pool::<3>),
    adaptive_pooling::<1>(
        "nn.adaptive_avg_pool1d",
        "Average over windows chosen so that the output has a given width. `output_size=1` is a global average.",
    ),
    adaptive_pooling::<2>(
        "nn.adaptive_avg_pool2d",
        "Average over windows chosen so that the output has a given height and width. `output_size=1` is a global \
         average.",
    ),
    adaptive_pooling::<3>(
        "nn.adaptive_avg_pool3d",
        "Average over windows chosen so that the output has given spatial extents. `output_size=1` is a global \
         average.",
    ),
];

/// Infers the type of a pooling over `RANK` spatial axes (TVM `InferTypePool2D`).
fn pool<const RANK: usize>(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let padding = padding(call, RANK)?;
    let sizes = per_axis(call, "pool_size", RANK, 1)?;
    let strides = per_axis(call, "strides", RANK, 1)?;
    let dilation = per_axis(call, "dilation", RANK, 1)?;
    let letters = data_letters(RANK);
    let layout = layout_attr(call, "layout", letters, None)?;
    let out_layout = layout_attr(call, "out_layout", letters, Some(&layout))?;
    let Some(dims) = laid_out_dims(call, "data", &layout)? else {
        return Ok(tensor_like(data, rank_like(&data.shape, Some(out_layout.ndim()))));
    };
    let mut extents = layout.plain(dims, letters);
    let axes =
        spatial_letters(RANK).chars().zip(extents.iter().skip(2)).zip(sizes).zip(strides).zip(dilation).zip(padding);
    let windows: Vec<Window> = axes
        .map(|(((((letter, input), size), stride), dilation), padding)| Window {
            letter,
            input: input.clone(),
            kernel: Dim::constant(size),
            padding,
            stride,
            dilation,
        })
        .collect();
    hint_idle_dilation(call, &windows);
    let ceil_mode = call.bool("ceil_mode").unwrap_or(false);
    // N and C are unchanged.
    extents.truncate(2);
    for window in &windows {
        let extent = if ceil_mode { window.ceil_extent() } else { window.floor_extent() };
        if Window::is_empty(call, &extent) {
            return Err(window.empty_report(call, &extent, "pool_size"));
        }
        if !ceil_mode {
            call.derive(out_layout.axis_of(window.letter), || format!("{} = {extent}", window.formula()));
        }
        extents.push(extent);
    }
    Ok(tensor_like(data, computed_from(&[data], Shape::known(out_layout.physical(letters, &extents)))))
}

/// Infers the type of an adaptive pooling, whose windows follow from the output size (TVM
/// `InferTypeAdaptiveAvgPool2D`).
fn adaptive<const RANK: usize>(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let sizes = match call.attr("output_size") {
        Some(_) => Some(per_axis(call, "output_size", RANK, 1)?),
        None => None,
    };
    let letters = data_letters(RANK);
    let layout = layout_attr(call, "layout", letters, None)?;
    let out_layout = layout_attr(call, "out_layout", letters, Some(&layout))?;
    // A shape variable is also the result's shape if nothing changes it.
    let unchanged = sizes.is_none() && layout == out_layout && matches!(data.shape, Shape::Var { .. });
    let Some(dims) = laid_out_dims(call, "data", &layout)?.filter(|_| !unchanged) else {
        return Ok(match unchanged {
            true => call.ty("data").clone(),
            false => tensor_like(data, rank_like(&data.shape, Some(out_layout.ndim()))),
        });
    };
    let mut extents = layout.plain(dims, letters);
    if let Some(sizes) = sizes {
        extents.truncate(2);
        extents.extend(sizes.into_iter().map(Dim::constant));
    }
    Ok(tensor_like(data, computed_from(&[data], Shape::known(out_layout.physical(letters, &extents)))))
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, flag, infer, number, numbers, tensor, text, ty};
    use rx_base::{Code, Dim};
    use rx_ir::StructInfo;

    fn check(op: &str, data: &str, attrs: Vec<(&'static str, Given)>, wanted: &str) {
        let mut args = attrs;
        args.push(("data", tensor(data)));
        assert_eq!(infer(op, &args), Ok(ty(wanted)), "{op} of {data}");
    }

    #[test]
    fn windows_slide_over_every_layout() {
        let size = || ("pool_size", numbers(&[3, 3]));
        check("nn.max_pool2d", "2 3 32 30:float16", vec![size()], "2 3 30 28:float16");
        check("nn.max_pool2d", "2 3 32 32:float32", vec![size(), ("strides", number(2))], "2 3 15 15:float32");
        let ceil = ("ceil_mode", flag(true));
        check("nn.max_pool2d", "2 3 32 32:float32", vec![size(), ("strides", number(2)), ceil], "2 3 16 16:float32");
        let padding = ("padding", numbers(&[1, 2, 3]));
        check("nn.avg_pool3d", "2 3 4 5 6:int8", vec![padding], "2 3 6 9 12:int8");
        let layouts = vec![("layout", text("NCW16c")), ("out_layout", text("NWC16c"))];
        check("nn.avg_pool1d", "2 c 8 16:float32", layouts, "2 8 c 16:float32");
    }

    #[test]
    fn unknown_shapes_leave_the_rank_of_the_output_layout() {
        check("nn.max_pool2d", "*:?", vec![], "?4:?");
        check("nn.max_pool2d", "$s/4:float32", vec![("out_layout", text("NCHW4c"))], "?5:float32");
        check("nn.adaptive_avg_pool2d", "$s:float32", vec![], "$s:float32");
        check("nn.adaptive_avg_pool2d", "$s:float32", vec![("output_size", number(1))], "?4:float32");
        check("nn.adaptive_avg_pool2d", "n c h w:float32", vec![("output_size", number(7))], "n c 7 7:float32");
    }

    #[test]
    fn symbolic_extents_stay_symbolic() {
        let args = [
            ("data", tensor("n c w:float32")),
            ("pool_size", number(3)),
            ("strides", number(3)),
            ("padding", number(2)),
            ("dilation", number(2)),
        ];
        let w = Dim::symbol(rx_base::name::name("w"));
        let width = &(&w - &1.into()).floor_div(&3.into()) + &1.into();
        let wanted = StructInfo::tensor(
            [Dim::symbol(rx_base::name::name("n")), Dim::symbol(rx_base::name::name("c")), width],
            Some(rx_base::DType::FLOAT32),
        );
        assert_eq!(infer("nn.max_pool1d", &args), Ok(wanted));
    }

    #[test]
    fn mistakes_are_reported() {
        let code = |op: &str, data: &str, attr: (&'static str, Given)| infer(op, &[("data", tensor(data)), attr]);
        let data = "2 3 28 28:float32";
        for (attr, wanted) in [
            (("pool_size", numbers(&[1, 2, 3])), Code::AttrBadValue),
            (("padding", numbers(&[1, 2, 3])), Code::AttrBadValue),
            (("strides", number(0)), Code::AttrOutOfRange),
            (("layout", text("OIHW")), Code::UnknownLayout),
            (("out_layout", text("OHWI")), Code::UnknownLayout),
            (("layout", text("NCHW4c")), Code::TensorNdimMismatch),
            (("pool_size", number(29)), Code::ConvEmptyOutput),
        ] {
            assert_eq!(code("nn.avg_pool2d", data, attr), Err(Some(wanted)));
        }
        assert_eq!(
            code("nn.max_pool2d", "2 4 28 28 8:float32", ("layout", text("NCHW4c"))),
            Err(Some(Code::ShapeMismatch))
        );
    }
}
