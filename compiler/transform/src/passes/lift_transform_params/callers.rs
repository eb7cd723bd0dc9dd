//! Updates of the callers of functions that now take prepared weights.

use super::mistake;
use crate::emit::{Emitter, rewrite_bindings};
use crate::pass::PassError;
use crate::substitute::unify;
use crate::{Module, walk};
use rx_base::name::{NameMap, name};
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{Argument, BoundValue, Call, Callee, Expr, ExprKind, Item, RelaxFunction, Shape, StructInfo};
use std::sync::Arc;

/// Functions that now take prepared weights.
pub(super) struct Lifted {
    /// The function that prepares the weights.
    pub(super) transform: Name,
    /// The functions, with the number of their parameters that are not weights.
    pub(super) inputs: Vec<(Name, usize)>,
    /// The function with the computations that were moved out of the functions in `inputs`. Without `is_composed`, it
    /// is `transform`. Otherwise `transform` has the body of the older function, with the body of this one appended,
    /// and this function itself is not in the module.
    pub(super) prepares: Arc<RelaxFunction>,
    /// Whether a function that prepared the weights existed before, so that `transform` now does both steps.
    pub(super) is_composed: bool,
}

/// Makes every caller in the module prepare the weights that it passes.
///
/// # Errors
/// A lifted function is used as a value; or a function calls one whose weights were prepared before, so that
/// `transform` no longer takes the weights that this caller has.
pub(super) fn rewrite(module: &mut Module, lifted: &[Lifted]) -> Result<(), PassError> {
    if lifted.is_empty() {
        return Ok(());
    }
    for item in &mut module.items {
        let Item::Relax(function) = item else { continue };
        let calls = walk::globals(function);
        let concerns = |lifted: &Lifted| lifted.inputs.iter().any(|(callee, _)| calls.contains(callee));
        if lifted.iter().any(concerns) {
            caller(Arc::make_mut(function), lifted)?;
        }
    }
    Ok(())
}

fn caller(function: &mut RelaxFunction, lifted: &[Lifted]) -> Result<(), PassError> {
    let own = function.name;
    let is_lifted = |callee: Name| lifted.iter().flat_map(|lifted| &lifted.inputs).any(|(known, _)| *known == callee);
    let mut value = None;
    walk::each_part(&function.body, &mut |expr| {
        if let ExprKind::Global(named) = expr.kind
            && is_lifted(named)
        {
            value = Some(named);
        }
    });
    if let Some(named) = value {
        return Err(mistake(&format!("`{own}` passes `{named}` on: who calls it cannot prepare its weights")));
    }
    rewrite_bindings(function, &mut |binding, emitter| {
        let BoundValue::Expr(value) = &mut binding.value else { return Ok(()) };
        let ExprKind::Call(call) = &mut value.kind else { return Ok(()) };
        let Callee::Global(callee) = call.callee else { return Ok(()) };
        for lifted in lifted {
            if let Some((_, inputs)) = lifted.inputs.iter().find(|(known, _)| *known == callee) {
                if lifted.is_composed {
                    let message =
                        format!("`{own}` calls `{callee}`, whose weights `{}` had prepared before", lifted.transform);
                    return Err(mistake(&format!("{message}: inline one of them first")));
                }
                return prepared(Arc::make_mut(call), *inputs, lifted, emitter);
            }
        }
        Ok(())
    })
}

/// Passes prepared weights. For example, `cls.main(x, w)` becomes `prepared = cls.main_transform_params((w,))`,
/// `gv = prepared[0]` and `cls.main(x, gv)`.
fn prepared(call: &mut Call, inputs: usize, lifted: &Lifted, emitter: &mut Emitter<'_>) -> Result<(), PassError> {
    let weights = call.arguments.split_off(inputs.min(call.arguments.len()));
    let tuple = Expr::tuple(weights.iter().filter_map(Argument::as_operand).cloned().collect());
    let mut dims: NameMap<Dim> = NameMap::default();
    lifted.prepares.params.iter().for_each(|(_, wanted)| unify(wanted, &tuple.ty, &mut dims));
    let gives = known_here(&lifted.prepares.ret, &dims);
    let prepare = Call::of_function(Callee::Global(lifted.transform), vec![tuple]);
    let own = emitter.fresh(name("prepared"));
    let all = emitter.bind(own, Expr::new(ExprKind::Call(Arc::new(prepare)), gives));
    call.arguments.extend(all.each_field().map(|field| Argument::Operand(emitter.emit(field))));
    Ok(())
}

/// Returns a type with its dims replaced by those known at the call. Of a tensor or shape with an unknown dim, only the
/// rank and the dtype are kept; any other type with an unknown dim becomes `R.Object`.
fn known_here(ty: &StructInfo, dims: &NameMap<Dim>) -> StructInfo {
    match ty {
        StructInfo::Tuple(fields) => StructInfo::Tuple(fields.iter().map(|field| known_here(field, dims)).collect()),
        other if other.symbols().iter().all(|symbol| dims.contains_key(symbol)) => {
            let dim = |symbol: Name| dims.get(&symbol).cloned();
            Renaming { dim: &dim, variable: &|_| None }.ty(other)
        }
        StructInfo::Tensor(tensor) => StructInfo::tensor_of(Shape::of_rank(tensor.shape.ndim()), tensor.dtype),
        StructInfo::Shape(shape) => StructInfo::Shape(Shape::of_rank(shape.ndim())),
        _ => StructInfo::Object,
    }
}
