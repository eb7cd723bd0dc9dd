//! The name or literal at a position of a file.

use rx_base::name::name;
use rx_base::{Name, Span};
use rx_db::FileView;
use rx_syntax::document::Location;
use rx_syntax::{Segment, TokenKind};

/// An identifier in the text, with its position.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    /// The segment that contains it.
    pub(crate) segment: &'a Segment,
    /// The requested position.
    pub(crate) location: Location,
    /// The name.
    pub(crate) name: Name,
    /// Its span in bytes of the segment.
    pub(crate) span: Span,
    /// The start of the segment, in bytes of the file.
    pub(crate) start: u32,
}

impl<'a> Word<'a> {
    /// Returns the identifier that contains the byte at `offset` or ends there.
    pub(crate) fn at(view: &FileView<'a>, offset: usize) -> Option<Word<'a>> {
        let document = view.document();
        let location = document.locate(offset)?;
        let item = document.items().get(location.item)?;
        let segment = item.segments.get(location.segment)?;
        let (name, span) = name_at(segment, u32::try_from(location.offset).ok()?)?;
        let start = u32::try_from(document.segment_start(location.item, location.segment)).ok()?;
        Some(Word { segment, location, name, span, start })
    }

    /// Returns its span in bytes of the file.
    pub(crate) fn file_span(&self) -> Span {
        self.span.shift(self.start)
    }

    /// Returns the dotted name that it is a part of: `R.nn.relu` from any of its parts.
    pub(crate) fn path(&self) -> &'a str {
        let text = self.segment.text();
        let part = |character: char| character.is_alphanumeric() || character == '_' || character == '.';
        let (before, after) = (self.span.start as usize, self.span.end as usize);
        let start = text.get(..before).map_or(before, |before| before.trim_end_matches(part).len());
        let end = text.get(after..).map_or(after, |rest| text.len() - rest.trim_start_matches(part).len());
        text.get(start..end).unwrap_or_default()
    }
}

/// A string or number in the text.
pub(crate) struct Literal<'a> {
    text: &'a str,
    span: Span,
    start: u32,
}

impl<'a> Literal<'a> {
    /// Returns the string or integer that contains the byte at `offset` or ends there.
    pub(crate) fn at(view: &FileView<'a>, offset: usize) -> Option<Literal<'a>> {
        let document = view.document();
        let location = document.locate(offset)?;
        let segment = document.items().get(location.item)?.segments.get(location.segment)?;
        let at = u32::try_from(location.offset).ok()?;
        let tokens = &segment.tree().tokens;
        let next = tokens.at_or_after(at);
        let span = [next, next.wrapping_sub(1)].into_iter().find_map(|token| {
            let literal = matches!(tokens.kind(token), Some(TokenKind::String | TokenKind::Integer));
            tokens.span(token).filter(|span| literal && span.touches(at))
        })?;
        let start = u32::try_from(document.segment_start(location.item, location.segment)).ok()?;
        Some(Literal { text: segment.text().get(span.range())?, span, start })
    }

    /// Returns its span in bytes of the file.
    pub(crate) fn file_span(&self) -> Span {
        self.span.shift(self.start)
    }

    /// Returns the text between the quotes of a string without prefix. `None` for other literals.
    pub(crate) fn content(&self) -> Option<&'a str> {
        let quote = self.text.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        self.text.strip_prefix(quote)?.strip_suffix(quote)
    }
}

/// Returns the identifier that contains a byte of a segment, or ends there.
fn name_at(segment: &Segment, offset: u32) -> Option<(Name, Span)> {
    let tokens = &segment.tree().tokens;
    let at = tokens.at_or_after(offset);
    let span = [at, at.wrapping_sub(1)].into_iter().find_map(|token| {
        let span = tokens.span(token)?;
        (tokens.kind(token) == Some(TokenKind::Name) && span.touches(offset)).then_some(span)
    })?;
    Some((name(segment.text().get(span.range())?), span))
}

/// Returns the span of the word (letters, digits and `_`) that contains the byte at `offset` or ends there.
pub(crate) fn word_at(text: &str, offset: usize) -> Option<Span> {
    let part = |character: char| character.is_alphanumeric() || character == '_';
    let (before, after) = text.split_at_checked(offset)?;
    let start = before.trim_end_matches(part).len();
    let end = text.len() - after.trim_start_matches(part).len();
    let span = Span::new(u32::try_from(start).ok()?, u32::try_from(end).ok()?);
    (!span.is_empty()).then_some(span)
}
