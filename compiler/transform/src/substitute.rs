//! Putting names, values and dims in the place of others.

use rx_base::name::NameMap;
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{Block, BoundValue, Expr, ExprKind, Sequence, Shape, StructInfo, VarBinding};
use std::sync::Arc;

/// Notes what the symbolic dims of a type are where a value of another type is taken for it; what is noted stays.
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

/// Renames everything in a sequence, what it binds included.
pub fn rename(sequence: &mut Sequence, renaming: &Renaming<'_>) {
    let own = |variable: &mut Name| *variable = (renaming.variable)(*variable).unwrap_or(*variable);
    for Block { outputs, bindings } in &mut sequence.blocks {
        outputs.iter_mut().flatten().for_each(own);
        for binding in bindings {
            own(&mut binding.variable);
            binding.ty = renaming.ty(&binding.ty);
            match &mut binding.value {
                BoundValue::Expr(value) => renaming.expr(value),
                BoundValue::If(branches) => {
                    renaming.expr(&mut branches.condition);
                    rename(&mut branches.then, renaming);
                    rename(&mut branches.otherwise, renaming);
                }
                BoundValue::Function(function) => {
                    let function = Arc::make_mut(function);
                    own(&mut function.name);
                    for (param, ty) in &mut function.params {
                        own(param);
                        *ty = renaming.ty(ty);
                    }
                    function.ret = renaming.ty(&function.ret);
                    rename(&mut function.body, renaming);
                }
            }
        }
    }
    renaming.expr(&mut sequence.result);
}

/// Puts values in the place of variables, and the field in place of one taken from a tuple that is written out.
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

/// As [`replace`], in all that a binding computes.
pub fn replace_in_binding(binding: &mut VarBinding, values: &NameMap<Expr>) {
    match &mut binding.value {
        BoundValue::Expr(value) => replace(value, values),
        BoundValue::If(branches) => {
            replace(&mut branches.condition, values);
            replace_in_sequence(&mut branches.then, values);
            replace_in_sequence(&mut branches.otherwise, values);
        }
        BoundValue::Function(function) => replace_in_sequence(&mut Arc::make_mut(function).body, values),
    }
}

/// As [`replace`], in all that a sequence computes.
pub fn replace_in_sequence(sequence: &mut Sequence, values: &NameMap<Expr>) {
    if values.is_empty() {
        return;
    }
    sequence
        .blocks
        .iter_mut()
        .flat_map(|block| &mut block.bindings)
        .for_each(|binding| replace_in_binding(binding, values));
    replace(&mut sequence.result, values);
}
