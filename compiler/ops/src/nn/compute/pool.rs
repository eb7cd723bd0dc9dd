//! *Pooling*: windowed maximum or average, with fixed or adaptive windows, for any number of spatial axes and any
//! layout.
//!
//! ```text
//! avg_pool1d, data NCW
//! sum[n, c, w] = Σ_k data[n, c, w * stride + k * dilation - pad]   (in-bounds taps only)
//! out[n, c, w] = sum[n, c, w] / count(w)
//! ```
//!
//! Guarantees: axes are canonical: N, C and the output's spatial axes are spatial, the taps of the window are reduced.
//! Reference: TVM include/tvm/topi/nn/pooling.h.

use super::laid_out::LaidOut;
use crate::compute::{Lowering, Operand, Unsupported};
use crate::layout::{Layout, layout_attr};
use crate::nn::window::{Window, data_letters, padding, per_axis};
use crate::reduction::{identity, reduce, wide_accumulator};
use rx_base::Dim;
use rx_tir::{BinaryOp, BufferId, Expr, KernelBuilder};

/// The operands and attributes of a pooling.
pub(super) struct Pooling {
    pub(super) data: Operand,
    pub(super) letters: &'static str,
    pub(super) layout: Layout,
    pub(super) out_layout: Layout,
    /// N, C and the spatial extents of the result.
    pub(super) out: Vec<Dim>,
    /// The windows along each spatial axis.
    pub(super) axes: Vec<PoolAxis>,
}

/// The windows along one spatial axis.
pub(super) enum PoolAxis {
    /// Windows of a fixed size.
    Fixed {
        /// The window.
        window: Window,
        /// Whether the last window may extend past the padded input.
        ceil_mode: bool,
    },
    /// Windows that divide `input` into `output` parts. Window `o` is `floor(o * input / output)` to
    /// `ceil((o + 1) * input / output)`, exclusive. For example, an input of 5 with an output of 2 has the windows
    /// `[0, 3)` and `[2, 5)`.
    Adaptive {
        /// The extent of the input.
        input: Dim,
        /// The extent of the output.
        output: Dim,
    },
}

/// Emits the loops of `max_pool1d`, `max_pool2d`, `max_pool3d`.
pub(crate) fn max_pool<const RANK: usize>(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let pooling = Pooling::fixed(lowering, RANK)?;
    let dtype = pooling.data.dtype;
    let result = pooling.result();
    if result.is_filled() {
        let out = lowering.output(0);
        pooling.reduce_into(&mut lowering.builder, out, BinaryOp::Max, &|coordinates| result.index(coordinates));
        return Ok(());
    }
    let max = lowering.builder.temporary("max", &pooling.out, dtype);
    pooling.reduce_into(&mut lowering.builder, max, BinaryOp::Max, &<[Expr]>::to_vec);
    result.store(lowering, |builder, coordinates| builder.load(max, coordinates));
    Ok(())
}

/// Emits the loops of `avg_pool1d`, `avg_pool2d`, `avg_pool3d`.
pub(crate) fn avg_pool<const RANK: usize>(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let include_padding = lowering.call.bool("count_include_pad") == Some(true);
    Pooling::fixed(lowering, RANK)?.average(lowering, include_padding);
    Ok(())
}

/// Emits the loops of `adaptive_avg_pool1d`, `adaptive_avg_pool2d`, `adaptive_avg_pool3d`.
pub(crate) fn adaptive_avg_pool<const RANK: usize>(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    Pooling::adaptive(lowering, RANK)?.average(lowering, false);
    Ok(())
}

impl Pooling {
    pub(super) fn fixed(lowering: &mut Lowering<'_>, rank: usize) -> Result<Pooling, Unsupported> {
        let call = lowering.call;
        let (padding, sizes) = (padding(call, rank)?, per_axis(call, "pool_size", rank, 1)?);
        let (strides, dilation) = (per_axis(call, "strides", rank, 1)?, per_axis(call, "dilation", rank, 1)?);
        let ceil_mode = call.bool("ceil_mode") == Some(true);
        Pooling::of(lowering, rank, |at, letter, input| {
            // INVARIANT: each list has one value per spatial axis.
            let window = Window {
                letter,
                input: input.clone(),
                kernel: Dim::constant(sizes[at]),
                padding: padding[at],
                stride: strides[at],
                dilation: dilation[at],
            };
            let extent = if ceil_mode { window.ceil_extent() } else { window.floor_extent() };
            (extent, PoolAxis::Fixed { window, ceil_mode })
        })
    }

    fn adaptive(lowering: &mut Lowering<'_>, rank: usize) -> Result<Pooling, Unsupported> {
        let call = lowering.call;
        let sizes = match call.attr("output_size") {
            Some(_) => Some(per_axis(call, "output_size", rank, 1)?),
            None => None,
        };
        Pooling::of(lowering, rank, |at, _, input| {
            // INVARIANT: `per_axis` gives one value per spatial axis.
            let output = sizes.as_ref().map_or(input.clone(), |sizes| Dim::constant(sizes[at]));
            (output.clone(), PoolAxis::Adaptive { input: input.clone(), output })
        })
    }

    /// Reads the operands. The function `slide` returns the extent of the result and the windows for one spatial axis
    /// of the data.
    fn of(
        lowering: &mut Lowering<'_>,
        rank: usize,
        slide: impl Fn(usize, char, &Dim) -> (Dim, PoolAxis),
    ) -> Result<Pooling, Unsupported> {
        let letters = data_letters(rank);
        let layout = layout_attr(lowering.call, "layout", letters, None)?;
        let out_layout = layout_attr(lowering.call, "out_layout", letters, Some(&layout))?;
        let data = lowering.tensor("data")?;
        if data.ndim() != layout.ndim() {
            return Err(Unsupported::because("`data` does not have the dimensions of its layout"));
        }
        let mut out = layout.plain(&data.shape, letters);
        let mut axes = Vec::with_capacity(rank);
        for (at, (letter, input)) in letters.chars().zip(&mut out).skip(2).enumerate() {
            let (extent, axis) = slide(at, letter, input);
            *input = extent;
            axes.push(axis);
        }
        Ok(Pooling { data, letters, layout, out_layout, out, axes })
    }

    pub(super) fn result(&self) -> LaidOut<'_> {
        LaidOut { letters: self.letters, extents: &self.out, layout: &self.out_layout }
    }

    /// Emits `target[index(coordinates)] = op` over the window of the data, for all plain coordinates of the result.
    pub(super) fn reduce_into(
        &self,
        builder: &mut KernelBuilder,
        target: BufferId,
        op: BinaryOp,
        index: &dyn Fn(&[Expr]) -> Vec<Expr>,
    ) {
        let extents: Vec<Expr> = self.out.iter().map(|dim| builder.dim(dim)).collect();
        let taps: Vec<Expr> = self.axes.iter().map(|axis| axis.taps(builder)).collect();
        let dtype = builder.dtype(target);
        reduce(builder, target, &extents, &taps, op, |builder, coordinates, taps| {
            let (value, inside) = self.tapped(builder, coordinates, taps);
            (index(coordinates), Expr::select(inside, value.cast(dtype), identity(op, dtype)))
        });
    }

    /// Loads the element of the data at these taps of a window. Also returns whether the taps are in bounds.
    pub(super) fn tapped(&self, builder: &mut KernelBuilder, window: &[Expr], taps: &[Expr]) -> (Expr, Expr) {
        let mut source = window[..2].to_vec();
        let mut inside = Expr::bool(true);
        for (axis, (out, tap)) in self.axes.iter().zip(window[2..].iter().zip(taps)) {
            let (position, valid) = axis.position(builder, out, tap);
            source.push(position);
            inside = inside.and(valid);
        }
        (self.data.at(builder, &self.layout.index(self.letters, &source)), inside)
    }

    /// Returns the divisor of the average of the window at these spatial coordinates. It is at least 1, since the sum
    /// of a window that is entirely in the padding is 0.
    pub(super) fn counted(&self, builder: &mut KernelBuilder, places: &[Expr], include_padding: bool) -> Expr {
        let mut count = Expr::int(1);
        for (axis, out) in self.axes.iter().zip(places) {
            count = count * axis.count(builder, out, include_padding);
        }
        if count.as_int().is_some() { count } else { count.max(Expr::int(1)) }
    }

    /// Emits the sum over each window, divided by the number of counted elements. Integer division truncates towards
    /// zero.
    fn average(&self, lowering: &mut Lowering<'_>, include_padding: bool) {
        let (dtype, sum_dtype) = (self.data.dtype, wide_accumulator(self.data.dtype));
        let sum = lowering.builder.temporary("sum", &self.out, sum_dtype);
        self.reduce_into(&mut lowering.builder, sum, BinaryOp::Add, &<[Expr]>::to_vec);
        self.result().store(lowering, |builder, coordinates| {
            let count = self.counted(builder, &coordinates[2..], include_padding);
            (builder.load(sum, coordinates) / count.cast(sum_dtype)).cast(dtype)
        });
    }
}

impl PoolAxis {
    /// Returns the maximum number of taps of a window.
    pub(super) fn taps(&self, builder: &mut KernelBuilder) -> Expr {
        match self {
            PoolAxis::Fixed { window, .. } => builder.dim(&window.kernel),
            PoolAxis::Adaptive { input, output } if input == output => Expr::int(1),
            // An adaptive window may begin up to one element early and end up to one element late.
            PoolAxis::Adaptive { input, output } => match input.floor_mod(output).as_constant() {
                Some(0) => builder.dim(&input.floor_div(output)),
                _ => {
                    let whole = input.floor_div(output);
                    builder.dim(&(&whole + &Dim::constant(2)))
                }
            },
        }
    }

    /// Returns the position in the data of tap `tap` of window `out`, and whether it is in bounds.
    pub(super) fn position(&self, builder: &mut KernelBuilder, out: &Expr, tap: &Expr) -> (Expr, Expr) {
        match self {
            PoolAxis::Fixed { window, ceil_mode } => {
                let (before, after) = window.padding;
                let reach = tap.clone() * Expr::int(window.dilation);
                let position = out.clone() * Expr::int(window.stride) + reach - Expr::int(before);
                let mut inside = Expr::bool(true);
                if before > 0 {
                    inside = inside.and(position.clone().ge(Expr::int(0)));
                }
                if after > 0 || *ceil_mode {
                    inside = inside.and(position.clone().lt(builder.dim(&window.input)));
                }
                (position, inside)
            }
            PoolAxis::Adaptive { input, output } if input == output => (out.clone(), Expr::bool(true)),
            PoolAxis::Adaptive { input, output } => {
                let (begin, end) = piece(builder, out, input, output);
                let position = begin + tap.clone();
                let inside = match input.floor_mod(output).as_constant() {
                    Some(0) => Expr::bool(true),
                    _ => position.clone().lt(end),
                };
                (position, inside)
            }
        }
    }

    /// Returns the number of taps of window `out` that an average counts.
    pub(super) fn count(&self, builder: &mut KernelBuilder, out: &Expr, include_padding: bool) -> Expr {
        let (window, ceil_mode) = match self {
            PoolAxis::Fixed { window, ceil_mode } => (window, *ceil_mode),
            PoolAxis::Adaptive { input, output } if input == output => return Expr::int(1),
            PoolAxis::Adaptive { input, output } => {
                let (begin, end) = piece(builder, out, input, output);
                return end - begin;
            }
        };
        let kernel = builder.dim(&window.kernel);
        let (before, after) = window.padding;
        let padded = before > 0 || after > 0;
        if !ceil_mode && (include_padding || !padded) {
            return kernel;
        }
        let dilation = Expr::int(window.dilation);
        let begin = out.clone() * Expr::int(window.stride) - Expr::int(before);
        let last = begin.clone() + (kernel - Expr::int(1)) * dilation.clone();
        let behind = if include_padding { after } else { 0 };
        let end = last.min(builder.dim(&window.input) + Expr::int(behind.saturating_sub(1)));
        // The number of taps before the first counted one.
        let skipped = match include_padding || before <= 0 {
            true => Expr::int(0),
            false => (Expr::int(window.dilation - 1) - begin.clone()).floor_div(dilation.clone()).max(Expr::int(0)),
        };
        let first = begin + skipped * dilation.clone();
        ((end - first).floor_div(dilation) + Expr::int(1)).max(Expr::int(0))
    }
}

/// Returns the begin and end of window `out` of an adaptive pooling.
fn piece(builder: &mut KernelBuilder, out: &Expr, input: &Dim, output: &Dim) -> (Expr, Expr) {
    if input.floor_mod(output).as_constant() == Some(0) {
        let size = builder.dim(&input.floor_div(output));
        let begin = out.clone() * size.clone();
        return (begin.clone(), begin + size);
    }
    let (input, output) = (builder.dim(input), builder.dim(output));
    let begin = (out.clone() * input.clone()).floor_div(output.clone());
    let next = (out.clone() + Expr::int(1)) * input;
    let end = (next + (output.clone() - Expr::int(1))).floor_div(output);
    (begin, end)
}
