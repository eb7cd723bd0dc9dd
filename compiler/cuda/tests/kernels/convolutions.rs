//! Convolutions: padded, strided, dilated, grouped and transposed, in both layouts.

use crate::case::Case;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, Expr, KernelBuilder};

const F16: DType = DType::FLOAT16;
const F32: DType = DType::FLOAT32;

/// The extents, the layout and the steps of a convolution.
#[derive(Clone, Copy)]
struct Convolution {
    dtype: DType,
    sum: DType,
    /// Whether channels are the last axis of data and result. The weights then have the input channels before the
    /// output channels.
    channels_last: bool,
    groups: i64,
    stride: i64,
    dilation: i64,
    padding: i64,
    /// Whether it is transposed: `data[i]` contributes to `out[o]` where `i * stride = o + padding - k * dilation`.
    is_transposed: bool,
    batch: i64,
    channels: [i64; 2],
    size: [i64; 2],
    taps: [i64; 2],
}

impl Convolution {
    fn out(&self, axis: usize) -> i64 {
        let reach = (self.taps[axis] - 1) * self.dilation;
        match self.is_transposed {
            false => (self.size[axis] + 2 * self.padding - reach - 1) / self.stride + 1,
            true => (self.size[axis] - 1) * self.stride - 2 * self.padding + reach + 1,
        }
    }

    fn shapes(&self) -> [Vec<i64>; 3] {
        let [channels, outputs] = self.channels;
        let laid_out = |n: i64, c: i64, [h, w]: [i64; 2]| match self.channels_last {
            true => vec![n, h, w, c],
            false => vec![n, c, h, w],
        };
        let weights = match self.channels_last {
            true => vec![self.taps[0], self.taps[1], channels / self.groups, outputs],
            false => vec![outputs, channels / self.groups, self.taps[0], self.taps[1]],
        };
        let out = [self.out(0), self.out(1)];
        [laid_out(self.batch, channels, self.size), weights, laid_out(self.batch, outputs, out)]
    }

    fn case(self, text: &str) -> Case {
        let shapes = self.shapes();
        let dims = |shape: &[i64]| shape.iter().map(|size| Dim::from(*size)).collect::<Vec<_>>();
        let mut builder = KernelBuilder::new(name("conv2d"));
        let x = builder.param("x", &dims(&shapes[0]), self.dtype);
        let w = builder.param("w", &dims(&shapes[1]), self.dtype);
        let out = builder.param("out", &dims(&shapes[2]), self.sum);
        let (inputs, outputs) = (self.channels[0] / self.groups, self.channels[1] / self.groups);
        let spatial = [self.batch, self.groups, outputs, self.out(0), self.out(1)].map(Expr::int);
        let reduced = [inputs, self.taps[0], self.taps[1]].map(Expr::int);
        builder.reduce(out, &spatial, &reduced, Expr::number(0.0, self.sum), BinaryOp::Add, |builder, at, k| {
            let channel = |within: &Expr, each: i64| match self.groups {
                1 => within.clone(),
                _ => at[1].clone() * Expr::int(each) + within.clone(),
            };
            let mut inside = Expr::bool(true);
            let mut position = |axis: usize| {
                let reach = k[1 + axis].clone() * Expr::int(self.dilation);
                let stride = Expr::int(self.stride);
                let position = match self.is_transposed {
                    false => at[3 + axis].clone() * stride + reach - Expr::int(self.padding),
                    true => {
                        let reached = at[3 + axis].clone() + Expr::int(self.padding) - reach;
                        let meets = reached.clone().floor_mod(stride.clone()).eq(Expr::int(0));
                        inside = inside.clone().and(meets);
                        reached.floor_div(stride)
                    }
                };
                inside = inside.clone().and(in_range(position.clone(), Expr::int(0), Expr::int(self.size[axis])));
                position
            };
            let [row, column] = [position(0), position(1)];
            let (input, output) = (channel(&k[0], inputs), channel(&at[2], outputs));
            let laid_out = |c: Expr, [h, w]: [Expr; 2]| match self.channels_last {
                true => vec![at[0].clone(), h, w, c],
                false => vec![at[0].clone(), c, h, w],
            };
            let data = builder.load(x, &laid_out(input, [row, column]));
            let weight = match self.channels_last {
                true => [k[1].clone(), k[2].clone(), k[0].clone(), output.clone()],
                false => [output.clone(), k[0].clone(), k[1].clone(), k[2].clone()],
            };
            let data = Expr::select(inside, data, Expr::number(0.0, self.dtype)).cast(self.sum);
            let value = data * builder.load(w, &weight).cast(self.sum);
            (laid_out(output, [at[3].clone(), at[4].clone()]), value)
        });
        let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
        let func = builder.finish();
        let (func, _) = rx_loops::guards(&rx_loops::simplify(&func));
        Case::new(text, func, &shapes).within(if self.sum.is_int() { 0.0 } else { 1e-4 })
    }
}

impl Convolution {
    /// Returns a transposed convolution without dilation as two sums: first, for each tap and input position, the sum
    /// over the input channels; then, for each output, the sum over its taps.
    fn gathered(self, text: &str) -> Case {
        let shapes = self.shapes();
        let dims = |shape: &[i64]| shape.iter().map(|size| Dim::from(*size)).collect::<Vec<_>>();
        let mut builder = KernelBuilder::new(name("conv2d_transpose"));
        let x = builder.param("x", &dims(&shapes[0]), self.dtype);
        let w = builder.param("w", &dims(&shapes[1]), self.dtype);
        let out = builder.param("out", &dims(&shapes[2]), self.sum);
        let (inputs, outputs) = (self.channels[0] / self.groups, self.channels[1] / self.groups);
        let kept = [&[self.batch, self.groups, outputs][..], &self.taps, &self.size].concat();
        let products = builder.temporary("products", &dims(&kept), self.sum);
        let channel = |group: &Expr, within: &Expr, each: i64| match self.groups {
            1 => within.clone(),
            _ => group.clone() * Expr::int(each) + within.clone(),
        };
        let laid_out = |n: &Expr, c: Expr, places: &[Expr]| match self.channels_last {
            true => vec![n.clone(), places[0].clone(), places[1].clone(), c],
            false => vec![n.clone(), c, places[0].clone(), places[1].clone()],
        };
        let (zero, sum) = (Expr::number(0.0, self.sum), self.sum);
        let spatial: Vec<Expr> = kept.iter().map(|extent| Expr::int(*extent)).collect();
        builder.reduce(products, &spatial, &[Expr::int(inputs)], zero.clone(), BinaryOp::Add, |builder, at, k| {
            let input = channel(&at[1], &k[0], inputs);
            let output = channel(&at[1], &at[2], outputs);
            let data = builder.load(x, &laid_out(&at[0], input, &at[5..7]));
            let weight = match self.channels_last {
                true => vec![at[3].clone(), at[4].clone(), k[0].clone(), output],
                false => vec![output, k[0].clone(), at[3].clone(), at[4].clone()],
            };
            (at.to_vec(), data.cast(sum) * builder.load(w, &weight).cast(sum))
        });
        let stride = Expr::int(self.stride);
        let spatial = [self.batch, self.groups, outputs, self.out(0), self.out(1)].map(Expr::int);
        let reduced = self.taps.map(|taps| Expr::int((taps + self.stride - 1) / self.stride));
        builder.reduce(out, &spatial, &reduced, zero.clone(), BinaryOp::Add, |builder, at, number| {
            let (mut taps, mut places, mut inside) = (Vec::new(), Vec::new(), Expr::bool(true));
            for axis in 0..2 {
                let reached = at[3 + axis].clone() + Expr::int(self.padding);
                let tap = reached.clone().floor_mod(stride.clone()) + number[axis].clone() * stride.clone();
                let place = reached.floor_div(stride.clone()) - number[axis].clone();
                inside = inside.clone().and(tap.clone().lt(Expr::int(self.taps[axis])));
                inside = inside.clone().and(in_range(place.clone(), Expr::int(0), Expr::int(self.size[axis])));
                taps.push(tap);
                places.push(place);
            }
            let from = [&at[..3], &taps, &places].concat();
            let output = channel(&at[1], &at[2], outputs);
            (laid_out(&at[0], output, &at[3..]), Expr::select(inside, builder.load(products, &from), zero))
        });
        let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
        let (func, _) = rx_loops::guards(&rx_loops::simplify(&builder.finish()));
        Case::new(text, func, &shapes).within(if self.sum.is_int() { 0.0 } else { 1e-4 })
    }
}

/// Returns a convolution of 3 x 3.
fn plain() -> Convolution {
    Convolution {
        dtype: F32,
        sum: F32,
        channels_last: false,
        groups: 1,
        stride: 1,
        dilation: 1,
        padding: 1,
        is_transposed: false,
        batch: 2,
        channels: [5, 7],
        size: [9, 8],
        taps: [3, 3],
    }
}

/// Returns a convolution with enough rows, columns and summed values for large tiles, with padding and channels last.
pub fn large(dtype: DType, sum: DType) -> Case {
    let sizes = Convolution { batch: 1, channels: [32, 128], size: [15, 8], ..plain() };
    Convolution { dtype, sum, channels_last: true, ..sizes }.case("a large convolution")
}

/// Returns convolutions of sizes that occur in models.
pub fn templates() -> Vec<(&'static str, Case)> {
    let of = |channels: [i64; 2], size: i64, taps: i64| Convolution {
        channels,
        size: [size; 2],
        taps: [taps; 2],
        padding: taps / 2,
        batch: 1,
        ..plain()
    };
    let narrow = |convolution: Convolution| Convolution { dtype: DType::BFLOAT16, ..convolution };
    let mut templates = Vec::new();
    for (name, of_bf16, convolution) in [
        ("3 x 3, 64 to 64, 56", "3 x 3, 64 to 64, 56, bfloat16", of([64, 64], 56, 3)),
        ("3 x 3, 256 to 256, 14", "3 x 3, 256 to 256, 14, bfloat16", of([256, 256], 14, 3)),
        ("1 x 1, 768 to 256, 64", "1 x 1, 768 to 256, 64, bfloat16", of([768, 256], 64, 1)),
        ("7 x 7, 3 to 64, 56", "7 x 7, 3 to 64, 56, bfloat16", Convolution { stride: 2, ..of([3, 64], 112, 7) }),
        (
            "transposed 4 x 4, 64 to 64, 16",
            "transposed 4 x 4, 64 to 64, 16, bfloat16",
            Convolution { is_transposed: true, stride: 2, padding: 1, ..of([64, 64], 16, 4) },
        ),
    ] {
        templates.push((name, convolution.case(name)));
        templates.push((of_bf16, narrow(convolution).case(of_bf16)));
    }
    let last = Convolution { channels_last: true, ..narrow(of([64, 64], 56, 3)) };
    templates.push(("3 x 3, 64 to 64, 56, bfloat16, channels last", last.case("channels last")));
    templates
}

pub fn cases() -> Vec<Case> {
    let plain = plain();
    let mut cases = Vec::new();
    for (text, dtype, sum) in [("float32", F32, F32), ("float16", F16, F32), ("int8", DType::INT8, DType::INT32)] {
        for (layout, channels_last) in [("channels first", false), ("channels last", true)] {
            let plain = Convolution { dtype, sum, channels_last, ..plain };
            let mut case = |title: &str, convolution: Convolution| {
                cases.push(convolution.case(&format!("{title} of {text}, {layout}")));
            };
            case("convolution of 3 x 3", plain);
            case("convolution of 1 x 1", Convolution { taps: [1, 1], padding: 0, channels: [24, 40], ..plain });
            case("convolution in steps of 2", Convolution { stride: 2, taps: [3, 2], ..plain });
            case("dilated convolution", Convolution { dilation: 2, ..plain });
            case("grouped convolution", Convolution { groups: 2, channels: [6, 8], ..plain });
            case("convolution of many channels", Convolution { channels: [16, 32], batch: 1, ..plain });
        }
    }
    cases.extend(transposed(plain).into_iter().map(|(case, _)| case));
    cases
}

/// Returns transposed convolutions, each with the number of phases of its outputs.
fn transposed(plain: Convolution) -> Vec<(Case, i64)> {
    let mut cases = Vec::new();
    for (text, dtype, sum) in [("float32", F32, F32), ("float16", F16, F32), ("int8", DType::INT8, DType::INT32)] {
        for (layout, channels_last) in [("channels first", false), ("channels last", true)] {
            let of = Convolution { dtype, sum, channels_last, is_transposed: true, stride: 2, size: [4, 5], ..plain };
            let mut case = |title: &str, convolution: Convolution, phases: i64| {
                let text = format!("transposed convolution {title} of {text}, {layout}");
                cases.push((convolution.case(&text), phases));
                // The gathered form is added only where the rule takes it as one product. If the stride does not divide
                // the taps, that may have too many terms for 32-bit dtypes: 3 x 3 taps in steps of 2 are 16 terms, not
                // 9.
                let is_gathered = convolution.taps[0] % convolution.stride == 0 || dtype.bits < 32;
                if convolution.dilation == 1 && is_gathered {
                    cases.push((convolution.gathered(&format!("{text}, gathered")), phases));
                }
            };
            case("of 4 x 4 in steps of 2", Convolution { taps: [4, 4], ..of }, 4);
            case("of 3 x 3 in steps of 2", of, 4);
            case("of 5 x 4 in steps of 2, not padded", Convolution { taps: [5, 4], padding: 0, ..of }, 4);
            case("of 3 x 6 in steps of 3", Convolution { stride: 3, taps: [3, 6], padding: 2, ..of }, 9);
            case("of groups in steps of 2", Convolution { groups: 2, channels: [6, 4], taps: [4, 4], ..of }, 4);
            case("dilated by 3 in steps of 2", Convolution { dilation: 3, ..of }, 4);
            case("dilated by 2 in steps of 2", Convolution { dilation: 2, ..of }, 1);
            let many = Convolution { channels: [40, 24], batch: 1, taps: [4, 4], ..of };
            case("of many channels in steps of 2", many, 4);
        }
    }
    cases
}

#[test]
fn transposed_convolutions_sum_the_terms_of_a_phase() {
    let (cases, phases): (Vec<Case>, Vec<i64>) = transposed(plain()).into_iter().unzip();
    let source = crate::source(&cases);
    for (at, (case, phases)) in cases.iter().zip(phases).enumerate() {
        let choices: Vec<_> = source.choices.iter().filter(|one| one.function == at).collect();
        let wanted = format!("{phases} phases of outputs");
        let is_by_phase = choices.len() == 1 && choices[0].note.contains(&wanted);
        assert!(is_by_phase || phases == 1, "{}: {choices:?}", case.name);
    }
}
