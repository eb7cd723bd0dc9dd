//! Operators of `R.dist`, for tensors that are distributed over a mesh of devices.

use crate::call::{Arg, CallInfo, ParamPlace, Problem};
use crate::ccl::split_over_workers;
use crate::compute::Compute;
use crate::cost::Cost;
use crate::schema::{AttrKind, Param, ParamKind, Schema};
use rx_base::Code;
use rx_base::name::name;
use rx_ir::{DTensorInfo, Placement, StructInfo};
use std::sync::Arc;

const MESH: Param =
    Param::required_attr("device_mesh", AttrKind::Any, "The mesh, as the module declares it: `mesh[0]`.");
const PLACEMENT: Param = Param::required_attr(
    "placement",
    AttrKind::Str,
    "For each mesh axis `S[i]`, cut along tensor axis `i`, or `R`, a copy everywhere.",
);

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "dist.annotate_sharding",
        "The tensor itself, with a wish how to lay it over the mesh, for the pass that distributes.",
        annotate_sharding,
    )
    .taking(&[Param::tensor("value", "The tensor."), MESH, PLACEMENT])
    .computed_as(Compute::Identity("value"))
    .costing(Cost::Nothing),
    Schema::new("dist.redistribute", "The tensor laid over the mesh in another way.", redistribute)
        .taking(&[Param::tensor("value", "The distributed tensor."), MESH, PLACEMENT])
        .computed_as(Compute::Identity("value"))
        .costing(Cost::Copy),
    Schema::new(
        "dist.redistribute_replica_to_shard",
        "The part of a tensor that this worker keeps when it is cut along an axis.",
        replica_to_shard,
    )
    .taking(&[
        Param::tensor("input", "The tensor, whole on every worker; of known shape."),
        Param::required_attr("num_workers", AttrKind::Int, "The number of workers, at least 1."),
        Param::required_attr("axis", AttrKind::Int, "The axis to cut."),
    ])
    .computed_as(Compute::Identity("input"))
    .costing(Cost::Copy),
    Schema::new(
        "dist.call_tir_local_view",
        "Calls a prim_func on the parts of distributed tensors that each worker holds.",
        |call| match call.arg("out_ty") {
            Arg::Types([ty]) => Ok(ty.clone()),
            Arg::Types(types) => Ok(StructInfo::tuple(*types)),
            _ => Err(Problem::Propagate),
        },
    )
    .taking(&[
        Param::operand("gvar", ParamKind::Function, "The prim_func: `cls.f`."),
        Param::operand("args", ParamKind::Arguments, "The arguments, as a tuple."),
        Param::operand("out_ty", ParamKind::Types, "The type of the result; a list of types where it is a tuple."),
        crate::call_functions::TIR_VARS,
    ])
    .costing(Cost::Callee),
];

fn annotate_sharding(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    placement(call)?;
    match call.ty("value") {
        StructInfo::Error => Err(Problem::Propagate),
        ty => Ok(ty.clone()),
    }
}

/// Returns the requested placement.
fn placement(call: &CallInfo<'_>) -> Result<Placement, Problem> {
    let text = call.str("placement").ok_or(Problem::Propagate)?;
    Placement::parse(text).ok_or_else(|| {
        let message = format_args!("`placement` is \"{text}\", it must be `R` or `S[axis]` for each axis of the mesh");
        call.error(Code::AttrBadValue, ParamPlace::Param("placement"), message).into()
    })
}

/// Infers the type of `redistribute` (TVM's `InferDistTypeRedistribute`).
fn redistribute(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let tensor = match call.ty("value") {
        StructInfo::DTensor(value) => value.tensor.clone(),
        StructInfo::Error => return Err(Problem::Propagate),
        ty => return Err(call.wrong_kind(ParamPlace::Param("value"), "value", "a distributed tensor", ty)),
    };
    let placement = placement(call)?;
    let Some(mesh) = call.str("device_mesh") else { return Err(Problem::Propagate) };
    Ok(StructInfo::DTensor(Arc::new(DTensorInfo { tensor, device_mesh: name(mesh), placement })))
}

/// Infers the type of `redistribute_replica_to_shard` (TVM's `InferTypeRtoS`). A distributed tensor keeps its shape and
/// gets a sharded placement (`InferDistTypeRtoS`).
fn replica_to_shard(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let tensor = call.tensor("input")?;
    let part = split_over_workers(call, "input", tensor)?;
    let StructInfo::DTensor(whole) = call.ty("input") else { return Ok(part) };
    if whole.placement.0.as_str() != "R" {
        let message = format_args!("`input` must be whole on every worker, its placement is {}", whole.placement.0);
        return Err(call.error(Code::ArgumentType, ParamPlace::Param("input"), message).into());
    }
    let mut whole = whole.clone();
    let axis = call.needed_int("axis")?;
    Arc::make_mut(&mut whole).placement = Placement(name(&format!("S[{axis}]")));
    Ok(StructInfo::DTensor(whole))
}

#[cfg(test)]
mod tests {
    use crate::tests::{given, infer, number, tensor, text, ty};
    use rx_base::Code;
    use rx_base::name::name;
    use rx_ir::{DTensorInfo, Placement, StructInfo};

    fn distributed(tensor: &str, placement: &str) -> StructInfo {
        let StructInfo::Tensor(tensor) = ty(tensor) else { return StructInfo::Error };
        let (tensor, placement) = ((*tensor).clone(), Placement(name(placement)));
        StructInfo::DTensor(std::sync::Arc::new(DTensorInfo { tensor, device_mesh: name("mesh[0]"), placement }))
    }

    #[test]
    fn a_tensor_is_cut_for_the_workers() {
        let cut = |input, axis| {
            let args = [("input", input), ("num_workers", number(2)), ("axis", number(axis))];
            infer("dist.redistribute_replica_to_shard", &args)
        };
        assert_eq!(cut(tensor("3 4:int8"), 1), Ok(ty("3 2:int8")));
        assert_eq!(cut(tensor("3 4:int8"), 0), Err(Some(Code::ShapeMismatch)));
        assert_eq!(cut(given(distributed("3 4:int8", "R")), 1), Ok(distributed("3 4:int8", "S[1]")));
    }

    #[test]
    fn redistribution_changes_the_placement() {
        let move_to = |value| {
            let attrs = [("value", value), ("device_mesh", text("mesh[0]")), ("placement", text("S[0]"))];
            infer("dist.redistribute", &attrs)
        };
        assert_eq!(move_to(given(distributed("2 n:int8", "R"))), Ok(distributed("2 n:int8", "S[0]")));
        assert_eq!(move_to(tensor("2 n:int8")), Err(Some(Code::ArgumentType)));
        let wish = [("value", tensor("2:int8")), ("device_mesh", text("mesh[0]")), ("placement", text("S[x]"))];
        assert_eq!(infer("dist.annotate_sharding", &wish), Err(Some(Code::AttrBadValue)));
    }
}
