//! The kinds of tokens, the lexer, and the table that stores a segment's tokens.

use crate::ast::TokenIndex;
use logos::{Lexer, Logos};
use rx_base::Span;

macro_rules! token_kinds {
    ($($(#[doc = $doc:literal])* $kind:ident $text:tt;)*) => {
        /// The kind of a token. Trees depend on no other property of tokens (`docs/decisions/0003`).
        #[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum TokenKind {
            $(#[doc = concat!("`", $text, "`.")] #[token($text)] $kind,)*
            /// An identifier.
            #[regex(r"[\p{XID_Start}_]\p{XID_Continue}*")]
            Name,
            /// A word that begins with a digit, such as the parameter name `0_bias` that model importers create. A
            /// [`TokenTable`] stores it as a [`TokenKind::Name`].
            #[regex(r"[0-9][0-9_]*\p{XID_Start}\p{XID_Continue}*", priority = 4)]
            NumberedName,
            /// An integer literal.
            #[regex(r"[0-9](_?[0-9])*", priority = 5)]
            #[regex(r"0[xX](_?[0-9a-fA-F])+", priority = 6)]
            #[regex(r"0[oO](_?[0-7])+", priority = 6)]
            #[regex(r"0[bB](_?[01])+", priority = 6)]
            Integer,
            /// A float literal, or an imaginary one.
            #[regex(r"[0-9](_?[0-9])*\.([0-9](_?[0-9])*)?([eE][+-]?[0-9](_?[0-9])*)?[jJ]?", priority = 6)]
            #[regex(r"\.[0-9](_?[0-9])*([eE][+-]?[0-9](_?[0-9])*)?[jJ]?", priority = 6)]
            #[regex(r"[0-9](_?[0-9])*[eE][+-]?[0-9](_?[0-9])*[jJ]?", priority = 6)]
            #[regex(r"[0-9](_?[0-9])*[jJ]", priority = 6)]
            Float,
            /// A string literal with its prefix and quotes.
            #[regex(r#"([rR][bBfF]?|[bBfF][rR]?|[uU])?["']"#, lex_string, priority = 20)]
            String,
            /// A string literal that is never closed.
            UnclosedString,
            /// Blanks within a line.
            #[regex(r"[ \t\x0c\u{feff}]+")]
            Whitespace,
            /// A line break that does not end the statement, inside a bracket or after a backslash.
            #[regex(r"\\?(\r\n|\n|\r)")]
            Newline,
            /// A comment: `# …` up to the line break.
            #[regex(r"#[^\r\n]*", allow_greedy = true)]
            Comment,
            /// A character with which no token starts.
            Unknown,
        }

        impl TokenKind {
            /// The text of a token with a fixed spelling.
            pub const fn text(self) -> Option<&'static str> {
                match self {
                    $(TokenKind::$kind => Some($text),)*
                    _ => None,
                }
            }

            /// The token's name in messages: `` `:` ``, `a name`.
            pub const fn phrase(self) -> &'static str {
                match self {
                    $(TokenKind::$kind => concat!("`", $text, "`"),)*
                    TokenKind::Name | TokenKind::NumberedName => "a name",
                    TokenKind::Integer => "an integer",
                    TokenKind::Float => "a float",
                    TokenKind::String => "a string",
                    TokenKind::UnclosedString => "an unclosed string",
                    TokenKind::Whitespace => "a blank",
                    TokenKind::Newline => "the line's end",
                    TokenKind::Comment => "a comment",
                    TokenKind::Unknown => "an unknown character",
                }
            }
        }
    };
}

token_kinds! {
    False "False";
    NoneLiteral "None";
    True "True";
    And "and";
    As "as";
    Assert "assert";
    Async "async";
    Await "await";
    Break "break";
    Class "class";
    Continue "continue";
    Def "def";
    Del "del";
    Elif "elif";
    Else "else";
    Except "except";
    Finally "finally";
    For "for";
    From "from";
    Global "global";
    If "if";
    Import "import";
    In "in";
    Is "is";
    Lambda "lambda";
    Nonlocal "nonlocal";
    Not "not";
    Or "or";
    Pass "pass";
    Raise "raise";
    Return "return";
    Try "try";
    While "while";
    With "with";
    Yield "yield";
    Match "match";
    Case "case";
    Type "type";
    LeftParen "(";
    RightParen ")";
    LeftBracket "[";
    RightBracket "]";
    LeftBrace "{";
    RightBrace "}";
    Comma ",";
    Colon ":";
    Semicolon ";";
    Dot ".";
    Ellipsis "...";
    Arrow "->";
    Equal "=";
    Walrus ":=";
    Plus "+";
    Minus "-";
    Star "*";
    Slash "/";
    DoubleSlash "//";
    Percent "%";
    DoubleStar "**";
    At "@";
    LeftShift "<<";
    RightShift ">>";
    Ampersand "&";
    Pipe "|";
    Caret "^";
    Tilde "~";
    Less "<";
    Greater ">";
    LessEqual "<=";
    GreaterEqual ">=";
    EqualEqual "==";
    NotEqual "!=";
    PlusEqual "+=";
    MinusEqual "-=";
    StarEqual "*=";
    SlashEqual "/=";
    DoubleSlashEqual "//=";
    PercentEqual "%=";
    DoubleStarEqual "**=";
    AtEqual "@=";
    LeftShiftEqual "<<=";
    RightShiftEqual ">>=";
    AmpersandEqual "&=";
    PipeEqual "|=";
    CaretEqual "^=";
}

impl TokenKind {
    /// Whether the token can be an identifier. `match`, `case` and `type` are keywords only in some positions.
    pub const fn is_name(self) -> bool {
        matches!(self, TokenKind::Name | TokenKind::Match | TokenKind::Case | TokenKind::Type)
    }

    /// Whether the grammar ignores the token.
    pub const fn is_trivia(self) -> bool {
        matches!(self, TokenKind::Whitespace | TokenKind::Newline | TokenKind::Comment)
    }

    /// Whether the token is a word: a name or a keyword.
    pub const fn is_word(self) -> bool {
        (self as u8) <= TokenKind::Type as u8 || matches!(self, TokenKind::Name)
    }

    /// Whether the token is `(`, `[` or `{`.
    pub const fn is_opener(self) -> bool {
        matches!(self, TokenKind::LeftParen | TokenKind::LeftBracket | TokenKind::LeftBrace)
    }

    /// Whether the token is `)`, `]` or `}`.
    pub const fn is_closer(self) -> bool {
        matches!(self, TokenKind::RightParen | TokenKind::RightBracket | TokenKind::RightBrace)
    }

    /// The closing bracket for an opening one, and the reverse.
    pub const fn counterpart(self) -> Option<TokenKind> {
        Some(match self {
            TokenKind::LeftParen => TokenKind::RightParen,
            TokenKind::LeftBracket => TokenKind::RightBracket,
            TokenKind::LeftBrace => TokenKind::RightBrace,
            TokenKind::RightParen => TokenKind::LeftParen,
            TokenKind::RightBracket => TokenKind::LeftBracket,
            TokenKind::RightBrace => TokenKind::LeftBrace,
            _ => return None,
        })
    }
}

/// Lexes the rest of a string, after its prefix and first quote.
fn lex_string(lexer: &mut Lexer<'_, TokenKind>) -> TokenKind {
    let bytes = lexer.source().as_bytes();
    // INVARIANT: the pattern ends with a quote, so the slice is not empty.
    let quote = bytes[lexer.span().end - 1];
    let end = crate::line::string_end(bytes, lexer.span().end - 1, quote);
    lexer.bump(end.offset - lexer.span().end);
    if end.closed { TokenKind::String } else { TokenKind::UnclosedString }
}

/// A token with its position, trivia included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind of the token.
    pub kind: TokenKind,
    /// Its bytes.
    pub span: Span,
}

/// Lexes `text` into tokens, trivia included. The concatenated token texts are `text`.
pub fn tokens(text: &str) -> impl Iterator<Item = Token> + '_ {
    let mut lexer = TokenKind::lexer(text);
    let mut keyword = None;
    std::iter::from_fn(move || {
        if let Some(keyword) = keyword.take() {
            return Some(keyword);
        }
        let kind = lexer.next()?.unwrap_or(TokenKind::Unknown);
        let span = Span::new(lexer.span().start as u32, lexer.span().end as u32);
        if kind == TokenKind::NumberedName
            && let Some((digits, kind)) = keyword_after_digits(lexer.slice())
        {
            let (number, behind) =
                (Span::new(span.start, span.start + digits), Span::new(span.start + digits, span.end));
            keyword = Some(Token { kind, span: behind });
            return Some(Token { kind: TokenKind::Integer, span: number });
        }
        Some(Token { kind, span })
    })
}

/// Splits a word into its leading digits and a keyword, as in `1if`, which Python lexes as two tokens. Returns the
/// number of digits and the keyword.
fn keyword_after_digits(word: &str) -> Option<(u32, TokenKind)> {
    let digits = word.find(|letter: char| !letter.is_ascii_digit())?;
    let mut rest = TokenKind::lexer(word.get(digits..)?);
    let kind = rest.next()?.ok()?;
    let is_keyword = kind.is_word() && !kind.is_name() && rest.next().is_none();
    is_keyword.then_some((digits as u32, kind))
}

/// The significant tokens of a segment, in 7 bytes each, and the spans of its comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenTable {
    kinds: Vec<TokenKind>,
    starts: Vec<u32>,
    /// The length in bytes, or `u16::MAX` if `long` contains the token.
    lengths: Vec<u16>,
    /// The ends of the tokens that are too long for `lengths`, sorted by token.
    long: Vec<(TokenIndex, u32)>,
    comments: Vec<Span>,
    /// The tokens that are names beginning with a digit.
    numbered: Vec<TokenIndex>,
    /// Literals with token indices after those of the text's own tokens, for trees in which literals replace names.
    literals: Option<Box<[Literal]>>,
}

/// A literal that replaces an expression of the text: for example, `24` in place of `WIDTH` after `WIDTH = 24`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// The kind of the literal.
    pub kind: TokenKind,
    /// The text of the literal.
    pub text: Box<str>,
    /// The span of the expression that it replaces.
    pub place: Span,
}

impl TokenTable {
    /// Creates an empty table with capacity for the tokens of a text of `bytes` bytes.
    pub(crate) fn with_capacity(bytes: usize) -> TokenTable {
        let tokens = bytes / 3;
        TokenTable {
            kinds: Vec::with_capacity(tokens),
            starts: Vec::with_capacity(tokens),
            lengths: Vec::with_capacity(tokens),
            ..TokenTable::default()
        }
    }

    /// Appends a token. Trivia is dropped; comments are stored separately.
    #[inline]
    pub(crate) fn push(&mut self, mut token: Token) {
        if token.kind.is_trivia() {
            if token.kind == TokenKind::Comment {
                self.comments.push(token.span);
            }
            return;
        }
        if token.kind == TokenKind::NumberedName {
            token.kind = TokenKind::Name;
            self.numbered.push(self.kinds.len() as u32);
        }
        let length = u16::try_from(token.span.len()).unwrap_or(u16::MAX);
        if length == u16::MAX {
            self.long.push((self.kinds.len() as u32, token.span.end));
        }
        self.kinds.push(token.kind);
        self.starts.push(token.span.start);
        self.lengths.push(length);
    }

    /// Returns a copy without excess capacity.
    pub(crate) fn of_exact_size(&self) -> TokenTable {
        self.clone()
    }

    /// Returns a copy with `literals` after the tokens.
    pub(crate) fn with_literals(&self, literals: Vec<Literal>) -> TokenTable {
        TokenTable { literals: Some(literals.into()), ..self.clone() }
    }

    /// Whether trees over this table contain literals in place of names.
    #[inline]
    pub(crate) fn is_substituted(&self) -> bool {
        self.literals.is_some()
    }

    /// Returns the literal with this token index; `None` for the index of a token of the text.
    #[inline]
    pub(crate) fn literal(&self, token: TokenIndex) -> Option<&Literal> {
        self.literals.as_ref()?.get((token as usize).checked_sub(self.kinds.len())?)
    }

    /// Removes all tokens and keeps the capacity.
    pub(crate) fn clear(&mut self) {
        self.kinds.clear();
        self.starts.clear();
        self.lengths.clear();
        self.long.clear();
        self.comments.clear();
        self.numbered.clear();
    }

    /// The number of tokens.
    pub fn len(&self) -> u32 {
        self.kinds.len() as u32
    }

    /// Whether the table has no tokens.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kinds of all tokens.
    pub fn kinds(&self) -> &[TokenKind] {
        &self.kinds
    }

    /// The kind of a token; `None` for an index past the end.
    #[inline]
    pub fn kind(&self, token: TokenIndex) -> Option<TokenKind> {
        self.kinds.get(token as usize).copied().or_else(|| Some(self.literal(token)?.kind))
    }

    /// The bytes of a token; `None` for an index past the end.
    #[inline]
    pub fn span(&self, token: TokenIndex) -> Option<Span> {
        let Some(&start) = self.starts.get(token as usize) else { return Some(self.literal(token)?.place) };
        let length = *self.lengths.get(token as usize)?;
        if length != u16::MAX {
            return Some(Span::new(start, start + u32::from(length)));
        }
        let long = self.long.binary_search_by_key(&token, |(index, _)| *index).ok()?;
        self.long.get(long).map(|(_, end)| Span::new(start, *end))
    }

    /// Returns the token at `offset`; if there is none, the first one after it. [`TokenTable::len`] after the last
    /// token.
    pub fn at_or_after(&self, offset: u32) -> TokenIndex {
        let index = self.starts.partition_point(|start| *start <= offset) as u32;
        match index.checked_sub(1).and_then(|before| self.span(before)) {
            Some(span) if offset < span.end => index - 1,
            _ => index,
        }
    }

    /// The tokens that are names beginning with a digit, which Python does not allow.
    pub fn numbered(&self) -> &[TokenIndex] {
        &self.numbered
    }

    /// The spans of the comments, `#` included.
    pub fn comments(&self) -> &[Span] {
        &self.comments
    }
}

#[cfg(test)]
mod tests {
    use super::{TokenKind, tokens};

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokens(text).map(|token| token.kind).filter(|kind| !kind.is_trivia()).collect()
    }

    #[test]
    fn literals_and_names() {
        use TokenKind::*;
        assert_eq!(kinds("a _b1 größe 中"), [Name; 4]);
        assert_eq!(kinds("0 1_000 0xFF 0b1 0o7"), [Integer; 5]);
        assert_eq!(kinds("1. .5 1e5 1.5e-3 2j"), [Float; 5]);
        assert_eq!(kinds(r#"'a' "b\"" r"c\d" f'x' b'' """a"b""" '''c''' "#), [String; 7]);
        assert_eq!(kinds("\"open\nx"), [UnclosedString, Name]);
        assert_eq!(kinds("x ? y"), [Name, Unknown, Name]);
        assert_eq!(kinds("matchx match"), [Name, Match]);
        assert_eq!(kinds("0_bias 2d_kernel 1x1conv 10_"), [NumberedName, NumberedName, NumberedName, Integer, Name]);
        assert_eq!(kinds("1if 0or 1else"), [Integer, If, Integer, Or, Integer, Else]);
    }

    #[test]
    fn tokens_cover_the_text() {
        let text = "x: R.Tensor((1,), \"f\") = R.add(a, # why\r\n  b) \\\n + \0 é'";
        let all: std::string::String = tokens(text).map(|token| &text[token.span.range()]).collect();
        assert_eq!(all, text);
    }
}
