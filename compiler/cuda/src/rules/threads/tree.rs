//! Builds the kernel body ([`Node`]) of a function's statements: loops over threads become thread indices and guards,
//! and blocks become plain statements.
//!
//! ```text
//! for tx in T.thread_binding(64, "threadIdx.x"):        if (threadIdx_x < 64)       // the block has 128 threads
//!     with T.block(): B[tx] = A[tx]                →        B[threadIdx_x] = A[threadIdx_x]
//! ```
//!
//! A divergent `if` condition around statements that may need barriers becomes a guard of the leaves inside, so that
//! barriers stay outside of it. This requires a condition that neither reads memory nor calls a function. Further
//! requires that loops over threads are not in a divergent `while` loop, and that blocks need not wait for each other.
//!
//! Guarantees that a store to shared or global memory outside of the loops over some `threadIdx` axis is made by thread
//! 0 of that axis (by the first warp along `threadIdx.x`, if it stores fragments).

mod reduction;

use super::{Launch, Node, fragments, with_body};
use crate::rules::Declined;
use rx_base::DType;
use rx_loops::explicit_loops;
use rx_tir::rewrite::{map_stmt, substitute};
use rx_tir::spmd::Varying;
use rx_tir::{BinaryOp, Block, BufferId, Effects, Expr, Iter, IterKind, LoopKind, PrimFunc, Scope, Stmt, VarId};

/// Returns the tree of consecutive statements.
///
/// # Errors
/// If a statement has no kernel: for example, it needs a barrier of the whole grid, or has a data race that `races`
/// recognizes.
pub(super) fn of(
    func: &mut PrimFunc,
    launch: &Launch,
    varying: &Varying,
    statements: &[Stmt],
) -> Result<Node, Declined> {
    let mut builder = Builder { func, launch, varying };
    let place = Place { bound: Vec::new(), guards: Vec::new() };
    let nodes = statements.iter().map(|stmt| builder.node(stmt, &place));
    Ok(Node::Seq(nodes.collect::<Result<_, _>>()?))
}

/// The builder of the [`Node`] tree of consecutive statements. It adds the variables that nodes need to the function,
/// for example for the partial results of a cross-thread reduction.
struct Builder<'f> {
    func: &'f mut PrimFunc,
    launch: &'f Launch,
    varying: &'f Varying,
}

/// The context of a statement.
#[derive(Clone)]
struct Place {
    /// The thread and block axes that loops around it are bound to.
    bound: Vec<VarId>,
    /// Conditions, possibly divergent, under which it is executed. They are added to the leaves inside, not around a
    /// statement that may contain barriers.
    guards: Vec<Expr>,
}

impl Builder<'_> {
    /// Returns the node of a statement in a context.
    fn node(&mut self, stmt: &Stmt, place: &Place) -> Result<Node, Declined> {
        if fragments::is_step(self.func, stmt) {
            return self.warp(stmt, place);
        }
        if !self.is_compound(stmt)
            && let Some(together) = self.together(stmt, place)?
        {
            return Ok(Node::Reduce(Box::new(together)));
        }
        match stmt {
            Stmt::For { var, extent, body, kind: LoopKind::ThreadBinding(tag), .. } if !tag.starts_with("vthread") => {
                self.threads((*var, extent), body, tag, place)
            }
            Stmt::Seq(parts) if !self.is_of_each_block(place) && self.blocks_meet(parts) => Err(Declined::because(
                "requires independent statements over blocks; found ones that need a barrier of the grid",
            )),
            Stmt::Seq(parts) => {
                let nodes = parts.iter().map(|part| self.node(part, place));
                Ok(Node::Seq(nodes.collect::<Result<_, _>>()?))
            }
            Stmt::Block(block) if block.iters.is_empty() && block.init.is_none() => {
                let mut place = place.clone();
                place.guards.extend(block.predicate.clone());
                self.node(&block.body, &place)
            }
            Stmt::Block(block) if self.is_compound(stmt) => self.block(block, place),
            Stmt::For { body, .. } | Stmt::While { body, .. }
                if binds_blocks(body) && !self.is_of_each_block(place) =>
            {
                Err(Declined::because(
                    "requires no loop around loops over blocks; found one, whose iterations need a barrier of the grid",
                ))
            }
            Stmt::For { var, start, extent, body, .. } if self.is_compound(body) || self.meets_itself(stmt) => {
                if fragments::are_used(self.func, body)
                    && ![start, extent].into_iter().all(|expr| self.is_of_warps(expr))
                {
                    return Err(Declined::because(
                        "requires whole warps for fragments; found a loop that differs within a warp",
                    ));
                }
                let body = Box::new(self.node(body, place)?);
                Ok(Node::For { var: *var, start: start.clone(), extent: extent.clone(), body })
            }
            Stmt::If { condition, .. } if reads(condition) && self.is_of_each(stmt) => self.leaf(stmt, place),
            Stmt::If { condition, then, otherwise } if self.is_compound(stmt) => {
                self.choice(condition, then, otherwise, place)
            }
            Stmt::Let { var, value, body } if self.binds_threads(body) => self.named(*var, value, body, place),
            Stmt::While { condition, body } if self.binds_threads(body) => {
                if !place.guards.is_empty() || !self.varying.is_uniform(condition) {
                    return Err(Declined::because(
                        "requires a uniform `while` condition; found one that differs between threads",
                    ));
                }
                Ok(Node::While { condition: condition.clone(), body: Box::new(self.node(body, place)?) })
            }
            leaf => self.leaf(leaf, place),
        }
    }

    /// Returns the node of an operation on tensor core fragments.
    fn warp(&self, stmt: &Stmt, place: &Place) -> Result<Node, Declined> {
        let lanes = fragments::lanes(self.launch)?;
        let mut of_warps = place.clone();
        of_warps.bound.push(lanes.var);
        let first = self.elected_thread(&stores_of(stmt), &of_warps)?;
        fragments::warp((self.func, self.launch), (&place.bound, &place.guards), stmt, first)
    }

    /// Inlines a compound block ([`Builder::is_compound`]): its iteration variables are replaced by their bindings, its
    /// init becomes a statement that runs where all reduction axes have their first values, and its predicate becomes a
    /// guard. Declines a block with an init if a reduction axis of it is bound to a `threadIdx` axis.
    fn block(&mut self, block: &Block, place: &Place) -> Result<Node, Declined> {
        let value = |var: VarId| binding(block, var);
        let mut place = place.clone();
        place.guards.extend(block.predicate.as_ref().map(|predicate| substitute(predicate, &value)));
        let mut body = block.body.clone();
        if let Some(init) = block.beginning() {
            let mut reduced = block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
            if reduced.any(|iter| self.launch.is_of_threads(&iter.binding)) {
                return Err(Declined::because("requires a cross-thread reduction in a known form; found another"));
            }
            body = Stmt::seq([init, body]);
        }
        let body = map_stmt(&body, &mut |expr| substitute(expr, &value));
        self.node(&body, &place)
    }

    /// Whether two statements, at least one of which has loops over blocks, conflict on a global buffer. The blocks
    /// would have to wait for each other between them.
    fn blocks_meet(&self, parts: &[Stmt]) -> bool {
        let is_seen = |id: BufferId| self.func.buffer(id).scope == Scope::Global;
        let effects = |part: &Stmt| (binds_blocks(part), Effects::of(part).of_only(is_seen));
        let effects: Vec<(bool, Effects)> = parts.iter().map(effects).collect();
        effects.iter().enumerate().any(|(at, (of_blocks, first))| {
            effects[at + 1..].iter().any(|(also_of_blocks, then)| {
                let meet = !first.written.is_disjoint(&then.written)
                    || !first.written.is_disjoint(&then.read)
                    || !first.read.is_disjoint(&then.written);
                meet && (*of_blocks || *also_of_blocks)
            })
        })
    }

    /// Whether a statement is inside loops over all block axes.
    fn is_of_each_block(&self, place: &Place) -> bool {
        self.launch.blocks().all(|axis| place.bound.contains(&axis.var))
    }

    /// Whether a statement may need more than one node, as it contains loops bound to threads, virtual threads or
    /// blocks, a sequence that may need barriers, or accesses to fragments.
    fn is_compound(&self, stmt: &Stmt) -> bool {
        is_compound(stmt) || fragments::are_used(self.func, stmt)
    }

    /// Whether a statement contains loops bound to threads, virtual threads or blocks, or accesses to fragments.
    fn binds_threads(&self, stmt: &Stmt) -> bool {
        binds_threads(stmt) || fragments::are_used(self.func, stmt)
    }

    /// Whether each thread can execute a statement by itself, without barriers inside: it binds no threads, accesses no
    /// fragments, writes no shared buffer, and reads no global buffer that it writes.
    fn is_of_each(&self, stmt: &Stmt) -> bool {
        let effects = Effects::of(stmt).of_only(|id| !self.func.buffer(id).scope.is_private());
        let is_shared = |id: &BufferId| self.func.buffer(*id).scope == Scope::Shared;
        !self.binds_threads(stmt)
            && effects.read.is_disjoint(&effects.written)
            && !effects.written.iter().any(is_shared)
    }

    /// Whether an expression is the same for all threads of a warp: it uses neither `threadIdx.x` nor a private buffer.
    fn is_of_warps(&self, expr: &Expr) -> bool {
        expr.all(&|part| match part {
            Expr::Var { var, .. } => self.launch.axis("threadIdx.x").is_none_or(|axis| axis.var != *var),
            Expr::Load { buffer, .. } => !self.func.buffer(*buffer).scope.is_private(),
            _ => true,
        })
    }

    /// Returns the node of a loop over threads or blocks: its variable becomes the axis's index, and a loop that may be
    /// shorter than the axis adds a guard.
    fn threads(
        &mut self,
        (var, extent): (VarId, &Expr),
        body: &Stmt,
        tag: &str,
        place: &Place,
    ) -> Result<Node, Declined> {
        let axis = self
            .launch
            .axis(tag)
            .ok_or_else(|| Declined::because(format!("requires a launched axis; found `{tag}`")))?;
        let value = self.func.var_expr(axis.var);
        let mut place = place.clone();
        place.bound.push(axis.var);
        let leaves_some_out = match (extent.as_int(), axis.extent.as_int()) {
            (Some(own), Some(all)) => own < all,
            (None, Some(_)) => true,
            // The grid has exactly the loop's extent.
            (_, None) => false,
        };
        if leaves_some_out {
            place.guards.push(value.clone().lt(extent.clone().cast(DType::INT64)));
        }
        let value = value.cast(self.func.var(var).dtype);
        let body = map_stmt(body, &mut |expr| substitute(expr, &|one| (one == var).then(|| value.clone())));
        self.node(&body, &place)
    }

    /// Returns the node of a compound branch. A uniform branch without guards around it stays. Any other branch becomes
    /// the sequence of its sides, each guarded by the condition or its negation; the condition must then neither read
    /// memory nor call a function.
    fn choice(
        &mut self,
        condition: &Expr,
        then: &Stmt,
        otherwise: &Option<Box<Stmt>>,
        place: &Place,
    ) -> Result<Node, Declined> {
        if self.varying.is_uniform(condition) && place.guards.is_empty() {
            let then = Box::new(self.node(then, place)?);
            let otherwise = otherwise.as_deref().map(|side| self.node(side, place)).transpose()?.map(Box::new);
            return Ok(Node::If { condition: condition.clone(), then, otherwise });
        }
        Declined::when(reads(condition), "requires conditions without loads around loops over threads; found a load")?;
        let mut sides = Vec::new();
        for (side, holds) in [(Some(then), true), (otherwise.as_deref(), false)] {
            let Some(side) = side else { continue };
            let mut place = place.clone();
            place.guards.push(if holds { condition.clone() } else { !condition.clone() });
            sides.push(self.node(side, &place)?);
        }
        Ok(Node::Seq(sides))
    }

    /// Returns the node of a let statement whose body satisfies [`Builder::binds_threads`]. A uniform value stays;
    /// another one is substituted, and must then neither read memory nor call a function.
    fn named(&mut self, var: VarId, value: &Expr, body: &Stmt, place: &Place) -> Result<Node, Declined> {
        if self.varying.is_uniform(value) {
            let body = Box::new(self.node(body, place)?);
            return Ok(Node::Let { var, value: value.clone(), body });
        }
        Declined::when(reads(value), "requires `let` values without loads around loops over threads; found a load")?;
        let body = map_stmt(body, &mut |expr| substitute(expr, &|one| (one == var).then(|| value.clone())));
        self.node(&body, place)
    }

    /// Returns the leaf of a statement that contains no loops over threads: with explicit loops instead of blocks,
    /// under the context's guards and the predicate of [`Builder::elected_thread`]. Declines a cross-thread reduction,
    /// the data races that `races` recognizes, and the stores that [`Builder::elected_thread`] declines.
    fn leaf(&mut self, stmt: &Stmt, place: &Place) -> Result<Node, Declined> {
        let begun = with_conditions(stmt, &mut Vec::new());
        let plain = explicit_loops(&with_body(self.func, begun)).body;
        let plain = with_vectors(&without_blocks(&plain), &vectors_of(stmt));
        let crosses = |iter: &Iter| iter.kind == IterKind::Reduce && self.launch.is_of_threads(&iter.binding);
        let crossing = stmt.any(&|part| matches!(part, Stmt::Block(block) if block.iters.iter().any(crosses)));
        Declined::when(crossing, "requires a cross-thread reduction in a known form; found another")?;
        super::races::check(self.func, self.launch, (&place.bound, &place.guards), &plain)?;
        let mut guards = place.guards.clone();
        guards.extend(self.elected_thread(&stores_of(&plain), place)?);
        Ok(Node::Leaf(match all(guards) {
            Some(condition) => Stmt::when(condition, plain),
            None => plain,
        }))
    }

    /// Returns the predicate that elects one thread (index 0 on every `threadIdx` axis that no loop around is bound to)
    /// for a statement that stores to shared or global memory. `None`: all threads execute it, as it only stores to
    /// private buffers, or loops around are bound to all `threadIdx` axes. Declines stores to global memory unless
    /// loops around are bound to all block axes, and a statement that needs the predicate but also stores to private
    /// buffers.
    ///
    /// For example, a store to shared memory outside of any loop over `threadIdx.x` has the predicate
    /// `threadIdx_x == 0`.
    fn elected_thread(&self, stored: &[BufferId], place: &Place) -> Result<Option<Expr>, Declined> {
        let is_local = |id: &BufferId| self.func.buffer(*id).scope.is_private();
        let local = stored.iter().filter(|id| is_local(id)).count();
        let is_of_all = |id: &BufferId| self.func.buffer(*id).scope == Scope::Global;
        if stored.iter().any(is_of_all) && !self.is_of_each_block(place) {
            return Err(Declined::because("requires loops over blocks around stores to global memory; found none"));
        }
        let others = self.launch.lanes().filter(|axis| !place.bound.contains(&axis.var));
        let first = all(others.map(|axis| self.func.var_expr(axis.var).eq(Expr::int(0))).collect());
        match (local, first) {
            (_, None) => Ok(None),
            (local, _) if local == stored.len() => Ok(None),
            (0, first) => Ok(first),
            _ => Err(Declined::because("requires stores to private or to shared buffers; found both in one statement")),
        }
    }

    /// Whether a loop reads a shared buffer that it also writes, so that its body may need barriers.
    fn meets_itself(&self, stmt: &Stmt) -> bool {
        let effects = Effects::of(stmt).of_only(|id| self.func.buffer(id).scope == Scope::Shared);
        !effects.read.is_disjoint(&effects.written)
    }
}

/// Returns the binding of a block's iteration variable.
fn binding(block: &Block, var: VarId) -> Option<Expr> {
    block.iters.iter().find(|iter| iter.var == var).map(|iter| iter.binding.clone())
}

/// Whether a statement contains loops bound to threads, virtual threads or blocks, or a sequence that may need barriers
/// between its statements: at least two of them are not plain stores.
fn is_compound(stmt: &Stmt) -> bool {
    stmt.any(&|part| match part {
        Stmt::For { kind: LoopKind::ThreadBinding(_), .. } => true,
        Stmt::Seq(parts) => parts.iter().filter(|part| !matches!(part, Stmt::Store { .. })).count() > 1,
        _ => false,
    })
}

/// Whether a statement contains loops bound to threads or blocks (or virtual threads).
fn binds_threads(stmt: &Stmt) -> bool {
    stmt.any(&|part| matches!(part, Stmt::For { kind: LoopKind::ThreadBinding(_), .. }))
}

/// Whether a statement contains loops over blocks.
fn binds_blocks(stmt: &Stmt) -> bool {
    stmt.any(
        &|part| matches!(part, Stmt::For { kind: LoopKind::ThreadBinding(tag), .. } if tag.starts_with("blockIdx.")),
    )
}

/// Rewrites blocks whose reduction may continue across iterations of a loop around the statement: `init` becomes a
/// statement at the beginning of the body that runs in the first iteration only. Expanding the block would otherwise
/// reset the sum in every iteration of that loop.
///
/// `inside` are the variables of the loops inside the statement, around the current block.
fn with_conditions(stmt: &Stmt, inside: &mut Vec<VarId>) -> Stmt {
    let depth = inside.len();
    if let Stmt::For { var, .. } = stmt {
        inside.push(*var);
    }
    let mut result = rx_tir::rewrite::map_children(stmt, &mut |child| with_conditions(child, inside));
    if let Stmt::Block(block) = &mut result
        && let Some(init) = block.beginning()
    {
        let mut reduced = block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
        if !reduced.all(|iter| uses_only(&iter.binding, &|var| inside.contains(&var))) {
            block.body = Stmt::seq([init, block.body.clone()]);
            block.init = None;
        }
    }
    inside.truncate(depth);
    result
}

/// Whether all variables of an expression are in a set.
fn uses_only(expr: &Expr, set: &dyn Fn(VarId) -> bool) -> bool {
    !expr.any(&|part| matches!(part, Expr::Var { var, .. } if !set(*var)))
}

/// Whether an expression reads memory or calls a function.
fn reads(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Load { .. } | Expr::Call { .. }))
}

/// Returns the buffers that a statement stores to, without duplicates.
fn stores_of(stmt: &Stmt) -> Vec<BufferId> {
    let mut stored = Vec::new();
    stmt.walk(&mut |part| {
        if let Stmt::Store { buffer, .. } = part
            && !stored.contains(buffer)
        {
            stored.push(*buffer);
        }
    });
    stored
}

/// Splits a condition at `and` and appends its parts to `into`.
fn conjuncts(condition: &Expr, into: &mut Vec<Expr>) {
    match condition {
        Expr::Binary { op: BinaryOp::And, left, right } => {
            conjuncts(left, into);
            conjuncts(right, into);
        }
        other => into.push(other.clone()),
    }
}

/// Returns the conjunction of conditions; `None` if there are none.
fn all(conditions: Vec<Expr>) -> Option<Expr> {
    conditions.into_iter().reduce(Expr::and)
}

/// Replaces blocks without iteration variables and init by their bodies, with their predicates as conditions.
fn without_blocks(stmt: &Stmt) -> Stmt {
    match stmt {
        Stmt::Block(block) if block.iters.is_empty() && block.init.is_none() => {
            let body = without_blocks(&block.body);
            match &block.predicate {
                Some(condition) => Stmt::when(condition.clone(), body),
                None => body,
            }
        }
        other => rx_tir::rewrite::map_children(other, &mut without_blocks),
    }
}

/// Returns the variables of a statement's vectorized loops.
fn vectors_of(stmt: &Stmt) -> Vec<VarId> {
    let mut lanes = Vec::new();
    stmt.walk(&mut |part| {
        if let Stmt::For { var, kind: LoopKind::Vectorized, .. } = part {
            lanes.push(*var);
        }
    });
    lanes
}

/// Marks the loops of these variables as vectorized again where expanding blocks has made them serial.
fn with_vectors(stmt: &Stmt, lanes: &[VarId]) -> Stmt {
    match rx_tir::rewrite::map_children(stmt, &mut |child| with_vectors(child, lanes)) {
        Stmt::For { var, start, extent, kind: LoopKind::Serial, body } if lanes.contains(&var) => {
            Stmt::For { var, start, extent, kind: LoopKind::Vectorized, body }
        }
        other => other,
    }
}
