//! `R.vm.*`: what the virtual machine executes.

use crate::arguments::{dtype, new_shape, scalar};
use crate::call::{CallInfo, Problem};
use crate::cost::Cost;
use crate::memory::{DEVICE_INDEX, DTYPE, OFFSET, SHAPE, STORAGE, alloc_tensor};
use crate::operands::{Element, tensor_type};
use crate::schema::{Default, Flow, Param, ParamKind, Purity, Schema};
use rx_ir::{Shape, StructInfo};

const REFERENCE: &str = "TVM src/relax/op/op.cc";

pub(crate) static OPERATORS: &[Schema] = &[
    Schema {
        name: "vm.alloc_storage",
        params: &[
            Param::operand("shape", ParamKind::Shape, "The size in bytes, as a shape."),
            Param::operand("runtime_device_index", ParamKind::Prim, "The device, by index; -1 is the host."),
            DTYPE,
            Param {
                name: "storage_scope",
                kind: ParamKind::Any,
                default: Default::Str("global"),
                doc: "The kind of memory.",
            },
        ],
        purity: Purity::Pure,
        doc: "A piece of memory, for tensors to be put into.",
        reference: REFERENCE,
        cost: Cost::Nothing,
        infer: alloc_storage,
        compute: None,
        flow: Flow::OPAQUE,
    },
    Schema {
        name: "vm.alloc_tensor",
        params: &[STORAGE, OFFSET, SHAPE, DTYPE, DEVICE_INDEX],
        purity: Purity::Pure,
        doc: "A tensor in a piece of memory.",
        reference: REFERENCE,
        cost: Cost::Nothing,
        infer: vm_alloc_tensor,
        compute: None,
        flow: Flow::OPAQUE,
    },
    Schema {
        name: "vm.call_tir_dyn",
        params: &[
            Param::operand("func", ParamKind::Function, "The prim_func."),
            Param::operand(
                "args",
                ParamKind::Arguments,
                "The tensors, outputs too, and last a shape with the values of the prim_func's symbols.",
            ),
        ],
        purity: Purity::Impure,
        doc: "Calls a prim_func whose symbols do not follow from its buffers.",
        reference: REFERENCE,
        cost: Cost::Callee,
        infer: |_| Ok(StructInfo::void()),
        compute: None,
        flow: Flow::OPAQUE,
    },
    Schema {
        name: "vm.kill_object",
        params: &[Param::operand("obj", ParamKind::Any, "The tensor or storage.")],
        purity: Purity::Impure,
        doc: "Ends the life of a value.",
        reference: REFERENCE,
        cost: Cost::Nothing,
        infer: |_| Ok(StructInfo::void()),
        compute: None,
        flow: Flow::OPAQUE,
    },
];

fn alloc_storage(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    new_shape(call, "shape")?;
    scalar(call, "runtime_device_index")?;
    dtype(call, "dtype")?;
    Ok(StructInfo::Object)
}

/// As `memory.alloc_tensor`, but a shape that is a variable gives its dims, or its rank where they are not known (TVM's
/// `InferTypeVMAllocTensor`). Of a tuple it takes nothing, and says nothing.
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
