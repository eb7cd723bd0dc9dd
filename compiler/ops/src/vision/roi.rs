//! Region-of-interest pooling: schemas and struct-info rules.

use super::compute::roi as compute;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::operands::{AxisOf, rank_like, require_extent, require_ndim, tensor_like};
use crate::schema::{AttrKind, Param, Schema};
use rx_base::{Code, Dim};
use rx_ir::{Shape, StructInfo};

const DATA: Param = Param::tensor("data", "Feature maps, in the layout `layout`.");
const ROIS: Param = Param::tensor("rois", "Regions, one per row: (regions, 5) with batch index, x1, y1, x2, y2.");
const POOLED_SIZE: Param = Param::required_attr(
    "pooled_size",
    AttrKind::Ints,
    "Height and width each region is pooled to; one number for both.",
);
const SPATIAL_SCALE: Param = Param::required_attr(
    "spatial_scale",
    AttrKind::Float,
    "The extents of `data` over those of the image that regions are given in.",
);

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "vision.roi_align",
        "Pools regions of interest to a fixed size, sampling between pixels. See \
         <https://arxiv.org/abs/1703.06870>.",
        |call| regions(call, &["NCHW", "NHWC"]),
    )
    .taking(&[
        DATA,
        ROIS,
        POOLED_SIZE,
        SPATIAL_SCALE,
        Param::int(
            "sample_ratio",
            -1,
            "Samples per output element and axis; chosen by the region's size where not positive.",
        ),
        Param::flag(
            "aligned",
            false,
            "Whether regions may be smaller than one element of `data`; a shift by half of one is left to the caller.",
        ),
        Param::layout("layout", "NCHW", "Axes of `data` and the result: `NCHW` or `NHWC`."),
        Param::choice("mode", &["avg", "max"], "avg", "How the samples of an output element are pooled."),
    ])
    .lowered_by(compute::align),
    Schema::new(
        "vision.roi_pool",
        "Pools regions of interest to a fixed size by their maximum. See <https://arxiv.org/abs/1504.08083>.",
        |call| regions(call, &["NCHW"]),
    )
    .taking(&[
        DATA,
        ROIS,
        POOLED_SIZE,
        SPATIAL_SCALE,
        Param::layout("layout", "NCHW", "Axes of `data` and the result: `NCHW`."),
    ])
    .lowered_by(compute::pool)
    .declared_in("TVM src/relax/op/vision/roi_pool.cc"),
];

/// Infers the result type, which has one pooled map per region (TVM `InferTypeROIAlign`).
fn regions(call: &CallInfo<'_>, layouts: &[&str]) -> Result<StructInfo, Problem> {
    let (data, rois) = (call.tensor("data")?, call.tensor("rois")?);
    let pooled = call.needed_ints("pooled_size")?;
    let (height, width) = match pooled[..] {
        [both] => (both, both),
        [height, width] => (height, width),
        _ => {
            let message = format_args!("pooled_size has {} values, it takes 1 or 2", pooled.len());
            return Err(call.error(Code::AttrBadValue, ParamPlace::Param("pooled_size"), message).into());
        }
    };
    let layout = call.str("layout").ok_or(Problem::Propagate)?;
    if !layouts.contains(&layout) {
        let message = format_args!("layout \"{layout}\" is not supported, only {}", layouts.join(" and "));
        return Err(call.error(Code::UnknownLayout, ParamPlace::Param("layout"), message).into());
    }
    require_ndim(call, "data", 4, &format!("({layout})"))?;
    require_ndim(call, "rois", 2, "(regions, 5)")?;
    require_extent(call, AxisOf::new("rois", 1), 5, "(batch index, x1, y1, x2, y2)")?;
    let shape = match (data.shape.written_dims(), rois.shape.written_dims()) {
        (Some([_, second, _, last]), Some([regions, _])) => {
            let (height, width) = (Dim::constant(height), Dim::constant(width));
            match layout {
                "NCHW" => Shape::known([regions.clone(), second.clone(), height, width]),
                _ => Shape::known([regions.clone(), height, width, last.clone()]),
            }
        }
        _ => rank_like(&data.shape, Some(4)),
    };
    Ok(tensor_like(data, shape))
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, numbers, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn align(data: &str, rois: &str, layout: &str) -> Result<StructInfo, Option<Code>> {
        let args = [
            ("data", tensor(data)),
            ("rois", tensor(rois)),
            ("pooled_size", numbers(&[7, 5])),
            ("layout", text(layout)),
        ];
        infer("vision.roi_align", &args)
    }

    #[test]
    fn each_region_gives_a_map() {
        let (data, rois) = ("2 3 h w:float32", "r 5:float32");
        assert_eq!(align(data, rois, "NCHW"), Ok(ty("r 3 7 5:float32")));
        assert_eq!(align(data, rois, "NHWC"), Ok(ty("r 7 5 w:float32")));
        assert_eq!(align("*:float32", rois, "NCHW"), Ok(ty("?4:float32")));
        assert_eq!(align(data, "4:float32", "NCHW"), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(align(data, "4 4:float32", "NCHW"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(align(data, rois, "HWCN"), Err(Some(Code::UnknownLayout)));
    }
}
