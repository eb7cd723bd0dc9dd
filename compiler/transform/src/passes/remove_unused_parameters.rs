//! `RemoveUnusedParameters`: private functions take what they use only.
//!
//! TVM `src/relax/transform/remove_unused_parameters.cc`. A parameter that goes may have told a symbolic dim; then the dim is
//! passed, as a shape of one. A function that is named otherwise than to be called stays, and so does one of a call that does
//! not tell such a dim.

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

/// The pass.
pub const PASS: Pass = Pass {
    name: "RemoveUnusedParameters",
    parameters: &[],
    doc: "Leaves out parameters of private functions that these do not use.",
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

/// The function of the module that a call calls.
fn own_call(expr: &Expr) -> Option<(Name, &Call)> {
    let call = expr.as_call()?;
    match call.callee {
        Callee::Global(callee) => Some((callee, call)),
        _ => None,
    }
}

/// What is left of a function's parameters.
struct Reduced {
    before: Vec<(Name, StructInfo)>,
    kept: Vec<bool>,
    /// The dims that are passed besides.
    dims: Vec<Name>,
    /// The parameters that are left, those of dims last.
    params: Vec<(Name, StructInfo)>,
}

impl Reduced {
    /// `None` of a function that uses all its parameters, or whose text may name any.
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
        let mut told = NameSet::default();
        let mut before = NameSet::default();
        params.iter().for_each(|(_, ty)| {
            ty.each_told_symbol(&mut |symbol| {
                told.insert(symbol);
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
            named.into_iter().filter(|symbol| before.contains(symbol) && told.insert(*symbol)).collect();
        // The one that is named last first, as TVM has them.
        dims.reverse();
        let mut fresh = FreshNames::of(function);
        let param =
            |symbol: &Name| (fresh.like(name(&format!("param_{symbol}"))), StructInfo::shape([Dim::symbol(*symbol)]));
        params.extend(dims.iter().map(param));
        Some(Reduced { before: function.params.clone(), kept, dims, params })
    }

    /// What a call passes; `None` where it does not tell a dim.
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

/// What a body names.
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
