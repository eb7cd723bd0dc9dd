//! Selection ranges: the word, the expressions around it, the statement, its block, the function, the module, the file.

use crate::token_at::word_at;
use crate::tree::path_to;
use rx_base::Span;
use rx_db::FileView;
use rx_syntax::ast::ExprKind;
use rx_syntax::document::{Item, ItemKind, Location};
use rx_syntax::{Segment, Statement};

/// Returns the nested parts of the text around `offset`, innermost first. For example, in `y = R.add(x, 1)` at `x`:
/// `x`, the call, the statement, and so on.
pub fn selections(view: &FileView<'_>, offset: usize) -> Vec<Span> {
    let document = view.document();
    let whole = Span::new(0, u32::try_from(document.len()).unwrap_or(u32::MAX));
    let at = Span::empty(u32::try_from(offset.min(document.len())).unwrap_or(u32::MAX));
    let mut spans = Vec::new();
    if let Some(location) = document.locate(offset)
        && let Some(item) = document.items().get(location.item)
        && let Some(segment) = item.segments.get(location.segment)
    {
        in_segment(view, location, segment, &mut spans);
        blocks(view, location, item, &mut spans);
        if let ItemKind::Function(_) = item.kind {
            spans.extend(extent(view, location.item, location.item));
        }
        if item.module.is_some() {
            let same = |other: &Item| other.module == item.module;
            let items = document.items();
            let bounds = items.iter().position(same).zip(items.iter().rposition(same));
            spans.extend(bounds.and_then(|(first, last)| extent(view, first, last)));
        }
    }
    spans.push(whole);
    let mut grown: Vec<Span> = Vec::new();
    for span in spans {
        let inner = grown.last().copied().unwrap_or(at);
        let holds = span.start <= inner.start && inner.end <= span.end;
        if holds && grown.last() != Some(&span) {
            grown.push(span);
        }
    }
    grown
}

/// Adds the word, the expressions and the statement.
fn in_segment(view: &FileView<'_>, location: Location, segment: &Segment, spans: &mut Vec<Span>) {
    let Some((start, offset)) = places(view, location) else { return };
    let text = segment.text();
    let tokens = &segment.tree().tokens;
    let touches = |token: &u32| tokens.span(*token).is_some_and(|span| span.touches(offset));
    let at = tokens.at_or_after(offset);
    // If two tokens meet at the position, the one that is a word is selected.
    let both = [Some(at), at.checked_sub(1)].into_iter().flatten().filter(touches);
    let token = both.max_by_key(|token| (tokens.kind(*token).is_some_and(|kind| kind.is_word()), *token == at));
    if let Some(word) = word_at(text, location.offset) {
        spans.push(word.shift(start));
    }
    let comment = tokens.comments().iter().find(|comment| comment.touches(offset));
    spans.extend(comment.map(|comment| comment.shift(start)));
    let statement = segment.tree().statements.iter().find(|statement| statement.span.touches(offset));
    let Some(statement) = statement else { return };
    if let Some(token) = token {
        spans.extend(tokens.span(token).map(|span| span.shift(start)));
        expressions(segment, statement, token, start, spans);
    }
    spans.push(statement.span.shift(start));
}

fn places(view: &FileView<'_>, location: Location) -> Option<(u32, u32)> {
    let start = view.document().segment_start(location.item, location.segment);
    Some((u32::try_from(start).ok()?, u32::try_from(location.offset).ok()?))
}

/// Adds the expressions around a token, innermost first. A keyword argument is added between its value and its call.
fn expressions(segment: &Segment, statement: &Statement, token: u32, start: u32, spans: &mut Vec<Span>) {
    let Some((root, path)) = path_to(segment, statement, token) else { return };
    let mut inner: Option<&rx_syntax::ast::Expr> = None;
    for expr in path.iter().rev() {
        if let (ExprKind::Call { arguments, .. }, Some(inner)) = (&expr.kind, inner)
            && let Some(argument) = arguments.iter().find(|argument| std::ptr::eq(&argument.value, inner))
        {
            let from = argument.keyword.unwrap_or(inner.tokens.start);
            let tokens = rx_syntax::ast::TokenRange { start: from, end: inner.tokens.end };
            spans.push(root.cursor.span(tokens).shift(start));
        }
        spans.push(root.cursor.span(expr.tokens).shift(start));
        inner = Some(expr);
    }
}

/// Adds the blocks around a statement: first the statements of a block, then the block with its header.
fn blocks(view: &FileView<'_>, location: Location, item: &Item, spans: &mut Vec<Span>) {
    let Some((_, offset)) = places(view, location) else { return };
    let start =
        |segment: usize| u32::try_from(view.document().segment_start(location.item, segment)).unwrap_or(u32::MAX);
    let columns: Vec<(u32, Span, bool)> = statements_around(item, location.segment, &start);
    let here = start(location.segment) + offset;
    let Some(at) = columns.iter().rposition(|(_, span, _)| span.start <= here) else { return };
    let mut first = at;
    loop {
        let Some(column) = columns.get(first).map(|(column, ..)| *column) else { return };
        let inside = |(other, _, inline): &(u32, Span, bool)| *other >= column || *inline;
        let before = columns.get(..first).unwrap_or_default();
        let from = before.iter().rposition(|row| !inside(row)).map_or(0, |header| header + 1);
        let behind = columns.get(first..).unwrap_or_default();
        let to = behind.iter().position(|row| !inside(row)).map_or(columns.len(), |end| first + end);
        let span = |from: usize, to: usize| {
            let (_, first, _) = columns.get(from)?;
            let (_, last, _) = columns.get(to.checked_sub(1)?)?;
            Some(first.cover(*last))
        };
        spans.extend(span(from, to));
        let Some(header) = from.checked_sub(1) else { return };
        spans.extend(span(header, to));
        first = header;
    }
}

/// Returns the statements of an item that may share a block with those of a segment: all of them, or those in nearby
/// segments if the item is very long.
fn statements_around(item: &Item, segment: usize, start: &dyn Fn(usize) -> u32) -> Vec<(u32, Span, bool)> {
    const NEAR: usize = 64;
    let from = if item.segments.len() > 2 * NEAR { segment.saturating_sub(NEAR) } else { 0 };
    let rows = item.segments.iter().enumerate().skip(from).take(2 * NEAR).flat_map(|(number, segment)| {
        let base = start(number);
        segment.tree().statements.iter().map(move |row| (row.indent, row.span.shift(base), row.inline))
    });
    rows.collect()
}

/// Returns the span of items `first..=last` without surrounding blanks.
fn extent(view: &FileView<'_>, first: usize, last: usize) -> Option<Span> {
    let document = view.document();
    let head = document.items().get(first)?.segments.first()?;
    let start = document.item_start(first) + (head.text().len() - head.text().trim_start().len());
    let tail = document.items().get(last)?;
    let number = tail.segments.len().checked_sub(1)?;
    let end = document.segment_start(last, number) + tail.segments.get(number)?.text().trim_end().len();
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(end.max(start)).ok()?))
}
