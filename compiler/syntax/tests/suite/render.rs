//! Compact rendering of trees as text.

use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segment, syntax_diagnostics};

/// Renders the first statement of `text`: operators in brackets that show precedence, and `‹…›` around text that could
/// not be parsed.
pub fn statement(text: &str) -> String {
    let segment = Segment::new(text.into());
    let Some(statement) = segment.tree().statements.first() else { return String::new() };
    let cursor = segment.cursor(statement);
    let show = |value: &Expr| expr(cursor, value);
    let maybe = |value: &Option<Expr>| value.as_ref().map_or("-".to_owned(), |value| expr(cursor, value));
    match &statement.tree.kind {
        StatementKind::Assign { targets, value } => format!("{} = {}", list(cursor, targets, " = "), show(value)),
        StatementKind::AnnAssign { target, annotation, value } => {
            format!("{}: {} = {}", show(target), show(annotation), maybe(value))
        }
        StatementKind::AugAssign { target, op, value } => format!("{} {op:?}= {}", show(target), show(value)),
        StatementKind::Expr(value) => show(value),
        StatementKind::Return(value) => format!("return {}", maybe(value)),
        StatementKind::If(test) => format!("if {}", show(test)),
        StatementKind::For { target, iter } => format!("for {} in {}", show(target), show(iter)),
        StatementKind::With(items) => {
            let items = items.iter().map(|item| format!("{} as {}", show(&item.context), maybe(&item.target)));
            format!("with {}", items.collect::<Vec<_>>().join(", "))
        }
        StatementKind::Def { name, type_params, params, ret } => {
            let params = params.iter().map(|param| {
                let cursor = cursor.parameter(param);
                let tree = &param.tree;
                let name = tree.name.map_or("_", |name| cursor.text(name));
                let part = |value: &Option<Expr>| value.as_ref().map_or("-".to_owned(), |value| expr(cursor, value));
                format!("{}{name}: {} = {}", "*".repeat(tree.stars.into()), part(&tree.annotation), part(&tree.default))
            });
            let types: Vec<&str> = type_params.iter().map(|name| cursor.text(*name)).collect();
            let params = params.collect::<Vec<_>>().join("; ");
            format!("def {}[{}]({params}) -> {}", cursor.text(*name), types.join(","), maybe(ret))
        }
        other => format!("{other:?}"),
    }
}

/// Returns the error of the first statement of `text`: its message, and the text at its span.
pub fn error(text: &str) -> Option<(String, String)> {
    let segment = Segment::new(text.into());
    let diagnostic = syntax_diagnostics(&segment).into_iter().next()?;
    Some((diagnostic.message, text[diagnostic.primary.range()].to_owned()))
}

fn list(cursor: Cursor<'_>, items: &[Expr], between: &str) -> String {
    items.iter().map(|item| expr(cursor, item)).collect::<Vec<_>>().join(between)
}

fn argument(cursor: Cursor<'_>, argument: &Argument) -> String {
    let value = expr(cursor, &argument.value);
    argument.keyword.map_or(value.clone(), |keyword| format!("{}={value}", cursor.text(keyword)))
}

fn expr(cursor: Cursor<'_>, value: &Expr) -> String {
    let show = |value: &Expr| expr(cursor, value);
    let maybe = |value: &Option<Box<Expr>>| value.as_ref().map_or(String::new(), |value| expr(cursor, value));
    match &value.kind {
        ExprKind::Attribute { value, name } => format!("{}.{}", show(value), cursor.text(*name)),
        ExprKind::Subscript { value, index } => format!("{}[{}]", show(value), show(index)),
        ExprKind::Call { callee, arguments } => {
            let arguments: Vec<String> = arguments.iter().map(|a| argument(cursor, a)).collect();
            format!("{}({})", show(callee), arguments.join(", "))
        }
        ExprKind::Tuple(items) => format!("tuple({})", list(cursor, items, ", ")),
        ExprKind::List(items) => format!("list({})", list(cursor, items, ", ")),
        ExprKind::Set(items) => format!("set({})", list(cursor, items, ", ")),
        ExprKind::Dict(entries) => {
            let key = |key: &Option<Expr>| key.as_ref().map_or("**".to_owned(), |key| expr(cursor, key));
            let entries = entries.iter().map(|(k, value)| format!("{}: {}", key(k), show(value)));
            format!("dict({})", entries.collect::<Vec<_>>().join(", "))
        }
        ExprKind::Parenthesized(inner) => format!("({})", show(inner)),
        ExprKind::Slice { lower, upper, step } => format!("{}:{}:{}", maybe(lower), maybe(upper), maybe(step)),
        ExprKind::Unary(op, operand) => format!("{op:?}⟨{}⟩", show(operand)),
        ExprKind::Binary(op, lhs, rhs) => format!("⟨{} {op:?} {}⟩", show(lhs), show(rhs)),
        ExprKind::Compare(first, rest) => {
            let rest: String = rest.iter().map(|(op, operand)| format!(" {op:?} {}", show(operand))).collect();
            format!("⟨{}{rest}⟩", show(first))
        }
        ExprKind::Bool2(op, operands) => format!("⟨{}⟩", list(cursor, operands, &format!(" {op:?} "))),
        ExprKind::Conditional { then, test, otherwise } => {
            format!("⟨{} if {} else {}⟩", show(then), show(test), show(otherwise))
        }
        ExprKind::Lambda { params, body } => format!("lambda/{}⟨{}⟩", params.len(), show(body)),
        ExprKind::Starred { double, value } => format!("{}{}", if *double { "**" } else { "*" }, show(value)),
        ExprKind::Walrus { name, value } => format!("⟨{} := {}⟩", cursor.text(*name), show(value)),
        ExprKind::Error => format!("‹{}›", cursor.source(value.tokens)),
        _ => cursor.source(value.tokens).to_owned(),
    }
}
