//! Checks the outputs of `R.call_tir` against the buffers that the prim_func writes.
//!
//! Outputs are allocated from `out_ty` before the kernel can check anything, so they must be *proved* to match.

use super::parts::{CallState, TirCall, shown};
use crate::elaborate::checker::Checker;
use crate::entry::{Place, mistake, replace_fix};
use crate::reconcile::ClashKind;
use crate::unify::{Bindings, Equality};
use rx_base::symbolic::{Answer, prove};
use rx_base::{Code, Diagnostic, Dim, Fix, Span, counted};
use rx_ir::{BufferParam, DTensorInfo, Shape, StructInfo, TensorInfo};
use std::sync::Arc;

/// An output of a call, and its buffer in the prim_func.
pub(super) struct Output<'a> {
    pub call: &'a TirCall<'a>,
    /// The index of the output among the outputs.
    pub nth: usize,
    /// Whether the call has several outputs.
    pub many: bool,
    /// The index of the prim_func's parameter.
    pub index: usize,
    pub ty: &'a StructInfo,
    pub buffer: &'a BufferParam,
}

impl Checker<'_> {
    /// Checks an output; returns its type, with error parts where it clashes with the buffer.
    pub(super) fn check_output(&mut self, output: &Output<'_>, state: &mut CallState<'_>) -> StructInfo {
        let Output { call, ty, buffer, .. } = *output;
        let Some(tensor) = ty.as_tensor() else { return ty.clone() };
        let is_empty = buffer.shape.iter().any(|extent| extent.as_constant() == Some(0));
        if !buffer.written && !is_empty {
            self.output_not_written(output);
            return ty.clone();
        }
        let mut result = tensor.clone();
        self.check_output_dtype(output, &mut result);
        let ndim = tensor.shape.ndim();
        if let Some(ndim) = ndim.filter(|ndim| *ndim != buffer.shape.len()) {
            let subject = format!("it has {}, the buffer has {}", counted(ndim, "dimension"), buffer.shape.len());
            let place = call.written.part(output.nth, ClashKind::Shape, None);
            self.report(output.mismatch(place, subject));
            result.shape = Shape::Error;
        } else if let Some(dims) = tensor.shape.dims() {
            result.shape = Shape::known(self.check_output_dims(output, dims, state));
        }
        rebuild(ty, result)
    }

    fn output_not_written(&mut self, output: &Output<'_>) {
        let Output { call, index, nth, .. } = *output;
        let message = format!("`{}` never writes parameter {index}, which the call returns", call.function);
        let diagnostic = output
            .diagnostic(Code::CallTirOutputNotWritten, call.written.whole(nth), message)
            .with_help("pass it as an argument, or return the buffer the prim_func writes");
        self.report(diagnostic);
    }

    fn check_output_dtype(&mut self, output: &Output<'_>, result: &mut TensorInfo) {
        let Output { call, nth, .. } = *output;
        let wanted = output.buffer.dtype;
        match result.dtype {
            Some(dtype) if dtype != wanted => {
                let place = call.written.part(nth, ClashKind::Dtype, None);
                let subject = format!("its dtype is {dtype}, the buffer is {wanted}");
                let mut diagnostic = output.mismatch(place, subject);
                let is_written = |place: &Span| self.segment.text().get(place.range()).is_some_and(is_string);
                if let Some(place) = place.filter(is_written) {
                    let fix = replace_fix(place, format!("write \"{wanted}\""), format!("\"{wanted}\""));
                    diagnostic = diagnostic.with_fix(fix);
                }
                self.report(diagnostic);
                result.dtype = None;
                result.dtype_error = true;
            }
            None if !result.dtype_error => {
                let subject = format!("the output has no dtype, the buffer is {wanted}");
                let diagnostic = output.mismatch(call.written.whole(nth), subject);
                self.report(diagnostic.with_help(format!("add dtype=\"{wanted}\"")));
                result.dtype = Some(wanted);
            }
            _ => {}
        }
    }

    /// Returns the dims of an output, with errors where they do not match the buffer's. Only the first mismatch is
    /// reported; its fix corrects all.
    fn check_output_dims(&mut self, output: &Output<'_>, dims: &[Dim], state: &mut CallState<'_>) -> Vec<Dim> {
        let mut reconciled = dims.to_vec();
        let mut wrong: Vec<(usize, Equality)> = Vec::new();
        for (axis, (wanted, actual)) in output.buffer.shape.iter().zip(dims).enumerate() {
            let bound_before = wanted.as_symbol().is_none_or(|symbol| state.bindings.get(symbol).is_some());
            let equality = state.bindings.meet(wanted, actual, usize::MAX);
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
        let fix = self.output_dims_fix(output, &wrong);
        if let Some((axis, equality)) = wrong.first() {
            let mut diagnostic = self.output_dim_mismatch(output, *axis, equality, &state.bindings);
            diagnostic.fixes.extend(fix);
            self.report(diagnostic);
        }
        reconciled
    }

    /// Whether an output's dim is wrong. Since the dim determines the allocation, an open equality is wrong where
    /// both sides are known.
    fn is_wrong_output(&self, equality: &Equality) -> bool {
        match (equality.answer, &equality.wanted_here) {
            (Answer::Refuted, _) => true,
            (Answer::Open, Some(here)) => prove::equal(here, &equality.actual, &self.bounds) == Answer::Open,
            _ => false,
        }
    }

    fn output_dim_mismatch(
        &mut self,
        output: &Output<'_>,
        axis: usize,
        equality: &Equality,
        bindings: &Bindings<'_>,
    ) -> Diagnostic<Place> {
        let (wanted, actual) = (&equality.wanted, &equality.actual);
        let needs = match &equality.wanted_here {
            Some(here) if here != wanted => format!("{wanted} = {here}"),
            _ => wanted.to_string(),
        };
        let subject = match equality.answer {
            Answer::Open => {
                format!("axis {axis} is {actual}; the buffer requires {needs}, and rx cannot prove that they are equal")
            }
            _ => format!("axis {axis} is {actual}, the buffer needs {needs}"),
        };
        let place = output.call.written.part(output.nth, ClashKind::Shape, Some(axis));
        let mut diagnostic = output.mismatch(place, subject);
        for origin in bindings.origins(wanted) {
            diagnostic = diagnostic.with_note(origin);
        }
        let message = diagnostic.message.clone();
        diagnostic = self.with_symbols(diagnostic, &message, [output.ty]);
        let dims: Vec<&Dim> = equality.wanted_here.iter().chain([actual]).collect();
        self.with_facts(diagnostic, &dims)
    }

    /// Returns the fix that replaces wrong dims of an output by the buffer's.
    fn output_dims_fix(&mut self, output: &Output<'_>, wrong: &[(usize, Equality)]) -> Option<Fix<Place>> {
        let Output { call, nth, .. } = *output;
        let whole = call.written.part(nth, ClashKind::Shape, None);
        let mut edits = Vec::new();
        for (axis, equality) in wrong {
            let place = call.written.part(nth, ClashKind::Shape, Some(*axis))?;
            if Some(place) == whole || Some(place) == call.written.whole(nth) {
                return None;
            }
            edits.push((Place::Here(place), self.written_dim(equality.wanted_here.as_ref()?)?));
        }
        let dims: Vec<&str> = edits.iter().map(|(_, text)| text.as_str()).collect();
        let title = format!("write {}", dims.join(", "));
        (!edits.is_empty()).then_some(Fix { title, edits, safe: false })
    }
}

impl Output<'_> {
    fn mismatch(&self, place: Option<Span>, subject: String) -> Diagnostic<Place> {
        let which = if self.many { format!("output {}", self.nth) } else { "the output".to_owned() };
        let message = format!("{which} of `{}` does not fit `out_ty`: {subject}", self.call.function);
        self.diagnostic(Code::CallTirOutputMismatch, place, message)
    }

    fn diagnostic(&self, code: Code, place: Option<Span>, message: String) -> Diagnostic<Place> {
        let declared = format!("the output buffer is declared {}", shown(self.buffer));
        mistake(code, place.unwrap_or_else(|| self.call.bound.span("out_ty")), message)
            .with_primary_label(format!("declared {}", self.ty))
            .with_label(Place::param(self.call.function, self.index), declared)
    }
}

/// Returns the output's type with `tensor` as its tensor part.
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
