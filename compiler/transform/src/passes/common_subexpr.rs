//! `EliminateCommonSubexpr`: common-subexpression elimination.
//!
//! ```text
//! a = R.exp(x)            a = R.exp(x)
//! b = R.exp(x)       →    b = a
//! c = R.add(a, b)         c = R.add(a, a)
//! ```
//!
//! Requires nothing. Guarantees that calls with effects, and calls that allocate memory, are not merged. A variable of
//! a dataflow block that is not an output is reused only inside the block. After the block, the first output with a
//! value represents the value. A nested function reuses only its own values.
//!
//! Reference: TVM `src/relax/transform/eliminate_common_subexpr.cc`.

use crate::Module;
use crate::effects::{Effects, makes_new_object};
use crate::pass::{Arguments, Parameter, Pass, PassError};
use rustc_hash::FxHashMap;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_ir::rewrite::Renaming;
use rx_ir::{Block, BoundValue, Expr, ExprKind, RelaxFunction, Sequence, VarBinding};
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "EliminateCommonSubexpr",
    parameters: &[Parameter {
        name: "call_only",
        default: Some("false"),
        doc: "Whether calls alone are looked at, and not fields of tuples and casts.",
    }],
    doc: "Binds a value that was computed before to the variable that has it.",
    reference: "src/relax/transform/eliminate_common_subexpr.cc",
    run,
};

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let call_only = arguments.get(0).as_bool();
    let call_only =
        call_only.ok_or_else(|| PassError("EliminateCommonSubexpr: `call_only` is a boolean".to_owned()))?;
    let effects = Effects::of(&module);
    module.functions_mut().for_each(|function| eliminate(function, &effects, call_only));
    Ok(module)
}

fn eliminate(function: &mut RelaxFunction, effects: &Effects, call_only: bool) {
    let mut elimination =
        Elimination { effects, call_only, seen: vec![FxHashMap::default()], renamed: NameMap::default() };
    elimination.sequence(&mut function.body);
}

struct Elimination<'a> {
    effects: &'a Effects,
    call_only: bool,
    /// For each open scope, innermost last, the values computed so far and their variables. The key is the printed
    /// value.
    seen: Vec<FxHashMap<String, (Expr, Name)>>,
    /// The replacements of variables whose values are available in another variable.
    renamed: NameMap<Name>,
}

impl Elimination<'_> {
    fn expr(&self, expr: &mut Expr) {
        let variable = |variable: Name| self.renamed.get(&variable).copied();
        Renaming { dim: &|_| None, variable: &variable }.expr(expr);
    }

    fn sequence(&mut self, sequence: &mut Sequence) {
        sequence.blocks.iter_mut().for_each(|block| self.block(block));
        self.expr(&mut sequence.result);
    }

    fn block(&mut self, Block { outputs, bindings }: &mut Block) {
        let Some(outputs) = outputs else {
            bindings.iter_mut().for_each(|binding| self.binding(binding));
            return;
        };
        self.seen.push(FxHashMap::default());
        bindings.iter_mut().for_each(|binding| self.binding(binding));
        let inner = self.seen.pop().unwrap_or_default();
        // After the block, the first output with a given value represents that value.
        let mut shown: NameMap<Name> = NameMap::default();
        for output in outputs.iter() {
            let own = self.renamed.get(output).copied().unwrap_or(*output);
            let first = *shown.entry(own).or_insert(*output);
            match first == *output {
                true => self.renamed.remove(output),
                false => self.renamed.insert(*output, first),
            };
        }
        let Some(around) = self.seen.last_mut() else { return };
        for (text, (mut value, variable)) in inner {
            let Some(first) = shown.get(&variable) else { continue };
            let is_seen = value.variables().iter().all(|used| around_sees(*used, &shown, bindings));
            if is_seen {
                let rename = |name: Name| shown.get(&name).copied();
                Renaming { dim: &|_| None, variable: &rename }.expr(&mut value);
                let text = if shown.iter().any(|(from, to)| from != to) { key(&value) } else { text };
                around.entry(text).or_insert((value, *first));
            }
        }
    }

    fn binding(&mut self, binding: &mut VarBinding) {
        match &mut binding.value {
            BoundValue::Expr(value) => {
                self.expr(value);
                self.value(binding);
            }
            BoundValue::If(branches) => {
                self.expr(&mut branches.condition);
                self.scoped(|inner| inner.sequence(&mut branches.then));
                self.scoped(|inner| inner.sequence(&mut branches.otherwise));
            }
            BoundValue::Function(function) => {
                // As in TVM, values of the enclosing function are not reused in a nested one, which cannot use the
                // variables of a dataflow block.
                let outer = std::mem::replace(&mut self.seen, vec![FxHashMap::default()]);
                self.sequence(&mut Arc::make_mut(function).body);
                self.seen = outer;
            }
        }
    }

    fn scoped(&mut self, visit: impl FnOnce(&mut Self)) {
        self.seen.push(FxHashMap::default());
        visit(self);
        self.seen.pop();
    }

    /// Replaces the value with the variable that holds it already, or records the value for later bindings. Skips
    /// values that have effects, that allocate, or that compute nothing, such as a variable; bindings of `_`; and, with
    /// `call_only`, values other than calls.
    fn value(&mut self, binding: &mut VarBinding) {
        let VarBinding { variable, ty, value: BoundValue::Expr(value), .. } = binding else { return };
        let is_computed = match value.kind {
            ExprKind::Call(_) => true,
            ExprKind::MatchCast(_) | ExprKind::TupleGet(..) | ExprKind::Tuple(_) => !self.call_only,
            _ => false,
        };
        if !is_computed || variable.as_str() == "_" || makes_new_object(value) || self.effects.has_effect(value) {
            return;
        }
        let text = key(value);
        let known = self.seen.iter().rev().find_map(|scope| scope.get(&text)).filter(|(known, _)| known == value);
        match known {
            Some((_, known)) => {
                self.renamed.insert(*variable, *known);
                *value = Expr::var(*known, ty.clone());
            }
            None => {
                if let Some(scope) = self.seen.last_mut() {
                    scope.insert(text, (value.clone(), *variable));
                }
            }
        }
    }
}

/// Whether the value of a variable that a dataflow block uses is available after the block: in the variable itself if
/// the block does not bind it, or in an output. `shown` maps a variable to the output that has the same value.
fn around_sees(used: Name, shown: &NameMap<Name>, bindings: &[VarBinding]) -> bool {
    shown.contains_key(&used) || bindings.iter().all(|binding| binding.variable != used)
}

/// Returns the hash key of a value; equal values have equal keys.
fn key(value: &Expr) -> String {
    crate::print::expression_text(value)
}
