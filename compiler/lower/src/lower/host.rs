//! Lowers operators that the host computes on whole values: operators that have no loops, such as `R.print`.

use super::FunctionLowering;
use super::known::Known;
use crate::program::{Operation, Scalar};
use rx_base::name::name;
use rx_ir::{Argument, Attr, Call, StructInfo};
use rx_ops::Schema;
use rx_ops::schema::Purity;

impl FunctionLowering<'_, '_> {
    /// Emits a call of an operator that the host computes. There is one argument for each parameter.
    pub(super) fn host(&mut self, schema: &'static Schema, call: &Call, ty: &StructInfo) -> Known {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let known = match argument {
                Argument::Absent | Argument::Types(_) => Known::Null,
                Argument::Operand(expr) => self.expression(expr),
                Argument::Operands(exprs) => Known::Tuple(exprs.iter().map(|expr| self.expression(expr)).collect()),
                Argument::Attr(attr) => attribute(attr),
            };
            let broken = |known: &Known| *known == Known::Broken;
            if broken(&known) || matches!(&known, Known::Tuple(fields) if fields.iter().any(broken)) {
                return Known::Broken;
            }
            arguments.push(known);
        }
        self.host_function(schema.name, arguments, schema.purity == Purity::Impure, ty)
    }

    /// Emits a call of the runtime's host function `function`, whose result has type `ty`. `effect` is whether it has
    /// side effects.
    pub(super) fn host_function(
        &mut self,
        function: &str,
        arguments: Vec<Known>,
        effect: bool,
        ty: &StructInfo,
    ) -> Known {
        let arguments = arguments.into_iter().map(|argument| self.materialize(argument)).collect();
        let to = self.register(ty.clone());
        self.emit(Operation::Host { to, function: name(function), arguments, effect });
        Known::Register(to)
    }
}

/// Converts an attribute to a value.
fn attribute(attr: &Attr) -> Known {
    match attr {
        Attr::None | Attr::Dict(_) => Known::Null,
        Attr::Bool(value) => Known::Scalar(Scalar::Bool(*value)),
        Attr::Int(value) => Known::Scalar(Scalar::Int(value.clone())),
        Attr::Float(value) => Known::Scalar(Scalar::Float(*value)),
        Attr::Str(text) | Attr::Opaque(text) => Known::String(text.clone()),
        Attr::List(items) => Known::Tuple(items.iter().map(attribute).collect()),
    }
}
