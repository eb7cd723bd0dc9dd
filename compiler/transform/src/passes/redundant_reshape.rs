//! `RemoveRedundantReshape`: merges consecutive reshapes and removes reshapes to the same shape.
//!
//! ```text
//! a = R.reshape(x, R.shape([2, 12]))        a = R.reshape(x, R.shape([2, 12]))
//! b = R.reshape(a, R.shape([4, 6]))    →    b = R.reshape(x, R.shape([4, 6]))
//! c = R.reshape(b, R.shape([4, 6]))         c = R.reshape(x, R.shape([4, 6]))
//! ```
//!
//! A reshape of a reshape becomes a reshape of the tensor that the first one takes. A reshape to the shape that the
//! tensor already has becomes the binding `y = x`. Unused reshapes such as `a` remain, for dead-code elimination.
//!
//! Requires nothing. Guarantees that no binding gets a weaker type.
//!
//! Reference: TVM `python/tvm/relax/transform/remove_redundant_reshape.py`.

use crate::Module;
use crate::make::{self, operands};
use crate::pass::{Arguments, Pass, PassError, each_function};
use rx_base::name::{NameMap, NameSet};
use rx_ir::{Argument, BoundValue, Expr, RelaxFunction, Sequence, VarBinding};

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "RemoveRedundantReshape",
    parameters: &[],
    doc: "Merges consecutive reshapes, and removes reshapes that change nothing.",
    reference: "python/tvm/relax/transform/remove_redundant_reshape.py",
    run,
};

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    each_function(&mut module, PASS.name, in_function)?;
    Ok(module)
}

fn in_function(function: &mut RelaxFunction) -> Result<(), PassError> {
    sequence(&mut function.body, &mut NameMap::default())
}

/// Rewrites the reshapes of a sequence. `reshaped` maps a variable that was bound to a reshape to the operand of the
/// first reshape of its chain, which a later reshape of the variable then takes. The reshape of a variable that is not
/// in the map begins a new chain; for example, if the reshape of the variable stayed because the merged one has a
/// weaker type.
fn sequence(of: &mut Sequence, reshaped: &mut NameMap<Expr>) -> Result<(), PassError> {
    for block in &mut of.blocks {
        for binding in &mut block.bindings {
            binding.value.sequences_mut().try_for_each(|inner| sequence(inner, &mut reshaped.clone()))?;
            self::binding(binding, reshaped)?;
        }
        // Later blocks cannot use the variables of a dataflow block that are not outputs.
        if let Some(outputs) = &block.outputs {
            let own: NameSet = block.bindings.iter().map(|binding| binding.variable).collect();
            let is_seen =
                |source: &Expr| source.variables().iter().all(|used| !own.contains(used) || outputs.contains(used));
            reshaped.retain(|_, source| is_seen(source));
        }
    }
    Ok(())
}

fn binding(binding: &mut VarBinding, reshaped: &mut NameMap<Expr>) -> Result<(), PassError> {
    let VarBinding { variable, ty, value: BoundValue::Expr(value), .. } = binding else { return Ok(()) };
    let Some((source, shape)) = reshape(value) else { return Ok(()) };
    let first = source.as_var().and_then(|source| reshaped.get(&source).cloned());
    let dims = |expr: &Expr| expr.ty.as_tensor().and_then(|tensor| tensor.shape.dims().map(<[_]>::to_vec));
    if first.is_some() || (dims(source).is_some() && dims(source) == dims(value)) {
        let source = first.unwrap_or_else(|| source.clone());
        let made = match dims(&source).is_some() && dims(&source) == dims(value) {
            true => source.clone(),
            false => make::call("reshape", vec![("x", Argument::Operand(source.clone())), ("shape", shape)])?,
        };
        // If the new value has a weaker type, the original reshape stays.
        if ty.says_more_than(&made.ty) {
            return Ok(());
        }
        *value = made;
        reshaped.insert(*variable, source);
    } else {
        reshaped.insert(*variable, source.clone());
    }
    Ok(())
}

/// Returns the operand and the target shape of a reshape; `None` for other values, and if the dims of the result are
/// unknown. A target shape that is not a variable is returned with all its dims known.
fn reshape(value: &Expr) -> Option<(&Expr, Argument)> {
    let [source, shape] = operands(value, "reshape", ["x", "shape"])?;
    // `-1` and `0` in a target shape depend on the operand's shape, so the inferred result shape replaces them.
    let known = value.ty.as_tensor()?.shape.dims()?;
    let shape = match shape.as_var() {
        Some(_) => shape.clone(),
        None => Expr::shape(known.to_vec()),
    };
    Some((source, Argument::Operand(shape)))
}
