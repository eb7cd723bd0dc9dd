//! Perfect loop nests, and the reductions in them. Most patterns of this crate are matched on a [`Nest`].

use crate::roles::Declined;
use crate::simplify::replace_var;
use rustc_hash::FxHashMap;
use rx_base::Name;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_children, substitute};
use rx_tir::stmt::{Block, IterKind, LoopKind, Site, Stmt};

/// A loop of a [`Nest`], with start 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The loop's variable.
    pub var: VarId,
    /// The trip count.
    pub extent: Expr,
    /// The iteration kind of the block axes that the loop is bound to; [`IterKind::Ordered`] if it is bound to axes of
    /// several kinds or to none.
    pub kind: IterKind,
}

/// A perfect loop nest around one block, in which the block's axes are replaced by their bindings, or around statements
/// without a block.
///
/// ```text
/// for i, k:                               loops: i (spatial), k (reduce)
///     with T.sblock("sum"):               name:  sum
///         vi, vk = T.axis.remap("SR", [i, k])
///         with T.init(): C[vi] = 0.0      init:  C[i] = 0.0
///         C[vi] = C[vi] + A[vi, vk]       body:  C[i] = C[i] + A[i, k]
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Nest {
    /// The block's name, or the function's name if there is no block.
    pub name: Name,
    /// The loops around the block, or around the statements without a block, outermost first.
    pub loops: Vec<Loop>,
    /// The block's predicate: instances where it is false are not executed.
    pub predicate: Option<Expr>,
    /// The statement that is executed before the body where all reduction axes have their first values.
    pub init: Option<Stmt>,
    /// The block's body, or the statements without a block.
    pub body: Stmt,
}

/// A reduction of one element: `buffer[indices] = combine(buffer[indices], value)` in each iteration in which
/// [`Nest::predicate`] holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// The buffer.
    pub buffer: BufferId,
    /// The indices of the reduced element. No reduction loop occurs in them.
    pub indices: Vec<Expr>,
    /// The initial value; none if the reduction continues from the element's old value.
    pub init: Option<Expr>,
    /// The reduction operation.
    pub combine: BinaryOp,
    /// The value that each iteration contributes. It does not read the buffer.
    pub value: Expr,
    /// The statement that a run-time error names.
    pub site: Site,
}

impl Nest {
    /// Matches a statement as a nest; returns `None` if it has another form.
    pub fn of(stmt: &Stmt, func: &PrimFunc) -> Option<Nest> {
        let mut loops: Vec<Loop> = Vec::new();
        let mut current = stmt.clone();
        loop {
            match current {
                Stmt::For { var, start, extent, kind: _, body } => {
                    current = match start.as_int() {
                        Some(0) => *body,
                        _ => replace_var(&body, var, &(func.var_expr(var) + start)),
                    };
                    loops.push(Loop { var, extent, kind: IterKind::Ordered });
                }
                Stmt::Block(block) if block.allocations.is_empty() => return Nest::of_block(loops, *block),
                body @ (Stmt::Store { .. } | Stmt::Seq(_) | Stmt::If { .. } | Stmt::Let { .. }) => {
                    return is_plain(&body).then_some(Nest {
                        name: func.name,
                        loops,
                        predicate: None,
                        init: None,
                        body,
                    });
                }
                _ => return None,
            }
        }
    }

    fn of_block(mut loops: Vec<Loop>, block: Block) -> Option<Nest> {
        if !is_plain(&block.body) {
            return None;
        }
        // Maps each variable to the kind of the axes whose bindings use it, or to `None` if they have several kinds.
        let mut kinds: FxHashMap<VarId, Option<IterKind>> = FxHashMap::default();
        for iter in &block.iters {
            iter.binding.walk(&mut |part| {
                if let Expr::Var { var, .. } = part {
                    let kind = kinds.entry(*var).or_insert(Some(iter.kind));
                    *kind = kind.filter(|known| *known == iter.kind);
                }
            });
        }
        for outer in &mut loops {
            if let Some(Some(kind)) = kinds.get(&outer.var) {
                outer.kind = *kind;
            }
        }
        let values: FxHashMap<VarId, &Expr> = block.iters.iter().map(|iter| (iter.var, &iter.binding)).collect();
        let value = |var: VarId| values.get(&var).map(|binding| (*binding).clone());
        let replace = |stmt: &Stmt| rx_tir::rewrite::map_stmt(stmt, &mut |expr| substitute(expr, &value));
        Some(Nest {
            name: block.name,
            predicate: block.predicate.as_ref().map(|predicate| substitute(predicate, &value)),
            init: block.init.as_ref().map(replace),
            body: replace(&block.body),
            loops,
        })
    }

    /// Splits (delinearizes) each loop of constant extent whose variable is divided by a constant that divides the
    /// extent, so that quotient and remainder become two loops. For example, with `head` of 32 iterations,
    /// `K[head // 4, head % 4]` becomes, once it is simplified, `K[outer, inner]` over `outer` of 8 and `inner` of 4.
    pub(crate) fn with_split_loops(mut self, func: &mut PrimFunc) -> Nest {
        let mut at = 0;
        while at < self.loops.len() {
            let Some(low) = self.divisor_of(&self.loops[at]) else {
                at += 1;
                continue;
            };
            let Loop { var, extent, kind } = self.loops[at].clone();
            let dtype = extent.dtype();
            let of = *func.var(var);
            let (outer, inner) = (func.add_var(of.name, of.dtype), func.add_var(of.name, of.dtype));
            let constant = |value: i64| Expr::Int { value, dtype };
            let high = extent.as_int().unwrap_or(low) / low;
            let value = func.var_expr(outer) * Expr::Int { value: low, dtype: of.dtype } + func.var_expr(inner);
            let loops =
                [Loop { var: outer, extent: constant(high), kind }, Loop { var: inner, extent: constant(low), kind }];
            self.loops.splice(at..=at, loops);
            self.body = replace_var(&self.body, var, &value);
            self.init = self.init.map(|init| replace_var(&init, var, &value));
            let replaced = |known: VarId| (known == var).then(|| value.clone());
            self.predicate = self.predicate.map(|predicate| substitute(&predicate, &replaced));
            for other in &mut self.loops {
                other.extent = substitute(&other.extent, &replaced);
            }
            at += 2;
        }
        self
    }

    /// Returns the first constant that the loop's variable is divided by in the body and that divides the extent. It is
    /// greater than 1 and less than the extent.
    fn divisor_of(&self, of: &Loop) -> Option<i64> {
        let extent = of.extent.as_int()?;
        let mut found = None;
        let mut look = |part: &Expr| {
            if let Expr::Binary { op: BinaryOp::FloorDiv | BinaryOp::FloorMod, left, right } = part
                && matches!(**left, Expr::Var { var, .. } if var == of.var)
                && let Some(by) = right.as_int()
                && by > 1
                && by < extent
                && extent % by == 0
            {
                found = found.or(Some(by));
            }
        };
        self.body.walk(&mut |stmt| stmt.expressions().into_iter().for_each(|expr| expr.walk(&mut look)));
        found
    }

    /// Returns [`Nest::reduction`] with a reason if there is none.
    ///
    /// # Errors
    /// If [`Nest::reduction`] returns `None`.
    pub fn update(&self) -> Result<Reduction, Declined> {
        self.reduction().ok_or(Declined("requires a reduction that updates one element; found none"))
    }

    /// Matches the body and the init as a reduction; returns `None` if one of them has another form.
    pub fn reduction(&self) -> Option<Reduction> {
        let Stmt::Store { buffer, indices, value, site } = &self.body else { return None };
        let Expr::Binary { op, left, right } = value else { return None };
        let accumulator = |expr: &Expr| matches!(expr, Expr::Load { buffer: read, indices: at, .. } if read == buffer && at == indices);
        let commutes = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
        let value = match () {
            () if accumulator(left) => right,
            () if commutes && accumulator(right) && !right.dtype().is_float() => left,
            // Float addition and multiplication are commutative. Minimum and maximum are not: the result with a NaN
            // depends on the order of the operands.
            () if matches!(op, BinaryOp::Add | BinaryOp::Mul) && accumulator(right) => left,
            () => return None,
        };
        let reduced = |var: &VarId| self.loops.iter().any(|l| l.var == *var && l.kind == IterKind::Reduce);
        if reads(value, *buffer) || indices.iter().any(|index| mentions(index, &reduced)) {
            return None;
        }
        let init = match &self.init {
            None => None,
            Some(Stmt::Store { buffer: first, indices: at, value, .. })
                if first == buffer && at == indices && !reads(value, *buffer) =>
            {
                Some(value.clone())
            }
            Some(_) => return None,
        };
        let (buffer, indices, combine) = (*buffer, indices.clone(), *op);
        Some(Reduction { buffer, indices, init, combine, value: (**value).clone(), site: *site })
    }

    /// Returns the nest as serial loops without block and init: the reduction loops are innermost, after the statement
    /// that initializes the element. Returns `None` if the loops cannot be put into that order, or if there is an init
    /// and the predicate depends on a reduction loop.
    pub fn explicit(&self) -> Option<Stmt> {
        let (reduced, outer): (Vec<&Loop>, Vec<&Loop>) =
            self.loops.iter().partition(|inner| inner.kind == IterKind::Reduce);
        let of_reduced = |var: &VarId| reduced.iter().any(|inner| inner.var == *var);
        // A loop of kind `Ordered` must keep its position among the other loops.
        let moved = self.loops.iter().skip_while(|l| l.kind != IterKind::Reduce).any(|l| l.kind != IterKind::Reduce);
        let ordered = outer.iter().any(|l| l.kind != IterKind::Spatial);
        if moved && ordered || outer.iter().any(|l| mentions(&l.extent, &of_reduced)) {
            return None;
        }
        let guarded = |stmt: Stmt| match &self.predicate {
            Some(condition) => Stmt::when(condition.clone(), stmt),
            None => stmt,
        };
        let by_reduced = self.predicate.as_ref().is_some_and(|condition| mentions(condition, &of_reduced));
        if self.init.is_some() && by_reduced {
            return None;
        }
        let around = |loops: &[&Loop], inner: Stmt| {
            loops.iter().rev().fold(inner, |body, l| Stmt::for_loop(l.var, l.extent.clone(), body))
        };
        let init = self.init.clone();
        Some(match (init, reduced.is_empty()) {
            (None, _) => around(&outer, around(&reduced, guarded(self.body.clone()))),
            (Some(init), true) => around(&outer, guarded(Stmt::seq([init, self.body.clone()]))),
            (Some(init), false) => around(&outer, guarded(Stmt::seq([init, around(&reduced, self.body.clone())]))),
        })
    }
}

/// Removes the axes and init of all blocks, for targets without blocks. In a [`Nest`], reduction loops become
/// innermost, and the init precedes them ([`Nest::explicit`]); where that is not possible, the init is executed under
/// the condition that all reduction axes have their first values. Blocks that allocate buffers stay, without axes.
///
/// A reduction without iterations, which a block leaves undefined, yields its initial value where the init precedes the
/// loops.
pub fn explicit_loops(func: &PrimFunc) -> PrimFunc {
    PrimFunc { body: explicit_stmt(&func.body, func), ..func.clone() }
}

fn explicit_stmt(stmt: &Stmt, func: &PrimFunc) -> Stmt {
    let threads = |stmt: &Stmt| matches!(stmt, Stmt::For { kind: LoopKind::ThreadBinding(_), .. });
    if matches!(stmt, Stmt::For { .. } | Stmt::Block(_))
        && !threads(stmt)
        && let Some(explicit) = Nest::of(stmt, func).and_then(|nest| nest.explicit())
    {
        return explicit;
    }
    let inner = map_children(stmt, &mut |child| explicit_stmt(child, func));
    match inner {
        Stmt::Block(block) => explicit_block(*block),
        other => other,
    }
}

/// Rewrites a block that [`Nest::explicit`] does not cover: its init is executed under the condition that all reduction
/// axes are at their first values.
fn explicit_block(block: Block) -> Stmt {
    let value = |var: VarId| block.iters.iter().find(|iter| iter.var == var).map(|iter| iter.binding.clone());
    let replace = |stmt: &Stmt| rx_tir::rewrite::map_stmt(stmt, &mut |expr| substitute(expr, &value));
    let mut body = Stmt::seq(block.beginning().iter().chain([&block.body]).map(replace));
    if let Some(predicate) = &block.predicate {
        body = Stmt::when(substitute(predicate, &value), body);
    }
    if block.allocations.is_empty() {
        return body;
    }
    Stmt::holding(block.name, block.allocations, body)
}

/// Whether the statement contains neither blocks nor loops.
fn is_plain(stmt: &Stmt) -> bool {
    !stmt.any(&|part| matches!(part, Stmt::Block(_) | Stmt::For { .. } | Stmt::While { .. }))
}

/// Whether the expression reads the buffer.
pub(crate) fn reads(expr: &Expr, wanted: BufferId) -> bool {
    expr.any(&|part| matches!(part, Expr::Load { buffer, .. } if *buffer == wanted))
}

/// Whether the expression mentions a variable that `wanted` accepts.
pub(crate) fn mentions(expr: &Expr, wanted: &dyn Fn(&VarId) -> bool) -> bool {
    expr.any(&|part| matches!(part, Expr::Var { var, .. } if wanted(var)))
}
