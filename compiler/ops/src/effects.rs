//! Operators that print or assert, null values, and operators that state the device of a tensor.

use crate::call::{CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::operands::{Element, tensor_type};
use crate::schema::{AttrKind, Default, Param, ParamKind, Schema, Traits};
use crate::tensor::values::arrange;
use rx_base::Code;
use rx_base::name::name;
use rx_ir::{PrimInfo, StructInfo, VDevice};

const FORMAT: Param = Param {
    name: "format",
    kind: ParamKind::Any,
    default: Default::Str(""),
    doc: "A Python format string; each `{}` is replaced by a value.",
};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("print", "Prints values when the program runs.", |_| Ok(StructInfo::void()))
        .taking(&[Param::operand("values", ParamKind::Variadic, "The values."), FORMAT])
        .impure()
        .computed_as(Compute::Host)
        .costing(Cost::Nothing),
    Schema::new("assert_op", "Stops the program with a message unless a condition holds.", assert_op)
        .taking(&[
            Param::operand(
                "condition",
                ParamKind::Any,
                "The condition that must be true: a boolean, or a boolean tensor without dimensions.",
            ),
            Param::optional("format_args", ParamKind::Variadic, "Values for the message."),
            FORMAT,
        ])
        .impure()
        .computed_as(Compute::Host)
        .costing(Cost::Nothing),
    Schema::new("null_value", "The null value, for an argument that is omitted.", |_| Ok(StructInfo::Object))
        .costing(Cost::Nothing),
    Schema::new("to_vdevice", "The tensor copied to a virtual device.", to_vdevice)
        .taking(&[
            Param::tensor("data", "The tensor."),
            Param::required_attr("dst_vdevice", AttrKind::VDevice, "The device: `\"cuda:0:global\"`."),
        ])
        .computed_as(Compute::Identity("data"))
        .costing(Cost::Copy)
        .with_traits(Traits::OPAQUE.keeping("data").computing(arrange::same)),
    Schema::new(
        "hint_on_device",
        "The tensor itself, with a wish where it should live, for the pass that places values.",
        |call| call.tensor_type("data"),
    )
    .taking(&[
        Param::tensor("data", "The tensor."),
        Param::required_attr("dst_vdevice", AttrKind::Any, "The device: `R.cuda(0)`, `R.device(…)`."),
        Param::attr("memory_scope", AttrKind::Str, Default::Str("global"), "The kind of memory."),
    ])
    .computed_as(Compute::Identity("data"))
    .costing(Cost::Nothing)
    .with_traits(Traits::OPAQUE.keeping("data").computing(arrange::same)),
];

/// Infers the type of `assert_op`, whose condition must be a boolean scalar, as far as known (TVM's `InferAssertType`).
fn assert_op(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let condition = call.ty("condition");
    let fits = match condition {
        StructInfo::Error => return Err(Problem::Propagate),
        StructInfo::Prim(PrimInfo { dtype, .. }) => dtype.is_none_or(|dtype| dtype.is_bool()),
        condition => condition.as_tensor().is_some_and(|tensor| {
            tensor.dtype.is_none_or(|dtype| dtype.is_bool()) && tensor.shape.ndim().is_none_or(|ndim| ndim == 0)
        }),
    };
    if fits {
        return Ok(StructInfo::void());
    }
    let message = format_args!("`condition` must be a boolean scalar, it is {condition}");
    Err(call.error(Code::ConditionType, ParamPlace::Param("condition"), message).into())
}

fn to_vdevice(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let device = call.str("dst_vdevice").map(full_name);
    Ok(tensor_type(data.shape.clone(), Element::of(data), device))
}

/// Returns the complete name of a virtual device: a missing index is 0, a missing memory scope is `global`.
fn full_name(text: &str) -> VDevice {
    let mut parts = text.split(':');
    let mut next = |other| parts.next().filter(|part| !part.is_empty()).unwrap_or(other);
    let (target, index, scope) = (next(""), next("0"), next("global"));
    VDevice(name(&format!("{target}:{index}:{scope}")))
}

#[cfg(test)]
mod tests {
    use crate::tests::{given, infer, prim, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    #[test]
    fn statements_give_nothing() {
        for condition in [tensor(":bool"), tensor("*:?"), given(prim("bool"))] {
            assert_eq!(infer("assert_op", &[("condition", condition)]), Ok(StructInfo::void()));
        }
        for condition in [tensor("1:bool"), tensor(":int8"), given(StructInfo::Object)] {
            assert_eq!(infer("assert_op", &[("condition", condition)]), Err(Some(Code::ConditionType)));
        }
        assert_eq!(infer("print", &[]), Ok(StructInfo::void()));
        assert_eq!(infer("null_value", &[]), Ok(StructInfo::Object));
    }

    #[test]
    fn tensors_move_between_devices() {
        let copy = infer("to_vdevice", &[("data", tensor("2 n:int8@llvm:0:global")), ("dst_vdevice", text("cuda"))]);
        assert_eq!(copy, Ok(ty("2 n:int8@cuda:0:global")));
    }
}
