//! From typed calls back to the text: where an argument is written.

use rx_base::Span;
use rx_syntax::ast::{Argument, ExprKind};
use rx_syntax::{Cursor, Segment};

/// A call as it is written.
pub(super) struct WrittenCall<'a> {
    pub cursor: Cursor<'a>,
    pub arguments: &'a [Argument],
}

impl WrittenCall<'_> {
    /// Where the argument for a parameter stands, given by keyword or as the `position`-th; `None` when it is left out.
    pub fn argument(&self, keyword: &str, position: Option<usize>) -> Option<Span> {
        let named = |argument: &&Argument| argument.keyword.is_some_and(|token| self.cursor.text(token) == keyword);
        let positional = || self.arguments.get(position?).filter(|argument| argument.keyword.is_none());
        let found = self.arguments.iter().find(named).or_else(positional)?;
        Some(self.cursor.span(found.value.tokens))
    }
}

/// The call written at `span` of a segment.
pub(super) fn call_at(segment: &Segment, span: Span) -> Option<WrittenCall<'_>> {
    let (cursor, call) = segment.call_at(span)?;
    let ExprKind::Call { arguments, .. } = &call.kind else { return None };
    Some(WrittenCall { cursor, arguments })
}
