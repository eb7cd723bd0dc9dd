//! Functions whose warps multiply fragments on tensor cores (`T.tvm_mma_sync` and related intrinsics), as people write
//! them, compared with equivalent loops of one thread.

use crate::case::Case;
use crate::script;

/// A title, the parameters as (name, shape, dtype), a body for tensor cores, an equivalent body for one thread, and the
/// rule that must take the first body.
pub(crate) struct Pair {
    title: &'static str,
    params: &'static [(&'static str, &'static [i64], &'static str)],
    many: &'static str,
    one: &'static str,
    rule: &'static str,
}

pub(crate) const PAIRS: &[Pair] = &[
    Pair {
        title: "a warp to each tile, bound around all that it does",
        params: &[("a", &[32, 48], "float16"), ("b", &[48, 32], "float16"), ("out", &[32, 32], "float32")],
        many: "\
for r in T.thread_binding(2, thread=\"blockIdx.y\"):
    for c in T.thread_binding(2, thread=\"blockIdx.x\"):
        for tx in T.thread_binding(32, thread=\"threadIdx.x\"):
            fa = T.alloc_buffer((16, 16), \"float16\", scope=\"wmma.matrix_a\")
            fb = T.alloc_buffer((16, 16), \"float16\", scope=\"wmma.matrix_b\")
            fc = T.alloc_buffer((16, 16), \"float32\", scope=\"wmma.accumulator\")
            T.tvm_fill_fragment(fc.data, 16, 16, 16, 0, T.float32(1.5))
            for k in range(3):
                T.tvm_load_matrix_sync(fa.data, 16, 16, 16, 0, T.tvm_access_ptr(T.type_annotation(\"float16\"), a.data, r * 768 + k * 16, 768, 1), 48, \"row_major\")
                T.tvm_load_matrix_sync(fb.data, 16, 16, 16, 0, T.address_of(b[k * 16, c * 16]), 32, \"row_major\")
                T.tvm_mma_sync(fc.data, 0, fa.data, 0, fb.data, 0, fc.data, 0)
            T.tvm_store_matrix_sync(fc.data, 16, 16, 16, 0, T.tvm_access_ptr(T.type_annotation(\"float32\"), out.data, r * 512 + c * 16, 512, 2), 32, \"row_major\")",
        one: "\
for i, j in T.grid(32, 32):
    out[i, j] = T.float32(1.5)
    for k in range(48):
        out[i, j] = out[i, j] + T.Cast(\"float32\", a[i, k]) * T.Cast(\"float32\", b[k, j])",
        rule: "threads",
    },
    Pair {
        title: "two warps of a block, factors in the other order, fragments by number",
        params: &[("a", &[32, 32], "bfloat16"), ("b", &[32, 32], "bfloat16"), ("out", &[32, 32], "float32")],
        many: "\
for tx in T.thread_binding(64, thread=\"threadIdx.x\"):
    with T.sblock(\"warps\"):
        vx = T.axis.spatial(64, tx)
        fa = T.sblock_alloc_buffer((512,), \"bfloat16\", scope=\"wmma.matrix_a\")
        fb = T.sblock_alloc_buffer((32, 16), \"bfloat16\", scope=\"wmma.matrix_b\")
        fc = T.sblock_alloc_buffer((16, 32), \"float32\", scope=\"wmma.accumulator\")
        for j in range(2):
            T.tvm_fill_fragment(fc.data, 16, 16, 16, j, T.float32(0))
        for k in range(2):
            T.tvm_load_matrix_sync(fa.data, 16, 16, 16, k, T.tvm_access_ptr(T.type_annotation(\"bfloat16\"), a.data, k * 512 + vx // 32 * 16, 512, 1), 32, \"col_major\")
            for j in range(2):
                T.tvm_load_matrix_sync(fb.data, 16, 16, 16, j, T.tvm_access_ptr(T.type_annotation(\"bfloat16\"), b.data, j * 512 + k * 16, 512, 1), 32, \"col_major\")
                T.tvm_mma_sync(fc.data, j, fa.data, k, fb.data, j, fc.data, j)
        for j in range(2):
            T.tvm_store_matrix_sync(fc.data, 16, 16, 16, j, T.tvm_access_ptr(T.type_annotation(\"float32\"), out.data, j * 512 + vx // 32 * 16, 512, 2), 32, \"col_major\")",
        one: "\
for i, j in T.grid(32, 32):
    out[j, i] = T.float32(0)
    for k in range(32):
        out[j, i] = out[j, i] + T.Cast(\"float32\", a[k, i]) * T.Cast(\"float32\", b[j, k])",
        rule: "threads",
    },
    Pair {
        title: "threads that copy and wait by themselves",
        params: &[("a", &[16, 64], "float16"), ("b", &[64, 16], "float16"), ("out", &[16, 16], "float16")],
        many: "\
for tx in T.thread_binding(32, thread=\"threadIdx.x\"):
    sa = T.alloc_buffer((16, 16), \"float16\", scope=\"shared\")
    sb = T.alloc_buffer((16, 16), \"float16\", scope=\"shared\")
    fa = T.alloc_buffer((256,), \"float16\", scope=\"wmma.matrix_a\")
    fb = T.alloc_buffer((256,), \"float16\", scope=\"wmma.matrix_b\")
    fc = T.alloc_buffer((256,), \"float16\", scope=\"wmma.accumulator\")
    T.tvm_fill_fragment(fc.data, 16, 16, 16, 0, T.float16(0))
    for k in range(4):
        for e in range(8):
            sa[tx // 2, tx % 2 * 8 + e] = a[tx // 2, k * 16 + tx % 2 * 8 + e]
            sb[tx // 2, tx % 2 * 8 + e] = b[k * 16 + tx // 2, tx % 2 * 8 + e]
        T.tvm_storage_sync(\"shared\")
        T.tvm_load_matrix_sync(fa.data, 16, 16, 16, 0, sa.access_ptr(\"r\"), 16, \"row_major\")
        T.tvm_load_matrix_sync(fb.data, 16, 16, 16, 0, sb.access_ptr(\"r\"), 16, \"row_major\")
        T.tvm_mma_sync(fc.data, 0, fa.data, 0, fb.data, 0, fc.data, 0)
        T.tvm_storage_sync(\"shared\")
    T.tvm_store_matrix_sync(fc.data, 16, 16, 16, 0, out.access_ptr(\"w\"), 16, \"row_major\")",
        one: "\
for i, j in T.grid(16, 16):
    out[i, j] = T.float16(0)
    for k in range(64):
        out[i, j] = out[i, j] + a[i, k] * b[k, j]",
        rule: "threads",
    },
    Pair {
        title: "an axis of threads that is launched again and again beside them",
        params: &[("a", &[32, 16], "float16"), ("b", &[16, 16], "float16"), ("out", &[32, 16], "float32")],
        many: "\
ty = T.launch_thread(\"threadIdx.y\", 2)
tx = T.env_thread(\"threadIdx.x\")
sa = T.alloc_shared((512,), \"float16\")
sb = T.alloc_shared((256,), \"float16\")
fa = T.alloc_buffer((256,), \"float16\", scope=\"wmma.matrix_a\")
fb = T.alloc_buffer((256,), \"float16\", scope=\"wmma.matrix_b\")
fc = T.alloc_buffer((256,), scope=\"wmma.accumulator\")
T.tvm_fill_fragment(fc.data, 16, 16, 16, 0, T.float32(0))
for r in range(8):
    with T.launch_thread(tx, 32):
        sa[ty * 256 + r * 32 + tx] = a[ty * 16 + r * 2 + tx // 16, tx % 16]
with T.launch_thread(tx, 32):
    for v in T.vectorized(4):
        sb[ty * 128 + tx * 4 + v] = b[ty * 8 + tx // 4, tx % 4 * 4 + v]
T.tvm_load_matrix_sync(fa.data, 16, 16, 16, 0, T.tvm_access_ptr(T.type_annotation(\"float16\"), sa.data, ty * 256, 256, 1), 16, \"row_major\")
T.tvm_load_matrix_sync(fb.data, 16, 16, 16, 0, T.tvm_access_ptr(T.type_annotation(\"float16\"), sb.data, 0, 256, 1), 16, \"row_major\")
T.tvm_mma_sync(fc.data, 0, fa.data, 0, fb.data, 0, fc.data, 0)
T.tvm_store_matrix_sync(fc.data, 16, 16, 16, 0, T.tvm_access_ptr(T.type_annotation(\"float32\"), out.data, ty * 256, 256, 2), 16, \"row_major\")",
        one: "\
for i, j in T.grid(32, 16):
    out[i, j] = T.float32(0)
    for k in range(16):
        out[i, j] = out[i, j] + T.Cast(\"float32\", a[i, k]) * T.Cast(\"float32\", b[k, j])",
        rule: "threads",
    },
    Pair {
        title: "sums that are loaded, and kept beside the new ones",
        params: &[("a", &[16, 16], "int8"), ("b", &[16, 16], "int8"), ("out", &[2, 16, 16], "int32")],
        many: "\
for tx in T.thread_binding(32, thread=\"threadIdx.x\"):
    fa = T.alloc_buffer((16, 16), \"int8\", scope=\"wmma.matrix_a\")
    fb = T.alloc_buffer((16, 16), \"int8\", scope=\"wmma.matrix_b\")
    fc = T.alloc_buffer((16, 32), \"int32\", scope=\"wmma.accumulator\")
    T.tvm_fill_fragment(fc.data, 16, 16, 16, 0, 7)
    T.tvm_load_matrix_sync(fa.data, 16, 16, 16, 0, a.data, 16, \"row_major\")
    T.tvm_load_matrix_sync(fb.data, 16, 16, 16, 0, b.data, 16, \"row_major\")
    T.tvm_mma_sync(fc.data, 1, fa.data, 0, fb.data, 0, fc.data, 0)
    T.tvm_store_matrix_sync(fc.data, 16, 16, 16, 0, T.address_of(out[0, 0, 0]), 16, \"row_major\")
    T.tvm_store_matrix_sync(fc.data, 16, 16, 16, 1, T.address_of(out[1, 0, 0]), 16, \"row_major\")",
        one: "\
for i, j in T.grid(16, 16):
    out[0, i, j] = 7
    out[1, i, j] = 7
    for k in range(16):
        out[1, i, j] = out[1, i, j] + T.Cast(\"int32\", a[i, k]) * T.Cast(\"int32\", b[k, j])",
        rule: "threads",
    },
    Pair {
        title: "another shape than warps have here",
        params: &[("a", &[8, 16], "float16"), ("b", &[16, 32], "float16"), ("out", &[8, 32], "float32")],
        many: "\
for tx in T.thread_binding(32, thread=\"threadIdx.x\"):
    fa = T.alloc_buffer((8, 16), \"float16\", scope=\"wmma.matrix_a\")
    fb = T.alloc_buffer((16, 32), \"float16\", scope=\"wmma.matrix_b\")
    fc = T.alloc_buffer((8, 32), \"float32\", scope=\"wmma.accumulator\")
    T.tvm_fill_fragment(fc.data, 8, 32, 16, 0, T.float32(0))
    T.tvm_load_matrix_sync(fa.data, 8, 32, 16, 0, a.data, 16, \"row_major\")
    T.tvm_load_matrix_sync(fb.data, 8, 32, 16, 0, b.data, 32, \"row_major\")
    T.tvm_mma_sync(fc.data, 0, fa.data, 0, fb.data, 0, fc.data, 0)
    T.tvm_store_matrix_sync(fc.data, 8, 32, 16, 0, out.data, 32, \"row_major\")",
        one: "\
for i, j in T.grid(8, 32):
    out[i, j] = T.float32(0)
    for k in range(16):
        out[i, j] = out[i, j] + T.Cast(\"float32\", a[i, k]) * T.Cast(\"float32\", b[k, j])",
        rule: "fallback",
    },
    Pair {
        title: A_FACTOR_FROM_A_SUM,
        params: &[("b", &[16, 16], "float16"), ("out", &[16, 16], "float32")],
        many: "\
for tx in T.thread_binding(32, thread=\"threadIdx.x\"):
    fa = T.alloc_buffer((16, 16), \"float16\", scope=\"wmma.matrix_a\")
    fb = T.alloc_buffer((16, 16), \"float16\", scope=\"wmma.matrix_b\")
    fc = T.alloc_buffer((16, 16), \"float32\", scope=\"wmma.accumulator\")
    T.tvm_fill_fragment(fc.data, 16, 16, 16, 0, T.float32(2))
    if tx % 32 == 0:
        for i, j in T.grid(16, 16):
            fa[i, j] = T.Cast(\"float16\", fc[i, j])
    T.tvm_load_matrix_sync(fb.data, 16, 16, 16, 0, b.data, 16, \"row_major\")
    T.tvm_mma_sync(fc.data, 0, fa.data, 0, fb.data, 0, fc.data, 0)
    T.tvm_store_matrix_sync(fc.data, 16, 16, 16, 0, out.data, 16, \"row_major\")",
        one: "\
for i, j in T.grid(16, 16):
    out[i, j] = T.float32(2)
    for k in range(16):
        out[i, j] = out[i, j] + T.float32(2) * T.Cast(\"float32\", b[k, j])",
        rule: "fallback",
    },
];

/// The title of a pair whose body sets a factor to the elements of a sum, which other lanes hold.
const A_FACTOR_FROM_A_SUM: &str = "a factor from a sum";

pub(crate) fn cases(pair: &Pair) -> (Case, Case) {
    let buffer = |(name, shape, dtype): &(&str, &[i64], &str)| {
        let dims: Vec<String> = shape.iter().map(i64::to_string).collect();
        format!("{name}: T.Buffer(({},), \"{dtype}\")", dims.join(", "))
    };
    let params: Vec<String> = pair.params.iter().map(buffer).collect();
    let shapes: Vec<&[i64]> = pair.params.iter().map(|(_, shape, _)| *shape).collect();
    let head = |name: &str| format!("{name}({})", params.join(", "));
    let of = |name: &str, body| Case::new(pair.title, script::function(&head(name), body), &shapes).within(2e-2);
    (of("many", pair.many), of("one", pair.one))
}

#[test]
fn results_equal_those_of_one_thread() {
    for (many, one) in PAIRS.iter().map(cases) {
        let actual = many.expected().unwrap_or_else(|failure| panic!("{}: {failure:?}", many.name));
        let actual = actual.iter().map(|tensor| tensor.bytes().to_vec()).collect();
        many.compare_all(Ok(&actual), &one.expected()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn functions_keep_their_threads() {
    for pair in PAIRS {
        let (many, _) = cases(pair);
        let source = crate::source(std::slice::from_ref(&many));
        let is_taken = source.choices.iter().all(|choice| choice.rule == pair.rule);
        assert!(is_taken, "{}: {:?}", many.name, source.choices);
        assert_eq!(pair.rule == "threads", source.text.contains("rx_mma_"), "{}", many.name);
    }
}

#[test]
fn factor_from_a_sum_is_declined_with_a_reason() {
    let pair = PAIRS.iter().find(|pair| pair.title == A_FACTOR_FROM_A_SUM).expect("the pair");
    let source = crate::source(&[cases(pair).0]);
    let declined = source.choices[0].declined.iter().find(|(rule, _)| *rule == "threads");
    let why = "requires fragment operations that tensor cores have; found another";
    assert!(declined.is_some_and(|(_, said)| said == why), "{:?}", source.choices);
}

#[test]
fn kernels_agree_with_the_interpreter() {
    crate::simulated::agree(&PAIRS.iter().map(|pair| cases(pair).0).collect::<Vec<_>>());
}

#[test]
fn products_use_no_stack() {
    let cases: Vec<Case> = PAIRS.iter().filter(|pair| pair.rule == "threads").map(|pair| cases(pair).0).collect();
    crate::nvrtc::have_no_stack(&cases);
}
