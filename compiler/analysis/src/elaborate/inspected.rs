//! Properties of tensors at run time, in the notation of TVM 0.17 to 0.25: `x.ndim`, `x.shape[0]` and `x.dtype.bits`
//! are `R.inspect.tensor_ndim(x)`, `R.inspect.tensor_shape_i(x, 0)` and `R.inspect.tensor_dtype_bits(x)`.

use super::elaborator::Elaborator;
use super::ir::int;
use crate::entry::Entry;
use rx_base::Span;
use rx_ir::{Expr as IrExpr, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Expr, ExprKind};

/// The attributes of a tensor that are values, and `shape`, which is `R.shape_of(x)`.
pub(super) const OF_TENSOR: [&str; 4] = ["shape", "ndim", "byte_offset", "elem_offset"];

/// Returns the operator that an attribute of a tensor denotes.
pub(super) fn of_tensor(attribute: &str) -> Option<&'static str> {
    Some(match attribute {
        "ndim" => "inspect.tensor_ndim",
        "byte_offset" => "inspect.tensor_byte_offset",
        "elem_offset" => "inspect.tensor_elem_offset",
        _ => return None,
    })
}

/// Returns the operator that an attribute of a tensor's dtype denotes.
fn of_dtype(attribute: &str) -> Option<&'static str> {
    Some(match attribute {
        "bits" => "inspect.tensor_dtype_bits",
        "lanes" => "inspect.tensor_dtype_lanes",
        "type_code" => "inspect.tensor_dtype_code",
        _ => return None,
    })
}

/// Returns the operator that an indexed attribute of a tensor denotes.
fn of_axis(attribute: &str) -> Option<&'static str> {
    Some(match attribute {
        "shape" => "inspect.tensor_shape_i",
        "strides" => "inspect.tensor_stride_i",
        _ => return None,
    })
}

impl Elaborator<'_> {
    /// Elaborates `x.dtype.bits`, where `x` is a tensor variable.
    pub(super) fn inspected_dtype(
        &mut self,
        cursor: Cursor<'_>,
        value: &Expr,
        attribute: &str,
        span: Span,
    ) -> Option<IrExpr> {
        let operator = of_dtype(attribute)?;
        let tensor = self.tensor_with(cursor, value, |inner| inner == "dtype")?;
        Some(self.check.operator_on(operator, vec![tensor], span))
    }

    /// Elaborates `x.shape[0]` and `x.strides[0]`, where `x` is a tensor variable.
    pub(super) fn inspected_axis(
        &mut self,
        cursor: Cursor<'_>,
        value: &Expr,
        index: &Expr,
        span: Span,
    ) -> Option<IrExpr> {
        let ExprKind::Attribute { value: inner, name } = &value.kind else { return None };
        let attribute = cursor.text(*name);
        if attribute == "shape"
            && let Some(tensor) = self.tensor_with(cursor, inner, |it| matches!(it, "ty" | "struct_info"))
        {
            return self.typed_dim(cursor, &tensor, index, span);
        }
        let operator = of_axis(attribute)?;
        let tensor = self.tensor_with(cursor, value, |_| true)?;
        let axis = self.expr(cursor, index);
        Some(self.check.operator_on(operator, vec![tensor, axis], span))
    }

    /// Elaborates `x.ty.shape[0]`: a dim of a tensor's type.
    fn typed_dim(&mut self, cursor: Cursor<'_>, tensor: &IrExpr, index: &Expr, span: Span) -> Option<IrExpr> {
        let StructInfo::Tensor(info) = &tensor.ty else { return None };
        let dims = info.shape.dims()?;
        let at = self.dim(cursor, index).as_constant()?;
        let from_end = if at < 0 { i64::try_from(dims.len()).ok()? } else { 0 };
        let dim = dims.get(usize::try_from(at.checked_add(from_end)?).ok()?)?;
        Some(int(dim.clone(), span))
    }

    /// Returns the tensor `x` of `x.attribute`, where `x` is a tensor variable and the attribute is wanted.
    fn tensor_with(&mut self, cursor: Cursor<'_>, value: &Expr, wanted: impl Fn(&str) -> bool) -> Option<IrExpr> {
        let ExprKind::Attribute { value: inner, name } = &value.kind else { return None };
        if !wanted(cursor.text(*name)) || !matches!(inner.kind, ExprKind::Name) {
            return None;
        }
        match self.check.lookup(cursor.name(inner.tokens.start)) {
            Some(Entry::Value { ty: StructInfo::Tensor(_), .. }) => Some(self.expr(cursor, inner)),
            _ => None,
        }
    }
}
