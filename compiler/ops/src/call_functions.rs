//! Operators that call a function (a prim_func, an external function or a closure): `call_tir`, `call_pure_packed` and
//! others.
//!
//! The result type is the type that the call declares. A later check, which has access to the module's functions,
//! compares a `call_tir` with its prim_func.

use crate::call::{Arg, CallInfo, ParamPlace, Problem, Rule};
use crate::cost::Cost;
use crate::schema::{AttrKind, Param, ParamKind, Schema};
use rustc_hash::FxHashSet;
use rx_base::{Answer, Code};
use rx_ir::{Expr, Shape, StructInfo, TensorInfo};

const GVAR: Param = Param::operand("gvar", ParamKind::Function, "The prim_func: `cls.f`.");
const FUNC: Param = Param::operand("func", ParamKind::Function, "The external function, by name.");
const CLOSURE: Param = Param::operand("closure", ParamKind::Any, "The closure.");
const ARGS: Param = Param::operand("args", ParamKind::Arguments, "The arguments, as a tuple.");
const VALUES: Param = Param::operand("args", ParamKind::Variadic, "The arguments.");
const OUT_TY: Param =
    Param::operand("out_ty", ParamKind::Types, "The type of the result; a list of types where it is a tuple.");
const TY_ARGS: Param = Param::operand("ty_args", ParamKind::Types, "The type of the result; several make it a tuple.");
pub(crate) const TIR_VARS: Param = Param::optional(
    "tir_vars",
    ParamKind::Shape,
    "Scalars that the prim_func takes after its outputs, as a shape. TVM up to 0.25; later releases use `args`.",
);
const INPLACE: Param = Param::required_attr(
    "inplace_indices",
    AttrKind::Ints,
    "For each output the argument whose memory it takes, or -1 for separate memory.",
);

/// Creates an operator of this module, whose cost is that of the called function.
const fn calls(name: &'static str, doc: &'static str, infer: Rule) -> Schema {
    Schema::new(name, doc, infer).costing(Cost::Callee)
}

pub(crate) static OPERATORS: &[Schema] = &[
    calls(
        "call_tir",
        "Calls a prim_func in destination-passing style. The outputs are allocated with the types of `out_ty` and \
         passed after the arguments.",
        destination_passing,
    )
    .taking(&[GVAR, ARGS, OUT_TY, TIR_VARS]),
    calls(
        "call_tir_inplace",
        "Calls a prim_func that writes some outputs over its arguments. Such an argument must not be used afterwards.",
        call_tir_inplace,
    )
    .taking(&[GVAR, ARGS, INPLACE, OUT_TY, TIR_VARS]),
    calls(
        "call_tir_with_grad",
        "Calls a prim_func as `call_tir` does, and names the function that computes its gradient.",
        destination_passing,
    )
    .taking(&[
        GVAR,
        ARGS,
        OUT_TY,
        Param::required_attr("te_grad_name", AttrKind::Str, "The registered function for the gradient."),
        Param::optional_attr("te_grad_kwargs", AttrKind::Dict, "Keyword arguments for that function."),
        TIR_VARS,
    ]),
    calls(
        "call_dps_packed",
        "Calls an external function in destination-passing style: the outputs are passed after the arguments.",
        |call| check_external(call).and_then(|()| destination_passing(call)),
    )
    .taking(&[FUNC, ARGS, OUT_TY]),
    calls(
        "call_pure_packed",
        "Calls an external function that has no effect but its value. The author vouches for that.",
        call_pure_packed,
    )
    .taking(&[FUNC, VALUES, TY_ARGS]),
    calls(
        "call_inplace_packed",
        "Calls an external function that gives back some of its arguments, changed in place. Such an argument must \
         not be used afterwards.",
        call_inplace_packed,
    )
    .taking(&[FUNC, VALUES, INPLACE, TY_ARGS]),
    calls("call_py_func", "Calls a Python function of the module.", destination_passing).taking(&[
        Param::operand("py_func_name", ParamKind::Any, "The name of the Python function, a string."),
        ARGS,
        OUT_TY,
    ]),
    calls(
        "call_builtin_with_ctx",
        "Calls a builtin of the virtual machine, which also gets the machine's context.",
        call_builtin,
    )
    .taking(&[
        FUNC,
        ARGS,
        Param::optional("ty_args", ParamKind::Types, "The type of the result; nothing when left out."),
    ])
    .impure(),
    calls("make_closure", "A closure: a function together with the values of its last parameters.", |call| {
        check_function(call, "a function").map(|()| StructInfo::Object)
    })
    .taking(&[
        Param::operand("func", ParamKind::Function, "The function."),
        Param::operand("args", ParamKind::Arguments, "The captured values, as a tuple."),
    ]),
    calls("invoke_closure", "Calls a closure.", invoke).taking(&[CLOSURE, ARGS, TY_ARGS]).impure(),
    calls("invoke_pure_closure", "Calls a closure that has no effect but its value.", invoke)
        .taking(&[CLOSURE, ARGS, TY_ARGS]),
];

/// Returns the types that the argument `name` declares; none if it is left out.
fn declared<'a>(call: &CallInfo<'a>, name: &str) -> &'a [StructInfo] {
    match call.arg(name) {
        Arg::Types(types) => types,
        _ => &[],
    }
}

/// Returns a single type unchanged, and several types as a tuple.
fn together(types: &[StructInfo]) -> StructInfo {
    match types {
        [ty] => ty.clone(),
        types => StructInfo::tuple(types),
    }
}

/// Returns the type of the declared outputs. They must be tensors of known shape, because they are allocated before the
/// call.
fn destination_passing(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let types = declared(call, "out_ty");
    for ty in types {
        let known = match ty.as_tensor() {
            Some(tensor) => tensor.shape.dims().is_some() || tensor.shape == Shape::Error,
            None => ty.is_error(),
        };
        if !known {
            let message = format_args!("`out_ty` must be a tensor of known shape, it is {ty}");
            let report = call.error(Code::ArgumentType, ParamPlace::Param("out_ty"), message);
            return Err(report.with_help("several outputs are a list: out_ty=[R.Tensor(…), R.Tensor(…)]").into());
        }
    }
    Ok(together(types))
}

/// Infers the result type of `call_tir_inplace` (TVM's `NormalizeCallTIRInPlace`).
fn call_tir_inplace(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let result = destination_passing(call)?;
    let outputs = declared(call, "out_ty");
    let indices = call.needed_ints("inplace_indices")?;
    if indices.len() != outputs.len() {
        let (given, wanted) = (indices.len(), outputs.len());
        let message = format_args!("{given} in-place indices for {wanted} outputs, each output needs one");
        return Err(call.error(Code::AttrBadValue, ParamPlace::Param("inplace_indices"), message).into());
    }
    let Some(arguments) = argument_types(call) else { return Ok(result) };
    let indices = inplace_arguments(call, &indices, arguments.len(), "call_tir")?;
    for (output, index) in std::iter::zip(outputs, indices) {
        // INVARIANT: `inplace_arguments` returns indices of arguments.
        if let Some(index) = index {
            check_inplace(call, arguments[index], index, output)?;
        }
    }
    Ok(result)
}

/// Infers the result type of `call_inplace_packed` (TVM's `InferTypeCallInplacePacked`).
fn call_inplace_packed(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let result = call_pure_packed(call)?;
    let indices = call.needed_ints("inplace_indices")?;
    let arguments: Vec<&StructInfo> = match call.arg("args") {
        Arg::Operands(args) => args.iter().map(|arg| &arg.ty).collect(),
        _ => return Ok(result),
    };
    let indices = inplace_arguments(call, &indices, arguments.len(), "call_pure_packed")?;
    let outputs: &[StructInfo] = match (&indices[..], &result) {
        ([_], result) => std::slice::from_ref(result),
        (_, StructInfo::Tuple(fields)) => fields,
        (_, StructInfo::Error) => return Ok(result),
        (_, result) => {
            let message =
                format_args!("{} in-place indices, but the result is no tuple, it is {result}", indices.len());
            return Err(call.error(Code::AttrBadValue, ParamPlace::Param("inplace_indices"), message).into());
        }
    };
    if indices.len() > outputs.len() {
        let message = format_args!("{} in-place indices for {} outputs", indices.len(), outputs.len());
        return Err(call.error(Code::AttrBadValue, ParamPlace::Param("inplace_indices"), message).into());
    }
    for (output, index) in std::iter::zip(outputs, indices) {
        // INVARIANT: `inplace_arguments` returns indices of arguments.
        if let Some(index) = index {
            check_inplace(call, arguments[index], index, output)?;
            check_given_back(call, arguments[index], index, output)?;
        }
    }
    Ok(result)
}

/// Returns the types of the arguments that are passed as a tuple, if known.
fn argument_types<'a>(call: &CallInfo<'a>) -> Option<Vec<&'a StructInfo>> {
    let from_exprs = |exprs: &'a [Expr]| exprs.iter().map(|expr| &expr.ty).collect();
    match call.arg("args") {
        Arg::Operands(exprs) => Some(from_exprs(exprs)),
        Arg::Operand(expr) => expr.ty.as_tuple().map(|fields| fields.iter().collect()),
        _ => None,
    }
}

/// Checks in-place indices and returns them as argument positions, with `None` for -1. They must differ, and at least
/// one must not be -1.
fn inplace_arguments(
    call: &CallInfo<'_>,
    indices: &[i64],
    arguments: usize,
    otherwise: &str,
) -> Result<Vec<Option<usize>>, Problem> {
    let place = ParamPlace::Param("inplace_indices");
    let mut seen = FxHashSet::default();
    let mut result = Vec::with_capacity(indices.len());
    for index in indices {
        if *index == -1 {
            result.push(None);
            continue;
        }
        let Some(argument) = usize::try_from(*index).ok().filter(|index| *index < arguments) else {
            let message = format_args!("in-place index {index} is out of range, the call has {arguments} arguments");
            let report = call.error(Code::AttrOutOfRange, place, message);
            return Err(report.with_note("-1 means that the output has separate memory").into());
        };
        if !seen.insert(argument) {
            let message = format_args!("in-place index {index} is given twice");
            return Err(call.error(Code::AttrOutOfRange, place, message).into());
        }
        result.push(Some(argument));
    }
    if seen.is_empty() {
        let message = format_args!("no output is in place");
        let report = call.error(Code::AttrBadValue, place, message);
        return Err(report.with_help(format!("use R.{otherwise}")).into());
    }
    Ok(result)
}

/// Rejects an output that reuses the memory of an argument with another shape or dtype.
fn check_inplace(call: &CallInfo<'_>, argument: &StructInfo, index: usize, output: &StructInfo) -> Result<(), Problem> {
    let agree = match (argument.as_tensor(), output.as_tensor()) {
        (Some(given), Some(wanted)) => tensors_may_agree(call, given, wanted),
        (None, None) => true,
        _ => [argument, output].iter().any(|ty| matches!(ty, StructInfo::Error | StructInfo::Object)),
    };
    if agree {
        return Ok(());
    }
    let message = format_args!("`args[{index}]` is {argument}, the output in its place is {output}");
    let report = call.error(Code::CallTirOutputMismatch, ParamPlace::Element("args", index), message);
    Err(report.with_note("an output in place has the shape and dtype of its argument").into())
}

/// Checks the declared type of an in-place output of a packed function. The output is the argument itself, so the type
/// must not state more than the argument's type.
fn check_given_back(
    call: &CallInfo<'_>,
    argument: &StructInfo,
    index: usize,
    output: &StructInfo,
) -> Result<(), Problem> {
    let (Some(given), Some(stated)) = (argument.as_tensor(), output.as_tensor()) else { return Ok(()) };
    let shape_known = match (&stated.shape, given.shape.dims(), stated.shape.dims()) {
        (Shape::Unknown | Shape::Error, ..) => true,
        (_, Some(x), Some(y)) => std::iter::zip(x, y).all(|(x, y)| call.equal(x, y) == Answer::Proved),
        (_, None, Some(_)) => given.shape == Shape::Error,
        (_, _, None) => given.shape.ndim().is_some(),
    };
    if shape_known && (stated.dtype.is_none() || given.dtype.is_some() || given.dtype_error) {
        return Ok(());
    }
    let message =
        format_args!("`args[{index}]` is {argument}, which is not known to be the output in its place, {output}");
    let report = call.error(Code::CallTirOutputMismatch, ParamPlace::Element("args", index), message);
    Err(report.with_help("state the argument's type before the call: `R.match_cast(…)`").into())
}

fn tensors_may_agree(call: &CallInfo<'_>, a: &TensorInfo, b: &TensorInfo) -> bool {
    if let (Some(x), Some(y)) = (a.dtype, b.dtype)
        && x != y
    {
        return false;
    }
    match (a.shape.dims(), b.shape.dims()) {
        (Some(x), Some(y)) => {
            x.len() == y.len() && std::iter::zip(x, y).all(|(x, y)| call.equal(x, y) != Answer::Refuted)
        }
        _ => a.shape.ndim().zip(b.shape.ndim()).is_none_or(|(x, y)| x == y),
    }
}

/// Rejects a function argument that cannot be an external function: neither a string nor a function value.
fn check_external(call: &CallInfo<'_>) -> Result<(), Problem> {
    check_function(call, "the name of an external function")
}

fn check_function(call: &CallInfo<'_>, wanted: &str) -> Result<(), Problem> {
    match call.ty("func") {
        ty @ (StructInfo::Tensor(_) | StructInfo::Tuple(_) | StructInfo::Shape(_) | StructInfo::Prim(_)) => {
            Err(call.wrong_kind(ParamPlace::Param("func"), "func", wanted, ty))
        }
        _ => Ok(()),
    }
}

/// Infers the result type of `call_pure_packed`: the declared types, or the result type of the function's type (TVM's
/// `InferTypeCallPurePacked`).
fn call_pure_packed(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    check_external(call)?;
    let function = match call.ty("func") {
        StructInfo::Function(function) => Some(function),
        _ => None,
    };
    if function.is_some_and(|function| function.params.is_some()) {
        let message = format_args!("`func` must be an external function, it is {}", call.ty("func"));
        let report = call.error(Code::ArgumentType, ParamPlace::Param("func"), message);
        return Err(report.with_help("call a Relax function directly: cls.f(…)").into());
    }
    match (declared(call, "ty_args"), function) {
        ([], Some(function)) => Ok(function.ret.clone()),
        ([], None) => Ok(StructInfo::Object),
        (types, _) => Ok(together(types)),
    }
}

/// Infers the result type of `call_builtin_with_ctx` (TVM's `InferTypeCallBuiltinWithCtx`).
fn call_builtin(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    check_external(call)?;
    match declared(call, "ty_args") {
        [] => Ok(StructInfo::void()),
        [ty] => Ok(ty.clone()),
        types => {
            let message = format_args!("`ty_args` must be one type, {} are given", types.len());
            Err(call.error(Code::AttrBadValue, ParamPlace::Param("ty_args"), message).into())
        }
    }
}

/// Infers the result type of `invoke_closure` (TVM's `InferTypeInvokeClosure`).
fn invoke(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    match declared(call, "ty_args") {
        [] => Ok(StructInfo::Object),
        types => Ok(together(types)),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, expr, infer, numbers, tuple, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn types(texts: &[&str]) -> Given {
        Given::Types(texts.iter().map(|text| ty(text)).collect())
    }

    #[test]
    fn result_has_the_declared_type() {
        assert_eq!(infer("call_tir", &[("out_ty", types(&["2 n:int8"]))]), Ok(ty("2 n:int8")));
        let pair = infer("call_dps_packed", &[("out_ty", types(&["2:int8", "3:int8"]))]);
        assert_eq!(pair, Ok(StructInfo::tuple([ty("2:int8"), ty("3:int8")])));
        let vague = infer("call_tir", &[("out_ty", types(&["?2:int8"]))]);
        assert_eq!(vague, Err(Some(Code::ArgumentType)));
        assert_eq!(infer("call_pure_packed", &[]), Ok(StructInfo::Object));
        assert_eq!(infer("call_builtin_with_ctx", &[]), Ok(StructInfo::void()));
        let tuple_called = infer("call_builtin_with_ctx", &[("func", tuple(&["2:int8"]))]);
        assert_eq!(tuple_called, Err(Some(Code::ArgumentType)));
        assert_eq!(infer("make_closure", &[("func", tuple(&["2:int8"]))]), Err(Some(Code::ArgumentType)));
        assert_eq!(infer("invoke_closure", &[("ty_args", types(&["2:int8"]))]), Ok(ty("2:int8")));
    }

    #[test]
    fn outputs_in_place_take_an_argument_each() {
        let inplace = |indices: &[i64], outputs: &[&str]| {
            let args = tuple(&["2 n:int8", "3:int8"]);
            let given = [("args", args), ("inplace_indices", numbers(indices)), ("out_ty", types(outputs))];
            infer("call_tir_inplace", &given)
        };
        assert_eq!(inplace(&[0], &["2 n:int8"]), Ok(ty("2 n:int8")));
        assert!(inplace(&[-1, 1], &["7:int8", "3:int8"]).is_ok());
        assert_eq!(inplace(&[0, 1], &["2 n:int8"]), Err(Some(Code::AttrBadValue)));
        assert_eq!(inplace(&[-1], &["2 n:int8"]), Err(Some(Code::AttrBadValue)));
        assert_eq!(inplace(&[2], &["2 n:int8"]), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(inplace(&[0, 0], &["2 n:int8", "2 n:int8"]), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(inplace(&[1], &["4:int8"]), Err(Some(Code::CallTirOutputMismatch)));
        assert_eq!(inplace(&[1], &["3:int32"]), Err(Some(Code::CallTirOutputMismatch)));
    }

    #[test]
    fn a_packed_function_may_give_back_its_arguments() {
        let packed = |indices: &[i64], outputs: &[&str]| {
            let args = Given::Operands(vec![expr(ty("2:int8")), expr(ty("3:int8"))]);
            infer(
                "call_inplace_packed",
                &[("args", args), ("inplace_indices", numbers(indices)), ("ty_args", types(outputs))],
            )
        };
        assert_eq!(packed(&[1], &["3:int8"]), Ok(ty("3:int8")));
        assert!(packed(&[0, -1], &["2:int8", "9:int8"]).is_ok());
        assert_eq!(packed(&[0, 1], &["2:int8"]), Err(Some(Code::AttrBadValue)));
        assert_eq!(packed(&[1], &["?1:int8"]), Ok(ty("?1:int8")));
        assert_eq!(packed(&[1], &["n:int8"]), Err(Some(Code::CallTirOutputMismatch)));
        assert_eq!(packed(&[-7, -7], &["2:int8", "3:int8"]), Err(Some(Code::AttrOutOfRange)));
    }
}
