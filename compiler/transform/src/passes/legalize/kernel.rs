//! From the loops of a call to a call of a prim_func.
//!
//! The order of parameters is TVM's (python/tvm/relax/utils.py, `gen_call_tir_inputs`): inputs, scalars, outputs. A symbol that
//! is an extent of a buffer is no parameter.

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

/// A call of a prim_func that does what `kernel` does, in the place of `call`, whose result has the type `result`; `variables` are
/// the scalars among the function's variables.
///
/// # Errors
/// Where the call that is made is refused, which none is.
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
        // A tuple of one tensor, or of tuples.
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

/// A value of a type, of its tensors in order.
fn nested(ty: &StructInfo, next: &mut dyn FnMut() -> Expr) -> Result<Expr, PassError> {
    match ty {
        StructInfo::Tuple(fields) => {
            Ok(Expr::tuple(fields.iter().map(|field| nested(field, next)).collect::<Result<_, _>>()?))
        }
        _ => Ok(next()),
    }
}

/// The function with its scalars between inputs and outputs, but for those that an extent gives; and which scalars are left,
/// with their dtypes.
fn with_parameters_in_order(mut func: PrimFunc, inputs: usize, outputs: usize) -> (PrimFunc, Vec<(usize, DType)>) {
    let scalars: Vec<VarId> = func.scalar_params().collect();
    let is_extent = |var: VarId| func.var(var).dtype == DType::INT64 && func.is_told(var);
    let (given, left): (Vec<_>, Vec<_>) = scalars.into_iter().enumerate().partition(|(_, var)| is_extent(*var));
    let buffers: Vec<Param> = func.buffer_params().map(Param::Buffer).collect();
    let passed = left.iter().map(|(at, var)| (*at, func.var(*var).dtype)).collect();
    let scalars = left.into_iter().map(|(_, var)| Param::Scalar(var));
    let (first, last) = (buffers.iter().take(inputs), buffers.iter().skip(inputs).take(outputs));
    func.params = first.copied().chain(scalars).chain(last.copied()).collect();
    func.symbols.extend(given.into_iter().map(|(_, var)| var));
    (func, passed)
}

/// A tensor that a call passes; a field of a tuple that is a variable is bound first.
fn tensor(call: &CallInfo<'_>, input: Input, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
    let operand = call.operand(input.param);
    let operand = operand.ok_or_else(|| PassError(format!("nothing is passed for `{}`", input.param)))?;
    let field = |at: usize| operand.ty.as_tuple().and_then(|fields| fields.get(at)).cloned();
    Ok(match (&operand.kind, input.element) {
        (ExprKind::Tuple(fields), Some(at)) => fields.get(at).cloned().unwrap_or_else(|| operand.clone()),
        (_, Some(at)) => match field(at) {
            Some(ty) => emitter.emit(Expr::new(ExprKind::TupleGet(Box::new(operand.clone()), at), ty)),
            // A single tensor where a tuple may stand.
            None => operand.clone(),
        },
        _ => operand.clone(),
    })
}

/// A scalar that a call passes: a variable, or a dim.
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
