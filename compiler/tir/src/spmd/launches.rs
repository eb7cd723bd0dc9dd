//! Functions with several launches. Each launch has its own threads and is complete before the next one begins.

use super::{Collective, Collectives};
use crate::effects::Effects;
use crate::func::{BufferId, PrimFunc, Scope};
use crate::placeholders::{Outcome, first_placeholder, placeholder_of};
use crate::rewrite::try_map_children;
use crate::stmt::{LoopKind, Stmt};
use rustc_hash::FxHashSet;

/// Whether all collective operations are inside of launches, and every buffer that a launch uses is global or allocated
/// inside of it. Launches may then be converted separately.
pub(super) fn are_apart(func: &PrimFunc, collectives: &Collectives) -> bool {
    let mut is_apart = true;
    outermost(&func.body, &mut |stmt| match is_launch(stmt) {
        true => {
            let mut own: FxHashSet<BufferId> = FxHashSet::default();
            let mut effects = Effects::of(stmt);
            stmt.walk(&mut |part| {
                if let Stmt::Block(block) = part {
                    own.extend(&block.allocations);
                }
                if let Some((_, Collective::AllReduce(of))) = placeholder_of(part, collectives) {
                    of.values.iter().chain([&of.condition]).for_each(|value| effects.expr(value));
                    effects.written.extend(of.targets.iter().map(|(buffer, _)| *buffer));
                }
            });
            let mut used = effects.read.iter().chain(&effects.written);
            is_apart &= used.all(|id| own.contains(id) || func.buffer(*id).scope == Scope::Global);
        }
        false => is_apart &= placeholder_of(stmt, collectives).is_none(),
    });
    is_apart
}

/// Rewrites each launch that contains a collective operation by `made`.
pub(super) fn each(
    body: &Stmt,
    collectives: &Collectives,
    made: &mut dyn FnMut(&Stmt) -> Outcome<Stmt>,
) -> Outcome<Stmt> {
    if is_launch(body) {
        return if first_placeholder(body, collectives).is_some() { made(body) } else { Ok(body.clone()) };
    }
    try_map_children(body, &mut |child| each(child, collectives, made))
}

/// Whether a statement is one launch: a loop with a thread binding, or a block that only allocates buffers for one.
fn is_launch(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::For { kind, .. } => matches!(kind, LoopKind::ThreadBinding(_)),
        Stmt::Block(block) => block.only_holds() && is_launch(&block.body),
        _ => false,
    }
}

/// Calls `visit` on each launch, and on the statements outside of launches.
fn outermost(stmt: &Stmt, visit: &mut impl FnMut(&Stmt)) {
    visit(stmt);
    if !is_launch(stmt) {
        stmt.children().into_iter().for_each(|child| outermost(child, visit));
    }
}
