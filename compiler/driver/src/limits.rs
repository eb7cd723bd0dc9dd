//! Finds upper bounds for the integers of a parameter: the smallest extent that they index.
//!
//! Values drawn for index tensors must be in range, or every embedding would fail. The analysis follows a parameter
//! through operators that keep its values, to the operators that use it as indices. For example, in
//! `R.take(weight, R.reshape(ids, [8]), axis=0)` the parameter `ids` indexes dim 0 of `weight`.

use rx_base::name::NameMap;
use rx_base::symbolic::Bounds;
use rx_base::{Dim, Name};
use rx_ir::{Argument, Binding, BindingKind, Body, Call, Callee, Expr, ExprKind, Function};
use rx_ops::{Arg, CallInfo};

/// Returns for each parameter the dims that its values index.
pub fn indexed_dims(function: &Function) -> Vec<Vec<Dim>> {
    let mut limits = Limits {
        holds: NameMap::default(),
        indexed: vec![Vec::new(); function.params.len()],
        bounds: &function.bounds,
    };
    for (at, (param, _)) in function.params.iter().enumerate() {
        limits.holds.insert(*param, vec![at]);
    }
    limits.body(&function.body);
    limits.indexed
}

/// The state of the analysis.
struct Limits<'a> {
    /// By variable: the parameters whose values it may contain.
    holds: NameMap<Vec<usize>>,
    /// By parameter: the dims that its values index. INVARIANT: there is one entry for each parameter, and `holds`
    /// contains indices of parameters.
    indexed: Vec<Vec<Dim>>,
    bounds: &'a Bounds,
}

impl Limits<'_> {
    fn body(&mut self, body: &Body) {
        body.bindings.iter().for_each(|binding| self.binding(binding));
        if let Some(result) = &body.result {
            self.held(result);
        }
    }

    fn binding(&mut self, binding: &Binding) {
        match &binding.kind {
            BindingKind::Value { variable, value, .. } => {
                let held = self.held(value);
                self.set(*variable, held);
            }
            BindingKind::Unpack { variables, value } => {
                let held = self.held(value);
                variables.iter().flatten().for_each(|variable| self.set(*variable, held.clone()));
            }
            BindingKind::If { arms, otherwise, .. } => {
                arms.iter().for_each(|(_, body)| self.body(body));
                self.body(otherwise);
            }
            BindingKind::Function(_) => {}
        }
    }

    fn set(&mut self, variable: Name, held: Vec<usize>) {
        self.holds.insert(variable, held);
    }

    /// Returns the parameters whose values an expression may contain. Records the dims that they index in it.
    fn held(&mut self, expr: &Expr) -> Vec<usize> {
        match &expr.kind {
            ExprKind::Var(variable) => self.holds.get(variable).cloned().unwrap_or_default(),
            ExprKind::Tuple(fields) => {
                let mut all: Vec<usize> = fields.iter().flat_map(|field| self.held(field)).collect();
                all.sort_unstable();
                all.dedup();
                all
            }
            ExprKind::TupleGet(tuple, _) => self.held(tuple),
            ExprKind::MatchCast(value) => self.held(value),
            ExprKind::Call(call) => self.call(call),
            _ => Vec::new(),
        }
    }

    fn call(&mut self, call: &Call) -> Vec<usize> {
        let mut held = Vec::new();
        for argument in &call.arguments {
            let of_argument = match argument {
                Argument::Operand(expr) => self.held(expr),
                Argument::Operands(exprs) => exprs.iter().flat_map(|expr| self.held(expr)).collect(),
                _ => Vec::new(),
            };
            held.push(of_argument);
        }
        let Callee::Op(operator) = call.callee else { return Vec::new() };
        let Some(schema) = rx_ops::find(operator) else { return Vec::new() };
        let args: Vec<Arg<'_>> = call.arguments.iter().map(Arg::from).collect();
        let info = CallInfo::new(schema, &args, self.bounds);
        let position = |name: &str| schema.params.iter().position(|param| param.name == name);
        for site in schema.traits.sites.map(|sites| sites(&info)).unwrap_or_default() {
            let Some(indices) = position(site.indices) else { continue };
            for param in held.get(indices).into_iter().flatten() {
                self.indexed[*param].extend(site.extent.clone());
            }
        }
        let kept = schema.traits.kept.and_then(position);
        kept.and_then(|at| held.into_iter().nth(at)).unwrap_or_default()
    }
}
