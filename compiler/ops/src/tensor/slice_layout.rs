//! *Layout inference of slices* ([`super::slice`]).
//!
//! ```text
//! strided_slice(x, axes=[1], …), x in "ACDB"  →  strided_slice(x, axes=[3], …), result in "ACDB"
//! ```
//!
//! Reference: TVM src/relax/op/tensor/index.cc.

use super::slice::{Entries, constant_axes, entries};
use crate::axes::normalize_axes;
use crate::infer_layout::{Laid, LaidOut, LayoutCall, places};
use rx_base::{DType, Dim};
use rx_ir::{Argument, Expr, ExprKind, PrimInfo, PrimValue, StructInfo};

/// Layout rule of `strided_slice` (TVM's `InferLayoutStridedSlice`): `x` keeps its layout if that splits no axes, and
/// the sliced axes are adapted.
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

/// Creates an int64 scalar.
fn axis_value(axis: i64) -> Expr {
    let ty = StructInfo::Prim(PrimInfo { dtype: Some(DType::INT64), value: Some(Dim::constant(axis)) });
    Expr::new(ExprKind::Prim(PrimValue::Int(Dim::constant(axis))), ty)
}

/// Layout rule of `dynamic_strided_slice` (TVM's `InferLayoutDynStridedSlice`). All keep the layouts of their types,
/// because the computed bounds are in the order of the type's axes.
pub(super) fn dynamic(call: &LayoutCall<'_>) -> Option<LaidOut> {
    Some(LaidOut::result(Laid::initial(call.result)))
}
