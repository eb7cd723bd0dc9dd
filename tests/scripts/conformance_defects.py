#!/usr/bin/env python3
"""Writes programs with one mistake each, each with a correct counterpart: FOLDER/defects/*.rx and FOLDER/defects/expected.tsv.

    conformance_defects.py FOLDER --tvm PYTHON-0.27 --tvm PYTHON-0.25 [--seed N]

The kinds are those of defect_families.py: convolution and elementwise kernels that do not fit, 1x1 convolutions and the matrix products
that compute them, layouts of transposed convolutions, indices out of range, functions of LiftTransformParams called the wrong way. Whether
a program is a mistake is computed by PyTorch and numpy, not by rx: a template claims a verdict, and this script fails where the claim
and the computed fact differ. A row of expected.tsv has the file; `clean`, `error` or `warning`; the name and the line of the diagnostic that rx
must report, and its code; the program that decided and what it said; and the verdict of the TVM that reads the spelling. Needs torch
and numpy, and an interpreter with apache-tvm of each spelling.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys

from defect_families import FAMILIES
from defect_texts import MARK, Spelling

HERE = pathlib.Path(__file__).parent
COLUMNS = ["file", "verdict", "kind", "line", "code", "decided by", "which says", "tvm", "TVM says"]


def codes():
    """Returns the number of each diagnostic, from the checker's table."""
    table = (HERE / "../../compiler/base/src/diagnostic/code.rs").read_text(encoding="utf-8")
    return {slug: f"RX{int(number):04}" for number, slug in re.findall(r'^    \w+ (\d+) "([\w-]+)" ', table, re.MULTILINE)}


def placed(text):
    """Returns a text without the mark, and the line of the mark."""
    lines = [at for at, line in enumerate(text.split("\n"), 1) if MARK in line]
    return text.replace(MARK, ""), lines


def ask(python, cases):
    """Asks the TVM of an interpreter; returns its version and verdicts."""
    asked = json.dumps([{"text": case.text, "lifted_from": case.lifted_from} for case in cases])
    done = subprocess.run([python, HERE / "tvm_verdicts.py"], input=asked, capture_output=True, text=True, check=True)
    if not done.stdout.startswith("{"):
        sys.exit(f"{python}: {done.stdout}")
    said = json.loads(done.stdout)
    return said["tvm"], said["verdicts"]


def main():
    """Generates the programs, decides each by computation, asks TVM, writes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tvm", action="append", required=True, help="an interpreter with apache-tvm")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    cases = []
    for classic in (False, True):
        for name, family in FAMILIES.items():
            rng = random.Random(f"{options.seed} {name}")
            cases += family(Spelling(classic), rng)
    names = collections.Counter(case.name for case in cases)
    twice = [name for name, count in names.items() if count > 1]
    wrong = [f"{case.name}: claims {case.kind}, but {case.fact.says}" for case in cases if bool(case.kind) != case.fact.mistake]
    for case in cases:
        case.text, case.lines = placed(case.text)
        if len(case.lines) != bool(case.kind):
            wrong.append(f"{case.name}: {len(case.lines)} marked lines")
    if twice or wrong:
        sys.exit("\n".join([*wrong, *(f"{name}: twice" for name in twice)]))
    versions = {}
    for python in options.tvm:
        version = subprocess.run([python, "-c", "import tvm; print(tvm.__version__)"], capture_output=True, text=True, check=True).stdout
        # TVM 0.25 reads classic relax functions; no release of TVM on PyPI reads `T.block`.
        reads = [case for case in cases if case.classic != (version >= "0.27") and "T.block(" not in case.text]
        tvm, verdicts = ask(python, reads)
        for case, (refusal, lifted) in zip(reads, verdicts, strict=True):
            versions[case.name] = tvm, "accepts" if refusal is None else f"refuses: {refusal}"
            if lifted is False:
                sys.exit(f"{case.name}: LiftTransformParams makes other functions")
    number = codes()
    folder = options.folder / "defects"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = ["\t".join(COLUMNS)]
    for case in sorted(cases, key=lambda case: case.name):
        file = f"{case.name}.rx"
        (folder / file).write_text(case.text, encoding="utf-8")
        found = [
            case.severity if case.kind else "clean",
            case.kind or "-",
            str(*case.lines) or "-",
            number[case.kind] if case.kind else "-",
        ]
        said = [case.fact.by, case.fact.says, *versions.get(case.name, ("-", "-"))]
        rows.append("\t".join([file, *found, *(" ".join(text.split()) for text in said)]))
    (folder / "expected.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    counts = collections.Counter((case.name.split("_")[0], case.severity if case.kind else "clean") for case in cases)
    agree = sum((versions[case.name][1] == "accepts") != bool(case.kind) for case in cases if case.name in versions)
    print(f"{len(cases)} programs, TVM agrees with {agree} of {len(versions)} that it was asked; {dict(counts)}")


if __name__ == "__main__":
    main()
