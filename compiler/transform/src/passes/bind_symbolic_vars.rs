//! `BindSymbolicVars`: replaces symbolic dims with constants, in one function or in every function whose signature has
//! the dim.
//!
//! ```text
//! BindSymbolicVars({"n": 8})
//! def main(x: R.Tensor((n, 4))): …   →   def main(x: R.Tensor((8, 4))): …
//! ```
//!
//! Requires that every given dim occurs in the signature of a function that the pass may change. Guarantees that no
//! signature of these functions has a given dim afterwards.
//!
//! Reference: TVM `src/relax/transform/bind_symbolic_vars.cc`.

use crate::Module;
use crate::pass::{Arguments, Parameter, Pass, PassError};
use crate::substitute::rename;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{Dim, Name};
use rx_ir::RelaxFunction;
use rx_ir::rewrite::Renaming;
use serde_json::Value;

/// The registration of the pass.
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
    let wanted = arguments.function(1, &module, PASS.name)?;
    let mut bound = NameSet::default();
    for function in module.functions_mut().filter(|function| wanted.is_none_or(|wanted| wanted == function.name)) {
        let own = signature_symbols(function);
        let mine: NameMap<i64> =
            values.iter().filter(|(dim, _)| own.contains(*dim)).map(|(dim, value)| (*dim, *value)).collect();
        bound.extend(mine.keys().copied());
        if !mine.is_empty() {
            bind(function, &mine);
        }
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

/// Replaces symbolic dims with values, in the signature and the body of a function.
pub(super) fn bind(function: &mut RelaxFunction, values: &NameMap<i64>) {
    let dim = |symbol: Name| values.get(&symbol).map(|value| Dim::constant(*value));
    let renaming = Renaming { dim: &dim, variable: &|_| None };
    function.params.iter_mut().for_each(|(_, ty)| *ty = renaming.ty(ty));
    function.ret = renaming.ty(&function.ret);
    rename(&mut function.body, &renaming);
}
