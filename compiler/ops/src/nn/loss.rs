//! Losses: schemas and struct-info rules.

use super::compute::loss as compute;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::operands::{
    AxisOf, Element, clash, joined_element, joined_vdevice, rank_like, require_equal, require_ndim, tensor_type,
};
use crate::schema::{Param, ParamKind, Schema};
use rx_base::Code;
use rx_ir::{Shape, StructInfo, TensorInfo};

/// The log probabilities of the classes.
pub(crate) const PREDICTIONS: Param =
    Param::tensor("predictions", "Log probabilities: (C,), (N, C), or (N, C, d1, …, dk) for N samples and C classes.");
/// The indices of the correct classes.
pub(crate) const TARGETS: Param =
    Param::tensor("targets", "Class indices, integers: the shape of `predictions` without C.");
/// The weight of each class.
pub(crate) const WEIGHTS: Param = Param::optional("weights", ParamKind::Tensor, "The weight of each class: (C,).");
/// The reduction of the losses.
pub(crate) const REDUCTION: Param = Param::choice(
    "reduction",
    &["none", "sum", "mean"],
    "mean",
    "The reduction of the elements' losses: none, the sum, or the average by weight.",
);
/// The target that does not count.
pub(crate) const IGNORE_INDEX: Param = Param::int("ignore_index", -100, "A target that counts for nothing.");

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "nn.cross_entropy_with_logits",
        "Cross entropy of logits against target probabilities: minus the sum of their products, over the batch \
         size where there is a batch. Gives a scalar tensor.",
        cross_entropy,
    )
    .taking(&[
        Param::tensor("predictions", "The logits."),
        Param::tensor("labels", "The target probabilities, of the same shape."),
    ])
    .lowered_by(compute::cross_entropy)
    .costing(Cost::PerInput(2)),
    Schema::new(
        "nn.nll_loss",
        "Negative log likelihood of the target classes. Gives a scalar tensor, or one loss per target with \
         `reduction=\"none\"`.",
        nll_loss,
    )
    .taking(&[PREDICTIONS, TARGETS, WEIGHTS, REDUCTION, IGNORE_INDEX])
    .lowered_by(compute::nll_loss),
];

fn scalar() -> Shape {
    Shape::known([])
}

fn cross_entropy(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (predictions, labels) = (call.tensor("predictions")?, call.tensor("labels")?);
    let element = joined_element(call, "predictions", "labels")?;
    let vdevice = joined_vdevice(call, "predictions", "labels")?;
    if let Some(ndim) = predictions.shape.ndim() {
        require_ndim(call, "labels", ndim, "as `predictions` has")?;
    }
    if let (Some(dims), Some(_)) = (predictions.shape.dims(), labels.shape.dims()) {
        for axis in 0..dims.len() {
            let of = |param| AxisOf::new(param, axis);
            require_equal(call, of("predictions"), of("labels"), &format!("the extent of axis {axis}"))?;
        }
    }
    Ok(tensor_type(scalar(), element, vdevice))
}

fn nll_loss(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (predictions, targets) = (call.tensor("predictions")?, call.tensor("targets")?);
    let weights = call.optional_tensor("weights")?;
    let (element, vdevice) = match weights {
        Some(_) => (joined_element(call, "predictions", "weights")?, joined_vdevice(call, "predictions", "weights")?),
        None => (Element::of(predictions), predictions.vdevice),
    };
    if let Some(dtype) = targets.dtype.filter(|dtype| !dtype.is_int()) {
        let message = format_args!("`targets` are class indices and must be integers, they have dtype {dtype}");
        return Err(call
            .operand_error(Code::IndexDtype, "targets", message)
            .with_help(format!("convert them: `R.astype({}, \"int64\")`", call.written("targets")))
            .into());
    }
    check_ranks(call, predictions, targets)?;
    check_extents(call, predictions, weights.is_some())?;
    let shape = match (call.str("reduction"), &predictions.shape) {
        (Some("none"), Shape::Known(dims)) => {
            // (N, C, d1, …) without C; for (C,) the result is a scalar.
            let kept = dims.iter().enumerate().filter(|(axis, _)| if dims.len() == 1 { false } else { *axis != 1 });
            Shape::known(kept.map(|(_, dim)| dim.clone()).collect::<Vec<_>>())
        }
        (Some("none"), shape) => rank_like(shape, shape.ndim().and_then(|ndim| ndim.checked_sub(1))),
        _ => scalar(),
    };
    Ok(tensor_type(shape, element, vdevice))
}

/// Checks that the ranks fit: (C,) with (), or (N, C, d1, …, dk) with (N, d1, …, dk).
fn check_ranks(call: &CallInfo<'_>, predictions: &TensorInfo, targets: &TensorInfo) -> Result<(), Problem> {
    let Some(ndim) = predictions.shape.ndim() else { return Ok(()) };
    if ndim == 0 {
        let message = format_args!("`predictions` must have at least 1 dimension, (C,), it has none");
        return Err(call.error(Code::TensorNdimMismatch, ParamPlace::Param("predictions"), message).into());
    }
    match targets.shape.ndim() {
        Some(given) if given.checked_add(1) != Some(ndim) => {
            let message = format_args!(
                "`targets` must have {} dimensions, one less than `predictions`, they have {given}",
                ndim - 1
            );
            Err(clash(call, Code::TensorNdimMismatch, "targets", "predictions", message).into())
        }
        _ => Ok(()),
    }
}

fn check_extents(call: &CallInfo<'_>, predictions: &TensorInfo, weighted: bool) -> Result<(), Problem> {
    if weighted {
        require_ndim(call, "weights", 1, "(C,)")?;
    }
    let Some(ndim) = predictions.shape.dims().map(<[_]>::len) else { return Ok(()) };
    let class_axis = usize::from(ndim > 1);
    for (target_axis, axis) in (0..ndim).filter(|axis| *axis != class_axis).enumerate() {
        let subject = if axis == 0 { "the batch size".to_owned() } else { format!("extent d{}", axis - 1) };
        require_equal(call, AxisOf::new("predictions", axis), AxisOf::new("targets", target_axis), &subject)?;
    }
    match weighted {
        true => {
            let classes = AxisOf::new("predictions", class_axis);
            require_equal(call, classes, AxisOf::new("weights", 0), "the number of classes")
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn nll(predictions: &str, targets: &str, weights: &str, reduction: &str) -> Result<StructInfo, Option<Code>> {
        let args = [
            ("predictions", tensor(predictions)),
            ("targets", tensor(targets)),
            ("weights", tensor(weights)),
            ("reduction", text(reduction)),
        ];
        infer("nn.nll_loss", &args)
    }

    #[test]
    fn losses_are_kept_or_reduced() {
        assert_eq!(nll("3 5 10 10:float32", "3 10 10:int64", "5:float32", "mean"), Ok(ty(":float32")));
        assert_eq!(nll("n c d:float32", "n d:int64", "c:float32", "none"), Ok(ty("n d:float32")));
        assert_eq!(nll("5:float32", ":int8", "5:?", "none"), Ok(ty(":?")));
        assert_eq!(nll("?4:float32", "3 10 10:?", "*:float32", "none"), Ok(ty("?3:float32")));
        let unweighted = [("predictions", tensor("n c:float16")), ("targets", tensor("n:uint8"))];
        assert_eq!(infer("nn.nll_loss", &unweighted), Ok(ty(":float16")));
    }

    #[test]
    fn operands_must_fit() {
        let (p, t, w) = ("3 5 10 10:float32", "3 10 10:int64", "5:float32");
        assert_eq!(nll(p, "3 10 10:float32", w, "mean"), Err(Some(Code::IndexDtype)));
        assert_eq!(nll(p, "3 10:int64", w, "mean"), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(nll(p, "3 10 11:int64", w, "mean"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(nll(p, t, "4:float32", "mean"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(nll(p, t, "5 1:float32", "mean"), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(nll(p, t, "5:float16", "mean"), Err(Some(Code::DtypeMismatch)));
        assert_eq!(nll("5:float32", "1:int64", w, "mean"), Err(Some(Code::TensorNdimMismatch)));
    }

    #[test]
    fn cross_entropy_is_a_scalar() {
        let check = |a: &str, b: &str| {
            infer("nn.cross_entropy_with_logits", &[("predictions", tensor(a)), ("labels", tensor(b))])
        };
        assert_eq!(check("2 3:float32@llvm:0:global", "?2:float32"), Ok(ty(":float32@llvm:0:global")));
        assert_eq!(check("2 3:float32", "2 n:?"), Ok(ty(":?")));
        assert_eq!(check("2 3:float32", "2 4:float32"), Err(Some(Code::ShapeMismatch)));
        assert_eq!(check("2 3:float32", "2 3 1:float32"), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(check("2:float32@a", "2:float32@b"), Err(Some(Code::VDeviceMismatch)));
    }
}
