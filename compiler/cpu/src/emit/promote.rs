//! Scalar promotion: a loop-invariant element that a loop stores to is usually loaded into registers before the loop
//! and stored after it. For example, `for k: C[i, j] += A[i, k] * B[k, j]` loads and stores `C[i, j]` once, not in each
//! iteration. Up to [`MOST_KEPT`] loop-invariant elements that the loop only reads are loaded before it.
//!
//! If a loop over the updates of one element is vectorized, the partial results are in vectors that begin with the
//! operation's identity. For example, `for k in range(64): C[0] += A[k]` in `float32` has four vectors of 4 lanes, all
//! zero. Each of the 4 iterations adds 16 elements. After the loop, the vectors are added in pairs until there is one;
//! its lanes are added to the initial `C[0]` one after the other.

use super::{Emitted, Emitter, LaneLoop, Operand, scalar_type};
use crate::emit::lanes::LanePlan;
use cranelift_codegen::ir::{InstBuilder, Type, Value, condcodes::IntCC};
use cranelift_frontend::Variable;
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_loops::{Poly, Stride};
use rx_tir::{BinaryOp, BufferId, Expr, Stmt, VarId};

/// The maximal number of loads that a loop promotes, since registers are few.
const MOST_KEPT: usize = 6;

/// An element that is kept in registers.
pub(super) struct Promoted {
    buffer: BufferId,
    indices: Vec<Expr>,
    dtype: DType,
    variables: Vec<Variable>,
    /// Whether the variables are vectors of an enclosing vectorized loop.
    lanes: bool,
    /// Whether the element is only read, so that it is not stored after the loop.
    read_only: bool,
    /// Partial results of a vectorized reduction, combined after the loop.
    partial: Option<Partial>,
}

struct Partial {
    op: BinaryOp,
    variables: Vec<Variable>,
    vector: Type,
    lanes: u32,
}

/// An element that a loop may keep in a register.
pub(super) struct Candidate {
    pub(super) buffer: BufferId,
    pub(super) indices: Vec<Expr>,
    /// The extents of the loops around the store. All must be positive for the store to be executed.
    extents: Vec<Expr>,
}

/// A store in the loop.
struct Found<'s> {
    buffer: BufferId,
    indices: &'s [Expr],
    extents: Vec<&'s Expr>,
    always: bool,
}

#[derive(Default)]
struct Search<'s> {
    stores: Vec<Found<'s>>,
    loads: Vec<(BufferId, &'s [Expr])>,
    bound: Vec<VarId>,
}

impl<'s> Search<'s> {
    fn stmt(&mut self, stmt: &'s Stmt, extents: &mut Vec<&'s Expr>, always: bool) {
        for expr in stmt.expressions() {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices, .. } = part {
                    self.loads.push((*buffer, indices));
                }
            });
        }
        match stmt {
            Stmt::For { var, extent, body, .. } => {
                self.bound.push(*var);
                extents.push(extent);
                self.stmt(body, extents, always);
                extents.pop();
            }
            Stmt::Store { buffer, indices, .. } => {
                self.stores.push(Found { buffer: *buffer, indices, extents: extents.clone(), always });
            }
            Stmt::Let { var, body, .. } => {
                self.bound.push(*var);
                self.stmt(body, extents, always);
            }
            Stmt::If { .. } | Stmt::While { .. } => {
                for child in stmt.children() {
                    self.stmt(child, extents, false);
                }
            }
            other => {
                for child in other.children() {
                    self.stmt(child, extents, always);
                }
            }
        }
    }

    /// Whether an expression is loop-invariant and loads nothing.
    fn invariant(&self, expr: &Expr) -> bool {
        expr.all(&|part| match part {
            Expr::Var { var, .. } => !self.bound.contains(var),
            Expr::Load { .. } => false,
            _ => true,
        })
    }
}

impl Emitter<'_> {
    /// Emits a loop with elements in registers: those that it stores to ([`Emitter::candidates`]), and loop-invariant
    /// ones that it only reads ([`Emitter::keep_loads`]).
    pub(super) fn promoting(&mut self, stmt: &Stmt) -> Emitted<()> {
        let mut search = Search::default();
        search.stmt(stmt, &mut Vec::new(), true);
        let outside = self.promoted.len();
        self.keep_loads(&search)?;
        let candidates = self.candidates(&search);
        self.with_candidates(stmt, candidates)?;
        self.promoted.truncate(outside);
        Ok(())
    }

    /// Promotes at most [`MOST_KEPT`] loads of loop-invariant elements whose buffer the loop does not store to. Their
    /// indices must be evidently in range, since the loop may load the elements conditionally or not at all.
    fn keep_loads(&mut self, search: &Search<'_>) -> Emitted<()> {
        let mut kept = 0;
        for (buffer, indices) in &search.loads {
            let changes = search.stores.iter().any(|store| store.buffer == *buffer);
            let invariant = indices.iter().all(|index| search.invariant(index));
            if kept == MOST_KEPT
                || changes
                || !invariant
                || self.position(*buffer, indices).is_some()
                || !self.always_in_range(*buffer, indices)
            {
                continue;
            }
            let Operand::One(value) = self.load(*buffer, indices)? else { continue };
            let dtype = self.func.buffer(*buffer).dtype;
            let variables = self.variables(scalar_type(dtype)?, &[value]);
            let indices = indices.to_vec();
            self.promoted.push(Promoted {
                buffer: *buffer,
                indices,
                dtype,
                variables,
                lanes: false,
                read_only: true,
                partial: None,
            });
            kept += 1;
        }
        Ok(())
    }

    /// Emits a loop with these elements in registers. At run time, skips it if a loop around the stores has no
    /// iterations: it would store nothing, and the elements must not be loaded.
    fn with_candidates(&mut self, stmt: &Stmt, candidates: Vec<Candidate>) -> Emitted<()> {
        if candidates.is_empty() {
            return self.looped(stmt);
        }
        let mut runs: Option<Value> = None;
        for extent in candidates.iter().flat_map(|candidate| &candidate.extents) {
            if extent.as_int().is_some_and(|extent| extent > 0) {
                continue;
            }
            let extent = self.index(extent)?;
            let some = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, extent, 0);
            runs = Some(match runs {
                None => some,
                Some(runs) => self.builder.ins().band(runs, some),
            });
        }
        self.guarded(runs, |emitter| {
            let outside = emitter.promoted.len();
            let plan = emitter.reduction_plan(stmt, &candidates);
            for candidate in candidates {
                let promoted = emitter.promote(candidate, plan.as_ref())?;
                emitter.promoted.push(promoted);
            }
            emitter.looped(stmt)?;
            for promoted in emitter.promoted.split_off(outside) {
                emitter.demote(promoted)?;
            }
            Ok(())
        })
    }

    fn candidates(&self, search: &Search<'_>) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for store in &search.stores {
            let alone =
                search.loads.iter().filter(|(buffer, _)| *buffer == store.buffer).all(|load| load.1 == store.indices)
                    && search
                        .stores
                        .iter()
                        .filter(|other| other.buffer == store.buffer)
                        .all(|other| other.indices == store.indices);
            let known = candidates.iter().any(|candidate| candidate.buffer == store.buffer)
                || self.promoted.iter().any(|promoted| promoted.buffer == store.buffer);
            // If a loop around this store may have no iterations, `with_candidates` emits one condition for all stores.
            // So all stores, also those to other buffers, must then be in loops of the same extents.
            let guarded = store.extents.iter().all(|extent| extent.as_int().is_some_and(|extent| extent > 0))
                || search.stores.iter().all(|other| other.extents == store.extents);
            let invariant =
                store.indices.iter().chain(store.extents.iter().copied()).all(|expr| search.invariant(expr));
            if store.always && alone && !known && guarded && invariant {
                candidates.push(Candidate {
                    buffer: store.buffer,
                    indices: store.indices.to_vec(),
                    extents: store.extents.iter().map(|extent| (*extent).clone()).collect(),
                });
            }
        }
        candidates
    }

    fn promote(
        &mut self,
        candidate: Candidate,
        plan: Option<&(LanePlan, Vec<(BufferId, BinaryOp)>)>,
    ) -> Emitted<Promoted> {
        let Candidate { buffer, indices, .. } = candidate;
        let dtype = self.func.buffer(buffer).dtype;
        let lanes = self.lane.is_some();
        let initial = self.load(buffer, &indices)?;
        let initial = self.values_of(initial, dtype, lanes)?;
        let ty = if lanes { self.lane_type(dtype)? } else { scalar_type(dtype)? };
        let variables = self.variables(ty, &initial);
        let partial = plan.and_then(|(plan, ops)| {
            let (_, op) = ops.iter().find(|(reduced, _)| *reduced == buffer)?;
            Some((*op, *plan))
        });
        let partial = match partial {
            Some((op, plan)) => {
                let Some(vector) = super::vector_type(dtype, plan.lanes) else {
                    return Err(crate::CompileError::Dtype(dtype));
                };
                let identity = self.identity(op, dtype, vector);
                let variables = self.variables(vector, &vec![identity; plan.unroll as usize]);
                Some(Partial { op, variables, vector, lanes: plan.lanes })
            }
            None => None,
        };
        Ok(Promoted { buffer, indices, dtype, variables, lanes, read_only: false, partial })
    }

    fn variables(&mut self, ty: Type, initial: &[Value]) -> Vec<Variable> {
        let mut variables = Vec::with_capacity(initial.len());
        for value in initial {
            let variable = self.builder.declare_var(ty);
            self.builder.def_var(variable, *value);
            variables.push(variable);
        }
        variables
    }

    /// Combines an element's partial results, if any, with its value and stores it.
    fn demote(&mut self, promoted: Promoted) -> Emitted<()> {
        let dtype = promoted.dtype;
        debug_assert!(!promoted.read_only);
        if let Some(partial) = &promoted.partial {
            let mut values: Vec<Value> = partial.variables.iter().map(|part| self.builder.use_var(*part)).collect();
            while values.len() > 1 {
                let half = values.len() / 2;
                let high = values.split_off(half);
                for (at, high) in high.into_iter().enumerate() {
                    values[at] = self.binary(partial.op, values[at], high, dtype)?;
                }
            }
            let total = promoted.variables[0];
            for at in 0..partial.lanes as u8 {
                let element = self.builder.ins().extractlane(values[0], at);
                let element = self.narrow_element(element, dtype)?;
                let sum = self.builder.use_var(total);
                let sum = self.binary(partial.op, sum, element, dtype)?;
                self.builder.def_var(total, sum);
            }
            debug_assert_eq!(partial.vector.lane_count(), partial.lanes);
        }
        let values: Vec<Value> = promoted.variables.iter().map(|variable| self.builder.use_var(*variable)).collect();
        let value = if promoted.lanes { Operand::Lanes(values) } else { Operand::One(values[0]) };
        self.store(promoted.buffer, &promoted.indices, value)
    }

    fn narrow_element(&mut self, element: Value, dtype: DType) -> Emitted<Value> {
        let ty = scalar_type(dtype)?;
        let own = self.builder.func.dfg.value_type(element);
        Ok(if own.bits() > ty.bits() { self.builder.ins().ireduce(ty, element) } else { element })
    }

    /// Returns the elements that have partial results.
    pub(super) fn elements_with_partial_results(&self) -> Vec<(BufferId, &[Expr])> {
        let with = self.promoted.iter().filter(|promoted| promoted.partial.is_some());
        with.map(|promoted| (promoted.buffer, &promoted.indices[..])).collect()
    }

    fn position(&self, buffer: BufferId, indices: &[Expr]) -> Option<usize> {
        self.promoted.iter().position(|promoted| promoted.buffer == buffer && promoted.indices == indices)
    }

    /// Returns the element's value if it is promoted.
    pub(super) fn load_promoted(&mut self, buffer: BufferId, indices: &[Expr]) -> Option<Operand> {
        let promoted = &self.promoted[self.position(buffer, indices)?];
        Some(match promoted.lanes {
            false => Operand::One(self.builder.use_var(promoted.variables[0])),
            true => Operand::Lanes(promoted.variables.iter().map(|variable| self.builder.use_var(*variable)).collect()),
        })
    }

    /// Whether a load of the element may differ by lane: it is promoted to vectors or, if it is not promoted, its
    /// address may change with the variable of the vectorized loop.
    pub(super) fn promoted_in_lanes(&self, buffer: BufferId, indices: &[Expr]) -> bool {
        match self.position(buffer, indices) {
            Some(at) => self.promoted[at].lanes,
            None => self.lane.is_some_and(|lane| self.moves(buffer, indices, lane)),
        }
    }

    fn moves(&self, buffer: BufferId, indices: &[Expr], lane: LaneLoop) -> bool {
        let element = Poly::element(self.func, buffer, indices);
        element.is_none_or(|element| element.stride(lane.var) != Stride::Invariant)
    }

    /// Returns whether the element is promoted. If so, emits the assignment to its variables. In a loop that is
    /// vectorized with partial results, the partial results are updated instead.
    pub(super) fn store_promoted(&mut self, buffer: BufferId, indices: &[Expr], value: &Expr) -> Emitted<bool> {
        let Some(at) = self.position(buffer, indices) else { return Ok(false) };
        let Promoted { dtype, lanes, .. } = self.promoted[at];
        let in_partial = self.lane.is_some() && !lanes;
        let update = update(buffer, indices, value);
        let (variables, values) = match (in_partial, update) {
            (true, None) => {
                return Err(crate::CompileError::Unsupported("an update that lanes cannot do".into()));
            }
            (_, Some((op, added))) => {
                let variables = match (&self.promoted[at].partial, in_partial) {
                    (Some(partial), true) => partial.variables.clone(),
                    _ => self.promoted[at].variables.clone(),
                };
                let count = self.lane.map_or(1, |lane| lane.unroll as usize);
                let Some(variables) = variables.get(..count).map(<[Variable]>::to_vec) else {
                    return Err(crate::CompileError::Unsupported("more lanes than partial results".into()));
                };
                let before: Vec<Value> = variables.iter().map(|variable| self.builder.use_var(*variable)).collect();
                let values = self.updated(op, before, added, dtype)?;
                (variables, values)
            }
            (false, None) => {
                let value = self.expr(value)?;
                (self.promoted[at].variables.clone(), self.values_of(value, dtype, lanes)?)
            }
        };
        for (variable, value) in variables.into_iter().zip(values) {
            let value = self.rounded(value, dtype);
            self.builder.def_var(variable, value);
        }
        Ok(true)
    }

    /// Emits `before op added`. The addition of a product of `float32` or `float64` is fused if the host has fused
    /// multiply-add.
    fn updated(&mut self, op: BinaryOp, before: Vec<Value>, added: &Expr, dtype: DType) -> Emitted<Vec<Value>> {
        let lanes = self.lane.is_some();
        if let (BinaryOp::Add, Expr::Binary { op: BinaryOp::Mul, left, right }, true) = (op, added, self.fused)
            && dtype.is_float()
            && dtype.bits >= 32
        {
            let (a, b) = (self.expr(left)?, self.expr(right)?);
            let (a, b) = (self.values_of(a, dtype, lanes)?, self.values_of(b, dtype, lanes)?);
            let triples = before.into_iter().zip(a.into_iter().zip(b));
            return Ok(triples.map(|(before, (a, b))| self.builder.ins().fma(a, b, before)).collect());
        }
        let added = self.expr(added)?;
        let added = self.values_of(added, dtype, lanes)?;
        before.into_iter().zip(added).map(|(before, added)| self.binary(op, before, added, dtype)).collect()
    }

    /// Returns the identity element of the reduction operation, for example −∞ for `max` of floats.
    fn identity(&mut self, op: BinaryOp, dtype: DType, ty: Type) -> Value {
        if dtype.is_float() {
            return self.float(
                match op {
                    BinaryOp::Mul => 1.0,
                    BinaryOp::Min => f64::INFINITY,
                    BinaryOp::Max => f64::NEG_INFINITY,
                    _ => 0.0,
                },
                ty,
            );
        }
        let bits = u32::from(dtype.bits).clamp(1, 64);
        let signed = dtype.code == TypeCode::Int;
        let most = u64::MAX >> (64 - bits);
        let value = match (op, signed) {
            (BinaryOp::Mul, _) => 1,
            (BinaryOp::Min, true) => (most >> 1) as i64,
            (BinaryOp::Min, false) => most as i64,
            (BinaryOp::Max, true) => -((most >> 1) as i64) - 1,
            _ => 0,
        };
        self.integer(value, ty)
    }
}

/// Matches a value `buffer[indices] op added`, or with the operands exchanged, for addition, multiplication, minimum or
/// maximum of a dtype other than `bool`. `added` must not load the element. Returns `(op, added)`.
pub(super) fn update<'s>(buffer: BufferId, indices: &[Expr], value: &'s Expr) -> Option<(BinaryOp, &'s Expr)> {
    let Expr::Binary { op: op @ (BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max), left, right } = value
    else {
        return None;
    };
    let is_element =
        |expr: &Expr| matches!(expr, Expr::Load { buffer: own, indices: at, .. } if *own == buffer && at == indices);
    let other: &Expr = match (is_element(left), is_element(right)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    let again = other.any(&|part| is_element(part));
    (!again && !value.dtype().is_bool()).then_some((*op, other))
}
