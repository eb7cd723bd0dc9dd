//! `CanonicalizeBindings`: copy propagation; removes variables that are other names for a value.
//!
//! ```text
//! with R.dataflow():                    with R.dataflow():
//!     y = x                                 w = R.add(x, x)
//!     z = R.add(y, y)              →        R.output(w)
//!     w = z                             return w
//!     R.output(w)
//! return w
//! ```
//!
//! The pass first replaces symbolic dims that a cast binds to a known dim with that dim ([`dims`]). It then replaces
//! variables that are bound to a variable, to a field of a tuple that is written out, to a tuple rebuilt from all
//! fields of another tuple, to a constant, or to a cast of one of these to the type that it already has; the binding of
//! a constant itself stays. Dataflow outputs that are not used outside their block stop being outputs ([`plan`]). A
//! binding whose annotation is more specific than the type of its value stays, and so does one of a name that both
//! branches of an `if` bind.
//!
//! Requires nothing. Guarantees the same results and effects.
//!
//! Reference: TVM `src/relax/transform/canonicalize_bindings.cc`.

mod dims;
mod plan;

use crate::make::{Changed, follow_result, infer, infer_again, is_sharper};
use crate::pass::{Arguments, Pass, PassError, each_function};
use crate::substitute::{rename, replace_in_sequence};
use crate::{Module, walk};
use plan::Plan;
use rx_base::name::NameSet;
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{BoundValue, RelaxFunction, Sequence};

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "CanonicalizeBindings",
    parameters: &[],
    doc: "Replaces variables that are other names for values by these values.",
    reference: "src/relax/transform/canonicalize_bindings.cc",
    run,
};

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    each_function(&mut module, PASS.name, canonicalize)?;
    Ok(module)
}

/// Applies the pass to one function.
///
/// # Errors
/// Those of `infer_again`.
pub(crate) fn canonicalize(function: &mut RelaxFunction) -> Result<(), PassError> {
    let before = function.body.result.ty.clone();
    dims::settle(function)?;
    let plan = Plan::of(function);
    apply(&plan, function)?;
    follow_result(function, &before);
    Ok(())
}

fn apply(plan: &Plan, function: &mut RelaxFunction) -> Result<(), PassError> {
    remove(&mut function.body, plan);
    let touched = touched(&function.body, plan);
    let variable = |variable: Name| plan.represents(variable);
    // A variable of a scalar type is also a symbolic dim of the same name, so dims are renamed with the variables.
    let dim = |symbol: Name| plan.represents(symbol).map(Dim::symbol);
    let renaming = Renaming { dim: &dim, variable: &variable };
    rename(&mut function.body, &renaming);
    let mut changed: Changed = plan.types().map(|(variable, ty)| (variable, renaming.ty(ty))).collect();
    replace_in_sequence(&mut function.body, &plan.constants);
    sharpen(&mut function.body, &touched, &mut changed);
    infer_again(&mut function.body, &mut changed)
}

/// Returns the variables, by their new names, whose values use a renamed variable.
fn touched(sequence: &Sequence, plan: &Plan) -> NameSet {
    let mut found = NameSet::default();
    walk::each_binding(sequence, &mut |binding| {
        if let BoundValue::Expr(value) = &binding.value
            && value.variables().iter().any(|used| plan.represents(*used).is_some())
        {
            found.insert(plan.represents(binding.variable).unwrap_or(binding.variable));
        }
    });
    found
}

/// Gives a changed call the type that its operator infers, where its annotation is less specific; TVM does so as well.
fn sharpen(sequence: &mut Sequence, touched: &NameSet, changed: &mut Changed) {
    for binding in sequence.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        binding.value.sequences_mut().for_each(|inner| sharpen(inner, touched, changed));
        if let BoundValue::Expr(value) = &mut binding.value
            && touched.contains(&binding.variable)
            && let Some(ty) = value.as_call().and_then(|call| infer(call).ok())
            && is_sharper(&ty, &binding.ty)
        {
            (value.ty, binding.ty) = (ty.clone(), ty.clone());
            changed.insert(binding.variable, ty);
        }
    }
}

/// Removes the bindings of aliases and empty blocks. The outputs of a dataflow block become those of its variables that
/// are used outside of it.
fn remove(sequence: &mut Sequence, plan: &Plan) {
    for block in &mut sequence.blocks {
        block.bindings.retain(|binding| !plan.removed.contains(&binding.variable));
        for binding in &mut block.bindings {
            binding.value.sequences_mut().for_each(|inner| remove(inner, plan));
        }
        let is_output = |variable: Name| plan.outputs.contains(&plan.represents(variable).unwrap_or(variable));
        let bound = block.bindings.iter().map(|binding| binding.variable);
        if let Some(outputs) = &mut block.outputs {
            *outputs = bound.filter(|variable| is_output(*variable)).collect();
        }
    }
    sequence.blocks.retain(|block| !block.bindings.is_empty());
}
