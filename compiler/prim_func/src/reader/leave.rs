//! Reads early exits from loops and functions: `break`, `continue`, `return`.

use super::statement::Step;
use super::{Outcome, Reader};
use rx_base::Code;
use rx_syntax::At;
use rx_tir::leave::Leave;

/// Returns the kind of early exit that a call of this member of `T` is, if it is one.
pub(super) fn left_by(member: &str) -> Option<Leave> {
    match member {
        "continue_loop" => Some(Leave::Continue),
        "break_loop" => Some(Leave::Break),
        "thread_return" => Some(Leave::Return),
        _ => None,
    }
}

impl Reader<'_> {
    /// Reads `break`, `continue`, `return` or a call with the same meaning.
    pub(super) fn leave(&mut self, at: At<'_>, of: Leave) -> Outcome<Step> {
        let word = at.cursor.source(at.tokens);
        if of != Leave::Return && self.loops == 0 {
            return self.mistake(at, Code::MisplacedStatement, format!("`{word}` is outside of a loop"));
        }
        // A trace has no statement for an exit. After this error, `pass_over` records the exit as an event.
        if self.is_tracing() {
            return self.unsupported(at, &format!("`{word}`"));
        }
        let (var, mark) = self.mark(at, "leave");
        self.leaves.insert(var, of);
        Ok(Step::Done(mark))
    }
}
