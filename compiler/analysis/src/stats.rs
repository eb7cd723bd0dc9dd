//! What a function holds and costs: bindings, operators, parameters, arithmetic operations, bytes, peak memory.
//!
//! Everything is an expression over the function's symbolic dims. What is counted how stands in `docs/stats.md`; what an
//! operator costs stands in its schema ([`rx_ops::Cost`]).

pub mod amount;
mod memory;
mod total;

use rx_base::symbolic::{Bounds, prove};
use rx_base::{Dim, Name};
use rx_ir::{Function, Origin, Signature, StructInfo};
use rx_tir::Count;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the count of a function asks of the module.
pub trait Callees {
    /// What callers see of the item called `name`.
    fn signature(&self, name: Name) -> Option<Arc<Signature>>;
    /// What a call of the Relax function `name` costs; `None` where it calls itself.
    fn function(&self, name: Name) -> Option<Arc<FunctionStats>>;
    /// What a call of the prim_func `name` costs.
    fn prim_func(&self, name: Name) -> Option<Count>;
    /// The operator called `name`, declared ones included.
    fn operator(&self, name: Name) -> Option<&'static rx_ops::Schema>;
}

/// Calls of one operator or function, and what they cost together.
#[derive(Clone, Debug, PartialEq)]
pub struct CallStats {
    /// How many calls.
    pub calls: u64,
    /// Arithmetic operations of the calls that are counted.
    pub operations: Dim,
    /// Bytes read and written by the calls that are counted.
    pub bytes: Dim,
    /// Calls whose operations are not counted: shapes not known, loops that depend on values, no convention.
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

/// Parameters of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamStats {
    /// How many.
    pub count: u64,
    /// Elements of all tensors of known shape.
    pub elements: Dim,
    /// Bytes of all tensors of known shape and dtype.
    pub bytes: Dim,
    /// Parameters of which something is not known.
    pub unknown: u64,
}

/// The most memory that values of a function take at once.
#[derive(Clone, Debug, PartialEq)]
pub struct PeakStats {
    /// Bytes; parameters and constants left out.
    pub bytes: Dim,
    /// The statement where it is reached.
    pub at: Option<Origin>,
    /// Values whose size is not known, and which are left out.
    pub unknown: u64,
}

/// What is known of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionStats {
    /// Its name.
    pub name: Name,
    /// Bindings and bare statements, those of branches and nested functions included.
    pub bindings: u64,
    /// The leading parameters that are inputs; all, where `num_input` is not stated.
    pub inputs: ParamStats,
    /// The other parameters.
    pub weights: ParamStats,
    /// Operators by name.
    pub operators: BTreeMap<&'static str, CallStats>,
    /// Functions of the module by name.
    pub functions: BTreeMap<&'static str, CallStats>,
    /// All calls together.
    pub total: CallStats,
    /// The most memory at once.
    pub peak: PeakStats,
    /// What is known of the symbols.
    pub bounds: Arc<Bounds>,
}

impl FunctionStats {
    /// The least and the greatest value of an expression, under the bounds the function states.
    pub fn range(&self, dim: &Dim) -> (Option<i64>, Option<i64>) {
        (prove::lower(dim, &self.bounds), prove::upper(dim, &self.bounds))
    }
}

/// Counts a checked function.
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

/// Counts the calls of one expression, one inside another.
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

/// A number to compare expressions by: symbols at their upper bounds, or at a thousand.
fn measure(dim: &Dim, bounds: &Bounds) -> i64 {
    const TYPICAL: i64 = 1024;
    if let Some(value) = dim.as_constant() {
        return value;
    }
    let value = |symbol: Name| Some(Dim::constant(bounds.upper.get(&symbol).copied().unwrap_or(TYPICAL)));
    dim.substitute(&value).as_constant().unwrap_or(i64::MAX)
}

/// The function an operator calls, and the values it passes: `R.call_tir(cls.f, (x, y), …)`.
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
