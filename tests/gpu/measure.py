"""Runs rxrun on a device over the rows of the kernel table and the models, and writes what came of each as a line of JSON.

usage: measure.py kernels RXRUN FOLDER            the rows of kernels.py
       measure.py models  RXRUN FOLDER MODELS     models beside their recorded results, and whole models at batch 1 and 32
       measure.py programs FOLDER                 writes the rows' programs and runs nothing

Needs nothing but Python. Times are the device's own, by events around a run; runs repeat, so that they are replays of one CUDA graph.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator

from kernels import ROWS

REPEAT = 30

# Programs with recorded inputs and results beside them.
CHECKED = "s_resnet s_resnet_dyn s_mobilenet_v2 s_unet s_dcgan s_bert s_vit s_gpt2_dyn s_llama_dyn s_lstm onnx_s_resnet".split()

# Whole models, their values drawn from the seed: name, and the dims of each run. Batch 32 where the program leaves its batch open; the others
# have batch 1 in their text.
WHOLE = [
    ("resnet18", {}),
    ("resnet50", {}),
    ("mobilenet_v2", {}),
    ("vit_b_16", {}),
    ("bert_base", {}),
    ("gpt2", {}),
    ("resnet18_dynbatch", {"s77": 1}),
    ("resnet18_dynbatch", {"s77": 32}),
    # Sixteen gigabytes drawn from the seed: the last, since it may take all the time that is left.
    ("nn_llama3_8b_32l_f16", {"batch": 1, "seq": 1}),
]


def events(command: list[str], seconds: float, cache: str | None = None) -> tuple[dict[str, dict], str | None]:
    """The last event of each kind that rxrun told, and why it failed."""
    environment = dict(os.environ, **({"RX_CACHE": cache} if cache is not None else {}))
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return {}, str(problem)
    told: dict[str, dict] = {}
    for line in run.stdout.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        told[event.get("event", "diagnostic")] = event
    if run.returncode == 0:
        return told, None
    said = next((told[kind]["message"] for kind in ("run-failed", "bad-input", "usage") if kind in told), None)
    compared = told.get("compared", {}).get("text")
    return told, said or compared or run.stderr.strip()[-400:] or f"exit status {run.returncode}"


def measured(told: dict[str, dict]) -> dict:
    """Times and memory of a run, of the events it told."""
    ran, built = told.get("ran", {}), told.get("built", {})
    fields: dict = {"device": built.get("device"), "kernels": built.get("kernels"), "build_seconds": built.get("seconds")}
    # The first runs launch and capture; the others replay.
    times = sorted(ran.get("device_seconds", [])[2:])
    if times:
        fields["device_us"] = times[len(times) // 2] * 1e6
        fields["fastest_us"] = times[0] * 1e6
    host = sorted(ran.get("seconds", [])[2:])
    if host:
        fields["run_us"] = host[len(host) // 2] * 1e6
    fields["device_bytes"] = ran.get("device_bytes")
    return fields


def kernels(rxrun: str, folder: pathlib.Path) -> Iterator[dict]:
    """The rows of the kernel table; the first compile of each goes into an empty cache, so that it is the compiler's time."""
    for row, path in zip(ROWS, programs(folder)):
        command = [rxrun, str(path), "--isolated", "--device", "cuda", "--repeat", str(REPEAT), "--format", "json"]
        told, error = events(command, 60, str(folder / "cache"))
        line = {"group": "table", "case": row.name, "dtype": row.dtype, "ok": error is None, "error": error}
        line |= {"bytes": row.bytes, "operations": row.operations, "floor_us": row.floor_us}
        line |= {"of_floor": row.of_floor, "of_peer": row.of_peer}
        yield line | measured(told)


def models(rxrun: str, folder: pathlib.Path, where: pathlib.Path) -> Iterator[dict]:
    """Models: right, and how fast."""
    for name in CHECKED:
        program, values = where / f"{name}.rx", where / f"{name}.npz"
        if not (program.exists() and values.exists()):
            continue
        command = [rxrun, str(program), "--isolated", "--inputs", str(values), "--check", str(values), "--device", "cuda"]
        told, error = events([*command, "--format", "json"], 60)
        line = {"group": "models", "case": name, "ok": error is None, "error": error}
        yield line | {"compared": told.get("compared", {}).get("text")} | measured(told)
    for name, dims in WHOLE:
        program = where / f"{name}.rx"
        if not program.exists():
            continue
        words = [word for dim, value in dims.items() for word in ("--dim", f"{dim}={value}")]
        command = [rxrun, str(program), "--isolated", *words, "--device", "cuda", "--repeat", str(REPEAT), "--format", "json"]
        cache = str(folder / "cache-models")
        cold, error = events(command, 90, cache)
        warm = events([*command, "--max-rounds", "1"], 90, cache)[0] if error is None else {}
        case = " ".join([name, *(f"{dim}={value}" for dim, value in dims.items())])
        line = {"group": "speed", "case": case, "ok": error is None, "error": error} | measured(cold)
        yield line | {"warm_build_seconds": warm.get("built", {}).get("seconds")}


def programs(folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the rows' programs."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for at, row in enumerate(ROWS):
        path = folder / f"row{at:02}.rx"
        path.write_text(row.program, encoding="utf-8")
        paths.append(path)
    return paths


def main() -> int:
    start = time.monotonic()
    what = sys.argv[1]
    if what == "programs":
        programs(pathlib.Path(sys.argv[2]))
        return 0
    rxrun, folder = sys.argv[2], pathlib.Path(sys.argv[3])
    lines = kernels(rxrun, folder) if what == "kernels" else models(rxrun, folder, pathlib.Path(sys.argv[4]))
    count = failed = 0
    for line in lines:
        # One that is cut off has told what it has.
        print(json.dumps(line), flush=True)
        count += 1
        failed += not line["ok"]
    print(f"{what}: {count} in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
