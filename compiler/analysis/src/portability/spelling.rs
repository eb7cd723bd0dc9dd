//! Old spellings that the parser of a release refuses.

use super::written::each_expr;
use crate::file_context::FileContext;
use crate::function::ItemPlace;
use rx_base::{Code, Diagnostic, Fix, Span, TvmVersion};
use rx_syntax::ast::{Argument, Expr, ExprKind, TokenRange};
use rx_syntax::dialect::{Place, SPELLINGS, Spelling};
use rx_syntax::{Cursor, Segment};
use std::sync::Arc;

/// Reports the old spellings of an item that the parser of `version` refuses.
pub(super) fn check(
    version: TvmVersion,
    segments: &[Arc<Segment>],
    file: &FileContext,
    found: &mut Vec<Diagnostic<ItemPlace>>,
) {
    let mut reader = Reader { version, file, segment: 0, found };
    for (at, segment) in segments.iter().enumerate() {
        reader.segment = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in &segment.tree().statements {
            each_expr(segment, statement, &mut |cursor, expr| reader.expr(cursor, expr));
        }
    }
}

struct Reader<'a> {
    version: TvmVersion,
    file: &'a FileContext,
    segment: u32,
    found: &'a mut Vec<Diagnostic<ItemPlace>>,
}

impl Reader<'_> {
    fn place(&self, span: Span) -> ItemPlace {
        ItemPlace::Segment(self.segment, span)
    }

    fn expr(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        match &expr.kind {
            ExprKind::Attribute { name, .. } => self.path(cursor, expr, *name),
            ExprKind::Call { callee, arguments } => {
                self.keywords(cursor, callee, arguments);
            }
            _ => {}
        }
    }

    /// An old dotted name: `T.block`.
    fn path(&mut self, cursor: Cursor<'_>, expr: &Expr, last: u32) {
        let Some(path) = self.file.canonical_path(cursor.path(expr.tokens)) else { return };
        let Some(row) = refused(self.version, Place::Path, &path) else { return };
        let new = row.current.split('.').next_back().unwrap_or(row.current);
        self.outdated(&path, row.current, cursor.span(token(last)), new);
    }

    /// Old keywords: `out_sinfo=`.
    fn keywords(&mut self, cursor: Cursor<'_>, callee: &Expr, arguments: &[Argument]) {
        let Some(path) = self.file.canonical_path(cursor.path(callee.tokens)) else { return };
        // It takes any keyword for an attribute.
        if path == "R.call_packed" {
            return;
        }
        for keyword in arguments.iter().filter_map(|argument| argument.keyword) {
            if let Some(row) = refused(self.version, Place::Keyword, cursor.text(keyword)) {
                self.outdated(row.classic, row.current, cursor.span(token(keyword)), row.current);
            }
        }
    }

    fn outdated(&mut self, old: &str, current: &str, span: Span, new: &str) {
        let title = format!("write `{new}`");
        self.found.push(
            Diagnostic::new(
                Code::OutdatedSpelling,
                self.place(span),
                format!("TVM {} does not read `{old}`; it is called `{current}` now", self.version),
            )
            .with_help(format!("{title}; `rxfmt` rewrites a whole file"))
            .with_fix(Fix { title, edits: vec![(self.place(span), new.to_owned())], safe: true }),
        );
    }
}

/// The row of the dialects' table whose classic spelling is `text` and no longer read by `version`.
fn refused(version: TvmVersion, place: Place, text: &str) -> Option<&'static Spelling> {
    let TvmVersion::V0_27 = version;
    // 0.27 still reads `R.Object`, and attributes of old names say nothing to it.
    let still_read = |row: &Spelling| row.current == "R.Any";
    SPELLINGS.iter().find(|row| row.place == place && row.classic == text && !row.ambiguous && !still_read(row))
}

fn token(at: u32) -> TokenRange {
    TokenRange { start: at, end: at + 1 }
}
