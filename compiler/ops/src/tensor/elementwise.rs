//! Elementwise operators of one tensor: schemas and struct-info rules.

use super::compute::elementwise as compute;
use super::values::elementwise as values;
use crate::arguments;
use crate::call::{CallInfo, Problem, Rule};
use crate::cost::Cost;
use crate::infer_layout;
use crate::operands::{Floats, require_float};
use crate::schema::{Param, ParamKind, Schema, Traits};
use rx_base::DType;
use rx_ir::StructInfo;
use std::sync::Arc;

const X: &[Param] = &[Param::tensor("x", "The input.")];
const FLOAT_X: &[Param] = &[Param::tensor("x", "The input, of a float dtype.")];

const fn unary(name: &'static str, doc: &'static str, infer: Rule) -> Schema {
    Schema::new(name, doc, infer).taking(X).lowered_by(compute::unary).costing(Cost::PerOutput(1))
}

/// Creates an operator that accepts any dtype.
const fn any(name: &'static str, doc: &'static str) -> Schema {
    unary(name, doc, same).with_traits(Traits::OPAQUE.computing(values::unary).laid_out(infer_layout::elementwise))
}

/// Creates an operator that requires a float dtype.
const fn float(name: &'static str, doc: &'static str) -> Schema {
    Schema { params: FLOAT_X, infer: same_float, ..any(name, doc) }
}

/// Creates an operator with a boolean result.
const fn check(name: &'static str, doc: &'static str) -> Schema {
    unary(name, doc, boolean).with_traits(Traits::OPAQUE.laid_out(infer_layout::elementwise))
}

pub(crate) static OPERATORS: &[Schema] = &[
    any("abs", "The absolute value of each element."),
    float("acos", "The inverse cosine of each element, in radians."),
    float("acosh", "The inverse hyperbolic cosine of each element."),
    float("asin", "The inverse sine of each element, in radians."),
    float("asinh", "The inverse hyperbolic sine of each element."),
    float("atan", "The inverse tangent of each element, in radians."),
    float("atanh", "The inverse hyperbolic tangent of each element."),
    any("bitwise_not", "Each element with all bits flipped."),
    any("ceil", "Each element rounded up to an integer, in the same dtype."),
    Schema::new("clip", "Each element limited to the range from `min` to `max`, both included.", clip)
        .taking(&[
            Param::tensor("x", "The input."),
            Param::operand("min", ParamKind::Prim, "The smallest value of the result."),
            Param::operand("max", ParamKind::Prim, "The largest value of the result."),
        ])
        .lowered_by(compute::clip)
        .costing(Cost::PerOutput(1))
        .with_traits(Traits::OPAQUE.computing(values::clip)),
    float("cos", "The cosine of each element, taken in radians."),
    float("cosh", "The hyperbolic cosine of each element."),
    float("erf", "The Gauss error function of each element."),
    float("exp", "The exponential of each element."),
    any("floor", "Each element rounded down to an integer, in the same dtype."),
    check("isfinite", "Whether each element is neither infinite nor NaN."),
    check("isinf", "Whether each element is infinite."),
    check("isnan", "Whether each element is NaN."),
    float("log", "The natural logarithm of each element."),
    any("logical_not", "The logical negation of each element. The result keeps the dtype of `x`."),
    any("negative", "Each element with its sign flipped."),
    any("round", "Each element rounded to the nearest integer, in the same dtype."),
    float("rsqrt", "The reciprocal of the square root of each element."),
    float("sigmoid", "The logistic function `1 / (1 + exp(-x))` of each element."),
    any("sign", "The sign of each element: -1, 0 or 1."),
    float("sin", "The sine of each element, taken in radians."),
    float("sinh", "The hyperbolic sine of each element."),
    float("sqrt", "The square root of each element."),
    any("square", "The square of each element."),
    float("tan", "The tangent of each element, taken in radians."),
    float("tanh", "The hyperbolic tangent of each element."),
    any("trunc", "Each element rounded toward zero to an integer, in the same dtype."),
];

/// Infers the type of `x` (TVM's `InferTypeUnaryArith`).
fn same(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    call.tensor_type("x")
}

fn same_float(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    require_float(call, "x", Floats::IeeeAndBfloat)?;
    same(call)
}

fn boolean(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    call.tensor("x")?;
    Ok(with_dtype(call.ty("x"), Some(DType::BOOL)))
}

/// Returns the tensor type `data` with another dtype, for casts, comparisons and `*_like` operators.
pub(crate) fn with_dtype(data: &StructInfo, dtype: Option<DType>) -> StructInfo {
    let mut data = data.clone();
    let tensor = match &mut data {
        StructInfo::Tensor(tensor) => Arc::make_mut(tensor),
        StructInfo::DTensor(distributed) => &mut Arc::make_mut(distributed).tensor,
        _ => return StructInfo::Error,
    };
    tensor.dtype = dtype;
    tensor.dtype_error = false;
    data
}

/// Infers the type of `clip`, that of `x`. TVM accepts any value, but only a tensor can be clipped; for `R.Any` nothing
/// is known.
fn clip(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    arguments::scalar(call, "min")?;
    arguments::scalar(call, "max")?;
    match call.ty("x") {
        StructInfo::Object => Ok(StructInfo::Object),
        _ => same(call),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, int, shape, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    #[test]
    fn the_type_passes_through() {
        for input in ["2 n:float32", "?3:float16@llvm:0:global", "$s/2:float32", "*:?"] {
            assert_eq!(infer("abs", &[("x", tensor(input))]), Ok(ty(input)));
            assert_eq!(infer("exp", &[("x", tensor(input))]), Ok(ty(input)));
            assert_eq!(infer("clip", &[("x", tensor(input)), ("min", int("0")), ("max", int("6"))]), Ok(ty(input)));
        }
        assert_eq!(infer("isnan", &[("x", tensor("2:float32"))]), Ok(ty("2:bool")));
    }

    #[test]
    fn wrong_operands_are_reported() {
        assert_eq!(infer("exp", &[("x", tensor("2:int8"))]), Err(Some(Code::DtypeMismatch)));
        assert_eq!(infer("exp", &[("x", tensor("2:float8_e4m3fn"))]), Err(Some(Code::DtypeMismatch)));
        assert_eq!(infer("abs", &[("x", shape("2"))]), Err(Some(Code::ArgumentType)));
        assert_eq!(infer("abs", &[("x", crate::tests::given(StructInfo::Object))]), Err(Some(Code::ArgumentType)));
        assert_eq!(infer("abs", &[("x", crate::tests::given(StructInfo::Error))]), Err(None));
        let tensor_bound = [("x", tensor("2:int8")), ("min", tensor(":int8")), ("max", int("0"))];
        assert_eq!(infer("clip", &tensor_bound), Err(Some(Code::ArgumentType)));
    }
}
