//! Constructors of typed expressions.

use rx_base::{DType, Span};
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, PrimInfo, PrimValue, Shape, StructInfo};

/// Returns the integer value of a scalar expression, if it is known.
pub(super) fn prim_dim(expr: &IrExpr) -> Option<rx_base::Dim> {
    match (&expr.kind, &expr.ty) {
        (IrKind::Prim(PrimValue::Int(dim)), _) => Some(dim.clone()),
        (IrKind::Var(variable), StructInfo::Prim(info)) if info.dtype.is_none_or(|dtype| dtype.is_int()) => {
            Some(info.value.clone().unwrap_or_else(|| rx_base::Dim::symbol(*variable)))
        }
        _ => None,
    }
}

/// Creates an integer scalar.
pub(super) fn int(value: rx_base::Dim, span: Span) -> IrExpr {
    if value.is_error() {
        return error(span);
    }
    scalar(PrimValue::Int(value), DType::INT64, span)
}

/// Creates a scalar.
pub(super) fn scalar(value: PrimValue, dtype: DType, span: Span) -> IrExpr {
    let dim = match &value {
        PrimValue::Int(dim) => Some(dim.clone()),
        _ => None,
    };
    let ty = StructInfo::Prim(PrimInfo { dtype: Some(dtype), value: dim });
    IrExpr { kind: IrKind::Prim(value), ty, span }
}

/// Creates a tuple.
pub(super) fn tuple(items: Vec<IrExpr>, span: Span) -> IrExpr {
    let fields: Vec<StructInfo> = items.iter().map(|item| item.ty.clone()).collect();
    IrExpr { kind: IrKind::Tuple(items), ty: StructInfo::tuple(fields), span }
}

/// Creates an error node.
pub(super) fn error(span: Span) -> IrExpr {
    IrExpr { kind: IrKind::Error, ty: StructInfo::Error, span }
}

/// Creates a shape value.
pub(super) fn shape(dims: Vec<rx_base::Dim>, span: Span) -> IrExpr {
    IrExpr { ty: StructInfo::Shape(Shape::known(dims.clone())), kind: IrKind::Shape(dims), span }
}
