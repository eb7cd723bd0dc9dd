//! Moves the scalars that calls such as `call_tir` pass by `tir_vars=` (TVM up to 0.25) to the argument list, as later
//! releases of TVM require.
//!
//! Before, where `f(a, out, n)` is a prim_func:
//!
//! ```text
//! R.call_tir(cls.f, (x,), out_ty=R.Tensor((4,), "float32"), tir_vars=R.shape([n]))
//! ```
//!
//! After, where it is `f(a, n, out)`:
//!
//! ```text
//! R.call_tir(cls.f, (x, n), out_ty=R.Tensor((4,), "float32"))
//! ```
//!
//! Requires a prim_func with loops that the loop-level IR represents and with trailing scalar parameters. All its uses
//! in Relax functions must be such calls, with the same numbers of arguments and of scalars, and with tensors or
//! scalars as arguments; items kept as text must not contain its name.
//! Other calls do not change.

use crate::{Module, make, walk};
use rx_base::name::NameMap;
use rx_base::{Dim, Name};
use rx_ir::{Argument, Attr, Call, Callee, Expr, ExprKind, Item, LoopBody, LoopFunction, StructInfo};
use rx_ops::Schema;
use rx_tir::{Param, PrimFunc};
use std::sync::Arc;

/// The numbers of arguments and of scalars that a call passes.
type Counts = (usize, usize);

/// Moves the scalars of every eligible call to its argument list, and reorders the parameters of the called prim_funcs
/// to match.
pub fn pass_scalars_among_arguments(module: &mut Module) {
    let mut moved: NameMap<Arc<PrimFunc>> = NameMap::default();
    for (function, counts) in uses(module) {
        let called = module.prim_funcs().find(|func| func.name == function).and_then(LoopFunction::loops);
        if let (Some(counts), Some(func)) = (counts, called)
            && !is_named_elsewhere(module, function)
            && let Some(func) = reordered(func, counts)
        {
            moved.insert(function, Arc::new(func));
        }
    }
    if moved.is_empty() {
        return;
    }
    for function in module.functions_mut() {
        walk::each_part_mut(&mut function.body, &mut |expr| {
            let ExprKind::Call(call) = &mut expr.kind else { return };
            if let Some((schema, passed)) = Passed::of(call)
                && moved.contains_key(&passed.function)
            {
                passed.among_arguments(schema, Arc::make_mut(call));
            }
        });
    }
    for item in &mut module.items {
        if let Item::Loops(function) = item
            && let Some(func) = moved.get(&function.name)
        {
            Arc::make_mut(function).body = LoopBody::Made(func.clone());
        }
    }
}

/// Returns the functions that calls with `tir_vars` call. The value is the counts that all these calls pass; `None` if
/// the calls differ in them, or if another expression calls the function or has it as an operand.
fn uses(module: &Module) -> NameMap<Option<Counts>> {
    let mut named: NameMap<usize> = NameMap::default();
    let mut calls: NameMap<Vec<Counts>> = NameMap::default();
    for function in module.functions() {
        walk::each_part(&function.body, &mut |expr| match &expr.kind {
            ExprKind::Global(function) => *named.entry(*function).or_default() += 1,
            ExprKind::Call(call) => {
                if let Callee::Global(function) = &call.callee {
                    *named.entry(*function).or_default() += 1;
                }
                if let Some((_, passed)) = Passed::of(call) {
                    let counts = (passed.arguments.len(), passed.scalars.len());
                    calls.entry(passed.function).or_default().push(counts);
                }
            }
            _ => {}
        });
    }
    let same = |(function, counts): (Name, Vec<Counts>)| {
        let first = counts.first().copied().filter(|first| counts.iter().all(|other| other == first));
        (function, first.filter(|_| named.get(&function) == Some(&counts.len())))
    };
    calls.into_iter().map(same).collect()
}

/// Whether another item that is kept as text may refer to `function`.
fn is_named_elsewhere(module: &Module, function: Name) -> bool {
    module.items.iter().any(|item| match item {
        Item::Loops(other) if other.name != function => match &other.body {
            LoopBody::Written { before, after, .. } => {
                [before, after].iter().any(|text| text.contains(function.as_str()))
            }
            LoopBody::Made(_) => false,
        },
        Item::Text { text, .. } => text.contains(function.as_str()),
        Item::Loops(_) | Item::Relax(_) => false,
    })
}

/// Moves the trailing scalar parameters to after the parameters of the arguments, before those of the outputs. Returns
/// `None` if there are too few parameters, or if one of the trailing ones is not a scalar.
fn reordered(func: &PrimFunc, (arguments, scalars): Counts) -> Option<PrimFunc> {
    let outputs = func.params.len().checked_sub(arguments + scalars)?;
    let (before, behind) = func.params.split_at_checked(arguments + outputs)?;
    let (before, outputs) = before.split_at_checked(arguments)?;
    let is_scalar = |param: &Param| matches!(param, Param::Scalar(_));
    behind.iter().all(is_scalar).then(|| PrimFunc { params: [before, behind, outputs].concat(), ..func.clone() })
}

/// The operands of a call with `tir_vars`.
struct Passed {
    function: Name,
    arguments: Vec<Expr>,
    scalars: Vec<Dim>,
}

impl Passed {
    fn of(call: &Call) -> Option<(&'static Schema, Passed)> {
        let Callee::Op(operator) = call.callee else { return None };
        let schema = rx_ops::find(operator)?;
        let ExprKind::Shape(scalars) = &schema.operand(call, "tir_vars")?.kind else { return None };
        let ExprKind::Global(function) = schema.operand(call, "gvar")?.kind else { return None };
        let ExprKind::Tuple(arguments) = &schema.operand(call, "args")?.kind else { return None };
        let is_one = |argument: &Expr| matches!(argument.ty, StructInfo::Tensor(_) | StructInfo::Prim(_));
        let passed = Passed { function, arguments: arguments.clone(), scalars: scalars.clone() };
        arguments.iter().all(is_one).then_some((schema, passed))
    }

    fn among_arguments(self, schema: &Schema, call: &mut Call) {
        let Passed { mut arguments, scalars, .. } = self;
        arguments.extend(scalars.into_iter().map(make::integer));
        let arguments = Expr::tuple(arguments);
        for (param, argument) in schema.params.iter().zip(&mut call.arguments) {
            match param.name {
                "args" => *argument = Argument::Operand(arguments.clone()),
                "tir_vars" => *argument = Argument::Attr(Attr::None),
                _ => {}
            }
        }
    }
}
