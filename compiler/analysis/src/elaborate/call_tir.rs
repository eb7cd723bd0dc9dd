//! `R.call_tir` against the prim_func it calls: number, rank, dims, dtype, symbols, outputs.
//!
//! Symbols of the prim_func are bound left to right from the arguments' shapes; the first bare occurrence binds, others are
//! equalities. Then the outputs are compared. An output's dims size its allocation, so they must be *proved* equal.

use super::Elaborator;
use super::attribute::constant;
use super::call::BoundCall;
use super::vague::vague;
use crate::entry::{ItemPart, Place};
use crate::readings::Reading;
use crate::unify::Bindings;
use rx_base::name::NameSet;
use rx_base::symbolic::{Answer, Bounds};
use rx_base::{Code, DType, Diagnostic, Dim, Name, counted};
use rx_ir::{
    BufferParam, Call, Callee, Expr as IrExpr, ExprKind as IrKind, PrimFuncSignature, PrimParamKind, Shape, Signature,
    StructInfo, TensorInfo,
};

/// An argument together with its place in the call.
struct Passed {
    expr: IrExpr,
    index: usize,
}

impl Elaborator<'_> {
    /// Types and checks a bound `call_tir`, `call_tir_inplace` or `call_tir_with_grad`.
    pub(super) fn call_tir(&mut self, bound: BoundCall) -> IrExpr {
        let outputs: Vec<StructInfo> = bound.types("out_ty").to_vec();
        let function = bound.operand("gvar").or_else(|| bound.operand("func")).cloned();
        let Some(IrExpr { kind: IrKind::Global(function), span: function_span, .. }) = function else {
            if let Some(function) = function.filter(|function| !function.ty.is_error()) {
                self.not_a_prim_func(&bound, &function);
            }
            return call_of(bound, outputs);
        };
        let signature = self.signature(function);
        let outputs = match signature.as_deref() {
            Some(Signature::Prim(prim)) if !bound.broken => {
                if self.vague_output(&bound, &outputs) {
                    self.offer_outputs(&bound, prim);
                    return call_of(bound, outputs);
                }
                let checked = self.check_call_tir(&bound, function, prim, outputs);
                self.offer_outputs(&bound, prim);
                checked
            }
            Some(Signature::Relax(_)) => {
                self.report(
                    Diagnostic::new(
                        Code::ArgumentType,
                        Place::Here(function_span),
                        format!("`{function}` is a Relax function, `call_tir` calls a prim_func"),
                    )
                    .with_label(Place::Item(function, ItemPart::Name), format!("`{function}` is defined here"))
                    .with_help(format!("call it as `cls.{function}(…)`")),
                );
                outputs
            }
            _ => outputs,
        };
        call_of(bound, outputs)
    }

    fn not_a_prim_func(&mut self, bound: &BoundCall, function: &IrExpr) {
        let mut diagnostic = Diagnostic::new(
            Code::ArgumentType,
            Place::Here(function.span),
            format!(
                "{}: the first argument must be a prim_func of the module, `cls.name`",
                super::call::short(bound.schema)
            ),
        );
        if let IrKind::Str(text) = &function.kind {
            diagnostic =
                diagnostic.with_help(format!("to call the packed function \"{text}\" use `R.call_dps_packed`"));
        }
        if let Some(fix) = self.exchange_fix(bound) {
            diagnostic = diagnostic.with_fix(fix);
        }
        self.report(diagnostic);
    }

    /// Checks arguments and outputs; returns the outputs' types with error parts where they clash. Arguments with two
    /// readings are right if either is.
    fn check_call_tir(
        &mut self,
        bound: &BoundCall,
        function: Name,
        prim: &PrimFuncSignature,
        outputs: Vec<StructInfo>,
    ) -> Vec<StructInfo> {
        if !bound.has_readings() {
            return self.check_read_call_tir(bound, function, prim, outputs);
        }
        let before = self.diagnostics.len();
        let checked = self.check_read_call_tir(&bound.read(Reading::Declared), function, prim, outputs.clone());
        if self.diagnostics.len() == before {
            return checked;
        }
        self.diagnostics.truncate(before);
        self.check_read_call_tir(&bound.read(Reading::Inferred), function, prim, outputs)
    }

    fn check_read_call_tir(
        &mut self,
        bound: &BoundCall,
        function: Name,
        prim: &PrimFuncSignature,
        outputs: Vec<StructInfo>,
    ) -> Vec<StructInfo> {
        let Some(arguments) = self.passed(bound) else { return outputs };
        let inplace = inplace_indices(bound, outputs.len());
        let fresh = match &inplace {
            Some(indices) => indices.iter().filter(|index| **index < 0).count(),
            None => outputs.len(),
        };
        if arguments.len() + fresh != prim.params.len() {
            self.call_tir_arity(bound, function, prim, arguments.len(), fresh);
            return outputs;
        }
        let bounds = self.bounds.clone();
        let mut bindings = Bindings::new(&bounds);
        let mut state = CallState::default();
        for (at, passed) in arguments.iter().enumerate() {
            let Some(param) = prim.params.get(at) else { continue };
            let before = self.diagnostics.len();
            self.check_argument(function, at, &param.kind, passed, &mut bindings, &mut state);
            if self.diagnostics.len() > before {
                state.reported.push(at);
            }
        }
        let learned = std::mem::take(&mut state.learned);
        let mut next_fresh = arguments.len();
        let mut checked = Vec::with_capacity(outputs.len());
        for (at, output) in outputs.iter().enumerate() {
            let aliased = inplace.as_ref().and_then(|indices| indices.get(at)).and_then(|at| usize::try_from(*at).ok());
            let index = aliased.unwrap_or_else(|| {
                next_fresh += 1;
                next_fresh - 1
            });
            if let Some(passed) = aliased.and_then(|at| arguments.get(at))
                && passed.expr.ty == StructInfo::Object
            {
                let message = format!(
                    "argument {index} of `{function}` is {}, the output in its place must be as large",
                    passed.expr.ty
                );
                self.argument_mismatch(function, index, passed, message);
            }
            if state.reported.contains(&index) {
                // In place: the argument's mistake is the output's.
                checked.push(output.clone());
                continue;
            }
            let many = outputs.len() > 1;
            checked.push(self.check_output(
                bound,
                function,
                prim,
                index,
                many.then_some(at),
                output,
                &mut bindings,
                &bounds,
                &state,
            ));
        }
        // Behind the call, not in it: the outputs are allocated before the kernel can check anything.
        self.learn_all(&learned, bound.callee_span);
        checked
    }

    /// Checks the arguments of a prim_func called like a function: all its buffers are passed, outputs too.
    pub(super) fn check_direct_arguments(&mut self, function: Name, prim: &PrimFuncSignature, args: &[IrExpr]) {
        let bounds = self.bounds.clone();
        let mut bindings = Bindings::new(&bounds);
        let mut state = CallState::default();
        for (index, (arg, param)) in args.iter().zip(prim.params.iter()).enumerate() {
            let passed = Passed { expr: arg.clone(), index };
            self.check_argument(function, index, &param.kind, &passed, &mut bindings, &mut state);
        }
        if let Some(span) = args.first().map(|arg| arg.span) {
            self.learn_all(&state.learned, span);
        }
    }

    /// The arguments one by one; `None` where they are not written in line and their number is not known.
    fn passed(&mut self, bound: &BoundCall) -> Option<Vec<Passed>> {
        let args = bound.operand("args")?;
        let mut passed: Vec<Passed> = match (&args.kind, &args.ty) {
            (IrKind::Tuple(items), _) => {
                items.iter().enumerate().map(|(index, expr)| Passed { expr: expr.clone(), index }).collect()
            }
            (_, StructInfo::Tuple(fields)) => fields
                .iter()
                .enumerate()
                .map(|(index, ty)| Passed {
                    expr: IrExpr { kind: IrKind::Error, ty: ty.clone(), span: args.span },
                    index,
                })
                .collect(),
            _ => return None,
        };
        // The classic spelling passes scalars beside the tuple: `tir_vars=R.shape([n])`.
        if let Some(scalars) = bound.operand("tir_vars")
            && let StructInfo::Shape(Shape::Known(dims)) = &scalars.ty
        {
            for dim in dims.iter() {
                let index = passed.len();
                passed.push(Passed { expr: super::expr::int(dim.clone(), scalars.span), index });
            }
        }
        // A shape among the arguments stands for its dims when it comes last (TVM: packed TIR variables).
        Some(passed)
    }

    fn call_tir_arity(
        &mut self,
        bound: &BoundCall,
        function: Name,
        prim: &PrimFuncSignature,
        given: usize,
        outputs: usize,
    ) {
        let params = prim.params.len();
        let fix = params.checked_sub(outputs).and_then(|wanted| self.arguments_fix(bound, prim, wanted));
        let fix = fix.or_else(|| self.outputs_fix(bound, prim));
        let diagnostic = Diagnostic::new(
            Code::CallTirArityMismatch,
            Place::Here(bound.span("args")),
            format!(
                "`{function}` has {}, the call passes {} and {}",
                counted(params, "parameter"),
                counted(given, "argument"),
                counted(outputs, "output")
            ),
        )
        .with_label(Place::Item(function, ItemPart::Name), format!("`{function}` takes {}", parameter_list(prim)))
        .with_help(match params.checked_sub(outputs) {
            Some(arguments) => {
                let (arguments, outputs) = (counted(arguments, "argument"), counted(outputs, "output"));
                format!("beside {outputs} it takes {arguments}: together they are the prim_func's parameters")
            }
            None => "arguments and outputs together must be as many as the prim_func's parameters".to_owned(),
        });
        let diagnostic = fix.into_iter().fold(diagnostic, Diagnostic::with_fix);
        self.report(diagnostic);
    }

    fn check_argument(
        &mut self,
        function: Name,
        at: usize,
        param: &PrimParamKind,
        passed: &Passed,
        bindings: &mut Bindings<'_>,
        state: &mut CallState,
    ) {
        match (param, &passed.expr.ty) {
            (_, StructInfo::Error) | (PrimParamKind::Opaque, _) | (PrimParamKind::Scalar(_), StructInfo::Object) => {}
            (PrimParamKind::Buffer(buffer), StructInfo::Tensor(tensor)) => {
                self.check_buffer(function, at, buffer, tensor, passed, bindings, state);
            }
            (PrimParamKind::Buffer(buffer), StructInfo::DTensor(tensor)) => {
                self.check_buffer(function, at, buffer, &tensor.tensor, passed, bindings, state);
            }
            (PrimParamKind::Scalar(dtype), StructInfo::Prim(prim)) => {
                if prim.dtype.is_some_and(|given| given.is_float() != dtype.is_float()) {
                    let message = format!(
                        "argument {at} of `{function}` has the wrong dtype: {}, the parameter needs {dtype}",
                        passed.expr.ty
                    );
                    self.argument_mismatch(function, at, passed, message);
                }
            }
            (PrimParamKind::Scalar(dtype), StructInfo::Shape(_)) => {
                let message = format!("argument {at} of `{function}` is a shape, the parameter is a scalar {dtype}");
                self.argument_mismatch(function, at, passed, message);
            }
            (PrimParamKind::Buffer(buffer), ty) => {
                let mut message =
                    format!("argument {at} of `{function}` is no tensor: {ty}, the buffer needs {}", shown(buffer));
                if matches!(ty, StructInfo::Tuple(_)) {
                    message = format!(
                        "argument {at} of `{function}` is a tuple, the buffer needs one tensor {}",
                        shown(buffer)
                    );
                }
                self.buffer_mismatch(function, at, passed, message, buffer, bindings);
            }
            (PrimParamKind::Scalar(dtype), ty) => {
                let message = format!("argument {at} of `{function}` is {ty}, the parameter is a scalar {dtype}");
                self.argument_mismatch(function, at, passed, message);
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // One call, its callee, the parameter, the argument and the two accumulators.
    fn check_buffer(
        &mut self,
        function: Name,
        at: usize,
        buffer: &BufferParam,
        tensor: &TensorInfo,
        passed: &Passed,
        bindings: &mut Bindings<'_>,
        state: &mut CallState,
    ) {
        if let Some(ndim) = tensor.shape.ndim()
            && ndim != buffer.shape.len()
        {
            let message = format!(
                "argument {at} of `{function}` has {}, the buffer needs {}",
                counted(ndim, "dimension"),
                buffer.shape.len()
            );
            self.buffer_mismatch(function, at, passed, message, buffer, bindings);
            return;
        }
        if let Some(dtype) = tensor.dtype
            && dtype != buffer.dtype
        {
            let message = format!(
                "argument {at} of `{function}` has the wrong dtype: {dtype}, the buffer needs {}",
                buffer.dtype
            );
            self.buffer_mismatch(function, at, passed, message, buffer, bindings);
            return;
        }
        if let Some(what) = vague(Some(buffer.shape.len()), Some(buffer.dtype), tensor) {
            let message = format!("argument {at} of `{function}` does not fit: {what}");
            self.buffer_mismatch(function, at, passed, message, buffer, bindings);
            return;
        }
        let Some(dims) = tensor.shape.dims() else { return };
        let mut order: Vec<usize> = (0..dims.len()).collect();
        // Bare symbols bind before compound dims of the same buffer are compared.
        order.sort_by_key(|axis| buffer.shape.get(*axis).is_none_or(|dim| dim.as_symbol().is_none()));
        for axis in order {
            let (Some(wanted), Some(actual)) = (buffer.shape.get(axis), dims.get(axis)) else { continue };
            let equality = bindings.meet(wanted, actual, passed.index);
            state.learned.extend(equality.to_learn());
            match equality.answer {
                Answer::Proved => {}
                Answer::Open if equality.bound_by.is_some() => {
                    self.symbol_unproven(function, passed, axis, &equality, state);
                }
                Answer::Open => {}
                Answer::Refuted if equality.bound_by.is_some() => {
                    self.symbol_conflict(function, at, passed, axis, &equality, state);
                    return;
                }
                Answer::Refuted => {
                    let needs = match equality.wanted_here {
                        Some(here) if here != *wanted => format!("{wanted} = {here}"),
                        _ => wanted.to_string(),
                    };
                    let message = format!(
                        "argument {at} of `{function}` has the wrong shape: axis {axis} is {actual}, the buffer needs {needs}"
                    );
                    self.buffer_mismatch(function, at, passed, message, buffer, bindings);
                    return;
                }
            }
        }
    }

    /// An argument that does not fit a buffer.
    fn buffer_mismatch(
        &mut self,
        function: Name,
        at: usize,
        passed: &Passed,
        message: String,
        buffer: &BufferParam,
        bindings: &Bindings<'_>,
    ) {
        let fix = self.argument_fix(&passed.expr, buffer, bindings);
        let tensor = passed.expr.ty.as_tensor().filter(|tensor| tensor.shape.ndim() == Some(buffer.shape.len()));
        let dtype = tensor.and_then(|tensor| tensor.dtype).filter(|dtype| *dtype != buffer.dtype);
        self.argument_clash(function, at, passed, message, dtype.map(|_| buffer.dtype));
        if let (Some(diagnostic), Some(fix)) = (self.diagnostics.last_mut(), fix) {
            diagnostic.fixes.push(fix);
        }
    }

    fn argument_mismatch(&mut self, function: Name, at: usize, passed: &Passed, message: String) {
        self.argument_clash(function, at, passed, message, None);
    }

    /// As [`Self::argument_mismatch`]; `dtype` is the one needed, where dtypes clash.
    fn argument_clash(&mut self, function: Name, at: usize, passed: &Passed, message: String, dtype: Option<DType>) {
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let mut diagnostic = Diagnostic::new(Code::CallTirArgMismatch, Place::Here(passed.expr.span), message)
            .with_primary_label(passed.expr.ty.to_string())
            .with_label(Place::Item(function, ItemPart::Param(index)), "the buffer is declared here");
        if let IrKind::Var(variable) = passed.expr.kind {
            let definition = self.definition_of(variable);
            diagnostic = diagnostic.with_label(definition, format!("`{variable}` gets its type here"));
        }
        diagnostic = match &passed.expr.ty {
            StructInfo::Tuple(_) => diagnostic.with_help("unpack the tuple: pass its fields, `x[0]`, one by one"),
            StructInfo::Object => diagnostic.with_help("say what it is first: `R.match_cast(x, R.Tensor(…))`"),
            _ => diagnostic.with_help(match dtype {
                Some(dtype) => format!("convert it first: `R.astype(…, \"{dtype}\")`, or declare the buffer with its dtype"),
                None => format!(
                    "make `{function}` shape-polymorphic (symbolic dims in its buffers), or declare its buffers for this argument"
                ),
            }),
        };
        let types = [&passed.expr.ty];
        let message = diagnostic.message.clone();
        let diagnostic = self.with_symbols(diagnostic, &message, types);
        self.report(diagnostic);
    }

    fn symbol_conflict(
        &mut self,
        function: Name,
        at: usize,
        passed: &Passed,
        axis: usize,
        equality: &crate::unify::Equality,
        state: &mut CallState,
    ) {
        let symbol = &equality.wanted;
        let known = equality.wanted_here.clone().unwrap_or(Dim::ERROR);
        let by = equality.bound_by.unwrap_or(0);
        if let Some(symbol) = symbol.as_symbol() {
            state.conflicted.insert(symbol);
        }
        if let (Some(_), Some(_)) = (known.as_constant(), equality.actual.as_constant()) {
            let message = format!(
                "argument {at} of `{function}` has the wrong shape: axis {axis} is {}, the buffer needs {symbol} = {known}",
                equality.actual
            );
            self.argument_mismatch(function, at, passed, message);
            return;
        }
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let first = u32::try_from(by).unwrap_or(u32::MAX);
        let mut diagnostic = Diagnostic::new(
            Code::CallTirSymbolConflict,
            Place::Here(passed.expr.span),
            format!(
                "`{symbol}` of `{function}` would be both {known} and {}: argument {by} binds it, axis {axis} of argument {at} differs",
                equality.actual
            ),
        )
        .with_primary_label(passed.expr.ty.to_string())
        .with_label(Place::Item(function, ItemPart::Param(first)), format!("binds `{symbol}`"))
        .with_label(Place::Item(function, ItemPart::Param(index)), format!("needs `{symbol}` again"));
        if let IrKind::Var(variable) = passed.expr.kind {
            let definition = self.definition_of(variable);
            diagnostic = diagnostic.with_label(definition, format!("`{variable}` gets its shape here"));
        }
        self.report(diagnostic);
    }

    fn symbol_unproven(
        &mut self,
        function: Name,
        passed: &Passed,
        axis: usize,
        equality: &crate::unify::Equality,
        state: &mut CallState,
    ) {
        let Some(symbol) = equality.wanted.as_symbol() else { return };
        if !state.conflicted.insert(symbol) {
            return;
        }
        let known = equality.wanted_here.clone().unwrap_or(Dim::ERROR);
        self.report(
            Diagnostic::new(
                Code::CallTirSymbolUnproven,
                Place::Here(passed.expr.span),
                format!(
                    "`{symbol}` of `{function}` is {known} by argument {}, and axis {axis} here is {}: nothing says they are equal",
                    equality.bound_by.unwrap_or(0),
                    equality.actual
                ),
            )
            .with_primary_label(passed.expr.ty.to_string())
            .with_label(
                Place::Item(function, ItemPart::Param(u32::try_from(equality.bound_by.unwrap_or(0)).unwrap_or(u32::MAX))),
                format!("binds `{symbol}`"),
            )
            .with_label(
                Place::Item(function, ItemPart::Param(u32::try_from(passed.index).unwrap_or(u32::MAX))),
                format!("needs `{symbol}` again"),
            )
            .with_help("use one symbol for both in the caller, or a `R.match_cast`; otherwise it is checked at run time"),
        );
    }

    #[allow(clippy::too_many_arguments)] // As `check_buffer`, for an output.
    fn check_output(
        &mut self,
        bound: &BoundCall,
        function: Name,
        prim: &PrimFuncSignature,
        index: usize,
        field: Option<usize>,
        output: &StructInfo,
        bindings: &mut Bindings<'_>,
        bounds: &Bounds,
        state: &CallState,
    ) -> StructInfo {
        let Some(PrimParamKind::Buffer(buffer)) = prim.params.get(index).map(|param| &param.kind) else {
            return output.clone();
        };
        let Some(tensor) = output.as_tensor() else { return output.clone() };
        let mut check = OutputCheck { bound, function, index, field, buffer };
        if !buffer.written {
            self.report(
                check
                    .diagnostic(format!("`{function}` never writes parameter {index}, which the call returns"))
                    .coded(Code::CallTirOutputNotWritten)
                    .with_help("pass it as an argument, or return the buffer the prim_func writes"),
            );
            return output.clone();
        }
        let mut result = tensor.clone();
        match tensor.dtype {
            Some(dtype) if dtype != buffer.dtype => {
                self.report(check.diagnostic(format!("its dtype is {dtype}, the buffer is {}", buffer.dtype)));
                result.dtype = None;
                result.dtype_error = true;
            }
            None if !tensor.dtype_error => {
                self.report(
                    check
                        .diagnostic(format!("the output has no dtype, the buffer is {}", buffer.dtype))
                        .with_help(format!("add dtype=\"{}\"", buffer.dtype)),
                );
                result.dtype = Some(buffer.dtype);
            }
            _ => {}
        }
        let Some(dims) = tensor.shape.dims() else {
            if let Some(ndim) = tensor.shape.ndim()
                && ndim != buffer.shape.len()
            {
                self.report(check.diagnostic(format!(
                    "it has {}, the buffer has {}",
                    counted(ndim, "dimension"),
                    buffer.shape.len()
                )));
                result.shape = Shape::Error;
            }
            return result.into();
        };
        if dims.len() != buffer.shape.len() {
            self.report(check.diagnostic(format!(
                "it has {}, the buffer has {}",
                counted(dims.len(), "dimension"),
                buffer.shape.len()
            )));
            result.shape = Shape::Error;
            return rebuild(output, result);
        }
        let mut reconciled = dims.to_vec();
        let mut reported = false;
        for (axis, (wanted, actual)) in buffer.shape.iter().zip(dims).enumerate() {
            let bound_before = wanted.as_symbol().is_none_or(|symbol| bindings.get(symbol).is_some());
            let equality = bindings.meet(wanted, actual, usize::MAX);
            let mut touches_conflict = false;
            wanted.for_each_symbol(&mut |symbol| touches_conflict |= state.conflicted.contains(&symbol));
            let here = equality.wanted_here.clone();
            let wrong = match (equality.answer, &here) {
                _ if touches_conflict || !bound_before => false,
                (Answer::Refuted, _) => true,
                // Open: the dims size the allocation, so "maybe equal" is not enough where both sides are known.
                (Answer::Open, Some(here)) => rx_base::symbolic::prove::equal(here, actual, bounds) == Answer::Open,
                _ => false,
            };
            if wrong {
                if let Some(dim) = reconciled.get_mut(axis) {
                    *dim = Dim::ERROR;
                }
                if !std::mem::replace(&mut reported, true) {
                    let needs = match here {
                        Some(here) if here != *wanted => format!("{wanted} = {here}"),
                        _ => wanted.to_string(),
                    };
                    let what = match equality.answer {
                        Answer::Open => format!(
                            "axis {axis} is {actual}, and nothing says that it is {needs}, as the buffer has it"
                        ),
                        _ => format!("axis {axis} is {actual}, the buffer needs {needs}"),
                    };
                    let diagnostic = check.diagnostic(what);
                    let message = diagnostic.message.clone();
                    let diagnostic = self.with_symbols(diagnostic, &message, [output]);
                    let dims: Vec<&Dim> = equality.wanted_here.iter().chain([actual]).collect();
                    let diagnostic = self.with_facts(diagnostic, &dims);
                    self.report(diagnostic);
                }
            }
        }
        result.shape = Shape::known(reconciled);
        rebuild(output, result)
    }
}

/// What of the call was already complained of.
impl Elaborator<'_> {
    /// Reports an `out_ty` that does not say how much to allocate.
    fn vague_output(&mut self, bound: &BoundCall, outputs: &[StructInfo]) -> bool {
        let is_vague = |ty: &&StructInfo| match ty.as_tensor() {
            Some(tensor) => tensor.shape.dims().is_none() && tensor.shape != rx_ir::Shape::Error,
            None => !ty.is_error(),
        };
        let Some(vague) = outputs.iter().find(is_vague) else { return false };
        let message = format!("{}: `out_ty` must be a tensor of known shape, it is {vague}", bound.schema.name);
        self.error(Code::ArgumentType, bound.span("out_ty"), message);
        true
    }
}

#[derive(Default)]
struct CallState {
    /// Symbols.
    conflicted: NameSet,
    /// Parameters whose argument does not fit.
    reported: Vec<usize>,
    /// Dims that are equal once the kernel runs.
    learned: Vec<(Dim, Dim)>,
}

struct OutputCheck<'a> {
    bound: &'a BoundCall,
    function: Name,
    index: usize,
    field: Option<usize>,
    buffer: &'a BufferParam,
}

impl OutputCheck<'_> {
    fn diagnostic(&mut self, what: String) -> Diagnostic<Place> {
        let output = self.field.map_or_else(|| "the output".to_owned(), |field| format!("output {field}"));
        let index = u32::try_from(self.index).unwrap_or(u32::MAX);
        Diagnostic::new(
            Code::CallTirOutputMismatch,
            Place::Here(self.bound.span("out_ty")),
            format!("{output} of `{}` does not fit `out_ty`: {what}", self.function),
        )
        .with_label(
            Place::Item(self.function, ItemPart::Param(index)),
            format!("the output buffer is declared {}", shown(self.buffer)),
        )
    }
}

trait Coded {
    fn coded(self, code: Code) -> Self;
}

impl Coded for Diagnostic<Place> {
    fn coded(mut self, code: Code) -> Self {
        self.code = code;
        self.severity = code.severity();
        self
    }
}

fn rebuild(output: &StructInfo, tensor: TensorInfo) -> StructInfo {
    match output {
        StructInfo::DTensor(distributed) => {
            StructInfo::DTensor(std::sync::Arc::new(rx_ir::DTensorInfo { tensor, ..(**distributed).clone() }))
        }
        _ => tensor.into(),
    }
}

pub(super) fn inplace_indices(bound: &BoundCall, outputs: usize) -> Option<Vec<i64>> {
    let attr = bound.attr("inplace_indices")?;
    let mut indices = match attr {
        rx_ir::Attr::List(items) => items.iter().map(|item| constant(item).unwrap_or(-1)).collect(),
        other => vec![constant(other)?],
    };
    indices.resize(outputs, -1);
    Some(indices)
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

/// A buffer as messages show it: `(1, 64) float32`.
fn shown(buffer: &BufferParam) -> String {
    let dims: Vec<String> = buffer.shape.iter().map(Dim::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    format!("({}{comma}) {}", dims.join(", "), buffer.dtype)
}

fn declared_type(outputs: &[StructInfo]) -> StructInfo {
    match outputs {
        [] => StructInfo::Error,
        [one] => one.clone(),
        several => StructInfo::tuple(several.to_vec()),
    }
}

/// The call with what is known of its outputs.
fn call_of(mut bound: BoundCall, outputs: Vec<StructInfo>) -> IrExpr {
    let ty = declared_type(&outputs);
    bound.set_types("out_ty", outputs);
    let call = Call { callee: Callee::Op(rx_base::name::name(bound.schema.name)), arguments: bound.slots };
    IrExpr { kind: IrKind::Call(Box::new(call)), ty, span: bound.call_span }
}
