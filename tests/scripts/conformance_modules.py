#!/usr/bin/env python3
"""Records modules in the form that TVM prints: writes FOLDER/modules.jsonl.

    conformance_modules.py FOLDER [--seed N]

The modules are those of conformance_networks.py, programs of inference_programs.py, and the results of the pipelines of tvm_passes.py
over them. A row has `text`, what `script()` prints; `roundtrip`, whether TVM reads that as the same module; `well_formed`, its verdict;
for well-formed ones `vars`, the annotations of `text` as rows `[function, name, type, how]`; and `text_min`, the same module without the annotations that
can be inferred, where TVM reads it as the same module. `text_meta` is `text` with its constants, where it has some. Rows of another TVM in the file stay: TVM 0.25 prints the classic spelling,
TVM 0.27 the current one. Needs apache-tvm; without it, prints a message and succeeds.
"""

import argparse
import ast
import collections
import hashlib
import json
import pathlib
import random

import tvm_workers  # before tvm: it says so where there is none

import conformance_inference
import conformance_networks
import tvm_passes
from inference_calls import Draw
from inference_programs import PROGRAMS

import tvm
from tvm.script import from_source

CURRENT = not tvm.__version__.startswith(("0.25", "0.26"))
GRAPHS = 40 if CURRENT else 20
PROGRAMS_EACH = 2 if CURRENT else 0
PASSES_EACH = 5 if CURRENT else 1  # results of each pipeline
LONGEST = 24_000
SECONDS = 60


def sources(seed):
    """Yields name and module of the programs to which passes are applied."""
    yield from conformance_networks.modules()
    for number in range(GRAPHS):
        yield f"graph-{number}", read(conformance_networks.Graph(seed + number).text())
    draw = Draw(seed, wrong=0.0)
    for name, recipe in PROGRAMS.items():
        for number in range(PROGRAMS_EACH):
            call = draw.program(name, recipe)
            module = read_program(call)
            if module is not None:
                yield f"{name}-{number}".replace(" ", "_"), module


def read(text):
    return from_source(text, check_well_formed=False)


def read_program(call):
    """Returns a program of inference_programs as a module, if TVM reads it."""
    try:
        return read(conformance_inference.module(call))
    except Exception:  # the program is not for this TVM
        return None


def check_well_formed(module):
    """Returns whether TVM finds a module well-formed. Since 0.27 the function that returns a boolean has a different
    name."""
    analysis = tvm.relax.analysis
    try:
        return bool(getattr(analysis, "check_well_formed", analysis.well_formed)(module))
    except Exception:  # an operator refuses its operands
        return False


def same(text, module):
    """Returns whether TVM reads a text as this module."""
    try:
        tvm.ir.assert_structural_equal(read(text), module, map_free_vars=True)
    except Exception:  # TVM cannot read everything that it prints
        return False
    return True


def annotations(text):
    """Returns the annotated variables of a text, except names that are also bound without an annotation."""
    rows, bare = [], set()

    def visit(function, statements):
        for it in statements:
            match it:
                case ast.FunctionDef():
                    params(function, it)
                    visit(function, it.body)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    rows.append([function, name, ast.get_source_segment(text, it.annotation), "ann"])
                case ast.Assign(targets=[ast.Name(id=name)]):
                    bare.add((function, name))
                case ast.With():
                    visit(function, it.body)
                case ast.If():  # TVM prints the type of the whole conditional at the last binding of each branch
                    visit(function, [*it.body, *it.orelse])
                    bare.update(
                        (function, branch[-1].target.id) for branch in (it.body, it.orelse) if isinstance(branch[-1], ast.AnnAssign)
                    )

    def params(function, it):
        for arg in it.args.args:
            rows.append([function, arg.arg, ast.get_source_segment(text, arg.annotation), "param"])

    classes = [it for it in ast.parse(text).body if isinstance(it, ast.ClassDef)]
    functions = [it for of in classes for it in of.body if isinstance(it, ast.FunctionDef)]
    for it in functions:
        if "R.function" in ast.unparse(it.decorator_list[0]):
            params(it.name, it)
            visit(it.name, it.body)
    return [row for row in rows if (row[0], row[1]) not in bare]


def least_annotated(module, **more):
    """Returns the text without annotations that can be inferred; "" if TVM fails to print it."""
    try:
        return module.script(**{"show_all_ty" if CURRENT else "show_all_struct_info": False}, **more)
    except Exception:  # TVM infers each type again to find which annotations can be omitted
        return ""


def row(name, module):
    """Returns the row of a module; `None` if its text is too long."""
    text = module.script()
    needs_meta = "metadata[" in text
    more = {"show_meta": True} if needs_meta else {}
    whole = module.script(**more)
    if len(whole) > LONGEST:
        return None
    found = {
        "id": f"{name}-{hashlib.sha256((tvm.__version__ + text).encode()).hexdigest()[:8]}",
        "kind": "module",
        "needs_meta": needs_meta,
    }
    found |= {"roundtrip": same(whole, module), "well_formed": check_well_formed(module), "text": text}
    found |= {"text_meta": whole} if needs_meta else {}
    least = least_annotated(module, **more)
    if found["well_formed"] and least not in ("", whole) and same(least, module):
        found |= {"text_min": least, "vars": annotations(text)}
    return found | {"tvm": tvm.__version__}


def run(name, module, pipeline):
    """Applies the passes of a pipeline to a module; returns `None` if one of them rejects it."""
    try:
        with tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3):
            for one in tvm_passes.pipelines()[pipeline]:
                module = one(module)
        return row(f"{name}-{pipeline}", module)
    except Exception:  # the pass does not apply to this module
        return None


def work(seed):
    """Yields all rows: of the programs, then of each pipeline applied to some of them."""
    programs = list(sources(seed))
    for name, module in programs:
        yield row(name, module)
    rng = random.Random(seed)
    try:
        names = list(tvm_passes.pipelines())
    except AttributeError:  # this TVM does not have the pass
        names = []
    for pipeline in names:
        found, seen = 0, set()
        for name, module in rng.sample(programs, len(programs)):
            result = run(name, module, pipeline) if found < PASSES_EACH else None
            if result and result["text"] != module.script() and result["text"] not in seen:
                seen.add(result["text"])
                found += 1
                yield result


def main():
    """Generates the rows, adds those of other TVM releases from the file, writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    [(made, end)] = tvm_workers.asked([[options.seed]], work, 1200)
    path = options.folder / "modules.jsonl"
    old = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    rows = {found["id"]: found for found in [*old, *filter(None, made)] if found["tvm"] != tvm.__version__ or found in made}
    ordered = sorted(rows.values(), key=lambda found: found["tvm"], reverse=True)
    lines = [json.dumps(found) + "\n" for found in ordered]
    path.write_text("".join(lines), encoding="utf-8")
    counts = collections.Counter((found["tvm"], found["roundtrip"], found["well_formed"]) for found in ordered)
    least = sum("text_min" in found for found in ordered)
    print(f"{len(rows)} modules, {least} with text_min, {sum(map(len, lines))} bytes{'; ended: ' + end if end else ''}")
    for (version, roundtrip, well_formed), count in counts.items():
        print(f"  TVM {version}, round trip {roundtrip}, well-formed {well_formed}: {count}")


if __name__ == "__main__":
    main()
