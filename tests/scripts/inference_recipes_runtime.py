"""Recipes of operators on devices, memory, the virtual machine and gradients. See inference_recipes.py."""

from inference_calls import Other, Prim, Shape, Tensor, dims_text, quote, some


def allgather(d):
    return [d.tensor(d.dims())], {"num_workers": d.one(1, 2, 4, 0), "in_group": d.boolean()}


def allreduce(d):
    return [d.tensor(d.dims())], {
        "op_type": d.one('"sum"', '"prod"', '"min"', '"max"', '"avg"', '"foo"'),
        "in_group": d.boolean(),
    }


def scatter_worker(d):
    dims = d.dims(1)
    return [d.tensor(dims)], {"num_workers": d.one(1, 2, 2, 4), "axis": d.axis(len(dims))}


def replica_to_shard(d):
    dims = d.dims(1)
    return [d.tensor(dims)], {"num_workers": d.one(1, 2, 2, 4), "axis": d.axis(len(dims))}


def any_value(d):
    return [
        d.one(
            d.tensor(d.dims()),
            d.tensor(d.dims()),
            'R.const(1.0, "float32")',
            d.fresh(Shape(d.dims())),
            d.fresh(Prim("int64")),
            d.fresh(Other(fields=(Tensor(d.dims()), Prim("int64")))),
        )
    ], {}


def take_backward(d):
    dims = d.dims(1)
    axis = d.axis(len(dims))
    return [d.tensor(dims), d.tensor(dims), d.tensor(d.dims(0, 1), "int64")], {"axis": axis}


def shape_of(d):
    return [d.tensor(d.dims())], {}


def shape_to_tensor(d):
    return [d.one(d.shape(d.dims()), d.fresh(Shape(d.dims())), d.tensor(["2"]))], {}


def tensor_to_shape(d):
    return [d.tensor([d.dim()] if not d.slip() else d.dims(), "int64")], {}


def builtin_alloc_tensor(d):
    return [d.shape(d.dims()), quote(d.any_dtype()), d.one("0", "1", "n")], d.one({}, {"storage_scope": '"global"'})


def memory_alloc_storage(d):
    return [d.shape([d.dim()]), d.one("0", "1"), '"global"', d.one('"uint8"', '"float32"')], {}


def memory_alloc_tensor(d):
    return [d.one(d.fresh(Other(what="Any")), d.tensor(["2"])), d.one("0", "4", "n"), d.shape(d.dims()), quote(d.any_dtype())], {}


def vm_alloc_storage(d):
    return [d.shape([d.dim()]), d.one("0", "1"), d.one('"uint8"', '"float32"')], d.one({}, {"storage_scope": '"global"'})


def view(d):
    dims = d.dims(1, static=True)
    total = 1
    for dim in dims:
        total *= int(dim)
    named = {
        "shape": d.one(None, dims_text([str(total)], str), d.shape(dims), dims_text(d.dims(0, 3), str)),
        "dtype": d.one(None, '"float32"', '"int32"', '"int8"', '"float16"', 'R.dtype("int32")'),
        "relative_byte_offset": d.one(None, "0", "4", "n", "1024"),
    }
    return [d.tensor(dims, d.one("float32", "int32", "int8"))], some(d, named)


def size(d):
    return [d.tensor(d.dims())], {}


def printed(d):
    return [d.tensor(d.dims())], {"format": '"{}"'}


def asserted(d):
    return [d.one(d.tensor([], "bool"), d.fresh(Prim("bool")), d.tensor(["1"], "bool"), 'R.const(True, "bool")')], d.one(
        {}, {"format": '"{}"'}
    )


def declared(d):
    """Returns a type as a call declares it."""
    dims = d.dims()
    shape = dims_text(dims, str)
    return d.one(f'R.Tensor({shape}, "float32")', f"R.Tensor({shape})", f'R.Tensor(dtype="int8", ndim={len(dims)})', "R.Tensor", "R.Any")


def packed(d):
    args = [d.tensor(d.dims(), d.any_dtype()) for _ in range(d.one(1, 2))]
    return ['"f"', *args], {"ty_args": d.one(declared(d), f"[{declared(d)}]", f"[{declared(d)}, {declared(d)}]")}


def destination(d):
    args = [d.tensor(d.dims(), d.any_dtype()) for _ in range(d.one(1, 2))]
    return ['"f"', d.one(f"({', '.join(args)},)", args[0])], {"out_ty": d.one(declared(d), f"[{declared(d)}, {declared(d)}]")}


def inplace(d):
    dims, dtype = d.dims(), d.any_dtype()
    result = f'R.Tensor({dims_text(d.spoil(dims) if d.slip() else dims, str)}, "{dtype}")'
    return ['"f"', d.tensor(dims, dtype)], {"inplace_indices": d.one("[0]", "[0]", "[-1]", "[1]", "[0, 0]"), "ty_args": f"[{result}]"}


def any_tensor(d):
    return [d.tensor(d.dims(), d.any_dtype())], {}


def inspected(d):
    """Returns the arguments for inspecting an axis of a tensor."""
    return [d.tensor(d.dims(), d.any_dtype()), d.one("0", "1", "3", "-1", "n", d.fresh(Prim("int64"), "p"), "T.int64(0)", "5")], {}


RUNTIME = {
    "ccl.allgather": allgather,
    "ccl.allreduce": allreduce,
    "ccl.broadcast_from_worker0": any_tensor,
    "ccl.scatter_from_worker0": scatter_worker,
    "dist.redistribute_replica_to_shard": replica_to_shard,
    "grad.no_grad": any_value,
    "grad.start_checkpoint": any_value,
    "grad.end_checkpoint": any_value,
    "grad.take_backward": take_backward,
    "shape_of": shape_of,
    "shape_to_tensor": shape_to_tensor,
    "tensor_to_shape": tensor_to_shape,
    "size": size,
    "builtin.alloc_tensor": builtin_alloc_tensor,
    "builtin.stop_lift_params": any_tensor,
    "memory.alloc_storage": memory_alloc_storage,
    "memory.alloc_tensor": memory_alloc_tensor,
    "memory.view": view,
    "memory.ensure_zero_offset": any_tensor,
    "memory.kill_tensor": any_tensor,
    "memory.kill_storage": any_value,
    "vm.alloc_storage": vm_alloc_storage,
    "vm.alloc_tensor": memory_alloc_tensor,
    "vm.kill_object": any_value,
    "print": printed,
    "assert_op": asserted,
    "null_value": lambda d: ([], {}),
    "call_pure_packed": packed,
    "call_dps_packed": destination,
    "call_inplace_packed": inplace,
    **{f"inspect.tensor_{what}": any_tensor for what in "ndim dtype_code dtype_bits dtype_lanes byte_offset elem_offset".split()},
    "inspect.tensor_shape_i": inspected,
    "inspect.tensor_stride_i": inspected,
}
