#!/usr/bin/env python3
"""Compares the recorded conformance cases with the installed TVM, and reports the differences.

    newest_tvm.py CASES [--jobs N] [--limit N] [--list FILE]

CASES is the folder of `modules.jsonl`, `mutants.jsonl`, `op_inference.jsonl`, whose rows have the results of TVM 0.27.0.post1. For each
row the installed TVM must answer the same questions: does the text parse, is it well-formed, what is the type of the result. Prints
how many rows of each file changed and in which direction, with the first ones; FILE receives all as JSON lines. To test the newest TVM:

    python3 -m venv newest && newest/bin/pip install --upgrade apache-tvm && newest/bin/python tests/scripts/newest_tvm.py CASES

Texts are read in child processes, since TVM can crash on them. Needs apache-tvm; without it, prints a message and succeeds.
"""

import argparse
import collections
import json
import pathlib
import re

import tvm_workers  # before tvm: it says so where there is none

import tvm
from tvm import relax
from tvm.script import from_source

TEXTS_PER_CHILD = 50
SECONDS_PER_TEXT = 300


def verdict(text):
    """Returns `parse` or `well_formed` if TVM rejects the text at that stage, otherwise `ok`; and the type of
    `main`'s last binding."""
    try:
        module = from_source(text, check_well_formed=False)
    except Exception as error:  # TVM rejects texts with exceptions of any type
        return {"verdict": "parse", "message": str(error)[-300:]}
    # The function that returns a boolean has a different name since 0.27, where `well_formed` raises the reason.
    ask = getattr(relax.analysis, "check_well_formed", relax.analysis.well_formed)
    # The Relax check does not apply to a single prim_func.
    asked = isinstance(module, (tvm.IRModule, relax.Function))
    well_formed = not asked or bool(ask(module))
    return {"verdict": "ok" if well_formed else "well_formed", "type": result_type(module)}


def result_type(module):
    """Returns the type of `main`'s result as text; nothing if there is no such function."""
    for variable, function in getattr(module, "functions", {}).items():
        if variable.name_hint == "main" and hasattr(function.body, "body"):
            body = function.body.body
            of = getattr(body, "ty", None) or getattr(body, "struct_info", None)
            return None if of is None else spelled(str(of))
    return None


def spelled(ty):
    """Formats a type in one line as the cases do: printed alone, TVM writes more about numbers and less about
    devices."""
    line = " ".join(ty.split()).replace("( ", "(").replace(" )", ")").replace("T.Tuple(", "R.Tuple(")
    line = re.sub(r"^bool$", "T.bool", line).replace(":-1:global", ":0:global")
    return re.sub(r"T\.int64\((\d+)\)", r"\1", line)


def answer(text):
    yield verdict(text)


def recorded(file, row):
    """Returns TVM's recorded result of a row in this script's words; nothing if it was not recorded."""
    if file == "mutants":
        stage = row.get("stage")
        return {"verdict": stage if stage in ("parse", "well_formed", "crash") else "ok"}
    if file == "op_inference":
        if "text" not in row:  # modules that were built in memory and cannot be printed
            return None
        # Most of these were rejected while the test built the call; reading the text does the same.
        unread = row.get("negative") or "bare_error" in row
        return {"verdict": "parse"} if unread else {"type": spelled(row["out_ty"])}
    if not row.get("roundtrip"):
        return None
    return {"verdict": "ok" if row.get("well_formed", True) else "well_formed"}


def moved(old, new):
    """Describes how a row changed; nothing if it did not."""
    if "type" in old:
        # Without a type the text was not read at all.
        if "type" not in new:
            return f"inferred -> {new['verdict']}"
        return None if new["type"] == old["type"] else "another type"
    accepted = (old["verdict"] == "ok", new["verdict"] == "ok")
    if accepted[0] == accepted[1]:
        return None
    return f"{old['verdict']} -> {new['verdict']}"


def compare(file, rows, jobs):
    """Returns the rows that changed."""
    asked = [(row, old) for row in rows if (old := recorded(file, row)) is not None]
    field = "text_bare" if file == "op_inference" else "text"
    texts = [row.get("text_meta") or row.get(field) or row["text"] for row, _ in asked]
    batches = tvm_workers.batches(texts, TEXTS_PER_CHILD)
    verdicts = tvm_workers.first(tvm_workers.asked(batches, answer, SECONDS_PER_TEXT, jobs), {"verdict": "crash"})
    for (row, old), new in zip(asked, verdicts, strict=True):
        how = moved(old, new)
        if how is not None:
            yield {"file": file, "id": row["id"], "how": how, "recorded": old, "now": new}


def main():
    """Compares every file and prints the changes."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("cases", type=pathlib.Path)
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--limit", type=int, help="rows of each file, evenly taken")
    arguments.add_argument("--list", type=pathlib.Path)
    options = arguments.parse_args()
    print(f"TVM {tvm.__version__}")
    everything = []
    for file in ("modules", "mutants", "op_inference"):
        rows = [json.loads(line) for line in (options.cases / f"{file}.jsonl").read_text().splitlines()]
        if options.limit:
            rows = rows[:: max(1, len(rows) // options.limit)]
        rows_moved = list(compare(file, rows, options.jobs))
        everything += rows_moved
        print(f"{file}: {len(rows_moved)} of {len(rows)} moved")
        for how, count in collections.Counter(row["how"] for row in rows_moved).most_common():
            ids = [row["id"] for row in rows_moved if row["how"] == how]
            print(f"  {how}: {count} ({', '.join(ids[:5])}{', …' if count > 5 else ''})")
    if options.list:
        options.list.write_text("".join(json.dumps(row) + "\n" for row in everything))


if __name__ == "__main__":
    main()
