//! Functions for the rules of rows, columns, reductions, elementwise kernels and transposes, each with the rules that
//! must take it.

use crate::case::Case;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, KernelBuilder, PrimFunc};

const F16: DType = DType::FLOAT16;
const F32: DType = DType::FLOAT32;

/// A case, and the rules that must take its statements, in order. One rule may take several statements: a softmax has
/// four, and usually the rule `rows` takes them all.
pub struct Ruled {
    pub case: Case,
    pub rules: Vec<&'static str>,
}

pub fn cases() -> Vec<Ruled> {
    let mut all = Vec::new();
    all.extend(softmaxes());
    all.extend(norms());
    all.extend(reductions());
    all.extend(across());
    all.extend(maps());
    all.push(map_before_a_sum());
    all.extend(permutations());
    all.extend(crate::tuples::cases());
    all
}

pub fn ruled(case: Case, rules: &[&'static str]) -> Ruled {
    Ruled { case, rules: rules.to_vec() }
}

/// Returns the tolerance for numbers of a dtype.
fn tolerance(dtype: DType) -> f64 {
    match dtype.bits {
        64 => 1e-12,
        32 => 1e-5,
        _ => 2e-2,
    }
}

fn known(extents: &[i64]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// Returns as many symbols as there are extents.
pub fn symbols(extents: &[i64]) -> Vec<Dim> {
    (0..extents.len()).map(|at| Dim::symbol(name(&format!("n{at}")))).collect()
}

/// Returns the softmax along an axis.
pub fn softmax(shape: &[Dim], axis: usize, dtype: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("softmax"));
    let (x, out) = (builder.param("x", shape, dtype), builder.param("out", shape, dtype));
    let mut kept = shape.to_vec();
    kept.remove(axis);
    let [largest, sum] = ["largest", "sum"].map(|name| builder.temporary(name, &kept, dtype));
    let exp = builder.temporary("exp", shape, dtype);
    let rows: Vec<Expr> = kept.iter().map(|dim| builder.dim(dim)).collect();
    let length = [builder.dim(&shape[axis])];
    let whole = move |row: &[Expr], k: &Expr| {
        let mut index = row.to_vec();
        index.insert(axis, k.clone());
        index
    };
    let of_row = |index: &[Expr]| {
        let mut row = index.to_vec();
        row.remove(axis);
        row
    };
    let lowest = Expr::number(f64::NEG_INFINITY, dtype);
    builder.reduce(largest, &rows, &length, lowest, BinaryOp::Max, |builder, at, k| {
        (at.to_vec(), builder.load(x, &whole(at, &k[0])))
    });
    builder.compute(exp, |builder, at| {
        Expr::call(Intrinsic::Exp, vec![builder.load(x, at) - builder.load(largest, &of_row(at))])
    });
    builder.reduce(sum, &rows, &length, Expr::number(0.0, dtype), BinaryOp::Add, |builder, at, k| {
        (at.to_vec(), builder.load(exp, &whole(at, &k[0])))
    });
    builder.compute(out, |builder, at| builder.load(exp, at) / builder.load(sum, &of_row(at)));
    builder.finish()
}

fn softmaxes() -> Vec<Ruled> {
    let mut all = Vec::new();
    for length in [2, 5, 16, 33, 64, 197, 1000, 1024, 1028, 1030, 4096] {
        let func = softmax(&known(&[5, length]), 1, F32);
        let case = Case::new(&format!("softmax of {length}"), func, &[&[5, length], &[5, length]]);
        all.push(ruled(case.within(1e-5), &["rows"]));
    }
    for dtype in [F16, DType::BFLOAT16, DType::FLOAT64] {
        let func = softmax(&known(&[3, 2, 136]), 2, dtype);
        let case = Case::new(&format!("softmax of {dtype}"), func, &[&[3, 2, 136], &[3, 2, 136]]);
        all.push(ruled(case.within(tolerance(dtype)), &["rows"]));
    }
    for shape in [[3i64, 7], [0, 7], [2, 0], [2, 1024], [1, 1025], [2, 5000]] {
        let func = softmax(&symbols(&shape), 1, F32);
        let case = Case::new(&format!("softmax of {shape:?}, which the call says"), func, &[&shape, &shape]);
        all.push(ruled(case.within(1e-5), &["rows"]));
    }
    // For few rows of 32768 or more elements, one block per row is too slow, so the rule `reduction` splits them.
    let func = softmax(&known(&[1, 40000]), 1, F32);
    let rules = ["reduction", "reduction", "elementwise"];
    all.push(ruled(Case::new("softmax of 40000", func, &[&[1, 40000], &[1, 40000]]).within(1e-4), &rules));
    // The row does not fit into registers: its rest is loaded and computed again.
    let func = softmax(&known(&[1, 32760]), 1, DType::FLOAT64);
    let case = Case::new("softmax of 32760 float64", func, &[&[1, 32760], &[1, 32760]]);
    all.push(ruled(case.within(1e-10), &["rows"]));
    for (shape, axis) in [([2i64, 37, 5, 7], 1), ([3, 4, 2, 33], 0), ([2, 100, 1, 40], 1), ([2, 9, 3, 136], 1)] {
        let func = softmax(&known(&shape), axis, F32);
        let case = Case::new(&format!("softmax of {shape:?} along {axis}"), func, &[&shape, &shape]);
        all.push(ruled(case.within(1e-5), &["columns"]));
        let func = softmax(&symbols(&shape), axis, F32);
        let case =
            Case::new(&format!("softmax of {shape:?} along {axis}, which the call says"), func, &[&shape, &shape]);
        all.push(ruled(case.within(1e-5), &["columns"]));
    }
    all
}

/// Returns `(x - mean) / sqrt(variance + 1e-5) * gamma + beta`, computed in `float32`. The mean is a result, too.
pub fn layer_norm(rows: &Dim, length: &Dim, dtype: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("layer_norm"));
    let shape = [rows.clone(), length.clone()];
    let x = builder.param("x", &shape, dtype);
    let [gamma, beta] = ["gamma", "beta"].map(|name| builder.param(name, &shape[1..], dtype));
    let (out, mean) = (builder.param("out", &shape, dtype), builder.param("mean", &shape[..1], F32));
    let [sum, squares] = ["sum", "squares"].map(|name| builder.temporary(name, &shape[..1], F32));
    let (rows, columns) = ([builder.dim(rows)], [builder.dim(length)]);
    let length = columns[0].clone();
    let wide = |builder: &KernelBuilder, of: BufferId, at: &[Expr]| builder.load(of, at).cast(F32);
    let count = move || length.clone().cast(F32);
    let join = |at: &[Expr], k: &[Expr]| vec![at[0].clone(), k[0].clone()];
    builder.reduce(sum, &rows, &columns, Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        (at.to_vec(), wide(builder, x, &join(at, k)))
    });
    builder.compute(mean, |builder, at| builder.load(sum, at) / count());
    builder.reduce(squares, &rows, &columns, Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        let off = wide(builder, x, &join(at, k)) - builder.load(sum, at) / count();
        (at.to_vec(), off.clone() * off)
    });
    builder.compute(out, |builder, at| {
        let off = wide(builder, x, at) - builder.load(sum, &at[..1]) / count();
        let variance = builder.load(squares, &at[..1]) / count() + Expr::number(1e-5, F32);
        let scale = Expr::call(Intrinsic::Rsqrt, vec![variance]) * wide(builder, gamma, &at[1..]);
        (off * scale + wide(builder, beta, &at[1..])).cast(dtype)
    });
    builder.finish()
}

fn norms() -> Vec<Ruled> {
    let mut all = Vec::new();
    for (length, dtype) in [(64, F32), (768, F32), (2048, F32), (4096, F16), (96, F16), (50, DType::BFLOAT16)] {
        let shape = [3, length];
        let shapes: [&[i64]; 5] = [&shape, &[length], &[length], &shape, &[3]];
        let func = layer_norm(&Dim::symbol(name("rows")), &Dim::from(length), dtype);
        let case = Case::new(&format!("layer norm of {length} {dtype}"), func, &shapes);
        all.push(ruled(case.within(tolerance(dtype).max(1e-4)), &["rows"]));
    }
    all
}

/// A half-open range of axes: the first one, and the one after the last.
pub type Axes = (usize, usize);

/// Returns a reduction over a range of axes, and a value computed from its result.
pub fn reduction(shape: &[Dim], (from, to): Axes, dtype: DType, op: BinaryOp, init: Expr) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("reduction"));
    let x = builder.param("x", shape, dtype);
    let kept: Vec<Dim> = [&shape[..from], &shape[to..]].concat();
    let [result, twice] = ["result", "twice"].map(|name| builder.param(name, &kept, dtype));
    let rows: Vec<Expr> = kept.iter().map(|dim| builder.dim(dim)).collect();
    let columns: Vec<Expr> = shape[from..to].iter().map(|dim| builder.dim(dim)).collect();
    builder.reduce(result, &rows, &columns, init, op, |builder, at, k| {
        let index: Vec<Expr> = [&at[..from], k, &at[from..]].concat();
        (at.to_vec(), builder.load(x, &index))
    });
    builder.compute(twice, |builder, at| {
        let value = builder.load(result, at);
        if dtype.is_bool() { !value } else { value.clone() + value }
    });
    builder.finish()
}

fn reduced(
    shape: &[i64],
    axes: (usize, usize),
    dtype: DType,
    (op, init): (BinaryOp, f64),
    is_known: bool,
    rule: &'static str,
) -> Ruled {
    let dims = if is_known { known(shape) } else { symbols(shape) };
    let func = reduction(&dims, axes, dtype, op, Expr::number(init, dtype));
    let kept: Vec<i64> = [&shape[..axes.0], &shape[axes.1..]].concat();
    let said = if is_known { "" } else { ", which the call says" };
    let case = Case::new(&format!("{op:?} of {dtype} {shape:?} over {axes:?}{said}"), func, &[shape, &kept, &kept]);
    let within = if dtype.is_float() { tolerance(dtype).max(1e-4) } else { 0.0 };
    ruled(case.within(within), &[rule])
}

const SUM: (BinaryOp, f64) = (BinaryOp::Add, 0.0);

fn reductions() -> Vec<Ruled> {
    let largest = (BinaryOp::Max, f64::NEG_INFINITY);
    let mut all = vec![
        reduced(&[70_001], (0, 1), F32, SUM, true, "reduction"),
        reduced(&[70_001], (0, 1), F32, SUM, false, "reduction"),
        reduced(&[0], (0, 1), F32, SUM, false, "reduction"),
        reduced(&[3, 20_000], (1, 2), F16, SUM, true, "reduction"),
        reduced(&[100, 3, 64], (0, 3), DType::INT64, SUM, true, "reduction"),
        reduced(&[20_000], (0, 1), F32, largest, true, "reduction"),
        // An initial value that is not the identity counts once, not once per thread.
        reduced(&[20_000], (0, 1), DType::INT32, (BinaryOp::Add, 7.0), true, "reduction"),
        reduced(&[3, 40], (1, 2), DType::INT32, (BinaryOp::Add, 7.0), true, "rows"),
        reduced(&[3, 7, 7], (1, 3), F32, SUM, true, "rows"),
        reduced(&[3, 0], (1, 2), F32, SUM, true, "rows"),
        reduced(&[2, 3000], (1, 2), DType::BOOL, (BinaryOp::And, 1.0), true, "rows"),
        reduced(&[9, 21], (1, 2), DType::BOOL, (BinaryOp::Or, 0.0), false, "rows"),
    ];
    for dtype in [DType::INT8, DType::UINT8, DType::INT16, DType::UINT64, DType::FLOAT64, DType::BFLOAT16] {
        all.push(reduced(&[5, 100], (1, 2), dtype, SUM, true, "rows"));
        all.push(reduced(&[5, 100], (1, 2), dtype, (BinaryOp::Max, -3.0), true, "rows"));
        all.push(reduced(&[2, 2000], (1, 2), dtype, (BinaryOp::Min, 3.0), true, "rows"));
    }
    all.push(reduced(&[5, 40], (1, 2), DType::INT32, (BinaryOp::Mul, 1.0), true, "rows"));
    all
}

fn across() -> Vec<Ruled> {
    vec![
        reduced(&[700, 40], (0, 1), F32, SUM, true, "reduction"),
        reduced(&[40, 700], (0, 1), F32, SUM, true, "columns"),
        reduced(&[40, 70], (0, 1), F32, SUM, false, "columns"),
        // In the next six cases, each thread computes several adjacent outputs.
        reduced(&[128, 20_000], (0, 1), F16, SUM, true, "columns"),
        reduced(&[24, 72], (0, 1), DType::BFLOAT16, SUM, false, "columns"),
        reduced(&[3, 17, 64], (1, 2), DType::INT8, (BinaryOp::Max, -3.0), false, "columns"),
        reduced(&[5, 64], (0, 1), F32, (BinaryOp::Add, 7.0), false, "columns"),
        reduced(&[0, 64], (0, 1), F32, SUM, false, "columns"),
        reduced(&[700, 64], (0, 1), F16, SUM, true, "reduction"),
        // 33 is odd, so each thread computes one output.
        reduced(&[3, 17, 33], (1, 2), DType::INT8, SUM, true, "columns"),
    ]
}

/// Returns `out = max(s, 0) * s` and `flags = 0 < s` for `s = x + bias`, where the bias has a range of the axes of `x`.
pub fn biased(shape: &[Dim], (from, to): (usize, usize), dtype: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("biased"));
    let x = builder.param("x", shape, dtype);
    let bias = builder.param("bias", &shape[from..to], dtype);
    let (out, flags) = (builder.param("out", shape, dtype), builder.param("flags", shape, DType::BOOL));
    let sum = builder.temporary("sum", shape, dtype);
    builder.compute(sum, |builder, at| builder.load(x, at) + builder.load(bias, &at[from..to]));
    builder.compute(out, |builder, at| {
        let sum = builder.load(sum, at);
        sum.clone().max(Expr::number(0.0, dtype)) * sum
    });
    builder.compute(flags, |builder, at| Expr::number(0.0, dtype).lt(builder.load(sum, at)));
    builder.finish()
}

fn maps() -> Vec<Ruled> {
    let mut all = Vec::new();
    let shapes: [(&[i64], (usize, usize)); 5] =
        [(&[1003], (0, 1)), (&[17, 59], (1, 2)), (&[4, 8], (1, 2)), (&[2, 3, 4, 4], (1, 2)), (&[3, 2, 5, 5], (1, 2))];
    for (shape, axes) in shapes {
        for dtype in [F32, F16, DType::INT8, DType::INT64, DType::FLOAT64] {
            for dims in [known(shape), symbols(shape)] {
                let func = biased(&dims, axes, dtype);
                let said = format!("{dims:?}");
                let case = Case::new(
                    &format!("bias {axes:?} of {dtype} {said} of {shape:?}"),
                    func,
                    &[shape, &shape[axes.0..axes.1], shape, shape],
                );
                all.push(ruled(case.within(tolerance(dtype)), &["elementwise"]));
            }
        }
    }
    all
}

/// Returns a map, and a sum over loops of the same extents that does not read the map's result.
fn map_before_a_sum() -> Ruled {
    let params = "x: T.Buffer((8, 4), \"float32\"), y: T.Buffer((4, 8), \"float32\"), z: T.Buffer((4, 8), \"float32\"), \
                  total: T.Buffer((1,), \"float32\")";
    let body = "\
for i, j in T.grid(4, 8):
    with T.sblock(\"turned\"):
        vi, vj = T.axis.remap(\"SS\", [i, j])
        y[vi, vj] = x[vj, vi] * T.float32(2)
for i, j in T.grid(4, 8):
    with T.sblock(\"total\"):
        vi, vj = T.axis.remap(\"RR\", [i, j])
        with T.init():
            total[0] = T.float32(0)
        total[0] = total[0] + z[vi, vj]";
    let func = crate::script::function(&format!("own({params})"), body);
    let case = Case::new("a map before a sum", func, &[&[8, 4], &[4, 8], &[4, 8], &[1]]);
    ruled(case.within(1e-5), &["elementwise", "rows"])
}

/// Returns `out[at] = x[at in another order] * 2 + y[at]`. Axis `order[i]` of the result is axis `i` of `x`.
fn permuted(shape: &[Dim], order: &[usize], dtype: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("permuted"));
    let mut turned = shape.to_vec();
    order.iter().zip(shape).for_each(|(to, dim)| turned[*to] = dim.clone());
    let (x, y) = (builder.param("x", shape, dtype), builder.param("y", &turned, dtype));
    let out = builder.param("out", &turned, dtype);
    builder.compute(out, |builder, at| {
        let index: Vec<Expr> = order.iter().map(|to| at[*to].clone()).collect();
        builder.load(x, &index) * Expr::number(2.0, dtype) + builder.load(y, at)
    });
    builder.finish()
}

fn permutations() -> Vec<Ruled> {
    let mut all = Vec::new();
    let shapes: [(&[i64], &[usize], &'static str); 6] = [
        (&[33, 70], &[1, 0], "transpose"),
        (&[64, 32], &[1, 0], "transpose"),
        (&[2, 40, 3, 50], &[0, 3, 2, 1], "transpose"),
        (&[2, 9, 35], &[1, 2, 0], "transpose"),
        (&[2, 5, 3, 8], &[0, 2, 1, 3], "elementwise"),
        (&[40, 4], &[1, 0], "elementwise"),
    ];
    for (shape, order, rule) in shapes {
        let mut turned = shape.to_vec();
        order.iter().zip(shape).for_each(|(to, extent)| turned[*to] = *extent);
        for dtype in [F32, F16, DType::INT8, DType::FLOAT64] {
            let func = permuted(&known(shape), order, dtype);
            let case = Case::new(&format!("{dtype} {shape:?} in order {order:?}"), func, &[shape, &turned, &turned]);
            all.push(ruled(case.within(tolerance(dtype)), &[rule]));
        }
        if rule == "transpose" {
            let func = permuted(&symbols(shape), order, F32);
            let case = Case::new(
                &format!("{shape:?} in order {order:?}, which the call says"),
                func,
                &[shape, &turned, &turned],
            );
            all.push(ruled(case.within(1e-5), &[rule]));
        }
    }
    all
}

#[test]
fn cases_are_scheduled_by_their_rule() {
    let mut wrong = Vec::new();
    for Ruled { case, rules } in cases() {
        let source = crate::source(std::slice::from_ref(&case));
        let taken: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
        if taken != rules {
            wrong.push(format!("{}: {taken:?}, not {rules:?}; {:?}", case.name, source.choices[0].declined));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "sweep: .ci/full"]
fn cases_agree_with_the_interpreter_in_every_order() {
    let cases: Vec<Case> = cases().into_iter().map(|one| one.case).collect();
    for some in cases.chunks(40) {
        crate::simulated::agree(some);
    }
}

#[test]
fn kernels_compile_and_keep_values_in_registers() {
    let cases: Vec<Case> = cases().into_iter().map(|one| one.case).collect();
    crate::nvrtc::have_no_stack(&cases);
}

#[test]
fn a_kernel_is_readable() {
    let func = softmax(&known(&[5, 33]), 1, F32);
    let text = crate::source(&[Case::new("softmax", func, &[&[5, 33], &[5, 33]])]).text;
    let kernel = &text[text.find("// softmax").expect("a kernel")..];
    let expected = "\
// softmax: largest, exp, sum, out
// from softmax
// schedule rows: 32 lanes per row, 2 x 1 elements per thread, kept in registers
extern \"C\" __global__ void __launch_bounds__(128) softmax_kernel(const float* x, float* out) {
    const int lane = threadIdx.x % 32;
    const int at = (int)blockIdx.x * 4 + threadIdx.x / 32;
    const bool is_row = at < 5;
    const int row = is_row ? at : 5 - 1;
    float x_row[2];
    float exp_row[2];
    float largest_value = -RX_INFINITY;
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        const int k = chunk * 32 + lane;
        if (k < 33) {
            x_row[chunk] = x[row * 33 + k];
            largest_value = rx_max(largest_value, x_row[chunk]);
        }
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, largest_value, by);
        largest_value = rx_max(largest_value, other);
    }
    float sum_value = 0.0f;
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        const int k_1 = chunk * 32 + lane;
        if (k_1 < 33) {
            exp_row[chunk] = expf(x_row[chunk] - largest_value);
            sum_value += exp_row[chunk];
        }
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other_1 = __shfl_xor_sync(0xffffffffu, sum_value, by);
        sum_value += other_1;
    }
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        const int k_2 = chunk * 32 + lane;
        if (k_2 < 33) {
            if (is_row) out[row * 33 + k_2] = exp_row[chunk] / sum_value;
        }
    }
}
";
    assert_eq!(kernel, expected);
}

/// The elementwise rule would let every thread increment `s`.
#[test]
fn statement_without_loops_after_an_elementwise_one_is_executed_once() {
    let params = "x: T.Buffer((64,), \"float32\"), y: T.Buffer((64,), \"float32\"), s: T.Buffer((), \"float32\")";
    let body = "for i in range(64):\n    y[i] = x[i] * T.float32(2)\ns[()] = s[()] + T.float32(1)";
    let func = crate::script::function(&format!("own({params})"), body);
    let case = Case::new("an elementwise statement, then one without loops", func, &[&[64], &[64], &[]]).within(1e-6);
    crate::simulated::agree(&[case]);
}
