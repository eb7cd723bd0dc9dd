//! Records statements as typed bindings, for lowering.

use super::checker::Checker;
use super::result::Recorded;
use rx_base::Name;
use rx_base::name::name;
use rx_ir::{Attr, Binding, BindingKind, Body, Expr, ExprKind, Function, Origin, StructInfo};
use std::sync::Arc;

impl Checker<'_> {
    /// Whether bindings are recorded.
    pub(super) fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    /// Records a binding of the current statement.
    fn record(&mut self, kind: BindingKind) {
        let origin = Origin { item: name(""), statement: self.statement };
        let dataflow = self.state.dataflow.map(|(_, ordinal)| ordinal);
        if let Some(recorder) = &mut self.recorder {
            recorder.bindings.push(Binding { origin, dataflow, kind });
        }
    }

    /// Records a variable of `R.output`.
    pub(super) fn record_output(&mut self, variable: Name) {
        if let (Some(recorder), Some((_, ordinal))) = (&mut self.recorder, self.state.dataflow) {
            recorder.outputs.push((ordinal, variable));
        }
    }

    /// Records the attributes of `R.func_attr`.
    pub(super) fn record_attributes(&mut self, entries: &[(Arc<str>, Attr)]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.attributes.extend_from_slice(entries);
        }
    }

    pub(super) fn record_value(&mut self, variable: Name, ty: &StructInfo, value: &Expr) {
        if self.recorder.is_some() {
            self.record(BindingKind::Value { variable, ty: ty.clone(), value: Arc::new(value.clone()) });
        }
    }

    pub(super) fn record_unpack(&mut self, variables: Vec<Option<Name>>, value: &Expr) {
        if self.recorder.is_some() {
            self.record(BindingKind::Unpack { variables, value: Arc::new(value.clone()) });
        }
    }

    pub(super) fn record_return(&mut self, value: &Expr) {
        if let Some(recorder) = &mut self.recorder {
            recorder.returned = Some(value.clone());
        }
    }

    /// Begins a separate body, of a branch or a nested function; returns the outer recording, for
    /// [`Checker::end_body`].
    pub(super) fn begin_body(&mut self) -> Option<Recorded> {
        self.recorder.as_mut().map(std::mem::take)
    }

    /// Ends the innermost body, and restores the outer recording.
    pub(super) fn end_body(&mut self, outer: Option<Recorded>) -> Body {
        self.end_function_body(outer).0
    }

    /// Ends the body of a function, and restores the outer recording; returns the attributes too.
    pub(super) fn end_function_body(&mut self, outer: Option<Recorded>) -> (Body, Vec<(Arc<str>, Attr)>) {
        let Some(outer) = outer else { return Default::default() };
        let inner = self.recorder.replace(outer).unwrap_or_default();
        let body = Body { bindings: inner.bindings, result: inner.returned, outputs: inner.outputs };
        (body, inner.attributes)
    }

    /// Records an `if` with its `elif`s, whose branches all end by binding `variable`.
    pub(super) fn record_branches(
        &mut self,
        statement: u32,
        arms: Vec<(Expr, Body)>,
        otherwise: Body,
        variable: Option<(Name, StructInfo)>,
    ) {
        if self.recorder.is_none() {
            return;
        }
        let end_in = |mut body: Body| {
            body.result = variable.as_ref().map(|(variable, ty)| Expr {
                kind: ExprKind::Var(*variable),
                ty: ty.clone(),
                span: rx_context::NOWHERE,
            });
            body
        };
        let arms = arms.into_iter().map(|(condition, body)| (condition, end_in(body))).collect();
        let variable_name = variable.as_ref().map(|(variable, _)| *variable);
        let kind = BindingKind::If { variable: variable_name, arms, otherwise: end_in(otherwise) };
        self.statement = statement;
        self.record(kind);
    }

    pub(super) fn record_function(&mut self, function: Function) {
        if self.recorder.is_some() {
            self.record(BindingKind::Function(Arc::new(function)));
        }
    }
}
