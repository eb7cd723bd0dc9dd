//! Elaborates calls of functions: those of the module (`cls.f(x)`) and function values.

use super::argument_list::Parameters;
use super::bound_call::{before_end, numbered};
use super::call_tir::fit_buffers;
use super::checker::Checker;
use super::ir::error;
use super::names::is_extension;
use super::underspecified::underspecified_part;
use crate::entry::{Place, mistake, replace_fix};
use crate::readings::{self, Reading};
use crate::reconcile::reconcile;
use crate::unify::{Bindings, Equality};
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::symbolic::{Answer, Bounds};
use rx_base::{Code, Fix, Name, Span};
use rx_context::ItemPart;
use rx_context::mistakes::suggest;
use rx_ir::{
    Call, Callee, Expr as IrExpr, ExprKind as IrKind, FunctionSignature, PrimFuncSignature, Signature, StructInfo,
};
use std::sync::Arc;

/// A callee: its description for messages, and the types and names of its parameters.
struct Target<'a> {
    subject: String,
    params: &'a [StructInfo],
    names: Vec<Name>,
    /// The module's item, for labels at its declaration.
    item: Option<Name>,
    /// The span of the callee, and that of the call.
    span: Span,
    call: Span,
}

impl Checker<'_> {
    /// Elaborates `cls.f(arguments)`.
    pub(super) fn global_call(&mut self, function: Name, args: Vec<IrExpr>, callee_span: Span, span: Span) -> IrExpr {
        let ty = match self.asked.signature(function) {
            None => {
                self.undefined_global(function, callee_span);
                StructInfo::Error
            }
            Some(signature) => match &*signature {
                Signature::Relax(signature) => {
                    self.relax_function_call(function, signature, &args, (callee_span, span))
                }
                Signature::Prim(signature) => {
                    self.direct_prim_func_call(function, signature, &args, (callee_span, span))
                }
                Signature::Extern(StructInfo::Function(function)) => {
                    self.check_purity(function.pure, "an external function", callee_span);
                    function.ret.clone()
                }
                Signature::Extern(_) | Signature::Opaque => StructInfo::Object,
            },
        };
        let call = Call::of_function(Callee::Global(function), args);
        IrExpr { kind: IrKind::Call(Arc::new(call)), ty, span }
    }

    /// Reports a function that the module does not have.
    pub(super) fn undefined_global(&mut self, function: Name, span: Span) {
        let mut diagnostic = mistake(Code::UndefinedName, span, format!("the module has no function `{function}`"));
        let items = || self.file.items.iter().map(|item| item.as_str());
        let extended = || items().filter(|item| is_extension(&function, item)).max_by_key(|it| it.len());
        if let Some(near) = nearest(&function, items()).or_else(extended) {
            let near = name(near);
            diagnostic = diagnostic.with_label(Place::Item(near, ItemPart::Name), format!("`{near}` is defined here"));
            let start = span.end.saturating_sub(u32::try_from(function.len()).unwrap_or(0));
            let edits = vec![(Place::Here(Span::new(start, span.end)), near.to_string())];
            diagnostic = suggest(diagnostic, &near, edits);
        }
        self.report(diagnostic);
    }

    fn relax_function_call(
        &mut self,
        function: Name,
        signature: &FunctionSignature,
        args: &[IrExpr],
        (callee_span, call): (Span, Span),
    ) -> StructInfo {
        self.check_purity(signature.pure, &format!("cls.{function}"), callee_span);
        let params: Vec<StructInfo> = signature.params.iter().map(|(_, ty)| ty.clone()).collect();
        let names = signature.params.iter().map(|(name, _)| *name).collect();
        let target = Target {
            subject: format!("`{function}`"),
            params: &params,
            names,
            item: Some(function),
            span: callee_span,
            call,
        };
        let ret = signature.ret.clone().unwrap_or(StructInfo::Object);
        let before = self.diagnostics.len();
        let ty = self.apply(&target, &ret, args);
        if self.diagnostics.len() == before {
            self.check_requirements(function, args);
            self.check_weights(function, signature, args, callee_span);
        }
        ty
    }

    /// Elaborates a direct call of a prim_func, as in lowered programs: the outputs are passed as arguments. A
    /// prim_func without a store is pure (TVM src/s_tir/analysis/is_pure_function.cc).
    fn direct_prim_func_call(
        &mut self,
        function: Name,
        signature: &PrimFuncSignature,
        args: &[IrExpr],
        (callee_span, call): (Span, Span),
    ) -> StructInfo {
        self.check_purity(signature.pure, &format!("cls.{function}"), callee_span);
        let before = self.diagnostics.len();
        let bounds = self.bounds.clone();
        let names: Vec<Name> = signature.params.iter().map(|param| param.name).collect();
        let fits = |types: &[&StructInfo]| fit_buffers(&signature.params, types, &bounds);
        let params = Parameters { count: names.len(), names: &names, fits: &fits };
        if args.len() != params.count {
            let fix = self.count_fix(&params, args, call);
            self.arity((&format!("`{function}`"), Some(function)), params.count, args.len(), callee_span, fix);
        }
        self.check_direct_arguments(function, signature, args);
        if args.len() == params.count {
            self.offer_order(before, &params, args);
        }
        if self.diagnostics.len() > before {
            return StructInfo::Error;
        }
        match signature.ret {
            Some(dtype) => StructInfo::prim(dtype),
            None => StructInfo::void(),
        }
    }

    /// Reports a call of `subject`, which is `item` of the module, with another number of arguments than wanted.
    fn arity(
        &mut self,
        (subject, item): (&str, Option<Name>),
        wanted: usize,
        given: usize,
        span: Span,
        fix: Option<Fix<Place>>,
    ) {
        let plural = if wanted == 1 { "" } else { "s" };
        let mut diagnostic =
            mistake(Code::CallArityMismatch, span, format!("{subject} takes {wanted} argument{plural}, {given} given"));
        if let Some(item) = item {
            diagnostic = diagnostic.with_label(Place::Item(item, ItemPart::Name), format!("`{item}` is defined here"));
        }
        diagnostic.fixes.extend(fix);
        self.report(diagnostic);
    }

    /// Returns the fix of a call with too many or too few arguments.
    fn count_fix(&mut self, params: &Parameters<'_>, args: &[IrExpr], call: Span) -> Option<Fix<Place>> {
        if args.len() > params.count {
            return self.without_surplus(params, args);
        }
        // Arguments by keyword are not among `args`, and nothing can be inserted before them.
        let rest =
            args.last().map_or(Some(""), |last| self.segment.text().get(last.span.end as usize..call.end as usize));
        let is_end = |c: char| matches!(c, ',' | ')') || c.is_whitespace();
        let (empty, comma) = before_end(self.segment.text(), call)?;
        if !rest?.chars().all(is_end) || (args.is_empty() && !comma.is_empty()) {
            return None;
        }
        self.with_missing(params, args, Some(empty))
    }

    /// Checks arguments against parameters, binding the callee's symbols; returns the return type in terms of the
    /// caller's symbols.
    ///
    /// For example, a parameter `R.Tensor((n, 4))` and an argument of shape `(8, 4)` bind `n` to 8, so a return type
    /// `R.Tensor((n * 2,))` becomes `R.Tensor((16,))`. If an argument is wrong, the result is an error, so that its
    /// uses are not reported again.
    fn apply(&mut self, target: &Target<'_>, ret: &StructInfo, args: &[IrExpr]) -> StructInfo {
        let bounds = self.bounds.clone();
        let mut bindings = Bindings::new(&bounds);
        let fits = |types: &[&StructInfo]| fit_parameters(target.params, types, &bounds);
        let params = Parameters { count: target.params.len(), names: &target.names, fits: &fits };
        if args.len() != params.count {
            let fix = self.count_fix(&params, args, target.call);
            self.arity((&target.subject, target.item), params.count, args.len(), target.span, fix);
            return StructInfo::Error;
        }
        let before = self.diagnostics.len();
        let mut learned = Vec::new();
        for (at, (param, arg)) in target.params.iter().zip(args).enumerate() {
            let equalities = bindings.meet_types(param, &arg.ty, at);
            learned.extend(equalities.iter().filter_map(Equality::to_learn));
            let wanted = bindings.wanted_type(param);
            let symbol_clash =
                equalities.iter().find(|equality| equality.answer == Answer::Refuted && equality.bound_by.is_some());
            let clash = reconcile(&wanted, &arg.ty, &bounds).clash;
            if clash.is_none()
                && let Some(subject) = underspecified_part(&bindings.substitute_type(param), &arg.ty)
            {
                self.underspecified_argument(target, at, arg, &subject);
            }
            if let Some(clash) = clash {
                let given = readings::of_type(&arg.ty, Reading::Inferred);
                let mut diagnostic = mistake(
                    Code::CallArgMismatch,
                    arg.span,
                    format!(
                        "{} of {} does not fit: {}, {} needs {}",
                        numbered(at, arg),
                        target.subject,
                        clash.actual_at_path(),
                        target.names.get(at).map_or_else(|| "the parameter".to_owned(), |name| format!("`{name}`")),
                        clash.wanted
                    ),
                )
                .with_primary_label(given.to_string());
                if let Some(item) = target.item {
                    diagnostic = diagnostic.with_label(Place::param(item, at), format!("declared {param}"));
                }
                diagnostic = self.with_definition(diagnostic, arg, &format!("is {given}"));
                if let (StructInfo::Tuple(fields), StructInfo::Tensor(_)) = (&wanted, &given)
                    && let [field] = &fields[..]
                    && reconcile(field, &given, &bounds).clash.is_none()
                    && let IrKind::Var(variable) = arg.kind
                {
                    let tuple = format!("({variable},)");
                    diagnostic = diagnostic.with_help(format!("pass a tuple of it: `{tuple}`")).with_fix(replace_fix(
                        arg.span,
                        format!("pass {tuple}"),
                        tuple,
                    ));
                }
                if let Some(item) = target.item {
                    diagnostic = self.with_weight_note(diagnostic, item, at, args, target.span);
                }
                if let IrKind::Var(variable) = arg.kind
                    && diagnostic.fixes.is_empty()
                    && let Some(fix) = self.parameter_type_fix(variable, &wanted)
                {
                    diagnostic = diagnostic.with_fix(fix);
                }
                if let Some(equality) = symbol_clash {
                    diagnostic = diagnostic.with_note(format!(
                        "`{}` was bound to {} by {}",
                        equality.wanted,
                        equality.wanted_here.clone().unwrap_or(rx_base::Dim::ERROR),
                        equality.bound_by.unwrap_or(0.into())
                    ));
                }
                let diagnostic = self.with_facts(diagnostic, &clash.dims());
                self.report(diagnostic);
                self.want(arg, &wanted, None);
            }
        }
        if self.diagnostics.len() > before {
            self.offer_order(before, &params, args);
            return StructInfo::Error;
        }
        let ret = bindings.substitute_type(ret);
        self.refine_all(&learned, target.span);
        ret
    }

    fn underspecified_argument(&mut self, target: &Target<'_>, at: usize, arg: &IrExpr, subject: &str) {
        let message = format!("{} of {} does not fit: {subject}", numbered(at, arg), target.subject);
        let mut diagnostic = mistake(Code::CallArgMismatch, arg.span, message)
            .with_primary_label(arg.ty.to_string())
            .with_help("state its type before the call: `R.match_cast(…)`");
        if let (Some(item), Some(param)) = (target.item, target.params.get(at)) {
            diagnostic = diagnostic.with_label(Place::param(item, at), format!("declared {param}"));
        }
        self.report(diagnostic);
    }

    /// Elaborates a call of a function value: a closure, a parameter, or an external function.
    pub(super) fn value_call(&mut self, function: IrExpr, args: Vec<IrExpr>, span: Span) -> IrExpr {
        let ty = match &function.ty {
            StructInfo::Error => StructInfo::Error,
            StructInfo::Object => StructInfo::Object,
            StructInfo::Function(info) => {
                let info = Arc::clone(info);
                let subject = match &function.kind {
                    IrKind::Var(variable) => format!("`{variable}`"),
                    _ => "the function".to_owned(),
                };
                self.check_purity(info.pure, subject.trim_matches('`'), function.span);
                match &info.params {
                    None => info.ret.clone(),
                    Some(params) => {
                        let names = Vec::new();
                        let target = Target { subject, params, names, item: None, span: function.span, call: span };
                        self.apply(&target, &info.ret, &args)
                    }
                }
            }
            other => {
                let message = format!("{other} cannot be called: it is no function");
                self.error(Code::NotCallable, function.span, message);
                return error(span);
            }
        };
        let call = Call::of_function(Callee::Value(Box::new(function)), args);
        IrExpr { kind: IrKind::Call(Arc::new(call)), ty, span }
    }
}

/// Whether values of these types fit the first parameters of a function, with one value for each of its symbols.
fn fit_parameters(params: &[StructInfo], types: &[&StructInfo], bounds: &Bounds) -> bool {
    let mut bindings = Bindings::new(bounds);
    params.iter().zip(types).enumerate().all(|(at, (param, ty))| {
        let equalities = bindings.meet_types(param, ty, at);
        equalities.iter().all(|equality| equality.answer != Answer::Refuted)
            && reconcile(&bindings.wanted_type(param), ty, bounds).clash.is_none()
            && underspecified_part(&bindings.substitute_type(param), ty).is_none()
    })
}
