"""Texts of the programs of conformance_defects.py: relax functions and kernels, in the current spelling or the classic one.

A dim is a number or the text of a symbolic expression; a type is a tuple of dims and a dtype. The line of a mistake contains `MARK`.
"""

import dataclasses
import re

MARK = "  #!"


def symbols_of(*types):
    """Returns the symbols in the dims of some types, in order."""
    names = [name for dims, _ in types for dim in dims if isinstance(dim, str) for name in re.findall(r"[a-z]\w*", dim)]
    return list(dict.fromkeys(names))


def listed(items):
    """Formats texts as a tuple."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


@dataclasses.dataclass(frozen=True)
class Spelling:
    """The spelling of a program in TVM 0.27, or up to TVM 0.26."""

    classic: bool

    def __str__(self):
        return "classic" if self.classic else "tvm-0.27"

    def type(self, ty, header=False):
        """Formats a tensor's type in a binding, or in a header, where expressions are quoted."""
        dims, dtype = ty
        quoted = [f'"{dim}"' if header and isinstance(dim, str) and (self.classic or not dim.isidentifier()) else str(dim) for dim in dims]
        return f'R.Tensor({listed(quoted)}, dtype="{dtype}")' if dims else f'R.Tensor((), dtype="{dtype}")'

    def module(self, functions, symbols=()):
        """Returns a module of these functions. Symbols of relax functions are declared before it, or in each
        function."""
        imports = ["# from tvm.script import ir as I", f"# from tvm.script import {'tir' if self.classic else 'tirx'} as T"]
        imports += ["# from tvm.script import relax as R", ""]
        declared = [] if self.classic else [f'{symbol} = TypeVar("{symbol}")' for symbol in symbols]
        first = ["# from typing import TypeVar"] if declared else []
        return "\n".join([*first, *imports, *declared, "@I.ir_module", "class Module:", "\n\n".join(functions), ""])

    def function(self, name, params, result, body, attrs="", dataflow=True):
        """A relax function. `params` are names and types, a type a text or a pair; `body` are names, types or None, and values; the
        last is returned."""
        text = lambda ty, header: ty if isinstance(ty, str) else self.type(ty, header)
        header = ", ".join(f"{name}: {text(ty, True)}" for name, ty in params)
        lines = [f"R.func_attr({{{attrs}}})"] if attrs else []
        if self.classic:
            types = [ty for _, ty in params if not isinstance(ty, str)]
            lines += [f"{symbol} = T.int64()" for symbol in symbols_of(*types)]
        calls = any("cls." in value for _, _, value in body)
        lines += ["cls = Module"] if calls else []
        last = body[-1][0]
        bound = [f"{name}{f': {text(ty, False)}' if ty else ''} = {value}" for name, ty, value in body]
        if dataflow:
            lines += ["with R.dataflow():", *(f"    {line}" for line in bound), f"    R.output({last})"]
        else:
            lines += bound
        lines.append(f"return {last}")
        top = f"    @R.function\n    def {name}({header}) -> {text(result, True)}:\n"
        return top + "\n".join(f"        {line}" for line in lines)

    def call_tir(self, kernel, args, out, wrong=False):
        """Formats a `call_tir`."""
        name = "out_sinfo" if self.classic else "out_ty"
        return f"R.call_tir(cls.{kernel}, {listed(args)}, {name}={self.type(out)}){MARK if wrong else ''}"

    def kernel(self, name, buffers, loops, block, body):
        """A prim_func over named buffers. `loops` are extents with the kind of their axis, `block` the reads and the write, and `body`
        the statements, in which `{0}`, `{1}`, … are the axes."""
        extents = lambda dims: listed([str(dim) if isinstance(dim, str) else f"T.int64({dim})" for dim in dims])
        symbols = symbols_of(*(ty for _, ty in buffers))
        lines = [f'T.func_attr({{"tir.noalias": T.bool(True)}})' if self.classic else 'T.func_attr({"tirx.noalias": True})']
        if symbols:
            header = ", ".join(f"var_{buffer}: T.handle" for buffer, _ in buffers)
            lines += [f"{symbol} = T.int64()" for symbol in symbols]
            lines += [f'{buffer} = T.match_buffer(var_{buffer}, {extents(dims)}, "{dtype}")' for buffer, (dims, dtype) in buffers]
        else:
            header = ", ".join(f'{buffer}: T.Buffer({extents(dims)}, "{dtype}")' for buffer, (dims, dtype) in buffers)
        variables = [f"i{at}" for at in range(len(loops))]
        axes = [f"v{at}" for at in range(len(loops))]
        kinds = "".join(kind for _, kind in loops)
        grid = extents([extent for extent, _ in loops])[1:-1].rstrip(",")
        reads, write = block
        lines += [f"for {', '.join(variables)} in T.grid({grid}):", f'    with T.{"block" if self.classic else "sblock"}("{name}"):']
        remapped = f'T.axis.remap("{kinds}", [{", ".join(variables)}])'
        inner = [f"{', '.join(axes)} = {remapped}", f"T.reads({', '.join(reads)})", f"T.writes({write})", *body]
        lines += [f"        {line.format(*axes)}" for line in inner]
        decorator = "@T.prim_func(private=True)" if self.classic else "@T.prim_func(private=True, s_tir=True)"
        return f"    {decorator}\n    def {name}({header}):\n" + "\n".join(f"        {line}" for line in lines)

    def elementwise(self, name, ty, formula, inputs="A"):
        """Returns a kernel that computes `formula`, in which `A` is the element of the first input."""
        dims, _ = ty
        at = "[" + ", ".join(f"{{{axis}}}" for axis in range(len(dims))) + "]"
        value = re.sub(r"\b([A-D])\b", rf"\1{at}", formula)
        buffers = [*((buffer, ty) for buffer in inputs), ("OUT", ty)]
        block = ([f"{buffer}{at}" for buffer in inputs], f"OUT{at}")
        return self.kernel(name, buffers, [(dim, "S") for dim in dims], block, [f"OUT{at} = {value}"])

    def convolution(self, name, data, weight, out, stride=1):
        """Returns the kernel of a direct convolution without padding, channels first."""
        (_, dtype), rank = data, len(data[0]) - 2
        spatial = [f"{{{2 + at}}}" for at in range(rank)]
        window = [f"{{{3 + rank + at}}}" for at in range(rank)]
        channel = f"{{{2 + rank}}}"
        step = f" * {stride}" if stride > 1 else ""
        element = f"DATA[{{0}}, {channel}, {', '.join(f'{y}{step} + {r}' for y, r in zip(spatial, window))}]"
        tap = f"WEIGHT[{{1}}, {channel}, {', '.join(window)}]"
        result = f"OUT[{{0}}, {{1}}, {', '.join(spatial)}]"
        loops = [(dim, "S") for dim in out[0]] + [(dim, "R") for dim in weight[0][1:]]
        body = ["with T.init():", f"    {result} = T.{dtype}(0.0)", f"{result} = {result} + {element} * {tap}"]
        buffers = [("DATA", data), ("WEIGHT", weight), ("OUT", out)]
        return self.kernel(name, buffers, loops, ([element, tap], result), body)

    def matmul(self, name, a, b, out):
        """Returns the kernel of a matrix product."""
        (rows, columns), (depth, _) = out[0], b[0]
        result = "OUT[{0}, {1}]"
        body = ["with T.init():", f"    {result} = T.{out[1]}(0.0)", f"{result} = {result} + A[{{0}}, {{2}}] * B[{{2}}, {{1}}]"]
        loops = [(rows, "S"), (columns, "S"), (depth, "R")]
        return self.kernel(name, [("A", a), ("B", b), ("OUT", out)], loops, (["A[{0}, {2}]", "B[{2}, {1}]"], result), body)
