//! Operators of `R.grad`: annotations for automatic differentiation, and gradients that are separate operators.

use crate::call::{CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::nn::compute as nn_compute;
use crate::nn::loss::{IGNORE_INDEX, PREDICTIONS, REDUCTION, TARGETS, WEIGHTS};
use crate::nn::pool::{
    CEIL_MODE, DATA, OUT_LAYOUT, count_include_pad, dilation, layout, padding_param, pool_size, strides,
};
use crate::schema::{AttrKind, Default, Param, ParamKind, Schema};
use crate::tensor::compute::scatter;
use rx_base::Code;
use rx_ir::{ExprKind, StructInfo};

const OUTPUT_GRAD: Param = Param::tensor("output_grad", "The gradient of the operator's output.");
const ONES: Default = Default::Ints(&[1, 1]);

const POOL_PARAMS: [Param; 10] = [
    OUTPUT_GRAD,
    DATA,
    listed(pool_size(ONES)),
    listed(strides(ONES)),
    listed(padding_param(Default::Ints(&[0, 0, 0, 0]))),
    listed(dilation(ONES)),
    CEIL_MODE,
    count_include_pad(false),
    layout("NCHW"),
    OUT_LAYOUT,
];

/// Returns a parameter of a pooling for its gradient. TVM's gradients do not expand a single integer to all axes.
const fn listed(param: Param) -> Param {
    Param { kind: ParamKind::Attr(AttrKind::IntList), ..param }
}

// A gradient has the type of the operand for which it is the gradient. As in TVM, the type of the output's gradient is
// not checked.
pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("grad.no_grad", "Stops differentiation: the value itself, through which no gradient flows.", |call| {
        Ok(call.ty("input").clone())
    })
    .taking(&[Param::operand("input", ParamKind::Any, "The value.")])
    .computed_as(Compute::Identity("input"))
    .costing(Cost::Nothing),
    Schema::new(
        "grad.start_checkpoint",
        "Marks the input of a checkpointed stage, whose intermediate values the backward pass computes again.",
        checkpoint,
    )
    .taking(&[Param::operand("input", ParamKind::Any, "The stage's input, a variable.")])
    .computed_as(Compute::Identity("input"))
    .costing(Cost::Nothing),
    Schema::new("grad.end_checkpoint", "Marks the output of a checkpointed stage.", checkpoint)
        .taking(&[Param::operand("input", ParamKind::Any, "The stage's output, a variable.")])
        .computed_as(Compute::Identity("input"))
        .costing(Cost::Nothing),
    Schema::new("grad.nll_loss_backward", "The gradient of `nn.nll_loss` with respect to its predictions.", |call| {
        Ok(call.ty("predictions").clone())
    })
    .taking(&[OUTPUT_GRAD, PREDICTIONS, TARGETS, WEIGHTS, REDUCTION, IGNORE_INDEX])
    .lowered_by(nn_compute::loss::nll_loss_backward),
    Schema::new("grad.max_pool2d_backward", "The gradient of `nn.max_pool2d` with respect to its input.", |call| {
        Ok(call.ty("data").clone())
    })
    .taking(&POOL_PARAMS)
    .lowered_by(nn_compute::pool_backward::max_pool2d),
    Schema::new("grad.avg_pool2d_backward", "The gradient of `nn.avg_pool2d` with respect to its input.", |call| {
        Ok(call.ty("data").clone())
    })
    .taking(&POOL_PARAMS)
    .lowered_by(nn_compute::pool_backward::avg_pool2d),
    Schema::new(
        "grad.take_backward",
        "The gradient of `take` with respect to its source: zeros with the output's gradient added at the indices.",
        |call| Ok(call.ty("x").clone()),
    )
    .taking(&[
        OUTPUT_GRAD,
        Param::tensor("x", "The source of `take`."),
        Param::tensor("indices", "The indices that were taken."),
        Param::optional_attr("axis", AttrKind::Int, "The axis of the indices; needed unless `x` has one dimension."),
        // TVM prints this attribute, although the Python signature lacks it: the operator shares its attributes with
        // `take`.
        Param::optional_attr(
            "mode",
            AttrKind::Choice(&["fast", "wrap", "clip", "nan", ""]),
            "The treatment of indices out of range, as in `take`.",
        ),
    ])
    .lowered_by(scatter::take_backward),
];

fn checkpoint(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    match call.operand("input").map(|operand| &operand.kind) {
        Some(ExprKind::Var(_)) => Ok(call.ty("input").clone()),
        Some(ExprKind::Error) | None => Err(Problem::Propagate),
        Some(_) => Err(call
            .error(
                Code::ArgumentType,
                ParamPlace::Param("input"),
                format_args!("`input` must be a variable, it is {}", call.ty("input")),
            )
            .with_help("bind the value to a variable first")
            .into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, infer, int, tensor, ty};
    use rx_base::Code;

    #[test]
    fn gradients_have_the_type_of_their_operand() {
        let check =
            |op: &str, args: &[(&str, Given)], wanted: &str| assert_eq!(infer(op, args), Ok(ty(wanted)), "{op}");
        check("grad.no_grad", &[("input", tensor("n:float32"))], "n:float32");
        check("grad.start_checkpoint", &[("input", tensor("n:float32"))], "n:float32");
        let x = ("x", tensor("3 4:float32"));
        check(
            "grad.take_backward",
            &[("output_grad", tensor("3 2:float32")), x, ("indices", tensor("2:int64"))],
            "3 4:float32",
        );
        let data = ("data", tensor("n c h w:float32"));
        check("grad.max_pool2d_backward", &[("output_grad", tensor("*:float32")), data], "n c h w:float32");
    }

    #[test]
    fn checkpoints_mark_variables() {
        assert_eq!(infer("grad.end_checkpoint", &[("input", int("1"))]), Err(Some(Code::ArgumentType)));
    }
}
