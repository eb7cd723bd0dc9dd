//! Analysis of the effects that expressions have besides computing a value. Passes use it to decide whether a call may
//! be dropped, duplicated or moved.

use crate::Module;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_ir::{Attr, Call, Callee, Expr, ExprKind, Item, RelaxFunction, StructInfo};
use rx_ops::Purity;

/// The purity of a module's functions.
pub struct Effects {
    /// The names of the Relax functions that are declared pure.
    pure: NameSet,
}

impl Effects {
    /// Collects the pure functions of `module`. A prim_func is not among them, because a direct call of it writes to
    /// its arguments.
    pub fn of(module: &Module) -> Effects {
        let pure = module.items.iter().filter_map(|item| match item {
            Item::Relax(function) if function.pure => Some(function.name),
            _ => None,
        });
        Effects { pure: pure.collect() }
    }

    /// Whether evaluating the expression, including the calls nested in it, may have an effect.
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
            // An operator without a schema is unknown to rx and may do anything.
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

/// The function attribute by which an impure body counts as pure.
const FORCE_PURE: &str = "relax.force_pure";

/// Whether the body of a function may have effects: the function is impure, or its attribute `relax.force_pure` is
/// true.
pub fn may_have_effects(function: &RelaxFunction) -> bool {
    !function.pure || is_forced(function)
}

/// Whether a function's attribute `relax.force_pure` is true, by which it counts as pure regardless of its body.
pub fn is_forced(function: &RelaxFunction) -> bool {
    function.is_set(FORCE_PURE)
}

/// Sets `relax.force_pure` on a function that is declared pure, for a body that got an effect. Leaves a function that
/// is declared impure unchanged.
pub fn force_pure(function: &mut RelaxFunction) {
    if function.pure && !is_forced(function) {
        function.attributes.retain(|(key, _)| &**key != FORCE_PURE);
        function.attributes.push((FORCE_PURE.into(), Attr::Bool(true)));
    }
}

/// Whether an expression is a call of an operator that allocates: each evaluation returns a distinct object, so that
/// two such calls must not be merged even if they are textually equal.
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
