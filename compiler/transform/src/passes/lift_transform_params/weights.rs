//! The analysis of which bindings depend on no input, and which variables the rest of the function needs.

use crate::effects::{Effects, makes_new_object};
use crate::walk;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_ir::{BoundValue, Expr, ExprKind, RelaxFunction, VarBinding};

/// The result of the analysis of a function.
pub(super) struct Weights<'f> {
    /// The bindings that are lifted, in order: those of dataflow blocks that depend on no input, can be computed at
    /// another time ([`Known::give`]), and are allowed by the caller (`may` of [`Weights::of`]).
    pub(super) liftable: Vec<&'f VarBinding>,
    /// The weights, and the lifted variables that are computed from them. A lifted value that depends on no weight also
    /// stays in the function, which computes it itself.
    pub(super) of_weights: NameSet,
    /// The variables that the result and the bindings that are not lifted use.
    pub(super) needed: NameSet,
    /// The symbolic dims that the remaining bindings, the result, the return type, and the lifted values that depend on
    /// no weight use.
    pub(super) needed_symbols: NameSet,
}

impl<'f> Weights<'f> {
    /// Analyzes a function whose first `inputs` parameters are not weights. Lifts only variables for which `may`
    /// returns true. `symbolic` states whether bindings that use the symbolic dims of weights can be lifted.
    pub(super) fn of(
        function: &'f RelaxFunction,
        inputs: usize,
        effects: &Effects,
        symbolic: bool,
        may: &dyn Fn(Name) -> bool,
    ) -> Weights<'f> {
        let mut known = Known::default();
        let mut weights = Weights {
            liftable: Vec::new(),
            of_weights: NameSet::default(),
            needed: NameSet::default(),
            needed_symbols: function.ret.symbols(),
        };
        for (param, ty) in function.params.iter().skip(inputs) {
            known.variables.insert(*param);
            weights.of_weights.insert(*param);
            if symbolic {
                ty.each_told_symbol(&mut |symbol| {
                    known.symbols.insert(symbol);
                });
            }
        }
        for block in &function.body.blocks {
            for binding in &block.bindings {
                if block.outputs.is_some() && may(binding.variable) && known.give(binding, effects) {
                    known.variables.insert(binding.variable);
                    weights.lift(binding);
                } else {
                    weights.stay(binding);
                }
            }
        }
        weights.name(&function.body.result);
        weights
    }

    fn lift(&mut self, binding: &'f VarBinding) {
        let BoundValue::Expr(value) = &binding.value else { return };
        if value.variables().iter().any(|variable| self.of_weights.contains(variable)) {
            self.of_weights.insert(binding.variable);
        } else {
            // A value that depends on no weight also stays in the function.
            self.needed_symbols.extend(binding.ty.symbols());
            value.each_symbol(&mut |symbol| {
                self.needed_symbols.insert(symbol);
            });
        }
        self.liftable.push(binding);
    }

    fn stay(&mut self, binding: &VarBinding) {
        self.needed_symbols.extend(binding.ty.symbols());
        match &binding.value {
            BoundValue::Expr(value) => self.name(value),
            BoundValue::If(branches) => {
                self.name(&branches.condition);
                for sequence in binding.value.sequences() {
                    walk::each_own_binding(sequence, &mut |binding| self.needed_symbols.extend(binding.ty.symbols()));
                    walk::each_expression(sequence, &mut |expr| self.name(expr));
                }
            }
            BoundValue::Function(function) => {
                function.params.iter().for_each(|(_, ty)| self.needed_symbols.extend(ty.symbols()));
                walk::each_expression(&function.body, &mut |expr| self.name(expr));
            }
        }
    }

    fn name(&mut self, expr: &Expr) {
        self.needed.extend(expr.variables());
        expr.each_symbol(&mut |symbol| {
            self.needed_symbols.insert(symbol);
            // A variable of a scalar type is also a symbolic dim of the same name.
            self.needed.insert(symbol);
        });
    }
}

/// The variables and symbolic dims that do not depend on the function's inputs: the weights, the symbolic dims that the
/// weights' types determine (if bindings that use these can be lifted), and the lifted variables, which are computed
/// from weights and constants.
#[derive(Default)]
struct Known {
    variables: NameSet,
    symbols: NameSet,
}

impl Known {
    /// Whether the value of a binding depends only on known variables and symbolic dims, and can be computed at another
    /// time: it has no effect, makes no new object, and is not held back by `stop_lift_params`. False for an `if`, a
    /// nested or external function, and a binding of `_`.
    fn give(&self, binding: &VarBinding, effects: &Effects) -> bool {
        let BoundValue::Expr(value) = &binding.value else { return false };
        let held_back = value.as_op() == Some("builtin.stop_lift_params");
        let is_external = matches!(value.kind, ExprKind::Extern(_));
        if held_back || is_external || binding.variable.as_str() == "_" {
            return false;
        }
        if effects.has_effect(value) || makes_new_object(value) {
            return false;
        }
        let mut all = value.variables().iter().all(|variable| self.variables.contains(variable));
        binding.ty.each_symbol(&mut |symbol| all &= self.symbols.contains(&symbol));
        value.each_symbol(&mut |symbol| all &= self.symbols.contains(&symbol));
        all
    }
}
