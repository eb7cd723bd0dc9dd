#!/usr/bin/env python3
"""Writes small valid Relax programs with features that some TVM cannot read, lower or build, for `tvm_portability.py`.

    python3 tests/scripts/portability_grid.py FOLDER [--tvm 0.27]

`--tvm` selects the release whose spelling is used: before 0.27 the symbols of a signature are quoted, and 0.25 calls types struct info.

One program to a file, named FAMILY-NUMBER.rx: convolutions and their transposes in all layouts, with groups, padding, dilation and
extents of 1, products, poolings, attributes of functions, constants, symbols and spellings. Nothing is drawn at random.
"""

import argparse
import itertools
import pathlib
import re

HEAD = """# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.script import relax as R
"""
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def function(params, lines, result, symbols=(), attributes=""):
    """Returns a module with one function whose bindings are in a dataflow block."""
    names = "".join(f'{name} = TypeVar("{name}")\n' for name in symbols)
    head = "    @R.function\n    def main(" + ", ".join(f"{name}: {ty}" for name, ty in params) + "):\n"
    body = "".join(f"            {line}\n" for line in lines)
    return (
        f"{HEAD}\n{names}@I.ir_module\nclass Module:\n{head}{attributes}        with R.dataflow():\n{body}"
        f"            R.output({result})\n        return {result}\n"
    )


def tensor(shape, dtype="float32"):
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    return f'R.Tensor(({dims}), dtype="{dtype}")'


def laid(layout, extents):
    return [extents[letter] for letter in layout]


class Conv:
    """A convolution of one input; extents by letter, weight channels per group."""

    def __init__(self, rank, transposed=False, **given):
        spatial = SPATIAL[rank]
        self.rank, self.transposed = rank, transposed
        self.data = given.pop("data", "NC" + spatial)
        self.kernel = given.pop("kernel", ("IO" if transposed else "OI") + spatial)
        self.out = given.pop("out", None)
        self.n, self.i, self.o, self.groups = (given.pop(name, default) for name, default in (("n", 1), ("i", 8), ("o", 16), ("groups", 1)))
        self.size = given.pop("size", (8, 6, 10)[:rank])
        self.window = given.pop("window", (3,) * rank)
        self.dtype, self.out_dtype = given.pop("dtype", "float32"), given.pop("out_dtype", None)
        self.after = given.pop("after", None)
        self.symbols = [it for it in (self.n, self.i, *self.size) if isinstance(it, str)]
        self.attributes = given

    def text(self):
        spatial = SPATIAL[self.rank]
        sizes = dict(zip(spatial, self.size))
        windows = dict(zip(spatial, self.window))
        data = laid(self.data, {"N": self.n, "C": self.i, **sizes})
        i, o = (self.i, self.o // self.groups) if self.transposed else (self.i // self.groups if isinstance(self.i, int) else self.i, self.o)
        weight = laid(self.kernel, {"I": i, "O": o, **windows})
        attributes = dict(self.attributes, groups=self.groups, data_layout=self.data, kernel_layout=self.kernel)
        if self.out:
            attributes["out_layout"] = self.out
        if self.out_dtype:
            attributes["out_dtype"] = self.out_dtype
        said = ", ".join(f"{name}={value!r}".replace("'", '"') for name, value in attributes.items())
        name = f"conv{self.rank}d" + "_transpose" * self.transposed
        lines = [f"lv = R.nn.{name}(x, w, {said})"]
        params = [("x", tensor(data, self.dtype)), ("w", tensor(weight, self.dtype))]
        if self.after == "bias":
            channel = (self.out or self.data).index("C")
            shape = [self.o if at == channel else 1 for at in range(self.rank + 2)]
            params.append(("b", tensor(shape, self.out_dtype or self.dtype)))
            lines.append("gv = R.add(lv, b)")
        elif self.after:
            lines.append(f"gv = {self.after.format('lv')}")
        else:
            lines = [lines[0].replace("lv =", "gv =")]
        return function(params, lines, "gv", sorted(set(self.symbols)))


def transposed_layouts():
    """conv*d_transpose in every layout of data, weight and result."""
    kernels = {
        1: ("IOW", "OIW", "WIO", "WOI"),
        2: ("IOHW", "OIHW", "HWIO", "HWOI", "IHWO", "OHWI"),
        3: ("IODHW", "OIDHW", "DHWIO", "DHWOI", "IDHWO"),
    }
    for rank in (1, 2, 3):
        first, last = "NC" + SPATIAL[rank], "N" + SPATIAL[rank] + "C"
        for data, kernel, out in itertools.product((first, last), kernels[rank], (None, first, last)):
            size = (4, 3, 5)[:rank]
            yield Conv(rank, True, data=data, kernel=kernel, out=out, i=4, o=6, size=size).text()


def transposed_attributes():
    """conv*d_transpose in the layout that TVM lowers."""
    for rank in (1, 2, 3):
        size = (4, 3, 5)[:rank]
        for given in (
            dict(groups=2),
            dict(i=8, o=8, groups=8),
            dict(i=8, o=16, groups=8),
            dict(i=8, o=8, groups=8, window=(1,) * rank),
            dict(strides=2),
            dict(strides=2, output_padding=1, padding=1),
            dict(padding=list(range(2 * rank))[::-1], window=(7,) * rank),
            dict(dilation=2),
            dict(strides=2, dilation=2, groups=2),
            dict(window=(1,) * rank),
            dict(window=(1,) * rank, strides=2),
            dict(i=1, o=1),
            dict(i=1, o=1, window=(1,) * rank),
            dict(i=1),
            dict(o=1),
            dict(o=1, window=(1,) * rank),
            dict(i=1, window=(1,) * rank),
            dict(size=(1,) * rank),
            dict(size=(1,) * rank, window=(1,) * rank),
            dict(size=(1,) * rank, window=(1,) * rank, o=1),
            dict(n="n"),
            dict(n="n", size=("h", "h", "w")[-rank:]),
            dict(after="R.nn.relu({})"),
            dict(after="bias"),
        ):
            yield Conv(rank, True, **{"i": 4, "o": 6, "size": size, **given}).text()


def forward_layouts():
    """conv*d in every layout of data, weight and result."""
    kernels = {1: ("OIW", "WIO", "OWI", "IOW"), 2: ("OIHW", "HWIO", "OHWI", "IHWO", "HWOI"), 3: ("OIDHW", "DHWIO", "ODHWI")}
    for rank in (1, 2, 3):
        first, last = "NC" + SPATIAL[rank], "N" + SPATIAL[rank] + "C"
        for data, kernel, out in itertools.product((first, last), kernels[rank], (None, first, last)):
            yield Conv(rank, data=data, kernel=kernel, out=out, i=4, o=6, size=(4, 3, 5)[:rank]).text()


def depthwise():
    """Depthwise convolutions with one tap, and others close to them."""
    for rank in (1, 2, 3):
        ones = (1,) * rank
        last = "N" + SPATIAL[rank] + "C"
        for given in (
            dict(),
            dict(n=2),
            dict(n="n"),
            dict(size=("h", "h", "w")[-rank:]),
            dict(strides=2),
            dict(padding=1),
            dict(dilation=2),
            dict(o=32),
            dict(size=ones),
            dict(size=ones, n=4),
            dict(window=(3,) * rank),
            dict(data=last, kernel=SPATIAL[rank] + "IO"),
            dict(data=last, kernel=SPATIAL[rank] + "IO", n=2),
            dict(data=last, kernel="OI" + SPATIAL[rank]),
            dict(after="R.nn.relu({})"),
            dict(after="bias"),
            dict(after="R.nn.softmax({}, axis=1)"),
            dict(after="R.sum({}, axis=[1])"),
            dict(after="R.permute_dims({})"),
            dict(after="R.reshape({}, R.shape([-1]))"),
            dict(dtype="float16", out_dtype="float32"),
            dict(dtype="int8", out_dtype="int32"),
        ):
            yield Conv(rank, **{"i": 16, "o": 16, "groups": 16, "window": ones, **given}).text()


def unit_extents():
    """conv2d where extents are 1: channels, images, kernels."""
    for i, o, size, window in itertools.product((1, 3), (1, 16), ((1, 1), (6, 8), (1, 24), (16, 16), (5, 1)), ((1, 1), (1, 3), (3, 1), (3, 3))):
        if all(a >= b for a, b in zip(size, window)):
            yield Conv(2, i=i, o=o, size=size, window=window).text()
    for given in (
        dict(n=2),
        dict(n="n"),
        dict(padding=1),
        dict(padding=[0, 1]),
        dict(strides=2),
        dict(dilation=2),
        dict(size=("h", 8)),
        dict(size=(6, "w")),
        dict(after="R.nn.relu({})"),
        dict(after="bias"),
        dict(data="NHWC", kernel="HWIO"),
        dict(data="NHWC", kernel="OHWI"),
        dict(size=(6, 18)),
        dict(size=(6, 10)),
        dict(size=(2, 8)),
    ):
        yield Conv(2, **{"i": 1, "o": 1, "size": (6, 8), "window": (1, 3), **given}).text()
    for rank, size, window in ((1, (8,), (3,)), (1, (40,), (3,)), (1, (3,), (3,)), (3, (1, 6, 8), (1, 1, 3)), (3, (6, 1, 8), (1, 1, 3)), (3, (4, 6, 8), (1, 1, 3))):
        for i, o in ((1, 1), (1, 4), (4, 1)):
            yield Conv(rank, i=i, o=o, size=size, window=window).text()


def grouped():
    """Grouped convolutions."""
    for rank, groups, window, padding, data in itertools.product((1, 2), (2, 4, 8), (1, 3), (0, 1), ("first", "last")):
        layouts = {} if data == "first" else {"data": "N" + SPATIAL[rank] + "C", "kernel": SPATIAL[rank] + "IO"}
        yield Conv(rank, i=8, o=16, groups=groups, window=(window,) * rank, padding=padding, **layouts).text()
    for given in (dict(n=2), dict(strides=2), dict(dilation=2), dict(kernel="OHWI"), dict(n="n"), dict(size=("h", 8)), dict(after="R.nn.relu({})"), dict(i=4, o=4, groups=4)):
        yield Conv(2, **{"i": 8, "o": 16, "groups": 2, **given}).text()


def integers():
    """Products and convolutions of int8 and uint8, accumulated in int32."""
    def product(a, b, dtype="int8", out="int32", symbols=()):
        return function([("x", tensor(a, dtype)), ("w", tensor(b, dtype))], [f'gv = R.matmul(x, w, out_dtype="{out}")'], "gv", symbols)

    for m, n, k in ((256, 256, 256), (64, 128, 128), (65, 128, 128), (128, 64, 128), (128, 128, 64), (65, 65, 65), (80, 96, 112), (1, 256, 256), (256, 1, 256), (16, 16, 16), (1024, 66, 70)):
        yield product((m, k), (k, n))
    yield product((2, 128, 128), (128, 128))
    yield product((2, 128, 128), (2, 128, 128))
    yield product(("n", 128), (128, 128), symbols=("n",))
    yield product((128, 128), (128, "n"), symbols=("n",))
    yield product((128, 128), (128, 128), "uint8", "int32")
    yield product((128, 128), (128, 128), "uint8", "uint32")
    yield product((128, 128), (128, 128), "int8", "int8")
    yield product((128, 128), (128, 128), "int16", "int32")
    yield product((128, 128), (128, 128), "int32", "int32")
    for i, o, size, window in ((128, 128, (16, 16), (1, 1)), (64, 128, (16, 16), (1, 1)), (128, 64, (16, 16), (1, 1)), (128, 128, (8, 8), (1, 1)), (8, 128, (16, 16), (3, 3)), (128, 128, (9, 8), (1, 1)), (3, 16, (8, 8), (3, 3)), (8, 66, (12, 12), (3, 3))):
        yield Conv(2, i=i, o=o, size=size, window=window, dtype="int8", out_dtype="int32").text()
    yield Conv(2, i=128, o=128, size=(16, 16), window=(1, 1), dtype="int8", out_dtype="int32", data="NHWC", kernel="OHWI").text()
    yield Conv(2, i=128, o=128, size=(16, 16), window=(1, 1), dtype="int8", out_dtype="int32", strides=2).text()
    yield Conv(2, i=128, o=128, size=(16, 16), window=(3, 3), dtype="int8", out_dtype="int32", padding=1).text()
    yield Conv(2, i=128, o=128, size=(16, 16), window=(1, 1), dtype="int8", out_dtype="int32", after="R.nn.relu({})").text()
    yield Conv(2, i=128, o=128, size=(16, 16), window=(1, 1), dtype="int8", out_dtype="int32", after="R.astype({}, dtype=\"float32\")").text()
    yield Conv(1, i=128, o=128, size=(128,), window=(1,), dtype="int8", out_dtype="int32").text()
    yield Conv(3, i=128, o=128, size=(4, 4, 8), window=(1, 1, 1), dtype="int8", out_dtype="int32").text()
    yield Conv(2, True, i=128, o=128, size=(16, 16), window=(1, 1), dtype="int8", out_dtype="int32").text()
    yield Conv(2, i=128, o=256, groups=2, size=(16, 16), window=(1, 1), dtype="int8", out_dtype="int32").text()


def products():
    """matmul with vectors, batches and extents of 1."""
    for a, b in (
        ((4,), (4,)), ((4,), (4, 6)), ((6, 4), (4,)), ((1, 4), (4, 1)), ((4, 1), (1, 4)), ((1, 1), (1, 1)), ((1, 64), (64, 1)),
        ((5, 64), (64, 1)), ((1, 64), (64, 5)), ((5, 7, 64), (64, 1)), ((5, 8, 64), (64, 1)), ((5, 7, 64), (64,)), ((3, 5, 64), (64, 1)),
        ((2, 1, 64), (64, 7)), ((5, 1, 7), (5, 7, 1)), ((5, 7, 1), (5, 1, 7)), ((5, 7, 64), (5, 64, 1)), ((5, 1, 64), (5, 64, 7)),
        ((2, 3, 4, 5), (5, 6)), ((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 3, 4, 5), (1, 3, 5, 6)), ((2, 3, 1, 5), (2, 3, 5, 1)), ((4, 16), (16,)),
        ((17, 64), (64,)), ((2, 17, 64), (64,)), ((2, 17, 64), (2, 64, 1)), ((17, 2, 64), (64, 1)), ((1, 17, 64), (64, 1)), ((3, 32, 64), (64, 1)),
        ((64, 1), (1, 1)), ((1, 1), (1, 64)), ((3, 5, 1), (1, 1)),
    ):
        yield function([("x", tensor(a)), ("w", tensor(b))], ["gv = R.matmul(x, w)"], "gv")
    for a, b in ((("n", 64), (64, 1)), (("n", 64), (64,)), ((1, "n"), ("n", 1)), (("n", 5, 64), (64, 1)), ((5, "n", 64), (64, 1)), (("n", 1), (1, 8)), (("n", 1), (1, "n"))):
        yield function([("x", tensor(a)), ("w", tensor(b))], ["gv = R.matmul(x, w)"], "gv", ("n",))
    for after in ("R.nn.relu(lv)", "R.sum(lv)", "R.permute_dims(lv)", "R.add(lv, lv)"):
        yield function([("x", tensor((5, 7, 64))), ("w", tensor((64, 1)))], ["lv = R.matmul(x, w)", f"gv = {after}"], "gv")
        yield function([("x", tensor((5, 7))), ("w", tensor((5, 7)))], ["lw = R.permute_dims(w)", "lv = R.matmul(x, lw)", f"gv = {after}"], "gv")


def poolings():
    for rank in (1, 2, 3):
        first, last = "NC" + SPATIAL[rank], "N" + SPATIAL[rank] + "C"
        for op, data, out in itertools.product(("max_pool", "avg_pool", "adaptive_avg_pool"), (first, last), (None, first, last)):
            extents = {"N": 1, "C": 4, "D": 6, "H": 6, "W": 6}
            size = "output_size=[" + ", ".join("2" * rank) + "]" if "adaptive" in op else "pool_size=[" + ", ".join("2" * rank) + "]"
            said = f'layout="{data}"' + (f', out_layout="{out}"' if out else "")
            yield function([("x", tensor(laid(data, extents)))], [f"gv = R.nn.{op}{rank}d(x, {size}, {said})"], "gv")
    for op in ("max_pool2d(x, pool_size=[2, 2]", "avg_pool2d(x, pool_size=[2, 2]", "adaptive_avg_pool2d(x"):
        yield function([("x", tensor((1, 2, 6, 6, 4)))], [f'gv = R.nn.{op}, layout="NCHW4c")'], "gv")
        yield function([("x", tensor((1, 2, 6, 6, 4)))], [f'gv = R.nn.{op}, layout="NCHW4c", out_layout="NCHW")'], "gv")
    yield function([("x", tensor((1, 2, 6, 6, 4))), ("w", tensor((8, 8, 3, 3)))], ['gv = R.nn.conv2d(x, w, data_layout="NCHW4c")'], "gv")
    yield function(
        [("x", tensor((1, 2, 6, 6, 4))), ("w", tensor((2, 2, 3, 3, 4, 4)))],
        ['gv = R.nn.conv2d(x, w, data_layout="NCHW4c", kernel_layout="OIHW4i4o")'], "gv",
    )


def num_inputs():
    """Functions with `num_input`."""
    params = [("x", tensor((4, 8))), ("w", tensor((8, 16))), ("v", tensor((16, 16)))]
    lines = ["lw = R.add(w, w)", "lv = R.matmul(x, lw)", "gv = R.matmul(lv, v)"]
    for number in range(4):
        yield function(params, lines, "gv", attributes=f'        R.func_attr({{"num_input": {number}}})\n')
    for number in range(3):
        yield function(params[1:], ["lw = R.add(w, w)", "gv = R.matmul(lw, v)"], "gv", attributes=f'        R.func_attr({{"num_input": {number}}})\n')
        yield function([("x", tensor(("n", 8))), ("w", tensor((8, "m")))], ["gv = R.matmul(x, w)"], "gv", ("m", "n"), f'        R.func_attr({{"num_input": {number}}})\n')
        yield function(params[:2], ["lw = R.builtin.stop_lift_params(w)", "gv = R.matmul(x, lw)"], "gv", attributes=f'        R.func_attr({{"num_input": {number}}})\n')


def constants():
    """Constants inf and nan, in TVM's printed spelling and in the one that it reads."""
    for value, dtype in itertools.product(('"-inf"', '"inf"', '"nan"', 'float("-inf")', 'float("nan")', "1.5", "-3"), ("float32", "float16", "float64")):
        yield function([("x", tensor((4, 8), dtype))], [f'gv = R.maximum(x, R.const({value}, "{dtype}"))'], "gv")
    for line in (
        'gv = R.where(R.less(x, R.const(0, "float32")), R.const("-inf", "float32"), x)',
        'gv = R.full(R.shape([4, 8]), R.const("-inf", "float32"), dtype="float32")',
        'gv = R.full(R.shape([4, 8]), R.const(1, "float32"), dtype="float32")',
        'gv = R.full_like(x, R.const("inf", "float32"))',
        'gv = R.clip(x, R.prim_value(0), R.prim_value(6))',
        'gv = R.add(x, R.const(True, "bool"))' if False else 'gv = R.add(x, R.const(2, "float32"))',
        'gv = R.nn.pad(x, [1, 1, 0, 0], pad_value=float("-inf"))',
        'gv = R.nn.pad(x, [1, 1, 0, 0], pad_value=-1.0)',
    ):
        yield function([("x", tensor((4, 8)))], [line], "gv")


def symbols():
    """Symbols of the file that functions declare again."""
    cast = "        {m} = T.int64()\n        gv = R.match_cast(x, R.Tensor(({m}, 4), dtype=\"float32\"))\n        return gv\n"
    for name, header in itertools.product(("n", "m", "k"), ('R.Tensor(dtype="float32", ndim=2)', 'R.Tensor((n, m), dtype="float32")', 'R.Tensor((n, n), dtype="float32")', 'R.Tensor(("n", 4), dtype="float32")', 'R.Tensor((n + 1, n), dtype="float32")')):
        yield f'{HEAD}\nm = TypeVar("m")\nn = TypeVar("n")\n@I.ir_module\nclass Module:\n    @R.function\n    def main(x: {header}):\n{cast.format(m=name)}'
    for dtype, buffer, own in itertools.product(("int32", "int64"), ("n", '"n"', "8"), (True, False)):
        declared = f"        n = T.{dtype}()\n" if own else ""
        match = "        B = T.match_buffer(b, (n,), \"float32\")\n" if own else ""
        extent = "n" if own or buffer != "8" else "8"
        second = "b: T.handle" if own else f'B: T.Buffer(({buffer},), "float32")'
        yield (
            f'{HEAD}\nn = TypeVar("n")\n@I.ir_module\nclass Module:\n    @T.prim_func(private=True, s_tir=True)\n'
            f'    def copy(A: T.Buffer(({buffer},), "float32"), {second}):\n{declared}{match}'
            f"        for i in range({extent}):\n            with T.sblock(\"copy\"):\n                vi = T.axis.spatial({extent}, i)\n"
            f"                B[vi] = A[vi]\n\n    @R.function\n    def main(x: R.Tensor((n,), dtype=\"float32\")):\n        return x\n"
        )


def spellings():
    """Current spellings and old ones."""
    def prim(decorator="@T.prim_func(private=True, s_tir=True)", block="sblock", alloc="sblock_alloc_buffer", attr='{"tirx.noalias": True}', call="out_ty=", **other):
        return (
            f"{HEAD.replace('tirx as T', other.get('tir', 'tirx') + ' as T')}\n@I.ir_module\nclass Module:\n    {decorator}\n"
            f'    def relu(A: T.Buffer((T.int64(8),), "float32"), B: T.Buffer((T.int64(8),), "float32")):\n        T.func_attr({attr})\n'
            f'        {other.get("root", "")}C = T.{alloc}((T.int64(8),))\n'
            f'        for i in range(T.int64(8)):\n            with T.{block}("a"):\n                vi = T.axis.{other.get("axis", "spatial")}(T.int64(8), i)\n                C[vi] = A[vi]\n'
            f'        for i in range(T.int64(8)):\n            with T.{block}("b"):\n                vi = T.axis.spatial(T.int64(8), i)\n                B[vi] = T.max(C[vi], T.float32(0))\n\n'
            f'    @R.function\n    def main(x: R.Tensor((8,), dtype="float32"){other.get("param", "")}):\n        cls = Module\n'
            f'        gv = R.call_tir({other.get("callee", "cls.relu")}, (x,), {call}R.Tensor((8,), dtype="float32"))\n        return gv\n'
        )

    yield prim()
    yield prim(block="block")
    yield prim(alloc="alloc_buffer")
    yield prim(block="block", alloc="alloc_buffer")
    yield prim(decorator="@T.prim_func(private=True)")
    yield prim(decorator="@T.prim_func")
    yield prim(decorator="@T.prim_func(private=True)", block="block", alloc="alloc_buffer", call="out_sinfo=")
    yield prim(call="out_sinfo=")
    yield prim(call="")
    yield prim(attr='{"tir.noalias": T.bool(True)}')
    yield prim(tir="tir")
    yield prim(callee="Module.relu")
    yield prim(param=", o: R.Object")
    yield prim(param=", o: R.Any")
    yield prim(param=', o: R.Prim("int64")')
    yield prim(param=", o: T.int64")
    yield prim(param=', o: R.Prim(value=3)')
    x = [("x", tensor((4, 8)))]
    for line in (
        'gv = R.call_packed("f", x, ty_args=(R.Tensor((4, 8), dtype="float32"),))',
        'gv = R.call_packed("f", x, sinfo_args=(R.Tensor((4, 8), dtype="float32"),))',
        'gv = R.call_dps_packed("f", (x,), out_ty=R.Tensor((4, 8), dtype="float32"))',
        'gv = R.call_dps_packed("f", (x,), out_sinfo=R.Tensor((4, 8), dtype="float32"))',
        'gv = R.call_pure_packed("f", x, ty_args=(R.Tensor((4, 8), dtype="float32"),))',
        'gv = R.call_pure_packed("f", x, sinfo_args=(R.Tensor((4, 8), dtype="float32"),))',
        'gv = R.arange(0, 8, 1, dtype="float32")',
        'gv = R.arange(R.prim_value(0), R.prim_value(8), R.prim_value(1), dtype="float32")',
        'gv = R.matmul(x, R.permute_dims(x, axes=None), out_dtype="void")',
        'gv = R.matmul(x, R.permute_dims(x, axes=None), out_dtype=None)',
        'gv = R.strided_slice(x, (0,), (0,), (2,), assume_inbound=False)',
        'gv = R.strided_slice(x, axes=[0], begin=[0], end=[2])',
        'gv = R.builtin.alloc_tensor(R.shape([4, 8]), R.dtype("float32"), R.prim_value(0), R.str("global"))',
        'gv = R.builtin.alloc_tensor(R.shape([4, 8]), R.dtype("float32"), R.prim_value(0), R.str("global"), ty_args=(R.Tensor((4, 8), dtype="float32"),))',
        'gv = R.builtin.alloc_tensor(R.shape([4, 8]), R.dtype("float32"), R.prim_value(0), R.str("global"), sinfo_args=(R.Tensor((4, 8), dtype="float32"),))',
        'gv = R.builtin.alloc_tensor(R.shape([4, 8]), dtype="float32", runtime_device_index=0)',
    ):
        text = function(x, [line], "gv").replace("        with R.dataflow():\n", "").replace("            R.output(gv)\n", "").replace("            gv =", "        gv =")
        yield text.replace("@R.function\n", "@R.function(pure=False)\n")


FAMILIES = (
    transposed_layouts, transposed_attributes, forward_layouts, depthwise, unit_extents, grouped, integers, products, poolings,
    num_inputs, constants, symbols, spellings,
)


def spelled(text, tvm):
    """Converts a program of `function` to the spelling of a release; texts that test spellings stay as they are."""
    symbols = re.findall(r'^(\w+) = TypeVar\("\1"\)\n', text, re.MULTILINE)
    if tvm == "0.27" or "prim_func" in text or "T.int64()" in text:
        return text
    for symbol in symbols:
        text = text.replace(f'{symbol} = TypeVar("{symbol}")\n', "")
        head, tail = re.split(r"(?<=\):\n)", text, maxsplit=1)
        text = re.sub(rf'(?<!["\w]){symbol}(?=[,)])', f'"{symbol}"', head) + tail
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tvm", choices=("0.25", "0.26", "0.27"), default="0.27")
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        for number, text in enumerate(family()):
            (folder / f"{family.__name__}-{number:03}.rx").write_text(spelled(text, options.tvm))
    print(f"{len(list(folder.glob('*.rx')))} programs in {folder}")


if __name__ == "__main__":
    main()
