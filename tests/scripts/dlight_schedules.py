"""Writes functions scheduled by TVM's default GPU schedules (dlight), each next to the original function.

    python dlight_schedules.py FOLDER

MLC-LLM's libraries mostly consist of such functions: loops bound to blocks and threads, shared and local buffers, reductions over
threads. The results are in compiler/cuda/tests/kernels/scheduled.
"""

import pathlib
import sys

import tvm
from tvm import relax, te, tirx
from tvm.s_tir import dlight as dl

TARGET = {
    "kind": "cuda",
    "arch": "sm_80",
    "max_threads_per_block": 1024,
    "max_shared_memory_per_block": 49152,
    "thread_warp_size": 32,
}


def tensor(name, shape, dtype="float32"):
    return relax.Var(name, relax.TensorType(shape, dtype))


def functions():
    """Returns the functions to schedule, each with its parameters and a computation of them."""
    n = tirx.Var("n", "int64")
    op = relax.op
    yield "matmul", [tensor("x", (n, 64)), tensor("w", (64, 48))], op.matmul
    yield "gemv", [tensor("v", (1, 64), "float16"), tensor("w", (64, 96), "float16")], op.matmul
    yield "rms_norm", [tensor("x", (n, 200)), tensor("g", (200,))], lambda x, g: op.nn.rms_norm(x, g, axes=[-1])
    yield "softmax", [tensor("x", (n, 300))], op.nn.softmax
    yield "rows", [tensor("x", (6, n))], lambda x: op.max(x, axis=[1])
    yield "argmax", [tensor("x", (n, 300))], lambda x: op.argmax(x, axis=1)
    image = [tensor("x", (n, 32, 8, 8)), tensor("g", (32,)), tensor("b", (32,))]
    yield "group_norm", image, lambda x, g, b: op.nn.group_norm(x, g, b, 8, 1, [2, 3])
    yield "columns", [tensor("x", (n, 72))], lambda x: op.sum(x, axis=[0])
    yield "transpose", [tensor("x", (n, 70), "float16")], op.permute_dims
    yield "map", [tensor("x", (n, 33))], lambda x: op.exp(op.nn.relu(x))
    # Scheduled for tensor cores.
    half, byte = [tensor("x", (n, 80), "float16")], [tensor("x", (n, 80), "int8")]
    weight = tensor("w", (128, 80), "float16")
    yield "half", [*half, tensor("w", (80, 128), "float16")], op.matmul
    yield "half_to_single", [*half, weight], lambda x, w: op.matmul(x, op.permute_dims(w), out_dtype="float32")
    bias = tensor("b", (128,), "float16")
    yield "half_bias", [*half, weight, bias], lambda x, w, b: op.nn.silu(op.add(op.matmul(x, op.permute_dims(w)), b))
    batch = [tensor("x", (2, n, 80), "float16"), tensor("w", (2, 80, 128), "float16")]
    yield "half_batch", batch, op.matmul
    yield "bytes", [*byte, tensor("w", (128, 80), "int8")], lambda x, w: op.matmul(x, op.permute_dims(w), "int32")


def module(name, params, compute):
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            value = builder.emit(compute(*params))
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    passes = [relax.transform.FuseTransposeMatmul(), relax.transform.LegalizeOps()]
    passes += [relax.transform.AnnotateTIROpPattern(), relax.transform.FuseOps(), relax.transform.FuseTIR()]
    return tvm.transform.Sequential(passes)(builder.get())


def quantized(rows):
    """Returns a product with 4-bit weights as in MLC-LLM: eight weights in a word, one scale per 32."""
    columns, length, eighth = (tirx.const(extent, "int64") for extent in (128, 96, 12))
    x = te.placeholder((rows, length), "float16", "x")
    words = te.placeholder((columns, eighth), "uint32", "words")
    scales = te.placeholder((columns, tirx.const(3, "int64")), "float16", "scales")

    def weight(i, k):
        shift = tirx.Cast("uint32", k % 8 * 4)
        bits = tirx.bitwise_and(tirx.shift_right(words[i, k // 8], shift), tirx.const(15, "uint32"))
        return (bits.astype("float16") - tirx.const(7, "float16")) * scales[i, k // 32]

    weights = te.compute((columns, length), weight, "dequantize")
    k = te.reduce_axis((tirx.const(0, "int64"), length), "k")

    def product(i, j):
        return te.sum(x[i, k].astype("float32") * weights[j, k].astype("float32"), axis=k)

    out = te.compute((rows, columns), product, "NT_matmul")
    return tvm.IRModule({"main": te.create_prim_func([x, words, scales, out])})


def scheduled(plain):
    rules = [dl.gpu.Matmul(), dl.gpu.GEMV(), dl.gpu.Reduction(), dl.gpu.GeneralReduction(), dl.gpu.Transpose()]
    return dl.ApplyDefaultSchedule(*rules, dl.gpu.Fallback())(plain)


def modules():
    """Returns each module twice, since schedules modify their argument."""
    for name, params, compute in functions():
        yield name, module(name, params, compute), module(name, params, compute)
    rows = tirx.Var("n", "int64")
    for name, count in [("gemv_of_4_bits", tirx.const(1, "int64")), ("half_of_4_bits", rows)]:
        yield name, quantized(count), quantized(count)


def main(folder):
    for name, plain, other in modules():
        with tvm.target.Target(TARGET):
            fast = scheduled(other)
        both = {}
        for label, mod in [("plain", plain), ("scheduled", fast)]:
            (func,) = [func for func in mod.functions.values() if isinstance(func, tirx.PrimFunc)]
            both[label] = func.with_attr("global_symbol", label)
        text = tvm.IRModule(both).script()
        (pathlib.Path(folder) / f"{name}.py").write_text(text + "\n")


main(sys.argv[1])
