//! Loop unification: maps the loops of each statement to the shared loops.
//!
//! ```text
//! shared loops i, k; X[i, k] is known           →   a maps to i, b maps to k
//! for a, b: Y[a, b] = X[a, b] * 2
//! ```

use super::parts::{Part, parts};
use super::{Form, Shared};
use crate::rules::row_pipeline::Kind;
use crate::rules::{Declined, Task};
use rustc_hash::FxHashMap;
use rx_loops::Loop;
use rx_loops::scope::Scope;
use rx_tir::rewrite::substitute;
use rx_tir::{BufferId, Expr, IterKind, VarId};
use std::collections::VecDeque;

/// An iterator over the statements of a task: for each, its parts over shared loops.
///
/// Statements up to the leading one are unified backwards from it, since its loops are the shared ones. Later
/// statements are unified when they are requested.
pub(super) struct Unifier<'t> {
    scope: Scope,
    /// The task whose statements these are.
    task: &'t Task<'t>,
    /// The shared loops.
    shared: &'t Shared,
    /// The form of stages that the rule takes.
    form: Form,
    /// The unified statements up to the leading one, the next first.
    front: VecDeque<Vec<Part>>,
    /// Position of the next statement.
    next: usize,
    /// Accesses of the unified statements, over shared loops.
    known: Vec<(BufferId, Vec<Expr>)>,
}

impl Iterator for Unifier<'_> {
    type Item = Vec<Part>;

    /// Returns the next statement's parts over shared loops; `None` if its loops do not fit, if it has another form, or
    /// if there is none.
    fn next(&mut self) -> Option<Vec<Part>> {
        let front = self.front.pop_front();
        let at = self.next;
        self.next += 1;
        front.or_else(|| self.statement(at))
    }
}

impl<'t> Unifier<'t> {
    /// Unifies the statements up to the leading one.
    ///
    /// # Errors
    /// One of them has another form, or loops that do not fit the shared ones.
    pub(super) fn new(
        task: &'t Task<'t>,
        lead: usize,
        shared: &'t Shared,
        form: Form,
    ) -> Result<Unifier<'t>, Declined> {
        let (scope, known, front) = (Scope::new(task.func), Vec::new(), VecDeque::new());
        let mut unifier = Unifier { scope, task, shared, form, front, next: 0, known };
        for at in (0..=lead).rev() {
            let others =
                || Declined::because("requires statements before the reduction over its loops; found other loops");
            let parts = unifier.statement(at).ok_or_else(others)?;
            unifier.front.push_front(parts);
        }
        Ok(unifier)
    }

    /// Returns the parts of a statement over shared loops.
    fn statement(&mut self, at: usize) -> Option<Vec<Part>> {
        let parts = parts(self.task, at, self.form).ok()?;
        parts.into_iter().map(|part| self.part(part)).collect()
    }

    /// Returns a part over shared loops; `None` if its loops do not fit.
    ///
    /// A loop whose variable is an index of a buffer which a unified statement accesses as well is mapped to the shared
    /// loop at the same position of the indices, if that is free and matches in extent and kind. Each remaining loop is
    /// mapped to the first free shared loop that matches. So a statement whose loops are in another order still
    /// matches. An element stage without loops over columns becomes a value of the row.
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
        let func = self.task.func;
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

    /// Whether the kind of a loop allows mapping it to the shared loop number `at`. The first `of_rows` shared loops
    /// are rows, the others columns. In a reduction or scan (`goes_along_columns`), a spatial loop can only be a row,
    /// and any other loop only a column. A loop of an element stage can be either.
    fn fits(&self, own: &Loop, at: usize, of_rows: usize, goes_along_columns: bool) -> bool {
        !goes_along_columns || (at >= of_rows) == (own.kind != IterKind::Spatial)
    }

    /// Whether two loops are known to have the same extent.
    fn is_as_long(&mut self, own: &Loop, shared: &Loop) -> bool {
        own.extent == shared.extent || self.scope.dim(&own.extent) == self.scope.dim(&shared.extent)
    }
}

/// Returns the accesses of a part: its stored element, and those that its value and its let values read.
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

/// Returns the indices with variables replaced.
fn over(indices: &[Expr], value_of: &dyn Fn(VarId) -> Option<Expr>) -> Vec<Expr> {
    indices.iter().map(|index| substitute(index, value_of)).collect()
}
