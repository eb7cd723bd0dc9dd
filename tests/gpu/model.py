"""Runs one model on the device by rxrun, compares with the results beside its inputs, and prints a line of JSON.

usage: model.py RXRUN PROGRAM VALUES OUTPUT     VALUES holds inputs by name and wanted outputs as out0, out1, …
"""

import json
import subprocess
import sys
import time

import numpy


def compare(wanted_path: str, output_path: str) -> tuple[bool, float, str | None]:
    """Whether outputs are within 1e-4 + 1e-4·|wanted|, the largest distance, and what is wrong."""
    wanted, output = numpy.load(wanted_path), numpy.load(output_path)
    names = sorted(name for name in wanted.files if name.startswith("out") and name[3:].isdigit())
    if not names:
        return False, 0.0, "the file of values holds no outputs"
    largest = 0.0
    for name in names:
        if name not in output.files or output[name].shape != wanted[name].shape:
            return False, largest, f"{name} is missing or of another shape"
        a, b = output[name].astype(numpy.float64), wanted[name].astype(numpy.float64)
        largest = max(largest, float(numpy.max(numpy.abs(a - b), initial=0.0)))
        if not numpy.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True):
            return False, largest, f"{name} differs"
    return True, largest, None


def main() -> int:
    rxrun, program, values, output = sys.argv[1:5]
    command = [rxrun, program, "--inputs", values, "--device", "cuda", "--output", output]
    begin = time.monotonic()
    error, ok, largest = None, False, 0.0
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if run.returncode == 0:
            ok, largest, error = compare(values, output)
        else:
            error = run.stderr.strip()[-400:]
    except (OSError, subprocess.TimeoutExpired) as problem:
        error = str(problem)
    line = {"group": "models", "case": program.rsplit("/", 1)[-1], "ok": ok, "error": error}
    line |= {"seconds": round(time.monotonic() - begin, 3), "largest_difference": largest}
    print(json.dumps(line))
    return 0 if ok else 1


sys.exit(main())
