//! Operators of `R.image`, for resizing and sampling images: schemas and struct-info rules.

mod resize;
mod sample;
pub(crate) mod taps;

use crate::call::{CallInfo, ParamPlace, Problem, Rule};
use crate::layout::{laid_out_dims, layout_attr};
use crate::nn::window_layout;
use crate::operands::{
    AxisOf, Element, computed_from, rank_like, require_extent, require_ndim, tensor_like, tensor_type,
};
use crate::schema::{AttrKind, Param, ParamKind, Schema, Traits};
use rx_base::{Code, DType, Dim};
use rx_ir::{ExprKind, PrimInfo, PrimValue, Shape, StructInfo};

const SIZE: Param = Param::operand(
    "size",
    ParamKind::Shape,
    "The spatial extents of the result, as a shape; a single number is for every axis.",
);
const ROI: Param = Param::optional_attr(
    "roi",
    AttrKind::Floats,
    "The region sampled with `tf_crop_and_resize`: all starts, then all ends; relative to the input's extents.",
);
const METHOD: Param = Param::choice(
    "method",
    &["linear", "nearest_neighbor", "cubic"],
    "linear",
    "How values between pixels come about.",
);
const COORDINATES: Param = Param::choice(
    "coordinate_transformation_mode",
    &["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize"],
    "half_pixel",
    "How a pixel of the result maps to a place in the input, as in ONNX `Resize`.",
);
const fn rounding(default: &'static str) -> Param {
    Param::choice(
        "rounding_method",
        &["round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", ""],
        default,
        "Which pixel is nearest, with `nearest_neighbor`; empty chooses by the coordinate mode.",
    )
}
const CUBIC_ALPHA: Param = Param::float("cubic_alpha", -0.75, "The spline coefficient of `cubic`.");
const CUBIC_EXCLUDE: Param = Param::int(
    "cubic_exclude",
    0,
    "Whether `cubic` leaves out samples beyond the edge (1) instead of repeating the edge (0).",
);
const EXTRAPOLATION: Param =
    Param::float("extrapolation_value", 0.0, "The value of places outside the input, with `tf_crop_and_resize`.");
const OUT_DTYPE: Param =
    Param::optional_attr("out_dtype", AttrKind::DType, "The dtype of the result; that of `data` when left out.");
const ALIGN_CORNERS: &str = "Whether -1 and 1 are the centres of the outermost pixels, instead of their outer edges.";

const fn layout(default: &'static str) -> Param {
    Param::layout(
        "layout",
        default,
        "Axes of `data`: batch N, channels C, and the spatial letters; the result has the same.",
    )
}

const DATA: Param = Param::tensor("data", "The images, in the layout `layout`.");

const fn resize_params(letters: &'static str, rounding_method: &'static str) -> [Param; 11] {
    [
        DATA,
        SIZE,
        ROI,
        layout(letters),
        METHOD,
        COORDINATES,
        rounding(rounding_method),
        CUBIC_ALPHA,
        CUBIC_EXCLUDE,
        EXTRAPOLATION,
        OUT_DTYPE,
    ]
}

const fn resizing(name: &'static str, doc: &'static str, infer: Rule) -> Schema {
    Schema::new(name, doc, infer).with_traits(Traits::OPAQUE.laid_out_as(&["layout"], window_layout::resize))
}

pub(crate) static OPERATORS: &[Schema] = &[
    resizing("image.resize2d", "Resizes images to a given height and width.", |call| resize(call, "NCHW"))
        .taking(&resize_params("NCHW", "round"))
        .lowered_by(|lowering| resize::resize(lowering, "NCHW")),
    resizing("image.resize3d", "Resizes volumes to a given depth, height and width.", |call| resize(call, "NCDHW"))
        .taking(&resize_params("NCDHW", ""))
        .lowered_by(|lowering| resize::resize(lowering, "NCDHW")),
    Schema::new(
        "image.grid_sample",
        "Samples images at the places a grid names. The result has the grid's spatial extents.",
        grid_sample,
    )
    .taking(&[
        DATA,
        Param::tensor(
            "grid",
            "Where to sample, in [-1, 1]: (N, 2, H_out, W_out), or (N, 3, D_out, H_out, W_out) for volumes.",
        ),
        Param::choice(
            "method",
            &["bilinear", "nearest", "bicubic"],
            "bilinear",
            "How values between pixels come about.",
        ),
        layout("NCHW"),
        Param::choice(
            "padding_mode",
            &["zeros", "border", "reflection"],
            "zeros",
            "The values sampled outside the input: zeros, the edge, or the input mirrored.",
        ),
        Param::flag("align_corners", false, ALIGN_CORNERS),
    ])
    .lowered_by(sample::grid_sample),
    Schema::new(
        "image.affine_grid",
        "The grid that affine matrices map a regular one to, as `image.grid_sample` takes it. \
         See <https://arxiv.org/abs/1506.02025>.",
        affine_grid,
    )
    .taking(&[
        Param::tensor("data", "Affine matrices: (N, 2, 3) for images, (N, 3, 4) for volumes."),
        Param::operand("size", ParamKind::Shape, "The spatial extents of the grid: (H, W) or (D, H, W)."),
        Param::flag("align_corners", true, ALIGN_CORNERS),
    ])
    .lowered_by(sample::affine_grid),
];

fn resize(call: &CallInfo<'_>, letters: &str) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let rank = letters.len() - 2;
    let size = Size::read(call, &[rank])?;
    let layout = layout_attr(call, "layout", letters, None)?;
    let element = call.dtype("out_dtype").map_or(Element::of(data), |dtype| Element::known(Some(dtype)));
    let dims = laid_out_dims(call, "data", &layout)?;
    let shape = match (dims, size.extents) {
        (Some(dims), Some(size)) => {
            let mut extents = layout.plain(dims, letters);
            extents.truncate(2);
            extents.extend(size);
            Shape::known(layout.physical(letters, &extents))
        }
        _ => rank_like(&data.shape, Some(layout.ndim())),
    };
    Ok(tensor_type(computed_from(&[data], shape), element, data.vdevice))
}

/// The value of the `size` operand.
struct Size {
    /// The number of spatial axes.
    rank: usize,
    /// The extents, if they are written in the call. As in TVM, the dims of a shape variable are not used.
    extents: Option<Vec<Dim>>,
}

impl Size {
    /// Reads `size`, which must have one of these ranks. A single number gives the first of them.
    fn read(call: &CallInfo<'_>, ranks: &[usize]) -> Result<Size, Problem> {
        let Some(operand) = call.operand("size") else { return Err(Problem::Propagate) };
        let rank = match (&operand.kind, &operand.ty) {
            (ExprKind::Prim(PrimValue::Int(dim)), _) => {
                let rank = ranks.first().copied().unwrap_or(2);
                return Ok(Size { rank, extents: Some(vec![dim.clone(); rank]) });
            }
            (_, StructInfo::Prim(PrimInfo { dtype: Some(DType::INT64), value: Some(dim) })) => {
                let rank = ranks.first().copied().unwrap_or(2);
                return Ok(Size { rank, extents: Some(vec![dim.clone(); rank]) });
            }
            (_, StructInfo::Error) => return Err(Problem::Propagate),
            (_, StructInfo::Shape(Shape::Error)) => return Err(Problem::Propagate),
            (_, StructInfo::Shape(shape)) => shape.ndim(),
            (_, ty) => return Err(call.wrong_kind(ParamPlace::Param("size"), "size", "a shape", ty)),
        };
        let Some(rank) = rank.filter(|rank| ranks.contains(rank)) else {
            let wanted: Vec<String> = ranks.iter().map(usize::to_string).collect();
            let given = rank.map_or_else(|| "an unknown number".to_owned(), |rank| rank.to_string());
            let message = format_args!("`size` must have {} dimensions, it has {given}", wanted.join(" or "));
            return Err(call.error(Code::TensorNdimMismatch, ParamPlace::Param("size"), message).into());
        };
        let extents = match &operand.kind {
            ExprKind::Shape(dims) => Some(dims.clone()),
            _ => None,
        };
        Ok(Size { rank, extents })
    }
}

/// Infers the type of `grid_sample` (TVM `InferTypeGridSample`).
fn grid_sample(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (data, grid) = (call.tensor("data")?, call.tensor("grid")?);
    let (letters, axes) = match call.str("layout") {
        Some("NCDHW") => ("NCDHW", "(N, 3, D_out, H_out, W_out)"),
        _ => ("NCHW", "(N, 2, H_out, W_out)"),
    };
    let layout = layout_attr(call, "layout", letters, None)?;
    let dims = laid_out_dims(call, "data", &layout)?;
    require_ndim(call, "grid", letters.len(), axes)?;
    let shape = match (dims, grid.shape.written_dims()) {
        (Some(dims), Some(grid)) => {
            let mut extents = layout.plain(dims, letters);
            extents.truncate(2);
            extents.extend(grid.iter().skip(2).cloned());
            Shape::known(layout.physical(letters, &extents))
        }
        _ => rank_like(&data.shape, Some(layout.ndim())),
    };
    Ok(tensor_like(data, computed_from(&[data], shape)))
}

/// Infers the type of `affine_grid` (TVM `InferTypeAffineGrid`).
fn affine_grid(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let size = Size::read(call, &[2, 3])?;
    // The rank is 2 or 3.
    let spatial = if size.rank == 2 { 2 } else { 3 };
    require_ndim(call, "data", 3, "(batch, spatial axes, spatial axes + 1)")?;
    require_extent(call, AxisOf::new("data", 1), spatial, "for this size")?;
    require_extent(call, AxisOf::new("data", 2), spatial + 1, "for this size")?;
    let shape = match (data.shape.written_dims(), size.extents) {
        (Some([batch, ..]), Some(size)) => {
            let lead = [batch.clone(), Dim::constant(spatial)];
            Shape::known(lead.into_iter().chain(size).collect::<Vec<_>>())
        }
        _ => rank_like(&data.shape, Some(size.rank + 2)),
    };
    Ok(tensor_like(data, shape))
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, given, infer, int, shape, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn resize(data: &str, size: Given, layout: &str) -> Result<StructInfo, Option<Code>> {
        infer("image.resize2d", &[("data", tensor(data)), ("size", size), ("layout", text(layout))])
    }

    #[test]
    fn resizing_replaces_spatial_extents() {
        assert_eq!(resize("2 3 32 32:float32@a", shape("28 w"), "NCHW"), Ok(ty("2 3 28 w:float32@a")));
        assert_eq!(resize("n 32 32 3:int8", int("h"), "NHWC"), Ok(ty("n h h 3:int8")));
        assert_eq!(resize("n c h w k:float32", shape("8 8"), "NCHW16c"), Ok(ty("n c 8 8 16:float32")));
        assert_eq!(resize("*:?", shape("8 8"), "NCHW4c"), Ok(ty("?5:?")));
        // As in TVM, the dims of a shape variable are not used.
        assert_eq!(
            resize("2 3 4 5:float32", given(StructInfo::shape([8.into(), 8.into()])), "NCHW"),
            Ok(ty("?4:float32"))
        );
        let args = [("data", tensor("2 3 4 5:float32")), ("size", shape("8 8")), ("out_dtype", text("float16"))];
        assert_eq!(infer("image.resize2d", &args), Ok(ty("2 3 8 8:float16")));
    }

    #[test]
    fn mistakes_are_reported() {
        let data = "2 3 32 32:float32";
        assert_eq!(resize(data, shape("3 3 3"), "NCHW"), Err(Some(Code::TensorNdimMismatch)));
        let unknown = given(StructInfo::Shape(rx_ir::Shape::Unknown));
        assert_eq!(resize(data, unknown, "NCHW"), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(resize(data, tensor("2:int64"), "NCHW"), Err(Some(Code::ArgumentType)));
        assert_eq!(resize(data, shape("3 3"), "OIHW"), Err(Some(Code::UnknownLayout)));
        assert_eq!(resize("3 32 32:float32", shape("3 3"), "NCHW"), Err(Some(Code::TensorNdimMismatch)));
    }

    #[test]
    fn grids_give_the_extents_of_samples() {
        let sample =
            |grid: &str| infer("image.grid_sample", &[("data", tensor("n 3 8 8:float16")), ("grid", tensor(grid))]);
        assert_eq!(sample("n 2 h w:float16"), Ok(ty("n 3 h w:float16")));
        assert_eq!(sample("*:float16"), Ok(ty("?4:float16")));
        let grid =
            |data: &str, size: &str| infer("image.affine_grid", &[("data", tensor(data)), ("size", shape(size))]);
        assert_eq!(grid("n 2 3:float32", "16 w"), Ok(ty("n 2 16 w:float32")));
        assert_eq!(grid("n 3 4:float32", "4 5 6"), Ok(ty("n 3 4 5 6:float32")));
        assert_eq!(grid("n 2 3:float32", "4 5 6"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(grid("?4:float32", "4 5"), Err(Some(Code::TensorNdimMismatch)));
    }
}
