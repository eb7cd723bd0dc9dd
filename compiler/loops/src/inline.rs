//! *Element-wise fusion inside a function* (TVM: `compute_inline`): computes a temporary where it is read.
//!
//! ```text
//! for i: T[i] = A[i] + 1               ->    for i: B[i] = (A[i] + 1) * 2
//! for i: B[i] = T[i] * 2
//! ```
//!
//! Requires a temporary that one nest fills, element by element, and whose operands do not change until its last
//! reader. Guarantees the same results to the bit. [`inline`] keeps a temporary if inlining would repeat expensive
//! work, for example if overlapping windows or a matrix product read it again and again.

use crate::accumulate::{Nest, reads};
use crate::nests::top_level;
use crate::scope::Scope;
use rx_base::Dim;
use rx_base::symbolic::{Answer, Bounds, prove};
use rx_tir::expr::{BinaryOp, Expr, Intrinsic};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, map_stmt, substitute};
use rx_tir::stmt::{Block, IterKind, Stmt};

/// The maximum number of operations and loads of a value that [`inline`] computes again at each of several loads. A
/// more expensive value stays in its temporary, unless its only reader can compute it once, in a `let`.
const CHEAP: usize = 6;

/// The maximum number of subexpressions of an expression after inlining. If one would be larger, the temporary stays.
const MAX_PARTS: usize = 2000;

/// Inlines the temporaries that one nest fills element by element, where this repeats no expensive work. Such
/// temporaries that nothing reads are removed.
///
/// Results are the same to the bit: each element is the same expression of the same dtype, evaluated at another time.
pub fn inline(func: &PrimFunc) -> PrimFunc {
    inlined(func, false)
}

/// Inlines as [`inline`] does, even if work is repeated. The lowering calls it for functions that may become one
/// kernel, which keeps frequent operands in registers or shared memory.
pub fn inline_all(func: &PrimFunc) -> PrimFunc {
    inlined(func, true)
}

fn inlined(func: &PrimFunc, is_all_worth: bool) -> PrimFunc {
    let mut func = func.clone();
    let (mut allocations, mut statements) = (Vec::new(), Vec::new());
    top_level(&func.body, &mut allocations, &mut statements);
    // Constants, copies and permutations are inlined first. A temporary that stays then has the layout in which it is
    // computed, not that of a later copy.
    for is_wanted in [(|producer| is_move(&producer.value)) as fn(&Producer) -> bool, |_| true] {
        let mut at = 0;
        while at < statements.len() {
            if let Some(producer) = Producer::of(&statements[at], &func, &allocations).filter(is_wanted)
                && let Some(rest) = producer.readers_with_it(&mut func, (&statements, at), is_all_worth)
            {
                statements.truncate(at);
                statements.extend(rest);
                allocations.retain(|buffer| *buffer != producer.buffer);
            } else {
                at += 1;
            }
        }
    }
    func.body = Stmt::with_buffers(allocations, Stmt::seq(statements));
    func
}

/// A nest `buffer[axes] = value(axes)` over all elements of a temporary.
struct Producer {
    buffer: BufferId,
    /// The variable of each axis; none for the index 0 of an axis of extent 1.
    axes: Vec<Option<VarId>>,
    value: Expr,
}

impl Producer {
    fn of(stmt: &Stmt, func: &PrimFunc, allocations: &[BufferId]) -> Option<Producer> {
        let nest = Nest::of(stmt, func)?;
        let Stmt::Store { buffer, indices, value, .. } = &nest.body else { return None };
        if !allocations.contains(buffer) || nest.init.is_some() || nest.predicate.is_some() || reads(value, *buffer) {
            return None;
        }
        let spatial = nest.loops.iter().all(|l| l.kind == IterKind::Spatial || indices.contains(&func.var_expr(l.var)));
        let mut scope = Scope::new(func);
        let mut axes = Vec::new();
        for (index, extent) in indices.iter().zip(&func.buffer(*buffer).shape) {
            let extent = scope.dim(extent);
            axes.push(match index {
                Expr::Int { value: 0, .. } if extent.as_constant() == Some(1) => None,
                Expr::Var { var, .. } if !axes.contains(&Some(*var)) => {
                    let of = nest.loops.iter().find(|inner| inner.var == *var)?;
                    let covered = scope.dim(&of.extent);
                    (prove::equal(&covered, &extent, &Bounds::default()) == Answer::Proved).then_some(Some(*var))?
                }
                _ => return None,
            });
        }
        let all = axes.iter().flatten().count() == nest.loops.len();
        (spatial && all).then(|| Producer { buffer: *buffer, axes, value: value.clone() })
    }

    /// Returns the statements after the producer's with the buffer inlined, or `None` if the buffer stays.
    fn readers_with_it(
        &self,
        func: &mut PrimFunc,
        (statements, at): (&[Stmt], usize),
        is_all_worth: bool,
    ) -> Option<Vec<Stmt>> {
        let (before, rest) = (&statements[..at], &statements[at + 1..]);
        let touched = |stmt: &Stmt| reads_in(stmt, self.buffer) > 0 || stores_in(stmt, &|buffer| buffer == self.buffer);
        if before.iter().any(touched) || rest.iter().any(|stmt| stores_in(stmt, &|buffer| buffer == self.buffer)) {
            return None;
        }
        // No statement up to the last reader, itself included, may change the operands of the value.
        let last = rest.iter().rposition(|stmt| reads_in(stmt, self.buffer) > 0);
        let upto = last.map_or(0, |last| last + 1);
        let sources = |buffer: BufferId| reads(&self.value, buffer);
        if rest[..upto].iter().any(|stmt| stores_in(stmt, &sources)) {
            return None;
        }
        let readers: Vec<&Stmt> = rest[..upto].iter().filter(|stmt| reads_in(stmt, self.buffer) > 0).collect();
        let uses: usize = readers.iter().map(|stmt| reads_in(stmt, self.buffer)).sum();
        let once = readers.iter().all(|stmt| self.is_read_once(stmt, func));
        let worth = match once {
            _ if is_all_worth => true,
            true => uses <= 1 || cost(&self.value).is_some_and(|cost| cost <= CHEAP),
            false => is_move(&self.value),
        };
        let by_let = once && readers.len() == 1 && !worth;
        if !worth && !by_let {
            return None;
        }
        let mut inlined = Vec::with_capacity(rest.len());
        for stmt in rest {
            let stmt = match reads_in(stmt, self.buffer) {
                0 => stmt.clone(),
                _ if by_let => self.bound_in(stmt, func)?,
                _ => map_stmt(stmt, &mut |expr| self.replaced(expr, func)),
            };
            let mut largest = 0;
            stmt.walk(&mut |part| largest = part.expressions().into_iter().map(Expr::size).fold(largest, usize::max));
            if largest > MAX_PARTS {
                return None;
            }
            inlined.push(stmt);
        }
        Some(inlined)
    }

    /// Estimates whether each load of the buffer in a nest reads each element at most once. Every loop of more than one
    /// iteration must occur in the load's indices. If several loops occur in one index, as for overlapping windows, the
    /// nest must have no more iterations than the buffer has elements. Returns `false` if the statement is no nest.
    fn is_read_once(&self, stmt: &Stmt, func: &PrimFunc) -> bool {
        let Some(nest) = Nest::of(stmt, func) else { return false };
        let mut scope = Scope::new(func);
        let mut count = |extents: &mut dyn Iterator<Item = &Expr>| {
            extents.fold(Dim::constant(1), |count, extent| &count * &scope.dim(extent))
        };
        let iterations = count(&mut nest.loops.iter().map(|inner| &inner.extent));
        let elements = count(&mut func.buffer(self.buffer).shape.iter());
        let fewer = !iterations.is_error()
            && !elements.is_error()
            && prove::at_least(&elements, &iterations, &Bounds::default()) == Answer::Proved;
        let mut once = true;
        let mut look = |expr: &Expr| {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices, .. } = part
                    && *buffer == self.buffer
                {
                    let of = |index: &Expr| nest.loops.iter().filter(|inner| index.uses(inner.var)).count();
                    let named = |var: VarId| indices.iter().any(|index| index.uses(var));
                    once &= nest.loops.iter().all(|inner| inner.extent.as_int() == Some(1) || named(inner.var));
                    once &= fewer || indices.iter().all(|index| of(index) <= 1);
                }
            });
        };
        nest.predicate.iter().for_each(&mut look);
        for part in nest.init.iter().chain([&nest.body]) {
            part.walk(&mut |stmt| stmt.expressions().into_iter().for_each(&mut look));
        }
        once
    }

    fn element(&self, indices: &[Expr], func: &PrimFunc) -> Expr {
        substitute(&self.value, &|var| {
            let at = self.axes.iter().position(|axis| *axis == Some(var))?;
            Some(indices.get(at)?.clone().cast(func.var(var).dtype))
        })
    }

    fn replaced(&self, expr: &Expr, func: &PrimFunc) -> Expr {
        map_expr(expr, &mut |part| match part {
            Expr::Load { buffer, indices, .. } if buffer == self.buffer => self.element(&indices, func),
            other => other,
        })
    }

    /// Binds the value by a `let` before the one store of a nest. Requires that all loads of the store read the same
    /// element, and that one of them is evaluated whatever the conditions are. Returns `None` otherwise, and for a
    /// statement of another form.
    fn bound_in(&self, stmt: &Stmt, func: &mut PrimFunc) -> Option<Stmt> {
        match stmt {
            Stmt::Store { value, .. } => {
                let indices = self.one_element(stmt)?;
                always_reads(value, self.buffer).then_some(())?;
                let buffer = func.buffer(self.buffer);
                let (variable, dtype) = (buffer.name, buffer.dtype);
                let var = func.add_var(variable, dtype);
                let bound = func.var_expr(var);
                let body = map_stmt(stmt, &mut |expr| {
                    map_expr(expr, &mut |part| match part {
                        Expr::Load { buffer, .. } if buffer == self.buffer => bound.clone(),
                        other => other,
                    })
                });
                Some(Stmt::Let { var, value: self.element(&indices, func), body: Box::new(body) })
            }
            // Other producers' `let`s come first: the new one is placed directly before its reader.
            Stmt::Let { var, value, body } if !reads(value, self.buffer) => {
                let body = Box::new(self.bound_in(body, func)?);
                Some(Stmt::Let { var: *var, value: value.clone(), body })
            }
            Stmt::For { body, .. } => {
                let mut inner = self.bound_in(body, func)?;
                Some(rx_tir::rewrite::map_children(stmt, &mut |_| std::mem::replace(&mut inner, Stmt::nothing())))
            }
            Stmt::Block(block) if block.init.as_ref().is_none_or(|init| reads_in(init, self.buffer) == 0) => {
                let body = self.bound_in(&block.body, func)?;
                Some(Stmt::Block(Box::new(Block { body, ..(**block).clone() })))
            }
            _ => None,
        }
    }

    /// Returns the indices at which a statement reads the buffer, if all loads have the same indices and these do not
    /// read the buffer themselves.
    fn one_element(&self, stmt: &Stmt) -> Option<Vec<Expr>> {
        let mut found: Vec<&Vec<Expr>> = Vec::new();
        for expr in stmt.expressions() {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices, .. } = part
                    && *buffer == self.buffer
                {
                    found.push(indices);
                }
            });
        }
        let (first, others) = found.split_first()?;
        let inner = first.iter().any(|index| reads(index, self.buffer));
        (!inner && others.iter().all(|indices| indices == first)).then(|| (*first).clone())
    }
}

/// Whether evaluating the expression reads the buffer for all values of its conditions.
fn always_reads(expr: &Expr, buffer: BufferId) -> bool {
    match expr {
        Expr::Load { buffer: read, .. } if *read == buffer => true,
        Expr::Select { condition, then, otherwise } => {
            always_reads(condition, buffer) || always_reads(then, buffer) && always_reads(otherwise, buffer)
        }
        Expr::Binary { op: BinaryOp::And | BinaryOp::Or, left, .. } => always_reads(left, buffer),
        other => other.children().into_iter().any(|part| always_reads(part, buffer)),
    }
}

/// Counts the loads of the buffer in the statement's text.
fn reads_in(stmt: &Stmt, wanted: BufferId) -> usize {
    let mut count = 0;
    stmt.walk(&mut |part| {
        for expr in part.expressions() {
            expr.walk(&mut |part| {
                count += usize::from(matches!(part, Expr::Load { buffer, .. } if *buffer == wanted));
            });
        }
    });
    count
}

fn stores_in(stmt: &Stmt, wanted: &dyn Fn(BufferId) -> bool) -> bool {
    stmt.any(&|part| matches!(part, Stmt::Store { buffer, .. } if wanted(*buffer)))
}

/// Whether the value is a constant, or an element of a buffer whose indices consist of integers, variables, casts, `+`,
/// `-` and `*`.
fn is_move(value: &Expr) -> bool {
    let simple = |index: &Expr| {
        index.all(&|part| {
            matches!(part, Expr::Int { .. } | Expr::Var { .. } | Expr::Cast { .. })
                || matches!(part, Expr::Binary { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, .. })
        })
    };
    match value {
        Expr::Int { .. } | Expr::Float { .. } => true,
        Expr::Load { indices, .. } => indices.iter().all(simple),
        _ => false,
    }
}

/// Counts the operations and loads of a value without its index arithmetic. Returns `None` if one of them is an
/// intrinsic other than `abs`, `floor`, `ceil` and `copysign`, or a division or remainder of floats.
fn cost(value: &Expr) -> Option<usize> {
    let own = match value {
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } => return Some(0),
        Expr::Load { .. } => return Some(1),
        Expr::Call { function: Intrinsic::Abs | Intrinsic::Floor | Intrinsic::Ceil | Intrinsic::CopySign, .. } => 1,
        Expr::Call { .. } => return None,
        Expr::Binary { op: BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorMod, left, .. }
            if left.dtype().is_float() =>
        {
            return None;
        }
        _ => 1,
    };
    value.children().into_iter().try_fold(own, |sum, part| Some(sum + cost(part)?))
}
