"""Measures the rows of the kernel table and whole models in PyTorch: eager, as a CUDA graph, compiled, and compiled as a CUDA graph.
Writes a line of JSON for each.

usage: peers.py [SECONDS [SECONDS]]      time limits for the rows and for the models; skipped ones are reported.

A row or model has two lines: eager times and compiled ones. The compiled ones are measured after all eager ones, and only for rows
whose target is PyTorch's time.

Needs torch with a CUDA device; without one it prints a message and exits with 2. The models' modules are those of
tests/bench/networks.py, which need torchvision and transformers; if one cannot be created, the reason is reported.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Iterator

from table_rows import ROWS, Row

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("no torch", file=sys.stderr)
    sys.exit(2)

REPEAT = 30

# Calls of a model in one graph, as many as rxrun makes between two synchronizations.
CALLS_OF_MODEL = 4


def microseconds(work) -> float:
    """Returns the median of the device times of `work`, measured by events around each call."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(REPEAT)]
    for before, after in pairs:
        before.record()
        work()
        after.record()
    torch.cuda.synchronize()
    return statistics.median(before.elapsed_time(after) for before, after in pairs) * 1e3


def in_a_graph(work, calls: int) -> float:
    """Returns the time of one of several calls of `work` captured in one graph: as many as rxrun makes between two
    synchronizations."""
    return microseconds(as_graph(work, calls)) / calls


def as_graph(work, calls: int):
    """Captures several calls of `work`; returns a function that replays them."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            work()
    return graph.replay


def measure(row: Row, is_compiled: bool) -> dict:
    """Measures a row."""
    dtype = getattr(torch, row.element)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = row.dtype == "tf32"
    values = [torch.randn(shape, device="cuda", dtype=dtype) for shape in row.params.values()]
    # Safe to evaluate: the text is part of this repository.
    function = eval(f"lambda {', '.join(row.params)}: {row.torch}", {"torch": torch, "F": F})
    if is_compiled:
        torch._dynamo.reset()
        function = torch.compile(function, dynamic=False)
    name = "compiled" if is_compiled else "eager"
    with torch.no_grad():
        fields = {f"{name}_us": microseconds(lambda: function(*values))}
        fields[f"{name}_graph_us"] = in_a_graph(lambda: function(*values), row.calls)
    return fields


def rows(seconds: float) -> Iterator[dict]:
    """Measures the rows, eager times first."""
    end = time.monotonic() + seconds
    for is_compiled in (False, True):
        for row in ROWS:
            if is_compiled and row.of_peer is None:
                continue
            line = {"group": "peers", "case": row.name, "dtype": row.dtype, "torch": torch.__version__}
            if time.monotonic() > end:
                yield line | {"left_out": "time"}
                continue
            try:
                yield line | measure(row, is_compiled)
            except Exception as problem:
                yield line | {"error": f"{type(problem).__name__}: {problem}"[:200]}
            torch.cuda.empty_cache()


def models(seconds: float) -> Iterator[dict]:
    """Measures whole models at batch 1, in three dtypes."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bench"))
    end = time.monotonic() + seconds
    names, dtypes = ("resnet50", "vit_b_16", "bert_base", "gpt2_dyn"), ("float32", "bfloat16", "tf32")
    for is_compiled, dtype, name in itertools.product((False, True), dtypes, names):
        line = {"group": "peers", "case": "gpt2" if name == "gpt2_dyn" else name, "dtype": dtype, "torch": torch.__version__}
        if time.monotonic() > end:
            yield line | {"left_out": "time"}
            continue
        try:
            yield line | measure_model(name, dtype, is_compiled)
        except Exception as problem:
            yield line | {"error": f"{type(problem).__name__}: {problem}"[:200]}
        torch.cuda.empty_cache()


def measure_model(name: str, dtype: str, is_compiled: bool) -> dict:
    """Measures a model in microseconds: eager times, or the compiled one."""
    from networks import MODELS

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype == "tf32"
    module, inputs = MODELS[name]()
    element = torch.bfloat16 if dtype == "bfloat16" else torch.float32
    module = module.eval().to("cuda", element)
    inputs = [value[:1].cuda().to(element) if value.is_floating_point() else value[:1].cuda() for value in inputs]
    with torch.no_grad():
        if is_compiled:
            torch._dynamo.reset()
            compiled = torch.compile(module, dynamic=False)
            return {"compiled_graph_us": in_a_graph(lambda: compiled(*inputs), CALLS_OF_MODEL)}
        fields = {"eager_us": microseconds(lambda: module(*inputs))}
        fields["eager_graph_us"] = in_a_graph(lambda: module(*inputs), CALLS_OF_MODEL)
    return fields


def main() -> int:
    if not torch.cuda.is_available():
        print("no CUDA device for torch", file=sys.stderr)
        return 2
    torch.backends.cudnn.benchmark = True
    of_rows = float(sys.argv[1] if len(sys.argv) > 1 else 150)
    of_models = float(sys.argv[2] if len(sys.argv) > 2 else 120)
    for line in itertools.chain(rows(of_rows), models(of_models)):
        # Flush each line, so that a process that is killed has printed its results.
        print(json.dumps(line), flush=True)
    return 0


sys.exit(main())
