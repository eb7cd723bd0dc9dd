#!/usr/bin/env python3
"""Compares the results of rx's AnnotateTIROpPattern for prim_funcs with TVM's.

    tvm_op_patterns.py RXOPT CASES [--jobs N] [--every N]

The prim_funcs are those that TVM's LegalizeOps makes of the modules of CASES/modules.jsonl and of a module for each call of
CASES/op_inference.jsonl, and those in CASES/passes.jsonl. Functions without loops (stubs of `T.evaluate(0)`, calls of other
prim_funcs) are opaque to rx and counted separately. Prints each function on which the two disagree, and how many agree; exit 1 if one
does not. Passes run in child processes, since TVM can crash. Needs apache-tvm 0.27; says so and succeeds without it.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import tvm_workers  # before tvm: it says so where there is none

import tvm
from tvm import relax
from tvm.script import from_source

MODULES_PER_CHILD = 40
SECONDS_PER_MODULE = 40
OPAQUE = 8


def inputs(cases):
    """Yields texts, each with whether its operators are to be legalized."""
    for file, key, legalize in [("modules", "text", True), ("op_inference", "text_bare", True), ("passes", "before", False)]:
        for line in open(cases / f"{file}.jsonl", encoding="utf-8"):
            row = json.loads(line)
            if row.get(key) and not row.get("negative") and not row.get("needs_meta"):
                yield row[key], legalize
            if file == "passes" and row.get("expected"):
                yield row["expected"], False


def patterns(text, legalize):
    """Returns the text of a module's prim_funcs as TVM prints it, and `op_pattern` by name."""
    module = from_source(text)
    if legalize:
        module = relax.transform.LegalizeOps()(module)
    kernels = {name: func for name, func in module.functions.items() if isinstance(func, tvm.tirx.PrimFunc)}
    if not kernels:
        return
    # Use the module as read from its text: nodes that are shared in memory are separate in a text.
    printed = tvm.IRModule(kernels).script()
    annotated = relax.transform.AnnotateTIROpPattern()(from_source(printed))
    yield printed, {name.name_hint: int(func.attrs["op_pattern"]) for name, func in annotated.functions.items()}


def annotated(rxopt, text):
    """Returns rx's `op_pattern` by name."""
    with tempfile.NamedTemporaryFile("w", suffix=".rx", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        ran = subprocess.run([rxopt, file.name, "--pass", "AnnotateTIROpPattern"], capture_output=True, text=True, check=False)
    found = {}
    for function in re.split(r"^ *@T\.prim_func", ran.stdout, flags=re.MULTILINE)[1:]:
        name, pattern = re.search(r"def (\w+)\(", function), re.search(r'"op_pattern": (\d+)', function)
        if name and pattern:
            found[name[1]] = int(pattern[1])
    return found, ran.stderr


def has_loops(text, name):
    """Returns whether the body of the prim_func `name` consists of loops only."""
    body = re.search(rf"^    def {name}\(.*?(?=^    @|\Z)", text, flags=re.MULTILINE | re.DOTALL)[0]
    return "for " in body and not re.search(r"T\.evaluate|Module\.|T\.call_|T\.anylist", body)


def main():
    """Asks both and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxopt")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2, help="processes that run passes")
    parser.add_argument("--every", type=int, default=1, help="take every Nth module")
    args = parser.parse_args()
    rows = list(dict.fromkeys(inputs(args.cases)))[:: args.every]
    answers = tvm_workers.asked(
        tvm_workers.batches(rows, MODULES_PER_CHILD), lambda row: patterns(*row), SECONDS_PER_MODULE, args.jobs
    )
    wanted = {text: said for values, _ in answers for text, said in values}
    agree, wrong, unread, without_loops = collections.Counter(), 0, 0, 0
    with ThreadPoolExecutor(args.jobs) as pool:
        found = pool.map(lambda text: annotated(args.rxopt, text), wanted)
        for (text, said), (own, complaint) in zip(wanted.items(), found, strict=True):
            if not own:
                unread += 1
                print(f"not read: {complaint.strip()[:300]}")
                continue
            for name, pattern in said.items():
                if own.get(name) == pattern:
                    agree[pattern] += 1
                elif own.get(name) == OPAQUE and not has_loops(text, name):
                    without_loops += 1
                else:
                    wrong += 1
                    print(f"{name}: TVM says {pattern}, rx {own.get(name)}\n{text}\n")
    print(f"{len(rows)} texts, {len(wanted)} with prim_funcs, {unread} not read by rx")
    print(f"{sum(agree.values())} prim_funcs agree, {wrong} do not, {without_loops} are no loops; by pattern {dict(sorted(agree.items()))}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
