"""Makes report.json and a table for people of the lines that a run of tests/gpu/run.sh wrote.

usage: table.py LINES.jsonl REPORT.json     prints the table; ends with 1 where a case failed or nothing was run
"""

import datetime
import json
import sys


def shown(value: float | None, digits: int = 1) -> str:
    """A number of a table; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def joined(lines: list[dict]) -> list[dict]:
    """The rows of the kernel table with their peers, the bars, and whether they are met."""
    peers = {(line["case"], line["dtype"]): line for line in lines if line["group"] == "peers"}
    rows = []
    for line in (line for line in lines if line["group"] == "table"):
        peer = peers.get((line["case"], line["dtype"]), {})
        times = [time for name, time in peer.items() if name.endswith("_us")]
        best, own = min(times, default=None), line.get("device_us")
        row = dict(line, peer=peer, best_peer_us=best)
        row["over_floor"] = own / line["floor_us"] if own else None
        row["of_best_peer"] = best / own if own and best else None
        bar, has = (line["of_floor"], row["over_floor"]) if line["of_floor"] else (line["of_peer"], row["of_best_peer"])
        is_met = None if has is None else has <= bar if line["of_floor"] else has >= bar
        rows.append(row | {"is_met": is_met})
    return rows


def kernel_table(rows: list[dict]) -> None:
    print(f"\n{'kernel':44} {'dtype':9} {'µs':>9} {'floor':>9} {'x floor':>8} {'eager':>9} {'compiled':>9} {'of best':>8}  bar")
    for row in rows:
        peer = row["peer"]
        eager, compiled = peer.get("eager_us"), peer.get("compiled_graph_us", peer.get("compiled_us"))
        bar = f"<= {row['of_floor']} x floor" if row["of_floor"] else f">= {row['of_peer']} of the best peer"
        met = {None: "not measured", True: "met", False: "MISSED"}[row["is_met"]]
        times = [row.get("device_us"), row["floor_us"]]
        print(
            f"{row['case']:44} {row['dtype']:9} {shown(times[0]):>9} {shown(times[1]):>9} {shown(row['over_floor'], 2):>8} "
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
    with open(sys.argv[1], encoding="utf-8") as report:
        lines = [json.loads(line) for line in report if line.strip()]
    groups: dict[str, list[dict]] = {}
    for line in lines:
        groups.setdefault(line["group"], []).append(line)
    checked = {name: cases for name, cases in groups.items() if name != "peers"}
    print(f"{'group':24} {'cases':>6} {'ok':>6} {'kernels ms':>11}")
    for name, cases in checked.items():
        milliseconds = sum(case.get("milliseconds", 0.0) for case in cases)
        print(f"{name:24} {len(cases):6} {sum(case['ok'] for case in cases):6} {milliseconds:11.3f}")
    rows = joined(lines)
    if rows:
        kernel_table(rows)
    if "speed" in groups:
        model_table(groups["speed"], {(line["case"], line["dtype"]): line for line in groups.get("peers", [])})
    failed = [case for cases in checked.values() for case in cases if not case["ok"]]
    for case in failed:
        print(f"FAILED {case['group']}: {case['case']}: {case['error']}")
    if not checked:
        print("nothing was run")
    device = next((line["device"] for line in lines if line.get("device")), None)
    whole = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "device": device,
        "failed": len(failed),
        "missed": [f"{row['case']} {row['dtype']}" for row in rows if row["is_met"] is False],
        "not_measured": [f"{row['case']} {row['dtype']}" for row in rows if row["is_met"] is None],
        "table": rows,
        **{name: cases for name, cases in groups.items() if name not in ("table", "peers")},
    }
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(whole, file, indent=1)
        file.write("\n")
    return 1 if failed or not checked else 0


sys.exit(main())
