//! Construction of the `call_tir` for the loops of an operator call.
//!
//! The order of parameters is TVM's (`gen_call_tir_inputs` in `python/tvm/relax/utils.py`): inputs, scalars, outputs.
//! An `int64` symbol that is an extent of one of these buffers is not a parameter. For example,
//! `R.full(R.shape([n]), v)` passes no `n`, since the output buffer has the extent `n`.

use super::kernels::Kernels;
use crate::emit::Emitter;
use crate::make;
use crate::pass::PassError;
use rx_base::name::NameMap;
use rx_base::{DType, Dim};
use rx_ir::{Argument, Expr, ExprKind, PrimInfo, PrimValue, StructInfo};
use rx_ops::compute::flatten;
use rx_ops::{CallInfo, Input, Kernel};
use rx_tir::PrimFunc;
use rx_tir::func::{Param, VarId};

/// Builds the call of a prim_func with the loops of `kernel`, which replaces `call`. `result` is the type of its
/// result, and `variables` are the scalar variables of the function.
///
/// # Errors
/// A scalar has no value, an operand is missing, or the type of the new call cannot be inferred; none of these occurs
/// for a valid `call`.
pub(super) fn call(
    call: &CallInfo<'_>,
    kernel: Kernel,
    hint: &str,
    result: &StructInfo,
    variables: &NameMap<StructInfo>,
    kernels: &mut Kernels,
    emitter: &mut Emitter<'_>,
) -> Result<Expr, PassError> {
    let Kernel { func, inputs, outputs, scalars } = kernel;
    let (func, passed) = with_parameters_in_order(func, inputs.len(), outputs);
    let mut arguments = Vec::with_capacity(inputs.len() + passed.len());
    for input in &inputs {
        arguments.push(tensor(call, *input, emitter)?);
    }
    for (at, dtype) in passed {
        let value = scalars.get(at).ok_or_else(|| PassError("a scalar has no value".to_owned()))?;
        arguments.push(scalar(value, dtype, variables));
    }
    let tensors: Vec<StructInfo> = flatten(result).into_iter().cloned().collect();
    let called = Expr::new(ExprKind::Global(kernels.named(func, hint, &tensors)), StructInfo::callable());
    let made = make::call(
        "call_tir",
        vec![
            ("gvar", Argument::Operand(called)),
            ("args", Argument::Operand(Expr::tuple(arguments))),
            ("out_ty", Argument::Types(tensors)),
        ],
    )?;
    match made.ty == *result {
        true => Ok(made),
        // The result is a tuple of one tensor, or a nested tuple.
        false => {
            let is_one = made.ty.as_tuple().is_none();
            let whole = emitter.emit(made);
            let mut at = 0;
            nested(result, &mut || {
                at += 1;
                match is_one {
                    true => whole.clone(),
                    false => {
                        let ty = whole.ty.as_tuple().and_then(|fields| fields.get(at - 1)).cloned();
                        let field = ExprKind::TupleGet(Box::new(whole.clone()), at - 1);
                        emitter.emit(Expr::new(field, ty.unwrap_or(StructInfo::Object)))
                    }
                }
            })
        }
    }
}

/// Builds a value of type `ty`, which may be a nested tuple. Calls `next` once for each tensor of the type, in order.
/// For example, for `R.Tuple(A, R.Tuple(B, C))` three calls return the tensors of types `A`, `B` and `C`.
fn nested(ty: &StructInfo, next: &mut dyn FnMut() -> Expr) -> Result<Expr, PassError> {
    match ty {
        StructInfo::Tuple(fields) => {
            Ok(Expr::tuple(fields.iter().map(|field| nested(field, next)).collect::<Result<_, _>>()?))
        }
        _ => Ok(next()),
    }
}

/// Reorders the parameters to inputs, scalars, outputs, and drops `int64` scalars that are the extent of a buffer
/// parameter. Returns the function, and the indices and dtypes of the remaining scalars.
fn with_parameters_in_order(mut func: PrimFunc, inputs: usize, outputs: usize) -> (PrimFunc, Vec<(usize, DType)>) {
    let scalars: Vec<VarId> = func.scalar_params().collect();
    let is_extent = |var: VarId| func.var(var).dtype == DType::INT64 && func.is_parameter_extent(var);
    let (given, left): (Vec<_>, Vec<_>) = scalars.into_iter().enumerate().partition(|(_, var)| is_extent(*var));
    let buffers: Vec<Param> = func.buffer_params().map(Param::Buffer).collect();
    let passed = left.iter().map(|(at, var)| (*at, func.var(*var).dtype)).collect();
    let scalars = left.into_iter().map(|(_, var)| Param::Scalar(var));
    let (first, last) = (buffers.iter().take(inputs), buffers.iter().skip(inputs).take(outputs));
    func.params = first.copied().chain(scalars).chain(last.copied()).collect();
    func.symbols.extend(given.into_iter().map(|(_, var)| var));
    (func, passed)
}

/// Returns the tensor that a call passes for an input. A field of a tuple variable is bound to a variable first.
fn tensor(call: &CallInfo<'_>, input: Input, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
    let operand = call.operand(input.param);
    let operand = operand.ok_or_else(|| PassError(format!("nothing is passed for `{}`", input.param)))?;
    let field = |at: usize| operand.ty.as_tuple().and_then(|fields| fields.get(at)).cloned();
    Ok(match (&operand.kind, input.element) {
        (ExprKind::Tuple(fields), Some(at)) => fields.get(at).cloned().unwrap_or_else(|| operand.clone()),
        (_, Some(at)) => match field(at) {
            Some(ty) => emitter.emit(Expr::new(ExprKind::TupleGet(Box::new(operand.clone()), at), ty)),
            // A single tensor is allowed in place of a tuple.
            None => operand.clone(),
        },
        _ => operand.clone(),
    })
}

/// Returns a scalar argument of a call: the Relax variable if `value` is the name of one, otherwise a primitive value
/// with the dim `value`.
fn scalar(value: &Dim, dtype: DType, variables: &NameMap<StructInfo>) -> Expr {
    let variable = value.as_symbol().and_then(|symbol| Some((symbol, variables.get(&symbol)?)));
    match variable {
        Some((variable, ty)) => Expr::var(variable, ty.clone()),
        None => {
            let ty = StructInfo::Prim(PrimInfo { dtype: Some(dtype), value: Some(value.clone()) });
            Expr::new(ExprKind::Prim(PrimValue::Int(value.clone())), ty)
        }
    }
}
