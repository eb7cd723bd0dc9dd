//! Convolutions as loops: one definition for any number of spatial axes, any layout, groups, and both directions.
//!
//! The axes are canonical and parted by role: batch, group, output channel of the group and the output's spatial axes
//! are spatial; input channel of the group and the taps of the kernel are reduced. Buffers are addressed through
//! [`Access`] and their layouts, so what follows can tell the roles by who uses which axis, never by position.

mod scattered;

use super::laid_out::LaidOut;
use crate::compute::{Lowering, Operand, Unsupported};
use crate::layout::Layout;
use crate::nn::conv_rule::{Attributes, Convolution, Direction, Steps, kernel_letters};
use crate::nn::window::{data_letters, spatial_letters};
use crate::reduction::{accumulator, reduce};
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, BufferId, Expr, KernelBuilder};

/// The loops of `conv1d`, `conv2d`, `conv3d`.
pub(crate) fn conv<const RANK: usize>(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    Loops::of(lowering, RANK, Direction::Forward)?.lower(lowering);
    Ok(())
}

/// The loops of the transposed convolutions.
pub(crate) fn conv_transpose<const RANK: usize>(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    Loops::of(lowering, RANK, Direction::Transposed)?.lower(lowering);
    Ok(())
}

/// What the loops of a call are made from.
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

/// One instance of the axes.
#[derive(Clone, Copy)]
struct Axes<'a> {
    batch: &'a Expr,
    group: &'a Expr,
    out_channel: &'a Expr,
    out_spatial: &'a [Expr],
    in_channel: &'a Expr,
    taps: &'a [Expr],
}

/// What an instance of the axes touches, in plain coordinates.
struct Access {
    /// N, C and the spatial coordinates of the data.
    data: Vec<Expr>,
    /// Whether the data has an element there; elsewhere it counts as 0.
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

    /// Input and output channels of a group.
    fn group_channels(&self) -> (Dim, Dim) {
        let (kernel_in, kernel_out) = (self.convolution.kernel_in(), self.convolution.kernel_out());
        let groups = Dim::constant(self.steps.groups);
        match self.convolution.direction {
            Direction::Forward => (kernel_in.clone(), kernel_out.floor_div(&groups)),
            Direction::Transposed => (kernel_in.floor_div(&groups), kernel_out.clone()),
        }
    }

    /// Sums straight into the result where it has the accumulator's dtype and no padded axes; else into a temporary of
    /// plain coordinates that is stored after.
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

    /// `target[index(coordinates)] = Σ data * kernel`, for all plain coordinates of the result.
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
            // INVARIANT: `reduce` gives one axis per extent: three and the spatial ones, one and the taps.
            let (plain, out_spatial) = spatial.split_at(3);
            let [batch, group, out_channel] = [&plain[0], &plain[1], &plain[2]];
            let axes = Axes { batch, group, out_channel, out_spatial, in_channel: &reduced[0], taps: &reduced[1..] };
            let access = self.access(axes, [&in_channels, &out_channels], &data_extents);
            let mut coordinates = vec![batch.clone(), self.channel(group, &out_channels, out_channel)];
            coordinates.extend_from_slice(out_spatial);
            (index(coordinates), self.product(builder, &access, dtype))
        });
    }

    /// The channel of the whole tensor that stands at `within` in `group`, of `channels` each.
    fn channel(&self, group: &Expr, channels: &Expr, within: &Expr) -> Expr {
        match self.steps.groups {
            // The axis of the groups has one value, 0.
            1 => within.clone(),
            _ => group.clone() * channels.clone() + within.clone(),
        }
    }

    /// `data_extents` are those of the spatial axes.
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

    /// Where on spatial axis `at` of the data, of this extent, an output meets a tap, and whether an element is there.
    fn position(&self, at: usize, out: &Expr, tap: &Expr, extent: &Expr) -> (Expr, Expr) {
        // INVARIANT: `Steps::read` gives one value per spatial axis.
        let (stride, dilation) = (Expr::int(self.steps.strides[at]), Expr::int(self.steps.dilation[at]));
        let (before, after) = self.steps.padding[at];
        let reach = tap.clone() * dilation;
        match self.convolution.direction {
            Direction::Forward => {
                let position = out.clone() * stride + reach - Expr::int(before);
                // The first tap of the first window stands at `-before`, the last of the last at `extent - 1 + after`.
                let inside = bounds(&position, before > 0, (after > 0).then_some(extent));
                (position, inside)
            }
            // Output `o` gets `data[i] * kernel[k]` where `i * stride + k * dilation = o + before`.
            Direction::Transposed => {
                let reached = out.clone() + Expr::int(before) - reach;
                let meets = reached.clone().floor_mod(stride.clone()).eq(Expr::int(0));
                let position = reached.floor_div(stride);
                let inside = meets.and(bounds(&position, true, Some(extent)));
                (position, inside)
            }
        }
    }

    /// `data * kernel`, in `dtype`.
    fn product(&self, builder: &KernelBuilder, access: &Access, dtype: DType) -> Expr {
        let (data_letters, kernel_letters) = (data_letters(self.rank), kernel_letters(self.rank));
        let data = self.data.at(builder, &self.convolution.data_layout.index(data_letters, &access.data));
        let kernel = self.weight.at(builder, &self.convolution.kernel_layout.index(kernel_letters, &access.kernel));
        let zero = Expr::number(0.0, data.dtype());
        Expr::select(access.inside.clone(), data, zero).cast(dtype) * kernel.cast(dtype)
    }
}

/// `0 <= position` where `below` may happen, `position < extent` where an extent is given.
fn bounds(position: &Expr, below: bool, extent: Option<&Expr>) -> Expr {
    let low = if below { position.clone().ge(Expr::int(0)) } else { Expr::bool(true) };
    let high = extent.map_or(Expr::bool(true), |extent| position.clone().lt(extent.clone()));
    low.and(high)
}
