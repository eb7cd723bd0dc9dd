//! *Prefix scans*: nests in which each element is computed from the previous one along one loop, such as a cumulative
//! sum.
//!
//! ```text
//! for i, k: out[i, k] = select(k == 0, x[i, 0], out[i, k - 1] + x[i, k])
//! ```
//!
//! becomes the [`Recurrence`] along `k` with `combine` = `Add` and the value `x[i, k]`. Requires an associative
//! operation, and rows that do not share elements. Guarantees that the iterations may be grouped, so that threads can
//! scan parts of a row.

use crate::accumulate::{Loop, Nest, mentions, reads};
use crate::roles::Declined;
use crate::scope::Scope;
use rx_base::{DType, Dim};
use rx_tir::expr::{BinaryOp, CompareOp, Expr};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, substitute};
use rx_tir::stmt::{IterKind, Stmt};

/// A scan `out[…, k, …] = combine(out[…, k - 1, …], value)` along one loop. The other loops are over independent rows.
///
/// `combine` is associative and commutative, for floats up to rounding. The index along the loop is `c + k` or `c - k`,
/// so scans from the end of a row match as well.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrence {
    /// The loop along the scan.
    pub along: VarId,
    /// The operation that combines the previous element with the value.
    pub combine: BinaryOp,
    /// The buffer of the result.
    pub buffer: BufferId,
    /// The indices of the element.
    pub indices: Vec<Expr>,
    /// The value of an element before combining. It does not read the result. If `carried` is `None`, the
    /// first element is not combined with anything.
    pub value: Expr,
    /// The indices of the element before the first one, which the first one is combined with. The nest does not write
    /// it.
    pub carried: Option<Vec<Expr>>,
}

/// The stores of a nest in the two cases of a condition: where it is true, and where it is false.
struct Cases<'n> {
    /// The condition that selects the first store over the second; none if there is one store, which is then given
    /// twice.
    condition: Option<&'n Expr>,
    stores: [(&'n [Expr], &'n Expr); 2],
    buffer: BufferId,
}

impl Recurrence {
    /// Matches the nest as a scan.
    ///
    /// # Errors
    /// If it is none, for example because the operation is not associative or the rows may share elements.
    pub fn of(nest: &Nest, func: &PrimFunc) -> Result<Recurrence, Declined> {
        Declined::when(
            nest.init.is_some() || nest.predicate.is_some(),
            "requires a recurrence on the previous element; found none",
        )?;
        let none = Declined("requires a recurrence on the previous element; found none");
        let cases = cases(&nest.body).ok_or(none)?;
        Declined::when(!cases.stores.iter().any(|(_, value)| reads(value, cases.buffer)), none.0)?;
        let mut scope = Scope::new(func);
        for inner in &nest.loops {
            scope.enter_loop(inner.var, func.var(inner.var).dtype, &Expr::int(0), &inner.extent);
        }
        let mut reader = Reader { scope, func, nest };
        let found = (0..nest.loops.len()).find_map(|at| reader.along(&cases, &nest.loops[at]).transpose());
        found.unwrap_or(Err(Declined("requires a recurrence on the previous element; found none")))
    }
}

fn cases(body: &Stmt) -> Option<Cases<'_>> {
    match body {
        Stmt::Store { buffer, indices, value: Expr::Select { condition, then, otherwise }, .. } => {
            Some(Cases { condition: Some(condition), stores: [(indices, then), (indices, otherwise)], buffer: *buffer })
        }
        Stmt::Store { buffer, indices, value, .. } => {
            Some(Cases { condition: None, stores: [(indices, value), (indices, value)], buffer: *buffer })
        }
        Stmt::If { condition, then, otherwise: Some(otherwise) } => match (&**then, &**otherwise) {
            (
                Stmt::Store { buffer, indices, value, .. },
                Stmt::Store { buffer: other, indices: at, value: rest, .. },
            ) if buffer == other => {
                Some(Cases { condition: Some(condition), stores: [(indices, value), (at, rest)], buffer: *buffer })
            }
            _ => None,
        },
        _ => None,
    }
}

struct Reader<'n> {
    /// A scope inside the nest's loops.
    scope: Scope,
    func: &'n PrimFunc,
    nest: &'n Nest,
}

impl Reader<'_> {
    /// Matches the nest as a scan along a loop. Returns `None` if it is no recurrence along this loop, and an error if
    /// it is one that cannot be scanned, such as one with an operation that is not associative.
    fn along(&mut self, cases: &Cases<'_>, along: &Loop) -> Result<Option<Recurrence>, Declined> {
        let [one, other] = cases.stores;
        let (first, rest) = match cases.condition {
            None => (None, one),
            Some(condition) => match self.is_first(condition, along.var) {
                Some(true) => (Some(one), other),
                Some(false) => (Some(other), one),
                None => return Ok(None),
            },
        };
        let (indices, value) = rest;
        let Expr::Binary { op, left, right } = value else { return Ok(None) };
        let is_before = |reader: &mut Self, expr: &Expr| match expr {
            Expr::Load { buffer, indices: at, .. } if *buffer == cases.buffer => {
                reader.is_before(at, indices, along.var)
            }
            _ => false,
        };
        let (before, own) = match () {
            () if is_before(self, left) => (left, right),
            () if is_before(self, right) => (right, left),
            () => return Ok(None),
        };
        Declined::when(!is_associative(*op, own.dtype()), "requires an associative operation; found another")?;
        Declined::when(
            reads(own, cases.buffer),
            "requires one read of the result, at the previous element; found others",
        )?;
        let is_row =
            |inner: &Loop| inner.kind == IterKind::Spatial || indices.iter().any(|index| is_var(index, inner.var));
        if !self.nest.loops.iter().all(|inner| inner.var == along.var || is_row(inner)) {
            return Err(Declined("requires separate elements for each row; found rows that may share elements"));
        }
        let (value, carried) = match first {
            None => {
                Declined::when(
                    is_checked(before),
                    "requires an element before the first; found a bounds check on its index",
                )?;
                let minus_one = Expr::Int { value: -1, dtype: self.func.var(along.var).dtype };
                (own.as_ref().clone(), Some(indices.iter().map(|index| put(index, along.var, &minus_one)).collect()))
            }
            Some((at, first)) => {
                let same_place = at.len() == indices.len()
                    && at.iter().zip(indices).all(|(a, b)| self.is_same_at_start(a, b, along.var));
                Declined::when(
                    !same_place || reads(first, cases.buffer),
                    "requires a first element at index 0 that reads no result; found another",
                )?;
                (self.from(first, own, along.var), None)
            }
        };
        Ok(Some(Recurrence {
            along: along.var,
            combine: *op,
            buffer: cases.buffer,
            indices: indices.to_vec(),
            value,
            carried,
        }))
    }

    /// Returns `true` if the condition holds exactly at the loop's first value, `false` if it holds at all values but
    /// the first, and `None` if neither is recognized.
    fn is_first(&mut self, condition: &Expr, along: VarId) -> Option<bool> {
        let Expr::Compare { op, left, right } = condition else { return None };
        let (a, b) = (self.scope.integer(left)?, self.scope.integer(right)?);
        let place = self.scope.dim(&self.func.var_expr(along));
        let one = Dim::constant(1);
        // The condition as `room >= 0`. If `room` is `-k`, where `k` is the loop variable, it holds only at the first
        // value, 0. If `room` is `k - 1`, it holds at all values but the first.
        let room = match op {
            CompareOp::Eq | CompareOp::Ne => {
                let distance = &a - &b;
                return (distance == place || -&distance == place).then_some(*op == CompareOp::Eq);
            }
            CompareOp::Lt => &(&b - &a) - &one,
            CompareOp::Le => &b - &a,
            CompareOp::Gt => &(&a - &b) - &one,
            CompareOp::Ge => &a - &b,
        };
        match () {
            () if room == -&place => Some(true),
            () if room == &place - &one => Some(false),
            () => None,
        }
    }

    /// Whether `before` are the `indices` at the previous value of the loop. The loop must occur in one index only, as
    /// `c + k` or `c - k`.
    fn is_before(&mut self, before: &[Expr], indices: &[Expr], along: VarId) -> bool {
        let var = self.func.var_expr(along);
        let earlier = var.clone() - Expr::Int { value: 1, dtype: var.dtype() };
        let place = self.scope.dim(&var);
        let mut moved = 0;
        for (before, index) in before.iter().zip(indices) {
            if before.has_load() || index.has_load() {
                return false;
            }
            let own = self.scope.dim(index);
            if mentions(index, &|one| *one == along) {
                moved += 1;
                let is_free = |dim: Dim, scope: &Scope| {
                    let symbol = scope.symbol(along);
                    let mut free = true;
                    dim.for_each_symbol(&mut |name| free &= name != symbol);
                    let of_loops = |name| self.nest.loops.iter().any(|inner| scope.symbol(inner.var) == name);
                    dim.for_each_symbol(&mut |name| free &= !of_loops(name));
                    free
                };
                if !is_free(&own - &place, &self.scope) && !is_free(&own + &place, &self.scope) {
                    return false;
                }
            }
            if self.scope.dim(before) != self.scope.dim(&put(index, along, &earlier)) {
                return false;
            }
        }
        moved == 1 && before.len() == indices.len()
    }

    /// Returns the value of every element, given the value of the first and that of the others: one expression if they
    /// agree at the first element, otherwise a selection.
    fn from(&mut self, first: &Expr, rest: &Expr, along: VarId) -> Expr {
        if self.is_same_at_start(first, rest, along) {
            return rest.clone();
        }
        let var = self.func.var_expr(along);
        let start = Expr::Int { value: 0, dtype: var.dtype() };
        Expr::select(var.eq(start), first.clone(), rest.clone())
    }

    /// Whether two expressions are proved equal at the loop's first value.
    fn is_same_at_start(&mut self, a: &Expr, b: &Expr, along: VarId) -> bool {
        let start = Expr::Int { value: 0, dtype: self.func.var(along).dtype };
        let [a, b] = [a, b].map(|expr| self.normal(&put(expr, along, &start)));
        a == b
    }

    /// Normalizes the index arithmetic of the expression and removes index checks.
    fn normal(&mut self, expr: &Expr) -> Expr {
        let mut normal = |part: Expr| match &part {
            Expr::Checked { index, .. } => (**index).clone(),
            Expr::Binary { .. } if part.dtype().is_int() => {
                let dim = self.scope.dim(&part);
                self.scope.expr(&dim, part.dtype()).unwrap_or(part)
            }
            _ => part,
        };
        map_expr(expr, &mut normal)
    }
}

fn put(expr: &Expr, var: VarId, value: &Expr) -> Expr {
    substitute(expr, &|one| (one == var).then(|| value.clone()))
}

/// Whether the expression contains a checked index.
fn is_checked(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Checked { .. }))
}

/// Whether an index is the variable alone, up to casts and checks.
fn is_var(index: &Expr, var: VarId) -> bool {
    match index {
        Expr::Var { var: own, .. } => *own == var,
        Expr::Cast { value, .. } | Expr::Checked { index: value, .. } => is_var(value, var),
        _ => false,
    }
}

/// Whether values may be combined in any grouping. Sums, products, minima, maxima and bitwise operations of integers,
/// and logical operations are associative, and sums of floats are treated as such up to rounding. Products of floats
/// are not: in order, factors after a 0 cannot overflow, while grouped separately they may, and `0 * Inf` is NaN. Nor
/// are the minimum and maximum of floats, where a number after a NaN replaces it.
fn is_associative(combine: BinaryOp, dtype: DType) -> bool {
    match combine {
        BinaryOp::Add | BinaryOp::And | BinaryOp::Or => true,
        BinaryOp::Mul => !dtype.is_float(),
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => !dtype.is_float(),
        BinaryOp::Min | BinaryOp::Max => dtype.is_int(),
        _ => false,
    }
}
