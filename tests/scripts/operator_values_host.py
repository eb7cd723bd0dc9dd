#!/usr/bin/env python3
"""Generates reference values of the operators that the host computes, for compiler/runtime/tests/suite/host_values.rs.

    pip install numpy==2.4.6 onnx==1.23.2 apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post0 scipy
    operator_values_host.py tests/operators

Writes host_*.jsonl there: one case a line, the call (operands, attributes), the symbols' values, inputs and results, as the
other scripts write them. Values are NumPy's; of `vision.all_class_non_max_suppression` ONNX's reference evaluator's, of the
other operators on boxes those of the NumPy references that come with TVM (tvm.topi.testing).
"""

import json
import math
import pathlib
import sys

import numpy as np
import onnx
import onnx.helper as oh
from onnx.reference import ReferenceEvaluator
from tvm.topi.testing import get_valid_counts_python, non_max_suppression_python

rng = np.random.default_rng(20261123)
cases = {}


def number(value):
    """Returns a JSON number, or the name of a value that JSON cannot represent."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(value, bool) else value


def flat(array):
    """Returns the elements in order; float32 with no more digits than needed."""
    array = np.asarray(array)
    if array.dtype == np.float32:
        return [number(x if not np.isfinite(x) else float(str(x))) for x in array.ravel()]
    return [number(x) for x in array.ravel()]


def tensor(array, dims=None):
    array = np.asarray(array)
    return {"tensor": dims or list(array.shape), "dtype": str(array.dtype), "data": flat(array)}


def result(array):
    array = np.asarray(array)
    return {"shape": list(array.shape), "dtype": str(array.dtype), "data": flat(array)}


def case(family, operator, args, results, symbols=None):
    row = {"operator": operator, "args": {}, "symbols": symbols or {}, "results": [result(one) for one in results]}
    for name, value in args.items():
        row["args"][name] = value if isinstance(value, dict) else {"attr": value}
    cases.setdefault(family, []).append(row)


def uniques(x, ordered, axis, wanted):
    """Cases of NumPy's `unique`, in ascending order, or in order of first occurrence as in ONNX."""
    values, index, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not ordered:
        order = np.argsort(index)
        values = np.take(values, order, axis=0 if axis is None else axis)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        index, inverse, counts = index[order], place[inverse], counts[order]
    extra = [one.astype(np.int64) for one, flag in zip((index, inverse, counts), wanted) if flag]
    return [values] + extra


def unique():
    flags = [(i, j, k) for i in (False, True) for j in (False, True) for k in (False, True)]
    inputs = [
        (rng.integers(-3, 4, (3, 4)).astype(np.int32), [None, 0, 1, -1]),
        (np.array([[1, 2], [3, 4], [1, 2], [0, 9]], np.int64), [0, 1]),
        (np.array([2.5, np.nan, -1.0, 2.5, np.nan, np.inf, -np.inf, -0.0, 0.0], np.float32), [None]),
        (rng.integers(0, 2, (2, 3, 2)).astype(bool), [None, 0, 2]),
        (np.array([255, 0, 255, 7], np.uint8), [None]),
        (np.array([], np.float32), [None]),
        (rng.integers(0, 3, (4, 2, 2)).astype(np.float64), [0]),
    ]
    for x, axes in inputs:
        for axis in axes:
            for ordered in (True, False):
                for wanted in flags if x.size == 12 and axis in (None, 0) else [(True, True, True), (False, False, False)]:
                    args = {"x": tensor(x), "sorted": ordered}
                    args |= dict(zip(("return_index", "return_inverse", "return_counts"), wanted))
                    if axis is not None:
                        args["axis"] = {"prim": axis}
                    case("unique", "unique", args, uniques(x, ordered, axis, wanted))
    x = np.array([4, 1, 4, 1, 1], np.int64)
    case("unique", "unique", {"x": tensor(x, ["n"])}, uniques(x, True, None, (0, 0, 0)), {"n": 5})


def nonzero():
    for x in (
        rng.integers(-1, 2, (3, 4)).astype(np.int32),
        rng.integers(0, 2, (2, 2, 3)).astype(bool),
        np.array([0.0, np.nan, -0.0, 1e-30], np.float32),
        np.zeros((2, 3), np.int64),
        np.zeros((0, 3), np.float32),
    ):
        case("nonzero", "nonzero", {"x": tensor(x)}, [np.stack(x.nonzero()).astype(np.int64)])
    for x in (np.float32(3.0), np.float32(0.0)):
        case("nonzero", "nonzero", {"x": tensor(x)}, [np.stack(np.atleast_1d(x).nonzero()).astype(np.int64)])
    x = np.array([[0, 1], [1, 0], [1, 1]], np.int8)
    case("nonzero", "nonzero", {"x": tensor(x, ["n", "m"])}, [np.stack(x.nonzero()).astype(np.int64)], {"n": 3, "m": 2})


def slices():
    x = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
    for begin, end, strides in (
        ((0, 0, 0), (5, 4, 3), (1, 1, 1)),
        ((1, 0, 2), (5, 3, 3), (2, 1, 1)),
        ((-4, -3, 0), (-1, 100, 2), (1, 2, 1)),
        ((4, 3, 2), (0, 0, 0), (-1, -2, -1)),
        ((-1, 1, 0), (-6, 1, 3), (-2, 1, 2)),
        ((100, 0, 0), (-100, 4, 3), (-1, 3, 3)),
    ):
        part = x[tuple(slice(*bounds) for bounds in zip(begin, end, strides))]
        bounds = {name: tensor(np.array(values, np.int64)) for name, values in zip(("begin", "end", "strides"), (begin, end, strides))}
        case("slice", "dynamic_strided_slice", {"x": tensor(x)} | bounds, [part])
    dims = np.array([2, 0, 7], np.int64)
    case("slice", "tensor_to_shape", {"expr": tensor(dims)}, [dims])


def open_slices():
    """Cases of slices of symbolic extents, and of few elements."""
    for dims, values, bounds in (
        (["n", 3], np.arange(12, dtype=np.int32).reshape(4, 3), ((1, -1), (-1, -4), (1, -1))),
        (["n", "m"], np.arange(10).reshape(5, 2).astype(np.float16), ((3, 0), (1, 2), (1, 1))),
        ([4], np.array([True, False, False, True]), ((-1,), (-100,), (-3,))),
    ):
        part = values[tuple(slice(*one) for one in zip(*bounds))]
        given = {name: tensor(np.array(one, np.int64)) for name, one in zip(("begin", "end", "strides"), bounds)}
        symbols = {dim: extent for dim, extent in zip(dims, values.shape) if isinstance(dim, str)}
        case("slice", "dynamic_strided_slice", {"x": tensor(values, dims)} | given, [part], symbols)


def boxes(batch, count, score_first):
    """Returns rows of class, score and two corners."""
    corner = rng.uniform(0, 4, (batch, count, 2))
    rows = [rng.integers(-1 if score_first else 0, 2, (batch, count, 1)), rng.uniform(-0.2, 1, (batch, count, 1))]
    rows += [corner, corner + rng.uniform(0.5, 3, (batch, count, 2))]
    return np.concatenate(rows, axis=2).astype(np.float32)


def vision():
    for batch, count in ((1, 6), (2, 9)):
        data = boxes(batch, count, True)
        for threshold, class_index in ((0.0, 0), (0.3, 0), (0.3, -1)):
            args = {"data": tensor(data), "score_threshold": threshold, "id_index": class_index, "score_index": 1}
            case("boxes", "vision.get_valid_counts", args, get_valid_counts_python(data, threshold, class_index, 1))
        valid, _, _ = get_valid_counts_python(data, 0.0, 0, 1)
        data = boxes(batch, count, False)
        indices = np.stack([rng.permutation(count) for _ in range(batch)]).astype(np.int32)
        for options in (
            {},
            {"force_suppress": True},
            {"iou_threshold": 0.2, "id_index": -1},
            {"max_output_size": 2, "iou_threshold": 0.9},
            {"top_k": 3, "iou_threshold": 0.3},
            {"return_indices": False, "force_suppress": True},
            {"return_indices": False, "force_suppress": True, "invalid_to_bottom": True, "iou_threshold": 0.1},
            {"soft_nms_sigma": 0.5, "score_threshold": 0.2, "force_suppress": True, "iou_threshold": 0.6},
            {"soft_nms_sigma": 0.3, "max_output_size": 3, "score_threshold": 0.1},
        ):
            got = non_max_suppression_python(data, valid, indices, **options)
            args = {"data": tensor(data), "valid_count": tensor(valid), "indices": tensor(indices)} | options
            case("boxes", "vision.non_max_suppression", args, got if isinstance(got, list) else [got])


def columns():
    """Cases with the coordinates, class and score in other columns."""
    data = np.concatenate([boxes(2, 8, False)[:, :, 2:], boxes(2, 8, False)[:, :, :2]], axis=2)
    places = {"id_index": 4, "score_index": 5}
    for threshold in (0.0, 0.4):
        args = {"data": tensor(data), "score_threshold": threshold} | places
        case("boxes", "vision.get_valid_counts", args, get_valid_counts_python(data, threshold, 4, 5))
    valid, data, indices = get_valid_counts_python(data, 0.1, 4, 5)
    for options in ({"iou_threshold": 0.3}, {"return_indices": False}, {"force_suppress": True, "top_k": 4}):
        options = {"coord_start": 0} | places | options
        got = non_max_suppression_python(data, valid, indices, **options)
        args = {"data": tensor(data), "valid_count": tensor(valid), "indices": tensor(indices)} | options
        case("boxes", "vision.non_max_suppression", args, got if isinstance(got, list) else [got])


def all_classes():
    """The result after the kept boxes is unspecified; rx writes 0 there."""
    for batch, classes, count, most, iou, score in ((1, 1, 6, 3, 0.5, 0.0), (2, 3, 5, 2, 0.3, 0.2), (1, 2, 4, 0, 0.5, 0.0)):
        corners = boxes(batch, count, False)[:, :, 2:]
        scores = rng.uniform(0, 1, (batch, classes, count)).astype(np.float32)
        names = ["boxes", "scores", "most", "iou", "score"]
        types = [onnx.TensorProto.FLOAT] * 2 + [onnx.TensorProto.INT64] + [onnx.TensorProto.FLOAT] * 2
        values = [corners, scores, np.array([most]), np.array([iou], np.float32), np.array([score], np.float32)]
        graph = oh.make_graph(
            [oh.make_node("NonMaxSuppression", names, ["y"])],
            "g",
            [oh.make_tensor_value_info(name, kind, None) for name, kind in zip(names, types)],
            [oh.make_tensor_value_info("y", onnx.TensorProto.INT64, None)],
        )
        model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 11)])
        kept = ReferenceEvaluator(model).run(None, dict(zip(names, values)))[0].reshape(-1, 3)
        padded = np.zeros((batch * classes * count, 3), np.int64)
        padded[: len(kept)] = kept
        args = {"boxes": tensor(corners), "scores": tensor(scores)}
        args |= {"max_output_boxes_per_class": tensor(np.int64(most)), "iou_threshold": tensor(np.float32(iou))}
        args |= {"score_threshold": tensor(np.float32(score))}
        case("boxes", "vision.all_class_non_max_suppression", args, [padded, np.array([len(kept)], np.int64)])
        # The same boxes by batch, without the batch number and with their scores.
        places, own = np.zeros((batch, classes * count, 2), np.int64), np.zeros((batch, classes * count), np.float32)
        numbers = np.bincount(kept[:, 0], minlength=batch).astype(np.int64)
        for at, number in enumerate(numbers):
            of_batch = kept[kept[:, 0] == at]
            places[at, :number], own[at, :number] = of_batch[:, 1:], scores[at, of_batch[:, 1], of_batch[:, 2]]
        args["output_format"] = {"attr": "tensorflow"}
        case("boxes", "vision.all_class_non_max_suppression", args, [places, own, numbers])


def main():
    folder = pathlib.Path(sys.argv[1])
    for make in (unique, nonzero, slices, vision, all_classes, columns, open_slices):
        make()
    for family, rows in cases.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"host_{family}.jsonl").write_text(text)
        print(f"{family}: {len(rows)} cases, {len(text)} bytes")


main()
