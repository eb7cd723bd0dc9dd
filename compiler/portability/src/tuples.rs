//! Calls such as `R.call_tir` with a variable as the tuple of arguments, where the parser of a release requires a tuple
//! expression.

use super::{Look, Site};
use rx_base::{Code, Diagnostic, Fix};
use rx_ir::{Expr, ExprKind, StructInfo};

impl Look<'_> {
    /// Reports `R.call_tir(cls.f, args, …)` where `args` is a variable with a tuple type. The fix writes `(args[0],
    /// args[1])` instead.
    pub(super) fn argument_tuple(&mut self, site: &Site<'_>) {
        let Some(name) = rx_ops::tvm::written_tuple(self.version, site.operator) else { return };
        let Some(Expr { kind: ExprKind::Var(variable), ty: StructInfo::Tuple(fields), span }) = site.operand(name)
        else {
            return;
        };
        let parts: Vec<String> = (0..fields.len()).map(|at| format!("{variable}[{at}]")).collect();
        let comma = if parts.len() == 1 { "," } else { "" };
        let new = format!("({}{comma})", parts.join(", "));
        let title = format!("write `{new}`");
        let message =
            format!("TVM {} does not read a variable as the tuple of arguments of {}", self.version, site.operator);
        self.found.push(
            Diagnostic::new(Code::TextNotParsed, self.place(*span), message).with_help(title.clone()).with_fix(Fix {
                title,
                edits: vec![(self.place(*span), new)],
                safe: true,
            }),
        );
    }
}
