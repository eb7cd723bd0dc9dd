#!/usr/bin/env python3
"""Compares `rxcheck --tvm 0.27` with an installed TVM over folders of Relax texts.

    python3 tests/scripts/tvm_portability.py FOLDER... [--rxcheck target/release/rxcheck]

Needs apache-tvm 0.27 with apache-tvm-ffi 0.1.14.post0. Every `.rx` file is read, checked (`well_formed`) and built with the default
pipelines for llvm and, to source, for CUDA (sm_80), each in a child process: TVM may crash or hang. Printed are valid texts
that TVM fails on and rx does not flag, and those that rx flags and TVM builds. The exit status says whether there are any.
"""

import argparse
import json
import logging
import os
import pathlib
import select
import subprocess
import sys
import time

os.environ.setdefault("TVM_NUM_THREADS", "1")
STAGES = ("parse", "well_formed", "llvm", "cuda")
CUDA = {
    "kind": "cuda",
    "arch": "sm_80",
    "max_threads_per_block": 1024,
    "max_shared_memory_per_block": 49152,
    "thread_warp_size": 32,
}


def stage(text, which):
    """What TVM says of `text` in one stage: "ok" or an error."""
    import tvm
    import tvm.s_tir.dlight  # noqa: F401
    from tvm import relax

    try:
        module = tvm.script.from_source(text, check_well_formed=False)
        if which == "parse":
            return "ok"
        if not isinstance(module, tvm.IRModule):
            module = tvm.IRModule({"main": module})
        if which == "well_formed":
            relax.analysis.well_formed(module)
        elif which == "llvm":
            tvm.compile(module, target=tvm.target.Target("llvm"))
        else:
            tvm.compile(module, target=tvm.target.Target(CUDA, host="llvm"))
        return "ok"
    except BaseException as error:  # noqa: BLE001: whatever TVM raises is the answer
        return f"{type(error).__name__}: {' '.join(str(error).split())}"


def in_child(text, which, limit):
    """`stage` in a child process, killed after `limit` seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.write(writer, stage(text, which).encode()[:4000])
        os._exit(0)
    os.close(writer)
    said, start = b"", time.monotonic()
    while True:
        left = limit - (time.monotonic() - start)
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            os.kill(child, 9)
            said = b"out of time"
            break
        part = os.read(reader, 65536)
        if not part:
            break
        said += part
    os.close(reader)
    _, status = os.waitpid(child, 0)
    return said.decode(errors="replace") or f"signal {os.WTERMSIG(status)}"


def verdict(text, limit):
    """The first stage that fails and what it says; None where TVM builds the text."""
    for which in STAGES:
        said = in_child(text, which, limit)
        if said != "ok":
            return which, said
    return None


def flagged(rxcheck, path):
    """Whether rx finds errors in a file, and which RX10xx."""
    command = [rxcheck, "--tvm", "0.27", "--format", "json", "--quiet", str(path)]
    rows = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    rows = [json.loads(row) for row in rows if row.startswith("{")]
    errors = any(row.get("severity") == "error" for row in rows)
    return errors, sorted({row["code"] for row in rows if str(row.get("code", "")).startswith("RX10")})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--rxcheck", default="rxcheck")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one stage")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    try:
        import tvm
    except ImportError:
        print("skipped: TVM is not installed")
        return 0
    print(f"TVM {tvm.__version__}")
    texts, invalid, missed, false = 0, 0, 0, 0
    for path in sorted(path for folder in args.folders for path in folder.rglob("*.rx")):
        errors, codes = flagged(args.rxcheck, path)
        if errors:
            invalid += 1
            continue
        texts += 1
        failure = verdict(path.read_text(), args.limit)
        if failure and not codes:
            missed += 1
            print(f"missed  {path}: {failure[0]}: {failure[1][:160]}")
        elif codes and not failure:
            false += 1
            print(f"false   {path}: {', '.join(codes)}, and TVM builds it")
    print(f"{texts} valid texts ({invalid} with errors passed over): {missed} missed, {false} flagged for nothing")
    return 1 if missed or false else 0


if __name__ == "__main__":
    sys.exit(main())
