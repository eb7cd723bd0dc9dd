"""Compares two builds of rxrun on models. Each runs whole processes, alternately, which build and run the model on the CPU.

    python tests/bench/models.py OLD NEW FOLDER [--runs 7] [--device cpu]

Prints for each model the ratios new / old of CPU time (user and system) and of wall time, as medians over pairs, and at the end
their geometric means. Dims without a value are set to 16; a model that OLD still cannot run is skipped.
"""

import argparse
import math
import os
import pathlib
import re
import statistics
import subprocess
import time


def run(command):
    """Returns CPU and wall time of a command in seconds; None if it fails."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime, wall) if child.returncode == 0 else None


def dims(command):
    """Returns the options for the dims whose values a run asks for."""
    said = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    return [word for name in dict.fromkeys(re.findall(r"--dim (\w+)=…", said)) for word in ("--dim", f"{name}=16")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    means = []
    for model in sorted(options.folder.glob("*.rx")):
        arguments = [str(model), "--device", options.device]
        arguments += dims([options.old, *arguments])
        if run([options.old, *arguments]) is None:
            print(f"{model.stem:28} left out")
            continue
        pairs = [(run([options.new, *arguments]), run([options.old, *arguments])) for _ in range(options.runs)]
        if any(new is None for new, _ in pairs):
            print(f"{model.stem:28} FAILS in the new build")
            continue
        cpu, wall = (statistics.median(new[at] / old[at] for new, old in pairs) for at in (0, 1))
        seconds = statistics.median(old[1] for _, old in pairs)
        means.append((cpu, wall))
        print(f"{model.stem:28} cpu {cpu:.3f}  wall {wall:.3f}  ({seconds:.2f} s)", flush=True)
    for at, what in enumerate(("cpu", "wall")):
        print(f"{what}: {math.exp(statistics.mean(math.log(mean[at]) for mean in means)):.3f} (geometric mean of {len(means)})")


if __name__ == "__main__":
    main()
