//! What a function computes of its weights, and what the rest of it needs.

use crate::effects::{Effects, makes_new_object};
use crate::walk;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_ir::{BoundValue, Expr, ExprKind, RelaxFunction, VarBinding};

/// What is found in a function.
pub(super) struct Weights<'f> {
    /// Bindings that neither an input nor an effect reaches, in order.
    pub(super) liftable: Vec<&'f VarBinding>,
    /// Weights, and what is computed of them: what depends on no weight is computed as soon anew as it is kept.
    pub(super) of_weights: NameSet,
    /// Variables that what stays names.
    pub(super) needed: NameSet,
    /// Symbolic dims that what stays names.
    pub(super) needed_symbols: NameSet,
}

impl<'f> Weights<'f> {
    /// Of a function whose first `inputs` parameters are no weights. Only what `may` accepts is lifted; `symbolic` says whether
    /// what names symbolic dims is.
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
            // It is computed in both places.
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
            // A scalar's value is the symbol of its name.
            self.needed.insert(symbol);
        });
    }
}

/// What is known before the function is called.
#[derive(Default)]
struct Known {
    variables: NameSet,
    symbols: NameSet,
}

impl Known {
    /// Whether it gives a binding's value, which may be computed at any time.
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
