//! Checks a module's declarations: `I.module_attrs(…)`, `I.module_global_infos(…)`, and the devices and meshes in
//! them.

use rx_base::edit_distance::nearest;
use rx_base::{Code, Diagnostic, Span, counted};
use rx_context::mistakes::suggest;
use rx_context::{FileContext, ItemPlace, Namespace};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind};

/// The declarations, each of which a module may have once.
const STATEMENTS: &[&str] = &["module_attrs", "module_global_infos"];

/// The calls in declarations, each with the minimal number of arguments and the maximal number of positional ones
/// (TVM 0.27, `script/ir_builder/ir`).
const PARTS: &[(&str, usize, usize)] = &[
    ("I.module_attrs", 1, 2),
    ("I.module_global_infos", 1, 1),
    ("I.vdevice", 0, 3),
    ("I.dummy_global_info", 0, 0),
    ("I.Range", 1, 3),
    ("R.device_mesh", 2, 2),
];

/// Returns the names in `I` that declarations of a module use.
pub fn members() -> impl Iterator<Item = &'static str> {
    PARTS.iter().filter_map(|(path, ..)| path.strip_prefix("I."))
}

/// Checks the declarations of a module, one statement after the other.
#[derive(Default)]
pub(super) struct Declarations {
    seen: Vec<String>,
}

impl Declarations {
    /// Checks a statement that is an expression.
    pub(super) fn statement(
        &mut self,
        cursor: Cursor<'_>,
        call: &Expr,
        file: &FileContext,
        segment: u32,
    ) -> Vec<Diagnostic<ItemPlace>> {
        let mut found = Vec::new();
        let ExprKind::Call { callee, .. } = &call.kind else { return found };
        let source = cursor.path(callee.tokens);
        let Some((head, member)) = source.split_once('.') else { return found };
        if file.namespace(head) != Some(Namespace::Ir) {
            return found;
        }
        let place = |span: Span| ItemPlace::Segment(segment, span);
        let span = cursor.span(callee.tokens);
        if !STATEMENTS.contains(&member) {
            let report = Diagnostic::new(Code::UnknownOperator, place(span), format!("`{head}` has no `{member}`"));
            found.push(match nearest(member, STATEMENTS.iter().copied()) {
                Some(near) => suggest(report, near, vec![(place(span), format!("{head}.{near}"))]),
                None => report.with_help("a module declares its attributes and its global infos"),
            });
            return found;
        }
        if self.seen.iter().any(|seen| seen == member) {
            let message = format!("`{source}` is in this module already");
            found.push(Diagnostic::new(Code::DuplicateDefinition, place(span), message));
        }
        self.seen.push(member.to_owned());
        parts(cursor, call, file, &place, &mut found);
        found
    }
}

/// Checks the number of arguments of the calls in a declaration.
fn parts(
    cursor: Cursor<'_>,
    expr: &Expr,
    file: &FileContext,
    place: &dyn Fn(Span) -> ItemPlace,
    found: &mut Vec<Diagnostic<ItemPlace>>,
) {
    match &expr.kind {
        ExprKind::Call { callee, arguments } => {
            let path = file.canonical_path(cursor.path(callee.tokens)).unwrap_or_default();
            if let Some(part) = PARTS.iter().find(|(name, ..)| *name == path) {
                found.extend(arity(cursor, expr, *part, arguments, place));
            }
            arguments.iter().for_each(|argument| parts(cursor, &argument.value, file, place, found));
        }
        ExprKind::List(items) | ExprKind::Tuple(items) => {
            items.iter().for_each(|item| parts(cursor, item, file, place, found));
        }
        ExprKind::Dict(entries) => {
            entries.iter().for_each(|(_, value)| parts(cursor, value, file, place, found));
        }
        _ => {}
    }
}

fn arity(
    cursor: Cursor<'_>,
    call: &Expr,
    (path, least, most): (&str, usize, usize),
    arguments: &[Argument],
    place: &dyn Fn(Span) -> ItemPlace,
) -> Option<Diagnostic<ItemPlace>> {
    if arguments.iter().any(|argument| matches!(argument.value.kind, ExprKind::Starred { .. })) {
        return None;
    }
    if arguments.len() < least {
        let message = format!("{path}: takes {}, {} passed", counted(least, "argument"), arguments.len());
        return Some(Diagnostic::new(Code::MissingArgument, place(cursor.span(call.tokens)), message));
    }
    if let Some(surplus) = arguments.iter().filter(|argument| argument.keyword.is_none()).nth(most) {
        let message = format!("{path}: takes at most {}, more are passed", counted(most, "argument"));
        return Some(Diagnostic::new(Code::TooManyArguments, place(cursor.span(surplus.value.tokens)), message));
    }
    let text = arguments.iter().find(|it| path == "R.device_mesh" && matches!(it.value.kind, ExprKind::String))?;
    let message = format!("{path}: a shape and devices are wanted, this is {}", cursor.source(text.value.tokens));
    let report = Diagnostic::new(Code::ArgumentType, place(cursor.span(text.value.tokens)), message);
    Some(report.with_help("write `R.device_mesh((2, 2), I.Range(0, 4))`"))
}
