//! Symbols of the file (module-level `n = TypeVar("n")`) in functions that redeclare them, do not declare them, or have
//! a parameter of the same name, where the parser of a release rejects that.
//!
//! Releases before 0.27 have no symbols of the file and no type parameters. In the parser of 0.27, a `TypeVar` of the
//! file is a symbol in a function whose header mentions it, unless a parameter has the same name. In other functions it
//! is a Python object, which cannot be used in a shape (`collect_signature_type_vars` of
//! tvm/script/parser/core/parser.py).

use rx_base::name::{NameSet, name};
use rx_base::{Code, DType, Diagnostic, Fix, Name, Span, TvmVersion};
use rx_context::{FileContext, ItemPlace, Namespace};
use rx_syntax::ast::{Expr, ExprKind, Parameter, StatementKind, TokenRange};
use rx_syntax::{Cursor, Segment, Segments, Statement};

/// A declaration in a body: `n = T.int64()`.
struct Declaration {
    symbol: Name,
    place: ItemPlace,
    /// The line of the declaration, if it can be deleted: it declares only this symbol, with dtype `int64` as in the
    /// file.
    alone: Option<ItemPlace>,
}

/// Reports the uses of a module's `n = TypeVar("n")` that `version` rejects:
///
/// - a declaration `n = T.int64()` in a prim_func whose header mentions `n`, or in a Relax function whose header does
///   not;
/// - a use of `n` without a declaration in a function whose header does not mention it;
/// - a parameter `n` of a function whose header has types that mention `n`.
pub(super) fn check(
    version: TvmVersion,
    segments: &Segments,
    file: &FileContext,
    found: &mut Vec<Diagnostic<ItemPlace>>,
) {
    if version < TvmVersion::V0_27 {
        super::declarations::check(version, segments, file, found);
        return;
    }
    if file.symbols.is_empty() {
        return;
    }
    let Some(in_header) = header_symbols(segments, file) else { return };
    let is_prim = is_prim_func(segments, file);
    parameters(version, segments, file, found);
    undeclared(version, segments, file, &in_header, found);
    for declaration in declarations(segments, file) {
        if in_header.contains(&declaration.symbol) != is_prim {
            continue;
        }
        let symbol = declaration.symbol;
        let construct = match is_prim {
            true => format!("`{symbol}`, a symbol of the file that the header uses, is declared again"),
            false => format!("`{symbol}`, a symbol of the file that the header does not use, is declared here"),
        };
        let new = fresh(segments, file, symbol);
        let (title, edits) = match declaration.alone.filter(|_| is_prim) {
            Some(gone) => ("leave the declaration out".to_owned(), Some(vec![(gone, String::new())])),
            None => (format!("call it `{new}` in this function"), renamed_and_quoted(segments, symbol, &new)),
        };
        let message = format!("TVM {version} does not read this: {construct}");
        let diagnostic =
            Diagnostic::new(Code::SymbolicVarRedeclared, declaration.place, message).with_help(title.clone());
        found.push(match edits {
            Some(edits) => diagnostic.with_fix(Fix { title, edits, safe: true }),
            None => diagnostic,
        });
    }
}

/// Reports parameters whose name is a symbol of the file that a type in the header mentions. A scalar parameter may
/// have such a name if only the types after it mention the symbol.
fn parameters(version: TvmVersion, segments: &Segments, file: &FileContext, found: &mut Vec<Diagnostic<ItemPlace>>) {
    let Some((head, statement)) = header(segments) else { return };
    let is_prim = is_prim_func(segments, file);
    let StatementKind::Def { params, ret, .. } = &statement.tree.kind else { return };
    let cursor = head.cursor(statement);
    for (at, param) in params.iter().enumerate() {
        let own = cursor.parameter(param);
        let Some(token) = param.tree.name else { continue };
        let symbol = own.name(token);
        let Some(annotation) = param.tree.annotation.as_ref().filter(|_| file.symbols.contains(&symbol)) else {
            continue;
        };
        let scalar = is_scalar(own, annotation, file);
        let names = |param: &Parameter| {
            let part = cursor.parameter(param);
            param.tree.annotation.as_ref().is_some_and(|annotation| names(part, annotation, symbol))
        };
        let clashes = match scalar {
            // In a prim_func, a quoted dim refers to the parameter even if that comes later, so only an unquoted
            // mention before the parameter clashes.
            true if is_prim => {
                let named = own.span(TokenRange::one(token));
                first_mention(head, statement, symbol).is_some_and(|(at, bare)| bare && at.start < named.start)
            }
            true => params.iter().take(at).any(names),
            false => params.iter().any(names) || ret.as_ref().is_some_and(|ret| self::names(cursor, ret, symbol)),
        };
        if !clashes {
            continue;
        }
        let span = own.span(TokenRange::one(token));
        let message = format!(
            "TVM {version} does not read a parameter `{symbol}` beside types that use `{symbol}`, a symbol of the file"
        );
        let mut diagnostic = Diagnostic::new(Code::SymbolicVarRedeclared, ItemPlace::Segment(0, span), message);
        diagnostic = match scalar {
            true => diagnostic.with_help(format!("put `{symbol}` before the parameters whose types use it")),
            false => {
                let new = fresh(segments, file, symbol);
                let title = format!("call the parameter `{new}`");
                let mut edits = vec![(ItemPlace::Segment(0, span), new.clone())];
                let body = |statement: &Statement| !matches!(statement.tree.kind, StatementKind::Def { .. });
                edits.extend(renamed(segments, symbol, &new, &body));
                diagnostic.with_help(title.clone()).with_fix(Fix { title, edits, safe: true })
            }
        };
        found.push(diagnostic);
    }
}

/// Whether a parameter's type is a scalar type: `T.int64`, `R.Prim("int64")`.
fn is_scalar(cursor: Cursor<'_>, annotation: &Expr, file: &FileContext) -> bool {
    let source = cursor.path(annotation.tokens);
    let Some((first, rest)) = source.split_once('.') else { return false };
    match file.namespace(first) {
        Some(Namespace::Tir) => DType::parse(rest).is_some(),
        Some(Namespace::Relax) => rest.starts_with("Prim("),
        _ => false,
    }
}

/// Whether a type mentions a symbol, quoted or not.
fn names(cursor: Cursor<'_>, annotation: &Expr, symbol: Name) -> bool {
    let mut open = vec![annotation];
    while let Some(expr) = open.pop() {
        let named = match &expr.kind {
            ExprKind::Name => cursor.name(expr.tokens.start) == symbol,
            ExprKind::String => {
                cursor.string_value(expr).is_some_and(|text| words(&text).any(|(word, _)| word == symbol.as_str()))
            }
            _ => false,
        };
        if named {
            return true;
        }
        open.extend(expr.children());
    }
    false
}

/// Reports the first use of each symbol that neither the header mentions nor the function binds.
fn undeclared(
    version: TvmVersion,
    segments: &Segments,
    file: &FileContext,
    in_header: &NameSet,
    found: &mut Vec<Diagnostic<ItemPlace>>,
) {
    let bound = bound_names(segments);
    let mut seen = NameSet::default();
    for (at, segment) in segments.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in
            segment.tree().statements.iter().filter(|it| !matches!(it.tree.kind, StatementKind::Def { .. }))
        {
            segment.each_expr(statement, &mut |cursor, expr| {
                if !matches!(expr.kind, ExprKind::Name) {
                    return;
                }
                let symbol = cursor.name(expr.tokens.start);
                let free = file.symbols.contains(&symbol) && !in_header.contains(&symbol) && !bound.contains(&symbol);
                if !free || !seen.insert(symbol) {
                    return;
                }
                let place = ItemPlace::Segment(at, cursor.span(expr.tokens));
                let message = format!(
                    "TVM {version} does not read this: `{symbol}`, a symbol of the file that the header does not use"
                );
                let mut diagnostic = Diagnostic::new(Code::SymbolicVarRedeclared, place, message);
                let new = fresh(segments, file, symbol);
                diagnostic = match declared_first(segments, &new) {
                    Some(declaration) => {
                        let title = format!("declare `{new} = T.int64()` in this function");
                        let mut edits = vec![declaration];
                        edits.extend(renamed(segments, symbol, &new, &|_| true));
                        diagnostic.with_help(title.clone()).with_fix(Fix { title, edits, safe: true })
                    }
                    None => diagnostic.with_help(format!("declare `{new} = T.int64()` at the head of the function")),
                };
                found.push(diagnostic);
            });
        }
    }
}

/// Returns the names that a function's parameters and statements bind.
fn bound_names(segments: &Segments) -> NameSet {
    let mut bound = NameSet::default();
    for segment in segments {
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            let mut targets: Vec<&Expr> = match &statement.tree.kind {
                StatementKind::Assign { targets, .. } => targets.iter().collect(),
                StatementKind::AnnAssign { target, .. } | StatementKind::For { target, .. } => vec![target],
                StatementKind::With(items) => items.iter().filter_map(|item| item.target.as_ref()).collect(),
                StatementKind::Def { params, type_params, .. } => {
                    bound.extend(type_params.iter().map(|token| cursor.name(*token)));
                    bound.extend(params.iter().filter_map(|it| Some(cursor.parameter(it).name(it.tree.name?))));
                    Vec::new()
                }
                _ => Vec::new(),
            };
            while let Some(target) = targets.pop() {
                match &target.kind {
                    ExprKind::Name => bound.extend([cursor.name(target.tokens.start)]),
                    _ => targets.extend(target.children()),
                }
            }
        }
    }
    bound
}

/// Returns the edit that declares a symbol before the first statement of the body, or `None` if that statement is on
/// the header's line.
fn declared_first(segments: &Segments, symbol: &str) -> Option<(ItemPlace, String)> {
    let mut header_seen = false;
    for (at, segment) in segments.iter().enumerate() {
        for statement in &segment.tree().statements {
            if header_seen {
                let place = ItemPlace::Segment(u32::try_from(at).ok()?, Span::empty(statement.span.start));
                let indent = " ".repeat(statement.indent as usize);
                return (!statement.inline).then(|| (place, format!("{symbol} = T.int64()\n{indent}")));
            }
            header_seen = matches!(statement.tree.kind, StatementKind::Def { .. });
        }
    }
    None
}

/// Returns the function's header, which is in the item's first segment.
fn header(segments: &Segments) -> Option<(&Segment, &Statement)> {
    let head = segments.first()?;
    let statement = head.tree().statements.iter().find(|it| matches!(it.tree.kind, StatementKind::Def { .. }))?;
    Some((head, statement))
}

/// Whether an item is a prim_func.
pub(super) fn is_prim_func(segments: &Segments, file: &FileContext) -> bool {
    let Some(head) = segments.first() else { return false };
    head.tree().statements.iter().any(|statement| {
        let StatementKind::Decorator(expr) = &statement.tree.kind else { return false };
        let source = head.cursor(statement).source(expr.tokens);
        source.split_once('.').is_some_and(|(first, _)| file.namespace(first) == Some(Namespace::Tir))
    })
}

/// Returns the symbols of the file that a function's header mentions, quoted or not. Returns `None` for items that are
/// not functions.
fn header_symbols(segments: &Segments, file: &FileContext) -> Option<NameSet> {
    let (head, statement) = header(segments)?;
    let mut found = NameSet::default();
    head.each_expr(statement, &mut |cursor, expr| match &expr.kind {
        ExprKind::Name => found.extend([cursor.name(expr.tokens.start)]),
        ExprKind::String => {
            let text = cursor.string_value(expr).unwrap_or_default();
            found.extend(words(&text).map(|(word, _)| name(word)));
        }
        _ => {}
    });
    found.retain(|symbol| file.symbols.contains(symbol));
    Some(found)
}

/// Returns the declarations in a body that redeclare symbols of the file.
fn declarations(segments: &Segments, file: &FileContext) -> Vec<Declaration> {
    let mut found = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        let statements = &segment.tree().statements;
        for (index, statement) in statements.iter().enumerate() {
            let StatementKind::Assign { targets, value } = &statement.tree.kind else { continue };
            let cursor = segment.cursor(statement);
            let [target] = targets.as_slice() else { continue };
            let pairs: Vec<(&Expr, &Expr)> = match (&target.kind, &value.kind) {
                (ExprKind::Tuple(targets), ExprKind::Tuple(values)) => targets.iter().zip(values).collect(),
                _ => vec![(target, value)],
            };
            let single = pairs.len() == 1;
            for (target, value) in pairs {
                let symbol = cursor.name(target.tokens.start);
                if matches!(target.kind, ExprKind::Name)
                    && file.symbols.contains(&symbol)
                    && declares(cursor, value, file)
                {
                    let next = statements.get(index + 1).filter(|next| next.indent == statement.indent && !next.inline);
                    let whole = single && cursor.path(value.tokens).ends_with(".int64()");
                    let alone = next
                        .filter(|_| whole && !statement.inline)
                        .map(|next| ItemPlace::Segment(at, Span::new(statement.span.start, next.span.start)));
                    found.push(Declaration {
                        symbol,
                        place: ItemPlace::Segment(at, cursor.span(target.tokens)),
                        alone,
                    });
                }
            }
        }
    }
    found
}

/// Whether an expression declares a symbol, as `T.int64()` does.
fn declares(cursor: Cursor<'_>, value: &Expr, file: &FileContext) -> bool {
    let ExprKind::Call { callee, .. } = &value.kind else { return false };
    let source = cursor.path(callee.tokens);
    source
        .split_once('.')
        .is_some_and(|(first, dtype)| file.namespace(first) == Some(Namespace::Tir) && DType::parse(dtype).is_some())
}

/// Returns a name derived from `symbol` that neither the function nor the file uses. For example, `n` becomes `n_1`.
fn fresh(segments: &Segments, file: &FileContext, symbol: Name) -> String {
    let mentioned = rx_analysis::returns::mentions(segments, |_| true);
    let taken = |candidate: &String| {
        let candidate = name(candidate);
        mentioned.contains(&candidate) || file.symbols.contains(&candidate)
    };
    let mut candidates = (1..).map(|number| format!("{symbol}_{number}"));
    // INVARIANT: the candidates are unlimited and the used names are finite, so one is unused.
    candidates.find(|candidate| !taken(candidate)).unwrap_or_default()
}

/// Returns the first mention of a symbol in a function's header, and whether it is unquoted.
fn first_mention(head: &Segment, statement: &Statement, symbol: Name) -> Option<(Span, bool)> {
    let mut first: Option<(Span, bool)> = None;
    head.each_expr(statement, &mut |cursor, expr| {
        let bare = matches!(expr.kind, ExprKind::Name) && cursor.name(expr.tokens.start) == symbol;
        let quoted =
            || cursor.string_value(expr).is_some_and(|text| words(&text).any(|(word, _)| word == symbol.as_str()));
        let span = cursor.span(expr.tokens);
        let named = bare || (matches!(expr.kind, ExprKind::String) && quoted());
        if named && first.is_none_or(|(before, _)| span.start < before.start) {
            first = Some((span, bare));
        }
    });
    first
}

/// Returns the edits that rename a symbol to a name that the file does not declare. The first mention in the header
/// must then be quoted; returns `None` if it is part of a larger dim.
fn renamed_and_quoted(segments: &Segments, symbol: Name, new: &str) -> Option<Vec<(ItemPlace, String)>> {
    let mut edits = renamed(segments, symbol, new, &|_| true);
    let (head, statement) = header(segments)?;
    let Some((span, true)) = first_mention(head, statement, symbol) else { return Some(edits) };
    let text = head.text();
    let before = text.get(..span.start as usize)?.trim_end();
    let behind = text.get(span.end as usize..)?.trim_start();
    if !before.ends_with(['(', '[', ',']) || !behind.starts_with([',', ')', ']']) {
        return None;
    }
    let edit = edits.iter_mut().find(|(place, _)| *place == ItemPlace::Segment(0, span))?;
    edit.1 = format!("\"{new}\"");
    Some(edits)
}

/// Returns the edits that rename a symbol in the statements of a function that `which` selects.
fn renamed(
    segments: &Segments,
    symbol: Name,
    new: &str,
    which: &dyn Fn(&Statement) -> bool,
) -> Vec<(ItemPlace, String)> {
    let mut edits = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in segment.tree().statements.iter().filter(|statement| which(statement)) {
            segment.each_expr(statement, &mut |cursor, expr| {
                let span = cursor.span(expr.tokens);
                match &expr.kind {
                    ExprKind::Name if cursor.name(expr.tokens.start) == symbol => {
                        edits.push((ItemPlace::Segment(at, span), new.to_owned()));
                    }
                    ExprKind::String if matches!(statement.tree.kind, StatementKind::Def { .. }) => {
                        for (word, offset) in words(cursor.source(expr.tokens)) {
                            if word == symbol.as_str() {
                                let start = span.start + offset;
                                let word = Span::new(start, start + word.len() as u32);
                                edits.push((ItemPlace::Segment(at, word), new.to_owned()));
                            }
                        }
                    }
                    _ => {}
                }
            });
        }
    }
    edits
}

/// Returns the identifiers in a text, with their byte offsets.
fn words(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    text.split(move |c| !is_word(c)).filter(|word| !word.is_empty()).map(move |word| {
        let offset = word.as_ptr() as usize - text.as_ptr() as usize;
        (word, u32::try_from(offset).unwrap_or(0))
    })
}
