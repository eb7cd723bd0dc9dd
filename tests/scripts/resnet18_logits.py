#!/usr/bin/env python3
"""Computes the logits of examples/resnet18.rx for seed 0 with PyTorch: writes examples/resnet18.npz.

    resnet18_logits.py RXCHECK

Reads the parameters of `main` from `RXCHECK --types`, draws them as `rxrun --seed 0` does (`rx_random.py`), computes
ResNet-18 in float64 and in float32, and prints their difference. The file's one array is `out0`, the float64 logits
rounded to float32. Needs numpy and torch; the committed file is from torch 2.15.0 (CPU) and numpy 2.4.6.
"""

import argparse
import json
import pathlib
import re
import subprocess

import numpy as np
import torch
import torch.nn.functional as F

import rx_random

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
SEED = 0


def parameters(rxcheck, path):
    """Returns name, dtype and shape of each parameter of `main`, in order."""
    done = subprocess.run([rxcheck, "--types", "--format", "json", path], capture_output=True, text=True, check=True)
    for entry in map(json.loads, done.stdout.splitlines()):
        if (entry["function"], entry["kind"]) == ("main", "param"):
            shape, dtype = re.fullmatch(r'R\.Tensor\(\(([\d, ]*)\), dtype="(\w+)"\)', entry["struct_info"]).groups()
            yield entry["name"], dtype, tuple(int(extent) for extent in shape.split(",") if extent.strip())


def resnet18(x, weights):
    """Computes ResNet-18 on the image `x`, as torchvision.models.resnet18 does in evaluation mode."""

    def conv(x, name, **options):
        return F.conv2d(x, weights[f"{name}_weight"], **options)

    def norm(x, name):
        weight, bias, mean, var = (weights[f"{name}_{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
        return F.batch_norm(x, mean, var, weight, bias, training=False, eps=1e-5)

    x = F.relu(norm(conv(x, "conv1", stride=2, padding=3), "bn1"))
    x = F.max_pool2d(x, 3, stride=2, padding=1)
    for stage in (1, 2, 3, 4):
        for block in (0, 1):
            name = f"layer{stage}_{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            y = F.relu(norm(conv(x, f"{name}_conv1", stride=stride, padding=1), f"{name}_bn1"))
            y = norm(conv(y, f"{name}_conv2", padding=1), f"{name}_bn2")
            if stride > 1:
                x = norm(conv(x, f"{name}_downsample_0", stride=stride), f"{name}_downsample_1")
            x = F.relu(y + x)
    return F.linear(x.mean(dim=(2, 3)), weights["fc_weight"], weights["fc_bias"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxcheck", help="the binary")
    args = parser.parse_args()

    found = parameters(args.rxcheck, EXAMPLES / "resnet18.rx")
    drawn = {name: torch.from_numpy(rx_random.draw(SEED, at, dtype, shape)) for at, (name, dtype, shape) in enumerate(found)}
    logits = {}
    for dtype in (torch.float64, torch.float32):
        arrays = {name: array.to(dtype) for name, array in drawn.items()}
        with torch.no_grad():
            logits[dtype] = resnet18(arrays["x"], arrays).numpy()
    exact = logits[torch.float64]
    print(f"torch {torch.__version__}, numpy {np.__version__}, {len(drawn)} parameters")
    print(f"logits from {exact.min():.4f} to {exact.max():.4f}, mean {exact.mean():.4f}, deviation {exact.std():.4f}")
    print(f"float32 differs from float64 by at most {np.abs(logits[torch.float32] - exact).max():.3g}")
    np.savez(EXAMPLES / "resnet18.npz", out0=exact.astype(np.float32))


if __name__ == "__main__":
    main()
