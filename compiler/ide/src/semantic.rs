//! Semantic tokens: the kind of each word of a text, for highlighting.
//!
//! The tokens of a segment depend on its text, its function's header and symbolic dims, the file's declarations, and
//! the types that the check found for its names. These are mostly shared values, whose pointers form a [`SegmentKey`].
//! As long as the keys are the same, so are the tokens. They do not depend on where an edit cuts the segments.

use crate::names::{declared_symbols, symbols_in};
use crate::tree::path_to;
use rx_analysis::elaborate::SegmentResult;
use rx_analysis::function::FunctionCheck;
use rx_base::name::{NameSet, name};
use rx_base::{DType, Name, Span};
use rx_context::FileContext;
use rx_db::FileView;
use rx_syntax::ast::StatementKind;
use rx_syntax::document::{FunctionKind, ItemKind};
use rx_syntax::{Segment, Statement, TokenKind, TokenTable};
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

/// Everything that the tokens of a segment depend on. Equal keys have equal tokens.
#[derive(Clone)]
pub struct SegmentKey {
    segment: Arc<Segment>,
    head: Option<Arc<Segment>>,
    context: Option<Arc<FileContext>>,
    result: Option<Arc<SegmentResult>>,
    symbols: Arc<[Name]>,
    kind: ItemKind,
}

impl PartialEq for SegmentKey {
    fn eq(&self, other: &SegmentKey) -> bool {
        fn same<T>(one: &Option<Arc<T>>, other: &Option<Arc<T>>) -> bool {
            match (one, other) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (one, other) => one.is_none() && other.is_none(),
            }
        }
        Arc::ptr_eq(&self.segment, &other.segment)
            && same(&self.head, &other.head)
            && same(&self.context, &other.context)
            && same(&self.result, &other.result)
            && self.kind == other.kind
            && self.symbols == other.symbols
    }
}

/// Returns the keys of all segments of a file, in order.
pub fn segment_keys(view: &FileView<'_>) -> Vec<SegmentKey> {
    let mut keys = Vec::new();
    for (at, item) in view.document().items().iter().enumerate() {
        let context = (item.kind != ItemKind::Foreign).then(|| view.context(at)).flatten();
        let check = view.check(at);
        let symbols = check.as_deref().map(symbols).unwrap_or_default();
        keys.extend(item.segments.iter().enumerate().map(|(number, segment)| SegmentKey {
            segment: Arc::clone(segment),
            head: item.segments.first().filter(|_| number > 0).cloned(),
            context: context.clone(),
            result: check.as_ref().and_then(|check| check.segments.get(number).cloned()),
            symbols: Arc::clone(&symbols),
            kind: item.kind,
        }));
    }
    keys
}

/// Returns the symbolic dims of a function, sorted: those of all its segments.
fn symbols(check: &FunctionCheck) -> Arc<[Name]> {
    let mut names: Vec<Name> = check.segments.iter().flat_map(|result| result.symbols.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names.into()
}

impl SegmentKey {
    /// Returns the segment.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Returns the tokens of the segment, in order and without overlaps.
    pub fn words(&self) -> Vec<SemanticWord> {
        if self.kind == ItemKind::Foreign {
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
    key: &'a SegmentKey,
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
    fn new(key: &'a SegmentKey) -> Painter<'a> {
        let segment = &key.segment;
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
        if let Some(head) = &key.head {
            painter.params.extend(head.tree().statements.iter().flat_map(|statement| parameters(head, statement)));
        }
        painter.known_symbols();
        let rows = key.result.iter().flat_map(|result| &result.rows).filter(|row| row.in_dataflow);
        painter.dataflow.extend(rows.map(|row| row.span.start));
        painter.dataflow.sort_unstable();
        painter
    }

    fn known_symbols(&mut self) {
        if let Some(context) = &self.key.context {
            self.symbols.extend(context.symbols.iter().copied());
        }
        // A prim_func is not elaborated, so its symbols are found in the text: `n = T.int64()`. Its body is one
        // segment.
        if let ItemKind::Function(FunctionKind::Prim | FunctionKind::Macro) = self.key.kind {
            self.symbols.extend(declared_symbols(&self.key.segment));
        }
    }

    fn statement(&mut self, statement: &Statement) {
        if !statement.inline {
            self.functions.retain(|(column, _)| *column < statement.indent);
        }
        if let StatementKind::Def { .. } = &statement.tree.kind {
            self.functions.push((statement.indent, parameters(&self.key.segment, statement).into_iter().collect()));
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
        let context = self.key.context.as_deref();
        let first = token.saturating_sub(statement.first_token);
        match &statement.tree.kind {
            StatementKind::Def { name, .. } if *name == first => return (WordKind::Function, false),
            StatementKind::Class { name, .. } if *name == first => return (WordKind::Class, false),
            StatementKind::Import(_) | StatementKind::FromImport { .. } => return (WordKind::Namespace, false),
            _ => {}
        }
        let says = |names: &dyn Fn(&FileContext) -> bool| context.is_some_and(names);
        if self.symbols.contains(&own) || self.key.symbols.binary_search(&own).is_ok() {
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
        let context = self.key.context.as_deref();
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
        let segment = &self.key.segment;
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
