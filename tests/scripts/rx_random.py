"""The inputs that `rxrun --seed` draws, in NumPy: the same bits.

The formula is in `compiler/tensor/src/random.rs`. Run as a program, it prints the values that the Rust tests compare.
"""

import numpy as np

STEP = np.uint64(0x9E3779B97F4A7C15)


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def bits(count, seed, parameter):
    """Returns one 64-bit number per element of parameter number `parameter`, from 0."""
    with np.errstate(over="ignore"):
        key = mix(np.uint64(seed) + STEP * np.uint64(parameter + 1))
        return mix(key + STEP * np.arange(1, count + 1, dtype=np.uint64))


def draw(seed, parameter, dtype, shape, limit=None):
    """Returns the array of parameter number `parameter`. Integers are less than `limit`; without a limit they are 0
    or 1."""
    shape, dtype = tuple(shape), np.dtype(dtype)
    v = bits(int(np.prod(shape, dtype=np.int64)), seed, parameter)
    if dtype.kind == "f":
        u = (v >> np.uint64(41)).astype(np.float32) / np.float32(2**23)
        if len(shape) >= 2:
            fan_in = max(float(np.prod([float(n) for n in shape[1:]])), 1.0)
            values = (np.float32(2) * u - np.float32(1)) * np.float32(np.sqrt(3.0 / fan_in))
        else:
            values = u + np.float32(0.5)
    elif dtype.kind == "b" or limit is None:
        values = v >> np.uint64(63)
    else:
        values = v % np.uint64(max(min(int(limit), int(np.iinfo(dtype).max) + 1), 1))
    return values.astype(dtype).reshape(shape)


if __name__ == "__main__":
    print([hex(x) for x in draw(0, 0, "float32", (2, 3, 5)).ravel()[:4].view(np.uint32)])
    print([hex(x) for x in draw(42, 5, "float32", (6,))[:4].view(np.uint32)])
    print([hex(x) for x in draw(1, 2, "float16", (3, 7)).ravel()[:4].view(np.uint16)])
    print(draw(7, 3, "int64", (8,), 1000).tolist())
    print(draw(2**64 - 1, 0, "int32", (8,)).tolist())
