//! Functions with symbolic extents, whose kernels load vectors of 16 bytes (8 bytes of `int8`). One CUDA text is used
//! for all extents. If extents must be multiples of the vector width, the host launches the kernel with vectors where
//! they are, otherwise another one with single elements. A flat range has vectors for any extent, and its last elements
//! are loaded one by one.

use crate::case::Case;
use crate::rows::{Axes, biased, layer_norm, reduction, softmax, symbols};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cuda::CudaSource;
use rx_cuda::images::resources::of as resources;
use rx_cuda::nvrtc::{Output, compile};
use rx_cuda::simulator::{Call, Order};
use rx_tir::{BinaryOp, Expr, KernelBuilder, PrimFunc};

const F16: DType = DType::FLOAT16;
const F32: DType = DType::FLOAT32;

/// Lengths that are multiples of a vector's width, and others.
const LENGTHS: [i64; 8] = [0, 1, 7, 8, 9, 64, 1000, 1024];

/// A function, and calls of it.
pub(crate) struct Called {
    name: &'static str,
    func: PrimFunc,
    /// The rule that takes it.
    rule: &'static str,
    /// The shapes of its buffers in each call.
    calls: Vec<Vec<Vec<i64>>>,
    /// The width of vector loads of its kernels, in bytes.
    bytes: u32,
}

fn called(
    name: &'static str,
    func: PrimFunc,
    rule: &'static str,
    bytes: u32,
    shapes: &dyn Fn(i64) -> Vec<Vec<i64>>,
) -> Called {
    Called { name, func, rule, calls: LENGTHS.iter().map(|length| shapes(*length)).collect(), bytes }
}

pub(crate) fn all() -> Vec<Called> {
    let n = || Dim::symbol(name("n"));
    let two = || symbols(&[3, 0]);
    let both = |length: i64| vec![vec![3, length], vec![3, length]];
    let sum = (BinaryOp::Add, 0.0);
    let of = |dims: &[Dim], axes: Axes, dtype: DType, (op, init): (BinaryOp, f64)| {
        reduction(dims, axes, dtype, op, Expr::number(init, dtype))
    };
    let kept = |length: i64| vec![vec![3, length], vec![3], vec![3]];
    vec![
        called("softmax of float32", softmax(&two(), 1, F32), "rows", 16, &both),
        called("softmax of float16", softmax(&two(), 1, F16), "rows", 16, &both),
        called("layer norm of float16 with weights", layer_norm(&Dim::from(3), &n(), F16), "rows", 16, &|length| {
            vec![vec![3, length], vec![length], vec![length], vec![3, length], vec![3]]
        }),
        called("sums of rows of bfloat16", of(&two(), (1, 2), DType::BFLOAT16, sum), "rows", 16, &kept),
        called("maxima of rows of int8", of(&two(), (1, 2), DType::INT8, (BinaryOp::Max, -9.0)), "rows", 8, &kept),
        called("the sum of all", of(&[n()], (0, 1), F32, sum), "reduction", 16, &|length| {
            vec![vec![length], vec![], vec![]]
        }),
        called("a bias along the last axis", biased(&two(), (1, 2), F16), "elementwise", 16, &|length| {
            vec![vec![3, length], vec![length], vec![3, length], vec![3, length]]
        }),
        called("a bias along the first axis", biased(&two(), (0, 1), F32), "elementwise", 16, &|length| {
            vec![vec![3, length], vec![3], vec![3, length], vec![3, length]]
        }),
        called("one flat range", biased(&[n()], (0, 1), F32), "elementwise", 16, &|length| vec![vec![length]; 4]),
        called("float16 as float32", widened(&two()), "elementwise", 16, &both),
        called("rows by number", picked(&n(), F16), "elementwise", 16, &|length| {
            vec![vec![5, length], vec![3], vec![3, length]]
        }),
        called("the second half of columns", halves(&n()), "elementwise", 16, &|length| {
            vec![vec![3, 2 * length], vec![3, length]]
        }),
    ]
}

/// Returns `out = float32(x) * 2`.
fn widened(shape: &[Dim]) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("widened"));
    let (x, out) = (builder.param("x", shape, F16), builder.param("out", shape, F32));
    builder.compute(out, |builder, at| builder.load(x, at).cast(F32) * Expr::number(2.0, F32));
    builder.finish()
}

/// Returns `out[i, j] = table[numbers[i], j]`, where the table has five rows and the numbers are clamped to 0 to 4.
fn picked(length: &Dim, dtype: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("picked"));
    let table = builder.param("table", &[Dim::from(5), length.clone()], dtype);
    let numbers = builder.param("numbers", &[Dim::from(3)], DType::INT64);
    let out = builder.param("out", &[Dim::from(3), length.clone()], dtype);
    builder.compute(out, |builder, at| {
        let number = builder.load(numbers, &at[..1]);
        let number = Expr::select(number.clone().lt(Expr::int(0)), Expr::int(0), number).min(Expr::int(4));
        builder.load(table, &[number, at[1].clone()])
    });
    rx_loops::guards(&builder.finish()).0
}

/// Returns `out[i, j] = x[i, j + n]`, where `x` has `2 * n` columns.
fn halves(length: &Dim) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("halves"));
    let x = builder.param("x", &[Dim::from(3), length * &Dim::from(2)], F32);
    let out = builder.param("out", &[Dim::from(3), length.clone()], F32);
    let columns = builder.dim(length);
    builder.compute(out, |builder, at| builder.load(x, &[at[0].clone(), at[1].clone() + columns.clone()]));
    builder.finish()
}

impl Called {
    pub(crate) fn cases(&self) -> Vec<Case> {
        let case = |shapes: &Vec<Vec<i64>>| {
            let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
            let said = format!("{} {:?}", self.name, shapes.first());
            Case::new(&said, self.func.clone(), &shapes).within(1e-2)
        };
        self.calls.iter().map(case).collect()
    }

    fn source(&self) -> CudaSource {
        crate::source(&self.cases()[..1])
    }
}

#[test]
fn one_kernel_text_serves_every_length() {
    for called in all() {
        let (source, cases) = (called.source(), called.cases());
        let taken: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
        assert_eq!(taken, [called.rule], "{}: {:?}", called.name, source.choices);
        let Some(simulator) = crate::simulated::simulator(&source) else { return };
        let bytes: Vec<Vec<&[u8]>> = cases.iter().map(Case::bytes).collect();
        let values: Vec<Vec<Option<i64>>> = cases.iter().map(Case::values).collect();
        let expected: Vec<_> = cases.iter().map(Case::expected).collect();
        for order in [Order::Ascending, Order::Descending, Order::Shuffled(3)] {
            let call = |at: usize| Call { function: 0, buffers: &bytes[at], values: &values[at], order };
            let calls: Vec<Call<'_>> = (0..cases.len()).map(call).collect();
            let results = simulator.run(&calls).unwrap_or_else(|error| panic!("{}: {error}", called.name));
            for ((case, result), expected) in cases.iter().zip(&results).zip(&expected) {
                case.judge(result, expected).unwrap_or_else(|why| panic!("{why}\n{}", source.text));
            }
        }
    }
}

#[test]
fn one_variant_is_launched() {
    for called in all() {
        let source = called.source();
        let function = &source.functions[0];
        for case in called.cases().iter().skip(1) {
            let plan = function.plan(&case.values()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            // A second kernel combines the partial results of the blocks.
            let wanted = if called.rule == "reduction" { 2 } else { 1 };
            assert_eq!(plan.launches.len(), wanted, "{}", case.name);
        }
    }
}

#[test]
fn kernels_access_memory_at_the_stated_width_without_spills() {
    if !crate::nvrtc::is_found() {
        return;
    }
    let disassembler = rx_cuda::sass::probe();
    for called in all() {
        let source = called.source();
        for arch in [80, 90] {
            let cubin = compile(&source.text, arch, Output::Cubin).unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
            for (kernel, found) in resources(&cubin) {
                println!("sm_{arch} {:40} {kernel:28} {found:?}", called.name);
                assert_eq!(found.local_bytes, 0, "{}: {kernel}", called.name);
            }
            if disassembler.is_err() {
                continue;
            }
            let code = rx_cuda::sass::disassemble(&cubin).unwrap_or_else(|error| panic!("{error}"));
            let width = format!(".{}", called.bytes * 8);
            let is_wide = |line: &&str| (line.contains("LDG.") || line.contains("LD.")) && line.contains(&width);
            let wide: usize = code.values().map(|text| text.lines().filter(is_wide).count()).sum();
            println!("sm_{arch} {:40} {wide} reads of {} bytes", called.name, called.bytes);
            assert!(wide > 0, "{} on sm_{arch}: nothing is read by {} bytes", called.name, called.bytes);
        }
    }
}

#[test]
fn text_of_rows_of_any_length_matches_the_golden_file() {
    let text = |func: PrimFunc| {
        let source = rx_cuda::listing(&[&func], &rx_cuda::rules::Target::default());
        source.functions[0].clone().unwrap_or_else(|error| panic!("{error}"))
    };
    crate::templates::is_written("rows_of_any_length", &text(softmax(&symbols(&[3, 0]), 1, F32)));
    crate::templates::is_written("bias_of_any_length", &text(biased(&symbols(&[3, 0]), (1, 2), F16)));
}
