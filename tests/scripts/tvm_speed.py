#!/usr/bin/env python3
"""Measures how long rxcheck and TVM take to check the same texts, alternately, and the ratio.

    tvm_speed.py RXCHECK TEXTS [--texts N] [--runs N] [--field text]

TEXTS is a file of JSON lines with a text in FIELD, or a folder of `.rx` files. TVM's check is the one available to its users:
`tvm.script.from_source` and, where that succeeds, whether the module is well-formed, in this process, with imports done.
rxcheck is a whole process over the same texts as files, on one thread (`--jobs 1`) and on all. Each round runs both; the
median and the range of the ratio are printed. Needs apache-tvm; says so and succeeds without it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import tvm
    from tvm import relax
    from tvm.script import from_source
except ImportError:
    print("skipped: apache-tvm is not installed")
    sys.exit(0)

# The function that returns a boolean has a different name since 0.27, where `well_formed` raises the reason.
ASK = getattr(relax.analysis, "check_well_formed", relax.analysis.well_formed)


def texts_of(path, field):
    """Returns name and text of each program."""
    if path.is_dir():
        return [(file.name, file.read_text()) for file in sorted(path.glob("*.rx"))]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [(f"{at}.rx", row[field]) for at, row in enumerate(rows) if field in row]


def tvm_checks(texts):
    """Returns TVM's time in seconds, and the number of texts that it accepts."""
    start = time.perf_counter()
    accepted = 0
    for _, text in texts:
        try:
            module = from_source(text, check_well_formed=False)
            if not isinstance(module, tvm.IRModule):
                module = tvm.IRModule({"main": module})
            accepted += bool(ASK(module))
        except Exception:  # TVM rejects texts with exceptions of any type
            pass
    return time.perf_counter() - start, accepted


def rxcheck_checks(rxcheck, folder, jobs):
    """Returns the time of a whole rxcheck process in seconds."""
    command = [rxcheck, "--quiet", "--format", "concise", *(["--jobs", "1"] if jobs == 1 else []), str(folder)]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode > 1:
        sys.exit(f"rxcheck failed: {done.returncode}")
    return time.perf_counter() - start


def main():
    """Reads the texts, times both programs, prints the ratios."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("rxcheck")
    arguments.add_argument("texts", type=pathlib.Path)
    arguments.add_argument("--texts", dest="count", type=int, default=300)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--field", default="text")
    options = arguments.parse_args()
    texts = texts_of(options.texts, options.field)
    texts = texts[:: max(1, len(texts) // options.count)]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts:
            pathlib.Path(folder, name).write_text(text)
        tvm_checks(texts[:5])
        runs = []
        for _ in range(options.runs):
            seconds, accepted = tvm_checks(texts)
            runs.append((seconds, rxcheck_checks(options.rxcheck, folder, 1), rxcheck_checks(options.rxcheck, folder, 0)))
    size = sum(len(text) for _, text in texts)
    print(f"{len(texts)} texts, {size / 1e6:.2f} MB, TVM {tvm.__version__} accepts {accepted}; {len(runs)} runs")
    print(f"TVM parser + well_formed: {statistics.median(row[0] for row in runs):.3f} s")
    for name, at in (("rxcheck, one thread", 1), ("rxcheck, all threads", 2)):
        ratios = sorted(row[0] / row[at] for row in runs)
        seconds = statistics.median(row[at] for row in runs)
        print(f"{name}: {seconds:.3f} s, TVM/rx {statistics.median(ratios):.0f} ({ratios[0]:.0f} to {ratios[-1]:.0f})")


main()
