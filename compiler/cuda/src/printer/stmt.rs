//! Prints statements.

use super::functions::bytes_of;
use super::text::check_number;
use super::{BufferText, Kernel, expr, types};
use crate::accumulate::{Reduction, reduction};
use crate::source::{Argument, Check, MOST_ITERATIONS, Temporary};
use crate::statements::is_renaming;
use rx_base::DType;
use rx_tir::{BinaryOp, Block, BufferId, Expr, Intrinsic, IterKind, LoopKind, Site, Stmt, VarId};

/// The maximum size in bytes of a per-thread buffer in local memory.
const LOCAL_BYTES: i64 = 16 << 10;

impl Kernel<'_> {
    pub(crate) fn stmt(&mut self, stmt: &Stmt) -> Result<(), String> {
        if let Some(reduction) = reduction(stmt) {
            return self.reduction(&reduction);
        }
        match stmt {
            Stmt::Seq(statements) => statements.iter().try_for_each(|one| self.stmt(one)),
            Stmt::For { var, start, extent, kind, body } => {
                if *kind == LoopKind::Unrolled && extent.as_int().is_some() {
                    self.line("#pragma unroll");
                }
                self.open_loop(*var, start, extent)?;
                self.stmt(body)?;
                self.close();
                Ok(())
            }
            Stmt::Block(block) => self.block(block),
            Stmt::Store { buffer, indices, value, site } => {
                self.site = *site;
                let place = self.place(*buffer, indices)?;
                let value = self.stored(value, self.func.buffer(*buffer).dtype)?;
                self.line(&format!("{place} = {value};"));
                Ok(())
            }
            Stmt::Let { var, value, body } => {
                self.constant(*var, value)?;
                self.stmt(body)
            }
            Stmt::If { condition, then, otherwise } => {
                let condition = self.operand(condition, 0)?;
                self.line(&format!("if ({condition}) {{"));
                self.indented(then)?;
                if let Some(otherwise) = otherwise {
                    self.line("} else {");
                    self.indented(otherwise)?;
                }
                self.line("}");
                Ok(())
            }
            Stmt::While { condition, body } => {
                self.open_while(condition)?;
                self.stmt(body)?;
                self.close_while();
                Ok(())
            }
            Stmt::Assert { condition, message, site } => {
                let condition = self.operand(condition, expr::UNARY)?;
                let number = check_number(self.sites.number(*site, Check::Assert(*message)));
                let failure = self.failure();
                self.need(failure);
                self.uses_error = true;
                self.line(&format!("if (!{condition}) {failure}(rx_error, {number}, 0, 0);"));
                Ok(())
            }
            Stmt::Evaluate(value) => self.evaluate(value),
        }
    }

    /// Returns the helper that a failed assertion, or a `while` with too many iterations, calls.
    fn failure(&self) -> &'static str {
        if self.is_cooperative { "rx_note" } else { "rx_fail" }
    }

    fn indented(&mut self, stmt: &Stmt) -> Result<(), String> {
        self.indent += 1;
        self.stmt(stmt)?;
        self.indent -= 1;
        Ok(())
    }

    /// Prints an expression whose value is unused, for the checks in it. Prints nothing for a constant or a variable.
    fn evaluate(&mut self, value: &Expr) -> Result<(), String> {
        let has_effect = value.any(&|part| !matches!(part, Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. }));
        if has_effect {
            let value = self.operand(value, expr::UNARY)?;
            self.line(&format!("(void){value};"));
        }
        Ok(())
    }

    /// Opens a `while` loop, which reports an error after [`MOST_ITERATIONS`] iterations. Then the loop ends if the
    /// kernel's threads may synchronize; otherwise the thread exits.
    pub(crate) fn open_while(&mut self, condition: &Expr) -> Result<(), String> {
        let site: Site = self.site;
        let number = check_number(self.sites.number(site, Check::Iterations));
        self.need(self.failure());
        self.uses_error = true;
        let condition = self.operand(condition, 0)?;
        self.open("{");
        self.line(&format!("long long rx_left = {MOST_ITERATIONS}LL;"));
        self.open(&format!("while ({condition}) {{"));
        match self.is_cooperative {
            true => self.line(&format!("if (--rx_left < 0) {{ rx_note(rx_error, {number}, 0, 0); break; }}")),
            false => self.line(&format!("if (--rx_left < 0) rx_fail(rx_error, {number}, 0, 0);")),
        }
        Ok(())
    }

    pub(crate) fn close_while(&mut self) {
        self.close();
        self.close();
    }

    /// Opens a `for` loop. An end with a load or a check is evaluated once, before the loop: the body may change the
    /// loaded memory.
    pub(crate) fn open_loop(&mut self, var: VarId, start: &Expr, extent: &Expr) -> Result<(), String> {
        let dtype = self.func.var(var).dtype;
        let ctype = self.ctype(dtype)?;
        let natural = self.is_natural(start);
        let first = self.operand(start, 0)?;
        let end = match start.as_int() {
            Some(0) => extent.clone(),
            _ => start.clone().cast(dtype) + extent.clone().cast(dtype),
        };
        let mut end_text = self.operand(&end, expr::RELATION + 1)?;
        let changes = end.any(&|part| matches!(part, Expr::Load { .. } | Expr::Checked { .. }));
        let wanted = self.func.var(var).name;
        if changes {
            let name = self.names.fresh(&format!("{wanted}_end"));
            self.line(&format!("const {ctype} {name} = {end_text};"));
            end_text = name;
        }
        let name = self.bind(var);
        if natural {
            self.natural.insert(var);
        }
        if is_data(&[start], self) {
            self.data.insert(var);
        }
        self.line(&format!("for ({ctype} {name} = {first}; {name} < {end_text}; ++{name}) {{"));
        self.indent += 1;
        Ok(())
    }

    /// Declares a constant for a variable, which is in scope from here on.
    pub(crate) fn constant(&mut self, var: VarId, value: &Expr) -> Result<(), String> {
        let dtype = self.func.var(var).dtype;
        let ctype = self.ctype(dtype)?;
        let natural = self.is_natural(value);
        let data = is_data(&[value], self);
        self.is_deciding = self.deciding.contains(&var);
        let text = self.assigned(value, dtype);
        self.is_deciding = false;
        let text = text?;
        let name = self.bind(var);
        if natural {
            self.natural.insert(var);
        }
        if data {
            self.data.insert(var);
        }
        self.line(&format!("const {ctype} {name} = {text};"));
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Result<(), String> {
        self.axes(block)?;
        if let Some(predicate) = &block.predicate {
            let predicate = self.operand(predicate, 0)?;
            self.line(&format!("if ({predicate}) {{"));
            self.indent += 1;
        }
        for buffer in &block.allocations {
            self.allocate(*buffer)?;
        }
        if let Some(init) = &block.init {
            let first = block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce).fold(
                Expr::bool(true),
                |first, iter| {
                    let value = if is_renaming(self.func, iter.var, &iter.binding) {
                        iter.binding.clone()
                    } else {
                        self.func.var_expr(iter.var)
                    };
                    first.and(value.eq(iter.start.clone()))
                },
            );
            match first.as_int() {
                Some(0) => {}
                Some(_) => self.stmt(init)?,
                None => {
                    let first = self.operand(&first, 0)?;
                    self.line(&format!("if ({first}) {{"));
                    self.indented(init)?;
                    self.line("}");
                }
            }
        }
        self.stmt(&block.body)?;
        if block.predicate.is_some() {
            self.close();
        }
        Ok(())
    }

    /// Declares the block's axes, except those whose binding is a variable or a constant of the axis's dtype.
    fn axes(&mut self, block: &Block) -> Result<(), String> {
        for iter in &block.iters {
            if !is_renaming(self.func, iter.var, &iter.binding) {
                let binding = iter.binding.clone().cast(self.func.var(iter.var).dtype);
                self.constant(iter.var, &binding)?;
            }
        }
        Ok(())
    }

    /// Prints a reduction of one element: a local variable accumulates it over the loops, and is stored once after
    /// them.
    ///
    /// ```text
    /// float out_value = 0.0f;
    /// for (long long k = 0; k < 8; ++k) {
    ///     out_value += a[i * 8 + k];
    /// }
    /// out[i] = out_value;
    /// ```
    fn reduction(&mut self, reduction: &Reduction<'_>) -> Result<(), String> {
        self.site = reduction.site;
        let Reduction { buffer, .. } = *reduction;
        let dtype = self.func.buffer(buffer).dtype;
        let ctype = self.ctype(dtype)?;
        if let Some(predicate) = &reduction.predicate {
            let predicate = self.operand(predicate, 0)?;
            self.line(&format!("if ({predicate}) {{"));
            self.indent += 1;
        }
        let initial = match reduction.initial {
            Some(initial) => self.outside(reduction, initial),
            None => Expr::Load { buffer, dtype, indices: reduction.indices.clone() },
        };
        let initial = self.assigned(&initial, dtype)?;
        let name = self.names.fresh(&format!("{}_value", self.func.buffer(buffer).name));
        self.line(&format!("{ctype} {name} = {initial};"));
        for one in &reduction.loops {
            if let Stmt::For { var, start, extent, .. } = one {
                self.open_loop(*var, start, extent)?;
            }
        }
        self.axes(reduction.block)?;
        let outer = self.held.insert(buffer, name.clone());
        let update = match reduction.value {
            Expr::Binary { op: BinaryOp::Add, left, right }
                if matches!(**left, Expr::Load { buffer: of, .. } if of == buffer) && types::is_native_float(dtype) =>
            {
                format!("{name} += {};", self.operand(right, 0)?)
            }
            value => format!("{name} = {};", self.assigned(value, dtype)?),
        };
        match outer {
            Some(outer) => self.held.insert(buffer, outer),
            None => self.held.remove(&buffer),
        };
        self.line(&update);
        reduction.loops.iter().for_each(|_| self.close());
        let place = self.place(buffer, &reduction.indices)?;
        self.line(&format!("{place} = {};", types::to_storage(dtype, &name)));
        if reduction.predicate.is_some() {
            self.close();
        }
        Ok(())
    }

    /// Replaces the block's axes in an expression by their bindings, so that it can be evaluated outside the loops.
    fn outside(&self, reduction: &Reduction<'_>, value: &Expr) -> Expr {
        let iters = &reduction.block.iters;
        rx_tir::rewrite::substitute(value, &|var| {
            iters.iter().find(|iter| iter.var == var).map(|iter| iter.binding.clone())
        })
    }

    /// Allocates a per-thread buffer: a local array if its size is constant and small, otherwise a part of a temporary
    /// in global memory.
    fn allocate(&mut self, id: BufferId) -> Result<(), String> {
        let buffer = self.func.buffer(id);
        let storage = types::storage(buffer.dtype)
            .ok_or_else(|| format!("requires a dtype that has a CUDA type; found {}", buffer.dtype))?;
        self.need_storage(buffer.dtype);
        let name = self.names.fresh(&buffer.name);
        let text = BufferText { name: name.clone(), shape: buffer.shape.clone() };
        let bytes = bytes_of(buffer);
        match bytes.as_int() {
            Some(bytes) if bytes <= LOCAL_BYTES => {
                let elements = (bytes / buffer.dtype.bytes().cast_signed()).max(1);
                self.line(&format!("{storage} {name}[{elements}];"));
            }
            _ => self.scratch(&text, storage, bytes)?,
        }
        self.buffers.insert(id, text);
        Ok(())
    }

    /// Declares a temporary with one part for each thread, and a pointer to this thread's part. A kernel of one thread
    /// has one part.
    fn scratch(&mut self, buffer: &BufferText, storage: &str, bytes: Expr) -> Result<(), String> {
        let is_passed =
            |var: VarId| self.func.scalar_params().any(|one| one == var) || self.func.symbols.contains(&var);
        if !rx_tir::is_evaluable(&bytes, &is_passed) {
            return Err(format!(
                "requires a size of `{}` that the host knows; found one that depends on a loop",
                buffer.name
            ));
        }
        let all = self.names.fresh(&format!("{}_of_threads", buffer.name));
        let argument = Argument::Temporary(self.first_scratch + self.scratch.len());
        self.parameters.push((format!("{storage}* {all}"), argument));
        let threads = self.threads.clone();
        let total = threads.clone().map_or(bytes.clone(), |threads| bytes * threads);
        self.scratch.push(Temporary { name: buffer.name.clone(), bytes: total });
        let offset = match threads {
            None => all,
            Some(_) => {
                let elements = buffer.shape.iter().cloned().map(|extent| extent.cast(DType::INT64));
                let elements = elements.reduce(|a, b| a * b).unwrap_or(Expr::int(1));
                format!("{all} + thread * {}", self.operand(&elements, expr::PRODUCT + 1)?)
            }
        };
        self.line(&format!("{storage}* {} = {offset};", buffer.name));
        Ok(())
    }

    /// Returns the text of a value that is assigned to a variable of this dtype. Floats of less than 32 bits are
    /// computed as `float`, so the value is rounded to the dtype, unless it already is.
    pub(crate) fn assigned(&mut self, value: &Expr, dtype: DType) -> Result<String, String> {
        if types::helper(dtype).is_none() || is_rounded(value) {
            return self.addend(value, 0);
        }
        let text = self.addend(value, 0)?;
        Ok(types::rounded(dtype, &text))
    }

    /// Returns the C text of a value in the storage form of `dtype`. The conversion to a float below 32 bits rounds, so
    /// a cast to `dtype` is left out if its operand is computed as `float`.
    pub(crate) fn stored(&mut self, value: &Expr, dtype: DType) -> Result<String, String> {
        match value {
            Expr::Cast { dtype: to, value: inner }
                if *to == dtype && types::helper(dtype).is_some() && types::is_single(inner.dtype()) =>
            {
                let text = self.operand(inner, 0)?;
                Ok(types::to_storage(dtype, &text))
            }
            _ => {
                let text = self.operand(value, 0)?;
                Ok(types::to_storage(dtype, &text))
            }
        }
    }

    /// Returns the number of the divisor check of the current site.
    pub(super) fn divisor_site(&mut self) -> String {
        let site: Site = self.site;
        self.uses_error = true;
        check_number(self.sites.number(site, Check::Divisor))
    }
}

/// Whether a value of a float dtype of less than 32 bits is known to be rounded to it. The operators compute in
/// `float`, without rounding.
fn is_rounded(value: &Expr) -> bool {
    match value {
        Expr::Load { .. } | Expr::Var { .. } | Expr::Cast { .. } | Expr::Float { .. } => true,
        Expr::Call { function, .. } => *function == Intrinsic::Reinterpret,
        Expr::Select { then, otherwise, .. } => is_rounded(then) && is_rounded(otherwise),
        _ => false,
    }
}

/// Whether one of the values depends on a load, on an intrinsic call, or on a scalar argument or symbol that is not the
/// extent of a buffer parameter.
pub(super) fn is_data(exprs: &[&Expr], kernel: &Kernel<'_>) -> bool {
    let is_data = |part: &Expr| match part {
        Expr::Load { .. } | Expr::Call { .. } => true,
        Expr::Var { var, .. } => kernel.data.contains(var) || kernel.is_free_scalar(*var),
        _ => false,
    };
    exprs.iter().any(|expr| expr.any(&is_data))
}
