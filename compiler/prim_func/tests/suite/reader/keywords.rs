//! Tests of keyword arguments of `T.` functions.

use super::constructs::{body, body_of, value};
use rx_prim_func::functions::{ParamKind, find};

/// Returns the call with all its arguments as keywords, in reverse order.
fn by_name(function: &str, arguments: &[&str]) -> String {
    let known = find(function).expect("the table has it");
    let named = known.params.iter().filter(|param| param.kind == ParamKind::Positional);
    let passed: Vec<String> = named.zip(arguments).map(|(param, value)| format!("{}={value}", param.name)).collect();
    format!("T.{function}({})", passed.into_iter().rev().collect::<Vec<_>>().join(", "))
}

#[test]
fn arguments_by_name_are_read_as_by_position() {
    let calls: &[(&str, &str, &[&str])] = &[
        ("int32", "if_then_else", &["b", "i", "2"]),
        ("int32", "Select", &["b", "i", "2"]),
        ("int32", "floordiv", &["i", "3"]),
        ("int32", "floormod", &["i", "3"]),
        ("int32", "truncdiv", &["i", "3"]),
        ("int32", "truncmod", &["i", "3"]),
        ("int32", "ceildiv", &["i", "3"]),
        ("int32", "FloorDiv", &["i", "3"]),
        ("int32", "Sub", &["i", "3"]),
        ("int32", "shift_left", &["i", "3"]),
        ("int32", "shift_right", &["i", "3"]),
        ("int32", "bitwise_and", &["i", "3"]),
        ("int32", "max", &["i", "3"]),
        ("int32", "min", &["i", "3"]),
        ("bool", "LT", &["i", "3"]),
        ("float32", "Cast", &["\"float32\"", "i"]),
        ("float32", "cast", &["i", "\"float32\""]),
        ("float32", "reinterpret", &["\"float32\"", "i"]),
        ("float32", "pow", &["T.float32(2)", "T.float32(3)"]),
        ("float32", "power", &["T.float32(2)", "T.float32(3)"]),
        ("float32", "atan2", &["T.float32(2)", "T.float32(3)"]),
        ("float32", "fmod", &["T.float32(2)", "T.float32(3)"]),
        ("float32", "fma", &["T.float32(2)", "T.float32(3)", "T.float32(4)"]),
        ("float32", "exp", &["T.float32(2)"]),
        ("bool", "isinf", &["T.float32(2)"]),
        ("int32", "likely", &["i"]),
        ("bool", "filter", &["i", "i < 3"]),
    ];
    for (dtype, function, arguments) in calls {
        let by_position = format!("T.{function}({})", arguments.join(", "));
        assert_eq!(value(dtype, &by_name(function, arguments)), value(dtype, &by_position), "{function}");
    }
}

#[test]
fn keywords_after_positions_are_bound_by_name() {
    assert_eq!(value("int32", "T.if_then_else(b, f=i, t=2)"), value("int32", "T.if_then_else(b, 2, i)"));
    assert_eq!(value("int32", "T.cast(dtype=\"int32\", src=n)"), value("int32", "T.cast(n, \"int32\")"));
    // TVM's wrappers move the keyword `dtype` to the front or ignore it.
    assert_eq!(
        value("float32", "T.reinterpret(i, dtype=\"float32\")"),
        value("float32", "T.reinterpret(\"float32\", i)")
    );
    assert_eq!(value("float32", "T.exp(T.float32(1), dtype=\"float32\")"), value("float32", "T.exp(T.float32(1))"));
    assert_eq!(value("int32", "T.floordiv(i, 3, span=None)"), value("int32", "T.floordiv(i, 3)"));
}

#[test]
fn loops_axes_and_buffers_take_arguments_by_name() {
    let params = "A: T.Buffer(dtype=\"float32\", shape=(8,)), n: T.int32";
    let same = |named: &str, plain: &str| assert_eq!(body(params, named), body(params, plain));
    same("for i in T.serial(stop=8, start=2):\n    A[i] = 0", "for i in T.serial(2, 8):\n    A[i] = 0");
    same("for i in T.serial(start=8):\n    A[i] = 0", "for i in T.serial(8):\n    A[i] = 0");
    same("for i in T.unroll(step=2, stop=8, start=0):\n    A[i] = 0", "for i in T.unroll(0, 8, step=2):\n    A[i] = 0");
    same(
        "for i in T.thread_binding(thread=\"threadIdx.x\", start=8):\n    A[i] = 0",
        "for i in T.thread_binding(8, thread=\"threadIdx.x\"):\n    A[i] = 0",
    );
    same(
        "for i in range(8):\n    with T.sblock(name=\"a\"):\n        v = T.axis.spatial(binding=i, dom=8)\n        T.where(predicate=i < n)\n        A[v] = 0",
        "for i in range(8):\n    with T.sblock(\"a\"):\n        v = T.axis.spatial(8, i)\n        T.where(i < n)\n        A[v] = 0",
    );
    same(
        "for i in range(8):\n    with T.sblock(\"a\"):\n        v, = T.axis.remap(bindings=[i], kinds=\"S\")\n        A[v] = 0",
        "for i in range(8):\n    with T.sblock(\"a\"):\n        v, = T.axis.remap(\"S\", [i])\n        A[v] = 0",
    );
    let allocated = "B = T.alloc_buffer((8,), scope=\"local\")\nB[0] = A[0]\nA[1] = B[0]";
    same(&allocated.replace("scope=", "\"float32\", None, None, None, 0, "), allocated);
    let opened = |call: &str| body_of("a: T.handle", &format!("A = T.match_buffer({call})\nA[0] = 1"));
    assert_eq!(opened("dtype=\"int32\", param=a, shape=(4,)"), opened("a, (4,), \"int32\""));
}
