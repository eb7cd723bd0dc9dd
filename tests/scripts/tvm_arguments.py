#!/usr/bin/env python3
"""Compares the arguments of every operator and `T.` function with those of the TVM that is installed.

    tvm_arguments.py [--rxcheck FILE] [--all]

For operators, rx's arguments are read from `docs/operators.md`. An argument that TVM's function has and rx's schema lacks means that
rx rejects a text which TVM reads. For `T.` functions, rxcheck checks a text that passes every argument of the TVM function by name; it
must report no RX0413. Prints one line for each difference, and exits with 1 if there is one that is not in `KNOWN`; `--all` prints
the known ones too. To test a release:

    python3 -m venv tvm025 && tvm025/bin/pip install apache-tvm==0.25.0.post1 && tvm025/bin/python tests/scripts/tvm_arguments.py

Needs apache-tvm; without it, prints a message and succeeds.
"""

import argparse
import ast
import inspect
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import tvm_workers  # before tvm: it says so where there is none

import tvm
from tvm.script import relax

try:
    from tvm.script import tirx
except ImportError:
    from tvm.script import tir as tirx

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Arguments of TVM's Python functions that cannot occur in a text, each with the reason.
KNOWN = {
    ("*", "span"): "a place in Python objects, which no text passes",
    ("*", "loc"): "a place in Python objects, which no text passes",
}


def parameters_of_rx():
    """Returns the parameters of each operator, in order; those of `R.nn.relu` have the key `nn.relu`."""
    page = (ROOT / "docs" / "operators.md").read_text()
    operators = {}
    for name, signature in re.findall(r"```python\nR\.([\w.]+)\((.*)\)\n```", page):
        arguments = ast.parse(f"def f({signature}): pass").body[0].args
        named = arguments.posonlyargs + arguments.args
        starred = [arguments.vararg] if arguments.vararg else []
        operators[name] = [argument.arg for argument in named + starred + arguments.kwonlyargs]
    return operators


def parameters_of_tvm(function):
    """Returns the parameters of a Python function; `None` if its signature is not available."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [parameter.name for parameter in signature.parameters.values() if parameter.kind != parameter.VAR_KEYWORD]


def member(namespace, path):
    for part in path.split("."):
        namespace = getattr(namespace, part, None)
    return namespace


# Classic names of parameters: rx reads both.
CLASSIC = {"out_sinfo": "out_ty", "sinfo_args": "ty_args"}


def operator_differences():
    for name, ours in sorted(parameters_of_rx().items()):
        function = member(relax, name)
        theirs = parameters_of_tvm(function) if callable(function) else None
        if theirs is None:
            continue
        theirs = [CLASSIC.get(argument, argument) for argument in theirs]
        for argument in theirs:
            if argument not in ours:
                yield f"R.{name}", argument, f"TVM takes ({', '.join(theirs)}), rx takes ({', '.join(ours)})"
        common = [argument for argument in theirs if argument in ours]
        if common != [argument for argument in ours if argument in theirs]:
            yield f"R.{name}", "order", f"TVM takes ({', '.join(theirs)}), rx takes ({', '.join(ours)})"


def tir_differences(rxcheck):
    functions = {}
    for name in dir(tirx):
        function = getattr(tirx, name)
        parameters = parameters_of_tvm(function) if callable(function) and not inspect.isclass(function) else None
        if name.startswith("_") or not parameters or any(argument.startswith("_") for argument in parameters):
            continue
        if any(p.kind == p.VAR_POSITIONAL for p in inspect.signature(function).parameters.values()):
            continue
        functions[name] = parameters
    head = 'from tvm.script import tirx as T\n\n@T.prim_func\ndef f(A: T.Buffer((4,), "int32")):\n'
    lines = {}
    text = head
    for name, parameters in functions.items():
        lines[text.count("\n") + 1] = name
        text += f"    T.{name}({', '.join(f'{argument}=A[0]' for argument in parameters)})\n"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "calls.py"
        file.write_text(text)
        run = subprocess.run([rxcheck, str(file), "--format", "json"], capture_output=True, text=True)
    for report in json_lines(run.stdout):
        if report.get("code") != "RX0413":
            continue
        name = lines.get(line_of(report))
        argument = re.search(r"`([^`]+)`", report["message"].split(":")[-1])
        yield f"T.{name}", argument.group(1) if argument else "?", report["message"]


def json_lines(text):
    try:
        whole = json.loads(text)
        return whole if isinstance(whole, list) else whole.get("diagnostics", [whole])
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def line_of(report):
    place = report.get("range", report)
    return place.get("start", place).get("line", report.get("line"))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rxcheck", help="ask this rxcheck about the functions of T")
    arguments.add_argument("--all", action="store_true", help="print differences that are argued, too")
    arguments = arguments.parse_args()
    found = list(operator_differences())
    if arguments.rxcheck:
        found += tir_differences(arguments.rxcheck)
    failed = False
    for function, argument, why in found:
        reason = KNOWN.get((function, argument)) or KNOWN.get(("*", argument))
        failed |= reason is None
        if reason is None or arguments.all:
            print(f"{function}: {argument}: {why}" + (f" [{reason}]" if reason else ""))
    print(f"TVM {tvm.__version__}: {len(found)} differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
