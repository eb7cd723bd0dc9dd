//! The buffers that statements read and write, as a test for whether statements may be reordered.

use crate::expr::Expr;
use crate::func::BufferId;
use crate::stmt::Stmt;
use rustc_hash::FxHashSet;

/// Sets of buffers that are read and written.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Buffers with loads.
    pub read: FxHashSet<BufferId>,
    /// Buffers with stores.
    pub written: FxHashSet<BufferId>,
}

impl Effects {
    /// Returns the effects of a statement with all statements inside.
    pub fn of(stmt: &Stmt) -> Effects {
        let mut effects = Effects::default();
        effects.stmt(stmt);
        effects
    }

    /// Adds the effects of a statement with all statements inside.
    pub fn stmt(&mut self, stmt: &Stmt) {
        stmt.walk(&mut |part| {
            if let Stmt::Store { buffer, .. } = part {
                self.written.insert(*buffer);
            }
            part.expressions().into_iter().for_each(|expr| self.expr(expr));
        });
    }

    /// Adds the effects of an expression.
    pub fn expr(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, .. } = part {
                self.read.insert(*buffer);
            }
        });
    }

    /// Whether the effects conflict, so that the order matters: one of both writes a buffer that the other reads or
    /// writes.
    pub fn conflicts_with(&self, later: &Effects) -> bool {
        later.read.iter().any(|id| self.written.contains(id))
            || later.written.iter().any(|id| self.read.contains(id) || self.written.contains(id))
    }

    /// Adds the effects `other` to these.
    pub fn add(&mut self, other: &Effects) {
        self.read.extend(&other.read);
        self.written.extend(&other.written);
    }

    /// Restricts the effects to the buffers that `is_wanted` accepts.
    pub fn of_only(mut self, is_wanted: impl Fn(BufferId) -> bool) -> Effects {
        self.read.retain(|id| is_wanted(*id));
        self.written.retain(|id| is_wanted(*id));
        self
    }
}
