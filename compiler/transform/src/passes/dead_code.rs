//! `DeadCodeElimination`: removes functions that are not reachable, and unused bindings without effects.
//!
//! ```text
//! with R.dataflow():             with R.dataflow():
//!     a = R.exp(x)                   b = R.add(x, x)
//!     b = R.add(x, x)       →        R.output(b)
//!     R.output(a, b)
//! return b                       return b
//! ```
//!
//! Removes functions that neither an entry function nor a public function reaches (in a module with a class), unused
//! bindings inside and outside of dataflow blocks, and outputs of dataflow blocks that are not used after the block.
//!
//! Requires nothing. Guarantees that effects remain, and that a cast remains if a symbolic dim that it binds is used.
//!
//! Reference: TVM `src/relax/transform/dead_code_elimination.cc`.

use crate::effects::Effects;
use crate::pass::{Arguments, Parameter, Pass, PassError};
use crate::{Module, walk};
use rx_base::Name;
use rx_base::name::{NameMap, NameSet, name};
use rx_ir::{Block, BoundValue, Expr, ExprKind, Item, LoopBody, RelaxFunction, Sequence, VarBinding};
use serde_json::Value;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "DeadCodeElimination",
    parameters: &[Parameter {
        name: "entry_functions",
        default: Some("null"),
        doc: "Functions to keep, with all functions that they reach; public ones are always kept.",
    }],
    doc: "Removes functions that nothing reaches, and unused bindings without effects.",
    reference: "src/relax/transform/dead_code_elimination.cc",
    run,
};

fn run(module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let entries = entries(arguments.get(0))?;
    Ok(without_dead_code(module, &entries))
}

/// Runs the pass without entry functions, for other passes.
pub(crate) fn clean(module: Module) -> Module {
    without_dead_code(module, &NameSet::default())
}

fn without_dead_code(mut module: Module, entries: &NameSet) -> Module {
    // Functions are removed twice: a function may become unreachable when a dead binding that calls it is removed.
    remove_functions(&mut module, entries);
    let effects = Effects::of(&module);
    module.functions_mut().for_each(|function| remove_unused(function, &effects));
    remove_functions(&mut module, entries);
    module
}

fn entries(argument: &Value) -> Result<NameSet, PassError> {
    let wrong = || PassError("DeadCodeElimination: `entry_functions` is a list of names".to_owned());
    match argument {
        Value::Null => Ok(NameSet::default()),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(name).ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    }
}

/// Removes the functions that neither `entries` nor public functions reach. Text items without a name stay.
fn remove_functions(module: &mut Module, entries: &NameSet) {
    // Functions outside a module class all stay.
    if module.class.is_none() {
        return;
    }
    let items: NameMap<&Item<_>> = module.items.iter().filter_map(|item| Some((item.name()?, item))).collect();
    let mut reached = NameSet::default();
    let mut waiting: Vec<Name> = items
        .iter()
        .filter(|(name, item)| entries.contains(*name) || !item.is_private())
        .map(|(name, _)| *name)
        .collect();
    while let Some(next) = waiting.pop() {
        if !reached.insert(next) {
            continue;
        }
        match items.get(&next) {
            Some(Item::Relax(function)) => waiting.extend(walk::globals(function)),
            Some(Item::Text { text, .. }) => waiting.extend(members(text).filter(|name| items.contains_key(name))),
            Some(Item::Loops(function)) => {
                // The loops that passes make call no other function.
                if let LoopBody::Written { after, .. } = &function.body {
                    waiting.extend(members(after).filter(|name| items.contains_key(name)));
                }
            }
            None => {}
        }
    }
    module.items.retain(|item| item.name().is_none_or(|name| reached.contains(&name)));
}

/// Returns the names after a dot in a text. A prim_func calls another one as `Module.f(…)`.
fn members(text: &str) -> impl Iterator<Item = Name> {
    let is_name = |c: char| c == '_' || c.is_alphanumeric();
    text.split('.').skip(1).filter_map(move |rest| {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        rest.get(..end).filter(|member| !member.is_empty()).map(name)
    })
}

/// Removes the unused bindings of a function, except those whose values have side effects.
pub(crate) fn remove_unused(function: &mut RelaxFunction, effects: &Effects) {
    // One pass over the bindings in reverse order suffices: removing a binding can only make earlier ones unused.
    let mut used = Used::default();
    used.types(function);
    sweep(&mut function.body, effects, &mut used);
}

/// The variables and symbolic dims that are used after the current position.
#[derive(Default)]
struct Used {
    variables: NameSet,
    symbols: NameSet,
}

impl Used {
    fn types(&mut self, function: &RelaxFunction) {
        self.symbols.extend(function.ret.symbols());
    }

    fn expr(&mut self, expr: &Expr) {
        self.variables.extend(expr.variables());
        expr.each_symbol(&mut |symbol| {
            self.symbols.insert(symbol);
            // A variable of a scalar type is also a symbolic dim of the same name.
            self.variables.insert(symbol);
        });
        expr.each(&mut |expr| {
            if let rx_ir::StructInfo::Tensor(tensor) = &expr.ty
                && let rx_ir::Shape::Var { name, .. } = tensor.shape
            {
                self.variables.insert(name);
            }
        });
    }
}

fn sweep(sequence: &mut Sequence, effects: &Effects, used: &mut Used) {
    used.expr(&sequence.result);
    for Block { outputs, bindings } in sequence.blocks.iter_mut().rev() {
        // Code after the block can use only its outputs.
        if let Some(outputs) = outputs {
            outputs.retain(|output| used.variables.contains(output));
        }
        let mut kept: Vec<VarBinding> = Vec::with_capacity(bindings.len());
        for mut binding in std::mem::take(bindings).into_iter().rev() {
            if is_needed(&binding, effects, used) {
                use_value(&mut binding, effects, used);
                kept.push(binding);
            }
        }
        kept.reverse();
        *bindings = kept;
    }
    sequence.blocks.retain(|block| !block.bindings.is_empty());
}

fn is_needed(binding: &VarBinding, effects: &Effects, used: &Used) -> bool {
    if used.variables.contains(&binding.variable) {
        return true;
    }
    match &binding.value {
        BoundValue::Expr(value) => {
            let binds_used_symbol = matches!(value.kind, ExprKind::MatchCast(_))
                && value.ty.symbols().iter().any(|symbol| used.symbols.contains(symbol));
            binds_used_symbol || effects.has_effect(value)
        }
        BoundValue::If(_) => binding.value.sequences().any(|branch| {
            let mut any = false;
            walk::each_expression(branch, &mut |expr| any |= effects.has_effect(expr));
            any
        }),
        BoundValue::Function(_) => false,
    }
}

/// Removes the unused bindings inside of a binding's value, and records the names that the remaining value uses.
fn use_value(binding: &mut VarBinding, effects: &Effects, used: &mut Used) {
    binding.ty.each_symbol(&mut |symbol| {
        used.symbols.insert(symbol);
    });
    if let BoundValue::Function(function) = &binding.value {
        used.types(function);
        function.params.iter().for_each(|(_, ty)| used.symbols.extend(ty.symbols()));
    }
    binding.value.sequences_mut().for_each(|inner| sweep(inner, effects, used));
    binding.value.computed().into_iter().for_each(|value| used.expr(value));
}
