"""Compares the table of signatures of `T.` functions with the installed TVM.

    python tests/scripts/tir_signatures.py compiler/prim_func/src/functions/signatures.txt
    python tests/scripts/tir_signatures.py compiler/prim_func/src/functions/signatures.txt --write

Prints each line of the table that contradicts TVM, with a line that would agree with both, and exits with 1 if there is one.
`--write` writes those lines to the table. The table is the union of the releases it was compared with, so write it with the newest
release first: 0.27, 0.26, 0.25. The head of the table describes the format of a line.
"""

import argparse
import dataclasses
import inspect
import re
import sys
import warnings

POSITIONAL, VARIADIC, KEYWORD, KEYWORDS = "positional", "variadic", "keyword", "keywords"
DTYPE = re.compile(r"(bool|e\dm\d|float|bfloat|bf|int|uint|[fiu])\d+\w*$|e\dm\d\w*$")


@dataclasses.dataclass
class Param:
    """A parameter: its names in all releases, its default, and whether only older releases have it."""

    names: list
    kind: str
    default: str | None = None
    old: bool = False

    def __str__(self):
        stars = {VARIADIC: "*", KEYWORDS: "**"}.get(self.kind, "")
        default = "" if self.default is None else f"={self.default}"
        return f"{'~' if self.old else ''}{stars}{'|'.join(self.names)}{default}"


@dataclasses.dataclass
class Function:
    """A function of `T`, and how its wrapper treats a keyword `dtype`: `first`, `dropped` or nothing."""

    name: str
    params: list
    dtype: str = ""

    def __str__(self):
        parts, only = [], False
        for param in self.params:
            if param.kind == KEYWORD and not param.old and not only:
                only = True
                if not any(before.kind == VARIADIC for before in self.params):
                    parts.append("*")
            parts.append(str(param))
        tail = f" dtype:{self.dtype}" if self.dtype else ""
        return f"{self.name}({', '.join(parts)}){tail}"


def read(line):
    """Parses a line of the table."""
    name, rest = line.split("(", 1)
    inner, tail = rest.rsplit(")", 1)
    params, kind = [], POSITIONAL
    for part in filter(None, split(inner)):
        if part == "*":
            kind = KEYWORD
            continue
        old, part = part.startswith("~"), part.removeprefix("~")
        stars = len(part) - len(part.lstrip("*"))
        names, _, default = part.lstrip("*").partition("=")
        own = {1: VARIADIC, 2: KEYWORDS}.get(stars, KEYWORD if old else kind)
        if own == VARIADIC:
            kind = KEYWORD
        params.append(Param(names.split("|"), own, default or None, old))
    return Function(name, params, tail.strip().removeprefix("dtype:"))


def split(inner):
    """Splits a text at the commas outside strings."""
    return [part.strip() for part in re.findall(r"(?:[^,'\"]|'[^']*'|\"[^\"]*\")+", inner)]


def of_tvm(name, function):
    """Returns the function as the installed TVM declares it; `None` if Python's signature is not available."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    kinds = {
        inspect.Parameter.VAR_POSITIONAL: VARIADIC,
        inspect.Parameter.VAR_KEYWORD: KEYWORDS,
        inspect.Parameter.KEYWORD_ONLY: KEYWORD,
    }
    params = []
    for param in signature.parameters.values():
        default = None
        if param.default is not inspect.Parameter.empty:
            plain = param.default is None or isinstance(param.default, (bool, int, float, str))
            default = repr(param.default) if plain else "..."
        params.append(Param([param.name], kinds.get(param.kind, POSITIONAL), default))
    return Function(name, params, wrapper(function))


def wrapper(function):
    """Returns how the wrapper around a function treats a keyword `dtype`."""
    if not hasattr(function, "__wrapped__") or not hasattr(function, "__code__"):
        return ""
    source = inspect.getsource(function.__code__)
    if 'kwargs.pop("dtype"), *args' in source:
        return "first"
    return "dropped" if 'kwargs.pop("dtype")' in source else ""


def functions():
    """Returns the functions of the installed TVM's `T` and `T.axis`, except dtypes."""
    try:
        from tvm.script import tirx as T
    except ImportError:
        from tvm.script import tir as T
    found = {}
    for prefix, namespace in (("", T), ("axis.", T.axis)):
        for name in dir(namespace):
            value = getattr(namespace, name, None)
            if name.startswith("_") or inspect.ismodule(value) or not callable(value) or DTYPE.match(name):
                continue
            if isinstance(value, type) and issubclass(value, BaseException) or name == "axis":
                continue
            function = of_tvm(prefix + name, value)
            if function is not None:
                found[function.name] = function
    return found


def merged(known, other):
    """Returns a line of the table with the smallest change that makes it agree with another release too."""
    params = [dataclasses.replace(param, names=list(param.names)) for param in known.params]
    theirs = {param.names[0] for param in other.params}
    for at, param in enumerate(other.params):
        name = param.names[0]
        ours = next((own for own in params if name in own.names), None)
        same_place = params[at] if at < len(params) else None
        if ours is None and same_place and same_place.kind == param.kind and not theirs & set(same_place.names):
            same_place.names.append(name)
            ours = same_place
        if ours is None:
            old = param.kind in (POSITIONAL, KEYWORD)
            kind = KEYWORD if old else param.kind
            params.append(Param([name], kind, param.default or ("None" if old else None), old))
        elif ours.default is None and param.default is not None:
            ours.default = param.default
    for own in params:
        if own.kind in (POSITIONAL, KEYWORD) and own.default is None and not theirs & set(own.names):
            own.default = "None"
    return Function(known.name, params, known.dtype or other.dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--write", action="store_true", help="put the lines that agree with TVM into the table")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = open(arguments.table).read().splitlines()
    head = [line for line in lines if line.startswith("#")]
    table = {function.name: function for function in map(read, (line for line in lines if line and line[0] != "#"))}
    different = 0
    for name, function in functions().items():
        known = table.get(name)
        wanted = merged(known, function) if known else function
        if str(known) != str(wanted):
            different += 1
            print(f"- {known}\n+ {wanted}")
            table[name] = wanted
    if arguments.write:
        rows = [str(table[name]) for name in sorted(table)]
        open(arguments.table, "w").write("\n".join(head + rows) + "\n")
    print(f"{len(table)} functions, {different} differ from TVM")
    sys.exit(1 if different and not arguments.write else 0)


if __name__ == "__main__":
    main()
