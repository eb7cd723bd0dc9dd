//! Vectorization: decides which loops become vector loops.
//!
//! A loop can be vectorized mainly if every store moves by one element with the loop variable, every load is invariant
//! or moves by a constant of at most 4 elements in either direction, no iteration accesses elements that another
//! iteration writes, and vectors support the operations. Loads that move by one element become vector loads; other
//! loads that move are gathered lane by lane. A reduction into loop-invariant elements is vectorized with partial
//! results.
//!
//! ```text
//! C[i] = A[i] + B[0]       vector load of A, broadcast of B
//! C[i] = A[2 * i]          gathered, if the loop does enough other work
//! C[2 * i] = A[i]          not vectorized: the store moves by two elements
//! C[i] = C[i + 1]          not vectorized: iteration i + 1 writes C[i + 1]
//! C[0] = C[0] + A[i]       partial results
//! ```

use super::promote::{Candidate, update};
use super::{Emitter, vector_type};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_loops::poly::{Atom, Poly, Stride};
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, Stmt, VarId};

/// The parameters of a vectorized loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePlan {
    /// Lanes of a vector.
    pub(super) lanes: u32,
    /// The number of vectors for each iteration of the unrolled loop.
    pub(super) unroll: u32,
}

/// The largest stride, in elements, at which gathering lanes one by one is worthwhile: the elements of one vector then
/// span at most 52 bytes (4 elements of 4 bytes with stride 4).
const FARTHEST: u64 = 4;

/// The error that a construct cannot be vectorized.
struct NotVectorizable;

type Scanned<T> = Result<T, NotVectorizable>;

/// The state of the analysis of a loop's body.
struct Scan<'s, 'a, 'e> {
    emitter: &'a Emitter<'e>,
    var: VarId,
    lanes: u32,
    /// Variables that `let`s in the body define, and whether they differ by lane.
    local: Vec<(VarId, bool)>,
    inner: Vec<VarId>,
    stores: Vec<(BufferId, &'s [Expr])>,
    gathers: u32,
    weight: u32,
}

impl Emitter<'_> {
    /// Returns the plan of a loop if it can be vectorized, is not part of a vectorized loop, and is worth it: loads
    /// that are gathered need enough other work.
    pub(super) fn lane_plan(&self, stmt: &Stmt) -> Option<LanePlan> {
        let Stmt::For { var, extent, body, .. } = stmt else { return None };
        if self.lane.is_some() {
            return None;
        }
        if let Some((plan, _)) = self.partial_plan(stmt) {
            return Some(plan);
        }
        [4, 2].into_iter().find_map(|lanes| {
            let count = extent.as_int().unwrap_or(i64::MAX);
            if count < i64::from(lanes) {
                return None;
            }
            let mut scan = Scan::new(self, *var, lanes);
            scan.stmt(body).ok()?;
            if scan.stores.is_empty() || !scan.is_free_of_conflicts(body) {
                return None;
            }
            let worth = !scan.inner.is_empty() || scan.weight > 8;
            if scan.gathers > 0 && !worth {
                return None;
            }
            let most = if scan.gathers > 0 || scan.weight > 60 {
                1
            } else if scan.weight > 16 {
                2
            } else {
                4
            };
            Some(LanePlan { lanes, unroll: fitting(most, lanes, count) })
        })
    }

    /// Returns the plan of a nest's innermost loop if it only updates these elements, and the operation of each update.
    pub(super) fn reduction_plan(
        &self,
        stmt: &Stmt,
        candidates: &[Candidate],
    ) -> Option<(LanePlan, Vec<(BufferId, BinaryOp)>)> {
        // In a vectorized loop, each lane updates a separate element, which needs no partial results.
        if self.lane.is_some() {
            return None;
        }
        let mut innermost = stmt;
        while let Stmt::For { body, .. } = innermost {
            match &**body {
                inner @ Stmt::For { .. } => innermost = inner,
                _ => break,
            }
        }
        let known: Vec<(BufferId, &[Expr])> =
            candidates.iter().map(|candidate| (candidate.buffer, &candidate.indices[..])).collect();
        self.reduction(innermost, &known)
    }

    /// Returns the plan of a loop that updates elements with partial results.
    fn partial_plan(&self, stmt: &Stmt) -> Option<(LanePlan, Vec<(BufferId, BinaryOp)>)> {
        let known = self.elements_with_partial_results();
        if known.is_empty() { None } else { self.reduction(stmt, &known) }
    }

    fn reduction(&self, stmt: &Stmt, known: &[(BufferId, &[Expr])]) -> Option<(LanePlan, Vec<(BufferId, BinaryOp)>)> {
        let Stmt::For { var, extent, body, .. } = stmt else { return None };
        let count = extent.as_int().unwrap_or(i64::MAX);
        [4, 2].into_iter().find_map(|lanes| {
            if count < 2 * i64::from(lanes) {
                return None;
            }
            let mut scan = Scan::new(self, *var, lanes);
            let mut ops = Vec::new();
            scan.updates(body, known, &mut ops).ok()?;
            if ops.is_empty() || scan.gathers > 0 {
                return None;
            }
            let most = if scan.weight > 24 || ops.len() > 1 { 2 } else { 4 };
            Some((LanePlan { lanes, unroll: fitting(most, lanes, count) }, ops))
        })
    }

    /// Whether each index is evidently in range: a constant, or a loop variable (or a cast of one to an integer dtype
    /// that holds its values) whose values are not negative and below the axis's extent.
    pub(super) fn always_in_range(&self, buffer: BufferId, indices: &[Expr]) -> bool {
        let shape = &self.func.buffer(buffer).shape;
        shape.len() == indices.len()
            && shape.iter().zip(indices).all(|(extent, index)| match index {
                Expr::Int { value, .. } => extent.as_int().is_some_and(|extent| (0..extent).contains(value)),
                Expr::Cast { dtype, value } if dtype.is_int() => match &**value {
                    Expr::Var { var, dtype: own } => {
                        let holds = value_bits(*dtype) >= value_bits(*own)
                            || extent.as_int().is_some_and(|extent| extent <= 1 << value_bits(*dtype));
                        holds && self.stays_below(*var, extent)
                    }
                    _ => false,
                },
                Expr::Var { var, .. } => self.stays_below(*var, extent),
                _ => false,
            })
    }

    fn stays_below(&self, var: VarId, extent: &Expr) -> bool {
        let Some(Some((start, count))) = self.ranges.get(var.0 as usize) else { return false };
        match (start.as_int(), count.as_int(), extent.as_int()) {
            (Some(start), Some(count), Some(extent)) => {
                start >= 0 && start.checked_add(count).is_some_and(|end| end <= extent)
            }
            (Some(0), _, _) => count == extent,
            _ => false,
        }
    }
}

/// Returns the number of bits of an integer dtype without the sign bit.
fn value_bits(dtype: DType) -> u32 {
    u32::from(dtype.bits) - u32::from(dtype.code == TypeCode::Int)
}

/// Returns the unroll factor: `most`, halved until a loop of `count` iterations fills the vectors or one vector
/// remains. For example, with `most` = 4, 4 lanes and 10 iterations, the factor is 2: four vectors have 16 lanes, two
/// have 8.
fn fitting(most: u32, lanes: u32, count: i64) -> u32 {
    let mut unroll = most;
    while unroll > 1 && i64::from(unroll * lanes) > count {
        unroll /= 2;
    }
    unroll
}

impl<'s, 'a, 'e> Scan<'s, 'a, 'e> {
    fn new(emitter: &'a Emitter<'e>, var: VarId, lanes: u32) -> Scan<'s, 'a, 'e> {
        Scan { emitter, var, lanes, local: Vec::new(), inner: Vec::new(), stores: Vec::new(), gathers: 0, weight: 0 }
    }

    fn stmt(&mut self, stmt: &'s Stmt) -> Scanned<()> {
        match stmt {
            Stmt::Seq(statements) => statements.iter().try_for_each(|stmt| self.stmt(stmt)),
            Stmt::For { var, start, extent, body, .. } => {
                self.uniform(start)?;
                self.uniform(extent)?;
                self.inner.push(*var);
                self.stmt(body)
            }
            Stmt::Store { buffer, indices, value, .. } => {
                if self.stride(*buffer, indices)? != Stride::Constant(1) {
                    return Err(NotVectorizable);
                }
                self.in_memory(self.emitter.func.buffer(*buffer).dtype)?;
                self.varies(value)?;
                self.stores.push((*buffer, indices));
                Ok(())
            }
            Stmt::Let { var, value, body } => {
                let varies = self.varies(value)?;
                self.local.push((*var, varies));
                self.stmt(body)
            }
            Stmt::If { condition, then, otherwise } => {
                self.uniform(condition)?;
                self.stmt(then)?;
                otherwise.as_ref().map_or(Ok(()), |part| self.stmt(part))
            }
            Stmt::Assert { condition, .. } => self.uniform(condition),
            Stmt::Evaluate(value) => self.uniform(value),
            Stmt::While { .. } | Stmt::Block(_) => Err(NotVectorizable),
        }
    }

    /// Collects the updates of known elements; fails if one cannot be vectorized with partial results, for example of a
    /// narrow float, or if the body contains other statements than these, `let`s and sequences, or two updates of one
    /// buffer.
    fn updates(
        &mut self,
        stmt: &'s Stmt,
        known: &[(BufferId, &[Expr])],
        ops: &mut Vec<(BufferId, BinaryOp)>,
    ) -> Scanned<()> {
        match stmt {
            Stmt::Seq(statements) => statements.iter().try_for_each(|stmt| self.updates(stmt, known, ops)),
            Stmt::Let { var, value, body } => {
                self.free_of(value, known)?;
                let varies = self.varies(value)?;
                self.local.push((*var, varies));
                self.updates(body, known, ops)
            }
            Stmt::Store { buffer, indices, value, .. } => {
                let is_known = known.iter().any(|(own, at)| own == buffer && *at == &indices[..]);
                let (op, added) = update(*buffer, indices, value).filter(|_| is_known).ok_or(NotVectorizable)?;
                let dtype = value.dtype();
                self.vector(dtype)?;
                // Partial results of a narrow float would round differently.
                if dtype.is_float() && dtype.bits < 32 || ops.iter().any(|(own, _)| own == buffer) {
                    return Err(NotVectorizable);
                }
                self.free_of(added, known)?;
                self.varies(added)?;
                ops.push((*buffer, op));
                Ok(())
            }
            _ => Err(NotVectorizable),
        }
    }

    fn free_of(&self, expr: &Expr, known: &[(BufferId, &[Expr])]) -> Scanned<()> {
        let is_known = |buffer: &BufferId| known.iter().any(|(own, _)| own == buffer);
        let reads = expr.any(&|part| matches!(part, Expr::Load { buffer, .. } if is_known(buffer)));
        if reads { Err(NotVectorizable) } else { Ok(()) }
    }

    fn vector(&self, dtype: DType) -> Scanned<()> {
        // Unsigned 64-bit lanes cannot be compared.
        if self.lanes == 2 && dtype.code == TypeCode::UInt {
            return Err(NotVectorizable);
        }
        vector_type(dtype, self.lanes).map(drop).ok_or(NotVectorizable)
    }

    /// Fails unless vectors of the dtype can be loaded and stored. With two lanes, only those of 8-byte elements can.
    fn in_memory(&self, dtype: DType) -> Scanned<()> {
        self.vector(dtype)?;
        if self.lanes == 2 && dtype.bytes() != 8 { Err(NotVectorizable) } else { Ok(()) }
    }

    fn uniform(&mut self, expr: &Expr) -> Scanned<()> {
        if self.varies(expr)? { Err(NotVectorizable) } else { Ok(()) }
    }

    fn differs(&self, var: VarId) -> bool {
        var == self.var || self.local.iter().any(|(own, varies)| *own == var && *varies)
    }

    fn stride(&self, buffer: BufferId, indices: &[Expr]) -> Scanned<Stride> {
        let element = Poly::element(self.emitter.func, buffer, indices).ok_or(NotVectorizable)?;
        for atom in element.terms.iter().flat_map(|(atoms, _)| atoms) {
            let local = match atom {
                Atom::Var(var) => *var != self.var && self.differs(*var),
                Atom::Opaque(expr) => expr.any(&|part| match part {
                    Expr::Var { var, .. } => self.differs(*var),
                    Expr::Load { buffer, indices, .. } => {
                        let element = Poly::element(self.emitter.func, *buffer, indices);
                        element.map(|poly| poly.stride(self.var)) != Some(Stride::Invariant)
                    }
                    _ => false,
                }),
            };
            if local {
                return Err(NotVectorizable);
            }
        }
        Ok(element.stride(self.var))
    }

    /// Whether an expression differs by lane; fails if it cannot be vectorized.
    fn varies(&mut self, expr: &Expr) -> Scanned<bool> {
        let varies = match expr {
            Expr::Int { .. } | Expr::Float { .. } => false,
            Expr::Var { var, .. } => self.differs(*var),
            Expr::Load { buffer, indices, dtype } => match self.stride(*buffer, indices)? {
                Stride::Invariant => false,
                Stride::Constant(stride) => {
                    if stride == 1 {
                        self.in_memory(*dtype)?;
                    } else if stride.unsigned_abs() <= FARTHEST {
                        self.gathers += 1;
                    } else {
                        return Err(NotVectorizable);
                    }
                    true
                }
                Stride::Other => return Err(NotVectorizable),
            },
            Expr::Cast { dtype, value } => {
                let varies = self.varies(value)?;
                let (from, to) = (value.dtype(), *dtype);
                if varies && self.lanes == 2 && from.is_float() != to.is_float() && !to.is_bool() {
                    return Err(NotVectorizable);
                }
                varies
            }
            Expr::Unary { value, .. } => self.varies(value)?,
            Expr::Binary { op, left, right } => self.binary(*op, left, right)?,
            Expr::Compare { left, right, .. } => {
                let (left, right) = self.both(left, right)?;
                left || right
            }
            Expr::Select { condition, then, otherwise } => {
                let varies = self.varies(condition)?;
                let (one, other) = self.both(then, otherwise)?;
                if varies && !(self.emitter.speculatable(then) && self.emitter.speculatable(otherwise)) {
                    return Err(NotVectorizable);
                }
                varies || one || other
            }
            Expr::Call { function, args, .. } => self.call(*function, args)?,
            Expr::Checked { index, extent, .. } => {
                self.uniform(index)?;
                self.uniform(extent)?;
                false
            }
        };
        if varies {
            self.weight += 1;
            self.vector(expr.dtype())?;
        }
        Ok(varies)
    }

    /// Whether each operand differs by lane. If one does, both must have vector types.
    fn both(&mut self, left: &Expr, right: &Expr) -> Scanned<(bool, bool)> {
        let (a, b) = (self.varies(left)?, self.varies(right)?);
        if a || b {
            self.vector(left.dtype())?;
            self.vector(right.dtype())?;
        }
        Ok((a, b))
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Scanned<bool> {
        let shift = matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight);
        let division = matches!(
            op,
            BinaryOp::Div | BinaryOp::TruncDiv | BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod
        );
        if shift {
            self.uniform(right)?;
            return self.varies(left);
        }
        let (left_varies, right_varies) = self.both(left, right)?;
        let varies = left_varies || right_varies;
        if varies && division && !left.dtype().is_float() {
            return Err(NotVectorizable);
        }
        if left_varies && matches!(op, BinaryOp::And | BinaryOp::Or) && !self.emitter.speculatable(right) {
            return Err(NotVectorizable);
        }
        Ok(varies)
    }

    fn call(&mut self, function: Intrinsic, args: &[Expr]) -> Scanned<bool> {
        let mut varies = false;
        for arg in args {
            varies |= self.varies(arg)?;
        }
        let Some(of) = args.first().map(Expr::dtype) else { return Err(NotVectorizable) };
        if !varies {
            return Ok(false);
        }
        for arg in args {
            self.vector(arg.dtype())?;
        }
        let simple = matches!(
            function,
            Intrinsic::Abs
                | Intrinsic::Ceil
                | Intrinsic::Floor
                | Intrinsic::Trunc
                | Intrinsic::NearbyInt
                | Intrinsic::Round
                | Intrinsic::IsNan
                | Intrinsic::IsInf
                | Intrinsic::IsFinite
        );
        if !of.is_float() && !simple || function == Intrinsic::Reinterpret {
            return Err(NotVectorizable);
        }
        self.weight += if simple || matches!(function, Intrinsic::Sqrt | Intrinsic::Rsqrt) { 2 } else { 20 };
        Ok(true)
    }

    /// Whether it is evident that no iteration accesses an element that another iteration writes: all accesses to a
    /// buffer that is stored to have the same indices, and the indices keep iterations apart.
    fn is_free_of_conflicts(&self, body: &'s Stmt) -> bool {
        let mut loads = Vec::new();
        body.walk(&mut |stmt| {
            for expr in stmt.expressions() {
                expr.walk(&mut |part| {
                    if let Expr::Load { buffer, indices, .. } = part {
                        loads.push((*buffer, &indices[..]));
                    }
                });
            }
        });
        self.stores.iter().all(|(buffer, indices)| {
            let same = |other: &(BufferId, &[Expr])| other.0 != *buffer || other.1 == *indices;
            loads.iter().all(same) && self.stores.iter().all(same) && self.keeps_apart(indices)
        })
    }

    /// Whether the indices of a store use no variable of an inner loop, or it is evident that different values of the
    /// variables of this and the inner loops address different elements: each index is a different variable, or an
    /// expression that uses none of these variables.
    fn keeps_apart(&self, indices: &[Expr]) -> bool {
        if !indices.iter().any(|index| self.inner.iter().any(|var| index.uses(*var))) {
            return true;
        }
        let mut seen = Vec::new();
        indices.iter().all(|index| match index {
            Expr::Var { var, .. } => {
                let fresh = !seen.contains(var);
                seen.push(*var);
                fresh
            }
            other => !other.uses(self.var) && !self.inner.iter().any(|var| other.uses(*var)),
        })
    }
}
