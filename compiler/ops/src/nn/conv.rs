//! Convolutions and transposed convolutions: schemas. Module [`super::conv_rule`] has their struct-info rules.

use super::compute::conv as compute;
use super::conv_rule::{conv, conv_transpose, kernel_letters, transposed_kernel_letters};
use super::costs;
use super::window::data_letters;
use super::window_layout;
use crate::cost::Cost;
use crate::schema::{AttrKind, Default, Param, Schema, Traits};

/// The layout attributes that a program may request in `convert_layout`.
const LAYOUTS: &[&str] = &["data_layout", "kernel_layout", "out_layout"];

const DATA: Param = Param::tensor("data", "The input, in the layout `data_layout`.");
const WEIGHT: Param = Param::tensor("weight", "The kernel, in the layout `kernel_layout`.");
const GROUPS: Param = Param::int(
    "groups",
    1,
    "The number of groups of channels, which are convolved separately. It divides the input and output channels.",
);
const OUT_LAYOUT: Param =
    Param::optional_attr("out_layout", AttrKind::Layout, "The layout of the result; that of `data` when left out.");
const OUT_DTYPE: Param =
    Param::optional_attr("out_dtype", AttrKind::DType, "The dtype of the result; that of the operands when left out.");

const fn dilation(default: Default) -> Param {
    Param::attr(
        "dilation",
        AttrKind::Ints,
        default,
        "Steps between the taps of a kernel, for all spatial axes or each.",
    )
}

const fn data_layout(default: &'static str) -> Param {
    Param::layout(
        "data_layout",
        default,
        "Axes of `data`: batch N, channels C, and the spatial letters; `NCHW16c` packs channels by 16.",
    )
}

const fn ones(rank: usize) -> Default {
    match rank {
        1 => Default::Int(1),
        2 => Default::Ints(&[1, 1]),
        _ => Default::Ints(&[1, 1, 1]),
    }
}

const fn zeros(rank: usize) -> Default {
    match rank {
        1 => Default::Int(0),
        2 => Default::Ints(&[0, 0]),
        _ => Default::Ints(&[0, 0, 0]),
    }
}

const fn params(rank: usize) -> [Param; 10] {
    [
        DATA,
        WEIGHT,
        Param::attr(
            "strides",
            AttrKind::Ints,
            ones(rank),
            "Steps between windows, one for all spatial axes or one each.",
        ),
        Param::attr(
            "padding",
            AttrKind::Ints,
            zeros(rank),
            "Zeros around the input: one value for all sides, one per spatial axis, or all sides before then all after \
             (`[top, left, bottom, right]`).",
        ),
        dilation(ones(rank)),
        GROUPS,
        data_layout(data_letters(rank)),
        Param::layout(
            "kernel_layout",
            kernel_letters(rank),
            "Axes of `weight`: output channels O, input channels of a group I, and the spatial letters.",
        ),
        OUT_LAYOUT,
        OUT_DTYPE,
    ]
}

const fn transposed_params(rank: usize) -> [Param; 11] {
    [
        DATA,
        WEIGHT,
        Param::attr(
            "strides",
            AttrKind::Ints,
            ones(rank),
            "Steps between the places that neighbouring inputs spread to: the upsampling factor, for all spatial axes \
             or each.",
        ),
        Param::attr(
            "padding",
            AttrKind::Ints,
            zeros(rank),
            "How much is cut off the output's sides: one value for all, one per spatial axis, or all before then all \
             after.",
        ),
        Param::attr(
            "output_padding",
            AttrKind::Ints,
            zeros(rank),
            "Added to the output's extents, to choose among those one stride apart; smaller than the stride.",
        ),
        dilation(ones(rank)),
        GROUPS,
        data_layout(data_letters(rank)),
        Param::layout(
            "kernel_layout",
            transposed_kernel_letters(rank),
            "Axes of `weight`: input channels I, output channels of a group O, and the spatial letters. PyTorch's \
             weights are I first.",
        ),
        OUT_LAYOUT,
        OUT_DTYPE,
    ]
}

/// Creates the schema of a convolution over `RANK` spatial axes.
const fn convolution<const RANK: usize>(name: &'static str, doc: &'static str) -> Schema {
    Schema::new(name, doc, conv::<RANK>)
        .taking(const { &params(RANK) })
        .lowered_by(compute::conv::<RANK>)
        .costing(Cost::Formula(costs::conv::<RANK>))
        .with_traits(Traits::OPAQUE.laid_out_as(LAYOUTS, window_layout::conv))
}

/// Creates the schema of a transposed convolution over `RANK` spatial axes.
const fn transposed<const RANK: usize>(name: &'static str, doc: &'static str) -> Schema {
    Schema::new(name, doc, conv_transpose::<RANK>)
        .taking(const { &transposed_params(RANK) })
        .lowered_by(compute::conv_transpose::<RANK>)
        .costing(Cost::Formula(costs::conv_transpose::<RANK>))
        .with_traits(Traits::OPAQUE.laid_out_as(LAYOUTS, window_layout::conv))
}

pub(crate) static OPERATORS: &[Schema] = &[
    convolution::<1>(
        "nn.conv1d",
        "Convolution over one spatial axis. Its extent becomes \
         `(w + padding - dilation * (kernel - 1) - 1) // stride + 1`.",
    ),
    convolution::<2>(
        "nn.conv2d",
        "Convolution over two spatial axes. Each extent becomes \
         `(h + padding - dilation * (kernel - 1) - 1) // stride + 1`; the data's channels are the kernel's I \
         times `groups`.",
    ),
    convolution::<3>(
        "nn.conv3d",
        "Convolution over three spatial axes. Each extent becomes \
         `(d + padding - dilation * (kernel - 1) - 1) // stride + 1`.",
    ),
    transposed::<1>(
        "nn.conv1d_transpose",
        "Transposed convolution over one spatial axis, the gradient of a convolution with respect to its input. \
         Its extent becomes `(w - 1) * stride - padding + dilation * (kernel - 1) + output_padding + 1`.",
    ),
    transposed::<2>(
        "nn.conv2d_transpose",
        "Transposed convolution over two spatial axes, the gradient of a convolution with respect to its input. \
         Each extent becomes `(h - 1) * stride - padding + dilation * (kernel - 1) + output_padding + 1`; the \
         output has the kernel's O times `groups` channels.",
    ),
    transposed::<3>(
        "nn.conv3d_transpose",
        "Transposed convolution over three spatial axes, the gradient of a convolution with respect to its input. \
         Each extent becomes `(d - 1) * stride - padding + dilation * (kernel - 1) + output_padding + 1`.",
    ),
];

#[cfg(test)]
mod tests {
    use crate::tests::{Given, call_of, dims, infer, number, numbers, tensor, text, ty};
    use rx_base::{Code, DType, Dim};
    use rx_ir::StructInfo;

    type Attrs = Vec<(&'static str, Given)>;

    fn run(op: &str, data: &str, weight: &str, attrs: Attrs) -> Result<StructInfo, Option<Code>> {
        let mut args = attrs;
        args.extend([("data", tensor(data)), ("weight", tensor(weight))]);
        infer(op, &args)
    }

    #[test]
    fn extents_follow_strides_padding_and_dilation() {
        let conv = |attrs: Attrs, wanted: &str| {
            assert_eq!(run("nn.conv2d", "2 3 28 28:float32", "4 3 3 3:float32", attrs), Ok(ty(wanted)));
        };
        conv(vec![], "2 4 26 26:float32");
        conv(vec![("padding", numbers(&[1, 2]))], "2 4 28 30:float32");
        conv(vec![("padding", numbers(&[0, 1, 2, 3]))], "2 4 28 30:float32");
        conv(vec![("strides", numbers(&[2, 3])), ("dilation", number(2))], "2 4 12 8:float32");
        conv(vec![("out_dtype", text("float16")), ("out_layout", text("NHWC"))], "2 26 26 4:float16");
    }

    #[test]
    fn any_layout_will_do() {
        let layouts = |data, kernel| vec![("data_layout", text(data)), ("kernel_layout", text(kernel))];
        let packed = run("nn.conv2d", "2 4 28 28 16:int8", "48 4 3 3 16:int8", layouts("NCHW16c", "OIHW16i"));
        assert_eq!(packed, Ok(ty("2 3 26 26 16:int8")));
        let last = run("nn.conv2d_transpose", "2 4 4 100:float32", "4 4 64 100:float32", layouts("NHWC", "HWOI"));
        assert_eq!(last, Ok(ty("2 7 7 64:float32")));
        let volume = run("nn.conv3d_transpose", "2 8 8 8 3:float32", "3 4 3 3 3:float32", layouts("NDHWC", "IODHW"));
        assert_eq!(volume, Ok(ty("2 10 10 10 4:float32")));
    }

    #[test]
    fn unknown_shapes_leave_the_rank() {
        assert_eq!(run("nn.conv1d", "*:?", "4 3 3:float32", vec![]), Ok(ty("?3:?")));
        assert_eq!(
            run("nn.conv2d", "$s/4:float16", "*:float16", vec![("out_layout", text("NCHW4c"))]),
            Ok(ty("?5:float16"))
        );
        assert_eq!(run("nn.conv2d", "n c 8 8:float32", "o i 3 3:float32", vec![]), Ok(ty("n o 6 6:float32")));
        let wrong = StructInfo::tensor([Dim::ERROR, 3.into(), Dim::ERROR, 9.into()], Some(DType::FLOAT32));
        let args = [("data", crate::tests::given(wrong)), ("weight", tensor("4 3 3 3:float32"))];
        let wanted = StructInfo::tensor([Dim::ERROR, 4.into(), Dim::ERROR, 7.into()], Some(DType::FLOAT32));
        assert_eq!(infer("nn.conv2d", &args), Ok(wanted));
    }

    #[test]
    fn transposed_convolutions_grow() {
        let twice = |padding| vec![("strides", number(2)), ("padding", number(1)), ("output_padding", number(padding))];
        let run = |attrs| run("nn.conv2d_transpose", "1 100 h 4:float32", "100 64 3 3:float32", attrs);
        let height = &dims("h")[0] * &2.into();
        let wanted = StructInfo::tensor([1.into(), 64.into(), height, 8.into()], Some(DType::FLOAT32));
        assert_eq!(run(twice(1)), Ok(wanted));
        assert_eq!(run(twice(2)), Err(Some(Code::ConvOutputPaddingTooLarge)));
        let grouped = super::tests::run("nn.conv1d_transpose", "2 8 5:int8", "8 6 3:int8", vec![("groups", number(4))]);
        assert_eq!(grouped, Ok(ty("2 24 7:int8")));
    }

    #[test]
    fn mistakes_are_reported() {
        let (data, weight) = ("2 12 28 28:float32", "6 4 3 3:float32");
        let groups = |groups| vec![("groups", number(groups))];
        assert_eq!(run("nn.conv2d", data, weight, groups(3)), Ok(ty("2 6 26 26:float32")));
        for (data, weight, attrs, wanted) in [
            (data, weight, groups(1), Code::ConvInChannelsMismatch),
            (data, "7 4 3 3:float32", groups(3), Code::ConvGroupsNotDivisible),
            (data, weight, groups(0), Code::AttrOutOfRange),
            ("12 28 28:float32", weight, groups(3), Code::TensorNdimMismatch),
            (data, "6 4 3 3:int8", groups(3), Code::DtypeMismatch),
            ("2 12 2 2:float32", weight, groups(3), Code::ConvEmptyOutput),
            (data, weight, vec![("kernel_layout", text("NCHW"))], Code::UnknownLayout),
            (data, weight, vec![("strides", numbers(&[1, 1, 1]))], Code::AttrBadValue),
            ("n c 8 8:float32", "4 c+2 3 3:float32", groups(1), Code::ConvInChannelsMismatch),
            ("2 12 8 8:float32@a", "6 12 3 3:float32@b", groups(1), Code::VDeviceMismatch),
        ] {
            assert_eq!(run("nn.conv2d", data, weight, attrs), Err(Some(wanted)), "{data} {weight}");
        }
        let empty = vec![("strides", number(1)), ("padding", number(1))];
        assert_eq!(run("nn.conv2d_transpose", "1 3 1 1:int8", "3 4 2 2:int8", empty), Err(Some(Code::ConvEmptyOutput)));
    }

    #[test]
    fn idle_dilation_is_hinted_at() {
        let hints = |weight: &str| {
            let args = [("data", tensor("1 3 8 8:int8")), ("weight", tensor(weight)), ("dilation", number(2))];
            call_of("nn.conv2d", &args, |call| {
                assert!((call.schema.infer)(call).is_ok());
                call.findings.take().iter().map(|finding| finding.code).collect::<Vec<_>>()
            })
        };
        assert_eq!(hints("4 3 1 1:int8"), [Code::AttrNoEffect]);
        assert_eq!(hints("4 3 3 3:int8"), []);
    }
}
