//! *Transposed convolution as GEMM and col2im.* Computes the products of each input with the kernel, summed over
//! channels, as a matrix product; then each output gathers the products that fall on it.
//!
//! ```text
//! products[b, g, o, k, i] = Σ_c data[b, g*C + c, i] * kernel[o, g*C + c, k]
//! out[b, g*O + o, y]      = Σ_{k, i: i * stride + k = y + pad} products[b, g, o, k, i]
//! ```
//!
//! Requires: more outputs than inputs, so that the direct definition would multiply mostly with the zeros between the
//! dilated inputs (three of four for a stride of 2 in 2-D).
//! Guarantees: no multiplication with these zeros, at the cost of a temporary for the products.

use super::{Access, Loops, bounds};
use crate::nn::conv_rule::{Convolution, Direction};
use crate::reduction::reduce;
use rx_base::Dim;
use rx_tir::{BinaryOp, BufferId, Expr, KernelBuilder};

/// The maximum number of products stored per output, if the kernel's extents are known. A large kernel with a small
/// stride would need too much memory.
const MOST_KEPT: i64 = 16;

/// One term of an output along one spatial axis.
struct Term {
    /// The kernel tap.
    tap: Expr,
    /// The position of the input.
    position: Expr,
    /// Whether tap and input exist and contribute to this output.
    inside: Expr,
}

impl Loops {
    /// Whether GEMM and col2im should be used: for a transposed convolution with more outputs than inputs, judged by
    /// known extents or otherwise by the strides.
    pub(super) fn spreads(&self) -> bool {
        let count = |dims: &[Dim]| dims[2..].iter().try_fold(1i64, |count, dim| count.checked_mul(dim.as_constant()?));
        let Convolution { direction, data, kernel, .. } = &self.convolution;
        // The ratio of outputs to inputs.
        let (inputs, outputs) = match (count(data), count(&self.out)) {
            (Some(inputs), Some(outputs)) => (inputs, outputs),
            _ => (1, self.steps.strides.iter().fold(1, |product: i64, stride| product.saturating_mul(*stride))),
        };
        let kept = count(kernel).map_or(1, |taps| inputs.saturating_mul(taps));
        let grows = inputs.saturating_mul(2) <= outputs && kept <= outputs.saturating_mul(MOST_KEPT);
        *direction == Direction::Transposed && grows
    }

    /// Emits the same result as [`Loops::sum_into`], through a temporary with the products.
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
            // INVARIANT: `reduce` gives one axis per extent: three and the spatial ones, then one per spatial axis.
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

    /// Returns the maximum number of terms of an output along spatial axis `at`. Without dilation, only every
    /// `stride`-th tap can contribute to an output, so it is `ceil(taps / stride)`. With dilation, all taps are tried.
    fn terms(&self, at: usize) -> Dim {
        let taps = &self.convolution.kernel[2 + at];
        match self.steps.dilation[at] {
            1 => (taps + &Dim::constant(self.steps.strides[at] - 1)).floor_div(&Dim::constant(self.steps.strides[at])),
            _ => taps.clone(),
        }
    }

    /// Returns term `number` of output `out` along spatial axis `at`, for the given numbers of taps and inputs.
    fn term(&self, at: usize, out: &Expr, number: &Expr, [taps, extent]: [&Expr; 2]) -> Term {
        if self.steps.dilation[at] != 1 {
            let (position, inside) = self.position(at, out, number, extent);
            return Term { tap: number.clone(), position, inside };
        }
        // Output `o` accumulates `data[i] * kernel[k]` for all `i * stride + k = o + before`. So `k` is the remainder
        // of `o + before` by `stride`, plus `number * stride`.
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

    /// Emits the temporary with the products, with axes batch, group, output channel, taps and input positions.
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
            // INVARIANT: a product is at its input's position; `reduce` gives one axis for the channels.
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
