//! Fixes of `R.call_tir`: output types that match the prim_func's buffers, and arguments that fit its parameters.

use super::parts::{indices, scalars};
use crate::elaborate::argument_list::Parameters;
use crate::elaborate::bound_call::BoundCall;
use crate::elaborate::checker::Checker;
use crate::entry::{Place, replace_fix};
use crate::unify::Bindings;
use rx_base::symbolic::{Answer, Bounds};
use rx_base::{Dim, Fix, Name, Span};
use rx_ir::{
    BufferParam, Expr as IrExpr, ExprKind as IrKind, PrimFuncSignature, PrimParam, PrimParamKind, Shape, StructInfo,
    TensorInfo,
};

impl Checker<'_> {
    /// Adds the fix "write the prim_func's outputs" to the diagnostics about the call's `out_ty`.
    pub(super) fn offer_outputs(&mut self, bound: &BoundCall, prim: &PrimFuncSignature) {
        let written = bound.types("out_ty");
        let place = bound.span("out_ty");
        let is_here =
            |place_: &Place| matches!(place_, Place::Here(at) if place.start <= at.start && at.end <= place.end);
        if place == bound.call_span || !self.diagnostics.iter().any(|diagnostic| is_here(&diagnostic.primary)) {
            return;
        }
        let Some(text) = self.outputs_text(bound, prim, written) else { return };
        self.offer_type(0, place, "write the prim_func's outputs", Some(text));
        // The fix is safe if it only adds a missing dtype, which can only be the buffer's.
        let only_dtypes = written.iter().all(|ty| ty.as_tensor().is_some_and(|tensor| tensor.dtype.is_none()));
        for diagnostic in self.diagnostics.iter_mut().filter(|it| only_dtypes && it.message.contains("has no dtype")) {
            diagnostic.fixes.iter_mut().for_each(|fix| fix.safe = is_here(&diagnostic.primary));
        }
    }

    /// Returns the fix that writes one output for each parameter that is not passed as an argument.
    pub(super) fn outputs_fix(&mut self, bound: &BoundCall, prim: &PrimFuncSignature) -> Option<Fix<Place>> {
        let place = bound.span("out_ty");
        let text = self.outputs_text(bound, prim, bound.types("out_ty")).filter(|_| place != bound.call_span)?;
        if self.segment.text().get(place.range()) == Some(&text) {
            return None;
        }
        Some(replace_fix(place, "write the prim_func's outputs", text))
    }

    /// Returns the text of the `out_ty` that fits the prim_func and the arguments.
    fn outputs_text(&mut self, bound: &BoundCall, prim: &PrimFuncSignature, written: &[StructInfo]) -> Option<String> {
        let arguments = self.argument_types(bound)?;
        let bounds = self.bounds.clone();
        let mut bindings = Bindings::new(&bounds);
        for (at, (param, ty)) in prim.params.iter().zip(&arguments).enumerate() {
            if let (PrimParamKind::Buffer(buffer), Some(tensor)) = (&param.kind, ty.as_tensor()) {
                let dims = buffer.shape.iter().zip(tensor.shape.dims().unwrap_or_default());
                dims.for_each(|(wanted, actual)| drop(bindings.meet(wanted, actual, at)));
            }
        }
        let aliased = indices(bound, written.len());
        let indices: Vec<usize> = match aliased {
            Some(indices) => {
                let mut fresh = arguments.len()..;
                let index = |at: &i64| usize::try_from(*at).ok().or_else(|| fresh.next());
                indices.iter().map(index).collect::<Option<_>>()?
            }
            None => (arguments.len()..prim.params.len().checked_sub(scalars(bound)?.len())?).collect(),
        };
        let mut texts = Vec::new();
        for (nth, index) in indices.iter().enumerate() {
            let PrimParamKind::Buffer(buffer) = &prim.params.get(*index)?.kind else { return None };
            let own = written.get(nth);
            let vdevice = own.and_then(StructInfo::as_tensor).and_then(|tensor| tensor.vdevice);
            if !buffer.written || matches!(own, Some(StructInfo::DTensor(_))) {
                return None;
            }
            // A symbol that no argument binds is bound by the first output that contains it.
            let own_dims = own.and_then(StructInfo::as_tensor).and_then(|tensor| tensor.shape.dims());
            let dims = buffer.shape.iter().zip(own_dims.unwrap_or_default()).filter(|(_, own)| !own.is_error());
            dims.for_each(|(wanted, own)| drop(bindings.meet(wanted, own, *index)));
            let dims = output_dims(buffer, own, &bindings)?;
            let tensor = TensorInfo {
                shape: Shape::known(dims),
                dtype: Some(buffer.dtype),
                vdevice,
                dtype_error: false,
                readings: None,
            };
            texts.push(self.written_type(&tensor.into())?);
        }
        match &texts[..] {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }

    /// Returns the types of a call's arguments, one by one.
    fn argument_types(&self, bound: &BoundCall) -> Option<Vec<StructInfo>> {
        Some(bound.operand("args")?.ty.as_tuple()?.to_vec())
    }

    /// Returns the fix of a call that passes one argument too many, or a tuple in place of its fields: rewrites the
    /// argument list so that it has `wanted` arguments.
    pub(super) fn arguments_fix(
        &self,
        bound: &BoundCall,
        prim: &PrimFuncSignature,
        wanted: usize,
    ) -> Option<Fix<Place>> {
        let items = arguments_of(bound)?;
        let source = |item: &IrExpr| self.segment.text().get(item.span.range()).unwrap_or_default().to_owned();
        let texts: Vec<String> = items.iter().map(source).collect();
        let place = Place::Here(bound.span("args"));
        let listed = |texts: &[String]| match texts {
            [one] => format!("({one},)"),
            several => format!("({})", several.join(", ")),
        };
        for (at, item) in items.iter().enumerate() {
            let fields = item.ty.as_tuple().map_or(0, <[StructInfo]>::len);
            if fields > 0 && items.len() - 1 + fields == wanted {
                let unpacked: Vec<String> = match &item.kind {
                    IrKind::Tuple(inner) => inner.iter().map(source).collect(),
                    _ => (0..fields).map(|field| format!("{}[{field}]", source(item))).collect(),
                };
                let mut all = texts.clone();
                all.splice(at..=at, unpacked);
                return Some(Fix {
                    title: "unpack the tuple".to_owned(),
                    edits: vec![(place, listed(&all))],
                    safe: false,
                });
            }
        }
        // `R.call_tir` passes arguments, outputs, then scalars, so the parameters after the arguments must have that
        // order.
        let rest = prim.params.get(wanted..)?;
        let (outputs, scalars) = rest.split_at_checked(rest.len().checked_sub(scalars(bound)?.len())?)?;
        let is_output = |kind: &PrimParamKind| matches!(kind, PrimParamKind::Buffer(buffer) if buffer.written);
        let follow = outputs.iter().all(|param| is_output(&param.kind))
            && scalars.iter().all(|param| !matches!(param.kind, PrimParamKind::Buffer(_)));
        if items.len() != wanted + 1 || !follow {
            return None;
        }
        let fits = |left: &[&IrExpr]| {
            let types: Vec<&StructInfo> = left.iter().map(|item| &item.ty).collect();
            fit_buffers(&prim.params, &types, &self.bounds)
        };
        let without = |at: usize| items.iter().enumerate().filter(move |(index, _)| *index != at).map(|(_, item)| item);
        // Try to remove an argument that is passed twice first, from the last to the first.
        let is_double = |at: &usize| texts.iter().filter(|text| Some(*text) == texts.get(*at)).count() > 1;
        let mut order: Vec<usize> = (0..items.len()).rev().collect();
        order.sort_by_key(|at| !is_double(at));
        let at = order.into_iter().find(|at| fits(&without(*at).collect::<Vec<_>>()))?;
        let title = format!("leave out `{}`", texts.get(at)?);
        let left: Vec<String> = without(at).map(source).collect();
        Some(Fix { title, edits: vec![(place, listed(&left))], safe: false })
    }

    /// Offers the order of the arguments that fits the prim_func, for the diagnostics from number `since` on.
    pub(super) fn offer_argument_order(&mut self, since: usize, bound: &BoundCall, prim: &PrimFuncSignature) {
        if self.diagnostics.len() == since {
            return;
        }
        let Some(items) = arguments_of(bound) else { return };
        let (bounds, names) = (self.bounds.clone(), names_of(prim, items.len()));
        let fits = |types: &[&StructInfo]| fit_buffers(&prim.params, types, &bounds);
        self.offer_order(since, &Parameters { count: items.len(), names: &names, fits: &fits }, items);
    }

    /// Returns the fix of a call with fewer than `wanted` arguments: passes variables that fit the prim_func.
    pub(super) fn missing_arguments_fix(
        &mut self,
        bound: &BoundCall,
        prim: &PrimFuncSignature,
        wanted: usize,
    ) -> Option<Fix<Place>> {
        let items = arguments_of(bound)?;
        // A list of one argument may be written without parentheses.
        if !self.segment.text().get(bound.span("args").range())?.starts_with(['(', '[']) {
            return None;
        }
        let (bounds, names) = (self.bounds.clone(), names_of(prim, wanted));
        let fits = |types: &[&StructInfo]| fit_buffers(&prim.params, types, &bounds);
        let params = Parameters { count: wanted, names: &names, fits: &fits };
        self.with_missing(&params, items, None)
    }

    /// Returns the fix that swaps the prim_func and its arguments.
    pub(super) fn exchange_fix(&self, bound: &BoundCall) -> Option<Fix<Place>> {
        let [IrExpr { kind: IrKind::Global(_), .. }] = arguments_of(bound)? else { return None };
        let (function, args) = (bound.operand("gvar").or_else(|| bound.operand("func"))?.span, bound.span("args"));
        let source = |span: Span| Some((Place::Here(span), self.segment.text().get(span.range())?.to_owned()));
        let ((first, text_of_first), (second, text_of_second)) = (source(function)?, source(args)?);
        let edits = vec![(first, text_of_second), (second, text_of_first)];
        Some(Fix { title: "exchange the function and its arguments".to_owned(), edits, safe: false })
    }

    /// Returns the fix of a single argument that does not fit a buffer: changes the annotation of a parameter to the
    /// buffer's type, or passes the fitting field of a tuple.
    pub(super) fn argument_fix(
        &mut self,
        argument: &IrExpr,
        buffer: &BufferParam,
        bindings: &Bindings<'_>,
    ) -> Option<Fix<Place>> {
        if let Some(fields) = argument.ty.as_tuple() {
            let at = fields.iter().position(|field| field.as_tensor().is_some_and(|field| may_fit(field, buffer)))?;
            let end = Span::empty(argument.span.end);
            return match argument.kind {
                IrKind::Var(_) => Some(replace_fix(end, format!("pass field {at}"), format!("[{at}]"))),
                _ => None,
            };
        }
        let IrKind::Var(variable) = argument.kind else { return None };
        self.parameter_type_fix(variable, &needed_type(argument, buffer, bindings)?)
    }

    /// Returns the fix that inserts a `match_cast` of a variable to `ty` before the statement, so that unproved dims
    /// are checked at run time.
    pub(super) fn cast_fix(&mut self, argument: &IrExpr, ty: &StructInfo) -> Option<Fix<Place>> {
        let IrKind::Var(variable) = argument.kind else { return None };
        let cast = rx_base::name::name(&format!("{variable}_cast"));
        let statement = self.statement_at(self.statement as usize)?.span;
        let before = self.segment.text().get(..statement.range().start)?;
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let indent = before.get(line..).filter(|indent| indent.trim().is_empty())?.to_owned();
        if self.lookup(cast).is_some() {
            return None;
        }
        let text = self.written_type(ty)?;
        let relax = self.file.spelled_namespace("R");
        let cast_to = format!("{indent}{cast} = {relax}.match_cast({variable}, {text})\n");
        let place = Span::empty(u32::try_from(line).ok()?);
        let edits = vec![(Place::Here(place), cast_to), (Place::Here(argument.span), cast.to_string())];
        Some(Fix { title: format!("cast `{variable}` to {text}"), edits, safe: true })
    }
}

/// Returns the arguments of a call; `None` if they are a variable.
fn arguments_of(bound: &BoundCall) -> Option<&[IrExpr]> {
    match &bound.operand("args")?.kind {
        IrKind::Tuple(items) => Some(items),
        _ => None,
    }
}

/// Returns the type that an argument must have to be passed for a buffer. Dims that other arguments do not determine
/// are its own.
pub(super) fn needed_type(argument: &IrExpr, buffer: &BufferParam, bindings: &Bindings<'_>) -> Option<StructInfo> {
    let own = argument.ty.as_tensor();
    let dims = output_dims(buffer, Some(&argument.ty), bindings)?;
    let vdevice = own.and_then(|tensor| tensor.vdevice);
    let shape = Shape::known(dims);
    Some(TensorInfo { shape, dtype: Some(buffer.dtype), vdevice, dtype_error: false, readings: None }.into())
}

/// Returns the buffer's dims in terms of the caller's symbols. Dims that the arguments do not determine are copied
/// from the tensor `own`.
fn output_dims(buffer: &BufferParam, own: Option<&StructInfo>, bindings: &Bindings<'_>) -> Option<Vec<Dim>> {
    let own = own.and_then(StructInfo::as_tensor).and_then(|tensor| tensor.shape.dims());
    let dim = |(axis, dim): (usize, &Dim)| {
        let written = own.and_then(|dims| dims.get(axis)).filter(|dim| !dim.is_error());
        bindings.substitute(dim).or_else(|| written.cloned())
    };
    buffer.shape.iter().enumerate().map(dim).collect()
}

/// Returns the names of the first `count` parameters.
fn names_of(prim: &PrimFuncSignature, count: usize) -> Vec<Name> {
    prim.params.iter().take(count).map(|param| param.name).collect()
}

/// Whether values of these types fit the first parameters of a prim_func, with one value for each of its symbols.
pub(in crate::elaborate) fn fit_buffers(params: &[PrimParam], types: &[&StructInfo], bounds: &Bounds) -> bool {
    let mut bindings = Bindings::new(bounds);
    params.iter().zip(types).enumerate().all(|(at, (param, ty))| match (&param.kind, ty.as_tensor()) {
        (PrimParamKind::Buffer(buffer), Some(tensor)) => {
            let mut dims = buffer.shape.iter().zip(tensor.shape.dims().unwrap_or_default());
            may_fit(tensor, buffer)
                && dims.all(|(wanted, actual)| bindings.meet(wanted, actual, at).answer != Answer::Refuted)
        }
        (PrimParamKind::Buffer(_), None) => false,
        (PrimParamKind::Scalar(_), tensor) => tensor.is_none(),
        (PrimParamKind::Opaque, _) => true,
    })
}

/// Whether a tensor may be passed for a buffer, as far as dtype, rank and constant dims are known.
fn may_fit(tensor: &TensorInfo, buffer: &BufferParam) -> bool {
    let dims = tensor.shape.dims();
    tensor.dtype.is_none_or(|dtype| dtype == buffer.dtype)
        && tensor.shape.ndim().is_none_or(|ndim| ndim == buffer.shape.len())
        && dims.unwrap_or_default().iter().zip(buffer.shape.iter()).all(|(actual, wanted)| {
            match (actual.as_constant(), wanted.as_constant()) {
                (Some(actual), Some(wanted)) => actual == wanted,
                _ => true,
            }
        })
}
