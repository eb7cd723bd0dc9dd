#!/usr/bin/env python3
"""Lists CUDA kernels that have few threads for their work, with the reason.

    kernel_threads.py RXRUN FILE_OR_FOLDER … [--ratio N] [--dim NAME=VALUE] [--markdown]

Runs `rxrun FILE --emit schedule --format json` on every .rx and .py file, for `main` or, without one, for every function, and names each kernel
that the rule `fallback` made, or whose threads times N (default 256) are fewer than the iterations of its innermost loops; with the rule's
reason. The summary counts them by rule. The exit status is 1 if such a kernel is not short and its rule is not one whose threads each
compute a tile of sums (`gemm`, `gemv`, `attention`, `window`).
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

# Rules whose threads keep tiles of sums in registers, which is why few threads suffice.
PRODUCTS = {"gemm", "gemv", "attention", "window"}


def kernels(rxrun, file, dims, entry=None):
    """Yields (function, kernels, None) or (function, [], reason why it cannot be scheduled) for each function of the
    file that can run."""
    options = [option for dim in dims for option in ("--dim", dim)] + (["--entry", entry] if entry else [])
    command = [rxrun, str(file), "--emit", "schedule", "--format", "json", *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    objects = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode == 0:
        yield entry or "main", [one for one in objects if one.get("event") == "kernel"], None
        return
    why = [one["message"] for one in objects if "message" in one] or [ran.stderr.strip()]
    entries = re.findall("`([^`]*)`", why[-1].partition("say which with --entry")[2])
    if entry or not entries:
        yield entry or "main", [], why[-1][:200]
    for name in entries:
        yield from kernels(rxrun, file, dims, name)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("rxrun")
    arguments.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments.add_argument("--ratio", type=int, default=256)
    arguments.add_argument("--dim", action="append", default=[])
    arguments.add_argument("--markdown", action="store_true")
    args = arguments.parse_args()
    files = [file for path in args.paths for file in (sorted((*path.rglob("*.rx"), *path.rglob("*.py"))) if path.is_dir() else [path])]
    total, rows, failed = 0, [], []
    for file, (entry, found, why) in ((file, part) for file in files for part in kernels(args.rxrun, file, args.dim)):
        if why:
            failed.append((f"{file}: {entry}", why))
        total += len(found)
        for one in found:
            is_few = one["threads"] * args.ratio < one["work"]
            # A kernel that only copies a few elements costs little wherever it runs.
            is_plain = one["rule"] == "fallback" and one["work"] > 4096
            if is_few or is_plain:
                rows.append((file.name if entry == "main" else f"{file.name}: {entry}", one, is_few))
    for name, one, is_few in rows:
        what = (name, one["kernel"], one["rule"], one["threads"], one["work"], one["reason"])
        if args.markdown:
            print("| " + " | ".join(str(part).replace("|", "/") for part in what) + " |")
        else:
            print("{}: {} by {}: {} threads for {} iterations: {}".format(*what))
    few = collections.Counter(one["rule"] for _, one, is_few in rows if is_few)
    plain = sum(not is_few for _, _, is_few in rows)
    print(f"{total} kernels of {len(files)} programs; few threads: {dict(few)}; fallback with threads enough: {plain}")
    for file, why in failed:
        print(f"not scheduled: {file}: {why}")
    sys.exit(any(is_few and one["rule"] not in PRODUCTS for _, one, is_few in rows))


main()
