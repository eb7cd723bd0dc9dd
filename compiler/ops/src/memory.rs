//! Operators of `R.memory` and `R.builtin`: storage, tensors in storage, and views.

use crate::arguments::{dtype, new_shape, scalar};
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::operands::tensor_type;
use crate::schema::{Default, Param, ParamKind, Schema, Traits};
use crate::tensor::values::arrange;
use rx_base::Code;
use rx_ir::StructInfo;

mod view;

const SCOPE: Param = Param::operand("storage_scope", ParamKind::Any, "The kind of memory, usually `\"global\"`.");
pub(crate) const STORAGE: Param = Param::operand("storage", ParamKind::Any, "The storage.");
pub(crate) const OFFSET: Param = Param::operand("offset", ParamKind::Prim, "Where in the storage it begins, in bytes.");
pub(crate) const SHAPE: Param =
    Param::operand("shape", ParamKind::ShapeValue, "The shape of the tensor, a shape value: `R.shape([…])`.");
pub(crate) const DTYPE: Param = Param::operand("dtype", ParamKind::Any, "The dtype: `R.dtype(\"float32\")`.");
pub(crate) const DEVICE_INDEX: Param = Param {
    name: "runtime_device_ind",
    kind: ParamKind::Prim,
    default: Default::Int(0),
    doc: "The device, by index; -1 is the host.",
};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("memory.alloc_storage", "A piece of memory, for tensors to be put into.", alloc_storage)
        .taking(&[
            Param::operand("size", ParamKind::Shape, "The size in bytes, as a shape."),
            Param::operand("virtual_device_index", ParamKind::Prim, "The device, by index; -1 is the host."),
            SCOPE,
            DTYPE,
        ])
        .costing(Cost::Nothing),
    Schema::new("memory.alloc_tensor", "A tensor in a piece of memory.", alloc_tensor)
        .taking(&[STORAGE, OFFSET, SHAPE, DTYPE, DEVICE_INDEX])
        .costing(Cost::Nothing),
    Schema::new(
        "memory.ensure_zero_offset",
        "The tensor itself, or a copy where its data does not begin at its memory's start.",
        |call| known(call, "data"),
    )
    .taking(&[Param::operand("data", ParamKind::Any, "The tensor.")])
    .computed_as(Compute::Identity("data"))
    .costing(Cost::Nothing)
    .with_traits(Traits::OPAQUE.keeping("data").computing(arrange::same))
    .declared_in("TVM src/relax/op/memory/view.cc"),
    Schema::new("memory.kill_storage", "Ends the life of a piece of memory.", |_| Ok(StructInfo::void()))
        .taking(&[STORAGE])
        .impure()
        .costing(Cost::Nothing),
    Schema::new("memory.kill_tensor", "Ends the life of a tensor.", |_| Ok(StructInfo::void()))
        .taking(&[Param::operand("tensor", ParamKind::Any, "The tensor.")])
        .impure()
        .costing(Cost::Nothing),
    Schema::new(
        "memory.view",
        "The same memory under another shape, dtype or start. The view must lie within `data`.",
        view::view,
    )
    .taking(&[
        Param::tensor("data", "The tensor."),
        Param::optional("shape", ParamKind::Shape, "The shape of the view; that of `data` when left out."),
        Param::optional("dtype", ParamKind::Any, "The dtype of the view; that of `data` when left out."),
        Param::optional(
            "relative_byte_offset",
            ParamKind::Prim,
            "Where the view begins, in bytes from the start of `data`; 0 when left out.",
        ),
    ])
    .costing(Cost::Nothing)
    .declared_in("TVM src/relax/op/memory/view.cc"),
    Schema::new("builtin.alloc_tensor", "A tensor with separate memory and no values yet.", builtin_alloc_tensor)
        .taking(&[
            SHAPE,
            DTYPE,
            Param::operand("runtime_device_index", ParamKind::Prim, "The device, by index; -1 is the host."),
            Param { default: Default::Str("global"), ..SCOPE },
        ])
        .costing(Cost::Nothing),
    Schema::new(
        "builtin.stop_lift_params",
        "The tensor itself. Values computed from it are not lifted out of the function with its parameters.",
        |call| {
            call.tensor("x")?;
            known(call, "x")
        },
    )
    .taking(&[Param::tensor("x", "The tensor.")])
    .computed_as(Compute::Identity("x"))
    .costing(Cost::Nothing)
    .with_traits(Traits::OPAQUE.keeping("x").computing(arrange::same)),
];

/// Infers the type of an operand of any kind.
fn known(call: &CallInfo<'_>, name: &'static str) -> Result<StructInfo, Problem> {
    match call.ty(name) {
        StructInfo::Error => Err(Problem::Propagate),
        ty => Ok(ty.clone()),
    }
}

fn alloc_storage(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    new_shape(call, "size")?;
    scalar(call, "virtual_device_index")?;
    dtype(call, "dtype")?;
    Ok(StructInfo::Object)
}

/// Infers the type of `builtin.alloc_tensor` (TVM's `InferTypeAllocateTensor`). The shape must be written out.
fn builtin_alloc_tensor(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    scalar(call, "runtime_device_index")?;
    let shape = new_shape(call, "shape")?;
    if call.operand("shape").is_some_and(|expr| expr.as_var().is_some()) {
        let message = format_args!("`shape` must be written out, it is a variable");
        let report = call.error(Code::ArgumentType, ParamPlace::Param("shape"), message);
        return Err(report.with_help("write its dims: `R.shape([…])`").into());
    }
    Ok(tensor_type(shape, dtype(call, "dtype")?, None))
}

/// Infers the type of a tensor in a storage, whose shape and dtype are arguments of the call.
pub(crate) fn alloc_tensor(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    scalar(call, "offset")?;
    scalar(call, "runtime_device_ind")?;
    Ok(tensor_type(new_shape(call, "shape")?, dtype(call, "dtype")?, None))
}

#[cfg(test)]
mod tests {
    use crate::tests::{given, infer, int, shape, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    #[test]
    fn tensors_are_made_of_a_shape_and_a_dtype() {
        let alloc = |name, dims: &str, dtype: &str| {
            let storage = ("storage", given(StructInfo::Object));
            infer(name, &[storage, ("offset", int("0")), ("shape", shape(dims)), ("dtype", text(dtype))])
        };
        for name in ["memory.alloc_tensor", "vm.alloc_tensor"] {
            assert_eq!(alloc(name, "2 n", "int8"), Ok(ty("2 n:int8")));
            assert_eq!(alloc(name, "2 n", "int9"), Err(Some(Code::UnknownDtype)));
            assert_eq!(alloc(name, "2 -1", "int8"), Err(Some(Code::AttrOutOfRange)));
        }
        assert_eq!(infer("memory.kill_tensor", &[("tensor", tensor("2:int8"))]), Ok(StructInfo::void()));
    }
}
