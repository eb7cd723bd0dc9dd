//! Statements that the IR has no words for, while a function is read: marks, which passes over the body take away.

use crate::expr::Expr;
use crate::func::VarId;
use crate::stmt::Stmt;
use rustc_hash::FxHashMap;

/// What marks stand for: a mark is a `Stmt::Evaluate` of a variable that nothing binds.
pub type Marks<T> = FxHashMap<VarId, T>;

/// Why a body is none without marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The variable of the mark that cannot be taken away.
    pub at: VarId,
    /// What is wrong, as a clause.
    pub reason: &'static str,
}

/// A body without marks, or why there is none.
pub(crate) type Outcome<T> = Result<T, Problem>;

/// What a statement stands for, where it is a mark.
pub(crate) fn mark_of<'m, T>(stmt: &Stmt, marks: &'m Marks<T>) -> Option<(VarId, &'m T)> {
    match stmt {
        Stmt::Evaluate(Expr::Var { var, .. }) => Some((*var, marks.get(var)?)),
        _ => None,
    }
}

/// The first mark in a statement.
pub(crate) fn first_mark<T>(stmt: &Stmt, marks: &Marks<T>) -> Option<VarId> {
    let mut found = None;
    stmt.walk(&mut |part| found = found.or(mark_of(part, marks).map(|(at, _)| at)));
    found
}
