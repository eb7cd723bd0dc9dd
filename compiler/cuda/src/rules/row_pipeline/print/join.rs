//! Prints reductions: the beginning of each thread's partial result, the combination of partial results, and values of
//! the row.

use super::Printer;
use crate::printer::types;
use crate::rules::row_pipeline::collect::identity;
use crate::rules::row_pipeline::{Combine, Kind, Stage};
use rx_base::DType;
use rx_tir::{BinaryOp, Expr};

impl Printer<'_, '_, '_> {
    /// Declares a reduction's value, with the beginning of a thread's partial result.
    pub(in crate::rules) fn begin(&mut self, stage: &Stage) -> Result<(), String> {
        let Kind::Reduction { combine, init } = &stage.kind else { return Ok(()) };
        let ctype = self.kernel.ctype(stage.target.dtype)?;
        let begin =
            combine.begin(init, stage.target.dtype).ok_or("requires a reduction with an identity; found another")?;
        let name = self.of_row(ctype, &format!("{}_value", self.stages.func.var(stage.var).name));
        self.each_row(|this| {
            this.name_row_value()?;
            let begin = this.kernel.assigned(&begin, stage.target.dtype)?;
            let given = this.given(ctype, &name);
            this.kernel.line(&format!("{given} = {begin};"));
            Ok(())
        })?;
        self.kernel.name_value(stage.var, &name);
        Ok(())
    }

    /// Prints the combination of a reduction's value, or of all values of a tuple, with the values that `with` returns.
    pub(in crate::rules) fn combine(
        &mut self,
        reduction: &[Stage],
        with: impl Fn(&Stage) -> Expr,
    ) -> Result<(), String> {
        let [Stage { kind: Kind::Reduction { combine: Combine::Operation(combine), .. }, .. }] = reduction else {
            return self.choose(reduction, with);
        };
        let stage = &reduction[0]; // INVARIANT: it has one stage.
        let (own, with) = (self.stages.func.var_expr(stage.var), with(stage));
        let name = self.kernel.operand(&own, 0)?;
        if *combine == BinaryOp::Add && stage.target.dtype.is_float() {
            let value = self.kernel.operand(&with, 0)?;
            self.kernel.line(&format!("{name} += {value};"));
            return Ok(());
        }
        let both = Expr::Binary { op: *combine, left: Box::new(own), right: Box::new(with) };
        let value = self.kernel.operand(&both, 0)?;
        self.kernel.line(&format!("{name} = {value};"));
        Ok(())
    }

    /// As [`Printer::combine`] for a tuple: all choices are computed before the first value is assigned.
    fn choose(&mut self, tuple: &[Stage], with: impl Fn(&Stage) -> Expr) -> Result<(), String> {
        for stage in tuple {
            let other = with(stage);
            if other != self.stages.func.var_expr(stage.other) {
                let ctype = self.kernel.ctype(stage.target.dtype)?;
                let text = self.kernel.assigned(&other, stage.target.dtype)?;
                let name = self.kernel.fresh_name("other");
                self.kernel.line(&format!("const {ctype} {name} = {text};"));
                self.kernel.name_value(stage.other, &name);
            }
        }
        let mut lines = Vec::with_capacity(tuple.len());
        for stage in tuple {
            let Kind::Reduction { combine: Combine::Choice { chosen, .. }, .. } = &stage.kind else { continue };
            let ctype = self.kernel.ctype(stage.target.dtype)?;
            let own = self.kernel.operand(&self.stages.func.var_expr(stage.var), 0)?;
            let text = self.kernel.operand(chosen, 0)?;
            let name = self.kernel.fresh_name("next");
            self.kernel.line(&format!("const {ctype} {name} = {text};"));
            lines.push(format!("{own} = {name};"));
        }
        lines.iter().for_each(|line| self.kernel.line(line));
        Ok(())
    }

    /// Prints the all-reduce of groups of `lanes` neighbouring threads, a power of two, by butterfly shuffles.
    pub(in crate::rules) fn join_lanes(&mut self, reduction: &[Stage], lanes: i64) -> Result<(), String> {
        if lanes < 2 {
            return Ok(());
        }
        self.kernel.line("#pragma unroll");
        self.kernel.open(&format!("for (int by = {}; by > 0; by /= 2) {{", lanes / 2));
        for stage in reduction {
            let ctype = self.kernel.ctype(stage.target.dtype)?;
            let own = self.kernel.operand(&self.stages.func.var_expr(stage.var), 0)?;
            let (to, from) = match ctype {
                "bool" | "signed char" | "unsigned char" | "short" | "unsigned short" => {
                    ("(int)", format!("({ctype})"))
                }
                _ => ("", String::new()),
            };
            let other = self.kernel.fresh_name("other");
            self.kernel.line(&format!("const {ctype} {other} = {from}__shfl_xor_sync(0xffffffffu, {to}{own}, by);"));
            self.kernel.name_value(stage.other, &other);
        }
        self.combine_others(reduction)?;
        self.kernel.close();
        Ok(())
    }

    /// Prints the combination of a reduction's value, or of all values of a tuple, with the values that the variables
    /// [`Stage::other`] have here, for example the partial results of another thread.
    pub(in crate::rules) fn combine_others(&mut self, reduction: &[Stage]) -> Result<(), String> {
        let func = &self.stages.func;
        self.combine(reduction, |stage| func.var_expr(stage.other))
    }

    /// Prints the all-reduce of `count` groups of threads through shared memory. `group` is the thread's group as C
    /// text.
    ///
    /// If `places` is 1, all threads of a group have the same partial result, and `place` is the condition for the one
    /// that writes it. Otherwise the `places` threads of a group have different rows, and `place` is the thread's
    /// position in its group.
    pub(in crate::rules) fn join_groups(
        &mut self,
        reduction: &[Stage],
        (group, count): (&str, i64),
        (place, places): (&str, i64),
    ) -> Result<(), String> {
        if count < 2 {
            return Ok(());
        }
        let (side, of_side) = if self.side() > 1 { (format!("[{}]", self.side()), "[v]") } else { (String::new(), "") };
        let mut parts: Vec<(String, String)> = Vec::with_capacity(reduction.len());
        for stage in reduction {
            let ctype = self.kernel.ctype(stage.target.dtype)?;
            let own = self.kernel.operand(&self.stages.func.var_expr(stage.var), 0)?;
            let shared = self.kernel.fresh_name(&format!("{}_parts", self.stages.func.var(stage.var).name));
            if places > 1 {
                self.kernel.line(&format!("__shared__ {ctype} {shared}[{count}]{side}[{places}];"));
                self.each_row(|this| {
                    this.kernel.line(&format!("{shared}[{group}]{of_side}[{place}] = {own};"));
                    Ok(())
                })?;
            } else {
                self.kernel.line(&format!("__shared__ {ctype} {shared}[{count}];"));
                self.kernel.line(&format!("if ({place}) {shared}[{group}] = {own};"));
            }
            parts.push((own, shared));
        }
        self.kernel.line("__syncthreads();");
        let element = |shared: &str, at: &str| match places {
            1 => format!("{shared}[{at}]"),
            _ => format!("{shared}[{at}]{of_side}[{place}]"),
        };
        self.each_row(|this| {
            for (own, shared) in &parts {
                this.kernel.line(&format!("{own} = {};", element(shared, "0")));
            }
            this.kernel.line("#pragma unroll");
            this.kernel.open(&format!("for (int at = 1; at < {count}; ++at) {{"));
            for (stage, (_, shared)) in reduction.iter().zip(&parts) {
                this.kernel.name_value(stage.other, &element(shared, "at"));
            }
            this.combine_others(reduction)?;
            this.kernel.close();
            Ok(())
        })
    }

    /// Prints the end of a reduction: combines the init if partial results began with another value, rounds to the
    /// precision of the dtype, and stores the result, if it is stored, in the threads where `leader` holds.
    pub(in crate::rules) fn finish(&mut self, stage: &Stage, leader: &str) -> Result<(), String> {
        let Kind::Reduction { combine, init } = &stage.kind else { return Ok(()) };
        let dtype = stage.target.dtype;
        let is_more = combine.begin(init, dtype).as_ref() != Some(init);
        if !is_more && types::helper(dtype).is_none() && !stage.target.is_stored {
            return Ok(());
        }
        self.each_row(|this| {
            this.name_row_value()?;
            if is_more {
                this.combine(std::slice::from_ref(stage), |_| init.clone())?;
            }
            let own = this.kernel.operand(&this.stages.func.var_expr(stage.var), 0)?;
            if types::helper(dtype).is_some() {
                this.kernel.need_storage(dtype);
                this.kernel.line(&format!("{own} = {};", types::rounded(dtype, &own)));
            }
            this.store_of_row(stage, leader)
        })
    }

    /// Prints the computation of a value of the row, and its store, if it is stored, in the threads where `leader`
    /// holds.
    pub(in crate::rules) fn row_stage(&mut self, at: usize, leader: &str) -> Result<(), String> {
        let stage = &self.stages.stages[at];
        let ctype = self.kernel.ctype(stage.target.dtype)?;
        let name = self.of_row(ctype, &format!("{}_value", self.stages.func.var(stage.var).name));
        self.each_row(|this| {
            this.name_row_value()?;
            let value = this.kernel.assigned(&stage.value, stage.target.dtype)?;
            let given = this.given(&format!("const {ctype}"), &name);
            this.kernel.line(&format!("{given} = {value};"));
            this.kernel.name_value(stage.var, &name);
            this.store_of_row(stage, leader)
        })
    }

    /// Prints the store of a value of the row, if it is stored.
    fn store_of_row(&mut self, stage: &Stage, leader: &str) -> Result<(), String> {
        if !stage.target.is_stored {
            return Ok(());
        }
        self.name_row_value()?;
        let value = self.kernel.stored(&self.stages.func.var_expr(stage.var), stage.target.dtype)?;
        self.kernel.need_storage(stage.target.dtype);
        self.name_row_place()?;
        let place = self.target(stage)?;
        self.kernel.line(&format!("if ({leader}) {place} = {value};"));
        Ok(())
    }
}

/// Returns the beginning of each thread's partial result: the init if it may be combined any number of times (as for a
/// maximum), otherwise the identity. `None` if there is no known identity (see [`identity`]).
pub(in crate::rules) fn begin(combine: BinaryOp, init: &Expr, dtype: DType) -> Option<Expr> {
    match combine {
        BinaryOp::Min | BinaryOp::Max | BinaryOp::And | BinaryOp::Or | BinaryOp::BitAnd | BinaryOp::BitOr => {
            Some(init.clone())
        }
        _ => identity(combine, dtype),
    }
}
