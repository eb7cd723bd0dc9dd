//! Semantic tokens: the kind of each word of a text, for highlighting.
//!
//! The tokens of a segment depend on its text, its function's header and symbolic dims, the file's declarations, and
//! the types that the check found for its names. These are mostly shared values, whose pointers form an [`ItemKey`].
//! [`changed_segments`] compares the keys without reading what they share. As long as the keys are the same, so are the
//! tokens. They do not depend on where an edit cuts the segments.

use crate::names::{declared_symbols, symbols_in};
use crate::tree::path_to;
use rx_analysis::elaborate::{SegmentResult, SegmentResults};
use rx_analysis::function::FunctionCheck;
use rx_base::name::{NameSet, name};
use rx_base::{Chunks, DType, Name, Span};
use rx_context::FileContext;
use rx_db::FileView;
use rx_syntax::ast::StatementKind;
use rx_syntax::document::{FunctionKind, Item, ItemKind};
use rx_syntax::{Segment, Segments, Statement, TokenKind, TokenTable};
use std::ops::Range;
use std::sync::Arc;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum WordKind {
    Namespace,
    Class,
    Type,
    Function,
    /// An operator: a member of `R` or `T` that is called.
    Operator,
    Parameter,
    Variable,
    /// An attribute: a keyword argument, or a member of a value.
    Property,
    SymbolicDim,
    Dtype,
    Keyword,
    Number,
    Text,
    Comment,
}

/// A token of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemanticWord {
    /// Its span in bytes of the segment; it may extend over several lines.
    pub span: Span,
    /// The kind.
    pub kind: WordKind,
    /// Whether it declares the name.
    pub declaration: bool,
    /// Whether it is a name of TVMScript.
    pub library: bool,
    /// Whether it is a variable of a dataflow block.
    pub dataflow: bool,
}

/// Everything that the tokens of an item's segments depend on.
#[derive(Clone)]
pub struct ItemKey {
    segments: Segments,
    results: Option<SegmentResults>,
    context: Option<Arc<FileContext>>,
    symbols: Vec<Name>,
    kind: ItemKind,
}

/// Everything that the tokens of a segment depend on.
#[derive(Clone, Copy)]
pub struct SegmentKey<'a> {
    item: &'a ItemKey,
    segment: &'a Segment,
    result: Option<&'a SegmentResult>,
}

/// Returns the keys of a file's items, in order.
pub fn item_keys(view: &FileView<'_>) -> Vec<ItemKey> {
    let key = |(at, item): (usize, &Item)| {
        let check = view.check(at);
        ItemKey {
            segments: item.segments.clone(),
            results: check.as_ref().map(|check| check.segments.clone()),
            context: (item.kind != ItemKind::Foreign).then(|| view.context(at)).flatten(),
            symbols: check.as_deref().map(symbols).unwrap_or_default(),
            kind: item.kind,
        }
    };
    view.document().items().iter().enumerate().map(key).collect()
}

impl ItemKey {
    /// Returns the keys of the item's segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = SegmentKey<'_>> {
        let results = self.results.iter().flatten().map(|result| Some(&**result)).chain(std::iter::repeat(None));
        self.segments.iter().zip(results).map(|(segment, result)| SegmentKey { item: self, segment, result })
    }

    /// Returns the numbers of segments at the start and at the end that have the same tokens in `new`.
    fn common(&self, new: &ItemKey) -> (usize, usize) {
        let same_head = match (self.segments.first(), new.segments.first()) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        let same_context = match (&self.context, &new.context) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        if !(same_head && same_context && self.symbols == new.symbols && self.kind == new.kind) {
            return (0, 0);
        }
        let by_text = ends(&self.segments, &new.segments);
        let by_result = match (&self.results, &new.results) {
            (Some(old), Some(new)) => ends(old, new),
            (None, None) => by_text,
            _ => (0, 0),
        };
        (by_text.0.min(by_result.0), by_text.1.min(by_result.1))
    }
}

/// Returns the numbers of items at the start and at the end that are the same in both lists. If the lists are the same,
/// both numbers are their length.
fn ends<T>(old: &Chunks<Arc<T>>, new: &Chunks<Arc<T>>) -> (usize, usize) {
    let (replaced, by) = old.changed(new);
    match replaced.is_empty() && by.is_empty() {
        true => (old.len(), old.len()),
        false => (replaced.start, old.len() - replaced.end),
    }
}

/// Returns the ranges of segments, counted over all items, outside of which `old` and `new` have the same tokens.
pub fn changed_segments(old: &[ItemKey], new: &[ItemKey]) -> (Range<usize>, Range<usize>) {
    let count = |items: &[ItemKey]| items.iter().map(|item| item.segments.len()).sum::<usize>();
    let (all_old, all_new) = (count(old), count(new));
    let (mut head, mut tail) = (0, 0);
    for (old, new) in old.iter().zip(new) {
        let common = old.common(new).0;
        head += common;
        if common < old.segments.len().max(new.segments.len()) {
            break;
        }
    }
    for (old, new) in old.iter().rev().zip(new.iter().rev()) {
        let common = old.common(new).1;
        tail += common;
        if common < old.segments.len().max(new.segments.len()) {
            break;
        }
    }
    let tail = tail.min(all_old.min(all_new) - head);
    (head..all_old - tail, head..all_new - tail)
}

/// Returns the symbolic dims of a function, sorted: those of all its segments.
fn symbols(check: &FunctionCheck) -> Vec<Name> {
    let results = check.symbolic.iter().filter_map(|at| check.segments.get(*at as usize));
    let mut names: Vec<Name> = results.flat_map(|result| result.symbols.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl<'a> SegmentKey<'a> {
    /// Returns the segment.
    pub fn segment(&self) -> &'a Segment {
        self.segment
    }

    /// Returns the tokens of the segment, in order and without overlaps.
    pub fn words(&self) -> Vec<SemanticWord> {
        if self.item.kind == ItemKind::Foreign {
            return Vec::new();
        }
        let mut painter = Painter::new(self);
        for statement in &self.segment.tree().statements {
            painter.statement(statement);
        }
        painter.finish()
    }
}

/// Returns the parameters of the function that a statement defines; none if it defines no function.
fn parameters(segment: &Segment, statement: &Statement) -> Vec<Name> {
    let StatementKind::Def { params, .. } = &statement.tree.kind else { return Vec::new() };
    let cursor = segment.cursor(statement);
    params.iter().filter_map(|param| Some(cursor.parameter(param).name(param.tree.name?))).collect()
}

struct Painter<'a> {
    key: &'a SegmentKey<'a>,
    tokens: &'a TokenTable,
    text: &'a str,
    /// The parameters of the segment's function.
    params: NameSet,
    /// The functions that are open at a statement and begin in the segment, outermost first: the column and the
    /// parameters of each.
    functions: Vec<(u32, NameSet)>,
    /// The symbolic dims of the file, and of a function that is not elaborated.
    symbols: NameSet,
    /// The starts of the names that the check found bound in dataflow blocks, sorted. Where a dataflow block begins or
    /// ends in broken text is thus decided in one place.
    dataflow: Vec<u32>,
    words: Vec<SemanticWord>,
}

impl<'a> Painter<'a> {
    fn new(key: &'a SegmentKey<'a>) -> Painter<'a> {
        let segment = key.segment;
        let mut painter = Painter {
            key,
            tokens: &segment.tree().tokens,
            text: segment.text(),
            params: NameSet::default(),
            functions: Vec::new(),
            symbols: NameSet::default(),
            dataflow: Vec::new(),
            words: Vec::new(),
        };
        if let Some(head) = key.item.segments.first().filter(|head| !std::ptr::eq(&***head, segment)) {
            painter.params.extend(head.tree().statements.iter().flat_map(|statement| parameters(head, statement)));
        }
        painter.known_symbols();
        let rows = key.result.iter().flat_map(|result| &result.rows).filter(|row| row.in_dataflow);
        painter.dataflow.extend(rows.map(|row| row.span.start));
        painter.dataflow.sort_unstable();
        painter
    }

    fn known_symbols(&mut self) {
        if let Some(context) = &self.key.item.context {
            self.symbols.extend(context.symbols.iter().copied());
        }
        // A prim_func is not elaborated, so its symbols are found in the text: `n = T.int64()`. Its body is one
        // segment.
        if let ItemKind::Function(FunctionKind::Prim | FunctionKind::Macro) = self.key.item.kind {
            self.symbols.extend(declared_symbols(self.key.segment));
        }
    }

    fn statement(&mut self, statement: &Statement) {
        if !statement.inline {
            self.functions.retain(|(column, _)| *column < statement.indent);
        }
        if let StatementKind::Def { .. } = &statement.tree.kind {
            self.functions.push((statement.indent, parameters(self.key.segment, statement).into_iter().collect()));
        }
        let targets = self.targets(statement);
        for token in statement.tokens() {
            self.token(statement, token, &targets);
        }
    }

    /// Whether a name is a parameter of a function that contains the current statement.
    fn is_parameter(&self, name: Name) -> bool {
        self.params.contains(&name) || self.functions.iter().any(|(_, params)| params.contains(&name))
    }

    /// Returns the tokens that a statement declares.
    fn targets(&self, statement: &Statement) -> Vec<u32> {
        let own = |kind: &StatementKind| match kind {
            StatementKind::Assign { targets, .. } => {
                let names = targets.iter().flat_map(|target| target.tokens.start..target.tokens.end);
                names.collect()
            }
            StatementKind::AnnAssign { target, .. } | StatementKind::For { target, .. } => {
                (target.tokens.start..target.tokens.end).collect()
            }
            StatementKind::Def { name, params, .. } => {
                let params = params.iter().filter_map(|param| Some(param.first_token + param.tree.name?));
                std::iter::once(*name).chain(params).collect()
            }
            StatementKind::Class { name, .. } => vec![*name],
            _ => Vec::new(),
        };
        let tokens: Vec<u32> = own(&statement.tree.kind);
        let has_index = |kinds: &[TokenKind]| kinds.contains(&TokenKind::LeftBracket);
        // A store such as `A[i] = …` declares nothing.
        let all: Vec<u32> = tokens.into_iter().map(|token| token + statement.first_token).collect();
        let kinds: Vec<TokenKind> = all.iter().filter_map(|token| self.tokens.kind(*token)).collect();
        if has_index(&kinds) { Vec::new() } else { all }
    }

    fn token(&mut self, statement: &Statement, token: u32, targets: &[u32]) {
        let (Some(kind), Some(span)) = (self.tokens.kind(token), self.tokens.span(token)) else { return };
        let word = |kind| SemanticWord { span, kind, declaration: false, library: false, dataflow: false };
        match kind {
            TokenKind::String => self.string(statement, token, span),
            TokenKind::UnclosedString => self.words.push(word(WordKind::Text)),
            TokenKind::Integer | TokenKind::Float => self.words.push(word(WordKind::Number)),
            kind if kind.is_name() => {
                let painted = self.name(statement, token, span, targets.contains(&token));
                self.words.push(painted);
            }
            kind if kind.is_word() => self.words.push(word(WordKind::Keyword)),
            _ => {}
        }
    }

    fn name(&self, statement: &Statement, token: u32, span: Span, declaration: bool) -> SemanticWord {
        let text = self.text.get(span.range()).unwrap_or_default();
        let (kind, library) = if token.checked_sub(1).and_then(|at| self.kind(statement, at)) == Some(TokenKind::Dot) {
            self.member(statement, token, text)
        } else if self.kind(statement, token + 1) == Some(TokenKind::Equal) && !declaration {
            (WordKind::Property, false)
        } else {
            self.plain(statement, token, text, declaration)
        };
        let of_block = declaration && kind == WordKind::Variable && self.dataflow.binary_search(&span.start).is_ok();
        SemanticWord { span, kind, declaration, library, dataflow: of_block }
    }

    /// Returns the kind of a token of the statement; `None` if the token is in another one, which may be in another
    /// segment after an edit.
    fn kind(&self, statement: &Statement, token: u32) -> Option<TokenKind> {
        self.tokens.kind(token).filter(|_| statement.tokens().contains(&token))
    }

    /// Returns the kind of a name that is not after a dot.
    fn plain(&self, statement: &Statement, token: u32, text: &str, declaration: bool) -> (WordKind, bool) {
        let own = name(text);
        let context = self.key.item.context.as_deref();
        let first = token.saturating_sub(statement.first_token);
        match &statement.tree.kind {
            StatementKind::Def { name, .. } if *name == first => return (WordKind::Function, false),
            StatementKind::Class { name, .. } if *name == first => return (WordKind::Class, false),
            StatementKind::Import(_) | StatementKind::FromImport { .. } => return (WordKind::Namespace, false),
            _ => {}
        }
        let says = |names: &dyn Fn(&FileContext) -> bool| context.is_some_and(names);
        if self.symbols.contains(&own) || self.key.item.symbols.binary_search(&own).is_ok() {
            (WordKind::SymbolicDim, false)
        } else if self.is_parameter(own) {
            (WordKind::Parameter, false)
        } else if declaration {
            (WordKind::Variable, false)
        } else if says(&|context| context.namespace(text).is_some()) {
            (WordKind::Namespace, true)
        } else if says(&|context| context.modules.contains(&own)) {
            (WordKind::Class, false)
        } else if says(&|context| context.items.contains(&own)) {
            (WordKind::Function, false)
        } else {
            (WordKind::Variable, false)
        }
    }

    /// Returns the kind of a name after a dot.
    fn member(&self, statement: &Statement, token: u32, text: &str) -> (WordKind, bool) {
        let mut first = token;
        while first >= statement.first_token.saturating_add(2) && self.tokens.kind(first - 1) == Some(TokenKind::Dot) {
            first -= 2;
        }
        let head = self.tokens.span(first).and_then(|span| self.text.get(span.range())).unwrap_or_default();
        let context = self.key.item.context.as_deref();
        let library = context.is_some_and(|context| context.namespace(head).is_some());
        let after = self.kind(statement, token + 1);
        let (called, goes_on) = (after == Some(TokenKind::LeftParen), after == Some(TokenKind::Dot));
        let of_module = || {
            let own: Name = name(text);
            first + 2 == token && context.is_some_and(|context| context.items.contains(&own))
        };
        let kind = match () {
            () if !library && of_module() => WordKind::Function,
            () if !library => WordKind::Property,
            () if goes_on => WordKind::Namespace,
            () if DType::parse(text).is_some() => WordKind::Dtype,
            () if text.starts_with(char::is_uppercase) => WordKind::Type,
            () if called || !text.is_empty() => WordKind::Operator,
            () => WordKind::Property,
        };
        (kind, library)
    }

    /// Adds the tokens of a string: a dtype, the symbols of a dim, or text.
    fn string(&mut self, statement: &Statement, token: u32, span: Span) {
        let text = self.text.get(span.range()).unwrap_or_default();
        let word = |span, kind| SemanticWord { span, kind, declaration: false, library: false, dataflow: false };
        if DType::parse(text.trim_matches(['"', '\''])).is_some() {
            return self.words.push(word(span, WordKind::Dtype));
        }
        let segment = self.key.segment;
        let symbols =
            path_to(segment, statement, token).and_then(|(root, path)| symbols_in(segment, root.cursor, &path));
        match symbols.filter(|symbols| !symbols.is_empty()) {
            // Of adjacent literals, each one gets the symbols within it.
            Some(symbols) => {
                let own = symbols.into_iter().filter(|symbol| span.start <= symbol.start && symbol.end <= span.end);
                self.words.extend(own.map(|symbol| word(symbol, WordKind::SymbolicDim)));
            }
            None => self.words.push(word(span, WordKind::Text)),
        }
    }

    /// Returns the tokens, together with the comments between them.
    fn finish(mut self) -> Vec<SemanticWord> {
        let comments = self.key.segment.comments();
        self.words.extend(comments.map(|span| SemanticWord {
            span,
            kind: WordKind::Comment,
            declaration: false,
            library: false,
            dataflow: false,
        }));
        self.words.sort_by_key(|word| word.span.start);
        self.words
    }
}
