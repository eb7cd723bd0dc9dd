//! Fixes that declare the undefined dims of a `T.match_buffer`.

use super::Walk;
use rx_base::{Code, Fix, Span};
use rx_context::{ItemPlace, Namespace};
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segment, Statement};

impl Walk<'_> {
    /// Adds fixes to the diagnostics of a statement, from number `since` on: an undefined dim of
    /// `T.match_buffer(a, (n, 4))` is declared by `n = T.int64()` before the statement, and gets its value from the
    /// argument.
    pub(super) fn offer_declarations(&mut self, since: usize, segment: &Segment, statement: &Statement) {
        if self.found.len() == since {
            return;
        }
        let cursor = segment.cursor(statement);
        let StatementKind::Assign { value, .. } = &statement.tree.kind else { return };
        let Some(shape) = self.matched_shape(cursor, value) else { return };
        let dims: Vec<Span> =
            dims(shape).filter(|dim| dim.kind == ExprKind::Name).map(|dim| cursor.span(dim.tokens)).collect();
        let Some((line, indent)) = line_start(segment, statement) else { return };
        let tir = self.file.spelled_namespace("T");
        for diagnostic in self.found.iter_mut().skip(since).filter(|it| it.code == Code::UndefinedName) {
            let ItemPlace::Segment(at, span) = diagnostic.primary else { continue };
            let Some(dim) = segment.text().get(span.range()).filter(|_| dims.contains(&span)) else { continue };
            let declaration = format!("{dim} = {tir}.int64()");
            let title = format!("declare `{declaration}`");
            let edits = vec![(ItemPlace::Segment(at, Span::empty(line)), format!("{indent}{declaration}\n"))];
            diagnostic.fixes.push(Fix { title, edits, safe: false });
        }
    }

    /// Returns the shape in a call of `T.match_buffer`.
    fn matched_shape<'e>(&self, cursor: Cursor<'_>, call: &'e Expr) -> Option<&'e Expr> {
        let ExprKind::Call { callee, arguments } = &call.kind else { return None };
        let (head, function) = cursor.path(callee.tokens).split_once('.')?;
        if function != "match_buffer" || self.file.namespace(head) != Some(Namespace::Tir) {
            return None;
        }
        let is_shape = |argument: &&Argument| argument.keyword.is_some_and(|keyword| cursor.text(keyword) == "shape");
        let positional = arguments.get(1).filter(|argument| argument.keyword.is_none());
        positional.or_else(|| arguments.iter().find(is_shape)).map(|argument| &argument.value)
    }
}

/// Returns the dims of a shape: `n` and `4` of `(n, 4)`.
fn dims(shape: &Expr) -> impl Iterator<Item = &Expr> {
    match &shape.kind {
        ExprKind::Tuple(dims) | ExprKind::List(dims) => dims.iter(),
        ExprKind::Parenthesized(only) => std::slice::from_ref(&**only).iter(),
        _ => std::slice::from_ref(shape).iter(),
    }
}

/// Returns the start of the line of a statement, if the statement is first on its line, and its indentation.
fn line_start<'s>(segment: &'s Segment, statement: &Statement) -> Option<(u32, &'s str)> {
    let before = segment.text().get(..statement.span.start as usize)?;
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let indent = before.get(line..).filter(|indent| indent.trim().is_empty())?;
    Some((u32::try_from(line).ok()?, indent))
}
