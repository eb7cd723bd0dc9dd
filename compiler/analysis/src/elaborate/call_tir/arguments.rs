//! Arguments of `R.call_tir` against the parameters of the prim_func: kind, rank, dtype, dims, and the symbols they bind.

use super::fixes::needed_type;
use super::parts::{CallState, Passed, shown};
use crate::elaborate::checker::Checker;
use crate::elaborate::vague::vague;
use crate::entry::Place;
use crate::unify::{Bindings, Equality, Given};
use rx_base::symbolic::Answer;
use rx_base::{Code, DType, Diagnostic, Dim, Fix, Name, counted};
use rx_context::ItemPart;
use rx_ir::{BufferParam, ExprKind as IrKind, PrimParamKind, StructInfo, TensorInfo};

impl Checker<'_> {
    pub(super) fn check_argument(
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
            let equality = bindings.meet(wanted, actual, Given { argument: passed.index, axis: Some(axis) });
            state.learned.extend(equality.to_learn());
            match equality.answer {
                Answer::Proved => {}
                Answer::Open if equality.bound_by.is_some() => {
                    let wanted = needed_type(&passed.expr, buffer, bindings);
                    let again = Again { at, axis, equality: &equality };
                    self.symbol_unproven(function, passed, &again, wanted.as_ref(), state);
                }
                Answer::Open => {}
                Answer::Refuted if equality.bound_by.is_some() => {
                    let fix = self.argument_fix(&passed.expr, buffer, bindings);
                    let again = Again { at, axis, equality: &equality };
                    self.symbol_conflict(function, passed, &again, fix, state);
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
                    if let Some(diagnostic) = self.diagnostics.last_mut() {
                        diagnostic.notes.extend(bindings.origins(wanted));
                    }
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

    pub(super) fn argument_mismatch(&mut self, function: Name, at: usize, passed: &Passed, message: String) {
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

    /// A symbol that argument values contradict; `fix` makes this argument agree.
    fn symbol_conflict(
        &mut self,
        function: Name,
        passed: &Passed,
        again: &Again<'_>,
        fix: Option<Fix<Place>>,
        state: &mut CallState,
    ) {
        let Again { at, axis, equality } = *again;
        let (symbol, known, by) = again.bound();
        if let Some(symbol) = symbol.as_symbol() {
            state.conflicted.insert(symbol);
        }
        let origin = format!("{symbol} = {known} from {by}");
        if let (Some(_), Some(_)) = (known.as_constant(), equality.actual.as_constant()) {
            let message = format!(
                "argument {at} of `{function}` has the wrong shape: axis {axis} is {}, the buffer needs {symbol} = {known}",
                equality.actual
            );
            self.argument_mismatch(function, at, passed, message);
            if let Some(diagnostic) = self.diagnostics.last_mut() {
                diagnostic.notes.push(origin);
                diagnostic.fixes.extend(fix);
            }
            return;
        }
        let message = format!(
            "`{symbol}` of `{function}` would be both {known} and {}: argument {} binds it, axis {axis} of argument {at} differs",
            equality.actual, by.argument
        );
        let mut diagnostic = again.diagnostic(Code::CallTirSymbolConflict, function, passed, message);
        if let IrKind::Var(variable) = passed.expr.kind {
            let definition = self.definition_of(variable);
            diagnostic = diagnostic.with_label(definition, format!("`{variable}` gets its shape here"));
        }
        diagnostic.fixes.extend(fix);
        let message = diagnostic.message.clone();
        let diagnostic = self.with_symbols(diagnostic.with_note(origin), &message, [&passed.expr.ty]);
        self.report(diagnostic);
    }

    fn symbol_unproven(
        &mut self,
        function: Name,
        passed: &Passed,
        again: &Again<'_>,
        wanted: Option<&StructInfo>,
        state: &mut CallState,
    ) {
        let (symbol, known, by) = again.bound();
        let Some(symbol) = symbol.as_symbol() else { return };
        if !state.conflicted.insert(symbol) {
            return;
        }
        let message = format!(
            "`{symbol}` of `{function}` is {known} by argument {}, and axis {} here is {}: nothing says they are equal",
            by.argument, again.axis, again.equality.actual
        );
        let mut diagnostic = again
            .diagnostic(Code::CallTirSymbolUnproven, function, passed, message)
            .with_note(format!("{symbol} = {known} from {by}"))
            .with_help(
                "use one symbol for both in the caller, or a `R.match_cast`; otherwise it is checked at run time",
            );
        diagnostic.fixes.extend(wanted.and_then(|ty| self.cast_fix(&passed.expr, ty)));
        self.report(diagnostic);
    }
}

/// A symbol of the callee that an argument gives a second time.
struct Again<'a> {
    /// The index of the parameter.
    at: usize,
    axis: usize,
    equality: &'a Equality,
}

impl Again<'_> {
    /// The symbol, its value, and what bound it.
    fn bound(&self) -> (&Dim, Dim, Given) {
        let known = self.equality.wanted_here.clone().unwrap_or(Dim::ERROR);
        (&self.equality.wanted, known, self.equality.bound_by.unwrap_or(0.into()))
    }

    fn diagnostic(&self, code: Code, function: Name, passed: &Passed, message: String) -> Diagnostic<Place> {
        let param = |at: usize| Place::Item(function, ItemPart::Param(u32::try_from(at).unwrap_or(u32::MAX)));
        let (symbol, _, by) = self.bound();
        Diagnostic::new(code, Place::Here(passed.expr.span), message)
            .with_primary_label(passed.expr.ty.to_string())
            .with_label(param(by.argument), format!("binds `{symbol}`"))
            .with_label(param(self.at), format!("needs `{symbol}` again"))
    }
}
