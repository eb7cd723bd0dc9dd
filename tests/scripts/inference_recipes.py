"""A recipe for each operator: arguments that fit each other, as `Draw` of inference_calls.py draws them.

A recipe returns the positional arguments and the named ones.
"""

from inference_calls import Other, Prim, Tensor, dims_text, quote, some
from inference_recipes_nn import NN
from inference_recipes_runtime import RUNTIME

UNARY_FLOAT = """
    acos acosh asin asinh atan atanh cos cosh erf exp log rsqrt sigmoid sin sinh sqrt tan tanh nn.gelu
    nn.gelu_tanh nn.relu nn.selu nn.silu nn.softplus nn.leakyrelu
""".split()
UNARY_ANY = "abs ceil floor isfinite isinf isnan negative round sign square trunc bitwise_not logical_not".split()
BINARY = """
    add atan2 bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater greater_equal
    left_shift less less_equal log_add_exp logical_and logical_or logical_xor maximum minimum mod multiply
    not_equal power right_shift subtract
""".split()
REDUCTIONS = "max mean min prod std sum variance median".split()


def unary(dtype):
    def recipe(d):
        return [d.tensor(d.dims(), dtype(d))], {}

    return recipe


def broadcastable(d, low=0):
    """Returns two lists of dims that broadcast."""
    full = d.dims(low)
    other = ["1" if d.chance(0.25) else dim for dim in full[d.rng.randint(0, max(0, len(full) - low)) :]]
    full = ["1" if d.chance(0.12) else dim for dim in full]
    return (full, other) if d.chance(0.5) else (other, full)


def operand(d, dims, dtype):
    """Returns a tensor, or occasionally a scalar."""
    r = d.rng.random()
    if r < 0.05:
        return d.fresh(Prim(dtype), "p")
    if r < 0.09:
        return f"R.const(2, {quote(dtype)})"
    if r < 0.11:
        return d.one("1", "2.5", f"T.{dtype}(1)", 'R.const(True, "bool")')
    return d.tensor(dims, dtype)


def binary(d):
    a, b = broadcastable(d)
    dtype = d.any_dtype()
    return [operand(d, a, dtype), operand(d, b, dtype)], {}


def reduction(d):
    dims = d.dims()
    r = d.rng.random()
    axis = None if r < 0.25 else d.axis(len(dims)) if r < 0.5 else d.axes(len(dims))
    return [d.tensor(dims, d.any_dtype())], {"axis": axis, "keepdims": d.boolean()}


def arg_reduction(d):
    dims = d.dims()
    return [d.tensor(dims, d.any_dtype())], {"axis": d.one(None, d.axis(len(dims)), d.axis(len(dims))), "keepdims": d.boolean()}


def cumulative(d):
    dims = d.dims()
    named = {"axis": d.one(None, d.axis(len(dims)), d.axis(len(dims))), "dtype": d.one(None, '"float32"', '"int32"')}
    return [d.tensor(dims, d.any_dtype())], {**named, "exclusive": d.boolean()}


def sorting(d, **more):
    dims = d.dims(1)
    return [d.tensor(dims, d.any_dtype())], {"axis": d.axis(len(dims)), "descending": d.boolean(), **more}


def topk(d):
    dims = d.dims(1)
    named = {"k": d.one(1, 1, 2, 3, 0, -1, 5), "axis": d.axis(len(dims)), "ret_type": d.one('"both"', '"values"', '"indices"')}
    named |= {"largest": d.boolean(), "dtype": d.one('"int32"', '"int64"')}
    return [d.tensor(dims, d.any_dtype())], named


def scalar(d):
    r = d.rng.random()
    if r < 0.5:
        return str(d.one(0, 1, 2, 3, 4, 5, 7, 10, -1, -3, 100))
    if r < 0.7:
        return d.one("m", "n", "n + 1")
    if r < 0.85:
        return d.one("1.5", "T.float32(2.5)", "T.int64(4)", "0.1", "T.int32(3)", "R.prim_value(3)")
    return d.fresh(Prim(d.one("int64", "float32", "int32")), "p")


def arange(d):
    args = [scalar(d) for _ in range(d.one(1, 2, 2, 3, 3))]
    return args, {"dtype": d.one('"int64"', '"float32"', '"int32"', None, '"float16"')}


def eye(d):
    args = [scalar(d) for _ in range(d.one(1, 2, 3))]
    return args, {"dtype": d.one('"float32"', '"int64"')}


def filled(d):
    if d.slip():
        return [d.one("10", "n", "[2, n]", d.fresh(Tensor(["2"], "int64")))], {"dtype": '"float32"'}
    return [d.shape(d.dims())], {"dtype": quote(d.any_dtype())}


def full(d):
    value = d.one(d.tensor([], d.any_dtype()), 'R.const(1, "int32")', "1", "2.5", "True")
    return [d.shape(d.dims()), value], {"dtype": d.one(None, quote(d.any_dtype()))}


def full_like(d):
    return [d.tensor(d.dims(), d.any_dtype()), d.one(d.tensor([], d.any_dtype()), "1.5")], {
        "dtype": d.one(None, quote(d.any_dtype()))
    }


def like(d):
    return [d.tensor(d.dims(), d.any_dtype())], {"dtype": d.one(None, quote(d.any_dtype()))}


def eye_like(d):
    return [d.tensor(d.dims(2, 2), d.any_dtype()), d.one("0", "1", "-2", scalar(d))], {"dtype": d.one(None, '"int8"')}


def triangle(d):
    return [d.tensor(d.dims(1), d.any_dtype()), d.one("0", "1", "-2", scalar(d))], {}


def astype(d):
    return [d.tensor(d.dims(), d.any_dtype())], {"dtype": d.one(quote(d.any_dtype()), '"float8_e4m3fn"', '"flaot"', '"bfloat16"')}


def wrap_param(d):
    return [d.one(d.tensor(d.dims()), d.tensor(d.dims()))], {"dtype": quote(d.float())}


def matmul(d):
    batch_a, batch_b = broadcastable(d)
    m, k, n = d.dim(), d.dim(), d.dim()
    a, b = batch_a + [m, k], batch_b + [k, n]
    if d.chance(0.15):
        a = [k]
    if d.chance(0.15):
        b = [k]
    dtype = d.float()
    out = d.one(None, None, '"float32"', '"float16"', '"int32"')
    return [d.tensor(a, dtype), d.tensor(b, dtype)], {"out_dtype": out}


def outer(d):
    return [d.tensor([d.dim()], "float32"), d.tensor([d.dim()], "float32")], {}


def einsum(d):
    sizes = {letter: d.dim() for letter in "ijklb"}
    terms, out = d.one(
        (["ij", "jk"], "ik"),
        (["i", "i"], ""),
        (["bij", "bjk"], "bik"),
        (["ii"], "i"),
        (["ij"], "ji"),
        (["ij"], ""),
        (["i", "j"], "ij"),
        (["bij", "kj"], "bik"),
        (["...ij", "...jk"], "...ik"),
        (["ij", "j"], "i"),
        (["...", "..."], "..."),
        (["...ij"], "...ji"),
        (["ij", "jk", "kl"], "il"),
    )
    text = ",".join(terms) + (f"->{out}" if d.chance(0.85) else "")
    if d.slip():
        text = d.one("ij,jk->iz", "ijk,jk->i", "ij", "i,j,k->i", "", "ij->ij->ij", "iJ,Jk->ik", "i j, j k -> i k")
    batch = d.dims(0, 2)
    operands = [d.tensor((batch if "..." in term else []) + [sizes[x] for x in term.replace("...", "")]) for term in terms]
    return [f"({', '.join(operands)},)"], {"subscripts": quote(text)}


def broadcast_to(d):
    full_, other = sorted(broadcastable(d), key=len, reverse=True)
    target = [a if a != "1" else d.dim() for a in full_]
    pad = len(full_) - len(other)
    target = [t if at < pad or other[at - pad] == "1" else other[at - pad] for at, t in enumerate(target)]
    return [d.tensor(other, d.any_dtype()), d.shape(target)], {}


def collapse_to(d):
    big = d.dims(1)
    small = ["1" if d.chance(0.3) else dim for dim in big[d.rng.randint(0, len(big)) :]]
    return [d.tensor(big), d.shape(small)], {}


def collapse_like(d):
    big = d.dims(1)
    small = ["1" if d.chance(0.3) else dim for dim in big[d.rng.randint(0, len(big)) :]]
    return [d.tensor(big), d.tensor(small)], {}


def several(d, count, dims_of):
    tensors = [d.tensor(dims_of(), "float32") for _ in range(count)]
    if d.chance(0.08):
        fields = tuple(Tensor(dims_of(), "float32") for _ in range(count))
        return d.fresh(Other(fields=fields), "t")
    return f"({', '.join(tensors)}{',' if count == 1 else ''})" if d.chance(0.8) else f"[{', '.join(tensors)}]"


def concat(d):
    dims = d.dims(1)
    axis = d.axis(len(dims))

    def part():
        mine = list(dims)
        if -len(mine) <= axis < len(mine):
            mine[axis] = d.dim()
        return mine

    tensors = several(d, d.one(1, 2, 2, 3), part)
    return [tensors], {"axis": d.one(axis, axis, axis, axis, axis, None)}


def stack(d):
    dims = d.dims()
    return [several(d, d.one(1, 2, 3), lambda: list(dims))], {"axis": d.axis(len(dims) + 1)}


def meshgrid(d):
    return [several(d, d.one(1, 2, 3), lambda: [d.dim()])], {"indexing": d.one('"ij"', '"xy"', None)}


def expand_dims(d):
    dims = d.dims()
    count = d.one(0, 1, 1, 2)
    rank = len(dims) + count
    axes = d.rng.sample(range(rank), min(count, rank))
    axes = [at - rank if d.chance(0.3) else at for at in axes]
    if d.slip():
        axes.append(d.axis(rank))
    return [d.tensor(dims, d.any_dtype())], {"axis": axes if len(axes) != 1 or d.chance(0.5) else axes[0]}


def flatten(d):
    return [d.tensor(d.dims(), d.any_dtype())], {}


def one_axis(d, low=1, **more):
    dims = d.dims(low)
    return [d.tensor(dims, d.any_dtype())], {"axis": d.axis(len(dims)), **more}


def gather_elements(d):
    dims = d.dims(1)
    axis = d.axis(len(dims))
    index = list(dims)
    if -len(dims) <= axis < len(dims):
        index[axis] = d.dim()
    return [d.tensor(dims, d.any_dtype()), d.tensor(index, d.one("int64", "int64", "int32"))], {"axis": axis}


def gather_nd(d):
    dims = d.dims(1)
    batch = d.rng.randint(0, len(dims) - 1)
    depth = d.rng.randint(1, len(dims) - batch)
    index = dims[:batch] + d.dims(0, 2) + [str(depth)]
    return [d.tensor(dims), d.tensor(index, "int64")], {"batch_dims": batch if not d.slip() else d.one(-1, len(dims), 7)}


def scatter_elements(d):
    dims = d.dims(1)
    index = [d.dim() for _ in dims]
    dtype = d.float()
    reduction_ = d.one('"update"', '"add"', '"mul"', '"max"', '"min"', '"mean"')
    return [d.tensor(dims, dtype), d.tensor(index, "int64"), d.tensor(index, dtype)], {
        "axis": d.axis(len(dims)),
        "reduction": reduction_,
    }


def scatter_nd(d):
    dims = d.dims(1)
    depth = d.rng.randint(1, len(dims))
    outer_ = d.dims(0, 2)
    dtype = d.float()
    return [d.tensor(dims, dtype), d.tensor(outer_ + [str(depth)], "int64"), d.tensor(outer_ + dims[depth:], dtype)], {
        "reduction": d.one('"update"', '"add"', '"mul"', '"max"', '"min"')
    }


def indices_of(d, count):
    shape = d.dims(0, 2)
    return [
        d.tensor(
            [dim if not d.chance(0.2) else "1" for dim in shape[d.rng.randint(0, len(shape)) :]], d.one("int64", "int64", "int32")
        )
        for _ in range(count)
    ], shape


def index_tensor(d):
    dims = d.dims(1)
    some, _ = indices_of(d, d.rng.randint(1, len(dims)))
    return [d.tensor(dims), f"({', '.join(some)},)"], {}


def index_put(d):
    dims = d.dims(1)
    some, shape = indices_of(d, d.rng.randint(1, len(dims)))
    return [d.tensor(dims), f"({', '.join(some)},)", d.tensor(d.one([], shape))], {"accumulate": d.boolean()}


def layout_transform(d):
    maps = [
        ("a, b", "(a, b // 2, b % 2)", 2),
        ("a", "(a // 4, a % 4)", 1),
        ("a, b", "(b, a)", 2),
        ("a, b, c", "(a, c, b)", 3),
        ("a", "(a,)", 1),
        ("a, b, c", "(a, b * 2 + c)", 3),
        ("a, b", "(a // 2, b // 4, a % 2, b % 4)", 2),
    ]
    params, result, rank = d.one(*maps)
    dims = d.dims(rank, rank, static=d.chance(0.7))
    pad = d.one(None, None, "T.float32(0)", "2", "0.0")
    return [d.tensor(dims)], {"index_map": f"T.index_map(lambda {params}: {result})", "pad_value": pad}


def one_hot(d):
    dims = d.dims()
    on, off = d.one(("1", "0"), ("1.0", "0.0"), ("T.float32(1.0)", "T.float32(0.0)"), ("T.int8(1)", "T.int8(0)"), ("1", "0.0"))
    return [d.tensor(dims, d.one("int32", "int64")), on, off], {"depth": d.one(3, 5, 1, 10, 0, -1), "axis": d.axis(len(dims) + 1)}


def permute_dims(d):
    dims = d.dims()
    axes = list(range(len(dims)))
    d.rng.shuffle(axes)
    axes = [at - len(dims) if d.chance(0.2) else at for at in axes]
    if d.slip() and axes:
        axes[0] = d.axis(len(dims))
    if d.slip():
        axes = axes[1:]
    return [d.tensor(dims)], {"axes": d.one(None, axes, axes, axes)}


def repeat(d):
    dims = d.dims()
    return [d.tensor(dims)], {"repeats": d.one(1, 2, 3, 2, 0, -1), "axis": d.one(None, d.axis(len(dims)), d.axis(len(dims)))}


def tile(d):
    dims = d.dims()
    return [d.tensor(dims)], {"repeats": d.one(2, 1, [d.one(1, 2, 3, 0) for _ in range(d.rng.randint(0, 5))], (2, 3), -1)}


def reshape(d):
    dims = d.dims()
    r = d.rng.random()
    target = list(dims)
    if r < 0.3 and len(target) > 1:
        at = d.rng.randrange(len(target) - 1)
        target[at : at + 2] = [f"({target[at]}) * ({target[at + 1]})"]
    elif r < 0.5:
        target = [*target, "1"] if d.chance(0.5) else ["1", *target]
    elif r < 0.6:
        d.rng.shuffle(target)
    if d.chance(0.35) and target:
        target[d.rng.randrange(len(target))] = "-1"
    if d.chance(0.15) and target:
        target[d.rng.randrange(len(target))] = "0"
    if d.slip():
        target = d.spoil(target)
    x = d.tensor(dims, d.any_dtype())
    if any(t in ("-1", "0") for t in target) or d.chance(0.5):
        return [x, d.one(dims_text(target, str), f"R.shape([{', '.join(target)}])")], {}
    return [x, d.shape(target)], {}


def reverse_sequence(d):
    dims = d.dims(2)
    seq, batch = d.rng.sample(range(len(dims)), 2)
    lengths = [dims[batch]]
    seq, batch = (at - len(dims) if d.chance(0.2) else at for at in (seq, batch))
    if d.slip():
        seq = d.axis(len(dims))
    if d.slip():
        batch = d.axis(len(dims))
    return [d.tensor(dims), d.tensor(lengths, d.one("int32", "int64"))], {"seq_axis": seq, "batch_axis": batch}


def slice_scatter(d):
    dims = d.dims(1, static=True)
    axis = d.axis(len(dims))
    src = list(dims)
    start, end, step = 0, d.one(1, 2, 3), d.one(1, 1, 2)
    if -len(dims) <= axis < len(dims):
        src[axis] = str((end - start + step - 1) // step)
    return [d.tensor(dims), d.tensor(src), start, end, step], {"axis": axis}


def split(d):
    dims = d.dims(1)
    r = d.rng.random()
    sections = d.one(1, 2, 2, 3, 4, 0, -1) if r < 0.5 else sorted(d.one(1, 2, 3, 5, 10) for _ in range(d.rng.randint(0, 3)))
    if r > 0.93:
        sections = d.one([3, 1], [-1, 2], [0], [2, 2])
    return [d.tensor(dims)], {"indices_or_sections": sections, "axis": d.axis(len(dims))}


def squeeze(d):
    dims = [dim if d.chance(0.5) else "1" for dim in d.dims()]
    ones = [at for at, dim in enumerate(dims) if dim == "1"]
    axes = [at - len(dims) if d.chance(0.3) else at for at in ones if d.chance(0.6)]
    if d.slip():
        axes.append(d.axis(len(dims)))
    return [d.tensor(dims)], {"axis": d.one(None, axes, axes, axes[0] if axes else None)}


def bounds(d, count):
    return dims_text(
        [d.one("0", "1", "2", "3", "-1", "-2", "100", "8", "n", "m - 1", "9223372036854775807") for _ in range(count)], str
    )


def strided_slice(d):
    dims = d.dims(1)
    axes = d.rng.sample(range(len(dims)), d.rng.randint(1, len(dims)))
    axes = [at - len(dims) if d.chance(0.2) else at for at in axes]
    if d.slip():
        axes[0] = d.axis(len(dims))
    count = len(axes) if not d.slip(0.5) else len(axes) + 1
    args = [d.tensor(dims), dims_text([str(at) for at in axes], str), bounds(d, len(axes)), bounds(d, count)]
    if d.chance(0.7):
        args.append(dims_text([d.one("1", "1", "2", "3", "-1", "-2", *(["0", "n"] if d.slip() else [])) for _ in axes], str))
    return args, d.one({}, {"assume_inbound": d.boolean()})


def dynamic_strided_slice(d):
    dims = d.dims(1)
    return [d.tensor(dims), *(d.tensor([str(len(dims))], "int64") for _ in range(3))], {}


def take(d):
    dims = d.dims(1)
    index = (
        d.tensor(d.dims(0, 2), d.one("int64", "int32"))
        if d.chance(0.9)
        else d.one('R.const(0, "int64")', "0", d.fresh(Prim("int64"), "p"), "1")
    )
    axis = None if len(dims) == 1 and d.chance(0.5) or d.slip() else d.axis(len(dims))
    return [d.tensor(dims, d.any_dtype()), index], {"axis": axis, "mode": d.one('"fast"', '"clip"', '"wrap"', '"nan"', '"fast"')}


def where(d):
    a, b = broadcastable(d)
    c = ["1" if d.chance(0.2) else dim for dim in a]
    dtype = d.any_dtype()
    return [d.tensor(c, "bool"), operand(d, a, dtype), operand(d, b, dtype)], {}


def ewise_fma(d):
    dims, dtype = d.dims(), d.float()
    return [d.tensor(dims, dtype) for _ in range(3)], {}


def clip(d):
    return [
        d.tensor(d.dims(), d.any_dtype()),
        d.one("0", "0.0", scalar(d), "T.float32(0)"),
        d.one("6", "6.0", scalar(d), "T.float32(6)"),
    ], {}


def unique(d):
    dims = d.dims(0, 3)
    named = {"sorted": d.boolean(), "return_index": d.boolean(), "return_inverse": d.boolean(), "return_counts": d.boolean()}
    return [d.tensor(dims, d.any_dtype())], {**named, "axis": d.one(None, d.axis(len(dims)), d.axis(len(dims)))}


def quantize(d, out):
    dims = d.dims(1)
    axis = d.axis(len(dims))
    channel = [dims[axis]] if -len(dims) <= axis < len(dims) else ["3"]
    data, other = d.one("float32", "float16"), d.one("int8", "uint8", "int32", "float16")
    scale, zero = channel, channel
    if d.chance(0.3):
        scale, zero = [], []
    if d.slip():
        zero = d.one([], ["1"], channel)
    kinds = (data, "float32", "int8") if out == "int8" else (other, data, other if other != "float16" else "float32")
    dtype = d.one('"int8"', '"uint8"', '"float16"', '"int32"') if out == "int8" else d.one('"float32"', '"float16"')
    return [d.tensor(dims, kinds[0]), d.tensor(scale, kinds[1]), d.tensor(zero, kinds[2])], {"axis": axis, "out_dtype": dtype}


def multinomial(d):
    n = d.dim()
    return [d.tensor([d.dim(), d.dim()]), d.tensor([n, "1"]), d.tensor([n, "1"], "int64")], {"dtype": d.one('"int64"', '"int32"')}


def bucketize(d):
    return [d.tensor(d.dims(), d.any_dtype()), d.tensor([d.dim()], "float32")], {"out_int32": d.boolean(), "right": d.boolean()}


def window(d):
    return [scalar(d), d.one("True", "False", "1"), "0.54", "0.46"], {"dtype": d.one('"float32"', '"int32"', '"float16"')}


RECIPES = {
    **{name: unary(lambda d: d.float()) for name in UNARY_FLOAT},
    **{name: unary(lambda d: d.any_dtype()) for name in UNARY_ANY},
    **{name: binary for name in BINARY},
    **{name: reduction for name in REDUCTIONS},
    "argmax": arg_reduction,
    "argmin": arg_reduction,
    "cumsum": cumulative,
    "cumprod": cumulative,
    "sort": sorting,
    "argsort": lambda d: sorting(d, dtype=d.one('"int32"', '"int64"')),
    "topk": topk,
    "arange": arange,
    "eye": eye,
    "ones": filled,
    "zeros": filled,
    "full": full,
    "full_like": full_like,
    "ones_like": like,
    "zeros_like": like,
    "eye_like": eye_like,
    "tril": triangle,
    "triu": triangle,
    "astype": astype,
    "wrap_param": wrap_param,
    "hamming_window": window,
    "matmul": matmul,
    "outer": outer,
    "einsum": einsum,
    "broadcast_to": broadcast_to,
    "collapse_sum_to": collapse_to,
    "collapse_sum_like": collapse_like,
    "concat": concat,
    "stack": stack,
    "meshgrid": meshgrid,
    "expand_dims": expand_dims,
    "flatten": flatten,
    "nn.batch_flatten": flatten,
    "flip": one_axis,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "index_tensor": index_tensor,
    "index_put": index_put,
    "layout_transform": layout_transform,
    "one_hot": one_hot,
    "permute_dims": permute_dims,
    "repeat": repeat,
    "tile": tile,
    "reshape": reshape,
    "reverse_sequence": reverse_sequence,
    "slice_scatter": slice_scatter,
    "split": split,
    "squeeze": squeeze,
    "strided_slice": strided_slice,
    "dynamic_strided_slice": dynamic_strided_slice,
    "take": take,
    "where": where,
    "ewise_fma": ewise_fma,
    "clip": clip,
    "unique": unique,
    "nonzero": flatten,
    "quantize": lambda d: quantize(d, "int8"),
    "dequantize": lambda d: quantize(d, "float32"),
    "multinomial_from_uniform": multinomial,
    "bucketize": bucketize,
    **NN,
    **RUNTIME,
}
