use super::module;
use crate::rules::{RuleOrder, Target};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, Expr, Intrinsic, KernelBuilder, UnaryOp};

#[test]
fn a_matrix_product_reads_like_its_loops() {
    let mut builder = KernelBuilder::new(name("matmul"));
    let n = Dim::symbol(name("n"));
    let a = builder.param("a", &[n.clone(), Dim::from(8)], DType::FLOAT32);
    let b = builder.param("b", &[Dim::from(8), Dim::from(4)], DType::FLOAT32);
    let out = builder.param("out", &[n.clone(), Dim::from(4)], DType::FLOAT32);
    let rows = builder.dim(&n);
    let zero = Expr::number(0.0, DType::FLOAT32);
    builder.reduce(out, &[rows, Expr::int(4)], &[Expr::int(8)], zero, BinaryOp::Add, |builder, at, k| {
        let a = builder.load(a, &[at[0].clone(), k[0].clone()]);
        (at.to_vec(), a * builder.load(b, &[k[0].clone(), at[1].clone()]))
    });
    let rules = RuleOrder::of(["fallback"]).unwrap_or_else(|error| panic!("{error}"));
    let source =
        module(&[&builder.finish()], &Target { rules, ..Target::default() }).unwrap_or_else(|error| panic!("{error}"));
    let expected = "\
// CUDA C by rx. It needs no header.

// matmul: out
// from matmul
// schedule fallback: one thread per element
extern \"C\" __global__ void __launch_bounds__(256) matmul_kernel(
    const float* a,
    const float* b,
    float* out,
    long long n) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= n * 4) return;
    const long long ax0 = thread / 4;
    const long long ax1 = thread % 4;
    float out_value = 0.0f;
    for (long long k0 = 0; k0 < 8; ++k0) {
        out_value += a[ax0 * 8 + k0] * b[k0 * 4 + ax1];
    }
    out[ax0 * 4 + ax1] = out_value;
}
";
    assert_eq!(source.text, expected);
    let plan = source.functions[0].plan(&[Some(1000)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((plan.launches[0].grid, plan.launches[0].block), ([16, 1, 1], [256, 1, 1]));
    assert_eq!(plan.buffers, [32_000, 128, 16_000]);
    assert!(source.functions[0].plan(&[None]).is_err());
    assert!(source.functions[0].plan(&[Some(i64::MAX)]).is_err());
}

#[test]
fn dtype_without_cuda_type_is_an_error_that_names_the_function() {
    let mut builder = KernelBuilder::new(name("copy"));
    let dtype = DType::parse("float4_e2m1fn").expect("a dtype");
    let (x, out) = (builder.param("x", &[Dim::from(2)], dtype), builder.param("out", &[Dim::from(2)], dtype));
    builder.compute(out, |builder, at| builder.load(x, at));
    let error = module(&[&builder.finish()], &Target::default()).err().map(|error| error.to_string());
    assert!(error.is_some_and(|error| error.starts_with("copy cannot be printed as CUDA: ")));
}

/// Returns the value that the kernel of `value(x[i])` stores, as C text.
fn stored(value: impl Fn(Expr) -> Expr) -> String {
    let mut builder = KernelBuilder::new(name("map"));
    let x = builder.param("x", &[Dim::from(8)], DType::FLOAT32);
    let dtype = value(Expr::number(0.0, DType::FLOAT32)).dtype();
    let out = builder.param("out", &[Dim::from(8)], dtype);
    builder.compute(out, |builder, at| value(builder.load(x, at)));
    let rules = RuleOrder::of(["fallback"]).unwrap_or_else(|error| panic!("{error}"));
    let target = Target { rules, ..Target::default() };
    let text = module(&[&builder.finish()], &target).unwrap_or_else(|error| panic!("{error}")).text;
    let line = text.lines().find(|line| line.contains("out[ax0] =")).unwrap_or_else(|| panic!("{text}"));
    line.trim().trim_start_matches("out[ax0] = ").trim_end_matches(';').to_owned()
}

#[test]
fn product_in_a_rounded_sum_is_rounded_separately() {
    let affine = |x: Expr| x * Expr::number(0.25, DType::FLOAT32) - Expr::number(0.5, DType::FLOAT32);
    let floor = |x: Expr| Expr::call(Intrinsic::Floor, vec![affine(x)]);
    assert_eq!(stored(affine), "x[ax0] * 0.25f - 0.5f");
    assert_eq!(stored(floor), "floorf(__fmul_rn(x[ax0], 0.25f) - 0.5f)");
    assert_eq!(stored(|x| affine(x).cast(DType::INT32)), "rx_to_integer<int>(__fmul_rn(x[ax0], 0.25f) - 0.5f)");
    assert_eq!(stored(|x| affine(x).lt(Expr::number(0.0, DType::FLOAT32))), "__fmul_rn(x[ax0], 0.25f) - 0.5f < 0.0f");
    let negated = |x: Expr| Expr::Unary { op: UnaryOp::Neg, value: Box::new(x * Expr::number(0.25, DType::FLOAT32)) };
    assert_eq!(
        stored(|x| Expr::call(Intrinsic::Round, vec![negated(x.clone()) + x])),
        "rintf(-__fmul_rn(x[ax0], 0.25f) + x[ax0])"
    );
}

#[test]
fn floor_division_of_an_unsigned_value_is_plain_only_if_it_stays_positive() {
    let quotient = |x: Expr, to: DType| x.cast(DType::UINT32).cast(to).floor_div(Expr::Int { value: 3, dtype: to });
    assert!(stored(|x| quotient(x, DType::INT32)).starts_with("rx_floor_div<int>("));
    assert!(stored(|x| quotient(x, DType::INT64)).ends_with(" / 3"));
}
