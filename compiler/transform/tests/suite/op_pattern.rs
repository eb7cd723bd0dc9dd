//! Tests of the operator pattern of prim_funcs. `tests/scripts/tvm_op_patterns.py` compares many more with TVM.

use crate::common::{apply, read};
use rx_loops::op_pattern::{is_spatial, op_pattern};
use rx_transform::Module;

/// Returns a module with a prim_func of these statements. Its parameters are buffers: `A:4,8` is `A` with 4 × 8
/// elements.
fn prim_func(params: &str, body: &str) -> String {
    let params: Vec<String> = params
        .split_whitespace()
        .map(|param| {
            let (name, dims) = param.split_once(':').unwrap_or((param, ""));
            let dims: Vec<String> =
                dims.split(',').filter(|dim| !dim.is_empty()).map(|dim| format!("T.int64({dim})")).collect();
            let comma = if dims.len() == 1 { "," } else { "" };
            format!("{name}: T.Buffer(({}{comma}), \"float32\")", dims.join(", "))
        })
        .collect();
    let body: String = body.lines().map(|line| format!("        {}\n", line)).collect();
    format!("@I.ir_module\nclass Module:\n    @T.prim_func(s_tir=True)\n    def f({}):\n{body}", params.join(", "))
}

/// Runs `AnnotateTIROpPattern`, and returns the pattern of each prim_func.
fn patterns(text: &str) -> Vec<Option<i64>> {
    let module: Module = apply("AnnotateTIROpPattern", read(text)).expect("a module");
    module.prim_funcs().map(|function| function.attribute("op_pattern").and_then(rx_ir::Attr::as_int)).collect()
}

fn check(cases: &[(&str, i64, &str, &str)]) {
    for (subject, wanted, params, body) in cases {
        let text = prim_func(params, body);
        assert_eq!(patterns(&text), [Some(*wanted)], "{subject}:\n{text}");
    }
}

#[test]
fn elementwise_broadcast_and_injective_kernels_are_classified() {
    check(&[
        (
            "elementwise",
            0,
            "A:4,8 C:4,8",
            "for i, j in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"exp\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        C[v, w] = T.exp(A[v, w])",
        ),
        (
            "nothing is loaded",
            0,
            "C:4",
            "for i in range(T.int64(4)):
    with T.sblock(\"full\"):
        v = T.axis.spatial(T.int64(4), i)
        C[v] = T.float32(1)",
        ),
        (
            "a row added to each row",
            0,
            "A:4,8 B:8 C:4,8",
            "for i, j in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"add\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        C[v, w] = A[v, w] + B[w]",
        ),
        (
            "a row repeated",
            1,
            "B:1,8 C:4,8",
            "for i, j in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"broadcast_to\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        C[v, w] = B[T.int64(0), w]",
        ),
        (
            "axes exchanged",
            2,
            "A:8,4 C:4,8",
            "for i, j in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"transpose\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        C[v, w] = A[w, v]",
        ),
        (
            "another shape",
            2,
            "A:32 C:4,8",
            "for i, j in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"reshape\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        C[v, w] = A[v * T.int64(8) + w]",
        ),
    ]);
}

#[test]
fn reductions() {
    check(&[
        (
            "a sum of rows",
            3,
            "A:4,8 C:4",
            "for i, k in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"sum\"):
        v, r = T.axis.remap(\"SR\", [i, k])
        with T.init():
            C[v] = T.float32(0)
        C[v] = C[v] + A[v, r]",
        ),
        (
            "a product",
            4,
            "A:4,8 B:8,4 C:4,4",
            "for i, j, k in T.grid(T.int64(4), T.int64(4), T.int64(8)):
    with T.sblock(\"matmul\"):
        v, w, r = T.axis.remap(\"SSR\", [i, j, k])
        with T.init():
            C[v, w] = T.float32(0)
        C[v, w] = C[v, w] + A[v, r] * B[r, w]",
        ),
        (
            "a sum of squares is no product: both factors lie along the same axes",
            3,
            "A:4,8 C:4",
            "for i, k in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"square\"):
        v, r = T.axis.remap(\"SR\", [i, k])
        with T.init():
            C[v] = T.float32(0)
        C[v] = C[v] + A[v, r] * A[v, r]",
        ),
        (
            "a window",
            4,
            "A:10 C:8",
            "for i, k in T.grid(T.int64(8), T.int64(3)):
    with T.sblock(\"max_pool\"):
        v, r = T.axis.remap(\"SR\", [i, k])
        with T.init():
            C[v] = T.float32(0)
        C[v] = T.max(C[v], A[v + r])",
        ),
        (
            "a reduction that is spread out: softmax",
            4,
            "A:4,8 C:4,8",
            "M = T.sblock_alloc_buffer((T.int64(4),), \"float32\")
for i, k in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"max\"):
        v, r = T.axis.remap(\"SR\", [i, k])
        with T.init():
            M[v] = T.float32(0)
        M[v] = T.max(M[v], A[v, r])
for i, j in T.grid(T.int64(4), T.int64(8)):
    with T.sblock(\"norm\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        C[v, w] = A[v, w] - M[v]",
        ),
    ]);
}

#[test]
fn data_dependent_and_repeated_accesses_are_opaque() {
    check(&[
        (
            "places that values tell",
            8,
            "A:4 C:4",
            "for i in range(T.int64(4)):
    with T.sblock(\"scatter\"):
        v = T.axis.spatial(T.int64(4), i)
        C[T.Cast(\"int64\", A[v])] = A[v]",
        ),
        (
            "elements that others point at",
            8,
            "A:4 B:4 C:4",
            "for i in range(T.int64(4)):
    with T.sblock(\"take\"):
        v = T.axis.spatial(T.int64(4), i)
        C[v] = A[T.Cast(\"int64\", B[v])]",
        ),
        (
            "two elements at once",
            8,
            "A:4 C:8",
            "for i in range(T.int64(4)):
    with T.sblock(\"pairs\"):
        v = T.axis.spatial(T.int64(4), i)
        C[v] = A[v]
        C[v + T.int64(4)] = A[v]",
        ),
        (
            "a store at the sum of two axes",
            8,
            "A:4 C:4",
            "for i in range(T.int64(4)):
    with T.sblock(\"shift\"):
        v = T.axis.spatial(T.int64(4), i)
        C[(v + T.int64(1)) % T.int64(4)] = A[v]",
        ),
    ]);
}

#[test]
fn stated_op_pattern_is_kept() {
    let body = "T.func_attr({\"op_pattern\": 8})
for i in range(T.int64(4)):
    with T.sblock(\"exp\"):
        v = T.axis.spatial(T.int64(4), i)
        C[v] = T.exp(A[v])";
    assert_eq!(patterns(&prim_func("A:4 C:4", body)), [Some(8)]);
    // TVM treats the pattern 0 like a missing one.
    let none = body.replace("8}", "0}").replace("T.exp(A[v])", "A[T.int64(3) - v]");
    assert_eq!(patterns(&prim_func("A:4 C:4", &none)), [Some(2)]);
}

/// Checks [`op_pattern`] and [`is_spatial`] on each row of the table in `rx_loops::op_pattern`, and on one elementwise
/// function.
#[test]
fn classifications_differ_where_the_table_says() {
    let cases = [
        ("A[v]", true, 0),
        ("A[T.Cast(\"int64\", B[v])]", true, 8),
        ("T.if_then_else(v < T.int64(2), A[v], B[v - T.int64(2)])", true, 2),
    ];
    let block = |head: &str, value: &str| {
        format!(
            "for i in range(T.int64(4)):\n    with T.sblock(\"b\"):\n        v = T.axis.spatial(T.int64(4), i)\n{head}        C[v] = {value}"
        )
    };
    let mut cases: Vec<_> = cases.map(|(value, spatial, pattern)| (block("", value), spatial, pattern)).into();
    cases.push((block("        with T.init():\n            C[v] = T.float32(0)\n", "C[v] + A[v]"), false, 0));
    cases.push((block("        T.where(i < T.int64(3))\n", "A[v]"), false, 0));
    for (body, spatial, pattern) in cases {
        let module: Module = read(&prim_func("A:4 B:4 C:4", &body));
        let loops = module.prim_funcs().next().and_then(|function| function.loops()).expect("loops");
        assert_eq!((is_spatial(loops), op_pattern(loops).number()), (spatial, pattern), "{body}");
    }
}
