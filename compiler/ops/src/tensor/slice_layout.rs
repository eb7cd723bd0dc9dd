//! How tensors lie that are sliced ([`super::slice`]; TVM src/relax/op/tensor/index.cc).

use super::slice::{Entries, constant_axes, entries};
use crate::axes::normalize_axes;
use crate::relayout::{Laid, LaidOut, LayoutCall, places};
use rx_base::{DType, Dim};
use rx_ir::{Argument, Expr, ExprKind, PrimInfo, PrimValue, StructInfo};

/// TVM's `InferLayoutStridedSlice`: `x` stays as it lies, in whole axes, and is sliced where its axes are.
pub(super) fn strided(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let layout = call.whole("x")?;
    let Ok(Entries::Values(given)) = entries(call.call, "axes") else { return None };
    let given = constant_axes(call.call, &given).ok()?;
    let axes = places(&layout, &normalize_axes(call.call, "axes", layout.ndim(), &given).ok()?)?;
    let fields = axes.into_iter().map(|axis| axis_value(i64::try_from(axis).unwrap_or(i64::MAX))).collect();
    let mut out = LaidOut::result(Laid::Tensor(layout.clone())).of("x", &layout);
    out.arguments.push(("axes", Argument::Operand(Expr::tuple(fields))));
    Some(out)
}

/// An int64 scalar.
fn axis_value(axis: i64) -> Expr {
    let ty = StructInfo::Prim(PrimInfo { dtype: Some(DType::INT64), value: Some(Dim::constant(axis)) });
    Expr::new(ExprKind::Prim(PrimValue::Int(Dim::constant(axis))), ty)
}

/// TVM's `InferLayoutDynStridedSlice`: bounds that are computed stand in the order of the type.
pub(super) fn dynamic(call: &LayoutCall<'_>) -> Option<LaidOut> {
    Some(LaidOut::result(Laid::initial(call.result)))
}
