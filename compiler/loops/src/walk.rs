//! Rewriting of statements and expressions with a [`Scope`] of the facts that hold at each of them. Simplification and
//! guards are such rewrites.

use crate::scope::Scope;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::rewrite::map_stmt_shallow;
use rx_tir::stmt::{Block, Iter, Site, Stmt};

/// A rewrite of the expressions, accesses and statements of a function.
pub(crate) trait Rewrite {
    /// Rewrites an expression whose operands are already rewritten. `site` is that of the statement that contains it.
    fn expr(&mut self, scope: &mut Scope, expr: Expr, site: Site) -> Expr;

    /// Rewrites the indices of a load or store, after [`Rewrite::expr`] has rewritten each of them. By default they
    /// stay as they are.
    fn indices(&mut self, _scope: &mut Scope, _buffer: BufferId, indices: Vec<Expr>, _site: Site) -> Vec<Expr> {
        indices
    }

    /// Rewrites a statement whose parts are already rewritten. The scope is the one outside of the statement. By
    /// default the statement stays as it is.
    fn stmt(&mut self, _scope: &mut Scope, stmt: Stmt) -> Stmt {
        stmt
    }
}

/// Rewrites a statement. Inside it, the scope contains its loops, axes, `let`s and conditions.
pub(crate) fn rewrite_stmt(
    rewrite: &mut dyn Rewrite,
    scope: &mut Scope,
    func: &PrimFunc,
    stmt: &Stmt,
    site: Site,
) -> Stmt {
    rewrite_at(rewrite, scope, func, stmt, stmt.first_site().unwrap_or(site))
}

/// Rewrites a statement whose site is known. A loop passes its site on to its body.
fn rewrite_at(rewrite: &mut dyn Rewrite, scope: &mut Scope, func: &PrimFunc, stmt: &Stmt, site: Site) -> Stmt {
    let mark = scope.mark();
    let rewritten = match stmt {
        Stmt::Block(block) => rewrite_block(rewrite, scope, func, block, site),
        Stmt::If { condition, then, otherwise } => {
            let condition = rewrite_expr(rewrite, scope, condition, site);
            let mut branch = |part: &Stmt, holds: bool| {
                let mark = scope.mark();
                scope.assume_condition(&condition, holds);
                let part = rewrite_stmt(rewrite, scope, func, part, site);
                scope.leave(mark);
                Box::new(part)
            };
            let then = branch(then, true);
            let otherwise = otherwise.as_ref().map(|part| branch(part, false));
            Stmt::If { condition, then, otherwise }
        }
        Stmt::While { condition, body } => {
            let condition = rewrite_expr(rewrite, scope, condition, site);
            scope.assume_condition(&condition, true);
            Stmt::While { condition, body: Box::new(rewrite_stmt(rewrite, scope, func, body, site)) }
        }
        Stmt::Store { buffer, indices, value, site } => {
            let indices = indices.iter().map(|index| rewrite_expr(rewrite, scope, index, *site)).collect();
            let indices = rewrite.indices(scope, *buffer, indices, *site);
            let value = rewrite_expr(rewrite, scope, value, *site);
            Stmt::Store { buffer: *buffer, indices, value, site: *site }
        }
        Stmt::For { var, start, extent, kind, body } => {
            let (start, extent) =
                (rewrite_expr(rewrite, scope, start, site), rewrite_expr(rewrite, scope, extent, site));
            scope.enter_loop(*var, func.var(*var).dtype, &start, &extent);
            let body = Box::new(rewrite_at(rewrite, scope, func, body, site));
            Stmt::For { var: *var, start, extent, kind: *kind, body }
        }
        Stmt::Let { var, value, body } => {
            let value = rewrite_expr(rewrite, scope, value, site);
            scope.enter_let(*var, func.var(*var).dtype, &value);
            Stmt::Let { var: *var, value, body: Box::new(rewrite_stmt(rewrite, scope, func, body, site)) }
        }
        Stmt::Seq(statements) => {
            Stmt::Seq(statements.iter().map(|part| rewrite_stmt(rewrite, scope, func, part, site)).collect())
        }
        leaf @ (Stmt::Assert { .. } | Stmt::Evaluate(_)) => {
            map_stmt_shallow(leaf, &mut |expr| rewrite_expr(rewrite, scope, expr, site), &mut Stmt::clone)
        }
    };
    scope.leave(mark);
    rewrite.stmt(scope, rewritten)
}

fn rewrite_block(rewrite: &mut dyn Rewrite, scope: &mut Scope, func: &PrimFunc, block: &Block, site: Site) -> Stmt {
    let mut rewritten = Block {
        name: block.name,
        iters: Vec::with_capacity(block.iters.len()),
        predicate: None,
        allocations: block.allocations.clone(),
        init: None,
        body: Stmt::nothing(),
    };
    for iter in &block.iters {
        let mut part = |expr: &Expr| rewrite_expr(rewrite, scope, expr, site);
        let (start, extent, binding) = (part(&iter.start), part(&iter.extent), part(&iter.binding));
        rewritten.iters.push(Iter { var: iter.var, kind: iter.kind, start, extent, binding });
    }
    // The predicate may be over the axes, so they are entered before it is rewritten.
    for iter in &rewritten.iters {
        scope.enter_axis(iter.var, func.var(iter.var).dtype, &iter.start, &iter.extent, &iter.binding);
    }
    rewritten.predicate = block.predicate.as_ref().map(|predicate| rewrite_expr(rewrite, scope, predicate, site));
    scope.enter_block(&rewritten, func);
    rewritten.init = block.init.as_ref().map(|init| rewrite_stmt(rewrite, scope, func, init, site));
    rewritten.body = rewrite_stmt(rewrite, scope, func, &block.body, site);
    Stmt::Block(Box::new(rewritten))
}

/// Rewrites an expression, operands first. In the branches of a selection and the right operand of `and` and `or`, the
/// scope contains the condition under which they are evaluated.
pub(crate) fn rewrite_expr(rewrite: &mut dyn Rewrite, scope: &mut Scope, expr: &Expr, site: Site) -> Expr {
    let mut part = |scope: &mut Scope, expr: &Expr| rewrite_expr(rewrite, scope, expr, site);
    let rebuilt = match expr {
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } => expr.clone(),
        Expr::Load { buffer, dtype, indices } => {
            let indices = indices.iter().map(|index| part(scope, index)).collect();
            let indices = rewrite.indices(scope, *buffer, indices, site);
            Expr::Load { buffer: *buffer, dtype: *dtype, indices }
        }
        Expr::Cast { dtype, value } => part(scope, value).cast(*dtype),
        Expr::Unary { op, value } => Expr::Unary { op: *op, value: Box::new(part(scope, value)) },
        Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
            let left = part(scope, left);
            let right = assuming(scope, &left, *op == BinaryOp::And, |scope| part(scope, right));
            match op {
                BinaryOp::And => left.and(right),
                _ => Expr::binary(*op, left, right),
            }
        }
        Expr::Binary { op, left, right } => {
            let left = part(scope, left);
            Expr::binary(*op, left, part(scope, right))
        }
        Expr::Compare { op, left, right } => {
            let left = part(scope, left);
            Expr::compare(*op, left, part(scope, right))
        }
        Expr::Select { condition, then, otherwise } => {
            let condition = part(scope, condition);
            let then = assuming(scope, &condition, true, |scope| part(scope, then));
            let otherwise = assuming(scope, &condition, false, |scope| part(scope, otherwise));
            Expr::select(condition, then, otherwise)
        }
        Expr::Call { function, dtype, args } => {
            let args = args.iter().map(|arg| part(scope, arg)).collect();
            Expr::Call { function: *function, dtype: *dtype, args }
        }
        Expr::Checked { index, extent, buffer, axis, site } => {
            let index = Box::new(part(scope, index));
            let extent = Box::new(part(scope, extent));
            Expr::Checked { index, extent, buffer: *buffer, axis: *axis, site: *site }
        }
    };
    rewrite.expr(scope, rebuilt, site)
}

fn assuming<T>(scope: &mut Scope, condition: &Expr, holds: bool, inner: impl FnOnce(&mut Scope) -> T) -> T {
    let mark = scope.mark();
    scope.assume_condition(condition, holds);
    let result = inner(scope);
    scope.leave(mark);
    result
}
