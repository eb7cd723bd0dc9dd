"""Small networks for conformance_modules.py: modules of `tvm.relax.frontend.nn`, and random graphs as text that every TVM reads."""

import random

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec


class Mlp(nn.Module):
    """Linear layers with a gate, as in LLaMA."""

    def __init__(self, hidden, inner, bias, dtype):
        self.gate = nn.Linear(hidden, inner, bias=bias, dtype=dtype)
        self.up = nn.Linear(hidden, inner, bias=bias, dtype=dtype)
        self.down = nn.Linear(inner, hidden, bias=bias, dtype=dtype)
        self.norm = nn.RMSNorm(hidden, axes=-1, bias=False, dtype=dtype)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(op.silu(self.gate(y)) * self.up(y))


class Attention(nn.Module):
    """Causal self-attention, written with basic operators."""

    def __init__(self, hidden, heads, dtype):
        self.heads, self.size = heads, hidden // heads
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False, dtype=dtype)
        self.out = nn.Linear(hidden, hidden, bias=False, dtype=dtype)

    def forward(self, x, mask):
        batch, length, hidden = x.shape
        q, k, v = op.split(self.qkv(x), 3, axis=-1)
        q, k, v = (op.permute_dims(op.reshape(it, (batch, length, self.heads, self.size)), [0, 2, 1, 3]) for it in (q, k, v))
        scores = op.matmul(q, op.permute_dims(k, [0, 1, 3, 2])) / self.size**0.5
        mixed = op.matmul(op.softmax(scores + mask, axis=-1), v)
        return self.out(op.reshape(op.permute_dims(mixed, [0, 2, 1, 3]), (batch, length, hidden)))


class Classifier(nn.Module):
    """Convolutions with group normalization, and a linear layer."""

    def __init__(self, channels, kernel, stride):
        self.first = nn.Conv2D(3, channels, kernel, stride=stride, padding=kernel // 2, bias=True)
        self.norm = nn.GroupNorm(4, channels)
        self.pointwise = nn.Conv2D(channels, 2 * channels, 1, bias=False)
        self.depthwise = nn.Conv2D(2 * channels, 2 * channels, 3, padding=1, groups=2 * channels, bias=False)
        self.head = nn.Linear(2 * channels, 10)

    def forward(self, x):
        x = op.relu(self.norm(self.first(x)))
        x = op.relu(self.depthwise(self.pointwise(x)))
        batch, channels, height, width = x.shape
        return self.head(op.sum(op.reshape(x, (batch, channels, height * width)), axis=-1))


class Embedded(nn.Module):
    """A token embedding, a layer norm, and logits."""

    def __init__(self, tokens, hidden):
        self.embedding = nn.Embedding(tokens, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, tokens, bias=False)

    def forward(self, ids):
        return op.softmax(self.head(self.norm(self.embedding(ids))), axis=-1)


class Generator(nn.Module):
    """Transposed convolutions that double the length."""

    def __init__(self, channels):
        self.up = nn.ConvTranspose1D(channels, channels // 2, 4, stride=2, padding=1)
        self.last = nn.Conv1D(channels // 2, 1, 3, padding=1)

    def forward(self, x):
        return op.tanh(self.last(op.gelu(self.up(x))))


def modules():
    """Name and module of each network, static and symbolic, in several dtypes."""
    for size, dtype in [(32, "float32"), (64, "float16")]:
        for at, batch in enumerate([2, "batch"]):
            x = spec.Tensor([batch, 7 if batch == 2 else "length", size], dtype)
            mask = spec.Tensor([1, 1, *(x.shape[1:2] * 2)], dtype)
            yield f"mlp-{size}-{at}", exported(Mlp(size, 3 * size, size == 32, dtype), {"x": x})
            yield f"attention-{size}-{at}", exported(Attention(size, 4, dtype), {"x": x, "mask": mask})
    for channels, kernel, stride, batch in [(8, 3, 1, 1), (16, 7, 2, "n"), (12, 5, 2, 4)]:
        image = spec.Tensor([batch, 3, 32, 32], "float32")
        yield f"classifier-{channels}", exported(Classifier(channels, kernel, stride), {"x": image})
    for tokens, length in [(50, 5), (128, "length")]:
        yield f"embedded-{tokens}", exported(Embedded(tokens, 24), {"ids": spec.Tensor([1, length], "int32")})
    for channels, length in [(8, 20), (6, "length")]:
        yield f"generator-{channels}", exported(Generator(channels), {"x": spec.Tensor([2, channels, length], "float32")})


def exported(module, inputs):
    """Exports a network to an IRModule."""
    return module.export_tvm({"forward": inputs})[0]


class Graph:
    """A random graph of operators on tensors, most of them of static shape; each of `lines` binds one variable."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.params, self.known = [], [], []

    def tensor(self, dims):
        """Adds a parameter."""
        name = f"p{len(self.params)}"
        self.params.append(f'{name}: R.Tensor(({", ".join(map(str, dims))},), dtype="float32")')
        return name

    def bind(self, text, dims):
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.known.append((name, dims))

    def step(self):
        """Binds one more variable, computed from a known one."""
        rng = self.rng
        x, dims = rng.choice(self.known[-3:])
        axis = rng.randrange(len(dims))
        kind = rng.choice("unary binary matmul permute reshape reduce norm concat split slice take where conv cast expand".split())
        match kind:
            case "unary":
                self.bind(f"R.{rng.choice('exp tanh sigmoid abs negative nn.relu nn.gelu nn.silu'.split())}({x})", dims)
            case "binary":
                other = self.tensor([rng.choice([1, dim]) for dim in dims])
                self.bind(f"R.{rng.choice('add multiply subtract maximum divide'.split())}({x}, {other})", dims)
            case "matmul":
                out = rng.choice([4, 8, 12])
                self.bind(f"R.matmul({x}, {self.tensor([dims[-1], out])})", [*dims[:-1], out])
            case "permute":
                order = rng.sample(range(len(dims)), len(dims))
                self.bind(f"R.permute_dims({x}, axes={order})", [dims[at] for at in order])
            case "reshape" if len(dims) < 4 and dims[-1] % 2 == 0:
                self.bind(f"R.reshape({x}, R.shape({[*dims[:-1], dims[-1] // 2, 2]}))", [*dims[:-1], dims[-1] // 2, 2])
            case "reduce" if len(dims) > 1:
                keep = rng.random() < 0.5
                out = [*dims[:axis], *([1] if keep else []), *dims[axis + 1 :]]
                self.bind(f"R.{rng.choice('sum mean max min'.split())}({x}, axis=[{axis}], keepdims={keep})", out)
            case "norm":
                self.bind(f"R.nn.softmax({x}, axis={axis - len(dims)})", dims)
            case "concat":
                more = list(dims)
                more[axis] = rng.choice([1, 2, 4])
                out = [*dims[:axis], dims[axis] + more[axis], *dims[axis + 1 :]]
                self.bind(f"R.concat(({x}, {self.tensor(more)}), axis={axis})", out)
            case "split" if dims[axis] % 2 == 0:
                self.bind(f"R.split({x}, 2, axis={axis})", None)
                self.bind(f"{self.known.pop()[0]}[{rng.randrange(2)}]", [*dims[:axis], dims[axis] // 2, *dims[axis + 1 :]])
            case "slice" if dims[axis] > 2:
                out = [*dims[:axis], dims[axis] - 2, *dims[axis + 1 :]]
                self.bind(f"R.strided_slice({x}, axes=[{axis}], begin=[1], end=[{dims[axis] - 1}])", out)
            case "take":
                count = rng.choice([1, 3, 5])
                at = ", ".join(str(rng.randrange(dims[axis])) for _ in range(count))
                self.bind(f'R.take({x}, R.const([{at}], "int64"), axis={axis})', [*dims[:axis], count, *dims[axis + 1 :]])
            case "where":
                self.bind(f'R.where(R.greater({x}, R.const(0.5, "float32")), {x}, {self.tensor([1] * len(dims))})', dims)
            case "conv" if len(dims) == 4 and min(dims[2:]) > 2:
                out = rng.choice([4, 6])
                weight = self.tensor([out, dims[1], 3, 3])
                self.bind(f"R.nn.conv2d({x}, {weight}, padding=[1, 1])", [dims[0], out, *dims[2:]])
            case "cast":
                self.bind(f'R.astype({x}, "float16")', dims)
                self.bind(f'R.astype({self.known.pop()[0]}, "float32")', dims)
            case "expand" if len(dims) < 4:
                self.bind(f"R.expand_dims({x}, axis={axis})", [*dims[:axis], 1, *dims[axis:]])

    def text(self):
        """Returns the text of a module with the graph."""
        dims = [self.rng.choice([1, 2, 3, 4, 6, 8]) for _ in range(self.rng.choice([2, 3, 4, 4]))]
        self.known = [(self.tensor(dims), dims)]
        while len(self.lines) < self.rng.randint(5, 14):
            self.step()
        body = "".join(f"            {line}\n" for line in self.lines)
        return (
            f"@I.ir_module\nclass Module:\n    @R.function\n    def main({', '.join(self.params)}):\n"
            f'        R.func_attr({{"num_input": 1}})\n        with R.dataflow():\n{body}'
            f"            gv = {self.known[-1][0]}\n            R.output(gv)\n        return gv\n"
        )
