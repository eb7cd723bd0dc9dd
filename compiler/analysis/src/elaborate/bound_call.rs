//! A call of an operator, with an argument or a default for each parameter.

use crate::entry::Place;
use crate::readings::{self, Reading};
use rx_base::{Diagnostic, Dim, Span};
use rx_ir::{Argument, Attr, Expr as IrExpr, StructInfo};
use rx_ops::{ParamPlace, Schema};

/// The arguments of a call, in the order of the schema's parameters.
#[derive(Clone, Debug)]
pub(super) struct BoundCall {
    pub(super) schema: &'static Schema,
    pub(super) slots: Vec<Argument>,
    /// The span of each argument; `None` where it was left out.
    pub(super) spans: Vec<Option<Span>>,
    pub(super) call_span: Span,
    pub(super) callee_span: Span,
    /// Whether an argument was missing, unknown or surplus; this has been reported.
    pub(super) broken: bool,
}

impl BoundCall {
    /// Whether any operand has two readings, because its annotation contradicts its value.
    pub(super) fn has_readings(&self) -> bool {
        self.slots.iter().any(readings::in_argument)
    }

    /// Returns the call with each operand's type replaced by one of its readings.
    pub(super) fn read(&self, reading: Reading) -> BoundCall {
        BoundCall { slots: readings::of_arguments(&self.slots, reading), ..self.clone() }
    }

    /// Returns the index of a parameter.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.schema.params.iter().position(|param| param.name == name)
    }

    /// Returns the operand passed for a parameter.
    pub(super) fn operand(&self, name: &str) -> Option<&IrExpr> {
        match self.slots.get(self.position(name)?)? {
            Argument::Operand(expr) => Some(expr),
            _ => None,
        }
    }

    /// Returns the types passed for a parameter.
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

    /// Returns the attribute passed for a parameter.
    pub(super) fn attr(&self, name: &str) -> Option<&Attr> {
        match self.slots.get(self.position(name)?)? {
            Argument::Attr(attr) => Some(attr),
            _ => None,
        }
    }

    /// Returns the span of a parameter's argument, or of the whole call if it was left out.
    pub(super) fn span(&self, name: &str) -> Span {
        self.position(name).and_then(|at| self.spans.get(at).copied().flatten()).unwrap_or(self.call_span)
    }
}

/// A call with a reported mistake, before fixes are searched for it.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) bound: BoundCall,
    pub(super) report: Diagnostic<ParamPlace>,
    pub(super) placed: Diagnostic<Place>,
}

/// Returns an operator's short name, which begins its messages: `conv2d` for `nn.conv2d`.
pub(super) fn short(schema: &Schema) -> &'static str {
    schema.name.rsplit('.').next().unwrap_or(schema.name)
}

/// Describes an argument of a function: ``argument 0 (`x`)``, without the name if it is no variable.
pub(super) fn numbered(index: usize, argument: &IrExpr) -> String {
    match argument.variable_text() {
        Some(variable) => format!("argument {index} (`{variable}`)"),
        None => format!("argument {index}"),
    }
}

/// Returns the value of an integer attribute, if it is a constant.
pub(super) fn constant(attr: &Attr) -> Option<i64> {
    match attr {
        Attr::Int(dim) => Dim::as_constant(dim),
        _ => None,
    }
}

/// Returns the position before the closing parenthesis of the call at `call`, and the separator that an argument
/// inserted there needs.
pub(crate) fn before_end(text: &str, call: Span) -> Option<(Span, &'static str)> {
    let inside = text.get(call.range())?.strip_suffix(')')?.trim_end();
    let comma = match inside.chars().next_back()? {
        '(' => "",
        ',' => " ",
        _ => ", ",
    };
    let at = call.start + u32::try_from(inside.len()).ok()?;
    Some((Span::empty(at), comma))
}

/// Returns the current spelling of a call's keyword: `out_ty` for `out_sinfo`; current spellings are unchanged.
pub(crate) fn current_keyword(written: &str) -> &str {
    rx_syntax::dialect::Dialect::Classic.canonical_keyword(written)
}
