//! Operators of `R.ccl`: collective communication between the workers of a distributed execution.

use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::infer_layout::{self, LaidOut, LayoutCall};
use crate::operands::{Element, tensor_type};
use crate::schema::{AttrKind, Param, Schema, Traits};
use rx_base::name::name;
use rx_base::{Answer, Code, Dim};
use rx_ir::{Placement, Shape, StructInfo, TensorInfo};
use std::sync::Arc;

const X: Param = Param::tensor("x", "The tensor each worker holds.");
const IN_GROUP: Param = Param::flag("in_group", true, "Whether only workers of one group take part.");
const NUM_WORKERS: Param = Param::required_attr("num_workers", AttrKind::Int, "The number of workers, at least 1.");

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "ccl.allreduce",
        "The tensors of all workers combined element by element; every worker gets the result.",
        allreduce,
    )
    .taking(&[
        X,
        Param::choice("op_type", &["sum", "prod", "min", "max", "avg"], "sum", "How values are combined."),
        IN_GROUP,
    ])
    .computed_as(Compute::Identity("x"))
    .costing(Cost::PerOutput(0))
    .with_traits(Traits::OPAQUE.laid_out(infer_layout::elementwise)),
    Schema::new(
        "ccl.allgather",
        "The tensors of all workers put together along axis 0; every worker gets the result.",
        allgather,
    )
    .taking(&[X, NUM_WORKERS, IN_GROUP])
    .computed_as(Compute::Identity("x"))
    .costing(Cost::Copy)
    .with_traits(Traits::OPAQUE.laid_out(gathered_layout)),
    Schema::new("ccl.broadcast_from_worker0", "The tensor of worker 0, given to every worker.", |call| {
        call.tensor_type("x")
    })
    .taking(&[X])
    .computed_as(Compute::Identity("x"))
    .costing(Cost::Copy)
    .with_traits(Traits::OPAQUE.laid_out(infer_layout::elementwise)),
    Schema::new(
        "ccl.scatter_from_worker0",
        "The tensor of worker 0 cut into equal parts along an axis, one for each worker.",
        |call| {
            let tensor = call.tensor("x")?;
            split_over_workers(call, "x", tensor)
        },
    )
    .taking(&[
        Param::tensor("x", "The tensor of worker 0, of known shape."),
        NUM_WORKERS,
        Param::int("axis", 0, "The axis to cut."),
    ])
    .computed_as(Compute::Identity("x"))
    .costing(Cost::Copy),
];

/// Infers the type of `allreduce`, that of `x`. A distributed tensor becomes replicated on all workers.
fn allreduce(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    call.tensor("x")?;
    let StructInfo::DTensor(distributed) = call.ty("x") else { return Ok(call.ty("x").clone()) };
    let mut distributed = distributed.clone();
    let mesh_axes = distributed.placement.0.split(',').count();
    Arc::make_mut(&mut distributed).placement = Placement(name(&vec!["R"; mesh_axes].join(", ")));
    Ok(StructInfo::DTensor(distributed))
}

/// Returns the number of workers.
fn workers(call: &CallInfo<'_>) -> Result<Dim, Problem> {
    match call.needed_int("num_workers")? {
        workers if workers >= 1 => Ok(workers.into()),
        workers => {
            let message = format_args!("`num_workers` must be at least 1, it is {workers}");
            Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("num_workers"), message).into())
        }
    }
}

/// Layout rule of `allgather`. Parts are concatenated along the first axis of the type, so that axis must also be first
/// in the layout.
fn gathered_layout(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let in_front = infer_layout::places(call.layout("x")?, &[0])? == [0];
    if in_front { infer_layout::elementwise(call) } else { None }
}

/// Infers the type of `allgather` (TVM's `InferTypeAllGather`).
fn allgather(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let tensor = call.tensor("x")?;
    let workers = workers(call)?;
    let Some(dims) = tensor.shape.dims() else { return Ok(call.ty("x").clone()) };
    let Some((first, rest)) = dims.split_first() else {
        let message = format_args!("`x` must have at least 1 dimension, it has 0");
        return Err(call.error(Code::TensorNdimMismatch, ParamPlace::Param("x"), message).into());
    };
    let mut dims = vec![first * &workers];
    dims.extend_from_slice(rest);
    Ok(tensor_type(Shape::known(dims), Element::of(tensor), tensor.vdevice))
}

/// Infers the type of one worker's part of a tensor that is split along `axis`. As in TVM, the dims must be known.
pub(crate) fn split_over_workers(
    call: &CallInfo<'_>,
    name: &'static str,
    tensor: &TensorInfo,
) -> Result<StructInfo, Problem> {
    let workers = workers(call)?;
    let Some(dims) = tensor.shape.dims() else {
        if tensor.shape == Shape::Error {
            return Ok(call.ty(name).clone());
        }
        let message = format_args!("`{name}` must have a known shape, it is {}", call.ty(name));
        let report = call.error(Code::ArgumentType, ParamPlace::Param(name), message);
        return Err(report.with_help("a match_cast states a fact that is known when the program runs").into());
    };
    let given = call.needed_int("axis")?;
    if given < 0 {
        let message = format_args!("axis {given} is negative, `axis` counts from the front here");
        return Err(call.error(Code::AxisOutOfRange, ParamPlace::Param("axis"), message).into());
    }
    let axis = normalize_axis(call, "axis", dims.len(), given)?;
    let mut dims = dims.to_vec();
    // INVARIANT: `normalize_axis` returns an axis of the shape.
    let dim = &mut dims[axis];
    if call.equal(&dim.floor_mod(&workers), &Dim::constant(0)) == Answer::Refuted {
        let message = format_args!("axis {axis} of `{name}` is {dim}, not divisible by {workers} workers");
        let report = call.error(Code::ShapeMismatch, ParamPlace::Param(name), message);
        return Err(report.with_primary_label(call.ty(name).to_string()).into());
    }
    *dim = dim.floor_div(&workers);
    Ok(tensor_type(Shape::known(dims), Element::of(tensor), tensor.vdevice))
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, number, tensor, ty};
    use rx_base::Code;

    #[test]
    fn collectives_concatenate_and_split() {
        let gather = |input| infer("ccl.allgather", &[("x", tensor(input)), ("num_workers", number(2))]);
        assert_eq!(gather("4 n:int8"), Ok(ty("8 n:int8")));
        assert_eq!(gather("?2:int8"), Ok(ty("?2:int8")));
        assert_eq!(gather(":int8"), Err(Some(Code::TensorNdimMismatch)));
        let scatter = |input, workers, axis| {
            let args = [("x", tensor(input)), ("num_workers", number(workers)), ("axis", number(axis))];
            infer("ccl.scatter_from_worker0", &args)
        };
        assert_eq!(scatter("6 4:int8", 2, 1), Ok(ty("6 2:int8")));
        assert_eq!(scatter("3 4:int8", 2, 0), Err(Some(Code::ShapeMismatch)));
        assert_eq!(scatter("3 4:int8", 2, 2), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(scatter("3 4:int8", 0, 0), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(scatter("?2:int8", 2, 0), Err(Some(Code::ArgumentType)));
    }
}
