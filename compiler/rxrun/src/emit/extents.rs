//! Values for the symbolic extents of kernels when no run provides them: those of `--dim`, otherwise 1.

use rx_base::{Dim, Name};
use rx_lower::{Instruction, Kernel, KernelId, Operation, Output, Program, Scalar};
use rx_tir::Expr;

/// The value of a dim that `--dim` does not give.
const SMALLEST: i64 = 1;

/// Returns the values of a kernel's scalars and symbols as its first call passes them, indexed by variable id.
pub(super) fn values(program: &Program, kernel: &Kernel, dims: &[(String, i64)]) -> Vec<Option<i64>> {
    let func = &kernel.loops;
    let given = |name: Name| dims.iter().rev().find(|(dim, _)| *dim == *name).map_or(SMALLEST, |(_, value)| *value);
    let value = |dim: &Dim| dim.substitute(&|name| Some(Dim::constant(given(name)))).as_constant();
    let mut values = vec![None; func.vars.len()];
    let mut set = |var: rx_tir::VarId, value: Option<i64>| {
        if let Some(slot) = values.get_mut(var.0 as usize).filter(|_| value.is_some()) {
            *slot = value;
        }
    };
    for var in func.symbols.iter().copied().chain(func.scalar_params()) {
        set(var, Some(given(func.var(var).name)));
    }
    let at = program.kernels.iter().position(|one| std::ptr::eq(one, kernel));
    let Some((id, kernel)) = at.and_then(|at| Some((KernelId(u32::try_from(at).ok()?), program.kernels.get(at)?)))
    else {
        return values;
    };
    let call = program.procedures.iter().find_map(|procedure| first_call(&procedure.code, id));
    let Some((outputs, scalars)) = call else { return values };
    for (buffer, output) in func.buffer_params().skip(kernel.inputs).zip(outputs) {
        for (extent, dim) in func.buffer(buffer).shape.iter().zip(output.shape.iter()) {
            if let Expr::Var { var, .. } = extent {
                set(*var, value(dim));
            }
        }
    }
    for (var, scalar) in func.scalar_params().zip(scalars) {
        if let Scalar::Int(dim) = scalar {
            set(var, value(dim));
        }
    }
    values
}

/// Finds the first call of a kernel in `code`; returns its outputs and scalars.
fn first_call(code: &[Instruction], wanted: KernelId) -> Option<(&[Output], &[Scalar])> {
    code.iter().find_map(|instruction| match &instruction.operation {
        Operation::Kernel { kernel, outputs, scalars, .. } if *kernel == wanted => Some((&outputs[..], &scalars[..])),
        Operation::If { arms, otherwise, .. } => {
            let inside = arms.iter().flat_map(|(condition, _, branch)| [condition, &branch.code]);
            inside.chain([&otherwise.code]).find_map(|code| first_call(code, wanted))
        }
        _ => None,
    })
}
