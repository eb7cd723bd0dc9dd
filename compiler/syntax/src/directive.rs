//! Directives: comments that configure rx, such as `# rx: ignore[RX0651]` or `# rx: ignore-file[slice-end-clamped]`.
//!
//! A directive follows the code of a line, or is alone on the line before a statement or before a line inside one. Text
//! after its bracket is an explanation for the reader and is ignored. This module does not know which codes exist.

use crate::segment::{Segment, SegmentTree};
use rx_base::Span;
use rx_base::edit_distance::nearest;

/// The marker in every directive. A text without it contains no directive.
pub(crate) const MARK: &str = "rx:";

const IGNORE: &str = "ignore";
const IGNORE_FILE: &str = "ignore-file";

/// A directive. Spans are relative to its segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The span from its `#` to its end, without the explanation after it.
    pub span: Span,
    /// The text to delete when the directive is removed: the directive, the explanation and the blanks before it. If
    /// nothing else is on the line, the whole line.
    pub removal: Span,
    /// The directive's kind and arguments.
    pub kind: DirectiveKind,
    /// The lines and statements that it applies to.
    pub target: Target,
}

/// The kind of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectiveKind {
    /// `ignore`: suppresses diagnostics at its target.
    Ignore(Named),
    /// `ignore-file`: suppresses diagnostics in the whole file.
    IgnoreFile(Named),
    /// A comment that begins like a directive but is invalid, with the reason.
    Malformed(&'static str),
}

/// The diagnostics that a directive suppresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// All diagnostics.
    All,
    /// The diagnostics with these codes or slugs, given as spans of their text; at least one.
    Codes(Box<[Span]>),
}

/// The lines and statements that a directive applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A line, and the statements that begin or end on it.
    Here {
        /// The line, without its line break.
        line: Span,
        /// The span from the first of those statements to the last.
        statements: Option<Span>,
    },
    /// The first statement of the next segment that has a statement.
    Next,
}

impl Target {
    /// Returns the line of a segment's first statement; if that is a decorator, with the statements up to the decorated
    /// function. `None` for a segment without statements.
    pub fn head_of(segment: &Segment) -> Option<Target> {
        let tree = segment.tree();
        let first = tree.statements.first()?;
        let decorated =
            tree.statements.iter().find(|it| segment.text().as_bytes().get(it.span.start as usize) != Some(&b'@'));
        let end = decorated.unwrap_or(first).span.end;
        let line = line_at(segment.text(), first.span.start);
        Some(Target::Here { line, statements: Some(Span::new(first.span.start, end)) })
    }
}

/// Returns the directives of a segment, in order.
pub(crate) fn directives(text: &str, tree: &SegmentTree) -> Box<[Directive]> {
    let comments = tree.tokens.comments().iter();
    comments.filter_map(|comment| directive(text, tree, *comment)).collect()
}

fn directive(text: &str, tree: &SegmentTree, comment: Span) -> Option<Directive> {
    let words = text.get(comment.range())?;
    let (at, rest) = words.match_indices('#').find_map(|(at, _)| {
        let rest = words.get(at + 1..)?.trim_start_matches([' ', '\t']);
        Some((at, rest.strip_prefix(MARK)?.trim_start_matches([' ', '\t'])))
    })?;
    let start = comment.start + at as u32;
    // `rest` ends where the comment ends.
    let rest_start = comment.end - rest.len() as u32;
    let (kind, length) = read(rest, rest_start)?;
    let line = line_at(text, comment.start);
    let before = text.get(line.start as usize..start as usize).unwrap_or_default();
    let alone = text.get(line.start as usize..comment.start as usize).unwrap_or_default().trim().is_empty();
    let removal = match before.trim().is_empty() {
        true => Span::new(line.start, line_break_end(text, comment.end)),
        false => Span::new(line.start + before.trim_end().len() as u32, comment.end),
    };
    let target = if alone { following(text, tree, comment.end) } else { here(tree, line) };
    Some(Directive { span: Span::new(start, rest_start + length), removal, kind, target })
}

/// Parses the text after `rx:`, which begins at byte `start`. Returns the kind and the number of bytes that belong to
/// the directive.
fn read(rest: &str, start: u32) -> Option<(DirectiveKind, u32)> {
    let word = rest.split(|c: char| !c.is_ascii_alphabetic() && c != '-').next().unwrap_or_default();
    let make = match word {
        IGNORE => DirectiveKind::Ignore,
        IGNORE_FILE => DirectiveKind::IgnoreFile,
        // Any other word is ordinary prose, unless it looks like a misspelt directive.
        _ => {
            nearest(word, [IGNORE, IGNORE_FILE])?;
            let why = "rx knows `# rx: ignore[…]` and `# rx: ignore-file[…]`";
            return Some((DirectiveKind::Malformed(why), word.len() as u32));
        }
    };
    let behind = rest.get(word.len()..).unwrap_or_default();
    let open = behind.trim_start_matches([' ', '\t']);
    let skipped = (rest.len() - open.len()) as u32;
    let Some(list) = open.strip_prefix('[') else {
        let malformed = |why| Some((DirectiveKind::Malformed(why), rest.trim_end().len() as u32));
        return match open {
            open if open.starts_with("RX") => malformed("the codes must be in brackets, `# rx: ignore[RX0651]`"),
            open if !open.is_empty() && open.len() == behind.len() => {
                malformed("the word must be followed by codes in brackets, `[RX0651]`, or a blank")
            }
            _ => Some((make(Named::All), word.len() as u32)),
        };
    };
    let Some((list, _)) = list.split_once(']') else {
        return Some((DirectiveKind::Malformed("the bracket is not closed"), rest.trim_end().len() as u32));
    };
    let length = skipped + 1 + list.len() as u32 + 1;
    let mut codes = Vec::new();
    let mut at = start + skipped + 1;
    for part in list.split(',') {
        let blanks = (part.len() - part.trim_start().len()) as u32;
        codes.push(Span::new(at + blanks, at + blanks + part.trim().len() as u32));
        at += part.len() as u32 + 1;
    }
    if codes.iter().any(|code| code.is_empty()) {
        return Some((DirectiveKind::Malformed("there is no code where one belongs"), length));
    }
    Some((make(Named::Codes(codes.into())), length))
}

/// Returns the line of the next token after `offset`.
fn following(text: &str, tree: &SegmentTree, offset: u32) -> Target {
    match tree.tokens.span(tree.tokens.at_or_after(offset)) {
        Some(token) => here(tree, line_at(text, token.start)),
        None => Target::Next,
    }
}

/// Returns a line with the statements that begin or end on it.
fn here(tree: &SegmentTree, line: Span) -> Target {
    let on = |offset: u32| line.start <= offset && offset <= line.end;
    // Statements are in order and do not overlap.
    let from = tree.statements.partition_point(|it| it.span.end < line.start);
    let statements = tree.statements.get(from..).unwrap_or_default().iter();
    let near = statements.take_while(|it| it.span.start <= line.end).filter(|it| on(it.span.start) || on(it.span.end));
    let statements = near.map(|it| it.span).reduce(|first, last| Span::new(first.start, last.end));
    Target::Here { line, statements }
}

/// Returns the physical line that contains `offset`, without its line break.
fn line_at(text: &str, offset: u32) -> Span {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let (before, after) = text.as_bytes().split_at((offset as usize).min(text.len()));
    let start = before.iter().rposition(is_break).map_or(0, |at| at + 1);
    let end = before.len() + after.iter().position(is_break).unwrap_or(after.len());
    Span::new(start as u32, end as u32)
}

/// Returns the offset after the line break at `offset`; `offset` if there is none.
fn line_break_end(text: &str, offset: u32) -> u32 {
    match text.as_bytes().get(offset as usize..).unwrap_or_default() {
        [b'\r', b'\n', ..] => offset + 2,
        [b'\r' | b'\n', ..] => offset + 1,
        _ => offset,
    }
}
