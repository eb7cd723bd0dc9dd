//! Padding, flattening and pixel shuffle: schemas and struct-info rules.

use super::compute::rearrange as compute;
use crate::call::{CallInfo, ParamPlace, Problem, operand};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::operands::{Element, rank_like, require_rank, tensor_like, tensor_type};
use crate::schema::{AttrKind, Param, Schema};
use rx_base::{Answer, Code, Dim};
use rx_ir::{Shape, StructInfo};

const DATA: Param = Param::tensor("data", "The input.");

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("nn.pad", "Adds elements around a tensor.", pad)
        .taking(&[
            DATA,
            Param::required_attr(
                "pad_width",
                AttrKind::Ints,
                "Elements added before and after each axis, flat: `[before_0, after_0, before_1, …]`.",
            ),
            Param::choice(
                "pad_mode",
                &["constant", "reflect", "replicate", "circular"],
                "constant",
                "The values added: a constant, the tensor mirrored without its edge, its edge, or its other end.",
            ),
            Param::float("pad_value", 0.0, "The constant of `pad_mode=\"constant\"`."),
        ])
        .lowered_by(compute::pad)
        .costing(Cost::Copy),
    Schema::new("nn.batch_flatten", "Flattens all axes but the first into one.", batch_flatten)
        .taking(&[DATA])
        .computed_as(Compute::View("data"))
        .costing(Cost::Nothing),
    Schema::new(
        "nn.pixel_shuffle",
        "Turns channels into pixels: (…, C * r * r, H, W) becomes (…, C, H * r, W * r). \
         See <https://arxiv.org/abs/1609.05158>.",
        pixel_shuffle,
    )
    .taking(&[
        Param::tensor("data", "The input: (…, C * r * r, H, W)."),
        Param::required_attr("upscale_factor", AttrKind::Int, "By how much height and width grow: r."),
    ])
    .lowered_by(compute::pixel_shuffle)
    .costing(Cost::Copy),
];

/// Infers the type of padding. As in TVM, the result has no virtual device.
fn pad(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    require_rank(call, "data")?;
    let widths = call.needed_ints("pad_width")?;
    if let Some(ndim) = data.shape.ndim().filter(|ndim| ndim.checked_mul(2) != Some(widths.len())) {
        let message = format_args!("pad_width has {} values, {ndim} dimensions take two each", widths.len());
        return Err(call
            .error_for(Code::AttrBadValue, "pad_width", "data", message)
            .with_note("pad_width is flat: `[before_0, after_0, before_1, …]`")
            .into());
    }
    let Some(dims) = data.shape.written_dims() else {
        let shape = rank_like(&data.shape, data.shape.ndim());
        return Ok(tensor_type(shape, Element::of(data), None));
    };
    let mut padded = Vec::with_capacity(dims.len());
    for (axis, (dim, sides)) in dims.iter().zip(widths.chunks(2)).enumerate() {
        let extent = sides.iter().fold(dim.clone(), |sum, width| &sum + &Dim::constant(*width));
        if call.at_least(&extent, &Dim::constant(0)) == Answer::Refuted {
            let message = format_args!("pad_width leaves axis {axis} with {extent} elements");
            return Err(call
                .error(Code::AttrOutOfRange, ParamPlace::Param("pad_width"), message)
                .with_label(ParamPlace::Param("data"), format!("{}: axis {axis} is {dim}", call.ty("data")))
                .into());
        }
        if let [before, after] = sides {
            call.derive(Some(axis), || format!("{before} + {} + {after} = {extent}", operand(dim)));
        }
        padded.push(extent);
    }
    Ok(tensor_type(Shape::known(padded), Element::of(data), None))
}

fn batch_flatten(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    match data.shape.ndim() {
        Some(ndim) if ndim < 2 => {
            let message = format_args!("`data` must have at least 2 dimensions, it has {ndim}");
            return Err(call.operand_error(Code::TensorNdimMismatch, "data", message).into());
        }
        Some(2) => return Ok(call.ty("data").clone()),
        _ => {}
    }
    Ok(match data.shape.written_dims() {
        Some([batch, rest @ ..]) => {
            let flat = rest.iter().fold(Dim::constant(1), |product, dim| &product * dim);
            tensor_like(data, Shape::known([batch.clone(), flat]))
        }
        _ => tensor_like(data, rank_like(&data.shape, Some(2))),
    })
}

/// Infers the type of pixel shuffle. As in TVM, the result has no virtual device.
fn pixel_shuffle(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let factor = call.needed_int("upscale_factor")?;
    if factor < 1 {
        let message = format_args!("upscale_factor must be at least 1, it is {factor}");
        return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("upscale_factor"), message).into());
    }
    require_rank(call, "data")?;
    if let Some(ndim) = data.shape.ndim().filter(|ndim| *ndim < 3) {
        let message = format_args!("`data` must have at least 3 dimensions (…, C, H, W), it has {ndim}");
        return Err(call.operand_error(Code::TensorNdimMismatch, "data", message).into());
    }
    let Some([lead @ .., channels, height, width]) = data.shape.written_dims() else {
        return Ok(tensor_type(rank_like(&data.shape, data.shape.ndim()), Element::of(data), None));
    };
    let factor = Dim::constant(factor);
    let square = &factor * &factor;
    if call.equal(&channels.floor_mod(&square), &Dim::constant(0)) == Answer::Refuted {
        let message = format_args!("{channels} channels are not divisible by upscale_factor squared, {square}");
        return Err(call
            .error(Code::AttrOutOfRange, ParamPlace::Param("upscale_factor"), message)
            .with_label(ParamPlace::Param("data"), format!("{}: axis {} is {channels}", call.ty("data"), lead.len()))
            .into());
    }
    let at = lead.len();
    call.derive(Some(at), || format!("{} // ({factor}*{factor}) = {}", operand(channels), channels.floor_div(&square)));
    for (axis, extent) in [(at + 1, height), (at + 2, width)] {
        call.derive(Some(axis), || format!("{}*{factor} = {}", operand(extent), extent * &factor));
    }
    let mut dims = lead.to_vec();
    dims.extend([channels.floor_div(&square), height * &factor, width * &factor]);
    Ok(tensor_type(Shape::known(dims), Element::of(data), None))
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, number, numbers, tensor, ty};
    use rx_base::Code;

    #[test]
    fn padding_widens_each_axis() {
        let pad =
            |data: &str, widths: &[i64]| infer("nn.pad", &[("data", tensor(data)), ("pad_width", numbers(widths))]);
        assert_eq!(pad("2 n:float32@a", &[0, 1, 2, 3]), Ok(ty("3 n+5:float32")));
        assert_eq!(pad("?2:float32", &[0, 1, 2, 3]), Ok(ty("?2:float32")));
        assert_eq!(pad("2 3:float32", &[0, 1]), Err(Some(Code::AttrBadValue)));
        assert_eq!(pad("2:float32", &[0, -3]), Err(Some(Code::AttrOutOfRange)));
    }

    #[test]
    fn flattening_keeps_the_batch() {
        let flatten = |data: &str| infer("nn.batch_flatten", &[("data", tensor(data))]);
        assert_eq!(flatten("2 3 4 5:float32@a"), Ok(ty("2 60:float32@a")));
        assert_eq!(flatten("n 2:int8"), Ok(ty("n 2:int8")));
        assert_eq!(flatten("*:?"), Ok(ty("?2:?")));
        assert_eq!(flatten("3:float32"), Err(Some(Code::TensorNdimMismatch)));
    }

    #[test]
    fn channels_become_pixels() {
        let shuffle = |data: &str, factor| {
            infer("nn.pixel_shuffle", &[("data", tensor(data)), ("upscale_factor", number(factor))])
        };
        assert_eq!(shuffle("2 6 18 5 4:float32", 3), Ok(ty("2 6 2 15 12:float32")));
        assert_eq!(shuffle("2 6 4 4:float32", 2), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(shuffle("6 4:float32", 2), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(shuffle("?4:float32", 2), Ok(ty("?4:float32")));
    }
}
