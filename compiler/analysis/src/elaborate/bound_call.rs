//! A call of an operator with an argument, or its default, for each parameter.

use crate::entry::Place;
use crate::readings::{self, Reading};
use rx_base::{Diagnostic, Dim, Span};
use rx_ir::{Argument, Attr, Expr as IrExpr, StructInfo};
use rx_ops::{ParamPlace, Schema};

/// A call's arguments in the order of the schema's parameters.
#[derive(Clone, Debug)]
pub(super) struct BoundCall {
    pub(super) schema: &'static Schema,
    pub(super) slots: Vec<Argument>,
    /// Where each argument is written; `None` when it was left out.
    pub(super) spans: Vec<Option<Span>>,
    pub(super) call_span: Span,
    pub(super) callee_span: Span,
    /// An argument was missing, unknown or too many; reported.
    pub(super) broken: bool,
}

impl BoundCall {
    /// Whether an operand has two readings.
    pub(super) fn has_readings(&self) -> bool {
        self.slots.iter().any(readings::in_argument)
    }

    /// The call with one reading of its operands.
    pub(super) fn read(&self, reading: Reading) -> BoundCall {
        BoundCall { slots: readings::of_arguments(&self.slots, reading), ..self.clone() }
    }

    /// The index of a parameter.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.schema.params.iter().position(|param| param.name == name)
    }

    /// The operand passed for a parameter.
    pub(super) fn operand(&self, name: &str) -> Option<&IrExpr> {
        match self.slots.get(self.position(name)?)? {
            Argument::Operand(expr) => Some(expr),
            _ => None,
        }
    }

    /// The types passed for a parameter.
    pub(super) fn types(&self, name: &str) -> &[StructInfo] {
        match self.position(name).and_then(|at| self.slots.get(at)) {
            Some(Argument::Types(types)) => types,
            _ => &[],
        }
    }

    /// Replaces the types passed for a parameter.
    pub(super) fn set_types(&mut self, name: &str, types: Vec<StructInfo>) {
        if let Some(slot) = self.position(name).and_then(|at| self.slots.get_mut(at)) {
            *slot = Argument::Types(types);
        }
    }

    /// The attribute passed for a parameter.
    pub(super) fn attr(&self, name: &str) -> Option<&Attr> {
        match self.slots.get(self.position(name)?)? {
            Argument::Attr(attr) => Some(attr),
            _ => None,
        }
    }

    /// Where a parameter's argument is written; the whole call when it was left out.
    pub(super) fn span(&self, name: &str) -> Span {
        self.position(name).and_then(|at| self.spans.get(at).copied().flatten()).unwrap_or(self.call_span)
    }
}

/// A call that was reported, before its fixes were looked for.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) bound: BoundCall,
    pub(super) report: Diagnostic<ParamPlace>,
    pub(super) placed: Diagnostic<Place>,
}

/// An operator's name as messages begin with it: `conv2d`.
pub(super) fn short(schema: &Schema) -> &'static str {
    schema.name.rsplit('.').next().unwrap_or(schema.name)
}

/// Whether a dim attribute is a constant, for callers that need one.
pub(super) fn constant(attr: &Attr) -> Option<i64> {
    match attr {
        Attr::Int(dim) => Dim::as_constant(dim),
        _ => None,
    }
}

/// The current spelling of a call's keyword: `out_sinfo` is `out_ty`. Current spellings are as they are.
pub(crate) fn current_keyword(written: &str) -> &str {
    rx_syntax::dialect::Dialect::Classic.canonical_keyword(written)
}
