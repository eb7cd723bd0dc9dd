//! *Affine quantization* (`quantize`, `dequantize`), computed in `float32`.
//!
//! ```text
//! quantize(x, scale, zero): out[i] = clamp(round(x[i] / scale) + zero)
//! dequantize(x, scale, zero): out[i] = (x[i] - zero) * scale
//! ```
//!
//! Reference: TVM python/tvm/relax/transform/legalize_ops/qdq.py.

use super::axis;
use super::elementwise::integer_range;
use crate::compute::{Lowering, Operand, Unsupported};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::{Expr, Intrinsic, KernelBuilder};

/// Emits `clamp(round(data / scale) + zero_point)`, with halves rounded to even. A result of small floats is not
/// rounded to integers.
pub(crate) fn quantize(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, scale, zero_point, along) = operands(lowering)?;
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, axes| {
        let wanted = builder.dtype(out);
        let value = data.at(builder, axes).cast(DType::FLOAT32);
        let scaled = value / parameter(builder, &scale, axes, along).cast(DType::FLOAT32);
        let rounded = match wanted.is_float() {
            true => scaled,
            false => Expr::call(Intrinsic::NearbyInt, vec![scaled]),
        };
        let shifted = rounded + parameter(builder, &zero_point, axes, along).cast(DType::FLOAT32);
        clamp(shifted, wanted).cast(wanted)
    });
    Ok(())
}

/// Emits `scale * (data - zero_point)`. The difference of integers is exact.
pub(crate) fn dequantize(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, scale, zero_point, along) = operands(lowering)?;
    let out = lowering.output(0);
    let exact = data.dtype.is_int() && zero_point.dtype.is_int();
    let dtype = if exact { DType::INT64 } else { DType::FLOAT32 };
    lowering.builder.compute(out, |builder, axes| {
        let wanted = builder.dtype(out);
        let offset = parameter(builder, &zero_point, axes, along).cast(dtype);
        let difference = (data.at(builder, axes).cast(dtype) - offset).cast(DType::FLOAT32);
        let value = difference * parameter(builder, &scale, axes, along).cast(DType::FLOAT32);
        clamp(value, wanted).cast(wanted)
    });
    Ok(())
}

fn operands(lowering: &mut Lowering<'_>) -> Result<(Operand, Operand, Operand, Option<usize>), Unsupported> {
    let (data, scale, zero_point) =
        (lowering.tensor("data")?, lowering.tensor("scale")?, lowering.tensor("zero_point")?);
    let along = match data.ndim() {
        0 => None,
        ndim => Some(axis(lowering, "axis", ndim, lowering.call.int("axis").unwrap_or(-1))?),
    };
    Ok((data, scale, zero_point, along))
}

/// Loads a scale or zero point: its only element, or the one at the position along the axis.
fn parameter(builder: &KernelBuilder, parameter: &Operand, axes: &[Expr], along: Option<usize>) -> Expr {
    let single = parameter.shape.iter().all(|dim| dim.as_constant() == Some(1));
    match along.and_then(|along| axes.get(along)) {
        Some(place) if !single => parameter.at(builder, std::slice::from_ref(place)),
        _ => parameter.at(builder, &vec![Expr::int(0); parameter.ndim()]),
    }
}

/// Clamps a `float32` to the range of the dtype, if that is smaller.
fn clamp(value: Expr, dtype: DType) -> Expr {
    let (low, high) = match dtype.code {
        TypeCode::Int | TypeCode::UInt => {
            let (low, high) = integer_range(dtype);
            (low as f64, high as f64)
        }
        TypeCode::Float8E4M3Fn => (-448.0, 448.0),
        TypeCode::Float8E5M2 => (-57344.0, 57344.0),
        TypeCode::Float if dtype.bits == 16 => (-65504.0, 65504.0),
        _ => return value,
    };
    let bound = |value: f64| Expr::number(value, DType::FLOAT32);
    value.min(bound(high)).max(bound(low))
}
