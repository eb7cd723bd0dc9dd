//! Functions that bind their threads themselves: those that TVM's default GPU schedules produce (`scheduled`, generated
//! by tests/scripts/dlight_schedules.py), compared with the unscheduled functions; and functions as people write them.

use crate::case::Case;
use crate::script;
use rx_base::DType;
use rx_tir::{Expr, PrimFunc};

/// The name, the text and the tested values of the symbol, for each file.
const FILES: &[(&str, &str, &[i64])] = &[
    ("matmul", include_str!("scheduled/matmul.py"), &[1, 37, 64]),
    ("gemv", include_str!("scheduled/gemv.py"), &[1]),
    ("rms_norm", include_str!("scheduled/rms_norm.py"), &[1, 5]),
    ("softmax", include_str!("scheduled/softmax.py"), &[1, 5]),
    ("rows", include_str!("scheduled/rows.py"), &[1, 9, 600]),
    ("argmax", include_str!("scheduled/argmax.py"), &[1, 5]),
    ("group_norm", include_str!("scheduled/group_norm.py"), &[1, 3]),
    ("columns", include_str!("scheduled/columns.py"), &[1, 40]),
    ("transpose", include_str!("scheduled/transpose.py"), &[1, 33]),
    ("map", include_str!("scheduled/map.py"), &[1, 40]),
    ("gemv of 4 bits", include_str!("scheduled/gemv_of_4_bits.py"), &[1]),
    ("half of 4 bits", include_str!("scheduled/half_of_4_bits.py"), &[70]),
    ("half", include_str!("scheduled/half.py"), &[1, 37, 130]),
    ("half to single", include_str!("scheduled/half_to_single.py"), &[64]),
    ("half with bias", include_str!("scheduled/half_bias.py"), &[37]),
    ("half by batch", include_str!("scheduled/half_batch.py"), &[37]),
    ("bytes", include_str!("scheduled/bytes.py"), &[37]),
];

/// Returns a case with `n` as the value of the function's symbol.
fn case(name: &str, func: PrimFunc, n: i64) -> Case {
    let extents =
        |id| func.buffer(id).shape.iter().map(|extent: &Expr| extent.as_int().unwrap_or(n)).collect::<Vec<_>>();
    let shapes: Vec<Vec<i64>> = func.buffer_params().map(extents).collect();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let narrow = func.buffer_params().any(|id| func.buffer(id).dtype == DType::FLOAT16);
    Case::new(&format!("{name} of {n}"), func, &shapes).within(if narrow { 2e-2 } else { 1e-4 })
}

/// Returns each function as TVM schedules it, and unscheduled.
pub(crate) fn pairs() -> Vec<(Case, Case)> {
    let mut all = Vec::new();
    for (name, text, extents) in FILES {
        let funcs = script::read_module(text);
        let of = |label: &str| funcs.iter().find(|func| *func.name == *label).expect("the function").clone();
        for n in *extents {
            all.push((case(name, of("scheduled"), *n), case(name, of("plain"), *n)));
        }
    }
    all
}

#[test]
fn functions_keep_their_threads() {
    for (scheduled, _) in pairs() {
        let source = crate::source(std::slice::from_ref(&scheduled));
        let rules: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
        assert_eq!(rules, ["threads"], "{}: {:?}", scheduled.name, source.choices);
    }
}

#[test]
#[ignore = "sweep: .ci/full"]
fn scheduled_functions_agree_with_their_originals() {
    let pairs = pairs();
    for (scheduled, plain) in &pairs {
        let expected = plain.expected();
        let actual = scheduled.expected().unwrap_or_else(|failure| panic!("{}: {failure:?}", scheduled.name));
        let actual = actual.iter().map(|tensor| tensor.bytes().to_vec()).collect();
        scheduled.compare_all(Ok(&actual), &expected).unwrap_or_else(|error| panic!("{error}"));
    }
    let scheduled: Vec<Case> = pairs.into_iter().map(|(scheduled, _)| scheduled).collect();
    crate::simulated::agree(&scheduled);
}

#[test]
fn kernels_compile_and_keep_values_in_registers() {
    let cases: Vec<Case> = pairs().into_iter().map(|(scheduled, _)| scheduled).collect();
    crate::nvrtc::have_no_stack(&cases);
}

/// Returns cases of functions as people write them.
pub(crate) fn written() -> Vec<Case> {
    let of = |title: &str, params: &str, shapes: &[&[i64]], body: &str| {
        Case::new(title, script::function(&format!("own({params})"), body), shapes).within(1e-5)
    };
    let line = |length: i64, name: &str| format!("{name}: T.Buffer((3, {length}), \"float32\")");
    vec![
        of(
            "loops over fewer threads than others",
            &[line(40, "x"), line(64, "out")].join(", "),
            &[&[3, 40], &[3, 64]],
            "\
sh = T.sblock_alloc_buffer((40,), \"float32\", scope=\"shared\")
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for t in T.thread_binding(40, thread=\"threadIdx.x\"):
        with T.sblock(\"load\"):
            vb, vt = T.axis.remap(\"SS\", [b, t])
            sh[vt] = x[vb, vt]
    for t in T.thread_binding(64, thread=\"threadIdx.x\"):
        with T.sblock(\"turn\"):
            vb, vt = T.axis.remap(\"SS\", [b, t])
            out[vb, vt] = sh[39 - vt % 40]",
        ),
        of(
            "threads that a loop does not tell apart",
            &[line(32, "x"), line(128, "out")].join(", "),
            &[&[3, 32], &[3, 128]],
            "\
sh = T.sblock_alloc_buffer((32,), \"float32\", scope=\"shared\")
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for r in range(2):
        for t in T.thread_binding(32, thread=\"threadIdx.x\"):
            with T.sblock(\"load\"):
                vb, vr, vt = T.axis.remap(\"SSS\", [b, r, t])
                sh[vt] = x[vb, vt] + T.Cast(\"float32\", vr)
        for t in T.thread_binding(32, thread=\"threadIdx.x\"):
            for u in T.thread_binding(2, thread=\"threadIdx.y\"):
                with T.sblock(\"spread\"):
                    vb, vr, vt, vu = T.axis.remap(\"SSSS\", [b, r, t, u])
                    out[vb, vr * 64 + vu * 32 + vt] = sh[31 - vt]",
        ),
        of(
            "a sum that goes on from tile to tile",
            &[line(64, "x"), "out: T.Buffer((3, 16), \"float32\")".to_owned()].join(", "),
            &[&[3, 64], &[3, 16]],
            "\
sh = T.sblock_alloc_buffer((64,), \"float32\", scope=\"shared\")
acc = T.sblock_alloc_buffer((16,), \"float32\", scope=\"local\")
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for k0 in range(4):
        for t in T.thread_binding(16, thread=\"threadIdx.x\"):
            with T.sblock(\"load\"):
                vb, vk = T.axis.spatial(3, b), T.axis.spatial(64, k0 * 16 + t)
                sh[vk] = x[vb, vk]
        for t in T.thread_binding(16, thread=\"threadIdx.x\"):
            for k1 in range(16):
                with T.sblock(\"sum\"):
                    vt, vk = T.axis.spatial(16, t), T.axis.reduce(64, k0 * 16 + k1)
                    with T.init():
                        acc[vt] = 0.0
                    acc[vt] = acc[vt] + sh[vk] * T.Cast(\"float32\", vt - vk)
    for t in T.thread_binding(16, thread=\"threadIdx.x\"):
        with T.sblock(\"store\"):
            vb, vt = T.axis.remap(\"SS\", [b, t])
            out[vb, vt] = acc[vt]",
        ),
        of(
            "virtual threads",
            &[line(64, "x"), line(64, "out")].join(", "),
            &[&[3, 64], &[3, 64]],
            "\
for b in T.thread_binding(3, thread=\"blockIdx.x\"):
    for v in T.thread_binding(2, thread=\"vthread.x\"):
        for t in T.thread_binding(16, thread=\"threadIdx.x\"):
            for i in T.vectorized(2):
                with T.sblock(\"copy\"):
                    vb, vi = T.axis.spatial(3, b), T.axis.spatial(64, v * 32 + t * 2 + i)
                    out[vb, vi] = x[vb, vi] * 2.0",
        ),
        // Different threads store the same element in different iterations, so a barrier precedes the loop's store.
        of(
            "elements at a let value",
            "x: T.Buffer((4, 32), \"float32\"), at: T.Buffer((4,), \"int32\"), out: T.Buffer((2, 28), \"float32\")",
            &[&[4, 32], &[4], &[2, 28]],
            "\
sh = T.sblock_alloc_buffer((36,), \"float32\", scope=\"shared\")
for b in T.thread_binding(2, thread=\"blockIdx.x\"):
    for i in range(4):
        y: T.let[T.int32] = (at[i] + i) % 4
        for t in T.thread_binding(32, thread=\"threadIdx.x\"):
            sh[t + y] = x[i, t]
    for t in T.thread_binding(28, thread=\"threadIdx.x\"):
        out[b, t] = sh[t + 3]",
        ),
        // Barrier placement walks this loop body three times. The second walk places a barrier before the store of `b`,
        // and none between the load of `a` for `out[0, k, t]` and the store of `a` in the next iteration. The third
        // walk places one before the store of `a`.
        of(
            "three shared buffers of one loop",
            "x: T.Buffer((3, 64), \"float32\"), out: T.Buffer((2, 3, 64), \"float32\")",
            &[&[3, 64], &[2, 3, 64]],
            "\
a = T.sblock_alloc_buffer((64,), \"float32\", scope=\"shared\")
b = T.sblock_alloc_buffer((64,), \"float32\", scope=\"shared\")
c = T.sblock_alloc_buffer((64,), \"float32\", scope=\"shared\")
for t in T.thread_binding(64, thread=\"threadIdx.x\"):
    for k in range(3):
        a[t] = x[k, t]
        b[t] = x[k, t] * 2.0
        c[t] = a[63 - t]
        out[0, k, t] = a[63 - t] + b[63 - t]
        out[1, k, t] = b[63 - t] + c[63 - t]",
        ),
    ]
}

/// Returns sums over one, two or three thread axes, of blocks of several sizes.
pub(crate) fn sums() -> Vec<Case> {
    let mut all = Vec::new();
    for (sizes, over) in [
        ([8, 1, 4], "x"),
        ([5, 7, 1], "x"),
        ([64, 2, 2], "x"),
        ([96, 1, 1], "x"),
        ([5, 7, 2], "y"),
        ([4, 3, 6], "z"),
        ([4, 3, 2], "xy"),
        ([3, 4, 5], "yz"),
        ([4, 2, 3], "xyz"),
    ] {
        for dtype in ["float32", "int8", "float16"] {
            let axes = ["x", "y", "z"];
            let shape: Vec<i64> = (0..3).filter(|at| !over.contains(axes[*at])).map(|at| sizes[at]).collect();
            let index: Vec<String> =
                axes.iter().filter(|axis| !over.contains(**axis)).map(|axis| format!("v{axis}")).collect();
            let out_shape: Vec<String> = shape.iter().map(i64::to_string).chain([String::from("2")]).collect();
            let out = [index.clone(), vec!["vr".to_owned()]].concat().join(", ");
            let [x, y, z] = sizes;
            let kind = |axis: &str| if over.contains(axis) { "reduce" } else { "spatial" };
            let head = format!(
                "own(x: T.Buffer(({x}, {y}, {z}, 2, 3), \"{dtype}\"), out: T.Buffer(({}), \"{dtype}\"))",
                out_shape.join(", ")
            );
            let body = format!(
                "\
for r in range(2):
    for a in T.thread_binding({x}, thread=\"threadIdx.x\"):
        for b in T.thread_binding({y}, thread=\"threadIdx.y\"):
            for c in T.thread_binding({z}, thread=\"threadIdx.z\"):
                for k in range(3):
                    with T.sblock(\"sum\"):
                        vx = T.axis.{}({x}, a)
                        vy = T.axis.{}({y}, b)
                        vz = T.axis.{}({z}, c)
                        vr, vk = T.axis.spatial(2, r), T.axis.reduce(3, k)
                        T.where(a + k < {x})
                        with T.init():
                            out[{out}] = T.{dtype}(3)
                        out[{out}] = out[{out}] + x[vx, vy, vz, vr, vk]",
                kind("x"),
                kind("y"),
                kind("z")
            );
            let mut shapes = shape.clone();
            shapes.push(2);
            let func = script::function(&head, &body);
            let tolerance = if dtype == "float16" { 2e-2 } else { 1e-5 };
            let title = format!("{dtype} {sizes:?} over {over}");
            all.push(Case::new(&title, func, &[&[x, y, z, 2, 3], &shapes]).within(tolerance));
        }
    }
    all
}

#[test]
fn handwritten_functions_keep_their_threads_and_agree() {
    let cases: Vec<Case> = written().into_iter().chain(sums()).collect();
    for case in &cases {
        let source = crate::source(std::slice::from_ref(case));
        let rules: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
        assert_eq!(rules, ["threads"], "{}: {:?}", case.name, source.choices);
    }
    crate::simulated::agree(&cases);
    if crate::nvrtc::is_found() {
        crate::nvrtc::compiles(&crate::source(&cases).text);
    }
}

#[test]
fn loops_over_one_block_axis_of_the_same_extent_share_it() {
    let params = "x: T.Buffer((128,), \"float32\"), y: T.Buffer((128,), \"float32\"), z: T.Buffer((128,), \"float32\")";
    let body = "\
for t in T.thread_binding(32, thread=\"threadIdx.x\"):
    for b in T.thread_binding(4, thread=\"blockIdx.x\"):
        y[b * 32 + t] = x[b * 32 + t] * T.float32(2)
    for b in T.thread_binding(4, thread=\"blockIdx.x\"):
        z[b * 32 + t] = x[b * 32 + t] + T.float32(1)";
    let func = script::function(&format!("own({params})"), body);
    let case = Case::new("two loops over blockIdx.x", func, &[&[128], &[128], &[128]]).within(1e-6);
    let source = crate::source(std::slice::from_ref(&case));
    assert_eq!(source.choices[0].rule, "threads", "{:?}", source.choices);
    crate::simulated::agree(&[case]);
}

/// If a kernel cannot execute the launch, the rule declines with a reason, and another rule takes the function.
#[test]
fn unsupported_launches_are_declined_with_a_reason() {
    let params = "x: T.Buffer((64,), \"float32\"), out: T.Buffer((1,), \"float32\")";
    let sum = |outer: &str, binding: &str| {
        format!(
            "for k in {outer}:\n    for t in T.thread_binding(32, thread=\"threadIdx.x\"):\n        with T.sblock(\"sum\"):\n            v = T.axis.spatial(1, 0)\n            vk = T.axis.reduce(64, {binding})\n            with T.init():\n                out[v] = 0.0\n            out[v] = out[v] + x[vk]"
        )
    };
    for (body, why) in [
        // Each iteration of the outer loop would initialize the sum again.
        (sum("range(2)", "k * 32 + t"), "requires a cross-thread reduction in a known form; found another"),
        (
            sum("T.thread_binding(2, thread=\"blockIdx.x\")", "k * 32 + t"),
            "requires a cross-thread reduction in a known form; found another",
        ),
        (
            sum("T.thread_binding(2, thread=\"threadIdx.w\")", "k * 32 + t"),
            "requires loops from 0 over blockIdx or threadIdx; found `threadIdx.w`",
        ),
        // Executed serially, this is a sum.
        (
            "for t in T.thread_binding(64, thread=\"threadIdx.x\"):\n    out[0] = T.if_then_else(t == 0, x[t], out[0] + x[t])"
                .to_owned(),
            "requires separate elements for each `threadIdx.x`; found a data race",
        ),
    ] {
        let case = Case::new(why, script::function(&format!("own({params})"), &body), &[&[64], &[1]]).within(1e-5);
        let source = crate::source(std::slice::from_ref(&case));
        let declined = source.choices[0].declined.iter().find(|(rule, _)| *rule == "threads");
        assert!(declined.is_some_and(|(_, said)| said == why), "{body}: {:?}", source.choices);
        crate::simulated::agree(&[case]);
    }
}

/// Updates of two elements whose partial results of single threads cannot be combined to the result of all.
#[test]
fn updates_that_depend_on_grouping_are_declined() {
    let params = "x: T.Buffer((64,), \"float32\"), a: T.Buffer((1,), \"float32\"), b: T.Buffer((1,), \"float32\")";
    for (title, update) in [
        ("a choice by a running sum", "a[0] = a[0] + x[vk]\nb[0] = T.Select(a[0] > T.float32(3), b[0], x[vk])"),
        (
            "a choice by what comes alone",
            "a[0] = T.max(a[0], x[vk])\nb[0] = T.Select(x[vk] > T.float32(0), x[vk], b[0])",
        ),
        // A thread without a larger element would contribute the initial value, which would win as the last of the
        // equals.
        (
            "the last of equals",
            "b[0] = T.Select(a[0] > x[vk], b[0], x[63 - vk])\na[0] = T.Select(a[0] > x[vk], a[0], x[vk])",
        ),
        ("a value that hangs on what is there", "b[0] = b[0] + a[0]\na[0] = a[0] + x[vk]"),
        (
            "one goes round",
            "p: T.let[T.bool] = a[0] == x[vk]\nq: T.let[T.bool] = b[0] < T.float32(2) * x[vk]\n\
             a[0] = T.Select(q, a[0], x[vk])\nb[0] = T.Select(p, T.float32(2) * x[vk], b[0])",
        ),
    ] {
        let update = update.replace('\n', "\n            ");
        let body = format!(
            "for t in T.thread_binding(32, thread=\"threadIdx.x\"):\n    for k in range(2):\n        with T.sblock(\"two\"):\n            vk = T.axis.reduce(64, k * 32 + t)\n            with T.init():\n                a[0] = T.float32(0)\n                b[0] = T.float32(0)\n            {update}"
        );
        let func = script::function(&format!("own({params})"), &body);
        let case = Case::new(title, func, &[&[64], &[1], &[1]]).within(1e-5);
        let source = crate::source(std::slice::from_ref(&case));
        let declined = source.choices[0].declined.iter().find(|(rule, _)| *rule == "threads");
        let why = "requires a cross-thread reduction in a known form; found another";
        assert!(declined.is_some_and(|(_, said)| said == why), "{title}: {:?}", source.choices);
        crate::simulated::agree(&[case]);
    }
}

#[test]
fn text_of_a_scheduled_function_matches_the_golden_file() {
    let (case, _) = pairs().into_iter().find(|(case, _)| case.name == "rms_norm of 5").expect("a case");
    let source = rx_cuda::listing(&[&case.func], &rx_cuda::rules::Target::default());
    let text = source.functions[0].as_ref().unwrap_or_else(|error| panic!("{error}"));
    crate::templates::is_written("threads", text);
}

#[test]
fn vectors_are_copied_at_once() {
    let half = include_str!("scheduled/half.py");
    let func = script::read_module(half).into_iter().find(|func| *func.name == *"scheduled").expect("the function");
    let text = crate::source(&[case("half", func, 37)]).text;
    let copies = text.matches("= *(const rx_pack<rx_f16, 4>*)&").count();
    // Only rows of a tile are contiguous: columns of the other operand are not, and stores of the result are
    // predicated.
    assert_eq!(copies, 1, "{text}");
    // One barrier before each tile, one after it, and one before the result.
    assert_eq!(text.matches("__syncthreads();").count(), 3, "{text}");
}

/// The limit applies to static and dynamic shared memory together, and depends on the architecture.
#[test]
fn shared_memory_is_limited_by_the_device() {
    let body = |lines: i64| {
        format!(
            "\
sh = T.sblock_alloc_buffer((2, {lines}, 256), scope=\"shared\")
total = T.sblock_alloc_buffer((2,), scope=\"local\")
for b in T.thread_binding(2, thread=\"blockIdx.x\"):
    for k in range({lines}):
        for t in T.thread_binding(256, thread=\"threadIdx.x\"):
            with T.sblock(\"load\"):
                vb, vk, vt = T.axis.remap(\"SSS\", [b, k, t])
                sh[vb, vk, vt] = x[vb, vt] + T.Cast(\"float32\", vk)
    for t in T.thread_binding(256, thread=\"threadIdx.x\"):
        with T.sblock(\"sum\"):
            vb = T.axis.spatial(2, b)
            vk = T.axis.reduce(256, t)
            with T.init():
                total[vb] = T.float32(0)
            total[vb] = total[vb] + sh[vb, {lines} - 1, 255 - vk]
    for t in T.thread_binding(256, thread=\"threadIdx.x\"):
        with T.sblock(\"out\"):
            vb, vt = T.axis.remap(\"SS\", [b, t])
            out[vb, vt] = total[vb] + sh[vb, vt % {lines}, vt]"
        )
    };
    let params = "x: T.Buffer((2, 256), \"float32\"), out: T.Buffer((2, 256), \"float32\")";
    let case = |lines: i64| {
        let func = script::function(&format!("own({params})"), &body(lines));
        Case::new("shared memory", func, &[&[2, 256], &[2, 256]]).within(1e-4)
    };
    // The tile alone takes 48 KiB. With the buffer of the reduction it is more, so the launch must request it as
    // dynamic shared memory.
    let whole = case(48);
    let source = crate::source(std::slice::from_ref(&whole));
    assert_eq!(source.choices[0].rule, "threads", "{:?}", source.choices);
    assert!(source.functions[0].kernels[0].shape.shared_bytes >= 48 << 10);
    if crate::nvrtc::is_found() {
        crate::nvrtc::compiles(&source.text);
    }
    crate::simulated::agree(&[whole]);
    for (arch, is_taken) in [(80, true), (86, false), (89, false), (90, true), (120, false)] {
        let target = rx_cuda::rules::Target { arch, ..Default::default() };
        let rule = crate::source_for(&[case(120)], &target).choices[0].rule;
        assert_eq!(rule == "threads", is_taken, "sm_{arch}: {rule}");
    }
}

#[test]
fn block_with_too_many_threads_along_z_is_declined() {
    let params = "x: T.Buffer((128,), \"float32\"), out: T.Buffer((128,), \"float32\")";
    let body = "for t in T.thread_binding(128, thread=\"threadIdx.z\"):\n    out[t] = x[t]";
    let case = Case::new("z", script::function(&format!("own({params})"), body), &[&[128], &[128]]);
    let source = crate::source(std::slice::from_ref(&case));
    let declined = source.choices[0].declined.iter().find(|(rule, _)| *rule == "threads");
    let why = "requires at most 64 threads per block along z; found 128";
    assert!(declined.is_some_and(|(_, said)| said == why), "{:?}", source.choices);
    crate::simulated::agree(&[case]);
}
