//! Mentions: the places where a statement contains a name, each with its role.

use super::quoted::{Context, context, names_in};
use crate::tree::{last_name, path_to};
use rx_base::{DType, Name, Span};
use rx_context::file_context::is_symbol_maker;
use rx_syntax::ast::{Argument, Expr, ExprKind, ImportedName, Parameter, StatementKind};
use rx_syntax::{Cursor, Segment, Statement, TokenKind};
use std::ops::Range;

/// A name in the text of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// The index in the list of requested names.
    pub(crate) which: usize,
    /// The segment's index in the item.
    pub(crate) segment: usize,
    /// The span of the name in bytes of the segment. If the name is in a string with escapes, the span of the string.
    pub(crate) span: Span,
    /// The value of such a string.
    pub(crate) literal: Option<Box<str>>,
    /// The role of the name.
    pub(crate) role: Role,
}

/// The role of a name in its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The name is used.
    Read,
    /// The name is assigned to without being bound: `A` of `A[i] = …`.
    Write,
    /// The name is bound.
    Bind(Bound),
    /// The name of the item's own function or class, in its header.
    Own,
    /// The function's own name in quotes: `"global_symbol": "main"`.
    OwnQuoted,
    /// A member: `f` of `cls.f`. Contains the name before the dot.
    Member(Name),
    /// The keyword of an argument: `k` of `bump(k=i)`. Contains the function that is called.
    Keyword(Callee),
    /// A dim of a type, quoted or not. It declares the symbolic dim if nothing else does.
    Dim { quoted: bool },
    /// The quoted name in the declaration of the same variable: `n = TypeVar("n")`.
    Declared,
}

/// The callee of a call, if it is a single name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Callee {
    pub(crate) name: Name,
    /// The start of the name in bytes of the segment.
    pub(crate) start: u32,
}

/// The kind of variable that a binding creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A parameter that may be an integer, so that dims may refer to it.
    Parameter,
    /// A parameter that cannot be an integer (a tensor or a buffer). Dims do not refer to it.
    Operand,
    Variable,
    /// A symbolic dim: `n = T.int64()`, `TypeVar("n")`.
    Symbol,
    Buffer,
    /// A mutable scalar of a prim_func, which assignments change: `x: T.int32 = 0`.
    Cell,
    Loop,
    Axis,
    Function,
    Class,
    Import,
}

/// An occurrence of a requested name in the text, as a whole word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) which: usize,
    pub(crate) offset: u32,
}

/// A reader of the mentions in a statement.
pub(crate) struct Scanner<'a> {
    pub(crate) wanted: &'a [Name],
    /// Whether the statement is in a prim_func.
    pub(crate) prim: bool,
    pub(crate) segment: &'a Segment,
    pub(crate) at: usize,
}

/// The mentions of a statement, grouped by their order of evaluation.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) reads: Vec<Mention>,
    pub(crate) binds: Vec<Mention>,
    /// The mentions inside each lambda or comprehension that binds a requested name, with the binding mentions first.
    pub(crate) lambdas: Vec<Vec<Mention>>,
}

impl Scanner<'_> {
    /// Returns the mentions in `statement`, given the occurrences `hits` in its text. `own` is whether it is the item's
    /// own header.
    pub(crate) fn mentions(&self, statement: &Statement, hits: &[Hit], own: bool) -> Found {
        let mut found = Found::default();
        if hits.is_empty() {
            return found;
        }
        let bound = self.bound_tokens(statement, own);
        let lambdas = self.lambdas(statement);
        let mut inside: Vec<Vec<Mention>> = lambdas.iter().map(|_| Vec::new()).collect();
        let mut last_string = None;
        for hit in hits {
            let tokens = &self.segment.tree().tokens;
            let token = tokens.at_or_after(hit.offset);
            let (Some(kind), Some(span)) = (tokens.kind(token), tokens.span(token)) else { continue };
            match kind {
                // A string is examined once for each name, because one examination finds all mentions in it.
                TokenKind::String
                    if span.start < hit.offset
                        && last_string.replace((token, hit.which)) != Some((token, hit.which)) =>
                {
                    self.string(statement, token, hit.which, &mut found);
                }
                kind if kind.is_name()
                    && span.start == hit.offset
                    && span.range().len() == self.wanted[hit.which].len() =>
                {
                    let of_lambda = lambdas.iter().any(|lambda| lambda.params.contains(&token));
                    let role = match bound.iter().find(|(bound, _)| *bound == token) {
                        Some((_, role)) => Some(*role),
                        None if of_lambda => Some(Role::Bind(Bound::Parameter)),
                        None => self.used_as(statement, token, own),
                    };
                    let Some(role) = role else { continue };
                    let mention = self.mention(hit.which, span, role);
                    let lambda = lambdas
                        .iter()
                        .position(|lambda| lambda.holds(token) && lambda.names.contains(&self.wanted[hit.which]));
                    match (lambda, role) {
                        (Some(lambda), _) => inside[lambda].push(mention),
                        (None, Role::Bind(_) | Role::Own) => found.binds.push(mention),
                        (None, _) => found.reads.push(mention),
                    }
                }
                _ => {}
            }
        }
        inside.iter_mut().for_each(|mentions| mentions.sort_by_key(|it| !matches!(it.role, Role::Bind(_))));
        found.lambdas = inside.into_iter().filter(|mentions| !mentions.is_empty()).collect();
        found
    }

    fn mention(&self, which: usize, span: Span, role: Role) -> Mention {
        Mention { which, segment: self.at, span, literal: None, role }
    }

    /// Returns the role of a name that its statement does not bind. `None` for a keyword argument or a member if the
    /// callee or object is not a single name.
    fn used_as(&self, statement: &Statement, token: u32, own: bool) -> Option<Role> {
        let tokens = &self.segment.tree().tokens;
        let kind = |token: u32| tokens.kind(token).filter(|_| statement.tokens().contains(&token));
        let before = |by: u32| token.checked_sub(by).filter(|token| *token >= statement.first_token);
        if before(1).and_then(kind) == Some(TokenKind::Dot) {
            let base = before(2).filter(|base| kind(*base).is_some_and(TokenKind::is_name))?;
            let alone = before(3).and_then(kind) != Some(TokenKind::Dot);
            let text = self.segment.text().get(tokens.span(base)?.range())?;
            return alone.then(|| Role::Member(rx_base::name::name(text)));
        }
        if kind(token + 1) == Some(TokenKind::Equal)
            && let Some(opener) = self.opener_around(statement, token)
        {
            return self.callee(statement, opener).map(Role::Keyword);
        }
        if own
            && let Some((root, path)) = path_to(self.segment, statement, token)
            && context(root.cursor, &path) == Context::Dim
        {
            return Some(Role::Dim { quoted: false });
        }
        let written = match &statement.tree.kind {
            StatementKind::AugAssign { target, .. } => target.tokens.start + statement.first_token == token,
            StatementKind::Assign { targets, .. } => {
                let is_base = |target: &Expr| matches!(target.kind, ExprKind::Subscript { .. });
                targets.iter().any(|target| is_base(target) && target.tokens.start + statement.first_token == token)
            }
            _ => false,
        };
        Some(if written { Role::Write } else { Role::Read })
    }

    /// Returns the innermost bracket that is open before a token.
    fn opener_around(&self, statement: &Statement, token: u32) -> Option<u32> {
        let tokens = &self.segment.tree().tokens;
        let mut closed = 0u32;
        for before in (statement.first_token..token).rev() {
            match tokens.kind(before)? {
                kind if kind.is_closer() => closed += 1,
                kind if kind.is_opener() && closed == 0 => return Some(before),
                kind if kind.is_opener() => closed -= 1,
                _ => {}
            }
        }
        None
    }

    /// Returns the function of the call whose opening parenthesis is `opener`. `None` for `a.f(` and other callees.
    fn callee(&self, statement: &Statement, opener: u32) -> Option<Callee> {
        let tokens = &self.segment.tree().tokens;
        let before = |by: u32| opener.checked_sub(by).filter(|token| *token >= statement.first_token);
        let callee = before(1).filter(|callee| tokens.kind(*callee).is_some_and(TokenKind::is_name))?;
        let is_member = before(2).and_then(|token| tokens.kind(token)) == Some(TokenKind::Dot);
        let is_call = tokens.kind(opener) == Some(TokenKind::LeftParen) && !is_member;
        let span = tokens.span(callee).filter(|_| is_call)?;
        Some(Callee { name: rx_base::name::name(self.segment.text().get(span.range())?), start: span.start })
    }

    /// Adds the mentions of a name in a string, if the string is a dim, the name in a declaration, or the name of the
    /// function.
    fn string(&self, statement: &Statement, token: u32, which: usize, found: &mut Found) {
        let Some((root, path)) = path_to(self.segment, statement, token) else { return };
        let Some(literal) = path.last().filter(|literal| matches!(literal.kind, ExprKind::String)) else { return };
        let role = match context(root.cursor, &path) {
            Context::Dim => Role::Dim { quoted: true },
            Context::Bounds => Role::Read,
            Context::GlobalSymbol => Role::OwnQuoted,
            Context::Declares => Role::Declared,
            Context::Other => return,
        };
        let whole = !matches!(role, Role::Dim { .. });
        let mut mentions = Vec::new();
        for (span, literal) in names_in(self.segment, root.cursor, literal, self.wanted[which], whole) {
            mentions.push(Mention { literal, ..self.mention(which, span, role) });
        }
        match role {
            Role::Declared => {
                // The string refers to the variable only if it contains the variable's name.
                let target = match &statement.tree.kind {
                    StatementKind::Assign { targets, .. } => targets.first(),
                    StatementKind::AnnAssign { target, .. } => Some(target),
                    _ => None,
                };
                let same = target.is_some_and(|target| {
                    matches!(target.kind, ExprKind::Name) && root.cursor.name(target.tokens.start) == self.wanted[which]
                });
                if same {
                    found.binds.extend(mentions);
                }
            }
            _ => found.reads.extend(mentions),
        }
    }

    /// Returns the tokens that a statement binds (indices in the segment's table), with their roles.
    fn bound_tokens(&self, statement: &Statement, own: bool) -> Vec<(u32, Role)> {
        let cursor = self.segment.cursor(statement);
        let base = statement.first_token;
        let mut bound = Vec::new();
        match &statement.tree.kind {
            StatementKind::Class { name, .. } => bound.push((base + name, Role::Bind(Bound::Class))),
            StatementKind::Def { name, type_params, params, .. } => {
                bound.push((base + name, if own { Role::Own } else { Role::Bind(Bound::Function) }));
                bound.extend(type_params.iter().map(|token| (base + token, Role::Bind(Bound::Symbol))));
                bound.extend(params.iter().filter_map(|param| {
                    let made = self.param_made(cursor.parameter(param), param);
                    Some((parameter(base, param)?, Role::Bind(made)))
                }));
            }
            StatementKind::Assign { targets, value } => {
                targets.iter().for_each(|target| self.targets(base, cursor, target, value, &mut bound));
            }
            StatementKind::AnnAssign { target, value, .. } => {
                let made = match value {
                    _ if self.prim => Bound::Cell,
                    Some(value) => self.made(cursor, value),
                    None => Bound::Variable,
                };
                names(base, target, made, &mut bound);
            }
            StatementKind::For { target, .. } => names(base, target, Bound::Loop, &mut bound),
            StatementKind::With(items) => {
                let targets = items.iter().filter_map(|item| item.target.as_ref());
                targets.for_each(|target| names(base, target, Bound::Variable, &mut bound));
            }
            StatementKind::Import(imported) | StatementKind::FromImport { names: imported, .. } => {
                bound.extend(imported.iter().map(|imported| (base + import(imported), Role::Bind(Bound::Import))));
            }
            _ => {}
        }
        bound
    }

    /// Adds the names that `target = value` binds. For tuples on both sides, each target is paired with its value.
    fn targets(&self, base: u32, cursor: Cursor<'_>, target: &Expr, value: &Expr, into: &mut Vec<(u32, Role)>) {
        match (&target.kind, &value.kind) {
            (ExprKind::Tuple(targets), ExprKind::Tuple(values)) if targets.len() == values.len() => {
                let pairs = targets.iter().zip(values);
                pairs.for_each(|(target, value)| self.targets(base, cursor, target, value, into));
            }
            _ => names(base, target, self.made(cursor, value), into),
        }
    }

    /// Returns the kind of a parameter, from its annotation.
    fn param_made(&self, cursor: Cursor<'_>, param: &Parameter) -> Bound {
        let Some(annotation) = &param.tree.annotation else { return Bound::Parameter };
        let ExprKind::Call { callee, .. } = &annotation.kind else { return Bound::Parameter };
        match last_name(cursor, callee) {
            "Prim" | "prim" => Bound::Parameter,
            "Buffer" => Bound::Operand,
            _ if self.prim => Bound::Parameter,
            _ => Bound::Operand,
        }
    }

    /// Returns the kind of variable that an assignment of this value creates.
    fn made(&self, cursor: Cursor<'_>, value: &Expr) -> Bound {
        let ExprKind::Call { callee, arguments } = &value.kind else { return Bound::Variable };
        if makes_symbol(cursor, callee, arguments) {
            return Bound::Symbol;
        }
        if !self.prim {
            return Bound::Variable;
        }
        match last_name(cursor, callee) {
            "match_buffer"
            | "alloc_buffer"
            | "sblock_alloc_buffer"
            | "decl_buffer"
            | "alloc_shared"
            | "alloc_local"
            | "buffer_decl"
            | "Buffer"
            | "smem"
            | "allocate" => Bound::Buffer,
            _ if cursor.path(callee.tokens).contains(".axis.") => Bound::Axis,
            _ => Bound::Variable,
        }
    }

    /// Returns the lambdas and comprehensions of a statement.
    fn lambdas(&self, statement: &Statement) -> Vec<Lambda> {
        let kinds = self.segment.tree().tokens.kinds();
        let (first, count) = (statement.first_token as usize, statement.token_count as usize);
        let own = kinds.get(first..first + count).unwrap_or_default();
        if !own.iter().any(|kind| matches!(kind, TokenKind::Lambda | TokenKind::For)) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for root in self.segment.roots(statement) {
            let mut left = vec![root.expr];
            while let Some(expr) = left.pop() {
                left.extend(expr.children());
                let tokens = root.base + expr.tokens.start..root.base + expr.tokens.end;
                let (params, outside) = match &expr.kind {
                    ExprKind::Lambda { params, .. } => {
                        (params.iter().filter_map(|param| parameter(root.base, param)).collect(), 0..0)
                    }
                    ExprKind::Comprehension => self.comprehension(tokens.clone()),
                    _ => continue,
                };
                let table = &self.segment.tree().tokens;
                let name =
                    |token: &u32| Some(rx_base::name::name(self.segment.text().get(table.span(*token)?.range())?));
                let names = params.iter().filter_map(name).collect();
                found.push(Lambda { tokens, outside, params, names });
            }
        }
        // Inner ones first, because a name belongs to the innermost lambda that binds it.
        found.sort_by_key(|lambda| lambda.tokens.len());
        found
    }

    /// Returns the tokens that a comprehension binds, and its first iterable, which is evaluated outside its scope. A
    /// comprehension has no tree, so the tokens between each `for` and its `in` are collected.
    fn comprehension(&self, tokens: Range<u32>) -> (Vec<u32>, Range<u32>) {
        let kind = |token: u32| self.segment.tree().tokens.kind(token);
        let bracketed = kind(tokens.start).is_some_and(TokenKind::is_opener);
        let (mut params, mut outside) = (Vec::new(), None);
        let (mut depth, mut binds) = (-i32::from(bracketed), false);
        for token in tokens.clone() {
            match kind(token) {
                Some(opener) if opener.is_opener() => depth += 1,
                Some(closer) if closer.is_closer() => depth -= 1,
                Some(TokenKind::For) if depth == 0 => binds = true,
                Some(TokenKind::In) if depth == 0 && binds => {
                    binds = false;
                    outside = outside.or(Some(token + 1..tokens.end));
                    continue;
                }
                Some(name) if binds && name.is_name() => params.push(token),
                _ => {}
            }
            let goes_on = matches!(kind(token), Some(TokenKind::For | TokenKind::If)) && depth == 0;
            if let Some(first) = outside.as_mut().filter(|first| goes_on && first.contains(&token)) {
                first.end = token;
            }
        }
        (params, outside.unwrap_or(0..0))
    }
}

/// A lambda or a comprehension, which is the scope of the names that it binds.
struct Lambda {
    tokens: Range<u32>,
    /// The tokens inside it that are evaluated outside its scope: the first iterable of a comprehension. For example,
    /// `x` in `[i for i in x]`.
    outside: Range<u32>,
    /// The tokens of its parameters, and their names.
    params: Vec<u32>,
    names: Vec<Name>,
}

impl Lambda {
    fn holds(&self, token: u32) -> bool {
        self.tokens.contains(&token) && !self.outside.contains(&token)
    }
}

/// Whether a call declares a symbolic dim: `T.int64()`, `TypeVar("n")`.
fn makes_symbol(cursor: Cursor<'_>, callee: &Expr, arguments: &[Argument]) -> bool {
    let of_dtype = arguments.is_empty() && matches!(callee.kind, ExprKind::Attribute { .. });
    is_symbol_maker(cursor, callee) || of_dtype && DType::parse(last_name(cursor, callee)).is_some()
}

/// Returns the names that a segment declares as symbolic dims, judged from its statements alone.
pub(crate) fn declared_symbols(segment: &Segment) -> Vec<Name> {
    let mut found = Vec::new();
    for statement in &segment.tree().statements {
        let StatementKind::Assign { targets, value } = &statement.tree.kind else { continue };
        let cursor = segment.cursor(statement);
        let mut left: Vec<(&Expr, &Expr)> = targets.iter().map(|target| (target, value)).collect();
        while let Some((target, value)) = left.pop() {
            match (&target.kind, &value.kind) {
                (ExprKind::Tuple(targets), ExprKind::Tuple(values)) => left.extend(targets.iter().zip(values)),
                (ExprKind::Name, ExprKind::Call { callee, arguments }) if makes_symbol(cursor, callee, arguments) => {
                    found.push(cursor.name(target.tokens.start));
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns the token of a parameter's name.
fn parameter(base: u32, param: &Parameter) -> Option<u32> {
    Some(base + param.first_token + param.tree.name?)
}

/// Returns the token of the name that an import binds.
fn import(imported: &ImportedName) -> u32 {
    imported.alias.unwrap_or(imported.path.start)
}

/// Adds the names that a target binds.
fn names(base: u32, target: &Expr, made: Bound, into: &mut Vec<(u32, Role)>) {
    match &target.kind {
        ExprKind::Name => into.push((base + target.tokens.start, Role::Bind(made))),
        ExprKind::Tuple(targets) | ExprKind::List(targets) => {
            targets.iter().for_each(|target| names(base, target, made, into));
        }
        ExprKind::Parenthesized(inner) | ExprKind::Starred { value: inner, .. } => names(base, inner, made, into),
        _ => {}
    }
}

/// Returns the argument of a call whose value is `inner`, with its index among the arguments.
pub(crate) fn argument_of<'e>(arguments: &'e [Argument], inner: &Expr) -> Option<(usize, &'e Argument)> {
    arguments.iter().enumerate().find(|(_, argument)| std::ptr::eq(&argument.value, inner))
}
