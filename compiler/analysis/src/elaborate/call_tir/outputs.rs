//! Outputs of `R.call_tir` against the buffers the prim_func writes.
//!
//! The outputs are allocated from `out_ty` before the kernel can check anything, so they must be *proved* to be what it writes.

use super::parts::{CallState, TirCall, shown};
use crate::elaborate::checker::Checker;
use crate::entry::Place;
use crate::reconcile::ClashKind;
use crate::unify::{Bindings, Equality};
use rx_base::symbolic::{Answer, prove};
use rx_base::{Code, Diagnostic, Dim, Fix, Span, counted};
use rx_context::ItemPart;
use rx_ir::{BufferParam, DTensorInfo, PrimParamKind, Shape, StructInfo, TensorInfo};
use std::sync::Arc;

/// An output, and the buffer it is.
pub(super) struct Output<'a> {
    /// Its number among the outputs.
    pub nth: usize,
    /// Whether there are others.
    pub many: bool,
    /// The prim_func's parameter.
    pub index: usize,
    pub ty: &'a StructInfo,
}

impl Checker<'_> {
    /// Checks an output; returns its type with error parts where it clashes with the buffer.
    pub(super) fn check_output(
        &mut self,
        call: &TirCall<'_>,
        output: &Output<'_>,
        bindings: &mut Bindings<'_>,
        state: &CallState,
    ) -> StructInfo {
        let ty = output.ty;
        let Some(PrimParamKind::Buffer(buffer)) = call.prim.params.get(output.index).map(|param| &param.kind) else {
            return ty.clone();
        };
        let Some(tensor) = ty.as_tensor() else { return ty.clone() };
        let is_empty = buffer.shape.iter().any(|extent| extent.as_constant() == Some(0));
        if !buffer.written && !is_empty {
            self.output_not_written(call, output, buffer);
            return ty.clone();
        }
        let mut result = tensor.clone();
        self.check_output_dtype(call, output, buffer, &mut result);
        let ndim = tensor.shape.ndim();
        if let Some(ndim) = ndim.filter(|ndim| *ndim != buffer.shape.len()) {
            let what = format!("it has {}, the buffer has {}", counted(ndim, "dimension"), buffer.shape.len());
            let place = call.written.part(output.nth, ClashKind::Shape, None);
            let diagnostic = call.output_mismatch(output, buffer, place, what);
            self.report(diagnostic);
            result.shape = Shape::Error;
        } else if let Some(dims) = tensor.shape.dims() {
            result.shape = Shape::known(self.check_output_dims(call, output, buffer, dims, bindings, state));
        }
        rebuild(ty, result)
    }

    fn output_not_written(&mut self, call: &TirCall<'_>, output: &Output<'_>, buffer: &BufferParam) {
        let message = format!("`{}` never writes parameter {}, which the call returns", call.function, output.index);
        let whole = call.written.whole(output.nth);
        let diagnostic = call
            .output_diagnostic(Code::CallTirOutputNotWritten, output, buffer, whole, message)
            .with_help("pass it as an argument, or return the buffer the prim_func writes");
        self.report(diagnostic);
    }

    fn check_output_dtype(
        &mut self,
        call: &TirCall<'_>,
        output: &Output<'_>,
        buffer: &BufferParam,
        result: &mut TensorInfo,
    ) {
        let wanted = buffer.dtype;
        match result.dtype {
            Some(dtype) if dtype != wanted => {
                let place = call.written.part(output.nth, ClashKind::Dtype, None);
                let what = format!("its dtype is {dtype}, the buffer is {wanted}");
                let mut diagnostic = call.output_mismatch(output, buffer, place, what);
                let is_written = |place: &Span| self.segment.text().get(place.range()).is_some_and(is_string);
                if let Some(place) = place.filter(is_written) {
                    let fix = self.replace_fix(place, format!("write \"{wanted}\""), format!("\"{wanted}\""));
                    diagnostic = diagnostic.with_fix(fix);
                }
                self.report(diagnostic);
                result.dtype = None;
                result.dtype_error = true;
            }
            None if !result.dtype_error => {
                let what = format!("the output has no dtype, the buffer is {wanted}");
                let place = call.written.whole(output.nth);
                let diagnostic = call.output_mismatch(output, buffer, place, what);
                self.report(diagnostic.with_help(format!("add dtype=\"{wanted}\"")));
                result.dtype = Some(wanted);
            }
            _ => {}
        }
    }

    /// The dims of an output with errors where they are not the buffer's. One report names the first, its fix writes all.
    fn check_output_dims(
        &mut self,
        call: &TirCall<'_>,
        output: &Output<'_>,
        buffer: &BufferParam,
        dims: &[Dim],
        bindings: &mut Bindings<'_>,
        state: &CallState,
    ) -> Vec<Dim> {
        let mut reconciled = dims.to_vec();
        let mut wrong: Vec<(usize, Equality)> = Vec::new();
        for (axis, (wanted, actual)) in buffer.shape.iter().zip(dims).enumerate() {
            let bound_before = wanted.as_symbol().is_none_or(|symbol| bindings.get(symbol).is_some());
            let equality = bindings.meet(wanted, actual, usize::MAX);
            let mut touches_conflict = false;
            wanted.for_each_symbol(&mut |symbol| touches_conflict |= state.conflicted.contains(&symbol));
            if touches_conflict || !bound_before || !self.is_wrong_output(&equality) {
                continue;
            }
            if let Some(dim) = reconciled.get_mut(axis) {
                *dim = Dim::ERROR;
            }
            wrong.push((axis, equality));
        }
        let fix = self.output_dims_fix(call, output, &wrong);
        if let Some((axis, equality)) = wrong.into_iter().next() {
            self.output_dim_mismatch(call, output, buffer, axis, &equality, bindings, fix);
        }
        reconciled
    }

    /// Open: the dims size the allocation, so "maybe equal" is not enough where both sides are known.
    fn is_wrong_output(&self, equality: &Equality) -> bool {
        match (equality.answer, &equality.wanted_here) {
            (Answer::Refuted, _) => true,
            (Answer::Open, Some(here)) => prove::equal(here, &equality.actual, &self.bounds) == Answer::Open,
            _ => false,
        }
    }

    #[allow(clippy::too_many_arguments)] // The call, its output, the dim that clashes and what it clashes with.
    fn output_dim_mismatch(
        &mut self,
        call: &TirCall<'_>,
        output: &Output<'_>,
        buffer: &BufferParam,
        axis: usize,
        equality: &Equality,
        bindings: &Bindings<'_>,
        fix: Option<Fix<Place>>,
    ) {
        let (wanted, actual) = (&equality.wanted, &equality.actual);
        let needs = match &equality.wanted_here {
            Some(here) if here != wanted => format!("{wanted} = {here}"),
            _ => wanted.to_string(),
        };
        let what = match equality.answer {
            Answer::Open => {
                format!("axis {axis} is {actual}, and nothing says that it is {needs}, as the buffer has it")
            }
            _ => format!("axis {axis} is {actual}, the buffer needs {needs}"),
        };
        let place = call.written.part(output.nth, ClashKind::Shape, Some(axis));
        let mut diagnostic = call.output_mismatch(output, buffer, place, what);
        for origin in bindings.origins(wanted) {
            diagnostic = diagnostic.with_note(origin);
        }
        let message = diagnostic.message.clone();
        diagnostic = self.with_symbols(diagnostic, &message, [output.ty]);
        let dims: Vec<&Dim> = equality.wanted_here.iter().chain([actual]).collect();
        diagnostic = self.with_facts(diagnostic, &dims);
        diagnostic.fixes.extend(fix);
        self.report(diagnostic);
    }

    /// The fix that writes the buffer's dims where others are written.
    fn output_dims_fix(
        &mut self,
        call: &TirCall<'_>,
        output: &Output<'_>,
        wrong: &[(usize, Equality)],
    ) -> Option<Fix<Place>> {
        let whole = call.written.part(output.nth, ClashKind::Shape, None);
        let mut edits = Vec::new();
        for (axis, equality) in wrong {
            let place = call.written.part(output.nth, ClashKind::Shape, Some(*axis))?;
            if Some(place) == whole || Some(place) == call.written.whole(output.nth) {
                return None;
            }
            edits.push((Place::Here(place), self.written_dim(equality.wanted_here.as_ref()?)?));
        }
        let dims: Vec<&str> = edits.iter().map(|(_, text)| text.as_str()).collect();
        let title = format!("write {}", dims.join(", "));
        (!edits.is_empty()).then_some(Fix { title, edits, safe: false })
    }
}

impl TirCall<'_> {
    fn output_mismatch(
        &self,
        output: &Output<'_>,
        buffer: &BufferParam,
        place: Option<Span>,
        what: String,
    ) -> Diagnostic<Place> {
        let which = if output.many { format!("output {}", output.nth) } else { "the output".to_owned() };
        let message = format!("{which} of `{}` does not fit `out_ty`: {what}", self.function);
        self.output_diagnostic(Code::CallTirOutputMismatch, output, buffer, place, message)
    }

    fn output_diagnostic(
        &self,
        code: Code,
        output: &Output<'_>,
        buffer: &BufferParam,
        place: Option<Span>,
        message: String,
    ) -> Diagnostic<Place> {
        let index = u32::try_from(output.index).unwrap_or(u32::MAX);
        Diagnostic::new(code, Place::Here(place.unwrap_or_else(|| self.bound.span("out_ty"))), message)
            .with_primary_label(format!("declared {}", output.ty))
            .with_label(
                Place::Item(self.function, ItemPart::Param(index)),
                format!("the output buffer is declared {}", shown(buffer)),
            )
    }
}

/// The output's type with another tensor.
fn rebuild(output: &StructInfo, tensor: TensorInfo) -> StructInfo {
    match output {
        StructInfo::DTensor(distributed) => {
            StructInfo::DTensor(Arc::new(DTensorInfo { tensor, ..(**distributed).clone() }))
        }
        _ => tensor.into(),
    }
}

fn is_string(text: &str) -> bool {
    text.starts_with(['"', '\''])
}
