"""Compares rx with onnxruntime and PyTorch on models, on one core, in one run.

    python tests/bench/peers.py --rxrun target/release/rxrun --models FOLDER [--runs 5] [--only resnet18,vit_b_16]

FOLDER contains `NAME.rx` of the networks below. torchvision, transformers and networks.py build the same networks with weights drawn
from a seed; all three programs get the same weights, matched by name. Times are CPU time of the process per inference, as medians
over runs in which the three alternate, so that other load on the machine affects all alike. rxrun's time is the difference between
a process that runs R times and one that runs once. Results of rx and PyTorch are compared. Prints a row per model, the geometric
mean of rx/onnxruntime, and each model's three longest kernels next to the machine's measured peaks (a product of 2048² matrices in
PyTorch, a copy of 256 MB).

Needs torch, torchvision, transformers, onnx, onnxscript, onnxruntime and numpy from PyPI (tried: torch 2.15, onnxruntime 1.32).
Exit status: 1 if a result differs, the geometric mean exceeds --bar or a model exceeds --worst; otherwise 0.
"""

import argparse
import json
import math
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import onnxruntime
import torch
from networks import MODELS, first


def settle(model):
    """Scales weights and statistics so that values stay in a range, as in trained networks."""
    for name, value in model.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 1.5)
        elif name.endswith("running_mean"):
            value.uniform_(-0.1, 0.1)
    return model.eval()


def parameters(text):
    """Returns the names and shapes of `main`'s parameters, in order."""
    header = re.search(r"def main\((.*?)\) ->", text, re.DOTALL).group(1)
    found = re.findall(r"(\w+): R\.Tensor\(\(([^)]*)\)", header)
    return [(name, [part.strip() for part in dims.split(",") if part.strip()]) for name, dims in found]


def arguments(text, model, inputs):
    """Returns rx's arguments by name; None if a weight's name or shape shows that the network is a different one."""
    # Includes buffers that weight files do not contain.
    all_named = {**dict(model.named_buffers()), **model.state_dict()}
    named = {re.sub(r"\W", "_", name.lower()): value for name, value in all_named.items()}
    arrays, rest = {}, list(inputs)
    for name, dims in parameters(text):
        own = re.sub(r"^[pbc]_", "", name)
        if rest:
            arrays[name] = rest.pop(0).numpy()
        elif own in named and [str(extent) for extent in named[own].shape] == dims:
            arrays[name] = named[own].detach().numpy()
        else:
            print(f"  no weight {dims} for `{name}`: rx gets weights from its seed, and results are not compared")
            return None
    return arrays


def cpu_of(command):
    """Returns the output of a process and its CPU time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return events, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(work, repeat):
    """Returns the CPU time per call in seconds."""
    start = time.process_time()
    for _ in range(repeat):
        work()
    return (time.process_time() - start) / repeat


def peaks():
    """Measures the machine on one thread: GFLOP/s of a large product, GB/s of a copy."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    product = min(timed(lambda: a @ b, 1) for _ in range(5))
    source = numpy.ones(64 << 20, numpy.float32)
    target = numpy.empty_like(source)
    copy = min(timed(lambda: numpy.copyto(target, source), 1) for _ in range(5))
    return 2 * 2048**3 / product / 1e9, 2 * source.nbytes / copy / 1e9


def measure(name, options, folder):
    """Measures one model; returns its row of figures."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    settle(model)
    path = options.models / f"{name}.rx"
    text = path.read_text()
    with torch.no_grad():
        expected = first(model(*inputs)).numpy()
        onnx = folder / f"{name}.onnx"
        torch.onnx.export(model, tuple(inputs), str(onnx), dynamo=True, verbose=False)
        arrays = arguments(text, model, inputs)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = options.threads
        session = onnxruntime.InferenceSession(str(onnx), settings, providers=["CPUExecutionProvider"])
        feed = {given.name: value.numpy() for given, value in zip(session.get_inputs(), inputs)}
        command = [str(options.rxrun), str(path), "--device", "cpu", "--format", "json"]
        if arrays is not None:
            numpy.savez(folder / "in.npz", **arrays)
            command += ["--inputs", str(folder / "in.npz")]
        repeat = max(3, min(200, int(0.5 / max(timed(lambda: session.run(None, feed), 2), 1e-5))))
        figures = {"onnxruntime": [], "torch": []}
        once, many = [], []
        for _ in range(options.runs):
            once.append(cpu_of(command)[1])
            events, seconds = cpu_of([*command, "--repeat", str(1 + repeat)])
            many.append(seconds)
            figures["onnxruntime"].append(timed(lambda: session.run(None, feed), repeat))
            figures["torch"].append(timed(lambda: model(*inputs), repeat))
    built = next(event["seconds"] for event in events if event.get("event") == "built")
    difference = None
    if arrays is not None:
        cpu_of([*command, "--output", str(folder / "out.npz")])
        result = numpy.load(folder / "out.npz")["out0"].reshape(expected.shape)
        difference = float(numpy.max(numpy.abs(result - expected) / (1e-4 + 1e-4 * numpy.abs(expected))))
    kernels = [event for event in cpu_of([*command, "--profile"])[0] if event.get("event") == "kernel"]
    times = {key: statistics.median(values) for key, values in figures.items()}
    # Reading weights takes longer than many runs and varies, so subtract two medians.
    times["rx"] = (statistics.median(many) - statistics.median(once)) / repeat
    return times, built, difference, kernels[:3]


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--rxrun", type=Path, required=True)
    reader.add_argument("--models", type=Path, required=True)
    reader.add_argument("--runs", type=int, default=5)
    reader.add_argument("--only", type=lambda text: text.split(","), default=list(MODELS))
    reader.add_argument("--threads", type=int, default=1, help="of onnxruntime and PyTorch; rxrun uses one")
    reader.add_argument("--bar", type=float, default=2.0)
    reader.add_argument("--worst", type=float, default=6.0)
    options = reader.parse_args()
    torch.set_num_threads(options.threads)
    flops, bandwidth = peaks()
    print(f"peak of one thread: {flops:.0f} GFLOP/s, {bandwidth:.1f} GB/s")
    print(f"{'model':<18}{'rx ms':>9}{'ort ms':>9}{'torch ms':>10}{'rx/ort':>8}{'build s':>9}{'error':>8}")
    ratios, wrong, unmeasured = {}, [], []
    for name in options.only:
        if not (options.models / f"{name}.rx").exists():
            print(f"{name:<18} skipped: no {options.models / (name + '.rx')}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            times, built, difference, kernels = measure(name, options, Path(folder))
        if difference is not None and not difference <= 1:
            wrong.append(name)
        # The times are differences of CPU times. On a busy machine a single round may give zero or less.
        if min(times["rx"], times["onnxruntime"]) <= 0:
            unmeasured.append(name)
            print(f"{name:<18} not measured: its CPU time came out at or below 0; take more --runs", flush=True)
            continue
        ratios[name] = times["rx"] / times["onnxruntime"]
        shown = "" if difference is None else f"{difference:.2f}"
        row = "".join(f"{times[key] * 1e3:>{width}.2f}" for key, width in [("rx", 9), ("onnxruntime", 9), ("torch", 10)])
        print(f"{name:<18}{row}{ratios[name]:>8.2f}{built:>9.2f}{shown:>8}", flush=True)
        for kernel in kernels:
            seconds, work, moved = kernel["seconds"], kernel["operations"], kernel["bytes"]
            rate = f"{work / seconds / 1e9:.1f} GFLOP/s ({100 * work / seconds / 1e9 / flops:.0f} % of the peak), " if work else ""
            print(f"    {kernel['name']}: {seconds * 1e3:.2f} ms, {rate}{moved / seconds / 1e9:.1f} GB/s")
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
        worst = max(ratios, key=ratios.get)
        print(f"geometric mean of rx/onnxruntime {mean:.2f} (bar {options.bar}), worst {worst} {ratios[worst]:.2f} (bar {options.worst})")
        if wrong:
            print(f"results differ: {', '.join(wrong)}")
        return int(bool(wrong or unmeasured) or mean > options.bar or ratios[worst] > options.worst)
    return int(bool(wrong or unmeasured))


if __name__ == "__main__":
    sys.exit(main())
