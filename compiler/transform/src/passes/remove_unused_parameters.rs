//! `RemoveUnusedParameters`: removes the parameters that a private function does not use.
//!
//! ```text
//! @R.function(private=True)                    @R.function(private=True)
//! def f(a: R.Tensor((n,)), b: R.Tensor(())):   def f(b: R.Tensor(()), param_n: R.Shape([n])):
//!     y = R.broadcast_to(b, R.shape([n]))  →       y = R.broadcast_to(b, R.shape([n]))
//! gv = cls.f(x, z)                             gv = cls.f(z, R.shape([4]))
//! ```
//!
//! If a removed parameter determined a symbolic dim that is still used, the dim becomes a parameter of type
//! `R.Shape([n])`.
//!
//! Requires a function that is only called, not used as a value, and calls that determine such dims. Other functions
//! stay. Guarantees that no call of a changed function passes an unused argument.
//!
//! Reference: TVM `src/relax/transform/remove_unused_parameters.cc`.

use crate::effects::Effects;
use crate::emit::rewrite_bindings;
use crate::names::FreshNames;
use crate::pass::{Arguments, Pass, PassError};
use crate::passes::dead_code;
use crate::substitute::unify;
use crate::{Module, walk};
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{Dim, Name};
use rx_ir::{Argument, BoundValue, Call, Callee, Expr, ExprKind, RelaxFunction, Sequence, StructInfo, VarBinding};
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "RemoveUnusedParameters",
    parameters: &[],
    doc: "Removes unused parameters of private functions.",
    reference: "src/relax/transform/remove_unused_parameters.cc",
    run,
};

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    let values = walk::function_values(&module);
    let candidates = module.functions().filter(|function| function.private && !values.contains(&function.name));
    let mut reduced: NameMap<Reduced> =
        candidates.filter_map(|function| Some((function.name, Reduced::of(function)?))).collect();
    for function in module.functions() {
        walk::each_expression(&function.body, &mut |expr| {
            if let Some((callee, call)) = own_call(expr)
                && reduced.get(&callee).is_some_and(|reduced| reduced.arguments(call).is_none())
            {
                reduced.remove(&callee);
            }
        });
    }
    if reduced.is_empty() {
        return Ok(module);
    }
    for function in module.functions_mut() {
        if let Some(reduced) = reduced.get(&function.name) {
            function.params = reduced.params.clone();
        }
    }
    let effects = Effects::of(&module);
    for function in module.functions_mut() {
        let mut changed = false;
        rewrite_bindings(function, &mut |binding, _| {
            let BoundValue::Expr(value) = &mut binding.value else { return Ok(()) };
            let arguments = own_call(value).and_then(|(callee, call)| reduced.get(&callee)?.arguments(call));
            if let (Some(arguments), ExprKind::Call(call)) = (arguments, &mut value.kind) {
                Arc::make_mut(call).arguments = arguments;
                changed = true;
            }
            Ok(())
        })?;
        if changed {
            dead_code::remove_unused(function, &effects);
        }
    }
    Ok(module)
}

/// Returns the function of the module that a call calls, and the call.
fn own_call(expr: &Expr) -> Option<(Name, &Call)> {
    let call = expr.as_call()?;
    match call.callee {
        Callee::Global(callee) => Some((callee, call)),
        _ => None,
    }
}

/// The new signature of a function.
struct Reduced {
    before: Vec<(Name, StructInfo)>,
    kept: Vec<bool>,
    /// The dims that become parameters.
    dims: Vec<Name>,
    /// The new parameters; those for dims are last.
    params: Vec<(Name, StructInfo)>,
}

impl Reduced {
    /// Computes the new signature of a function. Returns `None` if it uses all its parameters, or if
    /// [`walk::names_in_text`] returns true for it.
    fn of(function: &RelaxFunction) -> Option<Reduced> {
        if walk::names_in_text(function) {
            return None;
        }
        let used = Used::of(&function.body);
        let is_used = |(param, ty): &(Name, StructInfo)| {
            let is_symbol = matches!(ty, StructInfo::Prim(_));
            used.variables.contains(param) || (is_symbol && used.symbols.contains(param))
        };
        let kept: Vec<bool> = function.params.iter().map(is_used).collect();
        if kept.iter().all(|kept| *kept) {
            return None;
        }
        let mut params: Vec<_> =
            function.params.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(param, _)| param.clone()).collect();
        let mut reported = NameSet::default();
        let mut before = NameSet::default();
        params.iter().for_each(|(_, ty)| {
            ty.each_told_symbol(&mut |symbol| {
                reported.insert(symbol);
            });
        });
        function.params.iter().for_each(|(_, ty)| {
            ty.each_told_symbol(&mut |symbol| {
                before.insert(symbol);
            });
        });
        let mut named = used.symbols_in_order;
        params.iter().for_each(|(_, ty)| ty.each_symbol(&mut |symbol| named.push(symbol)));
        function.ret.each_symbol(&mut |symbol| named.push(symbol));
        let mut dims: Vec<Name> =
            named.into_iter().filter(|symbol| before.contains(symbol) && reported.insert(*symbol)).collect();
        // As in TVM, the order of the dims is reversed.
        dims.reverse();
        let mut fresh = FreshNames::of(function);
        let param =
            |symbol: &Name| (fresh.like(name(&format!("param_{symbol}"))), StructInfo::shape([Dim::symbol(*symbol)]));
        params.extend(dims.iter().map(param));
        Some(Reduced { before: function.params.clone(), kept, dims, params })
    }

    /// Returns the new arguments of a call; `None` if the call does not determine one of `dims`, or if its arguments do
    /// not match the parameters.
    fn arguments(&self, call: &Call) -> Option<Vec<Argument>> {
        let operands: Vec<&Expr> = call.arguments.iter().map(Argument::as_operand).collect::<Option<_>>()?;
        if operands.len() != self.before.len() {
            return None;
        }
        let mut known: NameMap<Dim> = NameMap::default();
        self.before.iter().zip(&operands).for_each(|((_, ty), operand)| unify(ty, &operand.ty, &mut known));
        let left = operands.iter().zip(&self.kept).filter(|(_, kept)| **kept).map(|(operand, _)| (*operand).clone());
        let mut passed: Vec<Argument> = left.map(Argument::Operand).collect();
        for dim in &self.dims {
            passed.push(Argument::Operand(Expr::shape(vec![known.get(dim)?.clone()])));
        }
        Some(passed)
    }
}

/// The names that a body uses.
#[derive(Default)]
struct Used {
    variables: NameSet,
    symbols: NameSet,
    symbols_in_order: Vec<Name>,
}

impl Used {
    fn of(body: &Sequence) -> Used {
        let mut used = Used::default();
        walk::each_expression(body, &mut |expr| {
            used.variables.extend(expr.variables());
            expr.each_symbol(&mut |symbol| used.symbol(symbol));
        });
        walk::each_binding(body, &mut |VarBinding { ty, value, .. }| {
            ty.each_symbol(&mut |symbol| used.symbol(symbol));
            if let BoundValue::Function(nested) = value {
                nested.params.iter().for_each(|(_, ty)| ty.each_symbol(&mut |symbol| used.symbol(symbol)));
            }
        });
        used
    }

    fn symbol(&mut self, symbol: Name) {
        if self.symbols.insert(symbol) {
            self.symbols_in_order.push(symbol);
        }
    }
}
