//! *Simplification*: index arithmetic in normal form, decided conditions, and no trivial loops and blocks.
//!
//! ```text
//! for i in T.serial(1):                    for j in range(n):
//!     for j in range(n):            ->         B[j] = A[j]
//!         B[i * n + j] = A[(j * 4 + i) // 4]
//! ```
//!
//! Requires that `int64` index arithmetic does not overflow. Guarantees the same results to the bit. The counterpart in
//! TVM is `tir.transform.Simplify` with `arith::Analyzer`.

use crate::scope::Scope;
use crate::walk::{Rewrite, rewrite_stmt};
use rustc_hash::FxHashMap;
use rx_base::{DType, Dim};
use rx_tir::expr::{BinaryOp, Expr, Intrinsic};
use rx_tir::func::{PrimFunc, VarId};
use rx_tir::rewrite::{map_stmt, substitute};
use rx_tir::stmt::{Block, IterKind, Site, Stmt};

/// Simplifies a function: mainly, index arithmetic is normalized, conditions that are proved or refuted are decided,
/// loops of one iteration and axes of one value are replaced by that value, blocks without axes, init and buffers are
/// replaced by their body, and loops without iterations or statements are removed.
///
/// Results are the same to the bit, under the assumption that `int64` index arithmetic does not overflow.
pub fn simplify(func: &PrimFunc) -> PrimFunc {
    let mut current = func.clone();
    // Substituting the variables of removed loops makes more index arithmetic constant, so there are up to two
    // iterations.
    for _ in 0..2 {
        let mut scope = Scope::new(&current);
        let mut simplifying = Simplifying::default();
        let site = Site { origin: None, operator: current.name };
        let body = rewrite_stmt(&mut simplifying, &mut scope, &current, &current.body, site);
        current.body = simplifying.replaced(body);
        if !simplifying.dropped {
            break;
        }
    }
    current
}

/// Simplifies a statement in a scope.
pub(crate) fn simplify_in(scope: &mut Scope, func: &PrimFunc, stmt: &Stmt) -> Stmt {
    let site = Site { origin: None, operator: func.name };
    let mut simplifying = Simplifying::default();
    let simplified = rewrite_stmt(&mut simplifying, scope, func, stmt, site);
    simplifying.replaced(simplified)
}

#[derive(Default)]
struct Simplifying {
    dropped: bool,
    /// The variables of removed loops with their values, inner ones first; the values may mention outer
    /// variables. They are substituted at the end, all at once. Substituting one by one would copy a nest of n loops n
    /// times.
    values: Vec<(VarId, Expr)>,
}

impl Rewrite for Simplifying {
    fn expr(&mut self, scope: &mut Scope, expr: Expr, _site: Site) -> Expr {
        simplify_expr(scope, expr)
    }

    fn stmt(&mut self, _scope: &mut Scope, stmt: Stmt) -> Stmt {
        match stmt {
            Stmt::Seq(statements) => Stmt::seq(statements),
            Stmt::For { var, start, extent, kind, body } => match extent.as_int() {
                _ if body == Box::new(Stmt::nothing()) => Stmt::nothing(),
                Some(extent) if extent <= 0 => Stmt::nothing(),
                Some(1) => {
                    self.dropped = true;
                    self.values.push((var, start));
                    *body
                }
                _ => Stmt::For { var, start, extent, kind, body },
            },
            Stmt::If { condition, then, otherwise } => match condition.as_int() {
                Some(0) => otherwise.map_or(Stmt::nothing(), |part| *part),
                Some(_) => *then,
                None => Stmt::If { condition, then, otherwise },
            },
            Stmt::Block(block) => self.block(*block),
            other => other,
        }
    }
}

impl Simplifying {
    /// Substitutes the removed variables by their values.
    fn replaced(&self, stmt: Stmt) -> Stmt {
        if self.values.is_empty() {
            return stmt;
        }
        let mut values: FxHashMap<VarId, Expr> = FxHashMap::default();
        // Outer variables first, so that the values of inner variables are fully substituted.
        for (var, value) in self.values.iter().rev() {
            let value = substitute(value, &|outer| values.get(&outer).cloned());
            values.insert(*var, value);
        }
        map_stmt(&stmt, &mut |expr| substitute(expr, &|var| values.get(&var).cloned()))
    }

    /// Simplifies a block, in this order:
    ///
    /// 1. Removes the axes of extent 1 that are bound to their start.
    /// 2. If no reduction axis is left, makes the init the first statement of the body.
    /// 3. Removes the predicate if it is constant true, and the whole block if it is constant false.
    /// 4. If no axis, init or allocation is left, replaces the block by its body; by `if predicate: body` if it has a
    ///    predicate.
    fn block(&mut self, mut block: Block) -> Stmt {
        let fixed = |iter: &rx_tir::Iter| iter.extent.as_int() == Some(1) && iter.binding == iter.start;
        if block.iters.iter().any(fixed) {
            self.dropped = true;
            let gone: FxHashMap<VarId, Expr> =
                block.iters.iter().filter(|iter| fixed(iter)).map(|iter| (iter.var, iter.start.clone())).collect();
            block.iters.retain(|iter| !fixed(iter));
            let of = |var: VarId| gone.get(&var).cloned();
            block.body = map_stmt(&block.body, &mut |expr| substitute(expr, &of));
            block.init = block.init.map(|init| map_stmt(&init, &mut |expr| substitute(expr, &of)));
            block.predicate = block.predicate.map(|predicate| substitute(&predicate, &of));
        }
        // Without reduction axes, every instance is the first one, so the init is always executed.
        if !block.iters.iter().any(|iter| iter.kind == IterKind::Reduce)
            && let Some(init) = block.init.take()
        {
            block.body = Stmt::seq([init, block.body]);
        }
        match block.predicate.as_ref().and_then(Expr::as_int) {
            Some(0) => return Stmt::nothing(),
            Some(_) => block.predicate = None,
            None => {}
        }
        if !block.iters.is_empty() || !block.allocations.is_empty() || block.init.is_some() {
            return Stmt::Block(Box::new(block));
        }
        match block.predicate {
            None => block.body,
            Some(condition) => Stmt::when(condition, block.body),
        }
    }
}

/// Substitutes a variable in a statement. The value must mean the same at all uses of the variable.
pub(crate) fn replace_var(stmt: &Stmt, var: VarId, value: &Expr) -> Stmt {
    map_stmt(stmt, &mut |expr| substitute(expr, &|known| (known == var).then(|| value.clone())))
}

/// Simplifies an expression whose operands are already simplified.
fn simplify_expr(scope: &mut Scope, expr: Expr) -> Expr {
    match &expr {
        Expr::Compare { .. } => scope.decide(&expr).map_or(expr, Expr::bool),
        Expr::Unary { op: rx_tir::UnaryOp::Not, value } => value.as_int().map_or(expr.clone(), |v| Expr::bool(v == 0)),
        Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
            let decisive = i64::from(*op == BinaryOp::Or);
            match (left.as_int(), right.as_int()) {
                (Some(value), _) if value == decisive => Expr::bool(decisive != 0),
                (Some(_), _) => (**right).clone(),
                (_, Some(value)) if value != decisive => (**left).clone(),
                _ => expr,
            }
        }
        Expr::Select { then, otherwise, .. } if then == otherwise => (**then).clone(),
        Expr::Binary { .. } | Expr::Cast { .. } if expr.dtype().is_int() => index(scope, expr),
        Expr::Call { function: Intrinsic::Sqrt, args, dtype } => match &args[..] {
            [Expr::Float { value, .. }] => square_root(*value, *dtype).unwrap_or(expr),
            _ => expr,
        },
        _ => expr,
    }
}

/// Folds the square root of a `float32` or `float64` constant. The square root is correctly rounded on all targets, so
/// the result is the same as at run time.
fn square_root(value: f64, dtype: DType) -> Option<Expr> {
    let root = match dtype {
        DType::FLOAT32 => f64::from((value as f32).sqrt()),
        DType::FLOAT64 => value.sqrt(),
        _ => return None,
    };
    Some(Expr::Float { value: root, dtype })
}

/// Normalizes an integer expression by way of a [`Dim`]. Returns it unchanged if the dim has an opaque expression as an
/// atom, or if the result is longer or cannot be expressed.
fn index(scope: &mut Scope, expr: Expr) -> Expr {
    let dtype = expr.dtype();
    let dim = scope.dim(&expr);
    if is_opaque(&dim) {
        return expr;
    }
    match scope.expr(&dim, dtype) {
        Some(simple) if simple.size() <= expr.size() => simple,
        _ => expr,
    }
}

fn is_opaque(dim: &Dim) -> bool {
    let mut atoms = dim.terms().iter().flat_map(|(product, _)| product);
    atoms.any(|(atom, _)| matches!(atom, rx_base::symbolic::Atom::Opaque(symbol, _) if symbol.starts_with("%e")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rx_base::name::name;
    use rx_tir::KernelBuilder;
    use rx_tir::func::BufferId;

    fn symbol(text: &str) -> Dim {
        Dim::symbol(name(text))
    }

    /// Builds and simplifies `out[axes] = data[index(axes)]`; returns the function, the index of `data` and the indices
    /// of `out`.
    fn simplified(
        shapes: [&[Dim]; 2],
        index: impl Fn(&mut KernelBuilder, &[Expr]) -> Expr,
    ) -> (PrimFunc, Expr, Vec<Expr>) {
        let mut builder = KernelBuilder::new(name("read"));
        for text in ["n", "m"] {
            builder.param(text, &[symbol(text)], DType::FLOAT32);
        }
        let data = builder.param("data", shapes[0], DType::FLOAT32);
        let out = builder.param("out", shapes[1], DType::FLOAT32);
        builder.compute(out, |builder, axes| {
            let index = index(builder, axes);
            builder.load(data, &[index])
        });
        let func = simplify(&builder.finish());
        let (read, axes) = first_read(&func, data);
        (func, read, axes)
    }

    fn first_read(func: &PrimFunc, data: BufferId) -> (Expr, Vec<Expr>) {
        let mut found = None;
        func.body.walk(&mut |stmt| {
            if let Stmt::Store { indices, value: Expr::Load { buffer, indices: read, .. }, .. } = stmt
                && *buffer == data
            {
                found = Some((read[0].clone(), indices.clone()));
            }
        });
        found.expect("one read")
    }

    #[test]
    fn reshape_and_its_inverse_cancel() {
        let flat = &symbol("n") * &symbol("m");
        let shape = std::slice::from_ref(&flat);
        let (_, read, axes) = simplified([shape, shape], |builder, axes| {
            let columns = builder.dim(&symbol("m"));
            let row = axes[0].clone().floor_div(columns.clone());
            row * columns.clone() + axes[0].clone().floor_mod(columns)
        });
        assert_eq!(read, axes[0]);
        let (_, read, axes) = simplified([&[symbol("n")], &[symbol("n"), symbol("m")]], |builder, axes| {
            let columns = builder.dim(&symbol("m"));
            (axes[0].clone() * columns.clone() + axes[1].clone()).floor_div(columns)
        });
        assert_eq!(read, axes[0]);
    }

    #[test]
    fn a_loop_of_one_iteration_is_its_value() {
        let (func, read, _) = simplified([&[symbol("n")], &[Dim::constant(1), Dim::constant(1)]], |_, axes| {
            axes[0].clone() * Expr::int(3) + axes[1].clone()
        });
        assert_eq!(read, Expr::int(0));
        assert!(matches!(func.body, Stmt::Store { .. }), "no loop and no block is left");
    }

    #[test]
    fn conditions_that_always_hold_are_removed() {
        let (_, read, axes) = simplified([&[symbol("n")], &[symbol("n")]], |builder, axes| {
            let extent = builder.dim(&symbol("n"));
            let inside = rx_tir::builder::in_range(axes[0].clone(), Expr::int(0), extent);
            Expr::select(inside, axes[0].clone(), Expr::int(0))
        });
        assert_eq!(read, axes[0]);
    }
}
