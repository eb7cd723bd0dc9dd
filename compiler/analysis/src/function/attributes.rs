//! Fixes that change an attribute of the call that determines a wrong shape.
//!
//! The reported value is followed through the bindings of the function, and through operators that keep the shape of
//! an operand, to a call that has the required type with another value of one attribute.
//!
//! ```text
//! lv: R.Tensor((1, 16, 14, 14), "float32") = R.nn.conv2d(x, w)
//! gv: R.Tensor((1, 16, 16, 16), "float32") = R.nn.relu(lv)      # error: axis 2 is 14, not 16
//! → use padding=[1, 1] in `lv`
//! lv: R.Tensor((1, 16, 16, 16), "float32") = R.nn.conv2d(x, w, padding=[1, 1])
//! ```
//!
//! A fix is offered if the function has fewer errors with it, also where it uses the values in other places.
//!
//! A check keeps no expressions, so the segments that the search passes through are elaborated again.

use super::memo::State;
use super::proposal::Trials;
use crate::body::recorded_segment;
use crate::elaborate::{Recorded, Row, RowKind, Wanted, before_end};
use crate::entry::{Entry, FACTS, FUNCTION_CONTEXT, FunctionContext};
use crate::readings::{self, Reading};
use crate::trace::{annotated_dim, argument_span};
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{Dim, Fix, Name, Span};
use rx_context::ItemPlace;
use rx_ir::{BindingKind, Call, Callee, Expr, ExprKind, StructInfo};
use rx_ops::{Arg, CallInfo, Suggestion};
use rx_syntax::ast::ExprKind as WrittenKind;
use std::sync::Arc;

/// The maximal number of values followed from the reported one.
const MOST_VALUES: usize = 16;

/// The maximal number of attributes of one call that are tried.
const MOST_TRIED: usize = 4;

/// The maximal number of fixes of one diagnostic.
const MOST_FIXES: usize = 2;

/// A replacement in the function's text.
type Edit = (ItemPlace, String);

/// Returns the title of the fix that changes an attribute of the reported value itself.
pub(super) fn title(suggestion: &Suggestion) -> String {
    format!("use {suggestion}")
}

/// A value that the search has reached.
struct Site {
    segment: u32,
    /// The number of the segment's exports before the value.
    exports: usize,
    value: Expr,
    /// The type that the value should have.
    wanted: StructInfo,
    /// The variable that the value is bound to; none if it is part of the reported value.
    variable: Option<Name>,
}

impl State {
    /// Returns the fixes that give a value of segment `at` its required type by another attribute of a call.
    pub(super) fn attribute_fixes(&self, wanted: &Wanted, at: u32, trials: &mut Trials<'_>) -> Vec<Fix<ItemPlace>> {
        let mut site = Site {
            segment: at,
            exports: wanted.exports as usize,
            value: wanted.value.clone(),
            wanted: wanted.ty.clone(),
            variable: None,
        };
        let mut annotations: Vec<Edit> = Vec::new();
        // Those of the reported value, which is the first site.
        let mut known = wanted.suggestions.as_ref();
        for _ in 0..MOST_VALUES {
            let next = match &site.value.kind {
                ExprKind::Var(variable) => self.definition(&site, *variable, &mut annotations),
                ExprKind::Call(call) => {
                    let found = match known.take() {
                        Some(found) => found,
                        None => {
                            &self.ask(&site, call, |info| rx_ops::suggestions(info, &site.wanted)).unwrap_or_default()
                        }
                    };
                    let fixes = self.fixes_of_call(&site, call, found, &annotations, trials);
                    if !fixes.is_empty() {
                        return fixes;
                    }
                    self.operand(&site, call)
                }
                _ => None,
            };
            match next {
                Some(next) => site = next,
                None => break,
            }
        }
        Vec::new()
    }

    /// Returns the value of a variable. If its binding has an annotation, adds the edits that make it state the
    /// required dims.
    fn definition(&self, site: &Site, variable: Name, annotations: &mut Vec<Edit>) -> Option<Site> {
        let (segment, span) = self.defined_before(variable, site.segment, site.exports)?;
        let result = self.results.get(segment as usize)?;
        let exports = result.exports.iter().position(|export| export.name == variable && export.span == Some(span))?;
        let is_own = |row: &&Row| row.kind == RowKind::Binding && row.name == variable && row.span == span;
        let row = result.rows.iter().find(is_own)?;
        let value = self.recorded(segment)?.bindings.iter().find_map(|binding| match &binding.kind {
            BindingKind::Value { variable: bound, value, .. } => {
                (*bound == variable && binding.origin.statement == row.statement).then(|| Expr::clone(value))
            }
            _ => None,
        })?;
        if !row.inferred {
            annotations.extend(self.annotation_edits(segment, row.statement, &row.ty, &site.wanted)?);
        }
        Some(Site { segment, exports, value, wanted: site.wanted.clone(), variable: Some(variable) })
    }

    /// Returns the operand that needs another shape for the call to have the required type.
    fn operand(&self, site: &Site, call: &Call) -> Option<Site> {
        let (at, wanted) = self.ask(site, call, |info| rx_ops::shaping_operand(info, &site.wanted))??;
        let value = call.arguments.get(at)?.as_operand()?.clone();
        Some(Site { segment: site.segment, exports: site.exports, value, wanted, variable: site.variable })
    }

    fn fixes_of_call(
        &self,
        site: &Site,
        call: &Call,
        found: &[Suggestion],
        annotations: &[Edit],
        trials: &mut Trials<'_>,
    ) -> Vec<Fix<ItemPlace>> {
        let fixes = found.iter().take(MOST_TRIED);
        let fixes = fixes.filter_map(|suggestion| self.attribute_fix(site, call, suggestion, annotations));
        fixes.filter(|fix| self.is_better_with(&fix.edits, trials)).take(MOST_FIXES).collect()
    }

    /// Returns the fix that sets an attribute of the call, and changes the annotations of the values computed from it.
    fn attribute_fix(
        &self,
        site: &Site,
        call: &Call,
        suggestion: &Suggestion,
        annotations: &[Edit],
    ) -> Option<Fix<ItemPlace>> {
        let Callee::Op(operator) = &call.callee else { return None };
        let schema = rx_ops::find(*operator)?;
        let at = schema.params.iter().position(|param| param.name == suggestion.param)?;
        let segment = self.segments.get(site.segment as usize)?;
        // An operator that is written in another way, such as `x.astype("float16")`, has its arguments elsewhere.
        let (cursor, written) = segment.call_at(site.value.span)?;
        let WrittenKind::Call { callee, .. } = &written.kind else { return None };
        if self.file.canonical_path(cursor.path(callee.tokens))? != format!("R.{}", schema.name) {
            return None;
        }
        let (span, text) = match argument_span(segment, site.value.span, schema, at, None) {
            Some(span) => (span, suggestion.value.to_string()),
            None => {
                let (span, comma) = before_end(segment.text(), site.value.span)?;
                (span, format!("{comma}{suggestion}"))
            }
        };
        let title = match site.variable {
            Some(variable) => format!("use {suggestion} in `{variable}`"),
            None => title(suggestion),
        };
        let mut edits = vec![(ItemPlace::Segment(site.segment, span), text)];
        edits.extend(annotations.iter().cloned());
        Some(Fix { title, edits, safe: false })
    }

    /// Returns the edits that replace the dims in the annotation of a statement, which declares the type `declared`,
    /// by those of `wanted`; `None` if the annotation would still contradict `wanted`.
    fn annotation_edits(
        &self,
        at: u32,
        statement: u32,
        declared: &StructInfo,
        wanted: &StructInfo,
    ) -> Option<Vec<Edit>> {
        let (declared, wanted) = (declared.as_tensor()?, wanted.as_tensor()?);
        let Some(own) = declared.shape.dims() else { return Some(Vec::new()) };
        let dims = wanted.shape.dims()?;
        if own.len() != dims.len() || (wanted.dtype.is_some() && declared.dtype != wanted.dtype) {
            return None;
        }
        let segment = self.segments.get(at as usize)?;
        let edit = |(axis, dim): (usize, &Dim)| {
            let span = annotated_dim(segment, statement, axis)?;
            Some((ItemPlace::Segment(at, span), self.visible_dim(dim)?))
        };
        let differs = |(axis, dim): &(usize, &Dim)| own.get(*axis) != Some(*dim);
        dims.iter().enumerate().filter(differs).map(edit).collect()
    }

    /// Formats a dim for any place in the body; `None` if it contains a symbol that the parameters do not bind.
    fn visible_dim(&self, dim: &Dim) -> Option<String> {
        let context = self.context(1, 0)?;
        let mut visible = !dim.is_error();
        dim.for_each_symbol(&mut |symbol| visible &= context.dims.bound.binary_search(&symbol).is_ok());
        visible.then(|| dim.to_string())
    }

    /// Calls `ask` with a call of an operator as the operator's rule sees it.
    fn ask<T>(&self, site: &Site, call: &Call, ask: impl FnOnce(&CallInfo<'_>) -> T) -> Option<T> {
        let Callee::Op(operator) = &call.callee else { return None };
        let schema = rx_ops::find(*operator)?;
        let arguments = readings::of_arguments(&call.arguments, Reading::Inferred);
        let args: Vec<Arg<'_>> = arguments.iter().map(Arg::from).collect();
        let bounds = self.bounds(site.segment, site.exports);
        Some(ask(&CallInfo::new(schema, &args, &bounds)))
    }

    /// Returns the facts about symbols that hold before export `exports` of segment `at`.
    fn bounds(&self, at: u32, exports: usize) -> Arc<Bounds> {
        let stated = self.context(at, exports).map(|context| context.bounds.clone()).unwrap_or_default();
        match self.entry_before(name(FACTS), at, exports) {
            Some(Entry::Facts(learned)) => Arc::new(learned.restated(&stated)),
            _ => stated,
        }
    }

    fn context(&self, at: u32, exports: usize) -> Option<&FunctionContext> {
        match self.entry_before(name(FUNCTION_CONTEXT), at, exports) {
            Some(Entry::Function(context)) => Some(&**context),
            _ => None,
        }
    }

    /// Returns the last definition of a name before export `exports` of segment `at`.
    pub(super) fn entry_before(&self, name: Name, at: u32, exports: usize) -> Option<&Entry> {
        let own = self.results.get(at as usize)?.exports.get(..exports)?;
        let here = own.iter().rev().find(|export| export.name == name).map(|export| &export.entry);
        here.or_else(|| self.definitions.lookup(name, at, &self.results))
    }

    /// Returns the segment and the span of the last definition of a name before export `exports` of segment `at`.
    fn defined_before(&self, name: Name, at: u32, exports: usize) -> Option<(u32, Span)> {
        let own = self.results.get(at as usize)?.exports.get(..exports)?;
        let here = own.iter().rev().filter(|export| export.name == name).find_map(|export| Some((at, export.span?)));
        here.or_else(|| self.definitions.place(name, at, &self.results))
    }

    /// Returns the typed bindings of a segment of the body.
    fn recorded(&self, at: u32) -> Option<&Recorded> {
        let index = at as usize;
        let before = self.results.get(index.checked_sub(1)?)?;
        let (segment, result) = (self.segments.get(index)?, self.results.get(index)?);
        let record = || recorded_segment(segment, &before.end, &self.file, result);
        Some(result.recorded.get_or_record(record))
    }
}
