//! Checks the arguments of `R.call_tir` against the parameters of the prim_func: kind, rank, dtype and dims; binds
//! the prim_func's symbols.

use super::fixes::needed_type;
use super::parts::{CallState, Passed, shown};
use crate::elaborate::bound_call::numbered;
use crate::elaborate::checker::Checker;
use crate::elaborate::underspecified::underspecified;
use crate::entry::{Place, mistake};
use crate::unify::{Bindings, Equality, Given};
use rx_base::symbolic::Answer;
use rx_base::{Code, DType, Diagnostic, Dim, Fix, counted};
use rx_ir::{BufferParam, PrimParamKind, StructInfo, TensorInfo};

impl Checker<'_> {
    pub(super) fn check_argument(&mut self, param: &PrimParamKind, passed: &Passed, state: &mut CallState<'_>) {
        match (param, &passed.expr.ty) {
            (_, StructInfo::Error) | (PrimParamKind::Opaque, _) | (PrimParamKind::Scalar(_), StructInfo::Object) => {}
            (PrimParamKind::Buffer(buffer), StructInfo::Tensor(tensor)) => {
                self.check_buffer(buffer, tensor, passed, state);
            }
            (PrimParamKind::Buffer(buffer), StructInfo::DTensor(tensor)) => {
                self.check_buffer(buffer, &tensor.tensor, passed, state);
            }
            (PrimParamKind::Scalar(dtype), StructInfo::Prim(prim)) => {
                if prim.dtype.is_some_and(|given| given.is_float() != dtype.is_float()) {
                    let given = &passed.expr.ty;
                    self.argument_mismatch(
                        passed,
                        &format!("has the wrong dtype: {given}, the parameter needs {dtype}"),
                    );
                }
            }
            (PrimParamKind::Scalar(dtype), StructInfo::Shape(_)) => {
                self.argument_mismatch(passed, &format!("is a shape, the parameter is a scalar {dtype}"));
            }
            (PrimParamKind::Buffer(buffer), ty) => {
                let says = match ty {
                    StructInfo::Tuple(_) => format!("is a tuple, the buffer needs one tensor {}", shown(buffer)),
                    _ => format!("is no tensor: {ty}, the buffer needs {}", shown(buffer)),
                };
                self.buffer_mismatch(passed, &says, buffer, &state.bindings);
            }
            (PrimParamKind::Scalar(dtype), ty) => {
                self.argument_mismatch(passed, &format!("is {ty}, the parameter is a scalar {dtype}"));
            }
        }
    }

    fn check_buffer(&mut self, buffer: &BufferParam, tensor: &TensorInfo, passed: &Passed, state: &mut CallState<'_>) {
        let (ndim, dtype) = (tensor.shape.ndim(), tensor.dtype);
        let wrong = if let Some(ndim) = ndim.filter(|ndim| *ndim != buffer.shape.len()) {
            Some(format!("has {}, the buffer needs {}", counted(ndim, "dimension"), buffer.shape.len()))
        } else if let Some(dtype) = dtype.filter(|dtype| *dtype != buffer.dtype) {
            Some(format!("has the wrong dtype: {dtype}, the buffer needs {}", buffer.dtype))
        } else {
            let underspecified = underspecified(Some(buffer.shape.len()), Some(buffer.dtype), tensor);
            underspecified.map(|subject| format!("does not fit: {subject}"))
        };
        if let Some(says) = wrong {
            self.buffer_mismatch(passed, &says, buffer, &state.bindings);
            return;
        }
        let Some(dims) = tensor.shape.dims() else { return };
        let mut order: Vec<usize> = (0..dims.len()).collect();
        // Whole-dim symbols of the buffer bind before its compound dims are compared: in `(n * 2, n)`, axis 1 comes
        // first.
        order.sort_by_key(|axis| buffer.shape.get(*axis).is_none_or(|dim| dim.as_symbol().is_none()));
        for axis in order {
            let (Some(wanted), Some(actual)) = (buffer.shape.get(axis), dims.get(axis)) else { continue };
            let equality = state.bindings.meet(wanted, actual, Given { argument: passed.index, axis: Some(axis) });
            state.learned.extend(equality.to_learn());
            match equality.answer {
                Answer::Proved => {}
                Answer::Open if equality.bound_by.is_some() => {
                    let wanted = needed_type(&passed.expr, buffer, &state.bindings);
                    self.symbol_unproven(&Again { passed, axis, equality: &equality }, wanted.as_ref(), state);
                }
                Answer::Open => {}
                Answer::Refuted if equality.bound_by.is_some() => {
                    let fix = self.argument_fix(&passed.expr, buffer, &state.bindings);
                    let wanted = needed_type(&passed.expr, buffer, &state.bindings);
                    self.symbol_conflict(&Again { passed, axis, equality: &equality }, fix, state);
                    if let Some(wanted) = &wanted {
                        self.want(&passed.expr, wanted, None);
                    }
                    return;
                }
                Answer::Refuted => {
                    let needs = match equality.wanted_here {
                        Some(here) if here != *wanted => format!("{wanted} = {here}"),
                        _ => wanted.to_string(),
                    };
                    let says = format!("has the wrong shape: axis {axis} is {actual}, the buffer needs {needs}");
                    self.buffer_mismatch(passed, &says, buffer, &state.bindings);
                    if let Some(diagnostic) = self.diagnostics.last_mut() {
                        diagnostic.notes.extend(state.bindings.origins(wanted));
                    }
                    return;
                }
            }
        }
    }

    /// Reports an argument that does not fit a buffer.
    fn buffer_mismatch(&mut self, passed: &Passed, says: &str, buffer: &BufferParam, bindings: &Bindings<'_>) {
        let fix = self.argument_fix(&passed.expr, buffer, bindings);
        let tensor = passed.expr.ty.as_tensor().filter(|tensor| tensor.shape.ndim() == Some(buffer.shape.len()));
        let dtype = tensor.and_then(|tensor| tensor.dtype).filter(|dtype| *dtype != buffer.dtype);
        self.argument_clash(passed, says, dtype.map(|_| buffer.dtype));
        if let (Some(diagnostic), Some(fix)) = (self.diagnostics.last_mut(), fix) {
            diagnostic.fixes.push(fix);
        }
        if let Some(wanted) = needed_type(&passed.expr, buffer, bindings) {
            self.want(&passed.expr, &wanted, None);
        }
    }

    /// Reports an argument; `says` describes its mistake.
    pub(super) fn argument_mismatch(&mut self, passed: &Passed, says: &str) {
        self.argument_clash(passed, says, None);
    }

    /// Like [`Self::argument_mismatch`]; `dtype` is the required dtype, if the dtypes clash.
    fn argument_clash(&mut self, passed: &Passed, says: &str, dtype: Option<DType>) {
        let Passed { function, index, expr } = passed;
        let message = format!("{} of `{function}` {says}", numbered(*index, expr));
        let mut diagnostic = mistake(Code::CallTirArgMismatch, expr.span, &*message)
            .with_primary_label(expr.ty.to_string())
            .with_label(Place::param(*function, *index), "the buffer is declared here");
        diagnostic = self.with_definition(diagnostic, expr, "gets its type here");
        diagnostic = match &expr.ty {
            StructInfo::Tuple(_) => diagnostic.with_help("unpack the tuple: pass its fields, `x[0]`, one by one"),
            StructInfo::Object => diagnostic.with_help("state its type first: `R.match_cast(x, R.Tensor(…))`"),
            _ => diagnostic.with_help(match dtype {
                Some(dtype) => format!("convert it first: `R.astype(…, \"{dtype}\")`, or declare the buffer with its dtype"),
                None => format!(
                    "make `{function}` shape-polymorphic (symbolic dims in its buffers), or declare its buffers for this argument"
                ),
            }),
        };
        let diagnostic = self.with_symbols(diagnostic, &message, [&expr.ty]);
        self.report(diagnostic);
    }

    /// Reports a symbol of the prim_func that gets two different values from arguments; `fix` makes this argument
    /// agree.
    fn symbol_conflict(&mut self, again: &Again<'_>, fix: Option<Fix<Place>>, state: &mut CallState<'_>) {
        let Again { passed, axis, equality } = *again;
        let (symbol, known, by) = again.bound();
        if let Some(symbol) = symbol.as_symbol() {
            state.conflicted.insert(symbol);
        }
        let origin = format!("{symbol} = {known} from {by}");
        let actual = &equality.actual;
        if let (Some(_), Some(_)) = (known.as_constant(), actual.as_constant()) {
            let needs = format!("the buffer needs {symbol} = {known}");
            self.argument_mismatch(passed, &format!("has the wrong shape: axis {axis} is {actual}, {needs}"));
            if let Some(diagnostic) = self.diagnostics.last_mut() {
                diagnostic.notes.push(origin);
                diagnostic.fixes.extend(fix);
            }
            return;
        }
        let Passed { function, index: at, expr } = passed;
        let message = format!(
            "`{symbol}` of `{function}` would be both {known} and {actual}: argument {} binds it, axis {axis} of {} differs",
            by.argument,
            numbered(*at, expr)
        );
        let mut diagnostic = again.diagnostic(Code::CallTirSymbolConflict, &message);
        diagnostic = self.with_definition(diagnostic, expr, "gets its shape here");
        diagnostic.fixes.extend(fix);
        let diagnostic = self.with_symbols(diagnostic.with_note(origin), &message, [&expr.ty]);
        self.report(diagnostic);
    }

    fn symbol_unproven(&mut self, again: &Again<'_>, wanted: Option<&StructInfo>, state: &mut CallState<'_>) {
        let Again { passed, axis, equality } = *again;
        let (symbol, known, by) = again.bound();
        let Some(symbol) = symbol.as_symbol() else { return };
        if !state.conflicted.insert(symbol) {
            return;
        }
        let message = format!(
            "`{symbol}` of `{}` is {known} by argument {}, and axis {axis} of {} is {}: they may differ",
            passed.function,
            by.argument,
            numbered(passed.index, &passed.expr),
            equality.actual
        );
        let mut diagnostic = again
            .diagnostic(Code::CallTirSymbolUnproven, &message)
            .with_note(format!("{symbol} = {known} from {by}"))
            .with_help(
                "use one symbol for both in the caller, or a `R.match_cast`; otherwise it is checked at run time",
            );
        diagnostic.fixes.extend(wanted.and_then(|ty| self.cast_fix(&passed.expr, ty)));
        self.report(diagnostic);
    }
}

/// A symbol of the prim_func that is bound already and gets another value from an argument.
struct Again<'a> {
    passed: &'a Passed,
    axis: usize,
    equality: &'a Equality,
}

impl Again<'_> {
    /// Returns the symbol, its value, and the argument that bound it.
    fn bound(&self) -> (&Dim, Dim, Given) {
        let known = self.equality.wanted_here.clone().unwrap_or(Dim::ERROR);
        (&self.equality.wanted, known, self.equality.bound_by.unwrap_or(0.into()))
    }

    fn diagnostic(&self, code: Code, message: &str) -> Diagnostic<Place> {
        let Passed { function, index, expr } = self.passed;
        let (symbol, _, by) = self.bound();
        mistake(code, expr.span, message)
            .with_primary_label(expr.ty.to_string())
            .with_label(Place::param(*function, by.argument), format!("binds `{symbol}`"))
            .with_label(Place::param(*function, *index), format!("needs `{symbol}` again"))
    }
}
