//! What all threads of a block have alike, though it is read from memory: what loops and conditions may hang on in which they
//! wait for each other.

use super::Launch;
use rustc_hash::FxHashSet;
use rx_tir::{BufferId, Expr, LoopKind, PrimFunc, Stmt};

/// The buffers of threads in which all have the same: nothing is stored to them in loops over threads, nor anything that differs.
pub(super) struct Uniform {
    alike: FxHashSet<BufferId>,
    /// Buffers of threads.
    local: FxHashSet<BufferId>,
}

impl Uniform {
    pub(super) fn of(func: &PrimFunc, statements: &[Stmt]) -> Uniform {
        let ids = (0..func.buffers.len() as u32).map(BufferId);
        let local: FxHashSet<BufferId> = ids.filter(|id| func.buffer(*id).scope.is_private()).collect();
        let mut uniform = Uniform { alike: local.clone(), local };
        // What differs makes differ what it is stored to.
        loop {
            let mut differing = Vec::new();
            statements.iter().for_each(|stmt| uniform.find(stmt, false, &mut differing));
            if differing.is_empty() {
                return uniform;
            }
            differing.iter().for_each(|id| {
                uniform.alike.remove(id);
            });
        }
    }

    fn find(&self, stmt: &Stmt, in_threads: bool, differing: &mut Vec<BufferId>) {
        let mut inside = in_threads;
        match stmt {
            Stmt::For { kind: LoopKind::ThreadBinding(tag), .. } => inside |= tag.starts_with("threadIdx"),
            Stmt::For { .. } | Stmt::While { .. } | Stmt::If { .. } | Stmt::Let { .. } => {
                inside |= stmt.expressions().into_iter().any(|expr| !self.reads_alike(expr));
            }
            Stmt::Block(block) => inside |= block.predicate.iter().any(|condition| !self.reads_alike(condition)),
            Stmt::Store { buffer, .. }
                if self.alike.contains(buffer)
                    && (in_threads || stmt.expressions().into_iter().any(|expr| !self.reads_alike(expr))) =>
            {
                differing.push(*buffer);
            }
            _ => {}
        }
        stmt.children().into_iter().for_each(|child| self.find(child, inside, differing));
    }

    fn reads_alike(&self, expr: &Expr) -> bool {
        let mut alike = true;
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, .. } = part {
                alike &= !self.local.contains(buffer) || self.alike.contains(buffer);
            }
        });
        alike
    }

    /// Whether a value, outside of loops over threads, is the same for all of a block.
    pub(super) fn holds_of(&self, launch: &Launch, expr: &Expr) -> bool {
        !launch.is_of_threads(expr) && self.reads_alike(expr)
    }
}
