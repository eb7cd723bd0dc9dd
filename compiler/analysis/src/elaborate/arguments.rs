//! Binds the arguments of a call to the parameters of an operator's schema.
//!
//! For example, in `R.sum(y, keepdims=True)`, the parameter `x` gets `y`, `axis` gets its default `None`, and
//! `keepdims` gets `True`.

use super::bound_call::{BoundCall, current_keyword, short};
use super::call::{default_slot, signature_text};
use super::elaborator::Elaborator;
use super::ir::{shape, tuple};
use crate::entry::{Entry, Place, mistake};
use rx_base::edit_distance::nearest;
use rx_base::{Code, Diagnostic, Dim, counted};
use rx_context::mistakes::suggest_in_place;
use rx_ir::{Argument, Attr, Expr as IrExpr, StructInfo};
use rx_ops::{AttrKind, Default, Param, ParamKind, Schema};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument as WrittenArgument, Expr, ExprKind, TokenRange};

impl Elaborator<'_> {
    /// Binds the arguments of a call to the parameters of `schema`, elaborating each by the kind of its parameter.
    pub(in crate::elaborate) fn bind(
        &mut self,
        schema: &'static Schema,
        cursor: Cursor<'_>,
        call: &Expr,
        callee: &Expr,
        arguments: &[WrittenArgument],
    ) -> BoundCall {
        let count = schema.params.len();
        let mut bound = BoundCall {
            schema,
            slots: (0..count).map(|_| Argument::Absent).collect(),
            spans: vec![None; count],
            call_span: cursor.span(call.tokens),
            callee_span: cursor.span(callee.tokens),
            broken: false,
        };
        let mut positional = 0;
        let mut variadic: Option<(usize, Vec<IrExpr>)> = None;
        let by_keyword = arguments.iter().filter_map(|argument| argument.keyword);
        let by_keyword: Vec<&str> = by_keyword.map(|keyword| current_parameter(schema, cursor.text(keyword))).collect();
        let order = classic_order(schema, arguments);
        for (index, argument) in arguments.iter().enumerate() {
            let before = self.check.diagnostics.len();
            if let ExprKind::Starred { .. } = argument.value.kind {
                self.starred(cursor, argument);
                bound.broken = true;
                continue;
            }
            if self.is_type_argument(schema, cursor, argument) {
                continue;
            }
            let at = match argument.keyword {
                Some(keyword) => self.keyword_position(&mut bound, cursor, keyword),
                None => self.positional_position(&mut bound, cursor, arguments, argument, &mut positional),
            };
            let at = at.map(|at| match argument.keyword {
                None => order.get(at).copied().unwrap_or(at),
                Some(_) => at,
            });
            let at = at.filter(|at| {
                let twice = argument.keyword.is_none() && self.is_named_too(schema, *at, &by_keyword, cursor, argument);
                bound.broken |= twice;
                !twice
            });
            let Some((at, param)) = at.and_then(|at| Some((at, schema.params.get(at)?))) else {
                bound.broken = true;
                self.check.offer_removal(before, cursor, arguments, index);
                self.argument_without_parameter(cursor, argument);
                continue;
            };
            if param.kind == ParamKind::Variadic {
                let value = self.expr(cursor, &argument.value);
                variadic.get_or_insert_with(|| (at, Vec::new())).1.push(value);
                continue;
            }
            let slot = self.argument(schema, param, cursor, &argument.value);
            if let (Some(into), Some(span)) = (bound.slots.get_mut(at), bound.spans.get_mut(at)) {
                *into = slot;
                *span = Some(cursor.span(argument.value.tokens));
            }
        }
        if let Some((at, values)) = variadic {
            let span = values.first().zip(values.last()).map(|(first, last)| first.span.cover(last.span));
            if let (Some(into), Some(known)) = (bound.slots.get_mut(at), bound.spans.get_mut(at)) {
                *into = Argument::Operands(values);
                *known = span;
            }
        }
        self.complete(&mut bound);
        bound
    }

    /// Reports a positional argument whose parameter is also passed by keyword. The positional one is the surplus
    /// one.
    fn is_named_too(
        &mut self,
        schema: &Schema,
        at: usize,
        by_keyword: &[&str],
        cursor: Cursor<'_>,
        argument: &WrittenArgument,
    ) -> bool {
        let Some(param) = schema.params.get(at).filter(|param| by_keyword.contains(&param.name)) else { return false };
        let message = format!("{}: `{}` is passed twice, here and by name", short(schema), param.name);
        self.check.report(
            mistake(Code::DuplicateArgument, cursor.span(argument.value.tokens), message)
                .with_note(signature_text(schema)),
        );
        true
    }

    /// Handles `ty_args=` on an operator without such a parameter, and returns whether it was one: TVM prints it on
    /// any call that has type arguments. The types are elaborated for their diagnostics and ignored.
    fn is_type_argument(&mut self, schema: &Schema, cursor: Cursor<'_>, argument: &WrittenArgument) -> bool {
        let is_types = argument.keyword.is_some_and(|keyword| current_keyword(cursor.text(keyword)) == "ty_args");
        if !is_types || schema.params.iter().any(|param| param.name == "ty_args") {
            return false;
        }
        match &argument.value.kind {
            ExprKind::Tuple(types) | ExprKind::List(types) => {
                types.iter().for_each(|ty| drop(self.type_of(cursor, ty)))
            }
            _ => drop(self.type_of(cursor, &argument.value)),
        }
        true
    }

    /// Returns the index of the parameter that a keyword names, in its current or an older spelling.
    fn keyword_position(&mut self, bound: &mut BoundCall, cursor: Cursor<'_>, keyword: u32) -> Option<usize> {
        let written = cursor.text(keyword);
        let canonical = current_parameter(bound.schema, written);
        let span = cursor.span(TokenRange::one(keyword));
        let Some(at) = bound.position(written).or_else(|| bound.position(canonical)) else {
            let schema = bound.schema;
            let names: Vec<&str> = schema.params.iter().map(|param| param.name).collect();
            let diagnostic =
                mistake(Code::UnknownArgument, span, format!("{}: there is no argument `{written}`", short(schema)))
                    .with_note(signature_text(schema));
            self.check.report(suggest_in_place(diagnostic, nearest(written, names)));
            return None;
        };
        if bound.spans.get(at).is_some_and(Option::is_some) {
            let message = format!("{}: `{written}` is passed twice", short(bound.schema));
            self.check.error(Code::DuplicateArgument, span, message);
            return None;
        }
        Some(at)
    }

    fn positional_position(
        &mut self,
        bound: &mut BoundCall,
        cursor: Cursor<'_>,
        arguments: &[WrittenArgument],
        argument: &WrittenArgument,
        positional: &mut usize,
    ) -> Option<usize> {
        let at = *positional;
        match bound.schema.params.get(at) {
            Some(param) => {
                if param.kind != ParamKind::Variadic {
                    *positional += 1;
                }
                Some(at)
            }
            None => {
                if at == bound.schema.params.len() {
                    *positional += 1;
                    let message = format!(
                        "{}: takes at most {}, {} are passed",
                        short(bound.schema),
                        counted(at, "argument"),
                        arguments.len()
                    );
                    self.check.report(
                        mistake(Code::TooManyArguments, cursor.span(argument.value.tokens), message)
                            .with_note(signature_text(bound.schema)),
                    );
                }
                None
            }
        }
    }

    /// Elaborates an argument that no parameter takes, so that mistakes inside it are found.
    fn argument_without_parameter(&mut self, cursor: Cursor<'_>, argument: &WrittenArgument) {
        let literal = matches!(
            argument.value.kind,
            ExprKind::None | ExprKind::Bool(_) | ExprKind::String | ExprKind::Dict(_) | ExprKind::Lambda { .. }
        );
        if !literal {
            self.expr(cursor, &argument.value);
        }
    }

    fn starred(&mut self, cursor: Cursor<'_>, argument: &WrittenArgument) {
        let span = cursor.span(argument.value.tokens);
        self.check.error(Code::UnsupportedConstruct, span, "spreading a Python sequence is not evaluated here");
    }

    /// Fills in the defaults, and reports required parameters without an argument.
    fn complete(&mut self, bound: &mut BoundCall) {
        let mut missing = Vec::new();
        for (at, (slot, param)) in bound.slots.iter_mut().zip(bound.schema.params).enumerate() {
            if !matches!(slot, Argument::Absent) {
                continue;
            }
            match (param.default, param.kind) {
                (_, ParamKind::Variadic) => *slot = Argument::Operands(Vec::new()),
                (Default::Required, _) => missing.push((at, param.name)),
                _ => *slot = default_slot(param),
            }
        }
        if let ([(at, first), ..], false) = (&missing[..], bound.broken) {
            let names = missing.iter().map(|(_, name)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let place = Place::Here(bound.callee_span);
            let message = match missing.len() {
                1 => format!("{}: argument `{first}` is missing", short(bound.schema)),
                _ => format!("{}: arguments {names} are missing", short(bound.schema)),
            };
            let mut diagnostic =
                Diagnostic::new(Code::MissingArgument, place, message).with_note(signature_text(bound.schema));
            if missing.len() == 1 {
                diagnostic.fixes.extend(self.check.missing_operand(bound, *at));
            }
            self.check.report(diagnostic);
        }
        bound.broken |= !missing.is_empty();
    }

    pub(super) fn argument(
        &mut self,
        schema: &'static Schema,
        param: &'static Param,
        cursor: Cursor<'_>,
        value: &Expr,
    ) -> Argument {
        let span = cursor.span(value.tokens);
        if matches!(value.kind, ExprKind::None) && !param.is_attr() && param.default != Default::Required {
            return Argument::Absent;
        }
        match param.kind {
            ParamKind::Attr(kind) => {
                if self.is_run_time_value(cursor, value) && kind != AttrKind::Any {
                    let message = format!(
                        "{}: `{}` must be known when the program is written, `{}` is computed",
                        short(schema),
                        param.name,
                        cursor.source(value.tokens)
                    );
                    self.check.error(Code::AttrType, span, message);
                    return Argument::Attr(Attr::Opaque(cursor.source(value.tokens).into()));
                }
                let attr = self.attribute(cursor, value);
                match self.check_attribute(schema, param, kind, attr, span) {
                    Attr::Str(text) if kind == AttrKind::VDevice => {
                        let device = self.declared_vdevice(&text).map(|device| Attr::Str(device.as_str().into()));
                        Argument::Attr(device.unwrap_or(Attr::Str(text)))
                    }
                    attr => Argument::Attr(attr),
                }
            }
            ParamKind::Types => Argument::Types(match &value.kind {
                ExprKind::Tuple(types) | ExprKind::List(types) => {
                    types.iter().map(|ty| self.type_of(cursor, ty)).collect()
                }
                ExprKind::None => {
                    let message = format!("{}: `{}` must be a type, it is None", short(schema), param.name);
                    self.check.error(Code::AttrType, span, message);
                    vec![StructInfo::Error]
                }
                _ => vec![self.type_of(cursor, value)],
            }),
            ParamKind::Shape => Argument::Operand(self.shape_operand(cursor, value)),
            ParamKind::Arguments => {
                let inner = self.expr(cursor, value);
                // TVM accepts a single argument that is not a tuple, and wraps it in one.
                Argument::Operand(match inner.ty {
                    StructInfo::Tuple(_) | StructInfo::Error => inner,
                    _ => tuple(vec![inner], span),
                })
            }
            _ => Argument::Operand(self.expr(cursor, value)),
        }
    }

    /// Whether an expression is the name of a tensor or tuple variable.
    fn is_run_time_value(&mut self, cursor: Cursor<'_>, value: &Expr) -> bool {
        matches!(value.kind, ExprKind::Name)
            && matches!(
                self.check.lookup(cursor.name(value.tokens.start)),
                Some(Entry::Value { ty: StructInfo::Tensor(_) | StructInfo::DTensor(_) | StructInfo::Tuple(_), .. })
            )
    }

    fn shape_operand(&mut self, cursor: Cursor<'_>, value: &Expr) -> IrExpr {
        match &value.kind {
            ExprKind::Tuple(dims) | ExprKind::List(dims) => {
                let span = cursor.span(value.tokens);
                let dims: Vec<Dim> = dims.iter().map(|dim| self.dim(cursor, dim)).collect();
                shape(dims, span)
            }
            _ => self.expr(cursor, value),
        }
    }
}

/// Returns the current name of a parameter, given the spelling of any TVM release.
fn current_parameter<'w>(schema: &Schema, written: &'w str) -> &'w str {
    rx_ops::classic::parameter(schema.name, current_keyword(written))
}

/// Returns the parameter indices of positional arguments that are in the order of an older release, or nothing if
/// they are in the current order.
///
/// The call uses the old order if the first parameter at which the two orders differ is passed something other than a
/// string literal: the current order has a string there.
fn classic_order(schema: &Schema, arguments: &[WrittenArgument]) -> Vec<usize> {
    let position = |name: &&str| schema.params.iter().position(|param| param.name == *name);
    let order =
        rx_ops::classic::order(schema.name).and_then(|order| order.iter().map(position).collect::<Option<Vec<_>>>());
    let order = order.unwrap_or_default();
    let mut positional = arguments.iter().filter(|argument| argument.keyword.is_none());
    let differs = order.iter().enumerate().position(|(at, param)| at != *param);
    let reported = differs.and_then(|at| positional.nth(at));
    match reported.is_some_and(|argument| !matches!(argument.value.kind, ExprKind::String)) {
        true => order,
        false => Vec::new(),
    }
}
