//! Maps typed calls back to the text: finds the source spans of their arguments.

use rx_base::Span;
use rx_syntax::ast::{Argument, ExprKind};
use rx_syntax::{Cursor, Segment};

/// A call in the source text.
pub(super) struct SourceCall<'a> {
    pub cursor: Cursor<'a>,
    pub arguments: &'a [Argument],
}

impl SourceCall<'_> {
    /// Returns the span of the argument for a parameter, given by keyword or as the argument number `position`. Returns
    /// `None` if it is omitted.
    pub fn argument(&self, keyword: &str, position: Option<usize>) -> Option<Span> {
        let named = |argument: &&Argument| argument.keyword.is_some_and(|token| self.cursor.text(token) == keyword);
        let positional = || self.arguments.get(position?).filter(|argument| argument.keyword.is_none());
        let found = self.arguments.iter().find(named).or_else(positional)?;
        Some(self.cursor.span(found.value.tokens))
    }
}

/// Returns the call at `span` in the text of a segment.
pub(super) fn call_at(segment: &Segment, span: Span) -> Option<SourceCall<'_>> {
    let (cursor, call) = segment.call_at(span)?;
    let ExprKind::Call { arguments, .. } = &call.kind else { return None };
    Some(SourceCall { cursor, arguments })
}
