"""Runs rxrun on a device over the rows of the kernel table and the models, and writes what came of each as a line of JSON.

usage: measure.py kernels RXRUN FOLDER            the rows of kernels.py
       measure.py models  RXRUN FOLDER MODELS     models beside their recorded results, and whole models at batch 1 and 32
       measure.py programs FOLDER [MODELS]        writes the rows' programs, and the models', and runs nothing

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
from variants import variant

REPEAT = 30

# Programs with recorded inputs and results beside them.
CHECKED = "s_resnet s_resnet_dyn s_mobilenet_v2 s_unet s_dcgan s_bert s_vit s_gpt2_dyn s_llama_dyn s_lstm onnx_s_resnet".split()

# Whole models, their values drawn from the seed: name, dims of programs that leave some open, batch and dtype. Transformers whose batch is
# 1 in their text stay at it: their reshapes do not say which 1 is the batch.
WHOLE = [
    *((name, {}, 1, dtype) for name in ("resnet50", "vit_b_16", "bert_base", "gpt2") for dtype in ("float32", "tf32", "bfloat16")),
    *(("resnet50", {}, 32, dtype) for dtype in ("float32", "tf32", "bfloat16")),
    ("resnet18", {}, 1, "float32"),
    ("mobilenet_v2", {}, 1, "float32"),
    ("mobilenet_v2", {}, 32, "bfloat16"),
    ("densenet121", {}, 1, "float32"),
    ("resnet18_dynbatch", {"s77": 1}, 1, "float32"),
    ("resnet18_dynbatch", {"s77": 32}, 1, "float32"),
    ("gpt2_dyn", {"s95": 32, "s75": 64}, 1, "bfloat16"),
    # Sixteen gigabytes drawn from the seed: the last, since it may take all the time that is left.
    ("nn_llama3_8b_32l_f16", {"batch": 1, "seq": 1}, 1, "float16"),
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
        told, error = events([*command, *exactness(row.dtype)], 60, str(folder / "cache"))
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
    for name, dims, batch, dtype in WHOLE:
        program = written(folder, where, name, batch, dtype)
        if program is None:
            continue
        words = [word for dim, value in dims.items() for word in ("--dim", f"{dim}={value}")] + exactness(dtype)
        command = [rxrun, str(program), "--isolated", *words, "--device", "cuda", "--repeat", str(REPEAT), "--format", "json"]
        cache = str(folder / "cache-models")
        cold, error = events(command, 90, cache)
        warm = events([*command, "--max-rounds", "1"], 90, cache)[0] if error is None else {}
        case = " ".join([name, *([f"batch {batch}"] if batch > 1 else []), *(f"{dim}={value}" for dim, value in dims.items())])
        line = {"group": "speed", "case": case, "dtype": dtype, "ok": error is None, "error": error} | measured(cold)
        yield line | {"warm_build_seconds": warm.get("built", {}).get("seconds")}


def exactness(dtype: str) -> list[str]:
    """The option that lets products round their factors."""
    return ["--tf32"] if dtype == "tf32" else []


def written(folder: pathlib.Path, where: pathlib.Path, name: str, batch: int, dtype: str) -> pathlib.Path | None:
    """A model's program at a batch and in a dtype; none where the model is not there."""
    program = where / f"{name}.rx"
    if not program.exists():
        return None
    path = folder / f"{name}-{batch}-{dtype}.rx"
    text = program.read_text(encoding="utf-8")
    path.write_text(text if name.endswith("_f16") else variant(text, batch, dtype), encoding="utf-8")
    return path


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
        folder = pathlib.Path(sys.argv[2])
        programs(folder)
        for name, _, batch, dtype in WHOLE if len(sys.argv) > 3 else []:
            written(folder, pathlib.Path(sys.argv[3]), name, batch, dtype)
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
