//! Names of operators that do not exist: reports them, and suggests the operator that is meant.

use super::elaborator::Elaborator;
use super::ir::error;
use super::names::is_extension;
use super::namespace::{BUILDER_FORMS, special_forms};
use super::types::TYPES;
use crate::entry::{Entry, mistake};
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{Code, Name, Span};
use rx_context::Namespace;
use rx_context::mistakes::suggest_in_place;
use rx_ir::{Expr as IrExpr, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, TokenRange};

impl Elaborator<'_> {
    /// Reports an operator without a schema.
    ///
    /// All names directly in `R` are known, so an unknown one there is a mistake, and so is a misspelling. In nested
    /// namespaces, such as `R.my.op`, a build of TVM may have added the operator: a note is reported, and the
    /// annotation of the result is trusted.
    pub(super) fn unknown_operator(
        &mut self,
        cursor: Cursor<'_>,
        callee: &Expr,
        arguments: &[Argument],
        function: &str,
        span: Span,
    ) -> IrExpr {
        let place = cursor.span(callee.tokens);
        let known = self.known_operators();
        let misspelt = nearest(function, known.iter().copied()).or_else(|| {
            // A known name with a suffix: `sum_zz`.
            known.iter().copied().filter(|name| is_extension(function, name)).max_by_key(|name| name.len())
        });
        let near = match misspelt {
            None if function.contains('.') => None,
            _ => in_other_namespace(function, &known).or(misspelt),
        };
        let source = cursor.path(callee.tokens);
        let unknown = mistake(Code::UnknownOperator, place, format!("there is no operator `{source}`"));
        match near {
            Some(near) => {
                let meant = format!("{}.{near}", source.split('.').next().unwrap_or("R"));
                self.check.report(suggest_in_place(unknown, Some(&meant)));
            }
            None if !function.contains('.') && !BUILDER_FORMS.contains(&function) => {
                let help = "an operator of your own build of TVM is declared in `rx.toml`, as one of `[[ops]]`";
                self.check.report(unknown.with_help(help));
            }
            None => {
                let marker = name(&format!("<no schema of {function}>"));
                if self.check.lookup(marker).is_none() {
                    let message = format!("rx has no schema of `{source}`; its annotation is trusted");
                    self.check.error(Code::NoSchema, place, message);
                    self.check.redefine_everywhere(marker, Entry::value(StructInfo::Error), place);
                }
            }
        }
        for argument in arguments {
            self.argument_of_unknown(cursor, argument);
        }
        error(span)
    }

    /// Elaborates an argument of an unknown operator, only to resolve its names. A type is no value.
    pub(super) fn argument_of_unknown(&mut self, cursor: Cursor<'_>, argument: &Argument) {
        if let ExprKind::Call { callee, .. } = &argument.value.kind
            && let Some((head, function)) = cursor.path(callee.tokens).split_once('.')
            && self.check.file.namespace(head) == Some(Namespace::Relax)
            && TYPES.contains(&function)
        {
            return;
        }
        if argument.keyword.is_none()
            && matches!(
                argument.value.kind,
                ExprKind::Name | ExprKind::Call { .. } | ExprKind::Tuple(_) | ExprKind::List(_)
            )
        {
            self.expr(cursor, &argument.value);
        }
    }

    /// Reports the undefined name at the head of `callee` if an operator is meant: `nn.relu` and `relu` mean
    /// `R.nn.relu`.
    pub(super) fn operator_without_namespace(&mut self, cursor: Cursor<'_>, callee: &Expr) {
        if !callee.is_dotted_name() {
            return;
        }
        let head = cursor.name(callee.tokens.start);
        let check = &mut self.check;
        if check.lookup(head).is_some()
            || check.file.namespace(&head).is_some()
            || check.asked.signature(head).is_some()
        {
            return;
        }
        if let Some(meant) = self.head_meant(head, cursor.path(callee.tokens)) {
            let token = TokenRange::one(callee.tokens.start);
            self.check.undefined_namespace(head, cursor.span(token), meant);
        }
    }

    /// Returns the text that makes the operator `source` known if it replaces its first part: `R.nn` for `nn.relu`,
    /// `R.nn.relu` for `relu`, `R` for `relax.add`.
    fn head_meant(&self, head: Name, source: &str) -> Option<Name> {
        let relax = self.check.file.spelled_namespace("R");
        let known = self.known_operators();
        let rest = source.split_once('.').map(|(_, rest)| rest);
        let meant = if known.contains(&source) {
            format!("{relax}.{head}")
        } else if let Some(rest) = rest {
            let is_relax = matches!(head.as_str(), "r" | "relax" | "Relax") || nearest(&head, [relax]).is_some();
            (is_relax && known.contains(&rest)).then(|| relax.to_owned())?
        } else {
            format!("{relax}.{}", in_other_namespace(source, &known)?)
        };
        (meant != head.as_str()).then(|| name(&meant))
    }

    /// Returns the names of all operators and special forms, without `R.`.
    fn known_operators(&self) -> Vec<&'static str> {
        let declared = self.check.file.operators.iter().flat_map(|operators| operators.all());
        let declared = declared.map(|operator| operator.schema.name);
        rx_ops::all().map(|schema| schema.name).chain(declared).chain(special_forms()).collect()
    }
}

/// Returns the operator with the same last part in another namespace: `nn.relu` for `relu`, `add` for `nn.add`.
fn in_other_namespace<'k>(function: &str, known: &[&'k str]) -> Option<&'k str> {
    let last = function.rsplit('.').next();
    let same = known.iter().copied().filter(|name| *name != function && name.rsplit('.').next() == last);
    same.min_by_key(|name| (name.matches('.').count(), !name.starts_with("nn.")))
}
