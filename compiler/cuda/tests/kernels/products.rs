//! Matrix products with ragged and even extents, computed operands and fused epilogues.

use crate::case::Case;
use crate::small_device;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cuda::rules::{RuleOrder, Target};
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, KernelBuilder, PrimFunc};

const F16: DType = DType::FLOAT16;
const F32: DType = DType::FLOAT32;

/// A product: its dtypes and extents, the layout of its operands, and its epilogue.
#[derive(Clone, Copy)]
pub struct Product {
    pub dtype: DType,
    pub sum: DType,
    /// The number of batches; with 1, the tensors have no batch axis. The next three are the numbers of rows, columns
    /// and summed values; 0 is a symbol.
    pub batch: i64,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    /// Whether `A` has the layout `[k, m]`, and whether `B` has the layout `[n, k]`.
    pub transposed: [bool; 2],
    pub behind: Behind,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Behind {
    Nothing,
    Cast,
    BiasAndRelu,
    /// `g = product / 2 + erf(product / √2) / 2`, which is an output as well, then `g + residual * product`.
    GeluAndResidual,
}

pub fn product(dtype: DType, sum: DType, [m, n, k]: [i64; 3]) -> Product {
    Product { dtype, sum, batch: 1, m, n, k, transposed: [false; 2], behind: Behind::Nothing }
}

impl Product {
    fn func(self) -> PrimFunc {
        let mut builder = KernelBuilder::new(name("matmul"));
        let dim = |size: i64, symbol: &str| if size == 0 { Dim::symbol(name(symbol)) } else { Dim::from(size) };
        let (m, n, k) = (dim(self.m, "m"), dim(self.n, "n"), dim(self.k, "k"));
        let batch: Vec<Dim> = (self.batch != 1).then(|| Dim::from(self.batch)).into_iter().collect();
        let shape = |pair: [&Dim; 2], swap: bool| {
            let pair = if swap { [pair[1], pair[0]] } else { pair };
            batch.iter().chain(pair).cloned().collect::<Vec<_>>()
        };
        let a = builder.param("a", &shape([&m, &k], self.transposed[0]), self.dtype);
        let b = builder.param("b", &shape([&k, &n], self.transposed[1]), self.dtype);
        let out_shape = shape([&m, &n], false);
        let sum = match self.behind {
            Behind::Nothing => None,
            _ => Some(builder.temporary("sum", &out_shape, self.sum)),
        };
        let more = match self.behind {
            Behind::BiasAndRelu => Some(builder.param("bias", std::slice::from_ref(&n), self.sum)),
            Behind::GeluAndResidual => Some(builder.param("residual", &out_shape, self.sum)),
            _ => None,
        };
        let out = builder.param("out", &out_shape, if self.behind == Behind::Cast { self.dtype } else { self.sum });
        let target = sum.unwrap_or(out);
        self.sum_into(&mut builder, target, [a, b]);
        match (self.behind, sum, more) {
            (Behind::Cast, Some(sum), _) => builder.compute(out, |builder, at| builder.load(sum, at).cast(self.dtype)),
            (Behind::BiasAndRelu, Some(sum), Some(bias)) => {
                let biased = builder.temporary("biased", &out_shape, self.sum);
                builder.compute(biased, |builder, at| builder.load(sum, at) + builder.load(bias, &at[at.len() - 1..]));
                builder.compute(out, |builder, at| builder.load(biased, at).max(Expr::number(0.0, self.sum)));
            }
            (Behind::GeluAndResidual, Some(sum), Some(residual)) => {
                let gelu = builder.param("gelu", &out_shape, self.sum);
                builder.compute(gelu, |builder, at| {
                    let x = builder.load(sum, at);
                    let half = Expr::number(0.5, self.sum);
                    let erf = Expr::call(Intrinsic::Erf, vec![x.clone() * Expr::number(0.707_106_77, self.sum)]);
                    x * half.clone() + half * erf
                });
                builder.compute(out, |builder, at| {
                    builder.load(gelu, at) + builder.load(residual, at) * builder.load(sum, at)
                });
            }
            _ => {}
        }
        builder.finish()
    }

    fn sum_into(self, builder: &mut KernelBuilder, target: BufferId, [a, b]: [BufferId; 2]) {
        let extents = builder.shape(target);
        let inner = builder.shape(a)[extents.len() - 1 - usize::from(self.transposed[0])].clone();
        builder.reduce(target, &extents, &[inner], Expr::number(0.0, self.sum), BinaryOp::Add, |builder, at, k| {
            let (batch, matrix) = at.split_at(at.len() - 2);
            let place = |pair: [&Expr; 2], swap: bool| {
                let pair = if swap { [pair[1], pair[0]] } else { pair };
                batch.iter().chain(pair).cloned().collect::<Vec<_>>()
            };
            let left = builder.load(a, &place([&matrix[0], &k[0]], self.transposed[0]));
            let right = builder.load(b, &place([&k[0], &matrix[1]], self.transposed[1]));
            (at.to_vec(), left.cast(self.sum) * right.cast(self.sum))
        });
    }

    /// Returns the case of a call with these extents.
    pub fn case(self, text: &str, [m, n, k]: [i64; 3]) -> Case {
        let with_batch = |pair: [i64; 2], swap: bool| {
            let pair = if swap { [pair[1], pair[0]] } else { pair };
            (self.batch != 1).then_some(self.batch).into_iter().chain(pair).collect::<Vec<_>>()
        };
        let out = with_batch([m, n], false);
        let mut shapes = vec![with_batch([m, k], self.transposed[0]), with_batch([k, n], self.transposed[1])];
        match self.behind {
            Behind::BiasAndRelu => shapes.push(vec![n]),
            Behind::GeluAndResidual => shapes.push(out.clone()),
            _ => {}
        }
        shapes.push(out.clone());
        if self.behind == Behind::GeluAndResidual {
            shapes.push(out);
        }
        let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
        let case = Case::new(text, self.func(), &shapes);
        let exact = self.sum.is_int();
        let narrow = self.sum.bits < 32 || self.behind == Behind::Cast;
        case.within(if exact {
            0.0
        } else if narrow {
            2e-2
        } else {
            1e-4
        })
    }
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (text, dtype, sum) in [
        ("float32", F32, F32),
        ("float64", DType::FLOAT64, DType::FLOAT64),
        ("float16", F16, F32),
        ("float16 in float16", F16, F16),
        ("bfloat16", DType::BFLOAT16, F32),
        ("int8", DType::INT8, DType::INT32),
        ("uint8", DType::UINT8, DType::INT32),
        ("int8 in int8", DType::INT8, DType::INT8),
        ("int64", DType::INT64, DType::INT64),
    ] {
        let behind = if dtype.bits == 16 && sum == F32 { Behind::Cast } else { Behind::Nothing };
        for (how, transposed) in
            [("", [false, false]), (", A transposed", [true, false]), (", B transposed", [false, true])]
        {
            let even = Product { transposed, behind, ..product(dtype, sum, [64, 64, 64]) };
            cases.push(even.case(&format!("even product of {text}{how}"), [64, 64, 64]));
            let ragged = Product { transposed, behind, ..product(dtype, sum, [0, 0, 0]) };
            cases.push(ragged.case(&format!("product of {text}, any extents{how}"), [37, 43, 29]));
        }
    }
    for (text, dtype, sum) in [("float32", F32, F32), ("float16", F16, F32), ("int8", DType::INT8, DType::INT32)] {
        let of = |sizes| product(dtype, sum, sizes);
        for [m, n, k] in [[0, 8, 8], [8, 0, 8], [8, 8, 0], [1, 1, 1], [2, 3, 1]] {
            let func = Product { m: 0, n: 0, k: 0, ..of([0; 3]) };
            cases.push(func.case(&format!("product of {text}, {m} x {n} x {k}"), [m, n, k]));
        }
        let batched = Product { batch: 3, ..of([40, 72, 24]) };
        cases.push(batched.case(&format!("batched product of {text}"), [40, 72, 24]));
        cases.push(of([120, 250, 40]).case(&format!("large tiles of {text}"), [120, 250, 40]));
        cases.push(of([16, 24, 1024]).case(&format!("long sums of {text}"), [16, 24, 1024]));
        let rows_known_later = Product { m: 0, ..of([0, 136, 48]) };
        cases.push(rows_known_later.case(&format!("rows known later, {text}"), [50, 136, 48]));
    }
    for (text, sum) in [("float32", F32), ("float64", DType::FLOAT64)] {
        for (title, behind) in
            [("bias and relu", Behind::BiasAndRelu), ("gelu and a residual", Behind::GeluAndResidual)]
        {
            let of = |sizes| Product { behind, ..product(sum, sum, sizes) };
            cases.push(of([33, 48, 20]).case(&format!("{title} behind a product of {text}"), [33, 48, 20]));
            cases.push(of([16, 24, 1024]).case(&format!("{title} behind long sums of {text}"), [16, 24, 1024]));
            let batched = Product { batch: 2, ..of([0, 0, 0]) };
            cases.push(batched.case(&format!("{title} behind a batched product of {text}"), [18, 21, 11]));
        }
    }
    cases.extend(crate::convolutions::cases());
    cases
}

/// Returns products with few rows or columns.
pub fn narrow_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (text, dtype, sum) in [
        ("float32", F32, F32),
        ("float64", DType::FLOAT64, DType::FLOAT64),
        ("float16", F16, F32),
        ("bfloat16", DType::BFLOAT16, F32),
        ("int8", DType::INT8, DType::INT32),
        ("int64", DType::INT64, DType::INT64),
    ] {
        let behind = if sum == F32 && dtype != F32 { Behind::Cast } else { Behind::Nothing };
        for (how, transposed) in [("k, n", [false, false]), ("n, k", [false, true])] {
            for [m, n, k] in [[1, 96, 64], [3, 50, 33], [8, 40, 256], [70, 1, 64], [45, 2, 48]] {
                let one = Product { transposed, behind, ..product(dtype, sum, [m, n, k]) };
                cases.push(one.case(&format!("{m} x {n} x {k} of {text}, B as {how}"), [m, n, k]));
            }
            let unknown = Product { transposed, behind, ..product(dtype, sum, [1, 0, 0]) };
            cases.push(unknown.case(&format!("one row of {text}, B as {how}"), [1, 37, 41]));
            cases.push(unknown.case(&format!("one row of {text} over nothing, B as {how}"), [1, 3, 0]));
            let batched = Product { transposed, behind, batch: 3, ..product(dtype, sum, [1, 40, 0]) };
            cases.push(batched.case(&format!("a batch of rows of {text}, B as {how}"), [1, 40, 64]));
        }
    }
    for behind in [Behind::BiasAndRelu, Behind::GeluAndResidual] {
        for transposed in [[false, false], [false, true]] {
            let one = Product { behind, transposed, ..product(F32, F32, [2, 48, 32]) };
            cases.push(one.case("two rows and what follows", [2, 48, 32]));
        }
    }
    for (text, rows) in [("a row", 1), ("four rows", 4)] {
        cases.push(dequantised(rows).case(text));
    }
    cases
}

/// The product `out[m, n] = Σ x[m, k] * ((w[n, k / 8] >> k % 8 * 4 & 15) - 7) * scale[n, k / 32]`, the form of
/// MLC-LLM's 4-bit weights.
struct Dequantised {
    rows: i64,
}

fn dequantised(rows: i64) -> Dequantised {
    Dequantised { rows }
}

impl Dequantised {
    fn case(self, text: &str) -> Case {
        let (m, n, k) = (self.rows, 24, 128);
        let mut builder = KernelBuilder::new(name("fused_dequantize_matmul"));
        let dims = |sizes: [i64; 2]| sizes.map(Dim::from).to_vec();
        let x = builder.param("x", &dims([m, k]), F16);
        let w = builder.param("w", &dims([n, k / 8]), DType::UINT32);
        let scale = builder.param("scale", &dims([n, k / 32]), F16);
        let out = builder.param("out", &dims([m, n]), F32);
        let extents = builder.shape(out);
        builder.reduce(out, &extents, &[Expr::int(k)], Expr::number(0.0, F32), BinaryOp::Add, |builder, at, inner| {
            let place = |by: i64| [at[1].clone(), inner[0].clone().floor_div(Expr::int(by))];
            let shift = (inner[0].clone().floor_mod(Expr::int(8)) * Expr::int(4)).cast(DType::UINT32);
            let fifteen = Expr::Int { value: 15, dtype: DType::UINT32 };
            let shifted = Expr::binary(BinaryOp::ShiftRight, builder.load(w, &place(8)), shift);
            let digit = Expr::binary(BinaryOp::BitAnd, shifted, fifteen).cast(F16);
            let weight = (digit - Expr::number(7.0, F16)) * builder.load(scale, &place(32));
            let x = builder.load(x, &[at[0].clone(), inner[0].clone()]);
            (at.to_vec(), x.cast(F32) * weight.cast(F32))
        });
        Case::new(
            &format!("{text} and weights of 4 bits"),
            builder.finish(),
            &[&[m, k], &[n, k / 8], &[n, k / 32], &[m, n]],
        )
        .within(2e-2)
    }
}

#[test]
#[ignore = "sweep: .ci/full"]
fn products_agree_with_the_interpreter_in_every_order() {
    crate::simulated::agree(&cases());
}

#[test]
#[ignore = "sweep: .ci/full"]
fn large_tiles_agree_with_the_interpreter_in_every_order() {
    crate::simulated::agree_for(&cases(), &small_device());
}

#[test]
#[ignore = "sweep: .ci/full"]
fn tensor_cores_multiply_float32_where_the_target_lets_them() {
    let target = Target { tf32: true, ..Target::default() };
    let cases: Vec<Case> = cases()
        .into_iter()
        .filter(|case| case.func.buffers.iter().all(|one| one.dtype == F32))
        .map(|case| case.within(1e-2))
        .collect();
    assert!(crate::source_for(&cases, &target).text.contains("rx_mma_tf32("));
    crate::simulated::agree_for(&cases, &target);
}

#[test]
fn narrow_products_agree_with_the_interpreter_in_every_order() {
    crate::simulated::agree(&narrow_cases());
}

#[test]
fn rules_take_products_with_their_epilogues() {
    crate::are_taken_by("gemm", &cases(), &Target::default());
    crate::are_taken_by("gemv", &narrow_cases(), &Target::default());
}

/// The product writes 8 elements of `c`. With its K loop it has 128 iterations, as many as `c` has elements.
#[test]
fn epilogue_of_a_product_of_some_rows_is_not_fused() {
    let params = "a: T.Buffer((2, 16), \"float32\"), b: T.Buffer((16, 4), \"float32\"), c: T.Buffer((32, 4), \"float32\"), \
                  d: T.Buffer((32, 4), \"float32\")";
    let body = "\
for m, n, k in T.grid(2, 4, 16):
    c[m, n] = c[m, n] + a[m, k] * b[k, n]
for i, j in T.grid(32, 4):
    d[i, j] = c[i, j] + T.float32(1)";
    let func = crate::script::function(&format!("own({params})"), body);
    let case = Case::new("a product of some rows", func, &[&[2, 16], &[16, 4], &[32, 4], &[32, 4]]).within(1e-4);
    let source = crate::source(std::slice::from_ref(&case));
    let rules: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
    assert!(matches!(rules[..], ["gemv" | "gemm", _]), "{:?}", source.choices);
    crate::simulated::agree(&[case]);
}

/// The part of an address along K does not fit 32 bits, or only its sum with the part along the rows does not fit.
#[test]
fn addresses_of_factors_with_over_2_to_31_elements_have_64_bits() {
    let target = Target { arch: 80, ..Target::default() };
    for ([m, n, k], text) in [
        ([512, 40_000, 60_000], "&b[b_row + (long long)summed * 40000]"),
        ([35_792, 512, 60_000], "&a[a_row + (long long)summed]"),
    ] {
        let func = product(F32, F32, [m, n, k]).func();
        let source = rx_cuda::listing(&[&func], &target);
        assert_eq!(source.choices[0].rule, "gemm", "{:?}", source.choices);
        let listed = source.functions[0].as_ref().unwrap_or_else(|error| panic!("{error}"));
        assert!(listed.contains(text), "{listed}");
    }
}

/// `40000 * 100000` alone would overflow `int`.
#[test]
fn address_of_a_constant_row_of_over_2_to_31_elements_has_64_bits() {
    let mut builder = KernelBuilder::new(name("row"));
    let x = builder.param("x", &[Dim::from(50_000), Dim::from(100_000)], F32);
    let out = builder.param("out", &[Dim::from(1024)], F32);
    builder.compute(out, |builder, at| builder.load(x, &[Expr::int(40_000), at[0].clone()]));
    let func = builder.finish();
    // The other rules print linear indices.
    let rules = RuleOrder::of(["fallback"]).unwrap_or_else(|error| panic!("{error}"));
    let source = rx_cuda::listing(&[&func], &Target { rules, ..Target::default() });
    let listed = source.functions[0].as_ref().unwrap_or_else(|error| panic!("{error}"));
    assert!(listed.contains("x[40000LL * 100000 + "), "{listed}");
}
