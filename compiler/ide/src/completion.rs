//! Completions at a position.
//!
//! The text after the position is used as little as possible, because the statement at the position is usually
//! incomplete. In a long function only the nearest variables are offered, and the list is marked as incomplete.

mod call;
mod decorator;
mod member;
mod names;
mod prim_names;
mod statement;
mod uses;

use crate::call_site::CallSite;
use crate::schema_text;
use rx_base::Span;
use rx_base::name::name;
use rx_db::FileView;
use rx_syntax::document::{Item, Location};
use rx_syntax::{Segment, TokenKind};

/// A list of completions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// The completions, most likely first.
    pub items: Vec<Completion>,
    /// Whether the list has to be requested again when more is typed.
    pub incomplete: bool,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The label.
    pub label: String,
    /// The kind.
    pub kind: CompletionKind,
    /// Additional text next to the label: a type or a default.
    pub detail: String,
    /// The text to insert.
    pub insert: String,
    /// Whether the text is a snippet with placeholders.
    pub snippet: bool,
    /// The replaced span, in bytes of the file.
    pub replace: Span,
    /// The sort group: completions of a lower group come first.
    pub group: u8,
    /// The rank within the group: completions of a lower rank come first.
    pub rank: u32,
    /// Whether the file's dialect has a newer spelling of it.
    pub deprecated: bool,
    /// The subject of its documentation, if it has any.
    pub subject: Option<Subject>,
}

/// The kind of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// An operator.
    Operator,
    /// A function of the module.
    Function,
    /// A namespace, for example `R.nn`.
    Namespace,
    /// A variable or parameter.
    Variable,
    /// A symbolic dim.
    Symbol,
    /// A keyword argument, for example `strides=`.
    Keyword,
    /// A value of an attribute.
    Value,
    /// A type.
    Type,
    /// A statement or function of several lines.
    Snippet,
}

/// The subject of a completion's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An operator, by its name without `R.`.
    Operator(String),
    /// A parameter of an operator.
    Param(String, String),
}

/// Returns the documentation of a completion as Markdown. `item` is the item for which the completion was made.
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

/// Returns the completions at the byte offset `offset`. They contain placeholders only if `snippets` is true.
pub fn completions(view: &FileView<'_>, offset: usize, snippets: bool) -> Completions {
    let Some(mut list) = List::at(view, offset, snippets) else { return Completions::default() };
    list.fill();
    let prefix = list.prefix;
    let differs_in_case = |label: &str| !label.trim_start_matches(['"', '@']).starts_with(prefix);
    list.found.items.sort_by_cached_key(|item| (item.group, differs_in_case(&item.label), item.rank));
    list.found
}

/// A position, with the completions that were collected for it.
struct List<'a, 'v> {
    view: &'v FileView<'a>,
    item: &'a Item,
    segment: &'a Segment,
    location: Location,
    /// The position, in bytes of the segment.
    at: u32,
    offset: usize,
    /// The part of the dotted name before its last dot: `R.nn`.
    path: &'a str,
    /// The typed part of the name's last component.
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
            if self.is_decorator() {
                return self.decorators_of_namespace();
            }
            return self.members(site.as_ref());
        }
        if self.before_path().ends_with('.') {
            return;
        }
        if self.is_decorator() {
            return self.decorators();
        }
        match &site {
            Some(site) => self.in_call(site),
            None if self.begins_statement() => self.statements(),
            None if self.in_annotation() => self.types(),
            None => {}
        }
        self.names(site.as_ref());
    }

    /// Returns the text of the line before the dotted name at the position.
    fn before_path(&self) -> &'a str {
        let text = self.segment.text();
        let length = self.path.len() + usize::from(!self.path.is_empty()) + self.prefix.len();
        let until = (self.at as usize).saturating_sub(length);
        let before = text.get(..until).unwrap_or_default();
        before.rsplit(['\n', '\r']).next().unwrap_or_default()
    }

    /// Whether the dotted name at the position is a decorator: the line has only an `@` before it.
    fn is_decorator(&self) -> bool {
        self.before_path().trim_start() == "@"
    }

    fn begins_statement(&self) -> bool {
        self.before_path().trim().is_empty()
    }

    /// Whether a type is expected at the position: after `name:` or `->`.
    fn in_annotation(&self) -> bool {
        let before = self.before_path().trim_end();
        before.ends_with("->") || (before.ends_with(':') && !before.contains(['(', '"']))
    }

    /// Returns the content of the string at the position, in bytes of the file: the part that a completion replaces.
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
        // If the string is not closed, the text after the position may belong to other code and is not replaced.
        let end = if closed { span.end.saturating_sub(1).max(self.at) } else { self.at };
        let base = u32::try_from(self.offset).ok()?.checked_sub(self.at)?;
        Some(Span::new(base + span.start + quote, base + end))
    }

    /// Whether a label starts with the typed prefix, ignoring case.
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
            rank: 0,
            deprecated: false,
            subject: None,
        };
        let at = self.found.items.len();
        self.found.items.push(completion);
        // INVARIANT: the completion was just added at this index.
        &mut self.found.items[at]
    }
}
