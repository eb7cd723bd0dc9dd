#!/usr/bin/env python3
"""Generates reference values of the neural-network operators: writes tests/operators/nn_*.jsonl, from PyTorch in float64.

    python tests/scripts/operator_values_nn.py tests/operators

Needs numpy, torch and torchvision. One case a line, as compiler/ops/tests/suite/values_nn.rs reads it: the operator, its arguments, the
values of symbols in their dims, the results. Below a dim written "n=4" is the symbol n, of value 4.
"""

import json
import math
import re
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision

CASES = []
DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "int8": np.int8, "uint8": np.uint8,
          "int32": np.int32, "int64": np.int64, "bool": np.bool_}


def fill(shape, dtype, place, kind):
    """Elements of the tensor at `place` among a case's tensors. All values are exact in every float dtype of 16 bits;
    those of kind "distinct" rarely repeat, and are not exact in bfloat16. A kind that is a list holds them all."""
    if isinstance(kind, list):
        return np.asarray(kind, dtype=np.float64).reshape(shape)
    count = int(np.prod(shape, dtype=np.int64))
    mask = 0xFFFFFFFF
    h = ((np.arange(count, dtype=np.uint64) + 1) * 0x9E3779B1 + place * 0x85EBCA77) & mask
    h ^= h >> 15
    h = (h * 0x2C1B3C6D) & mask
    h ^= h >> 12
    h = h.astype(np.int64)
    if kind == "signed":
        values = h % 128 / 32 - 2 if "float" in dtype else h % 21 - 10
    elif kind == "distinct":
        values = h % 4096 / 1024 - 2
    elif kind == "positive":
        values = h % 64 / 64 + 0.5
    elif kind.startswith("below "):
        values = h % int(kind[6:])
    else:
        raise ValueError(kind)
    return np.asarray(values).reshape(shape).astype(np.float64)


class T:
    """The description of a tensor in a case."""

    def __init__(self, *dims, dtype="float32", kind=None):
        self.dims, self.dtype = dims, dtype
        self.kind = kind or ("below 2" if dtype == "bool" else "signed")
        if dtype == "uint8" and kind is None:
            self.kind = "below 21"

    def shape(self):
        return [int(str(d).split("=")[-1]) for d in self.dims]


def number(value):
    """Formats a value for JSON; NaN and infinities as text."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.8g}")


def numbers(values):
    return [number(float(value)) for value in np.asarray(values).reshape(-1)]


def case(op, tensors, attrs, reference):
    """`reference` gets the tensors as float64 torch tensors, in order, and gives the output or outputs. A tensor named
    `operands.0` is the first of the tuple `operands`. Results have the dtype the call names, else the first tensor's;
    indices are `int64`."""
    args, symbols, values = {}, {}, []
    for at, (name, tensor) in enumerate(tensors.items()):
        value = fill(tensor.shape(), tensor.dtype, at, tensor.kind)
        values.append(torch.from_numpy(value))
        dims = [dim if isinstance(dim, int) else dim.split("=")[0] for dim in tensor.dims]
        symbols.update({d.split("=")[0]: int(d.split("=")[1]) for d in tensor.dims if isinstance(d, str)})
        arg = {"tensor": dims, "dtype": tensor.dtype, "data": numbers(value)}
        if "." in name:
            args.setdefault(name.split(".")[0], {"tuple": []})["tuple"].append(arg)
        else:
            args[name] = arg
    args.update({name: {"attr": value} for name, value in attrs.items()})
    outputs = reference(*values)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    dtype = attrs.get("out_dtype") or attrs.get("dtype") or next(iter(tensors.values())).dtype
    dtypes = ["int64" if o.dtype == torch.int64 else dtype for o in outputs]
    results = [{"shape": list(o.shape), "dtype": d, "data": numbers(o)} for o, d in zip(outputs, dtypes)]
    CASES.append({"operator": op, "args": args, "symbols": symbols, "results": results, "tolerance": 1e-5})


# --- layouts -------------------------------------------------------------------------------------------------------


def axes_of(layout):
    """Returns [("primal", C)] or [("packed", [(C, 4), ...])] per physical axis."""
    axes = []
    for part in re.findall(r"\[[^\]]*\]|\d+[a-z]|[A-Z]", layout):
        if part.isupper() and len(part) == 1:
            axes.append(("primal", part))
        else:
            axes.append(("packed", [(c.upper(), int(n)) for n, c in re.findall(r"(\d+)([a-z])", part)]))
    return axes


def factor(layout, letter):
    for kind, what in axes_of(layout):
        if kind == "packed":
            for piece, size in what:
                if piece == letter:
                    return size
    return 1


def to_layout(x, letters, layout):
    x = torch.as_tensor(x)
    pads = []
    for letter, n in reversed(list(zip(letters, x.shape))):
        pads += [0, -n % factor(layout, letter)]
    x = F.pad(x, pads)
    shape = []
    names = []
    for letter, n in zip(letters, x.shape):
        f = factor(layout, letter)
        shape += [n // f, f]
        names += [letter, letter.lower()]
    x = x.reshape(shape)
    order, final = [], []
    for kind, what in axes_of(layout):
        if kind == "primal":
            order.append(names.index(what))
            final.append(x.shape[order[-1]])
        else:
            extent = 1
            for piece, size in what:
                order.append(names.index(piece.lower()))
                extent *= size
            final.append(extent)
    order += [i for i in range(len(names)) if i not in order]
    return x.permute(order).reshape(final)


def from_layout(x, letters, layout):
    split, names = [], []
    for (kind, what), n in zip(axes_of(layout), x.shape):
        if kind == "primal":
            split.append(n)
            names.append(what)
        else:
            for piece, size in what:
                split.append(size)
                names.append(piece.lower())
    x = x.reshape(split)
    order, final = [], []
    for letter in letters:
        order.append(names.index(letter))
        extent = x.shape[order[-1]]
        if letter.lower() in names:
            order.append(names.index(letter.lower()))
            extent *= x.shape[order[-1]]
        final.append(extent)
    return x.permute(order).reshape(final)


SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def spread(value, rank):
    value = [value] if isinstance(value, int) else list(value)
    return value * rank if len(value) == 1 else value


def sides(padding, rank):
    padding = [padding] if isinstance(padding, int) else list(padding)
    if len(padding) == 1:
        padding = padding * (2 * rank)
    elif len(padding) == rank:
        padding = padding * 2
    return list(zip(padding[:rank], padding[rank:]))


def pad_flat(pairs):
    return [v for pair in reversed(pairs) for v in pair]


# --- convolutions --------------------------------------------------------------------------------------------------


def conv(rank, data, weight, transposed=False, dtypes=("float32", "float32"), **attrs):
    spatial = SPATIAL[rank]
    data_layout = attrs.get("data_layout", "NC" + spatial)
    kernel_layout = attrs.get("kernel_layout", ("IO" if transposed else "OI") + spatial)
    out_layout = attrs.get("out_layout", data_layout)

    def reference(x, w):
        x = from_layout(x, "NC" + spatial, data_layout)
        w = from_layout(w, ("IO" if transposed else "OI") + spatial, kernel_layout)
        strides, dilation = spread(attrs.get("strides", 1), rank), spread(attrs.get("dilation", 1), rank)
        pads, groups = sides(attrs.get("padding", 0), rank), attrs.get("groups", 1)
        if transposed:
            function = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1]
            y = function(x, w, stride=strides, dilation=dilation, groups=groups)
            extra = spread(attrs.get("output_padding", 0), rank)
            y = F.pad(y, pad_flat([(-before, more - after) for (before, after), more in zip(pads, extra)]))
        else:
            function = [F.conv1d, F.conv2d, F.conv3d][rank - 1]
            y = function(F.pad(x, pad_flat(pads)), w, stride=strides, dilation=dilation, groups=groups)
        return to_layout(y, "NC" + spatial, out_layout)

    name = f"nn.conv{rank}d" + ("_transpose" if transposed else "")
    tensors = {"data": T(*data, dtype=dtypes[0]), "weight": T(*weight, dtype=dtypes[1])}
    case(name, tensors, attrs, reference)


def convolutions():
    conv(2, ["n=2", 3, "h=6", "w=5"], [4, 3, 3, 3])
    conv(2, ["n=2", 3, "h=6", 5], [4, 3, 3, 3], padding=1)
    conv(2, [1, 3, "h=9", "w=8"], [4, 3, 3, 3], padding=[1, 1], strides=[2, 2])
    conv(2, [1, 4, 5, 6], [6, 4, 1, 1])
    conv(2, [1, 3, 7, 9], [2, 3, 3, 2], padding=[1, 0, 2, 1], strides=[2, 3], dilation=[2, 1])
    conv(2, [2, 6, 5, 5], [4, 3, 3, 3], groups=2, padding=1)
    conv(2, ["n=1", 4, "h=5", "w=6"], [4, 1, 3, 3], groups=4, padding=1)
    conv(2, [1, 4, 5, 5], [8, 1, 3, 3], groups=4, strides=2)
    conv(2, [1, 5, 6, 3], [3, 3, 3, 4], data_layout="NHWC", kernel_layout="HWIO", padding=1)
    conv(2, [1, 5, 6, 3], [4, 3, 3, 3], data_layout="NHWC", kernel_layout="OHWI", out_layout="NCHW")
    conv(2, [1, 2, 5, 5, 4], [2, 2, 3, 3, 4, 4], data_layout="NCHW4c", kernel_layout="OIHW4i4o", padding=1)
    conv(2, [1, 2, 5, 5, 4], [3, 2, 3, 3, 8], data_layout="NCHW4c", kernel_layout="OIHW[4i2o]", groups=1)
    conv(2, [1, 2, 5, 5, 4], [8, 1, 3, 3, 2], data_layout="NCHW4c", kernel_layout="OIHW2i", groups=4)
    conv(2, [1, 3, 5, 5], [6, 3, 3, 3], out_layout="NCHW4c")
    conv(2, [1, 3, 7, 5], [6, 3, 3, 3], out_layout="NCHW2h4c", groups=1)
    conv(2, [1, 3, 5, 5], [4, 3, 3, 3], dtypes=("float16", "float16"), padding=1)
    conv(2, [1, 3, 5, 5], [4, 3, 3, 3], dtypes=("float16", "float16"), out_dtype="float32")
    conv(2, [1, 3, 5, 5], [4, 3, 3, 3], dtypes=("int8", "int8"), out_dtype="int32", padding=1)
    conv(2, [1, 2, 4, 4], [3, 2, 3, 3], dtypes=("float64", "float64"), padding=2)
    conv(2, [1, 16, "h=3", 3], ["o=5", 16, 3, 3], dtypes=("bfloat16", "bfloat16"), padding=1)
    conv(1, ["n=2", 3, "w=9"], [4, 3, 3], padding=1, strides=2)
    conv(1, [1, 9, 4], [4, 2, 3], data_layout="NWC", kernel_layout="OIW", groups=2, dilation=2)
    conv(1, [2, 3, 8], [4, 3, 3], padding=[0, 2], strides=3)
    conv(3, [1, 2, 4, 5, "w=4"], [3, 2, 2, 3, 2], padding=[1, 0, 1, 0, 1, 0], strides=[1, 2, 1])
    conv(3, [1, 3, 4, 4, 4], [2, 2, 2, 2, 4], data_layout="NDHWC", kernel_layout="DHWIO", groups=2)
    conv(1, [1, 3, 8], [4, 3, 3], padding=1, out_layout="NWC")
    conv(1, [1, 3, 8], [4, 3, 3], dtypes=("float16", "float16"), out_dtype="float32")
    conv(1, [1, 3, 8], [4, 3, 3], dtypes=("int8", "int8"), out_dtype="int32")
    conv(3, [1, 2, 5, 5, 5], [4, 1, 2, 2, 2], groups=2, dilation=[2, 1, 2], strides=2, out_layout="NDHWC")
    conv(3, [1, 2, 3, 3, 3], [2, 2, 2, 2, 2], dtypes=("int8", "int8"), out_dtype="int32", padding=1)


def transposed_convolutions():
    def t(rank, *rest, **attrs):
        conv(rank, *rest, transposed=True, **attrs)

    t(2, ["n=1", 3, "h=3", "w=4"], [3, 2, 3, 3])
    t(2, [1, 3, "h=3", 4], [3, 2, 4, 4], strides=2, padding=1)
    t(2, [1, 3, 3, 4], [3, 2, 3, 3], strides=[2, 3], padding=[1, 0, 0, 2], output_padding=[1, 2])
    t(2, [1, 4, 3, 3], [4, 3, 3, 3], groups=2, strides=2, dilation=[2, 1])
    t(2, [1, 4, 3, 3], [4, 1, 2, 2], groups=4, strides=2)
    t(2, [1, 4, 5, 3], [3, 3, 2, 3], data_layout="NHWC", kernel_layout="HWOI", strides=2)
    t(2, [1, 3, 4, 4], [2, 3, 3, 3], kernel_layout="OIHW", out_layout="NHWC", padding=1)
    t(2, [1, 2, 3, 3, 2], [2, 2, 3, 3, 2, 2], data_layout="NCHW2c", kernel_layout="IOHW2i2o", strides=2, padding=1)
    t(2, [1, 3, 3, 3], [3, 2, 3, 3], dtypes=("float16", "float16"), strides=2)
    t(1, [2, 3, "w=5"], [3, 2, 4], strides=3, padding=1, output_padding=2)
    t(1, [1, 5, 4], [4, 2, 3], data_layout="NWC", kernel_layout="IOW", groups=2, dilation=2)
    t(3, [1, 2, 2, 3, 2], [2, 3, 2, 2, 3], strides=[1, 2, 2], padding=[0, 1, 1])
    t(1, [1, 3, 4], [3, 2, 3], strides=2, output_padding=1, out_layout="NWC")
    t(1, [1, 3, 4], [3, 2, 3], dtypes=("float16", "float16"), out_dtype="float32")
    t(1, [1, 4, 4], [4, 2, 3], groups=2, strides=2, padding=[1, 0], dtypes=("int8", "int8"), out_dtype="int32")
    t(2, [1, 3, 3, 3], [3, 2, 3, 3], dtypes=("int8", "int8"), out_dtype="int32", strides=2, output_padding=1)
    t(2, [1, 4, 3, 3], [4, 2, 3, 2], groups=2, strides=3, dilation=[1, 2], padding=[1, 0, 2, 1], output_padding=[2, 1])
    t(3, [1, 4, 2, 3, 2], [4, 2, 2, 2, 2], groups=2, dilation=[1, 2, 1], strides=2, output_padding=[1, 0, 1])
    t(3, [1, 2, 2, 3, 4], [2, 2, 2, 2, 4], data_layout="NDHWC", kernel_layout="DHWOI", groups=2)
    t(3, [1, 2, 2, 2, 3], [2, 3, 2, 2, 2], kernel_layout="IODHW", out_layout="NDHWC", strides=[2, 1, 1])
    t(3, [1, 2, 2, 2, 2], [2, 3, 2, 2, 2], dtypes=("float16", "float16"), out_dtype="float32")


# --- pooling -------------------------------------------------------------------------------------------------------


def pooled_extent(n, k, pads, s, d, ceil_mode):
    room = n + pads[0] + pads[1] - d * (k - 1) - 1
    if not ceil_mode:
        return room // s + 1
    extent = -(-room // s) + 1
    return extent - 1 if (extent - 1) * s >= n + pads[0] else extent


def pool(kind, rank, data, dtype="float32", **attrs):
    spatial = SPATIAL[rank]
    layout = attrs.get("layout", "NC" + spatial)
    out_layout = attrs.get("out_layout", layout)
    # Defaults differ between operators, as in TVM.
    include = attrs.get("count_include_pad", rank != 2)

    def reference(x):
        x = from_layout(x, "NC" + spatial, layout).numpy()
        k, s = spread(attrs["pool_size"], rank), spread(attrs.get("strides", 1), rank)
        d, pads = spread(attrs.get("dilation", 1), rank), sides(attrs.get("padding", 0), rank)
        ceil_mode = attrs.get("ceil_mode", False)
        extents = [pooled_extent(n, *rest, ceil_mode) for n, *rest in zip(x.shape[2:], k, pads, s, d)]
        y = np.zeros(list(x.shape[:2]) + extents)
        for place in np.ndindex(*extents):
            taps = []
            for axis in range(rank):
                begin = place[axis] * s[axis] - pads[axis][0]
                taps.append([begin + j * d[axis] for j in range(k[axis])])
            within = [[i for i in t if 0 <= i < n] for t, n in zip(taps, x.shape[2:])]
            window = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *within)]
            axes = tuple(range(2, 2 + rank))
            if kind == "max":
                value = window.max(axis=axes) if window.size else np.full(x.shape[:2], -np.inf)
            else:
                counted = [[i for i in t if -p[0] <= i < n + p[1]] for t, n, p in zip(taps, x.shape[2:], pads)]
                count = math.prod(len(c) for c in (counted if include else within))
                value = window.sum(axis=axes) / max(count, 1)
                if not dtype.startswith("float"):
                    value = np.trunc(value)
            y[(slice(None), slice(None)) + place] = value
        return to_layout(y, "NC" + spatial, out_layout)

    case(f"nn.{kind}_pool{rank}d", {"data": T(*data, dtype=dtype)}, attrs, reference)


def poolings():
    for kind in ("max", "avg"):
        pool(kind, 2, ["n=2", 2, "h=6", "w=7"], pool_size=[2, 3])
        pool(kind, 2, [1, 2, "h=7", 8], pool_size=3, strides=2, padding=1)
        pool(kind, 2, [1, 2, 7, 8], pool_size=[3, 2], strides=[2, 3], padding=[1, 0, 2, 1], dilation=[1, 2])
        pool(kind, 2, [1, 2, 6, 7], pool_size=3, strides=2, ceil_mode=True)
        pool(kind, 2, [1, 2, 6, 7], pool_size=3, strides=3, padding=1, ceil_mode=True, count_include_pad=True)
        pool(kind, 2, [1, 5, 6, 3], pool_size=2, strides=2, layout="NHWC")
        pool(kind, 2, [1, 2, 4, 4, 4], pool_size=2, strides=2, layout="NCHW4c", out_layout="NHWC")
        pool(kind, 2, [1, 6, 4, 4], pool_size=2, strides=2, out_layout="NCHW4c")
        pool(kind, 2, [1, 2, 4, 4], dtype="int8", pool_size=2, strides=2)
        pool(kind, 2, [1, 2, 4, 4], dtype="float16", pool_size=3, padding=1)
        pool(kind, 1, ["n=2", 3, "w=8"], pool_size=[3], strides=[2], padding=[1, 1])
        pool(kind, 1, [1, 3, 9], pool_size=[3], strides=[2], padding=[1, 1], count_include_pad=False, dilation=2)
        pool(kind, 3, [1, 2, 4, "h=5", 4], pool_size=[2, 3, 2], strides=[1, 2, 2], padding=[1, 1, 0, 0, 1, 1])
        for include in (False, True):
            options = {"strides": 2, "padding": 1, "ceil_mode": True, "count_include_pad": include}
            pool(kind, 1, [1, 2, 8], pool_size=3, **options)
            pool(kind, 3, [1, 1, 4, 5, 6], pool_size=3, **options)
        pool(kind, 1, [1, 8, 3], pool_size=2, strides=2, layout="NWC")
        pool(kind, 1, [1, 8, 3], pool_size=3, layout="NWC", out_layout="NCW", dtype="uint8")
        pool(kind, 3, [1, 4, 5, 4, 2], pool_size=2, dilation=[2, 1, 2], layout="NDHWC")
        pool(kind, 3, [1, 2, 4, 3, 4], pool_size=2, out_layout="NDHWC", dtype="float16")
    pool("max", 2, [1, 1, 3, 3], pool_size=2, strides=2, padding=2)
    # An average over padding only divides by one.
    pool("avg", 2, [1, 1, 3, 3], pool_size=2, strides=2, padding=2)


def adaptive(rank, data, output_size, **attrs):
    spatial = SPATIAL[rank]
    layout = attrs.get("layout", "NC" + spatial)

    def reference(x):
        x = from_layout(x, "NC" + spatial, layout)
        size = list(x.shape[2:]) if output_size is None else spread(output_size, rank)
        function = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d][rank - 1]
        return to_layout(function(x, size if rank > 1 else size[0]), "NC" + spatial, attrs.get("out_layout", layout))

    if output_size is not None:
        attrs["output_size"] = output_size
    case(f"nn.adaptive_avg_pool{rank}d", {"data": T(*data)}, attrs, reference)


def adaptive_poolings():
    adaptive(2, ["n=2", 3, "h=5", "w=6"], 1)
    adaptive(2, [1, 2, "h=7", 5], [3, 2])
    adaptive(2, [1, 2, 6, 8], [3, 4])
    adaptive(2, [1, 2, 3, 2], [5, 4])
    adaptive(2, [1, 5, 6, 3], [2, 3], layout="NHWC")
    adaptive(2, [1, 3, "h=4", 5], None, out_layout="NHWC")
    adaptive(1, [2, 3, "w=7"], 3)
    adaptive(3, [1, 2, 4, 5, 3], [2, 3, 1])
    adaptive(1, [2, 7, 3], 3, layout="NWC")
    adaptive(1, [2, 7, 3], 3, layout="NWC", out_layout="NCW")
    adaptive(3, [1, 4, 5, 3, 2], [2, 3, 1], layout="NDHWC")
    adaptive(3, [1, 4, 5, 3, 2], 2, layout="NDHWC", out_layout="NCDHW")


# --- activations ---------------------------------------------------------------------------------------------------


def activations():
    for name, function in [
        ("relu", F.relu),
        ("gelu", F.gelu),
        ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
        ("selu", F.selu),
        ("silu", F.silu),
        ("leakyrelu", F.leaky_relu),
        ("softplus", F.softplus),
    ]:
        for dtype in ("float32", "float16", "float64"):
            case(f"nn.{name}", {"data": T("n=3", 7, dtype=dtype)}, {}, function)
    case("nn.relu", {"data": T(5, dtype="int8")}, {}, F.relu)
    case("nn.relu", {"data": T(dtype="float32")}, {}, F.relu)
    case("nn.leakyrelu", {"data": T(9)}, {"alpha": 0.2}, lambda x: F.leaky_relu(x, 0.2))
    case("nn.softplus", {"data": T(32)}, {"beta": 2.5, "threshold": 3.0}, lambda x: F.softplus(x, 2.5, 3.0))
    case("nn.prelu", {"data": T(2, "c=3", 4), "alpha": T("c=3")}, {}, F.prelu)
    case("nn.prelu", {"data": T(2, 3, 4), "alpha": T(1)}, {}, F.prelu)
    case("nn.prelu", {"data": T(2, 3, 4), "alpha": T(4)}, {"axis": -1}, lambda x, a: torch.where(x > 0, x, x * a))
    for axis, dims in [(-1, ["n=3", "c=7"]), (1, [2, 5, 3]), (0, [6]), (-2, [2, 3, "c=4", 2])]:
        for dtype in ("float32", "float16"):
            data = {"data": T(*dims, dtype=dtype)}
            case("nn.softmax", data, {"axis": axis}, lambda x: F.softmax(x * 1, axis))
            case("nn.log_softmax", data, {"axis": axis}, lambda x: F.log_softmax(x, axis))
    case("nn.softmax", {"data": T(2, 9, dtype="bfloat16")}, {}, lambda x: F.softmax(x, -1))
    case("nn.dropout", {"data": T(2, "n=3")}, {"rate": 0.3}, lambda x: (x, torch.ones_like(x)))


# --- normalisations ------------------------------------------------------------------------------------------------


def batch_norm(dims, axis, dtype="float32", **attrs):
    channels = dims[axis]
    tensors = {"data": T(*dims, dtype=dtype)}
    for name, kind in [("gamma", None), ("beta", None), ("moving_mean", None), ("moving_var", "positive")]:
        tensors[name] = T(channels, dtype=dtype, kind=kind)

    def reference(x, gamma, beta, mean, var):
        shape = [1] * x.ndim
        shape[axis] = -1
        others = [a for a in range(x.ndim) if a != axis % x.ndim]
        new_mean, new_var = mean, var
        if attrs["training"]:
            m = attrs.get("momentum", 0.1)
            batch_mean, batch_var = x.mean(others), x.var(others, correction=0)
            new_mean, new_var = (1 - m) * mean + m * batch_mean, (1 - m) * var + m * batch_var
            mean, var = batch_mean, batch_var
        y = (x - mean.reshape(shape)) / torch.sqrt(var.reshape(shape) + attrs.get("epsilon", 1e-5))
        y = y * gamma.reshape(shape) if attrs.get("scale", True) else y
        y = y + beta.reshape(shape) if attrs.get("center", True) else y
        return y, new_mean, new_var

    case("nn.batch_norm", tensors, {"axis": axis, **attrs}, reference)


def moments_norm(op, dims, parameters, attrs, axes, dtype="float32"):
    """Computes layer_norm and instance_norm."""
    names = ["gamma", "beta"]
    tensors = {"data": T(*dims, dtype=dtype), **{name: T(*parameters, dtype=dtype) for name in names}}

    def reference(x, gamma, beta):
        y = (x - x.mean(axes, True)) / torch.sqrt(x.var(axes, correction=0, keepdim=True) + attrs.get("epsilon", 1e-5))
        along = [a % x.ndim for a in axes] if op == "nn.layer_norm" else [attrs["channel_axis"] % x.ndim]

        def lie(p):
            # The parameter's dims correspond to these axes, in this order.
            order = sorted(range(len(along)), key=lambda i: along[i])
            shape = [1] * x.ndim
            for i in order:
                shape[along[i]] = p.shape[i]
            return p.permute(order).reshape(shape)

        y = y * lie(gamma) if attrs.get("scale", True) else y
        return y + lie(beta) if attrs.get("center", True) else y

    case(op, tensors, attrs, reference)


def normalisations():
    batch_norm(["n=2", 3, "h=2", 4], 1, training=False)
    batch_norm([2, 3, 2, 4], 1, training=True)
    batch_norm(["n=3", "c=4"], -1, training=True, momentum=0.3, epsilon=1e-3)
    batch_norm([2, 4, 3], 2, training=False, scale=False)
    batch_norm([2, 4, 3], 2, training=False, center=False, epsilon=0.1)
    batch_norm([2, 3, 4], 1, dtype="float16", training=False)
    batch_norm([2, 3, 4], 1, dtype="float16", training=True)
    for dtype in ("float32", "float16", "float64"):
        moments_norm("nn.layer_norm", [2, "s=3", 8], [8], {"axes": [-1]}, [-1], dtype)
    moments_norm("nn.layer_norm", ["n=2", 3, 4], [3, 4], {"axes": [-2, -1], "epsilon": 1e-3}, [-2, -1])
    moments_norm("nn.layer_norm", [2, 3, 4], [4, 3], {"axes": [2, 1]}, [2, 1])
    moments_norm("nn.layer_norm", [2, 3, 4], [4], {"axes": [-1], "center": False}, [-1])
    moments_norm("nn.layer_norm", [2, 3, 4], [4], {"axes": [-1], "scale": False}, [-1])
    attrs = {"channel_axis": 1, "axes": [2, 3]}
    moments_norm("nn.instance_norm", ["n=2", 3, "h=3", 4], [3], attrs, [2, 3])
    moments_norm("nn.instance_norm", [2, 4, 3], [3], {"channel_axis": -1, "axes": [1]}, [1])
    for extra in ({"center": False}, {"scale": False}, {"epsilon": 1e-2}):
        moments_norm("nn.instance_norm", [2, 3, 3, 4], [3], {"channel_axis": 1, "axes": [2, 3], **extra}, [2, 3])

    def group_norm(dims, groups, channel, axes, dtype="float32", **extra):
        tensors = {"data": T(*dims, dtype=dtype)}
        tensors.update({name: T(dims[channel], dtype=dtype) for name in ("gamma", "beta")})

        def reference(x, gamma, beta):
            c = channel % x.ndim
            parted = x.reshape(x.shape[:c] + (groups, x.shape[c] // groups) + x.shape[c + 1:])
            over = [c + 1] + [a % x.ndim + (a % x.ndim > c) for a in axes]
            y = (parted - parted.mean(over, True)) / torch.sqrt(parted.var(over, correction=0, keepdim=True) + extra.get("epsilon", 1e-5))
            shape = [1] * x.ndim
            shape[c] = -1
            y = y.reshape(x.shape)
            y = y * gamma.reshape(shape) if extra.get("scale", True) else y
            return y + beta.reshape(shape) if extra.get("center", True) else y

        attrs = {"num_groups": groups, "channel_axis": channel, "axes": axes, **extra}
        case("nn.group_norm", tensors, attrs, reference)

    group_norm(["n=2", 6, "h=3", 2], 3, 1, [2, 3])
    group_norm([2, 4, 3], 2, 1, [2], "float16")
    group_norm([2, 3, 4], 2, -1, [1])
    group_norm([2, 4], 4, 1, [])
    group_norm([2, 6, 3], 1, 1, [2, 0])
    for extra in ({"center": False}, {"scale": False}, {"epsilon": 1e-2}):
        group_norm([2, 6, 3], 2, 1, [2], **extra)
    for dtype in ("float32", "float16"):
        tensors = {"data": T(2, "s=3", 8, dtype=dtype), "weight": T(8, dtype=dtype)}
        rms = lambda x, w: x / torch.sqrt((x * x).mean(-1, True) + 1e-6) * w  # noqa: E731
        case("nn.rms_norm", tensors, {"axes": [-1], "epsilon": 1e-6}, rms)
    tensors = {"data": T(2, 3, 4), "weight": T(3, 4)}
    case("nn.rms_norm", tensors, {"axes": [-2, -1]}, lambda x, w: x / torch.sqrt((x * x).mean((1, 2), True) + 1e-5) * w)


# --- the rest ------------------------------------------------------------------------------------------------------


def rearrangements():
    def padded(dims, widths, mode="constant", value=0.0, dtype="float32"):
        def reference(x):
            pairs = list(zip(widths[::2], widths[1::2]))
            if mode == "constant":
                return F.pad(x, pad_flat(pairs), value=value)
            name = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
            return torch.from_numpy(np.pad(x.numpy(), pairs, mode=name))

        case("nn.pad", {"data": T(*dims, dtype=dtype)}, {"pad_width": widths, "pad_mode": mode, "pad_value": value},
             reference)

    padded(["n=2", 3], [0, 1, 2, 3])
    padded([2, 3], [0, 1, 2, 0], value=1.5)
    padded([2, "m=5"], [1, 0, -1, -2])
    padded([3], [1, 2], dtype="int8", value=7.0)
    for mode in ("reflect", "replicate", "circular"):
        padded([2, "m=5", 4], [0, 0, 2, 3, 1, 0], mode)
    case("nn.pixel_shuffle", {"data": T("n=2", 8, 2, "w=3")}, {"upscale_factor": 2}, lambda x: F.pixel_shuffle(x, 2))
    case("nn.batch_flatten", {"data": T("n=2", 3, 2, 2)}, {}, lambda x: x.reshape(2, -1))
    case("nn.pixel_shuffle", {"data": T(9, 2, 2)}, {"upscale_factor": 3}, lambda x: F.pixel_shuffle(x, 3))


def products():
    def matmul(left, right, dtype="float32", **attrs):
        case("matmul", {"x1": T(*left, dtype=dtype), "x2": T(*right, dtype=dtype)}, attrs, torch.matmul)

    matmul(["m=3", "k=4"], ["k=4", "n=5"])
    matmul([4], [4])
    matmul([4], ["b=2", 4, 5])
    matmul(["b=2", 3, 4], [4])
    matmul([4], [4, 5])
    matmul([3, 4], [4])
    matmul(["b=2", 3, "s=4", 5], ["b=2", 3, 5, "s=4"])
    matmul(["b=2", 1, 3, 4], [5, 4, 2])
    matmul([3, 4], [2, 3, 4, 5])
    matmul([3, 40], [40, 5], dtype="float16")
    matmul([3, 40], [40, 5], dtype="float16", out_dtype="float32")
    matmul([3, 40], [40, 5], dtype="bfloat16")
    matmul([3, 40], [40, 5], dtype="int8", out_dtype="int32")
    case("outer", {"x1": T("n=3"), "x2": T(4)}, {}, torch.outer)

    def einsum(equation, *operands, dtype="float32"):
        tensors = {f"operands.{at}": T(*dims, dtype=dtype) for at, dims in enumerate(operands)}
        case("einsum", tensors, {"subscripts": equation}, lambda *xs: torch.einsum(equation, *xs))

    einsum("ij,jk->ik", ["n=2", 3], [3, 4])
    einsum("ii->i", [3, 3])
    einsum("ii", [3, 3])
    einsum("ij->ji", [2, 3])
    einsum("ij", [2, 3])
    einsum("...ij,...jk->...ik", [2, 1, 2, 3], [4, 3, 2])
    einsum("bhqd,bhkd->bhqk", [1, 2, "q=3", 4], [1, 2, "s=5", 4])
    einsum("i,i,i->", [3], [3], [3])
    einsum("ij,jk->ik", [2, 9], [9, 4], dtype="float16")


def empty_products():
    for left, right in [((3, "k=0"), ("k=0", 5)), (("b=2", "m=1", "k=0"), ("b=2", "k=0", 4)), (("k=0",), ("k=0",))]:
        case("matmul", {"x1": T(*left), "x2": T(*right)}, {}, torch.matmul)
    case("einsum", {"operands.0": T("n=2", "k=0"), "operands.1": T("k=0", 3)}, {"subscripts": "nk,km->nm"},
         lambda a, b: torch.einsum("nk,km->nm", a, b))


def reductions():
    for dims, axis, keepdims in [
        (["n=3", "m=4", 2], None, False),
        ([3, 4, 2], None, True),
        (["n=3", 4, 2], [1], False),
        (["n=3", 4, 2], [-1, 0], True),
        ([3, 4, 2], [], False),
    ]:
        attrs = {"keepdims": keepdims, **({} if axis is None else {"axis": axis})}

        def over(function):
            def reference(x):
                axes = list(range(x.ndim)) if axis is None else axis
                return function(x, axes) if axes else function(x.unsqueeze(0), [0]).squeeze(0)

            return reference

        table = {
            "sum": lambda x, a: x.sum(a, keepdim=keepdims),
            "mean": lambda x, a: x.mean(a, keepdim=keepdims),
            "max": lambda x, a: x.amax(a, keepdim=keepdims),
            "min": lambda x, a: x.amin(a, keepdim=keepdims),
            "prod": lambda x, a: torch.from_numpy(np.asarray(x.numpy().prod(tuple(a), keepdims=keepdims))),
            "variance": lambda x, a: x.var(a, correction=0, keepdim=keepdims),
            "std": lambda x, a: x.std(a, correction=0, keepdim=keepdims),
        }
        for op, function in table.items():
            # Without an axis the operator returns the tensor itself, and keepdims has no effect on `unsqueeze`.
            if axis == [] and keepdims:
                continue
            case(op, {"x": T(*dims)}, attrs, over(function))
    for op in ("sum", "mean", "max", "variance"):
        function = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax,
                    "variance": lambda x, a: x.var(a, correction=0)}[op]
        case(op, {"x": T(3, 9, dtype="float16")}, {"axis": [1]}, lambda x: function(x, 1))
    case("sum", {"x": T(2, 3, dtype="int32")}, {}, torch.sum)
    case("mean", {"x": T(2, 5, dtype="int32")}, {"axis": [1]}, lambda x: torch.trunc(x.mean(1)))
    case("max", {"x": T(2, 5, dtype="int8")}, {"axis": [1]}, lambda x: x.amax(1))
    case("min", {"x": T(2, 5, dtype="uint8")}, {"axis": [1]}, lambda x: x.amin(1))
    case("sum", {"x": T(0, 3)}, {"axis": [0]}, lambda x: x.sum(0))
    case("prod", {"x": T(3, 0)}, {"axis": [1]}, lambda x: x.prod(1))
    for dims, axis in [(["n=2", 3], 1), ([4, "m=3"], 0), ([2, 3, 2], -2), ([2, 3], None)]:
        attrs = {} if axis is None else {"axis": axis}
        x = {"data": T(*dims)}
        flat = lambda x: (x.reshape(-1), 0) if axis is None else (x, axis)  # noqa: E731
        case("cumsum", x, attrs, lambda x: torch.cumsum(*flat(x)))
        case("cumprod", x, attrs, lambda x: torch.cumprod(*flat(x)))

        def exclusive(x):
            x, a = flat(x)
            return torch.cumsum(x, a) - x

        case("cumsum", x, {**attrs, "exclusive": True}, exclusive)
        case("cumsum", x, {**attrs, "exclusive": False}, lambda x: torch.cumsum(*flat(x)))

        def product_before(x):
            x, a = flat(x)
            ones = torch.ones_like(x.narrow(a, 0, 1))
            return torch.cumprod(torch.cat([ones, x.narrow(a, 0, x.shape[a] - 1)], a), a)

        case("cumprod", x, {**attrs, "exclusive": True}, product_before)
        case("cumprod", x, {**attrs, "exclusive": False}, lambda x: torch.cumprod(*flat(x)))
    case("cumprod", {"data": T(5, dtype="int8")}, {"axis": 0, "dtype": "int32"}, lambda x: torch.cumprod(x, 0))
    case("cumsum", {"data": T(6, dtype="int8")}, {"axis": 0, "dtype": "int32"}, lambda x: torch.cumsum(x, 0))
    case("cumsum", {"data": T(9, dtype="float16")}, {"axis": 0}, lambda x: torch.cumsum(x, 0))
    for dims, axis, keepdims in [(["n=3", 5], [1], False), ([3, 4, 2], [1], True), ([4, 3], [0], False)]:
        def median(x):
            found = x.median(axis[0], keepdim=keepdims)
            return found.values, found.indices

        case("median", {"x": T(*dims, kind="distinct")}, {"axis": axis, "keepdims": keepdims}, median)
    case("median", {"x": T(3, 4, kind="distinct")}, {}, torch.median)


def attend(q, k, v, attrs, bias=None):
    """Computes attention of (batch, sequence, heads, element), with TVM's masks."""
    q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    v = v.repeat_interleave(q.shape[1] // v.shape[1], 1)
    scale = attrs.get("scale")
    score = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    score = score if bias is None else score + bias
    rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None, :]
    offset = 0 if attrs.get("causal_mask") == "TopLeft" else abs(k.shape[2] - q.shape[2])
    seen = torch.ones(score.shape[-2:], dtype=torch.bool)
    if attrs.get("causal_mask"):
        seen &= columns <= rows + offset
    if attrs.get("window_size") is not None:
        seen &= rows + offset - columns < attrs["window_size"]
    score = score.masked_fill(~seen, -math.inf)
    return (F.softmax(score, -1) @ v).permute(0, 2, 1, 3)


def attentions():
    def attention(q, k, v, bias=None, dtype="float32", **attrs):
        tensors = {"query": T(*q, dtype=dtype), "key": T(*k, dtype=dtype), "value": T(*v, dtype=dtype)}
        if bias:
            tensors["bias"] = T(*bias, dtype=dtype)
        reference = lambda q, k, v, bias=None: attend(q, k, v, attrs, bias)  # noqa: E731
        case("nn.attention_bias" if bias else "nn.attention", tensors, attrs, reference)

    attention(["b=1", "s=3", 2, 4], ["b=1", "t=5", 2, 4], ["b=1", "t=5", 2, 3])
    attention([1, 3, 4, 4], [1, 5, 2, 4], [1, 5, 2, 4], scale=0.3)
    attention([2, 4, 2, 4], [2, 4, 2, 4], [2, 4, 2, 4], causal_mask="TopLeft")
    attention([1, 3, 2, 4], [1, "t=5", 2, 4], [1, "t=5", 2, 4], causal_mask="BottomRight")
    attention([1, "s=5", 2, 4], [1, "t=3", 2, 4], [1, "t=3", 2, 4], causal_mask="BottomRight")
    attention([1, 5, 2, 4], [1, 3, 2, 4], [1, 3, 2, 4], causal_mask="TopLeft")
    attention([1, 4, 1, 4], [1, 4, 1, 4], [1, 4, 1, 4], causal_mask="BottomRight", window_size=2)
    attention([2, 3, 2, 4], [2, 5, 2, 4], [2, 5, 2, 4], bias=[2, 1, 3, 5])
    attention([1, 3, 2, 4], [1, 5, 2, 4], [1, 5, 2, 4], bias=[1, 2, 1, 5], dtype="float16")
    attention([1, 3, 2, 4], [1, 5, 2, 4], [1, 5, 2, 4], bias=[1, 2, 3, 5], causal_mask="TopLeft", scale=0.25)
    attention([1, 3, 2, 4], [1, 5, 2, 4], [1, 5, 2, 4], bias=[1, 2, 3, 5], causal_mask="BottomRight", window_size=2)

    def sequences(starts_q, starts_k=None, heads=(2, 2), elements=(4, 4), dtype="float32", symbolic=False, **attrs):
        """Adds a case of attention over concatenated sequences. Two queries after the last start belong to no
        sequence."""
        behind = 2
        q = f"q={starts_q[-1] + behind}" if symbolic else starts_q[-1] + behind
        k = q if starts_k is None else f"k={starts_k[-1]}" if symbolic else starts_k[-1]
        tensors = {
            "queries": T(1, q, heads[0], elements[0], dtype=dtype),
            "keys": T(1, k, heads[1], elements[0], dtype=dtype),
            "values": T(1, k, heads[1], elements[1], dtype=dtype),
            "seqstart_q": T(len(starts_q), dtype="int32", kind=starts_q),
            "max_seqlen_q": T(dtype="int32", kind=[max(np.diff(starts_q))]),
        }
        if starts_k is not None:
            tensors["seqstart_k"] = T(len(starts_k), dtype="int32", kind=starts_k)
            tensors["max_seqlen_k"] = T(dtype="int32", kind=[max(np.diff(starts_k))])

        def reference(q, k, v, *_):
            out = torch.zeros(*q.shape[:3], v.shape[3])
            for at in range(len(starts_q) - 1):
                rows = slice(starts_q[at], starts_q[at + 1])
                columns = slice(*(starts_k or starts_q)[at:at + 2])
                if columns.stop > columns.start:
                    out[:, rows] = attend(q[:, rows], k[:, columns], v[:, columns], attrs)
            return out

        case("nn.attention_var_len", tensors, attrs, reference)

    sequences([0, 2, 5])
    sequences([0, 2, 2, 5], symbolic=True)
    sequences([0, 3, 4], [0, 2, 6], heads=(4, 2), elements=(4, 3), scale=0.4, symbolic=True)
    sequences([0, 3, 5], [0, 0, 4])
    for mask in ("TopLeft", "BottomRight"):
        sequences([0, 2, 6], [0, 5, 7], causal_mask=mask)
    sequences([0, 4, 7], causal_mask="BottomRight", window_size=2)
    sequences([0, 2, 5], dtype="float16")


def empty_reductions():
    """Reductions over axes that are empty at run time only. The result is the identity of the reduction; for min and
    max it is NumPy's result with that initial value."""
    for dims, axis, keepdims in [(["n=0", 3], [0], False), ([2, "m=0", 3], [1], True), (["n=0", "m=2"], None, False)]:
        attrs = {"keepdims": keepdims, **({} if axis is None else {"axis": axis})}
        axes = tuple(axis or range(len(dims)))

        def numpys(function, **options):
            return lambda x: torch.from_numpy(np.asarray(function(x.numpy(), axis=axes, keepdims=keepdims, **options)))

        with np.errstate(all="ignore"):
            case("sum", {"x": T(*dims)}, attrs, numpys(np.sum))
            case("prod", {"x": T(*dims)}, attrs, numpys(np.prod))
            case("max", {"x": T(*dims)}, attrs, numpys(np.max, initial=-np.inf))
            case("min", {"x": T(*dims)}, attrs, numpys(np.min, initial=np.inf))
            case("mean", {"x": T(*dims)}, attrs, lambda x: x.mean(axes, keepdim=keepdims))
        case("max", {"x": T(*dims, dtype="int8")}, attrs, numpys(np.max, initial=-128))
        case("min", {"x": T(*dims, dtype="uint8")}, attrs, numpys(np.min, initial=255))


def losses():
    for dims in (["n=3", 4], [5], [2, 3, 2]):
        scaled = lambda p, l: -(p * l).sum() / (p.shape[0] if p.ndim > 1 else 1)  # noqa: E731
        case("nn.cross_entropy_with_logits", {"predictions": T(*dims), "labels": T(*dims)}, {}, scaled)
    for reduction in ("none", "sum", "mean"):
        for weighted in (False, True):
            for p, t in ((["n=3", 4], ["n=3"]), ([2, 4, 3, 2], [2, 3, 2]), ([4], [])):
                tensors = {"predictions": T(*p), "targets": T(*t, dtype="int64", kind="below 4")}
                if weighted:
                    tensors["weights"] = T(4, kind="positive")
                for ignored in (-100, 1):
                    # If no target counts, the mean is 0 / 0.
                    def nll(p, t, w=None):
                        return F.nll_loss(p, t.long(), w, reduction=reduction, ignore_index=ignored)

                    case("nn.nll_loss", tensors, {"reduction": reduction, "ignore_index": ignored}, nll)


# --- gradients, by automatic differentiation -----------------------------------------------------------------------


def gradient(function, x, output_grad):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x), x, output_grad)[0]


def gradients():
    for name in ("no_grad", "start_checkpoint", "end_checkpoint"):
        case(f"grad.{name}", {"input": T("n=3", 4)}, {}, lambda x: x)

    for reduction in ("none", "sum", "mean"):
        for weighted in (False, True):
            for p, t in ((["n=3", 4], ["n=3"]), ([2, 4, 3, 2], [2, 3, 2]), ([4], [])):
                for ignored in (-100, 1):
                    tensors = {"output_grad": T(*t if reduction == "none" else []), "predictions": T(*p),
                               "targets": T(*t, dtype="int64", kind="below 4")}
                    if weighted:
                        tensors["weights"] = T(4, kind="positive")

                    def backward(g, p, t, w=None):
                        def loss(p):
                            return F.nll_loss(p, t.long(), w, reduction=reduction, ignore_index=ignored)

                        return gradient(loss, p, g)

                    case("grad.nll_loss_backward", tensors, {"reduction": reduction, "ignore_index": ignored}, backward)
    tensors = {"output_grad": T(), "predictions": T(3, 4, dtype="float16"), "targets": T(3, dtype="int32", kind="below 4")}
    case("grad.nll_loss_backward", {**tensors, "output_grad": T(dtype="float16")}, {},
         lambda g, p, t: gradient(lambda p: F.nll_loss(p, t.long()), p, g))


def pool_gradients():
    def pool(kind, data, dtype="float32", tied=False, **attrs):
        layout = attrs.get("layout", "NCHW")
        out_layout = attrs.get("out_layout", layout)
        k, s, d = (spread(attrs.get(name, 1), 2) for name in ("pool_size", "strides", "dilation"))
        pads, ceil_mode = sides(attrs.get("padding", 0), 2), attrs.get("ceil_mode", False)

        def pooled(x):
            """Computes a pooling from the elements of each window, so that paddings may be uneven and average pooling
            may be dilated."""
            extents = [pooled_extent(n, *rest, ceil_mode) for n, *rest in zip(x.shape[2:], k, pads, s, d)]
            rows = []
            for row in range(extents[0]):
                for column in range(extents[1]):
                    taps = [[at * step - pad[0] + j * gap for j in range(size)]
                            for at, step, pad, gap, size in zip((row, column), s, pads, d, k)]
                    within = [[i for i in t if 0 <= i < n] for t, n in zip(taps, x.shape[2:])]
                    window = x[:, :, within[0]][:, :, :, within[1]].flatten(2)
                    if kind == "max":
                        # `max` along one axis passes the gradient to one element, the first.
                        rows.append(window.max(2).values)
                        continue
                    counted = [[i for i in t if -p[0] <= i < n + p[1]] for t, n, p in zip(taps, x.shape[2:], pads)]
                    count = math.prod(map(len, counted if attrs.get("count_include_pad", False) else within))
                    rows.append(window.sum(2) / max(count, 1))
            return torch.stack(rows, 2).reshape(*x.shape[:2], *extents)

        plain = from_layout(torch.zeros(data), "NCHW", layout)
        result = to_layout(pooled(plain), "NCHW", out_layout)
        attrs = {name: [value] * 2 if isinstance(value, int) and not isinstance(value, bool) else value
                 for name, value in attrs.items()}

        def reference(g, x):
            x, g = from_layout(x, "NCHW", layout), from_layout(g, "NCHW", out_layout)
            return to_layout(gradient(pooled, x, g), "NCHW", layout)

        tensors = {"output_grad": T(*result.shape, dtype=dtype),
                   "data": T(*data, dtype=dtype, kind="below 3" if tied else "distinct")}
        case(f"grad.{kind}_pool2d_backward", tensors, attrs, reference)

    for kind in ("max", "avg"):
        pool(kind, [2, 2, 6, 7], pool_size=[2, 3])
        pool(kind, [1, 2, 7, 8], pool_size=3, strides=2, padding=[1, 1, 1, 1])
        pool(kind, [1, 2, 7, 8], pool_size=3, strides=2, padding=[1, 1, 1, 1], count_include_pad=True)
        pool(kind, [1, 2, 7, 8], pool_size=[3, 2], strides=[2, 3], padding=[1, 0, 2, 1], dilation=[1, 2])
        pool(kind, [1, 2, 6, 7], pool_size=3, strides=2, ceil_mode=True)
        pool(kind, [1, 5, 6, 3], pool_size=2, strides=2, layout="NHWC")
        pool(kind, [1, 2, 4, 4, 4], pool_size=2, strides=2, layout="NCHW4c", out_layout="NHWC")
        pool(kind, [1, 2, 5, 5], pool_size=3, tied=True)
        pool(kind, [1, 2, 4, 4], pool_size=2, dtype="float16")


def take_gradients():
    def take(x, indices, axis=None, dtype="float32", **attrs):
        extents = [int(str(dim).split("=")[-1]) for dim in x]
        length = extents[axis or 0]
        held = np.asarray(indices)
        shape = list(held.shape) if axis is None else x[:axis] + list(held.shape) + x[axis:][1:]
        inside = (held >= 0) & (held < length)
        is_missing = attrs.get("mode") == "nan" and not inside.all()
        clipped = held.clip(0, length - 1)
        places = {"wrap": held % length, "clip": clipped, "nan": clipped}.get(attrs.get("mode"), held)

        def reference(g, x, _):
            def taken(x):
                flat = x.index_select(axis or 0, torch.from_numpy(places.reshape(-1)))
                flat = flat.reshape(g.shape)
                if not is_missing:
                    return flat
                there = torch.from_numpy(inside).reshape([-1] + [1] * (g.ndim - inside.ndim - (axis or 0)))
                return torch.where(there, flat, math.nan)

            return gradient(taken, x, g)

        tensors = {"output_grad": T(*shape, dtype=dtype), "x": T(*x, dtype=dtype),
                   "indices": T(*held.shape, dtype="int64", kind=held.reshape(-1).tolist())}
        case("grad.take_backward", tensors, {**attrs, **({} if axis is None else {"axis": axis})}, reference)

    take(["n=5"], [0, 3, 3, 1])
    take(["n=3", 4], [2, 0, 2, 2], axis=0)
    take([3, "m=4", 2], [1, 1, 3], axis=1)
    take([3, 4, 2], [[1, 0], [1, 1]], axis=-1 % 3)
    take([2, 5], [0, 0, 0], axis=1, dtype="float16")
    take([4, 2], [-1, 5, 2], axis=0, mode="wrap")
    take([4, 2], [-1, 5, 2], axis=0, mode="clip")
    for mode in ("fast", ""):
        take(["n=3", 2], [2, 0, 2], axis=0, mode=mode)
        take(["n=5"], [4, 0], mode=mode)
    # Elements that were out of range are NaN in the result, so they do not depend on `x`.
    take(["n=4", 2], [1, 4, 3, 1], axis=0, mode="nan")
    take(["n=4"], [1, -1, 1, 9], mode="nan")


# --- detection -----------------------------------------------------------------------------------------------------


def regions():
    boxes = [0, 1, 1, 6, 5, 1, 0.5, 2.25, 3.25, 7.75, 0, -2.75, -2.25, 2.5, 2.375, 1, 4, 4, 4.25, 4.125, 0, 5, 3, 20, 20]

    def align(data, pooled, scale, ratio, aligned, mode, layout="NCHW", dtype="float32", n=5):
        attrs = {"pooled_size": pooled, "spatial_scale": scale, "sample_ratio": ratio, "aligned": aligned,
                 "layout": layout, "mode": mode}
        size = spread(pooled, 2)

        def of_region(x, roi):
            if aligned:
                # TVM leaves the shift by half a pixel to the caller.
                roi = torch.cat([roi[:, :1], roi[:, 1:] + 0.5 / scale], 1)
            if mode == "avg":
                return torchvision.ops.roi_align(x, roi, size, scale, ratio, aligned)
            # The samples of an output are the outputs of a finer pooling with one sample each.
            low = 0.0 if aligned else 1.0
            fine = [ratio if ratio > 0 else math.ceil(max((roi[0, at + 2] - roi[0, at]).item() * scale, low) / n)
                    for at, n in zip((2, 1), size)]
            samples = torchvision.ops.roi_align(x, roi, [n * f for n, f in zip(size, fine)], scale, 1, aligned)
            return F.max_pool2d(samples, fine)

        def reference(x, rois):
            x = from_layout(x, "NCHW", layout)
            return to_layout(torch.cat([of_region(x, roi[None]) for roi in rois]), "NCHW", layout)

        tensors = {"data": T(*data, dtype=dtype), "rois": T(f"r={n}", 5, dtype=dtype, kind=boxes[: 5 * n])}
        case("vision.roi_align", tensors, attrs, reference)

    for mode in ("avg", "max"):
        for aligned in (False, True):
            for ratio in (-1, 0, 2):
                align([2, 2, "h=8", "w=9"], [3, 2], 1.0, ratio, aligned, mode)
                align([2, 8, 9, 2], 2, 0.5, ratio, aligned, mode, layout="NHWC", n=3)
    align([2, 2, 8, 9], [3, 2], 1.0, 2, False, "avg", dtype="float16")
    align([2, 2, 8, 9], [3, 2], 0.75, 3, True, "max", dtype="float64")

    def pool(data, pooled, scale, dtype="float32"):
        attrs = {"pooled_size": pooled, "spatial_scale": scale}
        reference = lambda x, rois: torchvision.ops.roi_pool(x, rois, spread(pooled, 2), scale)  # noqa: E731
        rois = boxes + [0, 12, 12, 15, 14]
        case("vision.roi_pool", {"data": T(*data, dtype=dtype), "rois": T(6, 5, dtype=dtype, kind=rois)}, attrs, reference)

    pool([2, 2, "h=8", "w=9"], [3, 2], 1.0)
    pool([2, 2, 8, 9], 2, 0.5)
    pool([2, 2, 8, 9], [2, 4], 0.75)
    pool([2, 2, 8, 9], [3, 3], 1.0, dtype="float16")


def multiboxes():
    """Decodes boxes of single-shot detectors, as TFLite's `DecodeCenterSizeBoxes` does."""
    anchors = [0.1, 0.2, 0.5, 0.4, 0.0, 0.0, 1.0, 1.0, 0.4, 0.6, 0.9, 0.7, -0.5, 0.25, 0.75, 1.5, 0.3, 0.3, 0.4, 0.4]

    def multibox(batch="b=2", classes=3, boxes="n=5", dtype="float32", **attrs):
        x, y, w, h = attrs.get("variances", [1.0, 1.0, 1.0, 1.0])

        def reference(scores, encoded, anchors):
            encoded = encoded.reshape(scores.shape[0], -1, 4)
            left, top, right, bottom = anchors[0].T
            across, along = encoded[..., 0] * x, encoded[..., 1] * y
            centre_x, centre_y = across * (right - left) + (left + right) / 2, along * (bottom - top) + (top + bottom) / 2
            width, height = torch.exp(encoded[..., 2] * w) * (right - left), torch.exp(encoded[..., 3] * h) * (bottom - top)
            corners = [centre_y - height / 2, centre_x - width / 2, centre_y + height / 2, centre_x + width / 2]
            corners = torch.stack(corners, -1)
            corners = corners.clamp(0, 1) if attrs.get("clip") else corners
            kept = torch.softmax(scores, 1) if attrs.get("apply_softmax", True) else scores.clone()
            kept = torch.where(kept >= attrs.get("threshold", 0.0), kept, 0.0)
            if not attrs.get("keep_background", True):
                kept[:, 0] = 0
            return corners, kept

        tensors = {"cls_pred": T(batch, classes, boxes, dtype=dtype), "loc_pred": T(batch, 20, dtype=dtype),
                   "anchor": T(1, boxes, 4, dtype=dtype, kind=anchors)}
        case("vision.multibox_transform_loc", tensors, attrs, reference)

    multibox(boxes=5)
    multibox(boxes=5, clip=True, threshold=0.3, keep_background=False)
    multibox(boxes=5, apply_softmax=False, threshold=0.25, variances=[0.1, 0.2, 0.3, 0.4])
    multibox(boxes=5, dtype="float16", variances=[0.1, 0.1, 0.2, 0.2])


def draws():
    prob = [0.125, 0.25, 0.5, 0.125, 0.0, 1.0, 0.0, 0.0, 0.25, 0.25, 0.25, 0.25]
    for dtype, wanted in (("float32", None), ("float64", "int32"), ("float16", "int64")):
        def reference(prob, samples, rows):
            rows = prob[rows.long()[:, 0]].cumsum(-1)
            drawn = torch.searchsorted(rows, samples, right=True).clamp(max=prob.shape[1] - 1)
            return drawn.to(torch.float64) if wanted == "int32" else drawn

        samples = [0.0, 0.125, 0.3, 0.9, 0.999, 0.0, 0.5]
        tensors = {"prob": T(3, "v=4", dtype=dtype, kind=prob), "uniform_sample": T("n=7", 1, dtype=dtype, kind=samples),
                   "sample_indices": T("n=7", 1, dtype="int64", kind=[0, 0, 0, 0, 2, 1, 2])}
        case("multinomial_from_uniform", tensors, {"dtype": wanted} if wanted else {}, reference)


def main():
    torch.set_default_dtype(torch.float64)
    families = {
        "convolution": [convolutions, transposed_convolutions],
        "pooling": [poolings, adaptive_poolings],
        "activation": [activations],
        "normalisation": [normalisations],
        "rearrange": [rearrangements],
        "product": [products, attentions, empty_products],
        "reduction": [reductions, empty_reductions, losses],
        "gradient": [gradients, pool_gradients, take_gradients],
        "detection": [regions, multiboxes, draws],
    }
    for family, parts in families.items():
        CASES.clear()
        for part in parts:
            part()
        path = f"{sys.argv[1]}/nn_{family}.jsonl"
        with open(path, "w", encoding="utf-8") as out:
            for row in CASES:
                out.write(json.dumps(row, separators=(",", ":")) + "\n")
        print(f"{path}: {len(CASES)} cases")


main()
