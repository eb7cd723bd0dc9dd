//! Eliminates blocks: replaces their axes by the expressions bound to them, and turns predicates and `init` into
//! conditional statements. A simple loop-invariant condition of a whole loop body is hoisted out of the loop, and a
//! statement that begins the body, but is executed in the first iteration only, is peeled off. For example:
//!
//! ```text
//! for k in range(128):
//!     with T.block("sum"):
//!         vk = T.axis.reduce(128, k)
//!         with T.init():
//!             C[0] = 0
//!         C[0] = C[0] + A[vk]
//! ```
//!
//! becomes
//!
//! ```text
//! C[0] = 0
//! for k in range(128):
//!     C[0] = C[0] + A[k]
//! ```

use rx_loops::{Gemm, Scheduled, Step, WindowedSum};
use rx_tir::rewrite::{map_stmt_shallow, substitute};
use rx_tir::{BinaryOp, Block, BufferId, CompareOp, Expr, IterKind, Stmt, VarId};

/// A step of a scheduled function without blocks.
pub(crate) enum PreparedStep {
    /// A statement without blocks.
    Nest(Stmt),
    /// A matrix product.
    Gemm(Box<Gemm>),
    /// A windowed sum.
    WindowedSum(Box<WindowedSum>),
    /// A loop over steps, with a variable that starts from 0.
    Loop {
        /// The variable.
        var: VarId,
        /// The extent.
        extent: Expr,
        /// The steps of an iteration.
        body: Vec<PreparedStep>,
    },
}

impl PreparedStep {
    /// Calls `visit` on each step, those in loops included.
    pub(crate) fn each(steps: &[PreparedStep], visit: &mut dyn FnMut(&PreparedStep)) {
        for step in steps {
            visit(step);
            if let PreparedStep::Loop { body, .. } = step {
                PreparedStep::each(body, visit);
            }
        }
    }
}

/// The state of eliminating the blocks of a function.
pub(crate) struct Preparation {
    /// For each variable, the expression that replaces it, if any.
    values: Vec<Option<Expr>>,
    allocations: Vec<BufferId>,
}

impl Preparation {
    /// Returns the function's steps with the blocks eliminated, and the buffers that these blocks allocate.
    pub(crate) fn of(scheduled: &Scheduled) -> (Vec<PreparedStep>, Vec<BufferId>) {
        let mut preparation = Preparation { values: vec![None; scheduled.func.vars.len()], allocations: Vec::new() };
        let steps = preparation.steps(&scheduled.steps);
        (steps, preparation.allocations)
    }

    fn steps(&mut self, steps: &[Step]) -> Vec<PreparedStep> {
        let prepared = steps.iter().map(|step| match step {
            Step::Nest(stmt) => PreparedStep::Nest(self.stmt(stmt)),
            Step::Gemm(gemm) => PreparedStep::Gemm(gemm.clone()),
            Step::WindowedSum(window) => PreparedStep::WindowedSum(window.clone()),
            Step::Loop { var, extent, body } => {
                PreparedStep::Loop { var: *var, extent: extent.clone(), body: self.steps(body) }
            }
        });
        prepared.collect()
    }

    fn expr(&self, expr: &Expr) -> Expr {
        substitute(expr, &|var| self.values.get(var.0 as usize).cloned().flatten())
    }

    fn set(&mut self, var: VarId, value: Expr) {
        if let Some(slot) = self.values.get_mut(var.0 as usize) {
            *slot = Some(value);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Seq(statements) => Stmt::seq(statements.iter().map(|stmt| self.stmt(stmt)).collect::<Vec<_>>()),
            Stmt::For { var, start, extent, kind, body } => {
                let (start, extent) = (self.expr(start), self.expr(extent));
                match extent.as_int() {
                    Some(extent) if extent <= 0 => return Stmt::nothing(),
                    Some(1) if is_simple(&start) => {
                        self.set(*var, start);
                        return self.stmt(body);
                    }
                    _ => {}
                }
                let body = self.stmt(body);
                hoist(*var, start, extent, *kind, body)
            }
            Stmt::Block(block) => self.block(block),
            Stmt::Let { var, value, body } => {
                let value = self.expr(value);
                if value.dtype().is_int() && is_simple(&value) {
                    self.set(*var, value);
                    return self.stmt(body);
                }
                Stmt::Let { var: *var, value, body: Box::new(self.stmt(body)) }
            }
            Stmt::If { condition, then, otherwise } => {
                let condition = self.expr(condition);
                match condition.as_int() {
                    Some(0) => otherwise.as_ref().map_or(Stmt::nothing(), |part| self.stmt(part)),
                    Some(_) => self.stmt(then),
                    None => Stmt::If {
                        condition,
                        then: Box::new(self.stmt(then)),
                        otherwise: otherwise.as_ref().map(|part| Box::new(self.stmt(part))),
                    },
                }
            }
            Stmt::While { condition, body } => {
                Stmt::While { condition: self.expr(condition), body: Box::new(self.stmt(body)) }
            }
            leaf => map_stmt_shallow(leaf, &mut |expr| self.expr(expr), &mut Stmt::clone),
        }
    }

    fn block(&mut self, block: &Block) -> Stmt {
        self.allocations.extend(&block.allocations);
        let mut first = Expr::bool(true);
        for iter in &block.iters {
            let binding = self.expr(&iter.binding);
            if iter.kind == IterKind::Reduce {
                let start = self.expr(&iter.start).cast(binding.dtype());
                let at_start = if binding == start { Expr::bool(true) } else { binding.clone().eq(start) };
                first = first.and(at_start);
            }
            self.set(iter.var, binding);
        }
        let init = block.init.as_ref().map(|init| Stmt::when(first, self.stmt(init)));
        let body = self.stmt(&block.body);
        let whole = Stmt::seq(init.into_iter().chain([body]).collect::<Vec<_>>());
        match block.predicate.as_ref().map(|predicate| self.expr(predicate)) {
            None => whole,
            Some(predicate) => Stmt::when(predicate, whole),
        }
    }
}

/// The maximal size, in nodes, of a simple expression ([`is_simple`]). The limit prevents exponential growth if each
/// `let` uses the variable of the previous one twice.
const MOST_PARTS: usize = 32;

/// Whether an expression may be evaluated anywhere and more than once: it consists of at most [`MOST_PARTS`] constants,
/// variables, casts, comparisons and binary operations, and divides by positive integer constants only.
fn is_simple(expr: &Expr) -> bool {
    let (mut simple, mut parts) = (true, 0);
    expr.walk(&mut |part| {
        parts += 1;
        simple &= match part {
            Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } | Expr::Cast { .. } | Expr::Compare { .. } => true,
            Expr::Binary { op, right, .. } => match op {
                BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod | BinaryOp::Div => {
                    right.as_int().is_some_and(|divisor| divisor > 0)
                }
                _ => true,
            },
            _ => false,
        };
    });
    simple && parts <= MOST_PARTS
}

/// Creates the loop. If the body is a branch without an alternative, and its condition is simple and loop-invariant,
/// the condition is hoisted out of the loop. If the body begins with a statement that is executed in the first
/// iteration only, the statement is moved before the loop, and both are skipped if the loop has no iterations.
fn hoist(var: VarId, start: Expr, extent: Expr, kind: rx_tir::LoopKind, body: Stmt) -> Stmt {
    match body {
        // Hoist a condition that is the same in every iteration.
        Stmt::If { condition, then, otherwise: None } if is_simple(&condition) && !condition.uses(var) => {
            let then = Box::new(hoist(var, start, extent, kind, *then));
            Stmt::If { condition, then, otherwise: None }
        }
        Stmt::Seq(mut statements) => {
            let Some((first, others)) = first_round(var, &start, statements.first()) else {
                return Stmt::For { var, start, extent, kind, body: Box::new(Stmt::Seq(statements)) };
            };
            statements.remove(0);
            let rest = Stmt::seq(statements);
            let first = Stmt::when(others, first);
            let runs = match extent.as_int() {
                Some(_) => Expr::bool(true),
                None => Expr::compare(CompareOp::Gt, extent.clone(), Expr::Int { value: 0, dtype: extent.dtype() }),
            };
            let looped = Stmt::For { var, start, extent, kind, body: Box::new(rest) };
            let whole = Stmt::seq([first, looped]);
            Stmt::when(runs, whole)
        }
        body => Stmt::For { var, start, extent, kind, body: Box::new(body) },
    }
}

/// If a statement is evidently executed in the loop's first iteration only, returns it with the variable replaced by
/// the start, and the remaining conditions.
fn first_round(var: VarId, start: &Expr, stmt: Option<&Stmt>) -> Option<(Stmt, Expr)> {
    let Some(Stmt::If { condition, then, otherwise: None }) = stmt else { return None };
    let mut found = false;
    let mut others = Expr::bool(true);
    for conjunct in conjuncts(condition) {
        match conjunct {
            Expr::Compare { op: CompareOp::Eq, left, right }
                if matches!(&**left, Expr::Var { var: own, .. } if *own == var) && **right == *start =>
            {
                found = true;
            }
            other if other.uses(var) || !is_simple(other) => return None,
            other => others = others.and(other.clone()),
        }
    }
    if !found || !is_simple(start) {
        return None;
    }
    let at_start =
        rx_tir::rewrite::map_stmt(then, &mut |expr| substitute(expr, &|used| (used == var).then(|| start.clone())));
    Some((at_start, others))
}

/// Splits a condition into its conjuncts.
pub(crate) fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::Binary { op: BinaryOp::And, left, right } => {
            let mut both = conjuncts(left);
            both.extend(conjuncts(right));
            both
        }
        other => vec![other],
    }
}
