//! *Image resizing* (`image.resize2d`, `image.resize3d`): nearest-neighbor, linear and cubic interpolation.
//!
//! ```text
//! method "linear", one axis:
//! c = coordinate(o);  p = floor(c);  f = c - p
//! out[o] = data[clamp(p)] * (1 - f) + data[clamp(p + 1)] * f
//! ```
//!
//! Guarantees: pixels outside the image are clamped to its border, unless `cubic_exclude` removes them.
//! Reference: TVM python/tvm/topi/image/resize.py; ONNX `Resize`.

use super::taps::{self, Lets, Taps};
use crate::compute::{Lowering, Operand, Unsupported};
use crate::layout::{Layout, layout_attr};
use crate::tensor::compute::{either, greater};
use rx_base::{DType, Dim};
use rx_ir::Attr;
use rx_tir::{CompareOp, Expr, Intrinsic, IterKind, KernelBuilder};

/// A tolerance that keeps a coordinate on its pixel when only rounding moves it below.
const EPSILON: f64 = 1e-5;

/// A spatial axis: its extents in the input and in the result, and the region that `tf_crop_and_resize` samples.
struct Axis {
    from: Expr,
    to: Expr,
    region: (f64, f64),
}

/// The operands and attributes of a resizing.
struct Resize<'a> {
    data: Operand,
    layout: Layout,
    letters: &'static str,
    mode: &'a str,
    rounding: &'a str,
    /// The dtype of coordinates, weights and interpolated values.
    dtype: DType,
}

pub(super) fn resize(lowering: &mut Lowering<'_>, letters: &'static str) -> Result<(), Unsupported> {
    let call = lowering.call;
    let data = lowering.tensor("data")?;
    let layout = layout_attr(call, "layout", letters, None)?;
    let mode = call.str("coordinate_transformation_mode").unwrap_or("half_pixel");
    let rounding = match call.str("rounding_method") {
        Some("") | None if mode == "align_corners" => "round",
        Some("") | None => "floor",
        Some(given) => given,
    };
    let dtype = if data.dtype == DType::FLOAT64 { DType::FLOAT64 } else { DType::FLOAT32 };
    let plan = Resize { data, layout, letters, mode, rounding, dtype };
    let axes = plan.axes(lowering)?;
    match call.str("method").unwrap_or("linear") {
        "nearest_neighbor" => plan.nearest(lowering, &axes),
        "linear" => {
            plan.interpolate(lowering, &axes, |builder, lets, _, coordinate| taps::linear(builder, lets, coordinate))
        }
        _ => {
            let alpha = call.float("cubic_alpha").unwrap_or(-0.75);
            let exclude = call.int("cubic_exclude").is_some_and(|exclude| exclude != 0);
            plan.interpolate(lowering, &axes, |builder, lets, axis, coordinate| {
                let taps = taps::cubic(builder, lets, coordinate, alpha);
                if exclude { without_outside(builder, lets, axis, taps) } else { taps }
            });
        }
    }
    Ok(())
}

impl Resize<'_> {
    fn axes(&self, lowering: &mut Lowering<'_>) -> Result<Vec<Axis>, Unsupported> {
        let rank = self.letters.len() - 2;
        let call = lowering.call;
        let region = match call.attr("roi") {
            None => Some(vec![0.0; 2 * rank]),
            Some(Attr::List(_)) => call.floats("roi"),
            // TVM repeats a number that is not in a list.
            Some(_) => call.float("roi").map(|number| vec![number; 2 * rank]),
        };
        let region = region.ok_or_else(|| Unsupported::because("`roi` is not known"))?;
        if self.mode == "tf_crop_and_resize" && region.len() < 2 * rank {
            return Err(Unsupported(format!("`roi` requires {} numbers; found {}", 2 * rank, region.len())));
        }
        let bound = |at: usize| region.get(at).copied().unwrap_or(0.0);
        let spatial = |dims: &[Dim]| self.layout.plain(dims, &self.letters[2..]);
        let (from, to) = (spatial(&self.data.shape), spatial(lowering.output_shape(0)));
        let axis = |(at, (from, to)): (usize, (&Dim, &Dim))| Axis {
            from: lowering.builder.dim(from),
            to: lowering.builder.dim(to),
            region: (bound(at), bound(rank + at)),
        };
        Ok(std::iter::zip(&from, &to).enumerate().map(axis).collect())
    }

    /// Returns the coordinate in the input of pixel `place` of the result.
    fn coordinate(&self, axis: &Axis, place: Expr) -> Expr {
        let number = |value: f64| Expr::number(value, self.dtype);
        let real = |value: &Expr| value.clone().cast(self.dtype);
        let last = |extent: &Expr| (extent.clone() - Expr::int(1)).cast(self.dtype);
        let place = place.cast(self.dtype);
        let scale = || real(&axis.from) / real(&axis.to);
        let several = || greater(axis.to.clone(), Expr::int(1));
        let half_pixel = |place: Expr| (place + number(0.5)) * scale() - number(0.5);
        match self.mode {
            "align_corners" => {
                let step = last(&axis.from) / last(&axis.to);
                Expr::select(several(), place * step, number(0.0))
            }
            "asymmetric" => place * scale(),
            "pytorch_half_pixel" => Expr::select(several(), half_pixel(place), number(0.0)),
            "tf_half_pixel_for_nn" => (place + number(0.5)) * scale(),
            "tf_crop_and_resize" => {
                let (start, end) = axis.region;
                let step = number(end - start) * last(&axis.from) / last(&axis.to);
                let inside = number(start) * last(&axis.from) + place * step;
                Expr::select(several(), inside, number(0.5 * (start + end)) * last(&axis.from))
            }
            _ => half_pixel(place),
        }
    }

    /// Returns the position of the input pixel nearest to pixel `place` of the result, before clamping.
    fn nearest_place(&self, axis: &Axis, place: Expr) -> Expr {
        if self.mode == "asymmetric" && self.rounding == "floor" {
            return (place * axis.from.clone()).floor_div(axis.to.clone());
        }
        let number = |value: f64| Expr::number(value, self.dtype);
        let at = self.coordinate(axis, place);
        let (function, at) = match self.rounding {
            "round_prefer_floor" => (Intrinsic::Ceil, at - number(0.5)),
            "round_prefer_ceil" => (Intrinsic::Floor, at + number(0.5)),
            "floor" => (Intrinsic::Floor, at + number(EPSILON)),
            "ceil" => (Intrinsic::Ceil, at - number(EPSILON)),
            _ => (Intrinsic::NearbyInt, at),
        };
        Expr::call(function, vec![at]).cast(DType::INT64)
    }

    /// Loads the pixel at plain positions of the spatial axes, each clamped to its axis, for the batch and channel in
    /// `lead`.
    fn pixel(&self, builder: &KernelBuilder, lead: &[Expr], axes: &[Axis], places: &[Expr]) -> Expr {
        let clamped = std::iter::zip(places, axes)
            .map(|(place, axis)| place.clone().min(axis.from.clone() - Expr::int(1)).max(Expr::int(0)));
        let plain: Vec<Expr> = lead.iter().cloned().chain(clamped).collect();
        self.data.at(builder, &self.layout.index(self.letters, &plain))
    }

    fn nearest(&self, lowering: &mut Lowering<'_>, axes: &[Axis]) {
        let out = lowering.output(0);
        let extrapolated = lowering.call.float("extrapolation_value").unwrap_or(0.0);
        lowering.builder.compute(out, |builder, index| {
            let plain = self.layout.coordinates(self.letters, index);
            let (lead, places) = plain.split_at(2);
            let nearest: Vec<Expr> =
                std::iter::zip(axes, places).map(|(axis, place)| self.nearest_place(axis, place.clone())).collect();
            let value = self.pixel(builder, lead, axes, &nearest).cast(builder.dtype(out));
            let outside = self.outside(axes, places);
            Expr::select(outside, Expr::number(extrapolated, builder.dtype(out)), value)
        });
    }

    fn interpolate(
        &self,
        lowering: &mut Lowering<'_>,
        axes: &[Axis],
        taps: impl Fn(&mut KernelBuilder, &mut Lets, &Axis, Expr) -> Taps,
    ) {
        let out = lowering.output(0);
        let extrapolated = lowering.call.float("extrapolation_value").unwrap_or(0.0);
        let shape = lowering.builder.shape(out);
        let extents: Vec<(Expr, IterKind)> = shape.into_iter().map(|extent| (extent, IterKind::Spatial)).collect();
        lowering.builder.block("resize", &extents, |builder, index| {
            let plain = self.layout.coordinates(self.letters, index);
            let (lead, places) = plain.split_at(2);
            let mut lets = Lets::default();
            let mut along = Vec::with_capacity(axes.len());
            for (axis, place) in std::iter::zip(axes, places) {
                let coordinate = self.coordinate(axis, place.clone());
                along.push(taps(builder, &mut lets, axis, coordinate));
            }
            let pixel = |places: &[Expr]| self.pixel(builder, lead, axes, places).cast(self.dtype);
            let value = taps::weighted(&along, self.dtype, &pixel);
            let value = Expr::select(self.outside(axes, places), Expr::number(extrapolated, self.dtype), value);
            let store = builder.store(out, index.to_vec(), value.cast(builder.dtype(out)));
            (None, lets.around(store))
        });
    }

    /// Returns whether a pixel of the result is outside the input, which only matters for `tf_crop_and_resize`.
    fn outside(&self, axes: &[Axis], places: &[Expr]) -> Expr {
        if self.mode != "tf_crop_and_resize" {
            return Expr::bool(false);
        }
        std::iter::zip(axes, places).fold(Expr::bool(false), |outside, (axis, place)| {
            let at = self.coordinate(axis, place.clone());
            let last = (axis.from.clone() - Expr::int(1)).cast(self.dtype);
            let beyond = Expr::compare(CompareOp::Gt, at.clone(), last);
            either(outside, either(at.lt(Expr::number(0.0, self.dtype)), beyond))
        })
    }
}

/// Returns the taps with weight 0 for those outside the axis, and the other weights scaled to the sum 1.
fn without_outside(builder: &mut KernelBuilder, lets: &mut Lets, axis: &Axis, taps: Taps) -> Taps {
    let mut kept = Vec::with_capacity(taps.taps.len());
    for (place, weight) in taps.taps {
        let inside = rx_tir::builder::in_range(place.clone(), Expr::int(0), axis.from.clone());
        let zero = Expr::number(0.0, weight.dtype());
        let weight = lets.name(builder, "weight", Expr::select(inside, weight, zero));
        kept.push((place, weight));
    }
    let sum = kept.iter().map(|(_, weight)| weight.clone()).reduce(|sum, weight| sum + weight);
    let Some(sum) = sum.map(|sum| lets.name(builder, "sum", sum)) else { return Taps { taps: kept } };
    Taps { taps: kept.into_iter().map(|(place, weight)| (place, weight / sum.clone())).collect() }
}
