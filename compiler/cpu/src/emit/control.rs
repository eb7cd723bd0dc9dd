//! Emission of statements and loops.

use super::lanes::LanePlan;
use super::split::{Part, Split};
use super::{BindingValue, Check, Emitted, Emitter, LaneLoop, Operand};
use crate::error::CompileError;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, condcodes::IntCC, types};
use rx_tir::{Expr, Stmt, VarId};

/// A loop being emitted.
#[derive(Clone, Copy)]
struct Loop<'s> {
    var: VarId,
    extent: &'s Expr,
    body: &'s Stmt,
}

impl Emitter<'_> {
    /// Emits a statement.
    pub(crate) fn stmt(&mut self, stmt: &Stmt) -> Emitted<()> {
        if let Some(site) = stmt.first_site() {
            self.site = site;
        }
        match stmt {
            Stmt::Seq(statements) => statements.iter().try_for_each(|stmt| self.stmt(stmt)),
            Stmt::For { .. } => self.promoting(stmt),
            Stmt::Store { buffer, indices, value, .. } => {
                if self.store_promoted(*buffer, indices, value)? {
                    return Ok(());
                }
                let value = self.expr(value)?;
                self.store(*buffer, indices, value)
            }
            Stmt::Let { var, value, body } => {
                let value = self.expr(value)?;
                self.bind(*var, BindingValue::Value(value));
                self.stmt(body)
            }
            Stmt::If { condition, then, otherwise } => {
                let condition = self.condition(condition)?;
                let [yes, no, joined] = [(); 3].map(|()| self.builder.create_block());
                self.builder.ins().brif(condition, yes, &[], no, &[]);
                self.begin(yes);
                self.stmt(then)?;
                self.jump(joined, &[]);
                self.begin(no);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise)?;
                }
                self.jump(joined, &[]);
                self.begin(joined);
                Ok(())
            }
            Stmt::While { condition, body } => {
                let [head, inside, exit] = [(); 3].map(|()| self.builder.create_block());
                self.jump(head, &[]);
                self.builder.switch_to_block(head);
                let condition = self.condition(condition)?;
                self.builder.ins().brif(condition, inside, &[], exit, &[]);
                self.begin(inside);
                let iterations = self.iterations_of_one(body);
                let iterations = self.builder.ins().iconst(types::I64, iterations);
                self.take_iterations(iterations);
                self.depth += 1;
                self.counted += 1;
                self.stmt(body)?;
                self.counted -= 1;
                self.depth -= 1;
                self.jump(head, &[]);
                self.builder.seal_block(head);
                self.begin(exit);
                Ok(())
            }
            Stmt::Assert { condition, message, site } => {
                let value = self.one(condition)?;
                let failed = self.builder.ins().icmp_imm_s(IntCC::Equal, value, 0);
                self.fail_where(failed, Check::Assert { site: *site, message: *message }, &[]);
                Ok(())
            }
            Stmt::Evaluate(value) => self.expr(value).map(drop),
            Stmt::Block(_) => Err(CompileError::Unsupported("a block within a prepared body".into())),
        }
    }

    /// Emits a loop: vectorized if it has a plan, otherwise split if that makes a part vectorizable, otherwise with one
    /// iteration at a time.
    pub(super) fn looped(&mut self, stmt: &Stmt) -> Emitted<()> {
        let Stmt::For { var, start, extent, body, .. } = stmt else {
            return Err(CompileError::Unsupported("a loop that is none".into()));
        };
        let looped = Loop { var: *var, extent, body };
        let plan = self.lane_plan(stmt);
        let split = if plan.is_none() { self.split(stmt) } else { None };
        let start = self.index(start)?;
        let count = self.index(extent)?;
        let is_known = rx_loops::is_host_computable(self.func, extent);
        let is_counted = extent.as_int().is_none() && (self.counted > 0 || !is_known);
        if is_counted {
            self.take_iterations_of(count, body);
        }
        let end = self.builder.ins().iadd(start, count);
        self.counted += u32::from(is_counted);
        match (plan, split) {
            (Some(plan), _) => self.in_lanes(looped, looped.extent.as_int(), start, end, plan).map(drop)?,
            (None, Some(split)) => self.in_parts(looped, start, end, &split)?,
            (None, None) => self.emit_loop(looped, start, end, None).map(drop)?,
        }
        self.counted -= u32::from(is_counted);
        Ok(())
    }

    /// Returns the number of iterations that one iteration of a loop with this body counts as: itself, and those that
    /// [`rx_loops::constant_iterations`] counts in the body.
    fn iterations_of_one(&self, body: &Stmt) -> i64 {
        i64::try_from(rx_loops::constant_iterations(body)).unwrap_or(i64::MAX).saturating_add(1)
    }

    /// Takes `count` iterations of a loop with this body from the limit. A large `count` is reduced, so that the number
    /// of iterations does not overflow.
    fn take_iterations_of(&mut self, count: Value, body: &Stmt) {
        let of_one = self.iterations_of_one(body);
        let [zero, most] = [0, i64::MAX / of_one].map(|bound| self.builder.ins().iconst(types::I64, bound));
        let count = self.builder.ins().smax(count, zero);
        let count = self.builder.ins().smin(count, most);
        let iterations = self.builder.ins().imul_imm_s(count, of_one);
        self.take_iterations(iterations);
    }

    /// Emits a split loop: the iterations in which the conditions are known to hold, and those before and after.
    fn in_parts(&mut self, looped: Loop<'_>, start: Value, end: Value, split: &Split) -> Emitted<()> {
        let (mut low, mut high) = (start, end);
        for bound in &split.bounds {
            let (value, is_low) = self.bound(bound)?;
            if is_low {
                low = self.builder.ins().smax(low, value);
            } else {
                high = self.builder.ins().smin(high, value);
            }
        }
        let low = self.builder.ins().smin(low, end);
        let high = self.builder.ins().smax(high, low);
        for (from, to, part) in [(start, low, &split.outside), (low, high, &split.inside), (high, end, &split.outside)]
        {
            match part {
                Part { body, plan: Some(plan) } => {
                    self.in_lanes(Loop { body, ..looped }, None, from, to, *plan)?;
                }
                Part { body, plan: None } => {
                    self.emit_loop(Loop { body, ..looped }, from, to, None)?;
                }
            }
        }
        Ok(())
    }

    /// Emits a vectorized loop: iterations of several vectors, then of one vector, then scalar ones. If the number of
    /// iterations is constant (`count`), those of a kind that it does not need are omitted.
    ///
    /// For example, 103 iterations with 4 lanes and an unroll factor of 4 are 6 iterations of 16 elements, 1 of 4
    /// elements and 3 scalar ones. For 100 iterations, the scalar loop is omitted.
    fn in_lanes(
        &mut self,
        looped: Loop<'_>,
        count: Option<i64>,
        start: Value,
        end: Value,
        plan: LanePlan,
    ) -> Emitted<()> {
        let mut at = start;
        let mut rest = count;
        for unroll in [plan.unroll, 1] {
            let step = i64::from(plan.lanes * unroll);
            let done = unroll == 1 && plan.unroll == 1 && at != start;
            if done || rest.is_some_and(|rest| rest < step) {
                continue;
            }
            let lane = LaneLoop { var: looped.var, lanes: plan.lanes, unroll };
            let limit = self.builder.ins().iadd_imm_s(end, 1 - step);
            at = self.emit_loop(looped, at, limit, Some(lane))?;
            rest = rest.map(|rest| rest % step);
        }
        if rest != Some(0) {
            self.emit_loop(looped, at, end, None)?;
        }
        Ok(())
    }

    /// Emits iterations from `first` while the variable is below `end`, and returns its value after the last one. In a
    /// vectorized loop, each iteration adds the number of its elements to the variable.
    fn emit_loop(&mut self, looped: Loop<'_>, first: Value, end: Value, lane: Option<LaneLoop>) -> Emitted<Value> {
        let step = lane.map_or(1, |lane| i64::from(lane.lanes * lane.unroll));
        let [round, exit] = [(); 2].map(|()| self.builder.create_block());
        let at = self.builder.append_block_param(round, types::I64);
        let last = self.builder.append_block_param(exit, types::I64);
        let any = self.builder.ins().icmp(IntCC::SignedLessThan, first, end);
        let entry = [BlockArg::from(first)];
        self.builder.ins().brif(any, round, &entry, exit, &entry);
        self.builder.switch_to_block(round);
        self.depth += 1;
        self.bind(looped.var, BindingValue::Index(at));
        let outer = self.lane;
        self.lane = lane.or(outer);
        self.stmt(looped.body)?;
        self.lane = outer;
        self.depth -= 1;
        let next = self.builder.ins().iadd_imm_s(at, step);
        let more = self.builder.ins().icmp(IntCC::SignedLessThan, next, end);
        let again = [BlockArg::from(next)];
        self.builder.ins().brif(more, round, &again, exit, &again);
        self.builder.seal_block(round);
        self.begin(exit);
        Ok(last)
    }

    /// Emits code under a condition, or unconditionally if there is none.
    pub(super) fn guarded(
        &mut self,
        condition: Option<Value>,
        then: impl FnOnce(&mut Self) -> Emitted<()>,
    ) -> Emitted<()> {
        let Some(condition) = condition else { return then(self) };
        let [yes, joined] = [(); 2].map(|()| self.builder.create_block());
        self.builder.ins().brif(condition, yes, &[], joined, &[]);
        self.begin(yes);
        then(self)?;
        self.jump(joined, &[]);
        self.begin(joined);
        Ok(())
    }

    /// Returns the operand's values: its vectors if `lanes` (a scalar is broadcast), otherwise its scalar.
    pub(super) fn values_of(&mut self, operand: Operand, dtype: rx_base::DType, lanes: bool) -> Emitted<Vec<Value>> {
        match operand {
            operand if lanes => self.widened(operand, dtype),
            Operand::One(value) => Ok(vec![value]),
            Operand::Lanes(_) => Err(CompileError::Unsupported("lanes for a scalar".into())),
        }
    }
}
