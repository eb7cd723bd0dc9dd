//! What each pass does, on programs small enough to be read.

mod common;

use common::{apply, read};

/// The body of a module, where `T` is `R.Tensor((2,), dtype="float32")`.
fn module(body: &str) -> String {
    let body =
        body.replace("T,", "R.Tensor((2,), dtype=\"float32\"),").replace("T)", "R.Tensor((2,), dtype=\"float32\"))");
    let body =
        body.replace("T =", "R.Tensor((2,), dtype=\"float32\") =").replace("T:", "R.Tensor((2,), dtype=\"float32\"):");
    let lines: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!("n = TypeVar(\"n\")\n@I.ir_module\nclass Module:\n{lines}")
}

/// Checks that the passes make of one body the other, as text.
fn check(passes: &str, before: &str, after: &str) {
    let made = apply(passes, read(&module(before))).expect("a module");
    let printed = rx_transform::print(&made);
    assert_eq!(printed, rx_transform::print(&read(&module(after))), "{printed}");
    read(&printed);
}

#[test]
fn what_nothing_uses_is_left_out() {
    let before = "\
@R.function(private=True)
def helper(x: T) -> T:
    return x

@R.function
def main(x: T) -> T:
    with R.dataflow():
        a: T = R.exp(x)
        b: T = R.exp(a)
        c: T = R.negative(x)
        R.output(b, c)
    return c
";
    let after = "\
@R.function
def main(x: T) -> T:
    with R.dataflow():
        c: T = R.negative(x)
        R.output(c)
    return c
";
    check("DeadCodeElimination", before, after);
}

#[test]
fn effects_stay_and_so_does_what_they_use() {
    let unused = "\
@R.function(pure=False)
def main(x: T) -> T:
    a: T = R.exp(x)
    R.print(a, format=R.str(\"{}\"))
    return x
";
    check("DeadCodeElimination", unused, unused);
}

#[test]
fn a_cast_stays_where_its_dim_is_used() {
    let used = "\
@R.function
def main(x: R.Tensor(dtype=\"float32\", ndim=1)) -> R.Shape(ndim=1):
    k = T.int64()
    y: R.Tensor((k,), dtype=\"float32\") = R.match_cast(x, R.Tensor((k,), dtype=\"float32\"))
    s: R.Shape([k]) = R.shape([k])
    return s
";
    check("DeadCodeElimination", used, used);
    let unused = used
        .replace("R.Shape(ndim=1):", "R.Shape([2]):")
        .replace("R.Shape([k]) = R.shape([k])", "R.Shape([2]) = R.shape([2])");
    let gone: String = unused.lines().filter(|line| !line.contains('k')).map(|line| format!("{line}\n")).collect();
    check("DeadCodeElimination", &unused, &gone);
}

#[test]
fn a_value_is_computed_once() {
    let before = "\
@R.function
def main(x: T) -> T:
    with R.dataflow():
        a: T = R.exp(x)
        b: T = R.exp(x)
        c: T = R.add(a, b)
        R.output(b, c)
    d: T = R.exp(x)
    e: T = R.add(c, d)
    return e
";
    let after = "\
@R.function
def main(x: T) -> T:
    with R.dataflow():
        a: T = R.exp(x)
        b: T = a
        c: T = R.add(a, a)
        R.output(b, c)
    d: T = b
    e: T = R.add(c, b)
    return e
";
    check("EliminateCommonSubexpr", before, after);
}

#[test]
fn memory_is_told_apart() {
    let apart = "\
@R.function
def main(x: T) -> T:
    a: T = R.builtin.alloc_tensor(R.shape([2]), R.dtype(\"float32\"), 0, R.str(\"global\"))
    b: T = R.builtin.alloc_tensor(R.shape([2]), R.dtype(\"float32\"), 0, R.str(\"global\"))
    c: T = R.add(a, b)
    return c
";
    check("EliminateCommonSubexpr", apart, apart);
}

#[test]
fn dims_get_values() {
    let before = "\
@R.function
def main(x: R.Tensor((n,), dtype=\"float32\")) -> R.Tensor((\"n * 2\",), dtype=\"float32\"):
    y: R.Tensor((n * 2,), dtype=\"float32\") = R.concat((x, x), axis=0)
    return y
";
    let after = "\
@R.function
def main(x: R.Tensor((3,), dtype=\"float32\")) -> R.Tensor((6,), dtype=\"float32\"):
    y: R.Tensor((6,), dtype=\"float32\") = R.concat((x, x), axis=0)
    return y
";
    check("BindSymbolicVars({\"n\": 3})", before, after);
}

#[test]
fn calls_of_private_functions_become_what_they_do() {
    let before = "\
@R.function(private=True)
def twice(x: R.Tensor((n,), dtype=\"float32\")) -> R.Tensor((n,), dtype=\"float32\"):
    with R.dataflow():
        y: R.Tensor((n,), dtype=\"float32\") = R.add(x, x)
        R.output(y)
    return y

@R.function(private=True)
def loop(x: T) -> T:
    cls = Module
    y: T = cls.loop(x)
    return y

@R.function
def main(x: T) -> T:
    cls = Module
    with R.dataflow():
        y: T = cls.twice(x)
        z: T = cls.twice(y)
        R.output(z)
    w: T = cls.twice(z)
    v: T = cls.loop(w)
    return v
";
    let after = "\
@R.function(private=True)
def loop(x: T) -> T:
    cls = Module
    y: T = cls.loop(x)
    return y

@R.function
def main(x: T) -> T:
    cls = Module
    with R.dataflow():
        y_1: T = R.add(x, x)
        y_2: T = R.add(y_1, y_1)
        z: T = y_2
        R.output(z)
    with R.dataflow():
        y_3: T = R.add(z, z)
        R.output(y_3)
    v: T = cls.loop(y_3)
    return v
";
    check("InlinePrivateFunctions", before, after);
}
