//! Running sums and their like: nests whose elements are each made of the one before, along one loop.

use crate::accumulate::{Loop, Nest, mentions, reads};
use crate::roles::Declined;
use crate::scope::Scope;
use rx_base::{DType, Dim};
use rx_tir::expr::{BinaryOp, CompareOp, Expr};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, substitute};
use rx_tir::stmt::{IterKind, Stmt};

/// `out[…, k, …] = combine(out[…, k - 1, …], value)` for the values of a loop in order; the other loops are of elements that
/// have nothing to do with each other.
///
/// `combine` is associative and commutative, of floats but for rounding. The place along the loop may be any `c + k` or
/// `c - k`; so a scan that runs from the end is one, too.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrence {
    /// The loop.
    pub along: VarId,
    /// How an element is made of the one before and its own value.
    pub combine: BinaryOp,
    /// What is written.
    pub buffer: BufferId,
    /// The element.
    pub indices: Vec<Expr>,
    /// What the element is combined with; does not read the buffer. The first element is this alone, where nothing is carried.
    pub value: Expr,
    /// The element before the first one, which the first one is combined with: written by nothing in the nest.
    pub carried: Option<Vec<Expr>>,
}

/// The stores of a nest: what stands at the first value of a loop, and what at every other.
struct Cases<'n> {
    /// The condition, and what is stored where it holds or does not hold.
    condition: Option<&'n Expr>,
    stores: [(&'n [Expr], &'n Expr); 2],
    buffer: BufferId,
}

impl Recurrence {
    /// The recurrence a nest is.
    ///
    /// # Errors
    /// Where it is none.
    pub fn of(nest: &Nest, func: &PrimFunc) -> Result<Recurrence, Declined> {
        Declined::when(nest.init.is_some() || nest.predicate.is_some(), "no element is made of the one before")?;
        let cases = cases(&nest.body).ok_or(Declined("no element is made of the one before"))?;
        let mut scope = Scope::new(func);
        for inner in &nest.loops {
            scope.enter_loop(inner.var, func.var(inner.var).dtype, &Expr::int(0), &inner.extent);
        }
        let mut reader = Reader { scope, func, nest };
        let found = (0..nest.loops.len()).find_map(|at| reader.along(&cases, &nest.loops[at]).transpose());
        found.unwrap_or(Err(Declined("no element is made of the one before")))
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
    /// Has the nest's loops entered.
    scope: Scope,
    func: &'n PrimFunc,
    nest: &'n Nest,
}

impl Reader<'_> {
    /// The recurrence along a loop. `None` where it is none along this one; an error where it is one that must stay in order.
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
        Declined::when(!is_associative(*op, own.dtype()), "elements can be combined in one order only")?;
        Declined::when(reads(own, cases.buffer), "an element needs others than the one before")?;
        let is_row =
            |inner: &Loop| inner.kind == IterKind::Spatial || indices.iter().any(|index| is_var(index, inner.var));
        if !self.nest.loops.iter().all(|inner| inner.var == along.var || is_row(inner)) {
            return Err(Declined("rows may share elements"));
        }
        let (value, carried) = match first {
            None => {
                Declined::when(is_checked(before), "there may be no element before the first")?;
                let minus_one = Expr::Int { value: -1, dtype: self.func.var(along.var).dtype };
                (own.as_ref().clone(), Some(indices.iter().map(|index| put(index, along.var, &minus_one)).collect()))
            }
            Some((at, first)) => {
                let same_place = at.len() == indices.len()
                    && at.iter().zip(indices).all(|(a, b)| self.is_same_at_start(a, b, along.var));
                Declined::when(!same_place || reads(first, cases.buffer), "the first element stands elsewhere")?;
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

    /// Whether a condition holds at a loop's first value and at no other, or at all others and not at the first.
    fn is_first(&mut self, condition: &Expr, along: VarId) -> Option<bool> {
        let Expr::Compare { op, left, right } = condition else { return None };
        let (a, b) = (self.scope.integer(left)?, self.scope.integer(right)?);
        let place = self.scope.dim(&self.func.var_expr(along));
        let one = Dim::constant(1);
        // What is not negative exactly where the condition holds: `-k`, or `k - 1`.
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

    /// Whether `before` is where `indices` are one value of the loop earlier. They are on one axis `c + k` or `c - k`, and the
    /// loop is on no other.
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

    /// The value of every element, from what stands at the first one and at every other: one expression where they agree.
    fn from(&mut self, first: &Expr, rest: &Expr, along: VarId) -> Expr {
        if self.is_same_at_start(first, rest, along) {
            return rest.clone();
        }
        let var = self.func.var_expr(along);
        let start = Expr::Int { value: 0, dtype: var.dtype() };
        Expr::select(var.eq(start), first.clone(), rest.clone())
    }

    /// Whether two expressions are the same where the loop is at its first value.
    fn is_same_at_start(&mut self, a: &Expr, b: &Expr, along: VarId) -> bool {
        let start = Expr::Int { value: 0, dtype: self.func.var(along).dtype };
        let [a, b] = [a, b].map(|expr| self.normal(&put(expr, along, &start)));
        a == b
    }

    /// The expression with its index arithmetic in normal form, where it has one.
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

/// Whether an index in it is not proved in range.
fn is_checked(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Checked { .. }))
}

/// Whether an index is a variable alone.
fn is_var(index: &Expr, var: VarId) -> bool {
    match index {
        Expr::Var { var: own, .. } => *own == var,
        Expr::Cast { value, .. } | Expr::Checked { index: value, .. } => is_var(value, var),
        _ => false,
    }
}

/// Whether values may be combined in any grouping: exactly of integers, sums of floats but for rounding. Factors behind a 0 may be
/// infinite among themselves, which in order they never are; of the smaller and the larger of floats a NaN is forgotten by what
/// comes after it. There the order counts.
fn is_associative(combine: BinaryOp, dtype: DType) -> bool {
    match combine {
        BinaryOp::Add | BinaryOp::And | BinaryOp::Or => true,
        BinaryOp::Mul => !dtype.is_float(),
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => !dtype.is_float(),
        BinaryOp::Min | BinaryOp::Max => dtype.is_int(),
        _ => false,
    }
}
