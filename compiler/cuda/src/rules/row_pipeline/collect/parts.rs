//! Lists the stores of a statement, each with the loops around it and the kind of its value.

use super::{Form, identity};
use crate::accumulate::starts_once;
use crate::rules::row_pipeline::{Combine, Kind, has_threads};
use crate::rules::{Declined, Task};
use rx_loops::{Loop, Nest, Recurrence, TupleElement, commutes};
use rx_tir::{BufferId, Expr, IterKind, Stmt, VarId, is_evaluable};

/// One store of a statement.
pub(super) struct Part {
    /// The loops around it, outermost first.
    pub(super) loops: Vec<Loop>,
    /// For an element stage, the let values between the previous store of the statement and this one, in order.
    pub(super) named: Vec<(VarId, Expr)>,
    /// The kind of its stage. `unify` changes an element that has no loops over columns to a value of the row.
    pub(super) kind: Kind,
    /// For a tuple reduction, the variables of the value so far and of the value that is combined with it.
    pub(super) sides: Option<(VarId, VarId)>,
    /// For a scan, the indices of the element before the first one, if the scan begins with it.
    pub(super) carried: Option<Vec<Expr>>,
    /// The buffer that it stores to.
    pub(super) buffer: BufferId,
    /// The indices of the stored element.
    pub(super) indices: Vec<Expr>,
    /// The stored value; of a reduction or scan, the value that is combined.
    pub(super) value: Expr,
}

impl Part {
    /// Whether it is a reduction or scan: the kinds of its loops determine which are rows and which are columns.
    pub(super) fn goes_along_columns(&self) -> bool {
        self.is_reduction() || matches!(self.kind, Kind::Scan { .. })
    }

    /// Whether it is a reduction.
    pub(super) fn is_reduction(&self) -> bool {
        matches!(self.kind, Kind::Reduction { .. })
    }
}

/// Matches a scan. Returns `None` if the nest is no scan and has only spatial loops, as element stages have.
fn scan(task: &Task<'_>, nest: &Nest) -> Result<Option<Part>, Declined> {
    let is_spatial = nest.loops.iter().all(|one| one.kind == IterKind::Spatial);
    let found = match Recurrence::of(nest, task.func) {
        Ok(found) => found,
        Err(_) if is_spatial => return Ok(None),
        Err(why) => return Err(why.into()),
    };
    let kind = |one: &Loop| if one.var == found.along { IterKind::Ordered } else { IterKind::Spatial };
    Ok(Some(Part {
        loops: nest.loops.iter().map(|one| Loop { kind: kind(one), ..one.clone() }).collect(),
        named: Vec::new(),
        kind: Kind::Scan { combine: found.combine, carried: None },
        sides: None,
        carried: found.carried,
        buffer: found.buffer,
        indices: found.indices,
        value: found.value,
    }))
}

/// Returns the stores of the statement at position `at`, in order.
///
/// # Errors
/// There is no such statement, or it is not a loop nest around stores, a reduction or (for [`Form::Scan`]) a scan in a
/// supported form. For example, it has a predicate, loops that are bound to threads or blocks, extents that the host
/// does not know, or a condition under which the host runs it.
pub(super) fn parts(task: &Task<'_>, at: usize, form: Form) -> Result<Vec<Part>, Declined> {
    let nest = task.nest(at)?;
    Declined::when(has_threads(task, at), "requires loops without thread bindings; found a bound loop")?;
    let uniform = |var: VarId| task.func.scalar_params().any(|one| one == var) || task.func.symbols.contains(&var);
    Declined::when(nest.predicate.is_some(), "requires a block without a predicate; found one with a predicate")?;
    if !nest.loops.iter().all(|one| is_evaluable(&one.extent, &uniform)) {
        return Err(Declined::because("requires loop extents that the host knows; found one computed in the kernel"));
    }
    if form == Form::Scan
        && let Some(scan) = scan(task, nest)?
    {
        return Ok(vec![scan]);
    }
    if nest.init.is_some() {
        let spatial = nest.loops.iter().all(|one| matches!(one.kind, IterKind::Spatial | IterKind::Reduce));
        Declined::when(
            !spatial || !begins_once(&task.statements[at].stmt),
            "requires spatial and reduction axes, and an init that runs once; found another form",
        )?;
        return reduction(task, nest);
    }
    if nest.loops.iter().any(|one| one.kind != IterKind::Spatial) {
        return Err(Declined::because("requires spatial axes; found an axis of another kind"));
    }
    let mut stores = Vec::new();
    named_stores(&nest.body, &mut Vec::new(), &mut stores)?;
    let part = |(named, store): (Vec<(VarId, Expr)>, &Stmt)| match store {
        Stmt::Store { buffer, indices, value, .. } => Ok(Part {
            loops: nest.loops.clone(),
            named,
            kind: Kind::Element,
            sides: None,
            carried: None,
            buffer: *buffer,
            indices: indices.clone(),
            value: value.clone(),
        }),
        _ => Err(Declined::because("requires element stores only; found another statement")),
    };
    stores.into_iter().map(part).collect()
}

/// Appends the stores of a body to `stores`, in order. Each comes with the let values that the body binds after the
/// previous store and before this one; `named` holds those since the last store.
fn named_stores<'s>(
    body: &'s Stmt,
    named: &mut Vec<(VarId, Expr)>,
    stores: &mut Vec<(Vec<(VarId, Expr)>, &'s Stmt)>,
) -> Result<(), Declined> {
    match body {
        Stmt::Seq(parts) => parts.iter().try_for_each(|part| named_stores(part, named, stores)),
        Stmt::Let { var, value, body } => {
            named.push((*var, value.clone()));
            named_stores(body, named, stores)
        }
        Stmt::Store { .. } => {
            stores.push((std::mem::take(named), body));
            Ok(())
        }
        _ => Err(Declined::because("requires element stores only; found another statement")),
    }
}

/// Returns the stores of a reduction: one with an operation, or those of a tuple that chooses a side.
fn reduction(task: &Task<'_>, nest: &Nest) -> Result<Vec<Part>, Declined> {
    let part = |combine, init, buffer, indices, value, sides| Part {
        loops: nest.loops.clone(),
        named: Vec::new(),
        kind: Kind::Reduction { combine, init },
        sides,
        carried: None,
        buffer,
        indices,
        value,
    };
    let operation = |combine, init: Expr, buffer, indices, value| {
        identity(combine, task.func.buffer(buffer).dtype)
            .ok_or_else(|| Declined::because("requires an associative and commutative update; found another"))?;
        Ok(vec![part(Combine::Operation(combine), init, buffer, indices, value, None)])
    };
    if let Some(rx_loops::Reduction { buffer, indices, init, combine, value, .. }) = nest.reduction() {
        let init = init.ok_or_else(|| Declined::because("requires a reduction with an init; found none"))?;
        return operation(combine, init, buffer, indices, value);
    }
    let parts = nest.tuple_reduction(&mut task.func.clone());
    let parts = parts
        .ok_or_else(|| Declined::because("requires a reduction of one element or a tuple; found another update"))?;
    // A reduction of one value in another form, for example with let values in its body.
    if let [TupleElement { operation: Some(combine), init, buffer, indices, element, .. }] = &parts[..] {
        return operation(*combine, init.clone(), *buffer, indices.clone(), element.clone());
    }
    Declined::when(!commutes(&parts), "requires an associative and commutative update; found another")?;
    let count = parts.len();
    let of = |(place, of): (usize, TupleElement)| {
        let combine = Combine::Choice { chosen: of.combined, place, count };
        part(combine, of.init, of.buffer, of.indices, of.element, Some((of.left, of.right)))
    };
    Ok(parts.into_iter().enumerate().map(of).collect())
}

/// Whether a reduction's init is known to be executed in the first iteration of its reduction loops and in no other.
fn begins_once(stmt: &Stmt) -> bool {
    let mut loops = Vec::new();
    let mut inner = stmt;
    while let Stmt::For { body, .. } = inner {
        loops.push(inner);
        inner = body;
    }
    let Stmt::Block(block) = inner else { return false };
    let reduces = |one: &&Stmt| match one {
        Stmt::For { var, .. } => {
            block.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.uses(*var))
        }
        _ => false,
    };
    let reduced: Vec<&Stmt> = loops.into_iter().filter(reduces).collect();
    starts_once(&reduced, block)
}
