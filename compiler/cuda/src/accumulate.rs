//! Matches reductions of one element, whose partial result can stay in a register.
//!
//! ```text
//! for k in range(8):                   float value = 0;
//!     with T.sblock("sum"):       →    for (k …) value += a[i * 8 + k];
//!         with T.init(): out[i] = 0    out[i] = value;
//!         out[i] = out[i] + a[i, k]
//! ```
//!
//! Requires that all iterations of the loops update the same element. Used by the printer, which holds the element in a
//! local variable. The fused row pipelines (`rules::row_pipeline`) use only [`starts_once`].

use rustc_hash::FxHashSet;
use rx_loops::poly::{Atom, Poly};
use rx_tir::rewrite::substitute;
use rx_tir::{Block, BufferId, Expr, Iter, IterKind, PrimFunc, Site, Stmt, VarId};

/// A loop nest that reduces to one element: all iterations update the same element.
pub(crate) struct Reduction<'s> {
    /// The loops, outermost first.
    pub(crate) loops: Vec<&'s Stmt>,
    /// The block inside the loops.
    pub(crate) block: &'s Block,
    /// The buffer of the element.
    pub(crate) buffer: BufferId,
    /// The indices of the element, in variables that are bound outside the loops.
    pub(crate) indices: Vec<Expr>,
    /// The condition of the whole reduction, if there is one: if it is false, nothing is computed.
    pub(crate) predicate: Option<Expr>,
    /// The initial value; `None` if the reduction begins with the value in the buffer.
    pub(crate) initial: Option<&'s Expr>,
    /// The new value of each iteration. Loads of the buffer in it are the previous value of the element.
    pub(crate) value: &'s Expr,
    /// The operator and statement that errors name.
    pub(crate) site: Site,
}

/// Matches a statement as a reduction of one element.
///
/// Requires one or more loops around a block without allocations whose body is one store. The store's indices and the
/// block's predicate, if there is one, load nothing and do not depend on the loops. Every load of the buffer in the
/// stored value has the same indices as the store.
///
/// If there is an `init`, it stores to the same indices a value that does not depend on the loops or the buffer, and
/// the reduction [`starts_once`].
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

/// Initializes reductions that may have no iterations, as `rx_tir::begin_empty_reductions` does. A nest that matches
/// [`reduction`], with or without its outer loops, does not change: the variable that holds the element is always
/// initialized.
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

/// Proves that all reduction axes are at their starts in the first iteration of the loops and in no other.
///
/// Requires that each reduction axis is bound to its start, or begins at 0 and is bound to a sum of loop variables with
/// positive factors, for example `k = ko * 4 + ki`. Every loop must begin at 0 and occur in such a sum.
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

/// Whether an expression is a sum of variables with positive factors. Adds the variables to `counted`.
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
