//! Launches in loops and under conditions of the host, as in TVM's sorts and scans for GPUs: the host executes the
//! loop, and launches its body in each iteration with the threads of that iteration.

use crate::case::Case;
use crate::script;
use rx_cuda::PlanError;

/// A title, the parameters, their shapes, a body with launches, and an equivalent body without threads.
struct Pair {
    title: &'static str,
    params: &'static str,
    shapes: &'static [&'static [i64]],
    many: &'static str,
    one: &'static str,
}

const PAIRS: &[Pair] = &[
    Pair {
        title: "running sums by doubling steps, as many as the logarithm of the length",
        params: "n: T.int64, x: T.Buffer((3, n), \"float32\"), out: T.Buffer((3, n), \"float32\")",
        shapes: &[&[3, 50], &[3, 50]],
        many: "\
swap = T.sblock_alloc_buffer((3, n))
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for t in T.thread_binding(T.min(T.int64(1024), n), thread=\"threadIdx.x\"):
        out[b, t] = x[b, t]
for s in range(T.Cast(\"int64\", T.ceil(T.log2(T.Cast(\"float32\", n))))):
    if s % T.int64(2) == T.int64(0):
        for b in T.thread_binding(3, thread=\"blockIdx.x\"):
            for t in T.thread_binding(T.min(T.int64(1024), n), thread=\"threadIdx.x\"):
                left: T.let[T.int64] = t - T.shift_left(T.int64(1), s)
                swap[b, t] = out[b, t] + T.if_then_else(left >= T.int64(0), out[b, left], T.float32(0))
    else:
        for b in T.thread_binding(3, thread=\"blockIdx.x\"):
            for t in T.thread_binding(T.min(T.int64(1024), n), thread=\"threadIdx.x\"):
                left: T.let[T.int64] = t - T.shift_left(T.int64(1), s)
                out[b, t] = swap[b, t] + T.if_then_else(left >= T.int64(0), swap[b, left], T.float32(0))
if T.Cast(\"int64\", T.ceil(T.log2(T.Cast(\"float32\", n)))) % T.int64(2) == T.int64(1):
    for b in T.thread_binding(3, thread=\"blockIdx.x\"):
        for t in T.thread_binding(T.min(T.int64(1024), n), thread=\"threadIdx.x\"):
            out[b, t] = swap[b, t]",
        one: "\
for b, t in T.grid(3, n):
    out[b, t] = x[b, t] + T.if_then_else(t > T.int64(0), out[b, t - T.int64(1)], T.float32(0))",
    },
    Pair {
        title: "host loops with blocks and threads of their own, and loops in loops",
        params: "x: T.Buffer((64,), \"float32\"), out: T.Buffer((64,), \"float32\")",
        shapes: &[&[64], &[64]],
        many: "\
for b in T.thread_binding(64, thread=\"blockIdx.x\"):
    out[b] = x[b]
for s in range(1, 4):
    for r in range(s):
        for b in T.thread_binding(64 // T.shift_left(2, s), thread=\"blockIdx.x\"):
            for t in T.thread_binding(T.min(T.shift_left(2, s), 1024), thread=\"threadIdx.x\"):
                at: T.let[T.int32] = b * T.shift_left(2, s) + t
                out[at] = out[at] * T.Cast(\"float32\", r + 1) + T.Cast(\"float32\", b)",
        one: "\
for at in range(64):
    out[at] = x[at]
    for s in range(3):
        for r in range(s + 1):
            out[at] = out[at] * T.Cast(\"float32\", r + 1) + T.Cast(\"float32\", at // T.shift_left(4, s))",
    },
    Pair {
        title: "memory that a round leaves to the next, memory that each has anew, and none that others see",
        params: "x: T.Buffer((3, 32), \"float32\"), out: T.Buffer((3, 32), \"float32\")",
        shapes: &[&[3, 32], &[3, 32]],
        many: "\
kept = T.sblock_alloc_buffer((3, 32))
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for t in T.thread_binding(32, thread=\"threadIdx.x\"):
        kept[b, t] = x[b, t]
for s in range(5):
    with T.sblock(\"round\"):
        anew = T.sblock_alloc_buffer((3, 32))
        for b in T.thread_binding(3, thread=\"blockIdx.x\"):
            for t in T.thread_binding(32, thread=\"threadIdx.x\"):
                with T.sblock(\"turn\"):
                    sh = T.sblock_alloc_buffer((32,), scope=\"shared\")
                    sh[t] = kept[b, t]
                    T.tvm_storage_sync(\"shared\")
                    anew[b, t] = sh[31 - t] + T.Cast(\"float32\", s)
        for b in T.thread_binding(3, thread=\"blockIdx.x\"):
            for t in T.thread_binding(32, thread=\"threadIdx.x\"):
                kept[b, t] = anew[b, (t + 1) % 32]
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for t in T.thread_binding(32, thread=\"threadIdx.x\"):
        out[b, t] = kept[b, t]",
        one: "\
kept = T.sblock_alloc_buffer((3, 32))
anew = T.sblock_alloc_buffer((3, 32))
for b, t in T.grid(3, 32):
    kept[b, t] = x[b, t]
for s in range(5):
    for b, t in T.grid(3, 32):
        anew[b, t] = kept[b, 31 - t] + T.Cast(\"float32\", s)
    for b, t in T.grid(3, 32):
        kept[b, t] = anew[b, (t + 1) % 32]
for b, t in T.grid(3, 32):
    out[b, t] = kept[b, t]",
    },
];

fn cases(pair: &Pair) -> (Case, Case) {
    let of = |name: &str, body| {
        Case::new(pair.title, script::function(&format!("{name}({})", pair.params), body), pair.shapes).within(1e-5)
    };
    (of("many", pair.many), of("one", pair.one))
}

pub(crate) fn launched() -> Vec<Case> {
    PAIRS.iter().map(|pair| cases(pair).0).collect()
}

#[test]
fn launches_in_loops_agree_with_plain_loops() {
    for (many, one) in PAIRS.iter().map(cases) {
        let actual = many.expected().unwrap_or_else(|failure| panic!("{}: {failure:?}", many.name));
        let actual = actual.iter().map(|tensor| tensor.bytes().to_vec()).collect();
        many.compare_all(Ok(&actual), &one.expected()).unwrap_or_else(|error| panic!("{error}"));
    }
    crate::simulated::agree(&launched());
}

#[test]
fn launches_in_loops_keep_their_threads() {
    for case in launched() {
        let source = crate::source(std::slice::from_ref(&case));
        let is_launched = source.choices.iter().all(|choice| choice.rule == "threads");
        assert!(is_launched, "{}: {:?}", case.name, source.choices);
        if crate::nvrtc::is_found() {
            crate::nvrtc::compiles(&source.text);
        }
    }
}

/// Returns the launches of a call, each as (kernel, number of blocks along x).
fn blocks(case: &Case) -> Vec<(usize, u32)> {
    let source = crate::source(std::slice::from_ref(case));
    let plan = source.functions[0].plan(&case.values()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    plan.launches.iter().map(|launch| (launch.kernel, launch.grid[0])).collect()
}

#[test]
fn host_loops_evaluate_their_counts_and_conditions() {
    let [sums, own, kept] = &launched()[..] else { panic!("three cases") };
    // A length of 50 takes six steps. Even steps launch one kernel, odd steps the other, and the result is not copied
    // back.
    assert_eq!(blocks(sums), [(0, 3), (1, 3), (2, 3), (1, 3), (2, 3), (1, 3), (2, 3)]);
    assert_eq!(blocks(own), [(0, 64), (1, 16), (1, 8), (1, 8), (1, 4), (1, 4), (1, 4)]);
    let each: Vec<(usize, u32)> = (0..5).flat_map(|_| [(1, 3), (2, 3)]).collect();
    assert_eq!(blocks(kept), [&[(0, 3)], &each[..], &[(3, 3)]].concat());
}

#[test]
fn more_launches_than_can_be_planned_are_an_error() {
    let params = "n: T.int64, m: T.int64, x: T.Buffer((64,), \"float32\"), out: T.Buffer((64,), \"float32\")";
    let body = "\
for s in range(n):
    for b in T.thread_binding(m, thread=\"blockIdx.x\"):
        out[b] = x[b]";
    let case = |n: i64, m: i64| {
        Case::new("host_loops", script::function(&format!("many({params})"), body), &[&[64], &[64]]).scalars(&[n, m])
    };
    assert_eq!(blocks(&case(3, 64)).len(), 3);
    assert_eq!(blocks(&case(-3, 64)).len(), 0);
    // Iterations that launch nothing count as well.
    for (n, m) in [(1 << 40, 64), (1 << 40, 0), (i64::MAX, 1)] {
        let case = case(n, m);
        let source = crate::source(std::slice::from_ref(&case));
        let planned = source.functions[0].plan(&case.values());
        assert!(matches!(planned, Err(PlanError::Launches(_))), "{planned:?}");
    }
}

/// The host evaluates conditions as threads would: narrow integers wrap, and an operand that `and` or `or` does not
/// need is not evaluated.
#[test]
#[ignore = "sweep: .ci/full"]
fn host_conditions_wrap_and_short_circuit_like_the_text() {
    let launch = |indent: &str| {
        format!(
            "{indent}for b in T.thread_binding(2, thread=\"blockIdx.x\"):\n{indent}    for t in T.thread_binding(32, thread=\"threadIdx.x\"):\n{indent}        out[b * 32 + t] = out[b * 32 + t] + x[b * 32 + t]\n"
        )
    };
    let begin = "for b in T.thread_binding(64, thread=\"blockIdx.x\"):\n    out[b] = T.float32(0)\n";
    for (around, indent, lengths) in [
        ("if T.Cast(\"int8\", n) < T.int8(0):\n", 1, &[200i64, 100][..]),
        ("if T.Cast(\"uint8\", n) == T.uint8(4):\n", 1, &[260, 4, 5]),
        ("if T.Cast(\"uint64\", n) > T.uint64(3):\n", 1, &[3, 4, -1]),
        ("if T.shift_left(T.Cast(\"int32\", n), 30) < 0:\n", 1, &[1, 2]),
        ("if n > T.int64(0):\n    if T.int64(64) // n > T.int64(3):\n", 2, &[0, 5, 60]),
        ("if n == T.int64(0) or T.int64(8) // n > T.int64(3):\n", 1, &[0, 2, 5]),
        ("if n > T.int64(0):\n    for s in range(T.int64(64) // n):\n", 2, &[0, 20]),
        ("for s in range(n, T.int64(3)):\n    if s < T.int64(0):\n", 2, &[-2, 1, 5]),
    ] {
        let body = format!("{begin}{around}{}", launch(&"    ".repeat(indent)));
        let params = "n: T.int64, x: T.Buffer((64,), \"float32\"), out: T.Buffer((64,), \"float32\")";
        let func = script::function(&format!("own({params})"), &body);
        let of = |n: &i64| Case::new(around, func.clone(), &[&[64], &[64]]).scalars(&[*n]).within(1e-5);
        crate::simulated::agree(&lengths.iter().map(of).collect::<Vec<_>>());
    }
}

/// Two launches with a dependence between them, inside a `let` and a condition or block axis that the host cannot
/// evaluate, become one kernel of one thread.
#[test]
fn dependent_launches_with_unknown_conditions_run_in_one_thread() {
    let params = "x: T.Buffer((64,), \"float32\"), out: T.Buffer((64,), \"float32\")";
    let launch = "    for b in T.thread_binding(T.int64(64), thread=\"blockIdx.x\"):\n        ";
    let launches = format!("{launch}swap[b] = x[b] + v\n{launch}out[b] = swap[T.int64(63) - b]");
    for head in [
        "swap = T.sblock_alloc_buffer((64,))\nv: T.let[T.float32] = x[0]\nif x[0] < T.float32(100):\n",
        "swap = T.sblock_alloc_buffer((64,))\nv: T.let[T.float32] = x[1]\nwith T.sblock(\"both\"):\n    vs = T.axis.opaque(2, T.Cast(\"int32\", x[0] * T.float32(0)))\n",
    ] {
        let func = script::function(&format!("own({params})"), &format!("{head}{launches}"));
        let case = Case::new(head, func, &[&[64], &[64]]).within(1e-5);
        crate::simulated::agree(&[case]);
    }
}

#[test]
fn launch_in_a_loop_has_the_threads_of_its_iteration() {
    let params = "n: T.int64, x: T.Buffer((64,), \"float32\"), out: T.Buffer((64,), \"float32\")";
    // The launch in a loop of the first body has at most 16 threads, `min(16, s * 4)`; the second launch of the second
    // body has at most 96, `min(96, n)`. If `n` is 0, that launch has no threads, and the `init` is not executed.
    let host_loops = "\
for b in T.thread_binding(2, thread=\"blockIdx.x\"):
    for t in T.thread_binding(32, thread=\"threadIdx.x\"):
        out[b * 32 + t] = x[b * 32 + t]
for s in range(5):
    for b in T.thread_binding(2, thread=\"blockIdx.x\"):
        for t in T.thread_binding(T.min(16, s * 4), thread=\"threadIdx.x\"):
            out[b * 32 + t] = out[b * 32 + t] * T.float32(2) + T.Cast(\"float32\", n)";
    let sum = "\
for b in T.thread_binding(2, thread=\"blockIdx.x\"):
    for t in T.thread_binding(32, thread=\"threadIdx.x\"):
        out[b * 32 + t] = T.float32(3)
for b in T.thread_binding(2, thread=\"blockIdx.x\"):
    for t in T.thread_binding(T.min(T.int64(96), n), thread=\"threadIdx.x\"):
        with T.sblock(\"sum\"):
            vb = T.axis.spatial(2, b)
            vk = T.axis.reduce(T.min(T.int64(96), n), t)
            with T.init():
                out[vb] = T.float32(7)
            out[vb] = out[vb] + x[vk % T.int64(64)]";
    for body in [host_loops, sum] {
        let func = script::function(&format!("own({params})"), body);
        let of = |n: &i64| Case::new(body, func.clone(), &[&[64], &[64]]).scalars(&[*n]).within(1e-4);
        let cases: Vec<Case> = [0, 1, 40, 200].iter().map(of).collect();
        let source = crate::source(&cases[..1]);
        assert!(source.choices.iter().all(|choice| choice.rule == "threads"), "{:?}", source.choices);
        crate::simulated::agree(&cases);
    }
}

/// A loop that contains more than launches, or whose number of iterations the host does not know, is no loop of the
/// host; the result is right all the same.
#[test]
fn loops_the_host_cannot_run_are_no_host_loops() {
    let launch = |indent: &str| {
        format!(
            "{indent}for b in T.thread_binding(3, thread=\"blockIdx.x\"):\n{indent}    for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n{indent}        out[b, t] = out[b, t] + x[b, t]\n"
        )
    };
    for (title, loops) in [
        (
            "a number of iterations that is read",
            format!("for s in range(T.Cast(\"int32\", x[0, 0] * T.float32(0)) + 2):\n{}", launch("    ")),
        ),
        ("a store of no thread", format!("for s in range(2):\n    out[0, 0] = T.float32(1)\n{}", launch("    "))),
    ] {
        let params = "x: T.Buffer((3, 8), \"float32\"), out: T.Buffer((3, 8), \"float32\")";
        let body = format!("for b, t in T.grid(3, 8):\n    out[b, t] = T.float32(0)\n{loops}");
        let case =
            Case::new(title, script::function(&format!("own({params})"), &body), &[&[3, 8], &[3, 8]]).within(1e-5);
        let source = crate::source(std::slice::from_ref(&case));
        assert!(source.functions[0].kernels.iter().all(|kernel| kernel.host_loops.is_empty()), "{title}");
        crate::simulated::agree(&[case]);
    }
}
