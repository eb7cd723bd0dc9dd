//! Elaborates function attributes: `R.func_attr({…})`.

use super::elaborator::Elaborator;
use crate::entry::{Entry, FUNCTION_CONTEXT, FunctionContext, Place, mistake, replace_fix};
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{Code, Name, Span, counted};
use rx_context::mistakes::{RepeatedKey, repeated_key, repeated_keys};
use rx_ir::{Attr, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind};
use std::sync::Arc;

impl Elaborator<'_> {
    pub(super) fn func_attr(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) {
        let Some(argument) = arguments.first() else {
            self.check.error(Code::MissingArgument, span, "`R.func_attr` takes a dictionary, it is missing");
            return;
        };
        if let Some(surplus) = arguments.get(1) {
            let place = cursor.span(surplus.value.tokens);
            self.check.error(Code::TooManyArguments, place, "`R.func_attr` takes one dictionary, more is passed");
        }
        let Attr::Dict(entries) = self.attribute(cursor, &argument.value) else {
            self.check.error(Code::AttrType, cursor.span(argument.value.tokens), "`R.func_attr` takes a dictionary");
            return;
        };
        if let ExprKind::Dict(written) = &argument.value.kind {
            for RepeatedKey { key, first, again } in repeated_keys(cursor, written) {
                let place = |key: &Expr| Place::Here(cursor.span(key.tokens));
                self.check.report(repeated_key(&key, place(first), place(again)));
            }
        }
        self.check.record_attributes(&entries);
        let Some(context) = self.check.function_context() else { return };
        let mut context = FunctionContext::clone(&context);
        let mut bounds = Bounds::clone(&context.bounds);
        for (key, value) in &entries {
            self.stated_once(key, entry_span(cursor, argument, key));
            match (key.as_ref(), value) {
                ("num_input", value) => {
                    self.check_num_input(value, context.params, entry_span(cursor, argument, key));
                    context.num_input = value.as_int();
                }
                ("global_symbol", Attr::Str(_)) if self.check.nesting == 0 && context.private => {
                    let message = format!("`{}` is private, so it has no `global_symbol`", context.name);
                    let place = entry_span(cursor, argument, key);
                    self.check.report(
                        mistake(Code::AttrBadValue, place, message)
                            .with_help("leave out the attribute, or `private=True`"),
                    );
                }
                // Outside a module, the function becomes a module under its symbol, which need not be the Python
                // name.
                ("global_symbol", Attr::Str(symbol))
                    if self.check.nesting == 0 && !self.check.file.modules.is_empty() =>
                {
                    self.check_global_symbol(symbol, context.name, entry_span(cursor, argument, key));
                }
                ("relax.force_pure", Attr::Bool(true)) => context.pure = false,
                ("relax.force_pure", Attr::Int(value)) if value.as_constant() == Some(1) => context.pure = false,
                ("tir_var_upper_bound", Attr::Dict(limits)) => read_bounds(limits, &mut bounds.upper),
                ("tir_var_lower_bound", Attr::Dict(limits)) => read_bounds(limits, &mut bounds.lower),
                _ => {}
            }
        }
        self.check.bounds = Arc::new(self.check.bounds.restated(&bounds));
        context.bounds = Arc::new(bounds);
        let context = Arc::new(context);
        match self.check.scopes.iter_mut().rev().find(|scope| scope.context.is_some()) {
            Some(scope) => scope.context = Some(context),
            // The attributes belong to the whole function, in whatever block they are written.
            None => self.check.redefine_in_place(name(FUNCTION_CONTEXT), Entry::Function(context)),
        }
    }

    /// Reports an attribute that has a value already: TVM accepts each attribute only once.
    fn stated_once(&mut self, key: &str, place: Span) {
        let marker = name(&format!("<attribute {key} at {}>", self.check.nesting));
        if self.check.lookup(marker).is_some() {
            self.check.error(Code::DuplicateDefinition, place, format!("the attribute `{key}` has a value already"));
        }
        self.check.define(marker, Entry::value(StructInfo::Error), place);
    }

    /// Checks `num_input`, the number of leading parameters that are inputs; the others are weights.
    fn check_num_input(&mut self, value: &Attr, params: usize, place: Span) {
        let given = match value {
            Attr::Int(value) => value.as_constant(),
            Attr::Opaque(_) => return,
            _ => None,
        };
        let in_range = |given: i64| usize::try_from(given).is_ok_and(|given| given <= params);
        match given {
            None => {
                let mut diagnostic = mistake(Code::AttrType, place, "`num_input` must be an integer");
                // `"1"` is a number in quotes.
                let number = value.as_str().and_then(|text| text.trim().parse().ok()).filter(|given| in_range(*given));
                if let Some(number) = number {
                    diagnostic = diagnostic.with_fix(replace_fix(place, format!("write {number}"), number.to_string()));
                }
                self.check.report(diagnostic);
            }
            Some(given) if !in_range(given) => {
                let message = format!("`num_input` is {given}, the function has {}", counted(params, "parameter"));
                let nearest = if given < 0 { 0 } else { params };
                self.check.report(
                    mistake(Code::NumInputOutOfRange, place, message)
                        .with_help(format!("it is the number of leading parameters that are inputs: 0 to {params}"))
                        .with_fix(replace_fix(place, format!("write {nearest}"), nearest.to_string())),
                );
            }
            Some(_) => {}
        }
    }

    fn check_global_symbol(&mut self, symbol: &str, function: Name, place: Span) {
        if symbol != function.as_str() {
            let message = format!("`global_symbol` is \"{symbol}\", the function is called `{function}`");
            self.check.report(
                mistake(Code::AttrBadValue, place, message)
                    .with_help("leave it out: a public function's symbol is its name"),
            );
        }
    }
}

fn read_bounds(limits: &[(Arc<str>, Attr)], into: &mut rx_base::name::NameMap<i64>) {
    for (symbol, limit) in limits {
        if let Some(limit) = limit.as_int() {
            into.insert(name(symbol), limit);
        }
    }
}

/// Returns the span of the value of `key` in `R.func_attr({…})`; the span of the whole argument if the dictionary is
/// not written in the call.
fn entry_span(cursor: Cursor<'_>, argument: &Argument, key: &str) -> Span {
    let ExprKind::Dict(entries) = &argument.value.kind else { return cursor.span(argument.value.tokens) };
    let is_key = |expr: &Option<Expr>| expr.as_ref().and_then(|expr| cursor.string_value(expr)).as_deref() == Some(key);
    let value = entries.iter().rfind(|(written, _)| is_key(written)).map(|(_, value)| value);
    cursor.span(value.unwrap_or(&argument.value).tokens)
}
