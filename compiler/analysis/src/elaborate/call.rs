//! Checks operator calls whose arguments are bound: their type rule, their purity and the known values of their
//! operands.

use super::bound_call::BoundCall;
use super::checker::Checker;
use super::ir::{error, int, scalar, tuple};
use super::rule_results::RuleResults;
use crate::entry::{Place, mistake};
use crate::readings::{self, Reading};
use crate::reconcile::reconcile;
use rx_base::name::name;
use rx_base::{Code, Diagnostic, Fix, Span};
use rx_ir::{
    Argument, Attr, Call, Callee, DTensorInfo, Expr as IrExpr, ExprKind as IrKind, Known, Placement, StructInfo,
    TensorInfo,
};
use rx_ops::values::ValueCall;
use rx_ops::{Arg, CallInfo, Param, ParamPlace, Problem, Purity, Schema};
use std::sync::Arc;

impl Checker<'_> {
    /// Checks a call of `operator` (named without `R.`) on operands that are already elaborated. For example, `x + y`
    /// calls `add`.
    pub(super) fn operator_on(&mut self, operator: &str, operands: Vec<IrExpr>, span: Span) -> IrExpr {
        let Some(schema) = rx_ops::find(name(operator)) else { return error(span) };
        let mut spans: Vec<Option<Span>> = operands.iter().map(|operand| Some(operand.span)).collect();
        let mut slots: Vec<Argument> = operands.into_iter().map(Argument::Operand).collect();
        for param in schema.params.iter().skip(slots.len()) {
            slots.push(default_slot(param));
            spans.push(None);
        }
        self.infer(BoundCall { schema, slots, spans, call_span: span, callee_span: span, broken: false })
    }

    /// Runs the operator's type rule and reports its diagnostics.
    pub(super) fn infer(&mut self, bound: BoundCall) -> IrExpr {
        self.check_purity(bound.schema.purity == Purity::Pure, bound.schema.name, bound.callee_span);
        let ty = if bound.broken { StructInfo::Error } else { self.run_rule(&bound) };
        if !ty.is_error() {
            self.check_sites(&bound);
            self.check_values(&bound, &ty);
        }
        let span = bound.call_span;
        let call = Call { callee: Callee::Op(name(bound.schema.name)), arguments: bound.slots };
        IrExpr { kind: IrKind::Call(Arc::new(call)), ty, span }
    }

    fn run_rule(&mut self, bound: &BoundCall) -> StructInfo {
        if bound.has_readings() {
            return self.run_rule_on_readings(bound);
        }
        let (result, findings) = self.rule_on(bound);
        for finding in findings {
            let diagnostic = self.place(bound, &finding);
            self.report(diagnostic);
        }
        match result {
            Ok(ty) => ty,
            Err(Problem::Propagate) => StructInfo::Error,
            Err(Problem::Report(diagnostic)) => {
                // The call is stored, to try its fixes again once the declared type of its result is known.
                let mut placed = self.place(bound, &diagnostic);
                self.keep_trial(bound, &diagnostic, &placed);
                self.try_fixes(bound, &diagnostic, &mut placed, None);
                self.report(placed);
                self.want_shapes_of_others(bound);
                StructInfo::Error
            }
        }
    }

    /// Reports mistakes that follow from the known values of the operands, such as an index out of range.
    fn check_values(&mut self, bound: &BoundCall, ty: &StructInfo) {
        let Some(findings) = bound.schema.traits.findings else { return };
        let operands: Vec<Known> = bound.slots.iter().map(|slot| self.argument_values(slot)).collect();
        let args: Vec<Arg<'_>> = bound.slots.iter().map(Arg::from).collect();
        let bounds = self.bounds.clone();
        let call = CallInfo::new(bound.schema, &args, &bounds);
        for finding in findings(&ValueCall { call: &call, operands: &operands, result: ty }) {
            let diagnostic = self.place(bound, &finding);
            self.report(diagnostic);
        }
    }

    /// Runs the type rule for the declared and for the inferred types of the operands. A mistake is reported only if
    /// both fail.
    fn run_rule_on_readings(&mut self, whole: &BoundCall) -> StructInfo {
        let (declared, _) = self.rule_on(&whole.read(Reading::Declared));
        let bound = &whole.read(Reading::Inferred);
        let (inferred, _) = self.rule_on(bound);
        match (declared, inferred) {
            (Ok(declared), Ok(inferred)) => reconcile(&declared, &inferred, &self.bounds).ty,
            (Ok(ty), Err(_)) | (Err(_), Ok(ty)) => ty,
            (Err(Problem::Report(_)), Err(Problem::Report(diagnostic))) => {
                // Prefer the diagnostic of the parts that both readings share, if there is one.
                let diagnostic = match self.rule_on(whole).0 {
                    Err(Problem::Report(shared)) => shared,
                    _ => diagnostic,
                };
                let diagnostic = self.place(bound, &diagnostic);
                self.report(diagnostic);
                self.want_shapes_of_others(bound);
                StructInfo::Error
            }
            _ => StructInfo::Error,
        }
    }

    /// Runs the operator's type rule; returns its result and its additional findings.
    fn rule_on(&mut self, bound: &BoundCall) -> (Result<StructInfo, Problem>, Vec<Diagnostic<ParamPlace>>) {
        let hash = RuleResults::hash(bound);
        if let Some(known) = hash.and_then(|hash| self.types.rules.get(hash, bound, &self.bounds)) {
            return (Ok(known.clone()), Vec::new());
        }
        let (result, findings) = self.apply_rule(bound);
        let result = result.map(|ty| self.types.share(ty));
        if let (Some(hash), Ok(ty), []) = (hash, &result, &findings[..]) {
            self.types.rules.insert(hash, bound, &self.bounds, ty);
        }
        (result, findings)
    }

    fn apply_rule(&self, bound: &BoundCall) -> (Result<StructInfo, Problem>, Vec<Diagnostic<ParamPlace>>) {
        let args: Vec<Arg<'_>> = bound.slots.iter().map(Arg::from).collect();
        let call = CallInfo::new(bound.schema, &args, &self.bounds);
        let result = (bound.schema.infer)(&call);
        let result = result.and_then(|ty| match whole_beside_distributed(&call, bound) {
            Some(problem) => Err(problem),
            None => Ok(distributed(ty, bound.schema, &bound.slots)),
        });
        (result, call.findings.take())
    }

    /// Translates a diagnostic of a rule, whose places are parameters, to places in the segment.
    fn place(&mut self, bound: &BoundCall, diagnostic: &Diagnostic<ParamPlace>) -> Diagnostic<Place> {
        let primary = self.param_place(bound, diagnostic.primary).unwrap_or(Place::Here(bound.call_span));
        let mut labels = Vec::new();
        for label in &diagnostic.labels {
            labels.push(self.param_place(bound, label.place));
        }
        let mut at = labels.into_iter();
        let mut placed = diagnostic.map_places(primary, |place| match place {
            // Labels are translated in order; fixes may only edit arguments that are written in the call.
            ParamPlace::Param(param) => {
                bound.position(param).and_then(|at| bound.spans.get(at).copied().flatten()).map(Place::Here)
            }
            ParamPlace::Call => Some(Place::Here(bound.call_span)),
            ParamPlace::Callee => Some(Place::Here(bound.callee_span)),
            _ => None,
        });
        placed.labels = diagnostic
            .labels
            .iter()
            .filter_map(|label| {
                let place = at.next().flatten()?;
                Some(rx_base::Label { place, text: label.text.clone() })
            })
            .collect();
        placed.message = self.message_with_variables(bound, &diagnostic.message);
        self.add_definitions(bound, diagnostic, &mut placed);
        self.with_symbols(placed, &diagnostic.message, bound.slots.iter().flat_map(operand_types))
    }

    /// Names the caller's variables beside the operator's parameters in a message.
    pub(super) fn message_with_variables(&self, bound: &BoundCall, message: &str) -> String {
        let args: Vec<Arg<'_>> = bound.slots.iter().map(Arg::from).collect();
        CallInfo::new(bound.schema, &args, &self.bounds).with_variables(message)
    }

    /// Adds a label at the definition of the guilty argument, unless the rule added one.
    fn add_definitions(
        &mut self,
        bound: &BoundCall,
        diagnostic: &Diagnostic<ParamPlace>,
        placed: &mut Diagnostic<Place>,
    ) {
        let ParamPlace::Param(param) = diagnostic.primary else { return };
        if let Some(IrExpr { kind: IrKind::Var(variable), ty, .. }) = bound.operand(param) {
            let place = self.definition_of(*variable);
            let ty = readings::of_type(ty, Reading::Inferred);
            if placed.labels.iter().all(|label| label.place != place) {
                placed.labels.push(rx_base::Label { place, text: format!("`{variable}` is {ty}") });
            }
        }
    }

    fn param_place(&mut self, bound: &BoundCall, place: ParamPlace) -> Option<Place> {
        Some(match place {
            ParamPlace::Call => Place::Here(bound.call_span),
            ParamPlace::Callee => Place::Here(bound.callee_span),
            ParamPlace::Param(param) => Place::Here(bound.span(param)),
            ParamPlace::Element(param, index) => match bound.operand(param).map(|operand| &operand.kind) {
                Some(IrKind::Tuple(items)) => Place::Here(items.get(index).map_or(bound.span(param), |item| item.span)),
                _ => Place::Here(bound.span(param)),
            },
            ParamPlace::DefinitionOf(param) => match bound.operand(param).map(|operand| &operand.kind) {
                Some(IrKind::Var(variable)) => self.definition_of(*variable),
                _ => return None,
            },
        })
    }

    /// Reports an impure call in a dataflow block or a pure function.
    pub(super) fn check_purity(&mut self, pure: bool, subject: &str, span: Span) {
        if !pure {
            self.impure_call(subject, span, None);
        }
    }

    /// Reports a call with side effects in a dataflow block or a pure function; `fix` replaces it by a pure call.
    pub(super) fn impure_call(&mut self, subject: &str, span: Span, fix: Option<Fix<Place>>) {
        if self.state.dataflow.is_some() {
            let mut diagnostic =
                mistake(Code::ImpureInDataflow, span, format!("`{subject}` has effects and is in a dataflow block"))
                    .with_help("move the call out of the `with R.dataflow()` block");
            diagnostic.fixes.extend(fix);
            self.report(diagnostic);
        } else if self.function_context().is_some_and(|context| context.pure) {
            let message = format!("`{subject}` has effects, but the function is declared pure");
            let mut diagnostic = mistake(Code::ImpureInPureFunction, span, message)
                .with_help("declare the function `@R.function(pure=False)`, or call through `R.call_pure_packed`");
            diagnostic.fixes.extend(self.impure_fix().into_iter().chain(fix));
            self.report(diagnostic);
        }
    }
}

/// Returns the types of the values passed for a parameter.
fn operand_types(slot: &Argument) -> impl Iterator<Item = &StructInfo> {
    let operands = match slot {
        Argument::Operand(expr) => std::slice::from_ref(expr),
        Argument::Operands(exprs) => &exprs[..],
        _ => &[],
    };
    operands.iter().map(|operand| &operand.ty)
}

/// Makes the type of an operator's result distributed, if an operand is: operators work on distributed tensors as on
/// whole ones, and the result has the same device mesh.
///
/// Its placement is known only for an elementwise operator whose operands of the result's shape have equal
/// placements; otherwise sharding propagation determines it (TVM src/relax/distributed).
fn distributed(ty: StructInfo, schema: &Schema, slots: &[Argument]) -> StructInfo {
    let types = || slots.iter().flat_map(operand_types);
    let parts = || types().filter_map(distributed_part);
    let Some(first) = parts().next() else { return ty };
    spread(ty, &|tensor| {
        let alike = |part: &&DTensorInfo| schema.cost.is_elementwise() && part.tensor.shape == tensor.shape;
        let mut alike = parts().filter(alike).map(|part| part.placement.clone());
        let placement = alike.next().filter(|one| alike.all(|other| other == *one)).unwrap_or_else(Placement::unknown);
        DTensorInfo { tensor: tensor.clone(), device_mesh: first.device_mesh, placement }
    })
}

/// Reports a whole tensor among the operands of an elementwise operator that also has a distributed one. TVM rejects
/// it with "Distributed operator must take DTensor instead of Tensor as input".
fn whole_beside_distributed(call: &CallInfo<'_>, bound: &BoundCall) -> Option<Problem> {
    let of = |wanted: fn(&StructInfo) -> bool| {
        let mut slots = bound.schema.params.iter().zip(&bound.slots);
        slots
            .find(|(_, slot)| matches!(slot, Argument::Operand(operand) if wanted(&operand.ty)))
            .map(|(param, _)| param)
    };
    let distributed = of(|ty| matches!(ty, StructInfo::DTensor(_)))?;
    let whole = of(|ty| matches!(ty, StructInfo::Tensor(_))).filter(|_| bound.schema.cost.is_elementwise())?;
    let message = format_args!("`{}` is a whole tensor, `{}` is distributed", whole.name, distributed.name);
    let report = call.error(Code::ArgumentType, ParamPlace::Param(whole.name), message);
    let report = report.with_label(ParamPlace::Param(distributed.name), call.ty(distributed.name).to_string());
    Some(report.with_help("declare both `R.DTensor`, with a placement on the same mesh").into())
}

/// Returns the first distributed tensor in a type.
fn distributed_part(ty: &StructInfo) -> Option<&DTensorInfo> {
    match ty {
        StructInfo::DTensor(tensor) => Some(tensor),
        StructInfo::Tuple(fields) => fields.iter().find_map(distributed_part),
        _ => None,
    }
}

fn spread(ty: StructInfo, over: &dyn Fn(&TensorInfo) -> DTensorInfo) -> StructInfo {
    match ty {
        StructInfo::Tensor(tensor) => StructInfo::DTensor(Arc::new(over(&tensor))),
        StructInfo::Tuple(fields) => {
            StructInfo::tuple(fields.iter().map(|field| spread(field.clone(), over)).collect::<Vec<_>>())
        }
        other => other,
    }
}

pub(super) fn default_slot(param: &Param) -> Argument {
    match param.default.to_attr() {
        Some(attr) if param.is_attr() => Argument::Attr(attr),
        Some(attr) => Argument::Operand(operand_of(attr)),
        None => Argument::Absent,
    }
}

/// Converts an operand's default value to an expression without a position.
fn operand_of(attr: Attr) -> IrExpr {
    let span = rx_context::NOWHERE;
    match attr {
        Attr::Int(dim) => int(dim, span),
        Attr::Float(value) => scalar(rx_ir::PrimValue::Float(value), rx_base::DType::FLOAT64, span),
        Attr::Bool(value) => scalar(rx_ir::PrimValue::Bool(value), rx_base::DType::BOOL, span),
        Attr::Str(text) => IrExpr { kind: IrKind::Str(text), ty: StructInfo::String, span },
        Attr::List(items) => tuple(items.into_iter().map(operand_of).collect(), span),
        _ => error(span),
    }
}

/// Returns an operator's signature for notes: `R.nn.softmax(data, axis=-1)`.
pub fn signature_text(schema: &Schema) -> String {
    let params: Vec<String> = schema.params.iter().map(rx_ops::Param::text).collect();
    format!("R.{}({})", schema.name, params.join(", "))
}
