//! `ExpandTupleArguments`: replaces tuple parameters of private functions with one parameter per field.
//!
//! ```text
//! @R.function(private=True)                 @R.function(private=True)
//! def f(p: R.Tuple(A, B)):             →    def f(p_0: A, p_1: B):
//!     y = R.add(p[0], p[1])                     y = R.add(p_0, p_1)
//!
//! gv = cls.f((a, b))                   →    gv = cls.f(a, b)
//! ```
//!
//! Requires nothing. Guarantees that no private function takes a tuple, except one that is also used as a value: its
//! calls are not all known. `CanonicalizeBindings` and `DeadCodeElimination` follow, as in TVM.
//!
//! Reference: TVM `src/relax/transform/expand_tuple_arguments.cc`.

use crate::emit::{Emitter, rewrite_bindings};
use crate::names::FreshNames;
use crate::pass::{Arguments, Pass, PassError};
use crate::{Module, passes, walk};
use rx_base::Name;
use rx_base::name::{NameSet, name};
use rx_ir::{Argument, Block, BoundValue, Callee, Expr, ExprKind, Origin, RelaxFunction, StructInfo, VarBinding};
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "ExpandTupleArguments",
    parameters: &[],
    doc: "Replaces parameters of private functions that are tuples by parameters for their fields.",
    reference: "src/relax/transform/expand_tuple_arguments.cc",
    run,
};

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    expand(&mut module, &|function| function.private)?;
    module = (passes::canonicalize::PASS.run)(module, arguments)?;
    Ok(passes::dead_code::clean(module))
}

/// Expands the tuple parameters of the functions that `wanted` selects, and the arguments of their calls. Functions
/// that are used as values stay.
///
/// # Errors
/// None in practice: the signature is that of `rewrite_bindings`.
pub(super) fn expand(module: &mut Module, wanted: &dyn Fn(&RelaxFunction) -> bool) -> Result<(), PassError> {
    let values = walk::function_values(module);
    let mut expanded = NameSet::default();
    for function in module.functions_mut() {
        if wanted(function) && !values.contains(&function.name) && expand_params(function) {
            expanded.insert(function.name);
        }
    }
    if expanded.is_empty() {
        return Ok(());
    }
    for function in module.functions_mut() {
        rewrite_bindings(function, &mut |binding, emitter| {
            let BoundValue::Expr(Expr { kind: ExprKind::Call(call), .. }) = &mut binding.value else { return Ok(()) };
            if let Callee::Global(callee) = call.callee
                && expanded.contains(&callee)
            {
                let (call, mut passed) = (Arc::make_mut(call), Vec::new());
                for argument in std::mem::take(&mut call.arguments) {
                    match argument {
                        Argument::Operand(operand) => expand_argument(operand, emitter, &mut passed),
                        other => passed.push(other),
                    }
                }
                call.arguments = passed;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Replaces the tuple parameters of a function with their fields, and rebuilds the tuples at the start of its body.
/// Returns whether the function had any.
fn expand_params(function: &mut RelaxFunction) -> bool {
    let is_tuple = |(_, ty): &(Name, StructInfo)| matches!(ty, StructInfo::Tuple(_));
    if !function.params.iter().any(is_tuple) {
        return false;
    }
    let mut fresh = FreshNames::of(function);
    let mut params = Vec::new();
    let mut bindings = Vec::new();
    for (param, ty) in std::mem::take(&mut function.params) {
        expand_param(function.name, param, ty, &mut fresh, &mut params, &mut bindings);
    }
    function.params = params;
    function.body.blocks.insert(0, Block { outputs: None, bindings });
    true
}

fn expand_param(
    item: Name,
    param: Name,
    ty: StructInfo,
    fresh: &mut FreshNames,
    params: &mut Vec<(Name, StructInfo)>,
    bindings: &mut Vec<VarBinding>,
) {
    let StructInfo::Tuple(types) = &ty else { return params.push((param, ty)) };
    let mut fields = Vec::with_capacity(types.len());
    for (at, field) in types.iter().enumerate() {
        let own = fresh.like(name(&format!("{param}_{at}")));
        fields.push(Expr::var(own, field.clone()));
        expand_param(item, own, field.clone(), fresh, params, bindings);
    }
    let value = BoundValue::Expr(Expr::new(ExprKind::Tuple(fields), ty.clone()));
    bindings.push(VarBinding { origin: Origin { item, statement: 0 }, variable: param, ty, value });
}

fn expand_argument(argument: Expr, emitter: &mut Emitter<'_>, passed: &mut Vec<Argument>) {
    let StructInfo::Tuple(_) = &argument.ty else { return passed.push(Argument::Operand(argument)) };
    if let ExprKind::Tuple(fields) = argument.kind {
        return fields.into_iter().for_each(|field| expand_argument(field, emitter, passed));
    }
    for field in argument.each_field() {
        let field = emitter.emit(field);
        expand_argument(field, emitter, passed);
    }
}
