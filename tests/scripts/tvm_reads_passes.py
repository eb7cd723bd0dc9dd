#!/usr/bin/env python3
"""Tests that TVM reads the modules that rx's passes print.

    tvm_reads_passes.py RXOPT CASES [--every N] [--only PASS] [--jobs N] [--keep FOLDER]

Runs every pass that needs no argument, some in a row, and the default pipeline over the texts of CASES (modules.jsonl, passes.jsonl,
a module for each call of op_inference.jsonl, reports/cases.jsonl) that TVM reads and finds well-formed, and over the texts
in TEXTS. TVM must read rxopt's output and find it well-formed, too. Prints rejected outputs by pass and reason; exit 1 if there are
any. They are kept in FOLDER. Needs apache-tvm 0.27; says so and succeeds without it.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tvm_workers  # before tvm: it says so where there is none

from tvm.script import from_source

TEXTS_PER_CHILD = 50
SECONDS_PER_TEXT = 60
SECONDS_PER_PASS = 60

# Sequences of passes: later ones see the results of earlier ones.
ROWS = [
    ["--pass", "LegalizeOps,CallTIRRewrite"],
    ["--pass", "LegalizeOps,CallTIRRewrite,KillAfterLastUse"],
    ["--pass", "LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,CallTIRRewrite,StaticPlanBlockMemory,KillAfterLastUse"],
    ["--pass", 'ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})'],
    ["--pipeline", "default"],
]

# Texts for features that no case has: dtypes as strings, a symbol shared by two functions, nested functions, a variable
# called `cls`, no module, no dtype.
TEXTS = {
    "dtype strings": """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def fill(v: T.float32, A: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.sblock("f"):
                vi = T.axis.spatial(T.int64(4), i)
                A[vi] = v

    @R.function(pure=False)
    def main() -> R.Tensor((4,), dtype="float32"):
        cls = Module
        p: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
        _ = cls.fill(R.prim_value(T.float32(1)), p)
        return p
""",
    "a symbol of two functions": """
@I.ir_module
class Module:
    @R.function
    def helper(x: R.Tensor(("k", 3), dtype="float32")) -> R.Tensor(("k", 3), dtype="float32"):
        k = T.int64()
        y: R.Tensor((k, 3), dtype="float32") = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor(dtype="float32", ndim=2)) -> R.Tensor(dtype="float32", ndim=2):
        k_1 = T.int64()
        cls = Module
        y = R.match_cast(x, R.Tensor((k_1, 3), dtype="float32"))
        z: R.Tensor((k_1, 3), dtype="float32") = cls.helper(y)
        return z
""",
    "nested functions": """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), dtype="float32"), y: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
        @R.function
        def outer(a: R.Tensor((2, 3), dtype="float32")) -> R.Callable((R.Tensor((2, 3), dtype="float32"),), R.Tensor((2, 3), dtype="float32"), True):
            @R.function
            def inner(b: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
                s: R.Tensor((2, 3), dtype="float32") = R.subtract(a, b)
                return s
            return inner
        f = outer(x)
        r: R.Tensor((2, 3), dtype="float32") = f(y)
        return r
""",
    "a variable called cls": """
@I.ir_module
class Module:
    @R.function
    def main(cls: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        a: R.Tensor((4,), dtype="float32") = R.exp(cls)
        b: R.Tensor((4,), dtype="float32") = R.add(a, cls)
        return b

    @R.function
    def other(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        cls: R.Tensor((4,), dtype="float32") = R.exp(x)
        b: R.Tensor((4,), dtype="float32") = R.add(cls, x)
        return b
""",
    "no module": """
@R.function
def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
    n = T.int64()
    with R.dataflow():
        y: R.Tensor((n, 4), dtype="float32") = R.exp(x)
        z: R.Tensor((n, 4), dtype="float32") = R.add(y, x)
        R.output(z)
    return z
""",
    "no dtype": """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 4)), y: R.Tensor(ndim=2), z: R.Tensor) -> R.Tensor:
        with R.dataflow():
            v: R.Tensor = R.exp(z)
            w: R.Tensor((2, 4)) = R.exp(x)
            R.output(w)
        return w
""",
}


def accepted(text):
    """Yields nothing if TVM reads a text and finds it well-formed; otherwise the reason."""
    try:
        from_source(text, check_well_formed=True)
        yield ""
    except BaseException as error:  # TVM raises exceptions of any type
        yield str(error).strip() or repr(error)


def verdicts(some, jobs):
    """Returns TVM's reason for rejecting each text; nothing for one that it accepts."""
    found = tvm_workers.asked(tvm_workers.batches(some, TEXTS_PER_CHILD), accepted, SECONDS_PER_TEXT, jobs)
    return [said[0] if said else end for said, end in found]


def texts(cases, every):
    """Yields names and texts of the initial modules."""
    yield from TEXTS.items()
    for file, keys in [("modules.jsonl", ["text"]), ("passes.jsonl", ["before"]), ("op_inference.jsonl", ["text_bare"]), ("reports/cases.jsonl", ["text"])]:
        path = cases / file
        if not path.is_file():
            continue
        rows = [json.loads(line) for line in open(path, encoding="utf-8")]
        for number, row in enumerate(rows[:: 1 if file.startswith("reports") else every]):
            for key in keys:
                text = row.get(key)
                if isinstance(text, str) and len(text) < 100_000:
                    yield f"{file}:{row.get('id') or row.get('test') or number}", text


def commands(rxopt, only):
    """Returns the arguments of rxopt for each pass, by a name."""
    listed = subprocess.run([rxopt, "--list-passes"], capture_output=True, text=True, check=True).stdout
    heads = [line for line in listed.splitlines() if line and not line.startswith((" ", "--"))]
    needs = lambda head: any("=" not in part for part in head.partition("(")[2].rstrip(")").split(", ") if part)
    rows = [["--pass", head.partition("(")[0]] for head in heads if not needs(head)] + ROWS
    return {row[1]: row for row in rows if only in row[1]}


def printed(rxopt, arguments, text):
    """Returns rxopt's output for a text and passes; nothing if they cannot be applied."""
    command = [rxopt, "-", *arguments]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS_PER_PASS, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def main():
    """Runs rxopt, asks TVM, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxopt")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="take every Nth text of a file")
    parser.add_argument("--only", default="", help="only passes whose name holds this")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run passes, and that ask TVM")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the prints that TVM refuses in this folder")
    parser.add_argument("--show", type=int, default=3, help="places to show of each kind")
    args = parser.parse_args()
    everything = list(dict(texts(args.cases, args.every)).items())
    refused = verdicts([text for _, text in everything], args.jobs)
    good = [item for item, why in zip(everything, refused, strict=True) if not why]
    print(f"{len(good)} of {len(everything)} texts are TVM's", flush=True)
    prints = {}
    with ThreadPoolExecutor(args.jobs) as pool:
        for name, arguments in commands(args.rxopt, args.only).items():
            made = pool.map(lambda item: printed(args.rxopt, arguments, item[1]), good)
            for (place, _), text in zip(good, made, strict=True):
                if text is not None:
                    prints.setdefault(text, (name, place))
    asked = list(prints)
    counts = collections.defaultdict(list)
    for text, why in zip(asked, verdicts(asked, args.jobs), strict=True):
        if why:
            name, place = prints[text]
            counts[name, re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "…", why.splitlines()[0])[:120]].append((place, why, text))
    for (name, reason), places in sorted(counts.items(), key=lambda item: -len(item[1])):
        print(f"{len(places):5}  {name}: {reason}")
        for place, why, _ in places[: args.show]:
            print(f"           {place}: {' '.join(why.split())[:300]}")
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
        for number, (place, why, text) in enumerate(place for places in counts.values() for place in places):
            comment = "\n".join(f"# {line}" for line in [place, *why.splitlines()])
            (args.keep / f"{number:04}.rx").write_text(f"{text}\n{comment}\n", encoding="utf-8")
    wrong = sum(len(places) for places in counts.values())
    print(f"{len(asked)} prints, {wrong} that TVM does not read")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
