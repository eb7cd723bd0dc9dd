//! Which loop of a statement is which of the loops that stages share.

use super::parts::{Part, parts};
use super::{Form, Shared};
use crate::rules::stages::Kind;
use crate::rules::{Declined, Task};
use rustc_hash::FxHashMap;
use rx_schedule::Loop;
use rx_schedule::scope::Scope;
use rx_tir::rewrite::substitute;
use rx_tir::{BufferId, Expr, IterKind, PrimFunc, VarId};

/// The statements from the first with their loops replaced by the shared ones, as many as have such.
pub(super) fn unified(task: &Task<'_>, lead: usize, shared: &Shared, form: Form) -> Result<Vec<Vec<Part>>, Declined> {
    let mut unifier = Unifier { scope: Scope::new(task.func), func: task.func, shared, known: Vec::new() };
    let others = || Declined::because("what stands before the reduction has other loops");
    let of = |unifier: &mut Unifier<'_>, at: usize| -> Option<Vec<Part>> {
        let parts = parts(task, at, form).ok()?;
        parts.into_iter().map(|part| unifier.part(part)).collect()
    };
    let mut statements = vec![of(&mut unifier, lead).ok_or_else(others)?];
    for at in (0..lead).rev() {
        statements.insert(0, of(&mut unifier, at).ok_or_else(others)?);
    }
    for at in lead + 1..task.statements.len() {
        match of(&mut unifier, at) {
            Some(parts) => statements.push(parts),
            None => break,
        }
    }
    Ok(statements)
}

struct Unifier<'f> {
    scope: Scope,
    func: &'f PrimFunc,
    shared: &'f Shared,
    /// Accesses over shared loops.
    known: Vec<(BufferId, Vec<Expr>)>,
}

impl Unifier<'_> {
    /// The part over shared loops. Which of its loops is which of them is seen from elements that others access, too; those
    /// that are left are in order.
    fn part(&mut self, mut part: Part) -> Option<Part> {
        let all = self.shared.all();
        let of_rows = self.shared.rows.len();
        let mut names: FxHashMap<VarId, usize> = FxHashMap::default();
        for (buffer, indices) in accesses(&part) {
            let known: Vec<Vec<Expr>> =
                self.known.iter().filter(|(one, _)| *one == buffer).map(|(_, indices)| indices.clone()).collect();
            for (index, known) in known.iter().flat_map(|known| indices.iter().zip(known)) {
                let (Expr::Var { var, .. }, Expr::Var { var: shared, .. }) = (index, known) else { continue };
                let Some(own) = part.loops.iter().find(|one| one.var == *var) else { continue };
                let Some(at) = all.iter().position(|one| one.var == *shared) else { continue };
                let is_free = !names.contains_key(var) && !names.values().any(|taken| *taken == at);
                if is_free && self.fits(own, at, of_rows, part.goes_along_columns()) && self.is_as_long(own, &all[at]) {
                    names.insert(*var, at);
                }
            }
        }
        for own in &part.loops {
            if names.contains_key(&own.var) {
                continue;
            }
            let free = (0..all.len()).find(|at| {
                !names.values().any(|taken| taken == at)
                    && self.fits(own, *at, of_rows, part.goes_along_columns())
                    && self.is_as_long(own, &all[*at])
            });
            names.insert(own.var, free?);
        }
        let rows = (0..of_rows).all(|at| names.values().any(|taken| *taken == at));
        let columns = names.values().filter(|at| **at >= of_rows).count();
        match columns {
            _ if !rows => return None,
            columns if columns == self.shared.columns.len() => {}
            0 if !part.goes_along_columns() => part.kind = Kind::Row,
            _ => return None,
        }
        let func = self.func;
        let value_of = |var: VarId| names.get(&var).map(|at| func.var_expr(all[*at].var).cast(func.var(var).dtype));
        part.value = substitute(&part.value, &value_of);
        part.indices = over(&part.indices, &value_of);
        for (_, value) in &mut part.named {
            *value = substitute(value, &value_of);
        }
        part.carried = part.carried.map(|indices| over(&indices, &value_of));
        if let Kind::Reduction { init, .. } = &mut part.kind {
            *init = substitute(init, &value_of);
        }
        self.known.extend(accesses(&part));
        Some(part)
    }

    /// Whether a loop may be the shared one of a number: a reduction's are for what that is for.
    fn fits(&self, own: &Loop, at: usize, of_rows: usize, goes_along_columns: bool) -> bool {
        !goes_along_columns || (at >= of_rows) == (own.kind != IterKind::Spatial)
    }

    fn is_as_long(&mut self, own: &Loop, shared: &Loop) -> bool {
        own.extent == shared.extent || self.scope.dim(&own.extent) == self.scope.dim(&shared.extent)
    }
}

/// What a part stores to and reads.
fn accesses(part: &Part) -> Vec<(BufferId, Vec<Expr>)> {
    let mut accesses = vec![(part.buffer, part.indices.clone())];
    for value in part.named.iter().map(|(_, value)| value).chain([&part.value]) {
        value.walk(&mut |expr| {
            if let Expr::Load { buffer, indices, .. } = expr {
                accesses.push((*buffer, indices.clone()));
            }
        });
    }
    accesses
}

fn over(indices: &[Expr], value_of: &dyn Fn(VarId) -> Option<Expr>) -> Vec<Expr> {
    indices.iter().map(|index| substitute(index, value_of)).collect()
}
