"""The families of conformance_defects.py: each yields programs with one mistake, correct counterparts, and the computed fact that decides which is which."""

import dataclasses

import numpy as np
import torch
import torch.nn.functional as F

from defect_texts import MARK, listed, symbols_of

TORCH, NUMPY = f"torch {torch.__version__.split('+')[0]}", f"numpy {np.__version__}"
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
AXES = {1: "W", 2: "HW", 3: "DHW"}
POINTS = (1, 2, 5)  # values of symbolic dims


@dataclasses.dataclass
class Fact:
    """The fact whether a program is a mistake: the program that computed it (`by`) and its message."""

    mistake: bool
    by: str
    says: str


@dataclasses.dataclass
class Case:
    """A test program. `kind` is the diagnostic that it must have, "" for none."""

    name: str
    classic: bool
    kind: str
    text: str
    fact: Fact
    severity: str = "error"
    lifted_from: str = None
    lines: list = None


def f32(*dims):
    return list(dims), "float32"


def at(dims, point):
    """Evaluates dims at a value of their symbols."""
    return tuple(dim if isinstance(dim, int) else int(eval(dim, {name: point for name in symbols_of((dims, ""))})) for dim in dims)


def points(*dims_of):
    """Returns the values of the symbols at which a program is decided; a single one if it has no symbols."""
    return POINTS if symbols_of(*((dims, "") for dims in dims_of)) else (1,)


def torch_dtype(dtype):
    return getattr(torch, dtype)


def shape_of(function, *types, **attributes):
    """Returns the shape and dtype of a PyTorch function's result for tensors of these types, or its error."""
    try:
        result = function(*(torch.zeros(dims, dtype=torch_dtype(dtype)) for dims, dtype in types), **attributes)
        return tuple(result.shape), str(result.dtype).split(".")[1], ""
    except (RuntimeError, ValueError, IndexError) as error:
        return None, None, " ".join(str(error).split())


def compared(what, computed, declared, name):
    """Returns the fact whether a computed shape and dtype are the declared ones."""
    shape, dtype, error = computed
    if error:
        return Fact(True, TORCH, f"{what}: {error}")
    dims, declared_dtype = declared
    same = shape == tuple(dims) and dtype == declared_dtype
    return Fact(not same, TORCH, f"{what} gives {shape} {dtype}; {name} is {tuple(dims)} {declared_dtype}")


def decided(facts):
    """Returns the first fact that is a mistake, otherwise the last fact."""
    facts = list(facts)
    return next((fact for fact in facts if fact.mistake), facts[-1])


# A convolution, and an elementwise kernel that is passed its result.

FORMULAS = {1: ("tanh", "T.tanh(A)"), 2: ("relu", "T.max(A, T.{dtype}(0.0))")}


def conv_relu(s, rng):
    """Generates kernels called by `call_tir` with buffers that do not fit."""
    for rank in (1, 2):
        batch, channels, out, extent = 1, rng.choice([3, 8]), rng.choice([16, 24]), rng.choice([14, 30])
        data, weight = f32(batch, channels, *[extent] * rank), f32(out, channels, *[3] * rank)
        conv = f32(batch, out, *[extent - 2] * rank)
        good = conv[0]
        elements = int(np.prod(good[1:]))
        wrong_buffers = {
            "batch": (f32(8, *good[1:]), "call-tir-arg-mismatch"),
            "channels": (f32(batch, out + 8, *good[2:]), "call-tir-arg-mismatch"),
            "width": (f32(*good[:-1], extent), "call-tir-arg-mismatch"),
            "layout": (f32(batch, *good[2:], out), "call-tir-arg-mismatch"),
            "rank": (f32(batch, elements), "call-tir-arg-mismatch"),
            "dtype": ((good, "float16"), "call-tir-arg-mismatch"),
            "right": (conv, ""),
        }
        for name, (buffer, kind) in wrong_buffers.items():
            if s.classic and name in ("channels", "width", "rank"):
                continue
            computed = shape_of(CONV[rank], data, weight)
            fact = compared(f"conv{rank}d", computed, buffer, f"buffer A of {FORMULAS[rank][0]}")
            yield two_kernels(s, f"conv_relu_{rank}d_{name}", data, weight, conv, buffer, buffer, kind, fact)
        # The shape that `out_ty` allocates.
        computed = shape_of(CONV[rank], data, weight)
        for name, declared in {"out_padded": f32(*good[:2], *[extent] * rank), "out_dtype": (good, "float16")}.items():
            fact = compared(f"conv{rank}d", computed, declared, "the allocated output")
            text = conv_only(s, data, weight, conv, declared, wrong=True)
            yield Case(named(s, f"conv_relu_{rank}d_{name}"), s.classic, "call-tir-output-mismatch", text, fact)
        text = conv_only(s, data, weight, conv, conv, wrong=False)
        fact = compared(f"conv{rank}d", computed, conv, "the allocated output")
        yield Case(named(s, f"conv_relu_{rank}d_out_right"), s.classic, "", text, fact)
        yield from symbolic_batch(s, rank, channels, out, extent)


def named(s, name):
    return f"{name}_classic" if s.classic else name


def two_kernels(s, name, data, weight, conv, buffer, out, kind, fact):
    """Returns a convolution kernel and an elementwise kernel over `buffer`; the elementwise output is allocated as
    `out`."""
    rank = len(data[0]) - 2
    called, formula = FORMULAS[rank]
    kernels = [s.convolution("conv", data, weight, conv), s.elementwise(called, buffer, formula.format(dtype=buffer[1]))]
    body = [
        ("lv", None, s.call_tir("conv", ["data", "weight"], conv)),
        ("gv", None, s.call_tir(called, ["lv"], out, wrong=bool(kind))),
    ]
    main = s.function("main", [("data", data), ("weight", weight)], out, body)
    return Case(named(s, name), s.classic, kind, s.module([*kernels, main], symbols_of(data)), fact)


def conv_only(s, data, weight, conv, declared, wrong):
    body = [("gv", None, s.call_tir("conv", ["data", "weight"], declared, wrong))]
    main = s.function("main", [("data", data), ("weight", weight)], declared, body)
    return s.module([s.convolution("conv", data, weight, conv), main], symbols_of(data))


def symbolic_batch(s, rank, channels, out, extent):
    """Generates the same with a batch of `n`: kernels for any batch, and an `add` of batches `n` and `n + 1`."""
    called, formula = FORMULAS[rank]
    weight, inner = f32(out, channels, *[3] * rank), [out, *[extent - 2] * rank]
    data, conv = f32("n", channels, *[extent] * rank), f32("n", *inner)
    kernels = [s.convolution("conv", f32("b", *data[0][1:]), weight, f32("b", *inner))]
    unary = s.elementwise(called, f32("b", *inner), formula.format(dtype="float32"))
    for name, batch, kind in [("right", "n", ""), ("out", "n + 1", "call-tir-output-mismatch")]:
        declared = f32(batch, *inner)
        facts = [
            compared(
                f"conv{rank}d of a batch of {n}",
                shape_of(CONV[rank], (at(data[0], n), "float32"), weight),
                f32(*at(declared[0], n)),
                "`out_ty`",
            )
            for n in POINTS
        ]
        body = [("lv", None, s.call_tir("conv", ["data", "weight"], conv)), ("gv", None, s.call_tir(called, ["lv"], declared, bool(kind)))]
        main = s.function("main", [("data", data), ("weight", weight)], declared, body)
        text = s.module([*kernels, unary, main], ["n"])
        yield Case(named(s, f"conv_relu_{rank}d_symbolic_{name}"), s.classic, kind, text, decided(facts))
    binary = s.elementwise("add", f32("b", *inner), "A + B", inputs="AB")
    for name, batch, kind in [("add_right", "n", ""), ("add", "n + 1", "call-tir-symbol-conflict")]:
        other = f32(batch, *inner)
        facts = []
        for n in POINTS:
            computed = shape_of(lambda a, b: torch.add(a, b, out=torch.zeros(at(conv[0], n))) if a.shape == b.shape else torch.stack([a, b]),
                                f32(*at(conv[0], n)), f32(*at(other[0], n)))  # fmt: skip
            facts.append(compared(f"a sum of batches {n} and {at(other[0], n)[0]}", computed, f32(*at(conv[0], n)), "`out_ty`"))
        body = [
            ("lv", None, s.call_tir("conv", ["data", "weight"], conv)),
            ("gv", None, s.call_tir("add", ["lv", "other"], conv, bool(kind))),
        ]
        main = s.function("main", [("data", data), ("weight", weight), ("other", other)], conv, body)
        text = s.module([*kernels, binary, main], ["n"])
        yield Case(named(s, f"conv_relu_{rank}d_symbolic_{name}"), s.classic, kind, text, decided(facts))


# 1x1 convolutions, and the matrix products that compute them.


def conv1x1(s, rng):
    """Generates 1x1 convolutions, each alone and as a matrix product."""
    yield from conv1x1_operators(s, rng)
    yield from conv1x1_products(s, rng)
    yield from conv1x1_kernels(s, rng)


def conv_call(x, w, layouts=("NCHW", "OIHW"), **attributes):
    """Returns the text of a conv2d call."""
    given = {"strides": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "groups": 1} | attributes
    data, kernel = layouts
    text = ", ".join(f"{name}={value}" for name, value in given.items())
    return f'R.nn.conv2d({x}, {w}, {text}, data_layout="{data}", kernel_layout="{kernel}", out_layout="{data}", out_dtype=None)'


def to_layout(dims, layout, first):
    """Reorders dims from PyTorch's order to another one; `first` is PyTorch's order."""
    return [dims[first.index(axis)] for axis in layout]


def conv1x1_operators(s, rng):
    """Generates `R.nn.conv2d` calls with a 1x1 window."""
    size, channels, out = rng.choice([14, 28]), rng.choice([32, 64]), rng.choice([48, 96])

    def case(name, kind, data, weight, declared=None, groups=1, stride=1, layouts=("NCHW", "OIHW"), returned=None):
        n = symbols_of((data, ""))
        facts = []
        for point in POINTS if n else (1,):
            computed = shape_of(F.conv2d, f32(*at(data, point)), f32(*weight), groups=groups, stride=stride)
            want = list(computed[0] or [])
            if declared is None and want:
                declared = [dim if isinstance(dim, str) else want[axis] for axis, dim in enumerate(data)][:1] + want[1:]
            facts.append(compared("conv2d", computed, f32(*at(declared or [], point)), "the annotation"))
            if returned is not None:
                facts.append(compared("conv2d", computed, f32(*at(returned, point)), "the declared return"))
            if not facts[-1].mistake and groups == 1:
                facts.append(is_product(at(data, point), weight, stride))
        declared = declared or [data[0], weight[0], *data[2:]]
        types = [
            to_layout(dims, layout, first)
            for dims, layout, first in [(data, layouts[0], "NCHW"), (weight, layouts[1], "OIHW"), (declared, layouts[0], "NCHW")]
        ]
        call = conv_call("x", "w", layouts, strides=[stride, stride], groups=groups) + (MARK if kind and returned is None else "")
        body = [("gv", f32(*types[2]), call)]
        result = f32(*(returned or types[2]))
        main = s.function("main", [("x", f32(*types[0])), ("w", f32(*types[1]))], result, body)
        if returned is not None and kind:
            main = main.replace("return gv", f"return gv{MARK}")
        return Case(named(s, f"conv1x1_{name}"), s.classic, kind, s.module([main], n), decided(facts))

    yield case("plain", "", [1, channels, size, size], [out, channels, 1, 1])
    yield case("batch", "", [8, channels, size, size], [out, channels, 1, 1])
    yield case("symbolic_batch", "", ["n", channels, size, size], [out, channels, 1, 1])
    yield case("groups", "", [1, channels, size, size], [out, channels // 4, 1, 1], groups=4)
    yield case("depthwise", "", [1, channels, size, size], [channels, 1, 1, 1], groups=channels)
    yield case("annotation", "annotation-shape-mismatch", [1, channels, size, size], [out, channels, 1, 1], [1, out, size // 2, size // 2])
    yield case("channels", "conv-in-channels-mismatch", [1, channels, size, size], [out, channels + 16, 1, 1])
    if not s.classic:
        yield case("stride", "", [1, channels, size, size], [out, channels, 1, 1], stride=2)
        yield case("nhwc", "", [2, channels, size, size], [out, channels, 1, 1], layouts=("NHWC", "OHWI"))
        yield case("hwio", "", [2, channels, size, size], [out, channels, 1, 1], layouts=("NHWC", "HWIO"))
        yield case(
            "stride_forgotten",
            "annotation-shape-mismatch",
            [1, channels, size, size],
            [out, channels, 1, 1],
            [1, out, size, size],
            stride=2,
        )
        yield case(
            "symbolic_annotation",
            "annotation-shape-mismatch",
            ["n", channels, size, size],
            [out, channels, 1, 1],
            ["n + 1", out, size, size],
        )
        yield case("groups_out", "conv-groups-not-divisible", [1, channels, size, size], [out + 2, channels // 4, 1, 1], groups=4)
        yield case("return", "return-shape-mismatch", [1, channels, size, size], [out, channels, 1, 1], returned=[1, size, size, out])


def is_product(data, weight, stride):
    """Returns the fact whether a 1x1 convolution equals a matrix product, computed on seeded values."""
    values = np.random.default_rng(0)
    x, w = values.standard_normal(data), values.standard_normal(weight)
    expected = F.conv2d(torch.from_numpy(x), torch.from_numpy(w), stride=stride).numpy()
    rows = x[:, :, ::stride, ::stride].transpose(0, 2, 3, 1)
    product = (rows.reshape(-1, data[1]) @ w[:, :, 0, 0].T).reshape(*rows.shape[:3], weight[0]).transpose(0, 3, 1, 2)
    apart = float(np.abs(product - expected).max())
    return Fact(apart > 1e-9, f"{TORCH}, {NUMPY}", f"conv2d gives {expected.shape} and is a product of matrices within {apart:.0e}")


def conv1x1_products(s, rng):
    """Generates the matrix product as operators: moves the channels to the end, flattens, multiplies, and restores
    the shape."""
    batch, size, channels, out = rng.choice([1, 4]), rng.choice([7, 14]), rng.choice([24, 40]), rng.choice([16, 56])
    rows = batch * size * size

    def case(name, kind, transposed=True, rows=rows, bias=None, back=(0, 3, 1, 2)):
        x, w = f32(batch, channels, size, size), f32(out, channels, 1, 1)
        values = np.zeros(x[0], "float32"), np.zeros(w[0], "float32")
        try:
            last = values[0].transpose(0, 2, 3, 1)
            flat = last.reshape(rows, channels)
            matrix = values[1].reshape(out, channels)
            product = flat @ (matrix.T if transposed else matrix)
            y = product.reshape(batch, size, size, out).transpose(back)
            y = y if bias is None else y + np.zeros(bias, "float32")
            says = f"the result is {y.shape}, the convolution's is {(batch, out, size, size)}"
            fact = Fact(y.shape != (batch, out, size, size), NUMPY, says)
        except ValueError as error:
            fact = Fact(True, NUMPY, str(error))
        mark = lambda *kinds: MARK if kind in kinds else ""
        weight = [("w2", f32(out, channels), f"R.reshape(w, R.shape([{out}, {channels}]))")]
        if transposed:
            weight.append(("wt", f32(channels, out), "R.permute_dims(w2, axes=[1, 0])"))
        result = f32(batch, out, size, size)
        spatial = f32(batch, size, size, out)
        body = [
            ("x1", f32(batch, size, size, channels), "R.permute_dims(x, axes=[0, 2, 3, 1])"),
            ("x2", f32(rows, channels), f"R.reshape(x1, R.shape([{rows}, {channels}])){mark('reshape-count-mismatch')}"),
            *weight,
            ("y", f32(rows, out), f"R.matmul(x2, {weight[-1][0]}, out_dtype=None){mark('matmul-reduction-mismatch')}"),
            ("y1", spatial, f"R.reshape(y, R.shape([{batch}, {size}, {size}, {out}]))"),
            ("gv", result, f"R.permute_dims(y1, axes={list(back)}){mark('annotation-shape-mismatch')}"),
        ]
        params = [("x", x), ("w", w)]
        if bias is not None:
            params.append(("bias", f32(*bias)))
            body.append(("gv1", result, f"R.add(gv, bias){mark('broadcast-mismatch')}"))
        if kind == "reshape-count-mismatch":  # Only one mistake: nothing uses the result of the reshape.
            body = [*body[:2]]
            result = f32(rows, channels)
        text = s.module([s.function("main", params, result, body)])
        return Case(named(s, f"conv1x1_product_{name}"), s.classic, kind, text, fact)

    yield case("right", "")
    yield case("weight", "matmul-reduction-mismatch", transposed=False)
    yield case("order", "annotation-shape-mismatch", back=(0, 1, 2, 3))
    yield case("rows", "reshape-count-mismatch", rows=rows + size)
    yield case("bias", "broadcast-mismatch", bias=(1, channels, 1, 1))
    yield case("bias_right", "", bias=(1, out, 1, 1))


def conv1x1_kernels(s, rng):
    """Generates matrix-product kernels that are called for a 1x1 convolution."""
    size, channels, out = rng.choice([7, 14]), rng.choice([24, 40]), rng.choice([16, 56])
    for name, rows, wrong in [("right", size * size, False), ("unflattened", size * size, True), ("channels", size * size, True),
                              ("symbolic", "n", False), ("symbolic_out", "n", True)]:  # fmt: skip
        matrix, weight, product = f32("r" if rows == "n" else rows, channels), f32(channels, out), f32("r" if rows == "n" else rows, out)
        if name == "unflattened":
            passed = f32(1, size, size, channels)
        elif name == "channels":
            passed = f32(rows, channels + 8)
        else:
            passed = f32(rows, channels)
        declared = f32("n + 1" if name == "symbolic_out" else rows, out)
        facts = []
        for n in points(passed[0]):
            computed = at(passed[0], n)
            says = f"numpy.matmul of {computed} and {tuple(weight[0])}"
            try:
                shape = np.matmul(np.zeros(computed), np.zeros(weight[0])).shape
                facts.append(Fact(shape != at(declared[0], n), NUMPY, f"{says} is {shape}; the output is {at(declared[0], n)}"))
            except ValueError as error:
                facts.append(Fact(True, NUMPY, f"{says}: {error}"))
        kind = "call-tir-output-mismatch" if name == "symbolic_out" else "call-tir-arg-mismatch" if wrong else ""
        body = [("gv", None, s.call_tir("matmul", ["x", "w"], declared, wrong))]
        main = s.function("main", [("x", passed), ("w", weight)], declared, body)
        text = s.module([s.matmul("matmul", matrix, weight, product), main], symbols_of(passed))
        yield Case(named(s, f"conv1x1_kernel_{name}"), s.classic, kind, text, decided(facts))


# Transposed convolutions.


def conv_transpose(s, rng):
    """Generates transposed convolutions with various layouts, groups, strides and paddings."""

    def case(rank, name, kind, data, weight, declared=None, layouts=None, label=None, dtype="float32", **attributes):
        """Adds a case. `data` and `weight` are in PyTorch's order (N C spatial, I O spatial); `label` is the kernel
        layout in the text."""
        axes = AXES[rank]
        first, kernel_first = f"NC{axes}", f"IO{axes}"
        layouts = layouts or (first, kernel_first)
        claimed = label or layouts[1]
        given = {
            "stride": [1] * rank,
            "padding": [0] * rank,
            "output_padding": [0] * rank,
            "dilation": [1] * rank,
            "groups": 1,
        } | attributes
        # The weight as interpreted with the layout in the text, in PyTorch's order.
        stored = to_layout(weight, layouts[1], kernel_first)
        read = [stored[claimed.index(axis)] for axis in kernel_first]
        facts = []
        for point in points(data):
            computed = shape_of(CONV_TRANSPOSE[rank], f32(*at(data, point)), (read, dtype), **given)
            if declared is None and computed[0]:
                declared = [data[0] if isinstance(data[0], str) else computed[0][0], *computed[0][1:]]
            facts.append(compared(f"conv_transpose{rank}d", computed, f32(*at(declared or [], point)), "the annotation"))
        declared = declared or [data[0], weight[1], *[4] * rank]
        x, y = (f32(*to_layout(dims, layouts[0], first)) for dims in (data, declared))
        padding = [*given["padding"], *given["padding"]]
        text = (
            f"R.nn.conv{rank}d_transpose(x, w, strides={given['stride']}, padding={padding}, output_padding={given['output_padding']}, "
            f'dilation={given["dilation"]}, groups={given["groups"]}, data_layout="{layouts[0]}", kernel_layout="{claimed}", '
            f'out_layout="{layouts[0]}", out_dtype=None){MARK if kind else ""}'
        )
        main = s.function("main", [("x", x), ("w", (stored, dtype))], y, [("gv", y, text)])
        return Case(named(s, f"conv_transpose_{rank}d_{name}"), s.classic, kind, s.module([main], symbols_of(x)), decided(facts))

    for rank in (2,) if s.classic else (1, 2, 3):
        c, out, size = rng.choice([24, 32]), rng.choice([12, 20]), rng.choice([4, 7])
        axes, spatial, window = AXES[rank], [size] * rank, [4] * rank
        data, weight = [1, c, *spatial], [c, out, *window]
        twice = {"stride": [2] * rank, "padding": [1] * rank}
        swapped = f"OI{axes}"
        yield case(rank, "right", "", data, weight, **twice)
        yield case(rank, "label", "conv-in-channels-mismatch", data, weight, [1, out, *[2 * size] * rank], label=swapped, **twice)
        yield case(rank, "weight", "conv-in-channels-mismatch", data, [out, c, *window], [1, out, *[2 * size] * rank], **twice)
        yield case(rank, "symbolic", "", ["n", *data[1:]], weight, **twice)
        yield case(
            rank,
            "output_padding_forgotten",
            "annotation-shape-mismatch",
            data,
            [c, out, *[3] * rank],
            [1, out, *[2 * size] * rank],
            **twice,
        )
        yield case(rank, "output_padding", "", data, [c, out, *[3] * rank], output_padding=[1] * rank, **twice)
        yield case(rank, "groups", "", data, weight, groups=4, **twice)
        yield case(rank, "groups_annotation", "annotation-shape-mismatch", data, weight, [1, out, *[2 * size] * rank], groups=4, **twice)
        if s.classic:
            continue
        yield case(rank, "oi_right", "", data, weight, layouts=(f"NC{axes}", swapped), **twice)
        yield case(rank, "last", "", data, weight, layouts=(f"N{axes}C", f"I{axes}O"), **twice)
        yield case(rank, "dilation", "", data, weight, dilation=[2] * rank, **twice)
        yield case(
            rank,
            "dilation_annotation",
            "annotation-shape-mismatch",
            data,
            weight,
            [1, out, *[2 * size] * rank],
            dilation=[2] * rank,
            **twice,
        )
        yield case(rank, "output_padding_large", "conv-output-padding-too-large", data, weight, output_padding=[2] * rank, **twice)
        yield case(rank, "dtype", "dtype-mismatch", data, weight, [1, out, *[2 * size] * rank], dtype="float16", **twice)
        yield case(rank, "empty", "conv-empty-output", [1, c, *[1] * rank], [c, out, *[2] * rank], padding=[1] * rank)


# Indices.


def take(s, rng):
    """Generates reads by index, with indices inside and outside the axis."""
    yield from take_known(s, rng)
    yield from take_modes(s)
    yield from take_symbolic(s)
    yield from take_other(s)


def indexed(rng, extent):
    """Yields texts of known indices: name, text, dtype, values."""
    step = rng.choice([2, 3])
    return {
        "const": (f'R.const([0, {extent - 1}], "int64")', [0, extent - 1]),
        "const_over": (f'R.const([0, {extent}], "int64")', [0, extent]),
        "const_negative": ('R.const([-1, 1], "int64")', [-1, 1]),
        "arange": (f'R.arange(0, {extent}, 1, dtype="int64")', range(extent)),
        "arange_over": (f'R.arange(0, {extent * step}, {step}, dtype="int64")', range(0, extent * step, step)),
        "full": (f'R.full(R.shape([4]), R.const({extent - 1}, "int64"), dtype="int64")', [extent - 1] * 4),
        "full_over": (f'R.full(R.shape([4]), R.const({extent}, "int64"), dtype="int64")', [extent] * 4),
        "zeros": ('R.zeros(R.shape([3]), dtype="int64")', [0] * 3),
    }


def selected(rows, axis, values):
    """Returns the fact whether an axis has these indices: PyTorch's `index_select` rejects negative ones, as TVM's
    `fast` mode does."""
    try:
        result = torch.index_select(torch.zeros(rows), axis, torch.tensor(list(values), dtype=torch.int64))
        return Fact(False, TORCH, f"index_select of {tuple(rows)} along {axis} gives {tuple(result.shape)}")
    except (IndexError, RuntimeError) as error:
        return Fact(True, TORCH, f"index_select of {tuple(rows)} along {axis}: {error}")


def program(s, params, body, symbols=(), functions=(), result=None):
    """Returns a module whose `main` has this body."""
    return s.module([*functions, s.function("main", params, result or body[-1][1], body)], symbols)


def take_known(s, rng):
    extent = rng.choice([10, 16])
    for axis, dims in [(0, [extent, 6]), (1, [5, extent])]:
        for name, (text, values) in indexed(rng, extent).items():
            if axis == 1 and (s.classic or name in ("zeros", "full")):
                continue
            fact = selected(dims, axis, values)
            kind = "take-index-out-of-bounds" if name.endswith(("over", "negative")) else ""
            out = [*dims[:axis], len(list(values)), *dims[axis + 1 :]]
            body = [
                ("at", ([len(list(values))], "int64"), text),
                ("gv", f32(*out), f'R.take(x, at, axis={axis}, mode="fast"){MARK if kind else ""}'),
            ]
            yield Case(named(s, f"take_{name}_axis{axis}"), s.classic, kind, program(s, [("x", f32(*dims))], body), fact)
    # The indices are passed to the take through another function.
    for name, step, kind in [("call", 1, ""), ("call_over", 2, "take-index-out-of-bounds")]:
        count = 8
        values = range(0, count * step, step)
        x, found = f32(12, 4), f32(count, 4)
        look_up = s.function(
            "look_up", [("x", x), ("at", ([count], "int64"))], found, [("gv", found, 'R.take(x, at, axis=0, mode="fast")')]
        )
        body = [
            ("at", ([count], "int64"), f'R.arange(0, {count * step}, {step}, dtype="int64")'),
            ("gv", found, f"cls.look_up(x, at){MARK if kind else ''}"),
        ]
        yield Case(named(s, f"take_{name}"), s.classic, kind, program(s, [("x", x)], body, functions=[look_up]), selected(x[0], 0, values))


def take_modes(s):
    """Generates takes in modes that define the result of an index out of range, as numpy's do, and along various
    axes."""
    x, count = f32(9, 5), 12
    for mode in ("clip", "wrap"):
        shape = np.take(np.zeros(x[0]), np.arange(count), axis=0, mode=mode).shape
        body = [
            ("at", ([count], "int64"), f'R.arange(0, {count}, 1, dtype="int64")'),
            ("gv", f32(count, 5), f'R.take(x, at, axis=0, mode="{mode}")'),
        ]
        fact = Fact(False, NUMPY, f"take of {tuple(x[0])} with mode {mode} gives {shape} for indices up to {count - 1}")
        yield Case(named(s, f"take_mode_{mode}"), s.classic, "", program(s, [("x", x)], body), fact)
    for name, axis, out, kind in [
        ("last", -1, [9, 3], ""),
        ("over", 2, [9, 3], "axis-out-of-range"),
        ("shape", 1, [3, 5], "annotation-shape-mismatch"),
    ]:
        try:
            shape = np.take(np.zeros(x[0]), [0, 1, 2], axis=axis).shape
            fact = Fact(list(shape) != out, NUMPY, f"take along axis {axis} gives {shape}; the annotation is {tuple(out)}")
        except IndexError as error:
            fact = Fact(True, NUMPY, f"take along axis {axis}: {error}")
        body = [
            ("at", ([3], "int64"), 'R.arange(0, 3, 1, dtype="int64")'),
            ("gv", f32(*out), f'R.take(x, at, axis={axis}, mode="fast"){MARK if kind else ""}'),
        ]
        yield Case(named(s, f"take_axis_{name}"), s.classic, kind, program(s, [("x", x)], body), fact)
    # NaN is not representable as an integer.
    for dtype, kind in [("float32", ""), ("int32", "take-nan-needs-float")]:
        try:
            np.zeros(1, dtype)[0] = float("nan")
            fact = Fact(False, NUMPY, f"an array of {dtype} holds NaN")
        except ValueError as error:
            fact = Fact(True, NUMPY, f"an element of {dtype} set to NaN: {error}")
        x = [9, 5], dtype
        body = [
            ("at", ([12], "int64"), 'R.arange(0, 12, 1, dtype="int64")'),
            ("gv", ([12, 5], dtype), f'R.take(x, at, axis=0, mode="nan"){MARK if kind else ""}'),
        ]
        yield Case(named(s, f"take_mode_nan_{dtype}"), s.classic, kind, program(s, [("x", x)], body), fact)


def take_symbolic(s):
    """Generates takes from extents of `n`, where the result is the same for every value of `n`."""
    for name, end, kind in [("right", "n", ""), ("over", "n + 1", "take-index-out-of-bounds")]:
        x, out = f32("n", 4), f32(end, 4)
        facts = [selected(at(x[0], n), 0, range(at([end], n)[0])) for n in POINTS]
        body = [
            ("at", ([end], "int64"), f'R.arange(0, {end}, 1, dtype="int64")'),
            ("gv", out, f'R.take(x, at, axis=0, mode="fast"){MARK if kind else ""}'),
        ]
        yield Case(named(s, f"take_symbolic_{name}"), s.classic, kind, program(s, [("x", x)], body, ["n"]), decided(facts))
    # The argmax of a row of `count` elements is less than `count`, which may exceed the extent of another axis.
    for name, count, kind in [("argmax_right", 8, ""), ("argmax", 20, "take-index-maybe-out-of-bounds")]:
        x, scores = f32(8, 4), f32(3, count)
        facts = [selected(x[0], 0, [value]) for value in range(count)]
        body = [
            ("at", ([3], "int64"), "R.argmax(scores, axis=1, keepdims=False)"),
            ("gv", f32(3, 4), f'R.take(x, at, axis=0, mode="fast"){MARK if kind else ""}'),
        ]
        text = program(s, [("x", x), ("scores", scores)], body)
        yield Case(named(s, f"take_{name}"), s.classic, kind, text, decided(facts), severity="warning")


def take_other(s):
    """Generates other reads by index: gather_elements, gather_nd, slices, and the loads of a kernel."""
    for name, last, kind in [("right", 5, ""), ("over", 6, "take-index-out-of-bounds")]:
        x = f32(6, 3)
        try:
            torch.gather(torch.zeros(x[0]), 0, torch.tensor([[0, last, 1]]))
            fact = Fact(False, TORCH, f"gather along axis 0 of {tuple(x[0])} has the index {last}")
        except RuntimeError as error:
            fact = Fact(True, TORCH, f"gather: {error}")
        body = [
            ("at", ([1, 3], "int64"), f'R.const([[0, {last}, 1]], "int64")'),
            ("gv", f32(1, 3), f"R.gather_elements(x, at, axis=0){MARK if kind else ''}"),
        ]
        yield Case(named(s, f"take_gather_elements_{name}"), s.classic, kind, program(s, [("x", x)], body), fact)
        try:
            np.zeros(x[0])[np.array([last]), np.array([2])]
            fact = Fact(False, NUMPY, f"an array of {tuple(x[0])} has the element ({last}, 2)")
        except IndexError as error:
            fact = Fact(True, NUMPY, str(error))
        body = [
            ("at", ([1, 2], "int64"), f'R.const([[{last}, 2]], "int64")'),
            ("gv", f32(1), f"R.gather_nd(x, at, batch_dims=0){MARK if kind else ''}"),
        ]
        yield Case(named(s, f"take_gather_nd_{name}"), s.classic, kind, program(s, [("x", x)], body), fact)
    for name, shift, kind in [("right", 2, ""), ("over", 3, "buffer-index-out-of-bounds")]:
        x, out = f32(10, 6), f32(8, 6)
        try:
            values = np.zeros(x[0])
            [values[row + shift, column] for row in range(8) for column in range(6)]
            fact = Fact(False, NUMPY, f"rows {shift} to {7 + shift} of {tuple(x[0])} are there")
        except IndexError as error:
            fact = Fact(True, NUMPY, str(error))
        element = f"A[{{0}} + {shift}, {{1}}]"
        kernel = s.kernel(
            "shift", [("A", x), ("OUT", out)], [(8, "S"), (6, "S")], ([element], "OUT[{0}, {1}]"), [f"OUT[{{0}}, {{1}}] = {element}"]
        )
        lines = [line + (MARK if kind and line.strip().startswith("OUT[") else "") for line in kernel.split("\n")]
        main = s.function("main", [("x", x)], out, [("gv", None, s.call_tir("shift", ["x"], out))])
        yield Case(named(s, f"take_kernel_{name}"), s.classic, kind, s.module(["\n".join(lines), main]), fact)


# Functions of LiftTransformParams.


def lift(s, rng):
    """Generates modules after LiftTransformParams, with callers that pass wrong weights to `main`."""
    for square in (True, False):
        yield from lift_one(s, rng, square)
    yield from lift_two(s, rng)
    yield from num_input(s)


def transforms(s, weight, transposed):
    """Returns the `main_transform_params` that the pass makes for the transposition of one weight."""
    params, result = (f"R.Tuple({s.type(ty)})" for ty in (weight, transposed))
    body = [
        ("weight", weight, "model_params[0]"),
        ("lv", transposed, "R.permute_dims(weight, axes=[1, 0])"),
        ("gv", result, "(lv,)"),
    ]
    return s.function("main_transform_params", [("model_params", params)], result, body, '"num_input": 0')


def lift_one(s, rng, square):
    """Generates the case of one weight, which is transposed."""
    rows = rng.choice([12, 16])
    columns = rows if square else rows + 8
    x, weight, transposed, y = f32(4, columns), f32(rows, columns), f32(columns, rows), f32(4, rows)
    before = s.function("main", [("x", x), ("weight", weight)], y, [
        ("lv", transposed, "R.permute_dims(weight, axes=[1, 0])"), ("gv", y, "R.matmul(x, lv, out_dtype=None)")], '"num_input": 1')  # fmt: skip
    after = s.function("main", [("x", x), ("lv", transposed)], y, [("gv", y, "R.matmul(x, lv, out_dtype=None)")], '"num_input": 1')
    pair = [transforms(s, weight, transposed), after]
    values = np.random.default_rng(1)
    a, w = values.standard_normal(x[0]), values.standard_normal(weight[0])

    def case(name, kind, call, fact, made="cls.main_transform_params((weight,))", mark_made=False, severity="error"):
        ready = "ready" in call
        body = (
            [("params", f"R.Tuple({s.type(transposed)})", made + (MARK if kind and mark_made else ""))] if ready or "params" in call else []
        )
        body += [("ready", transposed, "params[0]")] if ready else []
        body += [("gv", y, call + (MARK if kind and not mark_made else ""))]
        run = s.function("run", [("x", x), ("weight", weight)], y, body)
        text = s.module([*pair, run])
        shape = "square" if square else "wide"
        return Case(named(s, f"lift_{shape}_{name}"), s.classic, kind, text, fact, severity, lifted_from=s.module([before]))

    def product(other, says):
        try:
            apart = float(np.abs(a @ other - a @ w.T).max())
            return Fact(apart > 1e-9, NUMPY, f"{says}: the result differs from `x @ weight.T` by up to {apart:.1g}")
        except ValueError as error:
            return Fact(True, NUMPY, f"{says}: {error}")

    def called(function, *arguments):
        """Returns whether Python accepts a call of a function with the parameters of `main` or
        `main_transform_params`."""
        try:
            function(*arguments)
        except (TypeError, ValueError) as error:
            return Fact(True, "Python", str(error))
        return Fact(False, "Python", "the arguments are those of the function")

    def main(x, lv):
        return x @ lv

    def main_transform_params(model_params):
        (weight,) = model_params
        return (weight.T,)

    yield case("right", "", "cls.main(x, ready)", product(main_transform_params((w,))[0], "the transformed weight"))
    raw = "untransformed-param" if square else "call-arg-mismatch"
    yield case("raw", raw, "cls.main(x, weight)", product(w, "the raw weight"), severity="warning" if square else "error")
    if s.classic and square:
        return
    yield case("left_out", "call-arity-mismatch", "cls.main(x)", called(main, a))
    shape = main(a, main_transform_params((w,))).shape
    whole = Fact(
        shape != tuple(y[0]), NUMPY, f"a tuple of one array is an array of one more axis: the result is {shape}, declared is {tuple(y[0])}"
    )
    yield case("whole_tuple", "call-arg-mismatch", "cls.main(x, params)", whole)
    if square:
        rows_as_fields = called(main_transform_params, w)
        yield case("no_tuple", "call-arg-mismatch", "cls.main(x, ready)", rows_as_fields, "cls.main_transform_params(weight)", True)
        two = called(main_transform_params, (w, w))
        yield case("tuple_of_two", "call-arg-mismatch", "cls.main(x, ready)", two, "cls.main_transform_params((weight, weight))", True)
        yield case("no_input", "call-arity-mismatch", "cls.main(ready)", called(main, w.T))


def lift_two(s, rng):
    """Generates the case of two weights, which the caller swaps, or of which it passes one twice."""
    size, inner = rng.choice([6, 10]), rng.choice([14, 18])
    x, up, down, y = f32(3, size), f32(inner, size), f32(size, inner), f32(3, size)
    up_t, down_t, hidden = f32(size, inner), f32(inner, size), f32(3, inner)
    both = f"R.Tuple({s.type(up)}, {s.type(down)})"
    both_t = f"R.Tuple({s.type(up_t)}, {s.type(down_t)})"
    body = [("h", hidden, "R.matmul(x, lv, out_dtype=None)"), ("gv", y, "R.matmul(h, lv1, out_dtype=None)")]
    moved = [("lv", up_t, "R.permute_dims(up, axes=[1, 0])"), ("lv1", down_t, "R.permute_dims(down, axes=[1, 0])")]
    before = s.function("main", [("x", x), ("up", up), ("down", down)], y, [*moved, *body], '"num_input": 1')
    after = s.function("main", [("x", x), ("lv", up_t), ("lv1", down_t)], y, body, '"num_input": 1')
    fields = [("up", up, "model_params[0]"), ("down", down, "model_params[1]")]
    made = [fields[0], moved[0], fields[1], moved[1], ("gv", both_t, "(lv, lv1)")]
    lifted = s.function("main_transform_params", [("model_params", both)], both_t, made, '"num_input": 0')
    for name, arguments, order, kind in [
        ("right", "(up, down)", (0, 1), ""),
        ("swapped", "(down, up)", (0, 1), "call-arg-mismatch"),
        ("first_twice", "(up, down)", (0, 0), "call-arg-mismatch"),
    ]:
        weights = {"(up, down)": [up, down], "(down, up)": [down, up]}[arguments]
        matrices = [np.zeros(ty[0]).T for ty in weights]
        try:
            shape = (np.zeros(x[0]) @ matrices[order[0]] @ matrices[order[1]]).shape
            fact = Fact(shape != tuple(y[0]), NUMPY, f"the result is {shape}")
        except ValueError as error:
            fact = Fact(True, NUMPY, str(error))
        calls = [
            ("params", both_t, f"cls.main_transform_params({arguments}){MARK if name == 'swapped' else ''}"),
            ("first", up_t, "params[0]"),
            ("second", down_t, "params[1]"),
            (
                "gv",
                y,
                f"cls.main(x, {['first', 'second'][order[0]]}, {['first', 'second'][order[1]]}){MARK if name == 'first_twice' else ''}",
            ),
        ]
        run = s.function("run", [("x", x), ("up", up), ("down", down)], y, calls)
        text = s.module([lifted, after, run])
        yield Case(named(s, f"lift_two_{name}"), s.classic, kind, text, fact, lifted_from=s.module([before]))


def num_input(s):
    """Generates the attribute `num_input`, which says how many parameters are not weights: from none to all of them."""
    for name, value, kind in [("one", "1", ""), ("all", "2", ""), ("too_many", "3", "num-input-out-of-range"),
                              ("negative", "-1", "num-input-out-of-range"), ("text", '"1"', "attr-type")]:  # fmt: skip
        number = eval(value)
        try:
            within = 0 <= number <= 2
            says = f"`main` has 2 parameters, num_input is {value}"
        except TypeError as error:
            within, says = False, str(error)
        ty = f32(3, 4)
        body = [("gv", ty, "R.add(x, weight)")]
        mark = MARK if kind else ""
        main = s.function("main", [("x", ty), ("weight", ty)], ty, body, f'"num_input": {value}')
        main = main.replace("})", f"}}){mark}", 1) if mark else main
        yield Case(named(s, f"lift_num_input_{name}"), s.classic, kind, s.module([main]), Fact(not within, "Python", says))


FAMILIES = {"conv_relu": conv_relu, "conv1x1": conv1x1, "conv_transpose": conv_transpose, "take": take, "lift": lift}
