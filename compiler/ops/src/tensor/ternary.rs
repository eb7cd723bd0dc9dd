//! Elementwise operators of three tensors: schemas and struct-info rules.

use super::compute::elementwise as compute;
use super::operands::{common_vdevice, tuple_text};
use super::values::elementwise;
use crate::broadcast::{RULE, broadcast_shapes, larger_rank};
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::infer_layout::{Laid, LaidOut, LayoutCall};
use crate::layout::Layout;
use crate::operands::{
    AxisOf, Element, clash, joined_element, rank_like, require_equal, require_proved_equal, tensor_type,
};
use crate::schema::{Param, Schema, Traits};
use rx_base::Code;
use rx_ir::{Shape, StructInfo, TensorInfo};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "ewise_fma",
        "Fused multiply-add: `x1 * x2 + x3`, element by element. There is no broadcasting.",
        ewise_fma,
    )
    .taking(&[
        Param::tensor("x1", "The left factor."),
        Param::tensor("x2", "The right factor, of the shape and dtype of `x1`."),
        Param::tensor("x3", "The summand, of the shape and dtype of `x1`."),
    ])
    .lowered_by(compute::ewise_fma)
    .costing(Cost::PerOutput(2))
    .with_traits(Traits::OPAQUE.laid_out(ewise_fma_layouts)),
    Schema::new(
        "where",
        "Elements of `x1` where the condition holds, of `x2` elsewhere. All three are broadcast together.",
        infer_where,
    )
    .taking(&[
        Param::tensor("condition", "Which operand to take, of dtype `bool`."),
        Param::tensor("x1", "Taken where the condition holds."),
        Param::tensor("x2", "Taken elsewhere."),
    ])
    .lowered_by(compute::choose)
    .costing(Cost::PerOutput(1))
    .with_traits(Traits::OPAQUE.computing(elementwise::choose))
    .declared_in("TVM src/relax/op/tensor/search.cc"),
];

/// Layout rule of `ewise_fma` (TVM's `InferLayoutEwiseFMA`): all operands get the layout of `x1`, or that of `x2` and
/// `x3` if these two are equal. Axes are not split if one of the operands cannot have the split layout.
fn ewise_fma_layouts(call: &LayoutCall<'_>) -> Option<LaidOut> {
    const NAMES: [&str; 3] = ["x1", "x2", "x3"];
    let layouts = [call.layout("x1")?, call.layout("x2")?, call.layout("x3")?];
    let layout = if layouts[1] == layouts[2] { layouts[1] } else { layouts[0] };
    let layout = match NAMES.iter().all(|name| call.fits(name, layout)) {
        true => layout.clone(),
        false => Layout::initial(call.ndim("x1")?)?,
    };
    let out = LaidOut::result(Laid::Tensor(layout.clone()));
    Some(NAMES.into_iter().fold(out, |out, name| out.of(name, &layout)))
}

/// Infers the type of `ewise_fma` (TVM's `InferTypeEwiseFMA`).
fn ewise_fma(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    const NAMES: [&str; 3] = ["x1", "x2", "x3"];
    let tensors = [call.tensor("x1")?, call.tensor("x2")?, call.tensor("x3")?];
    // TVM compares dims only if all three shapes are written out, and then requires a proof of equality.
    let written = tensors.iter().all(|tensor| tensor.shape.written_dims().is_some());
    let require = if written { require_proved_equal } else { require_equal };
    for (first, second) in [(0, 1), (0, 2), (1, 2)] {
        same_rank_and_dtype(call, (NAMES[first], tensors[first]), (NAMES[second], tensors[second]))?;
        let axes = tensors[first].shape.dims().map_or(0, <[_]>::len);
        (0..axes).try_for_each(|axis| {
            let (a, b) = (AxisOf::new(NAMES[first], axis), AxisOf::new(NAMES[second], axis));
            require(call, a, b, &format!("axis {axis}"))
        })?;
    }
    let error = tensors.iter().any(|tensor| tensor.dtype_error);
    let known = !error && tensors.iter().all(|tensor| tensor.dtype.is_some());
    let element = Element { dtype: if known { tensors[0].dtype } else { None }, error };
    let [a, b, c] = tensors.map(|tensor| &tensor.shape);
    let shape = match (a, b, c) {
        (Shape::Error, ..) | (_, Shape::Error, _) | (.., Shape::Error) => Shape::Error,
        (Shape::Known(_), Shape::Known(_), Shape::Known(_)) => a.clone(),
        (Shape::Var { .. }, ..) if a == b && b == c => a.clone(),
        _ => Shape::of_rank(tensors.iter().find_map(|tensor| tensor.shape.ndim())),
    };
    Ok(tensor_type(shape, element, common_vdevice(tensors)))
}

fn same_rank_and_dtype(
    call: &CallInfo<'_>,
    (first, a): (&'static str, &TensorInfo),
    (second, b): (&'static str, &TensorInfo),
) -> Result<(), Problem> {
    if let (Some(x), Some(y)) = (a.shape.ndim(), b.shape.ndim())
        && x != y
    {
        let message = format_args!("`{first}` has {x} dimensions, `{second}` has {y}; all three must have the same");
        return Err(clash(call, Code::TensorNdimMismatch, second, first, message).into());
    }
    if let (Some(x), Some(y)) = (a.dtype, b.dtype)
        && x != y
    {
        let message = format_args!("`{first}` has dtype {x}, `{second}` has dtype {y}");
        let report = clash(call, Code::DtypeMismatch, second, first, message);
        return Err(report.with_help(format!("convert one of them: `R.astype(…, \"{x}\")`")).into());
    }
    Ok(())
}

/// Infers the type of `where` (TVM's `InferTypeWhere`).
fn infer_where(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (condition, x1, x2) = (call.tensor("condition")?, call.tensor("x1")?, call.tensor("x2")?);
    if let Some(dtype) = condition.dtype.filter(|dtype| !dtype.is_bool()) {
        let place = ParamPlace::Param("condition");
        let message = format_args!("`condition` must be bool, it is {dtype}");
        let report = call.error(Code::DtypeMismatch, place, message);
        return Err(report.with_help("compare it, or convert it: `R.astype(…, \"bool\")`").into());
    }
    let element = joined_element(call, "x1", "x2")?;
    let values = broadcast_shapes(call, &x1.shape, &x2.shape).map_err(|conflict| conflict.report(call, "x1", "x2"))?;
    let shape = broadcast_shapes(call, &condition.shape, &values).map_err(|conflict| {
        let ((axis, dim), (value_axis, value_dim)) = (&conflict.left, &conflict.right);
        let values = values.dims().map(tuple_text).unwrap_or_default();
        let message = format_args!(
            "shapes do not broadcast: axis {axis} of `condition` is {dim}, \
             axis {value_axis} of `x1` and `x2` together is {value_dim}"
        );
        call.operand_error(Code::BroadcastMismatch, "condition", message)
            .with_label(ParamPlace::Param("x1"), call.ty("x1").to_string())
            .with_label(ParamPlace::Param("x2"), call.ty("x2").to_string())
            .with_note(format!("`x1` and `x2` broadcast to {values}; {RULE}"))
    })?;
    // As in TVM, the shape is the broadcast dims, or the variable that is the shape of all three operands, or a rank
    // that follows from all three.
    let shape = match (&condition.shape, &x1.shape, &x2.shape) {
        (Shape::Known(_), Shape::Known(_), Shape::Known(_)) => shape,
        (a @ Shape::Var { .. }, b, c) if a == b && b == c => a.clone(),
        (a, b, c) => rank_like(&shape, larger_rank(a.ndim(), larger_rank(b.ndim(), c.ndim()))),
    };
    Ok(tensor_type(shape, element, common_vdevice([condition, x1, x2])))
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn of_three(op: &str, names: [&str; 3], [a, b, c]: [&str; 3]) -> Result<StructInfo, Option<Code>> {
        infer(op, &[(names[0], tensor(a)), (names[1], tensor(b)), (names[2], tensor(c))])
    }

    #[test]
    fn a_fused_multiply_add_needs_equal_types() {
        let fma = |operands| of_three("ewise_fma", ["x1", "x2", "x3"], operands);
        assert_eq!(fma(["m n:float32", "m n:float32", "m n:float32"]), Ok(ty("m n:float32")));
        assert_eq!(fma(["2 3:float32", "?2:float32", "*:float32"]), Ok(ty("?2:float32")));
        assert_eq!(fma(["$s:int8", "$t/2:int8", "$t/2:int8"]), Ok(ty("?2:int8")));
        assert_eq!(fma(["2:?", "2:int8", "2:int8"]), Ok(ty("2:?")));
        assert_eq!(fma(["2:int8", "2:int8", "2:int32"]), Err(Some(Code::DtypeMismatch)));
        assert_eq!(fma(["2:int8", "2:int8", "?4:int8"]), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(fma(["2:int8", "3:int8", "2:int8"]), Err(Some(Code::ShapeMismatch)));
        assert_eq!(fma(["n:int8", "m:int8", "n:int8"]), Err(Some(Code::ShapeMismatch)));
        assert_eq!(fma(["n:int8", "m:int8", "?1:int8"]), Ok(ty("?1:int8")));
    }

    #[test]
    fn where_broadcasts_all_three() {
        let choose = |operands| of_three("where", ["condition", "x1", "x2"], operands);
        let cases = [
            (["a b 1 d 1:bool", "b 1 d e:float32", "c d 1:float32"], "a b c d e:float32"),
            (["a b 1 d 1:bool", "b 1 f e:float32", "c d 1:?"], "?5:?"),
            (["$s/5:bool", "$t/4:float32", "?3:float32"], "?5:float32"),
            (["$s/5:bool", "$t/4:float32", "*:float32"], "*:float32"),
        ];
        for (operands, wanted) in cases {
            assert_eq!(choose(operands), Ok(ty(wanted)), "{operands:?}");
        }
        assert_eq!(choose(["2:int8", "2:int8", "2:int8"]), Err(Some(Code::DtypeMismatch)));
        assert_eq!(choose(["4 1:bool", "3 2:int8", "2:int8"]), Err(Some(Code::BroadcastMismatch)));
        assert_eq!(choose(["4:bool", "3:int8", "1:int8"]), Err(Some(Code::BroadcastMismatch)));
    }
}
