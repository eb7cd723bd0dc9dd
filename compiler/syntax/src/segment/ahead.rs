//! Computation of the trees and names of a long function on another thread, ahead of their use.
//!
//! Opening a large document needs the trees of all its segments, one after the other. A second thread computes a tree
//! in less time than the elaboration of a segment takes, so that the elaborating thread finds the next tree computed.

use super::{Segment, Segments};
use crate::ast::{ExprKind, StatementKind};
use crate::shape::Caches;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

/// The number of segments from which a second thread is used. The trees of fewer are computed in a few milliseconds.
const MANY: usize = 256;

/// Stack size of the thread, in bytes: that of the threads that otherwise compute trees. Pages take memory only when
/// they are used.
const STACK: usize = 64 << 20;

/// Runs `work`, which uses the trees of the segments in `range` in order. If these are many, another thread computes
/// their trees meanwhile; it ends when `work` returns or unwinds. No result depends on it, since a tree is a pure
/// function of its text.
pub fn with_trees_ahead<T>(segments: &Segments, range: Range<usize>, work: impl FnOnce() -> T) -> T {
    if range.len() < MANY {
        return work();
    }
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let _ahead = Ahead::start(scope, segments, range, stop);
        work()
    })
}

/// The thread that computes trees. It is stopped and joined on drop.
struct Ahead<'scope> {
    stop: &'scope AtomicBool,
    /// `None` if the thread could not be started. The trees are then computed on first use, as without it.
    thread: Option<ScopedJoinHandle<'scope, Caches>>,
}

impl<'scope> Ahead<'scope> {
    /// Starts the thread, and lends it the caches of this one: they contain the lines that were parsed before, and this
    /// thread needs the lines that are parsed now for the edits that follow.
    fn start(
        scope: &'scope Scope<'scope, '_>,
        segments: &'scope Segments,
        range: Range<usize>,
        stop: &'scope AtomicBool,
    ) -> Ahead<'scope> {
        let caches = Caches::take();
        let compute = move || {
            caches.put();
            for segment in segments.iter().take(range.end).skip(range.start) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                intern_targets(segment);
            }
            Caches::take()
        };
        let builder = Builder::new().name("trees".into()).stack_size(STACK);
        Ahead { stop, thread: builder.spawn_scoped(scope, compute).ok() }
    }
}

/// Computes the tree of a segment, and interns the names that its assignments bind. To add a name to the pool takes
/// longer than to find it.
fn intern_targets(segment: &Segment) {
    for statement in &segment.tree().statements {
        let target = match &statement.tree.kind {
            StatementKind::Assign { targets, .. } => targets.first(),
            StatementKind::AnnAssign { target, .. } => Some(target),
            _ => None,
        };
        if let Some(target) = target.filter(|target| matches!(target.kind, ExprKind::Name)) {
            segment.cursor(statement).name(target.tokens.start);
        }
    }
}

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of the thread is ignored: this thread panics too if it needs the same tree.
        if let Some(Ok(caches)) = self.thread.take().map(ScopedJoinHandle::join) {
            caches.put();
        }
    }
}
