//! Parsing of statements from token kinds, with memoization.
//!
//! A tree depends only on the kinds of its tokens, and models repeat the same few hundred line shapes. So each thread
//! caches trees by their token kinds, and the chumsky grammar runs once for each distinct sequence. For example, all
//! lines `lvN = R.add(lvA, lvB)` of a model are one entry. The cache is bounded, and no result depends on it.

use crate::ast::{ParameterTree, StatementKind, StatementTree, SyntaxError, TokenRange};
use crate::grammar::{Failure, Grammar};
use crate::token::TokenKind::{self, *};
use crate::{header, nesting, recover, target};
use rustc_hash::FxHashMap;
use rx_base::Code;
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

/// The longest line, in tokens, that is cached. Longer lines are rarely repeated.
const MAX_KEY: usize = 512;

/// The largest number of tokens of a statement. A tree takes about 110 bytes a token, so at most about half a GB. The
/// limit does not apply to a `def`, which is parsed one parameter at a time.
const MAX_STATEMENT: usize = 1 << 22;

/// The number of entries at which the cache is emptied.
const MAX_ENTRIES: usize = 4096;

/// A cache of trees, keyed by the kinds of their tokens.
struct Table<T> {
    buckets: FxHashMap<u64, Bucket<T>>,
    entries: usize,
}

/// The entries with the same hash.
type Bucket<T> = Vec<(Box<[TokenKind]>, Arc<T>)>;

impl<T> Table<T> {
    fn new() -> Table<T> {
        Table { buckets: FxHashMap::default(), entries: 0 }
    }

    fn get(&self, hash: u64, kinds: &[TokenKind]) -> Option<Arc<T>> {
        let bucket = self.buckets.get(&hash)?;
        bucket.iter().find(|(key, _)| **key == *kinds).map(|(_, tree)| tree.clone())
    }

    fn insert(&mut self, hash: u64, kinds: &[TokenKind], tree: Arc<T>) {
        if self.entries >= MAX_ENTRIES {
            self.buckets.clear();
            self.entries = 0;
        }
        self.buckets.entry(hash).or_default().push((kinds.into(), tree));
        self.entries += 1;
    }

    /// Adds the entries of `other` that are missing.
    fn join(&mut self, other: Table<T>) {
        for (hash, bucket) in other.buckets {
            for (kinds, tree) in bucket {
                if self.get(hash, &kinds).is_none() {
                    self.insert(hash, &kinds, tree);
                }
            }
        }
    }
}

thread_local! {
    static STATEMENTS: RefCell<Table<StatementTree>> = RefCell::new(Table::new());
    static PARAMETERS: RefCell<Table<ParameterTree>> = RefCell::new(Table::new());
}

/// The caches of a thread, taken from it to be moved to another.
pub(crate) struct Caches {
    statements: Table<StatementTree>,
    parameters: Table<ParameterTree>,
}

impl Caches {
    /// Takes the caches of this thread, and leaves empty ones.
    pub(crate) fn take() -> Caches {
        Caches { statements: STATEMENTS.replace(Table::new()), parameters: PARAMETERS.replace(Table::new()) }
    }

    /// Makes these the caches of this thread, with the entries that it added meanwhile.
    pub(crate) fn put(mut self) {
        self.statements.join(STATEMENTS.replace(Table::new()));
        self.parameters.join(PARAMETERS.replace(Table::new()));
        STATEMENTS.set(self.statements);
        PARAMETERS.set(self.parameters);
    }
}

/// Hashes the kinds, eight at a time.
fn hash(kinds: &[TokenKind]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = kinds.len() as u64;
    for chunk in kinds.chunks(8) {
        let mut word = 0u64;
        for &kind in chunk {
            word = (word << 8) | kind as u64;
        }
        hash = (hash.rotate_left(29) ^ word).wrapping_mul(FACTOR);
    }
    hash ^ (hash >> 32)
}

fn memoized<T>(
    table: &'static std::thread::LocalKey<RefCell<Table<T>>>,
    kinds: &[TokenKind],
    parse: impl FnOnce() -> T,
) -> Arc<T> {
    if kinds.len() > MAX_KEY {
        return Arc::new(parse());
    }
    let hash = hash(kinds);
    if let Some(tree) = table.with_borrow(|table| table.get(hash, kinds)) {
        return tree;
    }
    let tree = Arc::new(parse());
    table.with_borrow_mut(|table| table.insert(hash, kinds, tree.clone()));
    tree
}

/// A parser for the lines of one token table. It builds the grammar when a line is not in the cache.
pub(crate) struct Reader<'k> {
    grammar: OnceCell<Grammar<'k>>,
}

impl<'k> Reader<'k> {
    /// Creates a parser for kinds that live as long as `'k`.
    pub(crate) fn new() -> Reader<'k> {
        Reader { grammar: OnceCell::new() }
    }

    /// The grammar. Only kinds that [`nesting::too_deep`] accepts may be given to it, because it recurses.
    pub(crate) fn grammar(&self) -> &Grammar<'k> {
        self.grammar.get_or_init(Grammar::new)
    }

    /// Parses a statement.
    pub(crate) fn statement(&self, kinds: &'k [TokenKind]) -> Arc<StatementTree> {
        memoized(&STATEMENTS, kinds, || self.read_statement(kinds))
    }

    /// Parses a parameter of a `def`.
    pub(crate) fn parameter(&self, kinds: &'k [TokenKind]) -> Arc<ParameterTree> {
        memoized(&PARAMETERS, kinds, || self.read_parameter(kinds))
    }

    /// Parses a statement that is not in the cache. If it has several errors, the tree contains one: an unclosed string
    /// before the bracket error that it causes, and a bracket error before the grammar's.
    fn read_statement(&self, kinds: &'k [TokenKind]) -> StatementTree {
        if kinds.first() == Some(&Def) {
            return header::definition(self, kinds);
        }
        if let Some(block) = python(kinds) {
            let error = nesting::check(kinds);
            return StatementTree { kind: StatementKind::Python { block }, error };
        }
        if let Some(error) = too_long(kinds).or_else(|| nesting::check(kinds)) {
            let error = unclosed_string(kinds).unwrap_or(error);
            return StatementTree { kind: recover::statement(self, kinds), error: Some(error) };
        }
        match self.grammar().statement(kinds) {
            Ok(kind) => {
                let error = target::check(&kind).or_else(|| unclosed_string(kinds));
                StatementTree { kind, error }
            }
            Err(failure) => {
                let error = unclosed_string(kinds).unwrap_or_else(|| syntax_error(kinds, failure));
                StatementTree { kind: recover::statement(self, kinds), error: Some(error) }
            }
        }
    }

    fn read_parameter(&self, kinds: &'k [TokenKind]) -> ParameterTree {
        let failed = match nesting::check(kinds) {
            Some(error) => unclosed_string(kinds).unwrap_or(error),
            None => match self.grammar().parameter(kinds) {
                Ok(mut tree) => {
                    tree.error = unclosed_string(kinds);
                    return tree;
                }
                Err(failure) => syntax_error(kinds, failure),
            },
        };
        recover::parameter(self, kinds, failed)
    }
}

/// Builds the error for a failed parse.
pub(crate) fn syntax_error(kinds: &[TokenKind], failure: Failure) -> SyntaxError {
    let end = kinds.len() as u32;
    let start = failure.at.min(end);
    let tokens = TokenRange { start, end: (start + 1).min(end) };
    let (code, message) = match kinds.get(start as usize) {
        Some(Unknown) => (Code::InvalidCharacter, "this character has no meaning here"),
        Some(UnclosedString) => (Code::UnclosedString, "the string is never closed"),
        _ => (Code::SyntaxError, failure.message),
    };
    let expected = if message.is_empty() { failure.expected() } else { Vec::new() };
    SyntaxError { code, tokens, expected, message }
}

/// Returns an error for a statement that exceeds [`MAX_STATEMENT`].
fn too_long(kinds: &[TokenKind]) -> Option<SyntaxError> {
    (kinds.len() > MAX_STATEMENT).then(|| SyntaxError {
        code: Code::StatementTooLong,
        tokens: TokenRange::one(0),
        expected: Vec::new(),
        message: "the statement has more than 4,194,304 tokens and is not read",
    })
}

/// Returns the error of an unclosed string. The grammar accepts an unclosed string as a string, to keep the line's
/// structure.
fn unclosed_string(kinds: &[TokenKind]) -> Option<SyntaxError> {
    let at = kinds.iter().position(|kind| *kind == UnclosedString)? as u32;
    Some(SyntaxError {
        code: Code::UnclosedString,
        tokens: TokenRange::one(at),
        expected: Vec::new(),
        message: "the string is never closed",
    })
}

/// Whether a line is a Python statement without meaning in TVMScript; if so, whether it opens a block.
fn python(kinds: &[TokenKind]) -> Option<bool> {
    let opens = kinds.last() == Some(&Colon);
    match (kinds.first()?, kinds.get(1)) {
        (Try | Except | Finally | Async, _) => Some(true),
        (Raise | Del | Global | Nonlocal, _) => Some(false),
        (Match | Case, Some(second)) if opens && starts_operand(*second) => Some(true),
        (Type, Some(Name)) => Some(false),
        _ => None,
    }
}

/// Whether this token, after `match` or `case`, shows that the word is a keyword and not a name.
fn starts_operand(kind: TokenKind) -> bool {
    kind.is_name()
        || matches!(
            kind,
            Integer | Float | String | NoneLiteral | True | False | LeftParen | LeftBracket | LeftBrace | Minus
        )
}
