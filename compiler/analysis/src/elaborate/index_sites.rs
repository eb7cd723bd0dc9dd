//! Bounds checks of index accesses: compares the known indices of a call such as `R.take` with the extent of the
//! indexed axis.

use super::bound_call::BoundCall;
use super::checker::Checker;
use crate::entry::{Entry, Place};
use rx_base::{Code, Diagnostic, Dim, Fix, Name, Severity, Span};
use rx_ir::values::Step;
use rx_ir::{Argument, ExprKind as IrKind, Requirement, StructInfo, TensorValues, Values};
use rx_ops::values::{Access, Judgement, Witness, describe, describe_range, judge, part_of};
use rx_ops::{Arg, CallInfo, Part, Site};
use rx_syntax::ast::{ExprKind, StatementKind};
use std::sync::Arc;

/// An access, as its diagnostics describe it.
pub(super) struct Described<'a> {
    /// The short name of the operator, such as `take`.
    pub(super) operator: &'a str,
    /// The known facts about the indices.
    pub(super) indices: &'a TensorValues,
    /// The indexed axis.
    pub(super) axis: usize,
    /// The extent of the axis.
    pub(super) extent: &'a Dim,
    /// Whether negative indices count from the end.
    pub(super) from_end: bool,
    /// The type of the indexed tensor; none if the indices select in the result, as in `R.one_hot`.
    pub(super) data: Option<&'a StructInfo>,
    /// The parameter that receives it; none if it belongs to a call inside a called function.
    pub(super) param: Option<&'a str>,
}

impl Described<'_> {
    /// Describes the indexed axis: ``axis 1 of `x`, which has size 16``.
    fn bound(&self) -> String {
        match (self.data, self.param) {
            (Some(_), Some(param)) => format!("axis {} of `{param}`, which has size {}", self.axis, self.extent),
            (Some(_), None) => format!("axis {} of size {}", self.axis, self.extent),
            (None, _) => format!("a depth of {}", self.extent),
        }
    }

    /// Returns the label of the indexed tensor: `R.Tensor((16, 16), dtype="float32"): axis 1 has size 16`.
    pub(super) fn data_label(&self) -> Option<String> {
        self.data.map(|ty| format!("{ty}: axis {} has size {}", self.axis, self.extent))
    }

    /// Creates the error that an index is out of bounds.
    pub(super) fn certain(&self, witness: &Witness, place: Place) -> Diagnostic<Place> {
        let (message, label) = match witness {
            Witness::EmptyAxis => ("every index is out of bounds".to_owned(), String::new()),
            Witness::Element { value, wrong, count, first } => {
                let held = describe(self.indices).unwrap_or_default();
                let label = match (wrong, count) {
                    (_, 1) => format!("is {value}"),
                    (wrong, count) if wrong == count => format!("holds {held}: all {count} values are out of bounds"),
                    _ => {
                        let side = if *value < 0 { "out of bounds".to_owned() } else { format!(">= {}", self.extent) };
                        let are = if *wrong == 1 { "is" } else { "are" };
                        format!("holds {held}: {wrong} of {count} values {are} {side} (first: element {first})")
                    }
                };
                (format!("index {value} is out of bounds"), label)
            }
            Witness::Value(value) => {
                let label = describe_range(self.indices.low().as_ref(), self.indices.high().as_ref());
                (
                    format!("index {value} is out of bounds"),
                    label.map(|held| format!("holds {held}")).unwrap_or_default(),
                )
            }
        };
        let message = format!("{}: {message} for {}", self.operator, self.bound());
        let report = Diagnostic::new(Code::TakeIndexOutOfBounds, place, message).with_primary_label(label);
        self.with_rule(report)
    }

    /// Creates the warning that an index may be out of bounds.
    pub(super) fn possible(&self, end: &Dim, place: Place) -> Diagnostic<Place> {
        let message = format!("{}: index {end} may be out of bounds for {}", self.operator, self.bound());
        let held = describe(self.indices).unwrap_or_default();
        let report = Diagnostic::new(Code::TakeIndexMaybeOutOfBounds, place, message)
            .with_primary_label(format!("holds {held}"));
        let report = match (self.extent.as_constant(), end.as_constant()) {
            (Some(_), Some(_)) => report,
            _ => report.with_note(format!("it holds only for {}", self.condition(end))),
        };
        self.with_rule(report)
    }

    /// Returns the condition on the symbols under which the index `end` is in bounds.
    fn condition(&self, end: &Dim) -> String {
        match (end.as_constant(), self.extent.as_constant()) {
            (Some(end), _) if end >= 0 => format!("{} >= {}", self.extent, end.saturating_add(1)),
            (None, Some(extent)) => format!("{end} <= {}", extent.saturating_sub(1)),
            _ => format!("{} > {end}", self.extent),
        }
    }

    fn with_rule(&self, report: Diagnostic<Place>) -> Diagnostic<Place> {
        let last = self.extent - &Dim::constant(1);
        if self.extent.as_constant() == Some(0) {
            return report.with_note("an axis of size 0 has no element");
        }
        match (self.data, self.from_end) {
            (None, _) => report.with_note(format!("indices are 0 to {last}; any other turns nothing on")),
            (_, true) => {
                report.with_note(format!("indices are {} to {last}; negative ones count from the end", -self.extent))
            }
            (_, false) => report.with_note(format!("indices are 0 to {last}; negative ones do not count from the end")),
        }
    }
}

impl Checker<'_> {
    /// Judges and counts the accesses of a call; reports those out of bounds. An open access whose indices depend on
    /// parameters becomes a requirement on the function's callers.
    pub(super) fn check_sites(&mut self, bound: &BoundCall) {
        let Some(sites) = bound.schema.traits.sites else { return };
        let args: Vec<Arg<'_>> = bound.slots.iter().map(Arg::from).collect();
        let bounds = self.bounds.clone();
        let call = CallInfo::new(bound.schema, &args, &bounds);
        for site in sites(&call) {
            if site.guarded {
                self.index_sites.proved += 1;
                continue;
            }
            let known = bound
                .position(site.indices)
                .and_then(|at| bound.slots.get(at))
                .and_then(|slot| self.argument_values(slot));
            let (indices, ty) = part_of(&call, &known, &site);
            let Some(extent) = &site.extent else {
                self.index_sites.open += 1;
                continue;
            };
            let judgement = judge(&Access { indices: &indices, ty: &ty, extent, from_end: site.from_end }, &bounds);
            match &judgement {
                Judgement::Proved => self.index_sites.proved += 1,
                Judgement::Certain(_) => self.index_sites.certain += 1,
                Judgement::Open | Judgement::Possible(_) => self.index_sites.open += 1,
            }
            self.report_site(bound, &site, extent, (&indices, &ty), &judgement);
            let reported = matches!(judgement, Judgement::Possible(_));
            if matches!(judgement, Judgement::Open | Judgement::Possible(_))
                && self.nesting == 0
                && indices.term.is_some()
            {
                let requirement = Requirement {
                    operator: bound.schema.name.into(),
                    indices: TensorValues { origin: None, ..indices },
                    indices_ty: ty,
                    data_ty: site.data.map_or(StructInfo::Error, |data| call.ty(data).clone()),
                    axis: site.axis,
                    extent: extent.clone(),
                    from_end: site.from_end,
                    function: None,
                    variable: self.bound_variable(),
                    conditional: self.blocks > 0,
                    reported,
                };
                self.require(requirement);
            }
        }
    }

    /// Records an access whose indices depend on parameters, for the checks of callers.
    pub(super) fn require(&mut self, requirement: Requirement) {
        /// The maximal number of requirements of a segment.
        const MOST: usize = 64;
        if self.requirements.len() < MOST {
            self.requirements.push(requirement);
        }
    }

    /// Returns the variable that the current statement binds.
    fn bound_variable(&self) -> Option<Name> {
        let statement = self.statement_at(self.statement as usize)?;
        let target = match &statement.tree.kind {
            StatementKind::Assign { targets, .. } => targets.first()?,
            StatementKind::AnnAssign { target, .. } => target,
            _ => return None,
        };
        let segment = self.segment;
        matches!(target.kind, ExprKind::Name).then(|| segment.cursor(statement).name(target.tokens.start))
    }

    fn report_site(
        &mut self,
        bound: &BoundCall,
        site: &Site,
        extent: &Dim,
        (indices, ty): (&TensorValues, &StructInfo),
        judgement: &Judgement,
    ) {
        let (place, operand) = self.indices_place(bound, site);
        let described = Described {
            operator: bound.schema.name.rsplit('.').next().unwrap_or(bound.schema.name),
            indices,
            axis: site.axis,
            extent,
            from_end: site.from_end,
            data: site.data.and_then(|data| bound.operand(data)).map(|data| &data.ty),
            param: site.data,
        };
        let mut report = match judgement {
            Judgement::Certain(witness) => described.certain(witness, Place::Here(place)),
            Judgement::Possible(end) => described.possible(&end.value, Place::Here(place)),
            Judgement::Proved | Judgement::Open => return,
        };
        report.message = self.message_with_variables(bound, &report.message);
        if let (Some(label), Some(data)) = (described.data_label(), site.data) {
            report = report.with_label(Place::Here(bound.span(data)), label);
        }
        report = self.with_origins(report, indices.origin.as_ref());
        if extent.as_constant() != Some(0) {
            report = self.with_bounds_fixes(report, bound, site, extent, ty, operand);
        }
        self.report(report);
    }

    /// Returns the span of an access's indices, and whether that span is an expression that a fix can wrap.
    fn indices_place(&self, bound: &BoundCall, site: &Site) -> (Span, bool) {
        let whole = bound.span(site.indices);
        let slot = bound.position(site.indices).and_then(|at| bound.slots.get(at));
        let written = bound.position(site.indices).and_then(|at| bound.spans.get(at).copied().flatten()).is_some();
        match (site.part, slot) {
            (Part::Element(at), Some(Argument::Operand(expr))) => match &expr.kind {
                IrKind::Tuple(items) => (items.get(at).map_or(whole, |item| item.span), written),
                _ => (whole, written && expr.ty.as_tensor().is_some()),
            },
            _ => (whole, written),
        }
    }

    /// Adds labels at the definitions of the variables that the values passed through, the last one first.
    pub(super) fn with_origins(
        &mut self,
        mut report: Diagnostic<Place>,
        origin: Option<&Arc<Step>>,
    ) -> Diagnostic<Place> {
        let mut next = origin.cloned();
        while let Some(step) = next {
            // If a variable of that name has been bound again, its place belongs to another value.
            if let Some(Entry::Value { values: Some(values), .. }) = self.lookup(step.variable)
                && let Values::Tensor(tensor) = &*values
                && tensor.origin.as_ref() == Some(&step)
                && let Some(held) = describe(tensor)
            {
                let place = self.definition_of(step.variable);
                if place != report.primary {
                    report = report.with_label(place, format!("`{}` holds {held}", step.variable));
                }
            }
            next = step.from.clone();
        }
        report
    }

    /// Adds fixes: indices clamped to the axis, or taken modulo its size.
    fn with_bounds_fixes(
        &mut self,
        mut report: Diagnostic<Place>,
        bound: &BoundCall,
        site: &Site,
        extent: &Dim,
        ty: &StructInfo,
        is_written: bool,
    ) -> Diagnostic<Place> {
        let last = extent - &Dim::constant(1);
        let has_mode = bound.schema.params.iter().any(|param| param.name == "mode");
        if has_mode {
            report = report
                .with_help(format!("use mode=\"clip\" (clamps to {last}) or mode=\"wrap\" (index modulo {extent})"));
            if let Some(fix) =
                self.mode_fix(bound, "clip", "use mode=\"clip\": an index out of bounds takes the nearest", true)
            {
                report = report.with_fix(fix);
            }
        }
        let (place, _) = self.indices_place(bound, site);
        let is_tensor = ty.as_tensor().is_some() && site.data.is_some();
        if is_written && is_tensor {
            report = self.with_limit_fixes(report, place, extent, site.from_end, ty, !has_mode);
        }
        if has_mode
            && let Some(fix) = self.mode_fix(
                bound,
                "wrap",
                "use mode=\"wrap\", which changes the meaning: an index counts modulo the size",
                false,
            )
        {
            report = report.with_fix(fix);
        }
        report
    }

    /// Adds fixes that wrap the index tensor at `place` in `R.clip` or `R.floor_mod`.
    pub(super) fn with_limit_fixes(
        &self,
        mut report: Diagnostic<Place>,
        place: Span,
        extent: &Dim,
        from_end: bool,
        ty: &StructInfo,
        alone: bool,
    ) -> Diagnostic<Place> {
        let last = extent - &Dim::constant(1);
        let least = if from_end { -extent } else { Dim::constant(0) };
        let (start, end) =
            (Place::Here(Span::new(place.start, place.start)), Place::Here(Span::new(place.end, place.end)));
        let wrap = |before: &str, after: String| vec![(start.clone(), before.to_owned()), (end.clone(), after)];
        report = report.with_fix(Fix {
            title: format!("limit the indices: R.clip(…, {least}, {last})"),
            edits: wrap("R.clip(", format!(", {least}, {last})")),
            safe: alone,
        });
        if let (true, Some(size), Some(dtype)) =
            (alone, extent.as_constant(), ty.as_tensor().and_then(|tensor| tensor.dtype))
        {
            report = report.with_fix(Fix {
                title: format!("count modulo {size}, which changes the meaning: R.floor_mod"),
                edits: wrap("R.floor_mod(", format!(", R.const({size}, \"{dtype}\"))")),
                safe: false,
            });
        }
        report
    }

    /// Returns the fix that sets the `mode` of a call.
    fn mode_fix(&self, bound: &BoundCall, mode: &str, title: &str, safe: bool) -> Option<Fix<Place>> {
        let written = bound.position("mode").and_then(|at| bound.spans.get(at).copied().flatten());
        let edit = match written {
            Some(span) => (Place::Here(span), format!("\"{mode}\"")),
            None => {
                let source = self.segment.text().get(bound.call_span.start as usize..bound.call_span.end as usize)?;
                let inside = source.strip_suffix(')')?;
                let end = bound.call_span.end.checked_sub(1)?;
                let comma = if inside.trim_end().ends_with(',') { "" } else { ", " };
                (Place::Here(Span::new(end, end)), format!("{comma}mode=\"{mode}\""))
            }
        };
        Some(Fix { title: title.to_owned(), edits: vec![edit], safe })
    }
}

/// Turns an out-of-bounds error into a warning, for an access that may not be reached.
pub(super) fn softened(mut report: Diagnostic<Place>) -> Diagnostic<Place> {
    report.code = Code::TakeIndexMaybeOutOfBounds;
    report.severity = Severity::Warning;
    report.with_note("the access is in a branch that may not be taken")
}
