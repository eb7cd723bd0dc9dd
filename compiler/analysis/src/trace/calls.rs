//! Follows a chain through calls: of operators, functions of the module, and closures.

use super::descriptions::{describe_part, describe_value};
use super::follow::{Cursor, Frame, Next, Tracer};
use super::view::{Definition, Inner, nested};
use super::{Detail, Step, StepKind, TracePlace, spans};
use rx_base::Name;
use rx_ir::{Argument, Call, Callee, Expr, ExprKind, Signature};
use rx_ops::Schema;
use rx_ops::provenance::{Facet, Input, Part, Provenance, Source, provenance};
use std::rc::Rc;

/// The maximal depth of calls whose bodies are followed; deeper and recursive calls end at the declared type.
const MAX_CALLS: usize = 32;

/// The maximal length of a side chain, which only shows where a detail comes from.
const MAX_SIDE_STEPS: usize = 512;

/// The maximal number of details of one step.
const MAX_DETAILS: usize = 16;

impl Tracer<'_> {
    pub(super) fn call(&mut self, cursor: &Cursor, call: &Call, with_details: bool) -> Next {
        match &call.callee {
            Callee::Op(name) => match self.world.operator(*name) {
                Some(schema) => self.operator(cursor, schema, call, with_details),
                None => Next::End(self.end(cursor, StepKind::Unknown, format!("`{name}` is no operator"))),
            },
            Callee::Global(name) => self.global_call(cursor, *name, call),
            Callee::Value(function) => self.value_call(cursor, function, call),
        }
    }

    pub(super) fn operator(
        &mut self,
        cursor: &Cursor,
        schema: &'static Schema,
        call: &Call,
        with_details: bool,
    ) -> Next {
        let bounds = &self.no_bounds;
        let known = provenance(schema, &call.arguments, bounds, &cursor.facet);
        let operator = format!("R.{}", schema.name);
        let callee = Some(rx_base::name::name(schema.name));
        let Some(found) = known else {
            let mut step = self.end(cursor, StepKind::Rule, format!("{operator} gives {}", cursor.expr.ty));
            step.callee = callee;
            return Next::End(step);
        };
        let Some((main, others)) = found.sources.split_first() else {
            let text = format!("{operator} alone decides {}: {}", describe_part(&cursor.facet), found.fact);
            let mut step = self.end(cursor, StepKind::Rule, text);
            step.callee = callee;
            return Next::End(step);
        };
        let mut step = self.step(cursor, StepKind::Operator, String::new());
        step.callee = callee;
        step.formula.clone_from(&found.formula);
        step.unchanged = found.unchanged;
        step.text = describe_operator(schema, call, &cursor.facet, &found);
        if with_details && !found.unchanged {
            for source in others.iter().take(MAX_DETAILS) {
                let detail = self.detail(cursor, schema, call, source);
                step.details.push(detail);
            }
        }
        let segment = self.segment(&cursor.site);
        match &main.input {
            Input::Operand { param, facet } => match operand(call, *param, facet) {
                Some((expr, facet)) => {
                    let next = Cursor { expr: expr.clone(), site: cursor.site.clone(), facet, bound: None };
                    Next::On(step, next)
                }
                None => Next::End(Step { kind: StepKind::Unknown, ..step }),
            },
            Input::Attribute { param, element } => {
                let argument = segment
                    .and_then(|segment| spans::argument_span(&segment, cursor.expr.span, schema, *param, *element));
                step.kind = StepKind::Attribute;
                match argument {
                    Some(span) => step.place = self.place(&cursor.site, span),
                    None if found.unchanged => step.text.push_str(", by default"),
                    None => {}
                }
                Next::End(step)
            }
            Input::Type { param, facet } => {
                let span = segment
                    .and_then(|segment| spans::type_argument_span(&segment, cursor.expr.span, schema, *param, facet));
                let place = self.place(&cursor.site, span.unwrap_or(cursor.expr.span));
                self.out_ty(cursor, schema, call, step, place, facet)
            }
        }
    }

    /// Ends a chain at a type that a call declares; for `call_tir`, adds the buffer as a detail.
    pub(super) fn out_ty(
        &mut self,
        cursor: &Cursor,
        schema: &Schema,
        call: &Call,
        mut step: Step,
        place: TracePlace,
        facet: &Facet,
    ) -> Next {
        step.kind = StepKind::OutTy;
        step.unchanged = false;
        step.formula = None;
        step.place = place;
        step.text = format!("declared by the call of R.{}", schema.name);
        let prim = call.arguments.first().and_then(|argument| match argument {
            Argument::Operand(Expr { kind: ExprKind::Global(name), .. }) => Some(*name),
            _ => None,
        });
        if let Some(name) = prim
            && let Some(signature) = self.world.signature(name)
            && let Signature::Prim(signature) = &*signature
        {
            let outputs = call.arguments.iter().find_map(|argument| match argument {
                Argument::Types(types) => Some(types.len()),
                _ => None,
            });
            let buffers: Vec<_> = signature
                .params
                .iter()
                .filter_map(|param| match &param.kind {
                    rx_ir::PrimParamKind::Buffer(buffer) => Some((param.name, buffer)),
                    _ => None,
                })
                .collect();
            let index = facet.path.first().copied().unwrap_or(0);
            let first = buffers.len().saturating_sub(outputs.unwrap_or(1));
            if let Some((buffer, info)) = buffers.get(first + index) {
                let subject = format!("buffer `{buffer}` of prim_func `{name}`");
                let text = match facet.part {
                    Part::Dim(axis) => info.shape.get(axis).map(|dim| format!("axis {axis} of {subject} is {dim}")),
                    Part::Dtype => Some(format!("{subject} has dtype {}", info.dtype)),
                    Part::Rank | Part::Value => None,
                };
                step.details.extend(text.map(|text| Detail { text, place: None }));
            }
        }
        match self.symbol_of(cursor) {
            Some(symbol) => self.symbol(cursor, symbol, step),
            None => Next::End(step),
        }
    }

    /// Describes another fact that a step depends on.
    pub(super) fn detail(&mut self, cursor: &Cursor, schema: &Schema, call: &Call, source: &Source) -> Detail {
        let name = schema.params.get(source.input.param()).map_or("", |param| param.name);
        match &source.input {
            Input::Operand { param, facet } => {
                let Some((expr, facet)) = operand(call, *param, facet) else {
                    return Detail { text: format!("`{name}`: {}", source.fact), place: None };
                };
                let value = describe_value(expr, &format!("argument `{name}`"));
                let several = schema
                    .params
                    .get(*param)
                    .is_none_or(|param| matches!(param.kind, rx_ops::ParamKind::Tensors | rx_ops::ParamKind::Variadic));
                let role = if several { String::new() } else { format!("{name} ") };
                let mut text = format!("{role}{} = {} of {value}", source.fact, describe_part(&facet));
                let place = Some(self.place(&cursor.site, expr.span));
                if self.sides > 0 {
                    self.sides -= 1;
                    let side = Cursor { expr: expr.clone(), site: cursor.site.clone(), facet, bound: None };
                    if let Some(end) = self.chain(side, MAX_SIDE_STEPS, false).pop() {
                        let own =
                            matches!((&expr.kind, end.variable), (ExprKind::Var(name), Some(end)) if *name == end);
                        let words = end_words(&end);
                        text = match words.split_once(' ') {
                            Some((kind, _)) if own => format!("{text}, {kind}"),
                            _ => format!("{text}, {words}"),
                        };
                        return Detail { text, place: Some(end.place) };
                    }
                }
                Detail { text, place }
            }
            Input::Attribute { param, element } => {
                let place = self.segment(&cursor.site).and_then(|segment| {
                    let span = spans::argument_span(&segment, cursor.expr.span, schema, *param, *element)?;
                    Some(self.place(&cursor.site, span))
                });
                let element = element.map_or_else(String::new, |at| format!("[{at}]"));
                let default = if place.is_none() { ", by default" } else { "" };
                Detail { text: format!("{name}{element}={}{default}", source.fact), place }
            }
            Input::Type { .. } => Detail { text: format!("{name}: {}", source.fact), place: None },
        }
    }

    pub(super) fn global_call(&mut self, cursor: &Cursor, name: Name, call: &Call) -> Next {
        let frame = self.frames.get(cursor.site.frame);
        let depth = frame.map_or(0, |frame| frame.depth) + 1;
        let arguments = operands(call);
        let mut step = self.step(cursor, StepKind::Call, format!("`{name}` returns it"));
        step.callee = Some(name);
        step.unchanged = true;
        if let Some(view) = self.view(name) {
            let frame = self.frames.len();
            if depth <= MAX_CALLS
                && !self.is_inside(name, cursor.site.frame)
                && let Some((expr, site)) = view.returned(frame)
                && cursor.facet.of(&expr.ty).is_some()
            {
                let call = Some((cursor.site.clone(), arguments));
                self.frames.push(Frame { view, call, closure: None, depth });
                return Next::On(step, Cursor { expr, site, facet: cursor.facet.clone(), bound: None });
            }
            if let Some(span) = view.text.segments.first().and_then(|head| spans::return_span(head, &cursor.facet)) {
                step.place = view.place(0, span);
            }
        }
        step.kind = StepKind::Declared;
        step.unchanged = false;
        step.text = format!("`{name}` is declared to return it");
        Next::End(step)
    }

    /// Whether a call of `name` led to frame `frame`.
    pub(super) fn is_inside(&self, name: Name, frame: usize) -> bool {
        let mut at = Some(frame);
        while let Some(frame) = at.and_then(|at| self.frames.get(at)) {
            if frame.view.name == name && frame.closure.is_none() {
                return true;
            }
            at = frame.call.as_ref().map(|(site, _)| site.frame);
        }
        false
    }

    pub(super) fn value_call(&mut self, cursor: &Cursor, function: &Expr, call: &Call) -> Next {
        let depth = self.frames.get(cursor.site.frame).map_or(0, |frame| frame.depth) + 1;
        let name = match function.kind {
            ExprKind::Var(name) => Some(name),
            _ => None,
        };
        let called = name.map_or_else(|| "the function".to_owned(), |name| format!("`{name}`"));
        let mut step = self.step(cursor, StepKind::Call, format!("{called} returns it"));
        step.callee = name;
        step.unchanged = true;
        if depth <= MAX_CALLS
            && let Some(Definition::Binding(site, at)) = name.and_then(|name| self.lookup(name, &cursor.site))
            && let Some((_, binding)) = self.binding(&site, at)
            && let Some(closure) = nested(&binding).cloned()
            && let Some(expr) = closure.body.result.clone()
            && cursor.facet.of(&expr.ty).is_some()
            && let Some(view) = self.view_of(site.frame)
        {
            let frame = self.frames.len();
            let mut inner = site.inside(at, Inner::Function, closure.body.bindings.len());
            inner.frame = frame;
            let call = Some((cursor.site.clone(), operands(call)));
            self.frames.push(Frame { view, call, closure: Some((site.frame, closure)), depth });
            return Next::On(step, Cursor { expr, site: inner, facet: cursor.facet.clone(), bound: None });
        }
        step.kind = StepKind::Declared;
        step.unchanged = false;
        step.text = format!("{called} is declared to return it");
        Next::End(step)
    }
}

/// Returns the operand that an input refers to, and the part of it.
fn operand<'c>(call: &'c Call, param: usize, facet: &Facet) -> Option<(&'c Expr, Facet)> {
    let mut path = &facet.path[..];
    let mut expr = match call.arguments.get(param)? {
        Argument::Operand(expr) => expr,
        Argument::Operands(exprs) => {
            let (at, rest) = path.split_first()?;
            path = rest;
            exprs.get(*at)?
        }
        _ => return None,
    };
    while let (ExprKind::Tuple(items), Some((at, rest))) = (&expr.kind, path.split_first()) {
        expr = items.get(*at)?;
        path = rest;
    }
    Some((expr, Facet { path: path.to_vec(), part: facet.part }))
}

/// Returns the arguments of a call of a function.
fn operands(call: &Call) -> Rc<[Expr]> {
    let operand = |argument: &Argument| match argument {
        Argument::Operand(expr) => Some(expr.clone()),
        _ => None,
    };
    call.arguments.iter().filter_map(operand).collect()
}

/// Explains how an operator determines a part of its result: ``R.relu keeps axis 0 of `x` ``, `R.concat: 2 + 3 = 5`,
/// ``R.astype: the dtype is float16, from `dtype` ``.
pub(crate) fn describe_operator(schema: &Schema, call: &Call, facet: &Facet, found: &Provenance) -> String {
    let operator = format!("R.{}", schema.name);
    let part = describe_part(facet);
    let Some(main) = found.sources.first() else { return operator };
    let name = schema.params.get(main.input.param()).map_or("", |param| param.name);
    let from = match &main.input {
        Input::Operand { param, facet } => match operand(call, *param, facet) {
            Some((Expr { kind: ExprKind::Shape(_), .. }, Facet { part: Part::Dim(at), .. })) => {
                format!("`{name}[{at}]`")
            }
            Some((expr, facet)) => {
                let value = describe_value(expr, &format!("argument `{name}`"));
                match (found.unchanged, describe_part(&facet) == part) {
                    (true, true) => return format!("{operator} keeps {part} of {value}"),
                    _ => format!("{} of {value}", describe_part(&facet)),
                }
            }
            None => format!("`{name}`"),
        },
        Input::Attribute { element: Some(at), .. } => format!("`{name}[{at}]`"),
        Input::Attribute { .. } | Input::Type { .. } => format!("`{name}`"),
    };
    match (&found.formula, found.unchanged) {
        (Some(formula), _) => format!("{operator}: {formula}"),
        (None, true) if matches!(main.input, Input::Attribute { .. }) => {
            format!("{operator}: {part} is {}, from {from}", found.fact)
        }
        (None, true) => format!("{operator}: {part} is {from}"),
        (None, false) => format!("{operator}: {part} follows from {from}"),
    }
}

/// Describes the end of a chain briefly.
fn end_words(end: &Step) -> String {
    match (end.kind, end.variable) {
        (StepKind::Parameter, Some(name)) => format!("parameter `{name}`"),
        (StepKind::Parameter, None) => "parameter".to_owned(),
        (StepKind::Attribute | StepKind::Rule, _) => {
            end.callee.map_or_else(|| "attribute".to_owned(), |callee| format!("attribute of R.{callee}"))
        }
        (StepKind::Constant, _) => "constant".to_owned(),
        (StepKind::MatchCast, _) => "match_cast".to_owned(),
        (StepKind::OutTy, _) => "declared by the call".to_owned(),
        (StepKind::Annotation, _) => "annotation".to_owned(),
        (StepKind::Declared, _) => "declared return type".to_owned(),
        (StepKind::Literal | StepKind::Symbol, _) => "written in the text".to_owned(),
        _ => "of unknown origin".to_owned(),
    }
}
