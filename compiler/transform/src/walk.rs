//! Walking the bindings of a function.

use crate::Module;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_ir::{BoundValue, Callee, Expr, ExprKind, RelaxFunction, Sequence, VarBinding};

/// Gives `visit` every binding, those of branches in front of the `if` they belong to; nested functions not looked into.
pub fn each_own_binding<'a>(sequence: &'a Sequence, visit: &mut dyn FnMut(&'a VarBinding)) {
    for binding in sequence.blocks.iter().flat_map(|block| &block.bindings) {
        if let BoundValue::If(_) = &binding.value {
            binding.value.sequences().for_each(|branch| each_own_binding(branch, visit));
        }
        visit(binding);
    }
}

/// As [`each_own_binding`], those of nested functions behind the binding of the function.
pub fn each_binding<'a>(sequence: &'a Sequence, visit: &mut dyn FnMut(&'a VarBinding)) {
    each_own_binding(sequence, &mut |binding| {
        visit(binding);
        if let BoundValue::Function(function) = &binding.value {
            each_binding(&function.body, visit);
        }
    });
}

/// Gives `visit` every expression that is bound, a condition, or a result, nested functions included; what is inside of it
/// is the visitor's.
pub fn each_expression<'a>(sequence: &'a Sequence, visit: &mut dyn FnMut(&'a Expr)) {
    for binding in sequence.blocks.iter().flat_map(|block| &block.bindings) {
        binding.value.computed().into_iter().for_each(&mut *visit);
        binding.value.sequences().for_each(|inner| each_expression(inner, visit));
    }
    visit(&sequence.result);
}

/// As [`each_expression`], to change them.
pub fn each_expression_mut(sequence: &mut Sequence, visit: &mut dyn FnMut(&mut Expr)) {
    for binding in sequence.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        binding.value.computed_mut().into_iter().for_each(&mut *visit);
        binding.value.sequences_mut().for_each(|inner| each_expression_mut(inner, visit));
    }
    visit(&mut sequence.result);
}

/// As [`each_expression`], with all that is inside of each.
pub fn each_part<'a>(sequence: &'a Sequence, visit: &mut dyn FnMut(&'a Expr)) {
    each_expression(sequence, &mut |expr| expr.each(visit));
}

/// As [`each_part`], to change them, those inside first.
pub fn each_part_mut(sequence: &mut Sequence, visit: &mut dyn FnMut(&mut Expr)) {
    each_expression_mut(sequence, &mut |expr| expr.each_mut(visit));
}

/// The functions of the module that a function names, in reading order; one several times where it is named so.
pub fn globals(function: &RelaxFunction) -> Vec<Name> {
    let mut found = Vec::new();
    each_part(&function.body, &mut |expr| match &expr.kind {
        ExprKind::Global(global) => found.push(*global),
        ExprKind::Call(call) => {
            if let Callee::Global(global) = call.callee {
                found.push(global);
            }
        }
        _ => {}
    });
    found
}

/// The functions of a module that are named otherwise than to be called: whoever changes how one is called must let them be.
pub fn function_values(module: &Module) -> NameSet {
    let mut found = NameSet::default();
    for function in module.functions() {
        each_part(&function.body, &mut |expr| {
            if let ExprKind::Global(global) = expr.kind {
                found.insert(global);
            }
        });
    }
    found
}

/// Whether an expression that is kept as text names a variable or a dim of the function: what uses these is not known then.
pub fn names_in_text(function: &RelaxFunction) -> bool {
    let mut found = false;
    let mut own: Option<NameSet> = None;
    each_part(&function.body, &mut |expr| match &expr.kind {
        ExprKind::Written(text) => {
            let own = own.get_or_insert_with(|| crate::names::of_function(function));
            let is_part = |c: char| c == '_' || c.is_alphanumeric();
            found |= text.split(|c| !is_part(c)).any(|word| own.contains(&rx_base::name::name(word)));
        }
        ExprKind::Error => found = true,
        _ => {}
    });
    found
}
