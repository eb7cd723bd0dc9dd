#!/usr/bin/env python3
"""Tests on TVM's own test sources that rxcheck accepts every definition which TVM's parser accepts standalone.

    tvm_test_sources.py RXCHECK TESTS [--verdicts FILE] [--jobs N] [--show N] [--only TEXT] [--allow N]

TESTS is a folder of Python files, such as `tests/python` of an apache/tvm checkout. A region is an outermost
`@I.ir_module` class, `@R.function` or `@T.prim_func`. Each is read twice by TVM's rules:

- dedented, as a separate text: TVM's verdict (`tvm.script.from_source`), and rxcheck's on the same text as `.rx`;
- in place: rxcheck on the whole `.py`. Regions TVM accepts carry no error, and nothing outside a region is reported.

Prints the figures, the errors in accepted regions by code, and the regions that TVM rejects and rxcheck accepts. TVM trusts declared
types, so some of its tests contain real mistakes; exit 1 if more than ALLOW regions have an error in either form. Needs apache-tvm 0.27; says so and succeeds without it.
"""

import argparse
import collections
import json
import pathlib
import sys
from dataclasses import asdict

import rx_diagnostics
import tvm_workers  # before tvm: it says so where there is none
from script_regions import Region, regions_of, shape_of

from tvm.script import from_source

SECONDS_PER_REGION = 60


def judge(region):
    """Returns TVM's verdict: nothing if it accepts the text, otherwise the reason."""
    try:
        from_source(region.text, check_well_formed=True)
        yield None
    except BaseException as error:  # TVM raises exceptions of any type
        yield str(error).strip() or type(error).__name__


def judged(files, jobs, cache):
    """Returns all regions with TVM's verdicts, from the cache if there is one."""
    if cache and cache.is_file():
        return [Region(**row) for row in json.loads(cache.read_text(encoding="utf-8"))]
    by_file = [list(regions_of(str(file), text)) for file, text in files]
    # Each file is judged in a separate process, because TVM keeps state.
    answers = tvm_workers.asked(by_file, judge, SECONDS_PER_REGION, jobs)
    regions = [region for regions in by_file for region in regions]
    for region, reason in zip(regions, tvm_workers.first(answers, "TVM crashed or did not answer"), strict=True):
        region.accepted, region.reason = reason is None, reason or ""
    if cache:
        cache.write_text(json.dumps([asdict(region) for region in regions]), encoding="utf-8")
    return regions


def tvm_reason(reason):
    """Returns the line of TVM's message that contains the reason."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    traceback = [line for line in lines if line.startswith("Traceback:")]
    stated = [line for line in lines if line.startswith("error:")]
    if any("not well-formed" in line for line in lines):
        return "not well-formed: " + (traceback[0] if traceback else "the Relax part")
    return (stated or lines or ["no reason given"])[0]


def report(title, groups, show):
    """Prints groups of places, largest first."""
    total = sum(len(places) for places in groups.values())
    print(f"\n{title}: {total}")
    for key, places in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"  {len(places):5}  {key}")
        for place in places[:show]:
            print(f"           {place}")


def check_standalone(rxcheck, regions, show):
    """Compares the verdicts on the regions as separate texts; returns the number of wrong errors."""
    wrong = collections.defaultdict(list)
    silent = collections.defaultdict(list)
    clean = 0
    found = rx_diagnostics.of_texts(rxcheck, [region.text for region in regions])
    for region, rows in zip(regions, found, strict=True):
        failed = rx_diagnostics.errors(rows)
        if region.accepted and failed:
            row = failed[0]
            place = f"{region.file}:{region.first + row['line'] - 1}:{row['column']}: {row['message']}"
            wrong[f"{row['code']} {shape_of(row['message'])}"].append(place)
        elif region.accepted:
            clean += 1
        elif not failed:
            silent[shape_of(tvm_reason(region.reason))].append(region.where)
    accepted = sum(region.accepted for region in regions)
    print(f"{len(regions)} regions, TVM accepts {accepted} standalone; {clean} of them without an error of rxcheck")
    report("accepted by TVM, error by rxcheck (standalone)", wrong, show)
    report("refused by TVM, no error by rxcheck", silent, show)
    return accepted - clean


def check_in_place(rxcheck, files, regions, show):
    """Checks whole Python files; returns the number of regions with wrong errors, and of diagnostics outside regions.
    """
    found = rx_diagnostics.by_file(rxcheck, [file for file, _ in files])
    by_file = collections.defaultdict(list)
    for region in regions:
        by_file[region.file].append(region)
    inside = collections.defaultdict(list)
    outside = collections.defaultdict(list)
    faulty = set()
    for file, rows in found.items():
        for row in rows:
            region = next((r for r in by_file[file] if r.first <= row["line"] <= r.last), None)
            place = f"{file}:{row['line']}:{row['column']}: {row['message']}"
            key = f"{row['code']} {shape_of(row['message'])}"
            if region is None:
                outside[key].append(place)
            elif region.accepted and row["severity"] == "error":
                faulty.add(region.where)
                inside[key].append(place)
    accepted = sum(region.accepted for region in regions)
    print(f"\nin place: {accepted - len(faulty)} of {accepted} regions without an error")
    report("errors in regions that TVM accepts (in place)", inside, show)
    report("reported outside of regions", outside, show)
    return len(faulty), sum(len(places) for places in outside.values())


def main():
    """Asks TVM, checks and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxcheck")
    parser.add_argument("tests", type=pathlib.Path)
    parser.add_argument("--verdicts", type=pathlib.Path, help="keep TVM's verdicts in this file and reuse them")
    parser.add_argument("--jobs", type=int, default=2, help="processes that judge")
    parser.add_argument("--show", type=int, default=3, help="places to show of each kind")
    parser.add_argument("--only", default="", help="only files whose path holds this text")
    parser.add_argument("--allow", type=int, default=33, help="regions with real mistakes that TVM misses")
    args = parser.parse_args()
    paths = [path for path in sorted(args.tests.rglob("*.py")) if args.only in str(path)]
    if not paths:
        print(f"skipped: no Python files under {args.tests}")
        return 0
    files = [(path, path.read_text(encoding="utf-8")) for path in paths]
    regions = [region for region in judged(files, args.jobs, args.verdicts) if args.only in region.file]
    alone = check_standalone(args.rxcheck, regions, args.show)
    faulty, stray = check_in_place(args.rxcheck, files, regions, args.show)
    return 1 if max(alone, faulty) > args.allow or stray else 0


if __name__ == "__main__":
    sys.exit(main())
