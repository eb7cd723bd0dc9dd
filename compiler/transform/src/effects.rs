//! Which expressions do more than give a value.

use crate::Module;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_ir::{Attr, Call, Callee, Expr, ExprKind, Item, RelaxFunction, StructInfo};
use rx_ops::Purity;

/// What is known of a module's functions.
pub struct Effects {
    /// Relax functions that are declared pure.
    pure: NameSet,
}

impl Effects {
    /// Of the functions of `module`. A prim_func that is called directly writes to its arguments.
    pub fn of(module: &Module) -> Effects {
        let pure = module.items.iter().filter_map(|item| match item {
            Item::Relax(function) if function.pure => Some(function.name),
            _ => None,
        });
        Effects { pure: pure.collect() }
    }

    /// Whether computing the expression, calls inside it included, has an effect besides its value.
    pub fn has_effect(&self, expr: &Expr) -> bool {
        let mut found = false;
        expr.each(&mut |expr| {
            found |= match &expr.kind {
                ExprKind::Call(call) => self.call_has_effect(call),
                _ => false,
            };
        });
        found
    }

    fn call_has_effect(&self, call: &Call) -> bool {
        match &call.callee {
            // What rx has no schema of may do anything.
            Callee::Op(op) => rx_ops::find(*op).is_none_or(|schema| schema.purity == Purity::Impure),
            Callee::Global(function) => !self.is_pure(*function),
            Callee::Value(callee) => match &callee.ty {
                StructInfo::Function(function) => !function.pure,
                _ => true,
            },
        }
    }

    fn is_pure(&self, function: Name) -> bool {
        self.pure.contains(&function)
    }
}

/// What a function says that has effects and counts as pure.
const FORCE_PURE: &str = "relax.force_pure";

/// Whether a function may have effects: it is impure, or says that it counts as pure for all that.
pub fn may_have_effects(function: &RelaxFunction) -> bool {
    !function.pure || is_forced(function)
}

/// Whether a function says that it counts as pure, whatever it does.
pub fn is_forced(function: &RelaxFunction) -> bool {
    function.is_set(FORCE_PURE)
}

/// Has a function that got effects say that it counts as pure; an impure one stays so.
pub fn force_pure(function: &mut RelaxFunction) {
    if function.pure && !is_forced(function) {
        function.attributes.retain(|(key, _)| &**key != FORCE_PURE);
        function.attributes.push((FORCE_PURE.into(), Attr::Bool(true)));
    }
}

/// Whether an expression makes a value that is told from another of the same making: memory, random numbers of a state.
pub fn makes_new_object(expr: &Expr) -> bool {
    matches!(
        expr.as_op(),
        Some(
            "builtin.alloc_tensor"
                | "memory.alloc_storage"
                | "memory.alloc_tensor"
                | "vm.alloc_storage"
                | "vm.alloc_tensor"
        )
    )
}
