//! Elaborates symbolic integers: dims of shapes, and scalars passed to operators.

use super::elaborator::Elaborator;
use super::names::collect_names;
use super::result::{Role, Unresolved};
use crate::entry::{Entry, Place, mistake};
use rx_base::name::name;
use rx_base::{Code, Dim, Name, Span};
use rx_context::Namespace;
use rx_ir::{StructInfo, TensorInfo};
use rx_prim_func::integer;
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind, UnaryOp};
use rx_syntax::{Cursor, Segment};

impl Elaborator<'_> {
    /// Returns the integer value of an expression. Mistakes are reported and give [`Dim::ERROR`].
    pub(super) fn dim(&mut self, cursor: Cursor<'_>, expr: &Expr) -> Dim {
        match &expr.kind {
            ExprKind::Integer => match cursor.integer_value(expr).and_then(|value| i64::try_from(value).ok()) {
                Some(value) => Dim::constant(value),
                None => {
                    let message = "the integer does not fit 64 bits";
                    self.check.error(Code::AttrOutOfRange, cursor.span(expr.tokens), message);
                    Dim::ERROR
                }
            },
            ExprKind::Bool(value) => Dim::constant(i64::from(*value)),
            ExprKind::Name => {
                let name = cursor.name(expr.tokens.start);
                self.symbol(name, cursor.span(expr.tokens))
            }
            ExprKind::String => self.dim_in_string(cursor, expr),
            ExprKind::Parenthesized(inner) => self.dim(cursor, inner),
            ExprKind::Unary(UnaryOp::Neg, operand) => -&self.dim(cursor, operand),
            ExprKind::Unary(UnaryOp::Pos, operand) => self.dim(cursor, operand),
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.dim(cursor, left), self.dim(cursor, right));
                integer::binary(*op, &left, &right)
            }
            ExprKind::Call { callee, arguments } => self.dim_call(cursor, expr, callee, arguments),
            ExprKind::Compare(first, rest) => match &rest[..] {
                [(op, second)] => {
                    let (first, second) = (self.dim(cursor, first), self.dim(cursor, second));
                    integer::compare(*op, first, second)
                }
                _ => self.opaque_dim(cursor, expr),
            },
            ExprKind::Bool2(op, operands) => {
                let operands = operands.iter().map(|operand| self.dim(cursor, operand)).collect();
                integer::logic(*op, operands)
            }
            ExprKind::Conditional { then, test, otherwise } => {
                let parts = [test, then, otherwise].map(|part| self.dim(cursor, part));
                integer::call("if_then_else", &parts)
            }
            ExprKind::Unary(..) => self.opaque_dim(cursor, expr),
            ExprKind::Attribute { .. } | ExprKind::Subscript { .. } => {
                let value = self.expr(cursor, expr);
                self.dim_of_type(&value.ty, cursor.span(expr.tokens))
            }
            ExprKind::Error => Dim::ERROR,
            _ => {
                self.check.error(Code::MalformedType, cursor.span(expr.tokens), "a dim must be an integer expression");
                Dim::ERROR
            }
        }
    }

    fn dim_call(&mut self, cursor: Cursor<'_>, expr: &Expr, callee: &Expr, arguments: &[Argument]) -> Dim {
        match cursor.path(callee.tokens).split_once('.') {
            Some((head, function)) if callee.is_dotted_name() && self.check.file.namespace(head).is_some() => {
                if self.check.file.namespace(head) == Some(Namespace::Tir)
                    && self.is_wrong_tir_call(cursor, function, arguments, expr.tokens)
                {
                    return Dim::ERROR;
                }
                integer::written_call(cursor, function, arguments, |value| self.dim(cursor, value))
            }
            _ if matches!(callee.kind, ExprKind::Name | ExprKind::Attribute { .. }) => self.opaque_dim(cursor, expr),
            _ => {
                self.check.error(Code::MalformedType, cursor.span(expr.tokens), "a dim must be an integer expression");
                Dim::ERROR
            }
        }
    }

    /// Returns an expression that rx does not evaluate as an opaque dim, which is equal only to the same text. Its
    /// names are resolved.
    fn opaque_dim(&mut self, cursor: Cursor<'_>, expr: &Expr) -> Dim {
        let mut symbols = Vec::new();
        collect_names(cursor, expr, &mut symbols);
        let arguments = symbols.into_iter().map(|(name, span)| self.symbol(name, span)).collect();
        Dim::opaque(name(cursor.source(expr.tokens)), arguments)
    }

    /// Returns the integer value of a name.
    pub(super) fn symbol(&mut self, symbol: Name, span: Span) -> Dim {
        match self.check.lookup(symbol) {
            Some(Entry::Symbol { bound: true, .. }) => Dim::symbol(symbol),
            Some(Entry::Symbol { bound: false, .. }) => {
                self.unbound_symbol(symbol, span);
                Dim::ERROR
            }
            Some(Entry::Value { ty, .. }) => self.dim_of_variable(symbol, &ty, span),
            Some(Entry::Captured) => {
                self.check.captured_name(symbol, span);
                Dim::ERROR
            }
            Some(Entry::Module | Entry::Function(_) | Entry::Facts(_)) | None => {
                let message = format!("symbolic dim `{symbol}` is not defined");
                self.check.report(mistake(Code::UndefinedSymbolicVar, span, message).with_help(format!(
                    "declare it by a parameter whose shape has `{symbol}` as a dim of its own, or by a `R.match_cast`"
                )));
                let exports = u32::try_from(self.check.exports.len()).unwrap_or(u32::MAX);
                self.check.unresolved.push(Unresolved { name: symbol, span, exports, role: Role::Dim });
                self.check.redefine_everywhere(symbol, Entry::value(StructInfo::Error), span);
                Dim::ERROR
            }
        }
    }

    fn dim_of_variable(&mut self, variable: Name, ty: &StructInfo, span: Span) -> Dim {
        match ty {
            StructInfo::Prim(prim) => prim.value.clone().unwrap_or_else(|| Dim::symbol(variable)),
            _ => self.dim_of_type(ty, span),
        }
    }

    /// Returns the integer value of an expression of the type `ty`.
    pub(super) fn dim_of_type(&mut self, ty: &StructInfo, span: Span) -> Dim {
        match ty {
            StructInfo::Prim(prim) => prim.value.clone().unwrap_or(Dim::ERROR),
            StructInfo::Error | StructInfo::Object => Dim::ERROR,
            // TVM never converts a scalar tensor to a scalar, since its value is known only at run time.
            StructInfo::Tensor(tensor) if is_integer_scalar(tensor) => {
                self.check.error(Code::ArgumentType, span, "a dim must be a scalar, this is a tensor of no dimensions");
                Dim::ERROR
            }
            other => {
                self.check.error(Code::ArgumentType, span, format!("a dim must be an integer scalar, this is {other}"));
                Dim::ERROR
            }
        }
    }

    fn unbound_symbol(&mut self, symbol: Name, span: Span) {
        let definition = self.check.definition_of(symbol);
        let message = format!("symbolic dim `{symbol}` has no value here: nothing binds it");
        let mut diagnostic = mistake(Code::UndefinedSymbolicVar, span, message).with_help(format!(
            "a symbolic dim gets its value from a parameter's shape or from a `R.match_cast` that has `{symbol}` as a dim of its own"
        ));
        if !self.check.file.symbols.contains(&symbol) && definition != Place::Here(span) {
            diagnostic = diagnostic.with_label(definition, format!("`{symbol}` is declared here"));
        }
        self.check.report(diagnostic);
        // Later uses of the symbol are not reported again.
        self.check.redefine_everywhere(symbol, Entry::value(StructInfo::Error), span);
    }

    /// Elaborates a dim written as a string: `"n"`, `"n + 1"`.
    fn dim_in_string(&mut self, cursor: Cursor<'_>, expr: &Expr) -> Dim {
        let span = cursor.span(expr.tokens);
        let Some(text) = cursor.string_value(expr) else { return Dim::ERROR };
        if is_identifier(&text) {
            return self.symbol(name(&text), span);
        }
        let inner = Segment::new(text.as_ref().into());
        let parsed = inner.tree().statements.first().filter(|statement| statement.tree.error.is_none());
        match parsed.map(|statement| (statement, &statement.tree.kind)) {
            Some((statement, StatementKind::Expr(expr))) if inner.tree().statements.len() == 1 => {
                let before = (self.check.diagnostics.len(), self.check.unresolved.len());
                let dim = self.dim(inner.cursor(statement).quoted_at(span), expr);
                // The place of the diagnostic is the whole string. A fix for one name in it must not replace the
                // whole.
                for diagnostic in self.check.diagnostics.iter_mut().skip(before.0) {
                    diagnostic.fixes.clear();
                }
                self.check.unresolved.truncate(before.1);
                dim
            }
            _ => {
                self.check.error(Code::MalformedType, span, format!("`{text}` is no integer expression"));
                Dim::ERROR
            }
        }
    }
}

fn is_integer_scalar(tensor: &TensorInfo) -> bool {
    tensor.shape.ndim() == Some(0) && tensor.dtype.is_some_and(|dtype| dtype.is_int())
}

/// Whether the text is a Python identifier.
pub(super) fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}
