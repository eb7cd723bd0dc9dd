"""Runs rxrun on a device for the rows of the kernel table and the models, and writes each result as a line of JSON.

usage: measure.py kernels RXRUN FOLDER            the rows of table_rows.py
       measure.py models  RXRUN FOLDER MODELS     models compared with their recorded results, and whole models at batch 1 and 32
       measure.py programs FOLDER [MODELS]        writes the rows' programs, and the models', and runs nothing

Needs nothing but Python. Times are measured by the device with events around a run. Runs are repeated, so that later ones replay one
CUDA graph.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator

from table_rows import ROWS, Row
from variants import variant

REPEAT = 30

# Runs of a short row: enough for clocks to reach full speed before the last ones.
REPEAT_SHORT = 200

# Calls of a model between two synchronizations with the host; rows define their own number.
CALLS_OF_MODEL = 4

# Time limit of the work between two synchronizations, which should take milliseconds: beyond it, a kernel has hung, and
# rxrun reports its name.
MOST_SECONDS = 5

# Time limit of a process: beyond it, something other than a kernel has hung.
SECONDS = 20

# Additional time for drawing arguments, in elements per second: bfloat16 and float16 take longest.
DRAWN_PER_SECOND = 25e6

# Programs with recorded inputs and results in files of the same name.
CHECKED = "s_resnet s_resnet_dyn s_mobilenet_v2 s_unet s_dcgan s_bert s_vit s_gpt2_dyn s_llama_dyn s_lstm onnx_s_resnet".split()

# Whole models, their values drawn from the seed: name, dims of programs that leave some open, batch and dtype. Transformers whose batch is
# 1 in their text stay at it: their reshapes do not say which 1 is the batch.
WHOLE = [
    *((name, {}, 1, dtype) for dtype in ("float32", "bfloat16") for name in ("resnet50", "vit_b_16", "bert_base", "gpt2")),
    *(("resnet50", {}, 32, dtype) for dtype in ("float32", "bfloat16")),
    ("resnet18", {}, 1, "float32"),
    ("mobilenet_v2", {}, 1, "float32"),
    ("mobilenet_v2", {}, 32, "bfloat16"),
    ("densenet121", {}, 1, "float32"),
    ("resnet18_dynbatch", {"s77": 1}, 1, "float32"),
    ("resnet18_dynbatch", {"s77": 32}, 1, "float32"),
    ("gpt2_dyn", {"s95": 32, "s75": 64}, 1, "bfloat16"),
    *((name, {}, 1, "tf32") for name in ("resnet50", "vit_b_16", "bert_base", "gpt2")),
    ("resnet50", {}, 32, "tf32"),
    # Sixteen gigabytes drawn from the seed. It is the last one, because it may take all the remaining time.
    ("nn_llama3_8b_32l_f16", {"batch": 1, "seq": 1}, 1, "float16"),
]


def events(command: list[str], seconds: float, cache: str | None = None) -> tuple[dict[str, dict], str | None]:
    """Returns the last event of each kind that rxrun printed, and the reason why it failed."""
    environment = dict(os.environ, **({"RX_CACHE": cache} if cache is not None else {}))
    command = [*command, "--max-seconds", str(MOST_SECONDS), "--format", "json"]
    try:
        run = subprocess.run(command, capture_output=True, timeout=seconds, env=environment)
    except OSError as problem:
        return {}, str(problem)
    except subprocess.TimeoutExpired as problem:
        told = last(problem.stdout or b"")
        if "run-failed" in told:
            return told, f"{told['run-failed']['message']}; and it did not end"
        return told, f"no end after {seconds:.0f} s; the last it told: {', '.join(told) or 'nothing'}"
    told = last(run.stdout)
    if run.returncode == 0:
        return told, None
    said = next((told[kind]["message"] for kind in ("run-failed", "bad-input", "usage") if kind in told), None)
    compared = told.get("compared", {}).get("text")
    return told, said or compared or run.stderr.decode(errors="replace").strip()[-400:] or f"exit status {run.returncode}"


def last(output: bytes) -> dict[str, dict]:
    """Returns the last event of each kind, in the order of each kind's first event. `kernel` has the events of all kernels
    in the field `all`."""
    told: dict[str, dict] = {}
    for line in output.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        kind = event.get("event", "diagnostic")
        if kind == "kernel":
            told.setdefault(kind, {"all": []})["all"].append(event)
        else:
            told[kind] = event
    return told


def measured(told: dict[str, dict]) -> dict:
    """Returns times and memory of a run, from its events."""
    ran, built = told.get("ran", {}), told.get("built", {})
    fields: dict = {"device": built.get("device"), "kernels": built.get("kernels"), "build_seconds": built.get("seconds")}
    # The first runs launch kernels and capture the graph while clocks rise; the others replay it.
    runs = ran.get("device_seconds", [])
    times = sorted(runs[len(runs) // 3 :])
    if times:
        fields["device_us"] = times[len(times) // 2] * 1e6
        fields["fastest_us"] = times[0] * 1e6
    host = sorted(ran.get("seconds", [])[len(runs) // 3 :])
    if host:
        fields["run_us"] = host[len(host) // 2] * 1e6
    fields["device_bytes"] = ran.get("device_bytes")
    if "kernel" in told:
        fields["kernel_us"] = {one["name"]: one["seconds"] * 1e6 for one in told["kernel"]["all"]}
    return fields


def kernels(rxrun: str, folder: pathlib.Path) -> Iterator[dict]:
    """Measures the rows of the kernel table. Each row's first compilation uses an empty cache, to measure the
    compiler."""
    for row, path in zip(ROWS, programs(folder)):
        command = [rxrun, str(path), "--isolated", "--device", "cuda", *exactness(row.dtype), *repeated_row(row)]
        told, error = events(command, SECONDS + row.elements / DRAWN_PER_SECOND, str(folder / "cache"))
        yield row.fields | {"ok": error is None, "error": error} | measured(told)


def models(rxrun: str, folder: pathlib.Path, where: pathlib.Path) -> Iterator[dict]:
    """Checks and measures the models. First prints their names, so that missing results are noticed after a timeout."""
    checked = [name for name in CHECKED if all((where / f"{name}.{ending}").exists() for ending in ("rx", "npz"))]
    whole = [one for one in WHOLE if (where / f"{one[0]}.rx").exists()]
    yield {"group": "plan", "of": "models", "cases": checked}
    yield {"group": "plan", "of": "speed", "cases": [f"{case_of(*one)} {one[3]}" for one in whole]}
    for name in checked:
        values = str(where / f"{name}.npz")
        command = [rxrun, str(where / f"{name}.rx"), "--isolated", "--inputs", values, "--check", values, "--device", "cuda"]
        told, error = events(command, SECONDS)
        line = {"group": "models", "case": name, "ok": error is None, "error": error}
        yield line | {"compared": told.get("compared", {}).get("text")} | measured(told)
    for name, dims, batch, dtype in whole:
        program = written(folder, where, name, batch, dtype)
        words = [word for dim, value in dims.items() for word in ("--dim", f"{dim}={value}")] + exactness(dtype)
        command = [rxrun, str(program), "--isolated", *words, "--device", "cuda", *repeated(REPEAT, CALLS_OF_MODEL)]
        cache = str(folder / "cache-models")
        # Many kernels are compiled, and a hundred million weights drawn; for one model, eight thousand million.
        seconds = 90 if name.endswith("_f16") else 2 * SECONDS
        cold, error = events([*command, "--profile"], seconds, cache)
        # Measure a build with a warm cache for one dtype; the others take equally long.
        is_timed = error is None and dtype == "float32"
        warm = events([*command, "--max-iterations", "1"], seconds, cache)[0] if is_timed else {}
        line = {"group": "speed", "case": case_of(name, dims, batch, dtype), "dtype": dtype, "ok": error is None, "error": error}
        yield line | measured(cold) | {"warm_build_seconds": warm.get("built", {}).get("seconds")}


def case_of(name: str, dims: dict[str, int], batch: int, _dtype: str) -> str:
    """Returns the name of a whole model in the report."""
    return " ".join([name, *([f"batch {batch}"] if batch > 1 else []), *(f"{dim}={value}" for dim, value in dims.items())])


def repeated(runs: int, calls: int) -> list[str]:
    """Returns the options for repeating a measurement."""
    return ["--repeat", str(runs), "--calls", str(calls)]


def repeated_row(row: Row) -> list[str]:
    """Returns the options for repeating a row; very short rows are repeated more often."""
    return repeated(REPEAT_SHORT if row.calls * row.floor_us < 1000 else REPEAT, row.calls)


def exactness(dtype: str) -> list[str]:
    """Returns the option that lets products round their factors."""
    return ["--tf32"] if dtype == "tf32" else []


def written(folder: pathlib.Path, where: pathlib.Path, name: str, batch: int, dtype: str) -> pathlib.Path | None:
    """Writes a model's program for a batch size and a dtype; returns None if the model does not exist."""
    program = where / f"{name}.rx"
    if not program.exists():
        return None
    path = folder / f"{name}-{batch}-{dtype}.rx"
    text = program.read_text(encoding="utf-8")
    path.write_text(text if name.endswith("_f16") else variant(text, batch, dtype), encoding="utf-8")
    return path


def programs(folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the programs of the rows."""
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
        folder = pathlib.Path(sys.argv[2])
        programs(folder)
        for name, _, batch, dtype in WHOLE if len(sys.argv) > 3 else []:
            written(folder, pathlib.Path(sys.argv[3]), name, batch, dtype)
        return 0
    rxrun, folder = sys.argv[2], pathlib.Path(sys.argv[3])
    lines = kernels(rxrun, folder) if what == "kernels" else models(rxrun, folder, pathlib.Path(sys.argv[4]))
    count = failed = 0
    for line in lines:
        # Flush each line, so that a process that is killed has printed its results.
        print(json.dumps(line), flush=True)
        if line["group"] != "plan":
            count += 1
            failed += not line["ok"]
    print(f"{what}: {count} in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
