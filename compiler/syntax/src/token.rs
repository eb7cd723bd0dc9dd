//! Token kinds and the table of a segment's tokens.

use crate::ast::TokenIndex;
use logos::{Lexer, Logos};
use rx_base::Span;

macro_rules! token_kinds {
    ($($(#[doc = $doc:literal])* $kind:ident $text:tt;)*) => {
        /// What a token is. Trees depend on nothing else of a token (`docs/decisions/0003`).
        #[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum TokenKind {
            $(#[doc = concat!("`", $text, "`.")] #[token($text)] $kind,)*
            /// An identifier.
            #[regex(r"[\p{XID_Start}_]\p{XID_Continue}*")]
            Name,
            /// A word that begins with a digit, as importers name parameters: `0_bias`. A [`TokenTable`] keeps it as a [`TokenKind::Name`].
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
            /// A line's end where a bracket or a backslash continues the statement.
            #[regex(r"\\?(\r\n|\n|\r)")]
            Newline,
            /// `# …` to the line's end.
            #[regex(r"#[^\r\n]*", allow_greedy = true)]
            Comment,
            /// A character no token starts with.
            Unknown,
        }

        impl TokenKind {
            /// The text of tokens that are always spelled alike.
            pub const fn text(self) -> Option<&'static str> {
                match self {
                    $(TokenKind::$kind => Some($text),)*
                    _ => None,
                }
            }

            /// How a message names it: `` `:` ``, `a name`.
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
    /// Whether the token can be an identifier; `match`, `case` and `type` are keywords only at some places.
    pub const fn is_name(self) -> bool {
        matches!(self, TokenKind::Name | TokenKind::Match | TokenKind::Case | TokenKind::Type)
    }

    /// Whether the token has no meaning to the grammar.
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

    /// The closer of an opener, the opener of a closer.
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

/// Reads a string's rest, after its prefix and first quote.
fn lex_string(lexer: &mut Lexer<'_, TokenKind>) -> TokenKind {
    let bytes = lexer.source().as_bytes();
    // INVARIANT: the pattern ends with a quote, so the slice is not empty.
    let quote = bytes[lexer.span().end - 1];
    let end = crate::line::string_end(bytes, lexer.span().end - 1, quote);
    lexer.bump(end.offset - lexer.span().end);
    if end.closed { TokenKind::String } else { TokenKind::UnclosedString }
}

/// One token with its place, trivia included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its bytes.
    pub span: Span,
}

/// The tokens of `text`, trivia included; nothing is left out, so their texts together are `text`.
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

/// The length of a word's digits and the keyword that is the rest of it: Python reads `1if` as two tokens.
fn keyword_after_digits(word: &str) -> Option<(u32, TokenKind)> {
    let digits = word.find(|letter: char| !letter.is_ascii_digit())?;
    let mut rest = TokenKind::lexer(word.get(digits..)?);
    let kind = rest.next()?.ok()?;
    let is_keyword = kind.is_word() && !kind.is_name() && rest.next().is_none();
    is_keyword.then_some((digits as u32, kind))
}

/// The significant tokens of a segment, in 7 bytes each, and where its comments are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenTable {
    kinds: Vec<TokenKind>,
    starts: Vec<u32>,
    /// `u16::MAX` where the length stands in `long`.
    lengths: Vec<u16>,
    /// Ends of the tokens too long for `lengths`, by token.
    long: Vec<(TokenIndex, u32)>,
    comments: Vec<Span>,
    /// Names that begin with a digit.
    numbered: Vec<TokenIndex>,
    /// Tokens after the text's own, in a table whose trees have literals in place of names.
    literals: Option<Box<[Literal]>>,
}

/// A literal in place of an expression that the text writes otherwise: `WIDTH`, after `WIDTH = 24`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// What it is.
    pub kind: TokenKind,
    /// How it would be written.
    pub text: Box<str>,
    /// The expression it replaces.
    pub place: Span,
}

impl TokenTable {
    /// An empty table with room for the tokens of `bytes` bytes of text.
    pub(crate) fn with_capacity(bytes: usize) -> TokenTable {
        let tokens = bytes / 3;
        TokenTable {
            kinds: Vec::with_capacity(tokens),
            starts: Vec::with_capacity(tokens),
            lengths: Vec::with_capacity(tokens),
            ..TokenTable::default()
        }
    }

    /// Adds a token; trivia but comments are dropped.
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

    /// A copy without room for more.
    pub(crate) fn of_exact_size(&self) -> TokenTable {
        self.clone()
    }

    /// The same tokens with `literals` after them.
    pub(crate) fn with_literals(&self, literals: Vec<Literal>) -> TokenTable {
        TokenTable { literals: Some(literals.into()), ..self.clone() }
    }

    /// Whether trees over this table have literals in place of names.
    pub(crate) fn is_substituted(&self) -> bool {
        self.literals.is_some()
    }

    /// The literal that a token past the text's own is.
    pub(crate) fn literal(&self, token: TokenIndex) -> Option<&Literal> {
        self.literals.as_ref()?.get((token as usize).checked_sub(self.kinds.len())?)
    }

    /// Removes all tokens; their room stays.
    pub(crate) fn clear(&mut self) {
        self.kinds.clear();
        self.starts.clear();
        self.lengths.clear();
        self.long.clear();
        self.comments.clear();
        self.numbered.clear();
    }

    /// Number of tokens.
    pub fn len(&self) -> u32 {
        self.kinds.len() as u32
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kinds of all tokens.
    pub fn kinds(&self) -> &[TokenKind] {
        &self.kinds
    }

    /// The kind of a token; `None` past the end.
    pub fn kind(&self, token: TokenIndex) -> Option<TokenKind> {
        self.kinds.get(token as usize).copied().or_else(|| Some(self.literal(token)?.kind))
    }

    /// The bytes of a token; `None` past the end.
    pub fn span(&self, token: TokenIndex) -> Option<Span> {
        let Some(&start) = self.starts.get(token as usize) else { return Some(self.literal(token)?.place) };
        let length = *self.lengths.get(token as usize)?;
        if length != u16::MAX {
            return Some(Span::new(start, start + u32::from(length)));
        }
        let long = self.long.binary_search_by_key(&token, |(index, _)| *index).ok()?;
        self.long.get(long).map(|(_, end)| Span::new(start, *end))
    }

    /// The token at `offset`, or else the first one after it; [`TokenTable::len`] past the last.
    pub fn at_or_after(&self, offset: u32) -> TokenIndex {
        let index = self.starts.partition_point(|start| *start <= offset) as u32;
        match index.checked_sub(1).and_then(|before| self.span(before)) {
            Some(span) if offset < span.end => index - 1,
            _ => index,
        }
    }

    /// The names that begin with a digit, which no name may.
    pub fn numbered(&self) -> &[TokenIndex] {
        &self.numbered
    }

    /// Where the comments are, `#` included.
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
