//! `KeepRawEntry`: functions whose weights are prepared stay callable with raw ones.
//!
//! A pass of rx's own, behind `LiftTransformParams`. What that made of `main` becomes `main_prepared`, with
//! `main_prepared_transform_params` beside it, and a new `main` takes what it took before: it has its weights prepared, once
//! for the same weights ([`ONCE`]), and calls `main_prepared`.

use crate::Module;
use crate::names::FreshNames;
use crate::pass::{Arguments, Pass, PassError};
use crate::passes::lift_transform_params::SUFFIX;
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

/// A function that takes prepared weights, and what keeps it callable with raw ones.
pub struct RawEntry {
    /// The function.
    pub runs: Renamed,
    /// What prepares its weights.
    pub prepares: Renamed,
    /// What is called as the function was, and stands behind it.
    pub entry: RelaxFunction,
}

/// A function that gets another name, or keeps its own.
pub struct Renamed {
    /// What it is called.
    pub from: Name,
    /// What it is called from now on.
    pub to: Name,
    /// Whether its result is kept for the same arguments ([`ONCE`]).
    once: bool,
}

impl Renamed {
    /// Makes of what the function's `R.func_attr` says what it says from now on.
    pub fn state(&self, attributes: &mut Attributes) {
        // What a function says it is called is what it was called.
        if self.from != self.to {
            attributes.retain(|(key, _)| &**key != "global_symbol");
        }
        if self.once {
            state(attributes, ONCE);
        }
    }
}

/// What a function says of itself, in order.
type Attributes = Vec<(Arc<str>, Attr)>;

/// What the pass does to those functions of a module that take prepared weights and of which `wanted` holds.
pub fn raw_entries(module: &Module, wanted: impl Fn(Name) -> bool) -> Vec<RawEntry> {
    let taken: NameSet = module.items.iter().filter_map(Item::name).collect();
    let mut pairs = pairs(module);
    pairs.retain(|(function, _)| wanted(*function));
    let raw_entry = |(function, transform): (Name, Name)| {
        let prepared = unused(&format!("{function}_prepared"), &taken);
        // What prepares the weights of several functions is no one's own.
        let transform_to = match transform.as_str() {
            SUFFIX => transform,
            _ => unused(&format!("{prepared}_{SUFFIX}"), &taken),
        };
        let entry = entry(found(module, function)?, found(module, transform)?, prepared, transform_to)?;
        let runs = Renamed { from: function, to: prepared, once: false };
        Some(RawEntry { runs, prepares: Renamed { from: transform, to: transform_to, once: true }, entry })
    };
    pairs.into_iter().filter_map(raw_entry).collect()
}

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    let raw_entries = raw_entries(&module, |_| true);
    let changed = || raw_entries.iter().flat_map(|raw| [&raw.runs, &raw.prepares]);
    let changed: NameMap<&Renamed> = changed().map(|renamed| (renamed.from, renamed)).collect();
    rename(&mut module, &changed);
    for RawEntry { runs, entry, .. } in &raw_entries {
        let behind = module.items.iter().position(|item| item.name() == Some(runs.to));
        let at = behind.map_or(module.items.len(), |at| at + 1);
        module.items.insert(at, Item::Relax(Arc::new(entry.clone())));
    }
    Ok(module)
}

/// The public functions that take prepared weights, each with what prepares them.
fn pairs(module: &Module) -> Vec<(Name, Name)> {
    let pair = |function: &RelaxFunction| {
        let first = inputs(function)?;
        let own = name(&format!("{}_{SUFFIX}", function.name));
        let beside = [own, name(SUFFIX)].into_iter().filter(|known| *known != function.name);
        let prepares = beside.into_iter().find_map(|known| found(module, known))?;
        let [(_, StructInfo::Tuple(_))] = &prepares.params[..] else { return None };
        let gives = prepares.ret.as_tuple()?.len();
        (first + gives == function.params.len()).then_some((function.name, prepares.name))
    };
    module.functions().filter(|function| !function.private).filter_map(pair).collect()
}

/// How many parameters are no weights.
fn inputs(function: &RelaxFunction) -> Option<usize> {
    match function.attribute(RAW_ENTRY) {
        Some(_) => None,
        None => usize::try_from(function.attribute("num_input")?.as_int()?).ok(),
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

fn state(attributes: &mut Attributes, what: &str) {
    if attributes.iter().all(|(key, _)| &**key != what) {
        attributes.push((what.into(), Attr::Bool(true)));
    }
}

/// The function that takes raw weights; `runs` and `prepares` have other names from now on.
fn entry(runs: &RelaxFunction, prepares: &RelaxFunction, callee: Name, transform: Name) -> Option<RelaxFunction> {
    let first = inputs(runs)?;
    let [(given, StructInfo::Tuple(raw))] = &prepares.params[..] else { return None };
    let mut entry = RelaxFunction { params: runs.params.get(..first)?.to_vec(), ..runs.clone() };
    entry.body = Sequence { blocks: Vec::new(), result: Expr::new(ExprKind::Tuple(Vec::new()), StructInfo::void()) };
    entry.pure = runs.pure && prepares.pure;
    state(&mut entry.attributes, RAW_ENTRY);
    let mut fresh = FreshNames::of(&entry);
    for (at, ty) in raw.iter().enumerate() {
        let own = fresh.like(weight_name(prepares, *given, at));
        entry.params.push((own, ty.clone()));
    }
    let origin = Origin { item: runs.name, statement: 0 };
    let mut bindings = Vec::new();
    let mut bind = |like: Name, value: ExprKind, ty: StructInfo| {
        let variable = fresh.like(like);
        bindings.push(VarBinding::new(origin, variable, Expr::new(value, ty.clone())));
        Expr::var(variable, ty)
    };
    let operand = |(param, ty): &(Name, StructInfo)| Expr::var(*param, ty.clone());
    let weights: Vec<Expr> = entry.params.iter().skip(first).map(operand).collect();
    let taken = StructInfo::tuple(raw.to_vec());
    let weights = Expr::new(ExprKind::Tuple(weights), taken);
    let call = |to: Name, arguments| ExprKind::Call(Arc::new(Call::of_function(Callee::Global(to), arguments)));
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
fn rename(module: &mut Module, names: &NameMap<&Renamed>) {
    if names.is_empty() {
        return;
    }
    let other = |known: &mut Name| *known = names.get(known).map_or(*known, |renamed| renamed.to);
    for function in module.functions_mut() {
        if let Some(renamed) = names.get(&function.name) {
            renamed.state(&mut function.attributes);
            function.name = renamed.to;
        }
        walk::each_part_mut(&mut function.body, &mut |expr| match &mut expr.kind {
            ExprKind::Global(global) => other(global),
            ExprKind::Call(call) => {
                if let Callee::Global(global) = &mut Arc::make_mut(call).callee {
                    other(global);
                }
            }
            _ => {}
        });
    }
}
