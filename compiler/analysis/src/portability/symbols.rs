//! Symbols of the file that a function declares again, where the parser of a release refuses it.

use super::written::each_expr;
use crate::file_context::{FileContext, Namespace};
use crate::function::ItemPlace;
use rx_base::name::{NameSet, name};
use rx_base::{Code, DType, Diagnostic, Fix, Name, Span, TvmVersion};
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segment};
use std::sync::Arc;

/// A declaration in a body: `n = T.int64()`.
struct Declaration {
    symbol: Name,
    place: ItemPlace,
}

/// Reports `n = T.int64()` beside a module's `n = TypeVar("n")`: in a prim_func whose header uses `n`, and in a Relax function whose
/// header does not.
pub(super) fn check(
    version: TvmVersion,
    segments: &[Arc<Segment>],
    file: &FileContext,
    found: &mut Vec<Diagnostic<ItemPlace>>,
) {
    let TvmVersion::V0_27 = version;
    if file.symbols.is_empty() {
        return;
    }
    let Some(in_header) = header_symbols(segments, file) else { return };
    let is_prim = is_prim_func(segments, file);
    for declaration in declarations(segments, file) {
        if in_header.contains(&declaration.symbol) != is_prim {
            continue;
        }
        let symbol = declaration.symbol;
        let what = match is_prim {
            true => format!("`{symbol}`, a symbol of the file that the header uses, is declared again"),
            false => format!("`{symbol}`, a symbol of the file that the header does not use, is declared here"),
        };
        let new = fresh(segments, file, symbol);
        let title = format!("call it `{new}` in this function");
        let edits = renamed(segments, symbol, &new);
        found.push(
            Diagnostic::new(
                Code::SymbolicVarRedeclared,
                declaration.place,
                format!("TVM {version} does not read this: {what}"),
            )
            .with_help(title.clone())
            .with_fix(Fix { title, edits, safe: true }),
        );
    }
}

fn is_prim_func(segments: &[Arc<Segment>], file: &FileContext) -> bool {
    let Some(head) = segments.first() else { return false };
    head.tree().statements.iter().any(|statement| {
        let StatementKind::Decorator(expr) = &statement.tree.kind else { return false };
        let source = head.cursor(statement).source(expr.tokens);
        source.split_once('.').is_some_and(|(first, _)| file.namespace(first) == Some(Namespace::Tir))
    })
}

/// The file's symbols that a function's header names, quoted or not; `None` of items that are no functions.
fn header_symbols(segments: &[Arc<Segment>], file: &FileContext) -> Option<NameSet> {
    let head = segments.first()?;
    let statement = head.tree().statements.iter().find(|it| matches!(it.tree.kind, StatementKind::Def { .. }))?;
    let mut found = NameSet::default();
    each_expr(head, statement, &mut |cursor, expr| match &expr.kind {
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

/// Declarations in a body of symbols that are the file's.
fn declarations(segments: &[Arc<Segment>], file: &FileContext) -> Vec<Declaration> {
    let mut found = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in &segment.tree().statements {
            let StatementKind::Assign { targets, value } = &statement.tree.kind else { continue };
            let cursor = segment.cursor(statement);
            let [target] = targets.as_slice() else { continue };
            let pairs: Vec<(&Expr, &Expr)> = match (&target.kind, &value.kind) {
                (ExprKind::Tuple(targets), ExprKind::Tuple(values)) => targets.iter().zip(values).collect(),
                _ => vec![(target, value)],
            };
            for (target, value) in pairs {
                let symbol = cursor.name(target.tokens.start);
                if matches!(target.kind, ExprKind::Name)
                    && file.symbols.contains(&symbol)
                    && declares(cursor, value, file)
                {
                    found.push(Declaration { symbol, place: ItemPlace::Segment(at, cursor.span(target.tokens)) });
                }
            }
        }
    }
    found
}

/// Whether an expression is `T.int64()`.
fn declares(cursor: Cursor<'_>, value: &Expr, file: &FileContext) -> bool {
    let ExprKind::Call { callee, .. } = &value.kind else { return false };
    let source = cursor.source(callee.tokens);
    source
        .split_once('.')
        .is_some_and(|(first, dtype)| file.namespace(first) == Some(Namespace::Tir) && DType::parse(dtype).is_some())
}

/// A name like `symbol` that neither the function nor the file has.
fn fresh(segments: &[Arc<Segment>], file: &FileContext, symbol: Name) -> String {
    let mentioned = crate::returns::mentions(segments);
    let taken = |candidate: &String| {
        let candidate = name(candidate);
        mentioned.contains(&candidate) || file.symbols.contains(&candidate)
    };
    let mut candidates = (1..).map(|number| format!("{symbol}_{number}"));
    // INVARIANT: of endlessly many candidates some is not taken.
    candidates.find(|candidate| !taken(candidate)).unwrap_or_default()
}

/// The edits that give a symbol another name in a function.
fn renamed(segments: &[Arc<Segment>], symbol: Name, new: &str) -> Vec<(ItemPlace, String)> {
    let mut edits = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in &segment.tree().statements {
            each_expr(segment, statement, &mut |cursor, expr| {
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

/// The identifiers in a text, with their offsets.
fn words(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    text.split(move |c| !is_word(c)).filter(|word| !word.is_empty()).map(move |word| {
        let offset = word.as_ptr() as usize - text.as_ptr() as usize;
        (word, u32::try_from(offset).unwrap_or(0))
    })
}
