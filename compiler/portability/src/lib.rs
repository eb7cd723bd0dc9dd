//! Portability checks: reports the parts of a correct program that a selected release of TVM (0.25, 0.26, 0.27) cannot
//! parse, lower or build.
//!
//! There are two checks for each item. Both are pure and run only if a release is selected, on programs without errors.
//! [`of_text`] examines the syntax trees for spellings that the release's parser rejects. [`of_function`] examines the
//! typed body of a Relax function for calls that the default pipelines cannot lower.
//!
//! Each submodule checks one kind of limit. The limits of operators are defined in `rx_ops::tvm`, those of spellings in
//! the table of dialects (`since`, `still_read`).

mod call_spans;
mod declarations;
mod layouts;
mod legalization;
mod schedule;
mod spelling;
mod symbols;
mod text;
mod tuples;

use rx_analysis::body::each_segment;
use rx_analysis::entry::Entry;
use rx_analysis::function::FunctionCheck;
use rx_base::name::{NameMap, NameSet};
use rx_base::symbolic::Bounds;
use rx_base::{Diagnostic, Name, Span, TvmVersion};
use rx_context::{FileContext, ItemPlace};
use rx_ir::{Argument, Binding, BindingKind, Body, Call, Callee, Expr, ExprKind, StructInfo};
use rx_ops::{Arg, CallInfo, Param};
use rx_syntax::{Segment, Segments};

/// Reports the parts of an item's text that the parser of `version` rejects.
pub fn of_text(version: TvmVersion, segments: &Segments, file: &FileContext) -> Vec<Diagnostic<ItemPlace>> {
    let mut found = Vec::new();
    spelling::check(version, segments, file, &mut found);
    text::check(version, segments, file, &mut found);
    symbols::check(version, segments, file, &mut found);
    found
}

/// Reports the parts of a Relax function that the default pipelines of `version` cannot lower or build. `segments` and
/// `check` must belong to the same text, which must have no errors.
pub fn of_function(
    version: TvmVersion,
    segments: &Segments,
    check: &FunctionCheck,
    file: &FileContext,
) -> Vec<Diagnostic<ItemPlace>> {
    let (mut found, mut candidates, mut shapes) = (Vec::new(), Vec::new(), NameSet::default());
    each_segment(segments, check, file, |at, segment, recorded| {
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let known = std::mem::take(&mut shapes);
        let mut look = Look { version, segment, at: index, shapes: known, found: Vec::new(), candidates: Vec::new() };
        look.bindings(&recorded.bindings, true);
        if let Some(returned) = &recorded.returned {
            look.expr(returned, &returned.ty, None);
        }
        found.append(&mut look.found);
        candidates.append(&mut look.candidates);
        shapes = look.shapes;
    });
    if !candidates.is_empty() {
        let uses = Uses::of(segments, check, file);
        candidates.retain(|candidate| candidate.counts(&uses));
        found.extend(candidates.into_iter().map(|candidate| candidate.diagnostic));
    }
    found
}

/// The uses of a function's variables.
#[derive(Default)]
struct Uses {
    /// For each variable, one entry for each use: the operator that takes it, or `None` for other uses.
    by: NameMap<Vec<Option<&'static str>>>,
    /// Variables that are visible outside a dataflow block.
    visible: NameSet,
}

impl Uses {
    fn of(segments: &Segments, check: &FunctionCheck, file: &FileContext) -> Uses {
        let mut uses = Uses::default();
        for export in check.segments.iter().flat_map(|result| &result.exports) {
            if let Entry::Value { dataflow, .. } = &export.entry {
                match dataflow {
                    Some(_) => uses.visible.remove(&export.name),
                    None => uses.visible.insert(export.name),
                };
            }
        }
        each_segment(segments, check, file, |_, _, recorded| {
            let body = Body { bindings: recorded.bindings, result: recorded.returned, ..Body::default() };
            uses.body(&body);
        });
        uses
    }

    fn body(&mut self, body: &Body) {
        for binding in &body.bindings {
            match &binding.kind {
                BindingKind::Value { value, .. } | BindingKind::Unpack { value, .. } => self.expr(value, None),
                BindingKind::If { arms, otherwise, .. } => {
                    for (condition, body) in arms {
                        self.expr(condition, None);
                        self.body(body);
                    }
                    self.body(otherwise);
                }
                BindingKind::Function(function) => self.body(&function.body),
            }
        }
        body.result.iter().for_each(|result| self.expr(result, None));
    }

    fn expr(&mut self, expr: &Expr, by: Option<&'static str>) {
        match &expr.kind {
            ExprKind::Var(name) => self.by.entry(*name).or_default().push(by),
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.expr(item, None)),
            ExprKind::TupleGet(inner, _) | ExprKind::MatchCast(inner) => self.expr(inner, None),
            ExprKind::Call(call) => {
                let operator = match &call.callee {
                    Callee::Op(name) => rx_ops::find(*name).map(|schema| schema.name),
                    Callee::Value(function) => {
                        self.expr(function, None);
                        None
                    }
                    Callee::Global(_) => None,
                };
                for operand in operands(call) {
                    self.expr(operand, operator);
                }
            }
            _ => {}
        }
    }
}

/// Returns the operands of a call, with lists of operands flattened.
fn operands(call: &Call) -> impl Iterator<Item = &Expr> {
    call.arguments.iter().flat_map(|argument| match argument {
        Argument::Operand(operand) => std::slice::from_ref(operand),
        Argument::Operands(operands) => operands,
        _ => &[],
    })
}

/// The state of the check of one segment's calls.
struct Look<'a> {
    version: TvmVersion,
    segment: &'a Segment,
    at: u32,
    /// Variables bound to an explicit shape: `s = R.shape([m, n])`.
    shapes: NameSet,
    found: Vec<Diagnostic<ItemPlace>>,
    /// Diagnostics that are reported only if the result of the call is used in certain ways.
    candidates: Vec<schedule::Candidate>,
}

/// A call of an operator.
struct Site<'a> {
    operator: &'static str,
    params: &'static [Param],
    call: &'a Call,
    span: Span,
}

impl<'a> Site<'a> {
    /// Returns the argument passed for a parameter.
    fn argument(&self, name: &str) -> Option<&'a Argument> {
        self.call.arguments.get(self.params.iter().position(|param| param.name == name)?)
    }

    /// Returns the operand passed for a parameter.
    fn operand(&self, name: &str) -> Option<&'a Expr> {
        self.argument(name)?.as_operand()
    }

    /// Returns the string passed for an attribute.
    fn text(&self, name: &str) -> Option<&'a str> {
        match self.argument(name)? {
            Argument::Attr(attr) => attr.as_str(),
            _ => None,
        }
    }
}

impl Look<'_> {
    fn place(&self, span: Span) -> ItemPlace {
        ItemPlace::Segment(self.at, span)
    }

    fn body(&mut self, body: &Body) {
        self.bindings(&body.bindings, false);
        if let Some(result) = &body.result {
            self.expr(result, &result.ty, None);
        }
    }

    /// Checks bindings. Nested functions are reported for the outermost bindings only.
    fn bindings(&mut self, bindings: &[Binding], outermost: bool) {
        for binding in bindings {
            match &binding.kind {
                BindingKind::Value { variable, ty, value } => {
                    if matches!(value.kind, ExprKind::Shape(_)) {
                        self.shapes.insert(*variable);
                    }
                    self.expr(value, ty, Some(*variable));
                }
                BindingKind::Unpack { value, .. } => self.expr(value, &value.ty, None),
                BindingKind::If { arms, otherwise, .. } => {
                    for (condition, body) in arms {
                        self.expr(condition, &condition.ty, None);
                        self.body(body);
                    }
                    self.body(otherwise);
                }
                BindingKind::Function(function) => {
                    if outermost {
                        self.nested_function(function, binding.origin.statement);
                    }
                    self.body(&function.body);
                }
            }
        }
    }

    /// Checks an expression, innermost calls first. `ty` is the type that its users see. The recursion is bounded by
    /// the parser's limit on nesting.
    fn expr(&mut self, expr: &Expr, ty: &StructInfo, variable: Option<Name>) {
        match &expr.kind {
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.expr(item, &item.ty, None)),
            ExprKind::TupleGet(inner, _) | ExprKind::MatchCast(inner) => self.expr(inner, &inner.ty, None),
            ExprKind::Call(call) => {
                operands(call).for_each(|operand| self.expr(operand, &operand.ty, None));
                self.call(call, expr.span, ty, variable);
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &Call, span: Span, ty: &StructInfo, variable: Option<Name>) {
        let Callee::Op(name) = &call.callee else { return };
        let Some(schema) = rx_ops::find(*name) else { return };
        let site = Site { operator: schema.name, params: schema.params, call, span };
        let args: Vec<Arg<'_>> = call.arguments.iter().map(Arg::from).collect();
        let bounds = Bounds::default();
        let info = CallInfo::new(schema, &args, &bounds);
        let before = self.found.len();
        self.argument_tuple(&site);
        self.layouts(&site);
        if self.found.len() == before {
            self.legalization(&site, &info, ty);
        }
        if self.found.len() == before {
            self.schedule(&site, &info, variable);
        }
    }
}
