//! Generic rewriting of expressions and statements: mapping, substitution, and import of one function's body into
//! another.

use crate::expr::{Expr, fold};
use crate::func::{BufferId, PrimFunc, VarId};
use crate::stmt::{Block, Iter, Stmt};

/// Rewrites an expression bottom-up: `map` is applied once to each subexpression, after its operands. Constants are
/// folded again; `map` is not applied to what folding returns, an operand or a constant.
pub fn map_expr(expr: &Expr, map: &mut impl FnMut(Expr) -> Expr) -> Expr {
    let rebuilt = match expr {
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } => expr.clone(),
        Expr::Load { buffer, dtype, indices } => {
            Expr::Load { buffer: *buffer, dtype: *dtype, indices: map_all(indices, map) }
        }
        Expr::Cast { dtype, value } => {
            let value = map_expr(value, map);
            if value.dtype() == *dtype {
                return value;
            }
            match value.cast(*dtype) {
                cast @ Expr::Cast { .. } => cast,
                folded => return folded,
            }
        }
        Expr::Unary { op, value } => Expr::Unary { op: *op, value: Box::new(map_expr(value, map)) },
        Expr::Binary { op, left, right } => {
            let (left, right) = (map_expr(left, map), map_expr(right, map));
            if let Some(folded) = fold(*op, &left, &right) {
                return folded;
            }
            Expr::Binary { op: *op, left: Box::new(left), right: Box::new(right) }
        }
        Expr::Compare { op, left, right } => match Expr::compare(*op, map_expr(left, map), map_expr(right, map)) {
            compare @ Expr::Compare { .. } => compare,
            folded => return folded,
        },
        Expr::Select { condition, then, otherwise } => {
            let [condition, then, otherwise] = [condition, then, otherwise].map(|part| map_expr(part, map));
            match condition.as_int() {
                Some(0) => return otherwise,
                Some(_) => return then,
                None => Expr::select(condition, then, otherwise),
            }
        }
        Expr::Call { function, dtype, args } => {
            Expr::Call { function: *function, dtype: *dtype, args: map_all(args, map) }
        }
        Expr::Checked { index, extent, buffer, axis, site } => Expr::Checked {
            index: Box::new(map_expr(index, map)),
            extent: Box::new(map_expr(extent, map)),
            buffer: *buffer,
            axis: *axis,
            site: *site,
        },
    };
    map(rebuilt)
}

fn map_all(exprs: &[Expr], map: &mut impl FnMut(Expr) -> Expr) -> Vec<Expr> {
    exprs.iter().map(|expr| map_expr(expr, map)).collect()
}

/// Substitutes the variables for which `of` returns a value.
pub fn substitute(expr: &Expr, of: &dyn Fn(VarId) -> Option<Expr>) -> Expr {
    map_expr(expr, &mut |part| match part {
        Expr::Var { var, dtype } => of(var).unwrap_or(Expr::Var { var, dtype }),
        other => other,
    })
}

/// Replaces each outermost expression in a statement and the statements inside it by the result of `map`. Binders do
/// not change.
pub fn map_stmt(stmt: &Stmt, map: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
    struct All<'m>(&'m mut dyn FnMut(&Expr) -> Expr);
    impl MapParts for All<'_> {
        fn expr(&mut self, expr: &Expr) -> Expr {
            (self.0)(expr)
        }

        fn stmt(&mut self, stmt: &Stmt) -> Stmt {
            map_parts(stmt, self)
        }
    }
    map_parts(stmt, &mut All(map))
}

/// Replaces each direct child statement by the result of `inner`.
pub fn map_children(stmt: &Stmt, inner: &mut dyn FnMut(&Stmt) -> Stmt) -> Stmt {
    map_stmt_shallow(stmt, &mut Expr::clone, inner)
}

/// Replaces each direct child statement as [`map_children`] does, with a function that may fail.
///
/// # Errors
/// The first failure. `inner` is not called for the children after it.
pub fn try_map_children<E>(stmt: &Stmt, inner: &mut dyn FnMut(&Stmt) -> Result<Stmt, E>) -> Result<Stmt, E> {
    let mut failure = None;
    let mapped = map_stmt_shallow(stmt, &mut Expr::clone, &mut |child| match failure {
        Some(_) => Stmt::nothing(),
        None => inner(child).unwrap_or_else(|found| {
            failure = Some(found);
            Stmt::nothing()
        }),
    });
    failure.map_or(Ok(mapped), Err)
}

/// Appends the tables of `other` to those of `into`, and returns the body of `other` over them. `buffers` returns the
/// buffer of `into` for buffers that exist there already, and `vars` the value of variables that have one there. All
/// others are added.
pub fn import(
    into: &mut PrimFunc,
    other: &PrimFunc,
    buffers: &dyn Fn(BufferId) -> Option<BufferId>,
    vars: &dyn Fn(VarId) -> Option<Expr>,
) -> Stmt {
    let new_vars: Vec<Expr> = (0..other.vars.len() as u32)
        .map(VarId)
        .map(|id| {
            vars(id).unwrap_or_else(|| {
                let var = other.var(id);
                let added = into.add_var(var.name, var.dtype);
                into.var_expr(added)
            })
        })
        .collect();
    let rename_vars = |expr: &Expr| substitute(expr, &|var| new_vars.get(var.0 as usize).cloned());
    let mut new_buffers = Vec::with_capacity(other.buffers.len());
    for (at, buffer) in other.buffers.iter().enumerate() {
        let id = buffers(BufferId(at as u32)).unwrap_or_else(|| {
            let mut buffer = buffer.clone();
            buffer.shape = buffer.shape.iter().map(rename_vars).collect();
            buffer.strides = buffer.strides.map(|strides| strides.iter().map(rename_vars).collect());
            into.add_buffer(buffer)
        });
        new_buffers.push(id);
    }
    let binder = |var: VarId| match &new_vars[var.0 as usize] {
        Expr::Var { var, .. } => *var,
        // A variable with a value is a parameter or symbol, which has no binder in the body.
        _ => var,
    };
    rename(&other.body, &binder, &|buffer| new_buffers[buffer.0 as usize], &new_vars)
}

/// Renames binders and buffers in a statement, and substitutes `values` for the variables.
fn rename(
    stmt: &Stmt,
    binder: &dyn Fn(VarId) -> VarId,
    buffer_of: &dyn Fn(BufferId) -> BufferId,
    values: &[Expr],
) -> Stmt {
    let expr = |expr: &Expr| {
        map_expr(expr, &mut |part| match part {
            Expr::Var { var, dtype } => values.get(var.0 as usize).cloned().unwrap_or(Expr::Var { var, dtype }),
            Expr::Load { buffer, dtype, indices } => Expr::Load { buffer: buffer_of(buffer), dtype, indices },
            Expr::Checked { index, extent, buffer, axis, site } => {
                Expr::Checked { index, extent, buffer: buffer_of(buffer), axis, site }
            }
            other => other,
        })
    };
    let inner = |stmt: &Stmt| rename(stmt, binder, buffer_of, values);
    match map_stmt_shallow(stmt, &mut |part| expr(part), &mut |part| inner(part)) {
        Stmt::For { var, start, extent, kind, body } => Stmt::For { var: binder(var), start, extent, kind, body },
        Stmt::Let { var, value, body } => Stmt::Let { var: binder(var), value, body },
        Stmt::Store { buffer, indices, value, site } => Stmt::Store { buffer: buffer_of(buffer), indices, value, site },
        Stmt::Block(mut block) => {
            for iter in &mut block.iters {
                iter.var = binder(iter.var);
            }
            for allocation in &mut block.allocations {
                *allocation = buffer_of(*allocation);
            }
            Stmt::Block(block)
        }
        other => other,
    }
}

/// Rewrites a statement: `map` is applied to its own expressions and `inner` to its direct children.
pub fn map_stmt_shallow(stmt: &Stmt, map: &mut dyn FnMut(&Expr) -> Expr, inner: &mut dyn FnMut(&Stmt) -> Stmt) -> Stmt {
    struct Two<'m> {
        map: &'m mut dyn FnMut(&Expr) -> Expr,
        inner: &'m mut dyn FnMut(&Stmt) -> Stmt,
    }
    impl MapParts for Two<'_> {
        fn expr(&mut self, expr: &Expr) -> Expr {
            (self.map)(expr)
        }

        fn stmt(&mut self, stmt: &Stmt) -> Stmt {
            (self.inner)(stmt)
        }
    }
    map_parts(stmt, &mut Two { map, inner })
}

/// A rewrite of the direct parts of a statement.
trait MapParts {
    /// Rewrites an expression of the statement.
    fn expr(&mut self, expr: &Expr) -> Expr;
    /// Rewrites a direct child statement.
    fn stmt(&mut self, stmt: &Stmt) -> Stmt;
}

/// Rewrites the direct parts of a statement; visits each once.
fn map_parts(stmt: &Stmt, parts: &mut dyn MapParts) -> Stmt {
    match stmt {
        Stmt::Seq(statements) => Stmt::Seq(statements.iter().map(|stmt| parts.stmt(stmt)).collect()),
        Stmt::For { var, start, extent, kind, body } => Stmt::For {
            var: *var,
            start: parts.expr(start),
            extent: parts.expr(extent),
            kind: *kind,
            body: Box::new(parts.stmt(body)),
        },
        Stmt::Block(block) => Stmt::Block(Box::new(Block {
            name: block.name,
            iters: block
                .iters
                .iter()
                .map(|iter| Iter {
                    var: iter.var,
                    kind: iter.kind,
                    start: parts.expr(&iter.start),
                    extent: parts.expr(&iter.extent),
                    binding: parts.expr(&iter.binding),
                })
                .collect(),
            predicate: block.predicate.as_ref().map(|predicate| parts.expr(predicate)),
            allocations: block.allocations.clone(),
            init: block.init.as_ref().map(|init| parts.stmt(init)),
            body: parts.stmt(&block.body),
        })),
        Stmt::Let { var, value, body } => {
            Stmt::Let { var: *var, value: parts.expr(value), body: Box::new(parts.stmt(body)) }
        }
        Stmt::If { condition, then, otherwise } => Stmt::If {
            condition: parts.expr(condition),
            then: Box::new(parts.stmt(then)),
            otherwise: otherwise.as_ref().map(|part| Box::new(parts.stmt(part))),
        },
        Stmt::While { condition, body } => {
            Stmt::While { condition: parts.expr(condition), body: Box::new(parts.stmt(body)) }
        }
        Stmt::Store { buffer, indices, value, site } => Stmt::Store {
            buffer: *buffer,
            indices: indices.iter().map(|index| parts.expr(index)).collect(),
            value: parts.expr(value),
            site: *site,
        },
        Stmt::Assert { condition, message, site } => {
            Stmt::Assert { condition: parts.expr(condition), message: *message, site: *site }
        }
        Stmt::Evaluate(value) => Stmt::Evaluate(parts.expr(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::substitute;
    use crate::{CompareOp, Expr, VarId};
    use rx_base::DType;

    /// `x` becomes `y` and `y` becomes `x`, also where folding leaves only one of them.
    #[test]
    fn substitution_is_applied_once_where_an_operand_is_folded() {
        let var = |id| Expr::Var { var: VarId(id), dtype: DType::INT64 };
        let (x, y, n) = (var(0), var(1), var(2));
        let of = |id: VarId| [y.clone(), x.clone(), Expr::int(1)].get(id.0 as usize).cloned();
        let condition = Expr::compare(CompareOp::Eq, n.clone(), Expr::int(1));
        for value in [
            x.clone() * n.clone(),
            x.clone() + (n.clone() - Expr::int(1)),
            Expr::select(condition, x.clone(), y.clone()),
            Expr::Cast { dtype: DType::INT64, value: Box::new(x.clone()) },
        ] {
            assert_eq!(substitute(&value, &of), y, "{value:?}");
        }
    }
}
