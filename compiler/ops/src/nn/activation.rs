//! Activations, softmax and dropout: schemas and struct-info rules. The result has the type of the operand.

use super::compute::activation as compute;
use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace, Problem, Rule};
use crate::cost::Cost;
use crate::infer_layout;
use crate::operands::{AxisOf, Floats, require_float};
use crate::schema::{Param, Schema, Traits};
use crate::tensor::values::elementwise;
use rx_base::{Answer, Code, Dim};
use rx_ir::StructInfo;

const DATA: Param = Param::tensor("data", "The input.");

const AXIS: Param = Param::int("axis", -1, "The axis along which the result sums to one; negative from the end.");

/// Creates an elementwise operator of `data` with one operation per element.
const fn unary(name: &'static str, doc: &'static str, infer: Rule) -> Schema {
    Schema::new(name, doc, infer).taking(&[DATA]).costing(Cost::PerOutput(1))
}

pub(crate) static OPERATORS: &[Schema] = &[
    unary("nn.relu", "Rectified linear unit: `max(data, 0)`, element by element.", same_type)
        .lowered_by(compute::relu)
        .with_traits(Traits::OPAQUE.computing(elementwise::relu).laid_out(infer_layout::elementwise)),
    unary(
        "nn.gelu",
        "Gaussian error linear unit: `data * Φ(data)` with the normal distribution's Φ, element by element. \
         See <https://arxiv.org/abs/1606.08415>.",
        float_only,
    )
    .lowered_by(compute::gelu)
    .with_traits(Traits::OPAQUE.laid_out(infer_layout::elementwise)),
    unary(
        "nn.gelu_tanh",
        "Gaussian error linear unit with Φ approximated by `tanh`, element by element: \
         `0.5 * x * (1 + tanh(sqrt(2 / π) * (x + 0.044715 * x³)))`.",
        float_only,
    )
    .lowered_by(compute::gelu_tanh)
    .with_traits(Traits::OPAQUE.laid_out(infer_layout::elementwise)),
    unary(
        "nn.selu",
        "Scaled exponential linear unit, element by element: `λ * x` where positive, `λ * α * (exp(x) - 1)` elsewhere. \
         See <https://arxiv.org/abs/1706.02515>.",
        float_only,
    )
    .lowered_by(compute::selu)
    .with_traits(Traits::OPAQUE.laid_out(infer_layout::elementwise)),
    unary("nn.silu", "Sigmoid linear unit: `data * sigmoid(data)`, element by element.", float_only)
        .lowered_by(compute::silu)
        .with_traits(Traits::OPAQUE.laid_out(infer_layout::elementwise)),
    unary("nn.leakyrelu", "Leaky rectified linear unit: `data` where positive, `alpha * data` elsewhere.", float_only)
        .taking(&[DATA, Param::float("alpha", 0.01, "The slope for negative elements.")])
        .lowered_by(compute::leakyrelu),
    unary("nn.softplus", "Smooth rectifier: `log(1 + exp(beta * data)) / beta`, element by element.", float_only)
        .taking(&[
            DATA,
            Param::float("beta", 1.0, "How sharp the bend at 0 is."),
            Param::float(
                "threshold",
                20.0,
                "Where `beta * data` exceeds it the result is `data`, which is numerically safer.",
            ),
        ])
        .lowered_by(compute::softplus),
    unary(
        "nn.prelu",
        "Rectified linear unit with learned slopes: `data` where positive, `alpha * data` elsewhere.",
        prelu,
    )
    .taking(&[
        DATA,
        Param::tensor("alpha", "The slope for negative elements: one per channel, or one for all."),
        Param::int("axis", 1, "The channel axis; negative from the end."),
    ])
    .lowered_by(compute::prelu)
    .with_traits(Traits::OPAQUE.laid_out(infer_layout::along_axis)),
    unary("nn.softmax", "Exponentials divided by their sum along an axis.", softmax)
        .taking(&[DATA, AXIS])
        .lowered_by(compute::softmax)
        .costing(Cost::PerInput(5))
        .with_traits(Traits::OPAQUE.computing(elementwise::probabilities).laid_out(infer_layout::along_axis)),
    unary("nn.log_softmax", "Logarithm of the softmax along an axis, computed without forming the softmax.", softmax)
        .taking(&[DATA, AXIS])
        .lowered_by(compute::log_softmax)
        .costing(Cost::PerInput(5)),
    unary(
        "nn.dropout",
        "In training zeroes elements at random and scales the rest; the identity in inference. Gives a tuple: the \
         output and the mask of kept elements, both of the input's type.",
        dropout,
    )
    .taking(&[DATA, Param::float("rate", 0.5, "The probability that an element is dropped, in training.")])
    .lowered_by(compute::dropout)
    .with_traits(Traits::OPAQUE.laid_out(infer_layout::elementwise)),
];

/// Infers the type of `data`.
fn same_type(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    call.tensor_type("data")
}

/// Infers the type of `data`, which must have a float dtype (TVM `InferTypeUnaryArith<true>`).
fn float_only(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    require_float(call, "data", Floats::IeeeAndBfloat)?;
    same_type(call)
}

fn softmax(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    // TVM checks nothing for a tensor of unknown rank.
    if let Some(ndim) = call.tensor("data")?.shape.ndim() {
        require_float(call, "data", Floats::IeeeAndBfloat)?;
        normalize_axis(call, "axis", ndim, call.needed_int("axis")?)?;
    }
    same_type(call)
}

fn prelu(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let alpha = call.tensor("alpha")?;
    if let Some(ndim) = call.tensor("data")?.shape.ndim() {
        require_float(call, "data", Floats::Ieee)?;
        let axis = normalize_axis(call, "axis", ndim, call.needed_int("axis")?)?;
        if let (Some([slopes]), Some(channels)) = (alpha.shape.dims(), AxisOf::new("data", axis).dim(call)) {
            check_slopes(call, slopes, channels, axis)?;
        }
    }
    same_type(call)
}

fn check_slopes(call: &CallInfo<'_>, slopes: &Dim, channels: &Dim, axis: usize) -> Result<(), Problem> {
    let never = |wanted: &Dim| call.equal(slopes, wanted) == Answer::Refuted;
    if !never(channels) || !never(&Dim::constant(1)) {
        return Ok(());
    }
    let message = format_args!("`alpha` has {slopes} slopes, axis {axis} of `data` has {channels} channels");
    Err(call
        .operand_error(Code::ShapeMismatch, "alpha", message)
        .with_label(ParamPlace::Param("data"), format!("{}: axis {axis} is {channels}", call.ty("data")))
        .into())
}

fn dropout(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let ty = same_type(call)?;
    Ok(StructInfo::tuple([ty.clone(), ty]))
}

#[cfg(test)]
mod tests {
    use crate::tests::{given, infer, number, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    #[test]
    fn the_type_of_the_input_is_kept() {
        for text in ["2 3:float32", "m n:bfloat16", "?3:float16", "*:?", "$s:float32", "2 3:float32@llvm:0:global"] {
            for op in ["nn.relu", "nn.gelu", "nn.silu", "nn.softplus", "nn.softmax", "nn.log_softmax"] {
                assert_eq!(infer(op, &[("data", tensor(text))]), Ok(ty(text)), "{op} of {text}");
            }
        }
        assert_eq!(infer("nn.relu", &[("data", tensor("2:int8"))]), Ok(ty("2:int8")));
        let wanted = StructInfo::tuple([ty("2:int8"), ty("2:int8")]);
        assert_eq!(infer("nn.dropout", &[("data", tensor("2:int8"))]), Ok(wanted));
        let args = [("data", tensor("2 3 4:float32")), ("alpha", tensor("3:float32"))];
        assert_eq!(infer("nn.prelu", &args), Ok(ty("2 3 4:float32")));
    }

    #[test]
    fn mistakes_are_reported() {
        let code = |op: &str, text: &str| infer(op, &[("data", tensor(text))]);
        assert_eq!(code("nn.gelu", "2 3:int8"), Err(Some(Code::DtypeMismatch)));
        assert_eq!(code("nn.softmax", "2 3:int64"), Err(Some(Code::DtypeMismatch)));
        assert_eq!(infer("nn.relu", &[("data", given(StructInfo::Object))]), Err(Some(Code::ArgumentType)));
        assert_eq!(infer("nn.relu", &[("data", given(StructInfo::Error))]), Err(None));
        let axis = [("data", tensor("2 3:float32")), ("axis", number(2))];
        assert_eq!(infer("nn.softmax", &axis), Err(Some(Code::AxisOutOfRange)));
        let slopes = [("data", tensor("2 3 4:float32")), ("alpha", tensor("4:float32"))];
        assert_eq!(infer("nn.prelu", &slopes), Err(Some(Code::ShapeMismatch)));
    }
}
