"""A recipe for each construct that does not occur in a single operator call: kernels, callees, closures, branches, casts, tuples, meshes, devices.

A recipe returns the lines of a function, of which the last binds `gv`; `Draw.helper` adds further functions. Both TVM and rx read the
text.
"""

import re

from inference_calls import CALLEE, MESHES, SYMBOLS, Other, Prim, Shape, Tensor, Text, dims_text, quote

AXES = {mesh: len(shape) for mesh, (shape, _) in MESHES.items()}


def tensor_type(dims, dtype="float32"):
    """Formats a tensor's type."""
    return f'R.Tensor({dims_text(dims, str)}, dtype="{dtype}")'


def shape_type(dims):
    """Formats a shape's type; TVM reads `R.Shape([])` as a shape of unknown rank."""
    return f"R.Shape([{', '.join(dims)}])" if dims else "R.Shape(ndim=0)"


def loosened(d, dims, dtype):
    """Returns the type of a tensor, sometimes a less specific one."""
    r = d.rng.random()
    if r < 0.7:
        return tensor_type(dims, dtype)
    if r < 0.8:
        return f'R.Tensor(dtype="{dtype}", ndim={len(dims)})'
    return d.one(f'R.Tensor(dtype="{dtype}")', f"R.Tensor({dims_text(dims, str)})", "R.Tensor", "R.Any")


def spoiled(d, dims):
    return d.spoil(dims) if d.slip() else list(dims)


def listed(items):
    """Formats a tuple of expressions."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


# Kernels.


def buffers(d, dims_of, dtypes):
    """Returns the parameters of a kernel over these buffers, and the lines that match them; the caller's symbols get
    new names."""
    own, params, lines, names = {}, [], [], []
    for at, (dims, dtype) in enumerate(zip(dims_of, dtypes, strict=True)):
        symbolic = any(symbol in dim for dim in dims for symbol in SYMBOLS)
        extents = []
        for dim in dims:
            if dim.lstrip("-").isdigit():
                extents.append(f"T.int64({dim})")
            else:
                extents.append(own.setdefault(dim, f"q{len(own)}"))
        if symbolic:
            params.append(f"b{at}: T.handle")
            lines.append(f'B{at} = T.match_buffer(b{at}, {listed(extents) if extents else "()"}, "{dtype}")')
        else:
            params.append(f'B{at}: T.Buffer({listed(extents) if extents else "()"}, "{dtype}")')
        names.append(f"B{at}")
    return params, [f"{name} = T.int64()" for name in own.values()] + lines


def kernel(d, inputs, outputs, dtypes, scalars=0):
    """Adds a kernel over these buffers; returns its name."""
    params, lines = buffers(d, [*inputs, *outputs], dtypes)
    at = len(inputs)
    params[at:at] = [f"p{number}: T.int64" for number in range(scalars)]
    body = "".join(f"        {line}\n" for line in [*lines, "T.evaluate(0)"])
    return d.helper("    @T.prim_func(private=True, s_tir=True)\n    def {name}(" + ", ".join(params) + f"):\n{body}")


def kernel_call(d, inplace=False):
    """Returns arguments, out types and kernel of a `call_tir`."""
    inputs = [d.dims() for _ in range(d.one(1, 1, 2, 3))]
    outputs = [list(d.one(*inputs)) if inplace or d.chance(0.6) else d.dims() for _ in range(d.one(1, 1, 1, 2))]
    dtype = d.one("float32", "float16", "int32")
    of_outputs = [] if inplace else outputs
    name = kernel(d, [spoiled(d, dims) for dims in inputs], of_outputs, [dtype] * (len(inputs) + len(of_outputs)))
    args = [d.tensor(dims, dtype) for dims in inputs]
    types = [tensor_type(spoiled(d, dims), d.one("int8", "float64") if d.slip(0.5) else dtype) for dims in outputs]
    return name, inputs, args, outputs, types[0] if len(types) == 1 and d.chance(0.9) else f"[{', '.join(types)}]"


def called_with(d, args):
    """Returns the arguments as a tuple, as a single expression, or through a variable."""
    lines = []
    text = listed(args)
    if len(args) == 1 and d.chance(0.2):
        text = args[0]
    elif d.chance(0.1):
        lines, text = [f"t = {text}"], "t"
    return lines, text


def call_tir(d):
    name, _, args, _, out = kernel_call(d)
    before, text = called_with(d, args)
    return [*before, f"gv = R.call_tir(cls.{name}, {text}, out_ty={out})"]


def call_tir_scalar(d):
    """Draws a kernel that takes a scalar or a symbol besides tensors."""
    dims = d.dims()
    scalars = d.one(1, 1, 2)
    name = kernel(d, [dims], [dims], ["float32"] * 2, scalars)
    values = [d.one("n", "n + 1", "R.prim_value(3)", d.fresh(Prim("int64"), "p"), "4") for _ in range(scalars)]
    return [f"gv = R.call_tir(cls.{name}, {listed([d.tensor(dims), *values])}, out_ty={tensor_type(dims)})"]


def call_tir_with_grad(d):
    name, _, args, _, out = kernel_call(d)
    more = d.one("", ', te_grad_kwargs={"k": T.float32(2.0)}')
    return [f'gv = R.call_tir_with_grad(cls.{name}, {listed(args)}, out_ty={out}, te_grad_name="f_grad"{more})']


def call_tir_inplace(d):
    name, inputs, args, outputs, out = kernel_call(d, inplace=True)
    places = [inputs.index(dims) for dims in outputs]
    if d.slip():
        places[0] = d.one(-1, 0, 1, 5)
    return [f"gv = R.call_tir_inplace(cls.{name}, {listed(args)}, inplace_indices={places}, out_ty={out})"]


def call_tir_dyn(d):
    name, _, args, _, _ = kernel_call(d)
    args += d.one([], [f"R.shape([{', '.join(d.dims())}])"])
    return [f"gv = R.vm.call_tir_dyn(cls.{name}, {listed(args)})"]


# Packed functions.


def declared(d, dims=None):
    """Returns a type as a call declares it, or several."""
    dims = d.dims() if dims is None else dims
    one = loosened(d, dims, d.any_dtype())
    return d.one(
        one, one, f"({one},)", f"[{one}]", f"R.Tuple({one}, {tensor_type(d.dims())})", shape_type(dims), "R.Shape(ndim=2)",
        "R.Any", 'R.Prim("int64")', f"[{one}, {one}]", "R.Tuple",
    )  # fmt: skip


def packed_call(callee):
    def recipe(d):
        args = [d.tensor(d.dims(), d.any_dtype()) for _ in range(d.one(0, 1, 2))]
        args += [d.one('R.str("s")', "R.prim_value(2)", 'R.dtype("int8")', d.fresh(Shape(d.dims())), "n")] if d.chance(0.3) else []
        more = f", ty_args={declared(d)}" if d.chance(0.95) or callee == "call_pure_packed" else ""
        return [f"gv = R.{callee}({', '.join([quote('f'), *args])}{more})"]

    return recipe


def call_dps_packed(d):
    args = [d.tensor(d.dims(), d.any_dtype()) for _ in range(d.one(1, 2))]
    types = [loosened(d, d.dims(), d.any_dtype()) if d.slip() else tensor_type(d.dims(), d.any_dtype()) for _ in range(d.one(1, 1, 2))]
    before, text = called_with(d, args)
    return [*before, f'gv = R.call_dps_packed("f", {text}, out_ty={types[0] if len(types) == 1 else "[" + ", ".join(types) + "]"})']


def call_builtin_with_ctx(d):
    args = [d.one("R.prim_value(2)", d.tensor(d.dims()), 'R.str("s")') for _ in range(d.one(1, 2))]
    return [f'gv = R.call_builtin_with_ctx("f", {listed(args)}, ty_args={declared(d)})']


# Functions of the module, closures, function values.


def renamed(dims):
    """Returns dims with the callee's names of symbols."""
    return [re.sub(r"\b[mnk]\b", lambda symbol: CALLEE[symbol.group()], dim) for dim in dims]


def callee(d):
    """Adds a function to the module; returns its name, arguments for it, its parameters' types, and its result type."""
    dims_of = [d.dims() for _ in range(d.one(1, 1, 2))]
    outs = [d.one(*dims_of) if d.chance(0.5) else [dim for dims in dims_of for dim in dims][:3] for _ in range(d.one(1, 1, 1, 2))]
    dtype = d.float()
    params = [loosened(d, renamed(dims), dtype) for dims in dims_of]
    args = [d.tensor(spoiled(d, dims), dtype) for dims in dims_of]
    if d.chance(0.6):  # so that every symbol occurs alone somewhere
        params.append(f"R.Shape([{', '.join(CALLEE.values())}])")
        args.append(d.one(f"R.shape([{', '.join(SYMBOLS)}])", d.shape(SYMBOLS), f"R.shape([{d.dim()}, {d.dim()}, {d.dim()}])"))
    results = [loosened(d, renamed(dims), dtype) for dims in outs]
    result = results[0] if len(results) == 1 else f"R.Tuple({', '.join(results)})"
    header = ", ".join(f"a{at}: {ty}" for at, ty in enumerate(params))
    name = d.helper(
        f"    @R.function\n    def {{name}}({header}) -> {result}:\n"
        f'        w = R.call_pure_packed("f", ty_args=({result},))\n        return w\n'
    )
    return name, args, params, result


def function_call(d):
    name, args, _, _ = callee(d)
    if d.slip(0.5):
        args.pop()
    return [f"gv = cls.{name}({', '.join(args)})"]


def function_value(d):
    """Draws a call of a variable that holds a function."""
    name, args, _, _ = callee(d)
    return [f"f = cls.{name}", f"gv = f({', '.join(args)})"]


def parameter_call(d):
    """Draws a call of a parameter that is a function."""
    dims, out = d.dims(), d.dims()
    dtype = d.float()
    param, result = loosened(d, dims, dtype), loosened(d, out, dtype)
    pure = d.one(", True", ", False", "")
    ty = d.one(f"R.Callable(({param},), {result}{pure})", f"R.Callable(({param},), {result}{pure})", "R.Callable", "R.Callable(None, R.Any)")
    function = d.fresh(Text(ty), "f")
    return [f"gv = {function}({d.tensor(spoiled(d, dims), dtype)})"]


def closure(how):
    def recipe(d):
        name, args, _, result = callee(d)
        cut = d.rng.randint(0, len(args))
        ty = loosened(d, d.dims(), d.float())
        made = f"c = R.make_closure(cls.{name}, {listed(args[:cut])})"
        return [made, f"gv = R.{how}(c, {listed(args[cut:])}, ty_args={d.one(ty, f'({ty},)')})"]

    return recipe


def make_closure(d):
    name, args, _, _ = callee(d)
    return [f"gv = R.make_closure(cls.{name}, {listed(args[: d.rng.randint(0, len(args))])})"]


def inner_function(d):
    """Draws a nested function that uses variables of the outer one."""
    dims, dtype = d.dims(), d.float()
    outer, other = d.tensor(dims, dtype), d.tensor(spoiled(d, dims), dtype)
    ty = loosened(d, dims, dtype)
    arrow = d.one("", f" -> {loosened(d, dims, dtype)}")
    return ["@R.function", f"def inner(y: {ty}){arrow}:", f"    z = R.add(y, {d.one('y', outer)})", "    return z", f"gv = inner({other})"]


# Branches.


def variants(d):
    """Returns two expressions of equal or similar types."""
    dims, dtype = d.dims(), d.float()
    same = d.tensor(dims, dtype)
    r = d.rng.random()
    if r < 0.15:
        return same, f"R.add({same}, {same})"
    if r < 0.3:
        return d.fresh(Shape(d.one(list(dims), len(dims)))), d.fresh(Shape(d.one(list(dims), d.spoil(dims))))
    if r < 0.45:
        fields = [d.tensor(d.dims(), dtype) for _ in range(2)]
        others = [d.one(field, d.tensor(d.dims(), dtype)) for field in fields]
        return listed(fields), listed(others if d.chance(0.8) else others[:1])
    if r < 0.55:
        return d.fresh(Prim("int64"), "p"), d.one(d.fresh(Prim("int64"), "p"), d.fresh(Prim("int32"), "p"), "n", same)
    if r < 0.65:
        types = [Text(f"R.Callable(({loosened(d, dims, dtype)},), {loosened(d, dims, dtype)}, {d.boolean()})") for _ in range(2)]
        return tuple(d.fresh(ty, "f") for ty in types)
    if r < 0.72:
        return same, d.fresh(Other(what="Any"))
    return same, d.tensor(d.one(dims, d.spoil(dims), d.spoil(dims)), d.one(dtype, dtype, d.any_dtype()))


def branches(d):
    condition = d.one(d.tensor([], "bool"), d.fresh(Prim("bool"), "p"))
    if d.slip(0.5):
        condition = d.tensor(d.dims(0, 1), d.one("bool", "int32"))
    one, other = variants(d)
    then = [f"    b = {one}"]
    if d.chance(0.2):
        then = [f"    w = {one}", "    b = (w, w)"]
        other = f"({other}, {one})"
    return [f"if {condition}:", *then, "else:", f"    b = {other}", d.one("gv = b", "gv = b", "gv = (b, b)")]


def nested_branches(d):
    inner = [f"    {line}" for line in branches(d)[:-1]]
    return [f"if {d.tensor([], 'bool')}:", *inner, "else:", f"    b = {variants(d)[0]}", "gv = b"]


# Casts, tuples.


def match_cast(d):
    """Draws a match_cast that binds symbols, and a use of the cast value."""
    dims, dtype = d.dims(), d.float()
    fresh, lines = [], []
    known = list(dims)
    for at in range(len(known)):
        if d.chance(0.5):
            known[at] = d.one("c0", "c1", "c0", known[at])
            fresh += [known[at]] if known[at].startswith("c") else []
    if d.chance(0.15) and fresh and known:
        known[-1] = f"{fresh[0]} * 2"
    lines = [f"{name} = T.int64()" for name in dict.fromkeys(fresh)]
    value = d.tensor(spoiled(d, dims), dtype) if d.chance(0.5) else d.fresh(Tensor(d.one(len(dims), -1), d.one(dtype, "")))
    ty = shape_type(known) if d.slip(0.4) else tensor_type(known, dtype)
    if d.chance(0.2):
        value, ty = d.fresh(Shape(d.one(list(dims), len(dims)))), shape_type(known)
    elif d.chance(0.15):
        lines.append(f"t = {listed([value, value])}")
        value, ty = "t", f"R.Tuple({ty}, {tensor_type(dims, dtype)})"
    elif d.chance(0.15):
        value = d.fresh(Other(what="Any"))
    lines.append(f"v = R.match_cast({value}, {ty})")
    if ty.startswith("R.Tensor") and d.chance(0.7):
        return [*lines, d.one("gv = R.add(v, v)", "gv = R.flatten(v)", "gv = R.shape_of(v)", "gv = (v, v)", "gv = R.expand_dims(v, 0)")]
    return [*lines, "gv = v"]


def tuples(d):
    """Draws fields of tuples: of literals, parameters and calls; with indices inside and outside the range."""
    count = d.rng.randint(1, 3)
    scalar = Text('R.Prim("int64")')
    types = [d.one(Tensor(d.dims(), d.any_dtype()), Tensor(d.dims()), scalar, Shape(d.dims(1))) for _ in range(count)]
    nested = Other(fields=(*types[1:], Other(fields=tuple(types))))
    at = d.rng.randint(0, count - 1) if not d.slip() else d.one(count, -1, count + 3)
    r = d.rng.random()
    if r < 0.3:
        return [f"gv = {d.fresh(Other(fields=tuple(types)), 't')}[{at}]"]
    if r < 0.5:
        return [f"t = {listed([d.fresh(ty) for ty in types])}", f"gv = t[{at}]"]
    if r < 0.7:
        return [f"gv = {d.fresh(nested, 't')}[{count - 1}][{at}]"]
    if r < 0.85:
        return [f"s = R.split({d.tensor(d.dims(1))}, {d.one(1, 2, 3)}, axis=0)", f"gv = s[{at}]"]
    parts = [d.fresh(ty) for ty in types]
    return [d.one(f"gv = R.tuple({', '.join(parts)})", f"gv = ({listed(parts)}, {parts[0]})", "gv = R.tuple()")]


def shape_chain(d):
    """Draws conversions from shapes to tensors and back."""
    dims = d.dims()
    start = d.one(f"R.shape_of({d.tensor(dims)})", d.shape(dims))
    lines = [f"s = {start}"]
    r = d.rng.random()
    if r < 0.25:
        return [*lines, f"gv = R.reshape({d.tensor(dims)}, s)"]
    lines.append("t = R.shape_to_tensor(s)")
    if r < 0.5:
        return [*lines, "gv = R.tensor_to_shape(t)"]
    lines += ["u = R.tensor_to_shape(t)"]
    return [*lines, d.one(f"gv = R.reshape({d.tensor(dims)}, u)", f"gv = R.broadcast_to({d.tensor(dims)}, u)", 'gv = R.zeros(u, "float32")')]


def shape_field(d):
    """Draws one extent of a shape, as a scalar."""
    dims = d.dims(1)
    return [f"s = {d.one(f'R.shape_of({d.tensor(dims)})', d.fresh(Shape(dims)))}", f"gv = s[{d.axis(len(dims))}]"]


# Devices.


def to_vdevice(d):
    device = d.one('"llvm:0:global"', '"cuda:0:global"', '"cuda:0"', '"cuda"', '"cuda:7"', '"vdevice:1"')
    x = d.tensor(d.dims(), d.any_dtype()) if d.chance(0.7) else d.fresh(Other(what="Any"))
    return [f"gv = R.to_vdevice({x}, {d.one('', 'dst_vdevice=')}{device})"]


def hint_on_device(d):
    device = d.one("R.device(device_type=1, index=0)", "R.device(device_type=2, index=0)", "R.cpu(0)", "R.cuda(0)")
    scope = d.one("", ', "global"')
    return [f"gv = R.hint_on_device({d.tensor(d.dims(), d.any_dtype())}, {device}{scope})"]


def two_devices(d):
    """Draws operands of which one or both are on a device."""
    dims, devices = d.dims(), d.one(("cuda:0:global", "cuda:0:global"), ("cuda:0:global", "llvm:0:global"), ("cuda:0:global", ""))
    x, y = (d.fresh(Tensor(list(dims), "float32", device)) for device in devices)
    text = d.one(f"R.add({x}, {y})", f"R.concat(({x}, {y}), axis=0)", f"R.where(R.greater({x}, {y}), {x}, {y})", f"R.matmul({x}, {y})")
    return [f"gv = {text}"]


# Meshes.


def placement(d, rank, axes):
    """Returns a placement on a mesh with this number of axes."""
    return ", ".join(d.one("R", f"S[{d.rng.randrange(rank)}]" if rank else "R") for _ in range(axes))


def sharded(d, dims, dtype="float32", mesh=None, where=None):
    """Adds a tensor parameter that is distributed over a mesh."""
    mesh = mesh or d.one(*MESHES)
    where = where if where is not None else placement(d, len(dims), AXES[mesh])
    return d.fresh(Text(f'R.DTensor({dims_text(dims, str)}, "{dtype}", "{mesh}", "{where}")'))


def even_dims(d, low=1):
    return [d.one("4", "8", "16", "m", "n") for _ in range(d.rng.randint(low, 3))]


def dist_call(d):
    """Draws operators that infer the placement of their result from a sharded operand."""
    dims, mesh = even_dims(d), d.one(*MESHES)
    axes = AXES[mesh]
    where = placement(d, len(dims), axes)

    def operand(extents=None, at=None):
        extents = dims if extents is None else extents
        at = at if at is not None else d.one(where, where, placement(d, len(extents), axes))
        return sharded(d, extents, "float32", d.one(*MESHES) if d.slip(0.3) else mesh, at) if not d.slip(0.5) else d.tensor(extents)

    x, rank = operand(), len(dims)
    axis = d.axis(rank)
    order = d.rng.sample(range(rank), rank)
    text = d.one(
        f"R.{d.one('add', 'multiply', 'divide', 'subtract', 'maximum', 'power', 'greater')}({x}, {operand()})",
        f"R.{d.one('exp', 'nn.relu', 'nn.gelu', 'sqrt', 'negative', 'nn.silu')}({x})",
        f"R.{d.one('sum', 'mean', 'max', 'min')}({x}, axis={d.one(None, [axis])}, keepdims={d.boolean()})",
        f"R.permute_dims({x}, axes={order})",
        f"R.nn.softmax({x}, axis={axis})",
        f"R.reshape({x}, ({', '.join(reversed(dims))},))",
        f'R.astype({x}, "float16")',
        f'R.ccl.allreduce({x}, "sum")',
        f'R.add({x}, R.const(1, "float32"))',
    )
    if d.chance(0.3):
        inner = d.one("4", "8", "k")
        left, right = [*dims[:-1], inner], [inner, d.one("8", "n")]
        text = f"R.matmul({operand(left, placement(d, len(left), axes))}, {operand(right, placement(d, 2, axes))})"
    return [f"gv = {text}"]


def redistribute(d):
    dims, mesh = even_dims(d), d.one(*MESHES)
    x = sharded(d, dims, mesh=mesh)
    named = f'device_mesh="{mesh}", placement="{placement(d, len(dims), AXES[mesh])}"'
    if d.chance(0.3):
        return [f"gv = R.dist.annotate_sharding({d.one(x, d.tensor(dims))}, {named})"]
    return [f"gv = R.dist.redistribute({x}, {named})"]


def dist_call_tir(d):
    dims, mesh = even_dims(d), d.one(*MESHES)
    name = kernel(d, [dims], [dims], ["float32"] * 2)
    where = placement(d, len(dims), AXES[mesh])
    out = f'R.DTensor({dims_text(dims, str)}, "float32", "{mesh}", "{where}")'
    call, out = d.one("call_tir", "call_tir_local_view"), d.one(out, f"[{out}, {out}]")
    return [f"gv = R.dist.{call}(cls.{name}, ({sharded(d, dims, mesh=mesh)},), out_ty={out})"]


PROGRAMS = {
    "call_tir": call_tir,
    "call_tir of scalars": call_tir_scalar,
    "call_tir_with_grad": call_tir_with_grad,
    "call_tir_inplace": call_tir_inplace,
    "vm.call_tir_dyn": call_tir_dyn,
    "call_packed": packed_call("call_packed"),
    "call_pure_packed in text": packed_call("call_pure_packed"),
    "call_dps_packed in text": call_dps_packed,
    "call_builtin_with_ctx": call_builtin_with_ctx,
    "function": function_call,
    "function value": function_value,
    "function parameter": parameter_call,
    "inner function": inner_function,
    "make_closure": make_closure,
    "invoke_closure": closure("invoke_closure"),
    "invoke_pure_closure": closure("invoke_pure_closure"),
    "if": branches,
    "if in if": nested_branches,
    "match_cast": match_cast,
    "tuple": tuples,
    "shape chain": shape_chain,
    "shape field": shape_field,
    "to_vdevice": to_vdevice,
    "hint_on_device": hint_on_device,
    "two devices": two_devices,
    "DTensor": dist_call,
    "dist.redistribute": redistribute,
    "dist.call_tir": dist_call_tir,
}
