//! Functions with loops over threads, as people write them, compared with equivalent loops of one thread. For example,
//! their threads exchange values through shared memory, reduce values together, or exit early; some rely on barriers
//! that the compiler inserts.

use crate::case::Case;
use crate::script;

/// A title, the shapes of the parameters, a body for many threads, and an equivalent body for one thread.
pub(crate) struct Pair {
    title: &'static str,
    shapes: &'static [&'static [i64]],
    many: &'static str,
    one: &'static str,
}

pub(crate) const PAIRS: &[Pair] = &[
    Pair {
        title: "elements turned round in memory of the block",
        shapes: &[&[3, 64], &[3, 64]],
        many: "\
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for t in T.thread_binding(64, thread=\"threadIdx.x\"):
        with T.sblock(\"turn\"):
            sh = T.sblock_alloc_buffer((64,), scope=\"shared\")
            sh[t] = x[b, t]
            T.tvm_storage_sync(\"shared\", T.bool(False), -1)
            out[b, t] = sh[63 - t]",
        one: "\
for b, t in T.grid(3, 64):
    out[b, t] = x[b, 63 - t]",
    },
    Pair {
        title: "waits that are not written: in front of what others wrote, and of the next round",
        shapes: &[&[3, 32], &[3, 32]],
        many: "\
b = T.launch_thread(\"blockIdx.x\", 3)
t = T.launch_thread(\"threadIdx.x\", 32)
sh = T.alloc_shared((32,))
sum_of = T.alloc_local((1,))
sum_of[0] = T.float32(0)
for k in range(3):
    sh[t] = x[b, t] * T.Cast(\"float32\", k + 1)
    sum_of[0] = sum_of[0] + sh[31 - t]
out[b, t] = sum_of[0]",
        one: "\
for b, t in T.grid(3, 32):
    out[b, t] = x[b, 31 - t] + x[b, 31 - t] * T.float32(2) + x[b, 31 - t] * T.float32(3)",
    },
    Pair {
        title: "loops that do not start at 0 around loops over threads",
        shapes: &[&[4, 12], &[4, 12]],
        many: "\
for b in T.thread_binding(4, thread=\"blockIdx.x\"):
    with T.sblock(\"staged\"):
        sh = T.sblock_alloc_buffer((64,), scope=\"shared\")
        for i in range(2, 12):
            for t in T.thread_binding(32, thread=\"threadIdx.x\"):
                sh[i] = x[b, i] * T.float32(2)
        for j in range(2, 12):
            for t in T.thread_binding(32, thread=\"threadIdx.x\"):
                out[b, j] = sh[j]",
        one: "\
for b, j in T.grid(4, 10):
    out[b, j + 2] = x[b, j + 2] * T.float32(2)",
    },
    Pair {
        title: "a scan; each thread keeps the value that it loaded before others store",
        shapes: &[&[3, 64], &[3, 64]],
        many: "\
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for t in T.thread_binding(64, thread=\"threadIdx.x\"):
        with T.sblock(\"scan\"):
            sh = T.sblock_alloc_buffer((64,), scope=\"shared\")
            sh[t] = x[b, t]
            T.tvm_storage_sync(\"shared\")
            for s in range(6):
                step: T.let[T.int32] = T.shift_left(1, s)
                left: T.let[T.float32] = T.if_then_else(step <= t, sh[t - step], T.float32(0))
                T.tvm_storage_sync(\"shared\")
                sh[t] = sh[t] + left
                T.tvm_storage_sync(\"shared\")
            out[b, t] = sh[t]",
        one: "\
for b, t in T.grid(3, 64):
    out[b, t] = T.float32(0)
    for k in range(t + 1):
        out[b, t] = out[b, t] + x[b, k]",
    },
    Pair {
        title: "sums over threads along x, then y, then all",
        shapes: &[&[4, 8, 16], &[4, 8, 16, 3]],
        many: "\
for b in T.thread_binding(4, thread=\"blockIdx.x\"):
    for ty in T.thread_binding(8, thread=\"threadIdx.y\"):
        for tx in T.thread_binding(16, thread=\"threadIdx.x\"):
            with T.sblock(\"sums\"):
                t0 = T.sblock_alloc_buffer((3,), scope=\"local\")
                with T.sblock(\"along_x\"):
                    T.attr(T.comm_reducer(lambda a, b: a + b, [T.float32(0)]), \"reduce_scope\", 0)
                    T.tvm_thread_allreduce(T.uint32(1), x[b, ty, tx], T.bool(True), t0[0], tx)
                with T.sblock(\"along_y\"):
                    T.attr(T.comm_reducer(lambda a, b: T.max(a, b), [T.min_value(\"float32\")]), \"reduce_scope\", 0)
                    T.tvm_thread_allreduce(T.uint32(1), x[b, ty, tx], tx % 2 == 0 or ty > 2, t0[1], ty)
                with T.sblock(\"all\"):
                    T.attr(T.comm_reducer(lambda a, b: b + a, [T.float32(0)]), \"reduce_scope\", 0)
                    T.tvm_thread_allreduce(T.uint32(1), t0[0] + x[b, ty, tx], T.bool(True), t0[2], tx, ty)
                for k in range(3):
                    out[b, ty, tx, k] = t0[k]",
        one: "\
rows = T.sblock_alloc_buffer((8,))
all_of = T.sblock_alloc_buffer((1,))
for b in range(4):
    for ty in range(8):
        rows[ty] = T.float32(0)
        for tx in range(16):
            rows[ty] = rows[ty] + x[b, ty, tx]
    all_of[0] = T.float32(0)
    for ty, tx in T.grid(8, 16):
        all_of[0] = all_of[0] + rows[ty] + x[b, ty, tx]
    for ty, tx in T.grid(8, 16):
        out[b, ty, tx, 0] = rows[ty]
        out[b, ty, tx, 2] = all_of[0]
        out[b, ty, tx, 1] = T.min_value(\"float32\")
        for k in range(8):
            if tx % 2 == 0 or k > 2:
                out[b, ty, tx, 1] = T.max(out[b, ty, tx, 1], x[b, k, tx])",
    },
    Pair {
        title: "sums over threads along x and z, which are no neighbours",
        shapes: &[&[2, 3, 2, 5], &[2, 3, 2, 5]],
        many: "\
for b in T.thread_binding(2, thread=\"blockIdx.x\"):
    tz = T.launch_thread(\"threadIdx.z\", 3)
    ty = T.launch_thread(\"threadIdx.y\", 2)
    tx = T.launch_thread(\"threadIdx.x\", 5)
    t0 = T.alloc_local((1,))
    with T.attr(T.comm_reducer(lambda a, b: a + b, [T.float32(0)]), \"reduce_scope\", 0):
        T.tvm_thread_allreduce(T.uint32(1), x[b, tz, ty, tx], T.bool(True), t0.data, tx, tz)
    out[b, tz, ty, tx] = t0[0] * x[b, tz, ty, tx]",
        one: "\
sums = T.sblock_alloc_buffer((2,))
for b in range(2):
    for ty in range(2):
        sums[ty] = T.float32(0)
        for tz, tx in T.grid(3, 5):
            sums[ty] = sums[ty] + x[b, tz, ty, tx]
    for tz, ty, tx in T.grid(3, 2, 5):
        out[b, tz, ty, tx] = sums[ty] * x[b, tz, ty, tx]",
    },
    Pair {
        title: "a maximum and where it is, at once",
        shapes: &[&[5, 48], &[5, 2]],
        many: "\
for b in T.thread_binding(5, thread=\"blockIdx.x\"):
    for t in T.thread_binding(48, thread=\"threadIdx.x\"):
        with T.sblock(\"argmax\"):
            at = T.sblock_alloc_buffer((1,), \"int32\", scope=\"local\")
            most = T.sblock_alloc_buffer((1,), scope=\"local\")
            T.attr(T.comm_reducer(lambda i, a, j, b: (T.Select(a > b or a == b and i < j, i, j), T.Select(a > b or a == b and i < j, a, b)), [T.int32(1000), T.min_value(\"float32\")]), \"reduce_scope\", 0)
            T.tvm_thread_allreduce(T.uint32(2), t, x[b, t], t != 7, at[0], most[0], t)
            if t == 0:
                out[b, 0] = T.Cast(\"float32\", at[0])
                out[b, 1] = most[0]",
        one: "\
for b in range(5):
    out[b, 0] = T.float32(1000)
    out[b, 1] = T.min_value(\"float32\")
    for t in range(48):
        if t != 7 and x[b, t] > out[b, 1]:
            out[b, 0] = T.Cast(\"float32\", t)
            out[b, 1] = x[b, t]",
    },
    Pair {
        title: "rounds that all threads leave alike, and a choice that all make",
        shapes: &[&[4, 32], &[4, 32]],
        many: "\
for b in T.thread_binding(4, thread=\"blockIdx.x\"):
    for t in T.thread_binding(32, thread=\"threadIdx.x\"):
        with T.sblock(\"rounds\"):
            sh = T.sblock_alloc_buffer((32,), scope=\"shared\")
            left = T.sblock_alloc_buffer((1,), \"int32\", scope=\"local\")
            mine = T.sblock_alloc_buffer((1,), scope=\"local\")
            left[0] = b + 1
            mine[0] = x[b, t]
            while T.tvm_thread_invariant(left[0] > 0):
                sh[t] = mine[0]
                T.tvm_storage_sync(\"shared\")
                if left[0] % 2 == 0:
                    mine[0] = sh[(t + 1) % 32]
                    T.tvm_storage_sync(\"shared\")
                else:
                    mine[0] = sh[(t + 3) % 32] + T.float32(1)
                    T.tvm_storage_sync(\"shared\")
                left[0] = left[0] - 1
            out[b, t] = mine[0]",
        one: "\
for b, t in T.grid(4, 32):
    out[b, t] = x[b, (t + (b + 1) // 2 + (b + 2) // 2 * 3) % 32] + T.Cast(\"float32\", (b + 2) // 2)",
    },
    Pair {
        title: "loops bound again inside, over fewer threads",
        shapes: &[&[3, 64], &[3, 64]],
        many: "\
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for t in T.thread_binding(64, thread=\"threadIdx.x\"):
        with T.sblock(\"some\"):
            sh = T.sblock_alloc_buffer((64,), scope=\"shared\")
            for u in T.thread_binding(32, thread=\"threadIdx.x\"):
                for k in range(2):
                    with T.sblock(\"load\"):
                        i = T.axis.spatial(64, u * 2 + k)
                        sh[i] = x[b, i]
            T.tvm_storage_sync(\"shared\")
            for u in T.thread_binding(64, thread=\"threadIdx.x\"):
                out[b, u] = sh[(u * 5 + 3) % 64] + sh[63 - u]",
        one: "\
for b, t in T.grid(3, 64):
    out[b, t] = x[b, (t * 5 + 3) % 64] + x[b, 63 - t]",
    },
    Pair {
        title: "a count that all threads keep alike, and an element that only one may store",
        shapes: &[&[6, 40], &[6, 2]],
        many: "\
for b in T.thread_binding(6, thread=\"blockIdx.x\"):
    for t in T.thread_binding(40, thread=\"threadIdx.x\"):
        with T.sblock(\"count\"):
            sh = T.sblock_alloc_buffer((40,), scope=\"shared\")
            count = T.sblock_alloc_buffer((1,), \"int32\", scope=\"local\")
            sum_of = T.sblock_alloc_buffer((1,), scope=\"local\")
            sh[t] = x[b, t]
            count[0] = 0
            sum_of[0] = T.float32(0)
            T.tvm_storage_sync(\"shared\")
            for k in range(10):
                count[0] = count[0] + k
                sum_of[0] = sum_of[0] + sh[(count[0] + t * 0) % 40]
                T.tvm_storage_sync(\"shared\")
                sh[t] = sh[t] + T.float32(1)
                T.tvm_storage_sync(\"shared\")
            out[b, 0] = T.Cast(\"float32\", count[0])
            out[b, 1] = sum_of[0]",
        one: "\
count = T.sblock_alloc_buffer((1,), \"int32\")
for b in range(6):
    count[0] = 0
    out[b, 1] = T.float32(0)
    for k in range(10):
        count[0] = count[0] + k
        out[b, 1] = out[b, 1] + x[b, count[0] % 40] + T.Cast(\"float32\", k)
    out[b, 0] = T.Cast(\"float32\", count[0])",
    },
    Pair {
        title: "two launches in a row: the second reads what other blocks of the first wrote, and nobody waits in it",
        shapes: &[&[3, 64], &[3, 64]],
        many: "\
turned = T.alloc_buffer((3, 64))
with T.attr(0, \"hand_threaded\", 0):
    b = T.launch_thread(\"blockIdx.x\", 3)
    t = T.launch_thread(\"threadIdx.x\", 64)
    sh = T.alloc_shared((64,))
    sh[t] = x[b, t]
    T.tvm_storage_sync(\"shared\")
    turned[b, t] = sh[63 - t]
with T.attr(0, \"hand_threaded\", 0):
    t = T.launch_thread(\"threadIdx.x\", 32)
    b = T.launch_thread(\"blockIdx.x\", 6)
    own = T.alloc_local((1,))
    own[0] = turned[2 - b // 2, b % 2 * 32 + t]
    out[b // 2, b % 2 * 32 + t] = own[0] + x[b // 2, b % 2 * 32 + t]",
        one: "\
for b, t in T.grid(3, 64):
    out[b, t] = x[2 - b, 63 - t] + x[b, t]",
    },
    Pair {
        title: "threads that leave rounds and loops, and return",
        shapes: &[&[3, 64], &[3, 64]],
        many: "\
b = T.launch_thread(\"blockIdx.x\", 3)
t = T.launch_thread(\"threadIdx.x\", 64)
own = T.alloc_local((1,))
own[0] = T.float32(0)
for k in range(64):
    if x[b, (t + k) % 64] < T.float32(0):
        continue
    own[0] = own[0] + T.float32(1)
    if own[0] == T.float32(5):
        break
out[b, t] = own[0]
if t % 3 == 0:
    T.thread_return()
out[b, t] = out[b, t] + T.float32(100)",
        one: "\
for b, t in T.grid(3, 64):
    out[b, t] = T.float32(0)
    for k in range(64):
        if x[b, (t + k) % 64] >= T.float32(0) and out[b, t] < T.float32(5):
            out[b, t] = out[b, t] + T.float32(1)
    if t % 3 != 0:
        out[b, t] = out[b, t] + T.float32(100)",
    },
    Pair {
        title: "a maximum and where it is, of a block that threads reduce: the first of equals in the order of threads",
        shapes: &[&[3, 40], &[3, 2]],
        many: "\
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    with T.sblock(\"of_row\"):
        best = T.sblock_alloc_buffer((1,), scope=\"shared\")
        place = T.sblock_alloc_buffer((1,), \"int32\", scope=\"shared\")
        for t in T.thread_binding(16, thread=\"threadIdx.x\"):
            for k in range(3):
                with T.sblock(\"argmax\"):
                    vb = T.axis.spatial(3, b)
                    vk = T.axis.reduce(40, k * 16 + t)
                    T.where(k * 16 + t < 40)
                    with T.init():
                        place[0] = -1
                        best[0] = T.min_value(\"float32\")
                    if best[0] < x[vb, vk]:
                        place[0] = vk
                        best[0] = x[vb, vk]
        for t in T.thread_binding(1, thread=\"threadIdx.x\"):
            out[b, 0] = best[0]
            out[b, 1] = T.Cast(\"float32\", place[0])",
        one: "\
place = T.sblock_alloc_buffer((1,), \"int32\")
for b in range(3):
    out[b, 0] = x[b, 0]
    place[0] = 0
    for t, k in T.grid(16, 3):
        if k * 16 + t < 40 and out[b, 0] < x[b, (k * 16 + t) % 40]:
            out[b, 0] = x[b, k * 16 + t]
            place[0] = k * 16 + t
    out[b, 1] = T.Cast(\"float32\", place[0])",
    },
    Pair {
        title: "the same of three rows along y, each thread with the result",
        shapes: &[&[3, 40], &[3, 2]],
        many: "\
for b in T.thread_binding(3, thread=\"threadIdx.x\"):
    with T.sblock(\"of_row\"):
        best = T.sblock_alloc_buffer((1,), scope=\"local\")
        place = T.sblock_alloc_buffer((1,), \"int32\", scope=\"local\")
        for t in T.thread_binding(8, thread=\"threadIdx.y\"):
            for k in range(5):
                with T.sblock(\"argmax\"):
                    vb = T.axis.spatial(3, b)
                    vk = T.axis.reduce(40, k * 8 + t)
                    with T.init():
                        place[0] = -1
                        best[0] = T.min_value(\"float32\")
                    at: T.let[T.int32] = T.Select(best[0] >= x[vb, vk], place[0], vk)
                    most: T.let[T.float32] = T.Select(best[0] >= x[vb, vk], best[0], x[vb, vk])
                    place[0] = at
                    best[0] = most
        for t in T.thread_binding(8, thread=\"threadIdx.y\"):
            if t == 3:
                out[b, 0] = best[0]
                out[b, 1] = T.Cast(\"float32\", place[0])",
        one: "\
place = T.sblock_alloc_buffer((1,), \"int32\")
for b in range(3):
    out[b, 0] = x[b, 0]
    place[0] = 0
    for t, k in T.grid(8, 5):
        if out[b, 0] < x[b, (k * 8 + t) % 40]:
            out[b, 0] = x[b, k * 8 + t]
            place[0] = k * 8 + t
    out[b, 1] = T.Cast(\"float32\", place[0])",
    },
    Pair {
        title: "a product, a sum that begins at 3, and a maximum, at once, of more threads than a warp has",
        shapes: &[&[3, 72], &[3, 3]],
        many: "\
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    with T.sblock(\"three\"):
        sums = T.sblock_alloc_buffer((3,), scope=\"shared\")
        products = T.sblock_alloc_buffer((3,), scope=\"shared\")
        most = T.sblock_alloc_buffer((3,), scope=\"shared\")
        for t in T.thread_binding(72, thread=\"threadIdx.x\"):
            with T.sblock(\"reduced\"):
                vb = T.axis.spatial(3, b)
                vk = T.axis.reduce(72, t)
                with T.init():
                    sums[vb] = T.float32(3)
                    products[vb] = T.float32(1)
                    most[vb] = T.float32(0)
                sums[vb] = sums[vb] + x[vb, vk]
                products[vb] = (x[vb, vk] * T.float32(0.125) + T.float32(1)) * products[vb]
                most[vb] = T.max(most[vb], x[vb, vk])
        for t in T.thread_binding(1, thread=\"threadIdx.x\"):
            out[b, 0] = sums[b]
            out[b, 1] = products[b]
            out[b, 2] = most[b]",
        one: "\
for b in range(3):
    out[b, 0] = T.float32(3)
    out[b, 1] = T.float32(1)
    out[b, 2] = T.float32(0)
    for k in range(72):
        out[b, 0] = out[b, 0] + x[b, k]
        out[b, 1] = out[b, 1] * (x[b, k] * T.float32(0.125) + T.float32(1))
        out[b, 2] = T.max(out[b, 2], x[b, k])",
    },
];

pub(crate) fn cases(pair: &Pair) -> (Case, Case) {
    let buffer = |(name, shape): (&str, &&[i64])| {
        let dims: Vec<String> = shape.iter().map(i64::to_string).collect();
        format!("{name}: T.Buffer(({},), \"float32\")", dims.join(", "))
    };
    let params: Vec<String> = ["x", "out"].into_iter().zip(pair.shapes).map(buffer).collect();
    let head = |name: &str| format!("{name}({})", params.join(", "));
    let of = |name: &str, body| Case::new(pair.title, script::function(&head(name), body), pair.shapes).within(1e-5);
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
    for (many, _) in PAIRS.iter().map(cases) {
        let source = crate::source(std::slice::from_ref(&many));
        let rules: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
        let all = !rules.is_empty() && rules.iter().all(|rule| *rule == "threads");
        assert!(all, "{}: {:?}", many.name, source.choices);
    }
}

#[test]
fn kernels_agree_with_the_interpreter() {
    crate::simulated::agree(&PAIRS.iter().map(|pair| cases(pair).0).collect::<Vec<_>>());
}
