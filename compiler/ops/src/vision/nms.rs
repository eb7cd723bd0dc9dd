//! Non-maximum suppression: schemas and struct-info rules.

use crate::call::{Arg, CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::operands::{
    AxisOf, Element, rank_like, require_equal, require_ndim, require_rank, tensor_like, tensor_type,
};
use crate::schema::{Param, Schema};
use rx_base::{Code, DType, Dim};
use rx_ir::{Attr, Shape, StructInfo, TensorInfo};

const BOXES: Param =
    Param::tensor("data", "Boxes, one per row: (batch, anchors, elements), with score, coordinates and class.");
const SCORE_INDEX: Param = Param::int("score_index", 1, "The index of the score in a row.");
const ID_INDEX: Param = Param::int("id_index", 0, "The index of the class in a row; -1 if there is none.");

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "vision.all_class_non_max_suppression",
        "Suppresses overlapping boxes, each class by itself, as ONNX `NonMaxSuppression`. Gives a tuple: indices \
         (batch * classes * boxes, 3) and their number, or per batch with `tensorflow`: indices, scores, numbers.",
        all_class_non_max_suppression,
    )
    .taking(&[
        Param::tensor("boxes", "The boxes: (batch, boxes, 4)."),
        Param::tensor("scores", "The score of each box in each class: (batch, classes, boxes)."),
        Param::tensor("max_output_boxes_per_class", "The most boxes kept per class, a scalar."),
        Param::tensor("iou_threshold", "The overlap from which on a box is suppressed, a scalar."),
        Param::tensor("score_threshold", "Boxes of lower score are not considered, a scalar."),
        Param::choice(
            "output_format",
            &["onnx", "tensorflow"],
            "onnx",
            "How the result is given: one table of batch, class and box, or one table per batch.",
        ),
    ])
    .computed_as(Compute::Host),
    Schema::new(
        "vision.get_valid_counts",
        "Moves valid boxes to the front and counts them. Gives a tuple: counts (batch,), boxes, and their former \
         places (batch, anchors).",
        get_valid_counts,
    )
    .taking(&[BOXES, Param::float("score_threshold", 0.0, "The least score of a valid box."), ID_INDEX, SCORE_INDEX])
    .computed_as(Compute::Host),
    Schema::new(
        "vision.non_max_suppression",
        "Suppresses boxes that overlap a better one. Gives a tuple of places (batch, anchors) and counts \
         (batch, 1), the boxes before them with `soft_nms_sigma`; the boxes alone without `return_indices`.",
        non_max_suppression,
    )
    .taking(&[
        BOXES,
        Param::tensor("valid_count", "The number of valid boxes: (batch,), int32."),
        Param::tensor("indices", "The places of boxes in the original data: (batch, anchors), int32."),
        Param::int("max_output_size", -1, "The most boxes kept; no limit if it is not positive."),
        Param::float(
            "iou_threshold",
            0.5,
            "The overlap, area of intersection over area of union, from which on a box is suppressed.",
        ),
        Param::flag("force_suppress", false, "Whether boxes of different classes suppress each other."),
        Param::int("top_k", -1, "How many of the best boxes are considered; -1 for all."),
        Param::int("coord_start", 2, "Where in a row the four coordinates start."),
        SCORE_INDEX,
        ID_INDEX,
        Param::flag("return_indices", true, "Whether the places of the kept boxes are given, instead of the boxes."),
        Param::flag("invalid_to_bottom", false, "Whether kept boxes are moved to the front, where boxes are given."),
        Param::float(
            "soft_nms_sigma",
            0.0,
            "Above 0, overlapping boxes lose score by a Gaussian of this width instead of being suppressed.",
        ),
        Param::float("score_threshold", 0.0, "The least score after the loss, with `soft_nms_sigma`."),
    ])
    .computed_as(Compute::Host),
];

/// Creates a tensor type on the device of `like`.
fn on_device(like: &TensorInfo, shape: Shape, dtype: DType) -> StructInfo {
    tensor_type(shape, Element::known(Some(dtype)), like.vdevice)
}

/// Infers the result type (TVM `InferTypeAllClassNMS`).
fn all_class_non_max_suppression(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (boxes, scores) = (call.tensor("boxes")?, call.tensor("scores")?);
    for name in ["max_output_boxes_per_class", "iou_threshold", "score_threshold"] {
        call.tensor(name)?;
    }
    require_ndim(call, "boxes", 3, "(batch, boxes, 4)")?;
    require_ndim(call, "scores", 3, "(batch, classes, boxes)")?;
    require_rank(call, "boxes")?;
    require_rank(call, "scores")?;
    require_equal(call, AxisOf::new("boxes", 0), AxisOf::new("scores", 0), "the batch size")?;
    require_equal(call, AxisOf::new("boxes", 1), AxisOf::new("scores", 2), "the number of boxes")?;
    let extents = match (boxes.shape.written_dims(), scores.shape.written_dims()) {
        (Some([batch, count, _]), Some([_, classes, _])) => Some((batch, &(classes * count))),
        _ => None,
    };
    // Builds the shape from the batch size and the boxes per batch, if both are known.
    let shape = |ndim, dims: &dyn Fn(&Dim, &Dim) -> Vec<Dim>| match extents {
        Some((batch, per_batch)) => Shape::known(dims(batch, per_batch)),
        None => rank_like(&boxes.shape, Some(ndim)),
    };
    if call.str("output_format") == Some("onnx") {
        let indices = shape(2, &|batch, per_batch| vec![batch * per_batch, Dim::constant(3)]);
        let count = Shape::known([Dim::constant(1)]);
        return Ok(StructInfo::tuple([indices, count].map(|shape| on_device(boxes, shape, DType::INT64))));
    }
    let indices = shape(3, &|batch, per_batch| vec![batch.clone(), per_batch.clone(), Dim::constant(2)]);
    let kept_scores = shape(2, &|batch, per_batch| vec![batch.clone(), per_batch.clone()]);
    let counts = shape(1, &|batch, _| vec![batch.clone()]);
    Ok(StructInfo::tuple([
        on_device(boxes, indices, DType::INT64),
        on_device(boxes, kept_scores, DType::FLOAT32),
        on_device(boxes, counts, DType::INT64),
    ]))
}

/// Rejects an index into a row of known length that is less than `least`, or at which fewer than `width` elements begin.
fn require_index(call: &CallInfo<'_>, name: &'static str, least: i64, width: i64) -> Result<(), Problem> {
    let (index, elements) = (call.needed_int(name)?, AxisOf::new("data", 2).dim(call).and_then(Dim::as_constant));
    let Some(elements) = elements else { return Ok(()) };
    let end = elements.saturating_sub(width - 1);
    if (least..end).contains(&index) {
        return Ok(());
    }
    let message = format_args!("{name} must be in [{least}, {end}), it is {index}");
    Err(call
        .error(Code::AttrOutOfRange, ParamPlace::Param(name), message)
        .with_label(ParamPlace::Param("data"), format!("{}: rows have {elements} elements", call.ty("data")))
        .into())
}

/// Returns the first `rank` dims of `data`, or only a rank if they are unknown.
fn leading(data: &TensorInfo, rank: usize) -> Shape {
    match data.shape.written_dims() {
        Some(dims) => Shape::known(dims.iter().take(rank).cloned().collect::<Vec<_>>()),
        None => rank_like(&data.shape, Some(rank)),
    }
}

/// Infers the result type (TVM `InferTypeGetValidCounts`).
fn get_valid_counts(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    require_ndim(call, "data", 3, "(batch, anchors, elements)")?;
    require_index(call, "score_index", 0, 1)?;
    require_index(call, "id_index", -1, 1)?;
    Ok(StructInfo::tuple([
        on_device(data, leading(data, 1), DType::INT32),
        tensor_like(data, leading(data, 3)),
        on_device(data, leading(data, 2), DType::INT32),
    ]))
}

/// Infers the result type (TVM `InferTypeNMS`).
fn non_max_suppression(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    require_ndim(call, "data", 3, "(batch, anchors, elements)")?;
    require_ndim(call, "valid_count", 1, "(batch,)")?;
    require_ndim(call, "indices", 2, "(batch, anchors)")?;
    for name in ["valid_count", "indices"] {
        if let Some(dtype) = call.tensor(name)?.dtype.filter(|dtype| *dtype != DType::INT32) {
            let message = format_args!("`{name}` must have dtype int32, it has {dtype}");
            return Err(call.operand_error(Code::IndexDtype, name, message).into());
        }
    }
    require_equal(call, AxisOf::new("data", 0), AxisOf::new("valid_count", 0), "the batch size")?;
    require_equal(call, AxisOf::new("data", 0), AxisOf::new("indices", 0), "the batch size")?;
    require_equal(call, AxisOf::new("data", 1), AxisOf::new("indices", 1), "the number of anchors")?;
    require_index(call, "score_index", 0, 1)?;
    require_index(call, "coord_start", 0, 4)?;
    require_index(call, "id_index", -1, 1)?;
    let boxes = tensor_like(data, leading(data, 3));
    if call.bool("return_indices") == Some(false) {
        return Ok(boxes);
    }
    let counts = match data.shape.written_dims() {
        Some([batch, ..]) => Shape::known([batch.clone(), Dim::constant(1)]),
        _ => rank_like(&data.shape, Some(2)),
    };
    let places = on_device(data, leading(data, 2), DType::INT32);
    let counts = on_device(data, counts, DType::INT32);
    Ok(match is_positive(call.arg("soft_nms_sigma")) {
        true => StructInfo::tuple([boxes, places, counts]),
        false => StructInfo::tuple([places, counts]),
    })
}

fn is_positive(arg: &Arg<'_>) -> bool {
    match arg {
        Arg::Attr(Attr::Float(value)) => *value > 0.0,
        Arg::Attr(Attr::Int(value)) => value.as_constant().is_some_and(|value| value > 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, flag, infer, number, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::{Attr, StructInfo};

    fn nms(data: &str, count: &str, attrs: Vec<(&'static str, Given)>) -> Result<StructInfo, Option<Code>> {
        let mut args = attrs;
        args.extend([("data", tensor(data)), ("valid_count", tensor(count)), ("indices", tensor("b 10:int32"))]);
        infer("vision.non_max_suppression", &args)
    }

    #[test]
    fn suppression_gives_places_or_boxes() {
        let (data, count) = ("b 10 6:float32", "b:int32");
        let tuple = |fields: &[&str]| Ok(StructInfo::Tuple(fields.iter().map(|field| ty(field)).collect()));
        assert_eq!(nms(data, count, vec![]), tuple(&["b 10:int32", "b 1:int32"]));
        let soft = ("soft_nms_sigma", Given::Attr(Attr::Float(0.5)));
        assert_eq!(nms(data, count, vec![soft]), tuple(&[data, "b 10:int32", "b 1:int32"]));
        assert_eq!(nms(data, count, vec![("return_indices", flag(false))]), Ok(ty(data)));
        assert_eq!(nms("*:?", count, vec![]), tuple(&["?2:int32", "?2:int32"]));
    }

    #[test]
    fn mistakes_are_reported() {
        let (data, count) = ("b 10 6:float32", "b:int32");
        assert_eq!(nms(data, "b:int64", vec![]), Err(Some(Code::IndexDtype)));
        assert_eq!(nms(data, "b 1:int32", vec![]), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(nms("b 9 6:float32", count, vec![]), Err(Some(Code::ShapeMismatch)));
        for (name, value) in [("score_index", 6), ("id_index", -2), ("coord_start", 3)] {
            assert_eq!(nms(data, count, vec![(name, number(value))]), Err(Some(Code::AttrOutOfRange)), "{name}");
        }
    }

    #[test]
    fn all_classes_are_counted() {
        let run = |format: &str| {
            let args = [
                ("boxes", tensor("10 5 4:float32")),
                ("scores", tensor("10 8 5:float32")),
                ("max_output_boxes_per_class", tensor(":int64")),
                ("iou_threshold", tensor(":float32")),
                ("score_threshold", tensor(":float32")),
                ("output_format", text(format)),
            ];
            infer("vision.all_class_non_max_suppression", &args)
        };
        assert_eq!(run("onnx"), Ok(StructInfo::tuple([ty("400 3:int64"), ty("1:int64")])));
        let wanted = StructInfo::tuple([ty("10 40 2:int64"), ty("10 40:float32"), ty("10:int64")]);
        assert_eq!(run("tensorflow"), Ok(wanted));
    }
}
