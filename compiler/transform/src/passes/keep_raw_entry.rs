//! `KeepRawEntry`: functions whose weights are prepared stay callable with raw ones.
//!
//! A pass of rx's own, behind `LiftTransformParams`. What that made of `main` becomes `main_prepared`, with
//! `main_prepared_transform_params` beside it, and a new `main` takes what it took before: it has its weights prepared, once
//! for the same weights ([`ONCE`]), and calls `main_prepared`.

use crate::Module;
use crate::names::FreshNames;
use crate::pass::{Arguments, Pass, PassError};
use crate::walk;
use rx_base::Name;
use rx_base::name::{NameMap, NameSet, name};
use rx_ir::function::{ONCE, RAW_ENTRY};
use rx_ir::{
    Attr, Block, BoundValue, Call, Callee, Expr, ExprKind, Item, Origin, RelaxFunction, Sequence, StructInfo,
    VarBinding,
};
use std::sync::Arc;

/// The pass.
pub const PASS: Pass = Pass {
    name: "KeepRawEntry",
    parameters: &[],
    doc: "Adds to each function that takes prepared weights one of its name that takes raw ones and has them prepared once.",
    reference: "none: rx's own, behind LiftTransformParams",
    run,
};

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    let pairs = pairs(&module);
    let taken: NameSet = module.items.iter().filter_map(Item::name).collect();
    let mut renamed: NameMap<Name> = NameMap::default();
    let mut entries: Vec<(Name, RelaxFunction)> = Vec::new();
    for (function, transform) in &pairs {
        let prepared = unused(&format!("{function}_prepared"), &taken);
        renamed.insert(*function, prepared);
        if transform.as_str() != "transform_params" {
            renamed.insert(*transform, unused(&format!("{prepared}_transform_params"), &taken));
        }
    }
    for (function, transform) in &pairs {
        if let (Some(runs), Some(prepares)) = (found(&module, *function), found(&module, *transform)) {
            let called = |of: Name| renamed.get(&of).copied().unwrap_or(of);
            entries.extend(
                entry(runs, prepares, called(*function), called(*transform)).map(|entry| (called(*function), entry)),
            );
        }
    }
    rename(&mut module, &renamed);
    for (_, transform) in &pairs {
        let transform = renamed.get(transform).copied().unwrap_or(*transform);
        if let Some(prepares) = module.functions_mut().find(|function| function.name == transform) {
            state(prepares, ONCE);
        }
    }
    for (behind, entry) in entries {
        let at =
            module.items.iter().position(|item| item.name() == Some(behind)).map_or(module.items.len(), |at| at + 1);
        module.items.insert(at, Item::Relax(Arc::new(entry)));
    }
    Ok(module)
}

/// The public functions that take prepared weights, each with what prepares them.
fn pairs(module: &Module) -> Vec<(Name, Name)> {
    let pair = |function: &RelaxFunction| {
        let first = inputs(function)?;
        let own = name(&format!("{}_transform_params", function.name));
        let beside = [own, name("transform_params")].into_iter().filter(|known| *known != function.name);
        let prepares = beside.into_iter().find_map(|known| found(module, known))?;
        let [(_, StructInfo::Tuple(_))] = &prepares.params[..] else { return None };
        let gives = prepares.ret.as_tuple()?.len();
        (first + gives == function.params.len()).then_some((function.name, prepares.name))
    };
    module.functions().filter(|function| !function.private).filter_map(pair).collect()
}

/// How many parameters are no weights.
fn inputs(function: &RelaxFunction) -> Option<usize> {
    let said = |key: &str| function.attributes.iter().find(|(known, _)| &**known == key).map(|(_, value)| value);
    match said(RAW_ENTRY) {
        Some(_) => None,
        None => usize::try_from(said("num_input")?.as_int()?).ok(),
    }
}

fn found(module: &Module, wanted: Name) -> Option<&RelaxFunction> {
    module.functions().find(|function| function.name == wanted)
}

/// `like`, or `like_1`, `like_2`, … where that is taken.
fn unused(like: &str, taken: &NameSet) -> Name {
    let numbered = (1..).map(|number| name(&format!("{like}_{number}")));
    std::iter::once(name(like)).chain(numbered).find(|own| !taken.contains(own)).unwrap_or_else(|| name(like))
}

fn state(function: &mut RelaxFunction, what: &str) {
    if function.attributes.iter().all(|(key, _)| &**key != what) {
        function.attributes.push((what.into(), Attr::Bool(true)));
    }
}

/// The function that takes raw weights; `runs` and `prepares` have other names from now on.
fn entry(runs: &RelaxFunction, prepares: &RelaxFunction, callee: Name, transform: Name) -> Option<RelaxFunction> {
    let first = inputs(runs)?;
    let [(given, StructInfo::Tuple(raw))] = &prepares.params[..] else { return None };
    let mut entry = RelaxFunction { params: runs.params.get(..first)?.to_vec(), ..runs.clone() };
    entry.body = Sequence { blocks: Vec::new(), result: Expr::new(ExprKind::Tuple(Vec::new()), StructInfo::void()) };
    entry.pure = runs.pure && prepares.pure;
    state(&mut entry, RAW_ENTRY);
    let mut fresh = FreshNames::of(&entry);
    for (at, ty) in raw.iter().enumerate() {
        let own = fresh.like(weight_name(prepares, *given, at));
        entry.params.push((own, ty.clone()));
    }
    let origin = Origin { item: runs.name, statement: 0 };
    let mut bindings = Vec::new();
    let mut bind = |like: Name, value: ExprKind, ty: StructInfo| {
        let variable = fresh.like(like);
        let value = BoundValue::Expr(Expr::new(value, ty.clone()));
        bindings.push(VarBinding { origin, variable, ty: ty.clone(), value });
        Expr::var(variable, ty)
    };
    let operand = |(param, ty): &(Name, StructInfo)| Expr::var(*param, ty.clone());
    let weights: Vec<Expr> = entry.params.iter().skip(first).map(operand).collect();
    let taken = StructInfo::tuple(raw.to_vec());
    let weights = Expr::new(ExprKind::Tuple(weights), taken);
    let call = |to: Name, arguments| ExprKind::Call(Box::new(Call::of_function(Callee::Global(to), arguments)));
    let prepared = bind(name("prepared"), call(transform, vec![weights]), prepares.ret.clone());
    let mut arguments: Vec<Expr> = entry.params.iter().take(first).map(operand).collect();
    for (at, field) in prepares.ret.as_tuple()?.iter().enumerate() {
        let own = runs.params.get(first + at).map_or(name("weight"), |(param, _)| *param);
        arguments.push(bind(own, ExprKind::TupleGet(Box::new(prepared.clone()), at), field.clone()));
    }
    let result = bind(name("result"), call(callee, arguments), runs.ret.clone());
    entry.body = Sequence { blocks: vec![Block { outputs: None, bindings }], result };
    Some(entry)
}

/// What the transform binds a weight to first.
fn weight_name(prepares: &RelaxFunction, given: Name, at: usize) -> Name {
    let mut own = None;
    walk::each_own_binding(&prepares.body, &mut |binding| {
        if let BoundValue::Expr(Expr { kind: ExprKind::TupleGet(tuple, field), .. }) = &binding.value
            && *field == at
            && tuple.as_var() == Some(given)
            && own.is_none()
        {
            own = Some(binding.variable);
        }
    });
    own.unwrap_or_else(|| name(&format!("weight{at}")))
}

/// Gives functions of the module other names, where they stand and where they are named.
fn rename(module: &mut Module, names: &NameMap<Name>) {
    if names.is_empty() {
        return;
    }
    let other = |known: &mut Name| *known = names.get(known).copied().unwrap_or(*known);
    for function in module.functions_mut() {
        other(&mut function.name);
        // What a function says it is called is what it was called.
        if names.values().any(|own| *own == function.name) {
            function.attributes.retain(|(key, _)| &**key != "global_symbol");
        }
        walk::each_expression_mut(&mut function.body, &mut |expr| {
            expr.each_mut(&mut |expr| match &mut expr.kind {
                ExprKind::Global(global) => other(global),
                ExprKind::Call(call) => {
                    if let Callee::Global(global) = &mut call.callee {
                        other(global);
                    }
                }
                _ => {}
            });
        });
    }
}
