#!/usr/bin/env python3
"""Compares `rxcheck --tvm` with an installed TVM of that release over Relax texts.

    python3 tests/scripts/tvm_portability.py FOLDER_OR_JSONL... [--rxcheck target/release/rxcheck] [--fixed] [--jobs 2]

Needs apache-tvm 0.25 with apache-tvm-ffi 0.1.12, or 0.26 or 0.27 with apache-tvm-ffi 0.1.14.post0. Every `.rx` file, and the `text` of every row of a `.jsonl` file that is
not marked `negative`, is read, checked (`well_formed`) and built with the default pipelines for llvm and, to source, for CUDA
(sm_80), in a child process: TVM may crash or hang. Prints valid texts on which TVM fails and that rx does not flag, and
those that rx flags and TVM builds. With `--fixed`, texts for which rx has fixes are fixed and built again, and those on which TVM
still fails are printed too. The exit status is 1 if any were printed.
"""

import argparse
import collections
import json
import logging
import pathlib
import sys
import tempfile

import rx_diagnostics
import tvm_workers  # before tvm: it says so where there is none

import tvm
import tvm.s_tir.dlight  # noqa: F401
from tvm import relax

VERSION = ".".join(tvm.__version__.split(".")[:2])
STAGES = ("parse", "well_formed", "llvm", "cuda")
CUDA = {
    "kind": "cuda",
    "arch": "sm_80",
    "max_threads_per_block": 1024,
    "max_shared_memory_per_block": 49152,
    "thread_warp_size": 32,
}


def stages(text):
    """Returns TVM's result for each stage of `text`: "ok" or an error, after which no stage follows."""

    def read(text):
        module = tvm.script.from_source(text, check_well_formed=False)
        return module if isinstance(module, tvm.IRModule) else tvm.IRModule({"main": module})

    module = text
    steps = (
        read,
        relax.analysis.well_formed,
        lambda module: tvm.compile(module, target=tvm.target.Target("llvm")),
        lambda module: tvm.compile(module, target=tvm.target.Target(CUDA, host="llvm")),
    )
    for at, step in enumerate(steps):
        try:
            made = step(module)
            module = made if at == 0 else module
        except BaseException as error:  # noqa: BLE001: whatever TVM raises is the answer
            yield f"{type(error).__name__}: {' '.join(str(error).split())}"[:2000]
            return
        yield "ok"


def verdict(said, end):
    """Returns the first stage that fails with its error; None if TVM builds the text."""
    if said and said[-1] != "ok":
        return STAGES[len(said) - 1], said[-1]
    return None if len(said) == len(STAGES) else (STAGES[len(said)], end)


def flagged(rxcheck, folder):
    """Returns by file name in `folder` whether rx finds errors, and which RX10xx."""
    errors, codes = set(), collections.defaultdict(set)
    for row in rx_diagnostics.rows(rxcheck, "--tvm", VERSION, folder):
        name = pathlib.Path(row["file"]).name
        if row.get("severity") == "error":
            errors.add(name)
        elif str(row.get("code", "")).startswith("RX10"):
            codes[name].add(row["code"])
    return errors, codes


def texts(sources):
    """Yields names and texts of all sources; a name is a file's stem, or a row's number and `id` or `op`."""
    for source in sources:
        if source.suffix == ".jsonl":
            for number, line in enumerate(source.read_text().splitlines()):
                row = json.loads(line)
                if not row.get("negative") and "text" in row:
                    yield f"{source.stem}-{number}-{row.get('op', row.get('id', ''))}".replace("/", "_"), row["text"]
        else:
            for path in sorted(source.rglob("*.rx")):
                yield path.stem, path.read_text()


def compare(args, folder, judged):
    """Prints disagreements about the files in `folder`, whose verdicts `judged` has by name; returns the number of
    each kind."""
    errors, codes = flagged(args.rxcheck, folder)
    missed, false = 0, 0
    for name, failure in sorted(judged.items()):
        if name in errors:
            continue
        if failure and not codes[name]:
            missed += 1
            print(f"missed  {name}: {failure[0]}: {failure[1][:160]}")
        elif codes[name] and not failure:
            false += 1
            print(f"false   {name}: {', '.join(sorted(codes[name]))}, and TVM builds it")
    valid = sum(name not in errors for name in judged)
    failing = sum(name not in errors and bool(failure) for name, failure in judged.items())
    print(
        f"{valid} valid texts ({len(judged) - valid} with errors passed over), of which TVM fails on {failing}: "
        f"{missed} missed, {false} flagged for nothing"
    )
    return missed + false


def fixed(args, folder, judge):
    """Applies rx's fixes to the files in `folder` and builds the changed ones; returns how many still fail."""
    before = {path.name: path.read_text() for path in folder.iterdir()}
    rx_diagnostics.rows(args.rxcheck, "--tvm", VERSION, "--fix", "--unsafe-fixes", folder)
    changed = {name: text for name, old in before.items() if (text := (folder / name).read_text()) != old}
    failures = {name: failure for name, failure in judge(changed).items() if failure}
    for name, failure in sorted(failures.items()):
        print(f"unfixed {name}: {failure[0]}: {failure[1][:160]}")
    print(f"{len(changed)} texts fixed: TVM fails on {len(failures)} of them")
    return len(failures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    parser.add_argument("--rxcheck", default="rxcheck")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one text")
    parser.add_argument("--jobs", type=int, default=2, help="texts built at once")
    parser.add_argument("--sample", type=int, default=1, help="take every so-manieth text")
    parser.add_argument("--fixed", action="store_true", help="build the fixed texts too")
    parser.add_argument("--verdicts", type=pathlib.Path, help="a JSON file that keeps what TVM said of texts")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print(f"TVM {tvm.__version__}")
    known = json.loads(args.verdicts.read_text()) if args.verdicts and args.verdicts.exists() else {}

    def judge(named):
        new = list(dict.fromkeys(text for text in named.values() if text not in known))
        answers = tvm_workers.asked(tvm_workers.batches(new, 1), stages, args.limit, args.jobs)
        for text, answer in zip(new, answers, strict=True):
            known[text] = verdict(*answer)
            if args.verdicts:
                args.verdicts.write_text(json.dumps(known))
        return {name: known[text] for name, text in named.items()}

    named = {f"{name}.rx": text for name, text in list(texts(args.sources))[:: args.sample]}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, text in named.items():
            (folder / name).write_text(text)
        errors, _ = flagged(args.rxcheck, folder)
        failures = compare(args, folder, judge({name: text for name, text in named.items() if name not in errors}))
        if args.fixed:
            failures += fixed(args, folder, judge)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
