//! Checks decorators: the decorator above a `def` decides whether it is a Relax function, a prim_func or neither.

use rx_base::edit_distance::nearest;
use rx_base::{Code, Diagnostic, Span};
use rx_context::mistakes::suggest_in_place;
use rx_context::{FileContext, ItemPlace, Namespace};
use rx_syntax::ast::{Argument, Expr, ExprKind, Parameter, StatementKind, TokenRange};
use rx_syntax::{Cursor, Segment};

/// The decorators of functions in the `R` namespace (TVM 0.27 and the classic spellings).
const OF_RELAX: &[&str] = &["function", "macro"];
/// The decorators of functions in the `T` namespace.
const OF_TIR: &[&str] = &["prim_func", "macro", "inline", "jit", "meta_class", "constexpr"];
/// The decorators of functions and modules in the `I` namespace.
const OF_IR: &[&str] = &["pyfunc", "ir_module"];

/// The keyword arguments of `@R.function` and `@T.prim_func`.
const FUNCTION: &[&str] = &["pure", "private", "check_well_formed"];
const PRIM_FUNC: &[&str] = &["private", "check_well_formed", "s_tir", "persistent", "is_entry"];

/// Returns the decorators in a namespace. An unknown decorator of a function is corrected to the first one if no other is
/// similar.
pub fn members(namespace: Namespace) -> &'static [&'static str] {
    match namespace {
        Namespace::Relax => OF_RELAX,
        Namespace::Tir => OF_TIR,
        Namespace::Ir => OF_IR,
    }
}

/// Returns the keyword arguments of a decorator; `None` for one whose arguments are not checked.
pub fn keywords(namespace: Namespace, decorator: &str) -> Option<&'static [&'static str]> {
    match (namespace, decorator) {
        (Namespace::Relax, "function") => Some(FUNCTION),
        (Namespace::Tir, "prim_func") => Some(PRIM_FUNC),
        (_, "macro") => Some(&["hygienic"]),
        (_, "inline") => Some(&[]),
        _ => None,
    }
}

/// Reports unknown decorators, unknown or repeated keywords of decorators, and functions without a decorator. `head`
/// is the first segment of an item.
pub fn check(head: &Segment, file: &FileContext) -> Vec<Diagnostic<ItemPlace>> {
    let (mut found, mut decorated) = (Vec::new(), false);
    for statement in &head.tree().statements {
        let cursor = head.cursor(statement);
        match &statement.tree.kind {
            StatementKind::Decorator(decorator) => {
                decorated = true;
                found.extend(decorator_mistakes(cursor, decorator, file, |span| ItemPlace::Segment(0, span)));
            }
            StatementKind::Def { name, params, ret, .. } => {
                // Modules may be Python classes, with Python methods such as `__init__`; so names that begin with
                // `__` need no decorator. Outside a module, a function may be plain Python: only one whose signature
                // has Relax or TIR types counts.
                let in_module = statement.indent > 0 && !file.modules.is_empty();
                let is_relax = in_module || is_of_relax(cursor, params, ret.as_ref(), file);
                if !decorated && is_relax && !cursor.text(*name).starts_with("__") {
                    let name = TokenRange::one(*name);
                    found.push(undecorated(cursor, name, |span| ItemPlace::Segment(0, span)));
                }
                break;
            }
            _ => {}
        }
    }
    found
}

/// Whether the signature uses a type of the `R` or `T` namespace, such as `R.Tensor(…)` or `T.Buffer(…)`.
fn is_of_relax(cursor: Cursor<'_>, params: &[Parameter], ret: Option<&Expr>, file: &FileContext) -> bool {
    let is_type = |cursor: Cursor<'_>, ty: &Expr| {
        let call = matches!(ty.kind, ExprKind::Call { .. });
        let head = cursor.path(ty.tokens).split_once('.').map(|(head, _)| head);
        call && matches!(head.and_then(|head| file.namespace(head)), Some(Namespace::Relax | Namespace::Tir))
    };
    let of_param = |param: &Parameter| {
        param.tree.annotation.as_ref().is_some_and(|annotation| is_type(cursor.parameter(param), annotation))
    };
    params.iter().any(of_param) || ret.is_some_and(|ret| is_type(cursor, ret))
}

/// Reports that a function has no decorator, so that its kind is unknown.
pub(crate) fn undecorated<P: Clone>(cursor: Cursor<'_>, name: TokenRange, at: impl Fn(Span) -> P) -> Diagnostic<P> {
    let message = format!("`{}` has no decorator: its kind is unknown", cursor.source(name));
    Diagnostic::new(Code::UnsupportedConstruct, at(cursor.span(name)), message)
        .with_help("write `@R.function` or `@T.prim_func` above it")
}

/// Returns the mistakes in one decorator.
pub(crate) fn decorator_mistakes<P: Clone>(
    cursor: Cursor<'_>,
    decorator: &Expr,
    file: &FileContext,
    at: impl Fn(Span) -> P,
) -> Vec<Diagnostic<P>> {
    let (callee, arguments) = match &decorator.kind {
        ExprKind::Call { callee, arguments } => (&**callee, arguments.as_slice()),
        _ => (decorator, [].as_slice()),
    };
    let source = cursor.path(callee.tokens);
    let Some((head, member)) = source.split_once('.') else { return Vec::new() };
    let Some(namespace) = file.namespace(head) else { return Vec::new() };
    let members = members(namespace);
    if !members.contains(&member) {
        let place = at(cursor.span(callee.tokens));
        let message = format!("`{source}` decorates no function");
        // The first name of each list is the usual decorator; it is the fallback suggestion.
        let usual = members.first().copied().unwrap_or_default();
        let meant = format!("{head}.{}", nearest(member, members.iter().copied()).unwrap_or(usual));
        let diagnostic = Diagnostic::new(Code::UnsupportedConstruct, place, message);
        return vec![suggest_in_place(diagnostic, Some(&meant))];
    }
    match keywords(namespace, member) {
        Some(keywords) => unknown_keywords(cursor, source, arguments, keywords, at),
        None => Vec::new(),
    }
}

fn unknown_keywords<P: Clone>(
    cursor: Cursor<'_>,
    source: &str,
    arguments: &[Argument],
    keywords: &[&str],
    at_span: impl Fn(Span) -> P,
) -> Vec<Diagnostic<P>> {
    let mut found = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        let Some(keyword) = argument.keyword else { continue };
        let written = cursor.text(keyword);
        let place = at_span(cursor.span(TokenRange::one(keyword)));
        let is_same = |other: &Argument| other.keyword.is_some_and(|other| cursor.text(other) == written);
        if arguments.iter().take(at).any(is_same) {
            let message = format!("{source}: `{written}` is passed twice");
            found.push(Diagnostic::new(Code::DuplicateArgument, place, message));
        } else if !keywords.contains(&written) {
            let message = format!("{source}: there is no argument `{written}`");
            let diagnostic = Diagnostic::new(Code::UnknownArgument, place, message);
            found.push(suggest_in_place(diagnostic, nearest(written, keywords.iter().copied())));
        }
    }
    found
}
