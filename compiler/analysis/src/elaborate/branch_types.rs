//! Branch types: a variable that an `if` binds may have a more precise type for each branch; these are checked
//! against the declared return type.

use super::checker::Checker;
use crate::entry::{Entry, FUNCTION_CONTEXT, Place};
use crate::reconcile::{ClashKind, reconcile};
use rx_base::name::name;
use rx_base::{Code, Diagnostic, Span};
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, StructInfo};
use std::sync::Arc;

impl Checker<'_> {
    /// Returns the types that the value of a variable may have, where these are more precise than its type `ty`.
    pub(super) fn branch_types_of(&mut self, value: &IrExpr, ty: &StructInfo) -> Option<Arc<[StructInfo]>> {
        let known = match value.kind {
            IrKind::Var(variable) => match self.lookup(variable) {
                Some(Entry::Value { branch_types, .. }) => branch_types,
                _ => None,
            },
            _ => None,
        };
        known.or_else(|| {
            (value.ty != *ty && !value.ty.is_error() && !ty.is_error()).then(|| Arc::from([value.ty.clone()]))
        })
    }

    /// Returns the span of the first branch whose type contradicts the declared return type.
    pub(super) fn unlike_return(&mut self, branch_types: &[(StructInfo, Span)]) -> Option<Span> {
        let declared = self.function_context()?.ret.clone()?;
        let (_, span) = branch_types
            .iter()
            .find(|(branch_type, _)| reconcile(&declared, branch_type, &self.bounds).clash.is_some())?;
        Some(*span)
    }

    /// Checks the branch types of a returned variable against the declared return type.
    pub(super) fn check_ways(&mut self, declared: &StructInfo, value: &IrExpr) {
        let IrKind::Var(variable) = value.kind else { return };
        let Some(Entry::Value { branch_types: Some(branch_types), .. }) = self.lookup(variable) else { return };
        let clash = |branch_type: &StructInfo| reconcile(declared, branch_type, &self.bounds).clash;
        let Some((branch_type, clash)) =
            branch_types.iter().find_map(|branch_type| Some((branch_type, clash(branch_type)?)))
        else {
            return;
        };
        let code = if clash.kind == ClashKind::Dtype { Code::DtypeMismatch } else { Code::ReturnShapeMismatch };
        let message = format!(
            "the function is declared to return {declared}, but here {}, not {}",
            clash.actual_at_path(),
            clash.wanted
        );
        let place = self.definition_of(variable);
        let mut diagnostic = Diagnostic::new(code, place, message)
            .with_primary_label(format!("`{variable}` may be {branch_type}"))
            .with_label(Place::Here(value.span), "returned here");
        if self.nesting == 0 {
            let header = self.definition_of(name(FUNCTION_CONTEXT));
            diagnostic = diagnostic.with_label(header, format!("declared {declared}"));
        }
        self.report(diagnostic.with_help("every branch must give a value of the declared type"));
    }
}
