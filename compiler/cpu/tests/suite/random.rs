//! Random loop nests, compiled and interpreted.

use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cpu::{Argument, CpuModule, Scratch};
use rx_tensor::{Scalar, Tensor};
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, BufferId, CompareOp, Expr, Intrinsic, KernelBuilder};

/// A pseudorandom generator of choices; the number is its state, at first the seed.
struct Choices(u64);

impl Choices {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len())]
    }
}

const EXTENTS: [i64; 8] = [1, 2, 3, 5, 8, 17, 23, 36];
const DTYPES: [DType; 6] = [DType::FLOAT32, DType::INT32, DType::FLOAT64, DType::INT64, DType::FLOAT16, DType::UINT8];

/// An expression under construction: axes with their extents, and the inputs.
struct Shape<'a> {
    choices: &'a mut Choices,
    axes: Vec<(Expr, i64)>,
    inputs: &'a [(BufferId, DType, Vec<i64>)],
}

impl Shape<'_> {
    /// Returns an index into an axis of this extent and, if it may be out of range, the condition under which it is in
    /// range.
    fn index(&mut self, extent: i64) -> (Expr, Option<Expr>) {
        let (axis, own) = {
            let at = self.choices.next(self.axes.len());
            self.axes[at].clone()
        };
        let by = self.choices.next(3) as i64;
        match self.choices.next(6) {
            0 => (axis.floor_mod(Expr::int(extent)), None),
            1 => (Expr::int(self.choices.next(extent as usize) as i64), None),
            2 if own <= extent => (Expr::int(own - 1) - axis, None),
            3 => {
                let index = axis * Expr::int(by + 1) - Expr::int(1);
                (index.clone(), Some(in_range(index, Expr::int(0), Expr::int(extent))))
            }
            _ if own <= extent => (axis, None),
            _ => {
                let index = axis + Expr::int(by);
                (index.clone(), Some(index.lt(Expr::int(extent))))
            }
        }
    }

    fn load(&mut self, builder: &KernelBuilder, dtype: DType) -> Expr {
        let at = self.choices.next(self.inputs.len());
        let (buffer, own, extents) = &self.inputs[at];
        let mut inside = Expr::bool(true);
        let mut indices = Vec::new();
        for extent in extents {
            let (index, condition) = self.index(*extent);
            indices.push(index);
            inside = inside.and(condition.unwrap_or(Expr::bool(true)));
        }
        let value = builder.load(*buffer, &indices);
        Expr::select(inside, value, Expr::number(1.0, *own)).cast(dtype)
    }

    fn value(&mut self, builder: &KernelBuilder, dtype: DType, depth: u32) -> Expr {
        if depth == 0 {
            return match self.choices.next(4) {
                0 => Expr::number(self.choices.next(5) as f64, dtype),
                _ => self.load(builder, dtype),
            };
        }
        let mut part = |depth| self.value(builder, dtype, depth);
        let (a, b) = (part(depth - 1), part(depth - 1));
        match self.choices.next(8) {
            0 => a + b,
            1 => a * b,
            2 => a.min(b),
            3 => a.max(b),
            4 => a - b,
            5 => {
                let op = self.choices.of(&[CompareOp::Lt, CompareOp::Eq, CompareOp::Ge]);
                let other = self.value(builder, dtype, depth - 1);
                Expr::select(Expr::compare(op, a.clone(), other), a, b)
            }
            6 if dtype.is_float() => {
                Expr::call(self.choices.of(&[Intrinsic::Abs, Intrinsic::Tanh, Intrinsic::Sigmoid]), vec![a]) + b
            }
            _ => a,
        }
    }
}

fn filled(choices: &mut Choices, dtype: DType, shape: &[i64]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, shape).unwrap_or_else(|error| panic!("{error}"));
    for at in 0..tensor.len() {
        let value = choices.next(9) as i64 - if dtype == DType::UINT8 { 0 } else { 4 };
        tensor.set(at, if dtype.is_float() { Scalar::Float(value as f64 / 4.0) } else { Scalar::Int(value) });
    }
    tensor
}

fn check(seed: u64) {
    let choices = &mut Choices(seed);
    let dtype = choices.of(&DTYPES);
    let mut builder = KernelBuilder::new(name("random"));
    let mut tensors = Vec::new();
    let mut inputs = Vec::new();
    for at in 0..2 {
        let own = if choices.next(3) == 0 { choices.of(&DTYPES) } else { dtype };
        let extents: Vec<i64> = (0..=choices.next(3)).map(|_| choices.of(&EXTENTS)).collect();
        let dims: Vec<Dim> = extents.iter().map(|extent| Dim::from(*extent)).collect();
        inputs.push((builder.param(&format!("in{at}"), &dims, own), own, extents.clone()));
        tensors.push(filled(choices, own, &extents));
    }
    let kept: Vec<i64> = (0..=choices.next(3)).map(|_| choices.of(&EXTENTS)).collect();
    let reduced: Vec<i64> = (0..choices.next(3)).map(|_| choices.of(&EXTENTS)).collect();
    let dims: Vec<Dim> = kept.iter().map(|extent| Dim::from(*extent)).collect();
    let out = builder.param("out", &dims, dtype);
    tensors.push(filled(choices, dtype, &kept));
    let as_exprs = |extents: &[i64]| extents.iter().map(|extent| Expr::int(*extent)).collect::<Vec<_>>();
    let depth = choices.next(3) as u32;
    if reduced.is_empty() {
        builder.compute(out, |builder, axes| {
            let axes = axes.iter().cloned().zip(kept.iter().copied()).collect();
            Shape { choices, axes, inputs: &inputs }.value(builder, dtype, depth)
        });
    } else {
        let op = choices.of(&[BinaryOp::Add, BinaryOp::Max, BinaryOp::Min]);
        builder.reduce(
            out,
            &as_exprs(&kept),
            &as_exprs(&reduced),
            Expr::number(0.0, dtype),
            op,
            |builder, axes, over| {
                let own = axes.iter().cloned().zip(kept.iter().copied());
                let all = own.chain(over.iter().cloned().zip(reduced.iter().copied())).collect();
                (axes.to_vec(), Shape { choices, axes: all, inputs: &inputs }.value(builder, dtype, depth))
            },
        );
    }
    let func = builder.finish();
    let copies = tensors.iter().map(Tensor::duplicate).collect::<Result<Vec<_>, _>>();
    let mut expected = copies.unwrap_or_else(|error| panic!("{error}"));
    rx_interp::run(&func, &mut expected, &[]).unwrap_or_else(|error| panic!("seed {seed}: interpreter: {error}"));
    let module = CpuModule::compile(&[&func]).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let kernel = module.kernel(0).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let shapes: Vec<Vec<i64>> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let mut arguments: Vec<Argument<'_>> =
        tensors.iter_mut().map(|tensor| Argument::Write(tensor.bytes_mut())).collect();
    let run = kernel.run(&mut arguments, &shapes, &[], &mut Scratch::default());
    run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let tolerance = match dtype {
        DType::FLOAT16 => 5e-2,
        DType::FLOAT64 => 1e-9,
        _ => 1e-4,
    };
    let (expected, actual) = (&expected[2], &tensors[2]);
    // Sums of `float16` overflow at a different step if partial sums are kept separately or in a wider dtype.
    let limit = if dtype == DType::FLOAT16 { 2000.0 } else { f64::INFINITY };
    for at in 0..expected.len() {
        let (Some(wanted), Some(found)) = (expected.get(at), actual.get(at)) else { continue };
        let (wanted, found) = (wanted.as_float(), found.as_float());
        let close = wanted.is_finite() && (wanted - found).abs() <= tolerance * wanted.abs().max(1.0);
        let exact = wanted == found || wanted.is_nan() && found.is_nan();
        let skip = wanted.abs() > limit || wanted.is_nan() && dtype == DType::FLOAT16;
        assert!(
            exact || skip || (dtype.is_float() && close),
            "seed {seed}, {dtype}, element {at}: {found}, not {wanted}\n{func:#?}"
        );
    }
}

#[test]
fn random_nests() {
    let count = std::env::var("RX_CPU_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    for seed in 0..count {
        check(seed);
    }
}
