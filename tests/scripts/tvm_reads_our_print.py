#!/usr/bin/env python3
"""Tests that TVM reads rxfmt's output as the same module.

    tvm_reads_our_print.py RXFMT CASES [--limit N] [--start N]

For every text under CASES that TVM can read, three prints by rxfmt must read as a structurally equal module:
the formatted text, the text converted to the classic spelling and back, and (from the text printed on Python 3.12) the text
converted to the current spelling. Needs apache-tvm 0.27; says so and succeeds without it.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import tvm_workers  # before tvm: it says so where there is none

import tvm_ffi
from tvm.script import from_source

TEXTS_PER_CHILD = 100
SECONDS_PER_TEXT = 300


def rxfmt(binary, text, *args):
    """Formats a text with rxfmt."""
    done = subprocess.run([binary, *args, "-"], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"rxfmt {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def read(text):
    """Reads a text with TVM; it need not be well-formed."""
    return from_source(text, check_well_formed=False)


def texts(cases):
    """Yields name, text, and the text as printed on Python 3.12 if there is one."""
    for name in ["modules.jsonl", "tir_modules.jsonl", "op_inference.jsonl"]:
        path = cases / "cases" / name
        if path.is_file():
            with open(path, encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    row = json.loads(line)
                    if "text" in row:
                        yield f"{name}:{number}", row["text"], row.get("text_pep695")
    for folder in ["cases/defects", "models"]:
        for path in sorted((cases / folder).glob("*.rx")):
            yield str(path), path.read_text(encoding="utf-8"), None


def differs(original, printed):
    """Returns the reason why a printed text does not read as the original; nothing if it does."""
    try:
        module = read(printed)
    except Exception as error:  # TVM raises exceptions of any type
        return f"TVM cannot read it: {str(error)[:300]}"
    if tvm_ffi.structural_equal(original, module, map_free_vars=True):
        return None
    return "another module"


def check(binary, text, pep695):
    """Returns the printed texts that read differently, as (which, why, print)."""
    try:
        original = read(text)
    except Exception:
        return None
    prints = {"formatted": rxfmt(binary, text)}
    # TVM 0.27 marks every classic prim_func s_tir; converting an unmarked one to the classic spelling and back adds the
    # mark.
    if text.count("@T.prim_func") == text.count("s_tir=True"):
        classic = rxfmt(binary, text, "--dialect", "classic")
        prints["classic and back"] = rxfmt(binary, classic, "--dialect", "tvm-0.27")
    if pep695:
        prints["from Python 3.12"] = rxfmt(binary, pep695, "--dialect", "tvm-0.27")
    found = ((which, differs(original, printed), printed) for which, printed in prints.items())
    return [(which, why, printed) for which, why, printed in found if why]


def main():
    """Checks all texts and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxfmt")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--limit", type=int, default=10**9, help="check at most so many texts, evenly spread")
    parser.add_argument("--start", type=int, default=0, help="leave out so many texts")
    args = parser.parse_args()
    everything = list(texts(args.cases))
    if not everything:
        print(f"skipped: no texts under {args.cases}")
        return 0
    step = max(1, len(everything) // args.limit)
    asked = everything[args.start :: step]
    batches = tvm_workers.batches(asked, TEXTS_PER_CHILD)
    answers = tvm_workers.asked(batches, lambda item: [check(args.rxfmt, *item[1:])], SECONDS_PER_TEXT)
    checked = failed = 0
    for (name, text, _), (said, end) in zip(asked, answers, strict=True):
        failures = said[0] if said else [("TVM or rxfmt", end, text)]
        checked += failures is not None
        for which, why, printed in failures or []:
            failed += 1
            print(f"{name}: {which}: {why}\n{printed[:1500]}\n")
    print(f"{checked} texts, {failed} prints that TVM reads otherwise")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
