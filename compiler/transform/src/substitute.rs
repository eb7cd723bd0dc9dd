//! Substitution of names, values and symbolic dims.

use rx_base::name::NameMap;
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{Block, BoundValue, Expr, ExprKind, Sequence, Shape, StructInfo, VarBinding};
use std::sync::Arc;

/// Binds the dims of the type `wanted` that are a single symbol to the corresponding dims of `given`. For example,
/// `(n, 4)` against `(m * 2, 4)` gives `n = m * 2`; `(n * 2,)` against `(8,)` gives nothing. A symbol that `dims` binds
/// already keeps its value.
pub fn unify(wanted: &StructInfo, given: &StructInfo, dims: &mut NameMap<Dim>) {
    let mut of_shapes = |wanted: &Shape, given: &Shape| {
        for (wanted, given) in wanted.dims().into_iter().flatten().zip(given.dims().into_iter().flatten()) {
            if let Some(symbol) = wanted.as_symbol() {
                dims.entry(symbol).or_insert_with(|| given.clone());
            }
        }
    };
    match (wanted, given) {
        (StructInfo::Tensor(wanted), StructInfo::Tensor(given)) => of_shapes(&wanted.shape, &given.shape),
        (StructInfo::DTensor(wanted), StructInfo::DTensor(given)) => {
            of_shapes(&wanted.tensor.shape, &given.tensor.shape);
        }
        (StructInfo::Shape(wanted), StructInfo::Shape(given)) => of_shapes(wanted, given),
        (StructInfo::Prim(wanted), StructInfo::Prim(given)) => {
            if let (Some(symbol), Some(value)) = (wanted.value.as_ref().and_then(Dim::as_symbol), &given.value) {
                dims.entry(symbol).or_insert_with(|| value.clone());
            }
        }
        (StructInfo::Tuple(wanted), StructInfo::Tuple(given)) => {
            wanted.iter().zip(given.iter()).for_each(|(wanted, given)| unify(wanted, given, dims));
        }
        _ => {}
    }
}

/// Renames variables and dims throughout a sequence, including the variables that it binds.
pub fn rename(sequence: &mut Sequence, renaming: &Renaming<'_>) {
    let own = |variable: &mut Name| *variable = (renaming.variable)(*variable).unwrap_or(*variable);
    for Block { outputs, bindings } in &mut sequence.blocks {
        outputs.iter_mut().flatten().for_each(own);
        for binding in bindings {
            own(&mut binding.variable);
            binding.ty = renaming.ty(&binding.ty);
            if let BoundValue::Function(function) = &mut binding.value {
                let function = Arc::make_mut(function);
                own(&mut function.name);
                for (param, ty) in &mut function.params {
                    own(param);
                    *ty = renaming.ty(ty);
                }
                function.ret = renaming.ty(&function.ret);
            }
            binding.value.computed_mut().into_iter().for_each(|value| renaming.expr(value));
            binding.value.sequences_mut().for_each(|inner| rename(inner, renaming));
        }
    }
    renaming.expr(&mut sequence.result);
}

/// Replaces variables with values; changes nothing if `values` is empty. A field access of a tuple that is written out
/// then becomes the field: `(a, b)[1]` becomes `b`.
pub fn replace(expr: &mut Expr, values: &NameMap<Expr>) {
    if values.is_empty() {
        return;
    }
    expr.each_mut(&mut |expr| {
        if let ExprKind::Var(variable) = &expr.kind
            && let Some(value) = values.get(variable)
        {
            *expr = value.clone();
        }
        if let ExprKind::TupleGet(tuple, at) = &expr.kind
            && let ExprKind::Tuple(fields) = &tuple.kind
            && let Some(field) = fields.get(*at)
        {
            *expr = field.clone();
        }
    });
}

/// Returns a variable, a tuple or a tuple field with each variable replaced by the result of `current`, if any, and
/// with the type that follows from the replacements. Returns other expressions unchanged.
pub fn retyped(expr: &Expr, current: &dyn Fn(Name) -> Option<Expr>) -> Expr {
    match &expr.kind {
        ExprKind::Var(variable) => current(*variable).unwrap_or_else(|| expr.clone()),
        ExprKind::Tuple(fields) => Expr::tuple(fields.iter().map(|field| retyped(field, current)).collect()),
        ExprKind::TupleGet(tuple, at) => {
            let tuple = retyped(tuple, current);
            let ty = tuple.ty.as_tuple().and_then(|fields| fields.get(*at)).cloned();
            Expr::new(ExprKind::TupleGet(Box::new(tuple), *at), ty.unwrap_or_else(|| expr.ty.clone()))
        }
        _ => expr.clone(),
    }
}

/// Applies [`replace`] to every expression that a binding computes, including those in branches and nested functions.
pub fn replace_in_binding(binding: &mut VarBinding, values: &NameMap<Expr>) {
    binding.value.computed_mut().into_iter().for_each(|value| replace(value, values));
    binding.value.sequences_mut().for_each(|inner| replace_in_sequence(inner, values));
}

/// Applies [`replace`] to every expression that a sequence computes.
pub fn replace_in_sequence(sequence: &mut Sequence, values: &NameMap<Expr>) {
    if values.is_empty() {
        return;
    }
    crate::walk::each_expression_mut(sequence, &mut |expr| replace(expr, values));
}
