//! Reports calls of `T.` functions whose arguments do not fit their signatures.

use super::Walk;
use crate::functions::mistakes;
use rx_base::Diagnostic;
use rx_context::ItemPlace;
use rx_context::mistakes::suggest_in_place;
use rx_syntax::Cursor;
use rx_syntax::ast::Expr;

impl Walk<'_> {
    /// Reports unknown, ignored, missing, surplus and repeated arguments, such as `T.exp()` and `T.floordiv(a, c=b)`.
    pub(super) fn wrong_calls(&mut self, cursor: Cursor<'_>, call: &Expr) {
        for wrong in mistakes(cursor, self.file, call) {
            let place = ItemPlace::Segment(self.segment, cursor.span(wrong.tokens));
            self.found.push(suggest_in_place(Diagnostic::new(wrong.code, place, wrong.message), wrong.meant));
        }
    }
}
