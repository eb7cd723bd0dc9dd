//! A segment: a piece of a file's text with its tokens and statement trees. It is immutable, and its positions are
//! relative to its own start, so that an edit elsewhere in the file leaves it unchanged.

mod ahead;

pub use ahead::with_trees_ahead;

use crate::ast::{StatementKind, StatementTree, SyntaxError, TokenRange};
use crate::cursor::Cursor;
use crate::dialect::Evidence;
use crate::directive::{self, Directive};
use crate::line;
use crate::shape::Reader;
use crate::token::{Literal, TokenKind, TokenTable, tokens};
use rx_base::name::{NameSet, name};
use rx_base::{Chunks, Code, Name, Span};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A piece of text that starts at the beginning of a statement's line. Its tree is a pure function of the text,
/// computed on first use.
#[derive(Debug)]
pub struct Segment {
    text: Arc<str>,
    newlines: u32,
    ascii: bool,
    line_starts: OnceLock<Box<[u32]>>,
    tree: OnceLock<SegmentTree>,
    directives: OnceLock<Box<[Directive]>>,
    evidence: OnceLock<Evidence>,
    names: OnceLock<Box<[Name]>>,
}

/// A list of segments, which shares its unchanged parts with the lists before an edit.
pub type Segments = Chunks<Arc<Segment>>;

/// The tokens and statements of a segment, in source order. The statements are a flat list: block nesting follows from
/// [`Statement::indent`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SegmentTree {
    /// The significant tokens, and the spans of the comments.
    pub tokens: TokenTable,
    /// The statements.
    pub statements: Box<[Statement]>,
}

/// A statement: one logical line, or a part of one between `;` or after a block header's `:`. For example,
/// `if x: y = 1; z` is three statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The column of the first token of the line, from 0. A tab advances to the next multiple of 8, as in Python.
    pub indent: u32,
    /// The index of its first token in the segment's table.
    pub first_token: u32,
    /// Its number of tokens, a block header's colon included; at least 1.
    pub token_count: u32,
    /// Its bytes in the segment, from the start of the first token to the end of the last.
    pub span: Span,
    /// The statement tree.
    pub tree: Arc<StatementTree>,
    /// Whether it follows `:` or `;` on the line of another statement.
    pub inline: bool,
}

impl Statement {
    /// Returns the indices of its tokens in the segment's table.
    pub fn tokens(&self) -> Range<u32> {
        self.first_token..self.first_token.saturating_add(self.token_count)
    }
}

impl Segment {
    /// Creates a segment of `text`.
    pub fn new(text: Arc<str>) -> Segment {
        let (newlines, ascii) = line::count_newlines(&text);
        let (line_starts, tree, directives, evidence, names) = Default::default();
        Segment { newlines, ascii, text, line_starts, tree, directives, evidence, names }
    }

    /// Returns a segment with the same text but the given statements. Their trees refer to `literals` by token indices
    /// that follow those of the text's own tokens.
    pub fn substituted(&self, statements: Box<[Statement]>, literals: Vec<Literal>) -> Segment {
        let tree = SegmentTree { tokens: self.tree().tokens.with_literals(literals), statements };
        Segment { tree: tree.into(), ..Segment::new(self.text.clone()) }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of line breaks: `\n`, `\r\n` or a lone `\r`.
    pub fn line_count(&self) -> u32 {
        self.newlines
    }

    /// The byte offsets of all line starts except the first.
    pub(crate) fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| line::line_starts(&self.text))
    }

    /// Whether every character is one byte.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// The tokens and statements, parsed on first use.
    pub fn tree(&self) -> &SegmentTree {
        self.tree.get_or_init(|| SegmentTree::read(&self.text))
    }

    /// Whether the tree has been computed.
    pub fn has_tree(&self) -> bool {
        self.tree.get().is_some()
    }

    /// Returns a cursor that maps the tokens of a statement's tree to the segment's text.
    pub fn cursor<'a>(&'a self, statement: &Statement) -> Cursor<'a> {
        Cursor::new(&self.text, &self.tree().tokens, statement.first_token)
    }

    /// The directives for rx in comments, in order.
    pub fn directives(&self) -> &[Directive] {
        self.directives.get_or_init(|| match self.may_have_directives() {
            true => directive::directives(&self.text, self.tree()),
            false => Box::default(),
        })
    }

    /// The evidence for a dialect that the text contains.
    pub(crate) fn evidence(&self) -> &Evidence {
        self.evidence.get_or_init(|| Evidence::of(self))
    }

    /// The names in the text, each once, in no particular order.
    pub fn names(&self) -> &[Name] {
        self.names.get_or_init(|| {
            let tokens = &self.tree().tokens;
            let places = (0..tokens.len()).filter(|token| tokens.kind(*token).is_some_and(TokenKind::is_name));
            let texts = places.filter_map(|token| self.text.get(tokens.span(token)?.range()));
            texts.map(name).collect::<NameSet>().into_iter().collect()
        })
    }

    /// Whether the text contains the marker of a directive. Cheap: it searches the text without lexing it.
    pub(crate) fn may_have_directives(&self) -> bool {
        self.text.contains(directive::MARK)
    }

    /// The spans of the comments, `#` included, without the line break.
    pub fn comments(&self) -> impl Iterator<Item = Span> + '_ {
        self.tree().tokens.comments().iter().copied()
    }
}

/// Two segments are equal if their texts are, and, where either was made by [`Segment::substituted`], if their trees
/// are too.
impl PartialEq for Segment {
    fn eq(&self, other: &Segment) -> bool {
        let tree = |segment: &Segment| segment.tree.get().is_some_and(|tree| tree.tokens.is_substituted());
        self.text == other.text
            && match (tree(self), tree(other)) {
                (false, false) => true,
                (true, true) => self.tree() == other.tree(),
                _ => false,
            }
    }
}

impl Eq for Segment {}

/// The largest scratch table, in tokens, that is kept for the next segment.
const MAX_SCRATCH: u32 = 1 << 16;

thread_local! {
    /// A table that collects tokens before their number is known, reused between segments.
    static SCRATCH: RefCell<TokenTable> = RefCell::default();
}

/// A statement before it is parsed: its line's column, its token range, and whether it is inline.
struct Piece {
    indent: u32,
    first: usize,
    end: usize,
    inline: bool,
}

impl SegmentTree {
    /// Lexes and parses `text`.
    fn read(text: &str) -> SegmentTree {
        let mut scratch = SCRATCH.take();
        let pieces = lex(text, &mut scratch);
        let table = scratch.of_exact_size();
        if scratch.len() <= MAX_SCRATCH {
            scratch.clear();
            SCRATCH.set(scratch);
        }
        let reader = Reader::new();
        let statement = |piece: Piece| {
            let kinds = table.kinds().get(piece.first..piece.end).unwrap_or_default();
            let (first_token, last) = (piece.first as u32, piece.end as u32 - 1);
            let start = table.span(first_token).unwrap_or_default().start;
            let end = table.span(last).unwrap_or_default().end;
            Statement {
                indent: piece.indent,
                first_token,
                token_count: piece.end as u32 - first_token,
                span: Span::new(start, end),
                tree: if piece.inline { simple(reader.statement(kinds)) } else { reader.statement(kinds) },
                inline: piece.inline,
            }
        };
        let statements = pieces.into_iter().map(statement).collect();
        drop(reader);
        SegmentTree { tokens: table, statements }
    }
}

/// Adds an error to an inline statement that is a block header or a decorator; returns any other statement unchanged.
fn simple(tree: Arc<StatementTree>) -> Arc<StatementTree> {
    if tree.error.is_some() || !(tree.kind.opens_block() || matches!(tree.kind, StatementKind::Decorator(_))) {
        return tree;
    }
    let error = SyntaxError {
        code: Code::SyntaxError,
        tokens: TokenRange::one(0),
        expected: Vec::new(),
        message: "expected a new line before this: only simple statements share one",
    };
    Arc::new(StatementTree { kind: tree.kind.clone(), error: Some(error) })
}

/// Fills the token table and returns the token ranges of the statements.
fn lex(text: &str, table: &mut TokenTable) -> Vec<Piece> {
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let mut at = line::skip_trivia(bytes, 0);
    push_tokens(text, 0, at, table);
    while at < bytes.len() {
        let line = line::logical_line(bytes, at, true);
        let first = table.len() as usize;
        push_tokens(text, at, line.next, table);
        split_inline(table.kinds(), first, line.indent, &mut pieces);
        at = line.next;
    }
    pieces
}

/// Whether a logical line is a block header with its block on the same line, as in `if x: y = 1`.
pub(crate) fn holds_its_block(line: &str) -> bool {
    let mut table = TokenTable::with_capacity(line.len());
    push_tokens(line, 0, line.len(), &mut table);
    let mut pieces = Vec::new();
    split_inline(table.kinds(), 0, 0, &mut pieces);
    let header = pieces.first().and_then(|header| table.kinds().get(..header.end)?.last());
    pieces.len() > 1 && header == Some(&TokenKind::Colon)
}

fn push_tokens(text: &str, start: usize, end: usize, table: &mut TokenTable) {
    // Both offsets are line starts or the text's end, so they are character boundaries.
    let slice = text.get(start..end).unwrap_or_default();
    for mut token in tokens(slice) {
        token.span = token.span.shift(start as u32);
        table.push(token);
    }
}

/// Splits a logical line's tokens, from `first` to the end, at `;` and after the colon of a block header. A line that
/// starts with `@` is not split at `;`: a decorator must be alone on its line.
fn split_inline(kinds: &[TokenKind], first: usize, indent: u32, pieces: &mut Vec<Piece>) {
    let mut start = first;
    let mut inline = false;
    let mut add = |start: usize, end: usize| {
        if start < end {
            pieces.push(Piece { indent, first: start, end, inline });
        }
        inline = true;
    };
    let mut depth = 0usize;
    let mut lambdas = 0usize;
    let mut header = kinds.get(first).is_some_and(|kind| opens_block(*kind));
    let decorator = kinds.get(first) == Some(&TokenKind::At);
    for (at, kind) in kinds.iter().enumerate().skip(first) {
        match kind {
            kind if kind.is_opener() => depth += 1,
            kind if kind.is_closer() => depth = depth.saturating_sub(1),
            TokenKind::Semicolon if depth == 0 && !decorator => {
                add(start, at);
                start = at + 1;
            }
            TokenKind::Lambda if depth == 0 => lambdas += 1,
            TokenKind::Colon if depth == 0 && lambdas > 0 => lambdas -= 1,
            TokenKind::Colon if depth == 0 && header => {
                add(start, at + 1);
                start = at + 1;
                header = false;
            }
            _ => {}
        }
    }
    add(start, kinds.len());
}

/// Whether a line that starts with this token is a block header.
fn opens_block(kind: TokenKind) -> bool {
    use TokenKind::*;
    matches!(kind, If | Elif | Else | For | While | With | Def | Class | Try | Except | Finally | Async)
}
