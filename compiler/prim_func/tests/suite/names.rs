//! Tests of the checks of names and of calls of `T.` functions.

use rx_context::FileContext;
use rx_prim_func::names::unbound_names;
use rx_syntax::{Segment, Segments};
use std::sync::Arc;

/// Returns the severity and the start of the message of each diagnostic for a prim_func after module text.
fn found(module: &str, function: &str) -> Vec<String> {
    let mut file = FileContext::default();
    file.read(&Segment::new(module.into()));
    let segments = Segments::from_iter([Arc::new(Segment::new(function.into()))]);
    let found = unbound_names(&segments, &file);
    found
        .iter()
        .map(|found| format!("{}: {}", found.severity, found.message.split(" that").next().unwrap_or_default()))
        .collect()
}

#[test]
fn names_bound_before_or_by_the_file_are_known() {
    let module = "from tvm.script import tirx as TX\nfrom tvm.tirx import layout\nn = TypeVar(\"n\")\n";
    let function = "def f(A: T.Buffer((n, 4), \"float32\"), b: T.handle):\n    B = TX.match_buffer(b, (n, layout.size))\n    \
                    for i, j in T.grid(n, 4):\n        with T.sblock(\"B\") as block:\n            v, w = T.axis.remap(\"SS\", [i, j])\n            \
                    B[v, w] = T.comm_reducer(lambda x, y: x + y, [0.0])(A[v, w], len(block))\n    T.evaluate(v)\n";
    assert_eq!(found(module, function), Vec::<String>::new());
}

#[test]
fn others_are_reported_once() {
    let function =
        "def f(A: T.Buffer((M,), \"float32\")):\n    for i in range(M):\n        A[i] = A[k] + A[k] + Aa[i]\n";
    assert_eq!(
        found("M = 128\n", function),
        ["warning: `M` is a Python value", "error: `k` is not defined", "error: `Aa` is not defined"]
    );
}

#[test]
fn name_used_before_its_binding_is_an_error() {
    let function = "def f(A: T.Buffer((n, 4), \"float32\"), n: T.int32):\n    A[i] = A[0]\n    for i in range(n):\n        A[i] = A[0]\n";
    assert_eq!(found("", function), ["error: `i` is used before it is bound"]);
}

#[test]
fn t_has_the_members_of_tvm() {
    let function = "def f(A: T.Buffer((4,), \"float32\")):\n    A[0] = T.exq(A[1]) + T.frobnicate(A[2]) + T.f32x4(0)\n";
    assert_eq!(found("", function), ["error: `T` has no `exq`", "error: `T` has no `frobnicate`"]);
}

#[test]
fn t_has_the_members_of_older_releases() {
    let function =
        "def f(A: T.Buffer((4,), \"float32\")):\n    T.simdgroup_load(A.data, 0)\n    x = T.e4m3_float8x4()\n";
    assert_eq!(found("", function), Vec::<String>::new());
}

#[test]
fn buffers_have_elements_and_scalars_have_none() {
    let function = "def f(A: T.Buffer((4,), \"float32\")):\n    for i in range(4):\n        A[i] = i[0] + A * 2.0\n        \
                    A[T] = T.float32(1, 2)\n";
    assert_eq!(
        found("", function),
        [
            "error: `i` is a scalar, it has no elements",
            "error: `A` is a buffer; an element of it is `A[…]`",
            "error: T.float32: takes one value, more are passed",
            "error: `T` is no value",
        ]
    );
}

#[test]
fn a_block_with_axes_sees_no_loops_outside() {
    let function = "def f(A: T.Buffer((4, 4), \"float32\")):\n    for i, j in T.grid(4, 4):\n        with T.sblock(\"a\"):\n            \
                    v = T.axis.spatial(4, i)\n            T.where(j < 3)\n            for k in range(4):\n                \
                    A[v, k] = A[j, k]\n        with T.sblock(\"opaque\"):\n            A[i, j] = 0.0\n    T.reads()\n";
    assert_eq!(
        found("", function),
        [
            "error: the loop variable `j` is outside the block, which has its own axes",
            "error: `T.reads` is outside a block",
        ]
    );
}

#[test]
fn wrong_arguments_of_forms_are_errors() {
    let function = "def f(A: T.Buffer((4, 4), \"float32\")):\n    T.func_attr()\n    for i, j in T.grid(4):\n        \
                    with T.sblock(\"a\"):\n            v, w = T.axis.remap(\"SSS\", [i, j])\n            T.reads(A[v, w])\n            \
                    T.reads(A[v, w])\n            A[v, w] = 0.0\n        with T.sblock(\"b\"):\n            T.reads()\n";
    assert_eq!(
        found("", function),
        [
            "error: T.func_attr: argument `attrs` is missing",
            "error: the loop has 2 variables, `T.grid` has 1 extent",
            "error: T.axis.remap: \"SSS\" names 3 axes, 2 are bound",
            "error: the block has a `T.reads` already",
        ]
    );
}
