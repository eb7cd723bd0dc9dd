//! Compares matrix products, most of them of few rows or columns, and windowed sums with the interpreter. The finite
//! values are small integers, so that sums are exact in any order.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cpu::{Argument, CpuModule, Scratch};
use rx_tensor::{Scalar, Tensor};
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, Expr, KernelBuilder, PrimFunc};

const FLOAT: DType = DType::FLOAT32;

fn dims(extents: &[i64]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

fn zero() -> Expr {
    Expr::number(0.0, FLOAT)
}

/// Returns values for a function's buffers: small integers, and optionally one infinite or NaN element in the second
/// buffer.
fn arguments(func: &PrimFunc, not_finite: Option<f64>) -> Vec<Tensor> {
    let mut state = 1u64;
    let tensors = func.buffer_params().enumerate().map(|(number, buffer)| {
        let shape: Vec<i64> = func.buffer(buffer).shape.iter().filter_map(Expr::as_int).collect();
        let mut tensor = Tensor::zeros(FLOAT, &shape).expect("a small tensor");
        for at in 0..tensor.len() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            tensor.set(at, Scalar::Float(((state >> 33) % 9) as f64 - 4.0));
        }
        if let (1, Some(value)) = (number, not_finite) {
            tensor.set(tensor.len() / 2, Scalar::Float(value));
        }
        tensor
    });
    tensors.collect()
}

/// Returns the contents of all buffers after the interpreter ran the function, and after the compiled code did. NaNs
/// with different bits are equal, and so are zeros of different sign, which the library's sums do not preserve.
fn outcomes(func: &PrimFunc, tensors: &[Tensor]) -> [Vec<Vec<Option<u64>>>; 2] {
    let copies = || tensors.iter().map(|tensor| tensor.duplicate().expect("a small tensor")).collect::<Vec<Tensor>>();
    let (mut expected, mut actual) = (copies(), copies());
    rx_interp::run(func, &mut expected, &[]).expect("the interpreter runs it");
    let module = CpuModule::compile(&[func]).expect("it compiles");
    let shapes: Vec<Vec<i64>> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let mut buffers: Vec<Argument<'_>> = actual.iter_mut().map(|tensor| Argument::Write(tensor.bytes_mut())).collect();
    let kernel = module.kernel(0).expect("it compiles");
    kernel.run(&mut buffers, &shapes, &[], &mut Scratch::default()).expect("it runs");
    let bits = |tensor: &Tensor| {
        let values = (0..tensor.len()).filter_map(|at| tensor.get(at)).map(|value| value.as_float());
        values.map(|value| (!value.is_nan()).then_some((value + 0.0).to_bits())).collect()
    };
    [expected, actual].map(|tensors| tensors.iter().map(bits).collect())
}

/// `c = a · b`, or `c = 3 + a · b` if `accumulate`, where `transposed` says which of the three matrices are stored
/// transposed.
fn product([m, n, k]: [i64; 3], transposed: [bool; 3], accumulate: bool) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("product"));
    let shape =
        |rows: i64, columns: i64, transposed: bool| dims(&if transposed { [columns, rows] } else { [rows, columns] });
    let a = builder.param("a", &shape(m, k, transposed[0]), FLOAT);
    let b = builder.param("b", &shape(k, n, transposed[1]), FLOAT);
    let c = builder.param("c", &shape(m, n, transposed[2]), FLOAT);
    let at = |row: &Expr, column: &Expr, transposed: bool| match transposed {
        true => [column.clone(), row.clone()],
        false => [row.clone(), column.clone()],
    };
    let initial = Expr::number(if accumulate { 3.0 } else { 0.0 }, FLOAT);
    let (rows, summed) = ([Expr::int(m), Expr::int(n)], [Expr::int(k)]);
    builder.reduce(c, &rows, &summed, initial, BinaryOp::Add, |builder, axes, reduced| {
        let left = builder.load(a, &at(&axes[0], &reduced[0], transposed[0]));
        let right = builder.load(b, &at(&reduced[0], &axes[1], transposed[1]));
        (at(&axes[0], &axes[1], transposed[2]).to_vec(), left * right)
    });
    builder.finish()
}

/// A depthwise convolution.
#[derive(Clone, Debug)]
struct Depthwise {
    batch: i64,
    channels: i64,
    size: [i64; 2],
    kernel: [i64; 2],
    stride: i64,
    dilation: i64,
    padding: [i64; 2],
    channels_last: bool,
    /// The number of output channels for each input channel.
    multiplier: i64,
}

fn depthwise() -> impl Strategy<Value = Depthwise> {
    let extents = ((1i64..3, 1i64..20), (1i64..40, 1i64..40), (1i64..4, 1i64..4));
    (extents, (1i64..4, 1i64..3), (0i64..3, 0i64..3), any::<bool>(), 1i64..3).prop_map(
        |(
            ((batch, channels), (height, width), (kh, kw)),
            (stride, dilation),
            (top, left),
            channels_last,
            multiplier,
        )| {
            Depthwise {
                batch,
                channels,
                size: [height.max((kh - 1) * dilation + 1), width.max((kw - 1) * dilation + 1)],
                kernel: [kh, kw],
                stride,
                dilation,
                padding: [top, left],
                channels_last,
                multiplier,
            }
        },
    )
}

fn convolution(spec: &Depthwise) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("depthwise"));
    let [height, width] = [0, 1]
        .map(|at| (spec.size[at] + 2 * spec.padding[at] - (spec.kernel[at] - 1) * spec.dilation - 1) / spec.stride + 1);
    let (channels, out_channels) = (spec.channels, spec.channels * spec.multiplier);
    let place = |channels: i64, [height, width]: [i64; 2]| match spec.channels_last {
        true => dims(&[spec.batch, height, width, channels]),
        false => dims(&[spec.batch, channels, height, width]),
    };
    let [kh, kw] = spec.kernel;
    let data = builder.param("data", &place(channels, spec.size), FLOAT);
    let weights = if spec.channels_last { [kh, kw, out_channels] } else { [out_channels, kh, kw] };
    let weight = builder.param("weight", &dims(&weights), FLOAT);
    let out = builder.param("out", &place(out_channels, [height, width]), FLOAT);
    let spatial = [spec.batch, channels, spec.multiplier, height, width].map(Expr::int);
    builder.reduce(out, &spatial, &[kh, kw].map(Expr::int), zero(), BinaryOp::Add, |builder, axes, taps| {
        let at = |channel: Expr, y: Expr, x: Expr| match spec.channels_last {
            true => vec![axes[0].clone(), y, x, channel],
            false => vec![axes[0].clone(), channel, y, x],
        };
        let position = |at: usize| {
            axes[3 + at].clone() * Expr::int(spec.stride) + taps[at].clone() * Expr::int(spec.dilation)
                - Expr::int(spec.padding[at])
        };
        let [y, x] = [position(0), position(1)];
        let inside = |at: Expr, axis: usize| in_range(at, Expr::int(0), Expr::int(spec.size[axis]));
        let inside = inside(y.clone(), 0).and(inside(x.clone(), 1));
        let channel = axes[1].clone() * Expr::int(spec.multiplier) + axes[2].clone();
        let element = Expr::select(inside, builder.load(data, &at(axes[1].clone(), y, x)), zero());
        let tap = match spec.channels_last {
            true => [taps[0].clone(), taps[1].clone(), channel.clone()],
            false => [channel.clone(), taps[0].clone(), taps[1].clone()],
        };
        (at(channel, axes[3].clone(), axes[4].clone()), element * builder.load(weight, &tap))
    });
    builder.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn products_of_few_rows(
        (m, n, k) in (1i64..20, 1i64..20, 1i64..70),
        transposed in any::<[bool; 3]>(),
        accumulate in any::<bool>(),
    ) {
        let func = product([m, n, k], transposed, accumulate);
        let [expected, actual] = outcomes(&func, &arguments(&func, None));
        prop_assert_eq!(expected, actual);
    }

    /// Padding contributes 0 times the weight, which is NaN if the weight is not finite.
    #[test]
    fn depthwise_convolutions(spec in depthwise(), weight in prop::sample::select(vec![None, Some(f64::INFINITY), Some(f64::NAN)])) {
        let func = convolution(&spec);
        let [expected, actual] = outcomes(&func, &arguments(&func, weight));
        prop_assert_eq!(expected, actual);
    }
}

#[test]
fn a_vector_and_more_columns_than_a_strip() {
    for (sizes, transposed) in
        [([1, 2500, 9], false), ([1, 2500, 9], true), ([2500, 1, 6], false), ([2500, 1, 6], true)]
    {
        let func = product(sizes, [transposed; 3], false);
        let [expected, actual] = outcomes(&func, &arguments(&func, None));
        assert_eq!(expected, actual, "{sizes:?} {transposed}");
    }
}

/// Memory is compact whatever strides a buffer declares: the library must not read beyond it.
#[test]
fn product_of_buffer_with_strides_reads_dense_memory() {
    let mut func = product([16, 16, 16], [false; 3], false);
    let first = func.buffer_params().next().expect("a parameter");
    func.buffers[first.0 as usize].strides = Some(vec![Expr::int(1 << 20), Expr::int(1)]);
    let [expected, actual] = outcomes(&func, &arguments(&func, None));
    assert_eq!(actual, expected);
}
