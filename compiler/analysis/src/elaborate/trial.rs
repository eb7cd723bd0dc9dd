//! Fixes of operator calls found by trial: changes an argument, runs the operator's type rule again, and suggests the
//! changes that make the call valid.
//!
//! For example, for `R.sum(x, axis=2)` of a matrix, `axis=1` is tried and suggested. Only wrong calls incur this
//! cost.

mod layouts;

use super::bound_call::{BoundCall, Tried, before_end};
use super::checker::Checker;
use super::ir::shape;
use crate::entry::{Place, replace_fix};
use crate::reconcile::reconcile;
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{Code, DType, Diagnostic, Dim, Fix, Span};
use rx_ir::{Argument, Attr, Call, Callee, Expr as IrExpr, ExprKind as IrKind, Shape, StructInfo};
use rx_ops::{Arg, AttrKind, CallInfo, Param, ParamKind, ParamPlace};
use std::sync::Arc;

/// The maximal number of fixes suggested for one mistake.
const MOST_FIXES: usize = 3;

/// A changed call: the title of its fix, and each changed parameter with its new argument and text.
struct Candidate {
    title: String,
    changes: Vec<(usize, Argument, String)>,
}

impl Checker<'_> {
    /// Adds the fixes found by trial to a diagnostic of `bound`, and removes fixes of the rule that do not make the
    /// call valid. The type of the fixed call must fit `declared`, if it is given.
    pub(super) fn try_fixes(
        &mut self,
        bound: &BoundCall,
        report: &Diagnostic<ParamPlace>,
        placed: &mut Diagnostic<Place>,
        declared: Option<&StructInfo>,
    ) {
        let bounds = self.bounds.clone();
        let fits = |ty: StructInfo| declared.is_none_or(|declared| reconcile(declared, &ty, &bounds).clash.is_none());
        placed.fixes.retain(|fix| fix.safe || !is_useless(bound, report, fix, &bounds));
        let before = placed.fixes.len();
        for candidate in candidates(bound, report) {
            if placed.fixes.len() >= before.max(1) + MOST_FIXES - 1 {
                return;
            }
            if !type_with(bound, &candidate.changes, &bounds).is_some_and(fits) {
                continue;
            }
            if let Some(fix) = self.written(bound, candidate)
                && placed.fixes.iter().all(|other| other.edits != fix.edits)
            {
                placed.fixes.push(fix);
            }
        }
    }

    /// Stores a reported call, to try its fixes again once the declared type of its result is known.
    pub(super) fn keep_trial(
        &mut self,
        bound: &BoundCall,
        report: &Diagnostic<ParamPlace>,
        placed: &Diagnostic<Place>,
    ) {
        self.tried = Some(Box::new(Tried { bound: bound.clone(), report: report.clone(), placed: placed.clone() }));
    }

    /// Stores a reported access to a field at `span`, with the span of its `index` and the type `tuple`, to try other
    /// fields once the declared type of the field is known.
    pub(super) fn keep_field(&mut self, span: Span, index: Span, tuple: &StructInfo) {
        self.tried_field = Some((span, index, tuple.clone()));
    }

    /// Suggests the fields of a tuple that have the declared type, for an access at `span` to a field that does not
    /// exist.
    fn try_fields(&mut self, span: Span, declared: &StructInfo) {
        let Some((_, index, tuple)) = self.tried_field.take_if(|(of, ..)| *of == span) else { return };
        let bounds = self.bounds.clone();
        let fits = |field: &StructInfo| reconcile(declared, field, &bounds).clash.is_none();
        let fields = tuple.as_tuple().unwrap_or_default().iter().enumerate().filter(|(_, field)| fits(field));
        let fixes: Vec<Fix<Place>> = fields
            .take(MOST_FIXES)
            .map(|(at, _)| replace_fix(index, format!("use field {at}"), at.to_string()))
            .collect();
        let of_it = |it: &Diagnostic<Place>| it.code == Code::TupleIndexOutOfRange && it.primary == Place::Here(index);
        if let Some(diagnostic) = self.diagnostics.iter_mut().rev().find(|it| of_it(it)) {
            diagnostic.fixes = fixes;
        }
    }

    /// Tries the fixes of the value at `call` again, now that its declared type is known.
    pub(super) fn try_again(&mut self, call: Span, declared: &StructInfo) {
        self.try_fields(call, declared);
        let Some(tried) = self.tried.take_if(|tried| tried.bound.call_span == call) else { return };
        let Tried { bound, report, mut placed } = *tried;
        let of_it = |it: &Diagnostic<Place>| it.primary == placed.primary && it.message == placed.message;
        let Some(at) = self.diagnostics.iter().rposition(of_it) else { return };
        self.try_fixes(&bound, &report, &mut placed, Some(declared));
        if let Some(diagnostic) = self.diagnostics.get_mut(at) {
            diagnostic.fixes = placed.fixes;
        }
    }

    /// Returns the fix that passes a variable for parameter `at`, the only one without an argument, if the call is
    /// valid with it.
    pub(super) fn missing_operand(&mut self, bound: &BoundCall, at: usize) -> Option<Fix<Place>> {
        let takes_value = |param: &&Param| matches!(param.kind, ParamKind::Tensor | ParamKind::Any);
        let param = bound.schema.params.get(at).filter(takes_value)?;
        let bounds = self.bounds.clone();
        let given: Vec<IrExpr> = bound.slots.iter().filter_map(operand).cloned().collect();
        let passed = self.variables_to_pass(&[name(param.name)], &given).into_iter().find_map(|variable| {
            let IrKind::Var(called) = variable.kind else { return None };
            let change = (at, Argument::Operand(variable), called.to_string());
            type_with(bound, std::slice::from_ref(&change), &bounds).map(|_| change)
        })?;
        self.written(bound, Candidate { title: format!("pass `{}`", passed.2), changes: vec![passed] })
    }

    /// Converts a candidate to edits: a written argument is replaced, another one is inserted before the call's
    /// closing parenthesis.
    fn written(&self, bound: &BoundCall, candidate: Candidate) -> Option<Fix<Place>> {
        let mut edits = Vec::new();
        for (at, _, text) in candidate.changes {
            let param = bound.schema.params.get(at)?;
            let edit = match bound.spans.get(at)? {
                Some(span) => (Place::Here(*span), self.operand_text(bound, *span, &text)),
                None => {
                    let (place, comma) = before_end(self.segment.text(), bound.call_span)?;
                    (Place::Here(place), format!("{comma}{}={text}", param.name))
                }
            };
            edits.push(edit);
        }
        Some(Fix { title: candidate.title, edits, safe: false })
    }

    /// Expands the text of a change: `{n}` is the current text of parameter `n`, `{}` that of the changed argument.
    fn operand_text(&self, bound: &BoundCall, own: Span, text: &str) -> String {
        let source = |span: Span| self.segment.text().get(span.range()).unwrap_or_default();
        let mut text = text.replace("{}", source(own));
        for (at, span) in bound.spans.iter().enumerate() {
            if let Some(span) = span {
                text = text.replace(&format!("{{{at}}}"), source(*span));
            }
        }
        text
    }
}

/// Whether the call is still wrong after a fix of the rule that sets one parameter to a string.
fn is_useless(bound: &BoundCall, report: &Diagnostic<ParamPlace>, fix: &Fix<Place>, bounds: &Bounds) -> bool {
    let original = report.fixes.iter().find(|other| other.title == fix.title);
    let Some([(ParamPlace::Param(param), text)]) = original.map(|fix| &fix.edits[..]) else { return false };
    let (Some(value @ Attr::Str(_)), Some(at)) = (literal(text), bound.position(param)) else { return false };
    let change = (at, Argument::Attr(value), String::new());
    type_with(bound, std::slice::from_ref(&change), bounds).is_none()
}

/// Returns the fixes of the rule that set an attribute which the call leaves out.
fn advised(bound: &BoundCall, report: &Diagnostic<ParamPlace>) -> Vec<Candidate> {
    let of_fix = |fix: &Fix<ParamPlace>| {
        let [(ParamPlace::Param(param), text)] = &fix.edits[..] else { return None };
        let at = bound.position(param).filter(|at| bound.spans.get(*at).is_some_and(Option::is_none))?;
        let changes = vec![(at, Argument::Attr(literal(text)?), text.clone())];
        Some(Candidate { title: fix.title.clone(), changes })
    };
    report.fixes.iter().filter_map(of_fix).collect()
}

/// Reads a string in double quotes or an integer.
fn literal(text: &str) -> Option<Attr> {
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(string) => Some(Attr::Str(string.into())),
        None => text.parse::<i64>().ok().map(|value| Attr::Int(value.into())),
    }
}

/// Returns the type that the rule infers with these arguments changed.
fn type_with(bound: &BoundCall, changes: &[(usize, Argument, String)], bounds: &Bounds) -> Option<StructInfo> {
    let mut slots = bound.slots.clone();
    for (at, argument, _) in changes {
        if let Some(slot) = slots.get_mut(*at) {
            *slot = argument.clone();
        }
    }
    rule_type(bound.schema, &slots, bounds)
}

fn rule_type(schema: &'static rx_ops::Schema, slots: &[Argument], bounds: &Bounds) -> Option<StructInfo> {
    let args: Vec<Arg<'_>> = slots.iter().map(Arg::from).collect();
    (schema.infer)(&CallInfo::new(schema, &args, bounds)).ok().filter(|ty| !ty.is_error())
}

/// Returns the changes to try, the likeliest first.
fn candidates(bound: &BoundCall, report: &Diagnostic<ParamPlace>) -> Vec<Candidate> {
    let guilty = match report.primary {
        ParamPlace::Param(param) | ParamPlace::Element(param, _) => Some(param),
        _ => None,
    };
    let mut found = advised(bound, report);
    let params = || bound.schema.params.iter().enumerate();
    let own = params().filter(|(_, param)| Some(param.name) == guilty);
    for (at, param) in own {
        match param.kind {
            ParamKind::Attr(kind) => of_attribute(bound, at, param, kind, &mut found),
            ParamKind::Shape | ParamKind::ShapeValue | ParamKind::Prims => of_elements(bound, at, param, &mut found),
            _ => of_operand(bound, at, report.code, &mut found),
        }
    }
    layouts::add(bound, &mut found);
    swaps(bound, &mut found);
    // The default of another attribute, such as `groups` or `strides`, may make the call valid.
    for (at, param) in params().filter(|(_, param)| param.is_attr() && Some(param.name) != guilty) {
        of_default(bound, at, param, &mut found);
    }
    found
}

fn attribute(at: usize, param: &Param, value: Attr, text: String) -> Candidate {
    Candidate { title: format!("use {}={text}", param.name), changes: vec![(at, Argument::Attr(value), text)] }
}

/// Adds the default of a parameter that is passed another value.
fn of_default(bound: &BoundCall, at: usize, param: &Param, found: &mut Vec<Candidate>) {
    let written = bound.spans.get(at).copied().flatten().is_some();
    if let (true, Some(value), Some(text)) = (written, param.default.to_attr(), param.default.text()) {
        found.push(attribute(at, param, value, text));
    }
}

/// Adds other values of an attribute: those of a choice, axes that the tensors have, lists of other lengths.
fn of_attribute(bound: &BoundCall, at: usize, param: &Param, kind: AttrKind, found: &mut Vec<Candidate>) {
    let given = match bound.slots.get(at) {
        Some(Argument::Attr(attr)) => Some(attr),
        _ => None,
    };
    match kind {
        AttrKind::Choice(choices) => {
            for choice in choices {
                found.push(attribute(at, param, Attr::Str((*choice).into()), format!("\"{choice}\"")));
            }
        }
        AttrKind::Int | AttrKind::IntOrNone | AttrKind::Ints | AttrKind::IntList | AttrKind::Any => {
            let list = kind == AttrKind::IntList || matches!(given, Some(Attr::List(_)));
            of_default(bound, at, param, found);
            for values in integers(bound, given) {
                let value: Vec<Attr> = values.iter().map(|value| Attr::Int((*value).into())).collect();
                match (&values[..], list || values.len() > 1) {
                    ([one], false) => found.push(attribute(at, param, Attr::Int((*one).into()), one.to_string())),
                    _ => found.push(attribute(at, param, Attr::List(value), format!("{values:?}"))),
                }
            }
        }
        _ => of_default(bound, at, param, found),
    }
}

/// Returns integers near the given ones: as axes of the operands, or in a list of another length.
fn integers(bound: &BoundCall, given: Option<&Attr>) -> Vec<Vec<i64>> {
    let ndim = bound.slots.iter().filter_map(operand).find_map(|operand| operand.ty.as_tensor()?.shape.ndim());
    let last = ndim.and_then(|ndim| i64::try_from(ndim).ok()).map_or(0, |ndim| ndim - 1).max(0);
    match given {
        Some(Attr::List(items)) => {
            let values: Option<Vec<i64>> = items.iter().map(Attr::as_int).collect();
            let Some(values) = values.filter(|values| values.len() <= 16) else { return Vec::new() };
            let inside: Vec<i64> = values.iter().map(|value| (*value).clamp(-1 - last, last)).collect();
            let positive = values.iter().map(|value| value.saturating_abs()).collect();
            let resized = |length: usize| {
                let last = values.last().copied().unwrap_or(0);
                values.iter().copied().chain(std::iter::repeat(last)).take(length).collect()
            };
            let lengths = [values.len() + 1, values.len().saturating_sub(1), 1, 2, 3, 4, 6];
            let padded = (1..=8).map(|value| vec![value; values.len()]);
            let permutation = (0..=last).collect();
            let resized = lengths.into_iter().filter(|length| *length > 0).map(resized);
            [inside, positive, permutation].into_iter().chain(resized).chain(padded).collect()
        }
        Some(attr) => {
            let value = attr.as_int().unwrap_or(0);
            let axis = if value < 0 { 0 } else { last };
            vec![vec![axis], vec![-1], vec![0], vec![1], vec![value.saturating_abs()]]
        }
        None => vec![vec![0], vec![-1], (0..=last).collect()],
    }
}

/// Adds shapes with one dim replaced by -1, to be inferred.
fn of_elements(bound: &BoundCall, at: usize, param: &Param, found: &mut Vec<Candidate>) {
    let Some(IrExpr { kind: IrKind::Shape(dims), ty: StructInfo::Shape(Shape::Known(_)), span }) =
        bound.slots.get(at).and_then(operand)
    else {
        return;
    };
    for axis in 0..dims.len().min(16) {
        let mut dims = dims.clone();
        if let Some(dim) = dims.get_mut(axis) {
            *dim = Dim::constant(-1);
        }
        let shown: Vec<String> = dims.iter().map(Dim::to_string).collect();
        let text = format!("R.shape([{}])", shown.join(", "));
        let title = format!("use {}=[{}]", param.name, shown.join(", "));
        found.push(Candidate { title, changes: vec![(at, Argument::Operand(shape(dims, *span)), text)] });
    }
}

/// Adds a tensor operand cast to another dtype, or transposed.
fn of_operand(bound: &BoundCall, at: usize, code: Code, found: &mut Vec<Candidate>) {
    let Some(own) = bound.slots.get(at).and_then(operand) else { return };
    let Some(tensor) = own.ty.as_tensor() else { return };
    match code {
        Code::DtypeMismatch | Code::IndexDtype => {
            let others = bound.slots.iter().filter_map(operand).filter_map(|other| other.ty.as_tensor()?.dtype);
            let fallback = [DType::INT64, DType::FLOAT32];
            let mut seen = Vec::new();
            for dtype in others.chain(fallback).filter(|dtype| Some(*dtype) != tensor.dtype) {
                if !seen.contains(&dtype) {
                    seen.push(dtype);
                    let dtype_attr = Argument::Attr(Attr::Str(dtype.to_string().into()));
                    derived(own, at, "astype", vec![dtype_attr], &format!("\"{dtype}\""), found);
                }
            }
        }
        Code::MatmulReductionMismatch | Code::BroadcastMismatch | Code::TensorNdimMismatch | Code::ShapeMismatch => {
            derived(own, at, "permute_dims", Vec::new(), "", found);
        }
        _ => {}
    }
}

/// Adds `R.op(operand, more)` in place of an operand.
fn derived(own: &IrExpr, at: usize, op: &'static str, more: Vec<Argument>, text: &str, found: &mut Vec<Candidate>) {
    let Some(schema) = rx_ops::find(name(op)) else { return };
    let mut slots = vec![Argument::Operand(own.clone())];
    slots.extend(more);
    slots.resize(schema.params.len(), Argument::Absent);
    let Some(ty) = rule_type(schema, &slots, &Bounds::default()) else { return };
    let call = Call { callee: Callee::Op(name(op)), arguments: slots };
    let changed = IrExpr { kind: IrKind::Call(Arc::new(call)), ty, span: own.span };
    let comma = if text.is_empty() { "" } else { ", " };
    let title = match text {
        "" => format!("insert R.{op}"),
        keyword if keyword.contains('=') => format!("insert R.{op} with {keyword}"),
        dtype => format!("insert R.{op} to {dtype}"),
    };
    found.push(Candidate {
        title,
        changes: vec![(at, Argument::Operand(changed), format!("R.{op}({{}}{comma}{text})"))],
    });
}

/// Adds the swaps of two operands.
fn swaps(bound: &BoundCall, found: &mut Vec<Candidate>) {
    let written: Vec<usize> = (0..bound.slots.len())
        .filter(|at| bound.spans.get(*at).copied().flatten().is_some())
        .filter(|at| bound.slots.get(*at).and_then(operand).is_some())
        .take(6)
        .collect();
    for (nth, first) in written.iter().enumerate() {
        for second in written.iter().skip(nth + 1) {
            let (Some(a), Some(b)) = (bound.slots.get(*first), bound.slots.get(*second)) else { continue };
            // The swap of a distributed and a whole tensor is no fix: an elementwise operator rejects the pair in
            // either order.
            let is_distributed =
                |side: &Argument| operand(side).is_some_and(|it| matches!(it.ty, StructInfo::DTensor(_)));
            if bound.schema.cost.is_elementwise() && is_distributed(a) != is_distributed(b) {
                continue;
            }
            let names = |at: &usize| bound.schema.params.get(*at).map_or("", |param| param.name);
            found.push(Candidate {
                title: format!("exchange `{}` and `{}`", names(first), names(second)),
                changes: vec![
                    (*first, b.clone(), format!("{{{second}}}")),
                    (*second, a.clone(), format!("{{{first}}}")),
                ],
            });
        }
    }
}

fn operand(argument: &Argument) -> Option<&IrExpr> {
    match argument {
        Argument::Operand(expr) => Some(expr),
        _ => None,
    }
}
