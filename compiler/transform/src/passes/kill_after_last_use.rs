//! `KillAfterLastUse`: frees tensors, storages and other objects after their last use.
//!
//! ```text
//! a = R.exp(x)               a = R.exp(x)
//! b = R.exp(a)        →      b = R.exp(a)
//! c = R.exp(b)               _ = R.memory.kill_tensor(a)
//!                            c = R.exp(b)
//!                            _ = R.memory.kill_tensor(b)
//! ```
//!
//! Requires a function that may have effects (`pure=False` or `relax.force_pure`), since a kill is an effect; other
//! functions get no kills. `CanonicalizeBindings` runs first, on all functions. Guarantees that a killed variable is
//! not used later. Kills follow a dataflow block, since none may be inside; variables that are not outputs of the block
//! are not killed. A variable that is never used is not killed, nor is one that a nested function captures, because a
//! later call of that function may use it.
//!
//! Reference: TVM `src/relax/transform/kill_after_last_use.cc`.

use crate::effects::may_have_effects;
use crate::make;
use crate::pass::{Arguments, Pass, PassError};
use crate::{Module, passes, walk};
use rx_base::Name;
use rx_base::name::{NameSet, name};
use rx_ir::{Argument, Block, BoundValue, Expr, ExprKind, Sequence, StructInfo, VarBinding};

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "KillAfterLastUse",
    parameters: &[],
    doc: "Ends the life of tensors, storages and other objects after the last binding that names them.",
    reference: "src/relax/transform/kill_after_last_use.cc",
    run,
};

fn run(module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    // With several names for one value, the last use of one name need not be the last use of the value.
    let mut module = (passes::canonicalize::PASS.run)(module, arguments)?;
    for function in module.functions_mut().filter(|function| may_have_effects(function)) {
        let captured = walk::captured(function);
        sequence(&mut function.body, &captured)?;
    }
    Ok(module)
}

fn sequence(of: &mut Sequence, captured: &NameSet) -> Result<(), PassError> {
    for binding in of.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        if let BoundValue::If(_) = &binding.value {
            binding.value.sequences_mut().try_for_each(|branch| sequence(branch, captured))?;
        }
    }
    let mut used: NameSet = of.result.variables().into_iter().collect();
    used.extend(captured.iter().copied());
    let killed = killed(of);
    let mortal: Vec<(Name, Expr)> = seen(of).filter_map(|binding| Some((binding.variable, kill(binding)?))).collect();
    let mut blocks = Vec::new();
    for mut block in std::mem::take(&mut of.blocks).into_iter().rev() {
        let mut last = |names: &[Name]| -> Vec<VarBinding> {
            let is_last = |variable: Name| names.contains(&variable) && !used.contains(&variable);
            let ends = mortal.iter().filter(|(variable, _)| is_last(*variable) && !killed.contains(variable));
            let ends: Vec<VarBinding> = ends.map(|(_, kill)| statement(&block, kill.clone())).collect();
            used.extend(names.iter().copied());
            ends
        };
        if block.outputs.is_some() {
            let named: Vec<Name> = block.bindings.iter().flat_map(walk::used_by).collect();
            let ends = last(&named);
            let behind = (!ends.is_empty()).then_some(Block { outputs: None, bindings: ends });
            blocks.extend(behind);
            blocks.push(block);
            continue;
        }
        let ends: Vec<Vec<VarBinding>> = {
            let mut ends: Vec<_> = block.bindings.iter().rev().map(|binding| last(&walk::used_by(binding))).collect();
            ends.reverse();
            ends
        };
        let bindings = std::mem::take(&mut block.bindings);
        block.bindings =
            bindings.into_iter().zip(ends).flat_map(|(binding, ends)| [vec![binding], ends].concat()).collect();
        blocks.push(block);
    }
    blocks.reverse();
    of.blocks = blocks;
    Ok(())
}

/// Returns the bindings of a sequence whose variables are visible after their block.
fn seen(of: &Sequence) -> impl Iterator<Item = &VarBinding> {
    of.blocks.iter().flat_map(|block| {
        let is_seen = |variable: Name| block.outputs.as_ref().is_none_or(|outputs| outputs.contains(&variable));
        block.bindings.iter().filter(move |binding| is_seen(binding.variable))
    })
}

const KILLS: [&str; 3] = ["memory.kill_tensor", "memory.kill_storage", "vm.kill_object"];

/// Returns the variables that the sequence kills already.
fn killed(of: &Sequence) -> NameSet {
    let mut found = NameSet::default();
    walk::each_own_binding(of, &mut |binding| {
        if let BoundValue::Expr(value) = &binding.value
            && value.as_op().is_some_and(|operator| KILLS.contains(&operator))
        {
            found.extend(value.variables());
        }
    });
    found
}

/// Returns the call that kills a variable; `None` for `_`, for a variable of erroneous type, and if the value owns no
/// memory: a constant, a function, a shape, a scalar or an empty tuple.
fn kill(binding: &VarBinding) -> Option<Expr> {
    let value = match &binding.value {
        BoundValue::Expr(value) => Some(value),
        _ => None,
    };
    let is_constant = value.is_some_and(|value| {
        matches!(value.kind, ExprKind::Constant(_) | ExprKind::Elements(_) | ExprKind::Metadata { .. })
    });
    let is_storage = value.and_then(Expr::as_op).is_some_and(|operator| operator.ends_with("alloc_storage"));
    let (operator, param) = match &binding.ty {
        _ if is_constant || binding.variable.as_str() == "_" => return None,
        _ if is_storage => ("memory.kill_storage", "storage"),
        StructInfo::Function(_) | StructInfo::Shape(_) | StructInfo::Prim(_) | StructInfo::Error => return None,
        StructInfo::Tensor(_) => ("memory.kill_tensor", "tensor"),
        StructInfo::Tuple(fields) if fields.is_empty() => return None,
        _ => ("vm.kill_object", "obj"),
    };
    make::call(operator, vec![(param, Argument::Operand(Expr::var(binding.variable, binding.ty.clone())))]).ok()
}

fn statement(block: &Block, value: Expr) -> VarBinding {
    let origin = block.bindings.last().map(|binding| binding.origin);
    let origin = origin.unwrap_or(rx_ir::Origin { item: name(""), statement: 0 });
    VarBinding::new(origin, name("_"), value)
}
