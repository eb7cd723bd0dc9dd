//! Sliding windows: depthwise convolutions, convolutions of few channels, and pooling, over one to three axes, in both
//! layouts.

use crate::case::Case;
use crate::small_device;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, Expr, KernelBuilder};

const F16: DType = DType::FLOAT16;
const F32: DType = DType::FLOAT32;

/// An axis of the data: its extent (`size`), and the taps, stride, dilation and padding of the windows along it.
#[derive(Clone, Copy)]
struct WindowAxis {
    size: i64,
    taps: i64,
    stride: i64,
    dilation: i64,
    padding: i64,
}

const fn along(size: i64, taps: i64) -> WindowAxis {
    WindowAxis { size, taps, stride: 1, dilation: 1, padding: taps / 2 }
}

impl WindowAxis {
    fn out(self) -> i64 {
        (self.size + 2 * self.padding - (self.taps - 1) * self.dilation - 1) / self.stride + 1
    }
}

#[derive(Clone, Copy, PartialEq)]
enum WindowKind {
    /// A convolution with [input channels, output channels] in each group.
    Sum([i64; 2]),
    Max,
    Average,
}

/// Windows over a tensor.
#[derive(Clone)]
pub struct Windows {
    dtype: DType,
    sum: DType,
    kind: WindowKind,
    batch: i64,
    groups: i64,
    axes: Vec<WindowAxis>,
    channels_last: bool,
    /// Whether the batch and the first spatial axis are symbols.
    is_symbolic: bool,
    /// Whether an activation is applied to the data before the windows.
    in_front: bool,
    /// Whether a bias and an activation are applied to the result.
    behind: bool,
}

impl Windows {
    fn channels(&self) -> [i64; 2] {
        match self.kind {
            WindowKind::Sum([inputs, outputs]) => [self.groups * inputs, self.groups * outputs],
            _ => [self.groups; 2],
        }
    }

    /// Returns the dimensions, with symbols if `is_symbolic`, and the extents of the call.
    fn laid_out(&self, channels: i64, sizes: &[i64], symbols: [&str; 2]) -> (Vec<Dim>, Vec<i64>) {
        let dim = |size: i64, symbol: &str| if self.is_symbolic { Dim::symbol(name(symbol)) } else { Dim::from(size) };
        let mut dims = vec![dim(self.batch, symbols[0])];
        let mut shape = vec![self.batch];
        let spatial: Vec<Dim> = sizes
            .iter()
            .enumerate()
            .map(|(at, size)| if at == 0 { dim(*size, symbols[1]) } else { Dim::from(*size) })
            .collect();
        if !self.channels_last {
            dims.push(Dim::from(channels));
            shape.push(channels);
        }
        dims.extend(spatial);
        shape.extend(sizes);
        if self.channels_last {
            dims.push(Dim::from(channels));
            shape.push(channels);
        }
        (dims, shape)
    }

    pub fn case(&self, text: &str) -> Case {
        let mut builder = KernelBuilder::new(name("windows"));
        let sizes: Vec<i64> = self.axes.iter().map(|axis| axis.size).collect();
        let outs: Vec<i64> = self.axes.iter().map(|axis| axis.out()).collect();
        let [inputs, outputs] = self.channels();
        let (dims, of_data) = self.laid_out(inputs, &sizes, ["n", "h"]);
        let x = builder.param("x", &dims, self.dtype);
        let mut shapes = vec![of_data];
        let weights = match self.kind {
            WindowKind::Sum([per_group, _]) => {
                let taps = self.axes.iter().map(|axis| axis.taps);
                let shape: Vec<i64> = match self.channels_last {
                    true => taps.chain([per_group, outputs]).collect(),
                    false => [outputs, per_group].into_iter().chain(taps).collect(),
                };
                shapes.push(shape.clone());
                Some(builder.param("w", &shape.into_iter().map(Dim::from).collect::<Vec<_>>(), self.dtype))
            }
            _ => None,
        };
        let bias = self.behind.then(|| {
            shapes.push(vec![outputs]);
            builder.param("bias", &[Dim::from(outputs)], self.sum)
        });
        let (dims, of_result) = self.laid_out(outputs, &outs, ["n", "p"]);
        let is_two = self.behind || self.kind == WindowKind::Average;
        let sum = is_two.then(|| builder.temporary("sum", &dims, self.sum));
        let out = builder.param("out", &dims, self.sum);
        shapes.push(of_result);
        self.reduce(&mut builder, sum.unwrap_or(out), x, weights);
        if let Some(sum) = sum {
            let count: i64 = self.axes.iter().map(|axis| axis.taps).product();
            let at_channel = if self.channels_last { 1 + self.axes.len() } else { 1 };
            builder.compute(out, |builder, at| {
                let mut value = builder.load(sum, at);
                if self.kind == WindowKind::Average {
                    value = value / Expr::number(count as f64, self.sum);
                }
                match bias {
                    None => value,
                    Some(bias) => {
                        (value + builder.load(bias, &at[at_channel..=at_channel])).max(Expr::number(0.0, self.sum))
                    }
                }
            });
        }
        let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
        let func = builder.finish();
        let (func, _) = rx_loops::guards(&rx_loops::simplify(&func));
        let narrow = self.sum.is_float() && self.sum.bits < 32;
        let tolerance = match () {
            () if self.sum.is_int() || self.kind == WindowKind::Max => 0.0,
            () if narrow => 2e-2,
            () => 1e-4,
        };
        Case::new(text, func, &shapes).within(tolerance)
    }

    fn reduce(
        &self,
        builder: &mut KernelBuilder,
        target: rx_tir::BufferId,
        x: rx_tir::BufferId,
        weights: Option<rx_tir::BufferId>,
    ) {
        let shape = builder.shape(target);
        let of_data = builder.shape(x);
        let first = if self.channels_last { 1 } else { 2 };
        let (per_group, of_group) = match self.kind {
            WindowKind::Sum([inputs, outputs]) => (inputs, outputs),
            _ => (1, 1),
        };
        let mut spatial = vec![shape[0].clone(), Expr::int(self.groups), Expr::int(of_group)];
        spatial.extend_from_slice(&shape[first..first + self.axes.len()]);
        let mut reduced = vec![Expr::int(per_group)];
        reduced.extend(self.axes.iter().map(|axis| Expr::int(axis.taps)));
        let (op, initial) = match self.kind {
            WindowKind::Max => (BinaryOp::Max, f64::NEG_INFINITY),
            _ => (BinaryOp::Add, 0.0),
        };
        let least = |dtype: DType| match (op, dtype.is_float()) {
            (BinaryOp::Max, false) => Expr::Int { value: -128, dtype },
            _ => Expr::number(initial, dtype),
        };
        builder.reduce(target, &spatial, &reduced, least(self.sum), op, |builder, at, taps| {
            let channel = |within: &Expr, each: i64| match self.groups {
                1 => within.clone(),
                _ => at[1].clone() * Expr::int(each) + within.clone(),
            };
            let mut inside = Expr::bool(true);
            let mut positions = Vec::new();
            for (number, axis) in self.axes.iter().enumerate() {
                let position = at[3 + number].clone() * Expr::int(axis.stride)
                    + taps[1 + number].clone() * Expr::int(axis.dilation)
                    - Expr::int(axis.padding);
                if axis.padding > 0 {
                    let extent = of_data[first + number].clone();
                    inside = inside.and(in_range(position.clone(), Expr::int(0), extent));
                }
                positions.push(position);
            }
            let laid_out = |channel: Expr, places: Vec<Expr>| match self.channels_last {
                true => [vec![at[0].clone()], places, vec![channel]].concat(),
                false => [vec![at[0].clone(), channel], places].concat(),
            };
            let element = builder.load(x, &laid_out(channel(&taps[0], per_group), positions));
            let element = if self.in_front { element.max(Expr::number(0.0, self.dtype)) } else { element };
            let otherwise = if op == BinaryOp::Max { least(self.dtype) } else { Expr::number(0.0, self.dtype) };
            let element = Expr::select(inside, element, otherwise).cast(self.sum);
            let output = channel(&at[2], of_group);
            let value = match weights {
                None => element,
                Some(weights) => {
                    let places = taps[1..].to_vec();
                    let place = match self.channels_last {
                        true => [places, vec![taps[0].clone(), output.clone()]].concat(),
                        false => [vec![output.clone(), taps[0].clone()], places].concat(),
                    };
                    element * builder.load(weights, &place).cast(self.sum)
                }
            };
            (laid_out(output, at[3..].to_vec()), value)
        });
    }
}

/// Returns a depthwise convolution of 3 x 3.
fn plain() -> Windows {
    Windows {
        dtype: F32,
        sum: F32,
        kind: WindowKind::Sum([1, 1]),
        batch: 2,
        groups: 8,
        axes: vec![along(9, 3), along(7, 3)],
        channels_last: false,
        is_symbolic: false,
        in_front: false,
        behind: false,
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
    ] {
        for (layout, channels_last) in [("channels first", false), ("channels last", true)] {
            let of = |title: &str| format!("{title} of {text}, {layout}");
            let of_type = Windows { dtype, sum, channels_last, ..plain() };
            cases.push(of_type.case(&of("depthwise convolution")));
            let max = Windows { kind: WindowKind::Max, sum: dtype, ..of_type.clone() };
            cases.push(max.case(&of("overlapping maxima")));
            let narrow = Windows { kind: WindowKind::Sum([2, 4]), groups: 3, ..of_type.clone() };
            cases.push(narrow.case(&of("convolution with narrow groups")));
        }
    }
    for (layout, channels_last) in [("channels first", false), ("channels last", true)] {
        let mut case = |title: &str, windows: Windows| cases.push(windows.case(&format!("{title}, {layout}")));
        let of = Windows { channels_last, ..plain() };
        let axes = |axis: WindowAxis| vec![axis; 2];
        let steps = WindowAxis { stride: 2, ..along(11, 3) };
        case("windows in steps of 2", Windows { axes: axes(steps), ..of.clone() });
        case(
            "dilated windows",
            Windows { axes: axes(WindowAxis { dilation: 2, padding: 2, ..along(9, 3) }), ..of.clone() },
        );
        let apart = WindowAxis { dilation: 2, stride: 3, padding: 2, ..along(13, 3) };
        case("dilated windows in steps of 3", Windows { axes: axes(apart), ..of.clone() });
        case("windows of 7 x 7", Windows { axes: axes(along(9, 7)), ..of.clone() });
        case("windows within", Windows { axes: axes(WindowAxis { padding: 0, ..along(10, 3) }), ..of.clone() });
        case(
            "windows of 2 x 3",
            Windows { axes: vec![WindowAxis { padding: 0, ..along(6, 2) }, along(5, 3)], ..of.clone() },
        );
        case("two results of a channel", Windows { kind: WindowKind::Sum([1, 2]), ..of.clone() });
        case("three results of a channel, ragged", Windows { kind: WindowKind::Sum([1, 3]), groups: 5, ..of.clone() });
        case("few channels of many", Windows { kind: WindowKind::Sum([16, 3]), groups: 1, batch: 64, ..of.clone() });
        case("windows of one axis", Windows { axes: vec![along(29, 5)], ..of.clone() });
        case("windows of three axes", Windows { axes: vec![along(4, 3), along(5, 3), along(6, 3)], ..of.clone() });
        case("sizes known later", Windows { is_symbolic: true, ..of.clone() });
        case("activated before and after", Windows { in_front: true, behind: true, ..of.clone() });
        case(
            "one output",
            Windows { axes: axes(WindowAxis { padding: 0, ..along(3, 2) }), groups: 1, batch: 1, ..of.clone() },
        );
        case("no batch", Windows { is_symbolic: true, batch: 0, ..of.clone() });
        let average = Windows { kind: WindowKind::Average, ..of.clone() };
        case("averages", average.clone());
        case(
            "averages side by side",
            Windows { axes: axes(WindowAxis { stride: 2, padding: 0, ..along(8, 2) }), ..average.clone() },
        );
        case("averages with what is behind", Windows { behind: true, ..average });
        let halves = Windows { dtype: F16, sum: F32, groups: 16, ..of };
        case("halves in steps of 2 with what is behind", Windows { axes: axes(steps), behind: true, ..halves });
    }
    cases
}

/// Returns kernels of sizes that occur in models.
pub fn templates() -> Vec<(&'static str, Case)> {
    let model = Windows { batch: 1, groups: 32, axes: vec![along(56, 3); 2], ..plain() };
    let halves = Windows { dtype: DType::BFLOAT16, channels_last: true, behind: true, ..model.clone() };
    let wide = Windows { axes: vec![along(56, 7); 2], ..model.clone() };
    let narrow = Windows { kind: WindowKind::Sum([4, 4]), groups: 8, ..model.clone() };
    let maxima =
        Windows { kind: WindowKind::Max, axes: vec![WindowAxis { stride: 2, ..along(56, 3) }; 2], ..model.clone() };
    let of = |name: &'static str, windows: &Windows| (name, windows.case(name));
    vec![
        of("depthwise 3 x 3, float32", &model),
        of("depthwise 7 x 7, float32", &wide),
        of("depthwise 3 x 3, bfloat16, channels last", &halves),
        of("groups of 4 channels, 3 x 3, float32", &narrow),
        of("maxima of 3 x 3 in steps of 2, float32", &maxima),
    ]
}

#[test]
fn windows_agree_with_the_interpreter_in_every_order() {
    crate::simulated::agree(&cases());
}

#[test]
fn windows_of_many_outputs_per_thread_agree_with_the_interpreter_in_every_order() {
    crate::simulated::agree_for(&cases(), &small_device());
}

#[test]
fn rule_takes_windows_with_their_epilogues() {
    crate::are_taken_by("window", &cases(), &small_device());
}

#[test]
fn compiled_windows_keep_values_in_registers() {
    if crate::nvrtc::is_found() {
        let cases = cases();
        for target in [rx_cuda::rules::Target::default(), small_device()] {
            crate::nvrtc::keeps_in_registers(&crate::source_for(&cases, &target));
        }
    }
}
