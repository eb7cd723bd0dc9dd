#!/usr/bin/env python3
"""Generates reference values of the programs in tests/operators/programs, for compiler/runtime/tests/suite/program_values.rs.

    pip install numpy==2.4.6
    operator_values_programs.py tests/operators/programs

The programs contain the operators that cannot be tested by a single call: calls of prim_funcs, packed functions and closures,
memory, devices, workers, properties of a tensor. For each NAME.rx writes NAME.npz: the inputs of `main` under their names, and its
results out0, out1, …, computed by NumPy.
"""

import pathlib
import sys

import numpy as np

rng = np.random.default_rng(20261124)


def floats(*dims, low=-2.0, high=2.0):
    return rng.uniform(low, high, dims).astype(np.float32)


def calls():
    x, y = floats(4, 3), floats(4, 3)
    results = [x * 2, y * 2, np.arange(4) * 4, x + y + np.float32(0.25), x, x, y.reshape(-1)]
    return {"x": x, "y": y}, results


def memory():
    x, bits = floats(5, 2), rng.integers(-(2**30), 2**30, 12).astype(np.int32)
    data = bits.tobytes()
    views = [
        np.frombuffer(data, np.int32, 8, 16).reshape(2, 4),
        np.frombuffer(data, np.float32, 3, 36),
        np.frombuffer(data, np.int16, 5, 2),
        bits.reshape(3, 4),
    ]
    return {"x": x, "bits": bits}, [x.sum(1) * 3, *views]


def inspect():
    """Returns DLPack's fields of a tensor; NumPy's strides are in bytes."""
    x, y, z = floats(4, 3, 5).astype(np.float16), rng.integers(0, 255, (2, 5)).astype(np.uint8), np.array(True)
    codes = {"i": 0, "u": 1, "f": 2}
    results = [x.ndim, x.shape[0], x.shape[2], x.strides[0] // x.itemsize, x.strides[1] // x.itemsize]
    results += [y.strides[1] // y.itemsize, codes[x.dtype.kind], codes[y.dtype.kind], x.itemsize * 8, y.itemsize * 8]
    results += [1, 0, 0, z.ndim, np.array(x.shape)]
    return {"x": x, "y": y, "z": z}, results


def workers():
    """Computes collective operations for one worker, whose part is the whole."""
    x, d = floats(4, 3), floats(4, 3)
    return {"x": x, "d": d}, [np.mean([x + x], 0), x, np.split(x, 1, 1)[0], x, d, d * 2]


def devices():
    x = floats(2, 3)
    return {"x": x}, [x, np.negative(x) + np.negative(x)]


def closures():
    x, by = floats(6), np.float32(1.5)
    return {"x": x, "by": by}, [x * by, x * by * by]


def effects():
    x = floats(5, low=0.5, high=4)
    return {"x": x, "limit": np.float32(0)}, [np.sqrt(x)]


def main():
    folder = pathlib.Path(sys.argv[1])
    for program in (calls, memory, inspect, workers, devices, closures, effects):
        inputs, results = program()
        arrays = {name: np.asarray(value) for name, value in inputs.items()}
        arrays |= {f"out{at}": np.ascontiguousarray(result) if np.ndim(result) else np.asarray(result) for at, result in enumerate(results)}
        np.savez(folder / f"{program.__name__}.npz", **arrays)
        print(f"{program.__name__}: {len(inputs)} inputs, {len(results)} results")


main()
