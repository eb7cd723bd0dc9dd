//! Folding ranges: functions, modules, blocks, brackets and strings of several lines, imports, comments.

use rx_base::Span;
use rx_db::FileView;
use rx_syntax::ast::StatementKind;
use rx_syntax::document::{Item, ItemKind};
use rx_syntax::{Segment, TokenKind};

/// The kind of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldKind {
    /// Consecutive comment lines.
    Comment,
    /// Consecutive imports.
    Imports,
    /// Any other fold.
    Region,
}

/// A part of the text that can be folded. It starts at the end of the text that stays visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// The span, in bytes of the file.
    pub span: Span,
    /// The kind.
    pub kind: FoldKind,
}

/// Returns the folds of a file, ordered by their starts. Each has more than one line.
pub fn folds(view: &FileView<'_>) -> Vec<Fold> {
    let mut folder = Folder { view, folds: Vec::new(), blocks: Vec::new(), end: 0, imports: None, comments: None };
    for (at, item) in view.document().items().iter().enumerate() {
        if item.kind == ItemKind::Foreign {
            folder.close(0);
            folder.end_runs();
            continue;
        }
        folder.item(at, item);
    }
    folder.close(0);
    folder.end_runs();
    let mut folds = folder.folds;
    folds.retain(|fold| fold.span.start < fold.span.end);
    folds.sort_by_key(|fold| (fold.span.start, std::cmp::Reverse(fold.span.end)));
    folds.dedup();
    folds
}

/// Consecutive lines of one kind.
struct Run {
    span: Span,
    count: u32,
}

struct Folder<'a, 'v> {
    view: &'a FileView<'v>,
    folds: Vec<Fold>,
    /// The column and the end of the header of each open block.
    blocks: Vec<(u32, u32)>,
    /// The end of the last statement.
    end: u32,
    imports: Option<Run>,
    comments: Option<Run>,
}

impl Folder<'_, '_> {
    fn item(&mut self, at: usize, item: &Item) {
        for (number, segment) in item.segments.iter().enumerate() {
            let start = self.view.document().segment_start(at, number);
            let Ok(start) = u32::try_from(start) else { return };
            self.segment(segment, start);
        }
    }

    fn segment(&mut self, segment: &Segment, start: u32) {
        let text = segment.text();
        let tree = segment.tree();
        for statement in &tree.statements {
            let span = statement.span.shift(start);
            if !statement.inline {
                self.close(statement.indent);
            }
            let import = matches!(statement.tree.kind, StatementKind::Import(_) | StatementKind::FromImport { .. });
            match (&mut self.imports, import) {
                (Some(run), true) => (run.span, run.count) = (run.span.cover(span), run.count + 1),
                (None, true) => self.imports = Some(Run { span, count: 1 }),
                (Some(_), false) => self.end_imports(),
                (None, false) => {}
            }
            if text.get(statement.span.range()).is_some_and(|text| text.contains(['\n', '\r'])) {
                self.brackets(segment, statement.first_token, statement.token_count, start);
            }
            if statement.tree.kind.opens_block() {
                self.blocks.push((statement.indent, span.end));
            }
            self.end = span.end;
        }
        for comment in tree.tokens.comments() {
            self.comment(text, *comment, start);
        }
        // Comments in the next segment start a new run.
        self.end_comments();
    }

    /// Closes the blocks that a statement at this column is not in.
    fn close(&mut self, column: u32) {
        while let Some((_, header)) = self.blocks.pop_if(|(indent, _)| column <= *indent) {
            if header < self.end {
                self.folds.push(Fold { span: Span::new(header, self.end), kind: FoldKind::Region });
            }
        }
    }

    /// Adds brackets and strings of several lines.
    fn brackets(&mut self, segment: &Segment, first: u32, count: u32, start: u32) {
        let (tokens, text) = (&segment.tree().tokens, segment.text());
        let mut open: Vec<Span> = Vec::new();
        for token in first..first.saturating_add(count) {
            let (Some(kind), Some(span)) = (tokens.kind(token), tokens.span(token)) else { continue };
            let inside = match kind {
                kind if kind.is_opener() => {
                    open.push(span);
                    continue;
                }
                kind if kind.is_closer() => open.pop().map(|opener| Span::new(opener.end, span.start)),
                TokenKind::String => Some(span),
                _ => None,
            };
            let several = |span: &Span| text.get(span.range()).is_some_and(|text| text.contains(['\n', '\r']));
            if let Some(inside) = inside.filter(several) {
                self.folds.push(Fold { span: inside.shift(start), kind: FoldKind::Region });
            }
        }
    }

    fn comment(&mut self, text: &str, comment: Span, start: u32) {
        // Only comments on separate lines are folded together.
        let before = text.get(..comment.range().start).unwrap_or_default();
        let line = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let alone = before.get(line..).is_some_and(|before| before.trim().is_empty());
        let span = comment.shift(start);
        let follows = self.comments.as_ref().is_some_and(|run| {
            let between = run.span.end.checked_sub(start).and_then(|end| text.get(end as usize..comment.range().start));
            between.is_some_and(|between| between.trim().is_empty() && between.lines().count() <= 2)
        });
        match &mut self.comments {
            Some(run) if alone && follows => (run.span, run.count) = (run.span.cover(span), run.count + 1),
            _ => {
                self.end_comments();
                self.comments = alone.then_some(Run { span, count: 1 });
            }
        }
    }

    fn end_comments(&mut self) {
        if let Some(run) = self.comments.take().filter(|run| run.count > 1) {
            self.folds.push(Fold { span: run.span, kind: FoldKind::Comment });
        }
    }

    fn end_imports(&mut self) {
        if let Some(run) = self.imports.take().filter(|run| run.count > 1) {
            self.folds.push(Fold { span: run.span, kind: FoldKind::Imports });
        }
    }

    fn end_runs(&mut self) {
        self.end_comments();
        self.end_imports();
    }
}
