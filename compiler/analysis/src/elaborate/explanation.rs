//! Explanations attached to a mismatch: the guilty part of an annotation, the formula of the inferred dim, the
//! attribute value that would give the declared type, and the places where symbols get their values.

use super::bound_call::BoundCall;
use super::checker::Checker;
use super::result::Wanted;
use crate::entry::{Entry, Place};
use crate::readings::{self, Reading};
use crate::reconcile::{Clash, ClashKind};
use crate::trace;
use rx_base::symbolic::Bounds;
use rx_base::{Code, Diagnostic, Dim, Name, Span};
use rx_ir::{Call, Callee, Expr as IrExpr, ExprKind as IrKind, Shape, StructInfo, TensorInfo};
use rx_ops::provenance::{Facet, Part, provenance, reported_formula};
use rx_ops::{Arg, CallInfo, Schema, Suggestion};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind};

/// The maximal number of attributes suggested for one mistake.
pub(crate) const MOST_REPAIRS: usize = 2;

/// The maximal number of symbols whose definitions are shown for one mistake.
const MOST_SYMBOLS: usize = 3;

impl Checker<'_> {
    /// Adds to the diagnostic that `value` does not have its declared type: the formula of the clashing dim, and the
    /// attributes that would give the declared type. Returns these too, for [`Checker::want`]; none if the value is not
    /// the result of an operator.
    pub(super) fn explain_clash(
        &self,
        diagnostic: &mut Diagnostic<Place>,
        value: &IrExpr,
        declared: &StructInfo,
        clash: &Clash,
    ) -> Option<Vec<Suggestion>> {
        let IrKind::Call(call) = &value.kind else { return None };
        let Call { callee: Callee::Op(operator), arguments } = &**call else { return None };
        let schema = rx_ops::find(*operator)?;
        let arguments = readings::of_arguments(arguments, Reading::Inferred);
        let read = Call { callee: call.callee.clone(), arguments };
        let args: Vec<Arg<'_>> = read.arguments.iter().map(Arg::from).collect();
        let call = CallInfo::new(schema, &args, &self.bounds);
        (schema.infer)(&call).ok()?;
        diagnostic.notes.extend(origin(schema, &read, clash, &self.bounds));
        let gives = match (clash.axis, clash.kind) {
            (Some(_), _) | (_, ClashKind::Dtype) => clash.wanted.clone(),
            _ => declared.to_string(),
        };
        let suggestions = rx_ops::suggestions(&call, declared);
        let shown = suggestions.iter().take(MOST_REPAIRS);
        diagnostic.help.extend(shown.map(|suggestion| format!("{suggestion} gives {gives}")));
        Some(suggestions)
    }

    /// Stores that `value`, which the last diagnostic reports, should have the type `ty`. The check of the function
    /// then searches the calls that compute it for an attribute that gives this type; `suggestions` are those of the
    /// value itself, if they were searched.
    pub(super) fn want(&mut self, value: &IrExpr, ty: &StructInfo, suggestions: Option<Vec<Suggestion>>) {
        let is_followed = matches!(value.kind, IrKind::Var(_) | IrKind::Call(_));
        // The names of branches and nested functions are not visible to the check of the function.
        if let Some(diagnostic) = self.diagnostics.last().filter(|_| is_followed && self.scopes.len() == 1) {
            let exports = u32::try_from(self.exports.len()).unwrap_or(u32::MAX);
            let place = diagnostic.primary.clone();
            self.wanted.push(Wanted { place, value: value.clone(), ty: ty.clone(), exports, suggestions });
        }
    }

    /// Stores, for a call whose operands the last diagnostic reports as not broadcasting, that each operand should have
    /// the shape of another one.
    pub(super) fn want_shapes_of_others(&mut self, bound: &BoundCall) {
        if self.diagnostics.last().is_none_or(|diagnostic| diagnostic.code != Code::BroadcastMismatch) {
            return;
        }
        let operands: Vec<&IrExpr> = bound.slots.iter().filter_map(rx_ir::Argument::as_operand).collect();
        let pairs = operands.iter().flat_map(|value| operands.iter().map(move |other| (*value, *other)));
        for (value, other) in pairs {
            let (StructInfo::Tensor(own), Some(other)) = (&value.ty, other.ty.as_tensor()) else { continue };
            let shape = &other.shape;
            if own.shape != *shape && shape.dims().is_some() && own.shape.ndim() == shape.ndim() {
                let wanted = TensorInfo { shape: shape.clone(), ..TensorInfo::clone(own) };
                self.want(value, &wanted.into(), None);
            }
        }
    }

    /// Adds a label at the definition of each symbol that occurs both in `types` and in `text`.
    pub(super) fn with_symbols<'t>(
        &mut self,
        mut diagnostic: Diagnostic<Place>,
        text: &str,
        types: impl IntoIterator<Item = &'t StructInfo>,
    ) -> Diagnostic<Place> {
        let mut symbols = Vec::new();
        for ty in types {
            symbols_of(ty, &mut |symbol| {
                if !symbols.contains(&symbol) && symbols.len() < 64 {
                    symbols.push(symbol);
                }
            });
        }
        symbols.retain(|symbol| speaks_of(text, symbol));
        for symbol in symbols.into_iter().take(MOST_SYMBOLS) {
            let bound = match self.lookup(symbol) {
                Some(Entry::Symbol { bound, .. }) => bound,
                Some(Entry::Value { ty: StructInfo::Prim(_), .. }) => true,
                _ => false,
            };
            let place = self.definition_of(symbol);
            if bound && diagnostic.primary != place && diagnostic.labels.iter().all(|label| label.place != place) {
                diagnostic = diagnostic.with_label(place, format!("`{symbol}` gets its value here"));
            }
        }
        diagnostic
    }
}

/// Explains the part of a call's result that clashes with its declaration: by the formula of the rule with the
/// numbers filled in, or by the part of an argument that it comes from.
fn origin(schema: &'static Schema, call: &Call, clash: &Clash, bounds: &Bounds) -> Option<String> {
    let part = match (clash.kind, clash.axis) {
        (ClashKind::Shape, Some(axis)) => Part::Dim(axis),
        (ClashKind::Shape, None) => Part::Rank,
        (ClashKind::Dtype, _) => Part::Dtype,
        _ => return None,
    };
    let facet = Facet { path: clash.path.clone(), part };
    let with_formula = |formula: &str| format!("{}: {formula}", trace::describe_part(&facet));
    if let Some(formula) = reported_formula(schema, &call.arguments, bounds, &facet) {
        return Some(with_formula(&formula));
    }
    let found = provenance(schema, &call.arguments, bounds, &facet)?;
    Some(match &found.formula {
        Some(formula) => with_formula(formula),
        None if found.sources.is_empty() => return None,
        None => trace::describe_operator(schema, call, &facet, &found),
    })
}

/// Returns the span of the part of an annotation that a clash is about, such as a dim or the dtype; the span of the
/// whole annotation if the part is not written.
pub(super) fn guilty_part(cursor: Cursor<'_>, annotation: &Expr, clash: &Clash) -> Span {
    let mut ty = bare(annotation);
    for index in &clash.path {
        let Some(field) = field(ty, *index) else { return cursor.span(annotation.tokens) };
        ty = bare(field);
    }
    part_of_type(cursor, ty, clash.kind, clash.axis)
}

/// Returns the span of the part of a type expression that a clash of this kind is about; the span of the whole type
/// if the part is not written.
pub(super) fn part_of_type(cursor: Cursor<'_>, ty: &Expr, kind: ClashKind, axis: Option<usize>) -> Span {
    let ty = bare(ty);
    let part = match (&ty.kind, kind, axis) {
        (ExprKind::Call { arguments, .. }, ClashKind::Shape, Some(axis)) => argument(cursor, arguments, "shape", 0)
            .or_else(|| argument(cursor, arguments, "values", 0))
            .and_then(|shape| match &shape.kind {
                ExprKind::Tuple(dims) | ExprKind::List(dims) => dims.get(axis),
                _ => None,
            }),
        (ExprKind::Call { arguments, .. }, ClashKind::Shape, None) => {
            argument(cursor, arguments, "shape", 0).or_else(|| argument(cursor, arguments, "ndim", 3))
        }
        (ExprKind::Call { arguments, .. }, ClashKind::Dtype, _) => {
            argument(cursor, arguments, "dtype", 1).or_else(|| arguments.first().map(|first| &first.value))
        }
        (ExprKind::Call { arguments, .. }, ClashKind::VDevice, _) => argument(cursor, arguments, "vdevice", 2),
        _ => None,
    };
    cursor.span(part.unwrap_or(ty).tokens)
}

fn bare(mut expr: &Expr) -> &Expr {
    while let ExprKind::Parenthesized(inner) = &expr.kind {
        expr = inner;
    }
    expr
}

/// Returns a field of `R.Tuple(…)`.
fn field(ty: &Expr, index: usize) -> Option<&Expr> {
    let ExprKind::Call { arguments, .. } = &ty.kind else { return None };
    match &arguments[..] {
        [Argument { value: Expr { kind: ExprKind::List(fields), .. }, .. }] => fields.get(index),
        _ => arguments.get(index).map(|argument| &argument.value),
    }
}

/// Returns the argument `name`, which may be passed at `position`. A string in the position of a shape is not a shape
/// but a dtype.
fn argument<'e>(cursor: Cursor<'_>, arguments: &'e [Argument], name: &str, position: usize) -> Option<&'e Expr> {
    let named = arguments.iter().find(|argument| argument.keyword.is_some_and(|keyword| cursor.text(keyword) == name));
    let positional = || arguments.get(position).filter(|argument| argument.keyword.is_none());
    let found = bare(&named.or_else(positional)?.value);
    (position != 0 || !matches!(found.kind, ExprKind::String)).then_some(found)
}

/// Whether `text` contains the symbol as a whole word.
fn speaks_of(text: &str, symbol: &Name) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(symbol.as_str()).any(|(at, found)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + found.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn symbols_of(ty: &StructInfo, visit: &mut dyn FnMut(Name)) {
    let mut dims = |dims: &[Dim]| dims.iter().for_each(|dim| dim.for_each_symbol(&mut |symbol| visit(symbol)));
    match ty {
        StructInfo::Shape(Shape::Known(shape)) => dims(shape),
        StructInfo::Prim(prim) => prim.value.iter().for_each(|value| dims(std::slice::from_ref(value))),
        StructInfo::Tuple(fields) => fields.iter().for_each(|field| symbols_of(field, visit)),
        ty => {
            if let Some(shape) = ty.as_tensor().and_then(|tensor| tensor.shape.dims()) {
                dims(shape);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::speaks_of;
    use rx_base::name::name;

    #[test]
    fn symbols_are_found_as_words() {
        assert!(speaks_of("axis 1 is n, not 4", &name("n")));
        assert!(speaks_of("axis 1 is 2*n", &name("n")));
        assert!(!speaks_of("no number", &name("n")));
    }
}
