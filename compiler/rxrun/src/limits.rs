//! How large the integers of a parameter may be: what it indexes, the smallest extent.
//!
//! Values drawn for index tensors must be in range, or every embedding would fail. The analysis follows a parameter
//! through operators that keep its values and looks at what takes it as indices.

use rx_base::name::NameMap;
use rx_base::{Dim, Name};
use rx_ir::{Argument, Attr, Binding, BindingKind, Body, Call, Callee, Expr, ExprKind, Function};

/// Operators whose result holds values of the first operand only.
const KEEPS_VALUES: &[&str] = &[
    "astype",
    "reshape",
    "flatten",
    "expand_dims",
    "squeeze",
    "permute_dims",
    "broadcast_to",
    "strided_slice",
    "split",
    "concat",
    "repeat",
    "tile",
    "flip",
    "take",
    "wrap_param",
    "builtin.stop_lift_params",
    "to_vdevice",
];

/// The parameters of operators that are indices: the operator, the indices, the data they index.
const INDICES: &[(&str, &str, &str)] = &[
    ("take", "indices", "x"),
    ("gather_elements", "indices", "data"),
    ("gather_nd", "indices", "data"),
    ("scatter_elements", "indices", "data"),
];

/// For each parameter the dims it indexes.
pub fn indexed_dims(function: &Function) -> Vec<Vec<Dim>> {
    let mut limits = Limits { holds: NameMap::default(), indexed: vec![Vec::new(); function.params.len()] };
    for (at, (param, _)) in function.params.iter().enumerate() {
        limits.holds.insert(*param, vec![at]);
    }
    limits.body(&function.body);
    limits.indexed
}

struct Limits {
    /// The parameters whose values a variable may hold.
    holds: NameMap<Vec<usize>>,
    indexed: Vec<Vec<Dim>>,
}

impl Limits {
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

    /// The parameters whose values an expression may hold; what it indexes is noted on the way.
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
        for (_, indices, data) in INDICES.iter().filter(|(indexing, ..)| operator == *indexing) {
            self.indices(operator, call, &held, indices, data);
        }
        match KEEPS_VALUES.contains(&operator.as_str()) {
            true => held.into_iter().next().unwrap_or_default(),
            false => Vec::new(),
        }
    }

    fn indices(&mut self, operator: Name, call: &Call, held: &[Vec<usize>], indices: &str, data: &str) {
        let Some(schema) = rx_ops::find(operator) else { return };
        let position = |name: &str| schema.params.iter().position(|param| param.name == name);
        let (Some(indices), Some(data)) = (position(indices), position(data)) else { return };
        let Some(Argument::Operand(data)) = call.arguments.get(data) else { return };
        let Some(dims) = data.ty.as_tensor().and_then(|tensor| tensor.shape.dims()) else { return };
        let axis = position("axis").and_then(|axis| match call.arguments.get(axis) {
            Some(Argument::Attr(attr)) => Attr::as_int(attr),
            _ => None,
        });
        let indexed: Vec<Dim> = match axis {
            Some(axis) => {
                let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
                usize::try_from(axis).ok().and_then(|axis| dims.get(axis)).into_iter().cloned().collect()
            }
            // Without an axis all dims are indexed, one by one or as one.
            None => dims.to_vec(),
        };
        for param in held.get(indices).into_iter().flatten() {
            self.indexed[*param].extend(indexed.iter().cloned());
        }
    }
}
