//! A statement of a Relax function as the subject of a refactoring, and the edits that remove it.

use crate::dataflow::DataflowReader;
use crate::tree::{last_name, path_to};
use rx_base::fix::Edit;
use rx_base::name::NameSet;
use rx_base::{Code, Name, Span};
use rx_db::{FileView, FunctionKind};
use rx_ir::Signature;
use rx_syntax::ast::{Expr, ExprKind, StatementKind, TokenRange};
use rx_syntax::document::ItemKind;
use rx_syntax::{Cursor, Root, Segment, Statement, TokenKind};

/// A statement in the body of a function.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    /// The index of the function's item.
    pub(super) item: usize,
    /// The index of the segment in the item.
    pub(super) number: usize,
    pub(super) segment: &'a Segment,
    /// The index of the statement in the segment.
    pub(super) index: usize,
    pub(super) statement: &'a Statement,
    /// The start of the segment, in bytes of the file.
    pub(super) start: u32,
}

/// Returns the index of the Relax function that contains the byte at `offset`.
pub(super) fn relax_item(view: &FileView<'_>, offset: u32) -> Option<usize> {
    let at = view.document().locate(offset as usize)?.item;
    let item = view.document().items().get(at)?;
    (item.kind == ItemKind::Function(FunctionKind::Relax)).then_some(at)
}

/// Returns the statements in the body of a function from segment `from` on, in order. A segment is parsed when its
/// statements are reached.
pub(super) fn sites<'a>(view: &FileView<'a>, item: usize, from: usize) -> impl Iterator<Item = Site<'a>> + use<'a> {
    let document = view.document();
    let segments = document.items().get(item).into_iter().flat_map(|own| own.segments.iter().enumerate());
    // Segment 0 is the header.
    segments.skip(from.max(1)).flat_map(move |(number, segment)| {
        let segment: &'a Segment = segment;
        let start = u32::try_from(document.segment_start(item, number)).unwrap_or(u32::MAX);
        let statements = segment.tree().statements.iter().enumerate();
        statements.map(move |(index, statement)| Site { item, number, segment, index, statement, start })
    })
}

impl<'a> Site<'a> {
    /// Returns the statement in the body of a Relax function that contains the byte at `offset` or ends there.
    pub(super) fn at(view: &FileView<'a>, offset: u32) -> Option<Site<'a>> {
        let document = view.document();
        let item = relax_item(view, offset)?;
        let location = document.locate(offset as usize)?;
        let segment: &'a Segment = document.items().get(item)?.segments.get(location.segment)?;
        let at = u32::try_from(location.offset).ok()?;
        let (index, statement) = segment.statement_before(at)?;
        let start = u32::try_from(document.segment_start(item, location.segment)).ok()?;
        let site = Site { item, number: location.segment, segment, index, statement, start };
        (location.segment > 0 && statement.span.touches(at) && statement.tree.error.is_none()).then_some(site)
    }

    /// Returns the statement's span in bytes of the file.
    pub(super) fn span(&self) -> Span {
        self.statement.span.shift(self.start)
    }

    /// Returns the kind of the statement.
    pub(super) fn kind(&self) -> &'a StatementKind {
        &self.statement.tree.kind
    }

    /// Returns a cursor over the statement.
    pub(super) fn cursor(&self) -> Cursor<'a> {
        self.segment.cursor(self.statement)
    }

    /// Returns the value that the statement computes: that of a binding, a `return`, a bare expression or an `if`.
    pub(super) fn value(&self) -> Option<&'a Expr> {
        match self.kind() {
            StatementKind::Assign { value, .. }
            | StatementKind::AnnAssign { value: Some(value), .. }
            | StatementKind::Return(Some(value))
            | StatementKind::Expr(value)
            | StatementKind::If(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the variable that the statement binds, as a span in bytes of the file, and its value. `None` unless the
    /// statement binds exactly one name.
    pub(super) fn binding(&self) -> Option<(Span, &'a Expr)> {
        let (target, value) = match self.kind() {
            StatementKind::Assign { targets, value } => match &targets[..] {
                [target] => (target, value),
                _ => return None,
            },
            StatementKind::AnnAssign { target, value: Some(value), .. } => (target, value),
            _ => return None,
        };
        let span = self.cursor().span(target.tokens).shift(self.start);
        matches!(target.kind, ExprKind::Name).then_some((span, value))
    }

    /// Returns the expressions of the statement that contain the byte at `offset` of the file or end there, outermost
    /// first.
    pub(super) fn path(&self, offset: u32) -> Option<(Root<'a>, Vec<&'a Expr>)> {
        let at = offset.checked_sub(self.start)?;
        let tokens = &self.segment.tree().tokens;
        let next = tokens.at_or_after(at);
        let touches = |token: &u32| tokens.span(*token).is_some_and(|span| span.touches(at));
        let both = [Some(next), next.checked_sub(1)].into_iter().flatten().filter(touches);
        // If two tokens meet at the position, the one that is a word counts.
        let token = both.max_by_key(|token| (tokens.kind(*token).is_some_and(TokenKind::is_word), *token == next))?;
        path_to(self.segment, self.statement, token)
    }

    /// Returns the blanks before the statement's line.
    pub(super) fn indent(&self) -> &'a str {
        let text = self.segment.text();
        let line = text.get(self.line_start() as usize..).unwrap_or_default();
        line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or_default()
    }

    /// Returns the start of the line on which the statement begins, in bytes of the segment.
    pub(super) fn line_start(&self) -> u32 {
        let before = self.segment.text().get(..self.statement.span.start as usize).unwrap_or_default();
        before.rfind(['\n', '\r']).map_or(0, |at| at as u32 + 1)
    }

    /// Returns the end of the line on which the statement ends, in bytes of the segment: without and with its line
    /// break.
    pub(super) fn line_end(&self) -> (u32, u32) {
        let text = self.segment.text();
        let end = self.statement.span.end as usize;
        let rest = text.get(end..).unwrap_or_default();
        let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let breaks = match rest.get(line..).unwrap_or_default() {
            rest if rest.starts_with("\r\n") => 2,
            "" => 0,
            _ => 1,
        };
        ((end + line) as u32, (end + line + breaks) as u32)
    }

    /// Returns the statement after this one in its segment.
    fn next(&self) -> Option<&'a Statement> {
        self.segment.tree().statements.get(self.index + 1)
    }

    /// Whether the statement has its lines for itself.
    pub(super) fn is_alone(&self) -> bool {
        !self.statement.inline && self.next().is_none_or(|next| !next.inline)
    }

    /// Returns the edit that removes the statement. A comment at the end of its line stays on the line. `None` if the
    /// statement is the only one after a `:`.
    pub(super) fn removal(&self) -> Option<Edit> {
        let tokens = &self.segment.tree().tokens;
        let span = self.statement.span;
        let first = self.statement.first_token;
        let before = first.checked_sub(1).and_then(|token| tokens.kind(token));
        let removed = if let Some(next) = self.next().filter(|next| next.inline) {
            Span::new(span.start, next.span.start)
        } else if self.statement.inline {
            let last = self.segment.tree().statements.get(self.index.checked_sub(1)?)?;
            (before == Some(TokenKind::Semicolon)).then(|| Span::new(last.span.end, span.end))?
        } else {
            let (end, after) = self.line_end();
            let on_line = |comment: &&Span| span.end <= comment.start && comment.start < end;
            match tokens.comments().iter().find(on_line) {
                Some(comment) => Span::new(span.start, comment.start),
                None => Span::new(self.line_start(), after),
            }
        };
        Some((removed.shift(self.start), String::new()))
    }

    /// Returns the ordinal of the dataflow block that contains the statement. Only its own segment is parsed.
    fn dataflow(&self, view: &FileView<'a>) -> Option<u32> {
        let check = view.check(self.item)?;
        let mut reader = DataflowReader::new(&check, self.number);
        let statements = self.segment.tree().statements.iter().take(self.index + 1);
        let block = statements.fold(None, |_, statement| reader.read(statement));
        block.map(|(_, ordinal)| ordinal)
    }

    /// Whether the statement is in a dataflow block.
    pub(super) fn is_in_dataflow(&self, view: &FileView<'a>) -> bool {
        self.dataflow(view).is_some()
    }

    /// Returns the header of the dataflow block that contains the statement.
    pub(super) fn dataflow_header(&self, view: &FileView<'a>) -> Option<Site<'a>> {
        let (check, ordinal) = (view.check(self.item)?, self.dataflow(view)?);
        let is_opened =
            |number: &usize| check.segments.get(*number).is_some_and(|result| result.end.dataflow_count > ordinal);
        let number = (1..self.number).find(is_opened).unwrap_or(self.number);
        let mut reader = DataflowReader::new(&check, number);
        sites(view, self.item, number).find(|site| {
            reader.read(site.statement);
            reader.open.is_some_and(|(_, open)| open == ordinal)
        })
    }

    /// Returns the name of the function that opens a dataflow block, if the statement does: `R.dataflow`.
    pub(super) fn dataflow_callee(&self) -> Option<&'a str> {
        let StatementKind::With(items) = self.kind() else { return None };
        let cursor = self.cursor();
        items.iter().find_map(|item| match &item.context.kind {
            ExprKind::Call { callee, .. } if last_name(cursor, callee) == "dataflow" => {
                Some(cursor.path(callee.tokens))
            }
            _ => None,
        })
    }

    /// Returns the variable that the statement binds to the function's own module: `cls` of `cls = Module`.
    pub(super) fn alias(&self, view: &FileView<'a>) -> Option<Name> {
        let StatementKind::Assign { targets, value } = self.kind() else { return None };
        let [target] = &targets[..] else { return None };
        let document = view.document();
        let class = document.module_header(document.items().get(self.item)?.module?)?.name?;
        let cursor = self.cursor();
        let are_names = matches!((&target.kind, &value.kind), (ExprKind::Name, ExprKind::Name));
        (are_names && cursor.name(value.tokens.start) == class).then(|| cursor.name(target.tokens.start))
    }

    /// Returns the name of the function that contains the statement.
    pub(super) fn function(&self, view: &FileView<'a>) -> Option<Name> {
        view.document().items().get(self.item)?.name
    }

    /// Returns the tokens of the statement.
    pub(super) fn tokens(&self) -> TokenRange {
        TokenRange { start: 0, end: self.statement.token_count }
    }

    /// Whether the statement has a string on several lines, whose lines cannot be indented.
    pub(super) fn has_long_string(&self) -> bool {
        let cursor = self.cursor();
        let is_long =
            |token| cursor.kind(token) == Some(TokenKind::String) && cursor.text(token).contains(['\n', '\r']);
        (0..self.statement.token_count).any(is_long)
    }

    /// Whether the statement is only a call of the function with this name: `R.output(y)`.
    pub(super) fn is_bare_call(&self, wanted: &str) -> bool {
        let StatementKind::Expr(expr) = self.kind() else { return false };
        let ExprKind::Call { callee, .. } = &expr.kind else { return false };
        last_name(self.cursor(), callee) == wanted
    }

    /// Whether the expression `text`, evaluated at the statement, has no side effects. In a pure function and in a
    /// dataflow block an effect is an error. Elsewhere the expression is checked as if it were in a dataflow block.
    pub(super) fn is_pure(&self, view: &FileView<'a>, text: &str) -> bool {
        let declared = view.signature(self.item);
        if matches!(declared.as_deref(), Some(Signature::Relax(signature)) if signature.pure)
            || self.is_in_dataflow(view)
        {
            return true;
        }
        let place = (self.item, self.number, self.statement.span.start);
        let result = view.suppose(place, Some(0), &[format!("_ = {text}")]);
        result.is_some_and(|result| result.diagnostics.iter().all(|it| it.code != Code::ImpureInDataflow))
    }
}

/// Returns the names in tokens of statements, without members, in order of first use.
pub(super) fn names<'s, 'a: 's>(parts: impl IntoIterator<Item = (&'s Site<'a>, TokenRange)>) -> Vec<Name> {
    let (mut found, mut seen) = (Vec::new(), NameSet::default());
    for (site, tokens) in parts {
        let cursor = site.cursor();
        for token in tokens.start..tokens.end {
            let before = token.checked_sub(1).and_then(|before| cursor.kind(before));
            let is_name = cursor.kind(token).is_some_and(TokenKind::is_name) && before != Some(TokenKind::Dot);
            if is_name && seen.insert(cursor.name(token)) {
                found.push(cursor.name(token));
            }
        }
    }
    found
}

/// Returns the text of an expression, in parentheses if it would otherwise not be one operand where it is inserted.
pub(super) fn operand(cursor: Cursor<'_>, expr: &Expr) -> String {
    let text = cursor.source(expr.tokens);
    let closed = match &expr.kind {
        ExprKind::Name
        | ExprKind::Call { .. }
        | ExprKind::Attribute { .. }
        | ExprKind::Subscript { .. }
        | ExprKind::Parenthesized(_)
        | ExprKind::List(_)
        | ExprKind::Dict(_)
        | ExprKind::Bool(_)
        | ExprKind::None
        | ExprKind::String => true,
        ExprKind::Tuple(_) => text.starts_with('('),
        _ => false,
    };
    if closed { text.to_owned() } else { format!("({text})") }
}
