//! Spellings of other releases that the parser of a release rejects.

use rx_base::{Code, Diagnostic, Fix, Span, TvmVersion};
use rx_context::{FileContext, ItemPlace};
use rx_syntax::ast::{Argument, Expr, ExprKind, TokenRange};
use rx_syntax::dialect::{Place, SPELLINGS, Spelling};
use rx_syntax::{Cursor, Segments};

/// Reports the spellings in an item that the parser of `version` rejects because they belong to other releases.
pub(super) fn check(
    version: TvmVersion,
    segments: &Segments,
    file: &FileContext,
    found: &mut Vec<Diagnostic<ItemPlace>>,
) {
    let mut reader = Reader { version, file, segment: 0, found };
    for (at, segment) in segments.iter().enumerate() {
        reader.segment = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in &segment.tree().statements {
            segment.each_expr(statement, &mut |cursor, expr| reader.expr(cursor, expr));
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

    /// Checks a dotted name, such as `T.block`.
    fn path(&mut self, cursor: Cursor<'_>, expr: &Expr, last: u32) {
        let Some(path) = self.file.canonical_path(cursor.path(expr.tokens)) else { return };
        let Some((row, read)) = refused(self.version, Place::Path, &path) else { return };
        let new = read.split('.').next_back().unwrap_or(read);
        self.other_spelling(row, &path, read, cursor.span(token(last)), new);
    }

    /// Checks the keywords of a call, such as `out_sinfo=`.
    fn keywords(&mut self, cursor: Cursor<'_>, callee: &Expr, arguments: &[Argument]) {
        let Some(path) = self.file.canonical_path(cursor.path(callee.tokens)) else { return };
        // `R.call_packed` takes any keyword as an attribute.
        if path == "R.call_packed" {
            return;
        }
        for keyword in arguments.iter().filter_map(|argument| argument.keyword) {
            let given = cursor.text(keyword);
            if let Some((row, read)) = refused(self.version, Place::Keyword, given) {
                self.other_spelling(row, given, read, cursor.span(token(keyword)), read);
            }
        }
    }

    /// Reports the spelling `given` of a table row. The release reads `read` instead; the fix replaces the text at
    /// `span` by `new`.
    fn other_spelling(&mut self, row: &Spelling, given: &str, read: &str, span: Span, new: &str) {
        let (version, title) = (self.version, format!("write `{new}`"));
        let (when, help) = match read == row.current {
            true => ("now", format!("{title}; `rxfmt` rewrites a whole file")),
            false => ("there", title.clone()),
        };
        let message = format!("TVM {version} does not read `{given}`; it is called `{read}` {when}");
        self.found.push(
            Diagnostic::new(Code::OutdatedSpelling, self.place(span), message).with_help(help).with_fix(Fix {
                title,
                edits: vec![(self.place(span), new.to_owned())],
                safe: true,
            }),
        );
    }
}

/// Finds the row of the dialect table whose spelling `text` is rejected by `version`. Returns the row and the spelling
/// that `version` reads.
fn refused(version: TvmVersion, place: Place, text: &str) -> Option<(&'static Spelling, &'static str)> {
    let mut rows = SPELLINGS.iter().filter(|row| row.place == place && !row.ambiguous);
    rows.find_map(|row| {
        let (is_current, reads_current) = (row.current == text, version >= row.since);
        let is_refused = match is_current {
            true => !reads_current,
            false => row.classic == text && reads_current && !row.still_read,
        };
        is_refused.then_some((row, if reads_current { row.current } else { row.classic }))
    })
}

fn token(at: u32) -> TokenRange {
    TokenRange::one(at)
}
