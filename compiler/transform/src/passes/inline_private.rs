//! `InlinePrivateFunctions`: inlines calls of private Relax functions, and removes the functions.
//!
//! ```text
//! @R.function(private=True)
//! def f(a: R.Tensor((n,))):              @R.function
//!     b = R.exp(a)                       def main(x: R.Tensor((4,))):
//!     return b                      →        b = R.exp(x)
//! @R.function                                return b
//! def main(x: R.Tensor((4,))):
//!     y = cls.f(x)
//!     return y
//! ```
//!
//! The callee's variables get names that the caller does not use, and the symbolic dims of its parameters are replaced
//! with those of the arguments.
//!
//! Requires that the function is not recursive and does not call a recursive private function. A call stays, and its
//! function as well, if the arguments do not determine a symbolic dim of the callee's parameters. In a dataflow block
//! it also stays if the callee has branches, effects, or nested functions that capture variables. Functions outside a
//! module class are not removed. Guarantees the same values and effects.
//!
//! Reference: TVM `src/relax/transform/inline_functions.cc`.

use crate::effects::{Effects, force_pure, is_forced};
use crate::names::FreshNames;
use crate::pass::{Arguments, Pass, PassError};
use crate::substitute::{rename, replace, replace_in_binding, replace_in_sequence, unify};
use crate::{Module, names, walk};
use rx_base::name::{NameMap, NameSet};
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{Argument, Block, BoundValue, Callee, Expr, Item, RelaxFunction, Sequence, VarBinding};
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "InlinePrivateFunctions",
    parameters: &[],
    doc: "Replaces calls of private Relax functions by their bodies.",
    reference: "src/relax/transform/inline_functions.cc",
    run,
};

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    let effects = Effects::of(&module);
    let mut done: NameMap<Arc<RelaxFunction>> = NameMap::default();
    for called in callees_first(&module) {
        let Some(at) = module.items.iter().position(|item| item.name() == Some(called)) else { continue };
        if let Some(Item::Relax(function)) = module.items.get_mut(at) {
            let own = Arc::make_mut(function);
            let mut inlining =
                Inlining { callees: &done, effects: &effects, fresh: FreshNames::of(own), forced: false };
            inlining.sequence(&mut own.body);
            if inlining.forced {
                force_pure(own);
            }
            if own.private {
                done.insert(called, function.clone());
            }
        }
    }
    // Functions outside a module class all stay.
    if module.class.is_none() {
        return Ok(module);
    }
    let still: NameSet = module.functions().flat_map(walk::globals).collect();
    module.items.retain(|item| match item {
        Item::Relax(function) => {
            !function.private || still.contains(&function.name) || !done.contains_key(&function.name)
        }
        _ => true,
    });
    Ok(module)
}

/// Returns the Relax functions in topological order, private callees before callers. Private functions that are
/// recursive, or call a recursive private one, are left out.
fn callees_first(module: &Module) -> Vec<Name> {
    let mut waiting: Vec<(Name, NameSet)> =
        module.functions().map(|function| (function.name, walk::globals(function).into_iter().collect())).collect();
    let private: NameSet =
        module.functions().filter(|function| function.private).map(|function| function.name).collect();
    let mut order = Vec::new();
    let mut ordered = NameSet::default();
    loop {
        let ready = |calls: &NameSet| calls.iter().all(|call| ordered.contains(call) || !private.contains(call));
        let (next, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, calls)| ready(calls));
        if next.is_empty() {
            // The remaining private functions are recursive, or call a recursive private one. Calls of them are not
            // inlined.
            order.extend(rest.iter().map(|(function, _)| *function).filter(|function| !private.contains(function)));
            return order;
        }
        ordered.extend(next.iter().map(|(function, _)| *function));
        order.extend(next.into_iter().map(|(function, _)| function));
        waiting = rest;
    }
}

struct Inlining<'a> {
    callees: &'a NameMap<Arc<RelaxFunction>>,
    effects: &'a Effects,
    /// The names for inlined variables.
    fresh: FreshNames,
    /// Whether an inlined callee is marked `relax.force_pure`, so that the caller needs the mark as well.
    forced: bool,
}

impl Inlining<'_> {
    fn sequence(&mut self, sequence: &mut Sequence) {
        let blocks = std::mem::take(&mut sequence.blocks);
        let mut renamed: NameMap<Expr> = NameMap::default();
        for block in blocks {
            let mut open = Block { outputs: block.outputs, bindings: Vec::new() };
            for mut binding in block.bindings {
                replace_in_binding(&mut binding, &renamed);
                self.inside(&mut binding);
                match self.inlined(&binding, open.outputs.is_some()) {
                    Some((blocks, result)) => {
                        splice(&mut sequence.blocks, &mut open, blocks);
                        let result = settle(&mut open, &binding, result);
                        renamed.extend(result.map(|result| (binding.variable, result)));
                    }
                    None => open.bindings.push(binding),
                }
            }
            if !open.bindings.is_empty() {
                sequence.blocks.push(open);
            }
        }
        replace(&mut sequence.result, &renamed);
    }

    /// Inlines calls in branches and nested functions.
    fn inside(&mut self, binding: &mut VarBinding) {
        match &mut binding.value {
            BoundValue::Expr(_) => {}
            BoundValue::If(branches) => {
                self.sequence(&mut branches.then);
                self.sequence(&mut branches.otherwise);
            }
            BoundValue::Function(function) => {
                let function = Arc::make_mut(function);
                let outer = std::mem::replace(&mut self.forced, false);
                self.sequence(&mut function.body);
                if std::mem::replace(&mut self.forced, outer) {
                    force_pure(function);
                }
            }
        }
    }

    /// Returns the renamed blocks and the result of the private function that a binding calls; `None` if the call
    /// cannot be inlined.
    fn inlined(&mut self, binding: &VarBinding, dataflow: bool) -> Option<(Vec<Block>, Expr)> {
        let BoundValue::Expr(value) = &binding.value else { return None };
        let call = value.as_call()?;
        let Callee::Global(called) = call.callee else { return None };
        let callee = self.callees.get(&called)?;
        if dataflow && !fits_dataflow(callee, self.effects) {
            return None;
        }
        let given: Vec<&Expr> = call.arguments.iter().filter_map(Argument::as_operand).collect();
        if given.len() != callee.params.len() {
            return None;
        }
        let mut dims: NameMap<Dim> = NameMap::default();
        for ((_, wanted), given) in callee.params.iter().zip(&given) {
            unify(wanted, &given.ty, &mut dims);
        }
        let mut own = NameSet::default();
        callee.params.iter().for_each(|(_, ty)| own.extend(ty.symbols()));
        if own.iter().any(|symbol| !dims.contains_key(symbol)) {
            return None;
        }
        let mut body = callee.body.clone();
        let mut variables: NameMap<Name> = NameMap::default();
        for inner in names::of_function(callee) {
            let fresh = self.fresh.like(inner);
            variables.insert(inner, fresh);
            dims.entry(inner).or_insert_with(|| Dim::symbol(fresh));
        }
        rename(
            &mut body,
            &Renaming { dim: &|symbol| dims.get(&symbol).cloned(), variable: &|inner| variables.get(&inner).copied() },
        );
        let params = callee.params.iter().zip(given);
        let values: NameMap<Expr> =
            params.filter_map(|((param, _), given)| Some((*variables.get(param)?, given.clone()))).collect();
        replace_in_sequence(&mut body, &values);
        self.forced |= is_forced(callee);
        Some((body.blocks, body.result))
    }
}

/// Whether the bindings of a callee are allowed in a dataflow block. A nested function there cannot use the variables of
/// the block.
fn fits_dataflow(callee: &RelaxFunction, effects: &Effects) -> bool {
    let mut bindings = callee.body.blocks.iter().flat_map(|block| &block.bindings);
    let is_allowed = bindings.all(|binding| match &binding.value {
        BoundValue::Expr(value) => !effects.has_effect(value),
        BoundValue::If(_) => false,
        BoundValue::Function(_) => true,
    });
    is_allowed && walk::captured(callee).is_empty()
}

/// Appends the callee's bindings to the open block. But if that is a plain block, a dataflow block of the callee stays
/// separate: the bindings that are open so far, and then the dataflow block, are moved to `done`.
fn splice(done: &mut Vec<Block>, open: &mut Block, blocks: Vec<Block>) {
    for block in blocks {
        if open.outputs.is_some() || block.outputs.is_none() {
            open.bindings.extend(block.bindings);
            continue;
        }
        if !open.bindings.is_empty() {
            done.push(Block { outputs: None, bindings: std::mem::take(&mut open.bindings) });
        }
        done.push(block);
    }
}

/// Returns the value that replaces the variable of an inlined call. If the variable is an output of its block, binds it
/// to the value and returns `None`.
fn settle(open: &mut Block, call: &VarBinding, result: Expr) -> Option<Expr> {
    let is_output = open.outputs.as_ref().is_some_and(|outputs| outputs.contains(&call.variable));
    if !is_output {
        return Some(result);
    }
    open.bindings.push(VarBinding { value: BoundValue::Expr(result), ..call.clone() });
    None
}
