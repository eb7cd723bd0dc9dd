//! Counts the operators and calls of a body, with their costs.

use super::{CallStats, Callees, callee_of};
use crate::unify::Bindings;
use rx_base::symbolic::Bounds;
use rx_base::{Dim, Name};
use rx_ir::{Argument, BindingKind, Body, Call, Callee, Expr, ExprKind, PrimParamKind, Signature, StructInfo};
use rx_ops::{Arg, CallInfo, Charge, Cost, Schema};
use rx_tir::Count;
use std::collections::BTreeMap;

pub(super) struct Counter<'a> {
    callees: &'a dyn Callees,
    bounds: &'a Bounds,
    pub(super) bindings: u64,
    pub(super) operators: BTreeMap<&'static str, CallStats>,
    pub(super) functions: BTreeMap<&'static str, CallStats>,
    pub(super) total: CallStats,
}

impl<'a> Counter<'a> {
    pub(super) fn new(callees: &'a dyn Callees, bounds: &'a Bounds) -> Counter<'a> {
        Counter {
            callees,
            bounds,
            bindings: 0,
            operators: BTreeMap::new(),
            functions: BTreeMap::new(),
            total: CallStats::default(),
        }
    }

    /// Counts a body, including every branch of an `if`. The recursion is limited by the parser's nesting limit.
    pub(super) fn body(&mut self, body: &Body) {
        for binding in &body.bindings {
            self.bindings += 1;
            match &binding.kind {
                BindingKind::Value { value, .. } | BindingKind::Unpack { value, .. } => self.expr(value),
                BindingKind::If { arms, otherwise, .. } => {
                    for (condition, body) in arms {
                        self.expr(condition);
                        self.body(body);
                    }
                    self.body(otherwise);
                }
                BindingKind::Function(function) => self.body(&function.body),
            }
        }
        if let Some(result) = &body.result {
            self.expr(result);
        }
    }

    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.expr(item)),
            ExprKind::TupleGet(inner, _) | ExprKind::MatchCast(inner) => self.expr(inner),
            ExprKind::Call(call) => {
                for argument in &call.arguments {
                    match argument {
                        Argument::Operand(expr) => self.expr(expr),
                        Argument::Operands(exprs) => exprs.iter().for_each(|expr| self.expr(expr)),
                        _ => {}
                    }
                }
                self.call(call, &expr.ty);
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &Call, result: &StructInfo) {
        match &call.callee {
            Callee::Op(name) => {
                let Some(schema) = self.callees.operator(*name) else { return };
                let charge = match schema.cost {
                    Cost::Callee => self.called(call),
                    _ => charge(schema, call, result, self.bounds),
                };
                self.operators.entry(schema.name).or_default().add(charge.operations.clone(), charge.bytes.clone());
                self.total.add(charge.operations, charge.bytes);
            }
            Callee::Global(name) => {
                let types = operand_types(call);
                let charge = cost_of(self.callees, *name, &types, self.bounds);
                self.functions.entry(name.as_str()).or_default().add(charge.operations.clone(), charge.bytes.clone());
                self.total.add(charge.operations, charge.bytes);
            }
            // The cost of a closure is counted where it is defined.
            Callee::Value(_) => {}
        }
    }

    /// Counts a call of the function that an operator calls.
    fn called(&mut self, call: &Call) -> Charge {
        let Some((name, types)) = callee_of(call) else { return Charge { operations: None, bytes: None } };
        let charge = cost_of(self.callees, name, &types, self.bounds);
        let mut stats = CallStats::default();
        stats.add(charge.operations.clone(), charge.bytes.clone());
        self.functions.entry(name.as_str()).or_default().join(&stats);
        charge
    }
}

/// Returns the cost of a call of an operator.
pub(super) fn charge(schema: &'static Schema, call: &Call, result: &StructInfo, bounds: &Bounds) -> Charge {
    let args: Vec<Arg<'_>> = call.arguments.iter().map(Arg::from).collect();
    schema.cost.charge(&CallInfo::new(schema, &args, bounds), result)
}

pub(super) fn operand_types(call: &Call) -> Vec<&StructInfo> {
    let types = call.arguments.iter().filter_map(|argument| match argument {
        Argument::Operand(expr) => Some(&expr.ty),
        _ => None,
    });
    types.collect()
}

/// Returns the cost of a call of the module's item, in terms of the caller's symbols.
fn cost_of(callees: &dyn Callees, name: Name, types: &[&StructInfo], bounds: &Bounds) -> Charge {
    let unknown = Charge { operations: None, bytes: None };
    let Some(signature) = callees.signature(name) else { return unknown };
    let mut bindings = Bindings::new(bounds);
    bind(&mut bindings, &signature, types);
    let here = |dim: Dim| bindings.substitute(&dim);
    match &*signature {
        Signature::Prim(_) => {
            let Some(Count { operations, bytes }) = callees.prim_func(name) else { return unknown };
            Charge { operations: operations.and_then(here), bytes: bytes.and_then(here) }
        }
        Signature::Relax(_) => match callees.function(name) {
            Some(stats) if stats.total.uncounted == 0 => {
                Charge { operations: here(stats.total.operations.clone()), bytes: here(stats.total.bytes.clone()) }
            }
            _ => unknown,
        },
        _ => unknown,
    }
}

/// Binds the symbols of a signature from the types of the arguments.
pub(super) fn bind(bindings: &mut Bindings<'_>, signature: &Signature, types: &[&StructInfo]) {
    match signature {
        Signature::Relax(function) => {
            for (at, ((_, param), ty)) in function.params.iter().zip(types).enumerate() {
                bindings.meet_types(param, ty, at);
            }
        }
        Signature::Prim(prim) => {
            // The scalars of `tir_vars` are passed as one shape.
            let given = types.iter().enumerate().flat_map(|(at, ty)| match ty {
                StructInfo::Shape(shape) => {
                    let dims = shape.dims().unwrap_or_default();
                    dims.iter().map(|dim| (at, Given::Scalar(dim.clone()))).collect::<Vec<_>>()
                }
                StructInfo::Prim(info) => vec![(at, Given::Scalar(info.value.clone().unwrap_or(Dim::ERROR)))],
                ty => vec![(at, Given::Tensor(ty))],
            });
            let (tensors, scalars): (Vec<_>, Vec<_>) = given.partition(|(_, given)| matches!(given, Given::Tensor(_)));
            let (mut tensors, mut scalars) = (tensors.into_iter(), scalars.into_iter());
            for param in prim.params.iter() {
                match &param.kind {
                    PrimParamKind::Buffer(buffer) => {
                        let Some((at, Given::Tensor(ty))) = tensors.next() else { continue };
                        let dims = ty.as_tensor().and_then(|tensor| tensor.shape.dims()).unwrap_or_default();
                        for (wanted, actual) in buffer.shape.iter().zip(dims) {
                            bindings.meet(wanted, actual, at);
                        }
                    }
                    PrimParamKind::Scalar(_) => {
                        if let Some((at, Given::Scalar(value))) = scalars.next() {
                            bindings.bind(param.name, value, at);
                        }
                    }
                    PrimParamKind::Opaque => drop(tensors.next()),
                }
            }
        }
        _ => {}
    }
}

/// An argument of a prim_func.
enum Given<'t> {
    Tensor(&'t StructInfo),
    Scalar(Dim),
}
