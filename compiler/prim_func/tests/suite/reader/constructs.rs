//! Tests of language constructs and their translation.

use super::corpus::read_all;
use super::round_trip;
use rx_syntax::document::FileKind;
use rx_tir::print::script;

/// Returns the printed header and body of a prim_func with these parameters and statements, without decorator and
/// attributes. One level of indentation is removed from each line.
pub(super) fn body_of(params: &str, body: &str) -> String {
    let mut text = format!("@T.prim_func\ndef f({params}):\n");
    body.lines().for_each(|line| text += &format!("    {line}\n"));
    let mut read = read_all(&text, FileKind::Rx);
    let func = read.remove(0).unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}"));
    round_trip(&text, &func);
    let printed = script(&func);
    let lines = printed.lines().skip(1).filter(|line| !line.contains("T.func_attr"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    lines.join("\n")
}

/// Returns only the printed body.
pub(super) fn body(params: &str, body: &str) -> String {
    let printed = body_of(params, body);
    printed.split_once('\n').map_or(String::new(), |(_, body)| body.to_owned())
}

/// Returns the value stored by `A[0] = value` to a buffer of `dtype`.
pub(super) fn value(dtype: &str, value: &str) -> String {
    let params =
        format!("A: T.Buffer((8,), \"{dtype}\"), B: T.Buffer((8, 8), \"float16\"), n: T.int64, i: T.int32, b: T.bool");
    let printed = body(&params, &format!("A[0] = {value}"));
    printed.trim_start_matches("A[0] = ").to_owned()
}

#[test]
fn numbers_take_tvms_dtypes() {
    assert_eq!(value("int32", "2 * 3 + i"), "6 + i");
    assert_eq!(value("int64", "n + 1"), "n + T.int64(1)");
    assert_eq!(value("int64", "n + i"), "n + T.Cast(\"int64\", i)");
    assert_eq!(value("float32", "1"), "T.float32(1.0)");
    assert_eq!(value("float32", "B[0, 0] * 2.0"), "T.Cast(\"float32\", B[0, 0]) * T.float32(2.0)");
    assert_eq!(value("float16", "B[0, 0] * T.float16(2)"), "B[0, 0] * T.float16(2.0)");
    assert_eq!(value("float32", "T.float32(\"-inf\")"), "T.float32(\"-inf\")");
    assert_eq!(value("uint64", "T.uint64(0xFFFFFFFFFFFFFFFF)"), "T.uint64(18446744073709551615)");
    assert_eq!(value("int8", "T.min_value(\"int8\")"), "T.int8(-128)");
    assert_eq!(value("float32", "T.max_value(\"float32\")"), "T.float32(3.4028234663852886e38)");
}

#[test]
fn operators_and_functions() {
    assert_eq!(
        value("bool", "0 <= n < 4 and not (i == 2 or b)"),
        "T.int64(0) <= n and n < T.int64(4) and not (i == 2 or b)"
    );
    assert_eq!(
        value("int64", "T.floordiv(n, 3) + T.truncmod(n, T.int64(2))"),
        "n // T.int64(3) + T.truncmod(n, T.int64(2))"
    );
    assert_eq!(value("int32", "T.shift_right(i, 1) & ~i | T.bitwise_xor(i, 7)"), "i >> 1 & ~i | i ^ 7");
    assert_eq!(value("int32", "i - (i - 1) - -1"), "i - (i - 1) - -1");
    assert_eq!(value("int32", "-T.int32(1) * (i % 4)"), "-T.int32(1) * (i % 4)");
    assert_eq!(value("int32", "T.Div(i, 2) + T.ceildiv(i, 4)"), "T.Div(i, 2) + (i + 4 - 1) // 4");
    assert_eq!(value("float16", "T.exp(B[i, 0]) + T.sigmoid(B[0, i])"), "T.exp(B[i, 0]) + T.sigmoid(B[0, i])");
    assert_eq!(value("float16", "B[0, 0] if b else B[1, 1]"), "T.if_then_else(b, B[0, 0], B[1, 1])");
    assert_eq!(value("float16", "T.Select(b, B[0, 0], T.float16(0))"), "T.if_then_else(b, B[0, 0], T.float16(0.0))");
    assert_eq!(
        value("float32", "T.reinterpret(\"float32\", T.Cast(\"int32\", B[0, 0]))"),
        "T.reinterpret(\"float32\", T.Cast(\"int32\", B[0, 0]))"
    );
    assert_eq!(value("int32", "T.clz(n) - 64 + T.likely(i)"), "T.clz(n) - 64 + i");
    assert_eq!(value("int32", "T.Let(x * x, where={x: i + 1})"), "(i + 1) * (i + 1)");
    assert_eq!(value("float32", "T.fabs(T.pow(T.float32(2), 3))"), "T.abs(T.pow(T.float32(2.0), T.float32(3.0)))");
}

#[test]
fn blocks_of_both_spellings() {
    let params = "a: T.handle, b: T.handle";
    let classic = "n = T.int64()\nA = T.match_buffer(a, (n, 16), \"float32\")\nB = T.match_buffer(b, [n], \"float32\")\n\
                   C = T.alloc_buffer([n])\nfor i, k in T.grid(n, 16):\n    with T.block(\"sum\"):\n        \
                   vi, vk = T.axis.remap(\"SR\", [i, k])\n        T.reads(A[vi, vk])\n        T.writes(C[vi])\n        \
                   T.block_attr({\"a\": 1})\n        T.where(i < n)\n        with T.init():\n            C[vi] = 0.0\n        \
                   C[vi] += A[vi, vk]\nfor i in T.parallel(n):\n    with T.block(\"\"):\n        v = T.axis.S(n, i)\n        \
                   B[v] = C[v]";
    let expected = "n = T.int64()\nA = T.match_buffer(var_A, (n, 16), \"float32\")\nB = T.match_buffer(var_B, (n,), \"float32\")\n\
                    # with T.sblock(\"root\"):\nC = T.sblock_alloc_buffer((n,), \"float32\")\nfor i, k in T.grid(n, 16):\n    \
                    with T.sblock(\"sum\"):\n        vi, vk = T.axis.remap(\"SR\", [i, k])\n        T.where(i < n)\n        \
                    with T.init():\n            C[vi] = T.float32(0.0)\n        C[vi] = C[vi] + A[vi, vk]\n\
                    for i in T.parallel(n):\n    with T.sblock(\"\"):\n        v = T.axis.spatial(n, i)\n        B[v] = C[v]";
    assert_eq!(body(params, classic), expected);
    let current = classic.replace("T.block", "T.sblock").replace("T.alloc_buffer", "T.sblock_alloc_buffer");
    assert_eq!(body(params, &current), expected);
}

#[test]
fn handles_that_are_opened_are_buffers_and_others_are_unused() {
    let params = "a: T.handle, b: T.handle(\"float32\", \"global\"), c: T.handle, n: T.int64";
    let text = "T.evaluate(a)\nif n > 2:\n    B = T.decl_buffer((n, 4), data=b)\n    C = T.Buffer((4,), data=c)\n    C[0] = B[1, 2]";
    let expected = "def f(a: T.handle, B: T.Buffer((\"n\", 4), \"float32\"), C: T.Buffer((4,), \"float32\"), n: T.int64):\n\
                    if n > T.int64(2):\n    C[0] = B[1, 2]";
    assert_eq!(body_of(params, text), expected);
}

#[test]
fn loops_of_every_kind() {
    let params = "A: T.Buffer((64,), \"float32\"), n: T.int32";
    let loops = "for i in range(n, 64):\n    A[i] = 1\nfor i in T.serial(0, n, annotations={\"a\": 1}):\n    A[i] = 1\n\
                 for i in T.thread_binding(4, thread=\"threadIdx.x\"):\n    for j in T.unroll(2, 4):\n        A[i + j] = 1\n\
                 for i, j in T.grid(4, (1, 3)):\n    pass\nfor i in range(0, n, 3):\n    A[i] = 1\n\
                 for i in range(4):\n    for j in range(i):\n        A[j] = 1";
    let expected = "for i in range(n, 64):\n    A[i] = T.float32(1.0)\nfor i in range(n):\n    A[i] = T.float32(1.0)\n\
                    for i in T.thread_binding(4, thread=\"threadIdx.x\"):\n    for j in T.unroll(2, 4):\n        \
                    A[i + j] = T.float32(1.0)\nfor i in range(4):\n    for j in range(1, 3):\n        T.evaluate(0)\n\
                    for i in range((n + 2) // 3):\n    A[i * 3] = T.float32(1.0)\n\
                    for i in range(4):\n    for j in range(i):\n        A[j] = T.float32(1.0)";
    assert_eq!(body(params, loops), expected);
}

#[test]
fn variables_are_lets_unless_they_are_stored_to() {
    let params = "A: T.Buffer((64,), \"int32\")";
    let text = "x: T.let[T.int32] = A[0]\ny = x + 1\nz: T.int64 = y\ncount: T.int32 = 0\nwhile count < 4:\n    \
                count = count + 1\n    if A[count] > 2:\n        A[count] = x\n    elif y == 1:\n        A[0] = 1\n    \
                else:\n        count += 2\nA[z] = y\nassert count == 4, \"not four\"\nT.evaluate(A[1])";
    let expected = "# with T.sblock(\"root\"):\ncount = T.sblock_alloc_buffer((1,), \"int32\", scope=\"local\")\n\
                    x: T.let[T.int32] = A[0]\ny: T.let[T.int32] = x + 1\nz: T.let[T.int64] = T.Cast(\"int64\", y)\n\
                    count[0] = 0\nwhile count[0] < 4:\n    count[0] = count[0] + 1\n    if A[count[0]] > 2:\n        \
                    A[count[0]] = x\n    elif y == 1:\n        A[0] = 1\n    else:\n        count[0] = count[0] + 2\n\
                    A[z] = y\nassert count[0] == 4, (\"RuntimeError\", [\"not four\"])\nT.evaluate(A[1])";
    assert_eq!(body(params, text), expected);
}

#[test]
fn views_become_accesses_of_the_viewed_buffer() {
    let params = "A: T.Buffer((16, 8), \"float32\"), n: T.int32";
    let region = "for i in range(4):\n    with T.sblock(\"b\"):\n        W = T.match_buffer(A[i * 4:i * 4 + 4, n:n + 2], (4, 2))\n        \
                  R = T.match_buffer(W[1, 0:2], (2,))\n        W[2, 1] = R[0]";
    let expected = "for i in range(4):\n    with T.sblock(\"b\"):\n        A[i * 4 + 2, n + 1] = A[i * 4 + 1, n]";
    assert_eq!(body(params, region), expected);
    let flat = "F = T.decl_buffer((128,), data=A.data)\nV = A.view(4, 32)\nF[n] = V[1, 2]";
    assert_eq!(body(params, flat), "A[n // 8, n % 8] = A[4, 2]");
    let memory = "p = T.allocate([16], \"float32\", \"local\")\nB = T.Buffer((4, 4), data=p, scope=\"local\")\nB[n, 1] = A[0, 0]";
    let expected = "# with T.sblock(\"root\"):\np = T.sblock_alloc_buffer((16,), \"float32\", scope=\"local\")\np[n * 4 + 1] = A[0, 0]";
    assert_eq!(body(params, memory), expected);
}

#[test]
fn vectors_become_loops_over_lanes() {
    let params = "A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\"), x: T.int32";
    let text = "A[x * 4:x * 4 + 4] = B[T.Ramp(x, 2, 4)] * T.Broadcast(B[0], 4) + A[x * 4:x * 4 + 4]";
    let expected = "for lane in T.vectorized(4):\n    A[x * 4 + lane] = B[x + lane * 2] * B[0] + A[x * 4 + lane]";
    assert_eq!(body(params, text), expected);
}

#[test]
fn threads_are_loops_over_the_rest_of_the_body() {
    let params = "A: T.Buffer((64,), \"float32\")";
    let text = "bx = T.launch_thread(\"blockIdx.x\", 4)\nB = T.alloc_local((1,))\nwith T.launch_thread(\"threadIdx.x\", 16) as tx:\n    \
                B[0] = A[tx]\n    A[bx * 16 + tx] = B[0]";
    let expected = "# with T.sblock(\"root\"):\nB = T.sblock_alloc_buffer((1,), \"float32\", scope=\"local\")\n\
                    for bx in T.thread_binding(4, thread=\"blockIdx.x\"):\n    \
                    for tx in T.thread_binding(16, thread=\"threadIdx.x\"):\n        B[0] = A[tx]\n        \
                    A[bx * 16 + tx] = B[0]";
    assert_eq!(body(params, text), expected);
}

#[test]
fn parameters_of_every_kind() {
    let printed = body_of(
        "A: T.Buffer((\"n\", 4), \"float32\"), n: T.int64, S: T.Buffer((4, 4), \"int8\", strides=[8, 1]), O: T.Buffer((), \"bool\")",
        "O[()] = n > 2",
    );
    let expected = "def f(A: T.Buffer((\"n\", 4), \"float32\"), n: T.int64, S: T.Buffer((4, 4), \"int8\", strides=(8, 1)), O: T.Buffer((), \"bool\")):\n\
                    O[()] = n > T.int64(2)";
    assert_eq!(printed, expected);
    // Variables of the module, of the header and of quoted shapes.
    let module =
        "m = TypeVar(\"m\")\n@T.prim_func\ndef f[k](A: T.Buffer((m, k, \"q\"), \"int8\")):\n    A[0, 0, 0] = m\n";
    let func = read_all(module, FileKind::Rx).remove(0).expect("it is right");
    let symbols: Vec<String> =
        func.symbols.iter().map(|symbol| format!("{} {}", func.var(*symbol).name, func.var(*symbol).dtype)).collect();
    assert_eq!(symbols, ["m int64", "k int64", "q int32"]);
    round_trip(module, &func);
}
