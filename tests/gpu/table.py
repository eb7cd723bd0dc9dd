"""Generates report.json and a readable table from the lines that a run of tests/gpu/run.sh wrote.

usage: table.py LINES.jsonl REPORT.json     prints the table; exits with 1 if a case failed or was not reached, or nothing was run
"""

from __future__ import annotations

import datetime
import json
import sys

from table_rows import ROWS

# Smaller data stays in the device's cache between two calls, so the memory bandwidth is not a lower bound.
CACHED_BYTES = 60e6


def read(path: str) -> tuple[list[dict], int]:
    """Reads the lines; returns also the number of unreadable ones, since a killed process may have left half a line."""
    lines, unreadable = [], 0
    with open(path, encoding="utf-8", errors="replace") as report:
        for text in filter(str.strip, report):
            try:
                line = json.loads(text)
            except ValueError:
                line = None
            if isinstance(line, dict) and "group" in line:
                lines.append(line)
            else:
                unreadable += 1
    return lines, unreadable


def of_group(lines: list[dict], group: str) -> list[dict]:
    return [line for line in lines if line["group"] == group]


def not_ended(lines: list[dict]) -> list[dict]:
    """Returns the device test that started last and did not end. A line with `next` marks a start, one with `is_lost`
    an end."""
    begun = None
    for line in lines:
        if "next" in line:
            begun = line
        elif "is_lost" in line:
            begun = None
    return [begun | {"ok": False, "error": "it began and did not end"}] if begun else []


def not_reached(lines: list[dict], groups: dict[str, list[dict]], rows: list[dict]) -> list[str]:
    """Returns the cases that should have run and have no line."""
    known = {
        "groups": set(groups),
        "models": {line["case"] for line in groups.get("models", [])},
        "speed": {f"{line['case']} {line['dtype']}" for line in groups.get("speed", [])},
    }
    missing = [case for plan in of_group(lines, "plan") for case in plan["cases"] if case not in known[plan["of"]]]
    missing += [f"{row['case']} {row['dtype']}" for row in rows if "ok" not in row]
    return list(dict.fromkeys(missing))


def peer_times(lines: list[dict]) -> dict[tuple[str, str], dict]:
    """Returns PyTorch's times by case and dtype. A row has one line for its eager times and one for its compiled
    ones."""
    peers: dict[tuple[str, str], dict] = {}
    for line in of_group(lines, "peers"):
        key = (line["case"], line["dtype"])
        peers[key] = line | peers.get(key, {})
    return peers


def joined(lines: list[dict]) -> list[dict]:
    """Returns all rows of the kernel table with PyTorch's times, their targets, and whether they meet them."""
    peers = peer_times(lines)
    measured = {(line["case"], line["dtype"]): line for line in of_group(lines, "table")}
    device = next((line["device"] for line in lines if line.get("device")), None)
    rows = []
    for row in ROWS:
        key = (row.name, row.dtype)
        line, peer = measured.get(key, row.fields) | {"floor_us": row.floor_on(device)}, peers.get(key, {})
        times = [time for name, time in peer.items() if name.endswith("_us")]
        best, own = min(times, default=None), line.get("device_us")
        row = dict(line, peer=peer, best_peer_us=best)
        row["over_floor"] = own / line["floor_us"] if own else None
        row["of_best_peer"] = best / own if own and best else None
        bar, has = (line["of_floor"], row["over_floor"]) if line["of_floor"] else (line["of_peer"], row["of_best_peer"])
        is_met = None if has is None else has <= bar if line["of_floor"] else has >= bar
        if line["of_floor"] and line["bytes"] < CACHED_BYTES:
            is_met = None
        rows.append(row | {"is_met": is_met})
    return rows


def shown(value: float | None, digits: int = 1) -> str:
    """Formats a number of a table; a dash if there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def group_table(groups: dict[str, list[dict]]) -> None:
    print(f"{'group':28} {'cases':>6} {'ok':>6} {'kernels ms':>11}")
    for name, cases in groups.items():
        milliseconds = sum(case.get("milliseconds") or 0.0 for case in cases)
        print(f"{name:28} {len(cases):6} {sum(case['ok'] for case in cases):6} {milliseconds:11.3f}")


def kernel_table(rows: list[dict]) -> None:
    print(f"\n{'kernel':44} {'dtype':9} {'µs':>9} {'floor':>9} {'x floor':>8} {'eager':>9} {'compiled':>9} {'of best':>8}  bar")
    for row in rows:
        peer = row["peer"]
        eager, compiled = peer.get("eager_us"), peer.get("compiled_graph_us", peer.get("compiled_us"))
        bar = f"<= {row['of_floor']} x floor" if row["of_floor"] else f">= {row['of_peer']} of the best peer"
        met = {None: "not measured", True: "met", False: "MISSED"}[row["is_met"]] if "ok" in row else "not reached"
        print(
            f"{row['case']:44} {row['dtype']:9} {shown(row.get('device_us')):>9} {shown(row['floor_us']):>9} {shown(row['over_floor'], 2):>8} "
            f"{shown(eager):>9} {shown(compiled):>9} {shown(row['of_best_peer'], 2):>8}  {bar}: {met}"
        )


def model_table(lines: list[dict], peers: dict[tuple[str, str], dict]) -> None:
    head = ["device µs", "run µs", "compiled", "of it", "kernels", "cold s", "warm s", "MiB"]
    print(f"\n{'model':32} {'dtype':9}" + "".join(f" {word:>9}" for word in head))
    for line in lines:
        size, own = line.get("device_bytes"), line.get("device_us")
        compiled = peers.get((line["case"], line["dtype"]), {}).get("compiled_graph_us")
        line["of_compiled"] = own / compiled if own and compiled else None
        cells = [
            shown(own),
            shown(line.get("run_us")),
            shown(compiled),
            shown(line["of_compiled"], 2),
            str(line.get("kernels") or "-"),
            shown(line.get("build_seconds"), 2),
            shown(line.get("warm_build_seconds"), 2),
            shown(size / 2**20 if size else None, 0),
        ]
        print(f"{line['case']:32} {line['dtype']:9}" + "".join(f" {cell:>9}" for cell in cells))


def main() -> int:
    lines, unreadable = read(sys.argv[1])
    groups: dict[str, list[dict]] = {}
    for line in [line for line in lines if line["group"] not in ("peers", "plan") and "next" not in line] + not_ended(lines):
        groups.setdefault(line["group"], []).append(line)
    group_table(groups)
    rows = joined(lines)
    kernel_table(rows)
    if "speed" in groups:
        model_table(groups["speed"], peer_times(lines))
    failed = [case for cases in groups.values() for case in cases if not case["ok"]]
    for case in failed:
        print(f"FAILED {case['group']}: {case['case']}: {case.get('error')}")
    missing = not_reached(lines, groups, rows)
    if missing:
        print(f"NOT REACHED: {'; '.join(missing)}")
    if unreadable:
        print(f"{unreadable} lines cannot be read")
    if not groups:
        print("nothing was run")
    whole = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "device": next((line["device"] for line in lines if line.get("device")), None),
        "failed": len(failed),
        "not_reached": missing,
        "missed": [f"{row['case']} {row['dtype']}" for row in rows if row["is_met"] is False],
        "not_measured": [f"{row['case']} {row['dtype']}" for row in rows if row["is_met"] is None],
        "table": rows,
        **{name: cases for name, cases in groups.items() if name != "table"},
    }
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(whole, file, indent=1)
        file.write("\n")
    return 1 if failed or missing or not groups else 0


sys.exit(main())
