//! *Gradients of pooling* with respect to the data, as a gather: each element sums over the windows that contain it.
//!
//! ```text
//! avg_pool2d_backward: grad_x[n, c, h, w] = Σ_{taps} grad_out[window of (h, w) at taps] / count(window)
//! max_pool2d_backward: the same sum, restricted to windows whose first maximum is (h, w)
//! ```
//!
//! Guarantees: no scatter and no atomic additions, so all elements are independent.

use super::laid_out::LaidOut;
use super::pool::{PoolAxis, Pooling};
use crate::compute::{Lowering, Operand, Unsupported};
use crate::nn::window::Window;
use crate::reduction::{accumulator, reduce};
use rx_base::{DType, Dim};
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, BufferId, Expr, KernelBuilder};

/// Emits the loops of `grad.avg_pool2d_backward`: each window distributes its gradient equally.
pub(crate) fn avg_pool2d(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let include_padding = lowering.call.bool("count_include_pad") == Some(true);
    let backward = Backward::of(lowering)?;
    backward.store(lowering, |builder, window, _| {
        let count = backward.pooling.counted(builder, &window[2..], include_padding);
        backward.gradient_at(builder, window) / count.cast(backward.dtype)
    });
    Ok(())
}

/// Emits the loops of `grad.max_pool2d_backward`: the gradient of a window goes to its first maximum, or to its first
/// NaN.
pub(crate) fn max_pool2d(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let backward = Backward::of(lowering)?;
    let chosen = backward.first_maximum(&mut lowering.builder);
    backward.store(lowering, |builder, window, taps| {
        let tap = backward.tap_number(builder, taps);
        let is_chosen = builder.load(chosen, window).eq(tap);
        Expr::select(is_chosen, backward.gradient_at(builder, window), Expr::number(0.0, backward.dtype))
    });
    Ok(())
}

/// A pooling with the gradient of its result.
struct Backward {
    pooling: Pooling,
    gradient: Operand,
    /// The windows, one per spatial axis.
    windows: Vec<Window>,
    /// N, C and the spatial extents of the data.
    data: Vec<Dim>,
    /// The dtype of the computation.
    dtype: DType,
}

impl Backward {
    fn of(lowering: &mut Lowering<'_>) -> Result<Backward, Unsupported> {
        let gradient = lowering.tensor("output_grad")?;
        let pooling = Pooling::fixed(lowering, 2)?;
        if gradient.ndim() != pooling.out_layout.ndim() {
            return Err(Unsupported::because("`output_grad` does not have the dimensions of the pooling's result"));
        }
        let fixed = |axis: &PoolAxis| match axis {
            PoolAxis::Fixed { window, .. } => Some(window.clone()),
            PoolAxis::Adaptive { .. } => None,
        };
        let windows = pooling.axes.iter().filter_map(fixed).collect();
        let data = pooling.layout.plain(&pooling.data.shape, pooling.letters);
        let dtype = accumulator(pooling.data.dtype);
        Ok(Backward { pooling, gradient, windows, data, dtype })
    }

    /// Loads the gradient of the window at plain coordinates.
    fn gradient_at(&self, builder: &KernelBuilder, window: &[Expr]) -> Expr {
        let index = self.pooling.result().index(window);
        self.gradient.at(builder, &index).cast(self.dtype)
    }

    /// Returns the row-major index of a tap in its window.
    fn tap_number(&self, builder: &mut KernelBuilder, taps: &[Expr]) -> Expr {
        self.pooling.axes.iter().zip(taps).fold(Expr::int(0), |number, (axis, tap)| {
            let width = axis.taps(builder);
            number * width + tap.clone()
        })
    }

    /// Emits, for each window, the index of its first tap with a maximum element.
    fn first_maximum(&self, builder: &mut KernelBuilder) -> BufferId {
        let Pooling { data, out, axes, .. } = &self.pooling;
        let max = builder.temporary("max", out, data.dtype);
        self.pooling.reduce_into(builder, max, BinaryOp::Max, &<[Expr]>::to_vec);
        let chosen = builder.temporary("chosen", out, DType::INT64);
        let extents: Vec<Expr> = out.iter().map(|dim| builder.dim(dim)).collect();
        let taps: Vec<Expr> = axes.iter().map(|axis| axis.taps(builder)).collect();
        reduce(builder, chosen, &extents, &taps, BinaryOp::Min, |builder, window, taps| {
            let (value, inside) = self.pooling.tapped(builder, window, taps);
            let largest = inside.and(!value.lt(builder.load(max, window)));
            let number = self.tap_number(builder, taps);
            (window.to_vec(), Expr::select(largest, number, Expr::int(i64::MAX)))
        });
        chosen
    }

    /// Stores, for each element, the sum over the windows that contain it of `share(window, taps)`: the part of the
    /// window's gradient that belongs to the element at these taps.
    fn store(&self, lowering: &mut Lowering<'_>, share: impl FnOnce(&mut KernelBuilder, &[Expr], &[Expr]) -> Expr) {
        let axes = &self.pooling.axes;
        let builder = &mut lowering.builder;
        let sum = builder.temporary("sum", &self.data, self.dtype);
        let extents: Vec<Expr> = self.data.iter().map(|dim| builder.dim(dim)).collect();
        let taps: Vec<Expr> = axes.iter().map(|axis| axis.taps(builder)).collect();
        reduce(builder, sum, &extents, &taps, BinaryOp::Add, |builder, coordinates, taps| {
            let mut window = coordinates[..2].to_vec();
            let mut exists = Expr::bool(true);
            let places = coordinates.iter().zip(&self.pooling.out).skip(2);
            for ((place, count), (tap, axis)) in places.zip(taps.iter().zip(&self.windows)) {
                let (out, valid) = window_at(builder, axis, [place, tap], count);
                window.push(out);
                exists = exists.and(valid);
            }
            let share = share(builder, &window, taps);
            (coordinates.to_vec(), Expr::select(exists, share, Expr::number(0.0, self.dtype)))
        });
        let result = LaidOut { letters: self.pooling.letters, extents: &self.data, layout: &self.pooling.layout };
        let dtype = self.pooling.data.dtype;
        result.store(lowering, |builder, coordinates| builder.load(sum, coordinates).cast(dtype));
    }
}

/// Returns the output whose window has element `place` of the data at tap `tap`, and whether such an output exists (it
/// must be less than `count`).
fn window_at(builder: &mut KernelBuilder, window: &Window, [place, tap]: [&Expr; 2], count: &Dim) -> (Expr, Expr) {
    let stride = Expr::int(window.stride);
    let begin = place.clone() + Expr::int(window.padding.0) - tap.clone() * Expr::int(window.dilation);
    let out = begin.clone().floor_div(stride.clone());
    let on_stride = begin.floor_mod(stride).eq(Expr::int(0));
    let exists = on_stride.and(in_range(out.clone(), Expr::int(0), builder.dim(count)));
    (out, exists)
}
