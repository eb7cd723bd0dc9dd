//! *Direct convolution*, forward and transposed, for any number of spatial axes, any layout and groups.
//!
//! ```text
//! conv2d, data NCHW, weight OIHW
//! for n, g, o, y, x in grid(…):            # spatial axes
//!     for i, ky, kx in grid(…):            # reduction axes
//!         out[n, g*O + o, y, x] += data[n, g*I + i, y*stride + ky*dilation - pad, …] * weight[g*O + o, i, ky, kx]
//! ```
//!
//! Requires: the struct-info rule has accepted the call.
//! Guarantees: axes are canonical and have one role each: batch, group, output channel and output position are spatial,
//! input channel and kernel taps are reduced. Layouts only affect the buffer indices, through [`Access`]. Later passes
//! identify the role of an axis by the buffers that use it. Elements outside the data are not loaded and contribute
//! `0 * weight`.
//! Reference: TVM python/tvm/topi/nn/conv2d.py and conv2d_transpose.py.

mod scattered;

use super::laid_out::LaidOut;
use crate::compute::{Lowering, Operand, Unsupported};
use crate::layout::Layout;
use crate::nn::conv_rule::{Attributes, Convolution, Direction, Steps, kernel_letters};
use crate::nn::window::{data_letters, spatial_letters};
use crate::reduction::{accumulator, reduce};
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, BufferId, Expr, KernelBuilder};

/// Emits the loops of `conv1d`, `conv2d`, `conv3d`.
pub(crate) fn conv<const RANK: usize>(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    Loops::of(lowering, RANK, Direction::Forward)?.lower(lowering);
    Ok(())
}

/// Emits the loops of the transposed convolutions.
pub(crate) fn conv_transpose<const RANK: usize>(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    Loops::of(lowering, RANK, Direction::Transposed)?.lower(lowering);
    Ok(())
}

/// The operands and attributes of a convolution call.
struct Loops {
    convolution: Convolution,
    steps: Steps,
    out_layout: Layout,
    /// N, C and the spatial extents of the result.
    out: Vec<Dim>,
    data: Operand,
    weight: Operand,
    rank: usize,
}

/// The loop variables of one multiply-add.
#[derive(Clone, Copy)]
struct Axes<'a> {
    batch: &'a Expr,
    group: &'a Expr,
    out_channel: &'a Expr,
    out_spatial: &'a [Expr],
    in_channel: &'a Expr,
    taps: &'a [Expr],
}

/// The elements that one multiply-add accesses, in plain coordinates.
struct Access {
    /// N, C and the spatial coordinates of the data.
    data: Vec<Expr>,
    /// Whether the data coordinates are in bounds. Outside, the data counts as 0.
    inside: Expr,
    /// O, I and the spatial coordinates of the kernel.
    kernel: Vec<Expr>,
}

impl Loops {
    fn of(lowering: &mut Lowering<'_>, rank: usize, direction: Direction) -> Result<Loops, Unsupported> {
        let Attributes { steps, data_layout, kernel_layout, out_layout } =
            Attributes::read(lowering.call, rank, direction)?;
        let (data, weight) = (lowering.tensor("data")?, lowering.tensor("weight")?);
        let convolution = Convolution {
            direction,
            groups: steps.groups,
            data: data_layout.plain(&data.shape, data_letters(rank)),
            kernel: kernel_layout.plain(&weight.shape, kernel_letters(rank)),
            data_layout,
            kernel_layout,
        };
        let out = convolution.output_extents(lowering.call, &steps, spatial_letters(rank))?;
        Ok(Loops { convolution, steps, out_layout, out, data, weight, rank })
    }

    /// Returns the number of input and output channels per group.
    fn group_channels(&self) -> (Dim, Dim) {
        let (kernel_in, kernel_out) = (self.convolution.kernel_in(), self.convolution.kernel_out());
        let groups = Dim::constant(self.steps.groups);
        match self.convolution.direction {
            Direction::Forward => (kernel_in.clone(), kernel_out.floor_div(&groups)),
            Direction::Transposed => (kernel_in.floor_div(&groups), kernel_out.clone()),
        }
    }

    /// Emits the convolution. Sums directly into the result if it has the accumulator's dtype and no padded axes;
    /// otherwise sums into a temporary with plain coordinates, which is then converted.
    fn lower(&self, lowering: &mut Lowering<'_>) {
        let letters = data_letters(self.rank);
        let result = LaidOut { letters, extents: &self.out, layout: &self.out_layout };
        let out = lowering.output(0);
        let dtype = lowering.builder.dtype(out);
        let sum_dtype = accumulator(dtype);
        if sum_dtype == dtype && result.is_filled() {
            return self.sum_into(&mut lowering.builder, out, &|coordinates| result.index(&coordinates));
        }
        let sum = lowering.builder.temporary("sum", &self.out, sum_dtype);
        self.sum_into(&mut lowering.builder, sum, &|coordinates| coordinates);
        result.store(lowering, |builder, coordinates| builder.load(sum, coordinates).cast(dtype));
    }

    /// Emits `target[index(coordinates)] = Σ data * kernel` for all plain coordinates of the result.
    fn sum_into(&self, builder: &mut KernelBuilder, target: BufferId, index: &dyn Fn(Vec<Expr>) -> Vec<Expr>) {
        if self.spreads() {
            return self.scatter_into(builder, target, index);
        }
        let (in_channels, out_channels) = self.group_channels();
        let [in_channels, out_channels] = [in_channels, out_channels].map(|dim| builder.dim(&dim));
        let dims = |builder: &mut KernelBuilder, dims: &[Dim]| -> Vec<Expr> {
            dims.iter().map(|dim| builder.dim(dim)).collect()
        };
        let (batch, out_spatial) = (builder.dim(&self.out[0]), dims(builder, &self.out[2..]));
        let data_extents = dims(builder, &self.convolution.data[2..]);
        let mut spatial = vec![batch, Expr::int(self.steps.groups), out_channels.clone()];
        spatial.extend(out_spatial);
        let mut reduced = vec![in_channels.clone()];
        reduced.extend(dims(builder, &self.convolution.kernel[2..]));
        let dtype = builder.dtype(target);
        reduce(builder, target, &spatial, &reduced, BinaryOp::Add, |builder, spatial, reduced| {
            // INVARIANT: `reduce` gives one axis per extent: three and the spatial ones, then one and the taps.
            let (plain, out_spatial) = spatial.split_at(3);
            let [batch, group, out_channel] = [&plain[0], &plain[1], &plain[2]];
            let axes = Axes { batch, group, out_channel, out_spatial, in_channel: &reduced[0], taps: &reduced[1..] };
            let access = self.access(axes, [&in_channels, &out_channels], &data_extents);
            let mut coordinates = vec![batch.clone(), self.channel(group, &out_channels, out_channel)];
            coordinates.extend_from_slice(out_spatial);
            (index(coordinates), self.product(builder, &access, dtype))
        });
    }

    /// Returns the channel in the whole tensor of channel `within` of `group`, with `channels` per group.
    fn channel(&self, group: &Expr, channels: &Expr, within: &Expr) -> Expr {
        match self.steps.groups {
            // With one group, the group axis only has the value 0.
            1 => within.clone(),
            _ => group.clone() * channels.clone() + within.clone(),
        }
    }

    /// Returns the accessed elements for these loop variables. `data_extents` are the extents of the spatial axes of
    /// the data.
    fn access(&self, axes: Axes<'_>, [in_channels, out_channels]: [&Expr; 2], data_extents: &[Expr]) -> Access {
        let in_channel = self.channel(axes.group, in_channels, axes.in_channel);
        let mut access =
            Access { data: vec![axes.batch.clone(), in_channel.clone()], inside: Expr::bool(true), kernel: Vec::new() };
        access.kernel = match self.convolution.direction {
            Direction::Forward => {
                vec![self.channel(axes.group, out_channels, axes.out_channel), axes.in_channel.clone()]
            }
            Direction::Transposed => vec![axes.out_channel.clone(), in_channel],
        };
        access.kernel.extend_from_slice(axes.taps);
        let positions = std::iter::zip(axes.out_spatial, axes.taps).zip(data_extents).enumerate();
        for (at, ((out, tap), extent)) in positions {
            let (position, inside) = self.position(at, out, tap, extent);
            access.data.push(position);
            access.inside = access.inside.and(inside);
        }
        access
    }

    /// Returns the position along spatial axis `at` of the data that output `out` combines with kernel tap `tap`, and
    /// whether it is in bounds.
    fn position(&self, at: usize, out: &Expr, tap: &Expr, extent: &Expr) -> (Expr, Expr) {
        // INVARIANT: `Steps::read` gives one value per spatial axis.
        let (stride, dilation) = (Expr::int(self.steps.strides[at]), Expr::int(self.steps.dilation[at]));
        let (before, after) = self.steps.padding[at];
        let reach = tap.clone() * dilation;
        match self.convolution.direction {
            Direction::Forward => {
                let position = out.clone() * stride + reach - Expr::int(before);
                // The first tap of the first window is at `-before`, the last tap of the last window at
                // `extent - 1 + after`.
                let inside = bounds(&position, before > 0, (after > 0).then_some(extent));
                (position, inside)
            }
            // Output `o` accumulates `data[i] * kernel[k]` for all `i * stride + k * dilation = o + before`.
            Direction::Transposed => {
                let reached = out.clone() + Expr::int(before) - reach;
                let meets = reached.clone().floor_mod(stride.clone()).eq(Expr::int(0));
                let position = reached.floor_div(stride);
                let inside = meets.and(bounds(&position, true, Some(extent)));
                (position, inside)
            }
        }
    }

    /// Returns `data * kernel`, computed in `dtype`.
    fn product(&self, builder: &KernelBuilder, access: &Access, dtype: DType) -> Expr {
        let (data_letters, kernel_letters) = (data_letters(self.rank), kernel_letters(self.rank));
        let data = self.data.at(builder, &self.convolution.data_layout.index(data_letters, &access.data));
        let kernel = self.weight.at(builder, &self.convolution.kernel_layout.index(kernel_letters, &access.kernel));
        let zero = Expr::number(0.0, data.dtype());
        Expr::select(access.inside.clone(), data, zero).cast(dtype) * kernel.cast(dtype)
    }
}

/// Returns the bounds check of a position: `0 <= position` if it may be negative (`below`), and `position < extent` if
/// `extent` is given.
fn bounds(position: &Expr, below: bool, extent: Option<&Expr>) -> Expr {
    let low = if below { position.clone().ge(Expr::int(0)) } else { Expr::bool(true) };
    let high = extent.map_or(Expr::bool(true), |extent| position.clone().lt(extent.clone()));
    low.and(high)
}
