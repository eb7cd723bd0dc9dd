//! Attributes of operator calls: arguments whose values are known at compile time, such as `axis=1`.

use super::bound_call::short;
use super::elaborator::Elaborator;
use crate::entry::{Entry, Place, mistake, replace_fix, suggest_string};
use rx_base::edit_distance::nearest;
use rx_base::{Code, DType, Diagnostic, Span};
use rx_ir::{Attr, StructInfo};
use rx_ops::{AttrKind, Param, Schema};
use rx_syntax::Cursor;
use rx_syntax::ast::{Expr, ExprKind, UnaryOp};

impl Elaborator<'_> {
    /// Evaluates an attribute. An expression that rx does not evaluate is kept as its source text ([`Attr::Opaque`]).
    pub(super) fn attribute(&mut self, cursor: Cursor<'_>, expr: &Expr) -> Attr {
        match &expr.kind {
            ExprKind::None => Attr::None,
            ExprKind::Bool(value) => Attr::Bool(*value),
            ExprKind::Integer => Attr::Int(self.dim(cursor, expr)),
            ExprKind::Float => Attr::Float(cursor.float_value(expr).unwrap_or(f64::NAN)),
            ExprKind::String => Attr::Str(cursor.string_value(expr).unwrap_or_default().as_ref().into()),
            ExprKind::Parenthesized(inner) => self.attribute(cursor, inner),
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Set(items) => {
                Attr::List(items.iter().map(|item| self.attribute(cursor, item)).collect())
            }
            ExprKind::Dict(entries) => {
                let entries = entries.iter().filter_map(|(key, value)| {
                    let key = key.as_ref()?;
                    let text = cursor.string_value(key).unwrap_or_else(|| cursor.source(key.tokens).into());
                    Some((text.as_ref().into(), value))
                });
                let entries: Vec<(std::sync::Arc<str>, &Expr)> = entries.collect();
                Attr::dict(entries.into_iter().map(|(key, value)| (key, self.attribute(cursor, value))))
            }
            ExprKind::Unary(UnaryOp::Neg, operand) => match self.attribute(cursor, operand) {
                Attr::Float(value) => Attr::Float(-value),
                Attr::Int(value) => Attr::Int(-&value),
                _ => opaque(cursor, expr),
            },
            ExprKind::Name => match self.check.lookup(cursor.name(expr.tokens.start)) {
                Some(Entry::Symbol { .. }) => Attr::Int(self.dim(cursor, expr)),
                Some(Entry::Value { ty: StructInfo::Prim(_), .. }) => Attr::Int(self.dim(cursor, expr)),
                Some(Entry::Captured) => {
                    self.check.captured_name(cursor.name(expr.tokens.start), cursor.span(expr.tokens));
                    opaque(cursor, expr)
                }
                Some(_) => opaque(cursor, expr),
                None => {
                    self.check.undefined_name(cursor.name(expr.tokens.start), cursor.span(expr.tokens));
                    opaque(cursor, expr)
                }
            },
            ExprKind::Binary(..) => Attr::Int(self.dim(cursor, expr)),
            ExprKind::Call { callee, arguments } => self.attribute_call(cursor, expr, callee, arguments),
            _ => opaque(cursor, expr),
        }
    }

    fn attribute_call(
        &mut self,
        cursor: Cursor<'_>,
        expr: &Expr,
        callee: &Expr,
        arguments: &[rx_syntax::ast::Argument],
    ) -> Attr {
        let source = cursor.path(callee.tokens);
        let [argument] = arguments else { return opaque(cursor, expr) };
        if source == "float" {
            let text = cursor.string_value(&argument.value).unwrap_or_default();
            return text.trim().parse().map_or_else(|_| opaque(cursor, expr), Attr::Float);
        }
        let Some((head, function)) = source.split_once('.') else { return opaque(cursor, expr) };
        if self.check.file.namespace(head).is_none() {
            return opaque(cursor, expr);
        }
        match function {
            "str" | "dtype" | "prim_value" | "bool" => self.attribute(cursor, &argument.value),
            _ => match DType::parse(function) {
                Some(dtype) if dtype.is_float() => match self.attribute(cursor, &argument.value) {
                    Attr::Int(value) => {
                        value.as_constant().map_or_else(|| opaque(cursor, expr), |v| Attr::Float(v as f64))
                    }
                    Attr::Str(text) => text.parse().map_or_else(|_| opaque(cursor, expr), Attr::Float),
                    other => other,
                },
                Some(_) => self.attribute(cursor, &argument.value),
                None => opaque(cursor, expr),
            },
        }
    }

    /// Checks an attribute against its kind. Reports a mismatch, and returns an opaque attribute in its place.
    pub(super) fn check_attribute(
        &mut self,
        schema: &Schema,
        param: &Param,
        kind: AttrKind,
        attr: Attr,
        span: Span,
    ) -> Attr {
        if matches!(attr, Attr::Opaque(_)) || (matches!(attr, Attr::None) && accepts_none(param, kind)) {
            return attr;
        }
        let (operator, name) = (short(schema), param.name);
        match (kind, &attr) {
            (AttrKind::Choice(choices), Attr::Str(text)) if !choices.contains(&text.as_ref()) => {
                let known = choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(", ");
                let message = format!("{operator}: `{name}` is \"{text}\", it must be one of {known}");
                let diagnostic = mistake(Code::AttrBadValue, span, message);
                let diagnostic = suggest_string(diagnostic, span, nearest(text, choices.iter().copied()));
                let diagnostic = self.with_default(diagnostic, param, span);
                self.check.report(diagnostic);
                bad(&attr)
            }
            (AttrKind::DType, Attr::Str(text)) => {
                if matches!(text.as_ref(), "" | "void") || DType::parse(text).is_some() {
                    return attr;
                }
                self.unknown_dtype(text, span);
                if let Some(diagnostic) = self.check.diagnostics.pop() {
                    let diagnostic = self.with_default(diagnostic, param, span);
                    self.check.report(diagnostic);
                }
                bad(&attr)
            }
            _ if fits(kind, &attr) => attr,
            _ => {
                let wanted = describe(kind);
                let found = shown(&attr);
                let message = format!("{operator}: `{name}` must be {wanted}, it is {found}");
                let diagnostic = mistake(Code::AttrType, span, message);
                let diagnostic = self.with_default(diagnostic, param, span);
                self.check.report(diagnostic);
                bad(&attr)
            }
        }
    }

    /// Adds the fix that replaces an attribute by its default, unless the diagnostic has a fix already.
    fn with_default(&self, diagnostic: Diagnostic<Place>, param: &Param, span: Span) -> Diagnostic<Place> {
        match param.default.text() {
            Some(text) if diagnostic.fixes.is_empty() => {
                diagnostic.with_fix(replace_fix(span, format!("use {}={text}", param.name), text))
            }
            _ => diagnostic,
        }
    }
}

/// Whether `None` may be passed for a parameter, with the same meaning as leaving it out. A parameter with a
/// non-`None` default of a definite kind, such as a boolean, does not accept `None`.
fn accepts_none(param: &Param, kind: AttrKind) -> bool {
    match param.default {
        rx_ops::Default::Required => kind == AttrKind::IntOrNone,
        rx_ops::Default::Absent => true,
        _ => matches!(kind, AttrKind::IntOrNone | AttrKind::DType | AttrKind::VDevice | AttrKind::Dict | AttrKind::Any),
    }
}

fn bad(attr: &Attr) -> Attr {
    Attr::Opaque(shown(attr).as_str().into())
}

fn opaque(cursor: Cursor<'_>, expr: &Expr) -> Attr {
    Attr::Opaque(cursor.source(expr.tokens).into())
}

fn fits(kind: AttrKind, attr: &Attr) -> bool {
    let each = |inner: AttrKind| matches!(attr, Attr::List(items) if items.iter().all(|item| fits(inner, item)));
    if matches!(attr, Attr::Opaque(_)) {
        return true;
    }
    // A symbolic dim is known only at run time, so it is no constant.
    let is_constant = || matches!(attr, Attr::Int(value) if value.as_constant().is_some() || value.is_error());
    match kind {
        AttrKind::Int | AttrKind::IntOrNone => is_constant() || matches!(attr, Attr::Bool(_)),
        AttrKind::Float => is_constant() || matches!(attr, Attr::Float(_) | Attr::Bool(_)),
        AttrKind::Bool => is_constant() || matches!(attr, Attr::Bool(_)),
        AttrKind::Str | AttrKind::Choice(_) | AttrKind::DType | AttrKind::Layout => matches!(attr, Attr::Str(_)),
        AttrKind::Ints => is_constant() || each(AttrKind::Int),
        AttrKind::IntList => each(AttrKind::Int),
        AttrKind::Floats => is_constant() || matches!(attr, Attr::Float(_)) || each(AttrKind::Float),
        AttrKind::Strs => each(AttrKind::Str),
        AttrKind::VDevice => matches!(attr, Attr::Str(_)),
        AttrKind::Dict => matches!(attr, Attr::Dict(_)),
        AttrKind::Any => true,
    }
}

fn describe(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::Int => "an integer",
        AttrKind::IntOrNone => "an integer or None",
        AttrKind::Float => "a number",
        AttrKind::Bool => "a boolean",
        AttrKind::Str | AttrKind::Choice(_) => "a string",
        AttrKind::DType => "a dtype name",
        AttrKind::Layout => "a layout string",
        AttrKind::Ints => "an integer or a list of integers",
        AttrKind::IntList => "a list of integers",
        AttrKind::Floats => "a list of numbers",
        AttrKind::Strs => "a list of strings",
        AttrKind::VDevice => "a virtual device",
        AttrKind::Dict => "a dictionary",
        AttrKind::Any => "a value",
    }
}

/// Formats an attribute for a message.
fn shown(attr: &Attr) -> String {
    match attr {
        Attr::None => "None".to_owned(),
        Attr::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Attr::Int(value) => value.to_string(),
        Attr::Float(value) => value.to_string(),
        Attr::Str(text) => format!("the string \"{text}\""),
        Attr::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Attr::Dict(_) => "a dictionary".to_owned(),
        Attr::Opaque(text) => text.to_string(),
    }
}
