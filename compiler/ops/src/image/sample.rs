//! *Grid sampling* (`image.grid_sample`) and affine grids (`image.affine_grid`).
//!
//! ```text
//! grid_sample(data, grid): out[n, c, h, w] = interpolate(data[n, c], y = grid[n, 1, h, w], x = grid[n, 0, h, w])
//! ```
//!
//! Guarantees: grid coordinates are from -1 to 1, as in PyTorch's functions with these names.
//! Reference: TVM python/tvm/topi/image/grid_sample.py.

use super::taps::{self, Lets, Taps};
use crate::compute::{Lowering, Operand, Unsupported};
use crate::layout::{Layout, layout_attr};
use crate::tensor::compute::at_most;
use rx_base::DType;
use rx_tir::builder::in_range;
use rx_tir::{Expr, Intrinsic, IterKind, KernelBuilder};

/// The coefficient of PyTorch's bicubic interpolation.
const CUBIC_ALPHA: f64 = -0.75;

/// The operands and attributes of a grid sampling.
struct Sample<'a> {
    data: Operand,
    layout: Layout,
    letters: &'static str,
    padding: &'a str,
    align_corners: bool,
    /// The dtype of coordinates, weights and interpolated values.
    dtype: DType,
    /// The spatial extents of the data.
    extents: Vec<Expr>,
}

/// Emits `image.grid_sample`.
pub(super) fn grid_sample(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let call = lowering.call;
    let (data, grid) = (lowering.tensor("data")?, lowering.tensor("grid")?);
    let letters = if call.str("layout") == Some("NCDHW") { "NCDHW" } else { "NCHW" };
    let layout = layout_attr(call, "layout", letters, None)?;
    let method = call.str("method").unwrap_or("bilinear");
    if method == "bicubic" && letters.len() > 4 {
        return Err(Unsupported::because("bicubic sampling is for images, not for volumes"));
    }
    let wide = data.dtype == DType::FLOAT64 || grid.dtype == DType::FLOAT64;
    let plain = layout.plain(&data.shape, &letters[2..]);
    let extents = plain.iter().map(|dim| lowering.builder.dim(dim)).collect();
    let sample = Sample {
        data,
        layout,
        letters,
        padding: call.str("padding_mode").unwrap_or("zeros"),
        align_corners: call.bool("align_corners") == Some(true),
        dtype: if wide { DType::FLOAT64 } else { DType::FLOAT32 },
        extents,
    };
    let out = lowering.output(0);
    let shape = lowering.builder.shape(out);
    let axes: Vec<(Expr, IterKind)> = shape.into_iter().map(|extent| (extent, IterKind::Spatial)).collect();
    lowering.builder.block("grid_sample", &axes, |builder, index| {
        let plain = sample.layout.coordinates(sample.letters, index);
        let (lead, places) = plain.split_at(2);
        let mut lets = Lets::default();
        let rank = sample.extents.len();
        let along: Vec<Taps> = (0..rank)
            .map(|axis| {
                // The grid's components are x, y, z, in this order, while the axes are z, y, x.
                let component = Expr::int((rank - 1 - axis) as i64);
                let element = [&lead[..1], &[component], places].concat();
                let value = grid.at(builder, &element).cast(sample.dtype);
                sample.taps(builder, &mut lets, method, axis, value)
            })
            .collect();
        let pixel = |places: &[Expr]| sample.pixel(builder, lead, places);
        let value = taps::weighted(&along, sample.dtype, &pixel).cast(builder.dtype(out));
        (None, lets.around(builder.store(out, index.to_vec(), value)))
    });
    Ok(())
}

impl Sample<'_> {
    fn number(&self, value: f64) -> Expr {
        Expr::number(value, self.dtype)
    }

    /// Returns the pixels along an axis, with weights, that interpolate the grid's value (from -1 to 1).
    fn taps(&self, builder: &mut KernelBuilder, lets: &mut Lets, method: &str, axis: usize, value: Expr) -> Taps {
        let extent = self.extents[axis].clone();
        let size = extent.clone().cast(self.dtype);
        let from_start = value + self.number(1.0);
        let at = match self.align_corners {
            true => from_start * (size - self.number(1.0)) / self.number(2.0),
            false => from_start * size / self.number(2.0) - self.number(0.5),
        };
        let at = lets.name(builder, "at", at);
        if method == "bicubic" {
            let mut taps = taps::cubic(builder, lets, at, CUBIC_ALPHA);
            for (place, _) in &mut taps.taps {
                let padded = self.padded(place.clone().cast(self.dtype), &extent).cast(DType::INT64);
                *place = lets.name(builder, "pixel", padded);
            }
            return taps;
        }
        let at = self.padded(at, &extent);
        match method {
            "nearest" => {
                let place = Expr::call(Intrinsic::NearbyInt, vec![at]).cast(DType::INT64);
                Taps { taps: vec![(lets.name(builder, "pixel", place), self.number(1.0))] }
            }
            _ => taps::linear(builder, lets, at),
        }
    }

    /// Returns a coordinate after padding: clamped to the axis, reflected into it, or unchanged.
    fn padded(&self, at: Expr, extent: &Expr) -> Expr {
        let limited = |at: Expr| {
            let last = (extent.clone() - Expr::int(1)).cast(self.dtype);
            at.max(self.number(0.0)).min(last)
        };
        match self.padding {
            "border" => limited(at),
            "reflection" => limited(self.reflected(at, extent)),
            _ => at,
        }
    }

    /// Reflects a coordinate at the ends of the axis until it is between them. The ends are the centers of the
    /// outermost pixels (`align_corners`), or their outer edges.
    fn reflected(&self, at: Expr, extent: &Expr) -> Expr {
        let (low, span) = match self.align_corners {
            true => (0.0, extent.clone() - Expr::int(1)),
            false => (-0.5, extent.clone()),
        };
        let single = at_most(span.clone(), Expr::int(0));
        let span = span.cast(self.dtype);
        let distance = Expr::call(Intrinsic::Abs, vec![at - self.number(low)]);
        let floor = |value: Expr| Expr::call(Intrinsic::Floor, vec![value]);
        let times = floor(distance.clone() / span.clone());
        let extra = distance - times.clone() * span.clone();
        let even = (times.clone() - self.number(2.0) * floor(times / self.number(2.0))).eq(self.number(0.0));
        let inside = Expr::select(even, extra.clone(), span - extra) + self.number(low);
        Expr::select(single, self.number(0.0), inside)
    }

    /// Loads the pixel at these positions; 0 outside the data.
    fn pixel(&self, builder: &KernelBuilder, lead: &[Expr], places: &[Expr]) -> Expr {
        let inside = std::iter::zip(places, &self.extents).fold(Expr::bool(true), |inside, (place, extent)| {
            inside.and(in_range(place.clone(), Expr::int(0), extent.clone()))
        });
        let index = self.layout.index(self.letters, &[lead, places].concat());
        Expr::select(inside, self.data.at(builder, &index).cast(self.dtype), self.number(0.0))
    }
}

/// Emits `image.affine_grid`: applies the matrix to a regular grid over `[-1, 1]`.
pub(super) fn affine_grid(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let align_corners = lowering.call.bool("align_corners") != Some(false);
    let dtype = if data.dtype == DType::FLOAT64 { DType::FLOAT64 } else { DType::FLOAT32 };
    let out = lowering.output(0);
    let size: Vec<Expr> = lowering.builder.shape(out).split_off(2);
    lowering.builder.compute(out, |builder, axes| {
        let (lead, places) = axes.split_at(2);
        let number = |value: f64| Expr::number(value, dtype);
        let entry = |column: usize| {
            let column = Expr::int(column as i64);
            data.at(builder, &[lead, &[column]].concat()).cast(dtype)
        };
        let coordinate = |place: &Expr, extent: &Expr| {
            let (place, length) = (place.clone().cast(dtype), extent.clone().cast(dtype));
            match align_corners {
                true => {
                    let step = number(2.0) / (length - number(1.0));
                    Expr::select(extent.clone().eq(Expr::int(1)), number(0.0), place * step - number(1.0))
                }
                false => (number(2.0) * place + number(1.0)) / length - number(1.0),
            }
        };
        // The matrix columns are for x, y, z; the axes of the grid are z, y, x.
        let rank = size.len();
        let terms = std::iter::zip(places, &size).enumerate();
        let value = terms
            .fold(entry(rank), |sum, (at, (place, extent))| sum + entry(rank - 1 - at) * coordinate(place, extent));
        value.cast(builder.dtype(out))
    });
    Ok(())
}
