//! What may be written at a place.
//!
//! What is behind the place is looked at as little as possible: it belongs to the statement that is not there yet. Of a long
//! function the nearest variables are offered, and the list says that there are more.

mod call;
mod member;
mod names;
mod statement;

use crate::call_site::CallSite;
use crate::schema_text;
use rx_base::Span;
use rx_base::name::name;
use rx_db::FileView;
use rx_syntax::document::{Item, Location};
use rx_syntax::{Segment, TokenKind};

/// What may be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// The offers, the likeliest first.
    pub items: Vec<Completion>,
    /// Whether there are more, or others once more is written.
    pub incomplete: bool,
}

/// Something that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What it is called.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// A word beside the label: a type, a default.
    pub detail: String,
    /// What is written.
    pub insert: String,
    /// Whether what is written has places to fill in.
    pub snippet: bool,
    /// What it replaces, in bytes of the file.
    pub replace: Span,
    /// Offers of a lower group come first.
    pub group: u8,
    /// Whether it is spelled differently nowadays.
    pub deprecated: bool,
    /// What there is to read of it.
    pub subject: Option<Subject>,
}

/// What an offer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// An operator.
    Operator,
    /// A function of the module.
    Function,
    /// `R.nn`.
    Namespace,
    /// A variable or parameter.
    Variable,
    /// A symbolic dim.
    Symbol,
    /// `strides=`.
    Keyword,
    /// A value of an attribute.
    Value,
    /// A type.
    Type,
    /// Several lines.
    Snippet,
}

/// Something that has docs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An operator, by its name without `R.`.
    Operator(String),
    /// A parameter of an operator.
    Param(String, String),
}

/// What is said of an offer, as Markdown; `item` is an item of the file it was made for.
pub fn completion_doc(view: &FileView<'_>, item: usize, subject: &Subject) -> Option<String> {
    let context = view.context(item)?;
    match subject {
        Subject::Operator(operator) => Some(schema_text::operator(context.operator(name(operator))?)),
        Subject::Param(operator, wanted) => {
            let schema = context.operator(name(operator))?;
            let param = schema.params.iter().find(|param| param.name == wanted)?;
            Some(schema_text::param(schema, param))
        }
    }
}

/// What may be written at `offset` bytes; with places to fill in where `snippets` may be.
pub fn completions(view: &FileView<'_>, offset: usize, snippets: bool) -> Completions {
    let Some(mut list) = List::at(view, offset, snippets) else { return Completions::default() };
    list.fill();
    list.found.items.sort_by_key(|item| item.group);
    list.found
}

/// A place and what is offered there.
struct List<'a, 'v> {
    view: &'v FileView<'a>,
    item: &'a Item,
    segment: &'a Segment,
    location: Location,
    /// The place, in bytes of the segment.
    at: u32,
    offset: usize,
    /// What is written before the last dot of the name there: `R.nn`.
    path: &'a str,
    /// What is written of the name's last part.
    prefix: &'a str,
    replace: Span,
    snippets: bool,
    found: Completions,
}

impl<'a, 'v> List<'a, 'v> {
    fn at(view: &'v FileView<'a>, offset: usize, snippets: bool) -> Option<List<'a, 'v>> {
        let document = view.document();
        let location = document.locate(offset)?;
        let item = document.items().get(location.item)?;
        let segment: &'a Segment = item.segments.get(location.segment)?;
        let text = segment.text();
        let inside = text.floor_char_boundary(location.offset);
        let (before, after) = text.split_at(inside);
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let dotted = before.trim_end_matches(|letter| is_part(letter) || letter == '.').len();
        let (path, prefix) = before.get(dotted..)?.rsplit_once('.').unwrap_or(("", before.get(dotted..)?));
        let behind = if prefix.is_empty() { 0 } else { after.len() - after.trim_start_matches(is_part).len() };
        let end = u32::try_from(offset).ok()?;
        let replace = Span::new(end - u32::try_from(prefix.len()).ok()?, end + u32::try_from(behind).ok()?);
        let at = u32::try_from(inside).ok()?;
        let found = Completions::default();
        Some(List { view, item, segment, location, at, offset, path, prefix, replace, snippets, found })
    }

    fn fill(&mut self) {
        if self.segment.comments().any(|comment| comment.start < self.at && self.at <= comment.end) {
            return;
        }
        let site = CallSite::at(self.view, self.offset);
        if let Some(content) = self.string() {
            self.replace = content;
            return self.in_string(site.as_ref());
        }
        if self.prefix.starts_with(|letter: char| letter.is_ascii_digit()) {
            return;
        }
        if !self.path.is_empty() {
            return self.members(site.as_ref());
        }
        if self.before_path().ends_with('.') {
            return;
        }
        match &site {
            Some(site) => self.in_call(site),
            None if self.begins_statement() => self.statements(),
            None if self.in_annotation() => self.types(),
            None => {}
        }
        self.names(site.as_ref());
    }

    /// The text of the line before the name that is being written.
    fn before_path(&self) -> &'a str {
        let text = self.segment.text();
        let length = self.path.len() + usize::from(!self.path.is_empty()) + self.prefix.len();
        let until = (self.at as usize).saturating_sub(length);
        let before = text.get(..until).unwrap_or_default();
        before.rsplit(['\n', '\r']).next().unwrap_or_default()
    }

    fn begins_statement(&self) -> bool {
        self.before_path().trim().is_empty()
    }

    /// Whether a type is to be written: behind `name:` or `->`.
    fn in_annotation(&self) -> bool {
        let before = self.before_path().trim_end();
        before.ends_with("->") || (before.ends_with(':') && !before.contains(['(', '"']))
    }

    /// The content of the string that holds the place, as far as it is to be replaced, in bytes of the file.
    fn string(&self) -> Option<Span> {
        let tokens = &self.segment.tree().tokens;
        let token = tokens.at_or_after(self.at);
        let candidates = [token, token.wrapping_sub(1)];
        let (kind, span) = candidates.into_iter().find_map(|token| {
            let span = tokens.span(token)?;
            let kind = tokens.kind(token)?;
            let string = matches!(kind, TokenKind::String | TokenKind::UnclosedString);
            (string && span.start < self.at && self.at <= span.end).then_some((kind, span))
        })?;
        let text = self.segment.text().get(span.range())?;
        let quote = text.find(['"', '\''])? as u32 + 1;
        let closed = kind == TokenKind::String;
        if self.at < span.start + quote || (closed && self.at == span.end) {
            return None;
        }
        // What is behind an unclosed string's place may be anything.
        let end = if closed { span.end.saturating_sub(1).max(self.at) } else { self.at };
        let base = u32::try_from(self.offset).ok()?.checked_sub(self.at)?;
        Some(Span::new(base + span.start + quote, base + end))
    }

    /// Whether a name begins like what is written.
    fn fits(&self, label: &str) -> bool {
        let written = self.prefix.as_bytes();
        label.as_bytes().get(..written.len()).is_some_and(|start| start.eq_ignore_ascii_case(written))
    }

    fn offer(&mut self, label: impl Into<String>, kind: CompletionKind, group: u8) -> &mut Completion {
        let label = label.into();
        let completion = Completion {
            insert: label.clone(),
            label,
            kind,
            detail: String::new(),
            snippet: false,
            replace: self.replace,
            group,
            deprecated: false,
            subject: None,
        };
        let at = self.found.items.len();
        self.found.items.push(completion);
        // INVARIANT: it was just put there.
        &mut self.found.items[at]
    }
}
