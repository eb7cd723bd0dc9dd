//! The two readings of a value whose annotation contradicts its inferred type.
//!
//! The contradiction is reported once. A use of the value is correct if it is correct for the declared or for the
//! inferred type; if it is wrong for both, that is a second mistake. So an operator's type rule runs once for each
//! reading, and its result has two readings if the two results differ.
//!
//! ```text
//! x: R.Tensor((3, 4)) = R.zeros((3, 5), "float32")    # reported: axis 1 is 5, not 4
//! y: R.Tensor((3, 4)) = R.exp(x)                      # correct by the declared reading
//! ```

use rx_ir::{Argument, DTensorInfo, Expr, ExprKind, Readings, StructInfo, TensorInfo};
use std::sync::Arc;

/// One of the two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The type in the annotation.
    Declared,
    /// The inferred type of the value.
    Inferred,
}

/// Whether a tensor in the type has two readings.
pub(crate) fn in_type(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tensor(tensor) => tensor.readings.is_some(),
        StructInfo::DTensor(tensor) => tensor.tensor.readings.is_some(),
        StructInfo::Tuple(fields) => fields.iter().any(in_type),
        _ => false,
    }
}

/// Whether a value passed for a parameter has two readings.
pub(crate) fn in_argument(argument: &Argument) -> bool {
    match argument {
        Argument::Operand(expr) => in_type(&expr.ty),
        Argument::Operands(exprs) => exprs.iter().any(|expr| in_type(&expr.ty)),
        _ => false,
    }
}

/// Returns one reading of a tensor.
pub(crate) fn tensor(tensor: &TensorInfo, reading: Reading) -> &TensorInfo {
    match (tensor.readings.as_deref(), reading) {
        (Some(Readings { declared, .. }), Reading::Declared) => declared,
        (Some(Readings { inferred, .. }), Reading::Inferred) => inferred,
        (None, _) => tensor,
    }
}

/// Returns one reading of a type.
pub(crate) fn of_type(ty: &StructInfo, reading: Reading) -> StructInfo {
    if !in_type(ty) {
        return ty.clone();
    }
    match ty {
        StructInfo::Tensor(both) => tensor(both, reading).clone().into(),
        StructInfo::DTensor(both) => {
            let tensor = tensor(&both.tensor, reading).clone();
            StructInfo::DTensor(Arc::new(DTensorInfo { tensor, ..DTensorInfo::clone(both) }))
        }
        StructInfo::Tuple(fields) => {
            StructInfo::tuple(fields.iter().map(|field| of_type(field, reading)).collect::<Vec<_>>())
        }
        other => other.clone(),
    }
}

/// Returns one reading of a call's arguments.
pub(crate) fn of_arguments(arguments: &[Argument], reading: Reading) -> Vec<Argument> {
    let of_argument = |argument: &Argument| match argument {
        Argument::Operand(expr) => Argument::Operand(of_expr(expr, reading)),
        Argument::Operands(exprs) => Argument::Operands(exprs.iter().map(|expr| of_expr(expr, reading)).collect()),
        other => other.clone(),
    };
    arguments.iter().map(of_argument).collect()
}

/// Returns one reading of a value; the fields of a tuple expression are replaced by the same reading.
pub(crate) fn of_expr(expr: &Expr, reading: Reading) -> Expr {
    if !in_type(&expr.ty) {
        return expr.clone();
    }
    let kind = match &expr.kind {
        ExprKind::Tuple(fields) => ExprKind::Tuple(fields.iter().map(|field| of_expr(field, reading)).collect()),
        other => other.clone(),
    };
    Expr { kind, ty: of_type(&expr.ty, reading), span: expr.span }
}
