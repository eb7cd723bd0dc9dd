//! Placeholders for statements that the IR does not have: barriers, all-reduces and early exits. The reader of
//! `@T.prim_func` creates them, as does [`crate::spmd::insert_implied_barriers`]; [`crate::spmd`] and [`crate::leave`]
//! eliminate them.

use crate::expr::Expr;
use crate::func::VarId;
use crate::stmt::Stmt;
use rustc_hash::FxHashMap;

/// Maps each placeholder to the statement that it represents. A placeholder is a `Stmt::Evaluate` of a variable without
/// binder.
pub type Placeholders<T> = FxHashMap<VarId, T>;

/// The reason why a placeholder cannot be eliminated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A placeholder that cannot be eliminated, by its variable.
    pub at: VarId,
    /// The reason, as a clause.
    pub reason: &'static str,
}

/// The result of eliminating placeholders.
pub(crate) type Outcome<T> = Result<T, Problem>;

/// Returns the variable and the meaning of a placeholder; `None` if the statement is no placeholder.
pub(crate) fn placeholder_of<'m, T>(stmt: &Stmt, placeholders: &'m Placeholders<T>) -> Option<(VarId, &'m T)> {
    match stmt {
        Stmt::Evaluate(Expr::Var { var, .. }) => Some((*var, placeholders.get(var)?)),
        _ => None,
    }
}

/// Returns the first placeholder in a statement.
pub(crate) fn first_placeholder<T>(stmt: &Stmt, placeholders: &Placeholders<T>) -> Option<VarId> {
    let mut found = None;
    stmt.walk(&mut |part| found = found.or(placeholder_of(part, placeholders).map(|(at, _)| at)));
    found
}
