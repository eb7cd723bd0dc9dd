//! Transposed convolutions that spread their input: first every product of an input with a kernel, summed over the channels,
//! which is a matrix product of the operands as they stand; then every output gathers those that fall on it ("GEMM and
//! col2im"). Nothing is multiplied with the gaps between spread inputs, of which a stride of 2 leaves three of four.

use super::{Access, Loops, bounds};
use crate::nn::conv_rule::{Convolution, Direction};
use crate::reduction::reduce;
use rx_base::Dim;
use rx_tir::{BinaryOp, BufferId, Expr, KernelBuilder};

/// The most products kept for an output, where the kernel's extents are known: a wide one at a small stride would need much
/// memory.
const MOST_KEPT: i64 = 16;

/// A spatial axis of one term of an output.
struct Term {
    /// The tap of the kernel.
    tap: Expr,
    /// The input's position.
    position: Expr,
    /// Whether both exist and meet at the output.
    inside: Expr,
}

impl Loops {
    /// Whether most products of the plain definition would be with nothing: a transposed convolution with more outputs than
    /// inputs, by extents that are known or else by its strides.
    pub(super) fn spreads(&self) -> bool {
        let count = |dims: &[Dim]| dims[2..].iter().try_fold(1i64, |count, dim| count.checked_mul(dim.as_constant()?));
        let Convolution { direction, data, kernel, .. } = &self.convolution;
        // So many outputs for so many inputs.
        let (inputs, outputs) = match (count(data), count(&self.out)) {
            (Some(inputs), Some(outputs)) => (inputs, outputs),
            _ => (1, self.steps.strides.iter().fold(1, |product: i64, stride| product.saturating_mul(*stride))),
        };
        let kept = count(kernel).map_or(1, |taps| inputs.saturating_mul(taps));
        let grows = inputs.saturating_mul(2) <= outputs && kept <= outputs.saturating_mul(MOST_KEPT);
        *direction == Direction::Transposed && grows
    }

    /// As [`Loops::sum_into`], by way of a temporary of the products.
    pub(super) fn scatter_into(
        &self,
        builder: &mut KernelBuilder,
        target: BufferId,
        index: &dyn Fn(Vec<Expr>) -> Vec<Expr>,
    ) {
        let products = self.products(builder, target);
        let (_, out_channels) = self.group_channels();
        let out_channels = builder.dim(&out_channels);
        let mut spatial = vec![builder.dim(&self.out[0]), Expr::int(self.steps.groups), out_channels.clone()];
        spatial.extend(self.out[2..].iter().map(|dim| builder.dim(dim)));
        let reduced: Vec<Expr> = (0..self.rank).map(|at| builder.dim(&self.terms(at))).collect();
        let [taps, extents] = [&self.convolution.kernel[2..], &self.convolution.data[2..]]
            .map(|dims| dims.iter().map(|dim| builder.dim(dim)).collect::<Vec<Expr>>());
        let zero = Expr::number(0.0, builder.dtype(target));
        reduce(builder, target, &spatial, &reduced, BinaryOp::Add, |builder, spatial, reduced| {
            // INVARIANT: `reduce` gives one axis per extent: three and the spatial ones; one per spatial axis.
            let (plain, out_spatial) = spatial.split_at(3);
            let term = |at: usize| self.term(at, &out_spatial[at], &reduced[at], [&taps[at], &extents[at]]);
            let terms: Vec<Term> = (0..self.rank).map(term).collect();
            let mut from = plain.to_vec();
            from.extend(terms.iter().map(|term| term.tap.clone()));
            from.extend(terms.iter().map(|term| term.position.clone()));
            let inside = terms.into_iter().fold(Expr::bool(true), |all, term| all.and(term.inside));
            let mut coordinates = vec![plain[0].clone(), self.channel(&plain[1], &out_channels, &plain[2])];
            coordinates.extend_from_slice(out_spatial);
            (index(coordinates), Expr::select(inside, builder.load(products, &from), zero))
        });
    }

    /// How many terms an output has at most along spatial axis `at`: taps one stride apart meet inputs at the same outputs,
    /// unless dilation parts them otherwise; then each tap is tried.
    fn terms(&self, at: usize) -> Dim {
        let taps = &self.convolution.kernel[2 + at];
        match self.steps.dilation[at] {
            1 => (taps + &Dim::constant(self.steps.strides[at] - 1)).floor_div(&Dim::constant(self.steps.strides[at])),
            _ => taps.clone(),
        }
    }

    /// Term `number` of output `out` along spatial axis `at`, of so many taps and inputs.
    fn term(&self, at: usize, out: &Expr, number: &Expr, [taps, extent]: [&Expr; 2]) -> Term {
        if self.steps.dilation[at] != 1 {
            let (position, inside) = self.position(at, out, number, extent);
            return Term { tap: number.clone(), position, inside };
        }
        // Output `o` gets `data[i] * kernel[k]` where `i * stride + k = o + before`: `k` is the remainder and so many strides.
        let stride = Expr::int(self.steps.strides[at]);
        let reached = out.clone() + Expr::int(self.steps.padding[at].0);
        let tap = reached.clone().floor_mod(stride.clone()) + number.clone() * stride.clone();
        let position = reached.floor_div(stride) - number.clone();
        let exists = match self.convolution.kernel[2 + at].as_constant() {
            Some(taps) if taps % self.steps.strides[at] == 0 => Expr::bool(true),
            _ => tap.clone().lt(taps.clone()),
        };
        let inside = exists.and(bounds(&position, true, Some(extent)));
        Term { tap, position, inside }
    }

    /// A temporary of batch, group, output channel of the group, taps and input positions: what each input gives to the
    /// output that each tap leads to.
    fn products(&self, builder: &mut KernelBuilder, target: BufferId) -> BufferId {
        let dtype = builder.dtype(target);
        let (in_channels, out_channels) = self.group_channels();
        let mut shape = vec![self.out[0].clone(), Dim::constant(self.steps.groups), out_channels.clone()];
        shape.extend_from_slice(&self.convolution.kernel[2..]);
        shape.extend_from_slice(&self.convolution.data[2..]);
        let products = builder.temporary("products", &shape, dtype);
        let spatial: Vec<Expr> = shape.iter().map(|dim| builder.dim(dim)).collect();
        let in_channels = builder.dim(&in_channels);
        let reduced = [in_channels.clone()];
        reduce(builder, products, &spatial, &reduced, BinaryOp::Add, |builder, spatial, reduced| {
            let (plain, rest) = spatial.split_at(3);
            let (taps, positions) = rest.split_at(self.rank);
            // INVARIANT: the product is at the input's own place; `reduce` gives one axis for the channels.
            let in_channel = self.channel(&plain[1], &in_channels, &reduced[0]);
            let mut data = vec![plain[0].clone(), in_channel.clone()];
            data.extend_from_slice(positions);
            let mut kernel = vec![plain[2].clone(), in_channel];
            kernel.extend_from_slice(taps);
            let access = Access { data, inside: Expr::bool(true), kernel };
            (spatial.to_vec(), self.product(builder, &access, dtype))
        });
        products
    }
}
