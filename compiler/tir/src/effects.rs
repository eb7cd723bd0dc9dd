//! Which buffers statements read and write, and so which of them may not change places.

use crate::expr::Expr;
use crate::func::BufferId;
use crate::stmt::Stmt;
use rustc_hash::FxHashSet;

/// Buffers that are read and written.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Those that elements are loaded of.
    pub read: FxHashSet<BufferId>,
    /// Those that elements are stored to.
    pub written: FxHashSet<BufferId>,
}

impl Effects {
    /// Those of a statement and of all in it.
    pub fn of(stmt: &Stmt) -> Effects {
        let mut effects = Effects::default();
        effects.stmt(stmt);
        effects
    }

    /// Adds those of a statement and of all in it.
    pub fn stmt(&mut self, stmt: &Stmt) {
        stmt.walk(&mut |part| {
            if let Stmt::Store { buffer, .. } = part {
                self.written.insert(*buffer);
            }
            part.expressions().into_iter().for_each(|expr| self.expr(expr));
        });
    }

    /// Adds those of an expression.
    pub fn expr(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, .. } = part {
                self.read.insert(*buffer);
            }
        });
    }

    /// Whether `later` may see what these did, or undo it: one of both writes what the other reads or writes.
    pub fn meets(&self, later: &Effects) -> bool {
        later.read.iter().any(|id| self.written.contains(id))
            || later.written.iter().any(|id| self.read.contains(id) || self.written.contains(id))
    }

    /// Adds others.
    pub fn add(&mut self, other: &Effects) {
        self.read.extend(&other.read);
        self.written.extend(&other.written);
    }

    /// Those of the buffers that are wanted.
    pub fn of_only(mut self, is_wanted: impl Fn(BufferId) -> bool) -> Effects {
        self.read.retain(|id| is_wanted(*id));
        self.written.retain(|id| is_wanted(*id));
        self
    }
}
