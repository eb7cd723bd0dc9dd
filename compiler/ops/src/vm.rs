//! Operators of `R.vm`, which the virtual machine executes.

use crate::arguments::{dtype, new_shape, scalar};
use crate::call::{CallInfo, Problem};
use crate::cost::Cost;
use crate::memory::{DEVICE_INDEX, DTYPE, OFFSET, SHAPE, STORAGE, alloc_tensor};
use crate::operands::{Element, tensor_type};
use crate::schema::{Default, Param, ParamKind, Schema};
use rx_ir::{Shape, StructInfo};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("vm.alloc_storage", "A piece of memory, for tensors to be put into.", alloc_storage)
        .taking(&[
            Param::operand("shape", ParamKind::Shape, "The size in bytes, as a shape."),
            Param::operand("runtime_device_index", ParamKind::Prim, "The device, by index; -1 is the host."),
            DTYPE,
            Param {
                name: "storage_scope",
                kind: ParamKind::Any,
                default: Default::Str("global"),
                doc: "The kind of memory.",
            },
        ])
        .costing(Cost::Nothing),
    Schema::new("vm.alloc_tensor", "A tensor in a piece of memory.", vm_alloc_tensor)
        .taking(&[STORAGE, OFFSET, SHAPE, DTYPE, DEVICE_INDEX])
        .costing(Cost::Nothing),
    Schema::new("vm.call_tir_dyn", "Calls a prim_func whose symbols do not follow from its buffers.", |_| {
        Ok(StructInfo::void())
    })
    .taking(&[
        Param::operand("func", ParamKind::Function, "The prim_func."),
        Param::operand(
            "args",
            ParamKind::Arguments,
            "The tensors, outputs too, and last a shape with the values of the prim_func's symbols.",
        ),
    ])
    .impure()
    .costing(Cost::Callee),
    Schema::new("vm.kill_object", "Ends the life of a value.", |_| Ok(StructInfo::void()))
        .taking(&[Param::operand("obj", ParamKind::Any, "The tensor or storage.")])
        .impure()
        .costing(Cost::Nothing),
];

fn alloc_storage(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    new_shape(call, "shape")?;
    scalar(call, "runtime_device_index")?;
    dtype(call, "dtype")?;
    Ok(StructInfo::Object)
}

/// Infers the type of `vm.alloc_tensor` (TVM's `InferTypeVMAllocTensor`). It differs from `memory.alloc_tensor` for a
/// shape variable, for which it uses the dims, or the rank if they are unknown. For a tuple, the shape is unknown.
fn vm_alloc_tensor(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    if call.ty("shape").as_tuple().is_some() {
        return Ok(tensor_type(Shape::of_rank(None), dtype(call, "dtype")?, None));
    }
    let result = alloc_tensor(call)?;
    match result.as_tensor() {
        Some(tensor) => match &tensor.shape {
            Shape::Var { ndim, dims, .. } => {
                let shape = dims.clone().map_or(Shape::of_rank(*ndim), Shape::Known);
                Ok(tensor_type(shape, Element::of(tensor), tensor.vdevice))
            }
            _ => Ok(result),
        },
        None => Ok(result),
    }
}
