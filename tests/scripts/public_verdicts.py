#!/usr/bin/env python3
"""Determines whether the installed TVM accepts the TVMScript in files: `public_files.py` runs this with each of its `--tvm` interpreters.

    python public_verdicts.py < LIST > VERDICTS

LIST is a path per line. VERDICTS is JSON: `tvm`, the version, and `files`, by path a list of `[first line, last line, reason]`, where
the reason is null if TVM accepts the definition. A definition is read with the names that its file and the functions around it bind to tvm, numpy
or math, to literals and arithmetic of them, and to macros. Nothing else of a file is executed.
"""

import ast
import builtins
import importlib
import json
import pathlib
import sys
import textwrap

import tvm_workers  # before tvm: it says so where there is none
from script_regions import regions_of

import tvm
from tvm.script import from_source

SECONDS_PER_FILE = 60
IMPORTED = {"tvm", "numpy", "math"}
CALLED = {"abs", "float", "int", "len", "max", "min", "range", "list", "tuple"}
MACROS = {"macro", "inline"}


def script_names():
    """Returns the names that a text without imports may use."""
    from tvm.script.parser import ir, relax

    try:
        from tvm.script import tirx as loops
    except ImportError:
        from tvm.script.parser import tir as loops
    return {"tvm": tvm, "I": ir, "R": relax, "T": loops, "Tx": loops}


def is_literal(value, names):
    """Returns whether an expression consists of literals, arithmetic of them, and names that were bound to such
    expressions."""
    for node in ast.walk(value):
        match node:
            case ast.Name(id=name):
                if name not in names and name not in CALLED:
                    return False
            case ast.Call(func=ast.Name(id=name)) if name in CALLED:
                pass
            case ast.Call() | ast.Attribute() | ast.Lambda() | ast.Await() | ast.Yield() | ast.NamedExpr():
                return False
            case ast.BinOp(op=ast.Pow() | ast.LShift() | ast.Mult(), left=ast.Constant(value=str()) | ast.List()):
                return False
    return True


def bind_import(statement, names):
    """Binds imports from tvm, numpy and math. Other imports unbind their names, since for example `T` may be another
    language's."""
    for alias in statement.names:
        bound = alias.asname or alias.name.split(".")[0]
        try:
            names[bound] = imported(statement, alias)
        except Exception:  # noqa: BLE001, PERF203: an import of another release, or of something else
            names.pop(bound, None)


def imported(statement, alias):
    """Returns the object to which an import binds a name."""
    path = alias.name if isinstance(statement, ast.Import) else statement.module or ""
    first = path.split(".")[0]
    if getattr(statement, "level", 0) or first not in IMPORTED or alias.name == "*":
        raise ImportError(path)
    module = importlib.import_module(path)
    if isinstance(statement, ast.Import):
        return module if alias.asname else importlib.import_module(first)
    try:
        return getattr(module, alias.name)
    except AttributeError:
        return importlib.import_module(f"{path}.{alias.name}")


def is_macro(statement):
    """Returns whether a function is decorated as a macro."""
    heads = [it.func if isinstance(it, ast.Call) else it for it in statement.decorator_list]
    return any(isinstance(head, ast.Attribute) and head.attr in MACROS for head in heads)


def run(source, names, label):
    """Executes a text so that `inspect` can find its source."""
    import linecache

    linecache.cache[label] = (len(source), None, source.splitlines(keepends=True), label)
    exec(compile(source, label, "exec"), names)  # noqa: S102: literals and definitions only


def bind(statement, names, lines, label):
    """Binds the names of a statement of the file, if it is of a kind that is executed."""
    try:
        match statement:
            case ast.Import() | ast.ImportFrom():
                bind_import(statement, names)
            case ast.Assign(value=value) if is_literal(value, names):
                run(ast.unparse(statement), names, label)
            case ast.FunctionDef() if is_macro(statement):
                first = min(it.lineno for it in statement.decorator_list)
                run(textwrap.dedent("".join(lines[first - 1 : statement.end_lineno])), names, label)
    except Exception:  # noqa: BLE001: it stays unbound
        pass


def scopes(tree):
    """Yields the enclosing statement lists, outermost first, of each list that contains definitions, and the list
    itself."""
    todo = [(tree.body, ())]
    while todo:
        body, outer = todo.pop()
        yield body, outer
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.If | ast.With | ast.Try | ast.For):
                todo.append((statement.body, (*outer, (body, statement))))


def names_at(tree, first, lines, label):
    """Returns the names bound where the definition that starts on line `first` is."""
    names = script_names() | {"__builtins__": builtins}
    for body, outer in scopes(tree):
        own = [it for it in body if getattr(it, "decorator_list", None) and min(d.lineno for d in it.decorator_list) == first]
        if not own:
            continue
        for statements, until in (*outer, (body, own[0])):
            for number, statement in enumerate(statements):
                if statement is until:
                    break
                bind(statement, names, lines, f"{label}-{first}-{number}")
            if isinstance(until, ast.FunctionDef) and until is not own[0]:
                bind_defaults(until, names)
    return names


def bind_defaults(function, names):
    """Binds the defaults of a function's parameters."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    given = [*zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults), *zip(arguments.kwonlyargs, arguments.kw_defaults)]
    for argument, default in given:
        if default is not None and is_literal(default, names):
            try:
                names[argument.arg] = eval(compile(ast.Expression(default), "default", "eval"), names)  # noqa: S307
            except Exception:  # noqa: BLE001
                continue


def verdicts(path):
    """Yields `[first, last, reason]` for each definition of a Python file; for other files, one for the whole text."""
    text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    if not path.endswith(".py"):
        yield [1, text.count("\n") + 1, refusal(text, None)]
        return
    regions = list(regions_of(path, text))
    if not regions:
        return
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    for region in regions:
        yield [region.first, region.last, refusal(region.text, names_at(tree, region.first, lines, path))]


def refusal(text, names):
    """Returns the reason why TVM rejects a text; None if it accepts it."""
    try:
        if names is None:
            from_source(text, check_well_formed=True)
        else:
            from_source(text, extra_vars=names, check_well_formed=True)
    except BaseException as error:  # noqa: BLE001: TVM raises of every kind
        lines = [line for line in str(error).strip().splitlines() if line.strip()]
        stated = [line for line in lines if line.startswith("error:")]
        return (stated or lines or [type(error).__name__])[0][:300]
    return None


def main():
    """Reads the list, asks TVM, prints the verdicts."""
    paths = sys.stdin.read().split("\n")
    paths = [path for path in paths if path]
    answers = tvm_workers.asked(tvm_workers.batches(paths, 1), verdicts, SECONDS_PER_FILE)
    files = {path: said for path, (said, _) in zip(paths, answers, strict=True)}
    json.dump({"tvm": tvm.__version__, "files": files}, sys.stdout)


if __name__ == "__main__":
    main()
