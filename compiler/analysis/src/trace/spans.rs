//! Finds the source spans of dims, dtypes and attributes.

use rx_base::{Name, Span};
use rx_ops::provenance::{Facet, Part};
use rx_ops::{ParamKind, Schema};
use rx_syntax::ast::{Argument, Expr, ExprKind, Parameter, StatementKind};
use rx_syntax::{Cursor, Segment};

/// Returns the span of the part of the type expression `written` that states `facet`; the whole expression if no part
/// does.
pub(super) fn facet_span(cursor: Cursor<'_>, written: &Expr, facet: &Facet) -> Span {
    field(cursor, written, &facet.path)
        .and_then(|field| part_of(cursor, field, facet.part))
        .map_or(cursor.span(written.tokens), |part| cursor.span(part.tokens))
}

/// Returns the dim or dtype at byte `offset` of a type expression.
pub(super) fn facet_at(cursor: Cursor<'_>, written: &Expr, offset: u32) -> Option<Facet> {
    let touches = |expr: &Expr| cursor.span(expr.tokens).touches(offset);
    let mut path = Vec::new();
    let mut ty = written;
    while let Some(at) = fields(cursor, ty).and_then(|fields| fields.iter().position(|field| touches(field))) {
        path.push(at);
        ty = fields(cursor, ty)?.get(at).copied()?;
    }
    let part = match dims(ty).and_then(|dims| dims.iter().position(touches)) {
        Some(axis) => Part::Dim(axis),
        None if part_of(cursor, ty, Part::Dtype).is_some_and(touches) => Part::Dtype,
        None => return None,
    };
    Some(Facet { path, part })
}

fn field<'e>(cursor: Cursor<'_>, written: &'e Expr, path: &[usize]) -> Option<&'e Expr> {
    let mut ty = written;
    for at in path {
        ty = fields(cursor, ty)?.get(*at).copied()?;
    }
    Some(ty)
}

/// Returns the fields of `R.Tuple(a, b)` or `(a, b)`.
fn fields<'e>(cursor: Cursor<'_>, ty: &'e Expr) -> Option<Vec<&'e Expr>> {
    match &ty.kind {
        ExprKind::Parenthesized(inner) => fields(cursor, inner),
        ExprKind::Tuple(fields) | ExprKind::List(fields) => Some(fields.iter().collect()),
        ExprKind::Call { callee, arguments } if cursor.path(callee.tokens).ends_with(".Tuple") => {
            match &arguments[..] {
                [only] if matches!(only.value.kind, ExprKind::List(_) | ExprKind::Tuple(_)) => {
                    fields(cursor, &only.value)
                }
                _ => Some(arguments.iter().map(|argument| &argument.value).collect()),
            }
        }
        _ => None,
    }
}

/// Returns the dims of `R.Tensor((1, n), …)` or `R.Shape([1, n])`.
fn dims(ty: &Expr) -> Option<&[Expr]> {
    match &ty.kind {
        ExprKind::Parenthesized(inner) => dims(inner),
        ExprKind::Call { arguments, .. } => match &arguments.first()?.value.kind {
            ExprKind::Tuple(dims) | ExprKind::List(dims) => Some(dims),
            _ => None,
        },
        _ => None,
    }
}

fn part_of<'e>(cursor: Cursor<'_>, ty: &'e Expr, part: Part) -> Option<&'e Expr> {
    match (part, &ty.kind) {
        (_, ExprKind::Parenthesized(inner)) => part_of(cursor, inner, part),
        (Part::Dim(axis), _) => dims(ty)?.get(axis),
        (Part::Rank, ExprKind::Call { arguments, .. }) => {
            let named = arguments.iter().find(|argument| keyword(cursor, argument) == Some("ndim"));
            named.or(arguments.first()).map(|argument| &argument.value)
        }
        (Part::Dtype, ExprKind::Call { arguments, .. }) => {
            let named = arguments.iter().find(|argument| keyword(cursor, argument) == Some("dtype"));
            let unnamed = |at: usize| arguments.get(at).filter(|argument| argument.keyword.is_none());
            // `R.Tensor("float32", ndim=2)` and `R.Prim("int64")` have no shape before the dtype.
            let first = || unnamed(0).filter(|argument| matches!(argument.value.kind, ExprKind::String));
            named.or_else(|| unnamed(1)).or_else(first).map(|argument| &argument.value)
        }
        _ => None,
    }
}

fn keyword<'t>(cursor: Cursor<'t>, argument: &Argument) -> Option<&'t str> {
    argument.keyword.map(|keyword| cursor.text(keyword))
}

/// Returns the parameters and the return annotation of the header in `segment`.
pub(super) fn header(segment: &Segment) -> Option<(Cursor<'_>, &[Parameter], Option<&Expr>)> {
    segment.tree().statements.iter().find_map(|statement| match &statement.tree.kind {
        StatementKind::Def { params, ret, .. } => Some((segment.cursor(statement), &params[..], ret.as_ref())),
        _ => None,
    })
}

/// Returns the span of `facet` in the annotation of the parameter `name`.
pub(super) fn param_span(segment: &Segment, statement: Option<u32>, name: Name, facet: &Facet) -> Option<Span> {
    let statements = &segment.tree().statements;
    let defs = statements.iter().enumerate().filter(|(at, _)| statement.is_none_or(|from| *at >= from as usize));
    for (_, def) in defs {
        let StatementKind::Def { params, .. } = &def.tree.kind else { continue };
        let cursor = segment.cursor(def);
        for param in params {
            let own = cursor.parameter(param);
            if param.tree.name.is_none_or(|token| own.name(token) != name) {
                continue;
            }
            return Some(match &param.tree.annotation {
                Some(annotation) => facet_span(own, annotation, facet),
                None => own.span(param.tree.tokens),
            });
        }
    }
    None
}

/// Returns the span of `facet` in the annotation of a statement.
pub(super) fn annotation_span(segment: &Segment, statement: u32, facet: &Facet) -> Option<Span> {
    let statement = segment.tree().statements.get(statement as usize)?;
    match &statement.tree.kind {
        StatementKind::AnnAssign { annotation, .. } => Some(facet_span(segment.cursor(statement), annotation, facet)),
        _ => None,
    }
}

/// Returns the span of the dim of axis `axis` in the annotation of a statement; `None` if the annotation has none.
pub(crate) fn annotated_dim(segment: &Segment, statement: u32, axis: usize) -> Option<Span> {
    let statement = segment.tree().statements.get(statement as usize)?;
    let StatementKind::AnnAssign { annotation, .. } = &statement.tree.kind else { return None };
    Some(segment.cursor(statement).span(dims(annotation)?.get(axis)?.tokens))
}

/// Returns the place where the header's return annotation states this part of the type (a dim, the rank or the dtype):
/// the whole annotation if it does not state it.
pub(super) fn return_span(segment: &Segment, facet: &Facet) -> Option<Span> {
    let (cursor, _, ret) = header(segment)?;
    Some(facet_span(cursor, ret?, facet))
}

/// Returns the span of the argument for parameter `param` of the call at `span`; with `element`, that of this element
/// of its list.
pub(crate) fn argument_span(
    segment: &Segment,
    span: Span,
    schema: &Schema,
    param: usize,
    element: Option<usize>,
) -> Option<Span> {
    let (cursor, argument) = argument_at(segment, span, schema, param)?;
    let part = match (&argument.kind, element) {
        (ExprKind::Tuple(items) | ExprKind::List(items), Some(at)) => items.get(at).unwrap_or(argument),
        _ => argument,
    };
    Some(cursor.span(part.tokens))
}

/// Returns the span of `facet` in the `out_ty` of the call at `span`; the first index of the facet's path selects the
/// type.
pub(super) fn type_argument_span(
    segment: &Segment,
    span: Span,
    schema: &Schema,
    param: usize,
    facet: &Facet,
) -> Option<Span> {
    let (cursor, argument) = argument_at(segment, span, schema, param)?;
    let (index, rest) = facet.path.split_first()?;
    let ty = match &argument.kind {
        ExprKind::Tuple(types) | ExprKind::List(types) => types.get(*index)?,
        _ => argument,
    };
    Some(facet_span(cursor, ty, &Facet { path: rest.to_vec(), part: facet.part }))
}

fn argument_at<'s>(segment: &'s Segment, span: Span, schema: &Schema, param: usize) -> Option<(Cursor<'s>, &'s Expr)> {
    let (cursor, call) = segment.call_at(span)?;
    let ExprKind::Call { arguments, .. } = &call.kind else { return None };
    let wanted = schema.params.get(param)?;
    let mut positional = 0;
    for argument in arguments {
        let meant = match argument.keyword {
            Some(keyword) => crate::elaborate::current_keyword(cursor.text(keyword)) == wanted.name,
            None => {
                let here = positional;
                let variadic = schema.params.get(here).is_some_and(|param| param.kind == ParamKind::Variadic);
                positional += usize::from(!variadic);
                here == param
            }
        };
        if meant {
            return Some((cursor, &argument.value));
        }
    }
    None
}

/// Returns the span of `facet` in the `ty_args` of the call at `span`.
pub(super) fn ty_args_span(segment: &Segment, span: Span, facet: &Facet) -> Option<Span> {
    let (cursor, call) = segment.call_at(span)?;
    let ExprKind::Call { arguments, .. } = &call.kind else { return None };
    let canonical = |argument: &Argument| keyword(cursor, argument).map(crate::elaborate::current_keyword);
    let types = &arguments.iter().find(|argument| canonical(argument) == Some("ty_args"))?.value;
    let only = match &types.kind {
        ExprKind::Tuple(fields) | ExprKind::List(fields) if fields.len() == 1 => fields.first()?,
        _ => types,
    };
    Some(facet_span(cursor, only, facet))
}

/// Returns the span of `facet` in the type of the `match_cast` at `span`.
pub(super) fn cast_span(segment: &Segment, span: Span, facet: &Facet) -> Option<Span> {
    let (cursor, call) = segment.call_at(span)?;
    let ExprKind::Call { arguments, .. } = &call.kind else { return None };
    Some(facet_span(cursor, &arguments.get(1)?.value, facet))
}
