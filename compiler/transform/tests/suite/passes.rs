//! Tests of the printed output of passes for small programs.

use crate::common::{apply, read};
use rx_base::Name;
use rx_base::name::name;
use rx_ir::rewrite::Renaming;
use rx_transform::equal::structurally_equal;
use rx_transform::substitute::rename;

/// Returns a module with this body, where `T` is `R.Tensor((2,), dtype="float32")`.
fn module(body: &str) -> String {
    let body =
        body.replace("T,", "R.Tensor((2,), dtype=\"float32\"),").replace("T)", "R.Tensor((2,), dtype=\"float32\"))");
    let body =
        body.replace("T =", "R.Tensor((2,), dtype=\"float32\") =").replace("T:", "R.Tensor((2,), dtype=\"float32\"):");
    let lines: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!("n = TypeVar(\"n\")\n@I.ir_module\nclass Module:\n{lines}")
}

/// Checks that the passes turn the body `before` into `after`, compared as text.
fn check(passes: &str, before: &str, after: &str) {
    let made = apply(passes, read(&module(before))).expect("a module");
    let printed = rx_transform::print(&made);
    assert_eq!(printed, rx_transform::print(&read(&module(after))), "{printed}");
    read(&printed);
}

#[test]
fn unused_bindings_and_functions_are_removed() {
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
fn effects_and_their_operands_stay() {
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
fn allocations_are_distinguished() {
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
fn calls_of_private_functions_become_their_bodies() {
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

#[test]
fn aliases_of_a_value_are_removed() {
    let before = "\
@R.function
def main(x: T, pair: R.Tuple(T, T)) -> T:
    with R.dataflow():
        a: T = R.exp(x)
        b: T = a
        c: T = R.add(b, b)
        R.output(b, c)
    p: T = pair[0]
    q: T = pair[1]
    both: R.Tuple(T, T) = (p, q)
    d: T = both[0]
    e: T = R.add(c, d)
    f: T = R.add(e, b)
    return f
";
    let after = "\
@R.function
def main(x: T, pair: R.Tuple(T, T)) -> T:
    with R.dataflow():
        b: T = R.exp(x)
        c: T = R.add(b, b)
        R.output(b, c)
    p: T = pair[0]
    q: T = pair[1]
    e: T = R.add(c, p)
    f: T = R.add(e, b)
    return f
";
    check("CanonicalizeBindings", before, after);
}

#[test]
fn dataflow_variable_read_through_a_tuple_becomes_an_output() {
    let before = "\
@R.function
def main(x: T) -> T:
    with R.dataflow():
        a: T = R.exp(x)
        t: R.Tuple(T, T) = (a, x)
        R.output(t)
    with R.dataflow():
        b: T = t[0]
        c: T = R.negative(b)
        R.output(c)
    return c
";
    let after = before
        .replace("        b: T = t[0]\n", "")
        .replace("R.negative(b)", "R.negative(a)")
        .replace("R.output(t)", "R.output(a, t)");
    check("CanonicalizeBindings", before, &after);
}

#[test]
fn an_annotation_that_says_more_than_is_known_stays() {
    let says_more = "\
@R.function
def main(x: R.Tensor(dtype=\"float32\", ndim=1), y: T) -> T:
    a: T = R.match_cast(x, T)
    b: T = R.add(a, y)
    return b
";
    check("CanonicalizeBindings", says_more, says_more);
}

#[test]
fn dims_of_casts_become_the_known_dims() {
    let before = "\
@R.function
def main(x: R.Tensor((n,), dtype=\"float32\")) -> R.Tensor((n,), dtype=\"float32\"):
    k = T.int64()
    a: R.Tensor((k,), dtype=\"float32\") = R.match_cast(x, R.Tensor((k,), dtype=\"float32\"))
    b: R.Tensor((k,), dtype=\"float32\") = R.exp(a)
    c: R.Tensor((n,), dtype=\"float32\") = R.match_cast(b, R.Tensor((n,), dtype=\"float32\"))
    return c
";
    let after = "\
@R.function
def main(x: R.Tensor((n,), dtype=\"float32\")) -> R.Tensor((n,), dtype=\"float32\"):
    b: R.Tensor((n,), dtype=\"float32\") = R.exp(x)
    return b
";
    check("CanonicalizeBindings", before, after);
}

/// Returns a function with the parameters `params` and the return type `out`. Its dataflow block has these lines; the
/// function returns a variable of the block, which is also called `out`.
fn dataflow(params: &str, lines: &str, out: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("        {}\n", line.trim())).collect();
    format!(
        "@R.function\ndef main({params}) -> {out}:\n    with R.dataflow():\n{lines}        R.output(out)\n    return out\n"
    )
}

#[test]
fn consecutive_reshapes_are_merged() {
    let (params, out) = ("x: R.Tensor((n, 4), dtype=\"float32\")", "R.Tensor((n, 2, 2), dtype=\"float32\")");
    let before = "\
        a: R.Tensor((4, n), dtype=\"float32\") = R.reshape(x, R.shape([4, n]))
        b: R.Tensor((2, n, 2), dtype=\"float32\") = R.reshape(a, R.shape([2, -1, 2]))
        c: R.Tensor((4, n), dtype=\"float32\") = R.exp(a)
        d: R.Tensor((n, 4), dtype=\"float32\") = R.reshape(b, R.shape([n, 4]))
        e: R.Tensor((4, n), dtype=\"float32\") = R.add(c, a)
        f: R.Tensor((n, 4), dtype=\"float32\") = R.reshape(e, R.shape([n, 4]))
        g: R.Tensor((n, 4), dtype=\"float32\") = R.add(d, f)
        out: R.Tensor((n, 2, 2), dtype=\"float32\") = R.reshape(g, R.shape([n, 2, 2]))";
    let after = "\
        a: R.Tensor((4, n), dtype=\"float32\") = R.reshape(x, R.shape([4, n]))
        b: R.Tensor((2, n, 2), dtype=\"float32\") = R.reshape(x, R.shape([2, n, 2]))
        c: R.Tensor((4, n), dtype=\"float32\") = R.exp(a)
        d: R.Tensor((n, 4), dtype=\"float32\") = x
        e: R.Tensor((4, n), dtype=\"float32\") = R.add(c, a)
        f: R.Tensor((n, 4), dtype=\"float32\") = R.reshape(e, R.shape([n, 4]))
        g: R.Tensor((n, 4), dtype=\"float32\") = R.add(d, f)
        out: R.Tensor((n, 2, 2), dtype=\"float32\") = R.reshape(g, R.shape([n, 2, 2]))";
    check("RemoveRedundantReshape", &dataflow(params, before, out), &dataflow(params, after, out));
}

#[test]
fn products_with_one_tensor_are_one() {
    let params = "x: R.Tensor((4, 3), dtype=\"float32\"), a: R.Tensor((3, 2), dtype=\"float32\"), \
                  b: R.Tensor((3, 5), dtype=\"float32\")";
    let out = "R.Tensor((4, 7), dtype=\"float32\")";
    let before = "\
        p: R.Tensor((4, 2), dtype=\"float32\") = R.matmul(x, a, out_dtype=None)
        q: R.Tensor((4, 5), dtype=\"float32\") = R.matmul(x, b, out_dtype=None)
        out: R.Tensor((4, 7), dtype=\"float32\") = R.concat((p, q), axis=1)";
    let after = "\
        lv: R.Tensor((3, 7), dtype=\"float32\") = R.concat((a, b), axis=1)
        lv1: R.Tensor((4, 7), dtype=\"float32\") = R.matmul(x, lv, out_dtype=\"float32\")
        lv2: R.Tuple(R.Tensor((4, 2), dtype=\"float32\"), R.Tensor((4, 5), dtype=\"float32\")) = \
        R.split(lv1, indices_or_sections=[2], axis=1)
        p: R.Tensor((4, 2), dtype=\"float32\") = lv2[0]
        q: R.Tensor((4, 5), dtype=\"float32\") = lv2[1]
        out: R.Tensor((4, 7), dtype=\"float32\") = R.concat((p, q), axis=1)";
    check("CombineParallelMatmul", &dataflow(params, before, out), &dataflow(params, after, out));
}

#[test]
fn a_factor_that_is_made_of_another_product_is_not_combined_with_it() {
    let params = "x: R.Tensor((3, 3), dtype=\"float32\"), a: R.Tensor((3, 3), dtype=\"float32\")";
    let out = "R.Tensor((3, 3), dtype=\"float32\")";
    let kept = "\
        p: R.Tensor((3, 3), dtype=\"float32\") = R.matmul(x, a, out_dtype=None)
        q: R.Tensor((3, 3), dtype=\"float32\") = R.exp(p)
        out: R.Tensor((3, 3), dtype=\"float32\") = R.matmul(x, q, out_dtype=None)";
    check("CombineParallelMatmul", &dataflow(params, kept, out), &dataflow(params, kept, out));
}

#[test]
fn vectors_and_biases_that_are_broadcast_are_not_put_side_by_side() {
    let params = "x: R.Tensor((3, 3), dtype=\"float32\"), a: R.Tensor((3,), dtype=\"float32\"), \
                  b: R.Tensor((3,), dtype=\"float32\")";
    let out = "R.Tensor((3,), dtype=\"float32\")";
    let kept = "\
        p: R.Tensor((3,), dtype=\"float32\") = R.matmul(x, a, out_dtype=None)
        q: R.Tensor((3,), dtype=\"float32\") = R.matmul(x, b, out_dtype=None)
        out: R.Tensor((3,), dtype=\"float32\") = R.add(p, q)";
    check("CombineParallelMatmul", &dataflow(params, kept, out), &dataflow(params, kept, out));
    let params = "x: R.Tensor((3, 3), dtype=\"float32\"), a: R.Tensor((3, 3), dtype=\"float32\"), \
                  b: R.Tensor((3, 3), dtype=\"float32\"), c: R.Tensor((1,), dtype=\"float32\")";
    let out = "R.Tensor((3, 3), dtype=\"float32\")";
    let before = "\
        p: R.Tensor((3, 3), dtype=\"float32\") = R.matmul(x, a, out_dtype=None)
        r: R.Tensor((3, 3), dtype=\"float32\") = R.add(p, c)
        q: R.Tensor((3, 3), dtype=\"float32\") = R.matmul(x, b, out_dtype=None)
        s: R.Tensor((3, 3), dtype=\"float32\") = R.add(q, c)
        out: R.Tensor((3, 3), dtype=\"float32\") = R.add(r, s)";
    let after = "\
        lv: R.Tensor((3, 6), dtype=\"float32\") = R.concat((a, b), axis=1)
        lv1: R.Tensor((3, 6), dtype=\"float32\") = R.matmul(x, lv, out_dtype=\"float32\")
        lv2: R.Tuple(R.Tensor((3, 3), dtype=\"float32\"), R.Tensor((3, 3), dtype=\"float32\")) = \
        R.split(lv1, indices_or_sections=[3], axis=1)
        p: R.Tensor((3, 3), dtype=\"float32\") = lv2[0]
        r: R.Tensor((3, 3), dtype=\"float32\") = R.add(p, c)
        q: R.Tensor((3, 3), dtype=\"float32\") = lv2[1]
        s: R.Tensor((3, 3), dtype=\"float32\") = R.add(q, c)
        out: R.Tensor((3, 3), dtype=\"float32\") = R.add(r, s)";
    check("CombineParallelMatmul", &dataflow(params, before, out), &dataflow(params, after, out));
}

#[test]
fn columns_are_picked_from_the_product_with_mode_and_dtype_kept() {
    let params = "x: R.Tensor((2, 16), dtype=\"float16\"), table: R.Tensor((16, 64), dtype=\"float16\"), \
                  at: R.Tensor((32,), dtype=\"int64\")";
    let out = "R.Tensor((2, 32), dtype=\"float32\")";
    let before = "\
        w: R.Tensor((16, 32), dtype=\"float16\") = R.take(table, at, axis=-1, mode=\"clip\")
        out: R.Tensor((2, 32), dtype=\"float32\") = R.matmul(x, w, out_dtype=\"float32\")";
    let after = "\
        w: R.Tensor((16, 32), dtype=\"float16\") = R.take(table, at, axis=-1, mode=\"clip\")
        out_table: R.Tensor((2, 64), dtype=\"float32\") = R.matmul(x, table, out_dtype=\"float32\")
        out: R.Tensor((2, 32), dtype=\"float32\") = R.take(out_table, at, axis=1, mode=\"clip\")";
    check("ReorderTakeAfterMatmul", &dataflow(params, before, out), &dataflow(params, after, out));
    // An index that is not proved to be in bounds may be out of bounds. In the mode `fast`, the element that it then
    // reads differs if the calls are reordered.
    let unproved = before.replace("clip", "fast");
    check("ReorderTakeAfterMatmul", &dataflow(params, &unproved, out), &dataflow(params, &unproved, out));
    let proved = "at1: R.Tensor((32,), dtype=\"int64\") = R.arange(0, 64, 2, dtype=\"int64\")\n";
    let fast =
        |text: &str| dataflow(params, &format!("{proved}{}", text.replace("clip", "fast").replace("at,", "at1,")), out);
    check("ReorderTakeAfterMatmul", &fast(before), &fast(after));
}

#[test]
fn norms_are_decomposed() {
    let params = "x: R.Tensor((2, 3), dtype=\"float32\"), g: R.Tensor((3,), dtype=\"float32\"), \
                  b: R.Tensor((3,), dtype=\"float32\")";
    let out = "R.Tensor((2, 3), dtype=\"float32\")";
    let before = "out: R.Tensor((2, 3), dtype=\"float32\") = \
                  R.nn.layer_norm(x, g, b, axes=[-1], epsilon=0.5, center=True, scale=False)";
    let after = "\
        lv: R.Tensor((2, 1), dtype=\"float32\") = R.mean(x, axis=[-1], keepdims=True)
        lv1: R.Tensor((2, 3), dtype=\"float32\") = R.subtract(x, lv)
        lv2: R.Tensor((2, 1), dtype=\"float32\") = R.variance(x, axis=[-1], keepdims=True)
        lv3: R.Tensor((2, 1), dtype=\"float32\") = R.add(lv2, R.const(0.5, \"float32\"))
        lv4: R.Tensor((2, 1), dtype=\"float32\") = R.sqrt(lv3)
        lv5: R.Tensor((2, 3), dtype=\"float32\") = R.divide(lv1, lv4)
        out: R.Tensor((2, 3), dtype=\"float32\") = R.add(lv5, b)";
    check("DecomposeOpsForTraining", &dataflow(params, before, out), &dataflow(params, after, out));
    check("DecomposeOpsForInference", &dataflow(params, before, out), &dataflow(params, before, out));
}

#[test]
fn memory_is_freed_after_its_last_use() {
    let before = "\
@R.function(pure=False)
def main(x: T) -> T:
    a: T = R.exp(x)
    with R.dataflow():
        b: T = R.add(a, x)
        c: T = R.negative(b)
        R.output(c)
    if R.const(True, \"bool\"):
        d: T = R.exp(c)
    else:
        d: T = R.negative(c)
    return d
";
    let after = "\
@R.function(pure=False)
def main(x: T) -> T:
    a: T = R.exp(x)
    with R.dataflow():
        b: T = R.add(a, x)
        c: T = R.negative(b)
        R.output(c)
    R.memory.kill_tensor(a)
    if R.const(True, \"bool\"):
        d: T = R.exp(c)
    else:
        d: T = R.negative(c)
    R.memory.kill_tensor(c)
    return d
";
    check("KillAfterLastUse", before, after);
    let pure = before.replace("(pure=False)", "");
    check("KillAfterLastUse", &pure, &pure);
}

const COPY: &str = "\
@T.prim_func(private=True, s_tir=True)
def copy(A: T.Buffer((2,), \"float32\"), B: T.Buffer((2,), \"float32\")):
    for i in range(2):
        with T.sblock(\"copy\"):
            vi = T.axis.spatial(2, i)
            B[vi] = A[vi]

";

#[test]
fn calls_write_into_memory_made_before() {
    let before = format!(
        "{COPY}\
@R.function
def main(x: T) -> T:
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.copy, (x,), out_ty=R.Tensor((2,), dtype=\"float32\"))
        b: T = R.exp(a)
        R.output(b)
    return b
"
    );
    let after = format!(
        "{COPY}\
@R.function
def main(x: T) -> T:
    cls = Module
    R.func_attr({{\"relax.force_pure\": True}})
    lv: T = R.builtin.alloc_tensor(R.shape([2]), R.dtype(\"float32\"), 0, R.str(\"global\"))
    cls.copy(x, lv)
    a: T = lv
    b: T = R.exp(a)
    return b
"
    );
    check("CallTIRRewrite", &before, &after);
    // The types in the output are those that its text states.
    let made = apply("CallTIRRewrite", read(&module(&before))).expect("a module");
    assert!(structurally_equal(&made, &read(&rx_transform::print(&made))));
}

#[test]
fn products_are_computed_with_16_bits_and_what_is_seen_outside_keeps_its_dtype() {
    let params = "x: R.Tensor((2, 3), dtype=\"float32\"), w: R.Tensor((3, 3), dtype=\"float32\"), \
                  i: R.Tensor((3, 3), dtype=\"int8\")";
    let out = "R.Tensor((2, 3), dtype=\"float32\")";
    let before = "\
        a: R.Tensor((2, 3), dtype=\"float32\") = R.matmul(x, w, out_dtype=None)
        b: R.Tensor((2, 3), dtype=\"float32\") = R.nn.relu(a)
        k: R.Tensor((3, 3), dtype=\"int32\") = R.matmul(i, i, out_dtype=\"int32\")
        c: R.Tensor((2, 3), dtype=\"float32\") = R.nn.softmax(b, axis=-1)
        out: R.Tensor((2, 3), dtype=\"float32\") = R.add(b, c)";
    let after = "\
        lv: R.Tensor((2, 3), dtype=\"float16\") = R.astype(x, dtype=\"float16\")
        lv1: R.Tensor((3, 3), dtype=\"float16\") = R.astype(w, dtype=\"float16\")
        a: R.Tensor((2, 3), dtype=\"float16\") = R.matmul(lv, lv1, out_dtype=\"float16\")
        b: R.Tensor((2, 3), dtype=\"float16\") = R.nn.relu(a)
        k: R.Tensor((3, 3), dtype=\"int32\") = R.matmul(i, i, out_dtype=\"int32\")
        lv2: R.Tensor((2, 3), dtype=\"float32\") = R.astype(b, dtype=\"float32\")
        c: R.Tensor((2, 3), dtype=\"float32\") = R.nn.softmax(lv2, axis=-1)
        lv3: R.Tensor((2, 3), dtype=\"float32\") = R.astype(b, dtype=\"float32\")
        out: R.Tensor((2, 3), dtype=\"float32\") = R.add(lv3, c)";
    check("ToMixedPrecision(\"float16\")", &dataflow(params, before, out), &dataflow(params, after, out));
}

#[test]
fn a_return_type_without_annotation_names_no_dim_that_only_the_body_binds() {
    let text = "\
from tvm.script import relax as R

@R.function
def main(x: R.Tensor(ndim=2), y: R.Tensor((\"n\", 2))):
    m = T.int64()
    a = R.match_cast(x, R.Tensor((m, 2), dtype=\"float32\"))
    b = R.exp(y)
    return (a, b)
";
    let printed = rx_transform::print(&read(text));
    assert!(printed.contains("-> R.Tuple(R.Tensor(dtype=\"float32\", ndim=2), R.Tensor((n, 2))):"), "{printed}");
    // The output has no errors.
    assert_eq!(rx_transform::print(&read(&printed)), printed);
}

#[test]
fn variables_after_an_if_are_distinguished_where_both_branches_bind_one_name() {
    let subtracting = |operands: &str| {
        let text = format!(
            "\
@R.function
def main(x: T, c: R.Tensor((), dtype=\"bool\")) -> T:
    if c:
        y: T = R.exp(x)
    else:
        y: T = R.negative(x)
    z: T = R.exp(y)
    d: T = R.subtract({operands})
    return d
"
        );
        let mut made = read(&module(&text));
        // A module that is read from text has distinct names: `y`, `y_1` and `y_2`. Rename them all to `y`.
        let variable = |variable: Name| variable.as_str().starts_with("y_").then(|| name("y"));
        for function in made.functions_mut() {
            rename(&mut function.body, &Renaming { dim: &|_| None, variable: &variable });
        }
        made
    };
    assert!(structurally_equal(&subtracting("y, z"), &subtracting("y, z")));
    assert!(!structurally_equal(&subtracting("y, z"), &subtracting("z, y")));
}

const IN_PLACE: &str = "\
@T.prim_func(private=True, s_tir=True)
def exp_inplace(A: T.Buffer((2,), \"float32\")):
    for i in range(2):
        with T.sblock(\"exp\"):
            vi = T.axis.spatial(2, i)
            A[vi] = T.exp(A[vi])

";

#[test]
fn captured_variable_is_not_overwritten() {
    let call = "R.call_tir_inplace(cls.exp_inplace, (a,), out_ty=T, inplace_indices=[0])";
    let main = |inner: &str, after: &str| {
        format!(
            "{IN_PLACE}\
@R.function
def main(x: T) -> T:
    cls = Module
    a: T = R.exp(x)
    @R.function
    def inner(b: T) -> T:
        s: T = {inner}
        return s

    c: T = {after}
    d: T = inner(c)
    return d
"
        )
    };
    let outside = main("R.add(a, b)", call);
    check("CallTIRRewrite", &outside, &outside);
    let inside = main(call, "R.exp(x)");
    check("CallTIRRewrite", &inside, &inside);
    let rewritten = apply("CallTIRRewrite", read(&module(&main("R.exp(b)", call)))).expect("a module");
    assert!(rx_transform::print(&rewritten).contains("cls.exp_inplace(a)"));
}

#[test]
fn variable_that_shares_memory_is_not_overwritten() {
    let main = |b: &str| {
        format!(
            "{IN_PLACE}\
@R.function
def main(x: T) -> T:
    cls = Module
    a: T = R.exp(x)
    b: T = {b}
    c: T = R.call_tir_inplace(cls.exp_inplace, (a,), out_ty=T, inplace_indices=[0])
    d: T = R.add(b, c)
    return d
"
        )
    };
    let kept = main("a");
    check("CallTIRRewrite", &kept, &kept);
    let rewritten = apply("CallTIRRewrite", read(&module(&main("R.exp(a)")))).expect("a module");
    assert!(rx_transform::print(&rewritten).contains("cls.exp_inplace(a)"));
}

#[test]
fn nested_function_reuses_its_own_values_only() {
    let before = "\
@R.function
def main(x: T) -> T:
    with R.dataflow():
        a: T = R.exp(x)
        @R.function
        def inner(b: T) -> T:
            c: T = R.exp(x)
            d: T = R.exp(x)
            s: T = R.add(c, d)
            return s

        r: T = inner(a)
        R.output(r)
    return r
";
    let after = before.replace("d: T = R.exp(x)", "d: T = c").replace("R.add(c, d)", "R.add(c, c)");
    check("EliminateCommonSubexpr", before, &after);
}

#[test]
fn function_whose_nested_function_captures_is_not_inlined_in_a_dataflow_block() {
    let kept = "\
@R.function(private=True)
def helper(x: T) -> T:
    a: T = R.exp(x)
    @R.function
    def inner(b: T) -> T:
        s: T = R.add(a, b)
        return s

    r: T = inner(x)
    return r

@R.function
def main(x: T) -> T:
    cls = Module
    with R.dataflow():
        y: T = cls.helper(x)
        R.output(y)
    return y
";
    check("InlinePrivateFunctions", kept, kept);
}
