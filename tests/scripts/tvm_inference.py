#!/usr/bin/env python3
"""Compares the types that TVM and rxcheck infer for random calls and programs.

    tvm_inference.py RXCHECK [--count N] [--seed N] [--only OPERATOR]... [--show N] [--keep FOLDER]

N calls of each operator (default 100) are drawn by inference_recipes.py, and N functions of each construct by
inference_programs.py, the same for the same seed (default 0). TVM normalizes the same call, with parameters
of the same types, or reads the function; rxcheck reads one text with all of them. Dims are compared by their values at
several points of the symbols. A disagreement is one of

    type          both accept, with different types
    rx rejects    rx reports an error where TVM infers a type
    tvm rejects   TVM raises an error where rx has none on the call's line, or in the function

Not every one is a mistake of rx: see docs/findings.md and the prose of each operator. Needs apache-tvm 0.27; says so and
succeeds without it. The exit status says whether types differ.
"""

import argparse
import bisect
import collections
import functools
import itertools
import math
import pathlib
import re
import sys
import tempfile
import textwrap

import rx_diagnostics
import tvm_workers  # before tvm: it says so where there is none
from inference_calls import CALLEE, MESHES, SYMBOLS, Draw, Other, Prim, Shape, Tensor
from inference_programs import PROGRAMS
from inference_recipes import RECIPES

import tvm

SECONDS_PER_CALL = 120
POINTS = [dict(zip(SYMBOLS, values)) for values in [(7, 11, 4), (16, 8, 12), (3, 5, 2), (1, 1, 1), (64, 97, 33), (2, 30, 9)]]
SPELLED = {mesh: f"R.device_mesh({shape}, I.Range({of.start}, {of.stop}))" for mesh, (shape, of) in MESHES.items()}
HEAD = (
    "".join(f'{symbol} = TypeVar("{symbol}")\n' for symbol in [*SYMBOLS, *CALLEE.values()])
    + f"""
@I.ir_module
class Module:
    I.module_global_infos({{
        "vdevice": [I.vdevice({{"kind": "llvm"}}, 0, "global"), I.vdevice({{"kind": "cuda"}}, 0, "global")],
        "mesh": [{", ".join(SPELLED.values())}],
    }})
"""
)


# TVM.


class Inspect:
    """A stand-in for `R.inspect`, whose operators TVM has without Python functions."""

    def __getattr__(self, name):
        of = tvm.ir.Op.get(f"relax.inspect.{name}")
        return lambda *args: tvm.ir.Call(of, [tvm.relax.utils.convert_to_expr(argument) for argument in args])


class Tvm:
    """Computes TVM's answers."""

    def __init__(self):
        from tvm import relax, tirx
        from tvm.relax.global_info import VDevice
        from tvm.script.parser import relax as R
        from tvm.script.parser import tirx as T

        self.relax = relax
        self.symbols = {symbol: tirx.Var(symbol, "int64") for symbol in SYMBOLS}
        R.inspect = Inspect()
        self.names = {"R": R, "T": T, **self.symbols}
        self.devices = {"llvm:0:global": VDevice("llvm", 0, "global"), "cuda:0:global": VDevice("cuda", 0, "global")}

    def dims(self, dims):
        return [eval(dim, dict(self.symbols)) for dim in dims]

    def type(self, ty, variables):
        """Converts a type of inference_calls to TVM's object."""
        relax = self.relax
        match ty:
            case Tensor(shape=str(name)):
                return relax.TensorType(variables[name], ty.dtype or None, self.devices.get(ty.vdevice))
            case Tensor(shape=int(rank)):
                return relax.TensorType(None, ty.dtype or None, self.devices.get(ty.vdevice), ndim=rank)
            case Tensor():
                return relax.TensorType(self.dims(ty.shape), ty.dtype or None, self.devices.get(ty.vdevice))
            case Shape(dims=int(rank)):
                return relax.ShapeType(ndim=rank)
            case Shape():
                return relax.ShapeType(self.dims(ty.dims))
            case Prim():
                return tvm.ir.PrimType(ty.dtype)
            case Other(what="Tuple"):
                return tvm.ir.TupleType([self.type(field, variables) for field in ty.fields])
            case Other(what="Any"):
                return relax.AnyType()
        return relax.FuncType([], relax.TensorType([2, 3], "float32"))

    def answer(self, call):
        """Returns the type of a call as text, or TVM's exception."""
        try:
            return {"type": self.of_program(call) if call.lines else self.of_call(call)}
        except Exception as error:  # TVM rejects calls with exceptions of any type
            said = " ".join(str(error).split("--> <str>")[0].split())
            return {"error": f"{type(error).__name__}: {said[-400:]}"}

    def of_program(self, call):
        """Returns the type of `gv` if TVM reads the text."""
        module = tvm.script.from_source(HEAD + function(0, call), check_well_formed=False)
        self.relax.analysis.well_formed(module)
        bound = [binding.var for block in module["f0"].body.blocks for binding in block.bindings]
        return str(next(var.ty for var in reversed(bound) if var.name == "gv"))

    def of_call(self, call):
        """Returns the type of the call, which is built from TVM's objects."""
        variables = {}
        for name, ty in call.params:
            of = self.type(ty, variables)
            variables[name] = tvm.tirx.Var(name, ty.dtype) if isinstance(ty, Prim) else self.relax.Var(name, of)
        value = eval(call.text, {**self.names, **variables})
        if isinstance(value, (list, tuple)):
            return None
        builder = self.relax.BlockBuilder()
        with builder.testing_scope(def_vars=list(self.symbols.values())):
            return str(builder.normalize(value).ty)


@functools.cache
def peer():
    """Returns the process's single instance for asking TVM."""
    return Tvm()


def answer(call):
    yield peer().answer(call)


def ask_tvm(calls):
    """Returns TVM's answer to a call."""
    return tvm_workers.first(tvm_workers.asked([calls], answer, SECONDS_PER_CALL), {"error": "crash"})


# rxcheck.


def function(number, call):
    """Returns the text of a call's function and helpers. Its first parameter binds the symbols, so that each occurs
    alone somewhere."""
    params = [f"_: R.Shape([{', '.join(SYMBOLS)}])"] + [f"{name}: {ty.text()}" for name, ty in call.params]
    lines = ["cls = Module", *call.lines] if call.lines else [f"gv = {call.text}"]
    body = "".join(f"        {line}\n" for line in [*lines, "return gv"])
    return f"{''.join(call.helpers)}    @R.function(pure=False)\n    def f{number}({', '.join(params)}):\n{body}"


def ask_rx(binary, calls, folder):
    """Returns rx's answer to each call: the type, and the errors of its function."""
    path = folder / "calls.rx"
    functions = [function(number, call) for number, call in enumerate(calls)]
    path.write_text(HEAD + "".join(functions))
    ends = list(itertools.accumulate((text.count("\n") for text in functions), initial=HEAD.count("\n")))[1:]
    found = [{"type": None, "errors": []} for _ in calls]
    for row in rx_diagnostics.rows(binary, "--isolated", "--types", path):
        if row["kind"] == "binding" and row["name"] == "gv":
            found[int(row["function"][1:])]["type"] = row["struct_info"]
    for row in rx_diagnostics.rows(binary, "--isolated", path):
        number = bisect.bisect_left(ends, row["line"])
        if row["severity"] == "error":
            found[number]["errors"].append({**row, "on_call": bool(calls[number].lines) or row["line"] == ends[number] - 1})
    return found


# Types as values.


class R:
    """Stands in for Relax's types; evaluating a type's text gives a tuple."""

    Any = Object = ("any",)

    @staticmethod
    def Tensor(shape=None, dtype=None, vdevice=None, ndim=-1):
        if isinstance(shape, str) and not shape.startswith("$"):
            shape, dtype = None, shape
        vdevice = vdevice and re.sub(r":-1:", ":0:", vdevice)
        return ("tensor", ndim if shape is None else shape, dtype, vdevice) if shape != () else ("tensor", 0, dtype, vdevice)

    @staticmethod
    def Shape(dims=None, ndim=-1):
        return ("shape", ndim if dims is None else tuple(dims)) if dims != [] else ("shape", 0)

    @staticmethod
    def Tuple(*fields):
        return ("tuple", fields)

    @staticmethod
    def Callable(*parts):
        return ("callable", str(parts))

    @staticmethod
    def Prim(dtype):
        return ("prim", dtype)

    @staticmethod
    def DTensor(dims=None, dtype="", device_mesh="", placement="", ndim=-1):
        return ("dtensor", R.Tensor(dims, dtype, ndim=ndim), device_mesh, placement)


class T:
    """Stands in for TVM's scalars."""

    min, max, int64, int32 = min, max, int, int
    Div = staticmethod(lambda a, b: math.trunc(a / b))
    truncmod = staticmethod(math.fmod)
    floordiv = staticmethod(lambda a, b: a // b)
    floormod = staticmethod(lambda a, b: a % b)
    ceildiv = staticmethod(lambda a, b: -(-a // b))
    if_then_else = Select = staticmethod(lambda c, a, b: a if c else b)
    Cast = staticmethod(lambda _, value: int(value))
    And = staticmethod(lambda a, b: a and b)
    Or = staticmethod(lambda a, b: a or b)


for dtype in "bool int8 int16 uint8 uint16 uint32 uint64 float16 float32 float64".split():
    setattr(T, dtype, ("prim", dtype))


def value(text, point):
    """Evaluates a type at one point of the symbols."""
    if text is None:
        return None
    text = re.sub(r"\bR\.Tensor\b(?!\()", "R.Tensor()", text)
    text = re.sub(r"\bR\.Shape\b(?!\()", "R.Shape()", text)
    text = re.sub(r"\bR\.Tuple\b(?!\()", "R.Tuple()", text)
    text = "R.Tuple()" if text == "None" else text.replace("T.Tuple(", "R.Tuple(")
    text = re.sub(r"(?<![\w\"'.])(bool|u?int\d+|float\d+)(?![\w(])", r'R.Prim("\1")', text)
    text = re.sub(r"\bT\.(bool|u?int\d+|float\d+)\b(?!\()", r'R.Prim("\1")', text)
    for name, mesh in SPELLED.items():  # TVM spells the mesh out when it prints a type alone
        text = re.sub(re.escape(mesh).replace("I\\.", r"\w\."), f'"{name}"', text)
    # Variables: a shape evaluates to its name; scalars and symbols of casts have values.
    shapes = {name: f"${name}" for name in re.findall(r"\b(?:s\d+|[su])\b", text)}
    scalars = {name: 3 + int(name[1:]) for name in re.findall(r"\b[pc]\d+\b", text)}
    return eval(text, {"R": R, "T": T, **shapes, **scalars, **point})


def same(a, b):
    """Returns whether two types are equal at every point where both can be evaluated; `None` if there is no such
    point."""
    answers = set()
    for point in POINTS:
        try:
            answers.add(value(a, point) == value(b, point))
        except ZeroDivisionError:
            continue
        except Exception as error:  # an unsupported spelling, or `?`
            return f"cannot read {a} and {b}: {error}"
    return False not in answers


# The comparison.


def disagreement(tvm_says, rx_says):
    """Returns the kind of a disagreement, if there is one."""
    rejected = bool(rx_says["errors"])
    if "error" in tvm_says:
        return None if any(error["on_call"] for error in rx_says["errors"]) else "tvm rejects"
    if rejected:
        return "rx rejects"
    return None if same(tvm_says["type"], rx_says["type"]) is True else "type"


def main():
    """Draws the calls, asks both, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxcheck")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append")
    parser.add_argument("--show", type=int, default=3, help="disagreements shown of each kind and operator")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the text that rxcheck read")
    options = parser.parse_args()
    draw = Draw(options.seed)
    recipes = [(name, draw.call, recipe) for name, recipe in RECIPES.items()]
    recipes += [(name, draw.program, recipe) for name, recipe in PROGRAMS.items()]
    recipes = [row for row in recipes if not options.only or row[0] in options.only]
    calls = [ask(name, recipe) for name, ask, recipe in recipes for _ in range(options.count)]
    with tempfile.TemporaryDirectory() as folder:
        by_rx = ask_rx(options.rxcheck, calls, options.keep or pathlib.Path(folder))
    by_tvm = ask_tvm(calls)
    found = collections.defaultdict(list)
    for call, tvm_says, rx_says in zip(calls, by_tvm, by_rx, strict=True):
        kind = disagreement(tvm_says, rx_says)
        if kind:
            found[kind, call.operator].append((call, tvm_says, rx_says))
    for (kind, operator), cases in sorted(found.items()):
        print(f"## {kind}: {operator}: {len(cases)}")
        for call, tvm_says, rx_says in cases[: options.show]:
            said = f"{call.text}  with {', '.join(f'{name}: {ty.text()}' for name, ty in call.params)}"
            print(textwrap.indent(function(0, call) if call.lines else said, "  "))
            print(f"    tvm {tvm_says.get('type') or tvm_says.get('error')}")
            print(f"    rx  {rx_says['type']}", *(f"[{error['name']}] {error['message']}" for error in rx_says["errors"]))
    rejected = sum("error" in says for says in by_tvm)
    kinds = collections.Counter()
    for (kind, _), cases in found.items():
        kinds[kind] += len(cases)
    print(f"{len(calls)} calls of {len(recipes)} operators and constructs, {rejected} rejected by TVM; {dict(kinds)}")
    return 1 if kinds["type"] else 0


if __name__ == "__main__":
    sys.exit(main())
