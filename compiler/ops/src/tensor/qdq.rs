//! Quantization and dequantization, which represent real numbers as integers or small floats with a scale and a zero
//! point: schemas and struct-info rules.

use super::compute::quantize as compute;
use super::elementwise::with_dtype;
use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::operands::{AxisOf, require_equal, require_proved_equal};
use crate::schema::{Param, Schema};
use rx_base::dtype::TypeCode;
use rx_base::{Answer, Code, DType, Dim};
use rx_ir::{Shape, StructInfo, TensorInfo};

const SCALE: Param = Param::tensor("scale", "The scale: one number, or one per index of `axis`; float16 or float32.");
const ZERO_POINT: Param =
    Param::tensor("zero_point", "The quantized value of 0: one number, or one per index of `axis`.");
const AXIS: Param = Param::int("axis", -1, "The axis along which the scales vary.");

const SMALL_FLOATS: [DType; 2] = [small(TypeCode::Float8E4M3Fn), small(TypeCode::Float8E5M2)];

const fn small(code: TypeCode) -> DType {
    DType { code, bits: 8, lanes: 1 }
}

const QUANTIZED: &[DType] = &[DType::INT8, DType::UINT8, DType::INT16, DType::UINT16, SMALL_FLOATS[0], SMALL_FLOATS[1]];
const DEQUANTIZED_FROM: &[DType] = &[
    DType::INT8,
    DType::UINT8,
    DType::INT16,
    DType::UINT16,
    DType::INT32,
    SMALL_FLOATS[0],
    SMALL_FLOATS[1],
    DType::FLOAT16,
    DType::FLOAT32,
];
const REALS: &[DType] = &[DType::FLOAT16, DType::FLOAT32];
const ZERO_POINTS: &[DType] =
    &[DType::INT8, DType::UINT8, DType::INT16, DType::UINT16, DType::INT32, DType::UINT32, DType::FLOAT16];

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "quantize",
        "Quantized reals: `clamp(round(data / scale) + zero_point)`, limited to the range of `out_dtype`.",
        |call| infer(call, REALS, QUANTIZED),
    )
    .taking(&[
        Param::tensor("data", "The reals, float16 or float32."),
        SCALE,
        ZERO_POINT,
        AXIS,
        Param::dtype(
            "out_dtype",
            "int8",
            "The dtype to quantize to: an 8 or 16-bit integer, `float8_e4m3fn` or `float8_e5m2`.",
        ),
    ])
    .lowered_by(compute::quantize)
    .costing(Cost::PerOutput(3)),
    Schema::new(
        "dequantize",
        "The real numbers that quantized values represent: `scale * (data - zero_point)`.",
        |call| infer(call, DEQUANTIZED_FROM, REALS),
    )
    .taking(&[
        Param::tensor("data", "The quantized values."),
        SCALE,
        ZERO_POINT,
        AXIS,
        Param::dtype("out_dtype", "float32", "The dtype of the reals."),
    ])
    .lowered_by(compute::dequantize)
    .costing(Cost::PerOutput(2)),
];

/// Infers the type of `quantize` and `dequantize` (TVM's `InferTypeQuantize` and `InferTypeDequantize`). If an
/// operand's dtype is unknown, the result's dtype is also unknown.
fn infer(call: &CallInfo<'_>, from: &[DType], to: &[DType]) -> Result<StructInfo, Problem> {
    let (data, scale, zero_point) = (call.tensor("data")?, call.tensor("scale")?, call.tensor("zero_point")?);
    let out_dtype = call.dtype("out_dtype");
    one_of(call, "out_dtype", out_dtype, to)?;
    one_of(call, "data", data.dtype, from)?;
    one_of(call, "scale", scale.dtype, REALS)?;
    one_of(call, "zero_point", zero_point.dtype, ZERO_POINTS)?;
    let axis = call.int("axis").unwrap_or(-1);
    let known = [data, scale, zero_point].iter().all(|tensor| tensor.dtype.is_some());
    for (name, parameter) in [("scale", scale), ("zero_point", zero_point)] {
        check_size(call, name, parameter, data, axis, known)?;
    }
    Ok(with_dtype(call.ty("data"), out_dtype.filter(|_| known)))
}

fn one_of(call: &CallInfo<'_>, name: &'static str, dtype: Option<DType>, allowed: &[DType]) -> Result<(), Problem> {
    match dtype {
        Some(dtype) if !allowed.contains(&dtype) => {
            let names: Vec<String> = allowed.iter().map(DType::to_string).collect();
            let message = format_args!("the dtype of `{name}` must not be {dtype}");
            let report = call.error(Code::DtypeMismatch, ParamPlace::Param(name), message);
            Err(report.with_note(format!("it may be {}", names.join(", "))).into())
        }
        _ => Ok(()),
    }
}

/// Checks that a scale or zero point has one element, or one per position of the axis. Data without dimensions has no
/// axis. As in TVM, equality must be proved if all dtypes are `known`.
fn check_size(
    call: &CallInfo<'_>,
    name: &'static str,
    parameter: &TensorInfo,
    data: &TensorInfo,
    axis: i64,
    known: bool,
) -> Result<(), Problem> {
    let axis = match data.shape.ndim() {
        Some(0) | None => None,
        Some(ndim) => Some(normalize_axis(call, "axis", ndim, axis)?),
    };
    let Shape::Known(dims) = &parameter.shape else { return Ok(()) };
    let one = Dim::constant(1);
    if dims.iter().all(|dim| call.equal(dim, &one) == Answer::Proved) {
        return Ok(());
    }
    match axis {
        Some(axis) => {
            let require = if known { require_proved_equal } else { require_equal };
            require(call, AxisOf::new("data", axis), AxisOf::new(name, 0), "the number of scales")
        }
        None if data.shape.ndim() != Some(0) => Ok(()),
        None if dims.iter().all(|dim| call.equal(dim, &one) != Answer::Refuted) => Ok(()),
        None => {
            let message = format_args!("`{name}` must have one element, as `data` has no axis");
            let report = call.error(Code::ShapeMismatch, ParamPlace::Param(name), message);
            Err(report.with_primary_label(call.ty(name).to_string()).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, number, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn quantize(data: &str, scale: &str, zero: &str, axis: i64, to: &str) -> Result<StructInfo, Option<Code>> {
        let operands = [("data", tensor(data)), ("scale", tensor(scale)), ("zero_point", tensor(zero))];
        let mut args = Vec::from(operands);
        args.extend([("axis", number(axis)), ("out_dtype", text(to))]);
        infer("quantize", &args)
    }

    #[test]
    fn scales_are_one_or_per_channel() {
        assert_eq!(quantize("n 3:float32", "3:float32", "3:int8", 1, "int8"), Ok(ty("n 3:int8")));
        assert_eq!(quantize("n 3:float32", ":float32", "1:int8", -1, "uint8"), Ok(ty("n 3:uint8")));
        assert_eq!(quantize("n 3:float32", "n:float32", "1:int8", 0, "uint8"), Ok(ty("n 3:uint8")));
        assert_eq!(quantize("n 3:float32", "m:float32", "1:int8", 0, "uint8"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(quantize("n 3:?", "m:float32", "1:int8", -1, "uint8"), Ok(ty("n 3:?")));
        assert_eq!(quantize("n 3:float32", "4:float32", "1:int8", -1, "int8"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(quantize("n 3:float32", "3:float32", "3:int8", 2, "int8"), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(quantize(":float32", "3:float32", ":int8", 0, "int8"), Err(Some(Code::ShapeMismatch)));
    }

    #[test]
    fn dtypes_are_checked() {
        for (data, scale, zero, to) in [
            ("2:int8", ":float32", ":int8", "int8"),
            ("2:float32", ":float64", ":int8", "int8"),
            ("2:float32", ":float32", ":float32", "int8"),
            ("2:float32", ":float32", ":int8", "int32"),
        ] {
            assert_eq!(
                quantize(data, scale, zero, 0, to),
                Err(Some(Code::DtypeMismatch)),
                "{data} {scale} {zero} {to}"
            );
        }
    }
}
