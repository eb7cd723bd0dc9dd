//! Normalizations: schemas and struct-info rules.

use super::compute::norm as compute;
use super::norm_layout;
use crate::axes::{normalize_axes, normalize_axis};
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::operands::{AxisOf, Floats, clash, rank_like, require_equal, require_float, tensor_like};
use crate::schema::{AttrKind, Default, Param, Schema, Traits};
use rx_base::{Answer, Code, Dim, counted};
use rx_ir::{Shape, StructInfo, TensorInfo};

const DATA: Param = Param::tensor("data", "The input.");
const EPSILON: Param = Param::float("epsilon", 1e-5, "Added to the variance, so that no division is by 0.");
const CENTER: Param = Param::flag("center", true, "Whether `beta` is added.");
const SCALE: Param = Param::flag("scale", true, "Whether the result is multiplied by `gamma`.");
const CHANNEL_AXIS: Param =
    Param::required_attr("channel_axis", AttrKind::Int, "The channel axis; negative from the end.");
const CHANNEL_GAMMA: Param = Param::tensor("gamma", "The scale, one per channel.");
const CHANNEL_BETA: Param = Param::tensor("beta", "The offset, one per channel.");

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "nn.batch_norm",
        "Normalises each channel to mean 0 and variance 1 over the batch. Gives a tuple: the output, the new \
         running mean, the new running variance. See <https://arxiv.org/abs/1502.03167>.",
        batch_norm,
    )
    .taking(&[
        DATA,
        CHANNEL_GAMMA,
        CHANNEL_BETA,
        Param::tensor("moving_mean", "The running mean, one per channel."),
        Param::tensor("moving_var", "The running variance, one per channel."),
        Param::required_attr("axis", AttrKind::Int, "The channel axis; negative from the end."),
        EPSILON,
        CENTER,
        SCALE,
        Param::float("momentum", 0.1, "The weight of this batch in the running statistics."),
        Param::flag("training", true, "Whether the batch's own statistics are used and the running ones updated."),
    ])
    .lowered_by(compute::batch_norm)
    .costing(Cost::PerInput(4))
    .with_traits(Traits::OPAQUE.laid_out(norm_layout::batch_norm)),
    Schema::new(
        "nn.layer_norm",
        "Normalises to mean 0 and variance 1 over the given axes, each sample by itself. \
         See <https://arxiv.org/abs/1607.06450>.",
        |call| normalized(call, &["gamma", "beta"]),
    )
    .taking(&[
        DATA,
        Param::tensor("gamma", "The scale, of the extents of `axes`."),
        Param::tensor("beta", "The offset, of the extents of `axes`."),
        Param::required_attr("axes", AttrKind::Ints, "The axes normalised together; negative from the end."),
        EPSILON,
        CENTER,
        SCALE,
    ])
    .lowered_by(compute::layer_norm)
    .costing(Cost::PerInput(8))
    .with_traits(Traits::OPAQUE.laid_out(norm_layout::normalized)),
    Schema::new(
        "nn.group_norm",
        "Normalises to mean 0 and variance 1 over groups of channels and the given axes. \
         See <https://arxiv.org/abs/1803.08494>.",
        group_norm,
    )
    .taking(&[
        DATA,
        CHANNEL_GAMMA,
        CHANNEL_BETA,
        Param::required_attr(
            "num_groups",
            AttrKind::Int,
            "The number of groups of channels; it divides the number of channels.",
        ),
        CHANNEL_AXIS,
        Param::required_attr(
            "axes",
            AttrKind::Ints,
            "The axes normalised together with the channels of a group; without the channel axis.",
        ),
        EPSILON,
        CENTER,
        SCALE,
    ])
    .lowered_by(compute::group_norm)
    .costing(Cost::PerInput(8))
    .with_traits(Traits::OPAQUE.laid_out(norm_layout::by_channel)),
    Schema::new(
        "nn.instance_norm",
        "Normalises each channel of each sample to mean 0 and variance 1 over the given axes. \
         See <https://arxiv.org/abs/1607.08022>.",
        instance_norm,
    )
    .taking(&[
        DATA,
        CHANNEL_GAMMA,
        CHANNEL_BETA,
        CHANNEL_AXIS,
        Param::required_attr("axes", AttrKind::Ints, "The axes normalised together; without the channel axis."),
        EPSILON,
        CENTER,
        SCALE,
    ])
    .lowered_by(compute::instance_norm)
    .costing(Cost::PerInput(8))
    .with_traits(Traits::OPAQUE.laid_out(norm_layout::by_channel)),
    Schema::new(
        "nn.rms_norm",
        "Divides by the root of the mean square over the given axes and multiplies by `weight`. \
         See <https://arxiv.org/abs/1910.07467>.",
        |call| normalized(call, &["weight"]),
    )
    .taking(&[
        DATA,
        Param::tensor("weight", "The scale, of the extents of `axes`."),
        Param::attr("axes", AttrKind::Ints, Default::Int(-1), "The axes normalised together; negative from the end."),
        EPSILON,
    ])
    .lowered_by(compute::rms_norm)
    .costing(Cost::PerInput(4))
    .with_traits(Traits::OPAQUE.laid_out(norm_layout::normalized)),
];

fn batch_norm(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let certain = check_parameters(call, "axis", &["gamma", "beta", "moving_mean", "moving_var"])?;
    if certain {
        let fields = ["data", "moving_mean", "moving_var"].map(|name| call.ty(name).clone());
        return Ok(StructInfo::tuple(fields));
    }
    let statistics = tensor_like(data, Shape::Rank(1));
    Ok(StructInfo::tuple([without_dims(data), statistics.clone(), statistics]))
}

fn normalized(call: &CallInfo<'_>, parameters: &[&'static str]) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    match check_parameters(call, "axes", parameters)? {
        true => Ok(call.ty("data").clone()),
        false => Ok(without_dims(data)),
    }
}

/// Returns the type of `data` with unknown dims. As in TVM, only the rank is known if extents are not proved equal.
fn without_dims(data: &TensorInfo) -> StructInfo {
    tensor_like(data, rank_like(&data.shape, data.shape.ndim()))
}

/// Checks dtypes, ranks and extents of parameters that correspond to the axes named by `axes_param` (TVM
/// `NormCheckDtypeAndShape`). Returns whether all extents are proved equal.
fn check_parameters(
    call: &CallInfo<'_>,
    axes_param: &'static str,
    parameters: &[&'static str],
) -> Result<bool, Problem> {
    let data = call.tensor("data")?;
    let given_axes = call.needed_ints(axes_param)?;
    let axes = match data.shape.ndim() {
        Some(ndim) => Some(normalize_axes(call, axes_param, ndim, &given_axes)?),
        None => None,
    };
    require_float(call, "data", Floats::IeeeAndBfloat)?;
    for name in parameters {
        require_same_dtype(call, name)?;
        require_exact_ndim(call, name, given_axes.len(), axes_param)?;
    }
    let data_dims = data.shape.dims().zip(axes);
    let data_extents = data_dims.map(|(dims, axes)| {
        axes.iter().map(|axis| (AxisOf::new("data", *axis), dims.get(*axis).unwrap_or(&Dim::ERROR))).collect::<Vec<_>>()
    });
    // The reference extents: those of the data, or of the first parameter whose extents are known.
    let mut measure = data_extents;
    let mut certain = true;
    for name in parameters {
        let shape = &call.tensor(name)?.shape;
        let Some(dims) = shape.dims() else { continue };
        // TVM does not use the dims of a shape variable.
        let is_written = shape.written_dims().is_some() && data.shape.written_dims().is_some();
        let own: Vec<_> = dims.iter().enumerate().map(|(axis, dim)| (AxisOf::new(name, axis), dim)).collect();
        let Some(measure) = &measure else {
            measure = Some(own);
            continue;
        };
        for ((measure_axis, wanted), (axis, dim)) in measure.iter().zip(&own) {
            require_equal(call, *measure_axis, *axis, "the normalised extent")?;
            certain &= !is_written || call.equal(wanted, dim) == Answer::Proved;
        }
    }
    Ok(certain)
}

/// Rejects a parameter whose dtype differs from the data's. As in TVM, an unknown dtype is also rejected.
fn require_same_dtype(call: &CallInfo<'_>, name: &'static str) -> Result<(), Problem> {
    let (data, parameter) = (call.tensor("data")?, call.tensor(name)?);
    if data.dtype == parameter.dtype || data.dtype_error || parameter.dtype_error {
        return Ok(());
    }
    let spell = |tensor: &TensorInfo| tensor.dtype.map_or_else(|| "unknown".to_owned(), |dtype| dtype.to_string());
    let message =
        format_args!("`data` and `{name}` must have one dtype, they have {} and {}", spell(data), spell(parameter));
    let report = clash(call, Code::DtypeMismatch, name, "data", message);
    Err(match data.dtype {
        Some(dtype) => report.with_help(format!("convert it: `R.astype({}, \"{dtype}\")`", call.written(name))),
        None => report.with_help("annotate the dtype of `data`"),
    }
    .into())
}

/// Rejects a parameter whose rank is unknown or not `ndim`, as TVM does.
fn require_exact_ndim(
    call: &CallInfo<'_>,
    name: &'static str,
    ndim: usize,
    axes_param: &'static str,
) -> Result<(), Problem> {
    let given = match &call.tensor(name)?.shape {
        Shape::Error => return Ok(()),
        shape => shape.ndim(),
    };
    if given == Some(ndim) {
        return Ok(());
    }
    let spelled = given.map_or_else(|| "an unknown number".to_owned(), |given| given.to_string());
    let message =
        format_args!("`{name}` must have {}, one per axis normalised, it has {spelled}", counted(ndim, "dimension"));
    Err(call
        .operand_error(Code::TensorNdimMismatch, name, message)
        .with_label(ParamPlace::Param(axes_param), counted(ndim, "axis"))
        .into())
}

fn group_norm(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let channel_axis = check_channel_axis(call, data)?;
    require_float(call, "data", Floats::Ieee)?;
    let groups = call.needed_int("num_groups")?;
    if groups < 1 {
        let message = format_args!("num_groups must be at least 1, it is {groups}");
        return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("num_groups"), message).into());
    }
    if let Some((axis, channels)) = channel_axis.and_then(|axis| Some((axis, AxisOf::new("data", axis).dim(call)?))) {
        let rest = channels.floor_mod(&Dim::constant(groups));
        if call.equal(&rest, &Dim::constant(0)) == Answer::Refuted {
            let message = format_args!("{channels} channels are not divisible by num_groups={groups}");
            return Err(call
                .error(Code::AttrOutOfRange, ParamPlace::Param("num_groups"), message)
                .with_label(ParamPlace::Param("data"), format!("{}: axis {axis} is {channels}", call.ty("data")))
                .with_note(format!("{channels} % {groups} is {rest}"))
                .into());
        }
    }
    check_channel_parameters(call, channel_axis)?;
    Ok(call.ty("data").clone())
}

fn instance_norm(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let channel_axis = check_channel_axis(call, call.tensor("data")?)?;
    check_channel_parameters(call, channel_axis)?;
    Ok(call.ty("data").clone())
}

/// Returns the channel axis if the rank is known. It must not be in `axes`.
fn check_channel_axis(call: &CallInfo<'_>, data: &TensorInfo) -> Result<Option<usize>, Problem> {
    let (channel_axis, axes) = (call.needed_int("channel_axis")?, call.needed_ints("axes")?);
    let Some(ndim) = data.shape.ndim() else { return Ok(None) };
    let channel_axis = normalize_axis(call, "channel_axis", ndim, channel_axis)?;
    if normalize_axes(call, "axes", ndim, &axes)?.contains(&channel_axis) {
        let message = format_args!("`axes` = {axes:?} names axis {channel_axis}, which is the channel axis");
        return Err(call
            .error(Code::AxisOutOfRange, ParamPlace::Param("axes"), message)
            .with_label(ParamPlace::Param("channel_axis"), format!("axis {channel_axis}"))
            .into());
    }
    Ok(Some(channel_axis))
}

/// Checks that `gamma` and `beta` have the data's dtype and one element per channel.
fn check_channel_parameters(call: &CallInfo<'_>, channel_axis: Option<usize>) -> Result<(), Problem> {
    for name in ["gamma", "beta"] {
        require_same_dtype(call, name)?;
        require_exact_ndim(call, name, 1, "channel_axis")?;
        if let Some(axis) = channel_axis {
            require_equal(call, AxisOf::new("data", axis), AxisOf::new(name, 0), "the number of channels")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, infer, number, numbers, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn layer_norm(data: &str, gamma: &str, axes: &[i64]) -> Result<StructInfo, Option<Code>> {
        infer(
            "nn.layer_norm",
            &[("data", tensor(data)), ("gamma", tensor(gamma)), ("beta", tensor(gamma)), ("axes", numbers(axes))],
        )
    }

    #[test]
    fn layer_norm_keeps_the_type_of_its_input() {
        let f32 = "2 3 4 5:float32";
        assert_eq!(layer_norm(f32, "4 5:float32", &[-2, -1]), Ok(ty(f32)));
        assert_eq!(layer_norm("n s f:float16", "f:float16", &[-1]), Ok(ty("n s f:float16")));
        assert_eq!(layer_norm("$s:float32", "?1:float32", &[2]), Ok(ty("$s:float32")));
        // If extents are not proved equal, only the rank is known.
        assert_eq!(layer_norm("n s f:float16", "g:float16", &[-1]), Ok(ty("?3:float16")));
        assert_eq!(layer_norm(f32, "5 4:float32", &[-2, -1]), Err(Some(Code::ShapeMismatch)));
        assert_eq!(layer_norm("n f:float32", "f+2:float32", &[-1]), Err(Some(Code::ShapeMismatch)));
        assert_eq!(layer_norm(f32, "5:float32", &[-2, -1]), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(layer_norm(f32, "5:?", &[-1]), Err(Some(Code::DtypeMismatch)));
        assert_eq!(layer_norm(f32, "5 5:float32", &[3, -1]), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(layer_norm("2 3:int8", "3:int8", &[1]), Err(Some(Code::DtypeMismatch)));
    }

    fn batch_norm(data: &str, gamma: &str, other: &str) -> Result<StructInfo, Option<Code>> {
        let operand = |name: &'static str| -> (&'static str, Given) { (name, tensor(other)) };
        let args = [
            ("data", tensor(data)),
            ("gamma", tensor(gamma)),
            operand("beta"),
            operand("moving_mean"),
            operand("moving_var"),
            ("axis", number(1)),
        ];
        infer("nn.batch_norm", &args)
    }

    #[test]
    fn batch_norm_gives_its_statistics_too() {
        let triple = |data: &str, statistics: &str| Ok(StructInfo::tuple([ty(data), ty(statistics), ty(statistics)]));
        let c = "c:float32";
        assert_eq!(batch_norm("n c h w:float32", c, c), triple("n c h w:float32", c));
        assert_eq!(batch_norm("?4:float32", "?1:float32", "3:float32"), triple("?4:float32", "3:float32"));
        assert_eq!(batch_norm("n c h w:float32", "k:float32", c), triple("?4:float32", "?1:float32"));
        assert_eq!(batch_norm("2 3 4 4:float32", "4:float32", "3:float32"), Err(Some(Code::ShapeMismatch)));
    }

    #[test]
    fn group_norm_needs_whole_groups() {
        let group_norm = |data: &str, gamma: &str, groups: i64, axes: &[i64]| {
            let operands = [("data", tensor(data)), ("gamma", tensor(gamma)), ("beta", tensor(gamma))];
            let attrs = [("num_groups", number(groups)), ("channel_axis", number(1)), ("axes", numbers(axes))];
            infer("nn.group_norm", &operands.into_iter().chain(attrs).collect::<Vec<_>>())
        };
        let data = "2 6 4 5:float16";
        assert_eq!(group_norm(data, "6:float16", 3, &[2, 3]), Ok(ty(data)));
        assert_eq!(group_norm("n c h w:float16", "k:float16", 3, &[2, 3]), Ok(ty("n c h w:float16")));
        assert_eq!(group_norm(data, "6:float16", 4, &[2, 3]), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(group_norm(data, "6:float16", 0, &[2, 3]), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(group_norm(data, "5:float16", 3, &[2, 3]), Err(Some(Code::ShapeMismatch)));
        assert_eq!(group_norm(data, "6:float16", 3, &[1, 2]), Err(Some(Code::AxisOutOfRange)));
    }

    #[test]
    fn rms_norm_takes_the_last_axis_by_default() {
        let args = [("data", tensor("b s 4096:float16")), ("weight", tensor("4096:float16"))];
        assert_eq!(infer("nn.rms_norm", &args), Ok(ty("b s 4096:float16")));
    }
}
