//! `LiftTransformParams`: moves the computations that depend only on weights into a separate function, which can run
//! once.
//!
//! ```text
//! def main(x, w):                          def main_transform_params(model_params):
//!     R.func_attr({"num_input": 1})            R.func_attr({"num_input": 0})
//!     with R.dataflow():                       with R.dataflow():
//!         wt = R.permute_dims(w)                   w = model_params[0]
//!         y = R.matmul(x, wt)         →            wt = R.permute_dims(w)
//!         R.output(y)                              output_tuple = (wt,)
//!     return y                                     R.output(output_tuple)
//!                                              return output_tuple
//!                                          def main(x, wt):
//!                                              R.func_attr({"num_input": 1})
//!                                              with R.dataflow():
//!                                                  y = R.matmul(x, wt)
//!                                                  R.output(y)
//!                                              return y
//! ```
//!
//! Requires the attribute `num_input`: the parameters after that many are weights. As in TVM, the pass does not lift
//! bindings outside of dataflow blocks, bindings that `R.builtin.stop_lift_params` holds back, or values that depend on
//! no weight.
//!
//! Guarantees, beyond TVM's implementation: effects are not lifted; a returned weight stays defined; symbolic dims of
//! weights that no prepared weight determines are passed on as a shape; and every caller in the module passes prepared
//! weights afterwards. Running the pass again changes nothing, unless it removed a `stop_lift_params` the first time,
//! or a function with weights calls another one.
//!
//! Reference: TVM `src/relax/transform/lift_transform_params.cc`.

mod callers;
mod compose;
mod group;
mod weights;

use crate::Module;
use crate::effects::Effects;
use crate::pass::{Arguments, Parameter, Pass, PassError};
use callers::Lifted;
use group::Group;
use rx_base::Name;
use rx_base::name::name;
use rx_ir::function::RAW_ENTRY;
use rx_ir::{Attr, Item, RelaxFunction};
use serde_json::Value;
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "LiftTransformParams",
    parameters: &[Parameter {
        name: "shared_transform",
        default: Some("false"),
        doc: "Whether all functions with weights have the same ones, and one function prepares them; or the names of those that do.",
    }],
    doc: "Moves values that depend only on weights to functions run once: `main_transform_params` of `main`.",
    reference: "src/relax/transform/lift_transform_params.cc",
    run,
};

/// The suffix of the names of functions that prepare weights. The function that prepares shared weights
/// (`shared_transform`) has just this name.
pub const SUFFIX: &str = "transform_params";

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let (targets, shared) = targets(&module, arguments.get(0))?;
    let groups: Vec<(Name, Vec<Name>)> = match shared {
        true if targets.is_empty() => Vec::new(),
        true => vec![(name(SUFFIX), targets)],
        false => targets.into_iter().map(|target| (name(&format!("{target}_{SUFFIX}")), vec![target])).collect(),
    };
    let effects = Effects::of(&module);
    let mut lifted = Vec::new();
    for (transform, members) in groups {
        lift(&mut module, &effects, transform, &members, &mut lifted)?;
    }
    callers::rewrite(&mut module, &lifted)?;
    Ok(module)
}

fn mistake(message: &str) -> PassError {
    PassError(format!("LiftTransformParams: {message}"))
}

/// Returns the functions to change, and whether they share a function that prepares their weights.
fn targets(module: &Module, argument: &Value) -> Result<(Vec<Name>, bool), PassError> {
    let has_weights = |function: &RelaxFunction| match function.attribute(RAW_ENTRY).is_some() {
        true => None,
        false => inputs(function).transpose(),
    };
    match argument {
        Value::Bool(shared) => {
            let mut targets = Vec::new();
            for function in module.functions().filter(|function| !function.name.as_str().ends_with(SUFFIX)) {
                if has_weights(function).transpose()?.is_some() {
                    targets.push(function.name);
                }
            }
            targets.sort_unstable_by_key(|target| target.as_str());
            Ok((targets, *shared))
        }
        Value::Array(names) => {
            let named = |wanted: &Value| {
                let wanted = wanted.as_str().ok_or_else(|| mistake("`shared_transform` is true, false or names"))?;
                let found = module.functions().find(|function| function.name.as_str() == wanted);
                let found = found.ok_or_else(|| mistake(&format!("the module has no Relax function `{wanted}`")))?;
                let counts = has_weights(found).transpose()?;
                counts.ok_or_else(|| mistake(&format!("`{wanted}` has no `num_input`, so no weights")))?;
                Ok(found.name)
            };
            Ok((names.iter().map(named).collect::<Result<_, PassError>>()?, true))
        }
        _ => Err(mistake("`shared_transform` is true, false or names")),
    }
}

/// Returns the number of leading parameters that are not weights; `None` if the function has no attribute `num_input`.
///
/// # Errors
/// `num_input` is negative, larger than the number of parameters, or neither an integer nor a boolean.
fn inputs(function: &RelaxFunction) -> Result<Option<usize>, PassError> {
    let Some(count) = function.attribute("num_input") else { return Ok(None) };
    let count = match count {
        Attr::Bool(value) => Some(i64::from(*value)),
        other => other.as_int(),
    };
    let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= function.params.len());
    let wrong = || mistake(&format!("`num_input` of `{}` counts no parameters of it", function.name));
    count.map(Some).ok_or_else(wrong)
}

/// Changes the functions `members`, and adds the function `transform` that prepares their weights. If the module has a
/// function of this name already, the two are composed, or nothing changes if there is nothing left to prepare.
fn lift(
    module: &mut Module,
    effects: &Effects,
    transform: Name,
    members: &[Name],
    lifted: &mut Vec<Lifted>,
) -> Result<(), PassError> {
    let function_at = |module: &Module, wanted: Name| {
        module.items.iter().position(|item| matches!(item, Item::Relax(function) if function.name == wanted))
    };
    let mut functions: Vec<Arc<RelaxFunction>> = Vec::new();
    for member in members {
        match function_at(module, *member).and_then(|at| module.items.get(at)) {
            Some(Item::Relax(function)) => functions.push(function.clone()),
            _ => return Err(mistake(&format!("the module has no Relax function `{member}`"))),
        }
    }
    let group = Group::of(&functions, effects)?;
    let existing = module.items.iter().position(|item| item.name() == Some(transform));
    let before = match existing.and_then(|at| module.items.get(at)) {
        None => None,
        // The weights are prepared already.
        Some(Item::Relax(_)) if group.is_identity() => return Ok(()),
        Some(Item::Relax(old)) => Some(old.clone()),
        Some(_) => return Err(mistake(&format!("`{transform}` is there already, and no Relax function"))),
    };
    let prepares = group.transform(transform)?;
    for (member, runs) in members.iter().zip(group.members()?) {
        if let Some(Item::Relax(function)) = function_at(module, *member).and_then(|at| module.items.get_mut(at)) {
            *function = Arc::new(runs);
        }
    }
    if let Some(before) = &before
        && let Some(Item::Relax(function)) = existing.and_then(|at| module.items.get_mut(at))
    {
        *function = Arc::new(compose::composed(before, prepares.clone())?);
    }
    if before.is_none() {
        let first = members.first().and_then(|member| function_at(module, *member)).unwrap_or_default();
        module.items.insert(first, Item::Relax(Arc::new(prepares.clone())));
    }
    if !group.is_identity() {
        let inputs = members.iter().copied().zip(group.inputs()).collect();
        lifted.push(Lifted { transform, inputs, prepares: Arc::new(prepares), is_composed: before.is_some() });
    }
    Ok(())
}
