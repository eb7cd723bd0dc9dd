//! Terms: values that depend on a function's parameters, kept symbolically and evaluated at each call of the function.
//!
//! ```text
//! def f(i): j = R.add(i, 1); return R.take(x, j)    the value of j is the term add(param 0, 1)
//! f([3, 7])                                         evaluates j to [4, 8] and checks the access
//! ```

use super::{follows, infer};
use crate::call::{Arg, CallInfo};
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{Dim, Span};
use rx_ir::values::MAX_TERM;
use rx_ir::{
    Argument, Attr, Call, Callee, Expr, ExprKind, Known, PrimInfo, PrimValue, Shape, StructInfo, TensorInfo,
    TensorValues, Term, Values,
};
use std::sync::Arc;

/// The facts that a call provides about the callee's parameters.
pub struct Context<'a> {
    /// The known facts about the arguments.
    pub arguments: &'a [Known],
    /// Rewrites a dim of the callee in terms of the caller's symbols.
    pub dim: &'a dyn Fn(&Dim) -> Dim,
    /// The known bounds of the caller's symbols.
    pub bounds: &'a Bounds,
}

/// Returns `facts`, extended with a term for each result value that depends on the function's parameters.
pub(super) fn with_terms(facts: Option<Values>, call: &CallInfo<'_>, operands: &[Known], result: &StructInfo) -> Known {
    let size = operands.iter().flatten().fold(0u32, |size, values| size.saturating_add(term_size(values)));
    let depends = operands.iter().flatten().any(|values| depends(values));
    if !depends || size >= MAX_TERM || !holds_integers(result) {
        return facts.map(Arc::new);
    }
    let arguments = call.args.iter().map(stripped_argument).collect();
    let stripped = Arc::new(Call { callee: Callee::Op(name(call.schema.name)), arguments });
    let term = |field: Option<u32>| {
        let operands = operands.to_vec();
        let term = Term::Call { call: stripped.clone(), operands, result: result.clone(), field, size: size + 1 };
        Some(Arc::new(term))
    };
    match result {
        StructInfo::Tuple(fields) => {
            let field = |(at, ty): (usize, &StructInfo)| {
                let known = facts.as_ref().and_then(|facts| facts.field(at));
                let known = known.as_deref().and_then(Values::as_tensor).cloned().unwrap_or_default();
                match holds_integers(ty) {
                    true => TensorValues { term: term(u32::try_from(at).ok()), ..known }.into(),
                    false => known.into(),
                }
            };
            Values::tuple(fields.iter().enumerate().map(field).collect())
        }
        _ => {
            let known = facts.as_ref().and_then(Values::as_tensor).cloned().unwrap_or_default();
            TensorValues { term: term(None), ..known }.into()
        }
    }
}

/// Whether the value has integer or boolean elements. Only such values can become indices, so only they get terms.
fn holds_integers(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().any(|field| field.as_tensor().is_some() && holds_integers(field)),
        ty => ty.as_tensor().and_then(|tensor| tensor.dtype).is_some_and(|dtype| dtype.is_int() || dtype.is_bool()),
    }
}

fn term_size(values: &Values) -> u32 {
    match values {
        Values::Tensor(tensor) => tensor.term.as_ref().map_or(0, |term| term.size()),
        Values::Tuple(fields) => {
            fields.iter().flatten().fold(0u32, |size, field| size.saturating_add(term_size(field)))
        }
    }
}

fn depends(values: &Values) -> bool {
    match values {
        Values::Tensor(tensor) => tensor.term.is_some(),
        Values::Tuple(fields) => fields.iter().flatten().any(|field| depends(field)),
    }
}

const NOWHERE: Span = Span { start: 0, end: 0 };

fn stripped_argument(arg: &Arg<'_>) -> Argument {
    match arg {
        Arg::Absent => Argument::Absent,
        Arg::Operand(expr) => Argument::Operand(stripped(expr)),
        Arg::Operands(exprs) => Argument::Operands(exprs.iter().map(stripped).collect()),
        Arg::Attr(attr) => Argument::Attr(Attr::clone(attr)),
        Arg::Types(types) => Argument::Types(types.to_vec()),
    }
}

/// Returns an operand without spans and with only the parts that rules read.
fn stripped(expr: &Expr) -> Expr {
    let kind = match &expr.kind {
        ExprKind::Prim(_)
        | ExprKind::Shape(_)
        | ExprKind::DType(_)
        | ExprKind::Str(_)
        | ExprKind::Constant(_)
        | ExprKind::Var(_) => expr.kind.clone(),
        ExprKind::Tuple(items) => ExprKind::Tuple(items.iter().map(stripped).collect()),
        _ => ExprKind::Var(name("_")),
    };
    Expr { kind, ty: expr.ty.clone(), span: NOWHERE }
}

/// Evaluates the callee's `values` for one call. Relations to variables are dropped, since the callee's variables do
/// not exist in the caller.
pub fn evaluate(values: &Known, context: &Context<'_>) -> Known {
    fn outside(values: &Values) -> Known {
        match values {
            Values::Tuple(fields) => Values::tuple(fields.iter().map(|field| outside(field.as_deref()?)).collect()),
            Values::Tensor(tensor) => TensorValues { relation: None, ..tensor.clone() }.into(),
        }
    }
    outside(evaluate_inside(values, context)?.as_ref())
}

fn evaluate_inside(values: &Known, context: &Context<'_>) -> Known {
    match values.as_deref()? {
        Values::Tuple(fields) => Values::tuple(fields.iter().map(|field| evaluate_inside(field, context)).collect()),
        Values::Tensor(tensor) => {
            let computed = tensor.term.as_ref().and_then(|term| evaluate_term(term, context));
            let end = |end: &Option<rx_ir::End>| {
                end.clone().map(|end| rx_ir::End { value: (context.dim)(&end.value), ..end })
            };
            let own = TensorValues {
                elements: tensor.elements.clone(),
                low: end(&tensor.low),
                high: end(&tensor.high),
                ..TensorValues::default()
            };
            match computed.as_deref() {
                // `own` holds for all arguments; `computed` was evaluated for these arguments, so it is more precise.
                Some(Values::Tensor(known)) if !known.has_facts() => {
                    let TensorValues { term, origin, relation, .. } = known.clone();
                    TensorValues { term, origin, relation, ..own }.into()
                }
                Some(_) => computed,
                None => own.into(),
            }
        }
    }
}

fn evaluate_term(term: &Term, context: &Context<'_>) -> Known {
    match term {
        Term::Param { index, path } => {
            let argument = context.arguments.get(*index as usize)?.clone();
            path.iter().try_fold(argument?, |values, field| values.field(*field as usize))
        }
        Term::Call { call, operands, result, field, .. } => {
            let Callee::Op(operator) = call.callee else { return None };
            let schema = crate::find(operator).filter(|schema| follows(schema))?;
            let operands: Vec<Known> = operands.iter().map(|operand| evaluate_inside(operand, context)).collect();
            let arguments: Vec<Argument> =
                call.arguments.iter().map(|argument| in_argument(argument, context.dim)).collect();
            let args: Vec<Arg<'_>> = arguments.iter().map(Arg::from).collect();
            let call = CallInfo::new(schema, &args, context.bounds);
            let known = infer(&call, &operands, &in_type(result, context.dim));
            match field {
                Some(at) => known?.field(*at as usize),
                None => known,
            }
        }
    }
}

fn in_argument(argument: &Argument, dim: &dyn Fn(&Dim) -> Dim) -> Argument {
    match argument {
        Argument::Operand(expr) => Argument::Operand(in_expr(expr, dim)),
        Argument::Operands(exprs) => Argument::Operands(exprs.iter().map(|expr| in_expr(expr, dim)).collect()),
        Argument::Attr(attr) => Argument::Attr(in_attr(attr, dim)),
        other => other.clone(),
    }
}

fn in_attr(attr: &Attr, dim: &dyn Fn(&Dim) -> Dim) -> Attr {
    match attr {
        Attr::Int(value) => Attr::Int(dim(value)),
        Attr::List(items) => Attr::List(items.iter().map(|item| in_attr(item, dim)).collect()),
        other => other.clone(),
    }
}

fn in_expr(expr: &Expr, dim: &dyn Fn(&Dim) -> Dim) -> Expr {
    let kind = match &expr.kind {
        ExprKind::Prim(PrimValue::Int(value)) => ExprKind::Prim(PrimValue::Int(dim(value))),
        ExprKind::Shape(dims) => ExprKind::Shape(dims.iter().map(dim).collect()),
        ExprKind::Tuple(items) => ExprKind::Tuple(items.iter().map(|item| in_expr(item, dim)).collect()),
        other => other.clone(),
    };
    Expr { kind, ty: in_type(&expr.ty, dim), span: expr.span }
}

/// Returns the type with `dim` applied to its dims.
pub fn in_type(ty: &StructInfo, dim: &dyn Fn(&Dim) -> Dim) -> StructInfo {
    let shape = |shape: &Shape| match shape.dims() {
        Some(dims) => Shape::known(dims.iter().map(dim).collect::<Vec<_>>()),
        None => Shape::of_rank(shape.ndim()),
    };
    match ty {
        StructInfo::Tensor(tensor) => TensorInfo { shape: shape(&tensor.shape), ..TensorInfo::clone(tensor) }.into(),
        StructInfo::Shape(value) => StructInfo::Shape(shape(value)),
        StructInfo::Prim(prim) => StructInfo::Prim(PrimInfo { dtype: prim.dtype, value: prim.value.as_ref().map(dim) }),
        StructInfo::Tuple(fields) => StructInfo::Tuple(fields.iter().map(|field| in_type(field, dim)).collect()),
        other => other.clone(),
    }
}
