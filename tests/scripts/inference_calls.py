"""Draws random calls of Relax operators and small programs: correct ones, and ones with small mistakes.

`Draw(seed).call(operator, recipe)` returns a `Call`: parameters with their types, and the text of the call; `program` returns one of
several lines. A recipe draws operands and attributes that fit each other. Drawing an operand may then omit its shape, rank or dtype,
pass its shape as a variable, change a dim, the rank or the dtype, or replace it by something that is not a tensor.
"""

import dataclasses
import random

SYMBOLS = ["m", "n", "k"]
CALLEE = {"m": "r0", "n": "r1", "k": "r2"}  # the symbols of functions that are called
FLOATS = ["float32", "float16", "float64"]
INTS = ["int64", "int32", "int8", "uint8"]
DTYPES = [*FLOATS, *INTS, "bool"]
MESHES = {"mesh[0]": ((2,), range(0, 2)), "mesh[1]": ((2, 2), range(4, 8))}  # shapes and devices
VDEVICES = ["llvm:0:global", "cuda:0:global"]


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor; `shape` is a list of dims, a rank (-1: unknown) or the name of a shape variable."""

    shape: object
    dtype: str = "float32"
    vdevice: str = ""

    def text(self):
        parts = [] if isinstance(self.shape, int) else [self.shape if isinstance(self.shape, str) else dims_text(self.shape)]
        parts += [f'dtype="{self.dtype}"'] if self.dtype else []
        parts += [f"ndim={self.shape}"] if isinstance(self.shape, int) and self.shape >= 0 else []
        parts += [f'vdevice="{self.vdevice}"'] if self.vdevice else []
        return f"R.Tensor({', '.join(parts)})" if parts else "R.Tensor"


@dataclasses.dataclass(frozen=True)
class Shape:
    """A shape with these dims, or with a rank (-1: unknown)."""

    dims: object

    def text(self):
        if isinstance(self.dims, int):
            return f"R.Shape(ndim={self.dims})" if self.dims >= 0 else "R.Shape(ndim=-1)"
        return f"R.Shape([{', '.join(map(quoted, self.dims))}])"


@dataclasses.dataclass(frozen=True)
class Prim:
    """A scalar."""

    dtype: str

    def text(self):
        return f"T.{self.dtype}"


@dataclasses.dataclass(frozen=True)
class Other:
    """A type given by its text: `R.Any`, `R.Callable(…)`, `R.Tuple(…)`."""

    fields: tuple = ()
    what: str = "Tuple"

    def text(self):
        if self.what == "Tuple":
            return f"R.Tuple({', '.join(field.text() for field in self.fields)})"
        return "R.Any" if self.what == "Any" else 'R.Callable((), R.Tensor((2, 3), dtype="float32"), True)'


@dataclasses.dataclass(frozen=True)
class Text:
    """A type that only programs have, given by its text."""

    spelled: str

    def text(self):
        return self.spelled


def quote(text):
    """Quotes a string."""
    return f'"{text}"'


def some(d, named):
    """Returns a random subset of the named arguments."""
    return {name: value for name, value in named.items() if d.chance(0.75)}


def quoted(dim):
    """Formats a dim as in a header: anything but a number or a name is quoted."""
    return dim if dim.isidentifier() or dim.lstrip("-").isdigit() else f'"{dim}"'


def dims_text(dims, of=quoted):
    """Formats a tuple of dims."""
    return f"({', '.join(map(of, dims))}{',' if len(dims) == 1 else ''})"


@dataclasses.dataclass
class Call:
    """A call of an operator with the parameters it uses; or the lines of a function, with further functions."""

    operator: str
    params: list
    text: str = ""
    lines: list = None
    helpers: list = dataclasses.field(default_factory=list)


class Draw:
    """Draws one call after the other. `wrong` is the probability of a change that may make the call invalid."""

    def __init__(self, seed, wrong=0.12):
        self.rng = random.Random(seed)
        self.often = wrong
        self.wrong = wrong
        self.params = []
        self.helpers = []
        self.named = 0
        self.in_text = False

    # Chance.

    def one(self, *values):
        return self.rng.choice(values)

    def chance(self, p):
        return self.rng.random() < p

    def slip(self, share=1.0):
        """Returns whether to make a mistake here."""
        return self.rng.random() < self.wrong * share

    # Dims.

    def dim(self):
        r = self.rng.random()
        if r < 0.5:
            return str(self.one(1, 1, 2, 3, 4, 4, 5, 6, 8, 12, 16))
        if r < 0.85:
            return self.one(*SYMBOLS)
        symbol = self.one(*SYMBOLS)
        return self.one(
            f"{symbol} + {self.one(1, 2, 3)}",
            f"{symbol} * {self.one(2, 4)}",
            f"{symbol} * {self.one(*SYMBOLS)}",
            f"{symbol} // 2",
            f"{symbol} + {self.one(*SYMBOLS)}",
            f"2 * {symbol} + 1",
        )

    def dims(self, low=0, high=4, static=None):
        rank = self.rng.randint(low, high)
        static = self.chance(0.35) if static is None else static
        return [str(self.one(1, 2, 3, 4, 5, 6, 8)) if static else self.dim() for _ in range(rank)]

    def axis(self, rank, slack=0):
        """Returns an axis of a rank, or one outside."""
        if self.slip():
            return self.one(rank + slack, rank + slack + 1, -rank - slack - 1, -rank - slack - 2)
        return self.rng.randint(-(rank + slack), rank + slack - 1) if rank + slack else 0

    def axes(self, rank, spoil=True):
        """Returns some axes, rarely with repetition."""
        some = self.rng.sample(range(rank), self.rng.randint(0, rank))
        some = [at - rank if self.chance(0.3) else at for at in some]
        if spoil and self.slip():
            some.append(self.axis(rank))
        return some

    # Operands.

    def fresh(self, ty, stem="x"):
        if self.in_text and ty == Shape([]):
            ty = Shape(0)  # TVM reads `R.Shape([])` as a shape of unknown rank
        name = f"{stem}{len(self.params)}"
        self.params.append((name, ty))
        return name

    def vague(self, shape):
        """Returns a shape as it is, without its dims, or as a variable."""
        r = self.rng.random()
        if not isinstance(shape, list) or r < 0.66:
            return shape
        if r < 0.76:
            return len(shape)
        if r < 0.82:
            return -1
        if self.in_text:  # the types in a header cannot refer to its parameters
            return shape
        what = Shape(shape if r < 0.92 else len(shape) if r < 0.97 else -1)
        return self.fresh(what, "s")

    def spoil(self, dims):
        """Returns dims with one changed, added or removed."""
        dims = list(dims)
        r = self.rng.random()
        if dims and r < 0.5:
            dims[self.rng.randrange(len(dims))] = self.dim()
        elif dims and r < 0.75:
            dims.pop(self.rng.randrange(len(dims)))
        else:
            dims.insert(self.rng.randint(0, len(dims)), self.dim())
        return dims

    def tensor(self, dims, dtype="float32", vague=True):
        """Adds a tensor parameter with these dims."""
        if self.slip(0.5):
            return self.fresh(
                self.one(
                    Shape(list(dims)),
                    Other(what="Callable"),
                    Prim("float32"),
                    Other(what="Any"),
                    Other(fields=(Tensor(list(dims), dtype),)),
                    Shape(len(dims)),
                )
            )
        if self.slip():
            dims = self.spoil(dims)
        if self.slip(0.7):
            dtype = self.one(*DTYPES)
        elif self.chance(0.08):
            dtype = ""
        vdevice = self.one(*VDEVICES) if self.chance(0.06) else ""
        return self.fresh(Tensor(self.vague(list(dims)) if vague else list(dims), dtype, vdevice))

    def float(self):
        return self.one("float32", "float32", *FLOATS)

    def any_dtype(self):
        return self.one("float32", *DTYPES)

    def shape(self, dims):
        """Returns a shape argument: written out, or a variable."""
        dims = self.spoil(dims) if self.slip() else dims
        r = self.rng.random()
        if r < 0.4:
            return f"R.shape([{', '.join(dims)}])"
        if r < 0.65:
            return dims_text(dims, str)
        if self.slip(0.6):
            return self.fresh(self.one(Tensor(["2"], "int64"), Other(what="Any"), Prim("int64")), "s")
        return self.fresh(Shape(self.one(list(dims), list(dims), len(dims), -1)), "s")

    def boolean(self):
        return self.one("True", "False")

    def helper(self, text):
        """Adds a function with a new name to the module; returns the name."""
        self.named += 1
        name = f"h{self.named}"
        self.helpers.append(text.replace("{name}", name))
        return name

    # Calls.

    def program(self, what, recipe):
        """Draws one function by a recipe, which returns its lines."""
        self.params, self.helpers, self.in_text = [], [], True
        self.wrong = self.one(0.0, 0.0, self.often, self.often * 2)
        lines = recipe(self)
        self.in_text = False
        return Call(what, list(self.params), "\n".join(lines), lines, list(self.helpers))

    def call(self, operator, recipe):
        """Draws one call by a recipe, which returns the positional arguments, and the named ones as a dict."""
        self.params = []
        self.wrong = self.one(0.0, 0.0, self.often, self.often * 2)
        positional, named = recipe(self)
        positional = [str(argument) for argument in positional]
        named = dict(named)
        if self.slip(0.25) and positional:
            positional.pop()
        if self.slip(0.15):
            positional.append(positional[-1] if positional else "1")
        if self.slip(0.1):
            named["bogus"] = 1
        if self.slip(0.3) and named:
            named[self.one(*named)] = self.one("1.5", '"what"', "-1", "0", "1000", "None", "(1, 2)", "[]")
        arguments = positional + [f"{name}={value}" for name, value in named.items()]
        return Call(operator, list(self.params), f"R.{operator}({', '.join(arguments)})")
