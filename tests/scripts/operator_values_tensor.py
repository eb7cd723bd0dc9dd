#!/usr/bin/env python3
"""Generates reference values of the operators on tensors, for compiler/ops/tests/suite/values_tensor.rs.

    pip install numpy==2.4.6 ml_dtypes==0.6.0 onnx==1.23.2 onnxruntime==1.32.0
    operator_values_tensor.py tests/operators

Writes tensor_*.json there: one case a line, the call (operands, attributes), the symbols' values, inputs and results. Values
are NumPy's; of `image.*` those of ONNX's reference evaluator, and onnxruntime's where that has no such mode. All random numbers come from the seed below.
"""

import json
import math
import pathlib
import sys

import ml_dtypes
import numpy as np
import onnx
import onnx.helper as oh
import onnxruntime
from onnx.reference import ReferenceEvaluator

SEED = 20261121
rng = np.random.default_rng(SEED)
cases = {}
BF16 = ml_dtypes.bfloat16


def number(value):
    """Returns a JSON number, or the name of a value that JSON cannot represent."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(value, bool) else value


def flat(array):
    """Returns the elements in order; floats narrower than 64 bits with no more digits than needed."""
    array = np.asarray(array)
    if array.dtype == np.float32:
        return [number(x if not np.isfinite(x) else float(str(x))) for x in array.ravel()]
    if array.dtype in (np.float16, BF16):
        return [number(float(x)) for x in array.ravel()]
    return [number(x) for x in array.ravel()]


def tensor(array, dims=None):
    """Describes a tensor; `dims` gives its dims if they are not just its extents: `["n", 3]`."""
    array = np.asarray(array)
    return {"tensor": dims or list(array.shape), "dtype": str(array.dtype), "data": flat(array), "_": array}


def const(value, dtype):
    """Describes `R.const(value, dtype)`."""
    return {"const": number(value), "dtype": dtype}


def prim(value, dtype=None):
    """Describes a scalar: `3`, `T.int64(3)`, `n + 1`."""
    return {"prim": number(value) if not isinstance(value, str) else value, "dtype": dtype}


def shape(*dims):
    return {"shape": list(dims)}


def tuple_of(*fields):
    return {"tuple": list(fields)}


def clean(value):
    if isinstance(value, dict):
        return {key: clean(part) for key, part in value.items() if key != "_"}
    if isinstance(value, list):
        return [clean(part) for part in value]
    return value


def case(family, operator, args, results, symbols=None, tolerance=None):
    """Adds one row. `results` is an array or a list of arrays."""
    results = results if isinstance(results, list) else [results]
    row = {"operator": operator, "args": {}, "symbols": symbols or {}, "results": []}
    if tolerance:
        row["tolerance"] = tolerance
    for name, value in args.items():
        row["args"][name] = clean(value) if isinstance(value, dict) else {"attr": value}
    for result in results:
        result = np.asarray(result)
        row["results"].append({"shape": list(result.shape), "dtype": str(result.dtype), "data": flat(result)})
    cases.setdefault(family, []).append(row)


def floats(*dims, low=-2.0, high=2.0, dtype=np.float32):
    return rng.uniform(low, high, dims).astype(dtype)


def ints(*dims, low=-9, high=10, dtype=np.int32):
    return rng.integers(low, high, dims).astype(dtype)


def elementwise():
    x = np.array([[-2.5, -0.5, 0.0], [0.5, 1.5, 2.5], [np.inf, -np.inf, np.nan]], np.float32)
    unit = floats(2, 3, low=-0.9, high=0.9)
    above = floats(2, 3, low=1.1, high=5.0)
    erf = np.vectorize(math.erf)
    sigmoid = lambda x: 1 / (1 + np.exp(-x.astype(np.float64)))
    functions = {
        "acos": (np.arccos, unit),
        "acosh": (np.arccosh, above),
        "asin": (np.arcsin, unit),
        "asinh": (np.arcsinh, unit),
        "atan": (np.arctan, x),
        "atanh": (np.arctanh, unit),
        "cos": (np.cos, unit),
        "cosh": (np.cosh, unit),
        "erf": (erf, x),
        "exp": (np.exp, x),
        "log": (np.log, above),
        "rsqrt": (lambda x: 1 / np.sqrt(x), above),
        "sigmoid": (sigmoid, x),
        "sin": (np.sin, unit),
        "sinh": (np.sinh, unit),
        "sqrt": (np.sqrt, above),
        "tan": (np.tan, unit),
        "tanh": (np.tanh, x),
        "abs": (np.abs, x),
        "ceil": (np.ceil, x),
        "floor": (np.floor, x),
        "isfinite": (np.isfinite, x),
        "isinf": (np.isinf, x),
        "isnan": (np.isnan, x),
        "negative": (np.negative, x),
        "round": (np.round, x),
        "square": (np.square, x),
        "trunc": (np.trunc, x),
    }
    for name, (function, data) in functions.items():
        wide = function(data.astype(np.float64))
        dtype = bool if wide.dtype == bool else np.float32
        case("elementwise", name, {"x": tensor(data, ["n", 3])}, wide.astype(dtype), {"n": data.shape[0]})
        if name in ("exp", "sigmoid", "tanh", "rsqrt", "erf", "negative", "isnan", "round"):
            for narrow in (np.float16, BF16):
                half = data.astype(narrow)
                result = function(half.astype(np.float64))
                dtype = bool if result.dtype == bool else narrow
                case("elementwise", name, {"x": tensor(half)}, result.astype(dtype))
            case("elementwise", name, {"x": tensor(data.astype(np.float64))}, function(data.astype(np.float64)))
    finite = x[:2]
    case("elementwise", "sign", {"x": tensor(finite)}, np.sign(finite))
    whole = np.array([-128, -3, 0, 5, 127], np.int8)
    unsigned = np.array([0, 1, 7, 200, 255], np.uint8)
    truths = np.array([True, False, True])
    for data in (whole, unsigned, whole.astype(np.int64)):
        for name, function in [
            ("abs", np.abs),
            ("negative", np.negative),
            ("sign", np.sign),
            ("square", np.square),
            ("bitwise_not", np.invert),
            ("floor", lambda x: x),
            ("round", lambda x: x),
            ("isnan", np.isnan),
            ("isfinite", np.isfinite),
            ("logical_not", lambda x: np.logical_not(x).astype(x.dtype)),
        ]:
            case("elementwise", name, {"x": tensor(data)}, function(data))
    for name in ("bitwise_not", "logical_not"):
        case("elementwise", name, {"x": tensor(truths)}, np.logical_not(truths))
    case("elementwise", "logical_not", {"x": tensor(finite)}, np.logical_not(finite).astype(np.float32))
    for low, high in [(-1.0, 1.5), (0, 6), (-math.inf, 0.5), (2, 1)]:
        wide = np.maximum(np.minimum(finite, np.float32(high)), np.float32(low))
        case(
            "elementwise",
            "clip",
            {
                "x": tensor(finite),
                "min": prim(low) if math.isfinite(low) else {"prim": "-inf", "dtype": "float32"},
                "max": prim(high),
            },
            wide,
        )
    case("elementwise", "clip", {"x": tensor(whole), "min": prim(-1000), "max": prim(3)}, np.minimum(whole, 3))
    case("elementwise", "clip", {"x": tensor(unsigned), "min": prim(-5), "max": prim(100)}, np.minimum(unsigned, 100))
    case("elementwise", "clip", {"x": tensor(whole), "min": prim(0.5), "max": prim(4.9)}, np.clip(whole, 1, 4))
    case("elementwise", "clip", {"x": tensor(whole), "min": prim(0), "max": prim("n")}, np.clip(whole, 0, 4), {"n": 4})
    for source in (np.array([-1.9, 0.0, 2.5, 100.7], np.float32), whole, unsigned, truths, floats(3, dtype=np.float16)):
        for target in (np.int8, np.int32, np.int64, np.float16, BF16, np.float32, np.float64, bool):
            case("elementwise", "astype", {"x": tensor(source), "dtype": np.dtype(target).name}, source.astype(target))
    half = floats(2, 2, dtype=np.float16)
    case("elementwise", "wrap_param", {"data": tensor(half), "dtype": "float32"}, half.astype(np.float32))
    a, b, c = floats(2, 3), floats(2, 3), floats(2, 3)
    case("elementwise", "ewise_fma", {"x1": tensor(a), "x2": tensor(b), "x3": tensor(c)}, a * b + c)
    condition = rng.random((4, 1, 3)) < 0.5
    p, q = floats(2, 1), floats(4, 1, 1)
    case(
        "elementwise",
        "where",
        {"condition": tensor(condition, ["n", 1, 3]), "x1": tensor(p), "x2": tensor(q, ["n", 1, 1])},
        np.where(condition, p, q),
        {"n": 4},
    )
    case(
        "elementwise",
        "where",
        {"condition": tensor(condition), "x1": const(1.5, "float32"), "x2": tensor(q)},
        np.where(condition, np.float32(1.5), q),
    )


def binary():
    x, y = floats(2, 1, 3), floats(4, 1)
    positive = floats(2, 1, 3, low=0.1, high=3.0)
    special = np.array([np.inf, -np.inf, 1.0, -2.0], np.float32)
    i, j = ints(2, 1, 5, low=-20, high=20), np.array([[-7], [-1], [2], [3]], np.int32)
    u, v = ints(5, low=0, high=256, dtype=np.uint8), np.array([1, 2, 3, 100, 255], np.uint8)
    b, c = np.array([[True], [False]]), np.array([True, False])
    trunc = lambda a, b: (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)
    arithmetic = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
    compare = {
        "equal": np.equal,
        "not_equal": np.not_equal,
        "less": np.less,
        "less_equal": np.less_equal,
        "greater": np.greater,
        "greater_equal": np.greater_equal,
    }
    dims = {"x1": ["n", 1, 3], "x2": ["m", 1]}
    for name, function in (arithmetic | compare).items():
        case("binary", name, {"x1": tensor(x, dims["x1"]), "x2": tensor(y, dims["x2"])}, function(x, y), {"n": 2, "m": 4})
        case("binary", name, {"x1": tensor(i), "x2": tensor(j)}, function(i, j))
        case("binary", name, {"x1": tensor(u), "x2": tensor(v)}, function(u, v))
        case("binary", name, {"x1": tensor(x), "x2": const(0.5, "float32")}, function(x, np.float32(0.5)))
        case("binary", name, {"x1": prim(0.25, "float32"), "x2": tensor(x)}, function(np.float32(0.25), x))
        case("binary", name, {"x1": tensor(i.astype(np.int64)), "x2": prim(3)}, function(i.astype(np.int64), 3))
        case("binary", name, {"x1": tensor(i), "x2": prim("n", "int32")}, function(i, np.int32(3)), {"n": 3})
        for narrow in (np.float16, BF16, np.float64):
            a, d = x.astype(narrow), y.astype(narrow)
            case("binary", name, {"x1": tensor(a), "x2": tensor(d)}, function(a, d))
    for name, function in compare.items():
        case("binary", name, {"x1": tensor(i), "x2": tensor(y)}, function(i.astype(np.float32), y))
        case(
            "binary",
            name,
            {"x1": tensor(u), "x2": tensor(i[0, 0].astype(np.int8))},
            function(u.astype(np.int16), i[0, 0].astype(np.int16)),
        )
        case("binary", name, {"x1": tensor(b), "x2": tensor(c)}, function(b, c))
    case("binary", "add", {"x1": tensor(b), "x2": tensor(c)}, np.logical_or(b, c))
    case("binary", "multiply", {"x1": tensor(b), "x2": tensor(c)}, np.logical_and(b, c))
    case("binary", "multiply", {"x1": tensor(y), "x2": tensor(c)}, y * c.astype(np.float32))
    case("binary", "add", {"x1": tensor(np.int8([100, -100])), "x2": tensor(np.int8([100, -100]))}, np.int8([-56, 56]))
    case("binary", "divide", {"x1": tensor(x), "x2": tensor(y)}, x / y)
    case("binary", "divide", {"x1": tensor(x), "x2": const(0.0, "float32")}, np.where(x < 0, -np.inf, np.inf).astype(np.float32))
    case("binary", "divide", {"x1": tensor(i), "x2": tensor(j)}, trunc(i, j))
    case("binary", "divide", {"x1": tensor(u), "x2": tensor(v)}, u // v)
    case("binary", "floor_divide", {"x1": tensor(i), "x2": tensor(j)}, i // j)
    case("binary", "floor_divide", {"x1": tensor(x), "x2": tensor(y)}, np.floor(x / y))
    case("binary", "floor_mod", {"x1": tensor(i), "x2": tensor(j)}, np.mod(i, j))
    case("binary", "floor_mod", {"x1": tensor(x * 3), "x2": tensor(y)}, np.mod(x * 3, y), tolerance=1e-5)
    case("binary", "mod", {"x1": tensor(i), "x2": tensor(j)}, np.fmod(i, j))
    case("binary", "mod", {"x1": tensor(x * 3), "x2": tensor(y)}, np.fmod(x * 3, y), tolerance=1e-5)
    case("binary", "power", {"x1": tensor(positive), "x2": tensor(y)}, np.power(positive, y))
    for exponent in (2.0, 3.0, 0.5, -1.0):
        case(
            "binary",
            "power",
            {"x1": tensor(positive), "x2": const(exponent, "float32")},
            np.power(positive, np.float32(exponent)),
        )
    bases, exponents = np.int32([[-3], [-1], [0], [1], [2], [10]]), np.int32([0, 1, 2, 5, 9])
    case("binary", "power", {"x1": tensor(bases), "x2": tensor(exponents)}, np.power(bases, exponents))
    case("binary", "power", {"x1": tensor(bases.astype(np.int64)), "x2": prim(3)}, bases.astype(np.int64) ** 3)
    case(
        "binary",
        "power",
        {"x1": tensor(np.uint8([0, 1, 3, 7])), "x2": tensor(np.uint8([0, 200, 6, 3]))},
        np.power(np.uint8([0, 1, 3, 7]), np.uint8([0, 200, 6, 3])),
    )
    case(
        "binary",
        "power",
        {"x1": tensor(np.int32([-1, -1, 1, 2, -5, 0])), "x2": tensor(np.int32([-3, -2, -9, -1, -1, -1]))},
        np.int32([-1, 1, 1, 0, 0, 0]),
    )
    case("binary", "atan2", {"x1": tensor(x), "x2": tensor(y)}, np.arctan2(x, y))
    case("binary", "log_add_exp", {"x1": tensor(x * 20), "x2": tensor(y)}, np.logaddexp(x * 20, y))
    case(
        "binary", "log_add_exp", {"x1": tensor(special), "x2": tensor(special[::-1].copy())}, np.logaddexp(special, special[::-1])
    )
    case("binary", "log_add_exp", {"x1": tensor(special), "x2": tensor(special)}, np.logaddexp(special, special))
    for name, function in [("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)]:
        for a, d in ((i, j), (u, v), (b, c)):
            case("binary", name, {"x1": tensor(a), "x2": tensor(d)}, function(a, d))
    shifts = np.int32([0, 1, 3, 5, 30])
    for name, function in [("left_shift", np.left_shift), ("right_shift", np.right_shift)]:
        case("binary", name, {"x1": tensor(i), "x2": tensor(shifts)}, function(i, shifts))
        case("binary", name, {"x1": tensor(u), "x2": tensor(np.uint8([0, 1, 3, 5, 7]))}, function(u, np.uint8([0, 1, 3, 5, 7])))
    for name, function in [("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)]:
        case("binary", name, {"x1": tensor(b), "x2": tensor(c)}, function(b, c))
        case(
            "binary",
            name,
            {"x1": tensor(np.int32([0, 2, 0, 4])), "x2": tensor(np.int32([0, 0, 3, 1]))},
            function(np.int32([0, 2, 0, 4]), np.int32([0, 0, 3, 1])).astype(np.int32),
        )


def create():
    case(
        "create",
        "full",
        {"shape": shape("n", 3), "fill_value": const(2.5, "float32")},
        np.full((2, 3), 2.5, np.float32),
        {"n": 2},
    )
    case("create", "full", {"shape": shape(2), "fill_value": const(2.9, "float32"), "dtype": "int32"}, np.int32([2, 2]))
    case(
        "create",
        "full",
        {"shape": shape(2), "fill_value": const(0.1, "float32"), "dtype": "float64"},
        np.full(2, np.float32(0.1), np.float64),
    )
    case(
        "create",
        "full",
        {"shape": shape(2, 2), "fill_value": tensor(np.int8(7)), "dtype": "float16"},
        np.full((2, 2), 7, np.float16),
    )
    x = floats(2, 3)
    case(
        "create",
        "full_like",
        {"x": tensor(x, ["n", 3]), "fill_value": const(1, "int64"), "dtype": "bool"},
        np.ones((2, 3), bool),
        {"n": 2},
    )
    case("create", "full_like", {"x": tensor(x), "fill_value": const(-1.5, "float32")}, np.full_like(x, -1.5))
    for name, function in [("ones", np.ones), ("zeros", np.zeros)]:
        for dtype in ("float32", "int8", "bool", "float16"):
            case("create", name, {"shape": shape(2, "m"), "dtype": dtype}, function((2, 3), dtype), {"m": 3})
        case("create", f"{name}_like", {"x": tensor(x)}, function((2, 3), np.float32))
        case("create", f"{name}_like", {"x": tensor(x), "dtype": "int64"}, function((2, 3), np.int64))
    for k in (0, 1, -2):
        case("create", "eye", {"n": prim(3), "m": prim("m"), "k": prim(k), "dtype": "int32"}, np.eye(3, 4, k, np.int32), {"m": 4})
        case("create", "eye_like", {"x": tensor(x), "k": prim(k)}, np.eye(2, 3, k, np.float32))
        case("create", "eye_like", {"x": tensor(x), "k": prim(k), "dtype": "int8"}, np.eye(2, 3, k, np.int8))
        batch = floats(2, 4, 3)
        case("create", "tril", {"x": tensor(batch, [2, "n", 3]), "k": prim(k)}, np.tril(batch, k), {"n": 4})
        case("create", "triu", {"x": tensor(batch), "k": prim(k)}, np.triu(batch, k))
    case("create", "eye", {"n": prim("n")}, np.eye(3, dtype=np.float32), {"n": 3})
    case("create", "arange", {"start": prim(5)}, np.arange(5))
    case(
        "create",
        "arange",
        {"start": prim(1), "end": prim("n"), "step": prim(3), "dtype": "int32"},
        np.arange(1, 11, 3, np.int32),
        {"n": 11},
    )
    case("create", "arange", {"start": prim(10), "end": prim(0), "step": prim(-4)}, np.arange(10, 0, -4))
    case("create", "arange", {"start": prim(0), "end": prim(7), "dtype": "float32"}, np.arange(7, dtype=np.float32))
    case(
        "create",
        "arange",
        {"start": prim(0.5), "end": prim(2.0), "step": prim(0.3), "dtype": "float32"},
        (0.5 + 0.3 * np.arange(5)).astype(np.float32),
    )
    for periodic, size in [(1, 5), (0, 5), (0, 1), (1, 1)]:
        n = size if periodic else max(size - 1, 1)
        window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(size) / n) if size > 1 else np.ones(1)
        case(
            "create",
            "hamming_window",
            {"window_size": prim("n"), "periodic": prim(periodic), "alpha": prim(0.54), "beta": prim(0.46), "dtype": "float32"},
            window.astype(np.float32),
            {"n": size},
        )
    case("create", "size", {"expr": tensor(x, ["n", 3])}, np.int64(6), {"n": 2})
    case("create", "shape_to_tensor", {"expr": shape("n", 3, 7)}, np.int64([2, 3, 7]), {"n": 2})


def manipulate():
    f = "manipulate"
    x = floats(2, 3, 4)
    sym = ["n", 3, "m"]
    at = {"n": 2, "m": 4}
    case(f, "reshape", {"x": tensor(x, sym), "shape": shape("n", -1)}, x.reshape(2, 12), at)
    case(f, "reshape", {"x": tensor(x), "shape": shape(0, 12)}, x.reshape(2, 12))
    case(f, "flatten", {"x": tensor(x)}, x.ravel())
    case(f, "expand_dims", {"x": tensor(x), "axis": [-1, 1]}, x[:, None, :, :, None])
    case(f, "squeeze", {"x": tensor(x[:1]), "axis": [0]}, x[0])
    case(f, "permute_dims", {"x": tensor(x, sym), "axes": [2, 0, 1]}, x.transpose(2, 0, 1), at)
    case(f, "permute_dims", {"x": tensor(x), "axes": [-2, -1, 0]}, x.transpose(1, 2, 0))
    case(f, "permute_dims", {"x": tensor(x)}, x.T)
    y = floats(3, 1)
    case(f, "broadcast_to", {"x": tensor(y), "shape": shape(2, 3, "m")}, np.broadcast_to(y, (2, 3, 4)), at)
    case(f, "collapse_sum_to", {"data": tensor(x, ["n", 3, 4]), "shape": shape(1, 4)}, x.sum((0, 1))[None], at, 1e-5)
    case(f, "collapse_sum_to", {"data": tensor(x), "shape": shape(2, 3, 4)}, x)
    case(f, "collapse_sum_like", {"data": tensor(x), "collapse_target": tensor(y)}, x.sum((0, 2))[:, None], tolerance=1e-5)
    case(f, "repeat", {"data": tensor(x, sym), "repeats": 2, "axis": -1}, np.repeat(x, 2, -1), at)
    case(f, "repeat", {"data": tensor(x, sym), "repeats": 3}, np.repeat(x, 3), at)
    case(f, "repeat", {"data": tensor(x), "repeats": 0, "axis": 0}, np.repeat(x, 0, 0))
    case(f, "tile", {"data": tensor(x, sym), "repeats": [2, 1, 3]}, np.tile(x, (2, 1, 3)), at)
    case(f, "tile", {"data": tensor(y), "repeats": [2, 2, 1]}, np.tile(y, (2, 2, 1)))
    case(f, "tile", {"data": tensor(x), "repeats": [2]}, np.tile(x, 2))
    case(f, "flip", {"data": tensor(x, sym), "axis": -1}, np.flip(x, -1), at)
    lengths = np.int32([3, 1])
    reversed_ = x.copy()
    for batch, length in enumerate(lengths):
        reversed_[batch, :length] = x[batch, :length][::-1]
    case(f, "reverse_sequence", {"data": tensor(x), "seq_lengths": tensor(lengths), "seq_axis": 1, "batch_axis": 0}, reversed_)
    swapped = x.transpose(1, 0, 2)
    case(
        f,
        "reverse_sequence",
        {"data": tensor(swapped), "seq_lengths": tensor(lengths.astype(np.int64)), "seq_axis": 0, "batch_axis": -2},
        reversed_.transpose(1, 0, 2),
    )
    parts = [floats(2, 1, 4), floats(2, 3, 4), floats(2, 2, 4)]
    case(
        f,
        "concat",
        {"tensors": tuple_of(tensor(parts[0]), tensor(parts[1], [2, "n", 4]), tensor(parts[2])), "axis": -2},
        np.concatenate(parts, 1),
        {"n": 3},
    )
    case(f, "concat", {"tensors": tuple_of(tensor(np.int8([1, 2])), tensor(np.int8([3]))), "axis": None}, np.int8([1, 2, 3]))
    same = [floats(2, 3) for _ in range(3)]
    for axis in (0, 1, -1):
        case(
            f,
            "stack",
            {"tensors": tuple_of(*[tensor(part, ["n", 3]) for part in same]), "axis": axis},
            np.stack(same, axis),
            {"n": 2},
        )
    z = floats(2, 7)
    case(f, "split", {"x": tensor(z), "indices_or_sections": [2, 5], "axis": 1}, np.split(z, [2, 5], 1))
    case(f, "split", {"x": tensor(z), "indices_or_sections": [2, 9], "axis": -1}, [z[:, :2], z[:, 2:], z[:, 7:]])
    case(f, "split", {"x": tensor(z), "indices_or_sections": 3, "axis": 1}, [z[:, :3], z[:, 3:6], z[:, 6:]])
    case(f, "split", {"x": tensor(x, ["n", 3, "m"]), "indices_or_sections": 2, "axis": 2}, np.split(x, 2, 2), at)
    case(f, "split", {"x": tensor(z), "indices_or_sections": 1, "axis": 1}, z)
    case(f, "split", {"x": tensor(z, [2, "k"]), "indices_or_sections": [3], "axis": 1}, np.split(z, [3], 1), {"k": 7})
    grid = [floats(2), floats(3), floats(4)]
    case(f, "meshgrid", {"tensors": tuple_of(*map(tensor, grid)), "indexing": "ij"}, list(np.meshgrid(*grid, indexing="ij")))
    square = [floats(3), floats(3)]
    case(f, "meshgrid", {"tensors": tuple_of(*map(tensor, square)), "indexing": "xy"}, list(np.meshgrid(*square)))
    case(f, "layout_transform", {"x": tensor(z.reshape(2, 7)), "index_map": {"opaque": "T.index_map(lambda a, b: (b, a))"}}, z.T)
    padded = np.full((2, 2, 4), 9.5, np.float32)
    padded.reshape(2, 8)[:, :7] = z
    args = {
        "x": tensor(z, ["n", 7]),
        "index_map": {"opaque": "lambda a, b: (a, b // 4, b % 4)"},
        "pad_value": {"opaque": "T.float32(9.5)"},
    }
    case(f, "layout_transform", args, padded, {"n": 2})
    case(f, "layout_transform", {"x": tensor(x), "index_map": {"opaque": "lambda a, b, c: (a * 12 + b * 4 + c)"}}, x.ravel())


def pick():
    f = "pick"
    x = floats(3, 4, 5)
    index = np.array([[0, 3], [1, 1], [2, 0]])
    sym = dict(symbols={"n": 3, "m": 4})
    for dtype in (np.int32, np.int64, np.uint8):
        case(
            f,
            "take",
            {"x": tensor(x, ["n", "m", 5]), "indices": tensor(index.astype(dtype), ["n", 2]), "axis": 1},
            np.take(x, index, 1),
            **sym,
        )
    case(f, "take", {"x": tensor(x), "indices": tensor(np.int64(2)), "axis": -1}, x[..., 2])
    case(f, "take", {"x": tensor(x), "indices": const(1, "int64"), "axis": 0}, x[1])
    case(f, "take", {"x": tensor(x), "indices": prim(3), "axis": 1}, x[:, 3])
    case(f, "take", {"x": tensor(x[0, 0]), "indices": tensor(index)}, x[0, 0][index])
    wild = np.int64([-9, -1, 0, 3, 4, 11])
    case(f, "take", {"x": tensor(x), "indices": tensor(wild), "axis": 1, "mode": "clip"}, x[:, np.clip(wild, 0, 3)])
    case(f, "take", {"x": tensor(x), "indices": tensor(wild.astype(np.int8)), "axis": 1, "mode": "wrap"}, x[:, wild % 4])
    nans = np.where(((wild >= 0) & (wild < 4))[None, :, None], x[:, np.clip(wild, 0, 3)], np.float32(np.nan))
    case(f, "take", {"x": tensor(x), "indices": tensor(wild), "axis": 1, "mode": "nan"}, nans)
    for axis in (0, 1, -1):
        places = rng.integers(-x.shape[axis], x.shape[axis], (3, 4, 5))
        case(
            f,
            "gather_elements",
            {"data": tensor(x, ["n", 4, 5]), "indices": tensor(places.astype(np.int32), ["n", 4, 5]), "axis": axis},
            np.take_along_axis(x, places % x.shape[axis], axis),
            {"n": 3},
        )
    tuples = np.int64([[0, 3], [-1, 1]])
    case(f, "gather_nd", {"data": tensor(x), "indices": tensor(tuples)}, x[tuples[:, 0], tuples[:, 1]])
    case(
        f,
        "gather_nd",
        {
            "data": tensor(x, ["n", 4, 5]),
            "indices": tensor(np.int64([[[2, 4]], [[0, 0]], [[1, -1]]]), ["n", 1, 2]),
            "batch_dims": 1,
        },
        np.stack([x[0, 2, 4], x[1, 0, 0], x[2, 1, -1]])[:, None],
        {"n": 3},
    )
    rows, columns = np.int64([[0], [-1]]), np.int32([1, 3, 0])
    case(f, "index_tensor", {"data": tensor(x), "indices": tuple_of(tensor(rows), tensor(columns))}, x[rows, columns])
    case(f, "index_tensor", {"data": tensor(x, ["n", 4, 5]), "indices": tuple_of(tensor(rows))}, x[rows], {"n": 3})
    for axis in (-1, 0, 1):
        hot = np.moveaxis(np.where(index[..., None] == np.arange(4), 2.0, -1.0).astype(np.float32), -1, axis)
        case(
            f,
            "one_hot",
            {
                "indices": tensor(index, ["n", 2]),
                "on_value": prim(2.0, "float32"),
                "off_value": prim(-1.0, "float32"),
                "depth": 4,
                "axis": axis,
            },
            hot,
            {"n": 3},
        )
    case(
        f,
        "one_hot",
        {"indices": tensor(np.int32([1, 7, -1])), "on_value": prim(1, "int64"), "off_value": prim(0, "int64"), "depth": 3},
        np.int64([[0, 1, 0], [0, 0, 0], [0, 0, 0]]),
    )
    ties = np.float32([[1, 5, 5, 2], [np.nan, 9, np.nan, 1], [-3, -3, -4, -3]])
    for name, function in [("argmax", np.argmax), ("argmin", np.argmin)]:
        case(f, name, {"x": tensor(ties, ["n", 4]), "axis": 1}, function(ties, 1), {"n": 3})
        case(f, name, {"x": tensor(ties), "axis": 0, "keepdims": True}, function(ties, 0, keepdims=True))
        case(f, name, {"x": tensor(ties[::2].copy(), ["n", 4])}, np.int64(function(ties[::2])), {"n": 2})
        whole = ints(3, 4, dtype=np.int16)
        case(f, name, {"x": tensor(whole), "keepdims": True}, np.int64([[function(whole)]]))
    bounds = np.float32([-1, 0, 1, 2])
    values = np.float32([[-5, -1, 0.5], [2, 7, np.nan]])
    for right in (False, True):
        side = "right" if right else "left"
        case(
            f,
            "bucketize",
            {"input_tensor": tensor(values, ["n", 3]), "boundaries": tensor(bounds, ["m"]), "right": right},
            np.searchsorted(bounds, values, side),
            **{"symbols": {"n": 2, "m": 4}},
        )
    case(
        f,
        "bucketize",
        {"input_tensor": tensor(np.int32([-3, 0, 1, 5])), "boundaries": tensor(bounds), "out_int32": True},
        np.int32([0, 1, 2, 4]),
    )


def scatter():
    f = "scatter"
    combine = {
        "update": lambda a, b: b,
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "max": max,
        "min": min,
        "mean": lambda a, b: (a + b) / 2,
    }
    data = floats(3, 4)
    places = np.int64([[0, -1, 2], [1, 0, 1]])
    updates = floats(2, 3)
    for reduction, function in combine.items():
        for axis in (0, 1):
            result = data.copy()
            for r in range(2):
                for c in range(3):
                    at = (places[r, c], c) if axis == 0 else (r, places[r, c])
                    result[at] = function(result[at], updates[r, c])
            case(
                f,
                "scatter_elements",
                {
                    "data": tensor(data, ["n", 4]),
                    "indices": tensor(places),
                    "updates": tensor(updates),
                    "axis": axis - 2 if axis else 0,
                    "reduction": reduction,
                },
                result,
                {"n": 3},
            )
        result = data.copy()
        tuples, rows = np.int64([[1], [1], [-1]]), floats(3, 4)
        for at, row in zip(tuples[:, 0], rows):
            result[at] = [function(a, b) for a, b in zip(result[at], row)]
        case(
            f,
            "scatter_nd",
            {"data": tensor(data), "indices": tensor(tuples), "updates": tensor(rows), "reduction": reduction},
            result,
        )
        whole, steps = ints(4, low=1, high=9), ints(3, low=1, high=5)
        result = whole.copy()
        for at, value in zip([2, 0, 2], steps):
            result[at] = function(int(result[at]), int(value))
        case(
            f,
            "scatter_nd",
            {
                "data": tensor(whole),
                "indices": tensor(np.int32([[2], [0], [2]])),
                "updates": tensor(steps),
                "reduction": reduction,
            },
            result,
        )
    src = floats(3, 2)
    for start, end, step in [(1, 6, 3), (0, 4, 2), (4, 6, 1)]:
        big = floats(3, 6)
        result = big.copy()
        result[:, start:end:step] = src
        case(
            f,
            "slice_scatter",
            {
                "input_tensor": tensor(big, ["n", 6]),
                "src": tensor(src, ["n", 2]),
                "start": prim(start),
                "end": prim(end),
                "step": prim(step),
                "axis": -1,
            },
            result,
            {"n": 3},
        )
    rows, columns = np.int64([[0], [-1]]), np.int32([1, 3, 1])
    values = floats(2, 3)
    for accumulate in (False, True):
        result = data.copy()
        for r in range(2):
            for c in range(3):
                at = (rows[r, 0], columns[c])
                result[at] = result[at] + values[r, c] if accumulate else values[r, c]
        case(
            f,
            "index_put",
            {
                "data": tensor(data),
                "indices": tuple_of(tensor(rows), tensor(columns)),
                "values": tensor(values),
                "accumulate": accumulate,
            },
            result,
        )
    line = floats(5)
    result = line.copy()
    result[[1, 4]] = 2.5
    case(
        f,
        "index_put",
        {"data": tensor(line, ["n"]), "indices": tuple_of(tensor(np.int64([1, -1]))), "values": tensor(np.float32([2.5]))},
        result,
        {"n": 5},
    )


def slices():
    f = "slice"
    x = floats(6, 7)
    tup = lambda *values: tuple_of(*[prim(value, "int64") for value in values])
    rows = [
        ((1,), (1,), (5,), (2,)),
        ((0,), (-3,), (100,), None),
        ((0,), (-1,), (-100,), (-1,)),
        ((0, 1), (0, 6), (6, 0), (2, -3)),
        ((-1,), (-5,), (-1,), None),
        ((1,), (5,), (2,), None),
        ((0,), (100,), (-100,), (-2,)),
        ((1,), (0,), (2**63 - 1,), None),
        ((0,), (-100,), (4,), (3,)),
        ((1,), (3,), (3,), (-1,)),
    ]
    for axes, begin, end, strides in rows:
        key = [slice(None)] * 2
        for at, axis in enumerate(axes):
            key[axis] = slice(begin[at], end[at], strides[at] if strides else 1)
        args = {"x": tensor(x), "axes": tup(*axes), "begin": tup(*begin), "end": tup(*end)}
        if strides:
            args["strides"] = tup(*strides)
        case(f, "strided_slice", args, x[tuple(key)])
        if begin != (5,):
            # The inferred type of a symbolic slice that ends before it begins has a negative length, as in TVM.
            case(f, "strided_slice", {**args, "x": tensor(x, ["n", "m"])}, x[tuple(key)], {"n": 6, "m": 7})
    case(
        f,
        "strided_slice",
        {"x": tensor(x), "axes": tup(0), "begin": tup("v"), "end": tup(6), "assume_inbound": True},
        x[2:],
        {"v": 2},
    )
    case(
        f,
        "strided_slice",
        {"x": tensor(x, ["n", 7]), "axes": tup(0), "begin": tup("v"), "end": tup("n")},
        x[4:],
        {"n": 6, "v": 4},
    )


def sorting():
    f = "sort"
    x = np.float32([[3, 1, 2, 1, np.nan, -5], [0, 0, 7, -1, 2, 2]])
    whole = ints(2, 5, 3, low=-3, high=4, dtype=np.int8)
    for data, axis, dims in [(x, -1, ["n", "m"]), (whole, 1, [2, "m", 3])]:
        symbols = {"n": 2, "m": data.shape[axis]}
        order = np.argsort(data, axis, kind="stable")
        # In descending order NaN comes first, and equal elements keep their order.
        key = np.where(np.isnan(data), np.inf, data.astype(np.float64))
        down = np.argsort(-key, axis, kind="stable")
        for descending, places in ((False, order), (True, down)):
            sorted_ = np.take_along_axis(data, places, axis)
            case(f, "sort", {"x": tensor(data, dims), "axis": axis, "descending": descending}, sorted_, symbols)
            case(
                f,
                "argsort",
                {"data": tensor(data, dims), "axis": axis, "descending": descending},
                places.astype(np.int32),
                symbols,
            )
            wide = {"data": tensor(data, dims), "axis": axis, "descending": descending, "dtype": "int64"}
            case(f, "argsort", wide, places.astype(np.int64), symbols)
        for k, largest, kind in [
            (2, True, "both"),
            (2, False, "both"),
            (1, True, "values"),
            (3, True, "indices"),
            (0, True, "both"),
        ]:
            places = down if largest else order
            count = k if k > 0 else data.shape[axis]
            picked = np.take(places, range(count), axis)
            values = np.take_along_axis(data, picked, axis)
            results = {"both": [values, picked.astype(np.int64)], "values": [values], "indices": [picked.astype(np.int64)]}[kind]
            case(
                f,
                "topk",
                {"data": tensor(data), "k": k, "axis": axis, "ret_type": kind, "largest": largest, "dtype": "int64"},
                results,
            )


def quantize():
    f = "quantize"
    x = floats(2, 3, low=-40, high=40)
    scale, zero = np.float32([0.1, 0.5, 2.0]), np.int8([0, 10, -3])
    for dtype, zeros in (("int8", zero), ("uint8", np.uint8([0, 10, 128])), ("int16", np.int16([0, -500, 7]))):
        info = np.iinfo(dtype)
        result = np.clip(np.round(x / scale) + zeros, info.min, info.max).astype(dtype)
        case(
            f,
            "quantize",
            {"data": tensor(x, ["n", 3]), "scale": tensor(scale), "zero_point": tensor(zeros), "axis": -1, "out_dtype": dtype},
            result,
            {"n": 2},
        )
        back = (result.astype(np.float32) - zeros) * scale
        case(
            f,
            "dequantize",
            {"data": tensor(result), "scale": tensor(scale), "zero_point": tensor(zeros), "axis": 1, "out_dtype": "float32"},
            back.astype(np.float32),
        )
        case(
            f,
            "dequantize",
            {"data": tensor(result), "scale": tensor(scale), "zero_point": tensor(zeros), "axis": 1, "out_dtype": "float16"},
            np.clip(back, -65504, 65504).astype(np.float16),
        )
    single = np.clip(np.round(x / np.float32(0.25)) + 3, -128, 127).astype(np.int8)
    case(
        f,
        "quantize",
        {"data": tensor(x), "scale": const(0.25, "float32"), "zero_point": const(3, "int8"), "axis": 0, "out_dtype": "int8"},
        single,
    )
    case(
        f,
        "quantize",
        {
            "data": tensor(x),
            "scale": tensor(np.float32([0.25])),
            "zero_point": tensor(np.int8(3)),
            "axis": 0,
            "out_dtype": "int8",
        },
        single,
    )


def edges():
    """Cases of tensors of rank 0, of empty tensors, and of the remaining dtypes."""
    f = "edges"
    point, none = np.float32(-1.5), np.zeros((0, 3), np.float32)
    case(f, "abs", {"x": tensor(point)}, np.abs(point))
    case(f, "add", {"x1": tensor(point), "x2": tensor(point)}, point + point)
    case(f, "multiply", {"x1": tensor(none, ["n", 3]), "x2": const(2.0, "float32")}, none, {"n": 0})
    case(f, "reshape", {"x": tensor(point), "shape": shape(1, 1)}, np.float32([[-1.5]]))
    case(f, "flatten", {"x": tensor(point)}, np.float32([-1.5]))
    case(f, "broadcast_to", {"x": tensor(point), "shape": shape("n", 2)}, np.full((3, 2), point), {"n": 3})
    case(
        f,
        "concat",
        {"tensors": tuple_of(tensor(none, ["n", 3]), tensor(np.ones((2, 3), np.float32))), "axis": 0},
        np.ones((2, 3), np.float32),
        {"n": 0},
    )
    case(f, "split", {"x": tensor(none, ["n", 3]), "indices_or_sections": [1], "axis": 1}, [none[:, :1], none[:, 1:]], {"n": 0})
    case(
        f,
        "take",
        {"x": tensor(np.ones((2, 3), np.float32)), "indices": tensor(np.zeros((0,), np.int64), ["n"]), "axis": 0},
        none,
        {"n": 0},
    )
    case(f, "sort", {"x": tensor(none), "axis": 0}, none)
    case(f, "collapse_sum_to", {"data": tensor(none, ["n", 3]), "shape": shape(3)}, np.zeros(3, np.float32), {"n": 0})
    case(f, "arange", {"start": prim(0), "end": prim("n"), "dtype": "float32"}, np.zeros(0, np.float32), {"n": 0})
    case(
        f,
        "scatter_nd",
        {
            "data": tensor(np.ones(3, np.int16)),
            "indices": tensor(np.zeros((0, 1), np.int64)),
            "updates": tensor(np.zeros(0, np.int16)),
        },
        np.ones(3, np.int16),
    )
    for dtype in (np.bool_, np.int8, np.uint16, np.int64, np.uint64, np.float16, BF16, np.float64):
        x = rng.integers(0, 2 if dtype == np.bool_ else 100, (3, 4)).astype(dtype)
        index = np.int64([[2, 0]])
        case(f, "take", {"x": tensor(x, ["n", 4]), "indices": tensor(index), "axis": 0}, x[index], {"n": 3})
        case(f, "permute_dims", {"x": tensor(x, ["n", 4]), "axes": [1, 0]}, x.T, {"n": 3})
        case(f, "concat", {"tensors": tuple_of(tensor(x), tensor(x)), "axis": 1}, np.concatenate([x, x], 1))
        case(f, "where", {"condition": tensor(x > 1), "x1": tensor(x), "x2": tensor(x[:1])}, np.where(x > 1, x, x[:1]))
        case(f, "full", {"shape": shape(2), "fill_value": tensor(x[0, 0])}, np.full(2, x[0, 0]))
    reals = floats(2, 3, low=-900, high=900)
    for small, limit in (("float8_e4m3fn", 448), ("float8_e5m2", 57344)):
        narrow = getattr(ml_dtypes, small)
        result = np.clip(reals / np.float32(0.5) + 1, -limit, limit).astype(narrow)
        parameters = {"scale": const(0.5, "float32"), "zero_point": const(1, "int8"), "axis": 0}
        case(f, "quantize", {"data": tensor(reals), **parameters, "out_dtype": small}, result)
        back = (result.astype(np.float32) - 1) * np.float32(0.5)
        case(f, "dequantize", {"data": tensor(result), **parameters, "out_dtype": "float32"}, back)


def failure(operator, args, words):
    """Adds a row whose run must end with an error that contains these words."""
    case("failures", operator, args, [])
    cases["failures"][-1]["error"] = words


def failures():
    """Cases that must fail: positions outside an axis, and integer division by zero."""
    x = floats(3, 4)
    out_of_range = "out of range"
    for index in (-1, 4):
        failure("take", {"x": tensor(x), "indices": tensor(np.int64([0, index])), "axis": 1}, out_of_range)
    failure("take", {"x": tensor(x), "indices": prim(3), "axis": 0}, out_of_range)
    failure("gather_elements", {"data": tensor(x), "indices": tensor(np.int64([[0, 1, 2, -4]])), "axis": 0}, out_of_range)
    failure("gather_nd", {"data": tensor(x), "indices": tensor(np.int64([[3, 0]]))}, out_of_range)
    failure("index_tensor", {"data": tensor(x), "indices": tuple_of(tensor(np.int64([3])))}, out_of_range)
    update = {"data": tensor(x[0]), "updates": tensor(x[0, :1])}
    failure("scatter_elements", {**update, "indices": tensor(np.int64([4]))}, out_of_range)
    failure("scatter_nd", {**update, "indices": tensor(np.int64([[-5]]))}, out_of_range)
    failure(
        "index_put", {"data": tensor(x[0]), "indices": tuple_of(tensor(np.int64([9]))), "values": tensor(x[0, :1])}, out_of_range
    )
    zero, one = np.int32([0]), np.int32([1])
    for operator in ("divide", "floor_divide", "mod", "floor_mod"):
        failure(operator, {"x1": tensor(one), "x2": tensor(zero)}, "zero")


def onnx_run(op, inputs, opset=20, **attributes):
    names = [name if value is not None else "" for name, value in inputs]
    node = oh.make_node(op, names, ["y"], **attributes)
    given = [(name, value) for name, value in inputs if value is not None]
    graph = oh.make_graph(
        [node],
        "g",
        [oh.make_tensor_value_info(name, oh.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in given],
        [oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, dict(given))[0]


def bicubic_border(x, grid, align):
    """Computes bicubic sampling as PyTorch does, with pixels clamped to the border. ONNX's evaluator clamps the
    coordinate instead."""

    def weights(t):
        keys = lambda d: (1.25 * d - 2.25) * d * d + 1 if d <= 1 else ((-0.75 * d + 3.75) * d - 6) * d + 3
        return [keys(1 + t), keys(t), keys(1 - t), keys(2 - t)]

    height, width = x.shape[2:]
    result = np.zeros(x.shape[:2] + grid.shape[1:3])
    for n, i, j in np.ndindex(grid.shape[:3]):
        at = [
            (g + 1) * (size - 1) / 2 if align else ((g + 1) * size - 1) / 2
            for g, size in zip(grid[n, i, j].astype(np.float64), (width, height))
        ]
        (left, top), (across, down) = np.floor(at).astype(int), np.array(at) - np.floor(at)
        for b, wy in enumerate(weights(down)):
            for a, wx in enumerate(weights(across)):
                result[n, :, i, j] += wy * wx * x[n, :, np.clip(top - 1 + b, 0, height - 1), np.clip(left - 1 + a, 0, width - 1)]
    return result.astype(np.float32)


def volumes(v):
    """Cases of `resize3d` in every coordinate mode, with every rounding."""
    size = (5, 3, 4)
    region = [0.12, -0.2, 0.1, 0.83, 1.3, 0.9]
    for mode in ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize"]:
        is_crop = mode == "tf_crop_and_resize"
        base = {
            "data": tensor(v, [1, 1, "d", "h", "w"]),
            "size": shape(*size),
            "coordinate_transformation_mode": mode,
            "extrapolation_value": 2.5,
            **({"roi": region} if is_crop else {}),
        }

        def run(**attributes):
            inputs = [
                ("x", v.astype(np.float64)),
                ("roi", np.float32([0, 0, *region[:3], 1, 1, *region[3:]]) if is_crop else None),
                ("scales", None),
                ("sizes", np.int64([1, 1, *size])),
            ]
            options = {"coordinate_transformation_mode": mode, "extrapolation_value": 2.5}
            return onnx_run("Resize", inputs, 19, **options, **attributes).astype(np.float32)

        def resize(result, **attributes):
            case("image", "image.resize3d", {**base, **attributes}, result, {"d": 3, "h": 4, "w": 2}, 1e-5)

        for rounding in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]:
            nearest = run(mode="nearest", nearest_mode=rounding)
            resize(nearest, method="nearest_neighbor", rounding_method=rounding)
        resize(run(mode="linear"), method="linear")
        resize(run(mode="cubic", cubic_coeff_a=-0.75), method="cubic")
        outside = run(mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
        resize(outside, method="cubic", cubic_exclude=1, cubic_alpha=-0.5)
    linear = onnx_run(
        "Resize",
        [("x", v.astype(np.float64)), ("roi", None), ("scales", None), ("sizes", np.int64([1, 1, 5, 3, 4]))],
        19,
        mode="linear",
    ).astype(np.float32)
    last = lambda array: np.ascontiguousarray(array.transpose(0, 2, 3, 4, 1))
    call = {"data": tensor(last(v)), "size": shape(5, 3, 4), "layout": "NDHWC", "out_dtype": "float64"}
    case("image", "image.resize3d", call, last(linear).astype(np.float64), tolerance=1e-5)


def images():
    f = "image"
    x = floats(1, 2, 4, 5)
    rounding = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
    for mode in ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize"]:
        for size in [(7, 3), (8, 10), (1, 9)]:
            if mode == "align_corners" and 1 in size:
                continue
            # No sample of this region is a tie.
            roi = [0.12, -0.2, 0.83, 1.3] if mode == "tf_crop_and_resize" else [0.0] * 4
            region = np.float32([0, 0, *roi[:2], 1, 1, *roi[2:]]) if mode == "tf_crop_and_resize" else None

            def run(data=x, **attributes):
                sizes = np.int64([data.shape[0], data.shape[1], *size])
                return onnx_run(
                    "Resize",
                    [("x", data.astype(np.float64)), ("roi", region), ("scales", None), ("sizes", sizes)],
                    19,
                    coordinate_transformation_mode=mode,
                    extrapolation_value=2.5,
                    **attributes,
                ).astype(np.float32)

            base = {
                "data": tensor(x, [1, 2, "h", "w"]),
                "size": shape(*size),
                "roi": roi,
                "coordinate_transformation_mode": mode,
                "extrapolation_value": 2.5,
            }
            symbols = {"h": 4, "w": 5}
            for method in rounding if size == (7, 3) else ["floor"]:
                case(
                    f,
                    "image.resize2d",
                    {**base, "method": "nearest_neighbor", "rounding_method": method},
                    run(mode="nearest", nearest_mode=method),
                    symbols,
                )
            case(f, "image.resize2d", {**base, "method": "linear"}, run(mode="linear"), symbols, 1e-5)
            if mode == "pytorch_half_pixel" and 1 in size:
                # For an extent of 1 the evaluator computes -0.5, the specification 0; only cubic interpolation shows
                # the difference.
                continue
            case(f, "image.resize2d", {**base, "method": "cubic"}, run(mode="cubic", cubic_coeff_a=-0.75), symbols, 1e-5)
            case(
                f,
                "image.resize2d",
                {**base, "method": "cubic", "cubic_exclude": 1, "cubic_alpha": -0.5},
                run(mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1),
                symbols,
                1e-5,
            )
    linear = onnx_run(
        "Resize",
        [("x", x.astype(np.float64)), ("roi", None), ("scales", None), ("sizes", np.int64([1, 2, 6, 6]))],
        19,
        mode="linear",
    ).astype(np.float32)
    nhwc = lambda array: np.ascontiguousarray(array.transpose(0, 2, 3, 1))
    case(f, "image.resize2d", {"data": tensor(nhwc(x)), "size": shape(6, 6), "layout": "NHWC"}, nhwc(linear), tolerance=1e-5)
    case(
        f,
        "image.resize2d",
        {"data": tensor(x), "size": shape(6, 6), "out_dtype": "float64"},
        linear.astype(np.float64),
        tolerance=1e-5,
    )
    packed = lambda array: np.ascontiguousarray(array[:, None].transpose(0, 1, 3, 4, 2))
    case(
        f,
        "image.resize2d",
        {"data": tensor(packed(x)), "size": shape(6, "w"), "layout": "NCHW2c"},
        packed(linear),
        {"w": 6},
        1e-5,
    )
    half = onnx_run(
        "Resize",
        [("x", x), ("roi", None), ("scales", None), ("sizes", np.int64([1, 2, 8, 10]))],
        19,
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ).astype(np.float32)
    case(
        f,
        "image.resize2d",
        {
            "data": tensor(x),
            "size": shape(8, 10),
            "method": "nearest_neighbor",
            "coordinate_transformation_mode": "asymmetric",
            "rounding_method": "floor",
        },
        half,
    )
    v = floats(1, 1, 3, 4, 2)
    for method, onnx_mode in [("linear", "linear"), ("cubic", "cubic")]:
        result = onnx_run(
            "Resize",
            [("x", v.astype(np.float64)), ("roi", None), ("scales", None), ("sizes", np.int64([1, 1, 5, 3, 4]))],
            19,
            mode=onnx_mode,
        ).astype(np.float32)
        case(f, "image.resize3d", {"data": tensor(v), "size": shape(5, 3, 4), "method": method}, result, tolerance=1e-5)
    volumes(v)
    grid = floats(1, 3, 4, 2, low=-1.4, high=1.4)
    spread = np.ascontiguousarray(grid.transpose(0, 3, 1, 2))
    for method, onnx_mode in [("bilinear", "linear"), ("nearest", "nearest"), ("bicubic", "cubic")]:
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                if method == "bicubic" and padding == "border":
                    result = bicubic_border(x, grid, align)
                else:
                    given = [("x", x.astype(np.float64)), ("grid", grid.astype(np.float64))]
                    result = onnx_run("GridSample", given, mode=onnx_mode, padding_mode=padding, align_corners=int(align)).astype(
                        np.float32
                    )
                case(
                    f,
                    "image.grid_sample",
                    {
                        "data": tensor(x, ["n", 2, "h", 5]),
                        "grid": tensor(spread, ["n", 2, 3, 4]),
                        "method": method,
                        "padding_mode": padding,
                        "align_corners": align,
                    },
                    result,
                    {"n": 1, "h": 4},
                    1e-4,
                )
    grid3 = floats(1, 2, 3, 2, 3, low=-1.2, high=1.2)
    for method, onnx_mode in [("bilinear", "linear"), ("nearest", "nearest")]:
        result = onnx_run(
            "GridSample",
            [("x", v.astype(np.float64)), ("grid", grid3.astype(np.float64))],
            mode=onnx_mode,
            padding_mode="zeros",
            align_corners=0,
        ).astype(np.float32)
        case(
            f,
            "image.grid_sample",
            {
                "data": tensor(v),
                "grid": tensor(np.ascontiguousarray(grid3.transpose(0, 4, 1, 2, 3))),
                "method": method,
                "layout": "NCDHW",
                "align_corners": False,
            },
            result,
            tolerance=1e-4,
        )
    theta, theta3 = floats(2, 2, 3), floats(2, 3, 4)
    for align in (False, True):
        flat = onnx_run("AffineGrid", [("theta", theta), ("size", np.int64([2, 1, 3, 4]))], align_corners=int(align))
        case(
            f,
            "image.affine_grid",
            {"data": tensor(theta, ["n", 2, 3]), "size": shape("h", 4), "align_corners": align},
            np.float32(flat.transpose(0, 3, 1, 2)),
            {"n": 2, "h": 3},
            1e-5,
        )
        deep = onnx_run("AffineGrid", [("theta", theta3), ("size", np.int64([2, 1, 2, 3, 4]))], align_corners=int(align))
        case(
            f,
            "image.affine_grid",
            {"data": tensor(theta3), "size": shape(2, 3, 4), "align_corners": align},
            np.float32(deep.transpose(0, 4, 1, 2, 3)),
            tolerance=1e-5,
        )


def runtime_resize(data, size, **attributes):
    """Runs ONNX `Resize` of opset 11 with onnxruntime: the last opset that has `tf_half_pixel_for_nn`."""
    kinds = {"x": (onnx.TensorProto.FLOAT, data.ndim), "roi": (onnx.TensorProto.FLOAT, 1), "scales": (onnx.TensorProto.FLOAT, 1)}
    inputs = [oh.make_tensor_value_info(name, kind, [None] * rank) for name, (kind, rank) in kinds.items()]
    inputs.append(oh.make_tensor_value_info("sizes", onnx.TensorProto.INT64, [data.ndim]))
    node = oh.make_node("Resize", ["x", "roi", "scales", "sizes"], ["y"], **attributes)
    result = oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    model = oh.make_model(oh.make_graph([node], "g", inputs, [result]), opset_imports=[oh.make_opsetid("", 11)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    none = np.zeros(0, np.float32)
    sizes = np.int64([*data.shape[:2], *size])
    return session.run(None, {"x": data, "roi": none, "scales": none, "sizes": sizes})[0]


def nearest_round(data, size, mode):
    """Takes the nearest pixels to the positions that `mode` computes for the result, ties to even as in `numpy.rint`.
    """
    result = data
    for axis, to in zip(range(2, data.ndim), size):
        extent, places = data.shape[axis], np.arange(to, dtype=np.float64)
        at = places * (extent - 1) / (to - 1) if mode == "align_corners" else (places + 0.5) * extent / to - 0.5
        result = np.take(result, np.rint(at).astype(int).clip(0, extent - 1), axis)
    return result


def resize_choices():
    """Cases of modes and roundings that ONNX's evaluator lacks."""
    own = np.random.default_rng(SEED + 1)
    flat, deep = own.uniform(-2, 2, (1, 2, 4, 5)).astype(np.float32), own.uniform(-2, 2, (1, 1, 3, 4, 2)).astype(np.float32)
    for operator, data, size, symbols in (
        ("image.resize2d", flat, (7, 3), {"h": 4, "w": 5}),
        ("image.resize3d", deep, (5, 3, 4), {"d": 3, "h": 4, "w": 2}),
    ):

        def resize(result, mode, **attributes):
            args = {"data": tensor(data, [*data.shape[:2], *symbols]), "size": shape(*size)}
            args["coordinate_transformation_mode"] = mode
            case("image", operator, {**args, **attributes}, result, symbols, 1e-5)

        mode = "tf_half_pixel_for_nn"
        run = lambda **attributes: runtime_resize(data, size, coordinate_transformation_mode=mode, **attributes)
        for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"):
            nearest = run(mode="nearest", nearest_mode=rounding)
            resize(nearest, mode, method="nearest_neighbor", rounding_method=rounding)
        resize(run(mode="linear"), mode, method="linear")
        if len(size) == 2:
            # onnxruntime has no cubic interpolation of volumes.
            resize(run(mode="cubic"), mode, method="cubic")
        nearest = {"method": "nearest_neighbor"}
        for mode in ("half_pixel", "align_corners"):
            resize(nearest_round(data, size, mode), mode, **nearest, rounding_method="round")
        # Without a name the rounding is "round" for aligned corners, otherwise "floor".
        resize(nearest_round(data, size, "align_corners"), "align_corners", **nearest, rounding_method="")
        for mode in ("half_pixel", "asymmetric"):
            floor = runtime_resize(data, size, mode="nearest", nearest_mode="floor", coordinate_transformation_mode=mode)
            resize(floor, mode, **nearest, rounding_method="")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with np.errstate(all="ignore"):
        for make in (elementwise, binary, create, manipulate, pick, scatter, slices, sorting, quantize, images, edges, failures, resize_choices):
            make()
    for family, rows in cases.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"tensor_{family}.jsonl").write_text(text)
        print(f"{family}: {len(rows)} cases, {len(text)} bytes")


main()
