//! `BindSymbolicVars`: symbolic dims get values.
//!
//! TVM `src/relax/transform/bind_symbolic_vars.cc`: in one function, or in every function that has the dim in its signature.

use crate::Module;
use crate::pass::{Arguments, Parameter, Pass, PassError};
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{BoundValue, RelaxFunction, Sequence};
use serde_json::Value;
use std::sync::Arc;

/// The pass.
pub const PASS: Pass = Pass {
    name: "BindSymbolicVars",
    parameters: &[
        Parameter { name: "binding_map", default: None, doc: "The dims by name, with their values." },
        Parameter {
            name: "func_name",
            default: Some("null"),
            doc: "The function to change; every function that has one of the dims where it is left out.",
        },
    ],
    doc: "Replaces symbolic dims by constants, in signatures and bodies.",
    reference: "src/relax/transform/bind_symbolic_vars.cc",
    run,
};

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let values = values(arguments.get(0))?;
    let wanted = match arguments.get(1) {
        Value::Null => None,
        Value::String(function) => Some(name(function)),
        _ => return Err(PassError("BindSymbolicVars: `func_name` is a name".to_owned())),
    };
    let mut bound = NameSet::default();
    let mut found = wanted.is_none();
    for function in module.functions_mut() {
        if wanted.is_some_and(|wanted| wanted != function.name) {
            continue;
        }
        found = true;
        let own = signature_symbols(function);
        let mine: NameMap<i64> =
            values.iter().filter(|(dim, _)| own.contains(*dim)).map(|(dim, value)| (*dim, *value)).collect();
        bound.extend(mine.keys().copied());
        if !mine.is_empty() {
            bind(function, &mine);
        }
    }
    if !found {
        let wanted = wanted.map(|wanted| wanted.to_string()).unwrap_or_default();
        return Err(PassError(format!("BindSymbolicVars: the module has no Relax function `{wanted}`")));
    }
    match values.keys().find(|dim| !bound.contains(*dim)) {
        Some(dim) => Err(PassError(format!("BindSymbolicVars: no function has the symbolic dim `{dim}`"))),
        None => Ok(module),
    }
}

fn values(argument: &Value) -> Result<NameMap<i64>, PassError> {
    let wrong = || PassError("BindSymbolicVars: `binding_map` holds an integer of at least 0 per dim".to_owned());
    let entries = argument.as_object().ok_or_else(wrong)?;
    let entry = |(dim, value): (&String, &Value)| {
        let value = value.as_i64().filter(|value| *value >= 0).ok_or_else(wrong)?;
        Ok((name(dim), value))
    };
    entries.iter().map(entry).collect()
}

fn signature_symbols(function: &RelaxFunction) -> NameSet {
    let mut symbols = function.ret.symbols();
    for (_, ty) in &function.params {
        symbols.extend(ty.symbols());
    }
    symbols
}

/// Puts values in the place of symbolic dims, in the signature and the body of a function.
pub(super) fn bind(function: &mut RelaxFunction, values: &NameMap<i64>) {
    let dim = |symbol: Name| values.get(&symbol).map(|value| Dim::constant(*value));
    let renaming = Renaming { dim: &dim, variable: &|_| None };
    function.params.iter_mut().for_each(|(_, ty)| *ty = renaming.ty(ty));
    function.ret = renaming.ty(&function.ret);
    sequence(&mut function.body, &renaming);
}

fn sequence(of: &mut Sequence, renaming: &Renaming<'_>) {
    for binding in of.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        binding.ty = renaming.ty(&binding.ty);
        match &mut binding.value {
            BoundValue::Expr(value) => renaming.expr(value),
            BoundValue::If(branches) => {
                renaming.expr(&mut branches.condition);
                sequence(&mut branches.then, renaming);
                sequence(&mut branches.otherwise, renaming);
            }
            BoundValue::Function(function) => {
                let function = Arc::make_mut(function);
                function.params.iter_mut().for_each(|(_, ty)| *ty = renaming.ty(ty));
                function.ret = renaming.ty(&function.ret);
                sequence(&mut function.body, renaming);
            }
        }
    }
    renaming.expr(&mut of.result);
}
