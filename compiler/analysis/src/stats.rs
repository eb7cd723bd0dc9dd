//! Statistics of a function: bindings, operators, parameters, arithmetic operations, bytes, and peak memory.
//!
//! All amounts are expressions over the function's symbolic dims. `docs/stats.md` defines how they are counted; the
//! cost of an operator is defined in its schema ([`rx_ops::Cost`]).

pub mod amount;
mod memory;
mod total;

use rx_base::symbolic::{Bounds, prove};
use rx_base::{Dim, Name};
use rx_ir::{Function, Origin, Signature, StructInfo};
use rx_tir::Count;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The queries of the statistics about the module.
pub trait Callees {
    /// Returns the signature of the item `name`.
    fn signature(&self, name: Name) -> Option<Arc<Signature>>;
    /// Returns the cost of a call of the Relax function `name`; `None` if it is recursive.
    fn function(&self, name: Name) -> Option<Arc<FunctionStats>>;
    /// Returns the cost of a call of the prim_func `name`.
    fn prim_func(&self, name: Name) -> Option<Count>;
    /// Returns the operator `name`, including declared ones.
    fn operator(&self, name: Name) -> Option<&'static rx_ops::Schema>;
}

/// The calls of one operator or function, and their total cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CallStats {
    /// The number of calls.
    pub calls: u64,
    /// The arithmetic operations of the counted calls.
    pub operations: Dim,
    /// The bytes read and written by the counted calls.
    pub bytes: Dim,
    /// The number of calls whose operations are not counted: their shapes are unknown, their loops depend on values,
    /// or their cost is not defined.
    pub uncounted: u64,
}

impl Default for CallStats {
    fn default() -> CallStats {
        CallStats { calls: 0, operations: Dim::constant(0), bytes: Dim::constant(0), uncounted: 0 }
    }
}

impl CallStats {
    fn add(&mut self, operations: Option<Dim>, bytes: Option<Dim>) {
        self.calls += 1;
        self.uncounted += u64::from(operations.is_none());
        if let Some(operations) = operations {
            self.operations = &self.operations + &operations;
        }
        if let Some(bytes) = bytes {
            self.bytes = &self.bytes + &bytes;
        }
    }

    fn join(&mut self, other: &CallStats) {
        self.calls += other.calls;
        self.uncounted += other.uncounted;
        self.operations = &self.operations + &other.operations;
        self.bytes = &self.bytes + &other.bytes;
    }
}

/// The parameters of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamStats {
    /// The number of parameters.
    pub count: u64,
    /// The elements of all tensors of known shape.
    pub elements: Dim,
    /// The bytes of all tensors of known shape and dtype.
    pub bytes: Dim,
    /// The number of parameters of unknown size.
    pub unknown: u64,
}

/// The peak memory of a function's values.
#[derive(Clone, Debug, PartialEq)]
pub struct PeakStats {
    /// The peak in bytes, without parameters and constants.
    pub bytes: Dim,
    /// The statement where the peak is reached.
    pub at: Option<Origin>,
    /// The number of values of unknown size, which are not counted.
    pub unknown: u64,
}

/// The statistics of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionStats {
    /// The function's name.
    pub name: Name,
    /// The number of bindings and bare statements, including those of branches and nested functions.
    pub bindings: u64,
    /// The leading parameters that are inputs; all parameters if `num_input` is not set.
    pub inputs: ParamStats,
    /// The other parameters.
    pub weights: ParamStats,
    /// The operators by name.
    pub operators: BTreeMap<&'static str, CallStats>,
    /// The module's functions by name.
    pub functions: BTreeMap<&'static str, CallStats>,
    /// All calls together.
    pub total: CallStats,
    /// The peak memory.
    pub peak: PeakStats,
    /// The bounds of the symbols.
    pub bounds: Arc<Bounds>,
}

impl FunctionStats {
    /// Returns the minimum and maximum of an expression under the function's bounds.
    pub fn range(&self, dim: &Dim) -> (Option<i64>, Option<i64>) {
        (prove::lower(dim, &self.bounds), prove::upper(dim, &self.bounds))
    }
}

/// Computes the statistics of a checked function.
pub fn function_stats(function: &Function, callees: &dyn Callees) -> FunctionStats {
    let inputs = function.num_input.and_then(|count| usize::try_from(count).ok());
    let (inputs, weights) = function.params.split_at(inputs.unwrap_or(usize::MAX).min(function.params.len()));
    let mut counter = total::Counter::new(callees, &function.bounds);
    counter.body(&function.body);
    let peak = memory::peak(function, callees);
    FunctionStats {
        name: function.name,
        bindings: counter.bindings,
        inputs: params(inputs),
        weights: params(weights),
        operators: counter.operators,
        functions: counter.functions,
        total: counter.total,
        peak,
        bounds: function.bounds.clone(),
    }
}

/// Counts the calls in one expression, including nested ones.
pub fn expression_stats(expr: &rx_ir::Expr, callees: &dyn Callees, bounds: &Bounds) -> CallStats {
    let mut counter = total::Counter::new(callees, bounds);
    counter.expr(expr);
    counter.total
}

fn params(params: &[(Name, StructInfo)]) -> ParamStats {
    let zero = || Dim::constant(0);
    let mut stats = ParamStats { count: params.len() as u64, elements: zero(), bytes: zero(), unknown: 0 };
    for (_, ty) in params {
        let (elements, bytes) = (rx_ops::cost::elements(ty), rx_ops::cost::bytes(ty));
        stats.unknown += u64::from(bytes.is_none());
        stats.elements = &stats.elements + &elements.unwrap_or_else(zero);
        stats.bytes = &stats.bytes + &bytes.unwrap_or_else(zero);
    }
    stats
}

/// Estimates an expression by a number, to compare expressions: symbols take their upper bounds, or 1024.
fn measure(dim: &Dim, bounds: &Bounds) -> i64 {
    const TYPICAL: i64 = 1024;
    if let Some(value) = dim.as_constant() {
        return value;
    }
    let value = |symbol: Name| Some(Dim::constant(bounds.upper.get(&symbol).copied().unwrap_or(TYPICAL)));
    dim.substitute(&value).as_constant().unwrap_or(i64::MAX)
}

/// Returns the function that an operator calls, and the types of the values it passes:
/// `R.call_tir(cls.f, (x, y), …)`.
fn callee_of(call: &rx_ir::Call) -> Option<(Name, Vec<&StructInfo>)> {
    use rx_ir::{Argument, ExprKind};
    let mut name = None;
    let mut types = Vec::new();
    for argument in &call.arguments {
        match argument {
            Argument::Operand(expr) => match (&expr.kind, &expr.ty) {
                (ExprKind::Global(global), _) if name.is_none() => name = Some(*global),
                (ExprKind::Tuple(items), _) => types.extend(items.iter().map(|item| &item.ty)),
                (_, StructInfo::Tuple(fields)) => types.extend(fields.iter()),
                (_, ty) => types.push(ty),
            },
            Argument::Operands(exprs) => types.extend(exprs.iter().map(|expr| &expr.ty)),
            Argument::Types(outputs) => types.extend(outputs),
            Argument::Absent | Argument::Attr(_) => {}
        }
    }
    Some((name?, types))
}
