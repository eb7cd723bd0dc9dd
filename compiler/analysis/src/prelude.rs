//! Checks the code around the functions of a file: declarations of symbolic dims, and of the module.

mod declarations;

pub use declarations::members;

use rx_base::edit_distance::nearest;
use rx_base::{Code, Diagnostic, Span};
use rx_context::file_context::is_symbol_maker;
use rx_context::mistakes::suggest_in_place;
use rx_context::{FileContext, ItemPlace};
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segments};

/// Reports mistakes in `n = TypeVar("n")`: a different name, too few or too many arguments, and an undefined callee.
pub fn check(segments: &Segments, file: &FileContext) -> Vec<Diagnostic<ItemPlace>> {
    let mut found = Vec::new();
    for (at, segment) in (0..).zip(segments) {
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            let StatementKind::Assign { targets, value } = &statement.tree.kind else { continue };
            let (ExprKind::Call { callee, arguments }, [target]) = (&value.kind, &targets[..]) else { continue };
            if !matches!((&callee.kind, &target.kind), (ExprKind::Name, ExprKind::Name)) {
                continue;
            }
            let report = |code, span, message: String| Diagnostic::new(code, ItemPlace::Segment(at, span), message);
            if cursor.text(callee.tokens.start) == "TypeVar" {
                found.extend(declaration(cursor, value, arguments, cursor.text(target.tokens.start), &report));
            } else if !is_symbol_maker(cursor, callee) && !is_bound(cursor, callee, file) {
                let (name, span) = (cursor.text(callee.tokens.start), cursor.span(callee.tokens));
                let diagnostic = report(Code::UndefinedName, span, format!("`{name}` is not defined"));
                let near = nearest(name, ["TypeVar"]).or(name.starts_with("TypeVar").then_some("TypeVar"));
                found.push(suggest_in_place(diagnostic, near));
            }
        }
    }
    found
}

/// Reports mistakes in a module's declarations, which are statements of its class.
pub fn of_module(segments: &Segments, file: &FileContext) -> Vec<Diagnostic<ItemPlace>> {
    let mut declarations = declarations::Declarations::default();
    let mut found = Vec::new();
    for (at, segment) in (0..).zip(segments) {
        for statement in &segment.tree().statements {
            if let StatementKind::Expr(call) = &statement.tree.kind {
                found.extend(declarations.statement(segment.cursor(statement), call, file, at));
            }
        }
    }
    found
}

/// Whether the file binds the name, or it is a Python builtin that TVM's parser evaluates.
fn is_bound(cursor: Cursor<'_>, callee: &Expr, file: &FileContext) -> bool {
    let name = cursor.name(callee.tokens.start);
    let bound = [&file.captured, &file.api, &file.modules, &file.symbols].iter().any(|names| names.contains(&name));
    bound || file.items.contains(&name) || rx_prim_func::names::is_builtin(&name)
}

/// Checks one `TypeVar` declaration. TVM reads the declaration of `d` as the symbol `d`, so the declared name must be
/// the same.
fn declaration(
    cursor: Cursor<'_>,
    call: &Expr,
    arguments: &[Argument],
    target: &str,
    report: &dyn Fn(Code, Span, String) -> Diagnostic<ItemPlace>,
) -> Option<Diagnostic<ItemPlace>> {
    let mut positional = arguments.iter().filter(|argument| argument.keyword.is_none());
    let keyword = |argument: &&Argument| argument.keyword.is_some_and(|keyword| cursor.text(keyword) == "name");
    let Some(given) = positional.next().or_else(|| arguments.iter().find(keyword)) else {
        let message = format!("TypeVar: the name is missing: `TypeVar(\"{target}\")`");
        return Some(report(Code::MissingArgument, cursor.span(call.tokens), message));
    };
    let span = cursor.span(given.value.tokens);
    if let Some(more) = positional.next() {
        let message = "TypeVar: takes a name, more is passed".to_owned();
        return Some(report(Code::TooManyArguments, cursor.span(more.value.tokens), message));
    }
    let declared = cursor.string_value(&given.value)?;
    (declared != target).then(|| {
        let message = format!("the symbolic dim `{target}` is declared under another name, \"{declared}\"");
        suggest_in_place(report(Code::AttrBadValue, span, message), Some(&format!("\"{target}\"")))
    })
}
