//! `KeepRawEntry`: adds entry functions that take raw weights, after `LiftTransformParams` has made functions that take
//! prepared ones.
//!
//! ```text
//! def main_transform_params(model_params): …
//! def main(x, wt): …                                    # wt is w transposed
//! →
//! def main_prepared_transform_params(model_params): …   # has the attribute `ONCE`
//! def main_prepared(x, wt): …
//! def main(x, w):
//!     prepared = cls.main_prepared_transform_params((w,))
//!     wt = prepared[0]
//!     result = cls.main_prepared(x, wt)
//!     return result
//! ```
//!
//! The transform function is marked with [`ONCE`], by which its result is memoized for the same weights.
//!
//! Requires a public function with the attribute `num_input`, and a transform function that takes one tuple and returns
//! a tuple of as many fields as the public function has parameters after the first `num_input`. Guarantees that the new
//! `main` takes the arguments that `main` took before `LiftTransformParams`; a weight that the transform function does
//! not bind is named `weight0`, `weight1`, …, by its position. The pass exists only in rx.

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

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "KeepRawEntry",
    parameters: &[],
    doc: "Adds to each function that takes prepared weights one of its name that takes raw ones and has them prepared once.",
    reference: "none: a pass of rx that follows LiftTransformParams",
    run,
};

/// A function that takes prepared weights, and the changes that keep it callable with raw weights.
pub struct RawEntry {
    /// The function that takes prepared weights, with its old and new name.
    pub runs: Renamed,
    /// The function that prepares the weights, with its old and new name.
    pub prepares: Renamed,
    /// The new function, which takes raw weights. It has the old name of `runs`, and is placed after that function.
    pub entry: RelaxFunction,
}

/// A function with its old name and its new one, which may be the same.
pub struct Renamed {
    /// The old name.
    pub from: Name,
    /// The new name.
    pub to: Name,
    /// Whether the result is memoized for the same arguments ([`ONCE`]).
    once: bool,
}

impl Renamed {
    /// Updates the function's attributes: removes the `global_symbol` if the name changes, and sets [`ONCE`] if the
    /// result is memoized.
    pub fn state(&self, attributes: &mut Attributes) {
        // Its value would still be the old name.
        if self.from != self.to {
            attributes.retain(|(key, _)| &**key != "global_symbol");
        }
        if self.once {
            state(attributes, ONCE);
        }
    }
}

/// The attributes of a function, in order.
type Attributes = Vec<(Arc<str>, Attr)>;

/// Returns the raw entries of a module: one for each public function that takes prepared weights and for whose name
/// `wanted` returns true.
pub fn raw_entries(module: &Module, wanted: impl Fn(Name) -> bool) -> Vec<RawEntry> {
    let taken: NameSet = module.items.iter().filter_map(Item::name).collect();
    let mut pairs = pairs(module);
    pairs.retain(|(function, _)| wanted(*function));
    let raw_entry = |(function, transform): (Name, Name)| {
        let prepared = unused(&format!("{function}_prepared"), &taken);
        // A transform that several functions share is called `transform_params`, and keeps its name.
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

/// Returns the public functions that take prepared weights, each with the function that prepares them.
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

/// Returns the number of parameters that are not weights; `None` if the function has no integer attribute `num_input`,
/// or is a raw entry itself.
fn inputs(function: &RelaxFunction) -> Option<usize> {
    match function.attribute(RAW_ENTRY) {
        Some(_) => None,
        None => usize::try_from(function.attribute("num_input")?.as_int()?).ok(),
    }
}

fn found(module: &Module, wanted: Name) -> Option<&RelaxFunction> {
    module.functions().find(|function| function.name == wanted)
}

/// Returns `like`, or the first unused one of `like_1`, `like_2`, ….
fn unused(like: &str, taken: &NameSet) -> Name {
    let numbered = (1..).map(|number| name(&format!("{like}_{number}")));
    std::iter::once(name(like)).chain(numbered).find(|own| !taken.contains(own)).unwrap_or_else(|| name(like))
}

fn state(attributes: &mut Attributes, attribute: &str) {
    if attributes.iter().all(|(key, _)| &**key != attribute) {
        attributes.push((attribute.into(), Attr::Bool(true)));
    }
}

/// Builds the function that takes raw weights. It calls `transform` and `callee`, the new names of `prepares` and
/// `runs`.
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

/// Returns the name that the transform gives to the raw weight at index `at`; `weight{at}` if it binds none.
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

/// Renames functions of the module, in their definitions and in all uses.
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
