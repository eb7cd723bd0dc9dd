//! `vision.multibox_transform_loc`: decodes boxes from anchors, as single-shot detectors (SSD) require.

use super::compute::multibox as compute;
use crate::call::{Arg, CallInfo, ParamPlace, Problem};
use crate::operands::{AxisOf, clash, rank_like, require_equal, require_extent, require_ndim, tensor_like};
use crate::schema::{AttrKind, Default, Param, Schema};
use rx_base::{Answer, Code, Dim};
use rx_ir::{Attr, Shape, StructInfo};

pub(crate) static OPERATORS: &[Schema] = &[Schema::new(
    "vision.multibox_transform_loc",
    "Decodes boxes from anchors and offsets. Gives a tuple: boxes (batch, anchors, 4) as ymin, xmin, ymax, \
     xmax, and scores (batch, classes, anchors).",
    multibox_transform_loc,
)
.taking(&[
    Param::tensor("cls_pred", "Class scores: (batch, classes, anchors)."),
    Param::tensor("loc_pred", "Encoded boxes, x, y, w, h per anchor: (batch, 4 * anchors)."),
    Param::tensor("anchor", "Anchors as left, top, right, bottom: (1, anchors, 4)."),
    Param::flag("clip", false, "Whether corners are clipped to [0, 1]."),
    Param::float("threshold", 0.0, "Scores below it become 0."),
    Param::attr(
        "variances",
        AttrKind::Floats,
        Default::Floats(&[1.0, 1.0, 1.0, 1.0]),
        "The factors of x, y, w and h before decoding.",
    ),
    Param::flag("keep_background", true, "Whether the scores of class 0 are kept."),
    Param::flag("apply_softmax", true, "Whether scores pass a softmax over the classes first."),
])
.lowered_by(compute::transform_loc)];

/// Infers the result type (TVM `InferTypeMultiboxTransformLoc`).
fn multibox_transform_loc(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let scores = call.tensor("cls_pred")?;
    require_ndim(call, "cls_pred", 3, "(batch, classes, anchors)")?;
    require_ndim(call, "loc_pred", 2, "(batch, 4 * anchors)")?;
    require_ndim(call, "anchor", 3, "(1, anchors, 4)")?;
    for other in ["loc_pred", "anchor"] {
        if let (Some(a), Some(b)) = (scores.dtype, call.tensor(other)?.dtype)
            && a != b
        {
            let message = format_args!("`cls_pred` has dtype {a}, `{other}` has dtype {b}");
            return Err(clash(call, Code::DtypeMismatch, other, "cls_pred", message).into());
        }
    }
    if let Arg::Attr(Attr::List(variances)) = call.arg("variances")
        && variances.len() != 4
    {
        let message = format_args!("variances has {} values, it takes 4 (x, y, w, h)", variances.len());
        return Err(call.error(Code::AttrBadValue, ParamPlace::Param("variances"), message).into());
    }
    check_extents(call)?;
    let (boxes, classes) = match scores.shape.written_dims() {
        Some([batch, _, anchors]) => {
            (Shape::known([batch.clone(), anchors.clone(), Dim::constant(4)]), scores.shape.clone())
        }
        _ => (rank_like(&scores.shape, Some(3)), rank_like(&scores.shape, Some(3))),
    };
    Ok(StructInfo::tuple([tensor_like(scores, boxes), tensor_like(scores, classes)]))
}

fn check_extents(call: &CallInfo<'_>) -> Result<(), Problem> {
    require_equal(call, AxisOf::new("cls_pred", 0), AxisOf::new("loc_pred", 0), "the batch size")?;
    require_extent(call, AxisOf::new("anchor", 0), 1, "(anchors are shared by the batch)")?;
    require_extent(call, AxisOf::new("anchor", 2), 4, "(left, top, right, bottom)")?;
    require_equal(call, AxisOf::new("cls_pred", 2), AxisOf::new("anchor", 1), "the number of anchors")?;
    let Some(encoded) = AxisOf::new("loc_pred", 1).dim(call) else { return Ok(()) };
    let four = Dim::constant(4);
    let report = |message| -> Problem {
        call.operand_error(Code::ShapeMismatch, "loc_pred", message)
            .with_label(ParamPlace::Param("cls_pred"), call.ty("cls_pred").to_string())
            .into()
    };
    if call.equal(&encoded.floor_mod(&four), &Dim::constant(0)) == Answer::Refuted {
        return Err(report(format_args!("axis 1 of `loc_pred` must be divisible by 4, it is {encoded}")));
    }
    match AxisOf::new("cls_pred", 2).dim(call) {
        Some(anchors) if call.equal(encoded, &(anchors * &four)) == Answer::Refuted => {
            Err(report(format_args!("axis 1 of `loc_pred` must be 4 * {anchors} (4 * anchors), it is {encoded}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    #[test]
    fn boxes_and_scores_come_out() {
        let decode = |scores: &str, boxes: &str, anchors: &str| {
            let args = [("cls_pred", tensor(scores)), ("loc_pred", tensor(boxes)), ("anchor", tensor(anchors))];
            infer("vision.multibox_transform_loc", &args)
        };
        let (scores, boxes, anchors) = ("b 3 5:float32", "b 20:float32", "1 5 4:float32");
        assert_eq!(decode(scores, boxes, anchors), Ok(StructInfo::tuple([ty("b 5 4:float32"), ty(scores)])));
        assert_eq!(decode("*:?", boxes, anchors), Ok(StructInfo::tuple([ty("?3:?"), ty("?3:?")])));
        for (boxes, anchors) in
            [("b 21:float32", anchors), ("b 24:float32", anchors), (boxes, "2 5 4:float32"), (boxes, "1 6 4:float32")]
        {
            assert_eq!(decode(scores, boxes, anchors), Err(Some(Code::ShapeMismatch)), "{boxes} {anchors}");
        }
        assert_eq!(decode("3 5:float32", boxes, anchors), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(decode(scores, "b 20:float16", anchors), Err(Some(Code::DtypeMismatch)));
    }
}
