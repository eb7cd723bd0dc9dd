//! Reductions whose result can stay in a register: one element, updated by every iteration of some loops.

use rustc_hash::FxHashSet;
use rx_schedule::poly::{Atom, Poly};
use rx_tir::rewrite::substitute;
use rx_tir::{Block, BufferId, Expr, Iter, IterKind, PrimFunc, Site, Stmt, VarId};

/// A reduction of one element.
pub(crate) struct Reduction<'s> {
    /// The loops, outermost first.
    pub(crate) loops: Vec<&'s Stmt>,
    /// The block in them.
    pub(crate) block: &'s Block,
    /// The element's buffer.
    pub(crate) buffer: BufferId,
    /// Its indices, over what is bound outside the loops.
    pub(crate) indices: Vec<Expr>,
    /// Where it does not hold, nothing is done.
    pub(crate) predicate: Option<Expr>,
    /// Its first value; none where it is what the buffer holds.
    pub(crate) initial: Option<&'s Expr>,
    /// What it becomes in every iteration; loads of the buffer in it are the element.
    pub(crate) value: &'s Expr,
    /// What to name in errors.
    pub(crate) site: Site,
}

/// The statement as a reduction of one element, where it is nothing else.
///
/// It is loops around a block with one store, of an index that the loops do not change; where the block has an `init`,
/// its axes are all at their starts in the first iteration and in no other.
pub(crate) fn reduction(stmt: &Stmt) -> Option<Reduction<'_>> {
    let mut loops = Vec::new();
    let mut inner = stmt;
    while let Stmt::For { body, .. } = inner {
        loops.push(inner);
        inner = body;
    }
    let Stmt::Block(block) = inner else { return None };
    let Stmt::Store { buffer, indices, value, site } = &block.body else { return None };
    if loops.is_empty() || !block.allocations.is_empty() {
        return None;
    }
    let vars: FxHashSet<VarId> = loops.iter().filter_map(|one| loop_var(one)).collect();
    let outside = |index: &Expr| {
        let over_loops = substitute(index, &|var| binding(block, var));
        is_free_of(&over_loops, &vars).then_some(over_loops)
    };
    let element: Vec<Expr> = indices.iter().map(outside).collect::<Option<_>>()?;
    let predicate = match &block.predicate {
        None => None,
        Some(predicate) => Some(outside(predicate)?),
    };
    let initial = match &block.init {
        None => None,
        Some(Stmt::Store { buffer: of, indices: at, value, .. }) if of == buffer && at == indices => {
            let first = outside(value).is_some() && !loads_of(value).any(|(of, _)| of == *buffer);
            (first && starts_once(&loops, block)).then_some(Some(value))?
        }
        Some(_) => return None,
    };
    let is_element = loads_of(value).all(|(of, at)| of != *buffer || at == indices.as_slice());
    if !is_element || indices.iter().chain(&predicate).any(|expr| loads_of(expr).next().is_some()) {
        return None;
    }
    Some(Reduction { loops, block, buffer: *buffer, indices: element, predicate, initial, value, site: *site })
}

/// The function in which reductions over nothing that are not held in a variable, which begins them, are begun.
pub(crate) fn begun(func: &PrimFunc) -> PrimFunc {
    rx_tir::begin_empty_reductions_of(func, &|nest| {
        let mut inner = nest;
        loop {
            match inner {
                _ if reduction(inner).is_some() => return false,
                Stmt::For { body, .. } => inner = body,
                _ => return true,
            }
        }
    })
}

fn loop_var(stmt: &Stmt) -> Option<VarId> {
    match stmt {
        Stmt::For { var, .. } => Some(*var),
        _ => None,
    }
}

fn binding(block: &Block, var: VarId) -> Option<Expr> {
    block.iters.iter().find(|iter| iter.var == var).map(|iter| iter.binding.clone())
}

fn is_free_of(expr: &Expr, vars: &FxHashSet<VarId>) -> bool {
    !expr.any(&|part| matches!(part, Expr::Var { var, .. } if vars.contains(var)))
}

fn loads_of(expr: &Expr) -> impl Iterator<Item = (BufferId, &[Expr])> {
    let mut loads = Vec::new();
    expr.walk(&mut |part| {
        if let Expr::Load { buffer, indices, .. } = part {
            loads.push((*buffer, indices.as_slice()));
        }
    });
    loads.into_iter()
}

/// Whether all reduction axes are at their starts in the first iteration of the loops and in no other: every loop begins
/// at 0 and is in a sum of loops, with positive factors, that is an axis beginning at 0.
pub(crate) fn starts_once(loops: &[&Stmt], block: &Block) -> bool {
    let reduced = || block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
    let mut counted = FxHashSet::default();
    if !reduced().all(|iter: &Iter| iter.start == iter.binding || is_start(iter) && add_up(&iter.binding, &mut counted))
    {
        return false;
    }
    loops.iter().all(|one| match one {
        Stmt::For { var, start, .. } => start.as_int() == Some(0) && counted.contains(var),
        _ => false,
    }) && counted.iter().all(|var| loops.iter().any(|one| loop_var(one) == Some(*var)))
}

fn is_start(iter: &Iter) -> bool {
    iter.start.as_int() == Some(0)
}

/// Whether it is a sum of variables with positive factors; they are added to `counted`.
fn add_up(expr: &Expr, counted: &mut FxHashSet<VarId>) -> bool {
    Poly::of(expr).is_some_and(|sum| {
        sum.terms.iter().all(|(atoms, factor)| match atoms[..] {
            [Atom::Var(var)] if *factor > 0 => {
                counted.insert(var);
                true
            }
            _ => false,
        })
    })
}
