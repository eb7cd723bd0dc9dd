#!/usr/bin/env python3
"""Records the types that TVM infers for random calls of every operator: writes FOLDER/op_inference.jsonl.

    conformance_inference.py FOLDER [--count N] [--seed N]

Draws N calls of each operator and N functions of each construct (default 6) with the recipes of tvm_inference.py, which compares
the same calls live. A row has `text_bare`, a module whose `main` binds `gv` without an annotation, and `out_ty`, the type that TVM
gives `gv`; where TVM raises, `negative` is true, `text` is the module and `message` the reason. A call that crashes TVM has no row.
The selection does not depend on rx's results; rows where rx disagrees on purpose are explained in FOLDER/findings.md. Needs
apache-tvm 0.27; without it, prints a message and succeeds.
"""

import argparse
import hashlib
import json
import pathlib
import re

import tvm_inference
import tvm_workers  # before tvm: it says so where there is none
from inference_calls import SYMBOLS, Draw
from inference_programs import PROGRAMS
from inference_recipes import RECIPES

import tvm

CALLS_PER_CHILD = 100


def module(call):
    """Returns the text of a module with the call in `main`, including the global infos and symbols that it uses."""
    function = tvm_inference.function(0, call).replace("def f0(", "def main(")
    if not any(re.search(rf"\b{symbol}\b", function.replace("[m, n, k]", "", 1)) for symbol in SYMBOLS):
        function = function.replace("_: R.Shape([m, n, k]), ", "").replace("_: R.Shape([m, n, k])", "")
    lines = tvm_inference.HEAD.splitlines()
    used = [line for line in lines if "TypeVar" in line and re.search(rf"\b{line.split()[0]}\b", function)]
    globals_from = lines.index("    I.module_global_infos({")
    infos = lines[globals_from:] if re.search(r"mesh|llvm|cuda|vdevice", function) else []
    return "\n".join([*used, *lines[globals_from - 2 : globals_from], *infos, function])


def row(call, answer):
    """Returns one row of the file; `None` if TVM crashes."""
    text = module(call)
    found = {"id": f"{call.operator}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".replace(" ", "_"), "op": f"relax.{call.operator}"}
    found |= {"call": call.text, "negative": "error" in answer}
    if "error" in answer:
        return None if answer["error"] == "crash" else found | {"message": answer["error"], "text": text}
    if answer["type"] is None:
        return None
    ty = answer["type"].replace("T.Tuple(", "R.Tuple(").replace(":-1:", ":0:")  # an index whose value the text does not show
    ty = re.sub(r"\bT\.int64\((-?\d+)\)", r"\1", ty)
    ty = re.sub(r"(?<![\w\"'.])(bool|u?int\d+|float\d+)(?![\w(])", r"T.\1", ty)  # scalars, in the spelling of a text
    for name, spelled in tvm_inference.SPELLED.items():  # TVM spells the mesh out when it prints a type alone
        ty = re.sub(re.escape(spelled).replace("I\\.", r"\w\."), f'"{name}"', ty)
    return found | {"out_ty": ty, "text_bare": text}


def main():
    """Draws the calls, asks TVM, writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = Draw(options.seed)
    calls = [draw.call(name, recipe) for name, recipe in RECIPES.items() for _ in range(options.count)]
    calls += [draw.program(name, recipe) for name, recipe in PROGRAMS.items() for _ in range(options.count)]
    parts = tvm_workers.batches(calls, CALLS_PER_CHILD)
    asked = tvm_workers.asked(parts, tvm_inference.answer, tvm_inference.SECONDS_PER_CALL)
    answers = tvm_workers.first(asked, {"error": "crash"})
    rows = {}
    for call, answer in zip(calls, answers, strict=True):
        found = row(call, answer)
        if found:
            rows[found["id"]] = found | {"tvm": tvm.__version__}
    lines = [json.dumps(found) + "\n" for found in rows.values()]
    (options.folder / "op_inference.jsonl").write_text("".join(lines), encoding="utf-8")
    crashed = sum(answer.get("error") == "crash" for answer in answers)
    negative = sum(found["negative"] for found in rows.values())
    print(f"{len(calls)} calls, {len(rows)} rows ({negative} rejected by TVM), {crashed} crash TVM, {sum(map(len, lines))} bytes")


if __name__ == "__main__":
    main()
