//! Scheduled functions compute the same results as the originals: two-dimensional convolutions with groups, strides,
//! dilation and padding. Their accesses are proved in range.

use crate::support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_loops::{Step, explicit_loops, guards, schedule, simplify};
use rx_tir::KernelBuilder;
use rx_tir::builder::in_range;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::PrimFunc;

#[derive(Clone, Debug)]
struct Conv {
    batch: i64,
    groups: i64,
    in_channels: i64,
    out_channels: i64,
    size: [i64; 2],
    kernel: [i64; 2],
    stride: i64,
    dilation: i64,
    padding: i64,
    channels_last: bool,
    symbolic_batch: bool,
    symbolic_size: bool,
}

fn conv() -> impl Strategy<Value = Conv> {
    let small = || prop::sample::select(vec![1i64, 2, 3]);
    (
        (small(), small(), small(), small()),
        (4i64..7, 4i64..7, small(), small()),
        (1i64..3, 1i64..3, 0i64..3),
        any::<(bool, bool, bool)>(),
    )
        .prop_map(
            |((batch, groups, ins, outs), (height, width, kh, kw), (stride, dilation, padding), (last, sb, ss))| Conv {
                batch,
                groups,
                in_channels: ins,
                out_channels: outs,
                size: [height, width],
                kernel: [kh, kw],
                stride,
                dilation: if height.min(width) > (kh.max(kw) - 1) * dilation { dilation } else { 1 },
                padding,
                channels_last: last,
                symbolic_batch: sb,
                symbolic_size: ss,
            },
        )
}

fn build(spec: &Conv) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("conv"));
    let constant = Dim::constant;
    let batch = if spec.symbolic_batch { Dim::symbol(name("n")) } else { constant(spec.batch) };
    let size = |at: usize, text: &str| match spec.symbolic_size {
        true => Dim::symbol(name(text)),
        false => constant(spec.size[at]),
    };
    let size = [size(0, "h"), size(1, "w")];
    let out_size = |at: usize| {
        let reach = constant(2 * spec.padding - (spec.kernel[at] - 1) * spec.dilation - 1);
        &(&size[at] + &reach).floor_div(&constant(spec.stride)) + &constant(1)
    };
    let out_size = [out_size(0), out_size(1)];
    let place = |channels: Dim, size: &[Dim; 2]| match spec.channels_last {
        true => vec![batch.clone(), size[0].clone(), size[1].clone(), channels],
        false => vec![batch.clone(), channels, size[0].clone(), size[1].clone()],
    };
    let data = builder.param("data", &place(constant(spec.groups * spec.in_channels), &size), DType::FLOAT32);
    let shape = [spec.groups * spec.out_channels, spec.in_channels, spec.kernel[0], spec.kernel[1]].map(constant);
    let weight = builder.param("weight", &shape, DType::FLOAT32);
    let out = builder.param("out", &place(constant(spec.groups * spec.out_channels), &out_size), DType::FLOAT32);
    let extents: Vec<Expr> = [&batch, &constant(spec.groups), &constant(spec.out_channels), &out_size[0], &out_size[1]]
        .map(|dim| builder.dim(dim))
        .to_vec();
    let reduced = [spec.in_channels, spec.kernel[0], spec.kernel[1]].map(Expr::int);
    let sizes = size.clone().map(|dim| builder.dim(&dim));
    let spec = spec.clone();
    builder.reduce(out, &extents, &reduced, Expr::number(0.0, DType::FLOAT32), BinaryOp::Add, |builder, axes, taps| {
        let at = |channel: Expr, y: Expr, x: Expr| match spec.channels_last {
            true => vec![axes[0].clone(), y, x, channel],
            false => vec![axes[0].clone(), channel, y, x],
        };
        let int = Expr::int;
        let position = |at: usize| {
            axes[3 + at].clone() * int(spec.stride) + taps[1 + at].clone() * int(spec.dilation) - int(spec.padding)
        };
        let (y, x) = (position(0), position(1));
        let inside = match spec.padding {
            0 => Expr::bool(true),
            _ => in_range(y.clone(), int(0), sizes[0].clone()).and(in_range(x.clone(), int(0), sizes[1].clone())),
        };
        let in_channel = axes[1].clone() * int(spec.in_channels) + taps[0].clone();
        let out_channel = axes[1].clone() * int(spec.out_channels) + axes[2].clone();
        let element = builder.load(data, &at(in_channel, y, x));
        let element = Expr::select(inside, element, Expr::number(0.0, DType::FLOAT32));
        let tap = builder.load(weight, &[out_channel.clone(), taps[0].clone(), taps[1].clone(), taps[2].clone()]);
        (at(out_channel, axes[3].clone(), axes[4].clone()), element * tap)
    });
    builder.finish()
}

fn plain() -> Conv {
    Conv {
        batch: 2,
        groups: 1,
        in_channels: 3,
        out_channels: 4,
        size: [6, 6],
        kernel: [3, 3],
        stride: 1,
        dilation: 1,
        padding: 1,
        channels_last: false,
        symbolic_batch: false,
        symbolic_size: false,
    }
}

#[test]
fn a_depthwise_convolution_is_a_sum_over_windows() {
    let spec = Conv { groups: 6, in_channels: 1, out_channels: 1, ..plain() };
    for (stride, symbolic_size) in [(1, false), (2, false), (1, true), (2, true)] {
        let scheduled = schedule(&build(&Conv { stride, symbolic_size, ..spec.clone() }));
        let [Step::WindowedSum(window)] = &scheduled.steps[..] else { panic!("{:?}", scheduled.declined) };
        assert_eq!(window.taps.len(), 2);
        // One condition for each end of both axes of the image. With stride 2, windows do not pass the end of an even
        // axis.
        assert_eq!(window.conditions.len(), if stride == 2 && !symbolic_size { 2 } else { 4 });
        // Along a row of the result, the image is read with the stride, and the weight is the same.
        let lane = window.axes.last().expect("axes");
        assert_eq!([&lane.a, &lane.b, &lane.c], [&Expr::int(stride), &Expr::int(0), &Expr::int(1)]);
    }
    // With channels last, the weights of neighbouring channels are not contiguous.
    let declined = schedule(&build(&Conv { channels_last: true, ..spec }));
    assert_eq!(declined.declined, ["requires rows in both factors; found a factor without"]);
}

#[test]
fn a_pointwise_convolution_packs_nothing() {
    let spec = Conv { kernel: [1, 1], padding: 0, ..plain() };
    for channels_last in [false, true] {
        let scheduled = schedule(&build(&Conv { channels_last, ..spec.clone() }));
        assert!(scheduled.temporaries.is_empty());
        let [Step::Gemm(gemm)] = &scheduled.steps[..] else { panic!("{:?}", scheduled.steps) };
        // With channels last, all positions of all images are the rows of one product.
        assert_eq!(gemm.batch.len(), if channels_last { 0 } else { 1 });
    }
}

#[test]
fn a_large_window_matrix_is_packed_in_tiles() {
    let spec = Conv { in_channels: 64, out_channels: 64, size: [56, 56], ..plain() };
    for (channels_last, symbolic_size) in [(false, false), (true, false), (false, true), (true, true)] {
        let scheduled = schedule(&build(&Conv { channels_last, symbolic_size, ..spec.clone() }));
        let [packed] = scheduled.temporaries[..] else { panic!("one packed factor") };
        let shape = &scheduled.func.buffer(packed).shape;
        let value = |var: rx_tir::VarId| (scheduled.func.var(var).name.as_str() != "n").then_some(56);
        let elements: i64 = shape.iter().map(|dim| rx_tir::evaluate_index(dim, &value).expect("known")).product();
        assert!((1 << 15..=1 << 18).contains(&elements), "{elements}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(11), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn steps_keep_the_values_of_the_function(spec in conv()) {
        let func = build(&spec);
        let dims = [("n", spec.batch), ("h", spec.size[0]), ("w", spec.size[1])];
        let wanted = support::outcome(&func, &dims, 3);
        prop_assert!(wanted.is_ok(), "{wanted:?}");
        let scheduled = schedule(&func);
        prop_assert_eq!(&wanted, &support::outcome(&support::as_func(&scheduled), &dims, 3), "{:#?}", scheduled.steps);
        prop_assert_eq!(&wanted, &support::outcome(&explicit_loops(&simplify(&func)), &dims, 3));
        // With several output channels in a group, several outputs in a channel and several terms in a sum, the
        // convolution is one product.
        let out = |at: usize| {
            (spec.size[at] + 2 * spec.padding - (spec.kernel[at] - 1) * spec.dilation - 1) / spec.stride + 1
        };
        let columns = spec.symbolic_batch || spec.symbolic_size || spec.batch * out(0) * out(1) > 1;
        let summed = spec.in_channels * spec.kernel[0] * spec.kernel[1] > 1;
        if columns && summed && spec.out_channels > 1 {
            prop_assert_eq!(scheduled.gemm_count(), 1, "{:?}", scheduled.declined);
        }
    }

    #[test]
    fn every_access_is_proved_in_range(spec in conv()) {
        let (guarded, count) = guards(&build(&spec));
        prop_assert_eq!(count.checked, 0, "{:#?}", guarded.body);
        let (guarded, count) = guards(&simplify(&build(&spec)));
        prop_assert_eq!(count.checked, 0, "{:#?}", guarded.body);
    }
}
