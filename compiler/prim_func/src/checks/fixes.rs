//! Builds the fixes of the kernel checks.

use rx_base::{Fix, Name, Span};
use rx_context::ItemPlace;
use rx_syntax::ast::{ExprKind, StatementKind, TokenRange};
use rx_syntax::{Segment, Segments, Statement, TokenKind};

/// The text of a prim_func.
#[derive(Clone, Copy)]
pub(super) struct Text<'t> {
    segments: &'t Segments,
}

impl<'t> Text<'t> {
    /// Creates the text from its segments.
    pub(super) fn of(segments: &'t Segments) -> Text<'t> {
        Text { segments }
    }

    /// Finds the statement around a place; returns the index of its segment, the segment, the statement's index in the
    /// segment, and the statement.
    fn statement(self, place: &ItemPlace) -> Option<(usize, &'t Segment, usize, &'t Statement)> {
        let ItemPlace::Segment(at, span) = *place else { return None };
        let segment = self.segments.get(at as usize)?;
        let around = |statement: &Statement| statement.span.start <= span.start && span.end <= statement.span.end;
        let (index, statement) = segment.tree().statements.iter().enumerate().find(|(_, it)| around(it))?;
        Some((at as usize, segment, index, statement))
    }

    /// Returns the fix that deletes the statement at a place together with its lines; `None` if, for example, other
    /// code is on them.
    pub(super) fn without(self, place: &ItemPlace, title: String) -> Option<Fix<ItemPlace>> {
        let (at, segment, _, statement) = self.statement(place)?;
        let (text, span) = (segment.text(), statement.span.range());
        let start = line_start(text, span.start)?;
        let rest = text.get(span.end..)?;
        let end = span.end + rest.find('\n').map_or(rest.len(), |at| at + 1);
        let alone = text.get(span.end..end)?.trim_start();
        if !(alone.is_empty() || alone.starts_with('#')) {
            return None;
        }
        let edits = vec![(segment_place(at, start, end)?, String::new())];
        Some(Fix { title, edits, safe: true })
    }

    /// Returns the fix that renames the variable of the `for` at a place, also in the loop's body; `None` if, for
    /// example, the body assigns the name.
    pub(super) fn renamed(self, place: &ItemPlace, name: Name) -> Option<Fix<ItemPlace>> {
        let (at, _, index, header) = self.statement(place)?;
        if !matches!(header.tree.kind, StatementKind::For { .. }) {
            return None;
        }
        let fresh = (1..100).map(|number| format!("{name}_{number}")).find(|name| !self.mentions(name))?;
        let mut edits = vec![(place.clone(), fresh.clone())];
        let later = self.segments.iter().enumerate().skip(at);
        let body = later.flat_map(|(nth, segment)| {
            let skipped = if nth == at { index + 1 } else { 0 };
            segment.tree().statements.iter().skip(skipped).map(move |statement| (nth, segment, statement))
        });
        for (nth, segment, statement) in body.take_while(|(.., it)| it.inline || it.indent > header.indent) {
            let cursor = segment.cursor(statement);
            for token in (0..statement.token_count).filter(|token| cursor.kind(*token) == Some(TokenKind::Name)) {
                let before = token.checked_sub(1).and_then(|before| cursor.kind(before));
                let own = ItemPlace::Segment(u32::try_from(nth).ok()?, cursor.span(TokenRange::one(token)));
                if cursor.text(token) != name.as_str() || before == Some(TokenKind::Dot) || own == *place {
                    continue;
                }
                if cursor.kind(token + 1) == Some(TokenKind::Equal) {
                    // The name is bound again, or is a keyword argument of a call.
                    return None;
                }
                edits.push((own, fresh.clone()));
            }
        }
        Some(Fix { title: format!("call it `{fresh}`"), edits, safe: true })
    }

    /// Whether the function's text contains a name anywhere, also in a longer word or a comment.
    fn mentions(self, name: &str) -> bool {
        self.segments.iter().any(|segment| segment.text().contains(name))
    }

    /// Returns the fix that makes the parallel or vectorized loop at a place serial.
    pub(super) fn sequential(self, place: &ItemPlace) -> Option<Fix<ItemPlace>> {
        let (at, segment, _, statement) = self.statement(place)?;
        let StatementKind::For { iter, .. } = &statement.tree.kind else { return None };
        let ExprKind::Call { callee, .. } = &iter.kind else { return None };
        let cursor = segment.cursor(statement);
        let (head, kind) = cursor.path(callee.tokens).rsplit_once('.')?;
        if !matches!(kind, "parallel" | "vectorized") {
            return None;
        }
        let place = ItemPlace::Segment(u32::try_from(at).ok()?, cursor.span(callee.tokens));
        Some(Fix {
            title: "run the loop in order".to_owned(),
            edits: vec![(place, format!("{head}.serial"))],
            safe: false,
        })
    }

    /// Returns the fix that initializes the target of the statement at a place to `{tir}.{value}`, in a `T.init` before
    /// it.
    pub(super) fn initial(self, place: &ItemPlace, value: &str, tir: &str) -> Option<Fix<ItemPlace>> {
        let (at, segment, _, statement) = self.statement(place)?;
        let target = match &statement.tree.kind {
            StatementKind::Assign { targets, .. } => targets.first()?,
            StatementKind::AugAssign { target, .. } => target,
            _ => return None,
        };
        let target = segment.cursor(statement).source(target.tokens);
        let start = line_start(segment.text(), statement.span.range().start)?;
        let indent = segment.text().get(start..statement.span.range().start)?;
        let text = format!("{indent}with {tir}.init():\n{indent}    {target} = {tir}.{value}\n");
        let title = format!("begin with {tir}.{value}");
        Some(Fix { title, edits: vec![(segment_place(at, start, start)?, text)], safe: false })
    }
}

/// Returns the start of the line of `at`, if only whitespace is between them.
fn line_start(text: &str, at: usize) -> Option<usize> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |at| at + 1);
    text.get(start..at)?.trim().is_empty().then_some(start)
}

fn segment_place(segment: usize, start: usize, end: usize) -> Option<ItemPlace> {
    let span = Span::new(u32::try_from(start).ok()?, u32::try_from(end).ok()?);
    Some(ItemPlace::Segment(u32::try_from(segment).ok()?, span))
}
