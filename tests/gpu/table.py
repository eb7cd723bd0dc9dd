"""Prints a report of tests/gpu/run.sh as a table: per group the cases, the failures and the time; then each failure."""

import json
import sys


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as report:
        lines = [json.loads(line) for line in report if line.strip()]
    groups: dict[str, list[dict]] = {}
    for line in lines:
        groups.setdefault(line["group"], []).append(line)
    print(f"{'group':24} {'cases':>6} {'ok':>6} {'kernels ms':>11} {'seconds':>8}")
    for group, cases in groups.items():
        ok = sum(case["ok"] for case in cases)
        milliseconds = sum(case.get("milliseconds", 0.0) for case in cases)
        seconds = sum(case.get("seconds", 0.0) for case in cases)
        print(f"{group:24} {len(cases):6} {ok:6} {milliseconds:11.3f} {seconds:8.2f}")
    for line in lines:
        if not line["ok"]:
            print(f"FAILED {line['group']}: {line['case']}: {line['error']}")
    if not lines:
        print("nothing was run")


main()
