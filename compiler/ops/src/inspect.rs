//! Operators of `R.inspect`, which read properties of a tensor at run time.

use crate::arguments::integer;
use crate::call::{CallInfo, ParamPlace, Problem, Rule};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::schema::{Param, ParamKind, Schema};
use rx_base::{Code, DType};
use rx_ir::StructInfo;

const TENSOR: Param = Param::tensor("tensor", "The tensor.");
const AXIS: Param = Param::operand("axis", ParamKind::Prim, "The axis, counted from 0.");

/// Creates an operator that reads a property of `tensor`.
const fn inspect(name: &'static str, doc: &'static str, infer: Rule) -> Schema {
    Schema::new(name, doc, infer).taking(&[TENSOR]).computed_as(Compute::Host).costing(Cost::Nothing)
}

pub(crate) static OPERATORS: &[Schema] = &[
    inspect("inspect.tensor_byte_offset", "Where its data begins in its memory, in bytes.", |call| {
        scalar(call, DType::UINT64)
    }),
    inspect("inspect.tensor_dtype_bits", "The bits of one lane of its dtype.", |call| scalar(call, DType::UINT8)),
    inspect("inspect.tensor_dtype_code", "The code of its dtype, as DLPack numbers them.", |call| {
        scalar(call, DType::UINT8)
    }),
    inspect("inspect.tensor_dtype_lanes", "The lanes of its dtype, 1 unless it is a vector.", |call| {
        scalar(call, DType::UINT16)
    }),
    inspect("inspect.tensor_elem_offset", "Where its data begins in its memory, in elements.", |call| {
        scalar(call, DType::UINT64)
    }),
    inspect("inspect.tensor_ndim", "Its number of dimensions.", |call| scalar(call, DType::INT32)),
    inspect("inspect.tensor_shape_i", "Its size along an axis.", of_axis).taking(&[TENSOR, AXIS]),
    inspect("inspect.tensor_stride_i", "Its stride along an axis, in elements.", of_axis).taking(&[TENSOR, AXIS]),
];

fn scalar(call: &CallInfo<'_>, dtype: DType) -> Result<StructInfo, Problem> {
    call.tensor("tensor")?;
    Ok(StructInfo::prim(dtype))
}

/// Infers the type of a property of one axis. The axis must not be negative.
fn of_axis(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let ndim = call.tensor("tensor")?.shape.ndim();
    let axis = integer(call, "axis")?.and_then(|axis| axis.as_constant());
    match (axis, ndim.and_then(|ndim| i64::try_from(ndim).ok())) {
        (Some(axis), ndim) if axis < 0 || ndim.is_some_and(|ndim| axis >= ndim) => {
            let known = ndim.map_or_else(String::new, |ndim| format!(", the tensor has {ndim} dimensions"));
            let message = format_args!("axis {axis} is out of range{known}");
            let report = call.error(Code::AxisOutOfRange, ParamPlace::Param("axis"), message);
            Err(report.with_label(ParamPlace::Param("tensor"), call.ty("tensor").to_string()).into())
        }
        _ => scalar(call, DType::INT64),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, int, prim, shape, tensor};
    use rx_base::Code;

    #[test]
    fn answers_are_scalars() {
        assert_eq!(infer("inspect.tensor_ndim", &[("tensor", tensor("*:?"))]), Ok(prim("int32")));
        assert_eq!(infer("inspect.tensor_ndim", &[("tensor", shape("2"))]), Err(Some(Code::ArgumentType)));
        let size = |axis| infer("inspect.tensor_shape_i", &[("tensor", tensor("?2:int8")), ("axis", int(axis))]);
        assert_eq!(size("1"), Ok(prim("int64")));
        assert_eq!(size("n"), Ok(prim("int64")));
        assert_eq!(size("2"), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(size("-1"), Err(Some(Code::AxisOutOfRange)));
    }
}
