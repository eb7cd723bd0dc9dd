//! Finds the value at a position.

use super::descriptions::describe_value;
use super::follow::Tracer;
use super::view::{Inner, Site, View, bindings, inner_body};
use super::{TracePlace, spans};
use crate::elaborate::Recorded;
use rx_base::{Name, Span};
use rx_ir::{Argument, Binding, BindingKind, Callee, Expr, ExprKind};
use rx_ops::provenance::Facet;
use rx_syntax::ast::StatementKind;
use std::rc::Rc;

/// A value of a function, at which a chain starts.
pub(super) struct Target {
    pub(super) expr: Expr,
    pub(super) site: Site,
    /// A description of the value.
    pub(super) subject: String,
    pub(super) place: TracePlace,
    /// The variable it is bound to, and the place of the binding.
    pub(super) bound: Option<(Name, TracePlace)>,
    /// The part of an annotation at the position.
    pub(super) facet: Option<Facet>,
}

/// Returns the value at byte `offset` of a segment of the tracer's function.
pub(super) fn at(tracer: &mut Tracer<'_>, segment: u32, offset: u32, line_only: bool) -> Option<Target> {
    let view = tracer.view_of(0)?;
    if segment == 0 {
        return in_header(&view, offset, line_only);
    }
    let text = view.text.segments.get(segment as usize)?;
    let statements = &text.tree().statements;
    let index = statements.partition_point(|statement| statement.span.end < offset);
    let statement = statements.get(index)?;
    let behind_blanks = line_only && same_line(text.text(), offset, statement.span.start);
    if !(statement.span.touches(offset) || behind_blanks) {
        return None;
    }
    let cursor = text.cursor(statement);
    let recorded = view.recorded(segment);
    let number = u32::try_from(index).ok()?;
    let root = Site { frame: 0, segment, blocks: Vec::new(), limit: recorded.bindings.len() };
    let in_value = |value: &rx_syntax::ast::Expr| !line_only && cursor.span(value.tokens).touches(offset);
    match &statement.tree.kind {
        StatementKind::Assign { targets, value } => {
            let target = targets.first()?;
            match in_value(value) {
                true => inside(&view, &recorded, root, number, offset),
                false => variable(&view, &recorded, root, number, Some(&names_at(cursor, target, offset)), None),
            }
        }
        StatementKind::AnnAssign { target, annotation, value } => {
            if value.as_ref().is_some_and(in_value) {
                return inside(&view, &recorded, root, number, offset);
            }
            let facet = match !line_only && cursor.span(annotation.tokens).touches(offset) {
                true => spans::facet_at(cursor, annotation, offset),
                false => None,
            };
            variable(&view, &recorded, root, number, Some(&names_at(cursor, target, offset)), facet)
        }
        StatementKind::If(_) if line_only => variable(&view, &recorded, root, number, None, None),
        _ => inside(&view, &recorded, root.clone(), number, if line_only { statement.span.end } else { offset })
            .or_else(|| variable(&view, &recorded, root, number, None, None)),
    }
}

/// Returns the names in an assignment's target, the one at `offset` first.
fn names_at(cursor: rx_syntax::Cursor<'_>, target: &rx_syntax::ast::Expr, offset: u32) -> Vec<Name> {
    use rx_syntax::ast::ExprKind;
    let mut names = Vec::new();
    let parts = match &target.kind {
        ExprKind::Tuple(parts) => parts.iter().collect(),
        _ => vec![target],
    };
    for part in parts {
        if let ExprKind::Name = part.kind {
            let at = if cursor.span(part.tokens).touches(offset) { 0 } else { names.len() };
            names.insert(at, cursor.name(part.tokens.start));
        }
    }
    names
}

/// Returns the parameter or the returned value at `offset` in the header.
fn in_header(view: &View, offset: u32, line_only: bool) -> Option<Target> {
    let head = view.text.segments.first()?;
    let (cursor, params, ret) = spans::header(head)?;
    let site = Site { frame: 0, segment: 0, blocks: Vec::new(), limit: 0 };
    for param in params {
        let own = cursor.parameter(param);
        let span = own.span(param.tree.tokens);
        if !(span.touches(offset) || (line_only && offset < span.start && same_line(head.text(), offset, span.start))) {
            continue;
        }
        let name = own.name(param.tree.name?);
        let (_, ty) = view.text.signature.params.iter().find(|(known, _)| *known == name)?;
        let annotation = param.tree.annotation.as_ref().filter(|_| !line_only);
        let facet = annotation.and_then(|annotation| spans::facet_at(own, annotation, offset));
        let expr = Expr { kind: ExprKind::Var(name), ty: ty.clone(), span };
        let place = view.place(0, span);
        return Some(Target { subject: format!("`{name}`"), expr, site, place, bound: None, facet });
    }
    let in_ret = ret.is_some_and(|ret| cursor.span(ret.tokens).touches(offset));
    if !(line_only || in_ret || head.function_name().is_some_and(|name| name.touches(offset))) {
        return None;
    }
    let facet = ret.filter(|_| in_ret && !line_only);
    let facet = facet.and_then(|ret| spans::facet_at(cursor, ret, offset));
    let (expr, site) = view.returned(0)?;
    let place = view.place(site.segment, expr.span);
    let subject = describe_value(&expr, "the returned value");
    Some(Target { expr, site, subject, place, bound: None, facet })
}

fn same_line(text: &str, from: u32, to: u32) -> bool {
    text.get(from as usize..to as usize).is_some_and(|between| !between.contains('\n'))
}

/// Finds a binding of a statement; extends `blocks` by the path to its block.
fn binding_of<'r>(
    recorded: &'r Recorded,
    blocks: &mut Vec<(usize, Inner)>,
    statement: u32,
    name: Option<&[Name]>,
) -> Option<(usize, &'r Binding)> {
    let block = bindings(recorded, blocks)?;
    let wanted = |binding: &Binding| {
        binding.origin.statement == statement
            && name.is_none_or(|names| names.iter().any(|name| super::view::defines(binding, *name)))
    };
    if let Some(at) = block.iter().rposition(wanted) {
        return block.get(at).map(|binding| (at, binding));
    }
    // Blocks are in reading order, so the statement is in the last binding that begins before it.
    let holder = block.iter().rposition(|binding| binding.origin.statement <= statement)?;
    let binding = block.get(holder)?;
    let arms = match &binding.kind {
        BindingKind::If { arms, .. } => arms.len(),
        _ => 0,
    };
    for inner in (0..arms).map(Inner::Arm).chain([Inner::Otherwise, Inner::Function]) {
        if inner_body(binding, inner).is_none() {
            continue;
        }
        blocks.push((holder, inner));
        if let Some(found) = binding_of(recorded, blocks, statement, name) {
            return Some(found);
        }
        blocks.pop();
    }
    None
}

/// Returns the variable that a statement binds.
fn variable(
    view: &View,
    recorded: &Recorded,
    mut site: Site,
    statement: u32,
    names: Option<&[Name]>,
    facet: Option<Facet>,
) -> Option<Target> {
    let (at, binding) = binding_of(recorded, &mut site.blocks, statement, names)?;
    let first = names.and_then(|names| names.first().copied());
    let (name, ty) = match &binding.kind {
        BindingKind::Value { variable, ty, .. } => (*variable, ty.clone()),
        BindingKind::Unpack { variables, value } => {
            let index =
                variables.iter().position(|variable| variable.is_some() && (first.is_none() || *variable == first))?;
            (variables.get(index).copied().flatten()?, value.ty.as_tuple()?.get(index)?.clone())
        }
        BindingKind::If { variable, arms, .. } => ((*variable)?, arms.first()?.1.result.as_ref()?.ty.clone()),
        BindingKind::Function(_) => return None,
    };
    let place = view.place(site.segment, view.name_span(site.segment, statement, Some(name)));
    site.limit = at + 1;
    let span = match place.place {
        rx_context::ItemPlace::Segment(_, span) => span,
        rx_context::ItemPlace::Item(..) | rx_context::ItemPlace::Macro(_) => Span::default(),
    };
    let expr = Expr { kind: ExprKind::Var(name), ty, span };
    Some(Target { subject: format!("`{name}`"), expr, site, place, bound: None, facet })
}

/// Returns the innermost value at `offset` in a statement.
fn inside(view: &Rc<View>, recorded: &Recorded, mut site: Site, statement: u32, offset: u32) -> Option<Target> {
    let found = binding_of(recorded, &mut site.blocks, statement, None);
    let (value, limit) = match found {
        Some((at, binding)) => match &binding.kind {
            BindingKind::Value { value, .. } | BindingKind::Unpack { value, .. } => (Expr::clone(value), at),
            BindingKind::If { arms, .. } => (arms.first()?.0.clone(), at),
            BindingKind::Function(_) => return None,
        },
        None => {
            site.blocks.clear();
            (recorded.returned.clone()?, recorded.bindings.len())
        }
    };
    site.limit = limit;
    let mut expr = &value;
    while let Some(inner) = parts(expr).into_iter().find(|part| !part.span.is_empty() && part.span.touches(offset)) {
        expr = inner;
    }
    let what = match &expr.kind {
        ExprKind::Call(call) => match &call.callee {
            Callee::Op(name) => format!("the result of R.{name}"),
            Callee::Global(name) => format!("the result of `{name}`"),
            Callee::Value(_) => "the result of the call".to_owned(),
        },
        _ => "this value".to_owned(),
    };
    let subject = describe_value(expr, &what);
    let place = view.place(site.segment, expr.span);
    Some(Target { expr: expr.clone(), site, subject, place, bound: None, facet: None })
}

/// Returns the direct subexpressions of an expression.
fn parts(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Tuple(items) => items.iter().collect(),
        ExprKind::TupleGet(inner, _) | ExprKind::MatchCast(inner) => vec![inner],
        ExprKind::Call(call) => {
            let mut parts: Vec<&Expr> = Vec::new();
            if let Callee::Value(function) = &call.callee {
                parts.push(function);
            }
            for argument in &call.arguments {
                match argument {
                    Argument::Operand(expr) => parts.push(expr),
                    Argument::Operands(exprs) => parts.extend(exprs),
                    _ => {}
                }
            }
            parts
        }
        _ => Vec::new(),
    }
}
