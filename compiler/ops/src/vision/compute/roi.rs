//! *Region-of-interest pooling* (`vision.roi_align`, `vision.roi_pool`): reduces each region of an image to a
//! fixed-size grid.
//!
//! ```text
//! for r, c, h, w in grid(regions, channels, pooled_h, pooled_w):
//!     out[r, c, h, w] = identity
//!     for i, j in the rows and columns of the grid cell (r, h, w):   # data-dependent extents
//!         out[r, c, h, w] = op(out[r, c, h, w], data[image[r], c, i, j])
//! ```
//!
//! Requires: `rois` has five values per region: image index, x1, y1, x2, y2.
//! Guarantees: a cell without elements is 0. The number of elements in a cell depends on the values of `rois`, so the
//! loops over them are serial loops inside the block, not reduction axes.
//! Reference: TVM python/tvm/topi/vision/roi_align.py and roi_pool.py.

use crate::compute::{Lowering, Operand, Unsupported};
use crate::image::taps::{self, Lets};
use crate::layout::{Layout, layout_attr};
use crate::reduction::identity;
use crate::tensor::compute::{at_most, either, greater, index};
use rx_base::DType;
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, IterKind, KernelBuilder, LoopKind, Stmt};

/// The operands and attributes that both poolings have.
struct Regions {
    data: Operand,
    rois: Operand,
    layout: Layout,
    /// The height and width of the data.
    extents: [Expr; 2],
    /// The height and width of the result.
    pooled: [i64; 2],
    scale: f64,
    /// The dtype of coordinates.
    dtype: DType,
}

/// The letters of plain coordinates, for data and result.
const LETTERS: &str = "NCHW";

impl Regions {
    fn of(lowering: &mut Lowering<'_>) -> Result<Regions, Unsupported> {
        let call = lowering.call;
        let layout = layout_attr(call, "layout", LETTERS, None)?;
        let (data, rois) = (lowering.tensor("data")?, lowering.tensor("rois")?);
        if data.ndim() != 4 || rois.ndim() != 2 {
            return Err(Unsupported::because("`data` must have 4 dimensions and `rois` 2"));
        }
        let pooled = match call.ints("pooled_size").as_deref() {
            Some([both]) => [*both, *both],
            Some([height, width]) => [*height, *width],
            _ => return Err(Unsupported::because("`pooled_size` must be one number or two")),
        };
        let scale = call.float("spatial_scale").ok_or_else(|| Unsupported::because("`spatial_scale` is not known"))?;
        let wide = data.dtype == DType::FLOAT64 || rois.dtype == DType::FLOAT64;
        // INVARIANT: `LETTERS` has two spatial axes after N and C.
        let extents = [2, 3].map(|axis: usize| lowering.builder.dim(&layout.plain(&data.shape, LETTERS)[axis]));
        let dtype = if wide { DType::FLOAT64 } else { DType::FLOAT32 };
        Ok(Regions { data, rois, layout, extents, pooled, scale, dtype })
    }

    fn number(&self, value: f64) -> Expr {
        Expr::number(value, self.dtype)
    }

    /// Returns component `at` of a region: image index, x1, y1, x2, y2.
    fn part(&self, builder: &KernelBuilder, region: &Expr, at: i64) -> Expr {
        self.rois.at(builder, &[region.clone(), Expr::int(at)])
    }

    /// Returns the begin and end of a region along height (`axis` 0) or width (`axis` 1), scaled to elements of the
    /// data.
    fn span(&self, builder: &KernelBuilder, region: &Expr, axis: usize) -> [Expr; 2] {
        // A region has x before y.
        let first = 2 - axis as i64;
        [first, first + 2].map(|at| self.part(builder, region, at).cast(self.dtype) * self.number(self.scale))
    }

    /// Emits a block that computes the result in `dtype`, over the plain axes region, channel, row and column. `body`
    /// gets these axes and the element of the result to store.
    fn pool(
        &self,
        lowering: &mut Lowering<'_>,
        dtype: DType,
        body: impl FnOnce(&mut KernelBuilder, &mut Lets, &Target, [&Expr; 4]) -> Stmt,
    ) -> Result<(), Unsupported> {
        let (out, shape) = (lowering.output(0), lowering.output_shape(0).to_vec());
        let builder = &mut lowering.builder;
        let is_own = builder.dtype(out) == dtype;
        let buffer = if is_own { out } else { builder.temporary("pooled", &shape, dtype) };
        let plain = self.layout.plain(&shape, LETTERS);
        let axes: Vec<(Expr, IterKind)> = plain.iter().map(|dim| (builder.dim(dim), IterKind::Spatial)).collect();
        builder.block(lowering.call.short_name(), &axes, |builder, axes| {
            let mut lets = Lets::default();
            let target = Target { buffer, index: self.layout.index(LETTERS, axes) };
            // INVARIANT: there is one axis for each of the four letters.
            let body = body(builder, &mut lets, &target, [0, 1, 2, 3].map(|at: usize| &axes[at]));
            (None, lets.around(body))
        });
        if !is_own {
            builder.compute(out, |builder, place| builder.load(buffer, place).cast(builder.dtype(out)));
        }
        Ok(())
    }

    /// Loads the element of the data at plain coordinates.
    fn element(&self, builder: &KernelBuilder, coordinates: &[Expr]) -> Expr {
        self.data.at(builder, &self.layout.index(LETTERS, coordinates))
    }
}

/// The element of the result that one block instance computes.
struct Target {
    buffer: BufferId,
    index: Vec<Expr>,
}

impl Target {
    fn load(&self, builder: &KernelBuilder) -> Expr {
        builder.load(self.buffer, &self.index)
    }

    fn store(&self, builder: &KernelBuilder, value: Expr) -> Stmt {
        builder.store(self.buffer, self.index.clone(), value)
    }
}

/// Emits `for var in range(begin, begin + extent): body(var)`.
fn serial(
    builder: &mut KernelBuilder,
    name: &str,
    (begin, extent): (Expr, Expr),
    body: impl FnOnce(&mut KernelBuilder, Expr) -> Stmt,
) -> Stmt {
    let (var, place) = builder.variable(name, DType::INT64);
    let body = Box::new(body(builder, place));
    Stmt::For { var, start: begin, extent, kind: LoopKind::Serial, body }
}

/// Returns `function(value)`, converted to an integer.
fn whole(function: Intrinsic, value: Expr) -> Expr {
    index(Expr::call(function, vec![value]))
}

/// The sample points of one result element along one axis.
struct Samples {
    /// The begin of the grid cell.
    begin: Expr,
    /// The distance between samples.
    step: Expr,
    /// The number of samples.
    count: Expr,
}

/// Emits the loops of `vision.roi_align`: the average or maximum of bilinearly interpolated samples; 0 for a cell
/// without samples.
pub(crate) fn align(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let regions = Regions::of(lowering)?;
    let ratio = lowering.call.int("sample_ratio").unwrap_or(-1);
    let aligned = lowering.call.bool("aligned") == Some(true);
    let op = if lowering.call.str("mode") == Some("max") { BinaryOp::Max } else { BinaryOp::Add };
    let dtype = regions.dtype;
    regions.pool(lowering, dtype, |builder, lets, target, axes| {
        let [rows, columns] = [0, 1].map(|axis| regions.samples(builder, lets, (axis, axes), ratio, aligned));
        let image = lets.name(builder, "image", index(regions.part(builder, axes[0], 0)));
        let samples = serial(builder, "row", (Expr::int(0), rows.count.clone()), |builder, row| {
            serial(builder, "column", (Expr::int(0), columns.count.clone()), |builder, column| {
                let mut lets = Lets::default();
                let places = [(&rows, row), (&columns, column)].map(|(samples, at)| samples.place(at, dtype));
                let value = regions.between(builder, &mut lets, [&image, axes[1]], places);
                let combined = Expr::binary(op, target.load(builder), value);
                lets.around(target.store(builder, combined))
            })
        });
        let first = target.store(builder, identity(op, dtype));
        let some = greater(rows.count.clone(), Expr::int(0)).and(greater(columns.count.clone(), Expr::int(0)));
        let all = match op {
            BinaryOp::Add => target.load(builder) / (rows.count * columns.count).cast(dtype),
            _ => target.load(builder),
        };
        let last = target.store(builder, Expr::select(some, all, regions.number(0.0)));
        Stmt::seq([first, samples, last])
    })
}

impl Samples {
    /// Returns the coordinate of sample `at`: the center of its interval.
    fn place(&self, at: Expr, dtype: DType) -> Expr {
        self.begin.clone() + (at.cast(dtype) + Expr::number(0.5, dtype)) * self.step.clone()
    }
}

impl Regions {
    /// Returns the samples along height (`axis` 0) or width (`axis` 1) of the result element at `axes`. Unless
    /// `aligned` is set, a region is at least one element long.
    fn samples(
        &self,
        builder: &mut KernelBuilder,
        lets: &mut Lets,
        (axis, axes): (usize, [&Expr; 4]),
        ratio: i64,
        aligned: bool,
    ) -> Samples {
        let [begin, end] = self.span(builder, axes[0], axis);
        let begin = lets.name(builder, "begin", begin);
        let length = end - begin.clone();
        let length = if aligned { length } else { length.max(self.number(1.0)) };
        // INVARIANT: `axis` is 0 or 1, and `axes` has the two positions after region and channel.
        let part = lets.name(builder, "part", length / self.number(self.pooled[axis] as f64));
        let count = match ratio {
            ..=0 => whole(Intrinsic::Ceil, part.clone()).max(Expr::int(0)),
            ratio => Expr::int(ratio),
        };
        let count = lets.name(builder, "count", count);
        let begin = begin + axes[2 + axis].clone().cast(self.dtype) * part.clone();
        let begin = lets.name(builder, "begin", begin);
        let step = lets.name(builder, "step", part / count.clone().cast(self.dtype));
        Samples { begin, step, count }
    }

    /// Returns the bilinear interpolation of the data at `places`, with coordinates clamped to the image; 0 if a
    /// coordinate is more than one pixel outside.
    fn between(
        &self,
        builder: &mut KernelBuilder,
        lets: &mut Lets,
        [image, channel]: [&Expr; 2],
        places: [Expr; 2],
    ) -> Expr {
        let mut outside = Expr::bool(false);
        let mut along = Vec::with_capacity(2);
        for (place, extent) in places.into_iter().zip(&self.extents) {
            let place = lets.name(builder, "place", place);
            let beyond = greater(place.clone(), extent.clone().cast(self.dtype));
            outside = either(outside, either(place.clone().lt(self.number(-1.0)), beyond));
            let last = extent.clone() - Expr::int(1);
            let limited = place.max(self.number(0.0)).min(last.clone().cast(self.dtype));
            let mut taps = taps::linear(builder, lets, limited);
            for (pixel, _) in &mut taps.taps {
                *pixel = lets.name(builder, "pixel", pixel.clone().min(last.clone()).max(Expr::int(0)));
            }
            along.push(taps);
        }
        let pixel = |places: &[Expr]| {
            let coordinates = [&[image.clone(), channel.clone()], places].concat();
            self.element(builder, &coordinates).cast(self.dtype)
        };
        let value = taps::weighted(&along, self.dtype, &pixel);
        Expr::select(outside, self.number(0.0), value)
    }
}

/// Emits the loops of `vision.roi_pool`: the maximum of the elements in each cell; 0 for an empty cell. Region corners
/// are rounded to elements, halves upwards.
pub(crate) fn pool(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let regions = Regions::of(lowering)?;
    let dtype = regions.data.dtype;
    regions.pool(lowering, dtype, |builder, lets, target, axes| {
        let [rows, columns] = [0, 1].map(|axis| regions.elements(builder, lets, axis, axes));
        let image = lets.name(builder, "image", index(regions.part(builder, axes[0], 0)));
        let elements = serial(builder, "row", rows.clone(), |builder, row| {
            serial(builder, "column", columns.clone(), |builder, column| {
                let value = regions.element(builder, &[image.clone(), axes[1].clone(), row, column]);
                target.store(builder, target.load(builder).max(value))
            })
        });
        let first = target.store(builder, identity(BinaryOp::Max, dtype));
        let none = either(at_most(rows.1, Expr::int(0)), at_most(columns.1, Expr::int(0)));
        let last = Stmt::If {
            condition: none,
            then: Box::new(target.store(builder, Expr::number(0.0, dtype))),
            otherwise: None,
        };
        Stmt::seq([first, elements, last])
    })
}

impl Regions {
    /// Returns the first element and the number of elements along an axis that belong to the cell at `axes`.
    fn elements(&self, builder: &mut KernelBuilder, lets: &mut Lets, axis: usize, axes: [&Expr; 4]) -> (Expr, Expr) {
        let [first, last] = self.span(builder, axes[0], axis).map(|corner| {
            let rounded = whole(Intrinsic::Floor, corner + self.number(0.5));
            lets.name(builder, "corner", rounded)
        });
        let length = (last - first.clone() + Expr::int(1)).max(Expr::int(1)).cast(self.dtype);
        // INVARIANT: `axis` is 0 or 1, and `axes` has the two positions after region and channel.
        let part = lets.name(builder, "part", length / self.number(self.pooled[axis] as f64));
        let place = axes[2 + axis].clone();
        let begin = whole(Intrinsic::Floor, place.clone().cast(self.dtype) * part.clone());
        let end = whole(Intrinsic::Ceil, (place + Expr::int(1)).cast(self.dtype) * part);
        let [begin, end] = [begin, end].map(|corner| {
            let inside = (corner + first.clone()).max(Expr::int(0)).min(self.extents[axis].clone());
            lets.name(builder, "end", inside)
        });
        let count = lets.name(builder, "count", end - begin.clone());
        (begin, count)
    }
}
