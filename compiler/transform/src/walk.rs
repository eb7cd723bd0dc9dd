//! Visitors of the bindings and expressions of a function.

use crate::Module;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_ir::{BoundValue, Callee, Expr, ExprKind, RelaxFunction, Sequence, VarBinding};

/// Visits every binding of a sequence. The bindings in the branches of an `if` come before the `if` itself. Nested
/// functions are visited as bindings, but their bodies are not entered.
pub fn each_own_binding<'a>(sequence: &'a Sequence, visit: &mut dyn FnMut(&'a VarBinding)) {
    for binding in sequence.blocks.iter().flat_map(|block| &block.bindings) {
        if let BoundValue::If(_) = &binding.value {
            binding.value.sequences().for_each(|branch| each_own_binding(branch, visit));
        }
        visit(binding);
    }
}

/// Visits every binding as [`each_own_binding`] does, and also those in nested functions, after the binding of the
/// function.
pub fn each_binding<'a>(sequence: &'a Sequence, visit: &mut dyn FnMut(&'a VarBinding)) {
    each_own_binding(sequence, &mut |binding| {
        visit(binding);
        if let BoundValue::Function(function) = &binding.value {
            each_binding(&function.body, visit);
        }
    });
}

/// Visits every bound expression, `if` condition and sequence result, including those in branches and nested functions.
/// The visitor sees whole expressions and has to visit their subexpressions itself.
pub fn each_expression<'a>(sequence: &'a Sequence, visit: &mut dyn FnMut(&'a Expr)) {
    for binding in sequence.blocks.iter().flat_map(|block| &block.bindings) {
        binding.value.computed().into_iter().for_each(&mut *visit);
        binding.value.sequences().for_each(|inner| each_expression(inner, visit));
    }
    visit(&sequence.result);
}

/// Visits the same expressions as [`each_expression`], mutably.
pub fn each_expression_mut(sequence: &mut Sequence, visit: &mut dyn FnMut(&mut Expr)) {
    for binding in sequence.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        binding.value.computed_mut().into_iter().for_each(&mut *visit);
        binding.value.sequences_mut().for_each(|inner| each_expression_mut(inner, visit));
    }
    visit(&mut sequence.result);
}

/// Visits the expressions of [`each_expression`] and all of their subexpressions.
pub fn each_part<'a>(sequence: &'a Sequence, visit: &mut dyn FnMut(&'a Expr)) {
    each_expression(sequence, &mut |expr| expr.each(visit));
}

/// Visits the same expressions as [`each_part`], mutably; subexpressions come before the expression that contains them.
pub fn each_part_mut(sequence: &mut Sequence, visit: &mut dyn FnMut(&mut Expr)) {
    each_expression_mut(sequence, &mut |expr| expr.each_mut(visit));
}

/// Returns the variables that a binding uses, with repetitions, including those in its branches or in its nested
/// function. Variables that these bind themselves are included.
pub fn used_by(binding: &VarBinding) -> Vec<Name> {
    let mut found: Vec<Name> = binding.value.computed().into_iter().flat_map(Expr::variables).collect();
    for inner in binding.value.sequences() {
        each_expression(inner, &mut |expr| found.extend(expr.variables()));
    }
    found
}

/// Returns the variables that nested functions capture: those that they use and do not bind themselves. For a nested
/// function in another one, these may be variables of the outer one.
pub fn captured(function: &RelaxFunction) -> NameSet {
    let mut found = NameSet::default();
    each_binding(&function.body, &mut |binding| {
        let BoundValue::Function(nested) = &binding.value else { return };
        let mut own: NameSet = nested.params.iter().map(|(param, _)| *param).collect();
        own.insert(binding.variable);
        each_binding(&nested.body, &mut |inner| {
            own.insert(inner.variable);
            if let BoundValue::Function(deeper) = &inner.value {
                own.extend(deeper.params.iter().map(|(param, _)| *param));
            }
        });
        found.extend(used_by(binding).into_iter().filter(|variable| !own.contains(variable)));
    });
    found
}

/// Returns the module's functions that a function refers to, in reading order. A function that is referred to several
/// times is listed several times.
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

/// Returns the functions of a module that are used as values, not only called directly. These include prim_funcs that
/// an operator such as `call_tir` takes as an operand. A pass must not change the signature of a Relax function among
/// them, since it cannot find all its calls.
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

/// Whether an expression that is kept as source text mentions a variable or a dim of the function, or an expression is
/// erroneous. The uses of the function's names are then not all known, and none of the names may be changed or removed.
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
