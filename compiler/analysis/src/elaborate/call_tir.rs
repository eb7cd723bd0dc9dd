//! Checks `R.call_tir` against the signature of the called prim_func.
//!
//! ```text
//! @T.prim_func
//! def add_one(A: T.Buffer((n, 4)), B: T.Buffer((n, 4))): ...
//!
//! y = R.call_tir(cls.add_one, (x,), out_ty=R.Tensor((m, 4), "float32"))    # x: R.Tensor((m, 4))
//! → n = m by argument 0; the output (m, 4) is proved equal to B's shape (n, 4)
//! ```
//!
//! Compared are the number of parameters, then for each argument its rank, dtype and dims, then the outputs. The
//! symbols of the prim_func are bound from the shapes of the arguments, left to right: the first occurrence of a
//! symbol as a whole dim binds it, and each later one requires equality. Scalars of the classic `tir_vars=` come
//! after the outputs. The dims of an output determine its allocation, so they must be *proved* equal to the buffer's.

mod arguments;
mod fixes;
mod inplace;
mod outputs;
mod parts;

use super::bound_call::{BoundCall, short};
use super::checker::Checker;
use super::ir::int;
use crate::entry::{Place, mistake};
use crate::readings::Reading;
pub(super) use fixes::fit_buffers;
use outputs::Output;
pub(super) use parts::WrittenOutputs;
use parts::{CallState, Passed, TirCall, indices, scalars, shown};
use rx_base::{Code, Diagnostic, Name, counted};
use rx_context::ItemPart;
use rx_ir::{
    Call, Callee, Expr as IrExpr, ExprKind as IrKind, PrimFuncSignature, PrimParamKind, Signature, StructInfo,
};
use std::sync::Arc;

impl Checker<'_> {
    /// Infers the type of a bound `call_tir`, `call_tir_inplace` or `call_tir_with_grad`, and checks the call.
    pub(super) fn call_tir(&mut self, bound: BoundCall, written: &WrittenOutputs<'_>) -> IrExpr {
        let outputs: Vec<StructInfo> = bound.types("out_ty").to_vec();
        let function = bound.operand("gvar").or_else(|| bound.operand("func")).cloned();
        let Some(IrExpr { kind: IrKind::Global(function), span: function_span, .. }) = function else {
            if let Some(function) = function.filter(|function| !function.ty.is_error()) {
                self.not_a_prim_func(&bound, &function);
            }
            return call_of(bound, outputs);
        };
        let signature = self.asked.signature(function);
        let outputs = match signature.as_deref() {
            Some(Signature::Prim(prim)) if !bound.broken => {
                if self.underspecified_output(&bound, &outputs) {
                    self.offer_outputs(&bound, prim);
                    return call_of(bound, vec![StructInfo::Error]);
                }
                let call = TirCall { bound: &bound, written, function, prim };
                let checked = self.check_call_tir(&call, outputs);
                self.offer_outputs(&bound, prim);
                checked
            }
            Some(Signature::Relax(_)) => {
                let message = format!("`{function}` is a Relax function, `call_tir` calls a prim_func");
                let report = mistake(Code::ArgumentType, function_span, message)
                    .with_label(Place::Item(function, ItemPart::Name), format!("`{function}` is defined here"))
                    .with_help(format!("call it as `cls.{function}(…)`"));
                self.report(report);
                outputs
            }
            _ => outputs,
        };
        call_of(bound, outputs)
    }

    fn not_a_prim_func(&mut self, bound: &BoundCall, function: &IrExpr) {
        let message =
            format!("{}: the first argument must be a prim_func of the module, `cls.name`", short(bound.schema));
        let mut diagnostic = mistake(Code::ArgumentType, function.span, message);
        if let IrKind::Str(text) = &function.kind {
            diagnostic =
                diagnostic.with_help(format!("to call the packed function \"{text}\" use `R.call_dps_packed`"));
        }
        if let Some(fix) = self.exchange_fix(bound) {
            diagnostic = diagnostic.with_fix(fix);
        }
        self.report(diagnostic);
    }

    /// Checks arguments and outputs; returns the types of the outputs, with error parts where they clash. An argument
    /// with two readings is correct if either of them is.
    fn check_call_tir(&mut self, call: &TirCall<'_>, outputs: Vec<StructInfo>) -> Vec<StructInfo> {
        if !call.bound.has_readings() {
            return self.check_read_call_tir(call, outputs);
        }
        let before = self.diagnostics.len();
        let declared = call.bound.read(Reading::Declared);
        let checked = self.check_read_call_tir(&TirCall { bound: &declared, ..*call }, outputs.clone());
        if self.diagnostics.len() == before {
            return checked;
        }
        self.diagnostics.truncate(before);
        let inferred = call.bound.read(Reading::Inferred);
        self.check_read_call_tir(&TirCall { bound: &inferred, ..*call }, outputs)
    }

    fn check_read_call_tir(&mut self, call: &TirCall<'_>, outputs: Vec<StructInfo>) -> Vec<StructInfo> {
        let TirCall { bound, function, prim, .. } = *call;
        let (Some(arguments), Some(scalars)) = (passed(function, bound), scalars(bound)) else { return outputs };
        let inplace = indices(bound, outputs.len());
        if let Some(indices) = &inplace
            && self.wrong_inplace_indices(bound, indices, arguments.len())
        {
            return vec![StructInfo::Error];
        }
        let fresh = match &inplace {
            Some(indices) => indices.iter().filter(|index| **index < 0).count(),
            None => outputs.len(),
        };
        let given = Given { arguments: arguments.len(), outputs: fresh, scalars: scalars.len() };
        if given.count() != prim.params.len() {
            self.call_tir_arity(bound, function, prim, &given);
            // `inplace_indices` may identify each output; otherwise it is unknown which output belongs to which
            // buffer.
            return if inplace::has_index_for_each(bound, outputs.len()) { outputs } else { vec![StructInfo::Error] };
        }
        let bounds = self.bounds.clone();
        let mut state = CallState::new(&bounds);
        let behind_outputs = arguments.len() + fresh;
        let scalars = scalars.into_iter().enumerate().map(|(nth, (dim, span))| {
            let index = behind_outputs + nth;
            Passed { function, expr: int(dim, span), index }
        });
        let scalars: Vec<Passed> = scalars.collect();
        let sound = self.diagnostics.len();
        for passed in arguments.iter().chain(&scalars) {
            let at = passed.index;
            let Some(param) = prim.params.get(at) else { continue };
            let before = self.diagnostics.len();
            self.check_argument(&param.kind, passed, &mut state);
            if self.diagnostics.len() > before {
                state.reported.push(at);
            }
        }
        self.offer_argument_order(sound, bound, prim);
        let learned = std::mem::take(&mut state.learned);
        let mut next_fresh = arguments.len();
        let mut checked = Vec::with_capacity(outputs.len());
        for (at, output) in outputs.iter().enumerate() {
            let aliased = inplace.as_ref().and_then(|indices| indices.get(at)).and_then(|at| usize::try_from(*at).ok());
            let index = aliased.unwrap_or_else(|| {
                next_fresh += 1;
                next_fresh - 1
            });
            if state.reported.contains(&index) {
                // The argument of an in-place output has been reported, so the output is not reported again.
                checked.push(output.clone());
                continue;
            }
            if let Some(passed) = aliased.and_then(|at| arguments.get(at)) {
                self.check_inplace_argument(passed, output);
            }
            let Some(PrimParamKind::Buffer(buffer)) = prim.params.get(index).map(|param| &param.kind) else {
                checked.push(output.clone());
                continue;
            };
            let output = Output { call, nth: at, many: outputs.len() > 1, index, ty: output, buffer };
            checked.push(self.check_output(&output, &mut state));
        }
        // The facts hold after the call and not for its outputs: these are allocated before the kernel can check
        // anything.
        self.refine_all(&learned, bound.callee_span);
        checked
    }

    /// Checks the arguments of a prim_func that is called directly: all its buffers are arguments, outputs included.
    pub(super) fn check_direct_arguments(&mut self, function: Name, prim: &PrimFuncSignature, args: &[IrExpr]) {
        let bounds = self.bounds.clone();
        let mut state = CallState::new(&bounds);
        for (index, (arg, param)) in args.iter().zip(prim.params.iter()).enumerate() {
            let passed = Passed { function, expr: arg.clone(), index };
            self.check_argument(&param.kind, &passed, &mut state);
        }
        if let Some(span) = args.first().map(|arg| arg.span) {
            self.refine_all(&state.learned, span);
        }
    }

    fn call_tir_arity(&mut self, bound: &BoundCall, function: Name, prim: &PrimFuncSignature, given: &Given) {
        let params = prim.params.len();
        let others = given.outputs + given.scalars;
        let wanted = params.checked_sub(others);
        let fix = wanted.and_then(|wanted| self.arguments_fix(bound, prim, wanted));
        let fix = fix.or_else(|| self.outputs_fix(bound, prim));
        let fix = fix.or_else(|| self.missing_arguments_fix(bound, prim, wanted?));
        let diagnostic = mistake(
            Code::CallTirArityMismatch,
            bound.span("args"),
            format!(
                "`{function}` has {}, the call passes {} and {}",
                counted(params, "parameter"),
                counted(given.arguments, "argument"),
                given.others()
            ),
        )
        .with_label(Place::Item(function, ItemPart::Name), format!("`{function}` takes {}", parameter_list(prim)))
        .with_help(match params.checked_sub(others) {
            Some(arguments) => {
                let (arguments, others) = (counted(arguments, "argument"), given.others());
                format!("beside {others} it takes {arguments}: together they are the prim_func's parameters")
            }
            None => "arguments and outputs together must be as many as the prim_func's parameters".to_owned(),
        });
        let diagnostic = fix.into_iter().fold(diagnostic, Diagnostic::with_fix);
        self.report(diagnostic);
    }

    /// Reports an `out_ty` whose shape is not known, since the output could not be allocated. Returns whether it is
    /// such a type.
    fn underspecified_output(&mut self, bound: &BoundCall, outputs: &[StructInfo]) -> bool {
        let is_underspecified = |ty: &&StructInfo| match ty.as_tensor() {
            Some(tensor) => tensor.shape.dims().is_none() && tensor.shape != rx_ir::Shape::Error,
            None => !ty.is_error(),
        };
        let Some(underspecified) = outputs.iter().find(is_underspecified) else { return false };
        let message =
            format!("{}: `out_ty` must be a tensor of known shape, it is {underspecified}", bound.schema.name);
        self.error(Code::ArgumentType, bound.span("out_ty"), message);
        true
    }
}

/// The numbers of operands that a call passes.
struct Given {
    arguments: usize,
    outputs: usize,
    scalars: usize,
}

impl Given {
    fn count(&self) -> usize {
        self.arguments + self.outputs + self.scalars
    }

    /// Describes the outputs and scalars for a message, such as "1 output".
    fn others(&self) -> String {
        let outputs = counted(self.outputs, "output");
        match self.scalars {
            0 => outputs,
            scalars => format!("{outputs} and {} of `tir_vars`", counted(scalars, "scalar")),
        }
    }
}

fn parameter_list(prim: &PrimFuncSignature) -> String {
    let params: Vec<String> = prim
        .params
        .iter()
        .map(|param| match &param.kind {
            PrimParamKind::Buffer(buffer) => format!("{}: {}", param.name, shown(buffer)),
            PrimParamKind::Scalar(dtype) => format!("{}: {dtype}", param.name),
            PrimParamKind::Opaque => param.name.to_string(),
        })
        .collect();
    format!("({})", params.join(", "))
}

/// Returns the arguments one by one; `None` if they are neither written as a tuple nor have a tuple type.
fn passed(function: Name, bound: &BoundCall) -> Option<Vec<Passed>> {
    let args = bound.operand("args")?;
    let exprs: Vec<IrExpr> = match (&args.kind, &args.ty) {
        (IrKind::Tuple(items), _) => items.to_vec(),
        (_, StructInfo::Tuple(fields)) => {
            fields.iter().map(|ty| IrExpr { kind: IrKind::Error, ty: ty.clone(), span: args.span }).collect()
        }
        _ => return None,
    };
    Some(exprs.into_iter().enumerate().map(|(index, expr)| Passed { function, expr, index }).collect())
}

fn declared_type(outputs: &[StructInfo]) -> StructInfo {
    match outputs {
        [] => StructInfo::Error,
        [one] => one.clone(),
        several => StructInfo::tuple(several.to_vec()),
    }
}

/// Builds the call expression, typed by its outputs.
fn call_of(mut bound: BoundCall, outputs: Vec<StructInfo>) -> IrExpr {
    let ty = declared_type(&outputs);
    bound.set_types("out_ty", outputs);
    let call = Call { callee: Callee::Op(rx_base::name::name(bound.schema.name)), arguments: bound.slots };
    IrExpr { kind: IrKind::Call(Arc::new(call)), ty, span: bound.call_span }
}
