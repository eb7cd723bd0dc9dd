"""The kernels of the GPU table: their programs, the bytes they move, the operations they compute, and their targets relative to the floor.

Each row is a Relax program of one operator, or of a few that are fused into one kernel. A row's floor is its least possible time on an
H200: the larger of the time to move its bytes (arguments and results once each) and the time to compute its operations. See
docs/gpu.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Memory bandwidth in bytes per second: of an H200, which the targets refer to, and of other devices by a word of their
# names (the figures of docs/gpu.md).
BANDWIDTH = 4.3e12
OTHERS = {"H100": 3.0e12}
PEAK = {"float32": 52e12, "tf32": 400e12, "bfloat16": 790e12, "float16": 790e12}
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8}

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A kernel of the table."""

    name: str
    # `tf32` means float32 whose products may round their factors (`rxrun --tf32`).
    dtype: str
    # Name and shape of each parameter, in order.
    params: dict[str, Shape]
    # The statements; the last one binds `out`.
    body: tuple[str, ...]
    result: Shape
    # The same computation as an expression of torch over the parameters' names.
    torch: str
    # The target: at most this many times the floor, or at least this fraction of the fastest peer's speed.
    of_floor: float | None = None
    of_peer: float | None = None
    operations: float = 0.0
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def element(self) -> str:
        """The dtype in memory."""
        return "float32" if self.dtype == "tf32" else self.dtype

    @property
    def bytes(self) -> int:
        """The size of arguments and result in bytes, each counted once."""
        size = BYTES[self.element]
        return sum(count(shape) for shape in (*self.params.values(), self.result)) * size

    @property
    def elements(self) -> int:
        """The number of elements of all arguments, which are drawn before the row runs."""
        return sum(count(shape) for shape in self.params.values())

    def floor_on(self, device: str | None) -> float:
        """The least possible time on a device, in microseconds; for an unknown device, that on an H200."""
        bandwidth = next((rate for word, rate in OTHERS.items() if word in (device or "")), BANDWIDTH)
        return max(self.bytes / bandwidth, self.operations / PEAK[self.dtype]) * 1e6

    @property
    def floor_us(self) -> float:
        """The least possible time on an H200, in microseconds."""
        return self.floor_on(None)

    @property
    def calls(self) -> int:
        """The number of calls between two synchronizations with the host: more for short calls, so that launch time
        is hidden."""
        return max(1, min(20, round(20e3 / self.floor_us)))

    @property
    def fields(self) -> dict:
        """Returns the fields of the row in a report, measured or not."""
        named = {"group": "table", "case": self.name, "dtype": self.dtype}
        bars = {"floor_us": self.floor_us, "of_floor": self.of_floor, "of_peer": self.of_peer}
        return named | {"bytes": self.bytes, "operations": self.operations} | bars

    @property
    def program(self) -> str:
        """Returns the row as Relax text."""
        params = ", ".join(f'{name}: R.Tensor({shown(shape)}, "{self.element}")' for name, shape in self.params.items())
        body = "\n".join(f"        {line}" for line in self.body)
        return (
            "from tvm.script import ir as I\nfrom tvm.script import relax as R\n\n"
            f'@I.ir_module\nclass Module:\n    @R.function\n    def main({params}) -> R.Tensor({shown(self.result)}, "{self.element}"):\n'
            f"{body}\n        return out\n"
        )


def count(shape: Shape) -> int:
    """Returns the number of elements of a tensor."""
    total = 1
    for extent in shape:
        total *= extent
    return total


def shown(shape: Shape) -> str:
    """Formats a shape as in Relax text."""
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def const(value: float, dtype: str) -> str:
    """Formats a scalar constant."""
    return f'R.const({value}, "{dtype}")'


def elementwise() -> list[Row]:
    """Rows of elementwise chains over one shape."""
    rows = []
    n = (64 << 20,)
    for dtype in ("float32", "bfloat16"):
        body = (
            f"a = R.add(R.multiply(x, {const(1.5, dtype)}), y)",
            f"out = R.add(R.multiply(R.nn.gelu(a), {const(0.5, dtype)}), x)",
        )
        rows.append(Row("gelu(1.5x+y)*0.5+x 64M", dtype, {"x": n, "y": n}, body, n, "F.gelu(1.5 * x + y) * 0.5 + x", 1.10))
    shape = (8192, 4096)
    body = ("out = R.nn.relu(R.add(x, b))",)
    rows.append(Row("bias+relu 8192x4096", "float32", {"x": shape, "b": (4096,)}, body, shape, "torch.relu(x + b)", 1.10))
    return rows


def norms() -> list[Row]:
    """Rows of normalizations, which read their input once."""
    rows = []
    shape, width = (8192, 4096), (4096,)
    for dtype in ("float32", "bfloat16"):
        rows.append(
            Row("softmax 8192x4096", dtype, {"x": shape}, ("out = R.nn.softmax(x, axis=-1)",), shape, "torch.softmax(x, -1)", 1.15)
        )
        rows.append(
            Row(
                "layernorm 8192x4096",
                dtype,
                {"x": shape, "g": width, "b": width},
                ("out = R.nn.layer_norm(x, g, b, axes=[-1], epsilon=1e-5)",),
                shape,
                "F.layer_norm(x, (4096,), g, b, 1e-5)",
                1.15,
            )
        )
        rows.append(
            Row(
                "rmsnorm 8192x4096",
                dtype,
                {"x": shape, "g": width},
                ("out = R.nn.rms_norm(x, g, axes=[-1], epsilon=1e-5)",),
                shape,
                "F.rms_norm(x, (4096,), g, 1e-5)",
                1.15,
            )
        )
    wide = (4096, 32000)
    rows.append(
        Row("softmax 4096x32000", "float32", {"x": wide}, ("out = R.nn.softmax(x, axis=-1)",), wide, "torch.softmax(x, -1)", 1.25)
    )
    return rows


def reductions() -> list[Row]:
    """Rows of reductions, and a transpose."""
    square = (8192, 8192)
    return [
        Row("sum of 64M", "float32", {"x": (64 << 20,)}, ("out = R.sum(x)",), (), "x.sum()", 1.10),
        Row("sum over columns 8192x4096", "float32", {"x": (8192, 4096)}, ("out = R.sum(x, axis=[0])",), (4096,), "x.sum(0)", 1.30),
        Row("transpose 8192x8192", "float32", {"x": square}, ("out = R.permute_dims(x)",), square, "x.t().contiguous()", 1.25),
    ]


def products() -> list[Row]:
    """Rows of products: matrix by matrix and matrix by vector."""
    rows = []
    parts = {
        "bfloat16": {512: 0.30, 1024: 0.45, 2048: 0.55, 4096: 0.65, 8192: 0.70},
        "tf32": {512: 0.30, 1024: 0.45, 2048: 0.55, 4096: 0.60, 8192: 0.65},
        "float32": {512: 0.35, 1024: 0.60, 2048: 0.75, 4096: 0.85, 8192: 0.85},
    }
    for dtype, sizes in parts.items():
        for n, part in sizes.items():
            params = {"x": (n, n), "w": (n, n)}
            rows.append(
                Row(f"GEMM {n}", dtype, params, ("out = R.matmul(x, w)",), (n, n), "x @ w", of_peer=part, operations=2.0 * n**3)
            )
        params = {"x": (197, 768), "w": (768, 3072)}
        operations = 2.0 * 197 * 768 * 3072
        rows.append(
            Row("GEMM 197x3072x768", dtype, params, ("out = R.matmul(x, w)",), (197, 3072), "x @ w", of_peer=0.60, operations=operations)
        )
    for inner, outer, dtype in (
        (4096, 4096, "bfloat16"),
        (4096, 14336, "bfloat16"),
        (4096, 14336, "float32"),
        (4096, 128256, "bfloat16"),
    ):
        params = {"x": (1, inner), "w": (outer, inner)}
        body = ("out = R.matmul(x, R.permute_dims(w))",)
        operations = 2.0 * inner * outer
        rows.append(
            Row(f"GEMV {inner}->{outer}", dtype, params, body, (1, outer), "F.linear(x, w)", 1.20, operations=operations)
        )
    return rows


def convolutions() -> list[Row]:
    """Rows of plain and transposed convolutions."""
    rows = []
    # batch, channels, filters, side, kernel, stride, padding
    sizes = [
        ("conv3x3 n1 64->64 56", 1, 64, 64, 56, 3, 1, 1, ("float32",)),
        ("conv3x3 n32 64->64 56", 32, 64, 64, 56, 3, 1, 1, ("float32", "tf32", "bfloat16")),
        ("conv3x3 n32 256->256 14", 32, 256, 256, 14, 3, 1, 1, ("float32", "bfloat16")),
        ("conv1x1 n1 768->256 64", 1, 768, 256, 64, 1, 1, 0, ("float32", "tf32", "bfloat16")),
        ("stem7x7 n32 3->64 224 s2", 32, 3, 64, 224, 7, 2, 3, ("float32",)),
    ]
    for name, n, c, k, side, size, stride, pad, dtypes in sizes:
        to = (side + 2 * pad - size) // stride + 1
        for dtype in dtypes:
            params = {"x": (n, c, side, side), "w": (k, c, size, size)}
            body = (f"out = R.nn.conv2d(x, w, strides=[{stride}, {stride}], padding=[{pad}, {pad}, {pad}, {pad}])",)
            operations = 2.0 * n * k * to * to * c * size * size
            peer = f"F.conv2d(x, w, stride={stride}, padding={pad})"
            part = 0.60 if dtype == "float32" else 0.45
            rows.append(Row(name, dtype, params, body, (n, k, to, to), peer, of_peer=part, operations=operations))
    params = {"x": (32, 256, 16, 16), "w": (256, 128, 4, 4)}
    body = ("out = R.nn.conv2d_transpose(x, w, strides=[2, 2], padding=[1, 1, 1, 1])",)
    operations = 2.0 * 32 * 128 * 32 * 32 * 256 * 4
    for dtype, part in (("float32", 0.60), ("bfloat16", 0.45)):
        rows.append(
            Row(
                "conv_transpose n32 256->128 16 k4s2",
                dtype,
                params,
                body,
                (32, 128, 32, 32),
                "F.conv_transpose2d(x, w, stride=2, padding=1)",
                of_peer=part,
                operations=operations,
            )
        )
    return rows


def windows() -> list[Row]:
    """Rows of depthwise and narrow convolutions and poolings, whose floor is the memory time."""
    rows = []
    # channels, groups, filters, side, kernel, stride
    sizes = [
        ("depthwise 3x3 n32 c144 56", 144, 144, 144, 56, 3, 1),
        ("depthwise 3x3 n32 c144 56 s2", 144, 144, 144, 56, 3, 2),
        ("depthwise 7x7 n32 c96 56", 96, 96, 96, 56, 7, 1),
        ("groups of 4 3x3 n32 c128 56", 128, 32, 128, 56, 3, 1),
    ]
    for name, c, groups, k, side, size, stride in sizes:
        pad = size // 2
        to = (side + 2 * pad - size) // stride + 1
        for dtype in ("float32", "bfloat16"):
            params = {"x": (32, c, side, side), "w": (k, c // groups, size, size)}
            at = f"strides=[{stride}, {stride}], padding=[{pad}, {pad}, {pad}, {pad}]"
            body = (f"out = R.nn.conv2d(x, w, {at}, groups={groups})",)
            operations = 2.0 * 32 * k * to * to * (c // groups) * size * size
            # Not on tensor cores.
            peak = operations * PEAK[dtype] / PEAK["float32"]
            peer = f"F.conv2d(x, w, stride={stride}, padding={pad}, groups={groups})"
            rows.append(Row(name, dtype, params, body, (32, k, to, to), peer, of_peer=1.0, operations=peak))
    for dtype in ("float32", "bfloat16"):
        params, result = {"x": (32, 64, 112, 112)}, (32, 64, 56, 56)
        body = ("out = R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])",)
        rows.append(Row("max_pool 3x3 s2 n32 c64 112", dtype, params, body, result, "F.max_pool2d(x, 3, 2, 1)", 1.3))
        body = ("out = R.nn.avg_pool2d(x, pool_size=[2, 2], strides=[2, 2])",)
        rows.append(Row("avg_pool 2x2 s2 n32 c64 112", dtype, params, body, result, "F.avg_pool2d(x, 2, 2)", 1.3))
    return rows


def attention() -> list[Row]:
    """Rows of attention: prefill and decode. In torch the heads axis precedes the sequence axis."""
    rows = []
    for name, b, s, h, d, dtype, causal, part in (
        ("attention prefill B1 S4096 H32 d128 causal", 1, 4096, 32, 128, "bfloat16", True, 0.45),
        ("attention prefill B4 S2048 H32 d128", 4, 2048, 32, 128, "bfloat16", False, 0.45),
        ("attention prefill B1 S16384 H16 d128", 1, 16384, 16, 128, "bfloat16", False, 0.45),
        ("attention ViT B1 S197 H12 d64", 1, 197, 12, 64, "float32", False, 1.0),
    ):
        shape = (b, s, h, d)
        mask = ', causal_mask="TopLeft"' if causal else ""
        body = (f"out = R.nn.attention(q, k, v{mask})",)
        turned = ", ".join(f"{name}.transpose(1, 2)" for name in "qkv")
        peer = f"F.scaled_dot_product_attention({turned}, is_causal={causal}).transpose(1, 2)"
        operations = 4.0 * b * h * s * s * d * (0.5 if causal else 1.0)
        params = {"q": shape, "k": shape, "v": shape}
        rows.append(Row(name, dtype, params, body, shape, peer, of_peer=part, operations=operations))
    # Four query heads share one head of keys and values.
    b, kv, group, s, d = 32, 8, 4, 4096, 128
    params = {"q": (b, kv, group, d), "k": (b, kv, s, d), "v": (b, kv, s, d)}
    body = (
        "a = R.matmul(q, R.permute_dims(k, axes=[0, 1, 3, 2]))",
        f"p = R.nn.softmax(R.multiply(a, {const(d ** -0.5, 'bfloat16')}), axis=-1)",
        "out = R.matmul(p, v)",
    )
    operations = 4.0 * b * kv * group * s * d
    peer = "F.scaled_dot_product_attention(q, k, v)"
    rows.append(
        Row("attention decode B32 H32 KV8 S4096 d128", "bfloat16", params, body, (b, kv, group, d), peer, 1.40, operations=operations)
    )
    return rows


# In the order of measurement, the most important first: when time runs out, the last ones are missing.
ROWS = attention() + products() + convolutions() + norms() + elementwise() + reductions() + windows()
