//! Loop splitting at the points where conditions change. For example, padding leaves a middle part in which the
//! conditions hold, and which can be vectorized:
//!
//! ```text
//! for i in range(34):
//!     B[i] = select(1 <= i and i < 33, A[i - 1], 0)
//! ```
//!
//! is emitted as three loops: iteration 0, iterations 1 to 32 with `B[i] = A[i - 1]` in vectors, and iteration 33. The
//! first and the last one keep the conditions.

use super::expr::may_divide_by_zero;
use super::lanes::LanePlan;
use super::{Emitted, Emitter};
use crate::prepare::conjuncts;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use rx_loops::poly::{Atom, Poly, Stride};
use rx_tir::rewrite::{map_expr, map_stmt_shallow};
use rx_tir::{BinaryOp, CompareOp, Expr, Stmt, VarId};

/// The parts of a split loop.
pub(super) struct Split {
    /// The bounds that all hold in `inside`.
    pub(super) bounds: Vec<Bound>,
    /// The iterations in which the conditions hold.
    pub(super) inside: Part,
    /// The iterations before and after `inside`, with one body for both.
    pub(super) outside: Part,
}

/// Some of the iterations, with the body for them, and the plan if they are vectorized.
pub(super) struct Part {
    pub(super) body: Stmt,
    pub(super) plan: Option<LanePlan>,
}

/// A bound `step · v + rest >= 0` on the loop variable `v`, for all values of the inner loop variables.
pub(super) struct Bound {
    step: i64,
    /// The terms whose sum is the least value of `rest` over the inner loop variables.
    rest: Vec<Term>,
}

enum Term {
    Product(Vec<Atom>, i64),
    /// The minimum of a coefficient times an inner loop variable: at its first value if the coefficient is positive,
    /// otherwise at its last.
    Inner {
        start: Expr,
        extent: Expr,
        coefficient: i64,
    },
}

impl Emitter<'_> {
    /// Returns the parts of a loop if splitting makes one of them vectorizable. Loops with a constant extent below 8,
    /// and loops inside a vectorized loop, are not split.
    pub(super) fn split(&self, stmt: &Stmt) -> Option<Split> {
        let Stmt::For { var, start, extent, kind, body } = stmt else { return None };
        if self.lane.is_some() || extent.as_int().is_some_and(|extent| extent < 8) {
            return None;
        }
        let mut found = Vec::new();
        conditions(body, &mut found);
        let mut inner = Inner::default();
        body.walk(&mut |stmt| match stmt {
            Stmt::For { var, start, extent, .. } => inner.loops.push((*var, start, extent)),
            Stmt::Let { var, .. } => inner.lets.push(*var),
            _ => {}
        });
        let mut bounds = Vec::new();
        let mut known: Vec<&Expr> = Vec::new();
        for condition in found {
            if condition.uses(*var)
                && !known.contains(&condition)
                && let Some(bound) = bound_of(condition, *var, &inner)
            {
                bounds.push(bound);
                known.push(condition);
            }
        }
        if known.is_empty() {
            return None;
        }
        let part = |value: Option<bool>| {
            let body = match value {
                Some(value) => with_known(body, &known, value),
                None => (**body).clone(),
            };
            let looped = Stmt::For {
                var: *var,
                start: start.clone(),
                extent: extent.clone(),
                kind: *kind,
                body: Box::new(body.clone()),
            };
            Part { body, plan: self.lane_plan(&looped) }
        };
        let inside = part(Some(true));
        // A single condition that does not depend on inner loop variables is false in all iterations outside.
        let exact = bounds.len() == 1
            && bounds.iter().flat_map(|bound| &bound.rest).all(|term| matches!(term, Term::Product(..)));
        let outside = part(if exact { Some(false) } else { None });
        (inside.plan.is_some() || outside.plan.is_some()).then_some(Split { bounds, inside, outside })
    }

    /// Emits the first value of the loop variable for which the bound holds (returned with `true`), or the value after
    /// the last one for which it holds (returned with `false`).
    pub(super) fn bound(&mut self, bound: &Bound) -> Emitted<(Value, bool)> {
        let mut rest = self.builder.ins().iconst(types::I64, 0);
        for term in &bound.rest {
            let value = match term {
                Term::Product(atoms, coefficient) => {
                    let mut product = self.builder.ins().iconst(types::I64, *coefficient);
                    for atom in atoms {
                        let value = self.atom(atom)?;
                        product = self.builder.ins().imul(product, value);
                    }
                    product
                }
                Term::Inner { start, extent, coefficient } => {
                    let mut at = self.index(start)?;
                    if *coefficient < 0 {
                        let extent = self.index(extent)?;
                        at = self.builder.ins().iadd(at, extent);
                        at = self.builder.ins().iadd_imm_s(at, -1);
                    }
                    self.builder.ins().imul_imm_s(at, *coefficient)
                }
            };
            rest = self.builder.ins().iadd(rest, value);
        }
        let step = bound.step.unsigned_abs() as i64;
        if bound.step > 0 {
            // v >= ceil(-rest / step) = -floor(rest / step)
            let quotient = self.divide_by(BinaryOp::FloorDiv, rest, step, true)?;
            Ok((self.builder.ins().ineg(quotient), true))
        } else {
            // v <= floor(rest / step)
            let last = self.divide_by(BinaryOp::FloorDiv, rest, step, true)?;
            Ok((self.builder.ins().iadd_imm_s(last, 1), false))
        }
    }
}

/// Collects the conjuncts of the conditions of all selects and branches in a statement.
fn conditions<'s>(stmt: &'s Stmt, found: &mut Vec<&'s Expr>) {
    stmt.walk(&mut |stmt| {
        if let Stmt::If { condition, .. } = stmt {
            found.extend(conjuncts(condition));
        }
        for expr in stmt.expressions() {
            expr.walk(&mut |part| {
                if let Expr::Select { condition, .. } = part {
                    found.extend(conjuncts(condition));
                }
            });
        }
    });
}

/// The variables bound in a loop's body.
#[derive(Default)]
struct Inner<'s> {
    /// Variables with their first values and extents.
    loops: Vec<(VarId, &'s Expr, &'s Expr)>,
    lets: Vec<VarId>,
}

impl Inner<'_> {
    /// Whether an expression uses no variable that the body binds.
    fn is_outside(&self, expr: &Expr) -> bool {
        !self.loops.iter().any(|(own, ..)| expr.uses(*own)) && !self.lets.iter().any(|own| expr.uses(*own))
    }
}

/// Converts an integer comparison to a bound on the variable, if it is one that can be computed before the loop.
///
/// For example, `2 * v + k < 10` becomes `-2 * v - k + 9 >= 0`. If `k` is the variable of an inner loop over
/// `range(3)`, the least value of `-k` is −2, so that the bound is `-2 * v + 7 >= 0`: it holds for `v` below 4.
fn bound_of(condition: &Expr, var: VarId, inner: &Inner<'_>) -> Option<Bound> {
    let Expr::Compare { op, left, right } = condition else { return None };
    if !left.dtype().is_int() {
        return None;
    }
    let (left, right) = (Poly::of(left)?, Poly::of(right)?);
    let (more, less, strict) = match op {
        CompareOp::Ge => (left, right, 0),
        CompareOp::Gt => (left, right, -1),
        CompareOp::Le => (right, left, 0),
        CompareOp::Lt => (right, left, -1),
        CompareOp::Eq | CompareOp::Ne => return None,
    };
    let difference = more.plus(&less.times(&Poly::constant(-1))?)?.plus(&Poly::constant(strict))?;
    let Stride::Constant(step) = difference.stride(var) else { return None };
    let mut rest = Vec::new();
    for (atoms, coefficient) in difference.terms {
        if atoms.iter().any(|atom| atom.uses(var)) {
            continue;
        }
        let outside = |atom: &Atom| match atom {
            Atom::Var(own) => inner.is_outside(&Expr::Var { var: *own, dtype: rx_base::DType::INT64 }),
            Atom::Opaque(expr) => inner.is_outside(expr) && is_pure(expr),
        };
        if atoms.iter().all(outside) {
            rest.push(Term::Product(atoms, coefficient));
            continue;
        }
        let [Atom::Var(own)] = &atoms[..] else { return None };
        let (_, start, extent) = inner.loops.iter().find(|(var, ..)| var == own)?;
        let free = |expr: &Expr| !expr.uses(var) && is_pure(expr) && inner.is_outside(expr);
        if !free(start) || !free(extent) {
            return None;
        }
        rest.push(Term::Inner { start: (*start).clone(), extent: (*extent).clone(), coefficient });
    }
    Some(Bound { step, rest })
}

/// Whether an expression cannot fail and contains no loads, calls or selects.
fn is_pure(expr: &Expr) -> bool {
    expr.all(&|part| match part {
        Expr::Load { .. } | Expr::Checked { .. } | Expr::Call { .. } | Expr::Select { .. } => false,
        part => !may_divide_by_zero(part),
    })
}

/// Simplifies a statement under the assumption that the `known` comparisons all have this value.
fn with_known(stmt: &Stmt, known: &[&Expr], value: bool) -> Stmt {
    let replaced = map_stmt_shallow(
        stmt,
        &mut |expr| {
            map_expr(expr, &mut |part| match part {
                part if known.contains(&&part) => Expr::bool(value),
                Expr::Binary { op: BinaryOp::And, left, right } => left.and(*right),
                part => part,
            })
        },
        &mut |child| with_known(child, known, value),
    );
    match replaced {
        Stmt::If { condition, then, otherwise } => match condition.as_int() {
            Some(0) => otherwise.map_or(Stmt::nothing(), |part| *part),
            Some(_) => *then,
            None => Stmt::If { condition, then, otherwise },
        },
        other => other,
    }
}
