//! Construction of operator calls with inferred types, and repeated type inference after the types of operands have
//! changed.

use crate::pass::PassError;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim, Name};
use rx_ir::{
    Argument, Attr, BoundValue, Branches, Call, Callee, Expr, ExprKind, FunctionInfo, PrimInfo, PrimValue,
    RelaxFunction, Sequence, Shape, StructInfo,
};
use rx_ops::{Arg, CallInfo, ParamKind, Problem};
use std::sync::Arc;

/// Builds a call of an operator, with the type that the operator's rule infers. Arguments are given by parameter name;
/// parameters without one get their defaults.
///
/// # Errors
/// There is no such operator or parameter, a required argument is missing, the rule rejects the call, or the type of an
/// operand is unknown.
pub fn call(operator: &str, given: Vec<(&str, Argument)>) -> Result<Expr, PassError> {
    typed(untyped(operator, given)?)
}

/// Builds a call of an operator without inferring its type. Arguments are given as for [`call`].
///
/// # Errors
/// Those of [`call`], except for those of the type inference.
pub fn untyped(operator: &str, given: Vec<(&str, Argument)>) -> Result<Call, PassError> {
    let callee = name(operator);
    let schema = rx_ops::find(callee).ok_or_else(|| PassError(format!("there is no operator `{operator}`")))?;
    let mut arguments: Vec<Argument> = schema.params.iter().map(left_out).collect();
    let mut is_given = vec![false; arguments.len()];
    for (param, argument) in given {
        let at = schema.params.iter().position(|known| known.name == param);
        let slot = at.and_then(|at| Some((arguments.get_mut(at)?, is_given.get_mut(at)?)));
        let (slot, is_given) = slot.ok_or_else(|| PassError(format!("`{operator}` takes no `{param}`")))?;
        (*slot, *is_given) = (argument, true);
    }
    let required = schema.params.iter().zip(&is_given).find(|(param, is_given)| {
        let needed = param.default == rx_ops::Default::Required && param.kind != ParamKind::Variadic;
        needed && !**is_given
    });
    if let Some((param, _)) = required {
        return Err(PassError(format!("`{operator}` needs `{}`", param.name)));
    }
    Ok(Call { callee: Callee::Op(callee), arguments })
}

/// Returns the argument that represents an omitted one for `param`.
fn left_out(param: &rx_ops::Param) -> Argument {
    match param.kind {
        ParamKind::Types => Argument::Types(Vec::new()),
        ParamKind::Variadic => Argument::Operands(Vec::new()),
        _ => match (param.default, param.kind) {
            (rx_ops::Default::Absent, ParamKind::Attr(_)) => Argument::Attr(Attr::None),
            (default, _) => default.to_attr().map_or(Argument::Absent, Argument::Attr),
        },
    }
}

/// Turns a call into an expression with the inferred type.
///
/// # Errors
/// Those of [`infer`].
pub fn typed(call: Call) -> Result<Expr, PassError> {
    let ty = infer(&call)?;
    Ok(Expr::new(ExprKind::Call(Arc::new(call)), ty))
}

/// Returns a dim as an `int64` operand. Its type records the value, as that of a parsed operand does.
pub fn integer(dim: Dim) -> Expr {
    let ty = StructInfo::Prim(PrimInfo { dtype: Some(DType::INT64), value: Some(dim.clone()) });
    Expr::new(ExprKind::Prim(PrimValue::Int(dim)), ty)
}

/// Returns the operands that a call of `operator` passes for `params`; `None` if `value` is not a call of `operator`,
/// or if one of `params` has no operand.
pub fn operands<'a, const N: usize>(value: &'a Expr, operator: &str, params: [&str; N]) -> Option<[&'a Expr; N]> {
    let schema = rx_ops::find(name(operator)).filter(|_| value.as_op() == Some(operator))?;
    let call = value.as_call()?;
    let found: Vec<&Expr> = params.iter().filter_map(|param| schema.operand(call, param)).collect();
    found.try_into().ok()
}

/// Returns the attribute that an operator call passes for `param`; `None` if it is absent or is Python's `None`, or if
/// `value` is not an operator call.
pub fn attr<'a>(value: &'a Expr, param: &str) -> Option<&'a Attr> {
    rx_ops::find(name(value.as_op()?))?.attr(value.as_call()?, param)
}

/// Returns the types that an operator call passes for `param`, which is `out_ty` or `ty_args`. The list is empty if
/// `param` was omitted from a call built by [`call`]. Returns `None` if `value` is not an operator call, or has no such
/// argument.
pub fn types<'a>(value: &'a Expr, param: &str) -> Option<&'a [StructInfo]> {
    match rx_ops::find(name(value.as_op()?))?.argument(value.as_call()?, param)? {
        Argument::Types(types) => Some(types),
        _ => None,
    }
}

/// Infers the type of an operator call from the types of its operands.
///
/// # Errors
/// The callee is not an operator, the operator is unknown, its rule rejects the call, or the type of an operand is
/// unknown.
pub fn infer(call: &Call) -> Result<StructInfo, PassError> {
    let unknown = || {
        let Callee::Op(operator) = call.callee else { return PassError(String::new()) };
        PassError(format!("the type of the operands of `{operator}` is not known"))
    };
    infer_known(call)?.ok_or_else(unknown)
}

/// Infers the type of an operator call; `None` if the type of an operand is unknown, as for a constant whose data the
/// text leaves out.
///
/// # Errors
/// Those of [`infer`], except for unknown operand types.
pub fn infer_known(call: &Call) -> Result<Option<StructInfo>, PassError> {
    let Callee::Op(operator) = call.callee else {
        return Err(PassError("the type of a call of a function follows from no rule".to_owned()));
    };
    let schema = rx_ops::find(operator).ok_or_else(|| PassError(format!("there is no operator `{operator}`")))?;
    let args: Vec<Arg<'_>> = call.arguments.iter().map(Arg::from).collect();
    match (schema.infer)(&CallInfo::new(schema, &args, &Bounds::default())) {
        Ok(ty) => Ok(Some(ty)),
        Err(Problem::Report(diagnostic)) => Err(PassError(diagnostic.message.clone())),
        Err(Problem::Propagate) => Ok(None),
    }
}

/// Whether a function with these parameters can declare `ty` as its return type. It can if the type is known, has no
/// shape variable, and every symbolic dim in it occurs in a parameter's type.
fn can_be_returned(ty: &StructInfo, params: &[(Name, StructInfo)]) -> bool {
    let says_variable =
        |ty: &StructInfo| ty.as_tensor().is_some_and(|tensor| matches!(tensor.shape, Shape::Var { .. }));
    match ty {
        StructInfo::Error => false,
        StructInfo::Tuple(fields) => fields.iter().all(|field| can_be_returned(field, params)),
        ty if says_variable(ty) => false,
        ty => {
            let known: NameSet = params.iter().flat_map(|(_, ty)| ty.symbols()).collect();
            ty.symbols().is_subset(&known)
        }
    }
}

/// Updates the declared return type after the type of the body's result has changed from `before`, if the function
/// declared exactly `before` and can declare the new type. Any other declaration is kept: it was usually less specific
/// than `before`.
pub fn follow_result(function: &mut RelaxFunction, before: &StructInfo) {
    let now = &function.body.result.ty;
    if function.ret == *before && now != before && can_be_returned(now, &function.params) {
        function.ret = now.clone();
    }
}

/// The new types of variables whose uses still have the old ones.
pub type Changed = NameMap<StructInfo>;

/// Infers the types of a sequence's bindings again, in order, from the new types of variables in `changed`. Adds every
/// variable whose type changes to `changed`. A declared type that is more specific than the inferred one is kept. The
/// types of function calls and of casts do not change.
///
/// # Errors
/// An operator's rule rejects operands of the new types, or a call with such operands is of an unknown operator.
pub fn infer_again(sequence: &mut Sequence, changed: &mut Changed) -> Result<(), PassError> {
    for binding in sequence.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        let ty = match &mut binding.value {
            BoundValue::Expr(value) => expr_again(value, changed).map_err(|error| error.at(binding.variable))?,
            BoundValue::If(branches) => branches_again(branches, changed)?,
            BoundValue::Function(function) => function_again(Arc::make_mut(function), changed)?,
        };
        if let Some(ty) = ty.filter(|ty| *ty != binding.ty && !is_sharper(&binding.ty, ty)) {
            binding.ty = ty.clone();
            changed.insert(binding.variable, ty);
        }
    }
    expr_again(&mut sequence.result, changed)?;
    Ok(())
}

/// Whether a declared type is strictly more specific than the inferred one. Such a declaration is kept.
pub fn is_sharper(declared: &StructInfo, inferred: &StructInfo) -> bool {
    declared.says_more_than(inferred) && !inferred.says_more_than(declared)
}

/// Infers the type of an expression again from the new types of its variables. Returns the type if it changed.
///
/// # Errors
/// Those of [`infer_again`].
pub fn expr_again(expr: &mut Expr, changed: &Changed) -> Result<Option<StructInfo>, PassError> {
    if changed.is_empty() {
        return Ok(None);
    }
    let mut inner_changed = false;
    let mut problem = None;
    expr.each_child_mut(&mut |child| match expr_again(child, changed) {
        Ok(ty) => inner_changed |= ty.is_some(),
        Err(error) => problem = Some(error),
    });
    if let Some(problem) = problem {
        return Err(problem);
    }
    let ty = match &expr.kind {
        ExprKind::Var(variable) => changed.get(variable).cloned(),
        ExprKind::Tuple(fields) if inner_changed => {
            Some(StructInfo::Tuple(fields.iter().map(|field| field.ty.clone()).collect()))
        }
        ExprKind::TupleGet(tuple, at) if inner_changed => {
            tuple.ty.as_tuple().and_then(|fields| fields.get(*at)).cloned()
        }
        ExprKind::Call(call) if inner_changed => match &call.callee {
            Callee::Op(_) => infer_known(call)?,
            Callee::Global(_) | Callee::Value(_) => None,
        },
        _ => None,
    };
    let ty = ty.filter(|ty| *ty != expr.ty);
    if let Some(ty) = &ty {
        expr.ty = ty.clone();
    }
    Ok(ty)
}

/// Infers the type of an `if` again. Returns the type of its branches if they agree and the type of the first branch
/// changed.
fn branches_again(branches: &mut Branches, changed: &mut Changed) -> Result<Option<StructInfo>, PassError> {
    expr_again(&mut branches.condition, changed)?;
    let before = branches.then.result.ty.clone();
    infer_again(&mut branches.then, changed)?;
    infer_again(&mut branches.otherwise, changed)?;
    let after = &branches.then.result.ty;
    Ok((*after == branches.otherwise.result.ty && *after != before).then(|| after.clone()))
}

/// Infers the types of a nested function again. Returns the function's type if its return type changed; see
/// [`follow_result`].
fn function_again(function: &mut RelaxFunction, changed: &mut Changed) -> Result<Option<StructInfo>, PassError> {
    let (declared, before) = (function.ret.clone(), function.body.result.ty.clone());
    infer_again(&mut function.body, changed)?;
    follow_result(function, &before);
    if function.ret == declared {
        return Ok(None);
    }
    Ok(Some(StructInfo::Function(Arc::new(FunctionInfo {
        params: Some(function.params.iter().map(|(_, ty)| ty.clone()).collect()),
        ret: function.ret.clone(),
        pure: function.pure,
    }))))
}

#[cfg(test)]
mod tests {
    use super::{call, infer_again};
    use crate::pass::PassError;
    use rx_base::DType;
    use rx_base::name::name;
    use rx_ir::{Argument, Attr, Block, BoundValue, Expr, Origin, Sequence, StructInfo, VarBinding};

    fn tensor(dims: [i64; 2]) -> StructInfo {
        StructInfo::tensor(dims.map(Into::into), DType::parse("float32"))
    }

    fn operand(variable: &str, ty: &StructInfo) -> Argument {
        Argument::Operand(Expr::var(name(variable), ty.clone()))
    }

    fn bound(variable: &str, value: Expr) -> VarBinding {
        let origin = Origin { item: name("main"), statement: 0 };
        VarBinding { origin, variable: name(variable), ty: value.ty.clone(), value: BoundValue::Expr(value) }
    }

    #[test]
    fn a_call_has_the_type_its_rule_gives_and_the_defaults_of_its_schema() {
        let product =
            call("matmul", vec![("x1", operand("x", &tensor([2, 3]))), ("x2", operand("w", &tensor([3, 4])))]);
        assert_eq!(product.map(|call| call.ty), Ok(tensor([2, 4])));
        let turned = call("permute_dims", vec![("x", operand("x", &tensor([2, 3])))]);
        assert_eq!(turned.as_ref().map(|call| call.ty.clone()), Ok(tensor([3, 2])));
        let axes = turned.ok().and_then(|call| call.as_call().and_then(|call| call.arguments.get(1).cloned()));
        assert_eq!(axes, Some(Argument::Attr(Attr::None)));
    }

    #[test]
    fn call_that_a_rule_refuses_is_an_error() {
        let wrong = call("matmul", vec![("x1", operand("x", &tensor([2, 3]))), ("x2", operand("w", &tensor([2, 4])))]);
        assert!(wrong.is_err_and(|PassError(message)| message.starts_with("matmul: ")));
        assert!(call("matmul", vec![("x1", operand("x", &tensor([2, 3])))]).is_err());
        assert!(call("matmul", vec![("x3", operand("x", &tensor([2, 3])))]).is_err());
    }

    #[test]
    fn changed_type_reaches_all_dependent_values() {
        let old = tensor([2, 3]);
        let sum = call("exp", vec![("x", operand("x", &old))]).expect("a call");
        let turned = call("permute_dims", vec![("x", operand("a", &old))]).expect("a call");
        let mut sequence = Sequence {
            blocks: vec![Block { outputs: None, bindings: vec![bound("a", sum), bound("b", turned)] }],
            result: Expr::var(name("b"), tensor([3, 2])),
        };
        let mut changed = [(name("x"), tensor([5, 3]))].into_iter().collect();
        infer_again(&mut sequence, &mut changed).expect("types");
        assert_eq!(sequence.result.ty, tensor([3, 5]));
        assert_eq!(changed.get(&name("a")), Some(&tensor([5, 3])));
    }
}
