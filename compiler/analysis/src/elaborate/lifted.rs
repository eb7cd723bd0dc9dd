//! Checks calls of functions with prepared weights. After `LiftTransformParams`, `main` expects the weights that
//! `main_transform_params` returns.
//!
//! ```text
//! cls.main(x, w)                               # wrong: w is the raw weight
//! params = cls.main_transform_params((w,))
//! cls.main(x, params[0])                       # right
//! ```

use super::checker::Checker;
use crate::entry::{Place, mistake};
use rx_base::name::name;
use rx_base::{Code, Diagnostic, Fix, Name, Span};
use rx_context::ItemPart;
use rx_context::file_context::TRANSFORM_PARAMS;
use rx_ir::{Expr as IrExpr, FunctionSignature, Signature, StructInfo, Term, Values};

impl Checker<'_> {
    /// Returns the function that prepares the weights of `function`, and the index of the first weight.
    fn weights_of(&self, function: Name, signature: &FunctionSignature) -> Option<(Name, usize)> {
        let first = usize::try_from(signature.num_input?).ok().filter(|first| *first < signature.params.len())?;
        let transform = name(&format!("{function}{TRANSFORM_PARAMS}"));
        self.file.items.contains(&transform).then_some((transform, first))
    }

    /// Warns if a parameter of the caller is passed as a prepared weight unchanged.
    pub(super) fn check_weights(
        &mut self,
        function: Name,
        signature: &FunctionSignature,
        args: &[IrExpr],
        callee_span: Span,
    ) {
        let Some((transform, first)) = self.weights_of(function, signature).filter(|_| self.nesting == 0) else {
            return;
        };
        let Some(caller) = self.function_context().filter(|caller| caller.name != transform) else { return };
        // The caller's own weights may have been prepared by its callers.
        let is_raw = |index: usize| {
            caller.num_input.is_none_or(|inputs| usize::try_from(inputs).is_ok_and(|inputs| index < inputs))
        };
        let mut raw = Vec::new();
        for (at, arg) in args.iter().enumerate().skip(first) {
            if let Some(Values::Tensor(values)) = self.values_of(arg).as_deref()
                && let Some(Term::Param { index, .. }) = values.term.as_deref()
                && is_raw(*index as usize)
            {
                raw.push((at, arg));
            }
        }
        let Some((at, arg)) = raw.first().copied() else { return };
        let param = signature.params.get(at).map_or(name("_"), |(param, _)| *param);
        let message = format!(
            "`{param}` of `{function}` wants a weight that `{transform}` has prepared, this is a parameter of `{}`",
            caller.name
        );
        let mut report = mistake(Code::UntransformedParam, arg.span, message)
            .with_primary_label("passed as it is")
            .with_label(Place::param(function, at), "the prepared weight")
            .with_label(Place::Item(transform, ItemPart::Name), "this function prepares it")
            .with_note(format!(
                "`{function}` has num_input={first}: parameters from `{}` on are results of `{transform}`",
                signature.params.get(first).map_or(name("_"), |(param, _)| *param)
            ))
            .with_help(format!("call `{transform}` on the raw weights and pass the fields of its result"));
        for (_, other) in raw.iter().skip(1) {
            report = report.with_label(Place::Here(other.span), "raw, too");
        }
        if let Some(fix) = self.transform_fix(transform, &args[first..], raw.len(), callee_span) {
            report = report.with_fix(fix);
        }
        self.report(report);
    }

    /// Explains in the report of a wrong argument that it should be a prepared weight.
    pub(super) fn with_weight_note(
        &mut self,
        report: Diagnostic<Place>,
        function: Name,
        at: usize,
        args: &[IrExpr],
        callee_span: Span,
    ) -> Diagnostic<Place> {
        let Some(signature) = self.asked.signature(function) else { return report };
        let Signature::Relax(signature) = &*signature else { return report };
        let Some((transform, first)) = self.weights_of(function, signature).filter(|(_, first)| at >= *first) else {
            return report;
        };
        let weight = signature.params.get(first).map_or(name("_"), |(param, _)| *param);
        let report = report.with_note(format!(
            "`{function}` has num_input={first}: parameters from `{weight}` on are produced by `{transform}`"
        ));
        let weights = args.get(first..).unwrap_or_default();
        match self.transform_fix(transform, weights, weights.len(), callee_span) {
            Some(fix) => report.with_fix(fix),
            None => report,
        }
    }

    /// Returns the fix that prepares all weights of a call before it, if they match the parameters of the preparing
    /// function.
    fn transform_fix(&mut self, transform: Name, weights: &[IrExpr], raw: usize, callee: Span) -> Option<Fix<Place>> {
        let signature = self.asked.signature(transform)?;
        let Signature::Relax(signature) = &*signature else { return None };
        let [(_, StructInfo::Tuple(wanted))] = &signature.params[..] else { return None };
        if raw != weights.len() || wanted.len() != weights.len() {
            return None;
        }
        let bounds = self.bounds.clone();
        let fits = |(wanted, given): (&StructInfo, &IrExpr)| {
            crate::reconcile::reconcile(wanted, &given.ty, &bounds).clash.is_none()
        };
        if !wanted.iter().zip(weights).all(fits) {
            return None;
        }
        let statement = self.statement_at(self.statement as usize).filter(|statement| !statement.inline)?;
        let text = self.segment.text();
        let source = |span: Span| text.get(span.start as usize..span.end as usize);
        let module = source(callee)?.rsplit_once('.')?.0;
        let passed = weights.iter().map(|weight| source(weight.span)).collect::<Option<Vec<_>>>()?.join(", ");
        let indent = " ".repeat(statement.indent as usize);
        let start = statement.span.start;
        let prepared = self.fresh_name(&transform.replace(TRANSFORM_PARAMS, "_params"));
        let call = format!("{prepared} = {module}.{transform}(({passed},))\n{indent}");
        let mut edits = vec![(Place::Here(Span::new(start, start)), call)];
        for (at, weight) in weights.iter().enumerate() {
            edits.push((Place::Here(weight.span), format!("{prepared}[{at}]")));
        }
        Some(Fix { title: format!("prepare the weights with {transform}"), edits, safe: false })
    }

    /// Returns a name that is not defined yet.
    fn fresh_name(&mut self, wanted: &str) -> String {
        let mut fresh = wanted.to_owned();
        for count in 1..16 {
            if self.lookup(name(&fresh)).is_none() {
                break;
            }
            fresh = format!("{wanted}_{count}");
        }
        fresh
    }
}
