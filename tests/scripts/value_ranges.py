#!/usr/bin/env python3
"""Compares rxcheck's diagnostics of random indexing operations with values that numpy computes.

    value_ranges.py RXCHECK [--count N] [--seed N] [--show N]

Each of N programs (default 300) computes indices by a random chain of operators, including functions, tuples and branches, and reads
by them. Without a parameter the indices are known: rx must report an error if one is out of range, and nothing if none is. With a
parameter (an unknown mask, or data for argmax, argsort or a clip), rx must not report an error if in some sample no index is out of range. Needs numpy; says
so and succeeds without it. The exit status is 1 if rx was wrong: it missed an error for known indices, or reported a false one.
"""

import argparse
import collections
import random
import sys

import rx_diagnostics

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(0)

SAMPLES = 4
HEAD = "@I.ir_module\nclass Module:\n"


class Chain:
    """The bindings of one function; `samples` are the values of the last one in each sample, `known` is whether it is
    constant."""

    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.params = []
        self.helpers = []
        self.known = True
        self.name = None
        self.samples = []

    def bind(self, text, samples):
        self.name = f"v{len(self.lines)}"
        self.lines.append(f"{self.name} = {text}")
        self.samples = samples

    def each(self, text, function):
        self.bind(text, [function(sample) for sample in self.samples])

    # Initial values.

    def start(self):
        rng = self.rng
        n = rng.randint(1, 12)
        kind = rng.choice(["arange", "full", "const", "const", "zeros", "ones", "argmax", "argsort", "clip", "topk", "eye"])
        dtype = rng.choice(["int64", "int32"])
        once = lambda value: [np.asarray(value, dtype)] * SAMPLES
        if kind == "arange":
            low, step = rng.randint(-3, 5), rng.choice([1, 1, 2, 3])
            self.bind(f'R.arange({low}, {low + step * n}, {step}, dtype="{dtype}")', once(np.arange(low, low + step * n, step)))
        elif kind == "full":
            value = rng.randint(-2, 20)
            self.bind(f'R.full(({n},), R.const({value}, "{dtype}"))', once(np.full(n, value)))
        elif kind == "const":
            values = [rng.randint(-1, 16) for _ in range(n)]
            self.bind(f'R.const({values}, "{dtype}")', once(values))
        elif kind == "eye":
            self.bind(f'R.reshape(R.eye(3, {n}, 0, dtype="{dtype}"), ({3 * n},))', once(np.eye(3, n).reshape(-1)))
        elif kind in ("zeros", "ones"):
            self.bind(f'R.{kind}(({n},), "{dtype}")', once(getattr(np, kind)(n)))
        else:
            self.opaque(kind, n)

    def opaque(self, kind, n):
        """Returns indices computed from unknown data."""
        rows = self.rng.randint(1, 12)
        data = [np.random.default_rng(self.rng.randrange(1 << 30)).standard_normal((n, rows)) for _ in range(SAMPLES)]
        self.known = False
        name = f"p{len(self.params)}"
        if kind == "clip":
            self.params.append(f'{name}: R.Tensor(({n},), dtype="int64")')
            low, high = sorted(self.rng.sample(range(-2, 14), 2))
            drawn = [np.clip(np.array([self.rng.randint(-20, 20) for _ in range(n)]), low, high) for _ in range(SAMPLES)]
            self.bind(f"R.clip({name}, {low}, {high})", drawn)
            return
        self.params.append(f'{name}: R.Tensor(({n}, {rows}), dtype="float32")')
        if kind == "argmax":
            self.bind(f"R.argmax({name}, axis=1)", [d.argmax(1) for d in data])
        elif kind == "argsort":
            text = f'R.reshape(R.argsort({name}, axis=1, dtype="int64"), ({n * rows},))'
            self.bind(text, [d.argsort(1).reshape(-1) for d in data])
        else:
            text = f'R.reshape(R.topk({name}, k=1, axis=1, ret_type="indices", dtype="int64"), ({n},))'
            self.bind(text, [d.argmax(1) for d in data])

    # Operations on the values, which stay one-dimensional.

    def step(self):
        rng, name = self.rng, self.name
        n, dtype = len(self.samples[0]), self.samples[0].dtype
        c = rng.randint(1, 6)
        const, zero = f'R.const({c}, "{dtype}")', f'R.const(0, "{dtype}")'
        np_c = np.asarray(c, dtype)
        steps = {
            "add": (f"R.add({name}, {const})", lambda v: v + np_c),
            "subtract": (f"R.subtract({name}, {const})", lambda v: v - np_c),
            "rsub": (f"R.subtract({const}, {name})", lambda v: np_c - v),
            "multiply": (f"R.multiply({name}, {const})", lambda v: v * np_c),
            "floor_divide": (f"R.floor_divide({name}, {const})", lambda v: v // np_c),
            "floor_mod": (f"R.floor_mod({name}, {const})", lambda v: v % np_c),
            "maximum": (f"R.maximum({name}, {const})", lambda v: np.maximum(v, np_c)),
            "minimum": (f"R.minimum({name}, {const})", lambda v: np.minimum(v, np_c)),
            "clip": (f"R.clip({name}, 0, {c})", lambda v: np.clip(v, 0, c)),
            "negative": (f"R.negative({name})", lambda v: -v),
            "abs": (f"R.abs({name})", np.abs),
            "sign": (f"R.sign({name})", np.sign),
            "square": (f"R.square({name})", lambda v: v * v),
            "double": (f"R.add({name}, {name})", lambda v: v + v),
            "bitwise_and": (f"R.bitwise_and({name}, {const})", lambda v: v & np_c),
            "bitwise_or": (f"R.bitwise_or({name}, {const})", lambda v: v | np_c),
            "bitwise_xor": (f"R.bitwise_xor({name}, {const})", lambda v: v ^ np_c),
            "right_shift": (f"R.right_shift({name}, {const})", lambda v: v >> np_c),
            "left_shift": (f'R.left_shift({name}, R.const(1, "{dtype}"))', lambda v: v << np.asarray(1, dtype)),
            "float": (f'R.astype(R.astype({name}, "float32"), "{dtype}")', lambda v: v),
            "half": (
                f'R.astype(R.floor(R.multiply(R.astype({name}, "float32"), R.const(0.5, "float32"))), "{dtype}")',
                lambda v: np.floor(v * 0.5).astype(dtype),
            ),
            "int32": (f'R.astype({name}, "int32")', lambda v: v.astype("int32")),
            "bool": (f'R.astype(R.astype({name}, "bool"), "int64")', lambda v: v.astype(bool).astype("int64")),
            "greater": (f'R.astype(R.greater({name}, {const}), "int32")', lambda v: (v > np_c).astype("int32")),
            "where": (
                f'R.where(R.greater({name}, {const}), {const}, {name})',
                lambda v: np.where(v > np_c, np_c, v),
            ),
            "from_end": (
                f"R.where(R.less({name}, {zero}), R.add({name}, {const}), {name})",
                lambda v: np.where(v < 0, v + np_c, v),
            ),
            "from_end_back": (
                f"R.where(R.less_equal({zero}, {name}), {name}, R.subtract({name}, {const}))",
                lambda v: np.where(v >= 0, v, v - np_c),
            ),
            "inside": (
                f"R.where(R.logical_and(R.greater_equal({name}, {zero}), R.less({name}, {const})), {name}, {zero})",
                lambda v: np.where((v >= 0) & (v < np_c), v, np.asarray(0, dtype)),
            ),
            "outside": (
                f"R.where(R.logical_not(R.logical_or(R.less({name}, {zero}), R.greater({name}, {const}))), {name}, {const})",
                lambda v: np.where((v < 0) | (v > np_c), np_c, v),
            ),
            "unless_equal": (
                f"R.where(R.not_equal({name}, {const}), R.add({name}, {const}), {name})",
                lambda v: np.where(v != np_c, v + np_c, v),
            ),
            "flip": (f"R.flip({name}, axis=0)", lambda v: v[::-1]),
            "reshape": (f"R.reshape(R.reshape({name}, (1, {n})), ({n},))", lambda v: v),
            "permute": (f"R.flatten(R.permute_dims(R.reshape({name}, ({n}, 1)), axes=[1, 0]))", lambda v: v),
            "slice": (f"R.strided_slice({name}, [0], [{n // 2}], [{n}], [1])", lambda v: v[n // 2 :]),
            "every": (f"R.strided_slice({name}, [0], [0], [{n}], [2])", lambda v: v[::2]),
            "concat": (f"R.concat(({name}, {name}), axis=0)", lambda v: np.concatenate([v, v])),
            "repeat": (f"R.repeat({name}, 2, axis=0)", lambda v: np.repeat(v, 2)),
            "tile": (f"R.tile({name}, (2,))", lambda v: np.tile(v, 2)),
            "cumsum": (f"R.cumsum({name}, axis=0)", lambda v: np.cumsum(v).astype(v.dtype)),
            "sum": (f"R.sum({name}, axis=0, keepdims=True)", lambda v: v.sum(keepdims=True).astype(v.dtype)),
            "max": (f"R.max({name}, axis=0, keepdims=True)", lambda v: v.max(keepdims=True)),
            "min": (f"R.min({name}, axis=0, keepdims=True)", lambda v: v.min(keepdims=True)),
            "prod": (f"R.prod({name}, axis=0, keepdims=True)", lambda v: v.prod(keepdims=True).astype(v.dtype)),
            "sort": (f"R.sort({name}, axis=0)", np.sort),
            "argsort": (f'R.argsort({name}, axis=0, dtype="int64")', lambda v: np.argsort(v, kind="stable")),
            "take": (f'R.take({name}, R.const([0, {n - 1}], "int64"), axis=0)', lambda v: v[[0, n - 1]]),
            "take_clip": (f'R.take({name}, R.const([-3, 99], "int64"), axis=0, mode="clip")', lambda v: v[[0, n - 1]]),
            "expand": (f"R.squeeze(R.expand_dims({name}, axis=[0]), axis=[0])", lambda v: v),
            "broadcast": (f"R.reshape(R.broadcast_to({name}, (2, {n})), ({2 * n},))", lambda v: np.tile(v, 2)),
            "stack": (f"R.reshape(R.stack(({name}, {name}), axis=1), ({2 * n},))", lambda v: np.repeat(v, 2)),
            "split": (f"R.split({name}, [{n // 2}], axis=0)[1]", lambda v: v[n // 2 :]),
            "roll": (f"R.concat((R.strided_slice({name}, [0], [1], [{n}], [1]), R.strided_slice({name}, [0], [0], [1], [1])), axis=0)",
                     lambda v: np.roll(v, -1)),
            "tuple": (f"({name}, {name})[1]", lambda v: v),
            "scatter": (
                f'R.scatter_elements({name}, R.const([0], "int64"), R.const([{c}], "{dtype}"), axis=0)',
                lambda v: np.concatenate([np.asarray([c], dtype), v[1:]]),
            ),
        }  # fmt: skip
        how = rng.choice([*steps, "function", "branch"])
        if how == "function":
            return self.through_function(n, dtype)
        if how == "branch":
            return self.through_branch(const, np_c)
        text, function = steps[how]
        if any(np.abs(sample).max() > 1000 for sample in self.samples):
            text, function = steps["floor_mod"]
        self.each(text, function)

    def through_function(self, n, dtype):
        helper = f"h{len(self.helpers)}"
        ty = f'R.Tensor(({n},), dtype="{dtype}")'
        self.helpers.append(
            f"    @R.function\n    def {helper}(a: {ty}, b: {ty}) -> {ty}:\n        c = R.add(a, b)\n        return c\n"
        )
        self.each(f"cls.{helper}({self.name}, {self.name})", lambda v: v + v)

    def through_branch(self, const, np_c):
        condition = f"q{len(self.params)}"
        self.params.append(f'{condition}: R.Tensor((), dtype="bool")')
        self.known = False
        name, before = f"v{len(self.lines)}", self.name
        self.lines.append(
            f"if {condition}:\n            {name} = R.add({before}, {const})\n"
            f"        else:\n            {name} = R.multiply({before}, {const})"
        )
        both = [lambda v: v + np_c, lambda v: v * np_c]
        self.name, self.samples = name, [both[at % 2](sample) for at, sample in enumerate(self.samples)]

    # Uses as indices.

    def site(self):
        """Returns the text of an indexing operation, and for each sample whether an index is out of range."""
        rng, name, n = self.rng, self.name, len(self.samples[0])
        top = max(int(sample.max()) for sample in self.samples)
        extent = max(1, rng.choice([top, top + 1, top + 1, top + 2, 16]))
        low = 0
        x = f'R.zeros(({extent}, 3), "float32")'
        flat = f'R.zeros(({extent},), "float32")'
        uses = {
            "take": f"R.take({x}, {name}, axis=0)",
            "take_last": f'R.take(R.zeros((3, {extent}), "float32"), {name}, axis=-1)',
            "gather_elements": f"R.gather_elements({flat}, {name}, axis=0)",
            "gather_nd": f'R.gather_nd({x}, R.astype(R.reshape({name}, ({n}, 1)), "int64"))',
            "scatter_elements": f'R.scatter_elements({flat}, {name}, R.zeros(({n},), "float32"), axis=0)',
            "wrap": f'R.take({x}, {name}, axis=0, mode="wrap")',
            "clip": f'R.take({x}, {name}, axis=0, mode="clip")',
        }
        how = rng.choice(list(uses))
        if how == "scatter_elements":
            low = -extent
        outside = [how not in ("wrap", "clip") and bool((s.min() < low) or (s.max() >= extent)) for s in self.samples]
        return uses[how], outside


def program(number, rng):
    """Returns the text of one function and its helpers, the samples' verdicts, and whether the indices are known."""
    chain = Chain(rng)
    chain.start()
    for _ in range(rng.randint(0, 6)):
        chain.step()
    use, outside = chain.site()
    body = "".join(f"        {line}\n" for line in [*chain.lines, f"gv = {use}"])
    cls = "        cls = Module\n" if chain.helpers else ""
    main = f"    @R.function\n    def main({', '.join(chain.params)}):\n{cls}{body}        return gv\n"
    return HEAD + "".join(chain.helpers) + main, outside, chain.known


def main():
    """Draws the programs, asks rx, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxcheck")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    drawn = [program(number, rng) for number in range(options.count)]
    said = rx_diagnostics.of_texts(options.rxcheck, [text for text, _, _ in drawn])
    found = collections.defaultdict(list)
    for at, (text, outside, known) in enumerate(drawn):
        sites = [row for row in said[at] if row["code"] in ("RX0601", "RX0651")]
        errors = [row for row in sites if row["severity"] == "error"]
        strange = [row for row in said[at] if row["severity"] == "error" and row["code"] != "RX0601"]
        kind = None
        if strange:
            kind = "another error"
        elif errors and not all(outside):
            kind = "false error"
        elif known and outside[0] and not errors:
            kind = "warned only" if sites else "missed"
        elif known and not outside[0] and sites:
            kind = "false warning"
        if kind:
            found[kind].append((text, said[at]))
    for kind, cases in sorted(found.items()):
        for text, rows in cases[: options.show]:
            print(f"## {kind}\n{text}", *(f"  {row['line']}: [{row['name']}] {row['message']}\n" for row in rows), sep="")
    figures = {kind: len(cases) for kind, cases in sorted(found.items())}
    certain = sum(known and outside[0] for _, outside, known in drawn)
    print(f"{len(drawn)} programs, {certain} certainly out of bounds; {figures}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
