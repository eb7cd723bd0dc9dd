//! Argument normalization: puts the arguments of calls of `T.` functions in the order of the parameters.
//!
//! ```text
//! T.Select(false_value=b, condition=c, true_value=a)   ->   T.Select(c, a, b)
//! ```
//!
//! Wrong calls and calls with a spread do not change; [`mistakes`] reports the wrong ones.

use super::{Function, Mistake, ParamKind, Written, find};
use rx_base::Code;
use rx_context::{FileContext, Namespace};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, Parameter, StatementKind, TokenRange};
use std::borrow::Cow;
use std::sync::Arc;

/// The largest number of positional parameters, `span` included, for which optional arguments lose their keywords. Code
/// that reads functions with more parameters finds optional arguments by keyword.
const FEW: usize = 4;

/// Returns the syntax of each argument of a call.
pub fn written<'t>(cursor: Cursor<'t>, arguments: &[Argument]) -> Vec<Written<'t>> {
    let one = |argument: &Argument| match (argument.keyword, &argument.value.kind) {
        (Some(keyword), _) => Written::Keyword(cursor.text(keyword)),
        (None, ExprKind::Starred { .. }) => Written::Spread,
        (None, _) => Written::Positional,
    };
    arguments.iter().map(one).collect()
}

/// Returns a call's arguments in the order of the parameters. Keyword arguments become positional until a parameter is
/// left out or an argument keeps its keyword. Keyword-only arguments keep theirs; so do optional ones in functions with
/// more than 4 positional parameters, `span` included. Arguments without effect (`span`, a dropped `dtype`) are
/// removed. Returns `None`, and the call does not change, if it has neither keywords nor `span`, if it is wrong, or if
/// it has a spread. For example, `T.if_then_else(c, f=b, t=a)` becomes `T.if_then_else(c, a, b)`.
pub fn ordered(cursor: Cursor<'_>, function: &Function<'_>, arguments: &[Argument]) -> Option<Vec<Argument>> {
    let is_plain = |argument: &Argument| argument.keyword.is_none();
    let bound = function.bind(&written(cursor, arguments));
    if bound.open || !bound.mistakes.is_empty() {
        return None;
    }
    let is_span =
        |param: &Option<usize>| param.is_some_and(|at| function.params.get(at).is_some_and(|it| it.name == "span"));
    if arguments.iter().all(is_plain) && !bound.params.iter().any(is_span) {
        return None;
    }
    let few = function.params.iter().filter(|param| param.kind == ParamKind::Positional).count() <= FEW;
    let mut ordered = Vec::with_capacity(arguments.len());
    let mut leading = true;
    for (at, param) in function.params.iter().enumerate().filter(|(_, param)| param.name != "span") {
        let of_param = bound.params.iter().zip(arguments).filter(|(bound, _)| **bound == Some(at));
        let before = ordered.len();
        for (_, argument) in of_param {
            let by_position = param.kind == ParamKind::Positional && leading && (few || param.is_required());
            let keyword = argument.keyword.filter(|_| !by_position);
            leading &= keyword.is_none();
            ordered.push(Argument { keyword, value: argument.value.clone() });
        }
        leading &= param.kind == ParamKind::Variadic || ordered.len() > before;
    }
    // Extra positional arguments that older releases may accept.
    let rest = bound.params.iter().zip(arguments).filter(|(bound, argument)| bound.is_none() && is_plain(argument));
    ordered.extend(rest.map(|(_, argument)| argument.clone()));
    Some(ordered)
}

/// Returns the arguments of a call of the function `name` in the order of the parameters; unchanged if the function is
/// unknown, or the call is wrong or has a spread.
pub fn values<'e>(cursor: Cursor<'_>, name: &str, arguments: &'e [Argument]) -> Cow<'e, [Argument]> {
    match find(name).and_then(|function| ordered(cursor, function, arguments)) {
        Some(ordered) => Cow::Owned(ordered),
        None => Cow::Borrowed(arguments),
    }
}

/// Finds the function of `T` that a call's callee names.
fn called(cursor: Cursor<'_>, file: &FileContext, callee: &Expr) -> Option<&'static Function<'static>> {
    let ExprKind::Attribute { .. } = callee.kind else { return None };
    let (head, function) = cursor.path(callee.tokens).split_once('.')?;
    (file.namespace(head) == Some(Namespace::Tir)).then(|| find(function)).flatten()
}

/// Returns the statement with the arguments of its calls of `T.` functions in the order of the parameters. Of a `def`
/// only the annotations of parameters change; decorators, wrong calls and calls with a spread do not change.
pub fn in_order<'s>(cursor: Cursor<'_>, file: &FileContext, kind: &'s StatementKind) -> Cow<'s, StatementKind> {
    if let StatementKind::Def { params, .. } = kind {
        let out_of_order = |param: &Parameter| {
            param.tree.annotation.as_ref().is_some_and(|ty| is_out_of_order(cursor.parameter(param), file, ty))
        };
        if !params.iter().any(out_of_order) {
            return Cow::Borrowed(kind);
        }
        let mut kind = kind.clone();
        if let StatementKind::Def { params, .. } = &mut kind {
            for param in params {
                let own = cursor.parameter(param);
                if let Some(annotation) = &mut Arc::make_mut(&mut param.tree).annotation {
                    put_in_order(own, file, annotation);
                }
            }
        }
        return Cow::Owned(kind);
    }
    if !expressions(kind).into_iter().any(|expr| is_out_of_order(cursor, file, expr)) {
        return Cow::Borrowed(kind);
    }
    let mut kind = kind.clone();
    expressions_mut(&mut kind).into_iter().for_each(|expr| put_in_order(cursor, file, expr));
    Cow::Owned(kind)
}

/// Whether an expression contains a call whose arguments [`put_in_order`] replaces.
fn is_out_of_order(cursor: Cursor<'_>, file: &FileContext, expr: &Expr) -> bool {
    let changes = |expr: &Expr| {
        let ExprKind::Call { callee, arguments } = &expr.kind else { return None };
        ordered(cursor, called(cursor, file, callee)?, arguments).map(drop)
    };
    first(expr, &changes).is_some()
}

fn put_in_order(cursor: Cursor<'_>, file: &FileContext, expr: &mut Expr) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        if let ExprKind::Call { callee, arguments } = &mut expr.kind
            && let Some(ordered) =
                called(cursor, file, callee).and_then(|function| ordered(cursor, function, arguments))
        {
            *arguments = ordered;
        }
        open.extend(expr.children_mut());
    }
}

/// A call whose arguments do not fit its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongCall {
    /// The code of its diagnostic.
    pub code: Code,
    /// Its message.
    pub message: String,
    /// The wrong keyword or value; the whole call if arguments are missing.
    pub tokens: TokenRange,
    /// The parameter that was probably meant by an unknown keyword.
    pub meant: Option<&'static str>,
}

/// Returns the mistakes of a call of a `T.` function.
pub fn mistakes(cursor: Cursor<'_>, file: &FileContext, call: &Expr) -> Vec<WrongCall> {
    let ExprKind::Call { callee, arguments } = &call.kind else { return Vec::new() };
    let Some(function) = called(cursor, file, callee) else { return Vec::new() };
    mistakes_of(cursor, function, cursor.path(callee.tokens), arguments, call.tokens)
}

/// Returns the mistakes of a call of `function`, which the source calls `name`; `call` is the token range of the
/// call.
pub fn mistakes_of(
    cursor: Cursor<'_>,
    function: &Function<'static>,
    name: &str,
    arguments: &[Argument],
    call: TokenRange,
) -> Vec<WrongCall> {
    let wrong = |mistake: Mistake<'static>| {
        let tokens = mistake.tokens(arguments, call);
        let message = mistake.message(function, name, cursor.source(tokens));
        let meant = matches!(mistake, Mistake::Unknown(_)).then(|| function.meant(cursor.source(tokens))).flatten();
        WrongCall { code: mistake.code(), message, tokens, meant }
    };
    function.bind(&written(cursor, arguments)).mistakes.into_iter().map(wrong).collect()
}

/// Returns the first mistake in the calls of `T.` functions in a statement of a function's body.
pub fn wrong_call(cursor: Cursor<'_>, file: &FileContext, kind: &StatementKind) -> Option<WrongCall> {
    expressions(kind).into_iter().find_map(|expr| first(expr, &|expr| mistakes(cursor, file, expr).into_iter().next()))
}

/// Returns the first result of `ask` on the expression and its descendants, in preorder.
fn first<T>(expr: &Expr, ask: &impl Fn(&Expr) -> Option<T>) -> Option<T> {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        if let Some(answer) = ask(expr) {
            return Some(answer);
        }
        open.extend(expr.children().into_iter().rev());
    }
    None
}

/// Returns the outermost expressions of a statement in a function's body; none for a `def`, `class` or decorator.
fn expressions(kind: &StatementKind) -> Vec<&Expr> {
    match kind {
        StatementKind::Decorator(_) | StatementKind::Class { .. } | StatementKind::Def { .. } => Vec::new(),
        _ => kind.expressions(),
    }
}

/// Returns the same expressions as [`expressions`], mutably, without the targets of `for` and `with`.
fn expressions_mut(kind: &mut StatementKind) -> Vec<&mut Expr> {
    match kind {
        StatementKind::Assign { targets, value } => targets.iter_mut().chain([value]).collect(),
        StatementKind::AnnAssign { target, annotation, value } => {
            [target, annotation].into_iter().chain(value).collect()
        }
        StatementKind::AugAssign { target, value, .. } => vec![target, value],
        StatementKind::For { iter, .. } => vec![iter],
        StatementKind::With(items) => items.iter_mut().map(|item| &mut item.context).collect(),
        StatementKind::Assert { test, message } => [test].into_iter().chain(message).collect(),
        StatementKind::Expr(expr)
        | StatementKind::Return(Some(expr))
        | StatementKind::While(expr)
        | StatementKind::If(expr)
        | StatementKind::Elif(expr) => vec![expr],
        _ => Vec::new(),
    }
}
