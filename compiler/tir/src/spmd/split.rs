//! Loop fission at barriers: splits a body into loops over all threads and uniform statements that are executed once
//! per block.

use super::varying::{Axes, Varying};
use super::{Axis, Collective, Collectives, is_thread};
use crate::effects::Effects;
use crate::expr::Expr;
use crate::func::{Buffer, BufferId, PrimFunc, Scope, VarId};
use crate::placeholders::{Outcome, Problem, placeholder_of};
use crate::rewrite::{map_expr, map_stmt, substitute};
use crate::stmt::{Block, Iter, IterKind, LoopKind, Site, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::name;
use rx_base::{DType, Name};

/// The maximum number of subexpressions of a value that is substituted for its `let` variable or block axis.
const SMALL: usize = 64;

/// Splits the function's body; returns the new body.
pub(super) fn split(func: &mut PrimFunc, axes: &[Axis], varying: &Varying, collectives: &Collectives) -> Outcome<Stmt> {
    let body = func.body.clone();
    let (values, own, func_name) = (FxHashMap::default(), FxHashSet::default(), func.name);
    let mut splitter =
        Splitter { func, axes, varying, collectives, values, own, hoisted: Vec::new(), operator: func_name };
    splitter.find_own(&body);
    splitter.give_each_thread_its_own();
    let parts = splitter.parts(&body)?;
    Ok(splitter.assembled(parts))
}

/// A piece of a body.
pub(super) enum Part {
    /// A statement that is executed once per block.
    Once(Stmt),
    /// A statement that each thread executes. It may use the variables of the axes.
    Each(Stmt),
    /// A barrier.
    Barrier,
}

/// A summary of a statement.
#[derive(Clone, Copy, Debug, Default)]
struct Content {
    /// The variable of the placeholder of the first collective operation (a barrier or an all-reduce) in the statement;
    /// `None` if there is none.
    together: Option<VarId>,
    /// Whether it contains a uniform store to a private buffer, which is executed once per block.
    once: bool,
    /// Whether it contains per-thread operations.
    each: bool,
    /// Whether it contains a loop over threads.
    threads: bool,
}

impl Content {
    /// Whether the statement must be split: it contains a collective operation, or a uniform store to a private buffer
    /// together with per-thread operations or a loop over threads.
    fn is_mixed(&self) -> bool {
        self.together.is_some() || (self.once && (self.each || self.threads))
    }
}

pub(super) struct Splitter<'f> {
    pub(super) func: &'f mut PrimFunc,
    pub(super) axes: &'f [Axis],
    pub(super) varying: &'f Varying,
    collectives: &'f Collectives,
    /// The values of variables whose binders are gone.
    pub(super) values: FxHashMap<VarId, Expr>,
    /// Private buffers that differ between threads and outlive a loop over threads. Their leading indices are those of
    /// the thread.
    own: FxHashSet<BufferId>,
    /// Shared and global buffers that are allocated inside per-thread code.
    hoisted: Vec<BufferId>,
    /// The name of the innermost enclosing block that has one, or the function's name.
    operator: Name,
}

impl Splitter<'_> {
    fn content(&self, stmt: &Stmt) -> Content {
        let mut content = Content::default();
        stmt.walk(&mut |part| {
            if let Some((at, _)) = placeholder_of(part, self.collectives) {
                content.together = content.together.or(Some(at));
                return;
            }
            match part {
                Stmt::Store { buffer, .. } => {
                    let is_alike = self.varying.is_local(*buffer) && self.varying.buffer(*buffer) == 0;
                    content.once |= is_alike;
                    content.each |= !is_alike;
                }
                Stmt::Assert { condition: value, .. } | Stmt::Evaluate(value) => {
                    content.each |= self.varying.expr(value) != 0;
                }
                Stmt::For { kind: LoopKind::ThreadBinding(tag), .. } => content.threads |= is_thread(tag),
                _ => {}
            }
        });
        content
    }

    /// Finds the buffers whose contents differ between threads and that are allocated outside of per-thread code, so
    /// that they outlive a loop over threads.
    fn find_own(&mut self, stmt: &Stmt) {
        if !self.content(stmt).is_mixed() {
            return;
        }
        if let Stmt::Block(block) = stmt {
            let differs = |buffer: &&BufferId| self.varying.buffer(**buffer) != 0;
            let own: Vec<BufferId> = block.allocations.iter().filter(differs).copied().collect();
            self.own.extend(own);
        }
        stmt.children().into_iter().for_each(|child| self.find_own(child));
    }

    fn give_each_thread_its_own(&mut self) {
        let extents: Vec<Expr> = self.many().map(|axis| int(axis.extent)).collect();
        for id in &self.own {
            // INVARIANT: allocations are indices of the table.
            let buffer = &mut self.func.buffers[id.0 as usize];
            buffer.shape = extents.iter().cloned().chain(buffer.shape.drain(..)).collect();
            // The declared strides describe the memory of one thread, without the new axes. No access uses them.
            buffer.strides = None;
        }
    }

    /// Returns the axes with more than one thread.
    pub(super) fn many(&self) -> impl Iterator<Item = &Axis> {
        self.axes.iter().filter(|axis| axis.extent > 1)
    }

    /// Returns the indices of the current thread along the axes with more than one thread.
    pub(super) fn thread(&self) -> Vec<Expr> {
        self.many().map(|axis| self.func.var_expr(axis.var)).collect()
    }

    /// Converts an expression of the original body to one over the axes' variables.
    pub(super) fn expr(&self, expr: &Expr) -> Expr {
        map_expr(expr, &mut |part| match part {
            Expr::Var { var, dtype } => self.values.get(&var).cloned().unwrap_or(Expr::Var { var, dtype }),
            Expr::Load { buffer, dtype, indices } if self.own.contains(&buffer) => {
                Expr::Load { buffer, dtype, indices: [self.thread(), indices].concat() }
            }
            other => other,
        })
    }

    /// Converts the indices of an access in the original body.
    pub(super) fn element(&self, buffer: BufferId, indices: &[Expr]) -> Vec<Expr> {
        let indices = indices.iter().map(|index| self.expr(index));
        if self.own.contains(&buffer) { self.thread().into_iter().chain(indices).collect() } else { indices.collect() }
    }

    /// Adds a new buffer.
    pub(super) fn new_buffer(&mut self, name: Name, dtype: DType, shape: Vec<Expr>, scope: Scope) -> BufferId {
        self.func.add_buffer(Buffer { name, dtype, shape, strides: None, order: None, scope })
    }

    /// Splits a statement into pieces, in order.
    fn parts(&mut self, stmt: &Stmt) -> Outcome<Vec<Part>> {
        let content = self.content(stmt);
        if !content.is_mixed() {
            return Ok(vec![match content.each || content.threads {
                true => self.by_each(stmt)?,
                false => Part::Once(map_stmt(stmt, &mut |expr| self.expr(expr))),
            }]);
        }
        let at = content.together.unwrap_or(VarId(0));
        match stmt {
            Stmt::Seq(parts) => {
                let parts = parts.iter().map(|part| self.parts(part));
                Ok(parts.collect::<Outcome<Vec<_>>>()?.into_iter().flatten().collect())
            }
            Stmt::For { var, extent, kind: LoopKind::ThreadBinding(tag), body, .. } if is_thread(tag) => {
                if Varying::left_out(self.axes, tag, extent) != 0 {
                    return Err(apart(at));
                }
                self.bind_thread(*var, tag);
                self.parts(body)
            }
            Stmt::For { var, start, extent, kind, body } => {
                self.alike([start, extent], at)?;
                let (start, extent) = (self.expr(start), self.expr(extent));
                let body = Box::new(self.inner(body)?);
                Ok(vec![Part::Once(Stmt::For { var: *var, start, extent, kind: *kind, body })])
            }
            Stmt::If { condition, then, otherwise } => {
                self.alike([condition], at)?;
                let condition = self.expr(condition);
                let then = Box::new(self.inner(then)?);
                let otherwise = otherwise.as_ref().map(|part| self.inner(part)).transpose()?.map(Box::new);
                Ok(vec![Part::Once(Stmt::If { condition, then, otherwise })])
            }
            Stmt::While { condition, body } => {
                self.alike([condition], at)?;
                let condition = self.expr(condition);
                Ok(vec![Part::Once(Stmt::While { condition, body: Box::new(self.inner(body)?) })])
            }
            Stmt::Let { var, value, body } => self.named(*var, value, body),
            Stmt::Block(block) => self.block(block, at),
            Stmt::Store { .. } | Stmt::Assert { .. } | Stmt::Evaluate(_) => {
                match placeholder_of(stmt, self.collectives) {
                    Some((_, Collective::Barrier)) => Ok(vec![Part::Barrier]),
                    Some((at, Collective::AllReduce(reduction))) => self.all_reduce(at, reduction),
                    None => Ok(vec![self.by_each(stmt)?]),
                }
            }
        }
    }

    /// Splits a statement inside another one, and returns it as one statement.
    fn inner(&mut self, stmt: &Stmt) -> Outcome<Stmt> {
        let parts = self.parts(stmt)?;
        Ok(self.assembled(parts))
    }

    /// Checks that the expressions are uniform. Otherwise some threads would not reach the barrier or all-reduce.
    fn alike<const N: usize>(&self, exprs: [&Expr; N], at: VarId) -> Outcome<()> {
        if self.varying.exprs(exprs) == 0 { Ok(()) } else { Err(apart(at)) }
    }

    fn bind_thread(&mut self, var: VarId, tag: &str) {
        if let Some(axis) = self.axes.iter().find(|axis| *axis.tag == *tag) {
            let value = self.func.var_expr(axis.var).cast(self.func.var(var).dtype);
            self.values.insert(var, value);
        }
    }

    /// Splits `var = value` with the statements of `body`.
    fn named(&mut self, var: VarId, value: &Expr, body: &Stmt) -> Outcome<Vec<Part>> {
        let differs = self.varying.expr(value) != 0;
        let value = self.expr(value);
        if is_small(&value) {
            self.values.insert(var, value);
            return self.parts(body);
        }
        if !differs {
            let body = Box::new(self.inner(body)?);
            return Ok(vec![Part::Once(Stmt::Let { var, value, body })]);
        }
        let (buffer, store) = self.kept(var, value);
        let mut parts = vec![Part::Each(store)];
        parts.extend(self.parts(body)?);
        Ok(vec![Part::Once(self.with_buffers(vec![buffer], parts))])
    }

    /// Spills a value to a per-thread buffer, since it is too large to repeat, or reads memory that may change after
    /// the next barrier. Returns the buffer and the store.
    fn kept(&mut self, var: VarId, value: Expr) -> (BufferId, Stmt) {
        let extents = self.many().map(|axis| int(axis.extent)).collect();
        let buffer = self.new_buffer(self.func.var(var).name, value.dtype(), extents, Scope::Local);
        let kept = self.func.load(buffer, self.thread());
        self.values.insert(var, kept);
        let site = Site { origin: None, operator: self.operator };
        (buffer, Stmt::Store { buffer, indices: self.thread(), value, site })
    }

    /// Joins the pieces in an unnamed block that allocates the buffers.
    pub(super) fn with_buffers(&mut self, allocations: Vec<BufferId>, parts: Vec<Part>) -> Stmt {
        let body = self.assembled(parts);
        Stmt::holding(name(""), allocations, body)
    }

    fn block(&mut self, block: &Block, at: VarId) -> Outcome<Vec<Part>> {
        // Axes with uniform bindings stay. Axes that depend on threads are substituted, or spilled if their values are
        // large or read memory.
        let mut iters = Vec::new();
        let (mut keeping, mut stores) = (Vec::new(), Vec::new());
        for iter in &block.iters {
            let binding = self.expr(&iter.binding);
            if self.varying.expr(&iter.binding) == 0 {
                let (start, extent) = (self.expr(&iter.start), self.expr(&iter.extent));
                iters.push(Iter { var: iter.var, kind: iter.kind, start, extent, binding });
                continue;
            }
            let binding = binding.cast(self.func.var(iter.var).dtype);
            if is_small(&binding) {
                self.values.insert(iter.var, binding);
            } else {
                let (buffer, store) = self.kept(iter.var, binding);
                keeping.push(buffer);
                stores.push(Part::Each(store));
            }
        }
        if let Some(predicate) = &block.predicate {
            self.alike([predicate], at)?;
        }
        let around = self.operator;
        if !block.name.is_empty() {
            self.operator = block.name;
        }
        let mut parts = Vec::new();
        if let Some(init) = block.beginning() {
            parts.extend(self.parts(&init)?);
        }
        parts.extend(self.parts(&block.body)?);
        self.operator = around;
        let predicate = block.predicate.as_ref().map(|predicate| self.expr(predicate));
        // The block keeps its name, its uniform axes and predicate, and its buffers.
        let (name, allocations, body) = (block.name, block.allocations.clone(), self.assembled(parts));
        let made = Part::Once(Stmt::Block(Box::new(Block { name, iters, predicate, allocations, init: None, body })));
        if keeping.is_empty() {
            return Ok(vec![made]);
        }
        stores.push(made);
        Ok(vec![Part::Once(self.with_buffers(keeping, stores))])
    }

    /// Rewrites per-thread code as one piece.
    fn by_each(&mut self, stmt: &Stmt) -> Outcome<Part> {
        let done = self.alone(stmt, 0)?;
        let hoisted = std::mem::take(&mut self.hoisted);
        Ok(match hoisted.is_empty() {
            true => Part::Each(done),
            false => Part::Once(self.with_buffers(hoisted, vec![Part::Each(done)])),
        })
    }

    /// Rewrites a statement of per-thread code and removes its loops over threads. If neither the indices of a store to
    /// shared or global memory nor the control flow around it depends on an axis, only the threads with index 0 along
    /// that axis execute it. For example, with axes x and y, only threads with `ty == 0` execute an unconditional store
    /// to `S[tx]`.
    ///
    /// Control flow includes conditions, the bounds of loops, the predicates of blocks, and loops over threads with
    /// fewer iterations than their axis has threads. `control` is the set of axes on which the control flow around the
    /// statement depends.
    fn alone(&mut self, stmt: &Stmt, control: Axes) -> Outcome<Stmt> {
        Ok(match stmt {
            Stmt::Seq(parts) => {
                in_order(parts.iter().map(|part| self.alone(part, control)).collect::<Outcome<Vec<_>>>()?)
            }
            Stmt::For { var, extent, kind: LoopKind::ThreadBinding(tag), body, .. } if is_thread(tag) => {
                self.bind_thread(*var, tag);
                let left_out = Varying::left_out(self.axes, tag, extent);
                let body = self.alone(body, control | left_out)?;
                match left_out {
                    0 => body,
                    _ => {
                        let condition = self.expr(&self.func.var_expr(*var)).lt(extent.clone());
                        Stmt::when(condition, body)
                    }
                }
            }
            Stmt::For { var, start, extent, kind, body } => {
                let inside = control | self.varying.exprs([start, extent]);
                let (start, extent) = (self.expr(start), self.expr(extent));
                Stmt::For { var: *var, start, extent, kind: *kind, body: Box::new(self.alone(body, inside)?) }
            }
            Stmt::If { condition, then, otherwise } => {
                let inside = control | self.varying.expr(condition);
                let condition = self.expr(condition);
                let then = Box::new(self.alone(then, inside)?);
                let otherwise = otherwise.as_ref().map(|part| self.alone(part, inside)).transpose()?.map(Box::new);
                Stmt::If { condition, then, otherwise }
            }
            Stmt::While { condition, body } => {
                let inside = control | self.varying.expr(condition);
                Stmt::While { condition: self.expr(condition), body: Box::new(self.alone(body, inside)?) }
            }
            Stmt::Let { var, value, body } => {
                let value = self.expr(value);
                if is_small(&value) {
                    self.values.insert(*var, value);
                    return self.alone(body, control);
                }
                Stmt::Let { var: *var, value, body: Box::new(self.alone(body, control)?) }
            }
            Stmt::Block(block) => self.block_alone(block, control)?,
            Stmt::Store { buffer, indices, .. } => {
                let reported = control | self.varying.exprs(indices);
                let store = self.store(stmt, *buffer);
                let missing = self.varying.all & !reported;
                if self.varying.is_local(*buffer) || missing == 0 { store } else { self.by_first(missing, store) }
            }
            Stmt::Assert { .. } | Stmt::Evaluate(_) => map_stmt(stmt, &mut |expr| self.expr(expr)),
        })
    }

    fn store(&self, stmt: &Stmt, of: BufferId) -> Stmt {
        match stmt {
            Stmt::Store { indices, value, site, .. } => {
                let (indices, value) = (self.element(of, indices), self.expr(value));
                Stmt::Store { buffer: of, indices, value, site: *site }
            }
            other => other.clone(),
        }
    }

    /// Restricts a statement to the threads with index 0 along the given axes.
    fn by_first(&self, along: Axes, stmt: Stmt) -> Stmt {
        let of = self.axes.iter().enumerate().filter(|(at, _)| along & (1 << at) != 0);
        let first = of.map(|(_, axis)| self.func.var_expr(axis.var).eq(int(0))).reduce(Expr::and);
        match first {
            Some(condition) => Stmt::when(condition, stmt),
            None => stmt,
        }
    }

    fn block_alone(&mut self, block: &Block, control: Axes) -> Outcome<Stmt> {
        let crosses = |kind: IterKind, binding: &Expr| kind == IterKind::Reduce && self.varying.expr(binding) != 0;
        if block.iters.iter().any(|iter| crosses(iter.kind, &iter.binding)) {
            let at = self.collectives.keys().min().copied().unwrap_or(VarId(0));
            return Err(Problem {
                at,
                reason: "a block sums up over threads that also wait for each other by themselves",
            });
        }
        let inside = control | self.varying.exprs(&block.predicate);
        let mut made = block.clone();
        let mut named = Vec::new();
        match block.init {
            Some(_) => made.iters.iter_mut().for_each(|iter| {
                for expr in [&mut iter.start, &mut iter.extent, &mut iter.binding] {
                    *expr = self.expr(expr);
                }
            }),
            // Without an init, axes are only names for their bindings.
            None => {
                for iter in made.iters.drain(..) {
                    let value = self.expr(&iter.binding).cast(self.func.var(iter.var).dtype);
                    match is_small(&value) {
                        true => drop(self.values.insert(iter.var, value)),
                        false => named.push((iter.var, value)),
                    }
                }
            }
        }
        made.predicate = block.predicate.as_ref().map(|predicate| self.expr(predicate));
        let (shared, own) = block.allocations.iter().partition(|id| !self.varying.is_local(**id));
        made.allocations = own;
        self.hoisted.extend::<Vec<BufferId>>(shared);
        made.init = block.init.as_ref().map(|init| self.alone(init, inside)).transpose()?;
        made.body = self.alone(&block.body, inside)?;
        let made = Stmt::Block(Box::new(made));
        let around = |body, (var, value)| Stmt::Let { var, value, body: Box::new(body) };
        Ok(named.into_iter().rev().fold(made, around))
    }

    /// Joins the pieces to one statement. Adjacent per-thread pieces become one loop over threads. It is split at a
    /// barrier, and before a piece that accesses the same shared or global buffer as an earlier piece of the loop if
    /// one of the two writes it.
    fn assembled(&mut self, parts: Vec<Part>) -> Stmt {
        let mut made = Vec::new();
        let mut group: Vec<Stmt> = Vec::new();
        let mut seen = Effects::default();
        for part in parts {
            let joins = match &part {
                Part::Each(stmt) => !seen.conflicts_with(&self.seen_by_others(stmt)),
                _ => false,
            };
            if !joins {
                made.extend(self.over_threads(&mut group));
                seen = Effects::default();
            }
            match part {
                Part::Once(stmt) => made.push(stmt),
                Part::Each(stmt) => {
                    seen.add(&self.seen_by_others(&stmt));
                    group.push(stmt);
                }
                Part::Barrier => {}
            }
        }
        made.extend(self.over_threads(&mut group));
        in_order(made)
    }

    /// Returns the accesses of a statement to shared and global memory.
    fn seen_by_others(&self, stmt: &Stmt) -> Effects {
        Effects::of(stmt).of_only(|id| !self.func.buffer(id).scope.is_private())
    }

    /// Builds loops over all threads around the statements of `group`, with new variables, and empties `group`. Returns
    /// `None` if it is empty.
    fn over_threads(&mut self, group: &mut Vec<Stmt>) -> Option<Stmt> {
        if group.is_empty() {
            return None;
        }
        let body = in_order(std::mem::take(group));
        let fresh: Vec<(VarId, VarId)> = self
            .axes
            .iter()
            .map(|axis| (axis.var, self.func.add_var(self.func.var(axis.var).name, DType::INT32)))
            .collect();
        let value = |var: VarId| {
            let (_, own) = fresh.iter().find(|(of, _)| *of == var)?;
            Some(self.func.var_expr(*own))
        };
        let body = map_stmt(&body, &mut |expr| substitute(expr, &value));
        let around = |body, (axis, (_, var)): (&Axis, &(VarId, VarId))| bound(*var, axis, body);
        Some(self.axes.iter().zip(&fresh).rev().fold(body, around))
    }
}

/// Joins statements in order. In TVMScript, a `let` binds its variable for all statements after it, so they are moved
/// into its body.
fn in_order(statements: Vec<Stmt>) -> Stmt {
    let mut flat = match Stmt::seq(statements) {
        Stmt::Seq(flat) => flat,
        one => return one,
    };
    let is_name = |stmt: &Stmt| matches!(stmt, Stmt::Let { .. });
    if let Some(at) = flat.iter().position(is_name).filter(|at| at + 1 < flat.len()) {
        let rest = flat.split_off(at + 1);
        if let Some(Stmt::Let { var, value, body }) = flat.pop() {
            let body = Box::new(in_order(std::iter::once(*body).chain(rest).collect()));
            flat.push(Stmt::Let { var, value, body });
        }
    }
    Stmt::seq(flat)
}

/// Builds a loop that is bound to an axis.
pub(super) fn bound(var: VarId, axis: &Axis, body: Stmt) -> Stmt {
    let kind = LoopKind::ThreadBinding(axis.tag);
    Stmt::For { var, start: int(0), extent: int(axis.extent), kind, body: Box::new(body) }
}

pub(super) fn int(value: i64) -> Expr {
    Expr::Int { value, dtype: DType::INT32 }
}

fn apart(at: VarId) -> Problem {
    Problem { at, reason: "the threads of a block wait for each other where not all of them come" }
}

/// Whether a value may be substituted for its variable: it is small and reads no memory.
fn is_small(value: &Expr) -> bool {
    let (mut parts, mut reads) = (0, false);
    value.walk(&mut |part| {
        parts += 1;
        reads |= matches!(part, Expr::Load { .. });
    });
    !reads && parts <= SMALL
}
